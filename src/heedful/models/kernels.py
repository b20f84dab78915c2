"""The kernels of training: distinct tokens, attention pooling with its closed-form gradient, dropout masks.

A batch holds many occurrences of few distinct tokens, and without a contextual encoder equal tokens have equal hidden
vectors. So everything before the pooling is computed once per distinct token, and no [occurrences × features] array
ever exists. With g_t = ∂ℓ/∂h_t the gradient of the pooled vector of document t,

    ∂ℓ/∂h_e = Σ_{(t,j): token e} α_j g_t                    ∂ℓ/∂a_e = Σ_{(t,j): token e} α_j (h_e − h_t)ᵀ g_t.

For one output, g_t = −y β W / m, and the two together are Eq. 13 of Sun & Lu 2020, with V/λ behind a_e; the sums over
a_e are Eq. 23; with other functions in front of h and a they are Eqs. 59–61, 66–68 and, with g_t = W p̂, 78–80.
Dropout on the pooled vector makes W differ per document; it is inside g_t, so nothing changes here.

The compiled loops are the plain loops over occurrences that the formulas say: they read every row where it lies, where
tensor operations would copy the rows several times.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, no_type_check

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.compiled import compiled
from heedful.errors import InputError
from heedful.text.ragged import segment_softmax

COMPILED_TYPES = (torch.float32, torch.float64)


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Run with so many threads, then as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
        on_device: tuple[Tensor, Tensor] = torch.unique(tokens, return_inverse=True)
        return on_device
    distinct, index = find_distinct(tokens.numpy(), vocabulary_size)
    return torch.from_numpy(distinct), torch.from_numpy(index)


@compiled
@no_type_check
def find_distinct(tokens, vocabulary_size):
    place = np.full(vocabulary_size, -1)
    for j in range(len(tokens)):
        place[tokens[j]] = 0
    distinct = np.empty(min(vocabulary_size, len(tokens)), np.int64)
    count = 0
    for token in range(vocabulary_size):
        if place[token] == 0:
            distinct[count] = token
            place[token] = count
            count += 1
    index = np.empty(len(tokens), np.int64)
    for j in range(len(tokens)):
        index[j] = place[tokens[j]]
    return distinct[:count], index


def gather_rows(table: Float[Tensor, "vocab features"], rows: Int[Tensor, " rows"]) -> Float[Tensor, "rows features"]:
    """`table[rows]` for distinct rows, with a sparse gradient that the optimiser need not sort and sum."""
    gathered: Tensor = _GatherRows.apply(table, rows)  # type: ignore[no-untyped-call]
    return gathered


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = table.shape
        return table.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        where = ctx.saved_tensors[0][None]
        return torch.sparse_coo_tensor(where, gradients[0], ctx.shape, is_coalesced=True, check_invariants=False), None


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
    return pool_weighted(hidden, segment_softmax(scores[index], offsets), index, offsets)


def pool_weighted(
    hidden: Float[Tensor, "distinct features"],
    weights: Float[Tensor, " units"],
    index: Int[Tensor, " units"],
    offsets: Int[Tensor, " bounds"],
) -> Float[Tensor, "documents features"]:
    """Σ_j α_j h_j of each document for weights of any making."""
    return F.embedding_bag(index, hidden, offsets, mode="sum", per_sample_weights=weights, include_last_offset=True)


class _PoolAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, scores: Tensor, index: Tensor, offsets: Tensor) -> Tensor:
        weights = hidden.new_empty(len(index))
        pooled = hidden.new_zeros(len(offsets) - 1, hidden.shape[1])
        pool(*_arrays(hidden, scores, index, offsets), weights.numpy(), pooled.numpy())
        ctx.save_for_backward(hidden, index, offsets, weights, pooled)
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden = ctx.saved_tensors[0]
        hidden_gradient, scores_gradient = hidden.new_zeros(hidden.shape), hidden.new_zeros(len(hidden))
        known = _arrays(*ctx.saved_tensors, gradients[0])
        pool_backward(*known, hidden_gradient.numpy(), scores_gradient.numpy())
        return hidden_gradient, scores_gradient, None, None


def _arrays(*tensors: Tensor) -> Iterator[NDArray[Any]]:
    return (tensor.detach().contiguous().numpy() for tensor in tensors)


@compiled
@no_type_check
def pool(hidden, scores, index, offsets, weights, pooled):
    """α = softmax of the scores in each document into `weights`, Σ α_j h_j added to `pooled`."""
    for t in range(len(offsets) - 1):
        begin, end = offsets[t], offsets[t + 1]
        largest = -np.inf
        for j in range(begin, end):
            largest = max(largest, scores[index[j]])
        total = 0.0
        for j in range(begin, end):
            weights[j] = math.exp(scores[index[j]] - largest)
            total += weights[j]
        sums = pooled[t]
        for j in range(begin, end):
            weights[j] /= total
            weight, row = weights[j], hidden[index[j]]
            for k in range(len(row)):
                sums[k] += weight * row[k]


@compiled
@no_type_check
def pool_backward(hidden, index, offsets, weights, pooled, g, hidden_gradient, scores_gradient):
    """α_j g_t added to the gradient of h_e, α_j (h_e − h_t)ᵀ g_t to that of a_e, for every occurrence j of e."""
    for t in range(len(offsets) - 1):
        gradient = g[t]
        mean = dot(pooled[t], gradient)
        for j in range(offsets[t], offsets[t + 1]):
            e, weight = index[j], weights[j]
            scores_gradient[e] += weight * (dot(hidden[e], gradient) - mean)
            sums = hidden_gradient[e]
            for k in range(len(sums)):
                sums[k] += weight * gradient[k]


@compiled
@no_type_check
def dot(left, right):
    total = left[0] * right[0]
    for k in range(1, len(left)):
        total += left[k] * right[k]
    return total


def drop(
    values: Float[Tensor, "rows columns"], dropout: float, generator: torch.Generator | None
) -> Float[Tensor, "rows columns"]:
    """Dropout, with masks drawn from the generator; nothing without one."""
    if generator is None or dropout == 0:
        return values
    return values * keep_mask(values.shape, dropout, generator).to(values.dtype)


def keep_mask(shape: torch.Size, dropout: float, generator: torch.Generator) -> Float[Tensor, "..."]:
    """A dropout mask: 0 with the given probability (to 1/65,536), otherwise 1/(1 − probability).

    On the CPU one bit an entry is drawn for a half, one byte for other multiples of 1/256, else two bytes: drawing a
    float for every entry would be a large part of a training step.
    """
    if generator.device.type != "cpu":
        return torch.rand(shape, generator=generator, device=generator.device).ge(dropout) / (1 - dropout)
    bits = 1 if dropout == 0.5 else 8 if (dropout * 2**8).is_integer() else 16
    drawn = torch.empty(-(-shape.numel() * bits // 64), dtype=torch.int64)
    words = drawn.random_(-(2**63), None, generator=generator).numpy()
    levels = 2**bits
    dropped = min(round(dropout * levels), levels - 1)
    kept = np.float32(levels / (levels - dropped))
    mask = torch.empty(shape)
    if bits == 1:
        toss_coins(words.view(np.int32), kept, mask.view(-1).numpy())
    else:
        roll_dice(words.view(f"u{bits // 8}"), dropped, kept, mask.view(-1).numpy())
    return mask


@compiled
@no_type_check
def toss_coins(words, kept, mask):
    """Each entry of the mask by one bit of the 32-bit words: `kept` or 0."""
    for w in range(len(words)):
        word, entries = words[w], mask[32 * w : 32 * w + 32]
        for s in range(len(entries)):
            entries[s] = kept * np.float32(np.int32(word >> np.int32(s)) & np.int32(1))


@compiled
@no_type_check
def roll_dice(drawn, least, kept, mask):
    """Each entry of the mask by one number: `kept` where it is at least `least`, else 0."""
    for i in range(len(mask)):
        mask[i] = kept if drawn[i] >= least else np.float32(0)
