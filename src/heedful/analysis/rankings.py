"""Rankings: one importance per unit, computed from the trace alone. Units are erased from the most important on.

attention, gradient, product, random: Serrano & Smith 2019, section 4. polarity: Sun & Lu 2020. margin: ours, the
contribution against the runner-up class, which attains the minimum on every binary instance.

Importances may be too small for floating point, or too close; `keys` are numbers in the same order that are not.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis import erasure_loops
from heedful.analysis.decisions import EPSILON, decisions, exact_terms, logits, once_per_trace, wide
from heedful.analysis.erasure_loops import Numbers, arrays, blocks, each, shares
from heedful.errors import UnknownName
from heedful.traces import Trace

Factor = Callable[[Trace], Float[Tensor, " units"]]

PAPERS = ("attention", "gradient", "product", "random")
"""The rankings of Serrano & Smith 2019."""

SURE = -70.0
"""log(1 − p_y) below which gradients, and their products with weights, may underflow."""


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """importance_i = factor_i α_i where the ranking is `weighted`, else factor_i; without a factor it is chance."""

    name: str
    factor: Factor | None = None
    weighted: bool = False
    direction: Factor | None = None
    """The factor times a positive number for each instance, where the factor itself underflows."""
    exact: Callable[[Trace, Float[Tensor, " units"], Float[Tensor, " units"]], Float[Tensor, " units"]] | None = None
    """From keys and factors to keys with rounding undone."""

    @property
    def chance(self) -> bool:
        """Whether numbers are drawn, so that there are several orders."""
        return self.factor is None

    def importance(self, trace: Trace, *, seed: int = 0, order: int = 0) -> Float[Tensor, " units"]:
        """One number per unit, the larger the sooner erased."""
        return self._times_weight(trace, _drawn(trace, seed, order) if self.factor is None else self.factor(trace))

    def _times_weight(self, trace: Trace, factor: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
        return factor * trace.attention_weights if self.weighted else factor

    def keys(self, trace: Trace, *, seed: int = 0, order: int = 0) -> Float[Tensor, " units"]:
        """Numbers in the order of the importances, told apart even where the weights underflow."""
        towards = self.direction or self.factor
        factor = _drawn(trace, seed, order) if towards is None else towards(trace)
        keys = self._times_weight(trace, factor)
        if self.weighted and wide(trace).any():
            underflow = wide(trace)[trace.segments]
            keys[underflow] = _ranks(factor[underflow], trace.attention_scores[underflow])
        return keys if self.exact is None else self.exact(trace, keys, factor)


def _drawn(trace: Trace, seed: int, order: int) -> Float[Tensor, " units"]:
    """Uniform numbers; a shard has those that the whole trace has for its units."""
    generator = np.random.PCG64([seed, order])
    if trace.part:
        generator.advance(trace.part.first_unit)  # one step for each number
    drawn = np.random.Generator(generator).random(len(trace.attention_weights))
    return torch.from_numpy(drawn).to(trace.attention_weights.device)


def _ranks(factor: Float[Tensor, " some"], scores: Float[Tensor, " some"]) -> Float[Tensor, " some"]:
    """The place of each factor · exp(score) among all, equal ones at the same place; scores of any span."""
    sizes = factor.abs().log() + scores
    signs = factor.sign().where(sizes > -torch.inf, 0)
    pairs = torch.stack([signs, signs * sizes.where(signs != 0, 0)], 1)
    places: Tensor = pairs.unique(dim=0, return_inverse=True)[1]
    return places.to(factor.dtype)


@once_per_trace
def attention_gradients(trace: Trace) -> Float[Tensor, " units"]:
    """∂d/∂α_i of d = max_k p_k with α free: p_y Σ_{k≠y} p_k (z_iy − z_ik), the form that does not cancel.

    Every unit is summed the same way: a matrix product rounds differently at different places, and equal units would
    no longer tie.
    """
    probabilities = logits(trace).softmax(1)
    return _differences(trace, probabilities * probabilities.gather(1, decisions(trace)[:, None]))


def _differences(trace: Trace, weights: Float[Tensor, "instances classes"]) -> Float[Tensor, " units"]:
    """Σ_{k≠y} w_k (z_iy − z_ik)"""
    found = np.empty(len(trace.attention_scores))
    own = arrays(trace.offsets, trace.polarity_scores, weights, decisions(trace))
    each(lambda some: erasure_loops.gradients(*some, *own, found), shares(len(trace), len(found)))
    return torch.from_numpy(found).to(weights.device)


@once_per_trace
def gradient_directions(trace: Trace) -> Float[Tensor, " units"]:
    """The gradient, divided by p_y (1 − p_y) in instances so sure that it is nearly zero everywhere."""
    others = logits(trace).scatter(1, decisions(trace)[:, None], -torch.inf)
    sure = others.logsumexp(1) - logits(trace).logsumexp(1) < SURE
    if not sure.any():
        return attention_gradients(trace)
    return torch.where(sure[trace.segments], _differences(trace, others.softmax(1)), attention_gradients(trace))


def _polarity(trace: Trace) -> Float[Tensor, " units"]:
    """z_iy − mean over k ≠ y of z_ik"""
    differences = _polarity_of(trace, decisions(trace))[:, None] - trace.polarity_scores
    return differences.sum(1) / (len(trace.bias) - 1)


def _margin(trace: Trace) -> Float[Tensor, " units"]:
    """z_iy − z_ik + b_y − b_k with k the runner-up"""
    chosen, second = decisions(trace), runners_up(trace)
    differences = _polarity_of(trace, chosen) - _polarity_of(trace, second)
    return differences + (trace.bias[chosen] - trace.bias[second])[trace.segments]


@once_per_trace
def runners_up(trace: Trace) -> Int[Tensor, " instances"]:
    """The class with the second largest logit."""
    return logits(trace).scatter(1, decisions(trace)[:, None], -torch.inf).argmax(1)


def _exact_margins(
    trace: Trace, keys: Float[Tensor, " units"], factor: Float[Tensor, " units"]
) -> Float[Tensor, " units"]:
    """Margins told apart as the whole numbers they stand for, where rounding cannot; what has no weight comes last."""
    keys = keys.masked_fill(trace.attention_scores == -torch.inf, -torch.inf)
    chosen, second = decisions(trace), runners_up(trace)
    for instance in _close(trace, keys, factor):
        where, terms = trace.instance(instance), exact_terms(trace, instance)
        margins = terms[:, int(chosen[instance])] - terms[:, int(second[instance])]
        places = {margin: float(place) for place, margin in enumerate(sorted(set(margins.tolist())))}
        exact = torch.tensor([places[margin] for margin in margins.tolist()], dtype=keys.dtype, device=keys.device)
        keys[where] = exact.where(keys[where] > -torch.inf, -torch.inf)
    return keys


def _close(trace: Trace, keys: Float[Tensor, " units"], factor: Float[Tensor, " units"]) -> list[int]:
    """The instances in which two units that are not the same have keys closer than rounding can tell."""
    order = sorted_units(keys, trace.offsets)
    below, above = order[1:], order[:-1]
    near = (keys[above] - keys[below]).abs() <= 8 * EPSILON * keys[above].abs()
    if wide(trace).any():  # their keys are places, of logarithms
        logarithms, scores = factor.abs().log(), trace.attention_scores
        room = 8 * EPSILON * (logarithms.abs() + scores.abs() + 1)
        alike = (logarithms + scores)[above] - (logarithms + scores)[below]
        near |= wide(trace)[trace.segments[above]] & (alike.abs() <= room[above] + room[below])
    same = (trace.polarity_scores[above] == trace.polarity_scores[below]).all(1)
    same &= trace.attention_scores[above] == trace.attention_scores[below]
    found = near & ~same & (trace.segments[above] == trace.segments[below]) & (keys[below] > -torch.inf)
    instances: list[int] = trace.segments[above][found].unique().tolist()
    return instances


def _polarity_of(trace: Trace, classes: Int[Tensor, " instances"]) -> Float[Tensor, " units"]:
    """z_ik with k the given class of the unit's instance."""
    return trace.polarity_scores.gather(1, classes.index_select(0, trace.segments)[:, None]).squeeze(1)


