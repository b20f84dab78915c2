"""Shuffled attention, and the published search for adversarial attention. Jain & Wallace 2019, section 4.2.

Both change the weights of a trace and leave its polarity scores as they are. The search is there for comparison: what
it looks for by gradient, `heedful.analysis.adversary` finds exactly.
"""

from typing import no_type_check

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.decisions import decisions, logits
from heedful.analysis.erasure_loops import arrays, each, shares
from heedful.compiled import compiled, inlined
from heedful.errors import InputError
from heedful.notebook import Grid, View, counted
from heedful.shown_tables import ShownTable
from heedful.text.ragged import segment_softmax
from heedful.traces import Trace

QUARTERS = ("0–.25", ".25–.5", ".5–.75", ".75–1")

PENALTY = 500.0
"""What a step pays for output beyond ε, as in the published code."""


def permutation_test(trace: Trace, shuffles: int = 100, seed: int = 0) -> ShownTable:
    """How far the output moves when the attention weights of an instance are dealt out anew: one row per instance.

        TVD(p, p') = ½ Σ_k |p_k − p'_k|        p' = softmax(b + Σ_i α_π(i) z_i)

    Jain & Wallace 2019, section 4.2.1; of two classes the total variation is |Δp|. Every instance has chance of its
    own, drawn from the seed and its number, so that the order of work does not matter.

    trace: from `heedful.trace` or `Trace.from_arrays`.
    shuffles: how many permutations of each instance.
    seed: draws them.

    Columns: instance, units, largest_weight (max α), tvd_median and tvd_mean (over the shuffles), flips (the share of
    shuffles that change the decision).

    >>> import heedful
    >>> scores = {"attention_weights": [0.5, 0.5, 1.0], "polarity_scores": [2, -1, 1]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 2, 3], bias=[0], **scores)
    >>> heedful.permutation_test(trace)[["largest_weight", "tvd_median"]].round(3).to_dict("list")
    {'largest_weight': [0.5, 1.0], 'tvd_median': [0.0, 0.0]}
    """
    _check(shuffles, seed)
    moved, flips = np.empty((len(trace), shuffles)), np.empty(len(trace))
    offsets, weights, polarity = arrays(trace.offsets, trace.attention_weights, trace.polarity_scores)
    outputs = arrays(trace.bias, logits(trace).softmax(1), decisions(trace))
    chance = np.uint64(seed % 2**64), np.uint64(trace.part.first if trace.part else 0)
    own = offsets, weights, polarity, *outputs, *chance, moved, flips
    each(lambda part: shuffled_outputs(*part, *own), shares(len(trace), len(weights) * shuffles))
    table = pd.DataFrame(
        {
            "instance": np.arange(len(trace)),
            "units": trace.lengths.numpy(force=True),
            "largest_weight": np.maximum.reduceat(weights, offsets[:-1]),
            "tvd_median": np.median(moved, 1),
            "tvd_mean": moved.mean(1),
            "flips": flips,
        }
    )
    return ShownTable.of(table, _view)


def _check(shuffles: object, seed: object) -> None:
    if not (isinstance(shuffles, (int, np.integer)) and shuffles >= 1):
        raise InputError(f"shuffles is how often weights are dealt out anew, 1 or more; got {shuffles!r}.")
    if not isinstance(seed, (int, np.integer)):
        raise InputError(f"seed is a whole number; got {seed!r}.")


def _view(table: pd.DataFrame) -> View:
    """How far outputs move, by how large the largest weight is."""
    grouped = table.groupby(quarters(table["largest_weight"]), observed=True)
    rows = [
        [str(quarter), f"{len(part):,}", f"{part['tvd_median'].median():.3f}", f"{part['flips'].mean():.1%}"]
        for quarter, part in grouped
    ]
    header = ["largest weight", "instances", "median of tvd_median", "shuffles that flip"]
    return View(
        title=f"Shuffled attention: {counted(len(table), 'instance')}",
        parts=[Grid(header=header, rows=rows)],
        drawing="shuffles",
        data=table,
    )


def quarters(largest: "pd.Series[float]") -> "pd.Series[pd.CategoricalDtype]":
    """In which quarter the largest weight of each instance lies, lower ends included."""
    return pd.cut(largest.astype(float), [-np.inf, 0.25, 0.5, 0.75, np.inf], right=False, labels=list(QUARTERS))


