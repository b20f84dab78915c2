"""What erasing each unit alone does to the decision, from the trace, and whether an explanation has its sign wrong.

The violation test of Liu et al. 2022: an explanation that gives a unit the largest weight says that the unit speaks for
the decision (or, with a negative weight, against it). It is violated where the decision becomes more probable without
the unit (or less).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import no_type_check

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.decisions import decisions, logits, magnitude, once_per_trace, rounding
from heedful.analysis.erasure_loops import arrays, each, shares
from heedful.analysis.rankings import RANKINGS, Ranking, ranking, sorted_units
from heedful.analysis.statistics import share
from heedful.compiled import compiled
from heedful.text.ragged import lengths_of
from heedful.traces import Trace


@dataclass(frozen=True, kw_only=True)
class Effects:
    """What removing each unit alone does: p_y − p_y' of the decision y, and the total variation ½ Σ |p_k − p_k'|."""

    decision: Float[Tensor, " units"]
    variation: Float[Tensor, " units"]


@once_per_trace
def erasure_effects(trace: Trace) -> Effects:
    """What erasing each unit of a trace does, all units of all instances in one pass over the memory.

        s_k' = b_k + m_k        m = Σ_{j≠i} α_j z_j / Σ_{j≠i} α_j        (b alone where no weight remains)
        p_y − p_y' = Σ_{k≠y} p_y p_k' − p_k p_y' = Σ_{k≠y} p_k p_y' (exp(d_k) − 1)

    with d_k the change of s_k − s_y, which is α_i times that of m − z_i: nothing cancels, however sure the decision and
    however small the change. Changes that are nothing but rounding are zero.
    """
    means, alive = means_of_others(trace)
    owners, chosen = trace.segments, decisions(trace)
    before = (logits(trace) - logits(trace).gather(1, chosen[:, None])).index_select(0, owners)
    apart = torch.where(alive[:, None], trace.attention_weights[:, None] * (means - trace.polarity_scores), 0)
    apart -= apart.gather(1, chosen[owners][:, None])
    slack = 2 * rounding(trace.lengths)[owners] * magnitude(trace) * trace.attention_weights
    apart = torch.where(apart.abs() <= slack[:, None], 0, apart)
    bias = trace.bias - trace.bias[chosen][:, None]
    change = torch.where(alive[:, None], apart, bias.index_select(0, owners) - before)
    return _effects(before, change, chosen[owners])


def _effects(
    before: Float[Tensor, "units classes"], change: Float[Tensor, "units classes"], chosen: Int[Tensor, " units"]
) -> Effects:
    """From the logits relative to the decision's and their changes."""
    p, q = before.softmax(1), (before + change).softmax(1)
    own, own_after = (values.gather(1, chosen[:, None]) for values in (p, q))
    up, down = change.clamp(min=0), change.clamp(max=0)  # of the two forms the one that cannot overflow
    falls = torch.where(change > 0, -own * q * torch.expm1(-up), own_after * p * torch.expm1(down))
    decision = falls.scatter(1, chosen[:, None], 0).sum(1)
    if p.shape[1] == 2:
        return Effects(decision=decision, variation=decision.abs())
    others = (p - q).scatter(1, chosen[:, None], 0).abs().sum(1)
    return Effects(decision=decision, variation=(others + decision.abs()) / 2)


def means_of_others(trace: Trace) -> tuple[Float[Tensor, "units classes"], Bool[Tensor, " units"]]:
    """Σ_{j≠i} α_j z_j / Σ_{j≠i} α_j of every unit i, and whether any weight remains."""
    found, alive = np.empty(tuple(trace.polarity_scores.shape)), np.empty(len(trace.segments), np.bool_)
    own = arrays(trace.offsets, trace.attention_scores, trace.polarity_scores)
    each(lambda part: others(*part, *own, found, alive), shares(len(trace), len(alive)))
    return torch.from_numpy(found).to(trace.bias.device), torch.from_numpy(alive).to(trace.bias.device)


