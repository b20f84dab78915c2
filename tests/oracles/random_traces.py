"""Random traces for comparisons: many small instances of every kind in one trace."""

import numpy as np

from heedful.traces import Trace

SPREADS = (0.001, 0.1, 1.0, 10.0, 100.0, 400.0, 700.0, 2000.0)


def random_trace(seed: int, *, instances: int, longest: int, spread: float | None = None) -> Trace:
    """Lengths 1 … longest, 2 to 10 classes, scores spread over that many nats, repeated units in between."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, instances)
    lengths[0] = 1
    units, classes = int(lengths.sum()), int(rng.integers(2, 11))
    spread = SPREADS[seed % len(SPREADS)] if spread is None else spread
    scores, polarity = rng.uniform(0, spread, units), rng.normal(size=(units, classes))
    copies = rng.random(units) < 0.2
    sources = rng.integers(0, units, units)
    scores[copies], polarity[copies] = scores[sources[copies]], polarity[sources[copies]]
    return Trace.from_arrays(
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        attention_scores=scores + rng.normal() * 10,
        polarity_scores=polarity * rng.choice([0.3, 1.0, 5.0]),
        bias=rng.normal(size=classes) * rng.choice([0.0, 0.5, 2.0]),
    )


def dyadic_trace(seed: int, *, instances: int, longest: int) -> Trace:
    """Weights are multiples of 1/64, some zero, polarity scores and bias are small whole numbers: ties abound."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, instances)
    weights = [rng.multinomial(64, np.full(length, 1 / length)) / 64 for length in lengths]
    units, classes = int(lengths.sum()), int(rng.integers(2, 6))
    return Trace.from_arrays(
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        attention_weights=np.concatenate(weights) if seed % 3 else _peaked(rng, lengths),
        polarity_scores=rng.integers(-2, 3, (units, classes)),
        bias=rng.integers(-1, 2, classes),
    )


def _peaked(rng: np.random.Generator, lengths: np.ndarray) -> np.ndarray:
    """Halves: 1/2, 1/4, …, in any order, some weights zero."""
    parts = []
    for length in lengths:
        halves = [0.5**power for power in range(1, length)]
        halves.append(1 - sum(halves))
        if length > 2 and rng.random() < 0.5:
            halves[0], halves[1] = halves[0] + halves[1], 0.0
        parts.append(rng.permutation(halves))
    return np.concatenate(parts)


def whole_number_trace(seed: int, *, instances: int, longest: int) -> Trace:
    """Scores from few values up to 2,000 apart, polarity scores of small whole numbers: ties that underflow hides."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, instances)
    units, classes = int(lengths.sum()), int(rng.integers(2, 5))
    scores = rng.choice([0.0, -1.0, -650.0, -1300.0, -2000.0], units)
    scores[rng.random(units) < 0.1] = -np.inf
    scores[np.cumsum(lengths) - 1] = rng.choice([0.0, -1300.0], instances)
    return Trace.from_arrays(
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        attention_scores=scores,
        polarity_scores=rng.integers(-2, 3, (units, classes)),
        bias=rng.integers(-1, 2, classes),
    )


def tenths_trace(seed: int, *, instances: int, longest: int) -> Trace:
    """Polarity scores and bias in tenths, scores up to 500 apart: differences that are nothing but rounding decide."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, instances)
    units, classes = int(lengths.sum()), int(rng.integers(2, 5))
    return Trace.from_arrays(
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        attention_scores=rng.choice([0.0, -1.0, -40.0, -41.0, -300.0, -500.0], units),
        polarity_scores=rng.integers(-4, 5, (units, classes)) / 10,
        bias=rng.integers(-3, 4, classes) / 10,
    )
