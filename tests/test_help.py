"""Help as a manual: a first sentence, options with words and defaults, examples that are understood; completion."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from heedful.cli import app
from heedful.cli.help import EXAMPLES, EXIT_CODES, SHORT
from heedful.config import RunSettings
from tests.commands import Call, environment


def every_command() -> Iterator[tuple[str, Any]]:
    """All commands and groups, by what is typed."""
    whole: Any = typer.main.get_command(app)
    yield "", whole
    for name, command in whole.commands.items():
        yield name, command
        yield from ((f"{name} {inner}", one) for inner, one in getattr(command, "commands", {}).items())


COMMANDS = dict(every_command())
OPTIONS = [
    pytest.param(option, id=f"{name} {option.name}")
    for name, command in COMMANDS.items()
    for option in command.params
    if option.param_type_name == "option"
]


def test_every_command_has_examples_and_nothing_else_has() -> None:
    assert set(EXAMPLES) == set(COMMANDS)
    assert set(SHORT) <= set(COMMANDS)


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_are_understood(line: str) -> None:
    """Parsed down to the last command, not run: an option that is renamed is an example that fails."""
    words = shlex.split(line.partition(" < ")[0])[1:]
    command = COMMANDS[""]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    command.make_context("heedful", words)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("columns", [80, 120])
def test_help_begins_with_a_sentence_fits_and_ends_with_examples(
    name: str, columns: int, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    said = call(*name.split(), "--help")
    lines = said.out.splitlines()
    assert said.code == 0
    assert lines[0].startswith(f"Usage: heedful {name}".rstrip())
    assert re.match(r"[A-Z].*", lines[2].strip())
    paragraph = " ".join(said.out.split("\n\n")[1].split())
    assert paragraph.endswith((".", "?"))
    assert max(map(len, lines)) <= columns
    assert not [line for line in lines if line.endswith("...") and "Usage" not in line], "a line is cut short"
    assert f"  {EXAMPLES[name][-1]}" in said.out


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_says_what_it_is(option: Any) -> None:
    assert option.help
    assert option.help[0].isupper() or option.help[0] in "λ" or option.help.split()[0].strip(":,") in VALUES
    assert option.help.endswith((".", "…"))


VALUES = {"flat", "dot", "none", "local"}
"""With which an option's words may begin: those it takes."""


def test_defaults_in_words_are_those_of_the_settings() -> None:
    said = {option.name: option.help for option in COMMANDS["train"].params}
    usual = RunSettings()
    for name in ("structure", "attention", "encoder"):
        assert f"{getattr(usual.model, name)} (default)" in said[name]
    assert said["score_scale"].endswith(f"default: {usual.model.score_scale:g}.")
    assert said["epochs"].endswith(f"default: {usual.training.epochs}.")
    assert said["seed"].endswith(f"default: {usual.training.seed}.")
    assert f"default: {usual.data.encoding}." in said["encoding"]
    assert f"{usual.data.missing_labels} leaves them out (default)" in said["missing_labels"]


def test_exit_codes_are_named(call: Call) -> None:
    said = call("--help").out
    assert all(re.search(rf"^ +{code}  {re.escape(words)}$", said, re.MULTILINE) for code, words in EXIT_CODES.items())


def heedful(shell: str, words: str, **more: str) -> str:
    """What the program answers when a shell asks how a line could go on."""
    asked = {"_HEEDFUL_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": words, **more}
    code = "from heedful.cli import main; import sys; sys.argv = ['heedful']; main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment() | asked)
    assert not ended.stderr
    return ended.stdout


def test_bash_is_told_how_a_line_goes_on() -> None:
    told = heedful("bash", "", COMP_WORDS="heedful runs ve", COMP_CWORD="2")
    assert told.split() == ["verify"]
    told = heedful("bash", "", COMP_WORDS="heedful audit --no", COMP_CWORD="2")
    assert set(told.split()) == {"--no-fresh", "--no-advice"}


def test_zsh_and_fish_are_told_too() -> None:
    assert re.search(r'"verify":"Check that', heedful("zsh", "heedful runs ve"))
    assert heedful("fish", "heedful runs ve", _TYPER_COMPLETE_FISH_ACTION="get-args").startswith("verify\tCheck that")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_read_by_their_shells(shell: str, tmp_path: Path) -> None:
    """In a shell of that kind where there is one."""
    code = "from heedful.cli import main; import sys; sys.argv = ['heedful']; main()"
    asked = os.environ | environment() | {"_HEEDFUL_COMPLETE": f"source_{shell}"}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=asked).stdout
    assert "_HEEDFUL_COMPLETE=complete_" + shell in told
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"there is no {shell} here")
    script = tmp_path / "script"
    script.write_text(told, encoding="utf-8")
    read = subprocess.run([program, "-n", script], capture_output=True, text=True)
    assert (read.returncode, read.stderr) == (0, "")
