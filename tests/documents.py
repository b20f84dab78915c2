"""The documentation as tests see it: its pages, the code in them, their links and headings."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

from heedful.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = tuple(sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")]))
FENCED = re.compile(r"^```(?P<language>\S*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Block:
    """Code in a page."""

    language: str
    code: str

    @property
    def commands(self) -> list[list[str]]:
        """The commands of a shell block in words, those of a session without what they print."""
        lines = self.code.splitlines()
        if self.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [words for line in lines if (words := shlex.split(line, comments=True))]


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path) -> list[Block]:
    return [Block(language=one["language"], code=one["code"]) for one in FENCED.finditer(text_of(page))]


def prose(page: Path) -> str:
    """A page without its code."""
    return FENCED.sub("", text_of(page))


def links(page: Path) -> Iterator[str]:
    """What is linked, pictures too, but what lies elsewhere."""
    for target in re.findall(r"\]\(([^()\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(page))):
        if not re.match(r"https?:", target):
            yield target


@cache
def anchors(page: Path) -> frozenset[str]:
    """What a heading is linked by: its words in lower case, dashes for spaces, without other signs.

    GitHub and the site (`mkdocs.yml`) make them alike.
    """
    headings = re.findall(r"^#{1,6} +(.*?) *$", prose(page), re.MULTILINE)
    bare = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "") for heading in headings]
    return frozenset(re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-") for words in bare)


def parsed(words: list[str]) -> Any:
    """The arguments of a `heedful` command as the command line understands them; it raises where it does not."""
    command, rest = command_of(words)
    at_once = {option for one in command.params if one.callback for option in one.opts}
    if len(rest) == 1 and rest[0] in at_once:  # it would be done while it is read
        return None
    return command.make_context("heedful", rest)


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the first words name, and the others."""
    command: Any = typer.main.get_command(app)
    rest = words
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, f"there is no command heedful … {rest[0]}"
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest
