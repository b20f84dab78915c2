"""From a table to the three splits: rows that can be used, classes, splits read or drawn.

Texts are read and forgotten: of each row a few bytes are kept, which text it has (told by a hash), which label, and
which split. Whoever wants the texts reads the table a second time.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.notebook import counted
from heedful.text.columns import (
    NESTED,
    SKIP,
    Coded,
    Coding,
    Objects,
    SplitColumn,
    SplitValues,
    choose_column,
    choose_split_column,
    is_missing,
    listed,
    perhaps_splits,
)
from heedful.text.corpus import SPLITS, Labelled
from heedful.text.tables import Table, table_of, writable

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

NO_TEXT, NUL = -1, -2
"""In place of the number of a text: there is none, or it holds NUL bytes."""

Numbers = NDArray[np.int64]
Rows = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """Usable rows of a table: which text and class each has, class names, and what must be said of the rest."""

    text_column: str
    count: int
    """Of all rows of the table."""
    rows: Numbers
    """Which of them are usable."""
    texts: Numbers
    """Of each usable row the number of its text: copies have one number."""
    labels: Numbers
    class_names: list[str]
    splits: Objects | None  # the split of each row, where a column names it
    notices: list[str]


def label_rows(
    table: Table,
    *,
    text_column: str | None,
    label_column: str | None,
    split_column: str | None,
    split_values: SplitValues = None,
    missing_labels: str = "skip",
) -> Labelling:
    """Find the columns, leave out rows that hold no text or no label, number the classes."""
    texts_in, of_texts = choose_column(table.columns, text_column, "text", taken=label_column)
    labels_in, of_labels = choose_column(table.columns, label_column, "label", taken=texts_in)
    perhaps = perhaps_splits(table.columns, split_column, taken=(texts_in, labels_in))
    texts, labels, called = _survey(table, texts_in, labels_in, perhaps)
    splits_in, of_splits = choose_split_column(called, split_column, split_values)
    wanted, skipped = _without_skipped(len(texts), splits_in, called)
    kept, left_out = _usable(texts, labels, wanted, texts_in, labels_in, missing_labels)
    class_names = _classes(labels, kept, labels_in)
    number = {name: place for place, name in enumerate(class_names)}
    classes = np.array([number.get(name, -1) for name in labels.names], dtype=np.int64)
    return Labelling(
        text_column=texts_in,
        count=len(texts),
        rows=np.flatnonzero(kept),
        texts=texts[kept],
        labels=classes[labels.codes[kept]],
        class_names=class_names,
        splits=splits_in.read_checked(called[splits_in.name], kept) if splits_in else None,
        notices=[*of_texts, *of_labels, *of_splits, *skipped, *left_out],
    )


def _survey(table: Table, text: str, label: str, splits: Sequence[str]) -> tuple[Numbers, Coded, dict[str, Coded]]:
    """All rows once: the number of each text, and the columns of labels and of what may be splits."""
    kinds: list[NDArray[np.int8]] = []
    hashes: list[bytes] = []
    codings = {name: Coding() for name in dict.fromkeys((label, *splits))}
    for batch in table.batches(dict.fromkeys((text, *codings))):
        marks = [_mark(value) for value in batch[text]]
        kinds.append(np.array([min(0, mark) if isinstance(mark, int) else 0 for mark in marks], dtype=np.int8))
        hashes.append(b"".join(mark for mark in marks if isinstance(mark, bytes)))
        for name, coding in codings.items():
            coding.add(batch[name])
    numbers = np.concatenate([*kinds, np.empty(0, np.int8)]).astype(np.int64)
    numbers[numbers == 0] = pd.factorize(np.frombuffer(b"".join(hashes), np.uint64))[0]
    return numbers, codings[label].coded(), {name: codings[name].coded() for name in splits}


def _mark(value: object) -> bytes | int:
    """What tells a text from others: 64 bits, by which two of three million differ but for two chances in ten million;
    or why it is none."""
    if not isinstance(value, str) or not value.strip():
        return NO_TEXT
    if "\0" in value:
        return NUL
    return hashlib.blake2b(as_stored(value).encode(), digest_size=8).digest()


def as_stored(text: object) -> str:
    """A text as corpora have it."""
    return str(writable(text))


def _without_skipped(count: int, column: SplitColumn | None, called: Mapping[str, Coded]) -> tuple[Rows, list[str]]:
    """The rows without those to be skipped, whose texts and labels nobody looks at."""
    if column is None or not (skipped := column.read(called[column.name]) == SKIP).any():
        return np.ones(count, dtype=bool), []
    values = listed(called[column.name].distinct(skipped))
    return ~skipped, [_left_out(skipped, f"column '{column.name}' holds {values}")]


def _usable(
    texts: Numbers, labels: Coded, wanted: Rows, text: str, label: str, missing_labels: str
) -> tuple[Rows, list[str]]:
    """The rows that have a text and one label; why the others are left out, and what may have been meant as none."""
    if missing_labels not in ("skip", "keep"):
        raise DataError(
            f"Rows labelled by a word such as NaN are told by skip or keep (missing_labels), not '{missing_labels}'."
        )
    several = np.flatnonzero(labels.where(lambda value: isinstance(value, NESTED)) & wanted)
    if len(several):
        first = str(labels.values[labels.codes[several[0]]])[:40]
        raise DataError(
            f"Column '{label}' holds several labels for a text, such as {first}; one for each is needed. Name a column "
            "that holds it (--label-column, in Python label_column)."
        )
    empty, nul = wanted & (texts == NO_TEXT), wanted & (texts == NUL)
    unlabelled = wanted & labels.where(lambda value: is_missing(value) or not str(value).strip())
    words = _rows_of(labels, NO_LABEL) & wanted & ~unlabelled & (missing_labels == "skip")
    reasons = {
        f"column '{text}' holds no text": empty,
        f"column '{text}' holds NUL bytes": nul,
        f"column '{label}' holds no label": unlabelled & ~empty & ~nul,
        f"column '{label}' holds {listed(labels.distinct(words))}, which is taken for no label. If it is a class, "
        "keep it with --missing-labels keep, in Python missing_labels='keep'": words & ~empty & ~nul,
    }
    notices = [_left_out(rows, why) for why, rows in reasons.items() if rows.any()]
    kept = wanted & ~(empty | nul | unlabelled | words)
    notices += _perhaps_no_label(labels, kept, label) if missing_labels == "skip" else []
    if not kept.any():
        raise DataError(" ".join(["No row has both a text and a label.", *notices]))
    return kept, notices


def _rows_of(labels: Coded, words: frozenset[str]) -> Rows:
    return labels.where(lambda value: isinstance(value, str) and value.strip().casefold() in words)


def _perhaps_no_label(labels: Coded, kept: Rows, column: str) -> list[str]:
    """What is taken for a class though it might say that there is none."""
    doubtful = kept & _rows_of(labels, PERHAPS_NO_LABEL)
    said = (
        f"Column '{column}' holds {listed(labels.distinct(doubtful))} in {counted(int(doubtful.sum()), 'row')}, taken "
        "for a class. If that means that there is no label, remove these rows."
    )
    return [said] if doubtful.any() else []


def _left_out(rows: Rows, why: str) -> str:
    return f"{counted(int(rows.sum()), 'row')} left out: {why}."


def _classes(labels: Coded, kept: Rows, column: str) -> list[str]:
    """By number where all are numbers, else alphabetically: 2 before 10, negative before positive."""
    different, rows = labels.distinct(kept), int(kept.sum())
    if rows >= FEWEST_ROWS and len(different) > MOST_CLASSES * rows:
        raise DataError(
            f"Column '{column}' holds {len(different):,} different values in {rows:,} rows: texts or "
            "measurements, not classes. Name the column that holds the labels."
        )
    try:
        return sorted(different, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(different)


@dataclass(frozen=True, kw_only=True)
class Division:
    """Which rows of a table are in which split, in their order, and their classes."""

    count: int
    """Of all rows of the table."""
    rows: Mapping[str, Numbers]
    labels: Mapping[str, Numbers]
    class_names: Sequence[str]
    notices: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The documents of a corpus before they are tokenised."""

    splits: Mapping[str, Labelled]
    class_names: Sequence[str]
    notices: Sequence[str]


