"""Every attention that leaves the outputs of all texts as they are, within a tolerance: one weight for each token.

With polarity fixed and one weight w_e = exp(a_e) > 0 per token, text d has the logits

    s_d = Σ_e n_de w_e (z_e + b) / Σ_e n_de w_e

and "s_dk − s_dm rises by U at most" is Σ_e n_de w_e (U − v_e) ≥ 0, v_e = (z_ek + b_k) − (z_em + b_m) − (s_dk − s_dm):
linear in w. So all weights that keep the outputs are a polyhedral cone, and the least ratio of two of them, which is
the least difference of two scores, is a linear program.

**Tolerance.** p'(S) ≤ p(S) + ε for every set S of classes is "total variation distance at most ε", and the log-odds of
S rise by no more than the largest rise of s_k − s_m with k in S and m outside. So it is enough that

    s_k − s_m rises by at most U_km = min over S with k in it and m not in it of h(p(S)),
    h(q) = logit(q + ε) − logit(q), infinite where q + ε ≥ 1.

Of two classes {k} is the only such S, and the condition is exactly |p' − p| ≤ ε. Of more it implies TVD ≤ ε (and lets
through less: what is found is then rather too narrow). Beyond ten classes the minimum is taken over all q between p_k
and 1 − p_m instead of over the sets, which is smaller and so still implies it. What no attention can do is another
matter: for that there is a condition that TVD ≤ ε implies, since no p_k rises and no p_m falls by more than ε:

    s_k − s_m rises by at most log((p_k + ε) / p_k) − log((p_m − ε) / p_m), infinite where p_m ≤ ε.

Of two classes it is the same.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy import sparse
from torch import Tensor

from heedful.analysis.bags import Bags
from heedful.analysis.erasure_loops import Numbers
from heedful.analysis.programs import METHODS, LeastRatio, scaled_rows

Rises = Callable[[Float[Tensor, "bags classes"], float], dict[tuple[int, int], Float[Tensor, " bags"]]]
"""Of every text and ordered pair of classes by how much the log-odds may rise, from its probabilities and ε."""

SCALE = -1
"""In the place of a token: what its weight is measured by. Tokens that keep their scores keep them against it."""

NOTHING = 1e-6
"""A weight of so little of a text's whole is none; one that outweighs the rest so many times is without bound."""

SLACK = 1e-7
"""By how much outputs may be farther away than asked for: rounding."""

PROOF = 1e-4
"""By how much of itself a weight may differ from the bound that the dual solution proves."""

ROUNDING = 1e-12
"""A difference of so little of its terms is none: units that all say the same say it, whatever they weigh."""

BLENDS = (1e-9, 1e-8, 1e-7, 1e-6)
"""How much of the original weights is added to a solution: no weight is zero, and rounding leaves no text outside."""

MOST_SETS = 10
"""Classes of which all sets are looked at."""


def allowed_rises(
    probabilities: Float[Tensor, "bags classes"], epsilon: float
) -> dict[tuple[int, int], Float[Tensor, " bags"]]:
    """U_km of every text and ordered pair of classes: by how much s_k − s_m may rise with TVD ≤ ε for certain."""
    classes = probabilities.shape[1]
    return {
        (k, m): _rise_by_sets(probabilities, k, m, epsilon)
        if classes <= MOST_SETS
        else _rise_by_interval(probabilities, k, m, epsilon)
        for k, m in permutations(range(classes), 2)
    }


def possible_rises(
    probabilities: Float[Tensor, "bags classes"], epsilon: float
) -> dict[tuple[int, int], Float[Tensor, " bags"]]:
    """By how much s_k − s_m can rise at most if TVD ≤ ε, of every text and ordered pair of classes."""
    pairs = permutations(range(probabilities.shape[1]), 2)
    return {(k, m): _rise(probabilities[:, k], probabilities[:, m], epsilon) for k, m in pairs}


def _rise_by_sets(p: Float[Tensor, "bags classes"], k: int, m: int, epsilon: float) -> Float[Tensor, " bags"]:
    others = [number for number in range(p.shape[1]) if number not in (k, m)]
    least = torch.full_like(p[:, 0], torch.inf)
    for size in range(len(others) + 1):
        for some in combinations(others, size):
            rest = [number for number in others if number not in some]
            least = torch.minimum(least, _rise(p[:, [k, *some]].sum(1), p[:, [m, *rest]].sum(1), epsilon))
    return least


