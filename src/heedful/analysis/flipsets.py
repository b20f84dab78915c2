"""The minimum decision-flipping set: exact, for an affine readout.

With c_i^k = α_i (z_ik − z_iy + b_k − b_y) the decision leaves y after erasing S, something remaining, iff for some k
the sum Σ_{i∉S} c_i^k is positive, or zero with k < y: renormalising only scales it. For one k the fewest erasures take
the most negative c_i^k first. O(K n log n) per instance. Serrano & Smith 2019, section 5, call it computationally
prohibitive; it is not.
"""

from collections.abc import Iterator
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
    decisions_after,
    exact_terms,
    in_linear_space,
    lengths_with_weight,
    magnitude,
    rounding,
)
from heedful.analysis.erasure import NEVER, largest_logarithm, polarity_margins
from heedful.errors import InputError
from heedful.text.ragged import segment_sum
from heedful.traces import Trace

# Differences of polarity scores below this share of their magnitude have lost digits: such instances are done exactly.
SMALLEST_SHARE = 2.0**-20


def minimum_flips(trace: Trace) -> pd.DataFrame:
    """Per instance a smallest set of units whose erasure flips the decision, at its positions in the document.

    Null where not even erasing everything flips. `flipped_to` is the class after the erasure. Units without any weight
    need not be erased.
    """
    erased = minimum_sets(trace)
    count = segment_sum(erased.double(), trace.offsets).long().numpy(force=True)
    never = count == 0
    return pd.DataFrame(
        {
            "instance": np.arange(len(trace)),
            "units": trace.lengths.numpy(force=True),
            "erased": pd.arrays.IntegerArray(count, never),
            "positions": pd.Series(_position_lists(trace, erased, count), dtype=object),
            "flipped_to": pd.arrays.IntegerArray(decisions_after(trace, erased).numpy(force=True), never.copy()),
        }
    )


def _position_lists(trace: Trace, erased: Bool[Tensor, " units"], count: np.ndarray) -> list[list[int] | None]:  # type: ignore[type-arg]
    units = erased.nonzero().squeeze(1)
    positions = (units - trace.offsets[trace.segments[units]]).tolist()
    ends = np.cumsum(count).tolist()
    return [positions[end - size : end] if size else None for end, size in zip(ends, count.tolist(), strict=True)]


def verify_flip(trace: Trace, table: pd.DataFrame) -> "pd.Series[bool]":
    """Re-check a table of `minimum_flips`, row by row: does plain erasure of the positions flip, and to that class?

    Null where the row says that nothing flips: no erasure can show that.
    """
    erased = torch.zeros_like(trace.attention_scores, dtype=torch.bool)
    for row in table.itertuples():
        if row.positions is not None:
            places = torch.tensor(row.positions, device=erased.device)
            if int(places.min()) < 0 or int(places.max()) >= int(trace.lengths[row.instance]):
                raise InputError(f"Instance {row.instance} has {int(trace.lengths[row.instance])} units; got {places.tolist()}.")
            erased[trace.offsets[row.instance] + places] = True
    after, before = decisions_after(trace, erased).numpy(force=True), decisions(trace).numpy(force=True)
    holds = [
        pd.NA
        if row.positions is None
        else bool(after[row.instance] == row.flipped_to != before[row.instance] and len(set(row.positions)) == row.erased)
        for row in table.itertuples()
    ]
    return pd.Series(holds, index=table.index, dtype="boolean", name="holds")


def minimum_sets(trace: Trace) -> Bool[Tensor, " units"]:
    """The units of a minimum flip set of every instance; none where nothing flips."""
    chosen, weighty = decisions(trace), lengths_with_weight(trace)
    bias_class = int(trace.bias.argmax())
    erased = torch.zeros_like(trace.attention_scores, dtype=torch.bool)
    for block, fewest in _searched(trace, chosen):
        all_flips = (fewest.size == NEVER) & (chosen[block.rows] != bias_class)
        size = fewest.size.where(fewest.size < NEVER, 0).where(~all_flips, weighty[block.rows])
        places = fewest.costs.argsort(dim=1, descending=True, stable=True)
        taken = torch.arange(places.shape[1], device=places.device) < size[:, None]
        erased[block.units.gather(1, places)[taken]] = True
        for row in fewest.doubtful.nonzero().squeeze(1).tolist():
            instance = int(block.rows[row])
            erased[trace.instance(instance)] = _exact_minimum(trace, instance, int(chosen[instance]))
    return erased


@dataclass(frozen=True, kw_only=True)
class _Fewest:
    """The fewest erasures in favour of any class (or NEVER), and what each unit costs that class, −∞ for nothing."""

    size: Int[Tensor, " rows"]
    costs: Float[Tensor, "rows width"]
    doubtful: Bool[Tensor, " rows"]


def _searched(trace: Trace, chosen: Int[Tensor, " instances"]) -> Iterator[tuple[Block, _Fewest]]:
    linear, size = in_linear_space(trace), magnitude(trace)
    for kind in (linear, ~linear):
        for block in blocks(trace.offsets, kind.nonzero().squeeze(1)):
            yield block, _fewest(trace, block, chosen[block.rows], size, in_logarithms=kind is not linear)


def _fewest(
    trace: Trace, block: Block, chosen: Int[Tensor, " rows"], magnitude: float, *, in_logarithms: bool
) -> _Fewest:
    """For each class keep the gains P = Σ_{c>0} c and as many losses, the smallest first, as stay below P."""
    alive = block.inside & (trace.attention_scores[block.units] > -torch.inf)
    margins = polarity_margins(trace, block.units, chosen)
    vanishing = ((margins.abs() < SMALLEST_SHARE * magnitude).sum(2) > 1) & alive
    form = _in_logarithms if in_logarithms else _in_numbers
    gain, costs, slack = form(trace, block, margins.mul_(alive[:, :, None]))
    ...
    raise NotImplementedError
