from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from heedful.analysis.erasure import first_flips, minimum_flips
from heedful.analysis.quality import (
    flip_summary,
    fraction_distribution,
    optimality_gaps,
    pairwise_attainment,
    pairwise_wins,
    ranking_quality,
)
from heedful.errors import InputError
from tests.oracles.random_traces import random_trace


def table(erased: Sequence[int | None], units: list[int], mass: float = 0.5) -> pd.DataFrame:
    count = pd.array(erased, dtype="Int64")
    return pd.DataFrame(
        {
            "instance": range(len(units)),
            "units": units,
            "erased": count,
            "fraction": [np.nan if n is None else n / u for n, u in zip(erased, units, strict=True)],
            "mass": mass,
        }
    )


UNITS = [10, 10, 10, 1, 10]
TABLES = {"attention": table([4, 6, None, 1, 2], UNITS), "gradient": table([2, 8, 3, 1, None], UNITS, 0.25)}
MINIMUM = table([2, 5, 3, 1, 2], UNITS).drop(columns=["mass", "fraction"])


def only(found: pd.DataFrame, **where: str) -> dict[str, Any]:
    """The one row with these values, as a dictionary."""
    for column, value in where.items():
        found = found[found[column] == value]
    (row,) = found.to_dict("records")
    return {str(name): value for name, value in row.items()}


def test_both_conventions_are_reported_and_what_they_leave_out() -> None:
    summary = flip_summary(TABLES)
    own = only(summary, ranking="attention", convention="own")
    assert (own["instances"], own["one_unit"], own["never"]) == (3, 1, 1)
    assert (own["mean_fraction"], own["median_fraction"], own["mean_mass"]) == pytest.approx((0.4, 0.4, 0.5))
    assert own["over_half"] == pytest.approx(1 / 3)
    common = only(summary, ranking="attention", convention="common")
    assert (common["instances"], common["one_unit"], common["never"]) == (2, 1, 1)
    assert common["mean_fraction"] == pytest.approx(0.5)
    assert only(summary, ranking="gradient", convention="own")["mean_fraction"] == pytest.approx(1.3 / 3)
    assert only(summary, ranking="gradient", convention="common")["mean_fraction"] == pytest.approx(0.5)


def test_chance_does_not_choose_the_common_instances() -> None:
    """The second order never flips the second text: that counts as all of its ten units, and as all of the weight."""
    several = pd.concat([table([2, 6], [10, 10]).assign(order=0), table([6, None], [10, 10]).assign(order=1)])
    summary = flip_summary({"random": several, "attention": table([3, 5], [10, 10])})
    common, own = (only(summary, ranking="random", convention=convention) for convention in ("common", "own"))
    assert (common["instances"], common["never"]) == (2, 0.5)
    assert common["mean_fraction"] == pytest.approx((0.2 + 0.6 + 0.6 + 1.0) / 4)
    assert common["mean_mass"] == pytest.approx((0.5 + 0.5 + 0.5 + 1.0) / 4)
    assert own["mean_fraction"] == pytest.approx((0.2 + 0.6 + 0.6) / 3)
    assert only(summary, ranking="attention", convention="common")["instances"] == 2
    assert pairwise_wins({"random": several, "attention": table([3, 7], [10, 10])})["second_wins"].tolist() == [2]


def test_fractions_are_distributed() -> None:
    shares = fraction_distribution(TABLES, [0.3, 0.5]).set_index(["ranking", "convention", "threshold"])["share"]
    assert shares[("attention", "own", 0.3)] == pytest.approx(2 / 3)
    assert shares[("attention", "own", 0.5)] == pytest.approx(1 / 3)
    assert shares[("gradient", "common", 0.5)] == 0.5


def test_gaps_and_ratios_by_hand() -> None:
    gaps = optimality_gaps(TABLES, MINIMUM)
    attention = gaps[gaps["ranking"] == "attention"]
    assert attention["instance"].tolist() == [0, 1, 2, 4]
    assert attention["gap"].tolist() == [2, 1, pd.NA, 0]
    assert attention["ratio"].dropna().tolist() == pytest.approx([2, 1.2, 1])
    assert attention["attained"].tolist() == [False, False, False, True]


def test_quality_by_hand() -> None:
    quality = ranking_quality(TABLES, MINIMUM)
    attention, gradient = only(quality, ranking="attention"), only(quality, ranking="gradient")
    assert (attention["instances"], attention["never"]) == (4, 1)
    assert (attention["attained"], gradient["attained"]) == (0.25, 0.5)
    assert attention["mean_gap"] == 1
    assert gradient["median_ratio"] == 1


def test_wins_are_counted_on_instances_that_both_flip() -> None:
    row = pairwise_wins(TABLES).iloc[0]
    assert row[["first", "second", "instances", "first_wins", "second_wins", "ties"]].tolist() == [
        "attention",
        "gradient",
        2,
        1,
        1,
        0,
    ]
    assert row["p_value"] == 1


def test_the_sign_test_is_that_of_scipy() -> None:
    units = [20] * 30
    first, second = table([3] * 24 + [5] * 6, units), table([4] * 24 + [5] * 2 + [4] * 4, units)
    row = pairwise_wins({"a": first, "b": second}).iloc[0]
    assert row[["first_wins", "second_wins", "ties"]].tolist() == [24, 4, 2]
    assert row["p_value"] == pytest.approx(binomtest(24, 28).pvalue)


def test_attainment_is_compared_by_mcnemar() -> None:
    row = pairwise_attainment(TABLES, MINIMUM).iloc[0]
    assert row[["instances", "only_first", "only_second"]].tolist() == [4, 1, 2]
    assert row["p_value"] == pytest.approx(binomtest(1, 3).pvalue)


def test_random_orders_count_by_their_mean_and_must_all_attain() -> None:
    several = pd.concat([table([2, 6], [10, 10]).assign(order=0), table([6, 6], [10, 10]).assign(order=1)])
    tables = {"random": several, "other": table([3, 6], [10, 10])}
    row = pairwise_wins(tables).iloc[0]
    assert row[["first_wins", "second_wins", "ties"]].tolist() == [0, 1, 1]
    marks = pairwise_attainment(tables, table([2, 6], [10, 10])).iloc[0]
    assert marks[["only_first", "only_second"]].tolist() == [0, 0]


def test_tables_of_different_instances_are_refused() -> None:
    with pytest.raises(InputError, match="same instances"):
        pairwise_wins({"a": table([1], [5]), "b": table([1, 1], [5, 5])})
    with pytest.raises(InputError, match="same instances"):
        pairwise_wins({"a": table([1, 1], [5, 5]), "b": table([1, 1], [5, 5]).assign(instance=[3, 4])})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_gap_is_negative_on_real_tables(seed: int) -> None:
    trace = random_trace(seed, instances=60, longest=15, spread=2.0)
    tables = {name: first_flips(trace, name) for name in ("attention", "gradient", "margin")}
    tables["random"] = first_flips(trace, "random", orders=3)
    minimum = minimum_flips(trace)
    gaps = optimality_gaps(tables, minimum)
    assert (gaps["gap"].dropna() >= 0).all()
    assert len(gaps[gaps["ranking"] == "random"]) == 3 * len(gaps[gaps["ranking"] == "margin"])
    assert (ranking_quality(tables, minimum)["attained"] <= 1).all()
    assert flip_summary({**tables, "minimum": minimum})["mean_fraction"].notna().all()
