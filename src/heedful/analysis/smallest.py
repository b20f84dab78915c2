"""Small sets of units whose removal flips the decision of any reading: searched, made irreducible, proven where it can.

Of a trace the smallest set is known exactly (`heedful.analysis.erasure.minimum_flips`). Any other model can only be
asked. The search begins with the shortest prefix of some orders of the units that flips the decision; where that is
long it takes away, step by step, the unit that costs most beside those that are gone; it puts back each unit that is
not needed, and then asks about all smaller sets where these are few. What is found is an upper bound, and **proven**
smallest where every smaller set was asked about and none flips. `irreducible` means here that putting back any one unit
undoes the flip.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from math import comb

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.decisions import NEVER
from heedful.analysis.erasure import js_divergence
from heedful.analysis.faithfulness.cost import Cost
from heedful.analysis.flips import FLIP_COLUMNS, ORDERS, flips_along
from heedful.analysis.rankings import sorted_units
from heedful.explanations import Explanation
from heedful.subjects import Reading, Units
from heedful.text.ragged import offsets_of, segment_sum
from heedful.traces import Ragged

MOST_SETS = 250
"""So many sets of units of a text are asked about at most to prove that no smaller one flips its decision."""

SMALL, STEPS = 3, 8
"""Where a set has more units than the first, it is looked for step by step, at most so many steps."""

RANDOM, MINIMUM = "random", "minimum"

TINY = 1e-12
"""Probabilities below it count as this much."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SmallSets(Ragged):
    """A set of units of each text whose removal flips its decision."""

    gone: Bool[Tensor, " units"]
    erased: Int[Tensor, " instances"]
    """How many they are; `NEVER` where no set was found."""
    proven: Bool[Tensor, " instances"]
    """Whether no smaller set flips the decision: each was asked about."""

    @property
    def found(self) -> Bool[Tensor, " instances"]:
        return self.erased < NEVER

    @property
    def resting(self) -> Bool[Tensor, " instances"]:
        """Whether fewer units than all were found to be enough."""
        return self.erased < self.lengths


