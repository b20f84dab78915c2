"""The corpus-consistent adversary: another attention score for every token, and nearly the same outputs.

An adversary that is free in every single text proves little (Wiegreffe & Pinter 2019, section 4): any two units on
either side of an output will do. Here there is one score a'_e per token for all texts, as in a model without context,
polarity stays, and

    mean JSD(α, α')  is as large as possible with  mean TVD(p, p') ≤ τ

means over texts, JSD in nats between the weights of the units of a text, TVD between the probabilities of its classes.
Over τ this is the curve for which Wiegreffe & Pinter train a second model, without training.

Every point is attained: these scores exist. That no others do better is not shown, since the problem is not convex, so
the curve is a lower bound of what is attainable. The adversary that is free in every text is an upper one, and so is
ln 2, the largest JSD there is.

How: Adam on JSD − price · TVD from three starts, each along a path of falling prices, gives many attained points.
These are good where the curve bends down, and miss where it bends up, so for every τ Adam goes on from the points next
to it with JSD − max(0, TVD − τ)/τ. The best of all points that were found within τ counts.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.bags import Bags, bags_of, with_scores
from heedful.analysis.erasure_loops import one_thread
from heedful.errors import InputError
from heedful.traces import Trace

Watch = Callable[[int, int], None]

WITHIN = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1)

PRICES = (100.0, 30.0, 10.0, 5.0, 2.0, 1.0, 0.5)
"""What a unit of mean TVD costs along a path, in nats of mean JSD."""

LONG_STEP, SHORT_STEP = 0.2, 0.1
"""Of Adam, in nats of a score: along paths, and near a good point. They shrink to a hundredth, since distances between
outputs have an edge at zero, around which longer steps would swing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ConsistentAdversary:
    """Points of the curve, from the nearest to the model's outputs to the farthest.

    curve: one row per point: within (τ), tvd and jsd (means over texts), changed (the share of texts with another
        decision), start (the attention from which it was found; "model" if nothing better than the model itself was).
    tokens: one row per point and token: within, number, token, count, attention (the model's score), adversary (the
        new one; if all scores may change, both have the same mean over units).
    traces: one per point, with the new attention scores and weights of every unit and the model's polarity.
    """

    curve: pd.DataFrame
    tokens: pd.DataFrame
    traces: tuple[Trace, ...]


@one_thread()
def consistent_adversary(
    trace: Trace,
    tokens: Int[Tensor, " units"],
    *,
    within: Sequence[float] = WITHIN,
    minimum_count: int = 1,
    steps: int = 300,
    seed: int = 0,
    watch: Watch | None = None,
) -> ConsistentAdversary:
    """Another attention score for every token, as far from the model's as outputs allow: the curve of TVD and JSD.

    For each τ the largest mean JSD(α, α') that was found with a mean TVD(p, p') of at most τ. A lower bound of what is
    attainable; see the module.

    trace: of a model without a contextual encoder.
    tokens: the number of each unit's token, as in `corpus.test.tokens.numbers`.
    within: the mean TVDs τ, above zero.
    minimum_count: tokens that occur less often in the trace keep their scores. 1 lets all change: then most texts have
        a token of their own, which makes up for much.
    steps: of Adam, 21 times along paths and twice for every τ.
    seed: of the noise in one of the starts.
    watch: told how many of these are done, of how many.

    >>> import heedful, torch
    >>> from heedful.analysis.consistent import consistent_adversary
    >>> scores = {"attention_scores": [2, 0, 0, 2, 0, 0], "polarity_scores": [1, 1, -1, 1, 1, -1]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 3, 6], bias=[0], **scores)
    >>> found = consistent_adversary(trace, torch.tensor([0, 1, 2, 0, 1, 2]), within=[0.01], steps=60)
    >>> found.curve[["within", "jsd", "changed"]].round(2)
       within   jsd  changed
    0    0.01  0.46      0.0
    """
    limits = _checked_limits(within)
    bags = bags_of(trace, tokens)
    search = _Search(bags=bags, free=bags.occurrences >= minimum_count, steps=steps)
    points = _points(search, limits, seed, watch)
    best = [_best(points, limit) for limit in limits]
    adversaries = [with_scores(trace, tokens, bags, point.scores) for point in best]
    changed = [float((other.predictions != trace.predictions).double().mean()) for other in adversaries]
    rows = [(limit, p.tvd, p.jsd, share, p.start) for limit, p, share in zip(limits, best, changed, strict=True)]
    return ConsistentAdversary(
        curve=pd.DataFrame(rows, columns=["within", "tvd", "jsd", "changed", "start"]),
        tokens=pd.concat([_table(bags, *pair) for pair in zip(limits, best, strict=True)], ignore_index=True),
        traces=tuple(adversaries),
    )


def _checked_limits(within: Sequence[float]) -> list[float]:
    limits = sorted(set(within))
    if not limits or limits[0] <= 0:
        raise InputError(f"within must be mean TVDs above zero, at least one; got {list(within)}.")
    return limits


