"""Erasure along a ranking: how many units must go before the decision flips. Serrano & Smith 2019, sections 4 and 5.

    logits(S) = b + Σ_{i∉S} α_i z_i / Σ_{i∉S} α_i          all erased: logits = b

All prefixes of all instances come from one sort and one reversed sum per instance; no model is called. Floating point
decides where it can tell (linear sums, or logarithms where the weights underflow), whole numbers where it cannot.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.blocks import Block, at, each, endings, one_thread, slices
from heedful.analysis.decisions import (
    EPSILON,
    all_blocks,
    decisions,
    erased_logits,
    exact_terms,
    linear,
    magnitude,
    once_per_trace,
    rounding,
    settled,
)
from heedful.analysis.rankings import Ranking, ranked, ranked_units, ranking
from heedful.errors import InputError
from heedful.traces import Trace

NEVER = torch.iinfo(torch.int64).max
# The stream of chance for the other unit; the orders of the random ranking are 0, 1, ….
OTHER_UNIT = 2**32 - 1


def erase(trace: Trace, instance: int, positions: Sequence[int]) -> Float[Tensor, " classes"]:
    """The logits of one instance after the units at these positions were erased and the rest renormalised."""
    where = trace.instance(instance)
    units = where.stop - where.start
    wrong = [position for position in positions if not 0 <= position < units]
    if wrong:
        raise InputError(f"Instance {instance} has the positions 0 to {units - 1}; {wrong[0]} is none of them.")
    remaining = sorted(set(range(units)) - set(positions))
    scores = trace.attention_scores[where][remaining]
    if not (scores > -torch.inf).any():
        return trace.bias.clone()
    return trace.bias + scores.softmax(0) @ trace.polarity_scores[where][remaining]


@one_thread()
def first_flips(
    trace: Trace, by: str | Ranking = "attention", seed: int = 0, reverse: bool = False, orders: int = 1
) -> pd.DataFrame:
    """Per instance the shortest prefix of the ranking whose erasure flips the decision.

    `erased` is null where nothing flips, not even erasing everything; `mass` is the attention weight erased and
    `flipped_to` the class after the flip. Several orders of a random ranking stand one below the other, told apart by
    the column `order`.
    """
    chosen = ranking(by)
    if orders < 1 or (orders > 1 and not chosen.chance):
        raise InputError(f"orders must be 1, or more for a random ranking; got {orders} for '{chosen.name}'.")
    tables = [
        _flip_table(trace, chosen.keys(trace, seed=seed, order=order), reverse=reverse) for order in range(orders)
    ]
    if orders == 1:
        return tables[0]
    return pd.concat([table.assign(order=order) for order, table in enumerate(tables)], ignore_index=True)


def _flip_table(trace: Trace, keys: Float[Tensor, " units"], *, reverse: bool) -> pd.DataFrame:
    flips = _first_flips(trace, keys, reverse=reverse)
    never, units = (flips.erased == NEVER).numpy(force=True), trace.lengths.numpy(force=True)
    erased = np.where(never, 0, flips.erased.numpy(force=True))
    return pd.DataFrame(
        {
            "instance": np.arange(len(trace)),
            "units": units,
            "erased": pd.arrays.IntegerArray(erased, never),
            "fraction": np.where(never, np.nan, erased / units),
            "mass": np.where(never, np.nan, flips.mass.numpy(force=True)),
            "flipped_to": pd.arrays.IntegerArray(flips.flipped_to.numpy(force=True), never.copy()),
        }
    )


@dataclass(frozen=True, kw_only=True)
class _Flips:
    """How many units are erased at the first flip (or NEVER), the class after it, and the weight erased."""

    erased: Int[Tensor, " instances"]
    flipped_to: Int[Tensor, " instances"]
    mass: Float[Tensor, " instances"]


def _first_flips(trace: Trace, keys: Float[Tensor, " units"], *, reverse: bool) -> _Flips:
    erased, flipped_to = torch.empty_like(decisions(trace)), torch.empty_like(decisions(trace))
    mass = torch.empty_like(erased, dtype=torch.float64)
    parts = each(lambda block: _flips_of(trace, block, ranked_units(block, keys, reverse=reverse)), all_blocks(trace))
    for block, part in zip(all_blocks(trace), parts, strict=True):
        erased[block.rows], flipped_to[block.rows], mass[block.rows] = part.erased, part.flipped_to, part.mass
    return _Flips(erased=erased, flipped_to=flipped_to, mass=mass)


def _flips_of(trace: Trace, block: Block, order: Int[Tensor, "rows width"]) -> _Flips:
    """Of the instances of a block, their units in this order."""
    bias_class, lengths = int(trace.bias.argmax()), trace.lengths[block.rows]
    erased = torch.where(decisions(trace)[block.rows] == bias_class, NEVER, lengths)
    flipped_to = torch.full_like(erased, bias_class)
    for some, rest in _rests(trace, block, order):
        erased[some], flipped_to[some], doubtful = _first_flip(trace, rest)
        for row in some[doubtful].tolist():
            erased[row], flipped_to[row] = _exact_flip(trace, int(block.rows[row]), order[row])
    gone = torch.arange(block.width, device=order.device) < torch.minimum(erased, lengths)[:, None]
    return _Flips(erased=erased, flipped_to=flipped_to, mass=at(trace.attention_weights, order).mul_(gone).sum(1))


@dataclass(frozen=True, kw_only=True)
class _Rest:
    """What remains of some instances: entry j of a row when all but the last j + 1 units of the order are erased.

    The sums `own` belong to the chosen class and `others` to each other one (−∞ in the place of the chosen one), up to
    a common positive factor and known up to `doubt`. Where nothing but `weightless` units remain the bias decides.
    """

    rows: Int[Tensor, " rows"]
    own: Float[Tensor, "rows width"]
    others: Float[Tensor, "rows width classes"]
    doubt: Float[Tensor, "rows width"]
    inside: Bool[Tensor, "rows width"]
    weightless: Bool[Tensor, "rows width"]


def _rests(
    trace: Trace, block: Block, order: Int[Tensor, "rows width"]
) -> Iterator[tuple[Int[Tensor, " some"], _Rest]]:
    """All that can remain and be flipped, something being erased; and which rows of the block they are."""
    in_linear_space = bool(linear(trace)[block.rows[0]])
    possible = _possible(trace, block, order) if in_linear_space else trace.lengths[block.rows] - 1
    for some, ending in endings(block, order, possible):
        yield some, (_linear_sums if in_linear_space else _log_sums)(trace, ending)


def _possible(trace: Trace, block: Block, order: Int[Tensor, "rows width"]) -> Int[Tensor, " rows"]:
    """With more units remaining than these, not even the best rival of every single unit would flip the decision.

    max_k Σ α_i m_ik ≤ Σ α_i max_k m_ik: one sum for all classes.
    """
    sums = at(best_rivals(trace), order).mul_(block.inside).flip(1).cumsum_(1)
    outside = block.width - trace.lengths[block.rows]
    remaining = torch.arange(1, block.width, device=order.device) - outside[:, None]
    return (remaining * (sums[:, :-1] >= 0)).amax(1).clamp_(min=0) if block.width > 1 else outside


@once_per_trace
def best_rivals(trace: Trace) -> Float[Tensor, " units"]:
    """α_i max_{k≠y} m_ik with m_ik = z_ik − z_iy + b_k − b_y, and as much more as the rounding of their sums allows."""
    chosen = decisions(trace).index_select(0, trace.segments)[:, None]
    spare = (2 * magnitude(trace) * rounding(trace.lengths)).index_select(0, trace.segments)
    rivals = []
    for part in slices(len(chosen)):
        values = trace.polarity_scores[part] + trace.bias
        own = values.gather(1, chosen[part]).squeeze(1)
        rivals.append(values.scatter_(1, chosen[part], -torch.inf).amax(1).sub_(own))
    return torch.cat(rivals).add_(spare).mul_(trace.attention_weights)


def polarity_margins(
    trace: Trace, units: Int[Tensor, "rows width"], chosen: Int[Tensor, " rows"]
) -> Float[Tensor, "rows width classes"]:
    """m_ik = z_ik − z_iy + b_k − b_y"""
    polarity = at(trace.polarity_scores, units)
    own = polarity.gather(2, chosen[:, None, None].expand(-1, units.shape[1], 1))
    return polarity.sub_(own).add_((trace.bias - trace.bias[chosen][:, None])[:, None, :])


def _linear_sums(trace: Trace, ending: Block) -> _Rest:
    """Σ α_i (z_ik + b_k) over the remaining units, from the last unit of the order on."""
    weights = at(trace.attention_weights, ending.units)
    sums = at(trace.polarity_scores, ending.units).add_(trace.bias).mul_(weights[:, :, None]).cumsum_(1)
    places = _places(decisions(trace)[ending.rows], ending)
    own, mass = sums.gather(2, places).squeeze(2), weights.cumsum_(1)
    return _Rest(
        rows=ending.rows,
        own=own,
        others=sums.scatter_(2, places, -torch.inf),
        doubt=mass * (_rounding(ending) * magnitude(trace)),
        inside=ending.inside,
        weightless=(mass == 0) & ending.inside,
    )


def _log_sums(trace: Trace, ending: Block) -> _Rest:
    """Σ α_i m_ik / Σ α_i where the weights underflow, the positive and the negative part apart.

    Each part is the logsumexp of a_i + log|m_ik|, the divisor that of a_i.
    """
    chosen = decisions(trace)[ending.rows]
    scores = at(trace.attention_scores, ending.units).masked_fill_(~ending.inside, -torch.inf)
    scores = scores - scores.amax(1, keepdim=True).where(scores.amax(1, keepdim=True) > -torch.inf, 0)
    margins = polarity_margins(trace, ending.units, chosen)
    sizes = margins.abs().log_().add_(scores[:, :, None])
    mass = scores.logcumsumexp(1)
    norm = mass.where(mass > -torch.inf, 0)[:, :, None]
    gains = sizes.where(margins > 0, -torch.inf).logcumsumexp(1).sub_(norm).exp_()
    losses = sizes.where(margins < 0, -torch.inf).logcumsumexp(1).sub_(norm).exp_()
    doubt = 2 * _rounding(ending) * (1 + largest_logarithm(sizes)) * magnitude(trace)
    return _Rest(
        rows=ending.rows,
        own=torch.zeros_like(mass),
        others=gains.sub_(losses).scatter_(2, _places(chosen, ending), -torch.inf),
        doubt=torch.full_like(mass, doubt),
        inside=ending.inside,
        weightless=(mass == -torch.inf) & ending.inside,
    )


def largest_logarithm(sizes: Float[Tensor, "..."]) -> float:
    """The largest magnitude of the finite ones: what the rounding of logarithms is relative to."""
    return float(sizes.abs().where(sizes.isfinite(), 0).max())


def _places(classes: Int[Tensor, " rows"], block: Block) -> Int[Tensor, "rows width 1"]:
    return classes[:, None, None].expand(-1, block.width, 1)


def _rounding(block: Block) -> float:
    return float(rounding(torch.tensor(block.width)))


def _first_flip(trace: Trace, rest: _Rest) -> tuple[Int[Tensor, " rows"], Int[Tensor, " rows"], Bool[Tensor, " rows"]]:
    """The fewest erasures after which another class is ahead (or NEVER), which one, and where rounding could decide."""
    bias_class, units = int(trace.bias.argmax()), trace.lengths[rest.rows]
    surely, perhaps = _most_remaining(rest)
    at = (perhaps - 1).clamp_(min=0)[:, None]
    top = rest.others.gather(1, at[:, :, None].expand(-1, 1, rest.others.shape[2])).squeeze(1).topk(2, dim=1)
    unclear = ~(top.values[:, 0] - top.values[:, 1] > rest.doubt.gather(1, at).squeeze(1))
    at_last = torch.where(decisions(trace)[rest.rows] == bias_class, NEVER, units - rest.weightless.sum(1))
    erased = torch.where(perhaps > 0, units - surely, at_last)
    return erased, top.indices[:, 0].where(perhaps > 0, bias_class), (perhaps > 0) & ((surely != perhaps) | unclear)


def _most_remaining(rest: _Rest) -> tuple[Int[Tensor, " rows"], Int[Tensor, " rows"]]:
    """The most units that may remain with another class ahead (or 0): surely, and as far as rounding can tell."""
    lead = rest.others.amax(2).sub_(rest.own)
    counts = rest.inside & ~rest.weightless
    remaining = torch.arange(1, lead.shape[1] + 1, device=lead.device)
    surely = (remaining * (counts & (lead > rest.doubt))).amax(1)
    return surely, (remaining * (counts & ~(lead < -rest.doubt))).amax(1)


def _exact_flip(trace: Trace, instance: int, order: Int[Tensor, " width"]) -> tuple[int, int]:
    """The same for one instance in whole numbers."""
    places = (order[: int(trace.lengths[instance])] - trace.offsets[instance]).numpy(force=True)
    alive = np.isfinite(trace.attention_scores[trace.instance(instance)].numpy(force=True))[places]
    weighty = int(np.flatnonzero(alive)[-1]) + 1
    winners = exact_terms(trace, instance)[places][::-1].cumsum(0)[::-1][:weighty].argmax(1)
    chosen, bias_class = int(decisions(trace)[instance]), int(trace.bias.argmax())
    flips = np.flatnonzero(winners[1:] != chosen) + 1
    if len(flips):
        return int(flips[0]), int(winners[flips[0]])
    return (NEVER, chosen) if bias_class == chosen else (weighty, bias_class)


@one_thread()
def single_erasure(trace: Trace, by: str | Ranking = "attention", seed: int = 0) -> pd.DataFrame:
    """Per instance what erasing the top unit does beside erasing another one, drawn uniformly from all the others.

    ΔJS = JS(p, q_top) − JS(p, q_random) against Δα = α_top − α_random. Instances of one unit have no other: null.
    Differs from the paper's code, which never drew position 0 and sometimes the top unit itself.
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
    lengths = trace.lengths.numpy(force=True)
    drawn = np.random.default_rng([seed, OTHER_UNIT]).integers(np.maximum(lengths - 1, 1))
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
