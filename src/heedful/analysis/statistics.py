"""Estimates with intervals: shares, areas under the curve, differences; bootstrap and paired tests on scipy."""

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
    """A number, its interval at the 95 % level, and how many observations it rests on."""

    value: float
    low: float
    high: float
    count: int


def share(successes: int, trials: int) -> Estimate:
    """A proportion with Wilson's score interval."""
    if trials < 1:
        raise InputError("A share needs at least one trial.")
    interval = stats.binomtest(successes, trials).proportion_ci(LEVEL, method="wilson")
    return Estimate(value=successes / trials, low=float(interval.low), high=float(interval.high), count=trials)


def area(higher: Numbers, lower: Numbers) -> float:
    """P(a value of `higher` exceeds one of `lower`), equals counting half: the area under the ROC curve."""
    ranks = stats.rankdata(np.concatenate([higher, lower]))
    n, m = len(higher), len(lower)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * m))


def bootstrap(statistic: Callable[..., float], *samples: Numbers, seed: int = 0) -> Estimate:
    """A statistic of independent samples with its percentile interval; each sample is resampled on its own."""
    if any(len(sample) == 0 for sample in samples):
        raise InputError("An interval needs at least one observation in each sample.")
    rng = np.random.default_rng(seed)
    drawn = [
        statistic(*(sample[rng.integers(0, len(sample), len(sample))] for sample in samples)) for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    count = sum(len(sample) for sample in samples)
    return Estimate(value=statistic(*samples), low=float(low), high=float(high), count=count)


def mean_over_seeds(values: Numbers) -> Estimate:
    """The mean of independent runs with Student's t interval; one run has no interval but itself."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(value=mean, low=mean, high=mean, count=len(values))
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return Estimate(value=mean, low=mean - half, high=mean + half, count=len(values))
