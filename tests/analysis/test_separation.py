"""Areas at equal frequency: by hand, blind to frequency, and as sure as the words allow."""

import numpy as np
import pytest

from heedful.analysis.separation import matched_area
from heedful.analysis.statistics import area


def numbers(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_words_are_compared_within_octaves_of_frequency_by_hand() -> None:
    """At 8 the area is 1 of one pair, at 64 it is 0 of one pair; across the octaves it would be a half."""
    found = matched_area(numbers(2, 5), numbers(1, 9), (numbers(8, 64), numbers(8, 64)))
    assert (found.value, found.sides) == (0.5, (2, 2))
    two = matched_area(numbers(2, 2, 5), numbers(1, 1, 9), (numbers(8, 8, 64), numbers(8, 8, 64)))
    assert two.value == pytest.approx((1 * 1 + 0 * 0.5) / 1.5)  # n m / (n + m) is 1 and ½


def test_octaves_without_a_counterpart_are_joined_to_the_next() -> None:
    found = matched_area(numbers(3, 4), numbers(1, 2), (numbers(240, 250), numbers(120, 121)))
    assert found.sides == (2, 2)
    nobody = matched_area(numbers(3, 4), numbers(1, 2), (numbers(240, 250), numbers(5, 6)))
    assert (nobody.known, nobody.sides) == (False, (0, 0))  # too far apart to compare


@pytest.mark.parametrize("direction", [-1.0, 1.0])
@pytest.mark.parametrize("gap", [0.7, 2.0])
def test_values_that_follow_frequency_alone_have_no_area_of_their_own(direction: float, gap: float) -> None:
    rng = np.random.default_rng(0)
    often, rare = (np.round(np.exp(rng.normal(mean, 1, 800))).astype(np.float64) + 6 for mean in (4 + gap, 4))
    higher, lower = (direction * np.log(counts) + rng.normal(0, 0.3, 800) for counts in (often, rare))
    assert abs(area(higher, lower) - 0.5) > 0.15  # without regard to frequency
    found = matched_area(higher, lower, (often, rare))
    assert found.value == pytest.approx(0.5, abs=0.04)
    assert found.low < 0.5 < found.high


def test_a_line_is_taken_away_even_where_every_polar_word_is_more_frequent() -> None:
    """As on the synthetic corpora, whose polar words are twice as frequent as the neutral ones."""
    rng = np.random.default_rng(1)
    often, rare = np.round(rng.normal(240, 15, 100)), np.round(rng.normal(120, 11, 800))
    noise = rng.normal(0, 0.05, 900)
    follows = matched_area(np.log(often) + noise[:100], np.log(rare) + noise[100:], (often, rare))
    assert follows.value < 0.7
    planted = matched_area(1 + noise[:100], noise[100:], (often, rare))
    assert planted.value > 0.99


def test_values_equal_but_for_rounding_are_equal() -> None:
    often, rare = np.arange(100.0, 200.0), np.arange(10.0, 150.0)
    assert matched_area(0.1 * np.log(often), 0.1 * np.log(rare), (often, rare)).value == 0.5


def test_a_perfect_area_is_no_certainty() -> None:
    counts = np.full(12, 20.0)
    found = matched_area(np.arange(12.0) + 100, np.arange(12.0), (counts, counts))
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0.7 < found.low < 0.95
