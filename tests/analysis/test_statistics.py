"""Estimates against scipy and against numbers one can do on paper."""

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from heedful.analysis.statistics import (
    area,
    area_estimate,
    bootstrap,
    bounded_mean,
    mean_over_seeds,
    means_over_instances,
    paired_difference,
    share,
)
from heedful.errors import InputError
from tests import strategies


def test_wilson_interval_by_hand() -> None:
    """8 of 10: centre (p + z²/2n)/(1 + z²/n), half-width z·√(p(1−p)/n + z²/4n²)/(1 + z²/n)."""
    found = share(8, 10)
    z = 1.959963984540054
    centre, shrink = 0.8 + z**2 / 20, 1 + z**2 / 10
    half = z * np.sqrt(0.8 * 0.2 / 10 + z**2 / 400)
    assert (found.low, found.high) == pytest.approx(((centre - half) / shrink, (centre + half) / shrink), abs=1e-12)


def test_an_interval_can_be_had_at_another_level() -> None:
    """At the level of a standard normal's central 1 − 2·Φ(−3), Wilson's and Student's intervals have z = 3."""
    level = 1 - 2 * float(stats.norm.cdf(-3.0))
    found = share(8, 10, level=level)
    half = 3 * np.sqrt(0.8 * 0.2 / 10 + 9 / 400)
    assert (found.low, found.high) == pytest.approx(((0.8 + 9 / 20 - half) / 1.9, (0.8 + 9 / 20 + half) / 1.9))
    values = np.array([1.0, 2.0, 6.0])
    low, high = stats.t.interval(0.99, 2, loc=3.0, scale=stats.sem(values))
    found = mean_over_seeds(values, level=0.99)
    assert (found.low, found.high) == pytest.approx((low, high))
    sample = np.arange(10.0)
    narrow, wide = (bootstrap(lambda part: float(part.mean()), sample, level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < 4.5 < narrow.high < wide.high


@pytest.mark.parametrize(("gained", "lost", "one_sided"), [(5, 0, False), (6, 0, True), (8, 1, True), (8, 2, False)])
def test_a_paired_difference_leaves_out_zero_only_where_the_sign_test_rejects(
    gained: int, lost: int, one_sided: bool
) -> None:
    found, mirrored = (paired_difference(gained=g, lost=m, pairs=100) for g, m in ((gained, lost), (lost, gained)))
    assert (stats.binomtest(gained, gained + lost).pvalue < 0.05) == one_sided == (found.low > 0)
    assert found.value == (gained - lost) / 100
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))


def test_a_paired_difference_by_hand() -> None:
    """20 and 10 of 98 pairs: p = .21, r = .11, and .1 + 1.96 √((.32 − .01) / 100) exceeds the exact high end.

    The exact low end is smaller: Clopper and Pearson's of 20 in 30 is a quantile of the beta distribution (20, 11).
    """
    found = paired_difference(gained=20, lost=10, pairs=98)
    high = 0.1 + 1.959963985 * np.sqrt(0.31 / 100)
    low = 30 / 98 * (2 * stats.beta.ppf(0.025, 20, 11) - 1)
    assert (found.low, found.high) == pytest.approx((low, high))
    nothing = paired_difference(gained=0, lost=0, pairs=98)
    assert (nothing.value, nothing.high, nothing.low) == pytest.approx(
        (0, 1.96 * 0.02**0.5 / 10, -nothing.high), abs=1e-5
    )
    with pytest.raises(InputError, match="3 and 2 of 4"):
        paired_difference(gained=3, lost=2, pairs=4)


@pytest.mark.parametrize(("pairs", "gains", "losses"), [(10, 0.3, 0.1), (20, 0.2, 0.2)])
def test_the_interval_of_a_paired_difference_covers_the_truth(pairs: int, gains: float, losses: float) -> None:
    """Summed over everything that may be drawn."""
    covered = 0.0
    for gained in range(pairs + 1):
        for lost in range(pairs + 1 - gained):
            found = paired_difference(gained=gained, lost=lost, pairs=pairs)
            drawn = stats.multinomial.pmf(
                [gained, lost, pairs - gained - lost], pairs, [gains, losses, 1 - gains - losses]
            )
            covered += drawn * (found.low - 1e-12 <= gains - losses <= found.high + 1e-12)
    assert 0.95 <= covered < 0.99


@given(strategies.sample, strategies.sample)
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


def test_each_sample_of_a_bootstrap_has_draws_of_its_own() -> None:
    """The difference of two means of the same 400 numbers: ± 1.96 √(2 s² / n); with one draw for both it is a point."""
    sample = np.random.default_rng(2).normal(size=400)
    found = bootstrap(lambda one, other: float(one.mean() - other.mean()), sample, sample)
    half = 1.96 * sample.std() * np.sqrt(2 / 400)
    assert found.value == 0
    assert (found.low, found.high) == pytest.approx((-half, half), abs=0.02)


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


