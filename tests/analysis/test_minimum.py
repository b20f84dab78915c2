from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from heedful.analysis import decisions as deciding
from heedful.analysis import erasure
from heedful.analysis.erasure import first_flips, minimum_flips, verify_flip
from heedful.analysis.rankings import RANKINGS
from heedful.errors import InputError
from heedful.traces import Trace
from tests import strategies
from tests.oracles import erasure as oracle
from tests.oracles.random_traces import SPREADS, dyadic_trace, random_trace, tenths_trace, whole_number_trace
from tests.oracles.reading import counts, first, parts


def assert_never_larger_than_any_ranking(trace: Trace) -> None:
    smallest = minimum_flips(trace)["erased"].fillna(10**6)
    for name, reverse in product(RANKINGS, (False, True)):
        assert (smallest <= first_flips(trace, name, reverse=reverse)["erased"].fillna(10**6)).all()


def test_three_units_by_hand() -> None:
    """Contributions (2, −¾, ⅝)/… : the class is 1 by unit 0 alone; without it the rest says 0."""
    trace = Trace.from_arrays(
        offsets=[0, 3], attention_weights=[0.25, 0.5, 0.25], polarity_scores=[[0.0, 9], [0, -2], [0, 1]], bias=[0, 0]
    )
    table = minimum_flips(trace)
    assert table.to_dict("records")[0] == {"instance": 0, "units": 3, "erased": 1, "positions": [0], "flipped_to": 0}
    assert list(table) == ["instance", "units", "erased", "positions", "flipped_to"]
    assert str(table["erased"].dtype) == "Int64"


def test_the_class_after_the_erasure_is_not_the_one_that_was_sought() -> None:
    """Without unit 0 class 1 is ahead of 0 by 1, and class 2 by 5."""
    z = [[9.0, 0, 0], [0, 1, 5]]
    trace = Trace.from_arrays(offsets=[0, 2], attention_weights=[0.5, 0.5], polarity_scores=z, bias=[0, 0, 0])
    assert first(minimum_flips(trace), "erased", "flipped_to") == [1, 2]


def test_never_is_null_and_all_erased_is_judged_by_the_bias() -> None:
    def biased(*bias: float) -> Trace:
        z = [[0.0, 2], [0, 3], [0, 1]]
        return Trace.from_arrays(offsets=[0, 2, 3], attention_scores=[0.0, 0, 0], polarity_scores=z, bias=bias)

    never = minimum_flips(biased(0, 0.5))
    assert never["erased"].isna().all()
    assert never["positions"].tolist() == [None, None]
    assert never["flipped_to"].isna().all()
    at_last = minimum_flips(biased(0.5, 0))
    assert at_last["positions"].tolist() == [[0, 1], [0]]
    assert at_last["flipped_to"].tolist() == [0, 0]


def test_units_without_weight_need_not_be_erased() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 3], attention_weights=[0.0, 1, 0], polarity_scores=[[9.0, 0], [3, 0], [9, 0]], bias=[0.0, 1]
    )
    assert minimum_flips(trace)["positions"].tolist() == [[1]]


@pytest.mark.parametrize("start", range(0, 2_000, 50))
def test_the_minimum_is_that_of_all_subsets(start: int) -> None:
    """2,000 traces of two instances, up to ten units in all subsets; a quarter of each spread beside every ranking."""
    for seed in range(start, start + 50):
        trace = random_trace(seed, instances=2, longest=10)
        found = minimum_flips(trace)
        assert counts(found) == [oracle.smallest_flip(*parts(trace, t)) for t in range(len(trace))], seed
        assert verify_flip(trace, found)["holds"].fillna(True).all(), seed
        if seed // len(SPREADS) % 4 == 0:
            assert_never_larger_than_any_ranking(trace)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("make", [dyadic_trace, tenths_trace])
def test_ties_and_what_rounding_makes_of_them_are_exact(seed: int, make: Callable[..., Trace]) -> None:
    trace = make(seed, instances=15, longest=6)
    found = counts(minimum_flips(trace))
    for t in range(len(trace)):
        weights = trace.attention_weights[trace.instance(t)].numpy()
        _, polarity, bias = parts(trace, t)
        assert found[t] == oracle.smallest_flip_by(oracle.fraction_decision, weights, polarity, bias)
    assert verify_flip(trace, minimum_flips(trace))["holds"].fillna(True).all()
    assert_never_larger_than_any_ranking(trace)


