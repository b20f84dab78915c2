"""Kendall's τ beside scipy's on thousands of instances, beside five units by hand, and top-k beside a plain loop."""

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from scipy import stats

from heedful.analysis.agreement import agree, agreement, agreement_summary, exact_p_values
from heedful.errors import InputError
from heedful.text.ragged import offsets_of
from tests.strategies import ragged_scores, seeds

Ragged = list[np.ndarray[Any, np.dtype[Any]]]


def flat(parts: Ragged) -> torch.Tensor:
    return torch.from_numpy(np.concatenate(parts).astype(np.float64))


def starts(parts: Ragged) -> torch.Tensor:
    return offsets_of(torch.tensor([len(part) for part in parts]))


def drawn(seed: int, instances: int, longest: int, values: int | None) -> tuple[Ragged, Ragged]:
    """Two numbers per unit that agree more or less; with few `values` they tie."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, instances)
    one = [rng.normal(size=size) for size in sizes]
    two = [part * rng.choice([-2, 0, 0.3, 2]) + rng.normal(size=len(part)) for part in one]
    if values is not None:
        one, two = ([np.round(part * values / 4) for part in side] for side in (one, two))
    return one, two


@pytest.mark.filterwarnings("ignore:One or more sample arguments is too small")
@pytest.mark.parametrize(
    ("instances", "longest", "values"),
    [(1500, 8, None), (1500, 8, 4), (1500, 8, 1), (500, 60, None), (500, 60, 8), (500, 60, 2), (20, 900, 30)],
)
def test_tau_and_p_value_are_those_of_scipy(instances: int, longest: int, values: int | None) -> None:
    one, two = drawn(longest, instances, longest, values)
    found = agree(flat(one), flat(two), starts(one))
    expected = [stats.kendalltau(*pair) for pair in zip(one, two, strict=True)]
    np.testing.assert_allclose(found.tau, [known.statistic for known in expected], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.p_value, [known.pvalue for known in expected], rtol=1e-9, atol=1e-300)
    unknown = [len(set(a)) == 1 or len(set(b)) == 1 for a, b in zip(one, two, strict=True)]
    assert (found.reason != 0).tolist() == unknown


@pytest.mark.parametrize("n", [34, 60, 180])
@pytest.mark.parametrize("swaps", [0, 1])
def test_almost_perfect_orders_have_exact_p_values(n: int, swaps: int) -> None:
    one = np.arange(n, dtype=np.float64)
    two = one.copy()
    if swaps:
        two[[3, 4]] = two[[4, 3]]
    for sign in (1, -1):
        found = agree(torch.from_numpy(one), torch.from_numpy(sign * two), torch.tensor([0, n]))
        expected = stats.kendalltau(one, sign * two)
        np.testing.assert_allclose(found.tau, [expected.statistic], atol=1e-14)
        np.testing.assert_allclose(found.p_value, [expected.pvalue], rtol=1e-9, atol=1e-300)


def test_five_units_by_hand() -> None:
    """Attention 5 4 3 2 2, other 4 5 2 2 1: of ten pairs one tied in each (not the same); seven agree, one does not.

    Pairs (0,1) opposite; (3,4) tied in attention; (2,3) tied in the other; the remaining seven agree:
    τ = (7 − 1) / √(9 · 9) = 2/3. Of the top two of each, both are units 0 and 1; the top one differs.
    """
    attention, other = torch.tensor([5.0, 4, 3, 2, 2]), torch.tensor([4.0, 5, 2, 2, 1])
    offsets = torch.tensor([0, 5])
    table = agreement(attention, other, offsets, k=2)
    assert list(table) == ["instance", "units", "tau", "p_value", "k", "top_k", "missing"]
    assert table["tau"].tolist() == [pytest.approx(2 / 3)]
    assert table[["instance", "units", "k", "top_k"]].to_numpy().tolist() == [[0, 5, 2, 1.0]]
    # Variance by hand: (5·4·15 − 2·9 − 2·9)/18 + 2·1·1/20 = 264/18 + 0.1, and C − D = 6.
    assert table["p_value"].tolist() == [pytest.approx(2 * stats.norm.sf(6 / np.sqrt(264 / 18 + 0.1)))]
    assert agreement(attention, other, offsets, k=1)["top_k"].tolist() == [0.0]


def test_four_units_without_ties_have_the_exact_p_value() -> None:
    """One pair of six swapped: 1 + 3 of 24 orders have at most one, so p = 8/24."""
    found = agree(torch.tensor([4.0, 3, 2, 1]), torch.tensor([3.0, 4, 2, 1]), torch.tensor([0, 4]))
    assert found.tau.tolist() == [pytest.approx(4 / 6)]
    assert found.p_value.tolist() == [pytest.approx(8 / 24)]


def test_exact_p_values_of_three_units() -> None:
    """Of the six orders one has none, two have one, two have two and one has three swapped pairs."""
    assert exact_p_values()[3, :2].tolist() == [2 / 6, 1.0]


def test_where_there_is_no_tau_it_is_null_and_the_reason_is_said() -> None:
    attention = [[1.0], [0.5, 0.5], [0.7, 0.3], [0.5, 0.5], [0.6, 0.4]]
    other = [[3.0], [1.0, 2.0], [2.0, 2.0], [4.0, 4.0], [1.0, 0.0]]
    one, two = ([np.array(part) for part in side] for side in (attention, other))
    table = agreement(flat(one), flat(two), starts(one), k=1)
    reasons = ["one unit", "constant attention", "constant other", "constant attention", None]
    assert [None if pd.isna(reason) else reason for reason in table["missing"]] == reasons
    for column in ("tau", "p_value", "top_k"):
        assert table[column].isna().tolist() == [True] * 4 + [False]
        assert not np.isnan(table[column].dropna().to_numpy(dtype=np.float64)).any()
    assert table["tau"].iloc[4] == 1.0


def literal_top_share(one: Any, two: Any, k: int) -> float:
    tops = [set(sorted(range(len(side)), key=lambda unit: (-side[unit], unit))[:k]) for side in (one, two)]
    return len(tops[0] & tops[1]) / k


@pytest.mark.parametrize("k", [1, 3, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("values", [None, 3])
def test_top_k_is_that_of_a_plain_loop(k: float, values: int | None) -> None:
    one, two = drawn(7, 400, 30, values)
    table = agreement(flat(one), flat(two), starts(one), k=k)
    found = table["top_k"].to_numpy(dtype=np.float64, na_value=np.nan)
    for row, (a, b) in enumerate(zip(one, two, strict=True)):
        size = min(len(a), int(k)) if k >= 1 else max(1, -(-round(1000 * k) * len(a) // 1000))
        assert table["k"].tolist()[row] == size
        constant = len(set(a)) == 1 or len(set(b)) == 1
        expected = np.nan if constant or size >= len(a) else literal_top_share(a, b, size)
        np.testing.assert_equal(found[row], expected)


def test_a_share_is_not_rounded_up_by_an_accident() -> None:
    """0.1 · 30 is 3.0000000000000004 in floating point."""
    values = torch.arange(30.0, dtype=torch.float64)
    assert agree(values, values, torch.tensor([0, 30]), k=0.1).tops.tolist() == [3]


@given(parts=ragged_scores(3.0), seed=seeds)
def test_agreement_of_a_number_with_itself_and_its_opposite(parts: list[list[float]], seed: int) -> None:
    values = [np.array(part) for part in parts]
    itself = agree(flat(values), flat(values), starts(values))
    against = agree(flat(values), -flat(values), starts(values))
    known = [len(set(part)) > 1 for part in parts]
    assert (itself.reason == 0).tolist() == known
    torch.testing.assert_close(itself.tau[itself.reason == 0], torch.ones(sum(known), dtype=torch.float64))
    torch.testing.assert_close(against.tau[itself.reason == 0], -torch.ones(sum(known), dtype=torch.float64))
    rng = np.random.default_rng(seed)
    drawn_other = [rng.integers(0, 3, len(part)) for part in parts]
    swapped = agree(flat(drawn_other), flat(values), starts(values))
    torch.testing.assert_close(
        swapped.tau, agree(flat(values), flat(drawn_other), starts(values)).tau, equal_nan=True, rtol=0, atol=1e-15
    )


def test_the_summary_counts_all_and_each_class() -> None:
    table = pd.DataFrame(
        {
            "measure": ["gradient"] * 5 + ["random"],
            "predicted": ["no", "yes", "yes", "no", "yes", "no"],
            "tau": pd.array([0.5, 0.1, 0.3, None, None, -1.0], dtype="Float64"),
            "p_value": pd.array([0.01, 0.2, 0.04, None, None, 1.0], dtype="Float64"),
            "top_k": pd.array([1.0, 0.0, None, None, None, 0.0], dtype="Float64"),
            "missing": pd.array([None, None, None, "one unit", "constant other", None], dtype="string"),
        }
    )
    summary = agreement_summary(table)
    assert summary["measure"].tolist() == ["gradient"] * 3 + ["random"] * 2
    assert summary["predicted"].tolist() == ["all", "no", "yes", "all", "no"]
    counts = ["instances", "counted", "one_unit", "constant_attention", "constant_other"]
    assert summary[counts].to_numpy().tolist()[:3] == [[5, 3, 1, 0, 1], [2, 1, 1, 0, 0], [3, 2, 0, 0, 1]]
    numbers = summary[["mean", "sd", "significant", "top_k"]].to_numpy()
    np.testing.assert_allclose(numbers[0], [0.3, 0.2, 2 / 3, 0.5])
    np.testing.assert_allclose(numbers[1], [0.5, np.nan, 1.0, 1.0])
    np.testing.assert_allclose(numbers[2], [0.2, 0.02**0.5, 0.5, 0.0])


def test_what_cannot_be_compared_is_refused_with_a_sentence() -> None:
    values, offsets = torch.tensor([1.0, float("nan")]), torch.tensor([0, 2])
    with pytest.raises(InputError, match=r"needs a number for each unit; 'other' has none \(NaN\) for unit 1"):
        agree(torch.ones(2), values, offsets)
    for k in (0, -1, 1.5, True):
        with pytest.raises(InputError, match=f"k must be a whole number from 1 on, or a share .*; got {k}"):
            agree(torch.ones(2), torch.ones(2), offsets, k=k)


def test_exact_p_values_are_those_of_all_orders() -> None:
    """Counted one by one: 1, 3, 5, 6, 5, 3, 1 of the 24 orders of four units have 0, 1, … swapped pairs."""
    assert exact_p_values()[4, :5].tolist() == pytest.approx([2 / 24, 8 / 24, 18 / 24, 1.0, 1.0])
    for n in (5, 6):
        swaps = [sum(a > b for a, b in combinations(order, 2)) for order in permutations(range(n))]
        for most in range(n * (n - 1) // 4 + 1):
            share = sum(count <= most for count in swaps) / len(swaps)
            assert exact_p_values()[n, most] == pytest.approx(min(1.0, 2 * share))
