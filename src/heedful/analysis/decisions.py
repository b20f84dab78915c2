"""Which class wins when some units are erased: floating point where it can tell, whole numbers where it cannot.

Erasing S and renormalising leaves the class k with the largest Σ_{i∉S} α_i (z_ik + b_k), of equal ones the lowest:
the normaliser is common and positive. Where nothing of positive weight remains the logits are the bias. Every decision
in this package is a function of the remaining set alone, never of the order in which it was summed: sums closer than
rounding can tell are repeated exactly, so ties are ties and no ranking beats the minimum by an accident of rounding.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.text.ragged import lengths_of, segment_sum
from heedful.traces import Trace

Numbers = np.ndarray[Any, np.dtype[Any]]

LARGEST_SPAN = 600.0
USUAL_MAGNITUDES = (1e-30, 1e30)
# A gap between scores that no sum of doubles can bridge: larger ones change no decision and are shortened to it.
LARGEST_GAP = 2_000.0
DIGITS = 53
EPSILON = float(np.finfo(np.float64).eps)


def decisions(trace: Trace) -> Int[Tensor, " instances"]:
    """The class of every instance with nothing erased; differs from `trace.predictions` only where rounding ties."""
    nothing = torch.zeros_like(trace.attention_scores, dtype=torch.bool)
    normaliser = segment_sum(trace.attention_weights, trace.offsets)
    return settled(trace, trace.logits, nothing, slack=(normaliser - 1).abs())


def decisions_after(trace: Trace, erased: Bool[Tensor, " units"]) -> Int[Tensor, " instances"]:
    """The class of every instance after the marked units were erased."""
    return settled(trace, erased_logits(trace, erased), erased)


def erased_logits(trace: Trace, erased: Bool[Tensor, " units"]) -> Float[Tensor, "instances classes"]:
    """b + Σ_{i∉S} α'_i z_i with α' the softmax of the remaining scores; b where no weight remains."""
    scores = trace.attention_scores.masked_fill(erased, -torch.inf)
    largest = torch.segment_reduce(scores, "max", offsets=trace.offsets)
    remains = largest > -torch.inf
    weights = (scores - largest.where(remains, 0)[trace.segments]).exp()
    sums = trace.logits.new_zeros(trace.logits.shape)
    sums.index_add_(0, trace.segments, weights[:, None] * trace.polarity_scores)
    normaliser = segment_sum(weights, trace.offsets).where(remains, 1)
    return trace.bias + sums / normaliser[:, None]


def settled(
    trace: Trace,
    logits: Float[Tensor, "instances classes"],
    erased: Bool[Tensor, " units"],
    slack: Float[Tensor, " instances"] | None = None,
) -> Int[Tensor, " instances"]:
    """The class with the largest logit, decided exactly where the two largest are closer than rounding can tell."""
    largest = logits.topk(2, dim=1).values
    doubt = rounding(trace.lengths) if slack is None else rounding(trace.lengths) + 2 * slack
    close = ~(largest[:, 0] - largest[:, 1] > doubt * magnitude(trace))
    winners = logits.argmax(1)
    for instance in close.nonzero().squeeze(1).tolist():
        winners[instance] = exact_decision(trace, instance, erased[trace.instance(instance)])
    return winners


def rounding(lengths: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
    """How far the sum of so many products may be off, relative to the sum of their magnitudes, with room to spare."""
    return 4 * EPSILON * (lengths.double() + 8)


def magnitude(trace: Trace) -> float:
    """A bound on |z_ik + b_k|."""
    low, high = trace.polarity_scores.aminmax()
    return max(-float(low), float(high)) + float(trace.bias.abs().max())


def spans(trace: Trace) -> Float[Tensor, " instances"]:
    """max a − min a of every instance, over the units that have a weight at all."""
    scores = trace.attention_scores
    smallest = torch.segment_reduce(scores.where(scores > -torch.inf, torch.inf), "min", offsets=trace.offsets)
    return torch.segment_reduce(scores, "max", offsets=trace.offsets) - smallest


def in_linear_space(trace: Trace) -> Bool[Tensor, " instances"]:
    """Where sums of α_i (z_ik + b_k) neither underflow nor overflow; elsewhere logarithms are summed."""
    usual = magnitude(trace) == 0 or USUAL_MAGNITUDES[0] < magnitude(trace) < USUAL_MAGNITUDES[1]
    return (spans(trace) <= LARGEST_SPAN) & usual


def exact_decision(trace: Trace, instance: int, erased: Bool[Tensor, " units"]) -> int:
    """The class that one instance gets when the marked ones of its units are erased."""
    remains = (trace.attention_scores[trace.instance(instance)] > -torch.inf) & ~erased
    if not remains.any():
        return int(trace.bias.argmax())
    return int(np.argmax(exact_terms(trace, instance)[remains.numpy(force=True)].sum(0)))


def exact_terms(trace: Trace, instance: int) -> Numbers:
    """α_i (z_ik + b_k) for the units i and classes k of one instance: Python integers, all over one positive factor."""
    where = trace.instance(instance)
    polarity = trace.polarity_scores[where].numpy(force=True)
    grid = _integers(*np.frexp(np.vstack([polarity, trace.bias.numpy(force=True)])))
    return _exact_weights(trace, where)[:, None] * (grid[:-1] + grid[-1])


def _exact_weights(trace: Trace, where: slice) -> Numbers:
    scores = trace.attention_scores[where].numpy(force=True)
    alive = np.isfinite(scores)
    if np.ptp(scores[alive]) <= LARGEST_SPAN:
        return _integers(*np.frexp(trace.attention_weights[where].numpy(force=True)))
    mantissas, exponents = np.zeros(len(scores)), np.zeros(len(scores), np.int64)
    mantissas[alive], exponents[alive] = _powers(scores[alive])
    return _integers(mantissas, exponents)


def _powers(scores: Numbers) -> tuple[Numbers, Numbers]:
    """exp(a_i − max a) = mantissa · 2^exponent, for scores of any span."""
    order = np.argsort(-scores, kind="stable")
    gaps = -np.diff(scores[order].astype(np.longdouble), prepend=scores[order[0]])
    bits = np.empty(len(scores), np.longdouble)
    bits[order] = -np.cumsum(np.minimum(gaps, LARGEST_GAP)) / np.log(np.longdouble(2))
    return np.exp2(bits - np.floor(bits)).astype(np.float64), np.floor(bits).astype(np.int64)


def _integers(mantissas: Numbers, exponents: Numbers) -> Numbers:
    """mantissa · 2^exponent as whole multiples of one power of two, without rounding."""
    digits = np.ldexp(mantissas, DIGITS).astype(np.int64)
    lowest = exponents[digits != 0].min(initial=np.iinfo(np.int64).max)
    shifts = np.where(digits != 0, exponents.astype(np.int64) - lowest, 0)
    shifted: Numbers = np.left_shift(digits.astype(object), shifts.astype(object))
    return shifted


def lengths_with_weight(trace: Trace) -> Int[Tensor, " instances"]:
    """How many units of every instance have a weight at all."""
    alive = (trace.attention_scores > -torch.inf).double()
    return segment_sum(alive, trace.offsets).to(lengths_of(trace.offsets).dtype)
