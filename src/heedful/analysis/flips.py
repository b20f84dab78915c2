"""Flips along rankings as tables: those of a trace that the claims are judged on, and those of any reading.

`measure` makes the tables `single` and `flips` of Serrano & Smith 2019, sections 4 and 5: one unit erased beside
another one, and units erased along a ranking until the decision flips. To the paper's four rankings come `margin` and,
per instance, the true `minimum`.

`flips_along` is written against a reading of texts (`heedful.subjects`), which any classifier has; that of a trace
knows exactly what erasing its weights does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.decisions import NEVER, decisions, decisions_after, erased_logits, logits
from heedful.analysis.erasure import Flips, first_flips, flip_table, flips_by_keys, minimum_flips, single_erasure
from heedful.analysis.erasure_loops import arrays
from heedful.analysis.rankings import RANKINGS, Ranking, ranked
from heedful.errors import InputError, UnknownName
from heedful.subjects import ATTENTION, Reading, Units, check_way
from heedful.text.ragged import segment_softmax, segment_sum
from heedful.traces import Ragged, Trace

TOPS = ("attention", "gradient", "product")
"""The rankings whose top unit is erased alone."""

MEASURED = (*TOPS, "random", "margin", "minimum")
"""The rankings of the table `flips`; the minimum is none, but its sets stand beside theirs."""

ORDERS = 3

SINGLE_COLUMNS = ["ranking", "instance", "units", "label", "decision"]
SINGLE_COLUMNS += ["delta_weight", "js_top", "js_random", "delta_js", "flip_top", "flip_random"]
FLIP_COLUMNS = ["ranking", "order", "instance", "decision", "units", "erased", "fraction", "mass", "lead_taken"]

SPACINGS = ("even", "geometric")


def measure(
    trace: Trace, *, seed: int = 0, orders: int = ORDERS, rankings: Sequence[str] = MEASURED
) -> dict[str, pd.DataFrame]:
    """Both tables of one trace; `seed` draws the other unit and the random orders.

    `single`: one row per ranking and instance of two units or more, with the columns of `single_erasure`.
    `flips`: one row per ranking, order and instance. `erased` is null where nothing flips; instances of one unit are
    there and told by `units`, so that each convention of what to leave out can be had. `lead_taken` is the share of
    the decision's lead that goes with as many units of the ranking as the minimum has (`leads_taken`).
    """
    flips = flips_of_rankings(trace, seed=seed, orders=orders, rankings=rankings)
    return {"single": single_erasures(trace, seed=seed), "flips": flips}


def single_erasures(trace: Trace, *, seed: int = 0) -> pd.DataFrame:
    """The table `single`: the top unit of each ranking erased, beside another one."""
    labels = torch.zeros_like(trace.lengths) if trace.labels is None else trace.labels
    units, numbers, decided = arrays(trace.lengths, labels, decisions(trace))
    known = pd.arrays.IntegerArray(numbers, np.full(len(trace), trace.labels is None))
    tables = [
        single_erasure(trace, by=by, seed=seed).assign(ranking=by, units=units, label=known, decision=decided)
        for by in TOPS
    ]
    whole = pd.concat(tables, ignore_index=True)
    return whole.loc[whole["units"] > 1, SINGLE_COLUMNS].astype({"flip_random": bool}).reset_index(drop=True)


def flips_of_rankings(
    trace: Trace, *, seed: int = 0, orders: int = ORDERS, rankings: Sequence[str] = MEASURED
) -> pd.DataFrame:
    """The table `flips`: what is erased at the first flip along each ranking, and by the minimum."""
    minimum = minimum_flips(trace)
    tables = [
        _ranked(trace, minimum, by, seed, orders if RANKINGS[by].chance else 1) for by in rankings if by != "minimum"
    ]
    flips = pd.concat([*tables, _minimum(trace, minimum)], ignore_index=True)
    return flips.assign(decision=decisions(trace).numpy(force=True)[flips["instance"]])[FLIP_COLUMNS]


def _ranked(trace: Trace, minimum: pd.DataFrame, by: str, seed: int, orders: int) -> pd.DataFrame:
    table = first_flips(trace, by=by, seed=seed, orders=orders)
    taken = torch.cat([leads_taken(trace, minimum, by, seed=seed, order=order) for order in range(orders)])
    table = table if "order" in table else table.assign(order=0)
    return table.assign(ranking=by, lead_taken=taken.numpy(force=True))


def _minimum(trace: Trace, table: pd.DataFrame) -> pd.DataFrame:
    """The smallest sets with the columns of the rankings."""
    starts, counts = trace.offsets[:-1].tolist(), table["erased"].to_numpy(dtype=np.float64, na_value=np.nan)
    units = [begin + place for begin, some in zip(starts, table["positions"], strict=True) for place in some or ()]
    gone = torch.zeros_like(trace.attention_weights)
    gone[units] = trace.attention_weights[units]
    mass = segment_sum(gone, trace.offsets).numpy(force=True)
    return table.assign(
        ranking="minimum",
        order=0,
        fraction=counts / table["units"],
        mass=np.where(np.isnan(counts), np.nan, mass),
        lead_taken=np.where(counts < table["units"], 1.0, np.nan),
    )


def leads_taken(
    trace: Trace, minimum: pd.DataFrame, by: str | Ranking = "attention", *, seed: int = 0, order: int = 0
) -> Float[Tensor, " instances"]:
    """The share of the lead that is gone after as many erasures along the ranking as the minimum set has units.

    The first flip along a ranking asks for the whole way: an order that finds both words a decision rests on, and then
    leaves it to the rest of the text, whose tiny contributions may point either way, can look as bad as chance. The
    lead tells such an order from one that finds neither. It is logit_y − max_{k≠y} logit_k of the decision y. What a
    bias in favour of y gives no unit holds: with B = max(0, b_y − max_{k≠y} b_k) the share is
    (lead(∅) − lead(S)) / (lead(∅) − B), within 0 … 1, and 1 where the decision flips. Not a number where only erasing
    everything flips, or nothing, or where the text gives no lead.
    """
    sizes = torch.from_numpy(minimum["erased"].to_numpy(dtype="float64", na_value=float("nan"))).to(trace.bias.device)
    known = sizes < trace.lengths
    places = _places_along(ranked(trace, by, seed=seed, order=order), trace)
    gone = (places < sizes[trace.segments]) & known[trace.segments]
    before, after = (_leads(trace, scores) for scores in (logits(trace), _without(trace, gone)))
    given = before - _leads(trace, trace.bias.expand(len(trace), -1)).clamp(min=0)
    taken = ((before - after) / given).clamp(0, 1).where(after > 0, 1.0)
    return taken.where(known & (before > 0) & (given > 0), torch.nan)


def _leads(trace: Trace, scores: Float[Tensor, "instances classes"]) -> Float[Tensor, " instances"]:
    chosen = decisions(trace)[:, None]
    return scores.gather(1, chosen).squeeze(1) - scores.scatter(1, chosen, -torch.inf).amax(1)


def _without(trace: Trace, gone: Bool[Tensor, " units"]) -> Float[Tensor, "instances classes"]:
    """The logits after erasure, the bias alone where no weight remains."""
    scores = trace.attention_scores.masked_fill(gone, -torch.inf)
    weightless = (torch.segment_reduce(scores, "max", offsets=trace.offsets) == -torch.inf)[trace.segments]
    weights = segment_softmax(scores.masked_fill(weightless, 0.0), trace.offsets).masked_fill(weightless, 0.0)
    sums = torch.zeros(len(trace), len(trace.bias), dtype=torch.float64, device=weights.device)
    return trace.bias + sums.index_add_(0, trace.segments, weights[:, None] * trace.polarity_scores)


def _places_along(order: Int[Tensor, " units"], of: Ragged) -> Int[Tensor, " units"]:
    """For every unit its place, from 0 on, in an order of the units of its instance (as `ranked` gives it)."""
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order), device=order.device) - of.offsets[:-1][of.segments]
    return places


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceReading(Reading):
    """A trace as a reading: erasing attention weights is all it can do, and it knows exactly what that does."""

    trace: Trace
    ways: tuple[str, ...] = (ATTENTION,)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.trace.class_names

    @property
    def units(self) -> Units:
        return Units(offsets=self.trace.offsets, names=self.trace.units)

    @property
    def probabilities(self) -> Float[Tensor, "instances classes"]:
        return self.trace.probabilities

    @property
    def decisions(self) -> Int[Tensor, " instances"]:
        return decisions(self.trace)

    def without(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str = ATTENTION
    ) -> Float[Tensor, "rows classes"]:
        check_way(how, self)
        return erased_logits(self._of(rows), gone).softmax(1)

    def decide(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str = ATTENTION
    ) -> Int[Tensor, " rows"]:
        check_way(how, self)
        return decisions_after(self._of(rows), gone)

    def _of(self, rows: Int[Tensor, " rows"]) -> Trace:
        every = len(rows) == len(self.trace) and bool((rows == torch.arange(len(rows), device=rows.device)).all())
        return self.trace if every else replace(self.trace, units=None).take(rows)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """How many units of a text are gone at each look: after every unit, or at a few places.

    Reading a text again after every unit costs the square of its length. With `steps` there are at most so many looks,
    the last with everything gone: at even shares of the text, or at sizes that grow by a factor from one unit on, which
    looks closely where flips come early.
    """

    steps: int | None = None
    spacing: str = "even"

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise InputError(f"steps must be 1 or more, or None to look after every unit; got {self.steps}.")
        if self.spacing not in SPACINGS:
            raise UnknownName("spacing", self.spacing, SPACINGS)

    def sizes(self, units: int) -> list[int]:
        """The looks at a text of so many units, in order, the last at all of them."""
        if self.steps is None or self.steps >= units:
            return list(range(1, units + 1))
        parts = np.arange(1, self.steps + 1) / self.steps
        even = self.spacing == "even"
        sizes = np.ceil(units * parts - 1e-9) if even else np.rint(units ** np.linspace(0, 1, self.steps))
        return sorted({*sizes.astype(int).tolist(), units})

    def looks(self, lengths: Int[Tensor, " instances"]) -> Iterator[Int[Tensor, " instances"]]:
        """Look after look how many units of every text are gone; the shorter ones stay at all of them."""
        sizes = {units: self.sizes(units) for units in lengths.unique().tolist()}
        for look in range(max(map(len, sizes.values()))):
            at = {units: found[min(look, len(found) - 1)] for units, found in sizes.items()}
            yield torch.tensor([at[units] for units in lengths.tolist()])


def flips_along(
    reading: Reading,
    order: Int[Tensor, " units"],
    weights: Float[Tensor, " units"],
    *,
    how: str,
    grid: Grid | None = None,
) -> pd.DataFrame:
    """Per text of a reading the shortest prefix of an order whose removal flips the decision.

    `order` has the units of each text, the most important first, as `ranked` does; `weights` is what each counts in the
    column `mass`. The columns are those of `first_flips`. With steps in the grid `erased` is the first look at which
    the decision has flipped: an upper bound. Of a trace every prefix is known exactly, without looking.
    """
    check_way(how, reading)
    looks, units = grid or Grid(), reading.units
    places = _places_along(order, units)
    if isinstance(reading, TraceReading) and how == ATTENTION and looks.steps is None:
        exact = flips_by_keys(reading.trace, -places.double())
        mass = segment_sum(weights * (places < exact.erased[units.segments]), units.offsets)
        own = weights is reading.trace.attention_weights
        return flip_table(exact if own else replace(exact, mass=mass), units.lengths)
    erased, flipped_to = torch.full_like(reading.decisions, NEVER), reading.decisions.clone()
    last = torch.zeros_like(erased)
    for sizes in looks.looks(units.lengths):  # all texts that have not flipped at once
        rows = ((erased == NEVER) & (sizes > last)).nonzero().squeeze(1)
        if not len(rows):
            continue
        after = reading.decide(rows, (places < sizes[units.segments])[units.of_rows(rows)], how)
        flipped = after != reading.decisions[rows]
        erased[rows[flipped]], flipped_to[rows[flipped]] = sizes[rows[flipped]], after[flipped]
        last = sizes
    mass = segment_sum(weights * (places < erased[units.segments]), units.offsets)
    return flip_table(Flips(erased=erased, flipped_to=flipped_to, mass=mass), units.lengths)


def in_front(said: Mapping[str, object], table: pd.DataFrame) -> pd.DataFrame:
    """The table with constant columns before its own."""
    return pd.concat([pd.DataFrame(dict(said), index=table.index), table], axis=1)
