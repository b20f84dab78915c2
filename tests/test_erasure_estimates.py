"""The numbers behind the claims about erasure by hand, and how they are put together over seeds and models."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest

from heedful.analysis.quality import erased_counts
from heedful.analysis.statistics import LEVEL, Estimate, share
from heedful.claims.claim import decide
from heedful.claims.combine import AtLevel, contrast, mean_of, over_runs, over_seeds, smallest
from heedful.claims.erasure import FASTER_SHARE
from heedful.claims.erasure_numbers import (
    attained,
    earlier_upswing,
    later_flip,
    less_mass,
    mean_fractions,
    more_flips,
    more_top_flips,
    positive_divergence,
    smaller_difference,
    sooner,
    sooner_than_chance,
    top_only,
    unmoved,
    wins,
)
from heedful.errors import InputError
from tests.erasure_tables import flips, named, rising, single, tops

TIMES = 10  # each kind of instance so often: enough for a number


def values(found: Estimate | None) -> tuple[float, int]:
    assert found is not None
    return found.value, found.count


def test_statistics_of_single_erasures_by_hand() -> None:
    rows = [(0.5, 0.2, True, False), (0.4, 0.1, True, True), (0.1, -0.1, False, True), (0.3, 0.0, False, False)]
    table = single(rows * TIMES)
    assert positive_divergence(table, LEVEL) == share(20, 30)  # the zero tells nothing
    assert values(smaller_difference(table, LEVEL)) == (1.0, 30)
    assert top_only(table, LEVEL) == share(10, 20)
    assert unmoved(table, LEVEL) == share(20, 40)
    product = single(([(0.5, 0.2, True, False)] * 3 + [(0.0, 0.0, False, False)]) * TIMES, "product")
    both = pd.concat([table, product], ignore_index=True)
    assert values(more_top_flips("product", "attention", both, LEVEL)) == (0.25, 40)
    assert more_top_flips("gradient", "attention", both, LEVEL) is None
    assert positive_divergence(both, LEVEL) == share(20, 30)  # of attention's top only


def test_negative_divergence_at_large_differences_is_below_half() -> None:
    table = single([(0.1, 0.2, False, False), (0.2, 0.1, False, False), (0.2, -0.1, False, False)] * TIMES)
    assert values(smaller_difference(table, LEVEL)) == (0.25, 30)  # .2 against .1 counts none, against .2 half


def test_statistics_of_flips_by_hand() -> None:
    table = flips(
        mass={"attention": 0.9, "gradient": 0.5, "product": 0.6},
        attention=[4, 4, 4, 10, None] * TIMES,
        gradient=[2, 3, 5, 10, 3] * TIMES,
        product=[2, 4, 3, 10, None] * TIMES,
        random=[4, 6, 8, 10, 9] * TIMES,
        random_1=[2, 6, 8, None, 9] * TIMES,
        minimum=[2, 3, 3, 10, 3] * TIMES,
    )
    counts = erased_counts(table)
    assert counts["random"].tolist()[:4] == [3, 6, 8, 10]  # an order that never flips counts as all ten units
    assert counts["attention"][:5].isna().tolist() == [False] * 4 + [True]
    assert wins("gradient", "attention", table, LEVEL) == share(30, 40)  # what attention never flips counts as ten
    assert values(sooner_than_chance("attention", table, LEVEL)) == pytest.approx((0.5625, 40))  # ¼, 1, 1, 0
    assert wins("attention", "product", table, LEVEL) == share(0, 20)
    assert sooner("gradient", "attention", table, LEVEL) == share(30, 50)  # the last flips by gradient alone
    assert attained("attention", table, LEVEL) == share(0, 40)  # the fourth flips with nothing less than all: no merit
    assert attained("gradient", table, LEVEL) == share(30, 40)
    assert attained("product", table, LEVEL) == share(20, 40)
    assert mean_fractions(table).tolist()[:4] == pytest.approx([0.275, 0.425, 0.5, 1.0])
    assert mean_fractions(table)[4:5].isna().all()
    assert values(less_mass("product", table, LEVEL)) == pytest.approx((0.225, 40))  # .3 thrice; neither flips the last
    assert values(less_mass("gradient", table, LEVEL)) == pytest.approx((0.425, 40))  # .4 thrice, and .5


@pytest.mark.parametrize(
    "of_run", [partial(wins, "random", "margin"), partial(sooner, "random", "margin"), partial(attained, "random")]
)
def test_a_ranking_that_was_not_measured_has_no_number(of_run: Callable[[pd.DataFrame, float], object]) -> None:
    assert of_run(flips(attention=[1] * 20), LEVEL) is None


def test_instances_of_one_unit_do_not_count() -> None:
    alone, several = [1] * TIMES, [10] * TIMES
    table = flips(
        units=alone + several, attention=alone + [5] * 10, gradient=alone + [4] * 10, minimum=alone + [4] * 10
    )
    assert wins("gradient", "attention", table, LEVEL) == share(10, 10)
    assert attained("gradient", table, LEVEL) == share(10, 10)
    assert sooner("gradient", "attention", table, LEVEL) == share(10, 10)


def test_a_higher_level_widens_every_interval() -> None:
    rows = [(0.1 * place, (-1) ** place * 0.1, place % 2 == 0, place % 3 == 0) for place in range(7)]
    table = single(rows * TIMES)
    for of_run in (positive_divergence, smaller_difference, top_only, unmoved):
        narrow, wide = of_run(table, 0.95), of_run(table, 0.997)
        assert narrow is not None
        assert wide is not None
        assert wide.value == narrow.value
        assert wide.low < narrow.low < narrow.high < wide.high


def test_what_is_compared_must_be_of_the_same_instances() -> None:
    one, other = tops((20, 0.1, 0.1, True, False)), tops((20, 0.1, 0.1, False, False))
    moved = other["single"].assign(instance=range(5, 25))  # as many, but others
    with pytest.raises(
        InputError, match=r"10 are on one side only \(20 and 20 in all\): measure both on the same texts"
    ):
        more_flips(one["single"], moved, LEVEL)
    both = pd.concat([one["single"], moved.assign(ranking="product")], ignore_index=True)
    with pytest.raises(InputError, match="the same instances on both sides"):
        more_top_flips("product", "attention", both, LEVEL)
    erased = flips(attention=[3] * 20)
    with pytest.raises(InputError, match="the same instances on both sides"):
        later_flip(erased, erased.assign(instance=range(5, 25)), LEVEL)
    with pytest.raises(InputError, match="the same instances on both sides"):
        erased_counts(pd.concat([erased, erased.assign(ranking="gradient", instance=range(5, 25))]))
    with pytest.raises(InputError, match="each instance once in a run"):
        erased_counts(pd.concat([erased, erased]))


def test_instances_are_joined_by_their_number_not_by_their_place() -> None:
    one = single([(0.1, 0.1, place < 10, False) for place in range(20)])
    shuffled = one.sample(frac=1, random_state=1)
    assert values(more_flips(one, shuffled, LEVEL)) == (0.0, 20)
    found, same = more_flips(one, shuffled, LEVEL), more_flips(one, one, LEVEL)
    assert found == same  # no pair differs
    early, late = flips(attention=list(range(1, 11)) * 2), flips(attention=list(range(2, 12)) * 2)
    found = later_flip(late.sample(frac=1, random_state=1), early, LEVEL)
    assert found is not None
    assert found.value == pytest.approx(0.1)  # by a tenth in every text
    assert found.low < 0.1 < found.high  # and yet no certainty


def test_the_upswing_is_where_the_line_through_the_medians_passes() -> None:
    late, early = rising(0.5)["single"], rising(0.2)["single"]
    assert values(earlier_upswing(late, early, LEVEL)) == pytest.approx((0.3, 120))
    assert values(earlier_upswing(early, late, LEVEL)) == pytest.approx((-0.3, 120))
    never = rising(2.0)["single"]
    assert values(earlier_upswing(never, early, LEVEL))[0] == pytest.approx(0.55 - 0.2)  # the end of what both have
    assert earlier_upswing(never, never, LEVEL) is None
    at_once = rising(-1.0)["single"]
    assert values(earlier_upswing(early, at_once, LEVEL))[0] == pytest.approx(0.2 - 0.05)


def test_many_instances_of_small_differences_do_not_move_the_upswing() -> None:
    late, early = rising(0.5)["single"], rising(0.2)["single"]
    crowd = single([(0.05, 0.0, False, False)] * 500).assign(instance=range(1000, 1500))
    late, early = (pd.concat([part, crowd], ignore_index=True) for part in (late, early))
    assert values(earlier_upswing(late, early, LEVEL))[0] == pytest.approx(0.3)


def test_the_upswing_is_sought_only_where_both_models_have_enough() -> None:
    late, early = rising(0.5)["single"], rising(0.2)["single"]
    few = late["delta_weight"].gt(0.4) & (late["instance"] % 20 > 8)  # nine instances are left in each tenth above .4
    narrow = late.assign(delta_weight=late["delta_weight"].mask(few, 0.05))
    narrow["delta_js"] = late["delta_js"].mask(few, 0.0)
    assert values(earlier_upswing(narrow, early, LEVEL))[0] == pytest.approx(0.35 - 0.2)
    crowd = late.assign(delta_weight=0.05)
    assert earlier_upswing(crowd, early, LEVEL) is None  # a single tenth shows no upswing


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


def test_models_are_averaged() -> None:
    one, other = Estimate(value=0.4, low=0.3, high=0.5, count=5), Estimate(value=0.8, low=0.6, high=0.9, count=7)
    mean = mean_of([one, other])
    assert (mean.value, mean.low, mean.high, mean.count) == pytest.approx((0.6, 0.45, 0.7, 12))


def told(value: float, low: float, high: float, count: int = 9) -> AtLevel:
    """A number whose interval is wider by a tenth at both ends above the 95 % level."""

    def at(level: float) -> Estimate:
        wider = 0.1 * (level > LEVEL)
        return Estimate(value=value, low=low - wider, high=high + wider, count=count)

    return at


def test_the_smallest_has_the_smallest_low_end_and_the_smallest_high_end_at_a_stricter_level() -> None:
    found = smallest([told(0.70, 0.67, 0.73, 1000), told(0.75, 0.30, 0.95, 12)])
    assert found is not None
    assert (found.value, found.low, found.high, found.count) == pytest.approx((0.70, 0.30, 0.83, 1000))
    assert decide(found, FASTER_SHARE) == "not shown"
    assert smallest([told(0.7, 0.67, 0.73)]) == told(0.7, 0.67, 0.73)(LEVEL)  # of one there is nothing to choose


def test_the_level_is_bonferronis() -> None:
    asked: list[float] = []

    def at(level: float) -> Estimate:
        asked.append(level)
        return Estimate(value=0.5, low=0.4, high=0.6, count=1)

    smallest([at] * 4)
    assert asked == pytest.approx([0.95] * 4 + [0.9875] * 4)


def unknown(level: float) -> None:
    """At no level there is a number."""
    assert level >= LEVEL


def test_what_is_unknown_may_be_anything() -> None:
    found = smallest([told(0.7, 0.67, 0.73), unknown])
    assert found is not None
    assert (found.value, found.low, found.high) == (0.7, -np.inf, 0.73)
    assert smallest([unknown]) is None


@cache
def cached_share(successes: int, level: float) -> Estimate:
    return share(successes, 200, level=level)


def of_share(successes: int) -> AtLevel:
    return lambda level: cached_share(successes, level)


def test_sixteen_models_at_the_line_are_rarely_judged() -> None:
    """Picking the smallest model and its own interval would refute the claim in a third of the cases."""
    draws = np.random.default_rng(0).binomial(200, FASTER_SHARE, size=(600, 16))
    decisions = [decide(smallest([of_share(int(won)) for won in row]), FASTER_SHARE) for row in draws]
    picked = [decide(cached_share(int(row.min()), LEVEL), FASTER_SHARE) for row in draws]
    assert np.mean([one == "no" for one in picked]) > 0.25
    assert np.mean([one == "no" for one in decisions]) <= 0.05
    assert "yes" not in decisions


def test_only_models_with_an_encoder_where_the_claim_is_of_them() -> None:
    good, bad = flips(attention=[5] * 10, gradient=[4] * 10), flips(attention=[4] * 10, gradient=[5] * 10)
    table = pd.concat([named(good, "HANrnn"), named(bad, "HANnoenc")], ignore_index=True)
    of_run = partial(wins, "gradient", "attention")
    assert values(over_runs(of_run)(table))[0] == 0.5
    assert values(over_runs(of_run, every=True)(table))[0] == 0.0
    assert values(over_runs(of_run, encoder=True)(table))[0] == 1.0
    assert values(over_runs(of_run, encoder=False)(table))[0] == 0.0
    assert over_runs(of_run, encoder=False)(good) is None  # a user's model has no such name


def test_of_several_numbers_the_smaller_mean_over_models_counts() -> None:
    """Each ranking loses in one model: the smaller mean is one half, not the mean of the smaller ones."""
    one = flips(attention=[5] * 10, gradient=[4] * 10, product=[6] * 10)
    other = flips(attention=[5] * 10, gradient=[6] * 10, product=[4] * 10)
    table = pd.concat([named(one, "HANrnn"), named(other, "HANconv")], ignore_index=True)
    found = over_runs(partial(wins, "gradient", "attention"), partial(wins, "product", "attention"))(table)
    assert values(found)[0] == 0.5


def test_runs_are_told_apart_by_seed_and_data_set() -> None:
    parts = [
        named(single([(0.5, sign, False, False)] * 10), "HANrnn", dataset, seed)
        for dataset, seed, sign in (("yelp", 0, 1.0), ("yelp", 1, 1.0), ("imdb", 0, -1.0))
    ]
    found = over_runs(positive_divergence)(pd.concat(parts, ignore_index=True))
    assert values(found) == (0.5, 30)  # the mean over data sets, not over runs


def test_a_contrast_takes_both_models_of_a_structure_and_of_a_seed() -> None:
    late, early = flips(attention=[9] * 10, random=[9] * 10), flips(attention=[2] * 10, random=[4] * 10)
    parts = [named(late, "FLANrnn"), named(early, "FLANconv"), named(early, "HANconv"), named(early, "FLANrnn", seed=1)]
    table = pd.concat(parts, ignore_index=True)
    found = contrast(later_flip, ("gru", "conv"))(table)
    assert values(found) == pytest.approx((0.6, 10))
    assert contrast(later_flip, ("conv", "none"))(table) is None


def test_of_several_contrasts_the_smallest_counts() -> None:
    made = {"HANnoenc": 30, "HANrnn": 10, "HANconv": 25}
    parts = [
        named(tops((count, 0.1, 0.1, True, False), (100 - count, 0.1, 0.1, False, False))["single"], model)
        for model, count in made.items()
    ]
    table = pd.concat(parts, ignore_index=True)
    found = contrast(more_flips, ("none", "gru"), ("none", "conv"))(table)
    assert values(found) == pytest.approx((0.05, 100))
