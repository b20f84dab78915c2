"""Scores: how well a query and each of its keys go together. Functions first, then modules that hold the parameters.

Every function is of one query [… features] and its keys [… keys features], and gives [… keys]. Leading axes (a batch,
heads, further queries) broadcast: for several queries of the same keys, give query [batch queries features] and keys
[batch 1 keys features].
"""

import math
from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

Activation = Callable[[Tensor], Tensor]


def cosine(query: Float[Tensor, "... features"], keys: Float[Tensor, "... keys features"]) -> Float[Tensor, "... keys"]:
    """e_j = qᵀk_j / (|q| |k_j|) (Graves et al. 2014, Eq. 6)."""
    return F.cosine_similarity(query.unsqueeze(-2), keys, dim=-1)


def dot(query: Float[Tensor, "... features"], keys: Float[Tensor, "... keys features"]) -> Float[Tensor, "... keys"]:
    """e_j = qᵀk_j (Luong et al. 2015, below Eq. 7)."""
    if query.dim() == 1:
        return keys @ query
    scores: Tensor = torch.einsum("...d,...nd->...n", query, keys)
    return scores


def scaled_dot(
    query: Float[Tensor, "... features"], keys: Float[Tensor, "... keys features"]
) -> Float[Tensor, "... keys"]:
    """e_j = qᵀk_j / √d (Vaswani et al. 2017, Eq. 1)."""
    return dot(query, keys) / math.sqrt(query.shape[-1])


def general(
    query: Float[Tensor, "... query_features"],
    keys: Float[Tensor, "... keys features"],
    weight: Float[Tensor, "query_features features"],
) -> Float[Tensor, "... keys"]:
    """e_j = qᵀW k_j (Luong et al. 2015, below Eq. 7)."""
    return dot(query @ weight, keys)


def location(
    query: Float[Tensor, "... features"], weight: Float[Tensor, "places features"], count: int
) -> Float[Tensor, "... keys"]:
    """e_j = (W q)_j: from the query alone, a row of W for each place (Luong et al. 2015, Eq. 8)."""
    return F.linear(query, weight[:count])