def test_an_area_without_its_floor_has_the_interval_of_its_resamples() -> None:
    """Wide data with many ties: the resamples' interval is the wider one, and it is that of the slow bootstrap."""
    rng = np.random.default_rng(1)
    high, low = (np.repeat(rng.integers(0, 2, size), 8).astype(float) for size in (4, 5))
    found, slow = area_estimate(high, low), bootstrap(area, high, low)
    assert found.value == slow.value == area(high, low)
    assert found.low <= slow.low
    assert found.high >= slow.high
    assert (found.count, found.groups) == (len(high) + len(low), (len(high), len(low)))


def values(count: int, first: int = 0) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.float64)


def test_a_perfect_area_is_no_certainty() -> None:
    """Newcombe's low end θ: (1 − θ)² = z² θ (1 − θ) / (n m) · [1 + ((n + m)/2 − 1)((1 − θ)/(2 − θ) + θ/(1 + θ))]."""
    for n, m in ((10, 10), (116, 1), (100, 329)):
        found = area_estimate(values(n, 1000), values(m))
        theta = found.low
        assert (found.value, found.high) == (1.0, 1.0)
        spread = 1 + ((n + m) / 2 - 1) * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        assert (1 - theta) ** 2 == pytest.approx(1.959963984540054**2 * theta * (1 - theta) / (n * m) * spread)
    assert area_estimate(values(10, 1000), values(10)).low == pytest.approx(0.8002, abs=1e-4)
    mirrored = area_estimate(values(10), values(10, 1000))
    assert (mirrored.value, mirrored.low) == (0.0, 0.0)
    assert mirrored.high == pytest.approx(1 - 0.8002, abs=1e-4)


def test_an_area_covers_the_truth_as_often_as_it_says() -> None:
    """Normal values a standard deviation apart: the area is Φ(1/√2). 300 samples of 15 and 25."""
    truth = float(stats.norm.cdf(1 / np.sqrt(2)))
    rng = np.random.default_rng(0)
    found = [area_estimate(rng.normal(1, 1, 15), rng.normal(0, 1, 25)) for _ in range(300)]
    covered = np.mean([one.low <= truth <= one.high for one in found])
    assert 0.93 <= covered <= 0.99


def test_a_side_without_values_has_no_area() -> None:
    found = area_estimate(np.array([1.0]), np.array([]))
    assert np.isnan(found.value)
    assert found.sides == (1, 0)


def test_equal_values_have_a_mean_but_no_certainty() -> None:
    found = bounded_mean(np.full(20, 0.25), low=0.0, high=1.0)
    assert (found.value, found.count) == (0.25, 20)
    assert found.low < 0.25 < found.high
    many = bounded_mean(np.full(2000, 0.25), low=0.0, high=1.0)
    assert many.high - many.low < (found.high - found.low) / 20


def test_means_of_many_rows_over_the_same_resamples() -> None:
    """As one by one; values that are all alike are no certainty where there are bounds; what is missing is left out."""
    rng = np.random.default_rng(0)
    values = np.stack([rng.random(50), np.full(50, 1.0), np.full(50, np.nan), rng.normal(size=50)])
    values[3, 40:] = np.nan
    ends = np.array([[0, 1], [0, 1], [0, 1], [np.nan, 1]], dtype=np.float64)
    found = means_over_instances(values, ends)
    assert [one.count for one in found] == [50, 50, 0, 40]
    assert found[0].value == pytest.approx(values[0].mean())
    assert found[3].value == pytest.approx(values[3, :40].mean())
    alone = bounded_mean(values[0], low=0.0, high=1.0)
    assert (found[0].low, found[0].high) == pytest.approx((alone.low, alone.high), abs=0.02)
    assert found[1].low < 1 == found[1].value == found[1].high
    assert not found[2].known
    assert found[3].low < found[3].value < found[3].high
    again = means_over_instances(np.stack([values[0], values[0] + 1]), np.full((2, 2), np.nan), seed=3)
    assert again[1].low - again[0].low == pytest.approx(1)


def test_intervals_of_means_over_instances_are_those_of_the_level() -> None:
    """± z s / √n of 400 normal numbers: z is 1.96 at 95 % and 2.58 at 99 %."""
    sample = np.random.default_rng(5).normal(size=(1, 400))
    for level, z in ((0.95, 1.960), (0.99, 2.576)):
        (found,) = means_over_instances(sample, np.full((1, 2), np.nan), resamples=4000, level=level)
        half = z * sample.std() / 20
        assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half), abs=0.012)


def test_the_chance_of_one_resample_is_enough_for_an_interval() -> None:
    values, ends = np.array([[1.0, 2.0, 6.0]]), np.array([[0.0, 10.0]])
    (found,) = means_over_instances(values, ends, resamples=1)
    assert found.low <= found.value == 3.0 <= found.high
