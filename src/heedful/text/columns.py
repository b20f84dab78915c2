"""Which columns of a table hold the text, the label and the split: those asked for, or those with a usual name."""

import csv
import io
import shlex
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heedful.config import write_split_values
from heedful.errors import DataError
from heedful.notebook import counted
from heedful.text.tables import writable

NESTED = (list, tuple, dict, set, np.ndarray)
"""What holds several values, and so no label."""

USUAL = {
    "text": ("text", "review", "sentence", "content", "body", "document", "comment", "tweet", "message", "question"),
    "label": ("label", "labels", "class", "category", "sentiment", "stars", "rating", "target", "polarity", "topic"),
    "split": ("split", "fold", "partition", "subset", "set"),
}
"""What columns are usually called, the most usual first."""

SPLIT_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("train", "training", "trn"), "train"),
    **dict.fromkeys(("dev", "val", "valid", "validation", "development"), "dev"),
    **dict.fromkeys(("test", "testing", "tst", "eval", "evaluation"), "test"),
}

NONE = "none"  # the split column of those who want none to be used; a column that is really called so is meant first
SKIP = "skip"  # what a value means whose rows are left out
MOST_VALUES, MOST_LETTERS = 5, 20  # so many values of so many letters are shown as they would be typed

Objects = NDArray[np.object_]

SplitValues = str | Mapping[Any, str] | None
"""What the values of a split column mean: {"validate": "dev"}, or "dev=validate" as on the command line."""

_ANEW = "--split-column none (in Python split_column='none') draws all splits anew."


@dataclass(frozen=True, kw_only=True)
class Coded:
    """A column: its different values, in the order in which they come, and which of them each row has."""

    values: Sequence[object]
    codes: NDArray[np.int32]

    @cached_property
    def names(self) -> list[str]:
        """The values as people write them; a missing one is empty."""
        return ["" if is_missing(value) else name_of(value) for value in self.values]

    def distinct(self, rows: NDArray[np.bool_] | None = None) -> list[str]:
        """The different names in these rows, or in all."""
        used = range(len(self.values)) if rows is None else np.unique(self.codes[rows]).tolist()
        return sorted({self.names[code] for code in used})

    def where(self, holds: Callable[[object], bool]) -> NDArray[np.bool_]:
        """The rows whose value is such."""
        chosen: NDArray[np.bool_] = np.array([*map(holds, self.values)], dtype=bool)[self.codes]
        return chosen


class Coding:
    """A column that is being read, batch by batch."""

    def __init__(self) -> None:
        self._known: dict[object, int] = {}
        self._values: list[object] = []
        self._codes: list[NDArray[np.int32]] = []

    def add(self, values: Sequence[object]) -> None:
        self._codes.append(np.fromiter(map(self._code, values), np.int32, len(values)))

    def coded(self) -> Coded:
        return Coded(values=self._values, codes=np.concatenate([*self._codes, np.empty(0, np.int32)]))

    def _code(self, value: object) -> int:
        key = (type(value), value)  # 1 and True are two values
        try:
            found = self._known.get(key)
        except TypeError:
            found = self._known.get(key := (type(value), str(value)))
        if found is not None:
            return found
        if is_missing(value):  # numbers that are none differ from each other
            key = (type(None), None)
        if key not in self._known:
            self._known[key] = len(self._values)
            self._values.append(value)
        return self._known[key]


def is_missing(value: object) -> bool:
    return not isinstance(value, NESTED) and bool(pd.isna(value))  # type: ignore[call-overload]


def choose_column(columns: Sequence[str], given: str | None, what: str, *, taken: str | None) -> tuple[str, list[str]]:
    """The column asked for, or the first of the usual names; and what must be said where others have such a name. A
    column that is `taken` for something else is not recognised."""
    if given is not None:
        return _checked(columns, given), []
    if not (usual := _usual(columns, what, {taken})):
        raise DataError(
            f"No column looks like the {what}. Name it (--{what}-column, in Python {what}_column), or call it one of "
            f"{', '.join(USUAL[what])}. Columns: {_shortened(columns)}."
        )
    return _checked(columns, usual[0]), _choice(f"The {what} is", usual, "hold it", what)


