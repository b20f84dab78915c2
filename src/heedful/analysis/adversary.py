"""Another attention, the same output: the weights farthest from a trace's own that leave its outputs where they are.

With polarity scores fixed, logit differences are linear in the weights α'. The weights that are not negative, sum to
one and leave the output as it is (or within ε) form a polytope, and

    JSD(α, α') = log 2 − ½ Σ_i g(α_i, α'_i)        g(α, β) = α log((α + β)/α) + β log((α + β)/β)

is convex in α', so it is largest at a vertex. Jain & Wallace 2019 look for such weights by gradient; here it is found.

Two classes: exactly. A vertex has at most two units, one on either side of the instance's score s (or one that has it),
with shares in inverse proportion to their distances from s. Hold one of them fixed. Σ g grows with the weight α of the
other and is concave in its share, which falls with its distance: so if both a nearer and a farther unit have no more
weight, one of these is at least as good. What remains are units with less weight than all nearer, or than all farther,
ones: two short records on either side, whose pairs are compared. Within ε the same is done at both ends of the allowed
scores, beside single units between them.

More classes: a vertex has at most as many units as there are classes. All are looked at while they are few; otherwise
the best of several is given, with a bound that no weights exceed (`heedful.analysis.vertices`). Within ε the weights
are no polytope, but lie between two: the best is of the inner one, the bound of the outer one.
"""

from collections.abc import Sequence
from typing import no_type_check

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import nnls
from scipy.special import softmax
from torch import Tensor

from heedful.analysis.decisions import logits, pooled, rounding
from heedful.analysis.erasure_loops import arrays, each, one_thread
from heedful.analysis.erasure_loops import shares as parts_of
from heedful.analysis.rankings import ranked
from heedful.analysis.vertices import PerRow, PerUnit, Polytope, least_overlap, overlaps
from heedful.compiled import compiled, inlined
from heedful.errors import InputError
from heedful.notebook import Grid, View, counted, listed
from heedful.shown_tables import ShownTable
from heedful.traces import Trace

PerInstance = Float[np.ndarray, " instances"]

LARGEST = float(np.log(2))
"""The JS divergence of weights that have no unit in common."""

MOST_SHOWN = 10
"""Instances that are shown at first sight."""

MOST_VERTICES = 20_000
EXACT = 1e-9
"""Bounds this close are one."""

NO_ROOM = 1e-6
"""Where the least weights of all units leave less than this to share, there are no other weights."""


@one_thread()
def adversarial_attention(
    trace: Trace,
    epsilon: float = 0.0,
    *,
    floor: float | PerInstance = 0.0,
    without_top: int = 0,
    most_vertices: int = MOST_VERTICES,
) -> ShownTable:
    """The attention weights farthest from the trace's own that give the same output: one row per instance.

        max JSD(α, α')   with   α' ≥ floor,  Σ α' = 1,  TVD(p', p) ≤ epsilon

    Jain & Wallace 2019, section 4.2, found exactly for two classes and, with epsilon 0 and while they are few, by all
    vertices for more; elsewhere the best of several vertices is given with an upper bound. No model is called: hidden
    vectors, and so the polarity scores, stay as they are.

    trace: from `heedful.trace` or `Trace.from_arrays`.
    epsilon: how far the output may move, in total variation (of two classes |Δp|); 0 not at all.
    floor: the least weight of every unit; 0 lets units go unattended. One for all instances, or one for each.
    without_top: the most attended units, so many, get no more than the floor.
    most_vertices: with three or more classes, so many are looked at before a bound takes their place.

    Columns: instance, units; jsd (in nats, at most log 2, attained by these weights); jsd_upper (none can exceed it);
    exact (whether the two are one); support, positions and weights (the units above the floor, and what they get); tvd
    (how far the output moved). All null where no such weights exist, as the most attended units may be needed, or the
    least weights leave nothing to share; jsd alone is null, beside a jsd_upper, where with three or more classes and an
    epsilon none were found and none are ruled out.

    >>> import heedful
    >>> scores = {"attention_weights": [0.6, 0.2, 0.2], "polarity_scores": [0, 3, -3]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 3], bias=[0], units=["a", "good", "dull"], **scores)
    >>> heedful.adversarial_attention(trace)[["jsd", "exact", "positions", "weights"]].round(3)
         jsd  exact positions     weights
    0  0.274   True    [1, 2]  [0.5, 0.5]
    """
    _check(epsilon, without_top)
    floors = _floors(floor, len(trace))
    least = np.repeat(floors, trace.lengths.numpy(force=True))
    shares, allowed = least.copy(), _allowed(trace, without_top)
    if len(trace.bias) == 2:
        jsd = upper = _of_two_classes(trace, epsilon, floors, allowed, shares)
    else:
        jsd, upper = _of_more_classes(trace, epsilon, floors, allowed, shares, most_vertices)
    return ShownTable.of(_table(trace, shares, shares > least, jsd, upper), _view)


