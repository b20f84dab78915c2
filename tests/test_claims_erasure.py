"""Claims about erasure on tables made by hand: what holds, what does not, what cannot be told, and each statistic."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.analysis.statistics import Estimate, bootstrap, share
from heedful.claims import CLAIMS, Decision, Verdict, judge
from heedful.claims.erasure import COMPARING, OF_ONE_MODEL
from heedful.claims.erasure_estimates import (
    attained,
    contrast,
    earlier_upswing,
    erased_counts,
    faster_than_attention,
    less_mass,
    mean_fraction,
    mean_of,
    minus,
    more_top_flips,
    over_runs,
    over_seeds,
    positive_divergence,
    smaller_difference,
    top_only,
    unmoved,
    weakest_of,
    wins,
)


def single(rows: Sequence[tuple[float, float, bool, bool]], ranking: str = "attention") -> pd.DataFrame:
    """Rows of Δα, ΔJS, whether the top unit flips, whether the other does."""
    table = pd.DataFrame(rows, columns=["difference", "divergence_difference", "flips_top", "flips_other"])
    return table.assign(ranking=ranking, instance=range(len(rows)), units=10)


def flips(
    units: int | Sequence[int] = 10, mass: dict[str, float] | None = None, **erased: Sequence[int | None]
) -> pd.DataFrame:
    """One row per ranking and instance; `random_1` is a second order of random."""
    parts = []
    for name, counts in erased.items():
        ranking, _, order = name.partition("_")
        count = pd.array(counts, dtype="Int64")
        part = pd.DataFrame({"ranking": ranking, "order": int(order or 0), "instance": range(len(counts))})
        part = part.assign(units=units, erased=count)
        weight = np.where(count.isna(), np.nan, (mass or {}).get(ranking, 0.5))
        parts.append(part.assign(fraction=(count / part["units"]).astype("Float64").astype(float), mass=weight))
    return pd.concat(parts, ignore_index=True)


def values(found: Estimate | None) -> tuple[float, int]:
    assert found is not None
    return found.value, found.count


def test_statistics_of_single_erasures_by_hand() -> None:
    table = single(
        [(0.5, 0.2, True, False), (0.4, 0.1, True, True), (0.1, -0.1, False, True), (0.3, 0.0, False, False)]
    )
    assert positive_divergence(table) == share(2, 3)  # the zero tells nothing
    assert values(smaller_difference(table)) == (1.0, 3)
    assert top_only(table) == share(1, 2)
    assert unmoved(table) == share(2, 4)
    product = single([(0.5, 0.2, True, False)] * 3 + [(0.0, 0.0, False, False)], "product")
    both = pd.concat([table, product], ignore_index=True)
    assert values(more_top_flips(both)) == (0.25, 4)
    assert positive_divergence(both) == share(2, 3)  # of attention's top only


def test_negative_divergence_at_large_differences_is_below_half() -> None:
    table = single([(0.1, 0.2, False, False), (0.2, 0.1, False, False), (0.2, -0.1, False, False)])
    assert values(smaller_difference(table)) == (0.25, 3)  # .2 against .1 counts none, against .2 half


def test_statistics_of_flips_by_hand() -> None:
    table = flips(
        mass={"attention": 0.9, "gradient": 0.5, "product": 0.6},
        attention=[4, 4, 4, 10, None],
        gradient=[2, 3, 5, 10, 3],
        product=[2, 4, 3, 10, None],
        random=[4, 6, 8, 10, 9],
        random_1=[2, 6, 8, None, 9],
        minimum=[2, 3, 3, 10, 3],
    )
    counts = erased_counts(table)
    assert counts["random"].tolist()[:3] == [3, 6, 8]
    assert np.isnan(counts["random"][3])  # one of its orders never flips
    assert wins("gradient", "attention")(table) == share(2, 3)
    assert wins("attention", "random")(table) == share(2, 3)
    assert wins("attention", "product", "gradient")(table) == share(0, 2)
    assert faster_than_attention(table) == share(2, 3)  # product wins all
    assert attained("attention")(table) == share(0, 4)  # the fourth flips with nothing less than all: no merit
    assert attained("gradient")(table) == share(3, 4)
    assert attained("product")(table) == share(2, 4)
    assert values(mean_fraction(table)) == pytest.approx(((0.275 + 0.425 + 0.5) / 3, 3))
    assert values(less_mass(table)) == pytest.approx((0.3, 4))


def test_instances_of_one_unit_do_not_count() -> None:
    table = flips(units=[1, 10], attention=[1, 5], gradient=[1, 4], minimum=[1, 4])
    assert wins("gradient", "attention")(table) == share(1, 1)
    assert attained("gradient")(table) == share(1, 1)


def test_a_mean_over_seeds_has_both_intervals() -> None:
    one, other = (Estimate(value=value, low=value - 0.1, high=value + 0.2, count=50) for value in (0.4, 0.6))
    found = over_seeds([one, other])
    spread = 12.706204736 * np.std([0.4, 0.6], ddof=1) / np.sqrt(2)
    assert found.value == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5 - np.hypot(spread, 0.1))
    assert found.high == pytest.approx(0.5 + np.hypot(spread, 0.2))
    assert found.count == 100
    alone = over_seeds([one])
    assert (alone.value, alone.low, alone.high) == pytest.approx((0.4, 0.3, 0.6))


def test_models_are_averaged_or_the_weakest_counts() -> None:
    one, other = Estimate(value=0.4, low=0.3, high=0.5, count=5), Estimate(value=0.8, low=0.6, high=0.9, count=7)
    mean = mean_of([one, other])
    assert (mean.value, mean.low, mean.high, mean.count) == pytest.approx((0.6, 0.45, 0.7, 12))
    assert weakest_of([other, one]) == one
    difference = minus(other, one)
    assert difference.value == pytest.approx(0.4)
    assert difference.low == pytest.approx(0.4 - np.hypot(0.2, 0.1))
    assert difference.high == pytest.approx(0.4 + np.hypot(0.1, 0.1))


def named(table: pd.DataFrame, model: str, dataset: str = "yelp", seed: int = 0) -> pd.DataFrame:
    return table.assign(dataset=dataset, model=model, seed=seed)


def test_only_models_with_an_encoder_where_the_claim_is_of_them() -> None:
    good, bad = flips(attention=[5] * 9, gradient=[4] * 9), flips(attention=[4] * 9, gradient=[5] * 9)
    table = pd.concat([named(good, "HANrnn"), named(bad, "HANnoenc")], ignore_index=True)
    of_run = wins("gradient", "attention")
    assert values(over_runs("flips", of_run)({"flips": table}))[0] == 0.5
    assert values(over_runs("flips", of_run, encoder=True)({"flips": table}))[0] == 1.0
    assert values(over_runs("flips", of_run, encoder=False)({"flips": table}))[0] == 0.0
    assert over_runs("flips", of_run, encoder=False)({"flips": good}) is None  # a user's model has no such name


def test_runs_are_told_apart_by_seed_and_data_set() -> None:
    parts = [
        named(single([(0.5, sign, False, False)] * 4), "HANrnn", dataset, seed)
        for dataset, seed, sign in (("yelp", 0, 1.0), ("yelp", 1, 1.0), ("imdb", 0, -1.0))
    ]
    found = over_runs("single", positive_divergence)({"single": pd.concat(parts, ignore_index=True)})
    assert values(found) == (0.5, 12)  # the mean over data sets, not over runs


def test_a_contrast_takes_both_models_of_a_structure() -> None:
    late, early = flips(attention=[9] * 6, random=[9] * 6), flips(attention=[2] * 6, random=[4] * 6)
    table = pd.concat([named(late, "FLANrnn"), named(early, "FLANconv"), named(early, "HANconv")], ignore_index=True)
    found = contrast("flips", mean_fraction, of="rnn", against=("conv",))({"flips": table})
    assert values(found) == pytest.approx((0.6, 12))
    assert contrast("flips", mean_fraction, of="conv", against=("noenc",))({"flips": table}) is None
    assert contrast("flips", mean_fraction, of="rnn", against=("conv", "noenc"))({"flips": table}) is None


def test_the_upswing_is_compared_at_equal_differences() -> None:
    """Without encoder ΔJS is .3 above .2 and .1 below; with one it is .1; only tenths with five of both count."""
    less = single([(0.25, 0.3, False, False)] * 6 + [(0.05, 0.1, False, False)] * 10 + [(0.95, 0.6, False, False)] * 4)
    more = single([(0.25, 0.1, False, False)] * 9 + [(0.05, 0.1, False, False)] * 18 + [(0.95, 0.0, False, False)] * 9)
    table = pd.concat([named(less, "HANnoenc"), named(more, "HANrnn"), named(more, "FLANrnn")], ignore_index=True)
    found = earlier_upswing({"single": table})
    assert values(found) == pytest.approx(((6 * 0.2 + 10 * 0.0) / 16, 43))
    assert earlier_upswing({"single": less}) is None


Tables = dict[str, pd.DataFrame]


def tops(*parts: tuple[int, float, float, bool, bool], ranking: str = "attention") -> Tables:
    """So many instances of each kind."""
    return {"single": single([row for count, *row in parts for _ in range(count)], ranking)}  # type: ignore[misc]


def two_tops(attention: int, product: int) -> Tables:
    """Of 100 decisions so many are flipped by the top unit of each ranking."""
    parts = [
        tops((count, 0.1, 0.1, True, False), (100 - count, 0.1, 0.1, False, False), ranking=ranking)["single"]
        for ranking, count in (("attention", attention), ("product", product))
    ]
    return {"single": pd.concat(parts, ignore_index=True)}


def same(mass: dict[str, float] | None = None, **erased: int) -> Tables:
    """A hundred instances of ten units that each ranking flips after so many."""
    return {"flips": flips(mass=mass, **{name: [count] * 100 for name, count in erased.items()})}


def models(table: str, **made: Tables) -> Tables:
    """Several models, one table each, with two seeds."""
    parts = [named(tables[table], model, seed=seed) for model, tables in made.items() for seed in (0, 1)]
    return {table: pd.concat(parts, ignore_index=True)}


def erased(count: int) -> Tables:
    return same(attention=count, gradient=count, product=count, random=count)


HIGH, LOW = (0.35, 0.3, False, False), (0.35, 0.1, False, False)
BOTH_WAYS: dict[str, Any] = {"attention": [4, 5] * 50, "gradient": [5, 4] * 50, "product": [3, 3] * 50}

CASES: dict[str, tuple[Tables, Tables]] = {
    "S1": (
        tops((95, 0.3, 0.1, False, False), (5, 0.3, -0.1, False, False)),
        tops((50, 0.3, 0.1, False, False), (50, 0.3, -0.1, False, False)),
    ),
    "S2": (
        tops((90, 0.5, 0.1, False, False), (10, 0.1, -0.1, False, False)),
        tops((90, 0.1, 0.1, False, False), (10, 0.5, -0.1, False, False)),
    ),
    "S3": (
        tops((40, 0.3, 0.1, True, False), (2, 0.3, 0.1, False, True)),
        tops((40, 0.3, 0.1, True, False), (60, 0.3, 0.1, False, True)),
    ),
    "S4": (
        tops((90, 0.3, 0.1, False, True), (10, 0.3, 0.1, True, True)),
        tops((40, 0.3, 0.1, False, False), (60, 0.3, 0.1, True, True)),
    ),
    "S5": (same(attention=5, gradient=4, product=3), same(attention=5, gradient=4, product=6)),
    "S5b": (
        models("flips", HANrnn=same(attention=5, gradient=4), HANnoenc=same(attention=4, gradient=5)),
        models("flips", HANrnn=same(attention=5, gradient=4), HANconv={"flips": flips(**BOTH_WAYS)}),
    ),
    "S6": (same(attention=3, random=5, random_1=4), same(attention=5, random=5, random_1=4)),
    "S7": (models("flips", HANrnn=erased(9), HANconv=erased(4)), models("flips", HANrnn=erased(4), HANconv=erased(9))),
    "S7b": (
        models("flips", FLANconv=erased(4), FLANnoenc=erased(1)),
        models("flips", FLANconv=erased(1), FLANnoenc=erased(4)),
    ),
    "S8": (
        models("flips", HANnoenc={"flips": flips(**BOTH_WAYS)}, HANrnn=same(attention=9, gradient=1)),
        models("flips", HANnoenc=same(attention=5, gradient=4)),
    ),
    "S8b": (
        models("flips", HANnoenc={"flips": flips(**BOTH_WAYS)}),
        models("flips", HANnoenc=same(attention=2, product=3)),
    ),
    "S9": (same(attention=3, minimum=3), same(attention=4, minimum=3)),
    "S9b": (same(gradient=3, minimum=3), same(gradient=4, minimum=3)),
    "S9c": (same(product=3, minimum=3), same(product=4, minimum=3)),
    "S9d": (same(margin=3, minimum=3), same(margin=4, minimum=3)),
    "S10": (two_tops(10, 30), two_tops(30, 10)),
    "S11": (
        same({"attention": 0.9, "gradient": 0.4, "product": 0.6}, attention=3, gradient=3, product=3),
        same({"attention": 0.9, "gradient": 0.4, "product": 0.8}, attention=3, gradient=3, product=3),
    ),
    "S12": (
        models("single", HANnoenc=tops((50, *HIGH)), HANrnn=tops((50, *LOW))),
        models("single", HANnoenc=tops((50, *LOW)), HANrnn=tops((50, *HIGH))),
    ),
    "S12b": (
        models("single", HANnoenc=two_tops(60, 0), HANrnn=two_tops(10, 0), HANconv=two_tops(20, 0)),
        models("single", HANnoenc=two_tops(60, 0), HANrnn=two_tops(10, 0), HANconv=two_tops(90, 0)),
    ),
}


def of(claim: str, tables: Tables) -> Verdict:
    return judge((claim,), tables)[0]


def test_every_claim_has_its_cases() -> None:
    assert set(CASES) == {name for name in CLAIMS if name.startswith("S")} == {*OF_ONE_MODEL, *COMPARING}


@pytest.mark.parametrize("claim", CASES)
def test_the_papers_pattern_makes_a_claim_hold_and_the_opposite_refutes_it(claim: str) -> None:
    pattern, opposite = CASES[claim]
    decisions: list[Decision] = [of(claim, pattern).decision, of(claim, opposite).decision]
    assert decisions == ["holds", "does not hold"]


@pytest.mark.parametrize("claim", CASES)
def test_where_nothing_can_be_estimated_the_words_say_why(claim: str) -> None:
    nothing = {name: table.iloc[:0] for tables in CASES[claim] for name, table in tables.items()}
    verdict = of(claim, nothing)
    assert (verdict.decision, verdict.estimate) == ("undecided", None)
    assert verdict.words == CLAIMS[claim].silence


@pytest.mark.parametrize("claim", COMPARING)
def test_claims_of_models_by_name_do_not_apply_to_one_without(claim: str) -> None:
    unnamed = {**CASES["S10"][0], **CASES["S5"][0]}
    assert of(claim, unnamed).estimate is None
    assert of(claim, unnamed).words == "This compares models, and the tables do not hold those that it takes."


def test_few_texts_are_undecided() -> None:
    few = tops((4, 0.3, 0.1, True, False), (1, 0.3, 0.1, False, True))
    assert of("S3", few).decision == "undecided"
    assert of("S1", few).decision == "undecided"


def test_words_hold_the_number() -> None:
    assert of("S1", CASES["S1"][0]).words.startswith("The most attended unit matters more than a random other one")
    assert "95.0%" in of("S1", CASES["S1"][0]).words
    assert "(0.10 less)" in of("S11", CASES["S11"][1]).words


def test_an_interval_over_instances_is_that_of_the_bootstrap() -> None:
    found = of("S10", two_tops(10, 30)).estimate
    paired = np.repeat([0.0, 1.0, 0.0], [10, 20, 70])
    assert found == bootstrap(lambda sample: float(sample.mean()), paired)


def test_an_interval_stays_within_what_a_share_can_be() -> None:
    parts = [
        named(
            tops((count, 0.3, 0.1, False, False), (100 - count, 0.3, 0.1, True, False))["single"], "HANrnn", seed=seed
        )
        for seed, count in enumerate((60, 99))
    ]
    found = of("S4", {"single": pd.concat(parts, ignore_index=True)}).estimate
    assert found is not None
    assert (found.low, found.high) == (0.0, 1.0)
