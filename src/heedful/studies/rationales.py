"""What people marked in texts: a column beside the texts of a file, as marks on the units of a reading.

ERASER's form (DeYoung et al. 2020) is a list of spans [start, end) over the words between white space; a planted corpus
may name the words that truly matter instead, wherever they stand in the text.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool
from torch import Tensor

from heedful.errors import DataError
from heedful.files import is_file
from heedful.notebook import short
from heedful.subjects import Units
from heedful.text.columns import choose_column
from heedful.text.tables import read_table, writable

RATIONALES, IMPORTANT = "rationales", "important"
"""What the column is called in which people say what they went by, and in which it stands what truly matters."""

IDS = ("annotation_id", "docid", "id")
"""What the column is called that says what a text is called, ERASER's own name first."""

WORD = re.compile(r"\S+")

Marked = Mapping[str, Any]
"""By its text what was marked in it."""


def read_marked(
    path: Path | str, column: str = RATIONALES, *, text_column: str | None = None, encoding: str = "utf-8"
) -> Marked | None:
    """What the column says of each text of a file; None where there is no such column, or it is no file."""
    pairs = _beside_texts(path, (column,), text_column, encoding)
    return None if pairs is None else dict(pairs)


def texts_by_id(path: Path | str, *, text_column: str | None = None, encoding: str = "utf-8") -> dict[str, str] | None:
    """The texts of a file by what they are called; None where no column of it calls them anything, or it is no file."""
    pairs = _beside_texts(path, IDS, text_column, encoding)
    if pairs is None:
        return None
    found: dict[str, str] = {}
    for text, said in pairs:
        if found.setdefault(str(said), text) != text:
            raise DataError(f"Two texts of '{Path(path).name}' have the same id '{short(str(said))}'.")
    return found


def _beside_texts(
    path: Path | str, columns: Sequence[str], text_column: str | None, encoding: str
) -> list[tuple[str, Any]] | None:
    """Every text of a file with what the first of the columns says that is there."""
    place = Path(path)
    if not is_file(place):
        return None
    table = read_table(place, encoding=encoding)
    column = next((name for name in columns if name in table), None)
    if column is None:
        return None
    texts, _ = choose_column(list(table.columns), text_column, "text", taken=column)
    return [(str(writable(text)), said) for text, said in zip(table[texts], table[column], strict=True)]


def marks_of(marked: Marked, units: Units) -> Bool[Tensor, " units"]:
    """Which units of a reading overlap what was marked; of a text that is not there none."""
    assert units.texts is not None
    assert units.spans is not None
    found = torch.zeros(len(units.segments), dtype=torch.bool)
    for row, text in enumerate(units.texts):
        place = slice(int(units.offsets[row]), int(units.offsets[row + 1]))
        own = units.spans[place]
        for start, end in spans_of(marked.get(text), text):
            found[place] |= (own[:, 0] < end) & (own[:, 1] > start)
    return found


def spans_of(said: Any, text: str) -> Iterator[tuple[int, int]]:
    """From which character up to which each mark reaches.

    >>> from heedful.studies.rationales import spans_of
    >>> list(spans_of([[1, 3]], "a good film")), list(spans_of(["good"], "a good film"))
    ([(2, 11)], [(2, 6)])
    """
    for one in _entries(said, text):
        if isinstance(one, str):
            yield from (match.span() for match in re.finditer(rf"(?<!\w){re.escape(one)}(?!\w)", text))
        elif span := _characters(one, text):
            yield span


def _entries(said: Any, text: str) -> Sequence[Any]:
    """A list, also as JSON, or as words between white space; nothing where nothing was marked."""
    if said is None or (isinstance(said, float) and pd.isna(said)):
        return []
    if isinstance(said, str):
        try:
            said = json.loads(said)
        except ValueError:
            return str(said).split()
    if isinstance(said, (list, tuple, np.ndarray)):
        return list(said)
    raise DataError(f"Marks must be a list of spans [start, end) or of words; got {said!r} for '{text[:30]}'.")


def _characters(span: Any, text: str) -> tuple[int, int] | None:
    """A span of words between white space, in characters; None of an empty one, as ERASER's films have."""
    words = [match.span() for match in WORD.finditer(text)]
    try:
        start, end = (int(place) for place in span)
    except (TypeError, ValueError) as error:
        raise DataError(f"A marked span must be [start, end), two numbers of words; got {span!r}.") from error
    if not 0 <= start <= end <= len(words):
        raise DataError(
            f"A marked span must lie within the {len(words)} words of its text, the end not counted; got "
            f"[{start}, {end}) for '{text[:30]}'."
        )
    return (words[start][0], words[end - 1][1]) if start < end else None
