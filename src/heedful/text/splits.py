"""From a table to the three splits: rows that cannot be used, classes, splits read or made."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.text.columns import LABEL_COLUMNS, TEXT_COLUMNS, choose_column, listed, name_of
from heedful.text.corpus import SPLITS, Labelled
from heedful.text.readers import writable
from heedful.text.split_columns import SKIP, SplitColumn, SplitValues, choose_split_column

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
    """The split of each row, where a column names it."""
    notices: list[str]


def label_rows(
    table: pd.DataFrame,
    *,
    text_column: str | None,
    label_column: str | None,
    split_column: str | None,
    split_values: SplitValues = None,
) -> Labelling:
    """Find the columns, leave out rows that hold no text or no label, number the classes."""
    table = table.set_axis([str(column) for column in table.columns], axis=1).reset_index(drop=True)
    texts_in, of_texts = choose_column(table, text_column, TEXT_COLUMNS, "text", taken=label_column)
    labels_in, of_labels = choose_column(table, label_column, LABEL_COLUMNS, "label", taken=texts_in)
    splits_in, of_splits = choose_split_column(table, split_column, split_values, taken=(texts_in, labels_in))
    wanted, skipped = _wanted(table, splits_in)
    kept, left_out = _usable(wanted, texts_in, labels_in)
    names = [name_of(value) for value in kept[labels_in]]
    class_names = _classes(names, labels_in)
    number = {name: place for place, name in enumerate(class_names)}
    return Labelling(
        texts=[str(writable(text)) for text in kept[texts_in]],
        labels=[number[name] for name in names],
        class_names=class_names,
        splits=_splits(kept, splits_in) if splits_in else None,
        notices=[*of_texts, *of_labels, *of_splits, *skipped, *left_out],
    )


def _wanted(table: pd.DataFrame, column: SplitColumn | None) -> tuple[pd.DataFrame, list[str]]:
    """The rows without those to be skipped, whose texts and labels nobody looks at."""
    if column is None or SKIP not in column.meanings.values():
        return table, []
    skipped = column.read(table) == SKIP
    values = sorted({name_of(value) for value in table.loc[skipped, column.name].astype(object).fillna("")})
    return table[~skipped], [_left_out(int(skipped.sum()), f"column '{column.name}' holds {listed(values)}")]


def _splits(kept: pd.DataFrame, column: SplitColumn) -> list[str]:
    meant = column.read(kept)
    column.check(kept, meant)
    return meant.tolist()


def _classes(names: list[str], column: str) -> list[str]:
    found = _ordered(set(names))
    if len(found) > MOST_CLASSES * len(names):
        raise DataError(
            f"Column '{column}' holds {len(found):,} different values in {len(names):,} rows: texts or "
            "measurements, not classes. Name the column that holds the labels."
        )
    return found


def _usable(table: pd.DataFrame, text: str, label: str) -> tuple[pd.DataFrame, list[str]]:
    _refuse_lists(table, label)
    texts = table[text]
    nul = texts.map(lambda value: isinstance(value, str) and "\0" in value).astype(bool)
    empty = texts.map(lambda value: not isinstance(value, str) or not value.strip()).astype(bool)
    unlabelled = table[label].isna() | table[label].map(lambda value: not str(value).strip()).astype(bool)
    reasons = {
        f"column '{text}' holds no text": empty,
        f"column '{text}' holds NUL bytes": nul & ~empty,
        f"column '{label}' holds no label": unlabelled & ~empty & ~nul,
    }
    notices = [_left_out(int(rows.sum()), why) for why, rows in reasons.items() if rows.any()]
    kept = table[~(empty | nul | unlabelled)]
    if kept.empty:
        raise DataError(" ".join(["No row has both a text and a label.", *notices]))
    return kept, notices


def _left_out(count: int, why: str) -> str:
    return f"{count:,} row{'s' if count > 1 else ''} left out: {why}."


def _refuse_lists(table: pd.DataFrame, label: str) -> None:
    """Several labels of one text are no class."""
    for value in table[label]:
        if isinstance(value, (list, tuple, dict, set, np.ndarray)):
            raise DataError(
                f"Column '{label}' holds several labels for a text, such as {str(value)[:40]}; one for each is needed. "
                "Name a column that holds it (--label-column, in Python label_column)."
            )


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
    assigned = np.array(labelling.splits or ["train"] * len(texts), dtype=object)
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