def select(frame: pd.DataFrame, labelling: Labelling, *, seed: int) -> Selection:
    """The three splits of a table in memory."""
    found = divide(labelling, seed=seed)
    (batch,) = table_of(frame).batches([labelling.text_column])
    texts = batch[labelling.text_column]
    return Selection(
        splits={
            split: ([as_stored(texts[row]) for row in rows.tolist()], found.labels[split].tolist())
            for split, rows in found.rows.items()
        },
        class_names=found.class_names,
        notices=found.notices,
    )


def divide(labelling: Labelling, *, seed: int) -> Division:
    """The three splits: those the table names, and the missing ones drawn from the training rows."""
    _refuse_few(labelling)
    texts, labels = labelling.texts, labelling.labels
    given = np.full(len(texts), "train", dtype=object) if labelling.splits is None else labelling.splits
    missing = [split for split in HELD_OUT if not (given == split).any()]
    assigned = _hold_out(given, texts, labels, missing, np.random.default_rng(seed))
    why = f": a class is drawn from if it has {len(missing) + 1} different texts of its own"
    notices = [
        *labelling.notices,
        *(notice for split in HELD_OUT for notice in _origin(split, texts, assigned, missing, seed)),
        *_absent(labelling, assigned, missing, why),
        *_absent(labelling, assigned, [split for split in HELD_OUT if split not in missing]),
    ]
    places = {split: np.flatnonzero(assigned == split) for split in SPLITS}
    return Division(
        count=labelling.count,
        rows={split: labelling.rows[own] for split, own in places.items()},
        labels={split: labels[own] for split, own in places.items()},
        class_names=labelling.class_names,
        notices=notices,
    )


