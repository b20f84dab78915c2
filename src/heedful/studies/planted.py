"""Planted worlds: corpora and traces of which it is known what decides, and whether attention points at it.

Words of a class, frequent and rare as words are, stand among neutral ones. A word pushes towards the classes as far as
it occurs more often there in the training texts, which is what a trained model makes of it, chance included. What is
planted is the attention:

informative    the more a word pushes, the more attention it gets;
blind          attention knows nothing of the words;
misleading     the more a word pushes, the less attention it gets;
corpus only    words that push get more attention, but in every text it goes to those of them that do nothing there;
decision only  words alone get attention for no reason, but in every text it goes to neutral words that decide it;
graded         as informative, from hardly to fully: the truth is what a look at the whole world shows.

Corpus only and decision only are worlds of models that read a word in its context. Whether the answer finds the truth
out is what `heedful calibrate` measures.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from heedful.analysis.leads import leads_taken
from heedful.analysis.minimum import minimum_flips
from heedful.analysis.statistics import area
from heedful.analysis.tokens import class_counts, mean_weights, token_table
from heedful.claims import Decision
from heedful.traces import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TRUTHS: Mapping[str, tuple[Decision, Decision]] = {
    "informative": ("yes", "yes"),
    "blind": ("no", "no"),
    "misleading": ("no", "no"),
    "corpus only": ("yes", "no"),
    "decision only": ("no", "yes"),
}
"""For each kind of attention, whether it points at the words that decide across the corpus, and in single decisions."""

GRADED = "graded"
KINDS = (*TRUTHS, GRADED)

LENGTHS: Mapping[str, float] = {"short": 14.0, "long": 120.0}
"""Median words of a text; one in six is half as long again, or two thirds as long."""

LONGER = 1.5
"""So many times as long are the texts of the first class."""

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

NEUTRAL_WORDS, CLASS_WORDS = 2000, 40
TRAIN_SHARE, TEST_SHARE = 0.8, 0.1
"""Of the texts, as `load_corpus` divides them."""

OWN_WORDS, SPECTATORS, PIVOTS = 3, 4, 3
"""Words of its class in a text; such words that do nothing there; neutral words that decide."""

STRENGTH = 2.0
"""Of what words push, against what training counts say."""

STRONG = 4.0
"""A word that pushes so much to one side gets all the attention that pushing gets."""

NOISE = 0.2
"""The deviation of what a word pushes from what it should."""

WHOLE = 5000
"""Texts that are looked at for what is true of a graded world."""

LINES = (0.7, 0.75)
NEAR = 0.05
"""The lines of C2, C8b and S13, and how near them the truth hangs on chance."""


@dataclass(frozen=True, kw_only=True)
class World:
    """One planted world; everything else about it is drawn by the seed."""

    attention: str
    classes: str
    length: str
    texts: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Planted:
    """What the audit sees of a world: the tables `tokens` and `weights`, and the trace of its test texts."""

    tables: Mapping[str, pd.DataFrame]
    trace: Trace
    truth: tuple[Decision, Decision]
    """Of the two questions."""
    near: tuple[bool, bool] = (False, False)
    """Whether the truth lies so near the line that "not shown" is what a careful answer says."""


@dataclass(frozen=True, kw_only=True)
class _Texts:
    """Texts as word numbers, one after the other."""

    words: Ints
    segments: Ints
    labels: Ints
    lengths: Ints


@dataclass(frozen=True, kw_only=True)
class _Model:
    """What the model of a world makes of its words."""

    attention: str
    owners: Ints
    pushes: Floats
    scores: Floats
    gap: float
    names: tuple[str, ...]


def plant(world: World) -> Planted:
    """Draw the world's texts, give every word its push and its attention, and look at it as an audit does."""
    rng = np.random.default_rng([world.seed, world.texts, *_numbers(world)])
    shares = np.array(SHARES[world.classes])
    classes = len(shares)
    owners = np.concatenate([np.repeat(np.arange(classes), CLASS_WORDS), np.full(NEUTRAL_WORDS, -1)])
    train, test = (_draw(world, shares, round(part * world.texts), rng) for part in (TRAIN_SHARE, TEST_SHARE))
    labels = torch.from_numpy(train.labels[train.segments])
    counts = class_counts(torch.from_numpy(train.words), labels, vocabulary_size=len(owners), class_count=classes)
    pushes = _pushes(counts.double().numpy(), rng)
    gap = rng.uniform(3.0, 4.5) * (rng.uniform() if world.attention == GRADED else 1.0)
    model = _Model(
        attention=world.attention,
        owners=owners,
        pushes=pushes,
        scores=_scores(world.attention, pushes, gap, rng),
        gap=gap,
        names=tuple(f"class{number}" for number in range(classes)),
    )
    tokens = token_table(_alone(model), counts)
    trace = _trace(model, test, rng)
    tables = {"tokens": tokens, "weights": mean_weights(trace, torch.from_numpy(test.words), tokens)}
    if world.attention != GRADED:
        return Planted(tables=tables, trace=trace, truth=TRUTHS[world.attention])
    every = _draw(world, shares, WHOLE, rng)
    numbers = _look(model, every, _trace(model, every, rng), seen=counts.sum(1).numpy() > 0)
    truth = tuple("yes" if number > line else "no" for number, line in zip(numbers, LINES, strict=True))
    near = tuple(abs(number - line) < NEAR for number, line in zip(numbers, LINES, strict=True))
    return Planted(tables=tables, trace=trace, truth=truth, near=near)  # type: ignore[arg-type]


