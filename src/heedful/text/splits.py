"""From a table to the three splits: rows that cannot be used, classes, splits read or made."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heedful.errors import DataError
from heedful.text.corpus import SPLITS, Labelled
from heedful.text.readers import LABEL_COLUMNS, SPLIT_COLUMNS, TEXT_COLUMNS, find_column

SPLIT_NAMES = {
    **dict.fromkeys(("train", "training", "trn"), "train"),
    **dict.fromkeys(("dev", "val", "valid", "validation", "development"), "dev"),
    **dict.fromkeys(("test", "testing", "tst", "eval", "evaluation"), "test"),
}

HELD_OUT_SHARE = 0.1
FEWEST_ROWS = 10


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """Usable rows of a table: texts, class numbers, class names, and what must be said of the rest."""

    texts: list[str]
    labels: list[int]
    class_names: list[str]
    splits: list[str] | None
    notices: list[str]


def label_rows(
    table: pd.DataFrame, *, text_column: str | None, label_column: str | None, split_column: str | None
) -> Labelling:
    """Find the columns, leave out rows that hold no text or no label, number the classes."""
    texts_in = find_column(table, text_column, TEXT_COLUMNS, "text")
    labels_in = find_column(table, label_column, LABEL_COLUMNS, "label")
    splits_in = split_column or _recognised_split(table)
    kept, notices = _usable(table, texts_in, labels_in)
    names = [_label_name(value) for value in kept[labels_in]]
    class_names = _ordered(set(names))
    number = {name: place for place, name in enumerate(class_names)}
    return Labelling(
        texts=[str(text) for text in kept[texts_in]],
        labels=[number[name] for name in names],
        class_names=class_names,
        splits=[str(value) for value in kept[splits_in]] if splits_in else None,
        notices=notices,
    )


def _recognised_split(table: pd.DataFrame) -> str | None:
    """A column that is called like a split and holds names of splits."""
    for column in table.columns:
        if str(column).strip().lower() in SPLIT_COLUMNS:
            values = {str(value).strip().lower() for value in table[column].dropna().unique()}
            if "train" in {SPLIT_NAMES.get(value) for value in values}:
                return str(column)
    return None


def _usable(table: pd.DataFrame, text: str, label: str) -> tuple[pd.DataFrame, list[str]]:
    texts = table[text]
    nul = texts.map(lambda value: isinstance(value, str) and "\0" in value).astype(bool)
    empty = texts.map(lambda value: not isinstance(value, str) or not value.strip()).astype(bool)
    unlabelled = table[label].map(_is_missing).astype(bool)
    reasons = {
        f"column '{text}' is empty": empty,
        f"column '{text}' holds NUL bytes": nul & ~empty,
        f"column '{label}' is missing": unlabelled & ~empty & ~nul,
    }
    notices = [f"{int(rows.sum())} rows left out: {why}." for why, rows in reasons.items() if rows.any()]
    kept = table[~(empty | nul | unlabelled)]
    if kept.empty:
        raise DataError("No row has both a text and a label. " + " ".join(notices))
    return kept, notices


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or not str(value).strip()


def _label_name(value: object) -> str:
    """A label as people write it: 4.0 is 4."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _ordered(names: set[str]) -> list[str]:
    """By number where all are numbers, else alphabetically: 2 before 10, negative before positive."""
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def divide(labelling: Labelling, *, seed: int) -> tuple[dict[str, Labelled], list[str]]:
    """The three splits: those the table names, and the missing ones drawn from the training rows."""
    if len(labelling.texts) < FEWEST_ROWS:
        raise DataError(f"At least {FEWEST_ROWS} labelled texts are needed, there are {len(labelling.texts)}.")
    assigned = _read_splits(labelling.splits) if labelling.splits else np.full(len(labelling.texts), "train")
    notices = []
    rng = np.random.default_rng(seed)
    for split in ("test", "dev"):
        if not (assigned == split).any():
            assigned = _hold_out(assigned, np.array(labelling.labels), split, rng)
            notices.append(
                f"The {split} split was drawn from the training rows (stratified, {HELD_OUT_SHARE:.0%}, seed {seed})."
            )
    return {split: _rows(labelling, np.flatnonzero(assigned == split)) for split in SPLITS}, notices


def _read_splits(values: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    named = [SPLIT_NAMES.get(value.strip().lower()) for value in values]
    strange = sorted({value for value, name in zip(values, named, strict=True) if name is None})
    if strange:
        raise DataError(f"The split column holds {', '.join(strange[:5])}; expected: {', '.join(SPLIT_NAMES)}.")
    if "train" not in named:
        raise DataError(f"The split column names no training rows, only {', '.join(sorted(set(values)))}.")
    return np.array(named, dtype=np.str_)


def _hold_out(
    assigned: np.ndarray[tuple[int], np.dtype[np.str_]],
    labels: np.ndarray[tuple[int], np.dtype[np.int64]],
    split: str,
    rng: np.random.Generator,
) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """Move a share of each class from train to another split; a class never loses its last training row."""
    drawn = assigned.copy()
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero((assigned == "train") & (labels == label)))
        drawn[rows[: min(round(len(rows) * HELD_OUT_SHARE), len(rows) - 1)]] = split
    if not (drawn == split).any():  # every class is too small for a share: the largest gives one row
        largest = np.argmax(np.bincount(labels[assigned == "train"]))
        drawn[rng.permutation(np.flatnonzero((assigned == "train") & (labels == largest)))[0]] = split
    return drawn


def _rows(labelling: Labelling, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Labelled:
    return [labelling.texts[row] for row in rows], [labelling.labels[row] for row in rows]
