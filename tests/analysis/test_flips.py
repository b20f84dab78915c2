"""How much of a lead goes, by hand and against a literal loop."""

import math

import pytest

from heedful.analysis.erasure import erase, minimum_flips
from heedful.analysis.flips import leads_taken
from heedful.analysis.rankings import RANKINGS, ranked
from heedful.traces import Trace
from tests.oracles.random_traces import random_trace


def test_the_lead_by_hand() -> None:
    """Weights ¼ each, pushes 4, 2, −1, −3: the lead is ½. Without the first unit it is −2/3, so one unit is enough.

    Attention takes the first of four equals: the lead is gone. With more weight on the last, it takes that one, and the
    lead grows.
    """
    even = Trace.from_arrays(
        offsets=[0, 4], attention_scores=[0.0] * 4, polarity_scores=[4.0, 2.0, -1.0, -3.0], bias=[0.0]
    )
    assert leads_taken(even, minimum_flips(even)).tolist() == [1.0]
    last = Trace.from_arrays(
        offsets=[0, 4], attention_weights=[0.2, 0.2, 0.2, 0.4], polarity_scores=[9.0, 2.0, -1.0, -3.0], bias=[0.0]
    )
    assert leads_taken(last, minimum_flips(last)).tolist() == [0.0]


def test_half_a_lead_by_hand() -> None:
    """Two units of 4 and two of −1 with even weights: the lead is 1.5. One erased leaves 2/3, both leave −1.

    The minimum is two. An order that takes one of 4 and one of −1 leaves (4 − 1)/2 = 1.5: nothing is gone.
    """
    trace = Trace.from_arrays(
        offsets=[0, 4], attention_weights=[0.3, 0.2, 0.2, 0.3], polarity_scores=[4.0, 4.0, -1.0, -1.0], bias=[0.0]
    )
    minimum = minimum_flips(trace)
    assert minimum["erased"].tolist() == [2]
    assert leads_taken(trace, minimum, "attention").tolist() == pytest.approx([0.0])
    assert leads_taken(trace, minimum, "margin").tolist() == [1.0]


def test_without_a_minimum_or_where_all_must_go_there_is_no_number() -> None:
    """Class 1 with a bias of −1: erasing all flips, one of two does not. Class 0 with a bias of −1 never flips."""
    trace = Trace.from_arrays(
        offsets=[0, 2, 4],
        attention_scores=[0.0] * 4,
        polarity_scores=[[0.0, 2.0], [0.0, 2.0], [0.0, -2.0], [0.0, -2.0]],
        bias=[0.0, -1.0],
    )
    found = leads_taken(trace, minimum_flips(trace))
    assert [math.isnan(value) for value in found.tolist()] == [True, True]


def test_what_a_bias_gives_no_unit_holds_by_hand() -> None:
    """Even weights and a bias of 1. Pushes 4, −2, −2 give no lead of their own. Pushes 2, 5, −3 give 4/3 of 7/3.

    Two units must go there, 2 and 5. Without the first alone the lead is (5 − 3)/2 + 1 = 2: a quarter of 4/3 is gone.
    """
    trace = Trace.from_arrays(
        offsets=[0, 3, 6],
        attention_weights=[1 / 3] * 6,
        polarity_scores=[4.0, -2.0, -2.0, 2.0, 5.0, -3.0],
        bias=[1.0],
    )
    minimum = minimum_flips(trace)
    assert minimum["erased"].tolist() == [1, 2]
    nothing, whole = leads_taken(trace, minimum, "margin").tolist()
    assert (math.isnan(nothing), whole) == (True, 1.0)
    assert leads_taken(trace, minimum.assign(erased=[1, 1])).tolist()[1] == pytest.approx(0.25)


@pytest.mark.parametrize("by", RANKINGS)
@pytest.mark.parametrize("seed", range(3))
def test_leads_are_those_of_a_literal_loop(by: str, seed: int) -> None:
    trace = random_trace(seed, instances=60, longest=12)
    minimum = minimum_flips(trace)
    found, order = leads_taken(trace, minimum, by, seed=5), ranked(trace, by, seed=5)
    sizes = minimum["erased"].where(minimum["erased"] < minimum["units"]).fillna(0).tolist()
    for row, size in enumerate(sizes):
        where = trace.instance(row)
        gone = [int(place) - where.start for place in order[where][:size]]
        before, after = (lead(trace, row, positions) for positions in ([], gone))
        given = before - max(0.0, lead(trace, row, list(range(where.stop - where.start))))
        gone_share = (min(1.0, max(0.0, (before - after) / given)) if after > 0 else 1.0) if given > 0 else math.nan
        wanted = gone_share if size else math.nan
        assert float(found[row]) == pytest.approx(wanted, abs=1e-9, nan_ok=True)


def lead(trace: Trace, row: int, positions: list[int]) -> float:
    logits = erase(trace, row, positions).tolist()
    own = int(trace.predictions[row])
    return float(logits[own] - max(value for place, value in enumerate(logits) if place != own))
