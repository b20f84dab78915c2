"""The minimum decision-flipping set: exact, for an affine readout.

With c_i^k = α_i (z_ik − z_iy + b_k − b_y) the decision leaves y after erasing S, something remaining, iff for some k
the sum Σ_{i∉S} c_i^k is positive, or zero with k < y: renormalising only scales it. For one k the fewest erasures take
the most negative c_i^k first. O(K n log n) per instance. Serrano & Smith 2019, section 5, call it computationally
prohibitive; it is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis import loops
from heedful.analysis.blocks import Block, ascending, at, each, one_thread, shares_of_rows
from heedful.analysis.decisions import (
    EPSILON,
    NEVER,
    Numbers,
    decisions,
    decisions_after,
    exact_terms,
    linear,
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


@one_thread()
def minimum_flips(trace: Trace) -> pd.DataFrame:
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
    never = count == 0
    return pd.DataFrame(
        {
            "instance": np.arange(len(trace)),
            "units": trace.lengths.numpy(force=True),
            "erased": pd.arrays.IntegerArray(count, never),
            "positions": pd.Series(_position_lists(marks, starts, count), dtype=object),
            "flipped_to": pd.arrays.IntegerArray(after.numpy(force=True), never.copy()),
        }
    )


def _position_lists(marks: Numbers, starts: Numbers, counts: Numbers) -> list[list[int] | None]:
    positions: list[int] = (np.flatnonzero(marks) - np.repeat(starts, counts)).tolist()
    ends = np.cumsum(counts).tolist()
    return [positions[end - size : end] if size else None for end, size in zip(ends, counts.tolist(), strict=True)]


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


def minimum_sets(trace: Trace) -> tuple[Bool[Tensor, " units"], Int[Tensor, " instances"]]:
    """The units of a minimum flip set of every instance, none where nothing flips; and the class after the erasure."""
    erased = torch.zeros_like(trace.attention_scores, dtype=torch.bool)
    after = torch.full_like(decisions(trace), loops.UNKNOWN)
    doubtful = _mark_linear(trace, erased, after)
    parts = [part for block in log_blocks(trace) for part in block.parts(MOST_CELLS // len(trace.bias))]
    for block, fewest in zip(parts, each(lambda block: _fewest(trace, block), parts), strict=True):
        size = fewest.size.masked_fill(fewest.doubtful, 0)
        taken = torch.arange(block.width, device=size.device) < size[:, None]
        erased[block.units.gather(1, ascending(-fewest.costs))[taken]] = True
        doubtful += block.rows[fewest.doubtful].tolist()
    for instance in doubtful:
        erased[_exact_minimum(trace, instance)] = True
    unknown = after == loops.UNKNOWN
    return erased, torch.where(unknown, decisions_after(trace, erased), after) if unknown.any() else after


def _mark_linear(trace: Trace, erased: Bool[Tensor, " units"], after: Int[Tensor, " instances"]) -> list[int]:
    """Mark the minimum sets of the instances for which linear sums will do; returns those that stay doubtful."""
    rows = linear(trace).nonzero().squeeze(1)
    lengths, chosen = trace.lengths[rows], decisions(trace)[rows]
    limits = (chosen, _slack(lengths), rounding(lengths) * magnitude(trace))
    given = (trace.attention_weights, trace.polarity_scores, trace.bias)
    shape = len(rows), len(trace.bias)
    marks, doubtful = np.zeros(len(erased), np.bool_), np.zeros(len(rows), np.bool_)
    gains, least, classes = np.empty(shape), np.empty(shape), np.full(len(rows), loops.UNKNOWN)
    offsets, *flat = (tensor.numpy(force=True) for tensor in (trace.offsets, *given))

    def mark(some: slice) -> None:
        own = (tensor[some].numpy(force=True) for tensor in limits)
        results = (marks, gains[some], least[some], doubtful[some], classes[some])
        loops.minimum_sets(offsets, rows[some].numpy(force=True), *flat, *own, *results)

    each(mark, shares_of_rows(len(rows), len(marks)))
    for row in _suspect(trace, chosen, gains, least):
        where = trace.instance(int(rows[row]))
        doubtful[row] |= _digits_lost(trace, where, int(chosen[row]), gains[row])
        marks[where] &= not doubtful[row]
    erased |= torch.from_numpy(marks).to(erased.device)
    classes[doubtful] = loops.UNKNOWN
    after[rows] = torch.from_numpy(classes).to(after.device)
    found: list[int] = rows[torch.from_numpy(doubtful).to(rows.device)].tolist()
    return found


def _suspect(trace: Trace, chosen: Int[Tensor, " rows"], gains: Numbers, least: Numbers) -> Numbers:
    """The rows in which the gains of a class are next to nothing. The margin of the chosen class is zero, and exact."""
    close = (gains <= 8 * SMALLEST_SHARE * magnitude(trace)) & (least <= 8 * EPSILON * magnitude(trace))
    close[np.arange(len(close)), chosen.numpy(force=True)] = False
    return np.flatnonzero(close.any(axis=1))


def _digits_lost(trace: Trace, where: slice, chosen: int, gains: Numbers) -> bool:
    """Whether what rounding took from vanishing margins, 8 ε |z| α_i each, is not small beside the gains of a class."""
    smallest, values = SMALLEST_SHARE * magnitude(trace), (trace.polarity_scores[where] + trace.bias).numpy(force=True)
    vanishing = np.abs(values - values[:, [chosen]]) < smallest
    share = trace.attention_weights[where].numpy(force=True) @ vanishing
    lost = (share > 0) & (8 * smallest * share >= gains)
    lost[chosen] = False
    return bool(lost.any())


@dataclass(frozen=True, kw_only=True)
class _Fewest:
    """The fewest erasures that flip (none: 0) and what each unit costs the class in whose favour they are."""

    size: Int[Tensor, " rows"]
    costs: Float[Tensor, "rows width"]
    doubtful: Bool[Tensor, " rows"]


def _fewest(trace: Trace, block: Block) -> _Fewest:
    """The best class; where none gets ahead, everything of weight goes if the bias then decides otherwise."""
    chosen = decisions(trace)[block.rows]
    scores = at(trace.attention_scores, block.units).masked_fill_(~block.inside, -torch.inf)
    alive = scores > -torch.inf
    margins = polarity_margins(trace, block.units, chosen)
    sizes, doubtful = _log_search(block, margins, scores)
    size, best = sizes.min(1)
    losses = margins.gather(2, best[:, None, None].expand(-1, block.width, 1)).squeeze(2).neg_()
    costs = losses.log().add_(scores).where((losses > 0) & alive, -torch.inf)
    everything = torch.where(chosen == int(trace.bias.argmax()), 0, alive.sum(1))
    return _Fewest(
        size=torch.where(size == NEVER, everything, size),
        costs=torch.where((size == NEVER)[:, None], alive.double(), costs),
        doubtful=doubtful | _vanishing(trace, chosen, alive, margins),
    )


def _log_search(
    block: Block, margins: Float[Tensor, "rows width classes"], scores: Float[Tensor, "rows width"]
) -> tuple[Int[Tensor, "rows classes"], Bool[Tensor, " rows"]]:
    """For each class the fewest erasures that put it ahead (or NEVER), and where rounding could decide.

    With log|c_i^k| = a_i + log|m_ik|: all gains remain, and of the losses as many as stay below them.
    """
    margins = margins.transpose(1, 2)
    sizes = margins.abs().log() + (scores - scores.amax(1, keepdim=True))[:, None, :]
    gains = sizes.where(margins > 0, -torch.inf).logsumexp(2, keepdim=True)
    lossy = (margins < 0) & (scores > -torch.inf)[:, None, :]
    losses = sort_(sizes.where(lossy, torch.inf)).logcumsumexp(2)
    slack = _slack(block.inside.sum(1))[:, None, None] * (1 + largest_logarithm(sizes))
    remaining = (losses < gains - slack).sum(2)
    unclear = (losses <= gains + slack).sum(2) != remaining
    return torch.where(gains.squeeze(2) > -torch.inf, lossy.sum(2) - remaining, NEVER), unclear.any(1)


def _vanishing(
    trace: Trace,
    chosen: Int[Tensor, " rows"],
    alive: Bool[Tensor, "rows width"],
    margins: Float[Tensor, "rows width classes"],
) -> Bool[Tensor, " rows"]:
    """Where a margin to another class has lost its digits: of weights that underflow none is known to be small."""
    vanishing = (margins.abs() < SMALLEST_SHARE * magnitude(trace)) & alive[:, :, None]
    return vanishing.any(1).scatter_(1, chosen[:, None], False).any(1)


def sort_(values: Float[Tensor, "rows classes width"]) -> Float[Tensor, "rows classes width"]:
    """Ascending, in place on the CPU; numpy sorts doubles several times faster than torch."""
    array = values.numpy(force=True)
    array.sort(axis=2)
    return torch.from_numpy(array).to(values.device)


def _slack(lengths: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
    """How far such sums may be off, relative to all gains: rounding, and the digits lost in m_ik."""
    return 16 * EPSILON / SMALLEST_SHARE + 4 * rounding(lengths)


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
