"""Which columns of a table hold the text, the label and the split: those asked for, or those with a usual name."""

import csv
import io
import shlex
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heedful.config import write_split_values
from heedful.errors import DataError
from heedful.notebook import counted
from heedful.text.tables import writable

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

SplitValues = str | Mapping[Any, str] | None
"""What the values of a split column mean: {"validate": "dev"}, or "dev=validate" as on the command line."""

_ANEW = "--split-column none (in Python split_column='none') draws all splits anew."


def choose_column(table: pd.DataFrame, given: str | None, what: str, *, taken: str | None) -> tuple[str, list[str]]:
    """The column asked for, or the first of the usual names; and what must be said where others have such a name. A
    column that is `taken` for something else is not recognised."""
    if given is not None:
        return _checked(table, given), []
    if not (usual := _usual(table, what, {taken})):
        raise DataError(
            f"No column looks like the {what}. Name it (--{what}-column, in Python {what}_column), or call it one of "
            f"{', '.join(USUAL[what])}. Columns: {_shortened(table.columns)}."
        )
    return _checked(table, usual[0]), _choice(f"The {what} is", usual, "hold it", what)


def _usual(table: pd.DataFrame, what: str, taken: Collection[str | None]) -> list[str]:
    """The columns with usual names, the most usual first; case and white space around a name do not matter."""
    places = {name: place for place, name in enumerate(USUAL[what])}
    usual = [column for column in dict.fromkeys(table.columns) if _plain(column) in places and column not in taken]
    return sorted(usual, key=lambda column: places[_plain(column)])


def _checked(table: pd.DataFrame, name: str) -> str:
    """The name of a column that is there once."""
    columns = list(table.columns)
    if name not in columns:
        raise DataError(f"There is no column '{name}'. Columns: {_shortened(columns)}.")
    if columns.count(name) > 1:
        raise DataError(f"There are {columns.count(name)} columns '{name}'. Rename all but the one that is meant.")
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

    def read(self, table: pd.DataFrame) -> "pd.Series[Any]":
        """What each row is: train, dev, test or skip; None where its value is not known."""
        meanings = _meanings(self.told)
        return _written(table[self.name]).map(lambda value: meanings.get(_plain(value))).astype(object)

    def skipped(self, table: pd.DataFrame) -> "pd.Series[bool]":
        return self.read(table) == SKIP

    def read_checked(self, table: pd.DataFrame) -> list[str]:
        """What each row is; rows of an unknown split, and none for training, are refused with the ways out."""
        meant = self.read(table)
        trained = "train" in set(meant)
        if meant.isna().any():
            strange = table.loc[meant.isna(), self.name]
            held = distinct(strange)
            raise DataError(
                f"Column '{self.name}' holds {listed(held)} in {counted(len(strange), 'row')}, where the name of a "
                f"split was expected: {', '.join(SPLIT_NAMES)}. {self._way_out(held, trained)} Or {_ANEW}"
            )
        if not trained:
            only = f"only {listed(distinct(table[self.name]))}"
            raise DataError(f"Column '{self.name}' names no training rows, {only}. {_which(self.told)} Or {_ANEW}")
        return meant.tolist()

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


def choose_split_column(
    table: pd.DataFrame, given: str | None, values: SplitValues, *, taken: Collection[str]
) -> tuple[SplitColumn | None, list[str]]:
    """The column asked for, or one that is called like a split and names training rows; and what must be said of it.
    None where all splits are to be drawn. Columns that are `taken` for text or label are not recognised."""
    parsed = parse_split_values(values)
    told = {value.strip(): split.strip() for split, value in _pairs(values)}
    name, notices = _recognised(table, told, taken) if given is None else (_asked_for(table, given), [])
    if name is None and told:
        raise DataError(
            "The values of a split column are told, but no column is used as one. Name it (--split-column, in Python "
            f"split_column), or call it one of {', '.join(USUAL['split'])} and say which value is train."
        )
    if name is None:
        return None, notices
    held = distinct(table[name]) if told else []
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


def _asked_for(table: pd.DataFrame, given: str) -> str | None:
    if given not in table.columns:
        if given.strip().lower() == NONE:
            return None
        if not given.strip():
            raise DataError(
                "The name of the split column is empty. Name a column, give none to draw all splits anew, or leave the "
                "option away to have a column recognised."
            )
    return _checked(table, given)


def _recognised(table: pd.DataFrame, told: Mapping[str, str], taken: Collection[str]) -> tuple[str | None, list[str]]:
    """A column that is called like a split and names training rows; and what must be said of others. Where values are
    told, the only column with such a name is meant, whatever it holds."""
    called, meanings = _usual(table, "split", taken), _meanings(told)
    held = {column: distinct(table[_checked(table, column)]) for column in called}
    naming = [column for column in called if "train" in {meanings.get(_plain(value)) for value in held[column]}]
    if told and len(called) == 1:
        return called[0], []
    if naming:
        return naming[0], _choice("The splits are", naming, "name them", "split")
    unused = "Column '{}' is not used: it names no training rows, only {}. {}"
    return None, [unused.format(column, listed(held[column]), _which(told)) for column in called]


def _which(told: Mapping[str, str]) -> str:
    """How to say what values mean that are too many, or too long, to be written here."""
    given = f"{shlex.quote(write_split_values(told))}," if told else ""
    option = f"--split-values {given}train=VALUE,dev=VALUE,test=VALUE (skip=VALUE leaves rows out)"
    in_python = {**told, "VALUE": "train"}
    return f"Say what they are with {option}, in Python split_values={in_python}."


def _written(values: "pd.Series[Any]") -> "pd.Series[Any]":
    """Values as people write them; a missing one is empty."""
    return values.astype(object).where(values.notna(), "").map(name_of).astype(object)


def distinct(values: "pd.Series[Any]") -> list[str]:
    return sorted(set(_written(values)))


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