def _usual(columns: Sequence[str], what: str, taken: Collection[str | None]) -> list[str]:
    """The columns with usual names, the most usual first; case and white space around a name do not matter."""
    places = {name: place for place, name in enumerate(USUAL[what])}
    usual = [column for column in dict.fromkeys(columns) if _plain(column) in places and column not in taken]
    return sorted(usual, key=lambda column: places[_plain(column)])


def _checked(columns: Sequence[str], name: str) -> str:
    """The name of a column that is there once."""
    if name not in columns:
        raise DataError(f"There is no column '{name}'. Columns: {_shortened(columns)}.")
    if (count := list(columns).count(name)) > 1:
        raise DataError(f"There are {count} columns '{name}'. Rename all but the one that is meant.")
    return name


def _choice(whose: str, columns: Sequence[str], could: str, what: str) -> list[str]:
    """That the first of the columns is taken, where there are others."""
    first, *others = columns
    said = f"{whose} read from column '{first}'; {listed(others)} could {could} too. "
    return [f"{said}Choose with --{what}-column, in Python {what}_column."] if others else []


@dataclass(frozen=True, kw_only=True)
class SplitColumn:
    """The column that names the splits, and what its values mean."""

    name: str
    told: Mapping[str, str]  # the meanings that were given, by the values as they were written
    asked_for: bool = False  # whether it was named, not recognised

    def read(self, held: Coded) -> Objects:
        """What each row is: train, dev, test or skip; None where its value is not known."""
        meanings = _meanings(self.told)
        meant: Objects = np.array([meanings.get(_plain(name)) for name in held.names], dtype=object)[held.codes]
        return meant

    def read_checked(self, held: Coded, rows: NDArray[np.bool_]) -> Objects:
        """What each of these rows is; an unknown split, and none for training, are refused with the ways out."""
        meant = self.read(held)
        strange, trained = rows & pd.isna(meant), bool((rows & (meant == "train")).any())
        if strange.any():
            names = held.distinct(strange)
            raise DataError(
                f"Column '{self.name}' holds {listed(names)} in {counted(int(strange.sum()), 'row')}, where the name "
                f"of a split was expected: {', '.join(SPLIT_NAMES)}. {self._way_out(names, trained)} Or {_ANEW}"
            )
        if not trained:
            only = f"only {listed(held.distinct(rows))}"
            raise DataError(f"Column '{self.name}' names no training rows, {only}. {_which(self.told)} Or {_ANEW}")
        return meant[rows]

    def _way_out(self, held: list[str], trained: bool) -> str:
        """How to say what a few values mean, as it is typed; values that nobody would type are left to the reader."""
        short = [value for value in held if len(value) <= MOST_LETTERS and value.isprintable()]
        if short != held or len(held) > (MOST_VALUES if trained else 1):
            return _which(self.told)
        told = {**self.told, **dict.fromkeys(held, SKIP if trained else "train")}
        others = "train, dev or test in place of skip" if trained else "dev, test or skip in place of train"
        column = f"--split-column {shlex.quote(self.name)} " if self.asked_for else ""
        in_python = f"split_column={self.name!r}, " if self.asked_for else ""
        option = f"{column}--split-values {shlex.quote(write_split_values(told))}"
        return f"Say what that is with {option} (or {others}), in Python {in_python}split_values={told}."


def perhaps_splits(columns: Sequence[str], given: str | None, *, taken: Collection[str]) -> list[str]:
    """The columns that may name the splits: the one asked for, or those that are called like a split."""
    if given is None:
        return [_checked(columns, name) for name in _usual(columns, "split", taken)]
    return [name] if (name := _asked_for(columns, given)) else []


def choose_split_column(
    columns: Mapping[str, Coded], given: str | None, values: SplitValues
) -> tuple[SplitColumn | None, list[str]]:
    """Of those that may name the splits the column asked for, or one that names training rows; and what must be said
    of it. None where all splits are to be drawn."""
    parsed = parse_split_values(values)
    told = {value.strip(): split.strip() for split, value in _pairs(values)}
    name, notices = _recognised(columns, told) if given is None else (next(iter(columns), None), [])
    if name is None and told:
        raise DataError(
            "The values of a split column are told, but no column is used as one. Name it (--split-column, in Python "
            f"split_column), or call it one of {', '.join(USUAL['split'])} and say which value is train."
        )
    if name is None:
        return None, notices
    held = columns[name].distinct() if told else []
    if absent := sorted(set(parsed) - set(map(_plain, held))):  # a slip of the pen
        them = f"{listed(absent)}. It holds {listed(held)}."
        raise DataError(f"Split values are told that column '{name}' does not hold: {them}")
    return SplitColumn(name=name, told=told, asked_for=given is not None), notices