@compiled
@no_type_check
def others(start, stop, offsets, scores, polarity, found, alive):
    """Sums over the units before and after each, relative to the largest score so far, as streaming softmax does."""
    classes = polarity.shape[1]
    sums = np.empty(classes)
    for t in range(start, stop):
        begin, end = offsets[t], offsets[t + 1]
        tops, totals = np.empty(end - begin), np.empty(end - begin)
        top, total = -np.inf, 0.0
        sums[:] = 0.0
        for i in range(begin, end):
            found[i], tops[i - begin], totals[i - begin] = sums, top, total
            top, total = add(scores[i], 1.0, polarity[i], top, total, sums)
        top, total = -np.inf, 0.0
        sums[:] = 0.0
        for i in range(end - 1, begin - 1, -1):
            _, weight = add(top, total, sums, tops[i - begin], totals[i - begin], found[i])
            alive[i] = weight > 0
            for k in range(classes):
                found[i, k] /= weight if weight > 0 else 1.0
            top, total = add(scores[i], 1.0, polarity[i], top, total, sums)


@compiled
@no_type_check
def add(score, weight, values, top, total, sums):
    """Sums relative to exp(top) and others relative to exp(score) as sums relative to the larger of the two."""
    if score == -np.inf:
        return top, total
    if top == -np.inf:
        old, new, larger = 0.0, 1.0, score
    else:
        larger = max(top, score)
        old, new = math.exp(top - larger), math.exp(score - larger)
    for k in range(len(sums)):
        sums[k] = old * sums[k] + new * values[k]
    return larger, old * total + new * weight


def violations(trace: Trace, by: str | Ranking = "attention", *, seed: int = 0) -> pd.DataFrame:
    """The violation test of a ranking: does the decision become more probable when its top unit is erased?

    trace: from `heedful.trace` or `Trace.from_arrays`.
    by: a ranking, as in `heedful.first_flips`; its importances are the explanation's weights.
    seed: draws random rankings.

    Columns as of `violation_table`, and ranking.
    """
    chosen = ranking(by)
    weights = chosen.importance(trace, seed=seed)
    return violation_table(weights, erasure_effects(trace).decision, trace.offsets).assign(ranking=chosen.name)


def violation_table(
    weights: Float[Tensor, " units"], effects: Float[Tensor, " units"], offsets: Int[Tensor, " bounds"]
) -> pd.DataFrame:
    """The violation test of any explanation, one row per instance of two units or more.

        violated = sign(w_i) (p_y − p_y') < 0        i = argmax |w|        (Liu et al. 2022)

    with p_y' the probability of the decision without unit i, which is what `effects` is about: by erasing its attention
    weight, or by reading the text again. Ties are broken by position.

    Columns: instance, units, top_position, weight, effect (p_y − p_y'), violated; null where the weight is zero and
    claims nothing. Where the effect is zero nothing is violated.
    """
    lengths = lengths_of(offsets)
    rows = (lengths > 1).nonzero().squeeze(1)
    top = sorted_units(weights.abs().double(), offsets)[offsets[rows]]
    weight, effect = weights[top], effects[top]
    violated = (weight.sign() * effect < 0).numpy(force=True)
    return pd.DataFrame(
        {
            "instance": rows.numpy(force=True),
            "units": lengths[rows].numpy(force=True),
            "top_position": (top - offsets[rows]).numpy(force=True),
            "weight": weight.numpy(force=True),
            "effect": effect.numpy(force=True),
            "violated": pd.arrays.BooleanArray(violated, (weight == 0).numpy(force=True)),
        }
    )


def violation_shares(trace: Trace, rankings: Sequence[str] = tuple(RANKINGS), *, seed: int = 0) -> pd.DataFrame:
    """The share of violated instances for each ranking: ranking, instances (counted), violated, low, high (Wilson)."""
    rows = []
    for by in rankings:
        found = violations(trace, by, seed=seed)["violated"].dropna()
        if len(found):
            estimate = share(int(found.sum()), len(found))
            numbers = estimate.value, estimate.low, estimate.high
        else:
            numbers = np.nan, np.nan, np.nan
        rows.append((by, len(found), *numbers))
    return pd.DataFrame(rows, columns=["ranking", "instances", "violated", "low", "high"])
