"""The texts of a made world: words of a class, frequent and rare as words are, among neutral ones."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.analysis.tokens import NEGATIVE, NEUTRAL, POSITIVE, class_counts, effective_counts, group_of_class

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Marks = NDArray[np.bool_]
Groups = NDArray[np.object_]

LENGTHS: Mapping[str, float] = {"short": 14.0, "long": 120.0}
"""Median words of a text; one in six is half as long again, or two thirds as long."""

LONGER = 1.5
"""So many times as long are the texts of the first class."""

SHORTEST = 10

SHARES: Mapping[str, tuple[float, ...]] = {
    "50:50": (0.5, 0.5),
    "70:30": (0.7, 0.3),
    "90:10": (0.9, 0.1),
    "95:5": (0.95, 0.05),
    "3 even": (1 / 3,) * 3,
    "5 skewed": (0.08, 0.1, 0.15, 0.35, 0.32),
    "6 skewed": (0.02, 0.13, 0.2, 0.2, 0.22, 0.23),
    "10 even": (0.1,) * 10,
}
"""The shares of the classes; those of five are nearly those of stars on Yelp."""

FURTHER = 0.02
"""Of the words of a text so many more belong to its class."""

REPEATED = 0.6
"""In a world of bursts, the chance of a word to be the one before it again: runs of two and a half in the mean."""


@dataclass(frozen=True, kw_only=True)
class Language:
    """How the texts of a world are written."""

    classes: str
    length: str
    bursts: bool
    """Whether a word of a text is repeated there."""
    class_words: int = 40
    """That each class has."""
    neutral_words: int = 2000
    own: int = 3
    """Words of its class in a text, at least."""
    further: float = FURTHER

    @property
    def shares(self) -> Floats:
        return np.array(SHARES[self.classes])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes."""
        return tuple(f"class{number}" for number in range(len(self.shares)))

    @property
    def owners(self) -> Ints:
        """The class of each word, −1 for the neutral ones."""
        polar = np.repeat(np.arange(len(self.shares)), self.class_words)
        return np.concatenate([polar, np.full(self.neutral_words, -1)])

    @property
    def groups(self) -> Groups:
        """The planted group of each word, by the names that estimated groups have."""
        two = len(self.shares) == 2
        own = (NEGATIVE, POSITIVE) if two else tuple(group_of_class(name) for name in self.names)
        return np.array([*own, NEUTRAL], dtype=object)[self.owners]

    @property
    def words(self) -> list[str]:
        """Every word as it is written."""
        return [f"{(*self.names, NEUTRAL)[owner]}-{number}" for number, owner in enumerate(self.owners)]


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Texts as word numbers, one after the other."""

    words: Ints
    labels: Ints
    lengths: Ints

    @property
    def offsets(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.lengths)])

    @property
    def segments(self) -> Ints:
        """For every word the number of its text."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def places(self) -> Ints:
        """For every word its position in its text."""
        return np.arange(len(self.words)) - self.offsets[self.segments]


def draw(language: Language, count: int, rng: np.random.Generator) -> Texts:
    """Texts that begin with words of their class and go on with neutral ones; nothing here reads their order."""
    labels = rng.permutation(np.searchsorted(np.cumsum(language.shares), (np.arange(count) + 0.5) / count))
    lengths = _lengths(language, labels, rng)
    own = np.minimum(language.own + rng.poisson(language.further * lengths), lengths - 2)
    blank = Texts(words=np.zeros(int(lengths.sum()), dtype=np.int64), labels=labels, lengths=lengths)
    polar = blank.places < own[blank.segments]
    words = _words(language, labels[blank.segments], polar, rng)
    if language.bursts:
        words = words[_first_of_run(blank, polar, rng)]
    return Texts(words=words, labels=labels, lengths=lengths)


def training_counts(language: Language, texts: Texts) -> Int[Tensor, "vocab classes"]:
    """How often each word occurs in texts of each class."""
    labels = torch.from_numpy(texts.labels[texts.segments])
    size, classes = len(language.owners), len(language.shares)
    return class_counts(torch.from_numpy(texts.words), labels, vocabulary_size=size, class_count=classes)


def effective(language: Language, texts: Texts) -> Float[Tensor, " vocab"]:
    """How many independent occurrences those of each word are worth."""
    words, segments = torch.from_numpy(texts.words), torch.from_numpy(texts.segments)
    return effective_counts(words, segments, vocabulary_size=len(language.owners))


def _lengths(language: Language, labels: Ints, rng: np.random.Generator) -> Ints:
    medians = LENGTHS[language.length] * np.where(labels == 0, LONGER, 1.0)
    return np.round(medians * np.exp(rng.normal(0, 0.4, len(labels)))).astype(np.int64).clip(min=SHORTEST)


def _words(language: Language, labels: Ints, polar: Marks, rng: np.random.Generator) -> Ints:
    words = len(language.names) * language.class_words + _frequent(language.neutral_words, len(labels), rng)
    own = _frequent(language.class_words, int(polar.sum()), rng)
    words[polar] = labels[polar] * language.class_words + own
    return words


def _first_of_run(texts: Texts, polar: Marks, rng: np.random.Generator) -> Ints:
    """For every word the place of the one that it repeats, of its own text and kind, or its own place."""
    begins = (rng.random(len(polar)) > REPEATED) | (texts.places == 0)
    begins[1:] |= polar[1:] != polar[:-1]
    return np.maximum.accumulate(np.where(begins, np.arange(len(polar)), 0))


def _frequent(size: int, count: int, rng: np.random.Generator) -> Ints:
    """Numbers below a size, the n-th as frequent as words are: in proportion to 1 / (n + 2)."""
    rates = np.cumsum(1 / (np.arange(size) + 2.0))
    return np.searchsorted(rates / rates[-1], rng.random(count), side="right").clip(max=size - 1)