def _view(table: pd.DataFrame) -> View:
    """How many instances have other weights, and how far they lie."""
    found = table["jsd"].dropna()
    near = f"; the median of their JSD is {found.median():.3f} of at most {LARGEST:.3f}" if len(found) else ""
    told = f"{counted(len(found), 'instance')} of {len(table):,} have other weights that keep to what was asked{near}."
    farthest = table.loc[found.nlargest(MOST_SHOWN).index, ["instance", "jsd", "tvd", "positions", "weights"]]
    rows = [
        [str(row), f"{jsd:.3f}", f"{tvd:.3f}", _largest(positions, weights)]
        for row, jsd, tvd, positions, weights in farthest.itertuples(index=False)
    ]
    header = ["instance", "jsd", "tvd", "weights by position"]
    parts = [Grid(header=header, rows=rows)] if rows else []
    return View(
        title="Another attention, the same output", sentences=[told], parts=parts, drawing="adversary", data=table
    )


def _largest(positions: Sequence[int], weights: Sequence[float]) -> str:
    """Units with their weights, the largest first."""
    order = sorted(zip(positions, weights, strict=True), key=lambda part: -part[1])
    return listed([f"{place}: {weight:.2f}" for place, weight in order])


def told_elsewhere(trace: Trace, without_top: int = 1) -> Bool[np.ndarray, " instances"]:
    """Whether the very same output can be had without the most attended units: where `adversarial_attention` has a row.

    No weights are looked for. With three classes or more the output lies among what the other units say if it can be
    written as their mean (non-negative least squares), which takes a hundredth of the time.
    """
    if len(trace.bias) == 2:
        return adversarial_attention(trace, without_top=without_top)["jsd"].notna().to_numpy()
    allowed, told = _allowed(trace, without_top), np.zeros(len(trace), dtype=bool)
    weights, polarity = arrays(trace.attention_weights, trace.polarity_scores)
    for row in range(len(trace)):
        own = trace.instance(row)
        said = np.vstack([np.ones(own.stop - own.start), (polarity[own, 1:] - polarity[own, :1]).T])
        said /= np.maximum(np.abs(said).max(1, keepdims=True), np.finfo(np.float64).tiny)
        others = said[:, allowed[own]]
        told[row] = others.size > 0 and nnls(others, said @ weights[own])[1] <= EXACT
    return told


def _check(epsilon: object, without_top: object) -> None:
    if not (isinstance(epsilon, (int, float, np.number)) and 0 <= epsilon < 1):
        raise InputError(f"epsilon is how far a probability may move, from 0 to below 1; got {epsilon!r}.")
    if not (isinstance(without_top, (int, np.integer)) and without_top >= 0):
        raise InputError(f"without_top is a number of units, 0 or more; got {without_top!r}.")


