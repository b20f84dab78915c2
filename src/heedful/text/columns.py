"""Which columns of a table hold the text and the label: those asked for, or those with a usual name."""

import textwrap
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from heedful.errors import DataError
from heedful.text.readers import writable

TEXT_COLUMNS = ("text", "review", "sentence", "content", "body", "document", "comment", "tweet", "message", "question")
LABEL_COLUMNS = ("label", "labels", "class", "category", "sentiment", "stars", "rating", "target", "polarity", "topic")


def choose_column(
    table: pd.DataFrame, given: str | None, known: Sequence[str], what: str, *, taken: str | None = None
) -> tuple[str, list[str]]:
    """The column asked for, or the first of the usual names; and what must be said where others have such a name.

    A column that is `taken` for something else is not recognised.
    """
    if given is not None:
        return checked_column(table, given), []
    usual = [column for column in usual_columns(table, known) if column != taken]
    if not usual:
        raise DataError(
            f"No column looks like the {what}. Name it (--{what}-column, in Python {what}_column), or call it one of "
            f"{', '.join(known)}. Columns: {shortened(table.columns)}."
        )
    found, *others = dict.fromkeys(usual)
    return checked_column(table, found), _choice(found, others, what) if others else []


def usual_columns(table: pd.DataFrame, known: Sequence[str]) -> list[str]:
    """The columns with usual names, the most usual first; case and white space around a name do not matter."""
    places = {name: place for place, name in enumerate(known)}
    usual = [column for column in table.columns if column.strip().lower() in places]
    return sorted(usual, key=lambda column: places[column.strip().lower()])


def checked_column(table: pd.DataFrame, name: str) -> str:
    """The name of a column that is there once."""
    columns = list(table.columns)
    if name not in columns:
        raise DataError(f"There is no column '{name}'. Columns: {shortened(columns)}.")
    if columns.count(name) > 1:
        raise DataError(f"There are {columns.count(name)} columns '{name}'. Rename all but the one that is meant.")
    return name


def _choice(found: str, others: Sequence[str], what: str) -> list[str]:
    return [
        f"The {what} is read from column '{found}'; {listed(others)} could hold it too. "
        f"Choose with --{what}-column, in Python {what}_column."
    ]


def name_of(value: object) -> str:
    """A label, or the name of a split, as people write it: 4.0 is 4."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(writable(value)).strip()


def listed(values: Iterable[str], most: int = 5) -> str:
    """Values in quotes, each on one line and cut where it is long: 'a', 'b' and 3 others."""
    names = [f"'{textwrap.shorten(value, 40, placeholder='…')}'" for value in values]
    if len(names) > most + 1:
        names = [*names[:most], f"{len(names) - most:,} others"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def shortened(columns: Iterable[str]) -> str:
    """The names in one line: a file without a header line has whole texts for names."""
    return textwrap.shorten(", ".join(columns), 200, placeholder=" …")