RANKINGS = {
    ranking.name: ranking
    for ranking in (
        Ranking(name="attention", factor=lambda trace: torch.ones_like(trace.attention_weights), weighted=True),
        Ranking(name="gradient", factor=attention_gradients, direction=gradient_directions),
        Ranking(name="product", factor=attention_gradients, direction=gradient_directions, weighted=True),
        Ranking(name="random"),
        Ranking(name="polarity", factor=_polarity),
        Ranking(name="margin", factor=_margin, weighted=True, exact=_exact_margins),
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
    return sorted_units(ranking(by).keys(trace, seed=seed, order=order), trace.offsets, reverse=reverse)


def sorted_units(
    keys: Float[Tensor, " units"], offsets: Int[Tensor, " bounds"], *, reverse: bool = False
) -> Int[Tensor, " units"]:
    """Where the units lie, instance after instance, those with the largest keys first (or last), ties by position."""
    starts, own = arrays(offsets, keys)
    order = np.empty(len(own), np.int64)
    each(lambda rows: sort_units(rows, starts, own, order, reverse=reverse), blocks(starts))
    return torch.from_numpy(order).to(keys.device)


def sort_units(rows: Numbers, offsets: Numbers, keys: Numbers, order: Numbers, *, reverse: bool) -> None:
    """Write the order of the units of some instances."""
    packed = np.empty((len(rows), int((offsets[rows + 1] - offsets[rows]).max())), np.int64)
    low = erasure_loops.pack(rows, offsets, keys, keys.view(np.int64), reverse, packed)
    packed.sort(axis=1)
    for row in erasure_loops.unpack(rows, offsets, keys, packed, low, order).tolist():
        own = slice(offsets[row], offsets[row + 1])
        order[own] = offsets[row] + np.argsort(keys[own] if reverse else -keys[own], kind="stable")
