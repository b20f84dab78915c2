"""What the tests rely on everywhere: a function that is given or returns what it does not say fails."""

import importlib
import py_compile
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from beartype.roar import BeartypeCallHintViolation

from tests.checking import Finder, check

SOURCE = '''
"""A module."""
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, no_type_check
import numpy as np
from jaxtyping import Float, Int
if TYPE_CHECKING:
    from nowhere import Unknown

Row = Float[np.ndarray, " units"]

def add(a: Row, b: Row) -> Row:
    return a + b

def halve(a: Float[np.ndarray, " units"]) -> Row:
    return a[::2]

def both(*, rows: list[Row] | None = None, counts: Int[np.ndarray, " units"]) -> int:
    return halve_all(rows or []) + len(counts)

def halve_all(rows: list[Row]) -> int:
    return sum(map(len, rows)) // 2

def length(text: str) -> int:
    return len(text) if text else text

def inner(a: Row) -> Callable[[object], Row]:
    def add_to(b: Row) -> Row:
        return a + b[:2]
    return add_to

def typed(kind: type) -> Callable[[object], object]:
    class Local(kind):
        pass
    def same(value: Local) -> Local:
        return value
    same.local = Local
    return same

def each(a: Row) -> Iterator[float]:
    yield from a

def parts(a: Row, size: int) -> Iterator[Row]:
    for start in range(0, len(a), size):
        yield a[start : start + size]

def sizes(a: Row) -> Iterator[int]:
    def inward(b: Row) -> Iterator[int]:
        yield from map(len, parts(b, 2))
    for part in parts(a, 1):
        yield from inward(part)

def later(one: "Later", other: "Unknown", text: str) -> "Later":
    return one

def plain(a, b):
    return a + b

@no_type_check
def unchecked(a: Row) -> str:
    return a

@dataclass(frozen=True, kw_only=True)
class Later:
    """A value."""

    weights: Float[np.ndarray, " units"]
    scores: Float[np.ndarray, " units"]

    @property
    def first(self) -> float:
        return self.weights

    @classmethod
    def of(cls, a: Row) -> "Later":
        return cls(weights=a, scores=a)

    @staticmethod
    def total(a: Row) -> float:
        return float(a.sum())

class Base:
    def __init__(self, a: Row) -> None:
        self.a = a
'''
TWO, THREE, WHOLE = np.zeros(2), np.zeros(3), np.zeros(2, dtype=int)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The source above, imported from a package that is checked."""
    folder = tmp_path_factory.mktemp("checked")
    file = folder / "checked_example.py"
    file.write_text(SOURCE)
    py_compile.compile(str(file))  # as another process may have done
    finder = Finder("checked_example")
    sys.path.insert(0, str(folder))
    sys.meta_path.insert(0, finder)
    yield importlib.import_module("checked_example")
    sys.meta_path.remove(finder)
    sys.path.remove(str(folder))
    del sys.modules["checked_example"]


REFUSED: dict[str, Callable[[ModuleType], Any]] = {
    "another type": lambda m: m.length(3),
    "another type is returned": lambda m: m.length(""),
    "another type of numbers": lambda m: m.add(WHOLE, WHOLE),
    "axes of one name differ": lambda m: m.add(TWO, THREE),
    "the axis of an argument is returned otherwise": lambda m: m.halve(TWO),
    "axes differ within a union and a list": lambda m: m.both(rows=[THREE], counts=WHOLE),
    "what a function within a function is given": lambda m: m.inner(TWO)(WHOLE),
    "what a function within a function returns": lambda m: m.inner(TWO)(THREE),
    "a field": lambda m: m.Later(weights=TWO, scores=3),
    "two fields": lambda m: m.Later(weights=TWO, scores=THREE),
    "a property": lambda m: m.Later.of(TWO).first,
    "a method of the class": lambda m: m.Later.of(WHOLE),
    "a static method": lambda m: m.Later.total(WHOLE),
    "what makes an object": lambda m: m.Base(WHOLE),
    "a type beside one that is not known": lambda m: m.later(m.Later.of(TWO), 3, 3),
    "the argument of a generator, before a value is asked for": lambda m: m.each(WHOLE) and [],
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_hold_is_refused(module: ModuleType, what: str) -> None:
    with pytest.raises(BeartypeCallHintViolation):
        list(REFUSED[what](module))


def test_what_holds_is_left_alone(module: ModuleType) -> None:
    later = module.Later.of(TWO)
    assert module.later(later, object(), "text") is later
    assert module.add(TWO, TWO).tolist() == module.add(a=TWO, b=TWO).tolist() == [0, 0]
    assert module.add(THREE, THREE).tolist() == [0, 0, 0]
    assert module.both(counts=WHOLE) == 2
    assert module.both(rows=[TWO, TWO], counts=WHOLE) == 4
    assert list(module.each(THREE)) == [0, 0, 0]
    assert list(module.sizes(THREE)) == [1, 1, 1]
    assert (module.plain(1, 2), module.plain("a", "b")) == (3, "ab")
    assert module.unchecked(3) == 3


def test_functions_of_the_same_code_are_checked_each(module: ModuleType) -> None:
    """With what is around each, by the types that each has."""
    zeros, ones = module.inner(TWO), module.inner(TWO + 1)
    assert (zeros(TWO).tolist(), ones(TWO + 1).tolist(), zeros(TWO).tolist()) == ([0, 0], [2, 2], [0, 0])
    for add in (zeros, ones):
        with pytest.raises(BeartypeCallHintViolation):
            add(WHOLE)
    whole, text = module.typed(int), module.typed(str)
    assert (whole(whole.local(3)), text(text.local("a"))) == (3, "a")
    for same, other in ((whole, text), (text, whole), (module.typed(int), whole)):
        with pytest.raises(BeartypeCallHintViolation):
            same(other.local())


def test_the_package_itself_is_checked() -> None:
    from heedful.analysis.erasure import erase

    with pytest.raises(BeartypeCallHintViolation):
        erase("no trace", 0, [])  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=r"heedful\S* was imported before it could be checked"):
        check("heedful")
