"""The corpus-consistent adversary: another attention score for every token, and nearly the same outputs.

An adversary that is free in every single text proves little (Wiegreffe & Pinter 2019, section 4): any two units on
either side of an output will do. Here there is one score a'_e per token for all texts, as in a model without context,
polarity stays, and

    mean JSD(α, α') − price · mean TVD(p, p')

is made as large as possible, means over texts, JSD in nats between the weights of the units of a text and TVD between
the probabilities of its classes. A path of prices gives the curve for which Wiegreffe & Pinter train a second model
(their λ is 1/price), without training.

Every point is attained: these scores exist. That no others do better is not shown, since the problem is not convex, so
the curve is a lower bound of what is attainable. The adversary that is free in every text is an upper one, and so is
ln 2, the largest JSD there is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.bags import Bags, bags_of, with_scores
from heedful.analysis.blocks import one_thread
from heedful.errors import InputError
from heedful.traces import Trace

Watch = Callable[[int, int], None]

PRICES = (30.0, 10.0, 5.0, 2.0, 1.0, 0.5)

FIRST_STEP, LAST_STEP = 0.2, 0.002
"""Step sizes of Adam, in nats of a score: the second lets the outputs settle, whose distance has an edge at zero."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ConsistentAdversary:
    """Points of the curve, in the order of the prices: the highest, which stays nearest to the outputs, first.

    curve: one row per point: price, tvd and jsd (means over texts), changed (the share of texts with another decision),
        start (from which attention it was found).
    tokens: one row per point and token: price, number, token, count, attention (the model's score), adversary (the
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
    prices: Sequence[float] = PRICES,
    minimum_count: int = 1,
    steps: int = 500,
    seed: int = 0,
    watch: Watch | None = None,
) -> ConsistentAdversary:
    """Another attention score for every token, as far from the model's as outputs allow: the curve of TVD and JSD.

    For each price of a unit of mean TVD, mean JSD(α, α') − price · mean TVD(p, p') as large as Adam finds it, along
    the path from the highest price to the lowest, from three starts: the model's scores with noise, uniform attention,
    and the model's scores reversed. The best of all that was found counts, at every price.

    trace: of a model without a contextual encoder.
    tokens: the number of each unit's token, as in `corpus.test.tokens.numbers`.
    prices: what a unit of mean TVD costs, in nats of mean JSD; above zero.
    minimum_count: tokens that occur less often in the trace keep their scores. 1 lets all change.
    steps: of Adam at each price and from each start.
    seed: of the noise.
    watch: told how many of all paths' points are done, of how many.

    >>> import heedful, torch
    >>> from heedful.analysis.consistent import consistent_adversary
    >>> scores = {"attention_scores": [2, 0, 0, 2, 0, 0], "polarity_scores": [1, 1, -1, 1, 1, -1]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 3, 6], bias=[0], **scores)
    >>> found = consistent_adversary(trace, torch.tensor([0, 1, 2, 0, 1, 2]), prices=[10.0])
    >>> found.curve[["price", "tvd", "jsd", "changed"]].round(2)
       price  tvd   jsd  changed
    0   10.0  0.0  0.45      0.0
    """
    ordered = _checked_prices(prices)
    bags = bags_of(trace, tokens)
    free = bags.occurrences >= minimum_count
    found = _paths(bags, free, ordered, steps, seed, watch)
    points = [_best(found, price) for price in ordered]
    adversaries = [with_scores(trace, tokens, bags, point.scores) for point in points]
    changed = [float((other.predictions != trace.predictions).double().mean()) for other in adversaries]
    rows = [(price, p.tvd, p.jsd, share, p.start) for price, p, share in zip(ordered, points, changed, strict=True)]
    return ConsistentAdversary(
        curve=pd.DataFrame(rows, columns=["price", "tvd", "jsd", "changed", "start"]),
        tokens=pd.concat([_table(bags, *pair) for pair in zip(ordered, points, strict=True)], ignore_index=True),
        traces=tuple(adversaries),
    )


def _checked_prices(prices: Sequence[float]) -> list[float]:
    ordered = sorted(set(prices), reverse=True)
    if not ordered or ordered[-1] <= 0:
        raise InputError(f"prices must be numbers above zero, at least one; got {list(prices)}.")
    return ordered


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


def _paths(
    bags: Bags, free: Bool[Tensor, " tokens"], prices: list[float], steps: int, seed: int, watch: Watch | None
) -> list[_Point]:
    """What is found from every start at every price, each going on from the one before; and the model itself."""
    points = [_point(bags, "model", bags.attention)]
    starts = _starts(bags, seed)
    for name, start in starts.items():
        scores = torch.where(free, start, bags.attention)
        for price in prices:
            scores = _ascend(bags, free, scores, price, steps)
            points.append(_point(bags, name, _centred(bags, scores) if free.all() else scores))
            if watch:
                watch(len(points) - 1, len(starts) * len(prices))
    return points


def _best(points: Sequence[_Point], price: float) -> _Point:
    """Along falling prices neither the TVD nor the JSD of the best of the same points can fall."""
    return max(points, key=lambda point: point.jsd - price * point.tvd)


def _point(bags: Bags, start: str, scores: Float[Tensor, " tokens"]) -> _Point:
    tvd, jsd = (float(bags.mean(values)) for values in distances(bags, scores))
    return _Point(start=start, tvd=tvd, jsd=min(max(jsd, 0.0), math.log(2)), scores=scores)


def _starts(bags: Bags, seed: int) -> dict[str, Float[Tensor, " tokens"]]:
    attention, generator = bags.attention, torch.Generator().manual_seed(seed)
    noise = torch.randn(len(attention), generator=generator, dtype=attention.dtype).to(attention.device)
    spread = float((attention - attention.mean()).square().mean().sqrt())
    return {
        "perturbed": attention + (spread or 1.0) * noise,
        "uniform": torch.zeros_like(attention) + attention.mean(),
        "reversed": 2 * attention.mean() - attention,
    }


def _ascend(
    bags: Bags, free: Bool[Tensor, " tokens"], start: Float[Tensor, " tokens"], price: float, steps: int
) -> Float[Tensor, " tokens"]:
    """Adam (Kingma & Ba 2015) on the free scores, with steps that shrink to a hundredth."""
    scores = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([scores], lr=FIRST_STEP)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = max(LAST_STEP, FIRST_STEP * (1 - step / steps))
        tvd, jsd = distances(bags, scores)
        (gradient,) = torch.autograd.grad(bags.mean(price * tvd - jsd), scores)
        scores.grad = gradient * free
        optimizer.step()
    return scores.detach()


def _centred(bags: Bags, scores: Float[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:
    """With the same mean over units as the model's: a constant changes nothing."""
    shares = bags.occurrences / bags.occurrences.sum()
    return scores + ((bags.attention - scores) * shares).sum()


def _table(bags: Bags, price: float, point: _Point) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "price": price,
            "number": bags.numbers.numpy(force=True),
            "token": list(bags.names),
            "count": bags.occurrences.numpy(force=True),
            "attention": bags.attention.numpy(force=True),
            "adversary": point.scores.numpy(force=True),
        }
    )
