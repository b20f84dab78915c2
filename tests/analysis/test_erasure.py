from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from scipy.stats import entropy

from heedful.analysis import decisions as deciding
from heedful.analysis import erasure
from heedful.analysis.erasure import erase, first_flips, js_divergence, minimum_flips, single_erasure
from heedful.analysis.erasure_loops import each
from heedful.analysis.rankings import RANKINGS, ranked
from heedful.errors import InputError, UnknownName
from heedful.traces import Trace
from tests import strategies
from tests.oracles import erasure as oracle
from tests.oracles.random_traces import SPREADS, dyadic_trace, random_trace, tenths_trace, whole_number_trace
from tests.oracles.reading import Numbers, counts, first, parts

KINDS = [(name, reverse) for name in RANKINGS for reverse in (False, True)]


def orders_of(trace: Trace, name: str, reverse: bool = False) -> list[list[int]]:
    """The order of erasure of every instance, as positions."""
    order = ranked(trace, name, reverse=reverse) - trace.offsets[trace.segments]
    return [part.tolist() for part in order.split(trace.lengths.tolist())]


def divergence(p: Numbers, q: Numbers) -> float:
    return float(entropy(p, (p + q) / 2) + entropy(q, (p + q) / 2)) / 2


@pytest.fixture
def three() -> Trace:
    """α = (½, ¼, ¼), z = (0, s) with s = (4, −4, −2), b = (0, ¼): the logits are (0, ¾), the class is 1.

    Without unit 0 they are (0, −2¾); without 1 and 2: (0, 4¼); without unit 1: (0, 2¼).
    """
    return Trace.from_arrays(
        offsets=[0, 3],
        attention_weights=[0.5, 0.25, 0.25],
        polarity_scores=[[0.0, 4], [0, -4], [0, -2]],
        bias=[0, 0.25],
    )


def test_three_units_by_hand(three: Trace) -> None:
    row = first_flips(three, "attention").iloc[0]
    assert row.to_dict() == {"instance": 0, "units": 3, "erased": 1, "fraction": 1 / 3, "mass": 0.5, "flipped_to": 0}
    never = first_flips(three, "polarity", reverse=True).iloc[0]
    assert never[["erased", "fraction", "mass", "flipped_to"]].isna().all()


def test_erasing_by_hand(three: Trace) -> None:
    np.testing.assert_allclose(erase(three, 0, []), [0, 0.75])
    np.testing.assert_allclose(erase(three, 0, [0]), [0, -2.75])
    np.testing.assert_allclose(erase(three, 0, [1, 2]), [0, 4.25])
    assert erase(three, 0, [0, 1, 2]).tolist() == [0, 0.25]
    with pytest.raises(InputError, match="positions 0 to 2; 3 is none of them"):
        erase(three, 0, [3])


def test_all_erased_is_the_bias() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 1, 3], attention_scores=[0.0, 0, 0], polarity_scores=[[3.0, 0], [3, 0], [4, 0]], bias=[0.0, 1]
    )
    table = first_flips(trace)
    assert table["erased"].tolist() == [1, 2]
    assert table["flipped_to"].tolist() == [1, 1]
    assert table["mass"].tolist() == [1, 1]


def test_remaining_weights_of_zero_count_as_all_erased() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 3], attention_weights=[0.0, 1, 0], polarity_scores=[[9.0, 0], [3, 0], [9, 0]], bias=[0.0, 1]
    )
    assert first(first_flips(trace), "erased", "flipped_to", "mass") == [1, 1, 1.0]
    assert first(first_flips(trace, reverse=True), "erased", "flipped_to") == [3, 1]


def test_a_tie_goes_to_the_lowest_class() -> None:
    """Without unit 0 the classes 0 and 2 both have ½, and without unit 2 only class 2 has more than nothing."""
    z = [[0.0, 0, 2], [0, 0, -1], [1, 0, 2]]
    trace = Trace.from_arrays(offsets=[0, 3], attention_weights=[0.5, 0.25, 0.25], polarity_scores=z, bias=[0, 0, 0])
    assert first(first_flips(trace, "attention"), "erased", "flipped_to") == [1, 0]
    assert first(first_flips(trace, "attention", reverse=True), "erased", "flipped_to") == [3, 0]


