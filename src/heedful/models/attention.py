"""Scoring functions: how much attention each hidden vector asks for, before the softmax."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn


def dot_scores(
    hidden: Float[Tensor, "units features"], context_vector: Float[Tensor, " features"], score_scale: float
) -> Float[Tensor, " units"]:
    """a_j = h_jᵀV / λ (Sun & Lu 2020, Eq. 1)."""
    return hidden @ context_vector / score_scale


def additive_scores(
    hidden: Float[Tensor, "units features"],
    projection: Float[Tensor, "context features"],
    context_vector: Float[Tensor, " context"],
    score_scale: float,
) -> Float[Tensor, " units"]:
    """a_j = tanh(M h_j)ᵀV / λ (Sun & Lu 2020, supplement Eq. 65; no bias)."""
    return torch.tanh(hidden @ projection.T) @ context_vector / score_scale


class DotAttention(nn.Module):
    """Scaled dot product with a learned context vector V ~ N(0, σ²)."""

    def __init__(self, size: int, *, score_scale: float, context_deviation: float, generator: torch.Generator) -> None:
        super().__init__()
        self.score_scale = score_scale
        self.context_vector = nn.Parameter(torch.randn(size, generator=generator) * context_deviation)

    def forward(self, hidden: Float[Tensor, "units features"]) -> Float[Tensor, " units"]:
        return dot_scores(hidden, self.context_vector, self.score_scale)


class AdditiveAttention(nn.Module):
    """A tanh layer of the same size before the dot product."""

    def __init__(self, size: int, *, score_scale: float, context_deviation: float, generator: torch.Generator) -> None:
        super().__init__()
        self.score_scale = score_scale
        self.projection = nn.Parameter(uniform((size, size), size**-0.5, generator))
        self.context_vector = nn.Parameter(torch.randn(size, generator=generator) * context_deviation)

    def forward(self, hidden: Float[Tensor, "units features"]) -> Float[Tensor, " units"]:
        return additive_scores(hidden, self.projection, self.context_vector, self.score_scale)


def uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Float[Tensor, "..."]:
    """Numbers drawn uniformly from ± bound."""
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)


ATTENTIONS: Mapping[str, type[DotAttention] | type[AdditiveAttention]] = {
    "dot": DotAttention,
    "additive": AdditiveAttention,
}