def parse_split_values(given: SplitValues) -> dict[str, str]:
    """Value by value, in small letters, the split that it means, or skip."""
    parsed: dict[str, str] = {}
    for split, value in _pairs(given):
        if (meaning := {**SPLIT_NAMES, SKIP: SKIP}.get(_plain(split))) is None:
            raise DataError(
                f"A value of the split column means train, dev, test or skip; '{value}' cannot mean '{split}'. "
                "Write --split-values dev=validate, in Python split_values={'validate': 'dev'}."
            )
        if (known := parsed.setdefault(_plain(value), meaning)) != meaning:
            raise DataError(f"The value '{value}' of the split column cannot mean both {known} and {split}.")
    return parsed


def _pairs(given: SplitValues) -> Iterator[tuple[str, str]]:
    """Split and value. Text is CSV, so that what holds a comma can stand in double quotes."""
    if not isinstance(given, str):
        yield from ((str(split), name_of(value)) for value, split in (given or {}).items())
        return
    lines = csv.reader(io.StringIO(given, newline=""), skipinitialspace=True)
    for part in [part for line in lines for part in line] or [""]:
        split, equals, value = part.partition("=")
        if not equals:
            raise DataError(
                "The values of the split column are told as split=value, such as dev=validate,test=held-out or "
                f"skip=unused; got '{part}'."
            )
        yield split, value


def _meanings(told: Mapping[str, str]) -> dict[str, str]:
    return {**SPLIT_NAMES, **parse_split_values(told)}


def _asked_for(columns: Sequence[str], given: str) -> str | None:
    if given not in columns:
        if given.strip().lower() == NONE:
            return None
        if not given.strip():
            raise DataError(
                "The name of the split column is empty. Name a column, give none to draw all splits anew, or leave the "
                "option away to have a column recognised."
            )
    return _checked(columns, given)


def _recognised(columns: Mapping[str, Coded], told: Mapping[str, str]) -> tuple[str | None, list[str]]:
    """A column that is called like a split and names training rows; and what must be said of others. Where values are
    told, the only column with such a name is meant, whatever it holds."""
    meanings = _meanings(told)
    held = {column: coded.distinct() for column, coded in columns.items()}
    naming = [column for column in held if "train" in {meanings.get(_plain(value)) for value in held[column]}]
    if told and len(held) == 1:
        return next(iter(held)), []
    if naming:
        return naming[0], _choice("The splits are", naming, "name them", "split")
    unused = "Column '{}' is not used: it names no training rows, only {}. {}"
    return None, [unused.format(column, listed(held[column]), _which(told)) for column in held]


def _which(told: Mapping[str, str]) -> str:
    """How to say what values mean that are too many, or too long, to be written here."""
    given = f"{shlex.quote(write_split_values(told))}," if told else ""
    option = f"--split-values {given}train=VALUE,dev=VALUE,test=VALUE (skip=VALUE leaves rows out)"
    in_python = {**told, "VALUE": "train"}
    return f"Say what they are with {option}, in Python split_values={in_python}."


def name_of(value: object) -> str:
    """A label, or the name of a split, as people write it: 4.0 is 4."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(writable(value)).strip()


def _plain(value: str) -> str:
    return value.strip().lower()


def listed(values: Iterable[str], most: int = 5) -> str:
    """Values in quotes, each on one line and cut where it is long: 'a', 'b' and 3 others."""
    names = [f"'{textwrap.shorten(value, 40, placeholder='…')}'" for value in values]
    if len(names) > most + 1:
        names = [*names[:most], f"{len(names) - most:,} others"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _shortened(columns: Iterable[str]) -> str:
    """The names in one line: a file without a header line has whole texts for names."""
    return textwrap.shorten(", ".join(columns), 200, placeholder=" …")
