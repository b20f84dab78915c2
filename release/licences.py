"""`python -m release.licences`: which libraries come with heedful, in which version, under which licence.

Read from what is installed (importlib.metadata): what the core requires, what each extra adds, and what those require
in turn, on this system. Writes docs/licences.md; with a folder, a bill of materials in the form of CycloneDX 1.5 to it.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parents[1]
PAGE = HERE / "docs" / "licences.md"
NOT_SHIPPED = "dev"  # the extra of those who work on heedful

CLASSIFIER = "License :: OSI Approved :: "


@dataclass(frozen=True, kw_only=True)
class Library:
    name: str
    version: str
    licence: str
    parts: tuple[str, ...]
    """The core, or the extras that bring it along."""


def required() -> dict[str, list[Requirement]]:
    """What the core and each extra ask for, as pyproject.toml has it."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parts = {"core": project["dependencies"], **project["optional-dependencies"]}
    return {part: [Requirement(one) for one in asked] for part, asked in parts.items() if part != NOT_SHIPPED}


def libraries() -> list[Library]:
    """All of them by name; what the core brings along is the core's alone."""
    found: dict[str, list[str]] = {}
    for part, asked in required().items():
        for name in _closure(asked):
            if "core" not in found.setdefault(name, []):
                found[name].append(part)
    held = {name: distribution(name) for name in sorted(found)}
    return [
        Library(name=one.name, version=one.version.partition("+")[0], licence=licence_of(one), parts=tuple(found[name]))
        for name, one in held.items()
    ]


def _closure(asked: list[Requirement]) -> set[str]:
    """The names of these and of all that they require here."""
    seen: set[tuple[str, str]] = set()
    waiting = [(one, extra) for one in asked for extra in ("", *one.extras)]
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, extra) not in seen:
            seen.add((name, extra))
            waiting += [(one, more) for one in _requirements(name, extra) for more in ("", *one.extras)]
    return {name for name, _ in seen}


def _requirements(name: str, extra: str) -> Iterator[Requirement]:
    try:
        written = distribution(name).requires or []
    except PackageNotFoundError:
        sys.exit(f"'{name}' is not installed here: install heedful with all its extras, then call again.")
    for one in map(Requirement, written):
        if one.marker is None or one.marker.evaluate({"extra": extra}):
            yield one


def licence_of(one: Distribution) -> str:
    """As SPDX has it where the library says so, else by its classifiers or its own words."""
    said = one.metadata
    expressions, words = (said.get_all(field) or [""] for field in ("License-Expression", "License"))
    classified = [line.removeprefix(CLASSIFIER) for line in said.get_all("Classifier") or () if CLASSIFIER in line]
    found = expressions[0] or " or ".join(classified) or re.split(r"\s{2,}|\n", words[0].strip())[0][:60]
    return found or "not said in its metadata"


def page(found: list[Library]) -> str:
    rows = [f"| {one.name} | {one.version} | {one.licence} | {', '.join(one.parts)} |" for one in found]
    return "\n".join(
        [
            "# Libraries and their licences",
            "",
            "heedful itself is under the MIT licence. It contains no code of other projects; these libraries are "
            "installed with it, in the versions of `constraints.txt`, on Linux with Python 3.11. `core` comes always, "
            "the others with the extra of that name. Licences are what the libraries say in their metadata. torch may "
            "bring further libraries for graphics cards (`nvidia-…`, `triton`), which this list leaves out: here it is "
            "the build for the CPU. Written by `make licences`.",
            "",
            "| library | version | licence | with |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def bill(found: list[Library], version: str) -> dict[str, object]:
    """A bill of materials (CycloneDX 1.5)."""
    parts = [
        {
            "type": "library",
            "name": one.name,
            "version": one.version,
            "purl": f"pkg:pypi/{canonicalize_name(one.name)}@{one.version}",
            "licenses": [{"license": {"name": one.licence}}],
            "properties": [{"name": "heedful:part", "value": part} for part in one.parts],
        }
        for one in found
    ]
    whole = {"type": "application", "name": "heedful", "version": version, "licenses": [{"license": {"id": "MIT"}}]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": whole},
        "components": parts,
    }


def main(folder: str | None = None) -> None:
    found = libraries()
    if folder is None:
        PAGE.write_text(page(found), encoding="utf-8")
        return
    (version,) = re.findall(r'__version__ = "(.+)"', (HERE / "src/heedful/version.py").read_text(encoding="utf-8"))
    text = json.dumps(bill(found, version), indent=2) + "\n"
    (Path(folder) / f"heedful-{version}.cdx.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
