"""Claims about erasure on tables made by hand: what holds, what does not, what cannot be told, and what is said."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.analysis.flips import measure
from heedful.analysis.statistics import FEWEST, paired_difference
from heedful.claims import CLAIMS, Decision, Verdict, judge
from heedful.claims.erasure import COMPARING, FASTER_SHARE, OF_ONE_MODEL
from heedful.claims.erasure_numbers import earlier_upswing
from heedful.traces import Trace
from tests.covering import covers
from tests.erasure_tables import Tables, erased, flips, leads, models, named, rising, same, tops, two_tops

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
    "S6b": (leads(attention=0.9, random=0.4, random_1=0.9), leads(attention=0.2, random=0.4, random_1=0.2)),
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
        models("flips", HANnoenc=same(attention=2, product=3, gradient=4)),
    ),
    "S9": (same(attention=3, minimum=3), same(attention=4, minimum=3)),
    "S9b": (same(gradient=3, minimum=3), same(gradient=4, minimum=3)),
    "S9c": (same(product=3, minimum=3), same(product=4, minimum=3)),
    "S9d": (same(margin=3, minimum=3), same(margin=4, minimum=3)),
    "S13": (same(taken=0.9, attention=3), same(taken=0.6, attention=3)),
    "S14": (same(attention=5, margin=4), same(attention=4, margin=5)),
    "S10": (two_tops(10, 30), two_tops(30, 10)),
    "S11": (
        same({"attention": 0.9, "gradient": 0.4, "product": 0.6}, attention=3, gradient=3, product=3),
        same({"attention": 0.9, "gradient": 0.4, "product": 0.8}, attention=3, gradient=3, product=3),
    ),
    "S12": (
        models("single", 1, HANrnn=rising(0.5), HANconv=rising(0.4), HANnoenc=rising(0.2)),
        models("single", 1, HANrnn=rising(0.5), HANconv=rising(0.2), HANnoenc=rising(0.4)),
    ),
    "S12b": (
        models("single", HANnoenc=two_tops(60, 0), HANrnn=two_tops(10, 0), HANconv=two_tops(20, 0)),
        models("single", HANnoenc=two_tops(60, 0), HANrnn=two_tops(10, 0), HANconv=two_tops(90, 0)),
    ),
}


def of(claim: str, tables: Tables) -> Verdict:
    return judge((claim,), tables)[0]


@cache
def of_case(claim: str, side: int) -> Verdict:
    return of(claim, CASES[claim][side])


def test_every_claim_has_its_cases() -> None:
    assert set(CASES) == {name for name in CLAIMS if name.startswith("S")} == {*OF_ONE_MODEL, *COMPARING, "S5b"}


@covers(claim=CASES)
@pytest.mark.parametrize("claim", CASES)
def test_the_papers_pattern_makes_a_claim_hold_and_the_opposite_refutes_it(claim: str) -> None:
    decisions: list[Decision] = [of_case(claim, side).decision for side in (0, 1)]
    assert decisions == ["yes", "no"]


@pytest.mark.parametrize("claim", CASES)
@pytest.mark.parametrize("texts", [0, 1, FEWEST - 1])
def test_few_texts_are_undecided_and_the_words_say_so(claim: str, texts: int) -> None:
    for tables in CASES[claim]:
        few = {name: table[table["instance"] < texts] for name, table in tables.items()}
        verdict = of(claim, few)
        assert (verdict.decision, verdict.known) == ("not shown", False)
        there = f" There are {verdict.evidence.replace(', ', ' and ')}." if verdict.estimate else ""
        assert verdict.words == CLAIMS[claim].silence + there
        assert "too few texts" in verdict.words


def test_silence_on_too_few_texts_says_how_many_there_are() -> None:
    assert of("S4", tops((4, 0.3, 0.1, False, True))).words.endswith("More test texts may help. There are 4 texts.")
    sides = tops((100, 0.5, 0.1, False, False), (1, 0.1, -0.1, False, False))
    assert of("S2", sides).words.endswith(
        "There are 100 texts where the top unit mattered more and 1 text where the random one did."
    )


def test_both_groups_of_a_comparison_must_be_large_enough() -> None:
    few = tops((100, 0.5, 0.1, False, False), (FEWEST - 1, 0.1, -0.1, False, False))
    enough = tops((100, 0.5, 0.1, False, False), (FEWEST, 0.1, -0.1, False, False))
    assert (of("S2", few).decision, of("S2", few).known, of("S2", enough).decision) == ("not shown", False, "yes")
    assert of("S2", enough).evidence == (
        "100 texts where the top unit mattered more, 10 texts where the random one did"
    )


def test_ten_texts_of_ten_are_not_called_close_to_the_line_alone() -> None:
    found = of("S1", tops((FEWEST, 0.3, 0.1, False, False)))
    assert found.decision == "not shown"
    assert found.words.endswith(
        "in 100.0% of the texts; that is too close to the line of 75 %, or rests on too few, to call."
    )


def gradient_wins(won: int, lost: int) -> pd.DataFrame:
    return flips(attention=[5] * (won + lost), gradient=[4] * won + [6] * lost)


def test_one_model_that_cannot_be_told_leaves_a_claim_of_every_model_undecided() -> None:
    sure, unsure = named(gradient_wins(700, 300), "HANrnn"), named(gradient_wins(9, 3), "HANconv")
    assert of("S5b", {"flips": sure}).decision == "yes"
    found = of("S5b", {"flips": pd.concat([sure, unsure], ignore_index=True)})
    assert found.estimate is not None
    assert (found.decision, found.estimate.value) == ("not shown", 0.7)  # .75 with an interval from .47 up
    assert found.estimate.low == pytest.approx(0.4677, abs=1e-4)


def test_a_model_with_too_few_texts_cannot_uphold_a_claim_of_every_model_but_others_refute_it() -> None:
    few = named(gradient_wins(5, 0), "HANconv")
    for won, decision in ((700, "not shown"), (300, "no")):
        table = pd.concat([named(gradient_wins(won, 1000 - won), "HANrnn"), few], ignore_index=True)
        found = of("S5b", {"flips": table})
        assert found.estimate is not None
        assert (found.decision, found.estimate.low) == (decision, 0.0)


@pytest.mark.parametrize("claim", COMPARING)
def test_claims_of_models_by_name_do_not_apply_to_one_without(claim: str) -> None:
    unnamed = {**CASES["S10"][0], **CASES["S5"][0]}
    assert of(claim, unnamed).estimate is None
    assert of(claim, unnamed).words.startswith("This compares models, and the tables do not hold those that it takes")


def test_words_hold_the_number() -> None:
    assert of_case("S1", 0).words.startswith("The most attended unit matters more than a random other one")
    assert "95.0%" in of_case("S1", 0).words
    assert "only 0.10 less" in of_case("S11", 1).words
    assert "smaller by 0.10 or more at each step" in of_case("S12", 0).words


def test_words_count_the_models_beside_the_papers() -> None:
    sooner = {"flips": flips(attention=[5, None] * 50, gradient=[4] * 100)}
    half = {"flips": flips(attention=[5] * 100, gradient=[4, 5] * 50)}  # not more than half
    table = models("flips", HANrnn=sooner, HANconv=half, HANnoenc=sooner)
    assert of("S5b", table).words.endswith(
        "in more than half of all texts in 1 of 2 models (in the paper in 10 of 16)."
    )
    mass = {"attention": 0.9, "gradient": 0.4, "product": 0.6}
    much, less = (same({**mass, "product": last}, attention=3, gradient=3, product=3) for last in (0.6, 0.68))
    table = models("flips", HANrnn=much, HANconv=less)
    assert of("S11", table).words.endswith("It is more than 0.25 in 1 of 2 models (in the paper in most).")
    table = models("single", HANrnn=two_tops(10, 30, 9), HANconv=two_tops(10, 30, 9), HANnoenc=two_tops(10, 30, 10))
    assert of("S10", table).words.endswith("fewer than attention's in 2 of 3 models (in the paper in 14 of 24).")


@pytest.mark.parametrize("claim", ["S5b", "S10", "S11"])
def test_a_single_model_is_not_counted_beside_the_paper(claim: str) -> None:
    tables = {"S5b": {"flips": gradient_wins(90, 10)}}.get(claim, CASES[claim][0])
    assert "paper" not in of(claim, tables).words


def test_a_difference_of_flips_has_the_interval_of_pairs() -> None:
    found = of("S10", two_tops(10, 30)).estimate
    pairs = paired_difference(gained=20, lost=0, pairs=100)
    assert found is not None
    assert (found.value, found.low, found.high, found.count) == (pairs.value, pairs.low, pairs.high, 100)


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


def test_the_line_of_the_gradient_is_the_papers() -> None:
    assert pytest.approx(1.6) == FASTER_SHARE / (1 - FASTER_SHARE)


@pytest.mark.parametrize("bias", [0.0, 0.1, 1.0])
def test_chance_in_the_place_of_attention_is_not_called_better_than_chance(bias: float) -> None:
    """Random orders of another seed take attention's place; a bias makes decisions that many orders never flip.

    Of 20 seeds one verdict either way is what an interval of 95 % allows; three would be a bias.
    """
    rng = np.random.default_rng(0)
    trace = Trace.from_arrays(
        offsets=np.arange(0, 3001, 10),
        attention_scores=rng.normal(0, 0.1, 3000),
        polarity_scores=rng.normal(0.4, 1.0, 3000),
        bias=[bias],
    )
    flips = measure(trace, seed=0, rankings=("random", "minimum"))["flips"]
    found = []
    for seed in range(1, 21):
        other = measure(trace, seed=seed, orders=1, rankings=("random", "minimum"))["flips"]
        chance = other[other["ranking"] == "random"].assign(ranking="attention")
        found.append(of("S6", {"flips": pd.concat([flips, chance], ignore_index=True)}).decision)
    assert found.count("not shown") >= 18


def test_what_attention_never_flips_counts_against_it() -> None:
    """Sixty of a hundred decisions flip sooner by attention than at random, forty never do: 60 % and not 100 %."""
    table = flips(attention=[3] * 60 + [None] * 40, random=[5] * 100, minimum=[2] * 100)
    estimate = of("S6", {"flips": table}).estimate
    assert estimate is not None
    assert (estimate.value, estimate.count) == (0.6, 100)
    gradient = of("S5", {"flips": pd.concat([table, flips(gradient=[9] * 100, product=[9] * 100)])}).estimate
    assert gradient is not None
    assert gradient.value == 0.4  # where attention never flips, nine of ten units are fewer


def test_equal_numbers_count_half() -> None:
    estimate = of("S6", {"flips": flips(attention=[4] * 100, random=[4] * 100, random_1=[5] * 100)}).estimate
    assert estimate is not None
    assert estimate.value == 0.75


def test_a_divergence_of_zero_is_on_neither_side() -> None:
    """Of 90 above and 10 below zero every one has the larger Δα; another 50 at zero have the smallest."""
    sides = tops((90, 0.5, 0.1, False, False), (10, 0.1, -0.1, False, False), (50, 0.0, 0.0, False, False))
    found = of("S2", sides).estimate
    assert found is not None
    assert (found.value, found.sides) == (1.0, (90, 10))
    share = of("S1", sides).estimate
    assert share is not None
    assert (share.value, share.count) == (0.9, 100)


def test_where_no_model_swings_up_there_is_no_earlier_upswing() -> None:
    """Both stay below the line up to the last tenth; one that reaches it there has not swung up before it either."""
    never = rising(9.0)["single"]
    at_last = never.assign(delta_js=never["delta_js"].where(never["delta_weight"] < 0.5, 0.01))
    assert earlier_upswing(never, never, 0.95) is None
    assert earlier_upswing(at_last, never, 0.95) is None
    sooner = earlier_upswing(never, rising(0.25)["single"], 0.95)
    assert sooner is not None
    assert sooner.value == pytest.approx(0.55 - 0.25)
