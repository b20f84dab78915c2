"""From a table to the three splits: rows that can be used, classes, splits read or drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.notebook import counted
from heedful.text.columns import SplitColumn, SplitValues, choose_column, choose_split_column, distinct, listed, name_of
from heedful.text.corpus import SPLITS, Labelled
from heedful.text.tables import writable

FEWEST_ROWS = 10
HELD_OUT = ("test", "dev")  # the splits that are drawn where they are missing, in this order
HELD_OUT_SHARE = 0.1
NEAR_SHARE = 0.02  # a share that is farther than this from the one asked for is said
SLACK = 0.05  # so far, as a part of them, may the rows that are drawn be from those asked for

MOST_TEXTS = 0.25
"""No more than this part of the different texts of a class goes into one split, however often the others are copied."""

MOST_CLASSES = 0.5  # a label column with more different values than this share of the rows holds no classes

NO_LABEL = frozenset(("nan", "-nan", "null", "n/a", "<na>", "#n/a", "#na", "nat"))
"""What programs write, and people, where there is no label; in any case of letters."""

PERHAPS_NO_LABEL = frozenset(("none", "na"))
"""What may be written for no label, and is a class in many data: taken for one, and said."""

Objects = NDArray[np.object_]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """Usable rows of a table: texts, class numbers, class names, and what must be said of the rest."""

    texts: list[str]
    labels: list[int]
    class_names: list[str]
    splits: list[str] | None  # the split of each row, where a column names it
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
    texts_in, of_texts = choose_column(table, text_column, "text", taken=label_column)
    labels_in, of_labels = choose_column(table, label_column, "label", taken=texts_in)
    splits_in, of_splits = choose_split_column(table, split_column, split_values, taken=(texts_in, labels_in))
    wanted, skipped = _without_skipped(table, splits_in)
    kept, left_out = _usable(wanted, texts_in, labels_in, missing_labels)
    names = [name_of(value) for value in kept[labels_in]]
    class_names = _classes(names, labels_in)
    number = {name: place for place, name in enumerate(class_names)}
    return Labelling(
        texts=[str(writable(text)) for text in kept[texts_in]],
        labels=[number[name] for name in names],
        class_names=class_names,
        splits=splits_in.read_checked(kept) if splits_in else None,
        notices=[*of_texts, *of_labels, *of_splits, *skipped, *left_out],
    )


def _without_skipped(table: pd.DataFrame, column: SplitColumn | None) -> tuple[pd.DataFrame, list[str]]:
    """The rows without those to be skipped, whose texts and labels nobody looks at."""
    if column is None or not (skipped := column.skipped(table)).any():
        return table, []
    values = listed(distinct(table.loc[skipped, column.name]))
    return table[~skipped], [_left_out(skipped, f"column '{column.name}' holds {values}")]


def _usable(table: pd.DataFrame, text: str, label: str, missing_labels: str) -> tuple[pd.DataFrame, list[str]]:
    """The rows that have a text and one label; why the others are left out, and what may have been meant as none."""
    if missing_labels not in ("skip", "keep"):
        raise DataError(
            f"Rows labelled by a word such as NaN are told by skip or keep (missing_labels), not '{missing_labels}'."
        )
    texts, labels = table[text], table[label]
    for value in labels:
        if isinstance(value, (list, tuple, dict, set, np.ndarray)):
            raise DataError(
                f"Column '{label}' holds several labels for a text, such as {str(value)[:40]}; one for each is "
                "needed. Name a column that holds it (--label-column, in Python label_column)."
            )
    nul = texts.map(lambda value: isinstance(value, str) and "\0" in value).astype(bool)
    empty = texts.map(lambda value: not isinstance(value, str) or not value.strip()).astype(bool)
    unlabelled = labels.isna() | labels.map(lambda value: not str(value).strip()).astype(bool)
    words = _rows_of(labels, NO_LABEL) & ~unlabelled & (missing_labels == "skip")
    reasons = {
        f"column '{text}' holds no text": empty,
        f"column '{text}' holds NUL bytes": nul & ~empty,
        f"column '{label}' holds no label": unlabelled & ~empty & ~nul,
        f"column '{label}' holds {listed(distinct(labels[words]))}, which is taken for no label. If it is a class, "
        "keep it with --missing-labels keep, in Python missing_labels='keep'": words & ~empty & ~nul,
    }
    notices = [_left_out(rows, why) for why, rows in reasons.items() if rows.any()]
    kept = table[~(empty | nul | unlabelled | words)]
    notices += _perhaps_no_label(kept[label], label) if missing_labels == "skip" else []
    if kept.empty:
        raise DataError(" ".join(["No row has both a text and a label.", *notices]))
    return kept, notices


def _rows_of(labels: "pd.Series[Any]", words: frozenset[str]) -> "pd.Series[bool]":
    return labels.map(lambda value: isinstance(value, str) and value.strip().casefold() in words).astype(bool)


def _perhaps_no_label(labels: "pd.Series[Any]", column: str) -> list[str]:
    """What is taken for a class though it might say that there is none."""
    doubtful = labels[_rows_of(labels, PERHAPS_NO_LABEL)]
    said = (
        f"Column '{column}' holds {listed(distinct(doubtful))} in {counted(len(doubtful), 'row')}, taken for a class. "
        "If that means that there is no label, remove these rows."
    )
    return [said] if len(doubtful) else []


def _left_out(rows: "pd.Series[bool]", why: str) -> str:
    return f"{counted(int(rows.sum()), 'row')} left out: {why}."


def _classes(names: list[str], column: str) -> list[str]:
    """By number where all are numbers, else alphabetically: 2 before 10, negative before positive."""
    different = set(names)
    if len(names) >= FEWEST_ROWS and len(different) > MOST_CLASSES * len(names):
        raise DataError(
            f"Column '{column}' holds {len(different):,} different values in {len(names):,} rows: texts or "
            "measurements, not classes. Name the column that holds the labels."
        )
    try:
        return sorted(different, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(different)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The documents of a corpus before they are tokenised."""

    splits: Mapping[str, Labelled]
    class_names: Sequence[str]
    notices: Sequence[str]