def _floors(floor: object, instances: int) -> PerInstance:
    """The least weight of a unit, for each instance."""
    given = np.asarray(floor)
    if given.dtype.kind not in "iuf" or given.shape not in {(), (instances,)}:
        raise InputError(
            f"floor is the least weight of a unit, one number or one for each of the {instances:,} instances; got "
            + (f"{floor!r}." if given.dtype.kind not in "iuf" else f"numbers of the shape {given.shape}.")
        )
    wrong = given[~((given >= 0) & (given < 1))]
    if wrong.size:
        raise InputError(f"floor is the least weight of a unit, from 0 to below 1; got {wrong.ravel()[0]}.")
    return np.broadcast_to(given.astype(np.float64), instances).copy()


def _allowed(trace: Trace, without_top: int) -> Bool[np.ndarray, " units"]:
    """Every unit but the most attended ones of each instance; of equal ones the first count as more attended."""
    if without_top == 0:
        return np.ones(len(trace.attention_weights), dtype=bool)
    order = ranked(trace, "attention")
    places = torch.arange(len(order), device=order.device) - trace.offsets[trace.segments]
    return torch.ones_like(order, dtype=torch.bool).index_copy_(0, order, places >= without_top).numpy(force=True)


def _table(
    trace: Trace, shares: PerUnit, above: Bool[np.ndarray, " units"], jsd: PerInstance, upper: PerInstance
) -> pd.DataFrame:
    moved = trace.bias + pooled(trace, torch.from_numpy(shares).to(trace.bias.device))
    tvd = (moved.softmax(1) - logits(trace).softmax(1)).abs().sum(1).numpy(force=True) / 2
    missing = np.isnan(jsd)
    segments, units = trace.segments.numpy(force=True)[above], np.flatnonzero(above)
    support = np.bincount(segments, minlength=len(trace))
    positions = np.split(units - trace.offsets.numpy(force=True)[segments], support.cumsum()[:-1])
    weights = np.split(shares[above], support.cumsum()[:-1])
    return pd.DataFrame(
        {
            "instance": np.arange(len(trace)),
            "units": trace.lengths.numpy(force=True),
            "jsd": jsd,
            "jsd_upper": upper,
            "exact": pd.arrays.BooleanArray(upper - jsd <= EXACT, np.isnan(upper)),
            "support": pd.arrays.IntegerArray(support, missing.copy()),
            "positions": [None if gone else one.tolist() for gone, one in zip(missing, positions, strict=True)],
            "weights": [None if gone else one.tolist() for gone, one in zip(missing, weights, strict=True)],
            "tvd": np.where(missing, np.nan, tvd),
        }
    )


def _of_two_classes(
    trace: Trace, epsilon: float, floors: PerInstance, allowed: Bool[np.ndarray, " units"], shares: PerUnit
) -> PerInstance:
    """The largest divergence of every instance, NaN where there is none; what attains it is written into `shares`."""
    scores = (trace.polarity_scores[:, 1] - trace.polarity_scores[:, 0]).contiguous()
    ends = arrays(*_allowed_scores(trace, scores, epsilon))
    own = *arrays(trace.offsets, trace.attention_weights, scores), allowed, ends, floors
    found = np.empty(len(trace))
    each(lambda part: farthest_pairs(*part, *own, shares, found), parts_of(len(trace), len(shares)))
    return found


def _allowed_scores(
    trace: Trace, scores: Float[Tensor, " units"], epsilon: float
) -> tuple[Float[Tensor, " instances"], Float[Tensor, " instances"], Float[Tensor, " instances"]]:
    """Between which sums Σ α'_i s_i the output stays within ε, and by how much rounding may have moved them.

    σ(s + c) ± ε for p = σ(s + c), by p and 1 − p apart, so that neither loses its digits.
    """
    least, most = (torch.segment_reduce(scores, one, offsets=trace.offsets) for one in ("min", "max"))
    slack = rounding(trace.lengths) * least.abs().maximum(most.abs())
    sums = torch.segment_reduce(trace.attention_weights * scores, "sum", offsets=trace.offsets).clamp(least, most)
    if epsilon == 0:
        return sums, sums, slack
    shift = trace.bias[1] - trace.bias[0]
    p, q = torch.sigmoid(sums + shift), torch.sigmoid(-sums - shift)
    low = torch.where(p > epsilon, (p - epsilon).log() - (q + epsilon).log() - shift, -torch.inf)
    high = torch.where(q > epsilon, (p + epsilon).log() - (q - epsilon).log() - shift, torch.inf)
    return low.minimum(sums), high.maximum(sums), slack


