"""Estimates against scipy and against numbers one can do on paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heedful.analysis.statistics import area, bootstrap, mean_over_seeds, share
from heedful.errors import InputError


def test_wilson_interval_by_hand() -> None:
    """8 of 10: centre (p + z²/2n)/(1 + z²/n), half-width z·√(p(1−p)/n + z²/4n²)/(1 + z²/n)."""
    found = share(8, 10)
    z = 1.959963984540054
    centre, shrink = 0.8 + z**2 / 20, 1 + z**2 / 10
    half = z * np.sqrt(0.8 * 0.2 / 10 + z**2 / 400)
    assert (found.low, found.high) == pytest.approx(((centre - half) / shrink, (centre + half) / shrink), abs=1e-12)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.lists(st.integers(-3, 3), min_size=1, max_size=12))
def test_the_area_is_the_share_of_pairs(higher: list[int], lower: list[int]) -> None:
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a in higher for b in lower]
    assert area(np.array(higher, float), np.array(lower, float)) == pytest.approx(np.mean(pairs), abs=1e-12)


def test_the_bootstrap_interval_of_a_mean_is_near_the_normal_one() -> None:
    sample = np.random.default_rng(1).normal(size=400)
    found = bootstrap(lambda values: float(values.mean()), sample)
    half = 1.96 * sample.std() / 20
    assert found.value == pytest.approx(sample.mean(), abs=1e-12)
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half), abs=0.015)
    assert found == bootstrap(lambda values: float(values.mean()), sample)


def test_the_interval_over_seeds_is_students() -> None:
    values = np.array([0.80, 0.82, 0.81, 0.83, 0.79])
    low, high = stats.t.interval(0.95, 4, loc=values.mean(), scale=stats.sem(values))
    found = mean_over_seeds(values)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert mean_over_seeds(values[:1]).low == 0.80


def test_nothing_gives_no_estimate() -> None:
    with pytest.raises(InputError, match="at least one trial"):
        share(0, 0)
    with pytest.raises(InputError, match="at least one observation"):
        bootstrap(area, np.empty(0), np.ones(1))
