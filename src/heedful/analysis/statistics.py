"""Estimates with intervals: shares, areas under the curve, differences; bootstrap and paired tests on scipy.

Intervals are at the 95 % level where no other is asked for.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import optimize, stats

from heedful.errors import InputError

Numbers = np.ndarray[Any, np.dtype[np.float64]]

RESAMPLES = 1000
LEVEL = 0.95
BESIDE = 1e-9

AT_ONCE = 100
"""Resamples of many means that are drawn at a time."""

FEWEST = 10
"""Observations that each side of a comparison must have: fewer say too little of the rest, however clear they are."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number, its interval, and how many observations it rests on.

    Of a comparison of two groups `sides` has the size of each, and the count is their sum.
    """

    value: float
    low: float
    high: float
    count: int
    groups: tuple[int, int] | None = None
    over: str = ""
    """What the interval is over, where it is not what is counted."""
    remark: str = ""
    """What else is to be said of it, a sentence."""

    @property
    def known(self) -> bool:
        """Whether there is a number; else it is known only how much there is too little of."""
        return not math.isnan(self.value)

    @property
    def sides(self) -> tuple[int, ...]:
        """How many observations stand on each side."""
        return self.groups or (self.count,)


def too_few(*sides: int) -> Estimate:
    """No number, and how many observations there are, on each side of a comparison."""
    groups = (sides[0], sides[1]) if len(sides) == 2 else None
    return Estimate(value=np.nan, low=np.nan, high=np.nan, count=sum(sides), groups=groups)


def share(successes: int, trials: int, *, level: float = LEVEL) -> Estimate:
    """A proportion with Wilson's score interval."""
    if trials < 1:
        raise InputError("A share needs at least one trial.")
    interval = stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    return Estimate(value=successes / trials, low=float(interval.low), high=float(interval.high), count=trials)


def mean_of_shares(successes: Sequence[int], trials: Sequence[int], *, level: float = LEVEL) -> Estimate:
    """The mean of independent shares p_k, its interval by their variances recovered from Wilson's intervals.

    p̄ − √Σ (p_k − low_k)² / K … p̄ + √Σ (high_k − p_k)² / K: MOVER (Zou & Donner 2008), which is never a point.
    """
    parts = [share(some, of, level=level) for some, of in zip(successes, trials, strict=True)]
    mean = float(np.mean([part.value for part in parts]))
    below = math.hypot(*(part.value - part.low for part in parts)) / len(parts)
    above = math.hypot(*(part.high - part.value for part in parts)) / len(parts)
    return Estimate(value=mean, low=mean - below, high=mean + above, count=sum(trials))


def paired_difference(*, gained: int, lost: int, pairs: int, level: float = LEVEL) -> Estimate:
    """The difference of two shares on the same n instances: (g − l) / n.

    In g of the pairs only the first does it, in l only the second. The interval is the wider, at each end, of two. The
    exact one takes the number of pairs that differ as found, d = g + l, and has (d / n)(2q − 1) with Clopper and
    Pearson's interval of q = g / d: it leaves out zero only where the sign test (McNemar's exact test) rejects. That of
    Bonett & Price 2012 knows that d is uncertain too: with p = (g + 1) / (n + 2) and r = (l + 1) / (n + 2) it is
    p − r ± z √((p + r − (p − r)²) / (n + 2)).
    """
    if pairs < 1 or gained + lost > pairs:
        raise InputError(f"A paired difference needs pairs, and no more that differ: {gained} and {lost} of {pairs}.")
    differ = gained + lost
    low, high = stats.binomtest(gained, differ).proportion_ci(level, method="exact") if differ else (0.5, 0.5)
    p, r = (gained + 1) / (pairs + 2), (lost + 1) / (pairs + 2)
    half = float(stats.norm.ppf((1 + level) / 2) * np.sqrt((p + r - (p - r) ** 2) / (pairs + 2)))
    return Estimate(
        value=(gained - lost) / pairs,
        low=float(max(-1.0, min(differ / pairs * (2 * low - 1), p - r - half))),
        high=float(min(1.0, max(differ / pairs * (2 * high - 1), p - r + half))),
        count=pairs,
    )


def area(higher: Numbers, lower: Numbers) -> float:
    """P(a value of `higher` exceeds one of `lower`), equals counting half: the area under the ROC curve."""
    ranks = stats.rankdata(np.concatenate([higher, lower]))
    n, m = len(higher), len(lower)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * m))


def area_estimate(higher: Numbers, lower: Numbers, *, level: float = LEVEL) -> Estimate:
    """The area under the ROC curve with an interval that is never a point; not a number where a side is empty.

    The interval is the wider, at each end, of two. Bootstrap resamples know the shape of the data, but of a perfect
    area they make a certainty. Newcombe's (2006, method 5) inverts Hanley & McNeil's variance of an area θ: it holds
    every θ with (A − θ)² ≤ z² θ (1 − θ) / (n m) · [1 + ((n + m)/2 − 1) ((1 − θ)/(2 − θ) + θ/(1 + θ))].
    """
    sides = len(higher), len(lower)
    if not all(sides):
        return too_few(*sides)
    *places, size = places_of(higher, lower)
    found = bootstrap(lambda one, other: area_of_places(one, other, size), *places, level=level)
    low, high = score_interval(found.value, *sides, level)
    return replace(found, low=min(found.low, low), high=max(found.high, high), groups=sides)