@compiled
@no_type_check
def farthest_pairs(start, stop, offsets, weights, scores, allowed, bounds, floors, shares, found):
    """For every instance the one or two units whose shares lie farthest from the weights; NaN where there are none."""
    low, high, slack = bounds
    for t in range(start, stop):
        begin, n = offsets[t], offsets[t + 1] - offsets[t]
        alpha, score, may, own = weights[begin:][:n], scores[begin:][:n], allowed[begin:][:n], shares[begin:][:n]
        floor = floors[t]
        room = 1 - n * floor
        if room < NO_ROOM:
            found[t] = np.nan
            continue
        fixed, total = 0.0, 0.0
        for i in range(n):
            fixed += overlap(alpha[i], floor)
            total += score[i]
        ends = ((low[t] - floor * total) / room, (high[t] - floor * total) / room)
        order = np.argsort(score)
        order = order[may[order]]
        first, second, share, cost = best_single(alpha, score, order, ends, slack[t] / room, floor, room)
        for e in range(1 if ends[0] == ends[1] else 2):
            if -np.inf < ends[e] < np.inf:
                one, other, part, least = best_pair(alpha, score, order, ends[e], floor, room)
                if least < cost:
                    first, second, share, cost = one, other, part, least
        if cost == np.inf:
            found[t] = np.nan
            continue
        own[first] = floor + room * share
        if share < 1:
            own[second] = floor + room * (1 - share)
        found[t] = max(LARGEST - (fixed + cost) / 2, 0.0)


@inlined
@no_type_check
def overlap(alpha, beta):
    """g(α, β) = α log((α + β)/α) + β log((α + β)/β): what the two have in common; 0 where one of them is 0."""
    small, large = min(alpha, beta), max(alpha, beta)
    if small == 0:
        return 0.0
    more = np.log1p(small / large)
    return small * (np.log(large) - np.log(small) + more) + large * more


@inlined
@no_type_check
def best_single(alpha, score, order, ends, slack, floor, room):
    """The unit with the least weight whose score lies between the ends."""
    best, least = np.int64(-1), np.inf
    for i in order:
        if ends[0] - slack <= score[i] <= ends[1] + slack and (best < 0 or alpha[i] < alpha[best]):
            best = i
    if best >= 0:
        least = overlap(alpha[best], floor + room) - overlap(alpha[best], floor)
    return best, np.int64(-1), 1.0, least


@compiled
@no_type_check
def best_pair(alpha, score, order, end, floor, room):
    """The two units on either side of the end whose shares, with the end as their mean, overlap the weights least."""
    middle = np.searchsorted(score[order], end)
    left = records(alpha, order[:middle][::-1])
    while middle < len(order) and score[order[middle]] == end:
        middle += 1
    right = records(alpha, order[middle:])
    first, second, share, least = np.int64(-1), np.int64(-1), 1.0, np.inf
    for i in left:
        own = overlap(alpha[i], floor)
        for j in right:
            part = (score[j] - end) / ((score[j] - end) + (end - score[i]))
            cost = overlap(alpha[i], floor + room * part) - own
            cost += overlap(alpha[j], floor + room * (1 - part)) - overlap(alpha[j], floor)
            if cost < least:
                first, second, share, least = i, j, part, cost
    return first, second, share, least


@compiled
@no_type_check
def records(alpha, order):
    """Of units from the nearest to the farthest those with less weight than all nearer, or than all farther, ones."""
    kept, least = np.zeros(len(order), np.bool_), np.inf
    for i in range(len(order)):
        if alpha[order[i]] < least:
            kept[i], least = True, alpha[order[i]]
    least = np.inf
    for i in range(len(order) - 1, -1, -1):
        if alpha[order[i]] < least:
            kept[i], least = True, alpha[order[i]]
    return order[kept]