class Search:
    """The sets of one reading while they get smaller."""

    def __init__(self, reading: Reading, how: str) -> None:
        self.reading, self.how, self.units = reading, how, reading.units
        self.decisions = reading.decisions
        self.gone = torch.zeros(len(self.units.segments), dtype=torch.bool)
        self.erased = torch.full((len(self.units),), NEVER)
        self.proven = torch.zeros(len(self.units), dtype=torch.bool)

    @property
    def result(self) -> SmallSets:
        return SmallSets(offsets=self.units.offsets, gone=self.gone, erased=self.erased, proven=self.proven)

    def flips(self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"]) -> Bool[Tensor, " rows"]:
        """Whether the decisions on these texts are others without the marked units."""
        return self.reading.decide(rows, gone, self.how) != self.decisions[rows]

    def take(self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"]) -> None:
        """These sets are those of their texts from now on."""
        self.gone[self.units.of_rows(rows)] = gone
        self.erased[rows] = segment_sum(gone.double(), offsets_of(self.units.lengths[rows])).long()

    def follow(self, order: Int[Tensor, " units"]) -> None:
        """The shortest prefix of an order that flips the decision, where it is shorter than what is known."""
        sizes = prefix_flips(self.reading, order, self.how)
        rows = (sizes < self.erased).nonzero().squeeze(1)
        self.take(rows, first_units(self.units, order, sizes)[self.units.of_rows(rows)])

    def step_by_step(self) -> None:
        """Take away the unit that costs the lead most beside those that are gone, where what is known is large."""
        gone = torch.zeros_like(self.gone)
        rows = ((self.erased > SMALL) & (self.units.lengths > SMALL)).nonzero().squeeze(1)
        for size in range(1, STEPS + 1):
            rows = rows[(self.erased[rows] > size) & (self.units.lengths[rows] > size)]
            if not len(rows):
                return
            flipped = self._step(rows, gone)
            self.take(rows[flipped], gone[self.units.of_rows(rows[flipped])])

    def _step(self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " units"]) -> Bool[Tensor, " rows"]:
        """Mark one more unit of each text as gone, the one without which the lead is least; whether that flips it."""
        left = self.units.of_rows(rows)
        left = left[~gone[left]]
        owners = self.units.segments[left]
        sets, starts = gone[self.units.of_rows(owners)], offsets_of(self.units.lengths[owners])[:-1]
        sets[starts + left - self.units.offsets[owners]] = True
        lead = leads(self.reading.without(owners, sets, self.how), self.decisions[owners])
        offsets = offsets_of(torch.bincount(owners, minlength=len(self.units))[rows])
        gone[left[sorted_units(-lead, offsets)[offsets[:-1]]]] = True
        return self.flips(rows, gone[self.units.of_rows(rows)])

    def put_back(self) -> None:
        """Put back every unit that is not needed, until all are: round after round, each text one unit at a time."""
        rows = (self.erased < NEVER).nonzero().squeeze(1)
        while len(rows):
            before = self.erased[rows].clone()
            for place in count():
                some = rows[self.units.lengths[rows] > place]
                if not len(some):
                    break
                self._put_back(some, self.units.offsets[:-1][some] + place)
            rows = rows[self.erased[rows] < before]

    def _put_back(self, rows: Int[Tensor, " rows"], units: Int[Tensor, " rows"]) -> None:
        """Put back one unit of each text where it is gone and not needed; something always stays gone."""
        could = self.gone[units] & (self.erased[rows] > 1)
        rows, units = rows[could], units[could]
        if not len(rows):
            return
        places, starts = self.units.of_rows(rows), offsets_of(self.units.lengths[rows])[:-1]
        without = self.gone[places]
        without[starts + units - self.units.offsets[:-1][rows]] = False
        kept = self.flips(rows, without)
        chosen = torch.repeat_interleave(kept, self.units.lengths[rows])
        self.take(rows[kept], without[chosen])

    def try_smaller(self, most: int) -> None:
        """Ask about all sets of one unit, of two, … that are smaller than what is known, while they are few."""
        asked = torch.zeros(len(self.units), dtype=torch.int64)
        open_ones = torch.ones_like(self.proven)
        for size in count(1):
            open_ones &= (self.units.lengths > size) & (self.erased > size)
            sets = torch.tensor([comb(length, size) for length in self.units.lengths.tolist()], dtype=torch.float64)
            open_ones &= (size == 1) | (asked + sets <= most)
            rows = open_ones.nonzero().squeeze(1)
            if not len(rows):
                return
            asked[rows] += sets[rows].long()
            self._try_size(rows, size)
            done = self.erased[rows] <= size + 1
            self.proven[rows[done]] = True
            open_ones[rows[self.erased[rows] <= size]] = False

    def _try_size(self, rows: Int[Tensor, " rows"], size: int) -> None:
        """Ask about all sets of so many units of these texts, and take the first of each that flips."""
        sets = [(row, one) for row in rows.tolist() for one in combinations(range(int(self.units.lengths[row])), size)]
        of = torch.tensor([row for row, _ in sets])
        starts = offsets_of(self.units.lengths[of])[:-1]
        gone = torch.zeros(int(self.units.lengths[of].sum()), dtype=torch.bool)
        gone[(starts[:, None] + torch.tensor([one for _, one in sets])).flatten()] = True
        flipped = self.flips(of, gone).nonzero().squeeze(1)
        first = {int(of[place]): place for place in reversed(flipped.tolist())}
        for row, place in first.items():
            begin = int(starts[place])
            self.take(torch.tensor([row]), gone[begin : begin + int(self.units.lengths[row])])


def smallest_found(
    reading: Reading, orders: Sequence[Int[Tensor, " units"]], *, how: str, most_sets: int = MOST_SETS
) -> SmallSets:
    """The smallest sets that the search finds: an upper bound for each text, irreducible, and proven where it says so.

    orders: units of each text, the most important first (`Explanation.order`), where the search begins.
    most_sets: of one text; all single units are asked about in any case.
    """
    search = Search(reading, how)
    for order in orders:
        search.follow(order)
    search.step_by_step()
    search.put_back()
    search.try_smaller(most_sets)
    search.proven |= search.erased == 1
    return search.result


def cost_of_search(lengths: Int[Tensor, " instances"], orders: int) -> Cost:
    """What is asked at most along so many orders, as many by chance as are drawn, and for the smallest sets."""
    each = (orders + ORDERS + STEPS + 2) * lengths + lengths.clamp(min=MOST_SETS)
    return Cost.of(lengths, each)


def prefix_flips(reading: Reading, order: Int[Tensor, " units"], how: str) -> Int[Tensor, " instances"]:
    """How many units of an order go before the decision flips; `NEVER` where it does not."""
    table = flips_along(reading, order, torch.zeros(len(order), dtype=torch.float64), how=how)
    return torch.from_numpy(table["erased"].to_numpy(dtype=np.int64, na_value=NEVER))


def first_units(units: Units, order: Int[Tensor, " units"], sizes: Int[Tensor, " instances"]) -> Bool[Tensor, " units"]:
    """Which units are among the first of their text; so many of it, none where that is `NEVER`."""
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order)) - units.offsets[:-1][units.segments]
    return places < sizes.where(sizes < NEVER, 0)[units.segments]