@compiled
@no_type_check
def shuffled_outputs(start, stop, offsets, weights, polarity, bias, before, chosen, seed, first, moved, flips):
    """TVD of every shuffle of every instance, and the share of shuffles that change the decision. `first` is the number
    that the first instance has in the whole trace."""
    classes = len(bias)
    sums = np.empty(classes)
    for t in range(start, stop):
        begin, n = offsets[t], offsets[t + 1] - offsets[t]
        alpha, state, changed = weights[begin : begin + n].copy(), mixed(seed, first + np.uint64(t)), 0
        for s in range(moved.shape[1]):
            for i in range(n - 1, 0, -1):
                state += np.uint64(0x9E3779B97F4A7C15)
                j = np.int64(((scrambled(state) >> np.uint64(32)) * np.uint64(i + 1)) >> np.uint64(32))
                alpha[i], alpha[j] = alpha[j], alpha[i]
            sums[:] = bias
            for i in range(n):
                for k in range(classes):
                    sums[k] += alpha[i] * polarity[begin + i, k]
            changed += np.argmax(sums) != chosen[t]
            top, total, distance = sums.max(), 0.0, 0.0
            for k in range(classes):
                sums[k] = np.exp(sums[k] - top)
                total += sums[k]
            for k in range(classes):
                distance += abs(sums[k] / total - before[t, k])
            moved[t, s] = distance / 2
        flips[t] = changed / moved.shape[1]


@inlined
@no_type_check
def scrambled(number):
    """The output of splitmix64 for this state: 64 bits that look drawn."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@inlined
@no_type_check
def mixed(seed, number):
    """Where the chance of an instance begins."""
    return scrambled(scrambled(seed + np.uint64(0x9E3779B97F4A7C15)) ^ scrambled(number))


def searched_attention(
    trace: Trace,
    epsilon: float = 0.01,
    *,
    within: float | None = None,
    starts: int = 1,
    steps: int = 500,
    rate: float = 0.01,
    seed: int = 0,
) -> pd.DataFrame:
    """Adversarial attention by gradient search as Jain & Wallace 2019 published it: one row per instance.

        min over free scores a' of  −JSD(α, α') + 500 · max(0, TVD(p, p') − ε)        α' = softmax(a')

    by Adam. Of all steps and starts the largest JSD whose output is within `within` (epsilon unless given) counts. For
    comparison only: `adversarial_attention` gives the largest there is.

    Columns: instance, jsd, tvd; null where no step was within.
    """
    within = epsilon if within is None else within
    best = torch.full((2, len(trace)), torch.nan, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    before = logits(trace).softmax(1)
    for _ in range(starts):
        free = torch.randn(len(trace.attention_weights), generator=generator, dtype=torch.float64).requires_grad_()
        optimizer = torch.optim.Adam([free], lr=rate, amsgrad=True)
        for step in range(steps + 1):
            jsd, tvd = _divergences(trace, before, segment_softmax(free, trace.offsets))
            better = (tvd <= within) & ~(jsd <= best[0])
            best = torch.where(better, torch.stack([jsd, tvd]).detach(), best)
            if step < steps:
                optimizer.zero_grad()
                (PENALTY * (tvd - epsilon).clamp(min=0) - jsd).sum().backward()
                optimizer.step()
    return pd.DataFrame({"instance": np.arange(len(trace)), "jsd": best[0].numpy(), "tvd": best[1].numpy()})


def _divergences(
    trace: Trace, before: Float[Tensor, "instances classes"], weights: Float[Tensor, " units"]
) -> tuple[Float[Tensor, " instances"], Float[Tensor, " instances"]]:
    """JSD(α, α') and TVD(p, p') of every instance."""
    weighted = weights[:, None] * trace.polarity_scores
    outputs = trace.bias + weighted.new_zeros(before.shape).index_add(0, trace.segments, weighted)
    tvd = (outputs.softmax(1) - before).abs().sum(1) / 2
    return weight_divergence(trace.attention_weights, weights, trace.offsets), tvd


def weight_divergence(
    ours: Float[Tensor, " units"], theirs: Float[Tensor, " units"], offsets: Int[Tensor, " bounds"]
) -> Float[Tensor, " instances"]:
    """JSD(α, α') within each instance, in nats: ½ KL(α‖m) + ½ KL(α'‖m), m their mean; weights may be zero."""
    middle = (ours + theirs) / 2
    safe = middle.where(middle > 0, 1.0)
    parts = torch.special.xlogy(ours, ours / safe) + torch.special.xlogy(theirs, theirs / safe)
    return torch.segment_reduce(parts, "sum", offsets=offsets).clamp(min=0) / 2
