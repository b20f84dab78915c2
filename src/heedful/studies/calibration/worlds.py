"""Worlds whose truth is known: which are made, how their texts are written, and what is looked at in one.

A world is a value; its seed draws everything that is not said. Its texts hold words of their class, frequent and rare
as words are, among neutral ones. What the audit sees of a made world are its test texts; the truth is what very many
fresh texts show, with the planted owners of words in the place of the groups that counts suggest.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.analysis.tokens import NEGATIVE, NEUTRAL, POSITIVE, GroupRule, group_of_class, mean_weights
from heedful.claims import Decision
from heedful.errors import ConfigError
from heedful.traces import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Marks = NDArray[np.bool_]
Groups = NDArray[np.object_]

ON_WORDS = (
    "informative", "blind", "misleading", "corpus only", "decision only", "graded", "found in part", "unsound",
    "frequency",
)  # fmt: skip
STORIES = ("only one", "redundant")

PLANTED = (*ON_WORDS, *STORIES)
"""Kinds of worlds whose attention is planted (`heedful.studies.calibration.planted`)."""

TRAINED = ("noise", "copies", "words", "one word")
"""Kinds of worlds in which a model is trained (there as well)."""

KINDS = (*ON_WORDS, *TRAINED, *STORIES)
"""In an order that the chance of a world hangs on: new kinds come last."""

LENGTHS: Mapping[str, float] = {"short": 14.0, "long": 120.0}
"""Median words of a text; one in six is half as long again, or two thirds as long."""

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

CLASS_WORDS, NEUTRAL_WORDS = 40, 2000  # that each class has, and that none has
OWN_WORDS, FURTHER = 3, 0.02  # words of its class in a text, and the share of further ones
SPECTATORS = 4  # in a world of corpus only, further words of its class in a text, which do nothing there
REPEATED = 0.6  # in bursts, the chance of a word to be the one before it again: runs of two and a half in the mean
FRESH = 5000  # texts of a population: the largest deviation of a mean of shares is then .007

SIZES, TRAINED_SIZES = (200, 2_000, 20_000), (500, 2_000)
TRAINED_CLASSES = ("50:50", "90:10", "10 even")
TRAINED_SEEDS = 2  # for each seed of the planted worlds


@dataclass(frozen=True, kw_only=True)
class World:
    """One world; everything else about it is drawn by the seed."""

    kind: str
    classes: str
    length: str
    texts: int
    seed: int
    bursts: bool = False
    """Whether a word of a text is repeated there."""
    bias: bool = False
    """Whether the readout has a bias."""

    def rng(self) -> np.random.Generator:
        """The chance of this world."""
        places = KINDS.index(self.kind), list(SHARES).index(self.classes), list(LENGTHS).index(self.length)
        return np.random.default_rng([self.seed, self.texts, *places])

    @property
    def shares(self) -> Floats:
        return np.array(SHARES[self.classes])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"class{number}" for number in range(len(self.shares)))

    @property
    def class_words(self) -> int:
        return 1 if self.kind == "one word" else CLASS_WORDS

    @property
    def own_words(self) -> tuple[int, float]:
        """The words of its class in a text, and the share of further ones."""
        if self.kind == "one word":
            return 1, 0.0
        return OWN_WORDS + SPECTATORS * (self.kind == "corpus only"), FURTHER

    @property
    def owners(self) -> Ints:
        """The class of each word, −1 for the neutral ones."""
        polar = np.repeat(np.arange(len(self.shares)), self.class_words)
        return np.concatenate([polar, np.full(NEUTRAL_WORDS, -1)])

    @property
    def groups(self) -> Groups:
        """The planted group of each word, by the names that estimated groups have."""
        two = len(self.shares) == 2
        own = (NEGATIVE, POSITIVE) if two else tuple(group_of_class(name) for name in self.names)
        return np.array([*own, NEUTRAL], dtype=object)[self.owners]

    @property
    def words(self) -> list[str]:
        return [f"{(*self.names, NEUTRAL)[owner]}-{number}" for number, owner in enumerate(self.owners)]


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Texts as word numbers, one after the other."""

    words: Ints
    segments: Ints
    """For every word the number of its text."""
    places: Ints
    """For every word its position in its text."""
    labels: Ints
    offsets: Ints


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What an audit looks at: the tables `tokens` and `weights`, and a trace with labels."""

    tables: Mapping[str, pd.DataFrame]
    trace: Trace


Planted = Decision | float | None
"""What is known of a question by planting: its answer; the share of texts in which attention is on what decides; or
nothing, so that the population tells."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A world that was made."""

    seen: Evidence
    """Its test texts, and the groups that training counts suggest."""
    whole: Evidence
    """Very many fresh texts, and the groups that were planted."""
    planted: Mapping[str, Planted]
    """By question; one whose truth is neither planted nor to be had without its own claims is not here."""


