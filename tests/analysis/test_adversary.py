import math
from collections.abc import Callable
from inspect import unwrap
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings

from heedful.analysis.adversary import adversarial_attention, told_elsewhere
from heedful.analysis.permutation import permutation_test, searched_attention, weight_divergence
from heedful.errors import InputError
from heedful.traces import Trace
from tests import strategies
from tests.oracles import adversary as oracle

LOG_2 = math.log(2)


def binary(seed: int, *, instances: int, longest: int, spread: float, tenths: bool = False) -> Trace:
    """Two classes; scores spread over so many nats, some units without weight, some copied; a first one of one unit."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, instances)
    lengths[0] = 1
    units = int(lengths.sum())
    scores, polarity = rng.normal(size=units) * spread, rng.normal(size=(units, 2)) * rng.choice([0.3, 3.0])
    copies, sources = rng.random(units) < 0.2, rng.integers(0, units, units)
    scores[copies], polarity[copies] = scores[sources[copies]], polarity[sources[copies]]
    scores[rng.random(units) < 0.1] = -np.inf
    scores[np.cumsum(lengths) - 1] = rng.normal()
    return Trace.from_arrays(
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        attention_scores=scores,
        polarity_scores=np.round(polarity, 1) if tenths else polarity,
        bias=rng.normal(size=2) * rng.choice([0.0, 1.0]),
    )


def classes(seed: int, count: int, *, instances: int, longest: int, spread: float = 1.0) -> Trace:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, instances)
    units = int(lengths.sum())
    return Trace.from_arrays(
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        attention_scores=rng.normal(size=units) * spread,
        polarity_scores=rng.normal(size=(units, count)) * 2,
        bias=rng.normal(size=count),
    )


def test_three_units_by_hand() -> None:
    """Score 0 by units (0, 3, −3). Unit 0 alone has it: overlap g(½, 1) = 1.5 log 1.5 + ½ log 2 = .955; the pair has
    2 g(¼, ½) = 1.5 log 3 − log 2 … = .955: both ln 2 − .955/2."""
    g = 0.5 * math.log(3) + math.log(1.5)
    trace = Trace.from_arrays(offsets=[0, 3], attention_weights=[0.5, 0.25, 0.25], polarity_scores=[0, 3, -3], bias=[0])
    row = adversarial_attention(trace).iloc[0]
    assert row["jsd"] == pytest.approx(LOG_2 - g / 2)
    lone = Trace.from_arrays(offsets=[0, 2], attention_weights=[0.75, 0.25], polarity_scores=[1, 1], bias=[0])
    row = adversarial_attention(lone).iloc[0]
    assert (row["positions"], row["weights"], row["exact"]) == ([1], [1.0], True)
    assert row["jsd"] == pytest.approx(oracle.divergence([0.75, 0.25], [0, 1]))


def test_one_unit_has_no_other_attention() -> None:
    table = adversarial_attention(
        Trace.from_arrays(offsets=[0, 1], attention_scores=[3], polarity_scores=[2], bias=[1])
    )
    assert table.to_dict("records") == [
        {
            "instance": 0, "units": 1, "jsd": 0.0, "jsd_upper": 0.0, "exact": True,
            "support": 1, "positions": [0], "weights": [1.0], "tvd": 0.0,
        }
    ]  # fmt: skip


def test_unattended_units_take_everything_where_they_can() -> None:
    """Weights on units that had none share nothing with the old ones: log 2, and nothing is NaN."""
    weights, z = [0.5, 0.5, 0.0, 0.0], [2, 0, 3, -1]
    trace = Trace.from_arrays(offsets=[0, 4], attention_weights=weights, polarity_scores=z, bias=[0])
    row = adversarial_attention(trace).iloc[0]
    assert row["jsd"] == LOG_2
    assert (row["positions"], row["weights"]) == ([2, 3], [0.5, 0.5])
    assert not adversarial_attention(trace).isna().any(axis=None)


@pytest.mark.parametrize("tenths", [False, True], ids=["drawn", "ties"])
@pytest.mark.parametrize("spread", [0.5, 3.0, 30.0, 400.0])
@pytest.mark.parametrize(("epsilon", "floor", "top"), [(0.0, 0.0, 0), (0.05, 0.0, 0), (0.0, 0.01, 0), (0.01, 0.0, 2)])
def test_two_classes_are_solved_as_by_all_pairs(
    epsilon: float, floor: float, top: int, spread: float, tenths: bool
) -> None:
    trace = binary(round(spread * 10) + tenths, instances=150, longest=12, spread=spread, tenths=tenths)
    table = adversarial_attention(trace, epsilon, floor=floor, without_top=top)
    for row, jsd in zip(table["instance"], table["jsd"], strict=True):
        scores = trace.attention_scores[trace.instance(row)]  # they tell weights apart that underflow
        banned = set(scores.argsort(descending=True, stable=True)[:top].tolist())
        expected = oracle.farthest_of_pairs(trace, row, epsilon, floor=floor, banned=banned)
        assert math.isnan(jsd) if expected is None else jsd == pytest.approx(expected, abs=1e-9), row
    there = table.dropna()
    assert (there["tvd"] <= epsilon + 1e-9).all()
    assert (there["support"] <= 2).all()
    assert there["exact"].all()


def test_what_is_said_of_the_weights_is_true_of_them() -> None:
    trace = binary(3, instances=100, longest=15, spread=2.0)
    for epsilon, floor in ((0.0, 0.0), (0.1, 0.02)):
        table = adversarial_attention(trace, epsilon, floor=floor).dropna()
        assert len(table) > 50
        for row in table.to_dict("records"):
            own = trace.instance(row["instance"])
            weights = torch.full((row["units"],), floor, dtype=torch.float64)
            weights[row["positions"]] = torch.tensor(row["weights"], dtype=torch.float64)
            assert float(weights.sum()) == pytest.approx(1)
            moved = (trace.bias + weights @ trace.polarity_scores[own]).softmax(0)
            tvd = float((moved - trace.probabilities[row["instance"]]).abs().sum() / 2)
            assert row["tvd"] == pytest.approx(tvd, abs=1e-12)
            assert row["jsd"] == pytest.approx(
                oracle.divergence(trace.attention_weights[own].tolist(), weights.tolist()), abs=1e-9
            )


def test_the_most_attended_units_stay_out() -> None:
    trace = binary(4, instances=200, longest=10, spread=1.0)
    table = adversarial_attention(trace, without_top=3).dropna()
    assert 0 < len(table) < 200
    for row in table.to_dict("records"):
        weights = trace.attention_weights[trace.instance(row["instance"])]
        assert not set(row["positions"]) & set(weights.argsort(descending=True, stable=True)[:3].tolist())


@pytest.mark.parametrize("count", [3, 4, 5])
def test_more_classes_are_solved_as_by_all_sets_of_units(count: int) -> None:
    trace = classes(count, count, instances=170, longest=8)
    table = adversarial_attention(trace)
    assert table["exact"].all()
    for row, jsd in zip(table["instance"], table["jsd"], strict=True):
        assert jsd == pytest.approx(oracle.farthest_of_vertices(trace, row), abs=1e-8), row
    assert table["tvd"].max() <= 1e-9


@pytest.mark.parametrize("count", [3, 5])
def test_bounds_hold_the_truth_between_them(count: int) -> None:
    trace = classes(10 + count, count, instances=60, longest=14)
    truth = adversarial_attention(trace)
    assert truth["exact"].all()
    bounded = adversarial_attention(trace, most_vertices=0)
    assert (bounded["jsd"] <= truth["jsd"] + 1e-9).all()
    assert (bounded["jsd_upper"] >= truth["jsd"] - 1e-9).all()
    assert bounded["tvd"].max() <= 1e-9
    assert (truth["jsd"] - bounded["jsd"]).median() == pytest.approx(0, abs=1e-9)


def test_two_classes_and_the_same_two_beside_a_third_that_never_moves_agree() -> None:
    """The third class says the same of every unit: nothing but the first two differ."""
    two = binary(5, instances=60, longest=8, spread=1.0)
    polarity = torch.cat([two.polarity_scores, two.polarity_scores[:, :1]], 1)
    three = Trace.from_arrays(
        offsets=two.offsets,
        attention_scores=two.attention_scores,
        polarity_scores=polarity,
        bias=[*two.bias.tolist(), -3.0],
    )
    assert adversarial_attention(three)["jsd"].to_numpy() == pytest.approx(
        adversarial_attention(two)["jsd"].to_numpy(), abs=1e-9
    )


def test_within_epsilon_more_classes_have_an_interval_that_is_attained() -> None:
    trace = classes(20, 4, instances=40, longest=12)
    still, moving = adversarial_attention(trace), adversarial_attention(trace, 0.05)
    assert (moving["jsd_upper"] >= still["jsd"] - 1e-9).all()
    assert (moving["tvd"] <= 0.05 + 1e-9).all()
    assert (moving["jsd"] <= moving["jsd_upper"]).all()
    assert moving["jsd"].mean() > still["jsd"].mean()


@pytest.mark.parametrize("most_vertices", [0, 20_000])
@pytest.mark.parametrize("count", [3, 6])
def test_rounding_takes_no_answer_away(count: int, most_vertices: int) -> None:
    """All units say the same of two classes, up to rounding: what the weights say of them must not fall outside."""
    drawn = classes(30 + count, count, instances=60, longest=30)
    polarity = drawn.polarity_scores.clone()
    polarity[:, 0] = polarity[:, 1] + 0.3
    trace = Trace.from_arrays(
        offsets=drawn.offsets, attention_scores=drawn.attention_scores, polarity_scores=polarity, bias=drawn.bias
    )
    table = adversarial_attention(trace, most_vertices=most_vertices)
    assert table["jsd"].notna().all()
    assert table["tvd"].max() <= 1e-9


def test_of_more_classes_other_weights_within_epsilon_are_found_beyond_the_sure_ones() -> None:
    """Without unit 0 there is unit 1 alone: half and half says (.98, .01, .01), it alone (.8, .1, .1), .18 away. Log
    odds move by 2.5, far more than what is within .3 for certain."""
    before, after = np.log([0.98, 0.01, 0.01]), np.log([0.8, 0.1, 0.1])
    trace = Trace.from_arrays(
        offsets=[0, 2], attention_weights=[0.5, 0.5], polarity_scores=[2 * before - after, after], bias=[0, 0, 0]
    )
    row = adversarial_attention(trace, 0.3, without_top=1).iloc[0]
    assert (row["positions"], row["weights"], row["exact"]) == ([1], [1.0], True)
    assert row["tvd"] == pytest.approx(0.18)
    assert row["jsd"] == pytest.approx(oracle.divergence([0.5, 0.5], [0, 1]))
    gone = adversarial_attention(trace, 0.05, without_top=1).iloc[0]
    assert gone[["jsd", "jsd_upper", "exact", "tvd"]].isna().all()


@pytest.mark.parametrize("count", [3, 5])
def test_of_more_classes_none_are_said_not_to_exist_that_do(count: int) -> None:
    """Every unit alone, and even shares of two, are tried: what is within ε is neither denied nor above the bound."""
    trace = classes(40 + count, count, instances=80, longest=8)
    table = adversarial_attention(trace, 0.3, without_top=2)
    found = 0
    for row in range(len(trace)):
        own, weights = trace.instance(row), trace.attention_weights[trace.instance(row)]
        usable = weights.argsort(descending=True, stable=True)[2:].tolist()
        for pair in [(i, j) for i in usable for j in usable]:
            other = torch.zeros_like(weights).index_add_(0, torch.tensor(pair), torch.full((2,), 0.5).double())
            moved = (trace.bias + other @ trace.polarity_scores[own]).softmax(0)
            if float((moved - trace.probabilities[row]).abs().sum() / 2) <= 0.3:
                found += 1
                assert table["jsd_upper"][row] >= oracle.divergence(weights.tolist(), other.tolist()) - 1e-9
    assert found > 20
    assert (table["jsd"].isna() & table["jsd_upper"].notna()).any()
    assert not table["exact"][table["jsd"].isna() & table["jsd_upper"].notna()].any()
    assert table["exact"][table["jsd_upper"].isna()].isna().all()


@pytest.mark.parametrize("count", [2, 3])
def test_least_weights_that_leave_nothing_to_share_leave_no_other_weights(count: int) -> None:
    """Three thirds are one only up to rounding."""
    polarity = np.arange(3.0 * count).reshape(3, count) ** 2
    trace = Trace.from_arrays(
        offsets=[0, 3], attention_weights=[0.2, 0.3, 0.5], polarity_scores=polarity, bias=[0] * count
    )
    for floor in (1 / 3, 0.33333333, 0.4):
        row = adversarial_attention(trace, 0.01, floor=floor).iloc[0]
        assert row[["jsd", "jsd_upper", "exact", "tvd"]].isna().all()
        assert (row["positions"], row["weights"]) == (None, None)


def test_never_below_the_published_search() -> None:
    trace = binary(6, instances=80, longest=20, spread=1.0)
    searched = searched_attention(trace, 0.01, within=0.05, steps=200)
    exact = adversarial_attention(trace, 0.05)
    assert searched["jsd"].notna().mean() > 0.5
    assert (searched["tvd"].dropna() <= 0.05).all()
    assert (exact["jsd"] - searched["jsd"]).min() >= -1e-9


@pytest.mark.parametrize(
    "made", [lambda: binary(5, instances=40, longest=9, spread=2.0), lambda: classes(5, 3, instances=20, longest=7)]
)
def test_every_instance_may_have_a_least_weight_of_its_own(made: Callable[[], Trace]) -> None:
    """A tenth of an even share: the same as of each instance alone."""
    trace = made()
    floors = 0.1 / trace.lengths.double().numpy()
    table = adversarial_attention(trace, floor=floors)
    rows = [trace.take(torch.tensor([row])) for row in range(len(trace))]
    alone = [adversarial_attention(one, floor=float(floor)) for one, floor in zip(rows, floors, strict=True)]
    apart = pd.concat(alone, ignore_index=True).assign(instance=range(len(trace)))
    pd.testing.assert_frame_equal(table, apart)
    assert (table["support"] < table["units"]).any()


@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_whether_there_are_other_weights_is_told_without_them(count: int) -> None:
    """Of few units and many classes there are mostly none."""
    trace = classes(count, count, instances=60, longest=9)
    for top in (1, 2):
        table = adversarial_attention(trace, without_top=top)
        expected = table["jsd"].notna().tolist()
        assert table["tvd"].max() <= 1e-9
        assert told_elsewhere(trace, top).tolist() == expected
        assert 0 < sum(expected) < 60


def test_whether_there_are_other_weights_by_hand() -> None:
    """Half of (2, 0, 0) and (0, 0, 0) is what half of (1, 0, 0) and these says; nothing else says (0, 3, 0)."""
    trace = Trace.from_arrays(
        offsets=[0, 3, 6],
        attention_weights=[0.5, 0.25, 0.25, 0.5, 0.25, 0.25],
        polarity_scores=[[1, 0, 0], [2, 0, 0], [0, 0, 0], [0, 3, 0], [1, 0, 0], [0, 0, 0]],
        bias=[0, 0, 0],
    )
    assert told_elsewhere(trace).tolist() == [True, False]
    for epsilon in (0.0, 0.01):
        table = adversarial_attention(trace, epsilon, without_top=1)
        assert table["jsd"].notna().tolist() == [True, False]
    assert told_elsewhere(trace, 3).tolist() == [False, False]


@settings(max_examples=30, deadline=None)
@given(seed=strategies.seeds, spread=strategies.one_of(0.1, 2.0, 50.0))
def test_a_wider_output_allows_more(seed: int, spread: float) -> None:
    trace = binary(seed, instances=10, longest=9, spread=spread)
    tables = [adversarial_attention(trace, epsilon)["jsd"] for epsilon in (0.0, 0.01, 0.1, 0.5)]
    for narrow, wide in pairwise(tables):
        assert (wide >= narrow - 1e-9).all()
    assert (tables[-1] <= LOG_2 + 1e-12).all()
    assert (adversarial_attention(trace, floor=0.001)["jsd"].fillna(0) <= tables[0] + 1e-9).all()


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"epsilon": -0.1}, "epsilon is how far a probability may move, from 0 to below 1; got -0.1."),
        ({"epsilon": float("nan")}, "epsilon is how far a probability may move, from 0 to below 1; got nan."),
        ({"floor": 1.0}, "floor is the least weight of a unit, from 0 to below 1; got 1.0."),
        ({"epsilon": "0.1"}, "epsilon is how far a probability may move, from 0 to below 1; got '0.1'."),
        ({"floor": float("nan")}, "floor is the least weight of a unit, from 0 to below 1; got nan."),
        (
            {"floor": [0.1, 0.1, 0.1]},
            "floor is the least weight of a unit, one number or one for each of the 2 instances; got numbers of the "
            "shape (3,).",
        ),
        (
            {"floor": "all"},
            "floor is the least weight of a unit, one number or one for each of the 2 instances; got 'all'.",
        ),
        ({"without_top": -1}, "without_top is a number of units, 0 or more; got -1."),
        ({"without_top": 1.5}, "without_top is a number of units, 0 or more; got 1.5."),
        ({"without_top": float("nan")}, "without_top is a number of units, 0 or more; got nan."),
    ],
)
def test_what_cannot_be_asked_is_answered_by_a_sentence(given_: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as refused:
        # as a user calls it: tests check types before
        unwrap(adversarial_attention)(binary(0, instances=2, longest=3, spread=1.0), **given_)
    assert str(refused.value) == said


def test_divergence_of_weights_is_the_oracles() -> None:
    ours, theirs = [0.5, 0.5, 0.0, 1.0], [0.0, 0.25, 0.75, 1.0]
    offsets = torch.tensor([0, 3, 4])
    found = weight_divergence(torch.tensor(ours).double(), torch.tensor(theirs).double(), offsets)
    assert found.tolist() == pytest.approx([oracle.divergence(ours[:3], theirs[:3]), 0.0])


def test_shuffles_of_two_units_by_hand() -> None:
    """Weights (1, 0) stay or change places: p is σ(4) or σ(−4), so the TVD is 0 or σ(4) − σ(−4)."""
    trace = Trace.from_arrays(offsets=[0, 2], attention_weights=[1.0, 0.0], polarity_scores=[4, -4], bias=[0])
    far = 1 / (1 + math.exp(-4)) - 1 / (1 + math.exp(4))
    row = permutation_test(trace, 4000, seed=1).iloc[0]
    assert row["largest_weight"] == 1
    assert row["tvd_mean"] == pytest.approx(row["flips"] * far)
    assert row["flips"] == pytest.approx(0.5, abs=0.04)
    assert row["tvd_median"] in (pytest.approx(0, abs=1e-12), pytest.approx(far))


def test_all_permutations_of_three_units_are_equally_likely() -> None:
    """Means over six orders, by enumeration."""
    weights, z = [0.6, 0.3, 0.1], [5.0, -2.0, 1.0]
    trace = Trace.from_arrays(offsets=[0, 3], attention_weights=weights, polarity_scores=z, bias=[0.2])

    def p(order: tuple[float, ...]) -> float:
        return oracle.sigmoid(0.2 + sum(a * s for a, s in zip(order, z, strict=True)))

    moves = [abs(p(order) - p(tuple(weights))) for order in permutations(weights)]
    row = permutation_test(trace, 20_000).iloc[0]
    assert row["tvd_mean"] == pytest.approx(np.mean(moves), abs=0.01)
    assert row["flips"] == pytest.approx(np.mean([p(order) < 0.5 for order in permutations(weights)]), abs=0.02)


def test_shuffles_depend_on_seed_and_instance_alone() -> None:
    trace = classes(1, 3, instances=300, longest=30)
    first = permutation_test(trace, 20, seed=3)
    assert first.equals(permutation_test(trace, 20, seed=3))
    assert not first["tvd_mean"].equals(permutation_test(trace, 20, seed=4)["tvd_mean"])
    half = Trace.from_arrays(
        offsets=trace.offsets[:101],
        attention_scores=trace.attention_scores[: int(trace.offsets[100])],
        polarity_scores=trace.polarity_scores[: int(trace.offsets[100])],
        bias=trace.bias,
    )
    assert permutation_test(half, 20, seed=3)["tvd_mean"].equals(first["tvd_mean"][:100])


def test_even_weights_are_the_same_in_every_order() -> None:
    rng = np.random.default_rng(0)
    trace = Trace.from_arrays(
        offsets=[0, 1, 9],
        attention_weights=[1.0, *[0.125] * 8],
        polarity_scores=rng.normal(size=(9, 3)),
        bias=[0, 0, 1],
    )
    assert permutation_test(trace)["tvd_median"].max() < 1e-12


def test_at_least_one_shuffle() -> None:
    with pytest.raises(InputError, match=r"1 or more; got 0\.$"):
        permutation_test(classes(0, 2, instances=2, longest=3), 0)
    with pytest.raises(InputError, match=r"1 or more; got 2\.5\.$"):
        unwrap(permutation_test)(classes(0, 2, instances=2, longest=3), 2.5)
    with pytest.raises(InputError, match=r"seed is a whole number; got 'a'\.$"):
        unwrap(permutation_test)(classes(0, 2, instances=2, longest=3), 5, "a")