@pytest.mark.parametrize("seed", range(6))
def test_ties_are_exact_where_weights_underflow(seed: int) -> None:
    trace = whole_number_trace(seed, instances=12, longest=4)
    found = counts(minimum_flips(trace))
    assert found == [oracle.smallest_flip_by(oracle.decimal_decision, *parts(trace, t)) for t in range(len(trace))]
    assert_never_larger_than_any_ranking(trace)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("make", [random_trace, dyadic_trace, tenths_trace, whole_number_trace])
def test_whole_numbers_find_as_few_as_floating_point(
    seed: int, make: Callable[..., Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, same = (make(seed, instances=20, longest=9) for _ in range(2))
    expected = minimum_flips(trace)
    monkeypatch.setattr(erasure, "rounding", lambda lengths: lengths.double() + 1e6)
    assert counts(minimum_flips(same)) == counts(expected)


@pytest.mark.parametrize("seed", range(10))
def test_weights_as_powers_find_what_weights_do(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trace, same = (random_trace(seed, instances=20, longest=30, spread=3.0) for _ in range(2))
    expected = minimum_flips(trace)
    monkeypatch.setattr(deciding, "LARGEST_SPAN", 0.0)
    pd.testing.assert_frame_equal(minimum_flips(same), expected)


@given(seed=strategies.seeds, spread=strategies.one_of(0.01, 1.0, 30.0, 500.0, 1500.0))
@settings(max_examples=20, deadline=None)
def test_a_minimum_flips_and_nothing_beats_it(seed: int, spread: float) -> None:
    trace = random_trace(seed, instances=8, longest=40, spread=spread)
    table = minimum_flips(trace)
    assert_never_larger_than_any_ranking(trace)
    assert verify_flip(trace, table)["holds"].fillna(True).all()
    for t, positions in enumerate(table["positions"]):
        if positions is not None:
            assert oracle.decision(*parts(trace, t), positions) == table["flipped_to"][t]
            assert positions == sorted(set(positions))


@given(seed=strategies.seeds, thirds=strategies.flags)
@settings(max_examples=20, deadline=None)
def test_no_ranking_beats_it_by_an_accident_of_rounding(seed: int, thirds: bool) -> None:
    """Tenths and thirds: sums that are zero on paper and not in floating point."""
    rng = np.random.default_rng(seed)
    scores = np.zeros(48) if thirds else rng.choice([0.0, np.log(3), np.log(10)], 48)
    trace = Trace.from_arrays(
        offsets=np.arange(9) * 6,
        attention_scores=scores,
        polarity_scores=rng.integers(-3, 4, (48, 3)) / 10,
        bias=rng.integers(-1, 2, 3) / 10,
    )
    assert_never_larger_than_any_ranking(trace)
    assert verify_flip(trace, minimum_flips(trace))["holds"].fillna(True).all()


@given(seed=strategies.seeds, spread=strategies.one_of(0.1, 3.0, 50.0, 1500.0))
@settings(max_examples=20, deadline=None)
def test_the_margin_attains_the_minimum_on_every_binary_instance(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    trace = Trace.from_arrays(
        offsets=np.arange(11) * 12,
        attention_scores=rng.uniform(0, spread, 120),
        polarity_scores=rng.normal(size=(120, 1)),
        bias=rng.normal(size=1),
    )
    assert counts(first_flips(trace, "margin")) == counts(minimum_flips(trace))


@pytest.mark.parametrize("make", [dyadic_trace, tenths_trace, whole_number_trace])
def test_the_margin_attains_the_minimum_of_two_classes_among_ties_and_weights_of_zero(
    make: Callable[..., Trace],
) -> None:
    traces = [trace for seed in range(60) for trace in [make(seed, instances=12, longest=8)] if len(trace.bias) == 2]
    assert len(traces) >= 10
    for trace in traces:
        assert counts(first_flips(trace, "margin")) == counts(minimum_flips(trace))


def test_a_false_certificate_is_seen() -> None:
    trace = random_trace(3, instances=40, longest=12, spread=1.0)
    table = minimum_flips(trace)
    flipped = table["positions"].map(lambda places: places is not None and len(places) > 1)
    shorter = table["positions"].map(lambda places: places[:-1] if places else places)
    assert not verify_flip(trace, table.assign(positions=shorter))["holds"][flipped].any()
    wrong = table.assign(flipped_to=table["flipped_to"] + 1)
    assert not verify_flip(trace, wrong)["holds"].fillna(False).any()
    assert verify_flip(trace, table)["holds"].isna().equals(table["erased"].isna())
    outside = table.assign(positions=table["positions"].map(lambda places: [99] if places else places))
    with pytest.raises(InputError, match="99 is none of them"):
        verify_flip(trace, outside)
