"""Planted worlds: corpora and traces of which it is known what decides, and whether attention points at it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from heedful.analysis.tokens import mean_weights, token_table
from heedful.studies.calibration.attention import TRUTHS, Model, in_context, learned, spoken
from heedful.studies.calibration.case import Case, Planted
from heedful.studies.calibration.evidence import FRESH, Evidence, with_planted_groups
from heedful.studies.calibration.language import Floats, Ints, Texts, draw, effective, training_counts
from heedful.studies.calibration.world import World
from heedful.traces import Trace

TRAIN_SHARE, TEST_SHARE = 0.8, 0.1
"""Of the texts, as `load_corpus` divides them."""

BY_WORDS = ("informative", "graded")
"""Kinds in which the words of its class decide a text."""

FEWEST_RIGHT = 0.9
"""Where more than a tenth of the decisions are wrong, words that belong to a class by chance decide as well."""

SMALLEST_BIAS, LARGEST_BIAS = 0.3, 0.9
"""Of the lower quartile of all leads: so much a class, drawn by the seed, has ahead where there is a bias."""


def plant(world: World) -> Case:
    """Draw the world's texts, give every word its push and its attention, and look at it as an audit does."""
    rng = world.rng()
    language = spoken(world.kind, classes=world.classes, length=world.length, bursts=world.bursts)
    train, test, fresh = (draw(language, count, rng) for count in _sizes(world))
    counts = training_counts(language, train)
    model = learned(world.kind, language, counts.double().numpy(), rng)
    if world.bias:
        model = _biased(model, test, rng)
    tokens = token_table(_alone(model), counts, effective=effective(language, train))
    planted = with_planted_groups(tokens, language.groups, counts.sum(1).numpy() > 0)
    pairs = (tokens, test), (planted, fresh)
    seen, whole = (_evidence(scored, texts, _trace(model, texts, rng)) for scored, texts in pairs)
    return Case(seen=seen, whole=whole, planted=_planted(model, fresh, whole.trace))


def _sizes(world: World) -> tuple[int, int, int]:
    return round(TRAIN_SHARE * world.texts), round(TEST_SHARE * world.texts), FRESH


def _planted(model: Model, texts: Texts, found: Trace) -> dict[str, Planted]:
    """What is known of the questions: of a single decision nothing where the planted words do not decide."""
    known: dict[str, Planted] = {"corpus": None, **TRUTHS.get(model.kind, {})}
    if model.kind == "found in part":
        known["decision"] = model.found
    if model.kind in BY_WORDS and found.accuracy() >= FEWEST_RIGHT:
        known["decision"] = held_share(model, texts, found)
    return known


def held_share(model: Model, texts: Texts, found: Trace) -> float:
    """Of what the words of its class give to a decision, the share that the most attended units hold.

    As many units as there are such words, of the texts that are decided rightly; a word gives α (z_y − z_k) where that
    is positive, y the decision and k the class next to it. Nothing is erased for it, and no set that flips is sought.
    """
    segments, polar = texts.segments, model.language.owners[texts.words] >= 0
    given = np.where(polar, _given(found), 0.0)
    top = _ranks(texts, found) < np.bincount(segments, polar)[segments]
    every, held = (np.bincount(segments, part) for part in (given, given * top))
    assert found.labels is not None
    known = found.predictions.eq(found.labels).numpy() & (every > 0)
    return float((held[known] / every[known]).mean())


def _given(found: Trace) -> Floats:
    first, second = found.logits.topk(2).indices[found.segments].T
    units = torch.arange(len(first))
    ahead = found.polarity_scores[units, first] - found.polarity_scores[units, second]
    return (found.attention_weights * ahead).clamp(min=0).numpy()


def _ranks(texts: Texts, found: Trace) -> Ints:
    """For every unit how many of its text are attended to more."""
    ranks = np.empty(len(texts.words), dtype=np.int64)
    ranks[np.lexsort((-found.attention_weights.numpy(), texts.segments))] = texts.places
    return ranks


def _biased(model: Model, texts: Texts, rng: np.random.Generator) -> Model:
    """The model with one class ahead by a share of what most decisions are ahead by without that."""
    first, second = _trace(model, texts, rng).logits.topk(2).values.T
    bias = np.zeros(len(model.bias))
    bias[rng.integers(len(bias))] = rng.uniform(SMALLEST_BIAS, LARGEST_BIAS) * float((first - second).quantile(0.25))
    return replace(model, bias=bias)


def _alone(model: Model) -> Trace:
    """Every word as a text of its own."""
    return Trace.from_arrays(
        offsets=np.arange(len(model.scores) + 1),
        attention_scores=model.scores,
        polarity_scores=model.pushes,
        bias=model.bias,
        units=model.language.words,
        class_names=model.language.names,
    )


def _trace(model: Model, texts: Texts, rng: np.random.Generator) -> Trace:
    attended, polarity = in_context(model, texts, rng)
    return Trace.from_arrays(
        offsets=texts.offsets,
        attention_scores=attended,
        polarity_scores=polarity,
        bias=model.bias,
        labels=texts.labels,
        class_names=model.language.names,
    )


def _evidence(tokens: pd.DataFrame, texts: Texts, found: Trace) -> Evidence:
    weights = mean_weights(found, torch.from_numpy(texts.words), tokens)
    return Evidence(tables={"tokens": tokens, "weights": weights}, trace=found)
