"""Rankings: one importance per unit, computed from the trace alone. Units are erased from the most important on.

attention, gradient, product, random: Serrano & Smith 2019, section 4. polarity: Sun & Lu 2020. margin: ours, the
contribution against the runner-up class, which attains the minimum on every binary instance.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis import loops
from heedful.analysis.blocks import Block, ascending, at
from heedful.analysis.decisions import all_blocks, decisions, logits, once_per_trace, wide
from heedful.errors import UnknownName
from heedful.traces import Trace

Factor = Callable[[Trace, np.random.Generator], Float[Tensor, " units"]]


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """importance_i = factor_i α_i where the ranking is `weighted`, else factor_i; `chance` gives several orders."""

    name: str
    factor: Factor
    weighted: bool = False
    chance: bool = False

    def importance(self, trace: Trace, *, seed: int = 0, order: int = 0) -> Float[Tensor, " units"]:
        """One number per unit, the larger the sooner erased."""
        factor = self.factor(trace, np.random.default_rng([seed, order]))
        return factor * trace.attention_weights if self.weighted else factor

    def keys(self, trace: Trace, *, seed: int = 0, order: int = 0) -> Float[Tensor, " units"]:
        """Numbers in the order of the importances, told apart even where the weights underflow."""
        importance = self.importance(trace, seed=seed, order=order)
        underflow = wide(trace)
        if not self.weighted or not underflow.any():
            return importance
        factor = self.factor(trace, np.random.default_rng([seed, order]))
        return torch.where(underflow[trace.segments], _signed_logarithms(factor, trace.attention_scores), importance)


def _signed_logarithms(factor: Float[Tensor, " units"], scores: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """Increases with factor · exp(score), and is zero where that is."""
    sizes = factor.abs().log() + scores
    zero = sizes == -torch.inf
    lowest = sizes.where(~zero, torch.inf).min()
    return torch.where(zero, 0, factor.sign() * (sizes - lowest + 1))


def _attention(trace: Trace, _: np.random.Generator) -> Float[Tensor, " units"]:
    """α_i"""
    return torch.ones_like(trace.attention_weights)


@once_per_trace
def attention_gradients(trace: Trace) -> Float[Tensor, " units"]:
    """∂d/∂α_i of d = max_k p_k with α free: p_y Σ_{k≠y} p_k (z_iy − z_ik), the form that does not cancel.

    Every unit is summed the same way: a matrix product rounds differently at different places, and equal units would
    no longer tie.
    """
    chosen = decisions(trace)
    probabilities = logits(trace).softmax(1)
    shares = probabilities * probabilities.gather(1, chosen[:, None])
    found = np.empty(len(trace.attention_scores))
    given = (trace.offsets, trace.polarity_scores, shares, chosen)
    loops.gradients(*(tensor.numpy(force=True) for tensor in given), found)
    return torch.from_numpy(found).to(shares.device)


def _gradient(trace: Trace, _: np.random.Generator) -> Float[Tensor, " units"]:
    """∂d/∂α_i"""
    return attention_gradients(trace)


def _random(trace: Trace, generator: np.random.Generator) -> Float[Tensor, " units"]:
    """Uniform numbers."""
    return torch.from_numpy(generator.random(len(trace.attention_weights))).to(trace.attention_weights.device)


def _polarity(trace: Trace, _: np.random.Generator) -> Float[Tensor, " units"]:
    """z_iy − mean over k ≠ y of z_ik"""
    differences = _polarity_of(trace, decisions(trace))[:, None] - trace.polarity_scores
    return differences.sum(1) / (len(trace.bias) - 1)


def _margin(trace: Trace, _: np.random.Generator) -> Float[Tensor, " units"]:
    """z_iy − z_ik + b_y − b_k with k the runner-up"""
    chosen = decisions(trace)
    second = logits(trace).scatter(1, chosen[:, None], -torch.inf).argmax(1)
    differences = _polarity_of(trace, chosen) - _polarity_of(trace, second)
    return differences + (trace.bias[chosen] - trace.bias[second])[trace.segments]


def _polarity_of(trace: Trace, classes: Int[Tensor, " instances"]) -> Float[Tensor, " units"]:
    """z_ik with k the given class of the unit's instance."""
    return trace.polarity_scores.gather(1, classes.index_select(0, trace.segments)[:, None]).squeeze(1)


RANKINGS = {
    ranking.name: ranking
    for ranking in (
        Ranking(name="attention", factor=_attention, weighted=True),
        Ranking(name="gradient", factor=_gradient),
        Ranking(name="product", factor=_gradient, weighted=True),
        Ranking(name="random", factor=_random, chance=True),
        Ranking(name="polarity", factor=_polarity),
        Ranking(name="margin", factor=_margin, weighted=True),
    )
}


def ranking(by: str | Ranking) -> Ranking:
    """The ranking of that name; a ranking itself is passed through."""
    if isinstance(by, Ranking):
        return by
    if by not in RANKINGS:
        raise UnknownName("ranking", by, RANKINGS)
    return RANKINGS[by]


def importance(
    trace: Trace, by: str | Ranking = "attention", *, seed: int = 0, order: int = 0
) -> Float[Tensor, " units"]:
    """One number per unit, the larger the sooner erased; `seed` and `order` matter to random ones only."""
    return ranking(by).importance(trace, seed=seed, order=order)


def ranked(
    trace: Trace, by: str | Ranking = "attention", *, seed: int = 0, order: int = 0, reverse: bool = False
) -> Int[Tensor, " units"]:
    """Where the units lie in the flat arrays, instance after instance, the most important first, ties by position.

    `reverse` begins with the least important; ties are by position then too.
    """
    keys = ranking(by).keys(trace, seed=seed, order=order)
    result = torch.empty_like(trace.segments)
    for block in all_blocks(trace):
        result[block.flat(block.units)] = block.flat(ranked_units(block, keys, reverse=reverse))
    return result


def ranked_units(block: Block, keys: Float[Tensor, " units"], *, reverse: bool = False) -> Int[Tensor, "rows width"]:
    """The units of a block, the largest keys first (or last), ties by position; at the end what is not inside."""
    values = at(keys, block.units) if reverse else at(keys, block.units).neg_()
    return block.units.gather(1, ascending(values.masked_fill_(~block.inside, torch.inf)))
