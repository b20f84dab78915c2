"""Which column of a table names the splits, and what its values mean."""

import csv
import io
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from heedful.config import write_split_values
from heedful.errors import DataError
from heedful.text.columns import checked_column, listed, name_of, usual_columns

SPLIT_COLUMNS = ("split", "fold", "partition", "subset", "set")

SPLIT_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("train", "training", "trn"), "train"),
    **dict.fromkeys(("dev", "val", "valid", "validation", "development"), "dev"),
    **dict.fromkeys(("test", "testing", "tst", "eval", "evaluation"), "test"),
}

NONE = "none"
"""The split column of those who want none to be used; a column that is really called so is meant first."""

SKIP = "skip"
"""What a value means whose rows are left out."""

MOST_VALUES, MOST_LETTERS = 5, 20
"""So many values of so many letters are shown as they would be typed."""

SplitValues = str | Mapping[Any, str] | None
"""What the values of a split column mean: {"validate": "dev"}, or "dev=validate" as on the command line."""

_ANEW = "--split-column none (in Python split_column='none') draws all splits anew."


@dataclass(frozen=True, kw_only=True)
class SplitColumn:
    """The column that names the splits, and what its values mean."""

    name: str
    meanings: Mapping[str, str]
    told: Mapping[str, str]
    """The meanings that were given, by the values as they were written."""
    asked_for: bool = False
    """Whether it was named, not recognised."""

    def read(self, table: pd.DataFrame) -> "pd.Series[Any]":
        """What each row is: train, dev, test or skip; None where its value is not known."""
        return _written(table[self.name]).map(lambda value: self.meanings.get(_plain(value))).astype(object)

    def check(self, table: pd.DataFrame, meant: "pd.Series[Any]") -> None:
        """Refuse rows whose split is not known, and a table without training rows, and say the ways out."""
        trained = "train" in set(meant)
        if meant.isna().any():
            strange = table.loc[meant.isna(), self.name]
            count, held = f"{len(strange):,} row{'s' if len(strange) > 1 else ''}", _distinct(strange)
            raise DataError(
                f"Column '{self.name}' holds {listed(held)} in {count}, where the name of a split was expected: "
                f"{', '.join(SPLIT_NAMES)}. {self._way_out(held, trained)} Or {_ANEW}"
            )
        if not trained:
            held_all = listed(_distinct(table[self.name]))
            raise DataError(
                f"Column '{self.name}' names no training rows, only {held_all}. {_which(self.told)} Or {_ANEW}"
            )

    def _way_out(self, held: list[str], trained: bool) -> str:
        """How to say what a few values mean, with all that was given, as it is typed.

        Values that nobody would type are left to the reader.
        """
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

    None where all splits are to be drawn. Columns that are `taken` for text or label are not recognised.
    """
    told = parse_split_values(values)
    meanings = {**SPLIT_NAMES, **told}
    if given is None:
        name, notices = _recognised(table, meanings, taken, told=_as_given(values))
    else:
        name, notices = _asked_for(table, given), []
    if name is not None:
        _refuse_absent(table, name, told)
        found = SplitColumn(name=name, meanings=meanings, told=_as_given(values), asked_for=given is not None)
        return found, notices
    if told:
        raise DataError(
            "The values of a split column are told, but no column is used as one. Name it (--split-column, in Python "
            f"split_column), or call it one of {', '.join(SPLIT_COLUMNS)} and say which value is train."
        )
    return None, notices


def parse_split_values(given: SplitValues) -> dict[str, str]:
    """Value by value, in small letters, the split that it means, or skip."""
    found: dict[str, str] = {}
    for split, value in _pairs(given) if given is not None else ():
        meaning = {**SPLIT_NAMES, SKIP: SKIP}.get(_plain(split))
        if meaning is None:
            raise DataError(
                f"A value of the split column means train, dev, test or skip; '{value}' cannot mean '{split}'. "
                "Write --split-values dev=validate, in Python split_values={'validate': 'dev'}."
            )
        if found.setdefault(_plain(value), meaning) != meaning:
            raise DataError(
                f"The value '{value}' of the split column cannot mean both {found[_plain(value)]} and {split}."
            )
    return found


def _pairs(given: str | Mapping[Any, str]) -> Iterator[tuple[str, str]]:
    """Split and value. Text is CSV, so that what holds a comma can stand in double quotes."""
    if isinstance(given, Mapping):
        yield from ((str(split), name_of(value)) for value, split in given.items())
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


def _as_given(values: SplitValues) -> dict[str, str]:
    """Value by value, as they were written, what it was said to mean."""
    return {value.strip(): split.strip() for split, value in _pairs(values)} if values is not None else {}


def _asked_for(table: pd.DataFrame, given: str) -> str | None:
    if given not in table.columns:
        if given.strip().lower() == NONE:
            return None
        if not given.strip():
            raise DataError(
                "The name of the split column is empty. Name a column, give none to draw all splits anew, or leave the "
                "option away to have a column recognised."
            )
    return checked_column(table, given)


def _recognised(
    table: pd.DataFrame, meanings: Mapping[str, str], taken: Collection[str], *, told: Mapping[str, str]
) -> tuple[str | None, list[str]]:
    """A column that is called like a split and names training rows; and what must be said of others.

    Where values are told, the only column with such a name is meant, whatever it holds.
    """
    called = [column for column in dict.fromkeys(usual_columns(table, SPLIT_COLUMNS)) if column not in taken]
    held = {column: _distinct(table[checked_column(table, column)]) for column in called}
    naming = [column for column in called if "train" in {meanings.get(_plain(value)) for value in held[column]}]
    if told and len(called) == 1:
        return called[0], []
    if not naming:
        return None, [_unused(column, held[column], told) for column in called]
    found, *others = naming
    return found, [_choice(found, others)] if others else []


def _unused(column: str, held: list[str], told: Mapping[str, str]) -> str:
    return f"Column '{column}' is not used: it names no training rows, only {listed(held)}. {_which(told)}"


def _which(told: Mapping[str, str]) -> str:
    """How to say what values mean that are too many, or too long, to be written here."""
    given = f"{shlex.quote(write_split_values(told))}," if told else ""
    in_python = {**told, "VALUE": "train"}
    return (
        f"Say what they are with --split-values {given}train=VALUE,dev=VALUE,test=VALUE (skip=VALUE leaves rows out), "
        f"in Python split_values={in_python}."
    )


def _choice(found: str, others: list[str]) -> str:
    return (
        f"The splits are read from column '{found}'; {listed(others)} could name them too. "
        "Choose with --split-column, in Python split_column."
    )


def _refuse_absent(table: pd.DataFrame, column: str, told: Mapping[str, str]) -> None:
    """A value that is told and does not occur is a slip of the pen."""
    if not told:
        return
    held = _distinct(table[column])
    absent = sorted(set(told) - {_plain(value) for value in held})
    if absent:
        raise DataError(
            f"Split values are told that column '{column}' does not hold: {listed(absent)}. It holds {listed(held)}."
        )


def _written(values: "pd.Series[Any]") -> "pd.Series[Any]":
    """Values as people write them; a missing one is empty."""
    return values.astype(object).where(values.notna(), "").map(name_of).astype(object)


def _distinct(values: "pd.Series[Any]") -> list[str]:
    return sorted(set(_written(values)))


def _plain(value: str) -> str:
    return value.strip().lower()