def _rise_by_interval(p: Float[Tensor, "bags classes"], k: int, m: int, epsilon: float) -> Float[Tensor, " bags"]:
    """h is convex with its minimum at (1 − ε)/2."""
    inside = torch.minimum(torch.maximum(torch.full_like(p[:, k], (1 - epsilon) / 2), p[:, k]), 1 - p[:, m])
    return _rise(inside, 1 - inside, epsilon)


def _rise(q: Float[Tensor, " bags"], rest: Float[Tensor, " bags"], epsilon: float) -> Float[Tensor, " bags"]:
    """log(1 + ε/q) − log(1 − ε/r); h(q) where the rest r is 1 − q, which may be tiny."""
    if epsilon == 0:
        return torch.zeros_like(q)
    return torch.where(epsilon < rest, (epsilon / q).log1p() - (-epsilon / rest).clamp(min=-1).log1p(), torch.inf)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cone:
    """rows @ x ≥ 0 (of ε = 0: = 0), with x ≥ 0 the weights of tokens in units in which the programs are well scaled.

    x_e is the weight of all units of e by the whole original weight of the text that attends to it most.
    """

    bags: Bags
    epsilon: float
    rows: sparse.csc_array
    original: Numbers
    """x of the original weights."""
    log_unit: Numbers
    """log x of the original weights, where x itself may underflow."""
    free: Bool[Tensor, " tokens"]
    """The tokens whose scores may change; of the others only one that is asked about may."""

    def unit(self, place: int) -> float:
        """The score of a token with x = 1; that of the scale is 0."""
        return 0.0 if place == SCALE else float(self.bags.attention[place] - self.log_unit[place])


def cone_of(bags: Bags, free: Bool[Tensor, " tokens"], epsilon: float, *, rises: Rises = allowed_rises) -> Cone:
    """Weights that keep the outputs of these bags within ε for certain; with `possible_rises` all that may."""
    log_shares = bags.own_log_weights + bags.counts.log()
    log_unit = torch.full_like(bags.attention, -torch.inf).scatter_reduce(0, bags.members, log_shares, "amax")
    logits = bags.logits(bags.own_log_weights)
    relative = (log_shares - log_unit[bags.members]).exp()
    parts = [
        _pair_rows(bags, relative, logits[:, k] - logits[:, m], (k, m), rise)
        for (k, m), rise in rises(bags.own_probabilities, epsilon).items()
        if epsilon > 0 or k < m
    ]
    return Cone(
        bags=bags,
        epsilon=epsilon,
        rows=sparse.vstack(parts).tocsc(),
        original=log_unit.exp().numpy(force=True),
        log_unit=log_unit.numpy(force=True),
        free=free,
    )


