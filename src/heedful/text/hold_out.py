"""Texts held out from training where the data name none: a share of each class, copies of a text together."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

HELD_OUT_SHARE = 0.1
NEAR_SHARE = 0.02
"""A share that is farther than this from the one asked for is said."""

SLACK = 0.05
"""So far, as a part of them, may the rows that are drawn be from those asked for."""

MOST_TEXTS = 0.25
"""No more than this part of the different texts of a class goes into one split, however often the others are copied."""

Objects = NDArray[np.object_]
Numbers = NDArray[np.int64]


def hold_out(
    assigned: Objects, texts: Objects, labels: Numbers, splits: Sequence[str], rng: np.random.Generator
) -> Objects:
    """Move a share of each class from train to each of these splits.

    The share is of rows, copies of a text move together, and a text with two labels stays. A class moves only if it
    has a different text for training and for each of the splits; then it is in all of them.
    """
    drawn = assigned.copy()
    able = spread_classes(texts[drawn == "train"], labels[drawn == "train"], len(splits) + 1)
    for split in splits:
        training = drawn == "train"
        chosen = _choose(texts[training], labels[training], able, rng)
        drawn[training & pd.Index(texts).isin(chosen)] = split
    return drawn


def spread_classes(texts: Objects, labels: Numbers, parts: int) -> set[int]:
    """The classes that have a different text for each of so many parts."""
    counts = _movable(texts, labels)["label"].value_counts()
    return {int(label) for label in counts.index[counts >= parts]}


def _movable(texts: Objects, labels: Numbers) -> pd.DataFrame:
    """The different texts that have one label only, with it and with the number of their copies."""
    owners = pd.Series(labels).groupby(texts, sort=False).agg(["first", "nunique", "size"])
    return owners[owners["nunique"] == 1].rename(columns={"first": "label", "size": "copies"})


def _choose(texts: Objects, labels: Numbers, able: set[int], rng: np.random.Generator) -> list[str]:
    """The texts to move: of each class that is able to a share, of the largest one where none is."""
    movable = _movable(texts, labels)
    chosen: list[str] = []
    for label in np.unique(labels):
        own = rng.permutation(movable.index[movable["label"] == label].to_numpy(copy=True))
        if label in able:
            wanted = HELD_OUT_SHARE * int((labels == label).sum())
            chosen += own[_fitting(movable["copies"].loc[own].to_numpy(), wanted)].tolist()
    if not able and len(movable):
        largest = movable["label"].value_counts().index[0]
        chosen = [rng.permutation(movable.index[movable["label"] == largest].to_numpy(copy=True))[0]]
    return chosen


def _fitting(copies: Numbers, wanted: float) -> list[int]:
    """The places of texts whose copies are about as many rows as wanted; one at least.

    The first tenth of the texts, unless their copies make that wrong.
    """
    usual = max(1, round(HELD_OUT_SHARE * len(copies)))
    if abs(copies[:usual].sum() - wanted) <= max(1.0, SLACK * wanted):
        return list(range(usual))
    return _packed(copies, wanted, most=max(1, int(MOST_TEXTS * len(copies))))


def _packed(copies: Numbers, wanted: float, most: int) -> list[int]:
    """Texts in their order, those passed over that have too many copies; then one more if it brings the rows nearer."""
    taken: list[int] = []
    room = wanted
    for place in range(len(copies)):
        if len(taken) < most and copies[place] <= room:
            taken.append(place)
            room -= int(copies[place])
    left = np.setdiff1d(np.arange(len(copies)), taken)
    nearest = int(left[np.abs(copies[left] - room).argmin()])
    nearer = len(taken) < most and abs(copies[nearest] - room) < room
    return [*taken, nearest] if nearer or not taken else taken
