"""Estimates with intervals: shares, areas under the curve, differences; bootstrap and paired tests on scipy.

Intervals are at the 95 % level where no other is asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from heedful.errors import InputError

Numbers = np.ndarray[Any, np.dtype[np.float64]]

RESAMPLES = 1000
LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number, its interval, and how many observations it rests on."""

    value: float
    low: float
    high: float
    count: int


def share(successes: int, trials: int, *, level: float = LEVEL) -> Estimate:
    """A proportion with Wilson's score interval."""
    if trials < 1:
        raise InputError("A share needs at least one trial.")
    interval = stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    return Estimate(value=successes / trials, low=float(interval.low), high=float(interval.high), count=trials)


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
    low, high = _exact(gained, differ, level) if differ else (0.5, 0.5)
    p, r = (gained + 1) / (pairs + 2), (lost + 1) / (pairs + 2)
    half = float(stats.norm.ppf((1 + level) / 2) * np.sqrt((p + r - (p - r) ** 2) / (pairs + 2)))
    return Estimate(
        value=(gained - lost) / pairs,
        low=max(-1.0, min(differ / pairs * (2 * low - 1), p - r - half)),
        high=min(1.0, max(differ / pairs * (2 * high - 1), p - r + half)),
        count=pairs,
    )


def _exact(successes: int, trials: int, level: float) -> tuple[float, float]:
    interval = stats.binomtest(successes, trials).proportion_ci(level, method="exact")
    return float(interval.low), float(interval.high)


def area(higher: Numbers, lower: Numbers) -> float:
    """P(a value of `higher` exceeds one of `lower`), equals counting half: the area under the ROC curve."""
    ranks = stats.rankdata(np.concatenate([higher, lower]))
    n, m = len(higher), len(lower)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * m))


def bootstrap(statistic: Callable[..., float], *samples: Numbers, seed: int = 0, level: float = LEVEL) -> Estimate:
    """A statistic of independent samples with its percentile interval; each sample is resampled on its own.

    Numbers of one instance that belong together are a row of one sample.
    """
    if any(len(sample) == 0 for sample in samples):
        raise InputError("An interval needs at least one observation in each sample.")
    rng = np.random.default_rng(seed)
    drawn = [
        statistic(*(sample[rng.integers(0, len(sample), len(sample))] for sample in samples)) for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    count = sum(len(sample) for sample in samples)
    return Estimate(value=statistic(*samples), low=float(low), high=float(high), count=count)


def mean_over_seeds(values: Numbers, *, level: float = LEVEL) -> Estimate:
    """The mean of independent runs with Student's t interval; one run has no interval but itself."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(value=mean, low=mean, high=mean, count=len(values))
    half = float(stats.t.ppf((1 + level) / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return Estimate(value=mean, low=mean - half, high=mean + half, count=len(values))