@pytest.mark.parametrize("tenths", [(1, 2, 3), (3, 2, 1)])
def test_of_classes_that_are_equally_far_ahead_the_first_wins_however_sums_are_rounded(tenths: tuple[int, ...]) -> None:
    """.1 + .2 + .3 and .3 + .2 + .1 are the same numbers, and not the same sum in floating point."""
    z = [[9.0, 0, 0], *([0.0, one / 10, other / 10] for one, other in zip(tenths, tenths[::-1], strict=True))]
    trace = Trace.from_arrays(offsets=[0, 4], attention_weights=[0.25] * 4, polarity_scores=z, bias=[0, 0, 0])
    assert first(first_flips(trace, "attention"), "erased", "flipped_to") == [1, 1]
    assert first(minimum_flips(trace), "erased", "flipped_to") == [1, 1]


@pytest.mark.parametrize("start", range(0, 2_000, 50))
def test_flips_are_those_of_the_literal_loop(start: int) -> None:
    """2,000 traces of two instances: eight spreads of scores, 2 to 10 classes, ties, one unit alone.

    Every ranking on all of them, and on a quarter of each spread reversed. None needs less than the minimum.
    """
    for seed in range(start, start + 50):
        trace = random_trace(seed, instances=2, longest=11)
        smallest = counts(minimum_flips(trace))
        for name, reverse in KINDS[::2] if seed // len(SPREADS) % 4 else KINDS:
            table = first_flips(trace, name, reverse=reverse)
            for t, order in enumerate(orders_of(trace, name, reverse)):
                expected = oracle.first_flip(*parts(trace, t), order)
                found = None if pd.isna(table["erased"][t]) else (table["erased"][t], table["flipped_to"][t])
                assert found == expected, (seed, name, reverse, t)
                least = smallest[t]
                assert found is None or (least is not None and least <= found[0]), (seed, name, reverse, t)


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("make", [dyadic_trace, tenths_trace])
def test_ties_and_what_rounding_makes_of_them_are_exact(seed: int, make: Callable[..., Trace]) -> None:
    trace = make(seed, instances=20, longest=7)
    for name, reverse in KINDS[seed % 2 :: 2]:
        table = first_flips(trace, name, reverse=reverse)
        found, after = counts(table), table["flipped_to"]
        for t, order in enumerate(orders_of(trace, name, reverse)):
            weights = trace.attention_weights[trace.instance(t)].numpy()
            _, polarity, bias = parts(trace, t)
            count = oracle.first_flip_by(oracle.fraction_decision, weights, polarity, bias, order)
            assert found[t] == count
            if count is not None:  # of two classes that are equally far ahead it is the first
                assert after[t] == oracle.fraction_decision(weights, polarity, bias, order[:count])


@pytest.mark.parametrize("seed", range(6))
def test_ties_are_exact_where_weights_underflow(seed: int) -> None:
    trace = whole_number_trace(seed, instances=12, longest=6)
    for name in RANKINGS:
        found = counts(first_flips(trace, name))
        for t, order in enumerate(orders_of(trace, name)):
            assert found[t] == oracle.first_flip_by(oracle.decimal_decision, *parts(trace, t), order)


