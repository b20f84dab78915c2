"""Erasure along a ranking: how many units must go before the decision flips. Serrano & Smith 2019, sections 4 and 5.

    logits(S) = b + Σ_{i∉S} α_i z_i / Σ_{i∉S} α_i          all erased: logits = b

All prefixes of all instances come from one sort and one reversed sum per instance; no model is called. Floating point
decides where it can tell (linear sums, or logarithms where the weights underflow), whole numbers where it cannot.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.blocks import Block, blocks
from heedful.analysis.decisions import (
    EPSILON,
    decisions,
    erased_logits,
    exact_terms,
    in_linear_space,
    magnitude,
    rounding,
    settled,
)
from heedful.analysis.rankings import Ranking, ranked, ranking
from heedful.errors import InputError
from heedful.text.ragged import segment_sum
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
        _flip_table(trace, ranked(trace, chosen, seed=seed, order=order, reverse=reverse)) for order in range(orders)
    ]
    if orders == 1:
        return tables[0]
    return pd.concat([table.assign(order=order) for order, table in enumerate(tables)], ignore_index=True)


def _flip_table(trace: Trace, order: Int[Tensor, " units"]) -> pd.DataFrame:
    erased, flipped_to = flips_along(trace, order)
    places = torch.arange(len(order), device=order.device) - trace.offsets[trace.segments]
    gone = trace.attention_weights[order].where(places < erased[trace.segments], 0)
    never = (erased == NEVER).numpy(force=True)
    units = trace.lengths.numpy(force=True)
    count = np.where(never, 0, erased.numpy(force=True))
    return pd.DataFrame(
        {
            "instance": np.arange(len(trace)),
            "units": units,
            "erased": pd.arrays.IntegerArray(count, never),
            "fraction": np.where(never, np.nan, count / units),
            "mass": np.where(never, np.nan, segment_sum(gone, trace.offsets).numpy(force=True)),
            "flipped_to": pd.arrays.IntegerArray(flipped_to.numpy(force=True), never.copy()),
        }
    )


def flips_along(
    trace: Trace, order: Int[Tensor, " units"]
) -> tuple[Int[Tensor, " instances"], Int[Tensor, " instances"]]:
    """For any order of the units within their instances: how many are erased at the first flip (or NEVER), and to what."""
    chosen = decisions(trace)
    erased, flipped_to = torch.full_like(chosen, NEVER), chosen.clone()
    linear = in_linear_space(trace)
    size = magnitude(trace)
    for kind in (linear, ~linear):
        for block in blocks(trace.offsets, kind.nonzero().squeeze(1)):
            backwards = order[block.units].flip(1)
            sums = (_linear_margins if kind is linear else _log_margins)(trace, block, backwards, chosen[block.rows])
            flip = _first_flip(sums, int(trace.bias.argmax()), chosen[block.rows], size)
            erased[block.rows], flipped_to[block.rows] = flip.erased, flip.flipped_to
            for row in flip.doubtful.nonzero().squeeze(1).tolist():
                instance = int(block.rows[row])
                steps = order[trace.instance(instance)] - trace.offsets[instance]
                erased[instance], flipped_to[instance] = exact_first_flip(trace, instance, steps, int(chosen[instance]))
    return erased, flipped_to


@dataclass(frozen=True, kw_only=True)
class _Margins:
    """What remains in reverse: entry j of a row is for all but width − 1 − j units erased.

    `margins` are those of each class over the chosen one (−∞ for the chosen one itself), up to a positive factor;
    they are known up to `doubt` times the magnitude of the polarity scores. `remains`: some weight is left.
    """

    margins: Float[Tensor, "rows width classes"]
    doubt: Float[Tensor, "rows width"]
    remains: Bool[Tensor, "rows width"]


@dataclass(frozen=True, kw_only=True)
class _Flip:
    erased: Int[Tensor, " rows"]
    flipped_to: Int[Tensor, " rows"]
    doubtful: Bool[Tensor, " rows"]


def _linear_margins(
    trace: Trace, block: Block, units: Int[Tensor, "rows width"], chosen: Int[Tensor, " rows"]
) -> _Margins:
    """Σ α_i (z_ik + b_k) − Σ α_i (z_iy + b_y) over the remaining units, by one cumulative sum from the last unit on."""
    weights = trace.attention_weights[units].mul_(block.inside.flip(1))
    sums = trace.polarity_scores[units].add_(trace.bias).mul_(weights[:, :, None]).cumsum(1)
    own = chosen[:, None, None].expand(-1, units.shape[1], 1)
    margins = sums.sub_(sums.gather(2, own)).scatter_(2, own, -torch.inf)
    mass = weights.cumsum(1)
    return _Margins(margins=margins, doubt=mass * rounding(_width(units)), remains=mass > 0)


def _log_margins(
    trace: Trace, block: Block, units: Int[Tensor, "rows width"], chosen: Int[Tensor, " rows"]
) -> _Margins:
    """The same divided by Σ α_i: the positive and the negative part apart, as logsumexp of a_i + log|m_ik|.

    m_ik = z_ik − z_iy + b_k − b_y
    """
    scores = trace.attention_scores[units].masked_fill_(~block.inside.flip(1), -torch.inf)
    scores = scores - scores.amax(1, keepdim=True)
    differences = polarity_margins(trace, units, chosen)
    sizes = differences.abs().log().add_(scores[:, :, None])
    mass = scores.logcumsumexp(1)
    remains = mass > -torch.inf
    norm = mass.where(remains, 0)[:, :, None]
    gains = sizes.where(differences > 0, -torch.inf).logcumsumexp(1).sub_(norm).exp_()
    losses = sizes.where(differences < 0, -torch.inf).logcumsumexp(1).sub_(norm).exp_()
    own = chosen[:, None, None].expand(-1, units.shape[1], 1)
    margins = gains.sub_(losses).scatter_(2, own, -torch.inf)
    doubt = rounding(_width(units)) * 2 * (1 + largest_logarithm(sizes))
    return _Margins(margins=margins, doubt=doubt.expand_as(mass), remains=remains)


def polarity_margins(
    trace: Trace, units: Int[Tensor, "rows width"], chosen: Int[Tensor, " rows"]
) -> Float[Tensor, "rows width classes"]:
    """m_ik = z_ik − z_iy + b_k − b_y"""
    polarity = trace.polarity_scores[units]
    own = polarity.gather(2, chosen[:, None, None].expand(-1, units.shape[1], 1))
    return polarity.sub_(own).add_((trace.bias - trace.bias[chosen][:, None])[:, None, :])


def largest_logarithm(sizes: Float[Tensor, "..."]) -> Float[Tensor, ""]:
    """The largest magnitude of the finite ones: what the rounding of logarithms is relative to."""
    return sizes.abs().where(sizes.isfinite(), 0).max()


def _width(units: Int[Tensor, "rows width"]) -> Int[Tensor, ""]:
    return torch.tensor(units.shape[1], device=units.device)


def _first_flip(sums: _Margins, bias_class: int, chosen: Int[Tensor, " rows"], size: float) -> _Flip:
    """The fewest erasures after which a class is ahead of the chosen one; doubtful where rounding could decide."""
    best, doubt = sums.margins.amax(2), sums.doubt * size
    erased = torch.arange(best.shape[1] - 1, -1, -1, device=best.device)
    counts = sums.remains & (erased > 0)
    surely = torch.where(counts & (best > doubt), erased, NEVER).amin(1)
    perhaps = torch.where(counts & ~(best < -doubt), erased, NEVER).amin(1)
    found = perhaps < NEVER
    at = (best.shape[1] - 1 - perhaps).where(found, 0)[:, None]
    top = sums.margins.gather(1, at[:, :, None].expand(-1, 1, sums.margins.shape[2])).squeeze(1).topk(2, dim=1)
    unclear = ~(top.values[:, 0] - top.values[:, 1] > doubt.gather(1, at).squeeze(1))
    to_bias = torch.where(chosen == bias_class, NEVER, sums.remains.sum(1))
    return _Flip(
        erased=surely.where(found, to_bias),
        flipped_to=top.indices[:, 0].where(found, bias_class),
        doubtful=found & ((surely != perhaps) | unclear),
    )


def exact_first_flip(trace: Trace, instance: int, steps: Int[Tensor, " steps"], chosen: int) -> tuple[int, int]:
    """The same for one instance in whole numbers, whatever the order of its units."""
    places = steps.numpy(force=True)
    alive = np.isfinite(trace.attention_scores[trace.instance(instance)].numpy(force=True))[places]
    sums = exact_terms(trace, instance)[places][::-1].cumsum(0)[::-1]
    weighty = int(np.flatnonzero(alive)[-1]) + 1
    winners = sums[:weighty].argmax(1)
    flips = np.flatnonzero(winners[1:] != chosen)
    if len(flips):
        return int(flips[0]) + 1, int(winners[flips[0] + 1])
    bias_class = int(trace.bias.argmax())
    return (NEVER, chosen) if bias_class == chosen else (weighty, bias_class)


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
