"""From a table to the three splits: rows that cannot be used, classes, splits read or made."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.text.corpus import SPLITS, Labelled
from heedful.text.readers import LABEL_COLUMNS, SPLIT_COLUMNS, TEXT_COLUMNS, find_column, writable

SPLIT_NAMES = {
    **dict.fromkeys(("train", "training", "trn"), "train"),
    **dict.fromkeys(("dev", "val", "valid", "validation", "development"), "dev"),
    **dict.fromkeys(("test", "testing", "tst", "eval", "evaluation"), "test"),
}

HELD_OUT_SHARE = 0.1
FEWEST_ROWS = 10
MOST_CLASSES = 0.5
"""A label column with more different values than this share of the rows holds no classes."""


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
    table = table.set_axis([str(column) for column in table.columns], axis=1)
    texts_in = find_column(table, text_column, TEXT_COLUMNS, "text")
    labels_in = find_column(table, label_column, LABEL_COLUMNS, "label")
    splits_in, ignored = (split_column, []) if split_column else _recognised_split(table)
    if splits_in:
        find_column(table, splits_in, SPLIT_COLUMNS, "split")
    kept, notices = _usable(table, texts_in, labels_in)
    names = [_label_name(value) for value in kept[labels_in]]
    class_names = _ordered(set(names))
    if len(class_names) > MOST_CLASSES * len(names):
        raise DataError(
            f"Column '{labels_in}' holds {len(class_names):,} different values in {len(names):,} rows: texts or "
            "measurements, not classes. Name the column that holds the labels."
        )
    number = {name: place for place, name in enumerate(class_names)}
    return Labelling(
        texts=[str(writable(text)) for text in kept[texts_in]],
        labels=[number[name] for name in names],
        class_names=class_names,
        splits=[str(value) for value in kept[splits_in].astype(object).fillna("")] if splits_in else None,
        notices=[*ignored, *notices],
    )


def _recognised_split(table: pd.DataFrame) -> tuple[str | None, list[str]]:
    """A column that is called like a split and names training rows; and what must be said of one that does not."""
    ignored = []
    for column in table.columns:
        if column.strip().lower() in SPLIT_COLUMNS:
            names = {SPLIT_NAMES.get(str(value).strip().lower()) for value in table[column].dropna().unique()}
            if "train" in names:
                return column, []
            if names - {None}:
                ignored.append(f"Column '{column}' names no training rows and is not used.")
    return None, ignored


def _usable(table: pd.DataFrame, text: str, label: str) -> tuple[pd.DataFrame, list[str]]:
    texts = table[text]
    nul = texts.map(lambda value: isinstance(value, str) and "\0" in value).astype(bool)
    empty = texts.map(lambda value: not isinstance(value, str) or not value.strip()).astype(bool)
    unlabelled = table[label].isna() | table[label].map(lambda value: not str(value).strip()).astype(bool)
    reasons = {
        f"column '{text}' holds no text": empty,
        f"column '{text}' holds NUL bytes": nul & ~empty,
        f"column '{label}' holds no label": unlabelled & ~empty & ~nul,
    }
    counts = {why: int(rows.sum()) for why, rows in reasons.items() if rows.any()}
    notices = [f"{count:,} row{'s' if count > 1 else ''} left out: {why}." for why, count in counts.items()]
    kept = table[~(empty | nul | unlabelled)]
    if kept.empty:
        raise DataError("No row has both a text and a label. " + " ".join(notices))
    return kept, notices


def _label_name(value: object) -> str:
    """A label as people write it: 4.0 is 4."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(writable(value)).strip()


def _ordered(names: set[str]) -> list[str]:
    """By number where all are numbers, else alphabetically: 2 before 10, negative before positive."""
    try:
        return sorted(names, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(names)


def divide(labelling: Labelling, *, seed: int) -> tuple[dict[str, Labelled], list[str]]:
    """The three splits: those the table names, and the missing ones drawn from the training rows."""
    if len(labelling.texts) < FEWEST_ROWS:
        raise DataError(f"At least {FEWEST_ROWS} labelled texts are needed, there are {len(labelling.texts)}.")
    distinct = len(set(labelling.texts))
    if not labelling.splits and distinct < len(SPLITS):
        raise DataError(
            f"The {len(labelling.texts)} texts are copies of {distinct}; copies stay in one split, so that training, "
            f"dev and test need {len(SPLITS)} different ones at least."
        )
    texts = np.array(labelling.texts, dtype=object)
    assigned = _read_splits(labelling.splits) if labelling.splits else np.full(len(texts), "train", dtype=object)
    notices = []
    rng = np.random.default_rng(seed)
    for split in ("test", "dev"):
        if not (assigned == split).any():
            assigned = _hold_out(assigned, texts, np.array(labelling.labels), split, rng)
            notices.append(
                f"The {split} split was drawn from the training rows (stratified, {HELD_OUT_SHARE:.0%}, seed {seed})."
            )
        elif shared := int(pd.Index(texts[assigned == split]).isin(texts[assigned == "train"]).sum()):
            occur = "text also occurs" if shared == 1 else "texts also occur"
            notices.append(f"{shared:,} {split} {occur} in the training split.")
    return {split: _rows(labelling, np.flatnonzero(assigned == split)) for split in SPLITS}, notices


def _read_splits(values: Sequence[str]) -> NDArray[np.object_]:
    named = [SPLIT_NAMES.get(value.strip().lower()) for value in values]
    strange = sorted({value for value, name in zip(values, named, strict=True) if name is None})
    if strange:
        held = ", ".join(f"'{value}'" for value in strange[:5])
        raise DataError(f"The split column holds {held}; expected: {', '.join(SPLIT_NAMES)}.")
    if "train" not in named:
        raise DataError(f"The split column names no training rows, only {', '.join(sorted(set(values)))}.")
    return np.array(named, dtype=object)


def _hold_out(
    assigned: NDArray[np.object_],
    texts: NDArray[np.object_],
    labels: NDArray[np.int64],
    split: str,
    rng: np.random.Generator,
) -> NDArray[np.object_]:
    """Move a share of each class from train to another split.

    Copies of a text move together, a text with two labels stays, and so does the last training text of a class.
    """
    training = assigned == "train"
    owners = pd.Series(labels[training]).groupby(texts[training], sort=False).agg(["first", "nunique"])
    movable = owners.loc[owners["nunique"] == 1, "first"]
    chosen: list[str] = []
    for label in np.unique(labels):
        own = rng.permutation(movable.index[movable == label].to_numpy(copy=True))
        chosen += own[: min(round(len(own) * HELD_OUT_SHARE), max(0, len(own) - 1))].tolist()
    if not chosen and len(movable):  # every class is too small for a share: the largest gives one text
        largest = movable.value_counts().index[0]
        chosen = [rng.permutation(movable.index[movable == largest].to_numpy(copy=True))[0]]
    drawn = assigned.copy()
    drawn[training & pd.Index(texts).isin(chosen)] = split
    return drawn


def _rows(labelling: Labelling, rows: NDArray[np.int64]) -> Labelled:
    return [labelling.texts[row] for row in rows], [labelling.labels[row] for row in rows]