@pytest.mark.parametrize("seed", [2, 5, 7])
def test_long_and_short_instances_stand_side_by_side(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = np.concatenate([[200, 1, 1], rng.integers(1, 40, 15), [90]])
    units = int(lengths.sum())
    trace = Trace.from_arrays(
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        attention_scores=rng.normal(size=units) * [1.0, 100.0, 300.0][seed % 3],
        polarity_scores=rng.normal([0.2, 0, 0], size=(units, 3)),
        bias=[0.1, 0.2, 0.0],
    )
    for name in ("attention", "random"):
        found = counts(first_flips(trace, name))
        for t, order in enumerate(orders_of(trace, name)):
            expected = oracle.first_flip(*parts(trace, t), order)
            assert found[t] == (None if expected is None else expected[0])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("make", [random_trace, dyadic_trace, tenths_trace, whole_number_trace])
def test_whole_numbers_decide_as_floating_point_does(
    seed: int, make: Callable[..., Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything in doubt goes the exact way; the tables stay the same."""
    trace, same = (make(seed, instances=20, longest=9) for _ in range(2))
    expected = [first_flips(trace, name) for name in RANKINGS]
    monkeypatch.setattr(erasure, "rounding", lambda lengths: lengths.double() + 1e6)
    for name, table in zip(RANKINGS, expected, strict=True):
        pd.testing.assert_frame_equal(first_flips(same, name), table)


@pytest.mark.parametrize("seed", range(10))
def test_weights_as_powers_decide_as_weights_do(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instances whose weights are said to underflow go the way of mantissas and exponents."""
    trace, same = (random_trace(seed, instances=20, longest=12, spread=3.0) for _ in range(2))
    expected = [first_flips(trace, name) for name in RANKINGS]
    monkeypatch.setattr(deciding, "LARGEST_SPAN", 0.0)
    for name, table in zip(RANKINGS, expected, strict=True):
        pd.testing.assert_frame_equal(first_flips(same, name), table)


@pytest.mark.parametrize("size", [1e-280, 1e-30, 1e30, 1e280])
def test_polarity_scores_of_any_size_decide_alike(size: float) -> None:
    trace = random_trace(1, instances=30, longest=12, spread=2.0)
    sized = Trace.from_arrays(
        offsets=trace.offsets,
        attention_scores=trace.attention_scores,
        polarity_scores=trace.polarity_scores * size,
        bias=trace.bias * size,
    )
    for name in ("attention", "margin", "polarity"):
        assert counts(first_flips(trace, name)) == counts(first_flips(sized, name))
    assert counts(minimum_flips(trace)) == counts(minimum_flips(sized))


@given(seed=strategies.seeds, shift=strategies.score(500), spread=strategies.one_of(0.5, 20.0, 900.0))
@settings(max_examples=25, deadline=None)
def test_adding_a_constant_to_the_scores_changes_nothing(seed: int, shift: float, spread: float) -> None:
    trace = random_trace(seed, instances=5, longest=9, spread=spread)
    moved = Trace.from_arrays(
        offsets=trace.offsets,
        attention_scores=trace.attention_scores + round(shift * 64) / 64,
        polarity_scores=trace.polarity_scores,
        bias=trace.bias,
    )
    for name in ("attention", "random", "polarity"):
        assert counts(first_flips(trace, name)) == counts(first_flips(moved, name))


@given(seed=strategies.seeds)
@settings(max_examples=12, deadline=None)
def test_batched_equals_single(seed: int) -> None:
    trace = random_trace(seed, instances=5, longest=12)
    for name in ("attention", "gradient", "margin"):
        table = first_flips(trace, name)
        for t in range(len(trace)):
            where = trace.instance(t)
            alone = Trace.from_arrays(
                offsets=[0, int(trace.lengths[t])],
                attention_scores=trace.attention_scores[where],
                polarity_scores=trace.polarity_scores[where],
                bias=trace.bias,
            )
            pd.testing.assert_frame_equal(
                first_flips(alone, name), table[t : t + 1].reset_index(drop=True).assign(instance=0)
            )


@given(seed=strategies.seeds)
@settings(max_examples=30, deadline=None)
def test_mass_and_fraction_belong_to_the_erased_units(seed: int) -> None:
    trace = random_trace(seed, instances=6, longest=12)
    table, orders = first_flips(trace, "attention"), orders_of(trace, "attention")
    for t, erased in enumerate(counts(table)):
        if erased is not None:
            order = orders[t][:erased]
            assert table["fraction"][t] == erased / int(trace.lengths[t])
            assert table["mass"][t] == pytest.approx(
                float(trace.attention_weights[trace.instance(t)][order].sum()), abs=1e-12
            )


def test_several_random_orders_stand_one_below_the_other() -> None:
    trace = random_trace(2, instances=30, longest=12)
    table = first_flips(trace, "random", seed=4, orders=3)
    assert table["order"].tolist() == [0] * 30 + [1] * 30 + [2] * 30
    pd.testing.assert_frame_equal(table[:30].drop(columns="order"), first_flips(trace, "random", seed=4))
    assert counts(table[:30]) != counts(table[30:60])
    assert "order" not in first_flips(trace, "random")


def test_several_orders_of_a_fixed_ranking_are_refused(three: Trace) -> None:
    with pytest.raises(InputError, match="orders must be 1, or more for a random ranking; got 2 for 'attention'"):
        first_flips(three, orders=2)
    with pytest.raises(UnknownName):
        first_flips(three, "attentoin")


def test_columns_and_types(three: Trace) -> None:
    table = first_flips(three)
    assert list(table) == ["instance", "units", "erased", "fraction", "mass", "flipped_to"]
    assert str(table["erased"].dtype) == str(table["flipped_to"].dtype) == "Int64"
    assert list(single_erasure(three)) == [
        "instance",
        "top_position",
        "random_position",
        "delta_weight",
        "js_top",
        "js_random",
        "delta_js",
        "flip_top",
        "flip_random",
    ]


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("by", ["attention", "gradient", "product"])
def test_single_erasures_are_those_of_plain_erasure(seed: int, by: str) -> None:
    trace = random_trace(seed, instances=12, longest=8)
    table = single_erasure(trace, by, seed=seed)
    orders = orders_of(trace, by)
    for t, row in enumerate(table.to_dict("records")):
        p, top = trace.probabilities[t].numpy(), orders[t][0]
        assert row["top_position"] == top
        found = {"top": (top, row["js_top"], row["flip_top"])}
        if int(trace.lengths[t]) > 1:
            found["random"] = (int(row["random_position"]), row["js_random"], row["flip_random"])
        for position, js, flip in found.values():
            q = erase(trace, t, [position]).softmax(0).numpy()
            assert js == pytest.approx(divergence(p, q), abs=1e-10)
            assert flip == (oracle.decision(*parts(trace, t), [position]) != int(trace.predictions[t]))
        if "random" in found:
            weights = trace.attention_weights[trace.instance(t)]
            assert row["delta_js"] == row["js_top"] - row["js_random"]
            assert row["delta_weight"] == float(weights[top] - weights[found["random"][0]])


def test_a_single_unit_has_no_other() -> None:
    trace = Trace.from_arrays(offsets=[0, 1], attention_scores=[0.0], polarity_scores=[[0.0, 2]], bias=[1.0, 0])
    row = single_erasure(trace).iloc[0]
    assert row[["random_position", "flip_random"]].isna().all()
    assert np.isnan([row["js_random"], row["delta_js"], row["delta_weight"]]).all()
    assert row["flip_top"]
    assert row["js_top"] > 0


def test_the_other_unit_is_uniform_over_all_but_the_top() -> None:
    rng = np.random.default_rng(0)
    trace = Trace.from_arrays(
        offsets=np.arange(4001) * 4,
        attention_scores=rng.normal(size=16000),
        polarity_scores=rng.normal(size=(16000, 2)),
        bias=[0, 0],
    )
    table = single_erasure(trace, seed=5)
    assert (table["top_position"] != table["random_position"]).all()
    counted = table.groupby(["top_position", "random_position"]).size()
    assert len(counted) == 12
    assert abs(counted - 4000 / 12).max() < 80
    assert not table.equals(single_erasure(trace, seed=6))


def test_divergence_of_nearly_equal_distributions_keeps_its_digits() -> None:
    p = torch.tensor([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [0.3, 0.7]], dtype=torch.float64)
    step = 2.0**-30
    q = torch.tensor([[0.5 + step, 0.5 - step], [0.5, 0.5], [0.0, 1.0], [0.7, 0.3]], dtype=torch.float64)
    expected = [step**2 / 2, 0, np.log(2), divergence(p[3].numpy(), q[3].numpy())]
    np.testing.assert_allclose(js_divergence(p, q), expected, rtol=1e-9, atol=0)


def test_threads_are_given_back(three: Trace) -> None:
    before = torch.get_num_threads()
    first_flips(three)
    assert torch.get_num_threads() == before


def test_work_within_work_does_not_wait_for_itself() -> None:
    """Every thread has parts that ask for threads in turn; they are done where they are."""
    nested = each(lambda part: each(lambda inner: 10 * part + inner, [1, 2, 3]), list(range(64)))
    assert nested == [[10 * part + 1, 10 * part + 2, 10 * part + 3] for part in range(64)]