def _of_more_classes(
    trace: Trace,
    epsilon: float,
    floors: PerInstance,
    allowed: Bool[np.ndarray, " units"],
    shares: PerUnit,
    most_vertices: int,
) -> tuple[PerInstance, PerInstance]:
    """The largest divergence that was found for every instance, and what none exceeds; `shares` are filled in."""
    jsd, upper = np.full((2, len(trace)), np.nan)
    weights, polarity, outputs = arrays(trace.attention_weights, trace.polarity_scores, logits(trace))
    for row in range(len(trace)):
        own = trace.instance(row)
        usable, floor = np.flatnonzero(allowed[own]), float(floors[row])
        if 1 - floor * (own.stop - own.start) < NO_ROOM or not len(usable):
            continue
        polytopes = _polytopes(weights[own], polarity[own], outputs[row], usable, epsilon, floor)
        found = [least_overlap(one, most_vertices) for one in (polytopes[:1] if epsilon == 0 else polytopes)]
        most = LARGEST - float(overlaps(weights[own], floor).sum()) / 2
        bound = found[-1][1]
        if bound < np.inf:
            upper[row] = min(most - bound / 2, LARGEST)
        for best, _ in found:
            if best is None or max(most - best.cost / 2, 0.0) <= jsd[row]:
                continue
            other = np.full(own.stop - own.start, floor)
            other[usable[best.units]] += polytopes[0].room * best.shares
            if epsilon == 0 or _moved(outputs[row], polarity[own], other - weights[own]) <= epsilon:
                shares[own], jsd[row] = other, max(most - best.cost / 2, 0.0)
        upper[row] = np.fmax(upper[row], jsd[row])
    return jsd, upper


def _moved(
    outputs: Float[np.ndarray, " classes"], polarity: Float[np.ndarray, "units classes"], change: PerUnit
) -> float:
    """How far the output moves if the weights change by so much."""
    return float(np.abs(softmax(outputs + change @ polarity) - softmax(outputs)).sum()) / 2


def _polytopes(
    weights: PerUnit,
    polarity: Float[np.ndarray, "units classes"],
    outputs: Float[np.ndarray, " classes"],
    usable: Int[np.ndarray, " usable"],
    epsilon: float,
    floor: float,
) -> list[Polytope]:
    """The weights that surely keep one instance's output within ε, and those that may; with ε = 0 they are the same."""
    y, room = int(outputs.argmax()), 1 - floor * len(weights)
    differences = np.delete(polarity - polarity[:, [y]], y, axis=1).T
    ends = _allowed_differences(outputs, y, epsilon, differences @ weights)
    fixed = floor * differences.sum(1)
    made = {"weights": weights[usable], "differences": differences[:, usable], "floor": floor, "room": room}
    return [Polytope(low=(low - fixed) / room, high=(high - fixed) / room, **made) for low, high in ends]


def _allowed_differences(
    outputs: Float[np.ndarray, " classes"], y: int, epsilon: float, sums: PerRow
) -> tuple[tuple[PerRow, PerRow], tuple[PerRow, PerRow]]:
    """Between which sums Σ α'_i (z_ik − z_iy) the output surely stays within ε, and between which it must.

    Log odds against y that move by at most δ move the output by at most tanh(δ/2) in total variation: likelihood ratios
    within R of each other do so by (√R − 1)/(√R + 1). And within ε no probability moves by more than ε.
    """
    if epsilon == 0:
        return (sums, sums), (sums, sums)
    delta, p = 2 * np.arctanh(epsilon), np.exp(outputs - np.logaddexp.reduce(outputs))
    odds, others = np.delete(outputs - outputs[y], y), np.delete(p, y)
    with np.errstate(divide="ignore"):
        low = np.log(np.maximum(others - epsilon, 0.0)) - np.log(p[y] + epsilon)
        high = np.log(others + epsilon) - np.log(np.maximum(p[y] - epsilon, 0.0))
    outer = sums + np.minimum(low - odds, 0.0), sums + np.maximum(high - odds, 0.0)
    return (sums - delta, sums + delta), outer