def places_of(one: Numbers, other: Numbers) -> tuple[Numbers, Numbers, int]:
    """The places of the values of both sides in their common order, and how many there are."""
    places = np.unique(np.concatenate([one, other]), return_inverse=True)[1].astype(np.float64)
    return places[: len(one)], places[len(one) :], int(places.max()) + 1


def area_of_places(higher: Numbers, lower: Numbers, size: int) -> float:
    """The area of values that are places 0 … size − 1 of an ordering: without sorting, for resamples."""
    above = np.bincount(higher.astype(np.int64), minlength=size)
    below = np.bincount(lower.astype(np.int64), minlength=size)
    return float(above @ (below.cumsum() - below / 2) / (len(higher) * len(lower)))


def score_interval(found: float, n: int | float, m: int | float, level: float) -> tuple[float, float]:
    """The areas that an area of n values against m does not contradict, after Newcombe."""
    z = float(stats.norm.ppf((1 + level) / 2))

    def excess(area: float) -> float:
        spread = 1 + ((n + m) / 2 - 1) * ((1 - area) / (2 - area) + area / (1 + area))
        return (found - area) ** 2 - z**2 * area * (1 - area) / (n * m) * spread

    # At 0 and 1 the excess of a perfect area is zero without being an end of the interval: look beside it.
    low = optimize.brentq(excess, 0.0, found - BESIDE) if found > BESIDE else 0.0
    high = optimize.brentq(excess, found + BESIDE, 1.0) if found < 1 - BESIDE else 1.0
    return float(low), float(high)


def bootstrap(statistic: Callable[..., float], *samples: Numbers, seed: int = 0, level: float = LEVEL) -> Estimate:
    """A statistic of independent samples with its percentile interval; each sample is resampled on its own.

    Numbers of one instance that belong together are a row of one sample.
    """
    sizes = [*map(len, samples)]
    if not all(sizes):
        raise InputError("An interval needs at least one observation in each sample.")
    rng = np.random.default_rng(seed)
    drawn = [statistic(*(own[rng.integers(0, len(own), len(own))] for own in samples)) for _ in range(RESAMPLES)]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value=statistic(*samples), low=float(low), high=float(high), count=sum(sizes))


def mean_over_seeds(values: Numbers, *, level: float = LEVEL) -> Estimate:
    """The mean of independent runs with Student's t interval; one run has no interval but itself."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(value=mean, low=mean, high=mean, count=len(values))
    half = float(stats.t.ppf((1 + level) / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return Estimate(value=mean, low=mean - half, high=mean + half, count=len(values))


def bounded_mean(values: Numbers, *, low: float, high: float, level: float = LEVEL) -> Estimate:
    """The mean of values that lie between two bounds, its interval by bootstrap of the values and one at each bound.

    Without those, values that are all alike would make a certainty, however few they are (Agresti & Coull 1998 do the
    same for shares).
    """
    found = bootstrap(lambda sample: float(sample.mean()), np.concatenate([values, [low, high]]), level=level)
    mean = float(values.mean())
    return Estimate(value=mean, low=min(mean, found.low), high=max(mean, found.high), count=len(values))


def means_over_instances(
    values: Numbers, ends: Numbers, *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = 0
) -> list[Estimate]:
    """The mean of each row over its instances, with percentile intervals; what is not a number is left out.

    The instances of all rows are drawn again with the same numbers, so that rows can be compared. `ends` are the bounds
    of each row: as in `bounded_mean` one observation more stands at either; not a number where there are none.
    """
    bounds = np.where(np.isnan(ends).any(1, keepdims=True), np.nan, ends)
    low, high = _quantiles(np.concatenate([values, bounds], axis=1), resamples, level, seed)
    counts = (~np.isnan(values)).sum(1)
    means = np.where(counts > 0, np.nansum(values, axis=1), np.nan) / np.maximum(counts, 1)
    return [
        Estimate(value=float(mean), low=float(min(mean, one)), high=float(max(mean, other)), count=int(count))
        if count
        else too_few(0)
        for mean, one, other, count in zip(means, low, high, counts, strict=True)
    ]


def _quantiles(values: Numbers, resamples: int, level: float, seed: int) -> tuple[Numbers, Numbers]:
    """Of the means of each row over columns drawn again."""
    rng, columns = np.random.default_rng(seed), values.shape[1]
    known, filled = (~np.isnan(values)).astype(np.float64), np.nan_to_num(values)
    means = []
    for start in range(0, resamples, AT_ONCE):
        some = min(AT_ONCE, resamples - start)
        drawn = rng.multinomial(columns, np.full(columns, 1 / columns), some).astype(np.float64)
        seen = drawn @ known.T
        means.append(np.where(seen > 0, drawn @ filled.T, np.nan) / np.maximum(seen, 1))
    sampled, alive = np.concatenate(means), known.any(1)
    found = np.full((2, len(values)), np.nan)
    found[:, alive] = np.nanquantile(sampled[:, alive], [(1 - level) / 2, (1 + level) / 2], axis=0)
    return found[0], found[1]