def distances(bags: Bags, scores: Float[Tensor, " tokens"]) -> tuple[Float[Tensor, " bags"], Float[Tensor, " bags"]]:
    """TVD(p, p') and JSD(α, α') of every bag, with p' and α' those that these scores give; differentiable.

    JSD = ½ Σ n (α log α/m + α' log α'/m), m = (α + α')/2, in logarithms: weights that underflow count nothing.
    """
    before, after = bags.own_log_weights, bags.log_weights(scores)
    middle = torch.logaddexp(before, after) - math.log(2)
    terms = bags.counts / 2 * (before.exp() * (before - middle) + after.exp() * (after - middle))
    divergence = terms.new_zeros(len(bags)).index_add(0, bags.segments, terms)
    moved = bags.logits(after).softmax(1) - bags.own_probabilities
    return moved.abs().sum(1) / 2, divergence


@dataclass(frozen=True, kw_only=True, eq=False)
class _Point:
    start: str
    tvd: float
    jsd: float
    scores: Float[Tensor, " tokens"]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Search:
    """Adam (Kingma & Ba 2015) on the free scores."""

    bags: Bags
    free: Bool[Tensor, " tokens"]
    steps: int

    def ascend(
        self, start: str, scores: Float[Tensor, " tokens"], *, price: float, within: float, first_step: float
    ) -> _Point:
        """The best point that is passed, by JSD − price · max(0, TVD − τ); one within τ is better than any other."""
        moving, best, value = scores.clone().requires_grad_(), scores, (False, -math.inf)
        optimizer = torch.optim.Adam([moving], lr=first_step)
        for step in range(self.steps):
            optimizer.param_groups[0]["lr"] = first_step * max(0.01, 1 - step / self.steps)
            tvd, jsd = (self.bags.mean(values) for values in distances(self.bags, moving))
            gain = jsd - price * (tvd - within).clamp(min=0)
            if (reached := (tvd.item() <= within, gain.item())) > value:
                best, value = moving.detach().clone(), reached
            (gradient,) = torch.autograd.grad(gain, moving)
            moving.grad = -gradient * self.free
            optimizer.step()
        return self.point(start, best)

    def point(self, start: str, scores: Float[Tensor, " tokens"]) -> _Point:
        centred = _centred(self.bags, scores) if self.free.all() else scores
        tvd, jsd = (float(self.bags.mean(values)) for values in distances(self.bags, centred))
        return _Point(start=start, tvd=tvd, jsd=min(max(jsd, 0.0), math.log(2)), scores=centred)


def _points(search: _Search, limits: list[float], seed: int, watch: Watch | None) -> list[_Point]:
    """Everything that is found: the model itself, the paths from every start, and what comes of them at every limit."""
    points = [search.point("model", search.bags.attention)]
    starts = _starts(search.bags, seed)
    total = len(starts) * len(PRICES) + 2 * len(limits)
    for name, start in starts.items():
        scores = torch.where(search.free, start, search.bags.attention)
        for price in PRICES:
            points.append(search.ascend(name, scores, price=price, within=0.0, first_step=LONG_STEP))
            scores = points[-1].scores
            if watch:
                watch(len(points) - 1, total)
    for done, limit in enumerate(reversed(limits)):
        for near in _neighbours(points, limit):
            points.append(search.ascend(near.start, near.scores, price=1 / limit, within=limit, first_step=SHORT_STEP))
        if watch:
            watch(total - 2 * (len(limits) - done - 1), total)
    return points


def _best(points: Sequence[_Point], limit: float) -> _Point:
    return max((point for point in points if point.tvd <= limit), key=lambda point: point.jsd)


def _neighbours(points: Sequence[_Point], limit: float) -> list[_Point]:
    """The best point within the limit, and the nearest beyond it."""
    beyond = sorted((point for point in points if point.tvd > limit), key=lambda point: point.tvd)
    return [_best(points, limit), *beyond[:1]]


def _starts(bags: Bags, seed: int) -> dict[str, Float[Tensor, " tokens"]]:
    attention, generator = bags.attention, torch.Generator().manual_seed(seed)
    noise = torch.randn(len(attention), generator=generator, dtype=attention.dtype).to(attention.device)
    spread = float((attention - attention.mean()).square().mean().sqrt())
    return {
        "perturbed": attention + (spread or 1.0) * noise,
        "uniform": torch.zeros_like(attention) + attention.mean(),
        "reversed": 2 * attention.mean() - attention,
    }


def _centred(bags: Bags, scores: Float[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:
    """With the same mean over units as the model's: a constant changes nothing."""
    shares = bags.occurrences / bags.occurrences.sum()
    return scores + ((bags.attention - scores) * shares).sum()


def _table(bags: Bags, limit: float, point: _Point) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "within": limit,
            "number": bags.numbers.numpy(force=True),
            "token": list(bags.names),
            "count": bags.occurrences.numpy(force=True),
            "attention": bags.attention.numpy(force=True),
            "adversary": point.scores.numpy(force=True),
        }
    )
