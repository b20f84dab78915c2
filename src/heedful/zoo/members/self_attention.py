"""Attention of a sequence to itself, with one head and with several (Vaswani et al. 2017)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.reading import Read, attend
from heedful.attention.scores import Bare, scaled_dot
from heedful.zoo.member import Member


class MultiHead(nn.Module):
    """Heads that look side by side, each in its own part of the projected queries, keys and values.

    The weights are [… heads queries keys]. With one head and no last matrix this is plain self-attention.
    """

    def __init__(self, size: int, heads: int = 1, *, combine: bool = True) -> None:
        super().__init__()
        assert size % heads == 0, f"{size} features cannot be shared by {heads} heads"
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(size, size, bias=False) for _ in range(3))
        self.combine = nn.Linear(size, size, bias=False) if combine else nn.Identity()
        self.score = Bare(scaled_dot)

    def forward(
        self,
        query: Float[Tensor, "... queries features"],
        keys: Float[Tensor, "... keys features"],
        values: Float[Tensor, "... keys features"] | None = None,
        *,
        mask: Bool[Tensor, "... queries keys"] | Bool[Tensor, "... 1 keys"] | None = None,
    ) -> Read:
        """mask: True where a query may read a key."""
        given = keys if values is None else values
        if mask is not None:
            unread = ~mask.any(-2).unsqueeze(-1)
            keys, given = keys.masked_fill(unread, 0.0), given.masked_fill(unread, 0.0)
            mask = mask.unsqueeze(-3)
        asked = self._split(self.query(query))
        known, held = (self._split(part).unsqueeze(-3) for part in (self.key(keys), self.value(given)))
        read = attend(self.score, asked, known, held, mask=mask)
        joined = read.context.transpose(-3, -2).flatten(-2)
        return Read(context=self.combine(joined), weights=read.weights, scores=read.scores)

    def _split(self, rows: Float[Tensor, "... rows features"]) -> Float[Tensor, "... heads rows part"]:
        split: Tensor = rows.unflatten(-1, (self.heads, -1))
        return split.transpose(-3, -2)


def make_self_attention(size: int) -> MultiHead:
    return MultiHead(size, combine=False)


def others(count: int) -> Bool[Tensor, "count count"]:
    """A mask by which each place may read every place but itself."""
    return ~torch.eye(count, dtype=torch.bool)


SOURCE = "Vaswani et al. 2017, Attention Is All You Need"

SELF_ATTENTION = Member(
    name="self-attention",
    title="Self-attention (scaled dot product)",
    formula="Q = X W_q,  K = X W_k,  V = X W_v\nAttention(Q, K, V) = softmax(Q Kᵀ / √d) V",
    symbols={"X": "vectors of the sequence, one per row", "W_q, W_k, W_v": "learned", "d": "features of a key"},
    source=f"{SOURCE}, Eq. 1",
    original="Translation from English to German and French",
    known="All places look at all places at once, in one product. Without positions it does not know any order: "
    "permuting the sequence permutes the result. 1/√d keeps the scores of random vectors at variance one.",
    helps="Relations between any two places of a sequence. Time and memory grow with the square of the length.",
    make=make_self_attention,
)
MULTI_HEAD = Member(
    name="multi-head",
    title="Multi-head attention",
    formula="head_i = Attention(X W_q^i, X W_k^i, X W_v^i)\nMultiHead(X) = [head_1; …; head_h] W_o",
    symbols={"W_q^i, W_k^i, W_v^i": "learned, of head i", "W_o": "learned", "h": "number of heads"},
    source=f"{SOURCE}, section 3.2.2",
    original="Translation from English to German and French",
    known="Heads of a size d/h cost together what one of size d does. One softmax mixes what it reads; two heads keep "
    "two answers apart.",
    helps="Where a place has to read several others at once and must not confuse them.",
    make=MultiHead,
    differs="The survey leaves V and the projections out. No biases, as printed in the paper.",
)
