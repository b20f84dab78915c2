"""Attention pooling on the distinct tokens of a ragged batch, with the closed-form gradient.

A batch holds many occurrences of few distinct tokens, and without a contextual encoder equal tokens have equal hidden
vectors. So everything before the pooling is computed once per distinct token, and no [occurrences × features] array
ever exists. With g_t = ∂ℓ/∂h_t the gradient of the pooled vector of document t,

    ∂ℓ/∂h_e = Σ_{(t,j): token e} α_j g_t                    ∂ℓ/∂a_e = Σ_{(t,j): token e} α_j (h_e − h_t)ᵀ g_t.

For one output, g_t = −y β W / m, and the two together are Eq. 13 of Sun & Lu 2020, with V/λ behind a_e; the sums over
a_e are Eq. 23; with other functions in front of h and a they are Eqs. 59–61, 66–68 and, with g_t = W p̂, 78–80.
Dropout on the pooled vector makes W differ per document; it is inside g_t, so nothing changes here.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.text.ragged import segment_softmax, segments_of


def distinct_tokens(
    tokens: Int[Tensor, " units"], vocabulary_size: int
) -> tuple[Int[Tensor, " distinct"], Int[Tensor, " units"]]:
    """The distinct tokens in ascending order, and for every unit its place among them.

    The same as torch.unique, by marking instead of sorting: several times faster for a vocabulary of usual size.
    """
    marked = torch.zeros(vocabulary_size, dtype=torch.bool, device=tokens.device)
    marked[tokens] = True
    distinct = marked.nonzero().squeeze(1)
    place = torch.empty(vocabulary_size, dtype=torch.int64, device=tokens.device)
    place[distinct] = torch.arange(len(distinct), device=tokens.device)
    return distinct, place[tokens]


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
        segments = segments_of(offsets)
        weights = segment_softmax(scores[index], offsets, segments)
        pooled = F.embedding_bag(
            index, hidden, offsets, mode="sum", per_sample_weights=weights, include_last_offset=True
        )
        ctx.save_for_backward(hidden, index, offsets, segments, weights, pooled)
        return pooled

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden, index, offsets, segments, weights, pooled = ctx.saved_tensors
        (g,) = gradients
        g = g.contiguous()
        # α_j (h_jᵀg_t − h_tᵀg_t), the inner products over occurrences without their [occurrences × features] array
        inner = torch.ops.aten._embedding_bag_per_sample_weights_backward(g, hidden, index, offsets[:-1], segments, 0)
        per_unit = weights * (inner - (pooled * g).sum(1)[segments])
        scores_gradient = hidden.new_zeros(len(hidden)).index_add_(0, index, per_unit)
        shares = torch.sparse_coo_tensor(
            torch.stack([index, segments]), weights, (len(hidden), len(g)), check_invariants=False
        )
        return torch.sparse.mm(shares, g), scores_gradient, None, None


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
    pooled: Tensor = _PoolAttention.apply(hidden, scores, index, offsets)  # type: ignore[no-untyped-call]
    return pooled


def keep_mask(shape: torch.Size, dropout: float, generator: torch.Generator) -> Float[Tensor, "..."]:
    """A dropout mask: 0 with the given probability (to 1/65,536), otherwise 1/(1 − probability).

    Drawn from the bytes of 64-bit integers, one byte an entry where the probability is a multiple of 1/256, else two:
    drawing a float for every entry would be a large part of a training step.
    """
    count = shape.numel()
    whole = dropout * 256 == round(dropout * 256)
    kind, levels = (torch.int8, 2**8) if whole else (torch.int16, 2**16)
    dropped = min(round(dropout * levels), levels - 1)
    words = torch.empty(-(-count * (levels.bit_length() - 1) // 64), dtype=torch.int64, device=generator.device)
    drawn = words.random_(-(2**63), None, generator=generator).view(kind)[:count]
    mask = torch.empty(count, device=generator.device)
    torch.ge(drawn, dropped - levels // 2, out=mask)
    return mask.mul_(levels / (levels - dropped)).view(shape)
