"""Scoring functions: how much attention each hidden vector asks for, before the softmax."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config import ModelSettings


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
    bias: Float[Tensor, " context"] | None = None,
) -> Float[Tensor, " units"]:
    """a_j = tanh(M h_j)ᵀV / λ (Sun & Lu 2020, supplement Eq. 65); with a bias tanh(M h_j + c) (Yang et al. 2016)."""
    projected = hidden @ projection.T if bias is None else torch.addmm(bias, hidden, projection.T)
    return torch.tanh(projected) @ context_vector / score_scale


class DotAttention(nn.Module):
    """Scaled dot product with a learned context vector V ~ N(0, σ²)."""

    def __init__(self, size: int, settings: ModelSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.score_scale = settings.score_scale
        self.context_vector = nn.Parameter(torch.randn(size, generator=generator) * settings.context_deviation)

    def forward(self, hidden: Float[Tensor, "units features"]) -> Float[Tensor, " units"]:
        return dot_scores(hidden, self.context_vector, self.score_scale)


class AdditiveAttention(nn.Module):
    """A tanh layer of the same size before the dot product."""

    def __init__(self, size: int, settings: ModelSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.score_scale = settings.score_scale
        self.projection = nn.Parameter(uniform((size, size), size**-0.5, generator))
        self.context_vector = nn.Parameter(torch.randn(size, generator=generator) * settings.context_deviation)
        self.bias = nn.Parameter(torch.zeros(size)) if settings.attention_bias else None

    def forward(self, hidden: Float[Tensor, "units features"]) -> Float[Tensor, " units"]:
        return additive_scores(hidden, self.projection, self.context_vector, self.score_scale, self.bias)


def uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Float[Tensor, "..."]:
    """Numbers drawn uniformly from ± bound."""
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)


Attention = DotAttention | AdditiveAttention

ATTENTIONS: Mapping[str, type[DotAttention] | type[AdditiveAttention]] = {
    "dot": DotAttention,
    "additive": AdditiveAttention,
}
