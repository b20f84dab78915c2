"""Small sets that flip decisions: they flip, none of their units is idle, and what is called smallest is."""

from itertools import combinations

import numpy as np
import pytest
import torch

from heedful.analysis.decisions import NEVER
from heedful.analysis.erasure import minimum_flips
from heedful.analysis.faithfulness import plant
from heedful.analysis.faithfulness.planted import MAKERS, hand_game
from heedful.analysis.flips import FLIP_COLUMNS, TraceReading, leads_taken
from heedful.analysis.rankings import ranked
from heedful.analysis.smallest import (
    SmallSets,
    flips_of_orders,
    leads_gone,
    random_order,
    single_removals,
    smallest_found,
)
from heedful.explainers import explain
from heedful.subjects import ATTENTION, DELETE, Reading
from tests.oracles.random_traces import random_trace


def flips(reading: Reading, row: int, positions: tuple[int, ...], how: str) -> bool:
    gone = torch.zeros(int(reading.units.lengths[row]), dtype=torch.bool)
    gone[list(positions)] = True
    rows = torch.tensor([row])
    return bool((reading.decide(rows, gone, how) != reading.decisions[rows])[0])


def smallest_by_trying_all(reading: Reading, row: int, how: str) -> int:
    length = int(reading.units.lengths[row])
    sizes = range(1, length + 1)
    return next(
        (size for size in sizes for one in combinations(range(length), size) if flips(reading, row, one, how)), NEVER
    )


def positions(sets: SmallSets, row: int) -> tuple[int, ...]:
    own = sets.gone[int(sets.offsets[row]) : int(sets.offsets[row + 1])]
    return tuple(own.nonzero().squeeze(1).tolist())


@pytest.mark.parametrize("world", MAKERS)
def test_sets_flip_have_no_idle_unit_and_are_smallest_where_that_is_proven(world: str) -> None:
    reading = plant(world, texts=25, seed=3).reading
    sets = smallest_found(reading, [random_order(reading.units, seed=5)], how=DELETE, most_sets=60)
    assert bool(sets.proven.any())
    for row in range(25):
        found = positions(sets, row)
        if not bool(sets.found[row]):
            assert found == ()
            continue
        assert len(found) == int(sets.erased[row])
        assert flips(reading, row, found, DELETE)
        idle = [unit for unit in found if len(found) > 1 and flips(reading, row, tuple({*found} - {unit}), DELETE)]
        assert idle == []
        if bool(sets.proven[row]):
            units = range(int(sets.lengths[row]))
            smaller = [one for size in range(1, len(found)) for one in combinations(units, size)]
            assert not any(flips(reading, row, one, DELETE) for one in smaller)


def test_with_enough_questions_the_smallest_set_of_every_short_text_is_found() -> None:
    reading = plant("and", texts=12, seed=1).reading
    sets = smallest_found(reading, [random_order(reading.units, seed=2)], how=DELETE, most_sets=70_000)
    for row in range(12):
        if int(reading.units.lengths[row]) <= 10:
            assert int(sets.erased[row]) == smallest_by_trying_all(reading, row, DELETE)


def test_on_the_hand_game_one_word_decides() -> None:
    """Without *good* the probability falls from 3/4 to 1/4."""
    reading = hand_game()
    sets = smallest_found(reading, [], how=DELETE)
    assert positions(sets, 0) == (1,)
    assert (sets.erased.tolist(), sets.proven.tolist()) == ([1], [True])


@pytest.mark.parametrize("seed", range(6))
def test_on_traces_nothing_is_smaller_than_the_true_minimum_and_what_is_proven_is_it(seed: int) -> None:
    trace = random_trace(seed, instances=30, longest=7, spread=1.0)
    sets = smallest_found(TraceReading(trace=trace), [ranked(trace, "attention")], how=ATTENTION)
    true = torch.from_numpy(minimum_flips(trace)["erased"].to_numpy(dtype=np.int64, na_value=NEVER))
    assert bool((sets.erased >= true).all())
    assert torch.equal(sets.erased[sets.proven], true[sets.proven])


def test_the_lead_that_goes_is_that_of_traces() -> None:
    trace = random_trace(8, instances=60, longest=9, spread=1.0)
    reading, order, minimum = TraceReading(trace=trace), ranked(trace, "attention"), minimum_flips(trace)
    true = torch.from_numpy(minimum["erased"].to_numpy(dtype=np.int64, na_value=NEVER))
    none = torch.zeros(len(reading.units.segments), dtype=torch.bool)
    sets = SmallSets(offsets=trace.offsets, gone=none, erased=true, proven=torch.ones_like(true, dtype=torch.bool))
    found = leads_gone(reading, sets, order, how=ATTENTION)
    expected = leads_taken(trace, minimum, "attention")
    known = expected.isfinite() & found.isfinite()
    assert int(known.sum()) > 30
    torch.testing.assert_close(found[known], expected[known], atol=1e-6, rtol=0)


def test_the_table_of_flips_has_a_row_for_every_order_and_text() -> None:
    reading = hand_game()
    truth = explain(reading, by="leave_one_out")
    sets = smallest_found(reading, [truth.order], how=DELETE)
    weights = torch.full((4,), 0.25, dtype=torch.float64)
    table = flips_of_orders(reading, {"leave_one_out": truth}, sets, weights, how=DELETE, orders=2)
    assert table.columns.tolist() == FLIP_COLUMNS
    assert table["ranking"].tolist() == ["leave_one_out", "random", "random", "minimum"]
    own = table.set_index("ranking").loc["leave_one_out"]
    assert (own["erased"], own["mass"], own["lead_taken"]) == (1, 0.25, 1.0)


def test_the_first_unit_alone_beside_another_one() -> None:
    """The decision is yes at 3/4: without *good* it is no at 1/4, without any other word it stays."""
    reading = hand_game()
    table = single_removals(reading, explain(reading, by="leave_one_out"), how=DELETE)
    assert table[["units", "flip_top", "flip_random"]].iloc[0].tolist() == [4, True, False]
    p, q = np.array([0.25, 0.75]), np.array([0.75, 0.25])
    middle = (p + q) / 2
    divergence = 0.5 * (p * np.log(p / middle)).sum() + 0.5 * (q * np.log(q / middle)).sum()
    assert table["js_top"].iloc[0] == pytest.approx(divergence)