def divide(labelling: Labelling, *, seed: int) -> Selection:
    """The three splits: those the table names, and the missing ones drawn from the training rows."""
    _refuse_few(labelling)
    texts, labels = np.array(labelling.texts, dtype=object), np.array(labelling.labels)
    given = np.array(labelling.splits or ["train"] * len(texts), dtype=object)
    missing = [split for split in HELD_OUT if not (given == split).any()]
    assigned = _hold_out(given, texts, labels, missing, np.random.default_rng(seed))
    why = f": a class is drawn from if it has {len(missing) + 1} different texts of its own"
    notices = [
        *labelling.notices,
        *(notice for split in HELD_OUT for notice in _origin(split, texts, assigned, missing, seed)),
        *_absent(labelling, assigned, missing, why),
        *_absent(labelling, assigned, [split for split in HELD_OUT if split not in missing]),
    ]
    rows = {split: np.flatnonzero(assigned == split) for split in SPLITS}
    splits = {split: (texts[own].tolist(), labels[own].tolist()) for split, own in rows.items()}
    return Selection(splits=splits, class_names=labelling.class_names, notices=notices)


def _refuse_few(labelling: Labelling) -> None:
    rows, different = len(labelling.texts), len(set(labelling.texts))
    if rows < FEWEST_ROWS:
        raise DataError(f"At least {FEWEST_ROWS} labelled texts are needed, there are {rows}.")
    if not labelling.splits and different < len(SPLITS):
        raise DataError(
            f"The {rows} texts are copies of {different}; copies stay in one split, so that training, "
            f"dev and test need {len(SPLITS)} different ones at least."
        )


