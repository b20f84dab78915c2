"""Which class wins when some units are erased: floating point where it can tell, whole numbers where it cannot.

Erasing S and renormalising leaves the class k with the largest Σ_{i∉S} α_i (z_ik + b_k), of equal ones the lowest:
the normaliser is common and positive. Where nothing of positive weight remains the logits are the bias. Every decision
in this package is a function of the remaining set alone, never of the order in which it was summed: sums closer than
rounding can tell are repeated exactly, so ties are ties and no ranking beats the minimum by an accident of rounding.
"""

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_array
from torch import Tensor

from heedful.analysis.erasure_loops import Numbers
from heedful.analysis.statistics import Estimate, share
from heedful.errors import InputError
from heedful.traces import SUM_TOLERANCE, Trace

T = TypeVar("T")

NEVER = torch.iinfo(torch.int64).max
LARGEST_SPAN = 600.0
# A gap between scores that no sum of doubles can bridge: larger ones change no decision and are shortened to it.
LARGEST_GAP = 2_000.0
DIGITS = 53
EPSILON = float(np.finfo(np.float64).eps)


def once_per_trace(function: Callable[[Trace], T]) -> Callable[[Trace], T]:
    """Keep the result for as long as the trace lives: it is needed by every analysis of it."""
    kept: WeakKeyDictionary[Trace, T] = WeakKeyDictionary()

    @wraps(function)
    def remembered(trace: Trace) -> T:
        if trace not in kept:
            kept[trace] = function(trace)
        return kept[trace]

    return remembered


@once_per_trace
def logits(trace: Trace) -> Float[Tensor, "instances classes"]:
    """b + Σ α_i z_i, as `trace.logits` but several times faster."""
    return trace.bias + pooled(trace, trace.attention_weights)


@once_per_trace
def decisions(trace: Trace) -> Int[Tensor, " instances"]:
    """The class of every instance with nothing erased; differs from `trace.predictions` only where rounding ties."""
    nothing = torch.zeros_like(trace.attention_scores, dtype=torch.bool)
    return settled(trace, logits(trace), nothing, slack=2 * SUM_TOLERANCE)


def decisions_after(trace: Trace, erased: Bool[Tensor, " units"]) -> Int[Tensor, " instances"]:
    """The class of every instance after the marked units were erased."""
    return settled(trace, erased_logits(trace, erased), erased)


def pooling_agreement(trace: Trace) -> Estimate:
    """The share of instances whose decision is that of their unweighted mean: logits = b + Σ z_i / n."""
    even = trace.bias + pooled(trace, torch.ones_like(trace.attention_weights)) / trace.lengths[:, None]
    return share(int((even.argmax(1) == trace.predictions).sum()), len(trace))


def erased_logits(trace: Trace, erased: Bool[Tensor, " units"]) -> Float[Tensor, "instances classes"]:
    """b + Σ_{i∉S} α_i z_i / Σ_{i∉S} α_i; b where no weight remains."""
    weights = trace.attention_weights.masked_fill(erased, 0)
    if wide(trace).any():  # exp(a_i − max of the remaining a): the largest is one, however small it was
        scores = trace.attention_scores.masked_fill(erased, -torch.inf)
        largest = torch.segment_reduce(scores, "max", offsets=trace.offsets)
        relative = (scores - largest.where(largest > -torch.inf, 0)[trace.segments]).exp_()
        weights = torch.where(wide(trace)[trace.segments], relative, weights)
    normaliser = torch.segment_reduce(weights, "sum", offsets=trace.offsets)
    return trace.bias + pooled(trace, weights) / normaliser.where(normaliser > 0, 1)[:, None]


def pooled(trace: Trace, weights: Float[Tensor, " units"]) -> Float[Tensor, "instances classes"]:
    """Σ w_i z_i of every instance: a sparse matrix of instances and units times the polarity scores."""
    units, offsets = np.arange(len(weights)), trace.offsets.numpy(force=True)
    matrix = csr_array((weights.numpy(force=True), units, offsets), shape=(len(trace), len(weights)))
    return torch.from_numpy(matrix @ trace.polarity_scores.numpy(force=True)).to(weights.device)


