"""Attention pooling on the distinct tokens of a ragged batch, with the closed-form gradient.

A batch holds many occurrences of few distinct tokens, and without a contextual encoder equal tokens have equal hidden
vectors. So everything before the pooling is computed once per distinct token, and no [occurrences × features] array
ever exists. With g_t = ∂ℓ/∂h_t the gradient of the pooled vector of document t,

    ∂ℓ/∂h_e = Σ_{(t,j): token e} α_j g_t                    ∂ℓ/∂a_e = Σ_{(t,j): token e} α_j (h_e − h_t)ᵀ g_t.

For one output, g_t = −y β W / m, and the two together are Eq. 13 of Sun & Lu 2020, with V/λ behind a_e; the sums over
a_e are Eq. 23; with other functions in front of h and a they are Eqs. 59–61, 66–68 and, with g_t = W p̂, 78–80.
Dropout on the pooled vector makes W differ per document; it is inside g_t, so nothing changes here.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.errors import InputError
from heedful.models import loops
from heedful.text.ragged import segment_softmax

COMPILED_TYPES = (torch.float32, torch.float64)


def distinct_tokens(
    tokens: Int[Tensor, " units"], vocabulary_size: int
) -> tuple[Int[Tensor, " distinct"], Int[Tensor, " units"]]:
    """The distinct tokens in ascending order, and for every unit its place among them."""
    if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocabulary_size:
        raise InputError(
            f"Token {int(tokens.max())} is not in the model's vocabulary of {vocabulary_size:,} tokens: the texts were "
            "numbered by another corpus. Trace them with `trace_texts`, which cuts them as the model's were."
        )
    if tokens.device.type != "cpu":
        found: tuple[Tensor, Tensor] = torch.unique(tokens, return_inverse=True)
        return found
    distinct, index = loops.find_distinct(tokens.numpy(), vocabulary_size)
    return torch.from_numpy(distinct), torch.from_numpy(index)


class _GatherRows(torch.autograd.Function):
    """Rows of a table whose gradient is sparse. The rows are distinct, so the optimiser need not sort and sum them."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = table.shape
        return table.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        gradient = torch.sparse_coo_tensor(
            rows[None], gradients[0], ctx.shape, is_coalesced=True, check_invariants=False
        )
        return gradient, None


class _PoolAttention(torch.autograd.Function):
    """Softmax of the scores within each document, and the weighted sum of the hidden vectors."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, scores: Tensor, index: Tensor, offsets: Tensor) -> Tensor:
        weights = hidden.new_empty(len(index))
        pooled = hidden.new_zeros(len(offsets) - 1, hidden.shape[1])
        loops.pool(*_arrays(hidden, scores, index, offsets), weights.numpy(), pooled.numpy())
        ctx.save_for_backward(hidden, index, offsets, weights, pooled)
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden = ctx.saved_tensors[0]
        hidden_gradient, scores_gradient = hidden.new_zeros(hidden.shape), hidden.new_zeros(len(hidden))
        given = _arrays(*ctx.saved_tensors, gradients[0])
        loops.pool_backward(*given, hidden_gradient.numpy(), scores_gradient.numpy())
        return hidden_gradient, scores_gradient, None, None


def _arrays(*tensors: Tensor) -> Iterator[NDArray[Any]]:
    return (tensor.detach().contiguous().numpy() for tensor in tensors)


def gather_rows(table: Float[Tensor, "vocab features"], rows: Int[Tensor, " rows"]) -> Float[Tensor, "rows features"]:
    """`table[rows]` for distinct rows, with a sparse gradient."""
    gathered: Tensor = _GatherRows.apply(table, rows)  # type: ignore[no-untyped-call]
    return gathered


def pool_attention(
    hidden: Float[Tensor, "distinct features"],
    scores: Float[Tensor, " distinct"],
    index: Int[Tensor, " units"],
    offsets: Int[Tensor, " bounds"],
) -> Float[Tensor, "documents features"]:
    """h_t = Σ_j α_j h_j with α = softmax(a) in each document; unit j of the batch is row `index[j]` of `hidden`."""
    if hidden.device.type != "cpu" or hidden.dtype not in COMPILED_TYPES:
        return pool_by_operations(hidden, scores, index, offsets)
    pooled: Tensor = _PoolAttention.apply(hidden, scores, index, offsets)  # type: ignore[no-untyped-call]
    return pooled


def pool_by_operations(
    hidden: Float[Tensor, "distinct features"],
    scores: Float[Tensor, " distinct"],
    index: Int[Tensor, " units"],
    offsets: Int[Tensor, " bounds"],
) -> Float[Tensor, "documents features"]:
    """`pool_attention` by tensor operations and autograd alone, for what the compiled loops do not run on."""
    weights = segment_softmax(scores[index], offsets)
    return F.embedding_bag(index, hidden, offsets, mode="sum", per_sample_weights=weights, include_last_offset=True)


def keep_mask(shape: torch.Size, dropout: float, generator: torch.Generator) -> Float[Tensor, "..."]:
    """A dropout mask: 0 with the given probability (to 1/65,536), otherwise 1/(1 − probability).

    On the CPU one bit an entry is drawn for a half, one byte for other multiples of 1/256, else two bytes: drawing a
    float for every entry would be a large part of a training step.
    """
    if generator.device.type != "cpu":
        return torch.rand(shape, generator=generator, device=generator.device).ge(dropout) / (1 - dropout)
    count = shape.numel()
    bits = 1 if dropout == 0.5 else 8 if (dropout * 2**8).is_integer() else 16
    words = torch.empty(-(-count * bits // 64), dtype=torch.int64).random_(-(2**63), None, generator=generator).numpy()
    mask = torch.empty(shape)
    levels = 2**bits
    dropped = min(round(dropout * levels), levels - 1)
    kept = np.float32(levels / (levels - dropped))
    if bits == 1:
        loops.coins(words.view(np.int32), kept, mask.view(-1).numpy())
    else:
        loops.dice(words.view(f"u{bits // 8}"), dropped, kept, mask.view(-1).numpy())
    return mask
