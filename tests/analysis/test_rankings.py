from fractions import Fraction

import numpy as np
import pytest
import torch

from heedful.analysis.rankings import RANKINGS, importance, ranked, ranking
from heedful.errors import UnknownName
from heedful.traces import Trace
from tests.covering import covers
from tests.oracles import erasure as oracle
from tests.oracles import rankings as formulas
from tests.oracles.random_traces import random_trace

SEEDS = range(24)


@pytest.fixture
def three() -> Trace:
    """α = (½, ¼, ¼), z = (0, s) with s = (4, −4, 8), b = 0: the logits are (0, 3)."""
    return Trace.from_arrays(
        offsets=[0, 3], attention_weights=[0.5, 0.25, 0.25], polarity_scores=[4.0, -4.0, 8.0], bias=[0.0]
    )


def positions(trace: Trace, order: torch.Tensor) -> list[list[int]]:
    return [(order[trace.instance(t)] - trace.offsets[t]).tolist() for t in range(len(trace))]


@covers(ranking=("attention", "gradient", "product", "polarity", "margin"))
def test_three_units_by_hand(three: Trace) -> None:
    p = 1 / (1 + np.exp(-3.0))
    expected = {
        "attention": [0.5, 0.25, 0.25],
        "gradient": [4 * p * (1 - p), -4 * p * (1 - p), 8 * p * (1 - p)],
        "product": [2 * p * (1 - p), -p * (1 - p), 2 * p * (1 - p)],
        "polarity": [4, -4, 8],
        "margin": [2, -1, 2],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(importance(three, name), values, rtol=1e-14)


def test_ties_go_by_position_also_in_reverse(three: Trace) -> None:
    assert ranked(three, "attention").tolist() == [0, 1, 2]
    assert ranked(three, "margin").tolist() == [0, 2, 1]
    assert ranked(three, "attention", reverse=True).tolist() == [1, 2, 0]
    assert ranked(three, "margin", reverse=True).tolist() == [1, 0, 2]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_gradient_is_that_of_autograd(seed: int) -> None:
    trace = random_trace(seed, instances=10, longest=9)
    found, product = importance(trace, "gradient"), importance(trace, "product")
    for t in range(len(trace)):
        where = trace.instance(t)
        weights = trace.attention_weights[where]
        expected = formulas.attention_gradient(weights, trace.polarity_scores[where], trace.bias)
        torch.testing.assert_close(found[where], expected, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(product[where], expected * weights, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_polarity_and_margin_are_the_formulas(seed: int) -> None:
    trace = random_trace(seed, instances=10, longest=9, spread=2.0)
    polarity, margin = importance(trace, "polarity"), importance(trace, "margin")
    for t in range(len(trace)):
        where = trace.instance(t)
        z, weights = trace.polarity_scores[where].tolist(), trace.attention_weights[where].tolist()
        np.testing.assert_allclose(
            polarity[where], formulas.polarity_importance(z, int(trace.predictions[t])), atol=1e-12
        )
        np.testing.assert_allclose(
            margin[where], formulas.margin_importance(weights, z, trace.bias.tolist()), atol=1e-12
        )


@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_order_is_descending_within_instances_with_ties_by_position(name: str, seed: int) -> None:
    trace = random_trace(seed, instances=60, longest=30)
    values = importance(trace, name)
    found = positions(trace, ranked(trace, name))
    assert found == [oracle.ranked(values[trace.instance(t)].tolist()) for t in range(len(trace))]
    backwards = positions(trace, ranked(trace, name, reverse=True))
    assert backwards == [oracle.ranked((-values[trace.instance(t)]).tolist()) for t in range(len(trace))]


@pytest.mark.parametrize("classes", [2, 3, 5, 8, 10, 16, 17])
@pytest.mark.parametrize("name", ["attention", "gradient", "product", "polarity", "margin"])
def test_equal_units_tie_exactly(name: str, classes: int) -> None:
    rng = np.random.default_rng(classes)
    tokens = rng.integers(0, 7, 301)
    trace = Trace.from_arrays(
        offsets=[0, 301],
        attention_scores=rng.normal(size=7)[tokens],
        polarity_scores=rng.normal(size=(7, classes))[tokens],
        bias=rng.normal(size=classes),
    )
    assert len(importance(trace, name).unique()) == 7


def test_underflowing_weights_are_still_told_apart() -> None:
    scores = [-3000.0, -2000.0, -1000.0, 0.0]
    trace = Trace.from_arrays(
        offsets=[0, 4], attention_scores=scores, polarity_scores=[[0.0, -1], [0, 1], [0, 1], [0, 1]], bias=[0.0, 0.1]
    )
    assert importance(trace, "attention")[:3].tolist() == [0, 0, 0]
    assert ranked(trace, "attention").tolist() == [3, 2, 1, 0]
    assert ranked(trace, "margin").tolist() == [3, 2, 1, 0]
    assert ranked(trace, "product").tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize("mask", [-1e20, float(np.finfo(np.float32).min), -1e308, -np.inf])
@pytest.mark.parametrize("name", ["attention", "gradient", "product", "margin"])
def test_a_score_that_masks_leaves_the_order_of_the_others(name: str, mask: float) -> None:
    """Whatever stands for minus infinity, in an instance of its own or beside others that are wide."""
    scores = [0.0, 1.0, 2.0, mask, 0.0, -700.0, -650.0]
    trace = Trace.from_arrays(
        offsets=[0, 4, 7], attention_scores=scores, polarity_scores=[[0, 1.0], [0, 2], [0, 3], [0, 1]] + [[0, 1.0]] * 3,
        bias=[0, 0.0],
    )  # fmt: skip
    expected = [4, 5, 6] if name == "gradient" else [4, 6, 5]
    assert ranked(trace, name).tolist()[:3] == [2, 1, 0]
    assert ranked(trace, name).tolist()[4:] == expected


def test_the_gradient_ranks_units_of_a_decision_that_is_beyond_doubt() -> None:
    """exp(−800) is no double: all gradients are zero, and yet they are not equal."""
    trace = Trace.from_arrays(
        offsets=[0, 3], attention_weights=[0.25, 0.25, 0.5], bias=[0.0, 0],
        polarity_scores=[[0, 700.0], [0, 900], [0, 800]],
    )  # fmt: skip
    assert importance(trace, "gradient").tolist() == [0, 0, 0]
    assert ranked(trace, "gradient").tolist() == [1, 2, 0]
    assert ranked(trace, "product").tolist() == [2, 1, 0]


def test_importances_that_differ_in_the_last_bit_are_told_apart() -> None:
    quarter = np.array([0.25, np.nextafter(0.25, 1), 0.25, np.nextafter(0.25, 0)])
    trace = Trace.from_arrays(
        offsets=[0, 4, 8], attention_weights=np.tile(quarter, 2), polarity_scores=np.ones((8, 2)), bias=[0.0, 0]
    )
    assert ranked(trace, "attention").tolist() == [1, 0, 2, 3, 5, 4, 6, 7]
    assert ranked(trace, "attention", reverse=True).tolist() == [3, 0, 2, 1, 7, 4, 6, 5]


def test_margins_that_rounding_makes_equal_are_told_apart() -> None:
    """The double nearest 1/12 is less than it, so that three times it is less than ¼; unit 0 has no weight."""
    twelfth = 1 / 12
    trace = Trace.from_arrays(
        offsets=[0, 4], attention_weights=[0.0, twelfth, 0.25, 1 - twelfth - 0.25], bias=[0.0, 0],
        polarity_scores=[[0.0, 9], [0, 3], [0, 1], [0, -0.5]],
    )  # fmt: skip
    assert Fraction(twelfth) * 3 < Fraction(1, 4)
    assert importance(trace, "margin")[1] == importance(trace, "margin")[2]
    assert ranked(trace, "margin").tolist() == [2, 1, 3, 0]


def test_random_orders_follow_from_the_seed_and_differ() -> None:
    trace = random_trace(1, instances=50, longest=20)
    first = ranked(trace, "random", seed=3)
    assert torch.equal(first, ranked(trace, "random", seed=3))
    assert not torch.equal(first, ranked(trace, "random", seed=4))
    assert not torch.equal(first, ranked(trace, "random", seed=3, order=1))
    assert torch.equal(first.sort().values, torch.arange(len(first)))


@covers(ranking=("random",))
def test_random_orders_are_uniform() -> None:
    trace = Trace.from_arrays(
        offsets=np.arange(6001) * 3, attention_scores=np.zeros(18000), polarity_scores=np.zeros((18000, 2)), bias=[0, 0]
    )
    orders = np.array(positions(trace, ranked(trace, "random")))
    counts = np.unique(orders @ [9, 3, 1], return_counts=True)[1]
    assert len(counts) == 6
    assert abs(counts - 1000).max() < 120


def test_an_unknown_ranking_is_answered_with_the_known_ones(three: Trace) -> None:
    with pytest.raises(UnknownName, match=r"no ranking 'atention'\. Did you mean 'attention'"):
        ranked(three, "atention")


def test_a_ranking_itself_is_accepted(three: Trace) -> None:
    assert ranking(RANKINGS["margin"]) is RANKINGS["margin"]
    assert ranked(three, RANKINGS["margin"]).tolist() == ranked(three, "margin").tolist()
