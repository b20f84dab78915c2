"""How far the outputs of a model determine its attention: the smallest and the largest score that a token could have.

With polarity fixed and one weight w_e = exp(a_e) > 0 per token, text d has the logits

    s_d = Σ_e n_de w_e (z_e + b) / Σ_e n_de w_e

and "s_dk − s_dm rises by U at most" is Σ_e n_de w_e (U − v_e) ≥ 0, v_e = (z_ek + b_k) − (z_em + b_m) − (s_dk − s_dm):
linear in w. So all weights that leave every text's output as it is, within a tolerance, are a polyhedron, and the
extreme weights of one token are two linear programs, solved by HiGHS. A narrow interval means that the outputs pin
this token's attention down, a wide one that it could be anything.

**Tolerance.** p'(S) ≤ p(S) + ε for every set S of classes is "total variation distance at most ε", and the log-odds of
S rise by no more than the largest rise of s_k − s_m with k in S and m outside. So it is enough that

    s_k − s_m rises by at most U_km = min over S with k in it and m not in it of h(p(S)),
    h(q) = logit(q + ε) − logit(q), infinite where q + ε ≥ 1.

Of two classes {k} is the only such S, and the condition is exactly |p' − p| ≤ ε. Of more it implies TVD ≤ ε (and lets
through a little less: intervals are then rather too narrow). Beyond ten classes the minimum is taken over all q between
p_k and 1 − p_m instead of over the sets, which is smaller and so still implies it.

**Scale.** A common factor of all weights changes no output. Tokens below a minimum count keep their weights, and so
set the scale: an interval is what a token's score could be while those of rare tokens stay. With rare tokens free
hardly anything is determined, because most texts hold a token that no other has, which can make up for everything.
If no token is kept, the scale is the total weight of all units of the other tokens, which stays.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from scipy import sparse
from torch import Tensor

from heedful.analysis.bags import Bags, bags_of, with_scores
from heedful.analysis.erasure_loops import Numbers, one_thread
from heedful.analysis.programs import METHODS, LeastRatio, scaled_rows
from heedful.errors import InputError
from heedful.traces import Trace

Watch = Callable[[int, int], None]

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


@one_thread()
def determined_attention(
    trace: Trace,
    tokens: Int[Tensor, " units"],
    *,
    epsilon: float = 0.01,
    minimum_count: int = 10,
    only: Sequence[int] | None = None,
    limit: int | None = 50,
    seconds: float = 60.0,
    watch: Watch | None = None,
) -> pd.DataFrame:
    """The smallest and the largest attention score that each token could have with the same outputs: one row per token.

    The same means that no text's probabilities move by more than ε (of two classes exactly; of more classes by
    total variation distance, and by a condition that is a little stronger: see the module). All tokens that are
    frequent enough may change their scores together, at will; the rarer ones keep theirs.

    trace: of a model without a contextual encoder. The texts whose outputs must stay are those of the trace: those of
        the training split are what the scores were learned from, and more texts determine more.
    tokens: the number of each unit's token, as in `corpus.train.tokens.numbers`.
    epsilon: ε, how far a probability may move; 0 keeps every output exactly.
    minimum_count: tokens that occur less often in the trace keep their scores, unless they are the one that is asked
        about. 1 lets all change; see the module for what is then the scale.
    only: the numbers of the tokens that are asked about; None takes the most frequent ones.
    limit: so many of them; None takes all. Tokens given by `only` are all taken.
    seconds: after which a linear program is given up; there are two for each token.
    watch: told how many tokens are done, of how many.

    Columns: number, token, count (how often it occurs in the trace), attention (a_e), low and high (its bounds; −inf
    and inf where there is none: it could do with less than a millionth of every text's attention, or outweigh all
    others a million times; null where nothing could be proved), width (high − low), status (proved, or which side is
    open). Every bound is attained: its weights were put into the model, and all texts stay within ε.

    >>> import heedful, torch
    >>> from heedful.analysis.determined import determined_attention
    >>> scores = {"attention_scores": [0, 0], "polarity_scores": [2, -2]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 2], bias=[0], units=["good", "dull"], **scores)
    >>> table = determined_attention(trace, torch.tensor([0, 1]), epsilon=0.1, only=[0])
    >>> table.round(3)
       number token  count  attention    low   high  width  status
    0       0  good      1        0.0 -0.411  0.411  0.822  proved
    """
    _check_arguments(epsilon, minimum_count)
    bags = bags_of(trace, tokens)
    free = bags.occurrences >= minimum_count
    asked = _asked(bags, free, only, limit)
    program = _program(bags, free, epsilon)
    rows = []
    for done, place in enumerate(asked):
        low, high = (_extreme(program, place, highest, seconds) for highest in (False, True))
        rows.append(_row(bags, place, low.score, high.score))
        if watch:
            watch(done + 1, len(asked))
    columns = ["number", "token", "count", "attention", "low", "high", "width", "status"]
    return pd.DataFrame(rows, columns=columns)


@one_thread()
def extreme_trace(
    trace: Trace,
    tokens: Int[Tensor, " units"],
    token: int,
    *,
    highest: bool,
    epsilon: float = 0.01,
    minimum_count: int = 10,
    seconds: float = 60.0,
) -> Trace | None:
    """The trace with the attention scores of all tokens that give one its smallest, or largest, score.

    What is behind a number of `determined_attention`, whose arguments these are: outputs stay within ε. Where there is
    no bound the score is so far away that it counts as none. None where no scores were found that keep all outputs.
    """
    _check_arguments(epsilon, minimum_count)
    bags = bags_of(trace, tokens)
    program = _program(bags, bags.occurrences >= minimum_count, epsilon)
    scores = _extreme(program, _asked(bags, program.free, [token], None)[0], highest, seconds).scores
    return None if scores is None else with_scores(trace, tokens, bags, scores)


def _check_arguments(epsilon: float, minimum_count: int) -> None:
    if not 0 <= epsilon < 1:
        raise InputError(f"epsilon is how far a probability may move: from 0 to below 1, not {epsilon}.")
    if minimum_count < 1:
        raise InputError(f"The minimum count of a token is 1 or more, not {minimum_count}.")


def _asked(bags: Bags, free: Bool[Tensor, " tokens"], only: Sequence[int] | None, limit: int | None) -> list[int]:
    """The places of the tokens that are asked about."""
    if only is None:
        order = bags.occurrences.argsort(descending=True, stable=True)
        chosen: list[int] = order[free[order]].tolist()
        return chosen[:limit]
    places = {number: place for place, number in enumerate(bags.numbers.tolist())}
    missing = [number for number in only if number not in places]
    if missing:
        raise InputError(
            f"Token {missing[0]} has no unit with attention in this trace, so nothing says what its score could be. "
            "Ask about tokens that occur."
        )
    return [places[number] for number in only]


def _row(bags: Bags, place: int, low: float, high: float) -> tuple[object, ...]:
    sides = [name for name, bound in (("low", low), ("high", high)) if np.isnan(bound)]
    status = f"{' and '.join(sides)} open" if sides else "proved"
    about = int(bags.numbers[place]), bags.names[place], int(bags.occurrences[place]), float(bags.attention[place])
    return *about, low, high, high - low, status


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
    """h(q) = log(1 + ε/q) − log(1 − ε/(1 − q)), with 1 − q given: it may be tiny."""
    if epsilon == 0:
        return torch.zeros_like(q)
    return torch.where(epsilon < rest, (epsilon / q).log1p() - (-epsilon / rest).clamp(min=-1).log1p(), torch.inf)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Program:
    """rows @ x ≥ 0 (of ε = 0: = 0), with x ≥ 0 the weights of tokens in units in which the programs are well scaled.

    x_e is the weight of all units of e by the whole original weight of the text that attends to it most. What is
    asked for is a ratio of x_e and the scale.
    """

    bags: Bags
    epsilon: float
    rows: sparse.csc_array
    original: Numbers
    """x of the original weights."""
    log_unit: Numbers
    """log x of the original weights, where x itself may underflow."""
    free: Bool[Tensor, " tokens"]


def _program(bags: Bags, free: Bool[Tensor, " tokens"], epsilon: float) -> _Program:
    log_shares = bags.own_log_weights + bags.counts.log()
    log_unit = torch.full_like(bags.attention, -torch.inf).scatter_reduce(0, bags.members, log_shares, "amax")
    logits = bags.logits(bags.own_log_weights)
    relative = (log_shares - log_unit[bags.members]).exp()
    parts = [
        _pair_rows(bags, relative, logits[:, k] - logits[:, m], (k, m), rise)
        for (k, m), rise in allowed_rises(bags.own_probabilities, epsilon).items()
        if epsilon > 0 or k < m
    ]
    return _Program(
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
class _Extreme:
    """The extreme score of a token, NaN where it is not proved; and scores of all tokens that attain what was found."""

    score: float
    scores: Float[Tensor, " tokens"] | None


def _extreme(program: _Program, place: int, highest: bool, seconds: float) -> _Extreme:
    """Smallest: the scale is one, x_e as small as possible. Largest: x_e is one, the scale as small as possible.

    Both programs have a solution, the original, and an optimum, which is not below zero.
    """
    moving, ratio = _ratio(program, place, highest)
    sign, unit = (-1.0 if highest else 1.0), float(program.bags.attention[place] - program.log_unit[place])
    scores = None
    for method in METHODS:
        found = ratio.solve(method, seconds)
        weights = None if found.x is None else _attained(program, moving, ratio, found.x)
        if weights is None:
            continue
        value, scores = weights
        if value <= NOTHING:
            return _Extreme(score=-sign * np.inf, scores=scores)
        if found.status == 0 and ratio.proved(found) >= value * (1 - PROOF):
            return _Extreme(score=unit + sign * math.log(value), scores=scores)
    return _Extreme(score=np.nan, scores=scores)


def _ratio(program: _Program, place: int, highest: bool) -> tuple[Numbers, LeastRatio]:
    """The tokens whose weights are variables, e the last of them, and the program; its last variable is the scale."""
    free, stays = (marks.numpy(force=True) for marks in (program.free.clone(), ~program.free))
    free[place] = stays[place] = False
    moving: Numbers = np.append(np.flatnonzero(free), place)
    kept = program.rows[:, stays] @ program.original[stays]
    rows = sparse.csr_array(sparse.hstack([program.rows[:, moving], sparse.csr_array(kept[:, None])]))
    rows = scaled_rows(rows[np.diff(rows[:, :-1].indptr) > 0])
    scale = rows[:0] if stays.any() or len(moving) == 1 else _scale_row(program, moving[:-1])
    exact, e = program.epsilon == 0, len(moving) - 1
    return moving, LeastRatio(
        inequalities=rows[:0] if exact else rows,
        equalities=sparse.vstack([scale, rows]).tocsr() if exact else scale,
        goal=e + 1 if highest else e,
        other=e if highest else e + 1,
    )


def _scale_row(program: _Program, others: Numbers) -> sparse.csr_array:
    """Σ_j m_j x_j − scale = 0 over all tokens but e: m_j x_j is the weight of all units of j, the original sum one."""
    places, bags = torch.from_numpy(others), program.bags
    logs = bags.attention.cpu()[places] + bags.occurrences.cpu()[places].log()
    sizes = (logs - logs.logsumexp(0)).numpy() - program.log_unit[others]
    return sparse.csr_array(np.concatenate([np.exp(sizes), [0.0, -1.0]])[None])


def _attained(
    program: _Program, moving: Numbers, ratio: LeastRatio, x: Numbers
) -> tuple[float, Float[Tensor, " tokens"]] | None:
    """The ratio and the scores of weights that keep all texts within ε: those found, and a little of the original.

    The original lies inside the tolerance, so little of it makes up for rounding. None where that is not enough.
    """
    found = np.maximum(x, 0.0)
    weights = program.original * found[-1]
    weights[moving] = found[:-1]
    origin = np.append(program.original[moving], 1.0)
    for blend in BLENDS:
        blended = found + blend * origin
        scores = _scores(program, (weights + blend * program.original) / blended[-1])
        if _farthest(program, scores) <= program.epsilon + SLACK:
            return float(blended[ratio.goal] / blended[ratio.other]), scores
    return None


def _scores(program: _Program, weights: Numbers) -> Float[Tensor, " tokens"]:
    with np.errstate(divide="ignore"):
        logs = torch.from_numpy(np.log(weights) - program.log_unit)
    return program.bags.attention + logs.to(program.bags.attention.device)


def _farthest(program: _Program, scores: Float[Tensor, " tokens"]) -> float:
    """The largest distance of any text's probabilities from the original ones, if tokens have these scores."""
    return float((program.bags.probabilities(scores) - program.bags.own_probabilities).abs().sum(1).max() / 2)
