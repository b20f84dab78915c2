"""The minimum decision-flipping set: exact, for an affine readout.

With c_i^k = α_i (z_ik − z_iy + b_k − b_y) the decision leaves y after erasing S, something remaining, iff for some k
the sum Σ_{i∉S} c_i^k is positive, or zero with k < y: renormalising only scales it. For one k the fewest erasures take
the most negative c_i^k first. O(K n log n) per instance. Serrano & Smith 2019, section 5, call it computationally
prohibitive; it is not.
"""

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.analysis import erasure_loops
from heedful.analysis.decisions import (
    EPSILON,
    decisions,
    decisions_after,
    exact_terms,
    magnitude,
    rounding,
    unit_scale,
    units_at,
    weight_powers,
    wide,
)
from heedful.analysis.erasure_loops import Numbers, arrays, each, one_thread, shares
from heedful.traces import Trace

FUZZ = 16 * EPSILON
"""How far a difference of polarity scores may be off, relative to the largest of them."""


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