def worlds(*, seeds: int = 2, first: int = 0, sizes: Sequence[int] = SIZES) -> list[World]:
    """Every kind of attention with all class sizes, both lengths, these numbers of texts, and seeds from `first` on."""
    if seeds < 1 or first < 0 or min(sizes, default=0) < 100:
        raise ConfigError(
            "Calibration takes 1 seed or more, from 0 on, and worlds of 100 texts or more, not "
            f"{seeds} from {first} on and {sizes}."
        )
    chances = range(first, first + seeds)
    return [_world(*place) for place in itertools.product(chances, sizes, PLANTED, SHARES, LENGTHS)]


def trained_worlds(*, seeds: int = 2, first: int = 0, sizes: Sequence[int] = TRAINED_SIZES) -> list[World]:
    """Every kind of world in which a model is trained, few classes and many, both lengths, these numbers of texts."""
    chances = range(TRAINED_SEEDS * first, TRAINED_SEEDS * (first + seeds))
    return [_world(*place) for place in itertools.product(chances, sizes, TRAINED, TRAINED_CLASSES, LENGTHS)]


def _world(seed: int, texts: int, kind: str, classes: str, length: str) -> World:
    """In half of the worlds words come in bursts, and in half of them the readout has a bias."""
    coins = np.random.default_rng([seed, texts, KINDS.index(kind), *map(ord, classes + length)]).random(2)
    bursts, bias = (coins < 0.5).tolist()
    return World(kind=kind, classes=classes, length=length, texts=texts, seed=seed, bursts=bursts, bias=bias)


def draw(world: World, count: int, rng: np.random.Generator) -> Texts:
    """Texts that begin with words of their class and go on with neutral ones; nothing here reads their order."""
    labels = rng.permutation(np.searchsorted(np.cumsum(world.shares), (np.arange(count) + 0.5) / count))
    lengths = _lengths(world, labels, rng)
    least, further = world.own_words
    own = np.minimum(least + rng.poisson(further * lengths), lengths - 2)
    offsets, segments = np.concatenate([[0], np.cumsum(lengths)]), np.repeat(np.arange(count), lengths)
    places = np.arange(len(segments)) - offsets[segments]
    polar = places < own[segments]
    words = _words(world, labels[segments], polar, rng)
    if world.bursts:
        words = words[_first_of_run(places, polar, rng)]
    return Texts(words=words, segments=segments, places=places, labels=labels, offsets=offsets)


def _lengths(world: World, labels: Ints, rng: np.random.Generator) -> Ints:
    """Ten words or more; the texts of the first class are half as long again as the others."""
    medians = LENGTHS[world.length] * np.where(labels == 0, 1.5, 1.0)
    return np.round(medians * np.exp(rng.normal(0, 0.4, len(labels)))).astype(np.int64).clip(min=10)


def _words(world: World, labels: Ints, polar: Marks, rng: np.random.Generator) -> Ints:
    words = len(world.names) * world.class_words + _frequent(NEUTRAL_WORDS, len(labels), rng)
    words[polar] = labels[polar] * world.class_words + _frequent(world.class_words, int(polar.sum()), rng)
    return words


def _first_of_run(places: Ints, polar: Marks, rng: np.random.Generator) -> Ints:
    """For every word the place of the one that it repeats, of its own text and kind, or its own place."""
    begins = (rng.random(len(polar)) > REPEATED) | (places == 0)
    begins[1:] |= polar[1:] != polar[:-1]
    return np.maximum.accumulate(np.where(begins, np.arange(len(polar)), 0))


def _frequent(size: int, count: int, rng: np.random.Generator) -> Ints:
    """Numbers below a size, the n-th as frequent as words are: in proportion to 1 / (n + 2)."""
    rates = np.cumsum(1 / (np.arange(size) + 2.0))
    return np.searchsorted(rates / rates[-1], rng.random(count), side="right").clip(max=size - 1)


def with_planted_groups(tokens: pd.DataFrame, groups: Groups) -> pd.DataFrame:
    """The table of tokens with the groups that were planted; rare words cannot be told to be neutral."""
    even = (groups == NEUTRAL) & (tokens["count"] > GroupRule().count)
    return tokens.assign(group=groups, beyond_chance=True, even=even)


def evidence(tokens: pd.DataFrame, trace: Trace, words: Int[Tensor, " units"]) -> Evidence:
    """What an audit reads of these texts."""
    return Evidence(tables={"tokens": tokens, "weights": mean_weights(trace, words, tokens)}, trace=trace)