def settled(
    trace: Trace, found: Float[Tensor, "instances classes"], erased: Bool[Tensor, " units"], *, slack: float = 0.0
) -> Int[Tensor, " instances"]:
    """The class with the largest logit, decided exactly where the two largest are closer than rounding can tell.

    `slack`: by how much the weights may sum to something else than one.
    """
    largest = found.topk(2, dim=1).values
    close = ~(largest[:, 0] - largest[:, 1] > (rounding(trace.lengths) + slack) * magnitude(trace))
    winners = found.argmax(1)
    for instance in close.nonzero().squeeze(1).tolist():
        winners[instance] = exact_decision(trace, instance, erased[trace.instance(instance)])
    return winners


def rounding(lengths: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
    """How far the sum of so many products may be off, relative to the sum of their magnitudes, with room to spare."""
    return 4 * EPSILON * (lengths.double() + 8)


@once_per_trace
def magnitude(trace: Trace) -> float:
    """A bound on |z_ik + b_k|, the same for all shards of a trace."""
    low, high = trace.polarity_scores.aminmax()
    largest = trace.part.largest if trace.part else max(-float(low), float(high))
    return largest + float(trace.bias.abs().max())


def unit_scale(trace: Trace) -> float:
    """A power of two that brings polarity scores of any size near one, so that no product over- or underflows."""
    return 2.0 ** -max(math.frexp(magnitude(trace))[1], -1000)


@once_per_trace
def wide(trace: Trace) -> Bool[Tensor, " instances"]:
    """Where max a − min a, over the units that have a weight at all, is so large that weights underflow."""
    scores = trace.attention_scores
    low, high = scores.aminmax()
    if high - low <= LARGEST_SPAN:
        return torch.zeros_like(trace.lengths, dtype=torch.bool)
    smallest = torch.segment_reduce(scores.where(scores > -torch.inf, torch.inf), "min", offsets=trace.offsets)
    return torch.segment_reduce(scores, "max", offsets=trace.offsets) - smallest > LARGEST_SPAN


@once_per_trace
def weight_powers(trace: Trace) -> tuple[Numbers, Numbers]:
    """Mantissas and exponents of the weights, mantissa · 2^exponent, up to a factor of each instance.

    The weights themselves and zeros, but for instances whose weights underflow.
    """
    mantissas, exponents = trace.attention_weights.numpy(force=True), np.zeros(len(trace.segments), np.int64)
    under = wide(trace).nonzero().squeeze(1).tolist()
    mantissas = mantissas.copy() if under else mantissas
    for where in map(trace.instance, under):
        scores = trace.attention_scores[where].numpy(force=True)
        alive = np.isfinite(scores)
        mantissas[where] = 0.0
        mantissas[where][alive], exponents[where][alive] = _powers(scores[alive])
    return mantissas, exponents


def units_at(trace: Trace, instance: int, positions: Sequence[int]) -> list[int]:
    """Where the units at these positions of an instance lie in the flat arrays."""
    start, units = int(trace.offsets[instance]), int(trace.lengths[instance])
    wrong = [position for position in positions if not 0 <= position < units]
    if wrong:
        raise InputError(f"Instance {instance} has the positions 0 to {units - 1}; {wrong[0]} is none of them.")
    return [start + position for position in positions]


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
    mantissas, exponents = (part[where] for part in weight_powers(trace))
    digits, more = np.frexp(mantissas)
    terms: Numbers = _integers(digits, exponents + more)[:, None] * (grid[:-1] + grid[-1])
    return terms


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
    powers = np.where(digits != 0, exponents, exponents.max())
    shifts = np.where(digits != 0, powers - powers.min(), 0)
    shifted: Numbers = np.left_shift(digits.astype(object), shifts.astype(object))
    return shifted