def _pair_rows(
    bags: Bags,
    relative: Float[Tensor, " pairs"],
    odds: Float[Tensor, " bags"],
    pair: tuple[int, int],
    rise: Float[Tensor, " bags"],
) -> sparse.csr_array:
    """The rows of one pair of classes: Σ_e x_e r_de (U − v_e) ≥ 0, of the texts where U is finite."""
    bounded = rise.isfinite()
    numbers = (bounded.cumsum(0) - 1)[bags.segments]
    some = bounded[bags.segments]
    polarity = (bags.polarity[:, pair[0]] - bags.polarity[:, pair[1]])[bags.members]
    moved, size = polarity - odds[bags.segments], polarity.abs() + odds[bags.segments].abs()
    values = relative * (rise[bags.segments] - moved.where(moved.abs() > ROUNDING * size, 0.0))
    where = (numbers[some].numpy(force=True), bags.members[some].numpy(force=True))
    shape = (int(bounded.sum()), len(bags.numbers))
    return sparse.csr_array((values[some].numpy(force=True), where), shape=shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class Least:
    """The least difference of two scores, NaN where it is not proved; and scores of all tokens that attain it."""

    difference: float
    scores: Float[Tensor, " tokens"] | None


def least_difference(cone: Cone, goal: int, other: int, seconds: float) -> Least:
    """The least a_goal − a_other of all scores that keep the outputs; −inf where there is none.

    The places of two tokens, or of one and SCALE, which has the score 0. With x_other = 1, x_goal is as small as
    possible: that has a solution, the original, and an optimum, which is not below zero.
    """
    moving, ratio = _ratio(cone, goal, other)
    vanished = None if goal == SCALE else _without(cone, moving, ratio)
    gone = None if vanished is None else nearby(cone, moving, vanished)
    if gone is not None and gone[0][ratio.goal] <= NOTHING * gone[0][ratio.other]:
        return Least(difference=-np.inf, scores=gone[1])
    scores = None
    for method in METHODS:
        found = ratio.solve(method, seconds)
        attained = None if found.x is None else nearby(cone, moving, found.x)
        if attained is None:
            continue
        x, scores = attained
        value = float(x[ratio.goal] / x[ratio.other])
        if value <= NOTHING:
            return Least(difference=-np.inf, scores=scores)
        if found.status == 0 and ratio.proved(found) >= value * (1 - PROOF):
            return Least(difference=cone.unit(goal) - cone.unit(other) + math.log(value), scores=scores)
    return Least(difference=np.nan, scores=scores)


def _ratio(cone: Cone, goal: int, other: int) -> tuple[Numbers, LeastRatio]:
    """The tokens whose weights are variables, those asked about the last, and the program; the scale comes after all.

    If no token is kept, the scale is the total weight of all tokens that are not asked about.
    """
    asked = [place for place in (goal, other) if place != SCALE]
    free, stays = (marks.numpy(force=True) for marks in (cone.free.clone(), ~cone.free))
    free[asked] = stays[asked] = False
    moving: Numbers = np.append(np.flatnonzero(free), asked)
    rows = rows_of(cone, moving)
    scale = rows[:0] if stays.any() or not free.any() else _scale_row(cone, np.flatnonzero(free), len(asked))
    exact, columns = cone.epsilon == 0, {place: number for number, place in enumerate(moving.tolist())}
    return moving, LeastRatio(
        inequalities=rows[:0] if exact else rows,
        equalities=sparse.vstack([scale, rows]).tocsr() if exact else scale,
        goal=columns.get(goal, len(moving)),
        other=columns.get(other, len(moving)),
    )


def _without(cone: Cone, moving: Numbers, ratio: LeastRatio) -> Numbers | None:
    """The original weights, but the goal has none, where these lie in the cone: then no program is needed."""
    x = np.append(cone.original[moving], 1.0)
    x[ratio.goal] = 0.0
    return x if ratio.allows(x) else None


def _scale_row(cone: Cone, others: Numbers, asked: int) -> sparse.csr_array:
    """Σ_j m_j x_j − scale = 0 over tokens not asked about: m_j x_j is the weight of all units of j, the original 1."""
    places, bags = torch.from_numpy(others), cone.bags
    logs = bags.attention.cpu()[places] + bags.occurrences.cpu()[places].log()
    sizes = (logs - logs.logsumexp(0)).numpy() - cone.log_unit[others]
    return sparse.csr_array(np.concatenate([np.exp(sizes), np.zeros(asked), [-1.0]])[None])


def rows_of(cone: Cone, moving: Numbers) -> sparse.csr_array:
    """The rows in the weights of these tokens and the scale, against which all others stay; without empty ones."""
    stays = np.ones(len(cone.original), dtype=bool)
    stays[moving] = False
    kept = cone.rows[:, stays] @ cone.original[stays]
    rows = sparse.csr_array(sparse.hstack([cone.rows[:, moving], sparse.csr_array(kept[:, None])]))
    return scaled_rows(rows[np.diff(rows[:, :-1].indptr) > 0])


def nearby(cone: Cone, moving: Numbers, x: Numbers) -> tuple[Numbers, Float[Tensor, " tokens"]] | None:
    """Weights that keep all texts within ε, those found and a little of the original, and the scores that they are.

    The original lies inside the tolerance, so little of it makes up for rounding. None where that is not enough.
    """
    found = np.maximum(x, 0.0)
    weights = cone.original * found[-1]
    weights[moving] = found[:-1]
    origin = np.append(cone.original[moving], 1.0)
    for blend in BLENDS:
        blended = found + blend * origin
        scores = _scores(cone, (weights + blend * cone.original) / blended[-1])
        if farthest(cone, scores) <= cone.epsilon + SLACK:
            return blended, scores
    return None


def _scores(cone: Cone, weights: Numbers) -> Float[Tensor, " tokens"]:
    with np.errstate(divide="ignore"):
        logs = torch.from_numpy(np.log(weights) - cone.log_unit)
    return cone.bags.attention + logs.to(cone.bags.attention.device)


def farthest(cone: Cone, scores: Float[Tensor, " tokens"]) -> float:
    """The largest distance of any text's probabilities from the original ones, if tokens have these scores."""
    return float((cone.bags.probabilities(scores) - cone.bags.own_probabilities).abs().sum(1).max() / 2)