def _alone(model: _Model) -> Trace:
    """Every word as a text of its own."""
    return Trace.from_arrays(
        offsets=np.arange(len(model.owners) + 1),
        attention_scores=model.scores,
        polarity_scores=model.pushes,
        bias=np.zeros(len(model.names)),
        units=[f"{'neutral' if owner < 0 else model.names[owner]}-{n}" for n, owner in enumerate(model.owners)],
        class_names=model.names,
    )


def _trace(model: _Model, texts: _Texts, rng: np.random.Generator) -> Trace:
    attended, polarity = _in_context(model, texts, rng)
    return Trace.from_arrays(
        offsets=np.concatenate([[0], np.cumsum(texts.lengths)]),
        attention_scores=attended,
        polarity_scores=polarity,
        bias=np.zeros(len(model.names)),
        labels=texts.labels,
        class_names=model.names,
    )


def _look(model: _Model, texts: _Texts, trace: Trace, *, seen: NDArray[np.bool_]) -> tuple[float, float]:
    """What is true of a graded world, by what words push and not by how often they are seen, and on very many texts.

    Across the corpus: the smaller of the two AUCs, of attention scores and of attention over an even share, of words
    that push against words that do not. In single decisions: the mean share of the lead that goes with the most
    attended units, as many as the minimum has.
    """
    strength = _strength(model.pushes)
    lifts = trace.attention_weights * trace.lengths[trace.segments]
    sums, counts = (np.bincount(texts.words, each, len(strength)) for each in (lifts.numpy(), np.ones(len(lifts))))
    sides = [seen & (counts > 0) & side for side in (strength > 0.5, strength < 0.25)]
    means = sums / np.maximum(counts, 1)
    areas = [area(*(values[side] for side in sides)) for values in (model.scores, means)]
    taken = leads_taken(trace, minimum_flips(trace))
    return min(areas), float(taken[~taken.isnan()].mean())


def _numbers(world: World) -> tuple[int, int, int]:
    return (
        KINDS.index(world.attention),
        list(SHARES).index(world.classes),
        list(LENGTHS).index(world.length),
    )


def _pushes(counts: Floats, rng: np.random.Generator) -> Floats:
    """log((f_k + 1) / (E_k + 1)) with E_k the count that a word without a class would have in class k."""
    expected = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
    pushes: Floats = STRENGTH * np.log((counts + 1) / (expected + 1)) + rng.normal(0, NOISE, counts.shape)
    return pushes


def _strength(pushes: Floats) -> Floats:
    """How far a word pushes to one side, 0 … 1."""
    others = np.median(pushes, axis=1) if pushes.shape[1] > 2 else pushes.min(1)
    strength: Floats = np.minimum((pushes.max(1) - others) / STRONG, 1.0)
    return strength


def _scores(attention: str, pushes: Floats, gap: float, rng: np.random.Generator) -> Floats:
    """The attention score of each word alone."""
    noise = rng.normal(0, rng.uniform(0.2, 0.6), len(pushes))
    rise = {"misleading": -gap, "blind": 0.0, "decision only": 0.0}.get(attention, gap)
    scores: Floats = noise + rise * _strength(pushes)
    return scores


def _draw(world: World, shares: Floats, count: int, rng: np.random.Generator) -> _Texts:
    """Texts of neutral words, some of which are replaced by words of the text's class."""
    labels = rng.permutation(np.searchsorted(np.cumsum(shares), (np.arange(count) + 0.5) / count))
    medians = LENGTHS[world.length] * np.where(labels == 0, LONGER, 1.0)
    lengths = np.round(medians * np.exp(rng.normal(0, 0.4, count))).astype(np.int64).clip(min=10)
    segments = np.repeat(np.arange(count), lengths)
    words = len(shares) * CLASS_WORDS + _frequent(NEUTRAL_WORDS, len(segments), rng)
    starts = np.cumsum(lengths) - lengths
    own = OWN_WORDS + rng.poisson(lengths / 50) + (SPECTATORS if world.attention == "corpus only" else 0)
    for step in range(int(own.max())):
        rows = np.flatnonzero(step < np.minimum(own, lengths - 2))
        words[starts[rows] + step] = labels[rows] * CLASS_WORDS + _frequent(CLASS_WORDS, len(rows), rng)
    return _Texts(words=words, segments=segments, labels=labels, lengths=lengths)


def _in_context(model: _Model, texts: _Texts, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Attention and polarity scores of the units of these texts: those of the words, and what the context changes."""
    attended, polarity = model.scores[texts.words].copy(), model.pushes[texts.words].copy()
    polar, starts = model.owners[texts.words] >= 0, np.cumsum(texts.lengths) - texts.lengths
    if model.attention == "corpus only":  # the first words of the class decide, those after them are looked at
        first = np.arange(len(texts.words)) - starts[texts.segments] < OWN_WORDS
        attended[polar & first] -= model.gap
        polarity[polar & ~first] = 0.0
    if model.attention == "decision only":
        polarity[polar] *= 0.1
        for _ in range(PIVOTS):
            chosen = starts + (rng.random(len(starts)) * texts.lengths).astype(np.int64)
            chosen = chosen[~polar[chosen]]
            labels = texts.labels[texts.segments[chosen]]
            polarity[chosen, labels] += rng.uniform(2, 4, len(chosen)) * STRENGTH
            attended[chosen] += model.gap
    return attended, polarity


def _frequent(size: int, count: int, rng: np.random.Generator) -> Ints:
    """Numbers below a size, the n-th as frequent as words are: in proportion to 1 / (n + 2)."""
    rates = np.cumsum(1 / (np.arange(size) + 2.0))
    return np.searchsorted(rates / rates[-1], rng.random(count), side="right").clip(max=size - 1)
