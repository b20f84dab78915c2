"""One call carries all mechanisms of attention: score the keys, weigh them, read the values."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.scores import Score
from heedful.attention.weighting import Weigh, softmax
from heedful.errors import ConfigError

ScoreFunction = Callable[[Tensor | None, Tensor, Tensor | None], Tensor]
"""From query, keys and the weights of the step before to a score for each key."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """What one look gave."""

    context: Float[Tensor, "... features"]
    """Σ α_j v_j."""
    weights: Float[Tensor, "... keys"]
    """α; zero where nothing may be read."""
    scores: Float[Tensor, "... keys"]
    """e; −∞ where nothing may be read."""
    within: tuple["Read", ...] = ()
    """The looks that this one is made of: those of a lower level, or hop after hop."""


def attend(
    score: ScoreFunction,
    query: Float[Tensor, "... query_features"] | None,
    keys: Float[Tensor, "... keys features"],
    values: Float[Tensor, "... keys value_features"] | None = None,
    *,
    mask: Bool[Tensor, "... keys"] | None = None,
    previous: Float[Tensor, "... keys"] | None = None,
    normalise: Weigh = softmax,
) -> Read:
    """e_j = score(q, k_j, α⁻)  →  α = normalise(e)  →  c = Σ α_j v_j.

    query [… features] and keys [… keys features]: leading axes broadcast (`heedful.attention.scores`); None for scores
        that need no query.
    values: what is read; by default the keys.
    mask: True where a key may be read. What lies behind it is never looked at.
    previous: α⁻, the weights of the step before, for scores that ask for them: the only state there is.
    normalise: what makes weights of scores (`heedful.attention.weighting`).
    """
    _check(query, keys, values, mask, previous)
    if mask is None:
        mask = torch.ones(keys.shape[:-1], dtype=torch.bool, device=keys.device)
    keys = _cleared(keys, mask)
    if previous is not None:
        previous = previous.masked_fill(~mask, 0.0)
    values = keys if values is None else _cleared(values, mask)
    scores = score(query, keys, previous)
    weights = normalise(scores, mask)
    context = torch.einsum("...n,...nd->...d", weights, values)
    return Read(context=context, weights=weights, scores=scores.masked_fill(~mask, -torch.inf))


class Attention(nn.Module):
    """A score with its parameters and what makes weights of it, as a module: `attend` with both held fast."""

    def __init__(self, score: Score, normalise: Weigh = softmax) -> None:
        super().__init__()
        self.score, self.normalise = score, normalise

    def forward(
        self,
        query: Float[Tensor, "... query_features"] | None,
        keys: Float[Tensor, "... keys features"],
        values: Float[Tensor, "... keys value_features"] | None = None,
        *,
        mask: Bool[Tensor, "... keys"] | None = None,
        previous: Float[Tensor, "... keys"] | None = None,
    ) -> Read:
        return attend(self.score, query, keys, values, mask=mask, previous=previous, normalise=self.normalise)


def _check(
    query: Tensor | None, keys: Tensor, values: Tensor | None, mask: Tensor | None, previous: Tensor | None
) -> None:
    """What would be stretched in silence, or end in a sentence about something else."""
    if keys.dim() < 2:
        raise ConfigError(f"Keys have an axis of places and one of features; these are of shape {list(keys.shape)}.")
    count = keys.shape[-2]
    if values is not None and (values.dim() < 2 or values.shape[-2] != count):
        raise ConfigError(f"There must be a value for each of {count} keys; values are of shape {list(values.shape)}.")
    if mask is not None and (mask.dtype != torch.bool or mask.shape[-1:] != (count,)):
        raise ConfigError(
            f"A mask says True or False of each of {count} keys; this one is {mask.dtype} of shape {list(mask.shape)}."
        )
    if previous is not None and previous.shape[-1:] != (count,):
        raise ConfigError(
            f"There must be a weight of the step before for each of {count} keys; these are of shape "
            f"{list(previous.shape)}."
        )
    if query is not None and query.dim() >= keys.dim() > 2:
        raise ConfigError(
            f"A query of shape {list(query.shape)} has as many axes as keys of {list(keys.shape)}: for several queries "
            "of the same keys, give the keys an axis more, keys.unsqueeze(-3)."
        )


def _cleared(
    rows: Float[Tensor, "... keys features"], mask: Bool[Tensor, "... keys"]
) -> Float[Tensor, "... keys features"]:
    """Zeros in rows that no query may read: there may be anything, NaN too, and zero times NaN is NaN."""
    own = rows.shape[:-1]
    shared = torch.broadcast_shapes(mask.shape, own)
    seen = mask if mask.shape == own else mask.expand(shared).sum_to_size(own) > 0
    return rows.masked_fill(~seen.unsqueeze(-1), 0.0)
