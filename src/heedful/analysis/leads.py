"""How much of the lead that a text gives to its decision goes when as many units are erased as the smallest set has.

The first flip along a ranking asks for the whole way: an order that finds both words a decision rests on, and then
leaves it to the rest of the text, whose tiny contributions may point either way, can look as bad as chance. The lead
tells such an order from one that finds neither.
"""

import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.analysis.decisions import decisions, logits
from heedful.analysis.rankings import Ranking, ranked
from heedful.text.ragged import segment_softmax
from heedful.traces import Trace


def leads_taken(
    trace: Trace, minimum: pd.DataFrame, by: str | Ranking = "attention", *, seed: int = 0, order: int = 0
) -> Float[Tensor, " instances"]:
    """The share of the lead that is gone after as many erasures along the ranking as the minimum set has units.

    The lead is logit_y − max_{k≠y} logit_k of the decision y. What a bias in favour of y gives no unit holds: with
    B = max(0, b_y − max_{k≠y} b_k) the share is (lead(∅) − lead(S)) / (lead(∅) − B), within 0 … 1, and 1 where the
    decision flips. Not a number where only erasing everything flips, or nothing, or where the text gives no lead.
    """
    sizes = torch.from_numpy(minimum["erased"].to_numpy(dtype="float64", na_value=float("nan"))).to(trace.bias.device)
    known = sizes < trace.lengths
    places = ranked(trace, by, seed=seed, order=order)
    steps = torch.arange(len(places), device=places.device) - trace.offsets[:-1][trace.segments]
    gone = torch.zeros_like(places, dtype=torch.bool)
    gone[places] = (steps < sizes[trace.segments]) & known[trace.segments]
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
    weightless = torch.segment_reduce(scores, "max", offsets=trace.offsets) == -torch.inf
    filled = scores.masked_fill(weightless[trace.segments], 0.0)
    weights = segment_softmax(filled, trace.offsets).masked_fill(weightless[trace.segments], 0.0)
    sums = torch.zeros(len(trace), len(trace.bias), dtype=torch.float64, device=weights.device)
    return trace.bias + sums.index_add_(0, trace.segments, weights[:, None] * trace.polarity_scores)
