"""Planted worlds: corpora and traces of which it is known what decides, and whether attention points at it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from heedful.analysis.minimum import minimum_sets
from heedful.analysis.tokens import mean_weights, token_table
from heedful.studies.calibration.attention import TRUTHS, Model, in_context, learned, spoken
from heedful.studies.calibration.case import Case, Planted
from heedful.studies.calibration.evidence import FRESH, Evidence, with_planted_groups
from heedful.studies.calibration.language import Ints, Texts, draw, effective, training_counts
from heedful.studies.calibration.world import World
from heedful.traces import Trace

TRAIN_SHARE, TEST_SHARE = 0.8, 0.1
"""Of the texts, as `load_corpus` divides them."""

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
    return Case(seen=seen, whole=whole, planted=_planted(model, whole.trace))


def _sizes(world: World) -> tuple[int, int, int]:
    return round(TRAIN_SHARE * world.texts), round(TEST_SHARE * world.texts), FRESH


def _planted(model: Model, found: Trace) -> dict[str, Planted]:
    """What is known of the questions; that of single decisions is not asked where nothing but its own claims tells."""
    known: dict[str, Planted] = {"corpus": None, **TRUTHS.get(model.kind, {})}
    if model.kind == "found in part":
        known["decision"] = model.found
    if model.kind == "graded":
        known["decision"] = attended_share(found)
    return known


def attended_share(found: Trace) -> float:
    """How much of the smallest set that flips a decision is among as many most attended units, in the mean.

    Of the decisions that fewer units than all can flip; what these units give, and so S13, has no part in it.
    """
    lengths, segments = found.lengths.numpy(), found.segments.numpy()
    smallest = minimum_sets(found)[0].numpy()
    sizes = np.bincount(segments, smallest)
    attended = _ranks(found) < sizes[segments]
    resting = (sizes > 0) & (sizes < lengths)
    return float((np.bincount(segments, smallest & attended)[resting] / sizes[resting]).mean())


def _ranks(found: Trace) -> Ints:
    """For every unit how many of its text are attended to more."""
    segments = found.segments.numpy()
    ranks = np.empty(len(segments), dtype=np.int64)
    ranks[np.lexsort((-found.attention_weights.numpy(), segments))] = np.arange(len(segments))
    places: Ints = ranks - found.offsets.numpy()[segments]
    return places


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
