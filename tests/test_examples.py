"""The examples in the docstrings of the public names run and print what they say; no public name is without."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import heedful

NAMES = [name for name in heedful.__all__ if name != "__version__"]


def examples_of(name: str) -> list[doctest.DocTest]:
    """The examples of a public name and, of a class, of its methods."""
    found = doctest.DocTestFinder(recurse=True).find(getattr(heedful, name), name, globs={})
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name: str) -> None:
    assert examples_of(name), f"help(heedful.{name}) shows no example: add one (>>>) to its docstring"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "HeedfulError"])
def test_help_describes_every_parameter(name: str) -> None:
    wanted = inspect.signature(getattr(heedful, name)).parameters
    described = re.findall(r"^ *([a-z_, ]+): ", inspect.getdoc(getattr(heedful, name)) or "", re.MULTILINE)
    assert not set(wanted) - {word.strip() for words in described for word in words.split(",")}


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_do_what_they_say(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for example in examples_of(name):
        said: list[str] = []
        result = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(example, out=said.append)
        assert not result.failed, "".join(said)
