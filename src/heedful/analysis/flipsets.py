"""The minimum decision-flipping set: exact, for an affine readout.

With c_i^k = α_i (z_ik − z_iy + b_k − b_y) the decision leaves y after erasing S, something remaining, iff for some k
the sum Σ_{i∉S} c_i^k is positive, or zero with k < y: renormalising only scales it. For one k the fewest erasures take
the most negative c_i^k first. O(K n log n) per instance. Serrano & Smith 2019, section 5, call it computationally
prohibitive; it is not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.blocks import Block, ascending, at, each, one_thread
from heedful.analysis.decisions import (
    EPSILON,
    NEVER,
    Numbers,
    decisions,
    decisions_after,
    exact_terms,
    linear,
    linear_blocks,
    log_blocks,
    magnitude,
    rounding,
)
from heedful.analysis.remains import largest_logarithm, polarity_margins
from heedful.errors import InputError
from heedful.traces import Trace

# Differences of polarity scores below this share of their magnitude have lost digits: such instances are done exactly.
SMALLEST_SHARE = 2.0**-26
MOST_CELLS = 327_680

Search = Callable[[Trace, Block, Tensor, Tensor], "_Search"]


@one_thread()
def minimum_flips(trace: Trace) -> pd.DataFrame:
    """Per instance a smallest set of units whose erasure flips the decision, at its positions in the document.

    Null where not even erasing everything flips. `flipped_to` is the class after the erasure. Units without any weight
    need not be erased.
    """
    erased = minimum_sets(trace)
    marks, starts = erased.numpy(force=True), trace.offsets[:-1].numpy(force=True)
    count = np.add.reduceat(marks, starts, dtype=np.int64)
    never = count == 0
    return pd.DataFrame(
        {
            "instance": np.arange(len(trace)),
            "units": trace.lengths.numpy(force=True),
            "erased": pd.arrays.IntegerArray(count, never),
            "positions": pd.Series(_position_lists(trace, erased, count.tolist()), dtype=object),
            "flipped_to": pd.arrays.IntegerArray(decisions_after(trace, erased).numpy(force=True), never.copy()),
        }
    )


def _position_lists(trace: Trace, erased: Bool[Tensor, " units"], counts: list[int]) -> list[list[int] | None]:
    units = erased.nonzero().squeeze(1)
    positions = (units - trace.offsets[:-1].index_select(0, trace.segments[units])).tolist()
    ends = accumulate(counts)
    return [positions[end - size : end] if size else None for end, size in zip(ends, counts, strict=True)]


@one_thread()
def verify_flip(trace: Trace, table: pd.DataFrame) -> pd.DataFrame:
    """The certificate of `minimum_flips` checked again: does plain erasure of the positions flip, and to that class?

    `holds` is null where the row says that nothing flips: no single erasure can show that.
    """
    erased = torch.zeros_like(trace.attention_scores, dtype=torch.bool)
    claims = list(zip(table["instance"], table["erased"], table["positions"], table["flipped_to"], strict=True))
    for instance, _, positions, _ in claims:
        if positions is not None:
            erased[_units_at(trace, int(instance), positions)] = True
    before, after = decisions(trace).tolist(), decisions_after(trace, erased).tolist()
    holds = [
        None
        if positions is None
        else len(set(positions)) == size and after[instance] == flipped_to and after[instance] != before[instance]
        for instance, size, positions, flipped_to in claims
    ]
    return pd.DataFrame({"instance": table["instance"].to_numpy(), "holds": pd.array(holds, dtype="boolean")})


def _units_at(trace: Trace, instance: int, positions: Sequence[int]) -> list[int]:
    start, units = int(trace.offsets[instance]), int(trace.lengths[instance])
    wrong = [position for position in positions if not 0 <= position < units]
    if wrong:
        raise InputError(f"Instance {instance} has the positions 0 to {units - 1}; {wrong[0]} is none of them.")
    return [start + position for position in positions]


def minimum_sets(trace: Trace) -> Bool[Tensor, " units"]:
    """The units of a minimum flip set of every instance; none where nothing flips."""
    erased = torch.zeros_like(trace.attention_scores, dtype=torch.bool)
    for some, search in ((linear_blocks(trace), _linear_search), (log_blocks(trace), _log_search)):
        parts = [part for block in some for part in block.parts(MOST_CELLS // len(trace.bias))]
        for units in each(lambda block, search=search: _minimum_units(trace, block, search), parts):  # type: ignore[misc]
            erased[units] = True
    return erased


def _minimum_units(trace: Trace, block: Block, search: Search) -> Int[Tensor, " erased"]:
    fewest = _fewest(trace, block, search)
    size = fewest.size.masked_fill(fewest.doubtful, 0)
    taken = torch.arange(block.width, device=size.device) < size[:, None]
    units = block.units.gather(1, ascending(-fewest.costs))[taken]
    exact = [_exact_minimum(trace, instance) for instance in block.rows[fewest.doubtful].tolist()]
    return torch.cat([units, *exact])


@dataclass(frozen=True, kw_only=True)
class _Fewest:
    """The fewest erasures that flip (none: 0) and what each unit costs the class in whose favour they are."""

    size: Int[Tensor, " rows"]
    costs: Float[Tensor, "rows width"]
    doubtful: Bool[Tensor, " rows"]


@dataclass(frozen=True, kw_only=True)
class _Search:
    """For each class the fewest erasures that put it ahead, something remaining (or NEVER).

    `least` is the smallest −c_i^k and `gains` Σ of the positive c_i^k, on one scale with the `weights`; where these
    underflow they are 0, 0 and 1.
    """

    sizes: Int[Tensor, "rows classes"]
    least: Float[Tensor, "rows classes"]
    gains: Float[Tensor, "rows classes"]
    weights: Float[Tensor, "rows width"]
    unclear: Bool[Tensor, "rows classes"]


def _fewest(trace: Trace, block: Block, search: Search) -> _Fewest:
    """The best class; where none gets ahead, everything of weight goes if the bias then decides otherwise."""
    chosen = decisions(trace)[block.rows]
    scores = at(trace.attention_scores, block.units).masked_fill_(~block.inside, -torch.inf)
    alive = scores > -torch.inf
    margins = polarity_margins(trace, block.units, chosen)
    found = search(trace, block, margins, scores)
    size, best = found.sizes.min(1)
    losses = margins.gather(2, best[:, None, None].expand(-1, block.width, 1)).squeeze(2).neg_()
    everything = torch.where(chosen == int(trace.bias.argmax()), 0, alive.sum(1))
    return _Fewest(
        size=torch.where(size == NEVER, everything, size),
        costs=torch.where((size == NEVER)[:, None], alive.double(), _costs(trace, block, losses, scores)),
        doubtful=found.unclear.any(1) | _digits_lost(trace, block, margins, found),
    )


def _costs(
    trace: Trace, block: Block, losses: Float[Tensor, "rows width"], scores: Float[Tensor, "rows width"]
) -> Float[Tensor, "rows width"]:
    """In the order of −c_i = α_i losses_i where that is positive, and less elsewhere."""
    if bool(linear(trace)[block.rows[0]]):
        return at(trace.attention_weights, block.units).mul_(losses).masked_fill_(~block.inside, 0)
    return losses.log().add_(scores).where((losses > 0) & (scores > -torch.inf), -torch.inf)


def _digits_lost(
    trace: Trace, block: Block, margins: Float[Tensor, "rows width classes"], found: _Search
) -> Bool[Tensor, " rows"]:
    """Where what rounding took from vanishing margins, 8 ε |z| α_i each, is not small beside the gains of a class.

    Only where these are next to nothing is a look at each margin needed. That of the chosen class is zero, and exact.
    """
    smallest, error = SMALLEST_SHARE * magnitude(trace), 8 * EPSILON * magnitude(trace)
    other = torch.ones_like(found.gains, dtype=torch.bool)
    other.scatter_(1, decisions(trace)[block.rows][:, None], False)
    suspect = (found.gains <= 8 * smallest) & (found.least <= error) & other
    rows = suspect.any(1).nonzero().squeeze(1)
    vanishing = (margins[rows].abs() < smallest).double()
    share = torch.bmm(found.weights[rows, None, :], vanishing).squeeze(1)
    lost = torch.zeros(len(block.rows), dtype=torch.bool, device=rows.device)
    lost[rows] = ((share > 0) & (8 * smallest * share >= found.gains[rows]) & other[rows]).any(1)
    return lost


def _linear_search(
    trace: Trace,
    block: Block,
    margins: Float[Tensor, "rows width classes"],
    scores: Float[Tensor, "rows width"],
) -> _Search:
    """Sums of −c_i^k from the smallest on fall to minus all gains, then rise: as many as stay below zero may remain.

    Those below zero come first, so that bisection finds how many they are.
    """
    weights = at(trace.attention_weights, block.units).mul_(scores > -torch.inf)
    costs = margins.new_empty(len(block.rows), margins.shape[2], block.width)
    costs = sort_(torch.mul(margins.transpose(1, 2), -weights[:, None, :], out=costs))
    least, sums = costs[:, :, 0].clone(), costs.cumsum_(2)
    gains = -sums.amin(2, keepdim=True)
    slack = _slack(block) * gains
    remaining = torch.searchsorted(sums, -slack)
    following = sums.gather(2, remaining.clamp(max=block.width - 1))
    unclear = (gains > 0) & ((remaining == 0) | (remaining < block.width) & (following <= slack))
    sizes = torch.where(gains > 0, block.width - remaining, NEVER)
    return _Search(
        sizes=sizes.squeeze(2),
        least=least,
        gains=gains.squeeze(2).clamp_(min=0),
        weights=weights,
        unclear=unclear.squeeze(2),
    )


def _log_search(
    trace: Trace,  # noqa: ARG001
    block: Block,
    margins: Float[Tensor, "rows width classes"],
    scores: Float[Tensor, "rows width"],
) -> _Search:
    """The same with log|c_i^k| = a_i + log|m_ik|: all gains, and of the losses as many as stay below them."""
    margins = margins.transpose(1, 2)
    sizes = margins.abs().log() + (scores - scores.amax(1, keepdim=True))[:, None, :]
    gains = sizes.where(margins > 0, -torch.inf).logsumexp(2, keepdim=True)
    lossy = (margins < 0) & (scores > -torch.inf)[:, None, :]
    losses = sort_(sizes.where(lossy, torch.inf)).logcumsumexp(2)
    slack = _slack(block) * (1 + largest_logarithm(sizes))
    remaining = (losses < gains - slack).sum(2)
    unclear = (losses <= gains + slack).sum(2) != remaining
    fewest = torch.where(gains.squeeze(2) > -torch.inf, lossy.sum(2) - remaining, NEVER)
    none = torch.zeros_like(gains).squeeze(2)
    return _Search(sizes=fewest, least=none, gains=none, weights=(scores > -torch.inf).double(), unclear=unclear)


def sort_(values: Float[Tensor, "rows classes width"]) -> Float[Tensor, "rows classes width"]:
    """Ascending, in place on the CPU; numpy sorts doubles several times faster than torch."""
    array = values.numpy(force=True)
    array.sort(axis=2)
    return torch.from_numpy(array).to(values.device)


def _slack(block: Block) -> float:
    """How far such sums may be off, relative to all gains: rounding, and the digits lost in m_ik."""
    return 16 * EPSILON / SMALLEST_SHARE + 4 * float(rounding(torch.tensor(block.width)))


def _exact_minimum(trace: Trace, instance: int) -> Int[Tensor, " erased"]:
    """The same for one instance in whole numbers: sort per class, take the first prefix that works, the best class."""
    chosen, scores = int(decisions(trace)[instance]), trace.attention_scores[trace.instance(instance)]
    alive = np.flatnonzero(np.isfinite(scores.numpy(force=True)))
    terms = exact_terms(trace, instance)[alive]
    sets = [_exact_set(terms[:, k] - terms[:, chosen], k < chosen) for k in range(terms.shape[1]) if k != chosen]
    sets += [list(range(len(alive)))] if int(trace.bias.argmax()) != chosen else []
    smallest = min((found for found in sets if found is not None), key=len, default=[])
    return trace.offsets[instance] + torch.from_numpy(alive[smallest]).to(scores.device)


def _exact_set(contributions: Numbers, wins_ties: bool) -> list[int] | None:
    """The fewest units without which the contributions, some remaining, sum to more than zero (or to zero)."""
    order = sorted(range(len(contributions)), key=contributions.__getitem__)
    sums = contributions[order][::-1].cumsum()[::-1]
    works = np.flatnonzero(sums >= 0 if wins_ties else sums > 0)
    return order[: int(works[0])] if len(works) else None
