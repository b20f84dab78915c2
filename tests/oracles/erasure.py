"""Erasure as one would write it from the paper: erase, softmax what remains, classify, one unit after the other.

Extended precision for random numbers; decimals of a thousand digits and fractions where ties must be ties.
"""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

Numbers = Any
DIGITS = 2000


def softmaxed(scores: Numbers) -> Numbers:
    """Of the remaining scores, in extended precision."""
    powers = np.exp(scores.astype(np.longdouble) - scores.max())
    return powers / powers.sum()


def decision(scores: Numbers, polarity: Numbers, bias: Numbers, erased: Sequence[int]) -> int:
    """The class after the units were erased."""
    remaining = [unit for unit in range(len(scores)) if unit not in set(erased) and scores[unit] > -np.inf]
    if not remaining:
        return int(np.argmax(bias))
    weights = softmaxed(scores[remaining])
    logits = bias.astype(np.longdouble).copy()
    for weight, unit in zip(weights, remaining, strict=True):
        logits = logits + weight * polarity[unit].astype(np.longdouble)
    return int(np.argmax(logits))


def first_flip(scores: Numbers, polarity: Numbers, bias: Numbers, order: Sequence[int]) -> tuple[int, int] | None:
    """How many units of the order are erased when the decision flips first, and the class then."""
    before = decision(scores, polarity, bias, [])
    for count in range(1, len(order) + 1):
        after = decision(scores, polarity, bias, order[:count])
        if after != before:
            return count, after
    return None


def fraction_decision(weights: Numbers, polarity: Numbers, bias: Numbers, erased: Sequence[int]) -> int:
    """The same in fractions, for weights that are given: no rounding at all."""
    remaining = [unit for unit in range(len(weights)) if unit not in set(erased)]
    total = sum((Fraction(float(weights[unit])) for unit in remaining), Fraction(0))
    logits = [Fraction(float(value)) for value in bias]
    for unit in remaining if total else []:
        share = Fraction(float(weights[unit])) / total
        logits = [logit + share * Fraction(float(z)) for logit, z in zip(logits, polarity[unit], strict=True)]
    return max(range(len(logits)), key=lambda k: (logits[k], -k))


@cache
def power(score: float) -> Decimal:
    with localcontext() as context:
        context.prec = DIGITS
        return Decimal(score).exp()


def decimal_decision(scores: Numbers, polarity: Numbers, bias: Numbers, erased: Sequence[int]) -> int:
    """The same in decimals, for scores of any spread: e^-2000 beside 1 is not lost, equal scores cancel exactly."""
    remaining = [unit for unit in range(len(scores)) if unit not in set(erased) and scores[unit] > -np.inf]
    if not remaining:
        return int(np.argmax(bias))
    with localcontext() as context:
        context.prec = DIGITS
        sums = [Decimal(0) for _ in bias]
        for unit in remaining:
            weight = power(float(scores[unit]))
            for k, b in enumerate(bias):
                sums[k] += weight * (Decimal(float(polarity[unit][k])) + Decimal(float(b)))
    return max(range(len(sums)), key=lambda k: (sums[k], -k))


def first_flip_by(decide: Any, values: Numbers, polarity: Numbers, bias: Numbers, order: Sequence[int]) -> int | None:
    """How many units of the order are erased at the first flip, by one of the decisions above."""
    before = decide(values, polarity, bias, [])
    for count in range(1, len(order) + 1):
        if decide(values, polarity, bias, order[:count]) != before:
            return count
    return None


def smallest_flip_by(decide: Any, values: Numbers, polarity: Numbers, bias: Numbers) -> int | None:
    """The size of the smallest set that flips: all subsets, the small ones first."""
    before = decide(values, polarity, bias, [])
    units = range(len(values))
    for size in range(1, len(values) + 1):
        if any(decide(values, polarity, bias, erased) != before for erased in combinations(units, size)):
            return size
    return None


def smallest_flip(scores: Numbers, polarity: Numbers, bias: Numbers) -> int | None:
    """The same in double precision with all subsets at once."""
    count = len(scores)
    remains = (np.arange(2**count)[:, None] >> np.arange(count)) & 1 == 1
    masked = np.where(remains, scores, -np.inf)
    largest = masked.max(1, keepdims=True)
    powers = np.where(remains, np.exp(masked - np.where(remains.any(1, keepdims=True), largest, 0)), 0)
    weights = powers / np.maximum(powers.sum(1, keepdims=True), np.finfo(float).tiny)
    winners = (bias + weights @ polarity).argmax(1)
    flips = winners != winners[-1]
    return int((count - remains.sum(1))[flips].min()) if flips.any() else None


def ranked(importance: Numbers) -> list[int]:
    """Positions, the most important first, ties by position."""
    return sorted(range(len(importance)), key=lambda unit: (-importance[unit], unit))
