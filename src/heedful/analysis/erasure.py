"""Erasure: how many units must go before the decision flips, along a ranking and at the least.

    logits(S) = b + Σ_{i∉S} α_i z_i / Σ_{i∉S} α_i          all erased: logits = b

All prefixes of all instances come from one sort and one reversed sum per instance; no model is called. Sums run from
the last remaining unit backwards, so that nothing cancels, relative to the largest weight so far, so that nothing
underflows that matters. Floating point decides where it can tell, whole numbers where it cannot.

The minimum decision-flipping set is exact too. With c_i^k = α_i (z_ik − z_iy + b_k − b_y) the decision leaves y after
erasing S, something remaining, iff for some k the sum Σ_{i∉S} c_i^k is positive, or zero with k < y: renormalising only
scales it. For one k the fewest erasures take the most negative c_i^k first: O(K n log n) per instance. Serrano & Smith
2019, sections 4 and 5, call it computationally prohibitive; it is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis import erasure_loops
from heedful.analysis.decisions import (
    EPSILON,
    NEVER,
    decisions,
    decisions_after,
    erased_logits,
    exact_terms,
    magnitude,
    once_per_trace,
    rounding,
    settled,
    unit_scale,
    units_at,
    weight_powers,
    wide,
)
from heedful.analysis.erasure_loops import Numbers, arrays, blocks, each, one_thread, shares
from heedful.analysis.rankings import Ranking, ranked, ranking, sort_units
from heedful.errors import InputError
from heedful.notebook import Grid, View, counted
from heedful.shown_tables import ShownTable
from heedful.traces import Trace

# The stream of chance for the other unit; the orders of the random ranking are 0, 1, ….
OTHER_UNIT = 2**32 - 1
LIMITS = (0.05, 0.1, 0.25, 0.5, 1.0)
FUZZ = 16 * EPSILON
"""How far a difference of polarity scores may be off, relative to the largest of them."""


@dataclass(frozen=True, kw_only=True)
class Flips:
    """How many units are erased at the first flip (or NEVER), the class after it, and the weight erased."""

    erased: Int[Tensor, " instances"]
    flipped_to: Int[Tensor, " instances"]
    mass: Float[Tensor, " instances"]


def erase(trace: Trace, instance: int, positions: Sequence[int]) -> Float[Tensor, " classes"]:
    """The logits of one instance after the units at these positions were erased and the rest renormalised."""
    where = trace.instance(instance)
    remaining = sorted({*range(where.start, where.stop)} - {*units_at(trace, instance, positions)})
    scores = trace.attention_scores[remaining]
    if not (scores > -torch.inf).any():
        return trace.bias.clone()
    return trace.bias + scores.softmax(0) @ trace.polarity_scores[remaining]


@one_thread()
def first_flips(
    trace: Trace, by: str | Ranking = "attention", seed: int = 0, reverse: bool = False, orders: int = 1
) -> ShownTable:
    """How many units must be erased, the most important first, before the decision flips: one row per instance.

        logits(S) = b + Σ_{i∉S} α_i z_i / Σ_{i∉S} α_i        all erased: logits = b

    Serrano & Smith 2019, section 5. An erased unit's weight becomes zero and the others are divided by their sum; every
    prefix of the ranking is judged exactly, and no model is called.

    trace: from `heedful.trace` or `Trace.from_arrays`.
    by: what is important, with y the decision: "attention" α_i; "gradient" ∂p_y/∂α_i; "product" of the two; "random";
        "polarity" z_iy − mean over k≠y of z_ik; "margin" α_i (z_iy − z_ik + b_y − b_k), k the runner-up; or a Ranking.
    seed: draws random rankings; the others have no use for it.
    reverse: begin with the least important instead.
    orders: so many orders of a random ranking, one below the other and told apart by the column `order`.

    Columns: instance, units (how many it has), erased (null where nothing flips, not even erasing all), fraction
    (erased / units), mass (the attention weight erased), flipped_to (the class number after the flip).

    >>> import heedful
    >>> scores = {"attention_weights": [0.5, 0.25, 0.25], "polarity_scores": [-1, 8, -1]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 3], bias=[0], units=["dull", "good", "film"], **scores)
    >>> heedful.first_flips(trace)[["instance", "units", "erased", "mass", "flipped_to"]]
       instance  units  erased  mass  flipped_to
    0         0      3       2  0.75           0
    >>> heedful.first_flips(trace, by="margin")["erased"].tolist()
    [1]
    """
    chosen = ranking(by)
    if orders < 1 or (orders > 1 and not chosen.chance):
        raise InputError(f"orders must be 1, or more for a random ranking; got {orders} for '{chosen.name}'.")
    keys = [chosen.keys(trace, seed=seed, order=order) for order in range(orders)]
    tables = [flip_table(flips_by_keys(trace, one, reverse=reverse), trace.lengths) for one in keys]
    if orders > 1:
        tables = [pd.concat([table.assign(order=order) for order, table in enumerate(tables)], ignore_index=True)]
    return ShownTable.of(tables[0], flips_view)


def flips_view(table: pd.DataFrame) -> View:
    """How much goes until decisions flip."""
    share = (table["erased"] / table["units"]).to_numpy(np.float64, na_value=np.inf)
    rows = [[f"{limit:.0%}", f"{(share <= limit).mean():.1%}"] for limit in LIMITS]
    never = f"{counted(int(table['erased'].isna().sum()), 'decision')} of {len(table):,} never flip."
    return View(
        title=f"Erasure until the decision flips: {counted(len(table), 'row')}",
        sentences=[never],
        parts=[Grid(header=["units erased, at most", "decisions flipped"], rows=rows)],
        drawing="flips",
        data=table,
    )


def flip_table(flips: Flips, lengths: Int[Tensor, " instances"]) -> pd.DataFrame:
    """One row per instance: instance, units, erased, fraction, mass, flipped_to; null where nothing flips."""
    never, units = (flips.erased == NEVER).numpy(force=True), lengths.numpy(force=True)
    erased = np.where(never, 0, flips.erased.numpy(force=True))
    return pd.DataFrame(
        {
            "instance": np.arange(len(units)),
            "units": units,
            "erased": pd.arrays.IntegerArray(erased, never),
            "fraction": np.where(never, np.nan, erased / units),
            "mass": np.where(never, np.nan, flips.mass.numpy(force=True)),
            "flipped_to": pd.arrays.IntegerArray(flips.flipped_to.numpy(force=True), never.copy()),
        }
    )


@one_thread()
def flips_by_keys(trace: Trace, keys: Float[Tensor, " units"], *, reverse: bool = False) -> Flips:
    """The first flip of every instance when the units with the largest keys (or the smallest) are erased first."""
    scale, doubts, size = unit_scale(trace), rounding(trace.lengths) * magnitude(trace), len(trace)
    limits = doubts * scale, (reaches(trace) + doubts) * scale
    instances = arrays(trace.offsets, decisions(trace), wide(trace), *limits)
    weights, polarity, bias = arrays(trace.attention_weights, trace.polarity_scores, trace.bias)
    units = *weight_powers(trace), weights, polarity
    (flat_keys,), order = arrays(keys), np.empty(len(keys), np.int64)
    erased, flipped_to, mass, doubtful = (np.empty(size, kind) for kind in (np.int64, np.int64, np.float64, np.bool_))
    found = erased, flipped_to, mass, doubtful

    def fill(rows: Numbers) -> None:
        sort_units(rows, instances[0], flat_keys, order, reverse=reverse)
        erasure_loops.first_flips(rows, order, instances, units, (bias, scale), found)

    each(fill, blocks(instances[0]))
    for instance in np.flatnonzero(doubtful).tolist():
        own = order[trace.instance(instance)]
        erased[instance], flipped_to[instance] = _exact_flip(trace, instance, own)
        mass[instance] = trace.attention_weights[own[: erased[instance]]].sum()
    numbers = {"erased": erased, "flipped_to": flipped_to, "mass": mass}
    return Flips(**{name: torch.from_numpy(array).to(keys.device) for name, array in numbers.items()})


@once_per_trace
def reaches(trace: Trace) -> Float[Tensor, " instances"]:
    """How far a unit of each instance can help another class against the chosen one, relative to its weight."""
    found, own = np.empty(len(trace)), arrays(trace.offsets, trace.polarity_scores, trace.bias, decisions(trace))
    each(lambda some: erasure_loops.reaches(*some, *own, found), shares(len(trace), len(trace.segments)))
    return torch.from_numpy(found).to(trace.offsets.device)


def _exact_flip(trace: Trace, instance: int, order: Numbers) -> tuple[int, int]:
    """The first flip of one instance, along an order of its units, in whole numbers."""
    places = order - int(trace.offsets[instance])
    alive = np.isfinite(trace.attention_scores[trace.instance(instance)].numpy(force=True))[places]
    weighty = int(np.flatnonzero(alive)[-1]) + 1
    winners = exact_terms(trace, instance)[places][::-1].cumsum(0)[::-1][:weighty].argmax(1)
    chosen, bias_class = int(decisions(trace)[instance]), int(trace.bias.argmax())
    flips = np.flatnonzero(winners[1:] != chosen) + 1
    if len(flips):
        return int(flips[0]), int(winners[flips[0]])
    return (NEVER, chosen) if bias_class == chosen else (weighty, bias_class)


@one_thread()
def minimum_flips(trace: Trace) -> ShownTable:
    """A smallest set of units whose erasure flips the decision, provably: one row per instance.

    Erasing S leaves the decision y iff for some class k the sum over what remains of α_i (z_ik − z_iy + b_k − b_y) is
    positive, or zero with k < y; so the units that hold k back most go first, and the best class wins. Serrano & Smith
    2019, section 5, compare rankings with each other; this is what the best ranking could reach.

    trace: from `heedful.trace` or `Trace.from_arrays`.

    Columns: instance, units (how many it has), erased (the size of the set; null where not even erasing everything
    flips), positions (the set, from 0; None where there is none), flipped_to (the class number after the erasure).
    Units without any weight need not be erased and are in no set.

    >>> import heedful
    >>> scores = {"attention_weights": [0.5, 0.25, 0.25], "polarity_scores": [-1, 8, -1]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 3], bias=[0], units=["dull", "good", "film"], **scores)
    >>> heedful.minimum_flips(trace)
       instance  units  erased positions  flipped_to
    0         0      3       1       [1]           0
    """
    erased, after = minimum_sets(trace)
    marks, starts = erased.numpy(force=True), trace.offsets[:-1].numpy(force=True)
    count = np.add.reduceat(marks, starts, dtype=np.int64)
    never, ends = count == 0, np.cumsum(count).tolist()
    positions: list[int] = (np.flatnonzero(marks) - np.repeat(starts, count)).tolist()
    sets = [positions[end - size : end] if size else None for end, size in zip(ends, count.tolist(), strict=True)]
    table = pd.DataFrame(
        {
            "instance": np.arange(len(trace)),
            "units": trace.lengths.numpy(force=True),
            "erased": pd.arrays.IntegerArray(count, never),
            "positions": pd.Series(sets, dtype=object),
            "flipped_to": pd.arrays.IntegerArray(after.numpy(force=True), never.copy()),
        }
    )
    return ShownTable.of(table, flips_view)


@one_thread()
def verify_flip(trace: Trace, table: pd.DataFrame) -> pd.DataFrame:
    """The sets of `minimum_flips` checked again: does plain erasure of the positions flip, and to that class?

    That a set is smallest is not checked here: it follows from how it is found.

    trace: the one that the table was made from.
    table: rows with the columns instance, erased, positions and flipped_to; all of them or some, or sets of your own.

    Columns: instance, holds (null where the row says that nothing flips: no single erasure can show that).

    >>> import heedful
    >>> scores = {"attention_weights": [0.5, 0.25, 0.25], "polarity_scores": [-1, 8, -1]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 3], bias=[0], units=["dull", "good", "film"], **scores)
    >>> flips = heedful.minimum_flips(trace)
    >>> heedful.verify_flip(trace, flips)
       instance  holds
    0         0   True
    >>> heedful.verify_flip(trace, flips.assign(positions=[[0]]))["holds"].tolist()
    [False]
    """
    erased = torch.zeros_like(trace.attention_scores, dtype=torch.bool)
    claims = list(zip(table["instance"], table["erased"], table["positions"], table["flipped_to"], strict=True))
    for instance, _, positions, _ in claims:
        if positions is not None:
            erased[units_at(trace, int(instance), positions)] = True
    before, after = decisions(trace).tolist(), decisions_after(trace, erased).tolist()
    holds = [
        None
        if positions is None
        else len(set(positions)) == size and after[instance] == flipped_to and after[instance] != before[instance]
        for instance, size, positions, flipped_to in claims
    ]
    return pd.DataFrame({"instance": table["instance"].to_numpy(), "holds": pd.array(holds, dtype="boolean")})


def minimum_sets(trace: Trace) -> tuple[Bool[Tensor, " units"], Int[Tensor, " instances"]]:
    """The units of a minimum flip set of every instance, none where nothing flips; and the class after the erasure."""
    scale, sums = unit_scale(trace), rounding(trace.lengths)
    limits = decisions(trace), wide(trace), 4 * sums, sums * magnitude(trace) * scale
    offsets, polarity, bias, *own = arrays(trace.offsets, trace.polarity_scores, trace.bias, *limits)
    numbers = (offsets, *own), (*weight_powers(trace), polarity), (bias, scale, FUZZ * magnitude(trace) * scale)
    marks, doubtful = np.zeros(len(polarity), np.bool_), np.zeros(len(trace), np.bool_)
    found = marks, doubtful, np.full(len(trace), erasure_loops.UNKNOWN)
    each(lambda some: erasure_loops.minimum_sets(*some, *numbers, found), shares(len(trace), len(marks)))
    for instance in np.flatnonzero(doubtful).tolist():
        marks[_exact_minimum(trace, instance)] = True
    erased, after = (torch.from_numpy(array).to(trace.offsets.device) for array in found[::2])
    unknown = after == erasure_loops.UNKNOWN
    return erased, torch.where(unknown, decisions_after(trace, erased), after) if unknown.any() else after


def _exact_minimum(trace: Trace, instance: int) -> Numbers:
    """The same for one instance in whole numbers: sort per class, take the first prefix that works, the best class."""
    chosen, scores = int(decisions(trace)[instance]), trace.attention_scores[trace.instance(instance)]
    alive = np.flatnonzero(np.isfinite(scores.numpy(force=True)))
    terms = exact_terms(trace, instance)[alive]
    sets = [_exact_set(terms[:, k] - terms[:, chosen], k < chosen) for k in range(terms.shape[1]) if k != chosen]
    sets += [list(range(len(alive)))] if int(trace.bias.argmax()) != chosen else []
    smallest = min((found for found in sets if found is not None), key=len, default=[])
    return np.asarray(int(trace.offsets[instance]) + alive[smallest])


def _exact_set(contributions: Numbers, wins_ties: bool) -> list[int] | None:
    """The fewest units without which the contributions, some remaining, sum to more than zero (or to zero)."""
    order = sorted(range(len(contributions)), key=contributions.__getitem__)
    sums = contributions[order][::-1].cumsum()[::-1]
    works = np.flatnonzero(sums >= 0 if wins_ties else sums > 0)
    return order[: int(works[0])] if len(works) else None


@one_thread()
def single_erasure(trace: Trace, by: str | Ranking = "attention", seed: int = 0) -> pd.DataFrame:
    """What erasing the most important unit does beside erasing another one, drawn uniformly: one row per instance.

        ΔJS = JS(p, q_top) − JS(p, q_random)        Δα = α_top − α_random

    with p the class probabilities before and q after the erasure (Serrano & Smith 2019, section 4). Differs from the
    paper's code, which never drew position 0 and sometimes the top unit itself.

    trace: from `heedful.trace` or `Trace.from_arrays`.
    by: what is important: attention, gradient, product, random, polarity or margin, as in `heedful.first_flips`.
    seed: draws the other unit.

    Columns: instance, top_position, random_position, delta_weight (Δα), js_top, js_random, delta_js (ΔJS, in nats),
    flip_top, flip_random (whether the decision flips). An instance of one unit has no other: null.

    >>> import heedful
    >>> scores = {"attention_weights": [0.5, 0.25, 0.25], "polarity_scores": [-1, 8, -1]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 3], bias=[0], units=["dull", "good", "film"], **scores)
    >>> heedful.single_erasure(trace)[["instance", "top_position", "delta_weight", "flip_top"]]
       instance  top_position  delta_weight  flip_top
    0         0             0          0.25     False
    """
    top = ranked(trace, by, seed=seed)[trace.offsets[:-1]]
    other, lonely = _other_units(trace, top, seed), (trace.lengths == 1).numpy(force=True)
    js_top, flip_top = _erasing_one(trace, top)
    js_other, flip_other = _erasing_one(trace, other)
    weights = trace.attention_weights
    positions = {"top": top - trace.offsets[:-1], "other": other - trace.offsets[:-1]}
    missing = torch.where(trace.lengths == 1, torch.nan, 0.0)
    return pd.DataFrame(
        {
            "instance": np.arange(len(trace)),
            "top_position": positions["top"].numpy(force=True),
            "random_position": pd.arrays.IntegerArray(positions["other"].numpy(force=True), lonely),
            "delta_weight": (weights[top] - weights[other] + missing).numpy(force=True),
            "js_top": js_top.numpy(force=True),
            "js_random": (js_other + missing).numpy(force=True),
            "delta_js": (js_top - js_other + missing).numpy(force=True),
            "flip_top": flip_top.numpy(force=True),
            "flip_random": pd.arrays.BooleanArray(flip_other.numpy(force=True), lonely.copy()),
        }
    )


def _other_units(trace: Trace, top: Int[Tensor, " instances"], seed: int) -> Int[Tensor, " instances"]:
    """A unit of every instance, uniform over those that are not its top unit (the top unit where there is no other)."""
    part = trace.part
    lengths = (part.lengths if part else trace.lengths).numpy(force=True)
    drawn = np.random.default_rng([seed, OTHER_UNIT]).integers(np.maximum(lengths - 1, 1))
    drawn = drawn[part.first : part.first + len(trace)] if part else drawn
    others = trace.offsets[:-1] + torch.from_numpy(drawn).to(trace.offsets.device)
    return others + ((others >= top) & (trace.lengths > 1))


def _erasing_one(
    trace: Trace, units: Int[Tensor, " instances"]
) -> tuple[Float[Tensor, " instances"], Bool[Tensor, " instances"]]:
    """JS(p, q) and whether the decision flips when this unit of each instance is erased."""
    erased = torch.zeros_like(trace.attention_scores, dtype=torch.bool)
    erased[units] = True
    logits = erased_logits(trace, erased)
    return js_divergence(trace.probabilities, logits.softmax(1)), settled(trace, logits, erased) != decisions(trace)


def js_divergence(
    p: Float[Tensor, "instances classes"], q: Float[Tensor, "instances classes"]
) -> Float[Tensor, " instances"]:
    """½ KL(p‖m) + ½ KL(q‖m) with m = (p + q)/2, in nats; at most log 2.

    = ½ Σ m f(t), t = (p − q)/(p + q), f(t) = (1 + t) log(1 + t) + (1 − t) log(1 − t) = t² + t⁴/6 + t⁶/15 + …, so that
    nearly equal distributions keep their digits and nothing becomes negative.
    """
    middle = (p + q) / 2
    t = torch.where(middle > 0, (p - q) / (p + q), 0)
    series = t**2 * (1 + t**2 * (1 / 6 + t**2 / 15))
    exact = torch.special.xlog1py(1 + t, t) + torch.special.xlog1py(1 - t, -t)
    return (middle * torch.where(t.abs() < EPSILON**0.125, series, exact)).sum(1) / 2
