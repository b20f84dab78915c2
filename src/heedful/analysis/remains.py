"""What remains of instances along an order of their units, and the first place where another class is ahead.

The sums of all prefixes run from the last unit of the order backwards, so nothing cancels. Where rounding could decide,
the instance is said to be doubtful and is done again in whole numbers.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis import loops
from heedful.analysis.blocks import Block, at, each, endings, shares_of_rows
from heedful.analysis.decisions import NEVER, decisions, exact_terms, magnitude, once_per_trace, rounding
from heedful.traces import Trace


@dataclass(frozen=True, kw_only=True)
class Flips:
    """How many units are erased at the first flip (or NEVER), the class after it, and the weight erased."""

    erased: Int[Tensor, " instances"]
    flipped_to: Int[Tensor, " instances"]
    mass: Float[Tensor, " instances"]


def linear_flips(trace: Trace, block: Block, order: Int[Tensor, "rows width"]) -> tuple[Flips, Bool[Tensor, " rows"]]:
    """The first flip of every row of an order, and where rounding could decide; by sums of α_i (z_ik + b_k)."""
    rows = len(order)
    found = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows), np.empty(rows, np.bool_)
    lengths = trace.lengths[block.rows]
    doubts = rounding(lengths) * magnitude(trace)
    places = (order, trace.offsets[block.rows], lengths)
    given = (trace.attention_weights, trace.polarity_scores, trace.bias, decisions(trace)[block.rows], doubts)
    reach = reaches(trace)[block.rows] + doubts
    loops.first_flips(*(tensor.numpy(force=True) for tensor in (*places, *given, reach)), *found)
    erased, flipped_to, mass, doubtful = (torch.from_numpy(array).to(order.device) for array in found)
    return Flips(erased=erased, flipped_to=flipped_to, mass=mass), doubtful


@once_per_trace
def reaches(trace: Trace) -> Float[Tensor, " instances"]:
    """How far a unit of each instance can help another class against the chosen one, relative to its weight."""
    found = np.empty(len(trace))
    arrays = (trace.offsets, trace.polarity_scores, trace.bias, decisions(trace))
    offsets, polarity, bias, chosen = (tensor.numpy(force=True) for tensor in arrays)

    def fill(some: slice) -> None:
        loops.reaches(offsets[some.start : some.stop + 1], polarity, bias, chosen[some], found[some])

    each(fill, shares_of_rows(len(trace), len(polarity)))
    return torch.from_numpy(found).to(trace.offsets.device)


def log_flips(trace: Trace, block: Block, order: Int[Tensor, "rows width"]) -> tuple[Flips, Bool[Tensor, " rows"]]:
    """The same where weights underflow, by logarithms."""
    bias_class, lengths = int(trace.bias.argmax()), trace.lengths[block.rows]
    erased = torch.where(decisions(trace)[block.rows] == bias_class, NEVER, lengths)
    flipped_to, doubtful = torch.full_like(erased, bias_class), torch.zeros_like(erased, dtype=torch.bool)
    for some, ending in endings(block, order, lengths - 1):
        erased[some], flipped_to[some], doubtful[some] = first_flip(trace, _log_sums(trace, ending))
    gone = torch.arange(block.width, device=order.device) < torch.minimum(erased, lengths)[:, None]
    mass = at(trace.attention_weights, order).mul_(gone).sum(1)
    return Flips(erased=erased, flipped_to=flipped_to, mass=mass), doubtful


@dataclass(frozen=True, kw_only=True)
class Rest:
    """What remains of some instances: entry j of a row when all but the last j + 1 units of the order are erased.

    `others` are the sums of m_ik for each class (−∞ for the chosen one), up to a common positive factor and known up to
    `doubt`. Where nothing but `weightless` units remain the bias decides.
    """

    rows: Int[Tensor, " rows"]
    others: Float[Tensor, "rows width classes"]
    doubt: Float[Tensor, "rows width"]
    inside: Bool[Tensor, "rows width"]
    weightless: Bool[Tensor, "rows width"]


def polarity_margins(
    trace: Trace, units: Int[Tensor, "rows width"], chosen: Int[Tensor, " rows"]
) -> Float[Tensor, "rows width classes"]:
    """m_ik = z_ik − z_iy + b_k − b_y"""
    polarity = at(trace.polarity_scores, units)
    own = polarity.gather(2, chosen[:, None, None].expand(-1, units.shape[1], 1))
    return polarity.sub_(own).add_((trace.bias - trace.bias[chosen][:, None])[:, None, :])


def _log_sums(trace: Trace, ending: Block) -> Rest:
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
    return Rest(
        rows=ending.rows,
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


def first_flip(trace: Trace, rest: Rest) -> tuple[Int[Tensor, " rows"], Int[Tensor, " rows"], Bool[Tensor, " rows"]]:
    """The fewest erasures after which another class is ahead (or NEVER), which one, and where rounding could decide."""
    bias_class, units = int(trace.bias.argmax()), trace.lengths[rest.rows]
    surely, perhaps = _most_remaining(rest)
    place = (perhaps - 1).clamp_(min=0)[:, None]
    top = rest.others.gather(1, place[:, :, None].expand(-1, 1, rest.others.shape[2])).squeeze(1).topk(2, dim=1)
    unclear = ~(top.values[:, 0] - top.values[:, 1] > rest.doubt.gather(1, place).squeeze(1))
    at_last = torch.where(decisions(trace)[rest.rows] == bias_class, NEVER, units - rest.weightless.sum(1))
    erased = torch.where(perhaps > 0, units - surely, at_last)
    return erased, top.indices[:, 0].where(perhaps > 0, bias_class), (perhaps > 0) & ((surely != perhaps) | unclear)


def _most_remaining(rest: Rest) -> tuple[Int[Tensor, " rows"], Int[Tensor, " rows"]]:
    """The most units that may remain with another class ahead (or 0): surely, and as far as rounding can tell."""
    lead = rest.others.amax(2)
    counts = rest.inside & ~rest.weightless
    remaining = torch.arange(1, lead.shape[1] + 1, device=lead.device)
    surely = (remaining * (counts & (lead > rest.doubt))).amax(1)
    return surely, (remaining * (counts & ~(lead < -rest.doubt))).amax(1)


def exact_flip(trace: Trace, instance: int, order: Int[Tensor, " width"]) -> tuple[int, int]:
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