def leads(said: Float[Tensor, "rows classes"], decided: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
    """log p_y − max over k ≠ y of log p_k, which is the lead of the logits."""
    logs = said.clamp(min=TINY).log()
    own = decided[:, None]
    return logs.gather(1, own).squeeze(1) - logs.scatter(1, own, -torch.inf).amax(1)


def leads_gone(
    reading: Reading, sets: SmallSets, order: Int[Tensor, " units"], *, how: str
) -> Float[Tensor, " instances"]:
    """The share of a decision's lead that goes with as many units of an order as the smallest set found has.

    As `heedful.analysis.flips.leads_taken` has it for traces: (lead(∅) − lead(S)) / (lead(∅) − B) within 0 … 1, with B
    the lead that is left of y when everything is gone, if it is one; 1 where the decision flips. Not a number where no
    part was found to be enough.
    """
    rows = sets.resting.nonzero().squeeze(1)
    found = torch.full((len(sets.erased),), torch.nan, dtype=torch.float64)
    if not len(rows):
        return found
    decided, places = reading.decisions[rows], reading.units.of_rows(rows)
    some = first_units(reading.units, order, sets.erased.where(sets.resting, 0))[places]
    before = leads(reading.probabilities[rows], decided)
    after = reading.without(rows, some, how)
    everything = leads(reading.without(rows, torch.ones_like(some), how), decided).clamp(min=0)
    given = before - everything
    share = ((before - leads(after, decided)) / given).clamp(0, 1).where(given > 0, torch.nan)
    found[rows] = share.where(after.argmax(1) == decided, 1.0)
    return found


def flips_of_orders(
    reading: Reading,
    explanations: Mapping[str, Explanation],
    sets: SmallSets,
    weights: Float[Tensor, " units"],
    *,
    how: str,
    seed: int = 0,
    orders: int = ORDERS,
) -> pd.DataFrame:
    """The table `flips` (`heedful.analysis.flips.measure`) of any reading; its minimum are the smallest sets found.

    explanations: by the names that their orders have in the table; random orders are drawn by the seed.
    weights: what each unit counts in the column `mass`, summing to one in each text.
    """
    drawn = {(RANDOM, number): random_order(reading.units, seed=seed, number=number) for number in range(orders)}
    ranked = {(name, 0): one.order for name, one in explanations.items()} | drawn
    tables = [
        flips_along(reading, order, weights, how=how).assign(
            ranking=name, order=number, lead_taken=leads_gone(reading, sets, order, how=how).numpy()
        )
        for (name, number), order in ranked.items()
    ]
    whole = pd.concat([*tables, _of_sets(reading, sets, weights)], ignore_index=True)
    return whole.assign(decision=reading.decisions.numpy()[whole["instance"]])[FLIP_COLUMNS]


def _of_sets(reading: Reading, sets: SmallSets, weights: Float[Tensor, " units"]) -> pd.DataFrame:
    """The sets found with the columns of the rankings."""
    never, units = ~sets.found.numpy(), reading.units.lengths.numpy()
    erased = np.where(never, 0, sets.erased.numpy())
    mass = segment_sum(weights * sets.gone, reading.units.offsets).numpy()
    return pd.DataFrame(
        {
            "instance": np.arange(len(units)),
            "units": units,
            "erased": pd.arrays.IntegerArray(erased, never),
            "fraction": np.where(never, np.nan, erased / units),
            "mass": np.where(never, np.nan, mass),
            "ranking": MINIMUM,
            "order": 0,
            "lead_taken": np.where(sets.resting.numpy(), 1.0, np.nan),
        }
    )


def random_order(units: Units, *, seed: int = 0, number: int = 0) -> Int[Tensor, " units"]:
    """The units of each text in an order drawn by chance."""
    keys = torch.from_numpy(np.random.default_rng([seed, number]).random(len(units.segments)))
    return sorted_units(keys, units.offsets)


def single_removals(reading: Reading, explanation: Explanation, *, how: str, seed: int = 0) -> pd.DataFrame:
    """The table `single` of one explanation: its first unit gone, beside another one drawn by chance.

    On texts of two units or more; the columns are those of `heedful.analysis.flips.single_erasures` that any reading
    has: ranking, instance, units, decision, js_top, js_random, delta_js, flip_top, flip_random.
    """
    units, whole = reading.units, reading.probabilities
    rows = (units.lengths > 1).nonzero().squeeze(1)
    top, other = _tops(units, explanation.order, random_order(units, seed=seed), rows)
    found: dict[str, np.ndarray] = {}
    for name, chosen in (("top", top), ("random", other)):
        gone = torch.zeros(len(units.segments), dtype=torch.bool)
        gone[chosen] = True
        after = reading.without(rows, gone[units.of_rows(rows)], how)
        found[f"js_{name}"] = js_divergence(whole[rows], after).numpy()
        found[f"flip_{name}"] = (after.argmax(1) != reading.decisions[rows]).numpy()
    said = {"ranking": explanation.method, "instance": rows.numpy(), "units": units.lengths[rows].numpy()}
    table = pd.DataFrame({**said, "decision": reading.decisions[rows].numpy(), **found})
    return table.assign(delta_js=table["js_top"] - table["js_random"])


def _tops(
    units: Units, order: Int[Tensor, " units"], chance: Int[Tensor, " units"], rows: Int[Tensor, " rows"]
) -> Iterator[Int[Tensor, " rows"]]:
    """The first unit of each text in an order, and the first by chance that is another one."""
    begins = units.offsets[:-1][rows]
    top, drawn = order[begins], chance[begins]
    yield top
    yield torch.where(drawn == top, chance[begins + 1], drawn)