def _refuse_few(labelling: Labelling) -> None:
    rows, different = len(labelling.texts), len(np.unique(labelling.texts))
    if rows < FEWEST_ROWS:
        raise DataError(f"At least {FEWEST_ROWS} labelled texts are needed, there are {rows}.")
    if labelling.splits is None and different < len(SPLITS):
        raise DataError(
            f"The {rows} texts are copies of {different}; copies stay in one split, so that training, "
            f"dev and test need {len(SPLITS)} different ones at least."
        )


def _origin(split: str, texts: Numbers, assigned: Objects, missing: Sequence[str], seed: int) -> list[str]:
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
    lacking: dict[tuple[str, ...], list[str]] = {}
    for split in splits:
        present = set(np.unique(labelling.labels[assigned == split]).tolist())
        names = tuple(name for number, name in enumerate(labelling.class_names) if number not in present)
        lacking.setdefault(names, []).append(split)
    return [_lack(names, without) + f"{why}." for names, without in lacking.items() if names]


def _lack(names: Sequence[str], splits: Sequence[str]) -> str:
    verb = "split lacks" if len(splits) == 1 else "splits lack"
    return f"The {' and '.join(splits)} {verb} the {'class' if len(names) == 1 else 'classes'} {listed(names)}"


def hold_out(texts: Sequence[str], labels: Sequence[int], *, share: float, seed: int) -> NDArray[np.bool_]:
    """Which rows to keep from training so that its epoch can be chosen by them: about this share of each class."""
    given = np.array(["train"] * len(texts), dtype=object)
    wording, rng = pd.factorize(np.array(texts, dtype=object))[0], np.random.default_rng(seed)
    return np.asarray(_hold_out(given, wording, np.array(labels), ["dev"], rng, share) == "dev")


def _hold_out(
    assigned: Objects,
    texts: Numbers,
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


def _movable(texts: Numbers, labels: Numbers) -> pd.DataFrame:
    """The different texts that have one label only, with it and with the number of their copies."""
    owners = pd.Series(labels).groupby(texts, sort=False).agg(["first", "nunique", "size"])
    return owners[owners["nunique"] == 1].rename(columns={"first": "label", "size": "copies"})


def _choose(texts: Numbers, labels: Numbers, able: set[int], rng: np.random.Generator, share: float) -> list[int]:
    """The texts to move: of each class that is able to a share, of the largest one where none is."""
    movable = _movable(texts, labels)
    chosen: list[int] = []
    for label in np.unique(labels):
        own = rng.permutation(movable.index[movable["label"] == label].to_numpy(copy=True))
        if label in able:
            wanted = share * int((labels == label).sum())
            chosen += own[_fitting(movable["copies"].loc[own].to_numpy(), wanted, share)].tolist()
    if not able and len(movable):
        largest = movable["label"].value_counts().index[0]
        chosen = [int(rng.permutation(movable.index[movable["label"] == largest].to_numpy(copy=True))[0])]
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
