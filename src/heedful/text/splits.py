"""From a table to the three splits: rows that cannot be used, classes, splits read or made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.text.columns import LABEL_COLUMNS, TEXT_COLUMNS, choose_column, listed, name_of
from heedful.text.corpus import SPLITS, Labelled
from heedful.text.hold_out import HELD_OUT_SHARE, NEAR_SHARE, Objects, hold_out
from heedful.text.readers import writable
from heedful.text.split_columns import SKIP, SplitColumn, SplitValues, choose_split_column

FEWEST_ROWS = 10
HELD_OUT = ("test", "dev")
"""The splits that are drawn where they are missing, in this order."""

MOST_CLASSES = 0.5
"""A label column with more different values than this share of the rows holds no classes."""

NO_LABEL = frozenset(("nan", "-nan", "null", "n/a", "<na>", "#n/a", "#na", "nat"))
"""What programs write, and people, where there is no label; in any case of letters."""

PERHAPS_NO_LABEL = frozenset(("none", "na"))
"""What may be written for no label, and is a class in many data: taken for one, and said."""


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
    missing_labels: str = "skip",
) -> Labelling:
    """Find the columns, leave out rows that hold no text or no label, number the classes."""
    table = table.set_axis([str(column) for column in table.columns], axis=1).reset_index(drop=True)
    texts_in, of_texts = choose_column(table, text_column, TEXT_COLUMNS, "text", taken=label_column)
    labels_in, of_labels = choose_column(table, label_column, LABEL_COLUMNS, "label", taken=texts_in)
    splits_in, of_splits = choose_split_column(table, split_column, split_values, taken=(texts_in, labels_in))
    wanted, skipped = _wanted(table, splits_in)
    kept, left_out = _usable(wanted, texts_in, labels_in, words_kept=_keeps(missing_labels))
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
    if len(names) >= FEWEST_ROWS and len(found) > MOST_CLASSES * len(names):
        raise DataError(
            f"Column '{column}' holds {len(found):,} different values in {len(names):,} rows: texts or "
            "measurements, not classes. Name the column that holds the labels."
        )
    return found


def _keeps(missing_labels: str) -> bool:
    """Whether words for no label are classes."""
    if missing_labels not in ("skip", "keep"):
        raise DataError(
            f"Rows labelled by a word such as NaN are told by skip or keep (missing_labels), not '{missing_labels}'."
        )
    return missing_labels == "keep"


def _usable(table: pd.DataFrame, text: str, label: str, *, words_kept: bool) -> tuple[pd.DataFrame, list[str]]:
    _refuse_lists(table, label)
    texts = table[text]
    nul = texts.map(lambda value: isinstance(value, str) and "\0" in value).astype(bool)
    empty = texts.map(lambda value: not isinstance(value, str) or not value.strip()).astype(bool)
    unlabelled = table[label].isna() | table[label].map(lambda value: not str(value).strip()).astype(bool)
    said = table[label].map(_says_nothing).astype(bool) & ~unlabelled & (not words_kept)
    reasons = {
        f"column '{text}' holds no text": empty,
        f"column '{text}' holds NUL bytes": nul & ~empty,
        f"column '{label}' holds no label": unlabelled & ~empty & ~nul,
        _of_words(table.loc[said, label], label): said & ~empty & ~nul,
    }
    notices = [_left_out(int(rows.sum()), why) for why, rows in reasons.items() if rows.any()]
    kept = table[~(empty | nul | unlabelled | said)]
    notices += [] if words_kept else _perhaps_no_label(kept[label], label)
    if kept.empty:
        raise DataError(" ".join(["No row has both a text and a label.", *notices]))
    return kept, notices


def _says_nothing(value: object) -> bool:
    """Whether a label is a word for none."""
    return isinstance(value, str) and value.strip().casefold() in NO_LABEL


def _perhaps_no_label(labels: "pd.Series[Any]", column: str) -> list[str]:
    """What is taken for a class though it might say that there is none."""
    words = [value.strip() for value in labels if isinstance(value, str)]
    found = [word for word in words if word.casefold() in PERHAPS_NO_LABEL]
    if not found:
        return []
    named = listed(sorted(set(found)))
    return [
        f"Column '{column}' holds {named} in {len(found):,} row{'s' if len(found) > 1 else ''}, taken for a class. If "
        "that means that there is no label, remove these rows."
    ]


def _of_words(labels: "pd.Series[Any]", column: str) -> str:
    """Why rows are left out that are labelled so, and how to keep them."""
    words = listed(sorted({name_of(value) for value in labels})) if len(labels) else ""
    return (
        f"column '{column}' holds {words}, which is taken for no label. If it is a class, keep it with "
        "--missing-labels keep, in Python missing_labels='keep'"
    )


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
    _refuse_few(labelling)
    texts, labels = np.array(labelling.texts, dtype=object), np.array(labelling.labels)
    given = np.array(labelling.splits or ["train"] * len(texts), dtype=object)
    missing = [split for split in HELD_OUT if not (given == split).any()]
    assigned = hold_out(given, texts, labels, missing, np.random.default_rng(seed))
    notices = [
        *(notice for split in HELD_OUT for notice in _origin(split, texts, assigned, missing, seed)),
        *_absent(
            labelling,
            assigned,
            missing,
            f": a class is drawn from if it has {len(missing) + 1} different texts of its own",
        ),
        *_absent(labelling, assigned, [split for split in HELD_OUT if split not in missing]),
    ]
    return {split: _rows(labelling, np.flatnonzero(assigned == split)) for split in SPLITS}, notices


def _refuse_few(labelling: Labelling) -> None:
    if len(labelling.texts) < FEWEST_ROWS:
        raise DataError(f"At least {FEWEST_ROWS} labelled texts are needed, there are {len(labelling.texts)}.")
    distinct = len(set(labelling.texts))
    if not labelling.splits and distinct < len(SPLITS):
        raise DataError(
            f"The {len(labelling.texts)} texts are copies of {distinct}; copies stay in one split, so that training, "
            f"dev and test need {len(SPLITS)} different ones at least."
        )


def _origin(split: str, texts: Objects, assigned: Objects, missing: Sequence[str], seed: int) -> list[str]:
    """How a split was drawn, or, of one that is given, what it shares with the training."""
    if split in missing:
        drawn = f"The {split} split was drawn from the training rows (stratified, {HELD_OUT_SHARE:.0%}, seed {seed})."
        return [drawn + _real_share(split, assigned, missing)]
    shared = int(pd.Index(texts[assigned == split]).isin(texts[assigned == "train"]).sum())
    occur = "text also occurs" if shared == 1 else "texts also occur"
    return [f"{shared:,} {split} {occur} in the training split."] if shared else []


def _real_share(split: str, assigned: Objects, missing: Sequence[str]) -> str:
    """How much was drawn, where that is not what was asked for."""
    pool = ["train", *missing[missing.index(split) :]]
    share = float((assigned == split).sum() / np.isin(assigned, pool).sum())
    if abs(share - HELD_OUT_SHARE) <= NEAR_SHARE:
        return ""
    return f" It has {share:.0%} of them, as copies of a text stay together and classes are to be in every split."


def _absent(labelling: Labelling, assigned: Objects, splits: Sequence[str], why: str = "") -> list[str]:
    """Which classes some of the splits do not have."""
    labels = np.array(labelling.labels)
    lacking: dict[tuple[str, ...], list[str]] = {}
    for split in splits:
        present = set(labels[assigned == split].tolist())
        names = tuple(name for number, name in enumerate(labelling.class_names) if number not in present)
        lacking.setdefault(names, []).append(split)
    return [_lack(names, without) + f"{why}." for names, without in lacking.items() if names]


def _lack(names: Sequence[str], splits: Sequence[str]) -> str:
    verb = "split lacks" if len(splits) == 1 else "splits lack"
    return f"The {' and '.join(splits)} {verb} the {'class' if len(names) == 1 else 'classes'} {listed(names)}"


def _rows(labelling: Labelling, rows: NDArray[np.int64]) -> Labelled:
    return [labelling.texts[row] for row in rows], [labelling.labels[row] for row in rows]
