"""Adversarial attention by looking at every vertex, one at a time, in plain numbers; shares no code with src."""

import math
from itertools import combinations

import numpy as np

from heedful.traces import Trace

FUZZ = 1e-12


def divergence(ours: list[float], theirs: list[float]) -> float:
    """½ Σ α log(α/m) + ½ Σ α' log(α'/m), m = (α + α')/2; a logarithm of zero never comes up."""
    total = 0.0
    for a, b in zip(ours, theirs, strict=True):
        for own in (a, b):
            if own > 0:
                total += own * (math.log(2) + math.log(own) - math.log(a + b)) / 2
    return total


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def allowed_scores(score: float, shift: float, epsilon: float) -> tuple[float, float]:
    """The scores whose probability lies within ε of that of this score."""
    if epsilon == 0:
        return score, score
    p, q = sigmoid(score + shift), sigmoid(-score - shift)
    low = math.log(p - epsilon) - math.log(q + epsilon) - shift if p > epsilon else -math.inf
    high = math.log(p + epsilon) - math.log(q - epsilon) - shift if q > epsilon else math.inf
    return low, high


def farthest_of_pairs(trace: Trace, instance: int, epsilon: float, *, floor: float, banned: set[int]) -> float | None:
    """The largest divergence over all single units and all pairs, of two classes; None where no weights are allowed."""
    own = trace.instance(instance)
    alpha = trace.attention_weights[own].tolist()
    score = (trace.polarity_scores[own, 1] - trace.polarity_scores[own, 0]).tolist()
    n, shift = len(alpha), float(trace.bias[1] - trace.bias[0])
    room = 1 - n * floor
    if room <= 0:
        return None
    before = sum(a * s for a, s in zip(alpha, score, strict=True))
    low, high = (
        (end - floor * sum(score)) / room
        for end in allowed_scores(min(max(before, min(score)), max(score)), shift, epsilon)
    )
    fuzz = FUZZ * (1 + max(abs(s) for s in score)) / room
    found = [
        divergence(alpha, weights)
        for i in range(n)
        if i not in banned
        for weights in _vertices_with(i, score, low, high, fuzz, floor, room, banned)
    ]
    return max(found, default=None)


def _vertices_with(
    i: int, score: list[float], low: float, high: float, fuzz: float, floor: float, room: float, banned: set[int]
) -> list[list[float]]:
    """The vertices whose leftmost unit is i."""
    n, found = len(score), []
    if low - fuzz <= score[i] <= high + fuzz:
        found.append([floor + room * (k == i) for k in range(n)])
    for end in {low, high}:
        for j in range(n):
            if j not in banned and score[i] < end < score[j]:
                share = (score[j] - end) / (score[j] - score[i])
                parts = {i: share, j: 1 - share}
                found.append([floor + room * parts.get(k, 0.0) for k in range(n)])
    return found


def farthest_of_vertices(trace: Trace, instance: int) -> float:
    """The largest divergence over every set of at most as many units as classes that gives the same output."""
    own = trace.instance(instance)
    alpha, z = trace.attention_weights[own].numpy(), trace.polarity_scores[own].numpy()
    matrix = np.column_stack([np.ones(len(alpha)), z - z[:, :1]]).T
    target, best = matrix @ alpha, 0.0
    for size in range(1, min(len(z), z.shape[1]) + 1):
        for chosen in combinations(range(len(z)), size):
            part = matrix[:, chosen]
            if np.linalg.matrix_rank(part, tol=1e-9) < size:
                continue
            shares = np.linalg.lstsq(part, target, rcond=None)[0]
            if (shares >= -1e-10).all() and np.abs(part @ shares - target).max() <= 1e-9 * (1 + np.abs(matrix).max()):
                weights = np.zeros(len(z))
                weights[list(chosen)] = np.maximum(shares, 0)
                best = max(best, divergence(alpha.tolist(), weights.tolist()))
    return best