def located(
    previous: Float[Tensor, "... keys"], filters: Float[Tensor, "filters width"]
) -> Float[Tensor, "... keys filters"]:
    """f_jm = Σ_o F_mo α_(j+o−r): what stood around each place a step before (Chorowski et al. 2015, Eq. 8).

    Filters reach r places to either side; beyond the ends there is nothing.
    """
    line = previous.reshape(-1, 1, previous.shape[-1])
    swept = F.conv1d(line, filters[:, None], padding=filters.shape[1] // 2)
    return swept.mT.reshape(*previous.shape, len(filters))


def additive(
    keys: Float[Tensor, "... keys features"],
    *,
    key_weight: Float[Tensor, "size features"],
    vector: Float[Tensor, " size"],
    query: Float[Tensor, "... query_features"] | None = None,
    query_weight: Float[Tensor, "size query_features"] | None = None,
    around: Float[Tensor, "... keys filters"] | None = None,
    around_weight: Float[Tensor, "size filters"] | None = None,
    bias: Float[Tensor, " size"] | None = None,
    activation: Activation = torch.tanh,
) -> Float[Tensor, "... keys"]:
    """e_j = vᵀφ(U k_j + W q + L f_j + b), each part but the first only where it is given; φ is tanh by default.

    With query Bahdanau et al. 2014 (A.1.2) and, as W[q; k] is one matrix cut in two, "concat" of Luong et al. 2015;
    with what stood around each place (`located`) Chorowski et al. 2015, Eq. 9; without query Yang et al. 2016, Eq. 5.
    """
    inner = F.linear(keys, key_weight, bias)
    if query is not None and query_weight is not None:
        inner = inner + F.linear(query, query_weight).unsqueeze(-2)
    if around is not None and around_weight is not None:
        inner = inner + F.linear(around, around_weight)
    return activation(inner) @ vector


def tanh_dot(
    query: Float[Tensor, "... query_features"],
    keys: Float[Tensor, "... keys features"],
    *,
    query_weight: Float[Tensor, "size query_features"],
    query_bias: Float[Tensor, " size"],
    key_weight: Float[Tensor, "size features"],
    key_bias: Float[Tensor, " size"],
) -> Float[Tensor, "... keys"]:
    """e_j = tanh(W q + b)ᵀ tanh(U k_j + c): φ₁(d)ᵀφ₂(h) of Ji et al. 2017, section 3.1.2."""
    asked = F.linear(query, query_weight, query_bias).tanh()
    return dot(asked, F.linear(keys, key_weight, key_bias).tanh())


def place_vectors(places: Float[Tensor, "..."], size: int) -> Float[Tensor, "... size"]:
    """Sines and cosines of a place, of wavelengths from 4 to 64 places (after Vaswani et al. 2017, section 3.5)."""
    count = size // 2
    waves = 4 * 16 ** (torch.arange(count, dtype=places.dtype, device=places.device) / max(1, count - 1))
    angles = 2 * torch.pi * places.unsqueeze(-1) / waves
    return torch.cat([angles.sin(), angles.cos()], -1)


class Score(nn.Module):
    """A score function with its parameters, called with query, keys and the weights of the step before.

    Each takes of these what it needs; a query may be None where it needs none.
    """

    def forward(
        self,
        query: Float[Tensor, "... query_features"] | None,
        keys: Float[Tensor, "... keys features"],
        previous: Float[Tensor, "... keys"] | None = None,
    ) -> Float[Tensor, "... keys"]:
        raise NotImplementedError


class Bare(Score):
    """A score without parameters: `cosine`, `dot` or `scaled_dot`, times a constant."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], sharpness: float = 1.0) -> None:
        super().__init__()
        self.function, self.sharpness = function, sharpness

    def forward(self, query: Tensor | None, keys: Tensor, _previous: Tensor | None = None) -> Tensor:
        assert query is not None, "this score needs a query"
        scores: Tensor = self.sharpness * self.function(query, keys)
        return scores


class General(Score):
    """`general` with its matrix."""

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.weight = drawn(query_size, key_size)

    def forward(self, query: Tensor | None, keys: Tensor, _previous: Tensor | None = None) -> Tensor:
        assert query is not None, "this score needs a query"
        return general(query, keys, self.weight)


class Location(Score):
    """`location` for up to so many places."""

    def __init__(self, query_size: int, places: int) -> None:
        super().__init__()
        self.weight = drawn(places, query_size)

    def forward(self, query: Tensor | None, keys: Tensor, _previous: Tensor | None = None) -> Tensor:
        assert query is not None, "this score needs a query"
        count = keys.shape[-2]
        assert count <= len(self.weight), f"there are scores for {len(self.weight)} places, not for {count}"
        return location(query, self.weight, count)


class Additive(Score):
    """`additive` with its parameters: with or without query, bias and filters over the weights of the step before."""

    def __init__(
        self,
        key_size: int,
        size: int,
        *,
        query_size: int | None = None,
        filters: int = 0,
        width: int = 0,
        bias: bool = True,
        offset: bool = False,
        activation: Activation = torch.tanh,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.key_weight, self.vector = drawn(size, key_size), drawn(size)
        self.query_weight = None if query_size is None else drawn(size, query_size)
        self.bias = nn.Parameter(torch.zeros(size)) if bias else None
        self.offset = nn.Parameter(torch.zeros(())) if offset else None
        self.filters = drawn(filters, width) if filters else None
        self.around_weight = drawn(size, filters) if filters else None

    def forward(self, query: Tensor | None, keys: Tensor, previous: Tensor | None = None) -> Tensor:
        assert self.query_weight is None or query is not None, "this score needs a query"
        assert self.filters is None or previous is not None, "this score needs the weights of the step before"
        scores = additive(
            keys,
            key_weight=self.key_weight,
            vector=self.vector,
            query=query,
            query_weight=self.query_weight,
            around=None if self.filters is None or previous is None else located(previous, self.filters),
            around_weight=self.around_weight,
            bias=self.bias,
            activation=self.activation,
        )
        return scores if self.offset is None else scores + self.offset


class TanhDot(Score):
    """`tanh_dot` with its parameters."""

    def __init__(self, query_size: int, key_size: int, size: int) -> None:
        super().__init__()
        self.query_weight, self.query_bias = drawn(size, query_size), nn.Parameter(torch.zeros(size))
        self.key_weight, self.key_bias = drawn(size, key_size), nn.Parameter(torch.zeros(size))

    def forward(self, query: Tensor | None, keys: Tensor, _previous: Tensor | None = None) -> Tensor:
        assert query is not None, "this score needs a query"
        return tanh_dot(
            query,
            keys,
            query_weight=self.query_weight,
            query_bias=self.query_bias,
            key_weight=self.key_weight,
            key_bias=self.key_bias,
        )


def drawn(*shape: int) -> nn.Parameter:
    """A parameter drawn uniformly from ± 1/√(its last size), by torch's generator."""
    return nn.Parameter(torch.empty(shape).uniform_(-1, 1) / shape[-1] ** 0.5)


FUNCTIONS: Mapping[str, tuple[str, str]] = {
    "content": ("cos(q, k_j)", "Graves et al. 2014"),
    "additive": ("vᵀ tanh(W [q; k_j])", "Bahdanau et al. 2014; “concat” of Luong et al. 2015"),
    "location": ("(W q)_j", "Luong et al. 2015"),
    "general": ("qᵀ W k_j", "Luong et al. 2015"),
    "dot": ("qᵀ k_j", "Luong et al. 2015"),
    "scaled dot": ("qᵀ k_j / √d", "Vaswani et al. 2017"),
}
"""The score functions of the survey's table: formula and source."""