def _origin(split: str, texts: Objects, assigned: Objects, missing: Sequence[str], seed: int) -> list[str]:
    """How a split was drawn, and how much where that is not what was asked for; of a given one what training has."""
    if split not in missing:
        shared = int(pd.Index(texts[assigned == split]).isin(texts[assigned == "train"]).sum())
        occur = "text also occurs" if shared == 1 else "texts also occur"
        return [f"{shared:,} {split} {occur} in the training split."] if shared else []
    share = float((assigned == split).sum() / np.isin(assigned, ["train", *missing[missing.index(split) :]]).sum())
    drawn = f"The {split} split was drawn from the training rows (stratified, {HELD_OUT_SHARE:.0%}, seed {seed})."
    why = f" It has {share:.0%} of them, as copies of a text stay together and classes are to be in every split."
    return [drawn + (why if abs(share - HELD_OUT_SHARE) > NEAR_SHARE else "")]


def _absent(labelling: Labelling, assigned: Objects, splits: Sequence[str], why: str = "") -> list[str]:
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


def hold_out(texts: Sequence[str], labels: Sequence[int], *, share: float, seed: int) -> NDArray[np.bool_]:
    """Which rows to keep from training so that its epoch can be chosen by them: about this share of each class."""
    given = np.array(["train"] * len(texts), dtype=object)
    wording, rng = np.array(texts, dtype=object), np.random.default_rng(seed)
    return np.asarray(_hold_out(given, wording, np.array(labels), ["dev"], rng, share) == "dev")


def _hold_out(
    assigned: Objects,
    texts: Objects,
    labels: Numbers,
    splits: Sequence[str],
    rng: np.random.Generator,
    share: float = HELD_OUT_SHARE,
) -> Objects:
    """Move a share of each class from train to each of these splits.

    The share is of rows, copies of a text move together, and a text with two labels stays. A class moves only if it
    has a different text for training and for each of the splits; then it is in all of them.
    """
    drawn = assigned.copy()
    counts = _movable(texts[drawn == "train"], labels[drawn == "train"])["label"].value_counts()
    able = set(counts.index[counts > len(splits)].tolist())
    for split in splits:
        training = drawn == "train"
        drawn[training & pd.Index(texts).isin(_choose(texts[training], labels[training], able, rng, share))] = split
    return drawn


def _movable(texts: Objects, labels: Numbers) -> pd.DataFrame:
    """The different texts that have one label only, with it and with the number of their copies."""
    owners = pd.Series(labels).groupby(texts, sort=False).agg(["first", "nunique", "size"])
    return owners[owners["nunique"] == 1].rename(columns={"first": "label", "size": "copies"})


def _choose(texts: Objects, labels: Numbers, able: set[int], rng: np.random.Generator, share: float) -> list[str]:
    """The texts to move: of each class that is able to a share, of the largest one where none is."""
    movable = _movable(texts, labels)
    chosen: list[str] = []
    for label in np.unique(labels):
        own = rng.permutation(movable.index[movable["label"] == label].to_numpy(copy=True))
        if label in able:
            wanted = share * int((labels == label).sum())
            chosen += own[_fitting(movable["copies"].loc[own].to_numpy(), wanted, share)].tolist()
    if not able and len(movable):
        largest = movable["label"].value_counts().index[0]
        chosen = [rng.permutation(movable.index[movable["label"] == largest].to_numpy(copy=True))[0]]
    return chosen


def _fitting(copies: Numbers, wanted: float, share: float) -> list[int]:
    """The places of texts whose copies are about as many rows as wanted; one at least.

    The first texts, the share of them, unless their copies make that wrong. Then texts in their order, those passed
    over that have too many copies, and one more if it brings the rows nearer.
    """
    usual = max(1, min(len(copies) - 1, round(share * len(copies))))
    if abs(copies[:usual].sum() - wanted) <= max(1.0, SLACK * wanted):
        return list(range(usual))
    most = max(1, min(len(copies) - 1, int(max(MOST_TEXTS, share) * len(copies))))
    taken: list[int] = []
    room = wanted
    for place, rows in enumerate(copies.tolist()):
        if len(taken) < most and rows <= room:
            taken.append(place)
            room -= rows
    left = np.setdiff1d(np.arange(len(copies)), taken)
    nearest = int(left[np.abs(copies[left] - room).argmin()])
    nearer = len(taken) < most and abs(copies[nearest] - room) < room
    return [*taken, nearest] if nearer or not taken else taken
