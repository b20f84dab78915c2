"""Areas at equal frequency: do words of a class get larger values than other words that are about as frequent?

Words that clearly belong to a class are more frequent, or rarer, than those that belong to none, so that attention
which follows nothing but frequency would tell them apart. Here words are compared within strata of frequency.
"""

import numpy as np

from heedful.analysis.statistics import LEVEL, Estimate, Numbers, area_of_places, bootstrap, score_interval, too_few

OCTAVE = np.log(2.0)
"""Words of one stratum differ in frequency by a factor of two, or by more where one side has none nearer."""

ALIKE = 1e-9
"""Values that differ by less of the largest of them are equal: it is rounding."""

Strata = list[tuple[Numbers, Numbers]]
"""The values of both sides in each stratum."""


def matched_area(
    higher: Numbers, lower: Numbers, frequencies: tuple[Numbers, Numbers], *, level: float = LEVEL
) -> Estimate:
    """P(a value of `higher` exceeds one of `lower` that is as frequent), equals counting half, with its interval.

    The mean of the areas of the strata, weighed by n m / (n + m) (van Elteren 1960). Within strata values are freed
    from the line through those of `lower` against log frequency, of one slope for all: a stratum still has a width.
    The interval is the wider of bootstrap resamples within strata and Newcombe's for as many values as the weights
    are worth. Words without a counterpart do not count.
    """
    strata = _strata(higher, lower, np.log(frequencies[0]), np.log(frequencies[1]))
    sides = sum(len(one) for one, _ in strata), sum(len(other) for _, other in strata)
    if not strata:
        return too_few(*sides)
    weights = np.array([len(one) * len(other) / (len(one) + len(other)) for one, other in strata])

    def mean_area(*parts: Numbers) -> float:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        areas = [area_of_places(one, other, size) for (one, other), size in zip(pairs, sizes, strict=True)]
        return float(weights @ areas / weights.sum())

    coded, sizes = zip(*(_places(*pair) for pair in strata), strict=True)
    found = bootstrap(mean_area, *(part for pair in coded for part in pair), level=level)
    worth = float(2 * weights.sum())
    low, high = score_interval(found.value, worth, worth, level)
    return Estimate(
        value=found.value, low=min(found.low, low), high=max(found.high, high), count=sum(sides), groups=sides
    )


def _strata(higher: Numbers, lower: Numbers, at_higher: Numbers, at_lower: Numbers) -> Strata:
    """The values in strata that both sides have, freed from what frequency explains within them."""
    if not len(higher):
        return []
    near = (at_lower >= at_higher.min() - OCTAVE) & (at_lower <= at_higher.max() + OCTAVE)
    lower, at_lower = lower[near], at_lower[near]
    own, other = _numbered(at_higher, at_lower)
    shared = np.intersect1d(own, other)
    slope = _slope(lower, at_lower, other, shared)
    grain = ALIKE * max(float(np.abs(higher).max()), float(np.abs(lower).max(initial=0.0)), np.finfo(np.float64).tiny)
    ones, others = (np.round((side - slope * at) / grain) for side, at in ((higher, at_higher), (lower, at_lower)))
    return [(ones[own == number], others[other == number]) for number in shared]


def _numbered(at_higher: Numbers, at_lower: Numbers) -> tuple[Numbers, Numbers]:
    """The stratum of each word: octaves of frequency, joined upwards until both sides have a word in it."""
    octaves = [np.floor(part / OCTAVE) for part in (at_higher, at_lower)]
    strata: dict[float, int] = {}
    number, seen = 0, set[int]()
    for octave in np.unique(np.concatenate(octaves)):
        if len(seen) == 2:
            number, seen = number + 1, set()
        strata[octave] = number
        seen |= {side for side, part in enumerate(octaves) if (part == octave).any()}
    last = number - 1 if len(seen) < 2 and number else number
    own, other = (np.array([min(strata[octave], last) for octave in part], dtype=np.float64) for part in octaves)
    return own, other


def _slope(values: Numbers, at: Numbers, strata: Numbers, shared: Numbers) -> float:
    """Of the line through the values of each shared stratum against log frequency, the same for all of them."""
    above = below = 0.0
    for number in shared:
        some = strata == number
        apart = at[some] - at[some].mean()
        above, below = above + float(apart @ values[some]), below + float(apart @ apart)
    return above / below if below > 0 else 0.0


def _places(one: Numbers, other: Numbers) -> tuple[tuple[Numbers, Numbers], int]:
    """The places of the values of both sides in their common order, and how many there are."""
    codes = np.unique(np.concatenate([one, other]), return_inverse=True)[1].astype(np.float64)
    return (codes[: len(one)], codes[len(one) :]), int(codes.max()) + 1
