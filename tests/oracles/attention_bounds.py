"""The extreme weights of a token, slowly: bisection over its weight, and for each weight the plain question whether
others exist that keep every output. Two classes, raw weights, no scaling, no normalising trick."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import linprog

Document = Sequence[int]
Allowed = list[list[tuple[int, int, float]]]
"""For every document the pairs of classes and how far their log-odds may rise."""


def allowed_by_probability(
    documents: Sequence[Document], scores: np.ndarray, logits: np.ndarray, epsilon: float
) -> Allowed:
    """Of two classes: p of the second within ε. Of more: every set of classes gains at most ε if all of it rises."""
    allowed: Allowed = []
    for document in documents:
        weights = np.exp(scores[list(document)])
        found = (weights[:, None] * logits[list(document)]).sum(0) / weights.sum()
        p = np.exp(found - found.max())
        p /= p.sum()
        allowed.append([(k, m, _rise(p, k, m, epsilon)) for k, m in itertools.permutations(range(len(p)), 2)])
    return allowed


def _rise(p: np.ndarray, k: int, m: int, epsilon: float) -> float:
    others = [c for c in range(len(p)) if c not in (k, m)]
    best = np.inf
    for marks in itertools.product((False, True), repeat=len(others)):
        q = p[k] + sum(p[c] for c, mark in zip(others, marks, strict=True) if mark)
        if q + epsilon < 1:
            best = min(best, float(np.log((q + epsilon) / (1 - q - epsilon)) - np.log(q / (1 - q))))
    return best


def half_spaces(documents: Sequence[Document], scores: np.ndarray, logits: np.ndarray, epsilon: float) -> np.ndarray:
    """Rows g with g · w ≥ 0 for all weights w that keep the outputs."""
    rows = []
    for document, allowed in zip(documents, allowed_by_probability(documents, scores, logits, epsilon), strict=True):
        weights = np.exp(scores[list(document)])
        own = (weights[:, None] * logits[list(document)]).sum(0) / weights.sum()
        for k, m, rise in allowed:
            if np.isfinite(rise):
                row = np.zeros(len(scores))
                for token in document:
                    row[token] += own[k] - own[m] + rise - (logits[token, k] - logits[token, m])
                rows.append(row)
    return np.array(rows).reshape(len(rows), len(scores))


def exists(rows: np.ndarray, scores: np.ndarray, free: Sequence[int], token: int, weight: float) -> bool:
    """Whether some weights of the free tokens keep all outputs, that of the token being this and the rest as it is."""
    fixed = np.exp(scores)
    fixed[token] = weight
    others = [number for number in free if number != token]
    constant = np.delete(rows, others, axis=1) @ np.delete(fixed, others)
    if not others:
        return bool((constant >= -1e-12).all())
    answer = linprog(np.zeros(len(others)), A_ub=-rows[:, others], b_ub=constant, bounds=(0, None), method="highs-ds")
    return bool(answer.status == 0)


def exists_with_one_other(rows: np.ndarray, scores: np.ndarray, other: int, token: int, weight: float) -> bool:
    """The same without any linear program: each row leaves a half-line for the weight of the one other free token."""
    fixed = np.exp(scores)
    fixed[token], fixed[other] = weight, 0.0
    low, high = 0.0, np.inf
    for row in rows:
        constant, slope = float(row @ fixed), float(row[other])
        if slope > 0:
            low = max(low, -constant / slope)
        elif slope < 0:
            high = min(high, -constant / slope)
        elif constant < -1e-12:
            return False
    return low <= high + 1e-12


def extremes(possible: Callable[[float], bool], start: float, *, far: float = 12.0) -> tuple[float, float]:
    """The least and the largest score for which `possible(weight)`, by bisection; ∓inf if it still is `far` away."""
    found = []
    for sign in (-1.0, 1.0):
        near, away = 0.0, far
        if possible(float(np.exp(start + sign * far))):
            found.append(sign * np.inf)
            continue
        for _ in range(40):
            middle = (near + away) / 2
            near, away = (middle, away) if possible(float(np.exp(start + sign * middle))) else (near, middle)
        found.append(start + sign * near)
    return found[0], found[1]
