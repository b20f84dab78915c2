"""Local and global gates over the words of a review document (Seo et al. 2017)."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.attention.reading import Read
from heedful.attention.weighting import gate
from heedful.zoo.member import Member


class Gate(nn.Module):
    """s(i) = sigmoid of a window of so many words around word i, times W, plus b; x̂_i = s(i) x_i.

    The context is x̂, a vector per word; the weights s need not sum to one.
    """

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        assert width % 2, "a window around a word has as many words on either side"
        self.window = nn.Conv1d(size, 1, width, padding=width // 2)

    def forward(self, words: Float[Tensor, "documents words features"], mask: Bool[Tensor, "documents words"]) -> Read:
        scores = self.window(words.mT)[:, 0]
        weights = gate(scores, mask)
        return Read(
            context=weights.unsqueeze(-1) * words, weights=weights, scores=scores.masked_fill(~mask, -torch.inf)
        )


class DualAttention(nn.Module):
    """The network of users, or of items: a local and a global gate, convolutions of each, and the largest of each.

    The context is [local; global for each width], the weights are those of the local gate, both are in `within`.
    """

    def __init__(
        self,
        size: int,
        *,
        width: int = 5,
        reach: int = 100,
        local_filters: int = 16,
        filters: int = 8,
        widths: Sequence[int] = (2, 3, 4),
    ) -> None:
        super().__init__()
        self.local, self.wide = Gate(size, width), Gate(size, 2 * reach + 1)
        self.local_filters = nn.Conv1d(size, local_filters, 1)
        self.filters = nn.ModuleList(nn.Conv1d(size, filters, one) for one in widths)
        self.size = local_filters + filters * len(widths)

    def forward(
        self,
        words: Float[Tensor, "documents words features"],
        *,
        mask: Bool[Tensor, "documents words"] | None = None,
        open_gates: bool = False,
    ) -> Read:
        """open_gates: what is pooled are the words themselves, as in the same network without attention."""
        if mask is None:
            mask = torch.ones(words.shape[:2], dtype=torch.bool, device=words.device)
        words = words.masked_fill(~mask.unsqueeze(-1), 0.0)
        near, far = self.local(words, mask), self.wide(words, mask)
        kept, seen = (words, words) if open_gates else (near.context, far.context)
        pooled = [_largest(kept, self.local_filters, mask)]
        pooled += [_largest(seen, one, mask) for one in self.filters]
        return Read(context=torch.cat(pooled, -1), weights=near.weights, scores=near.scores, within=(near, far))


def _largest(
    words: Float[Tensor, "documents words features"], filters: nn.Module, mask: Bool[Tensor, "documents words"]
) -> Float[Tensor, "documents filters"]:
    """Largest tanh of each filter over the windows that begin at a word; beyond the end of a document are zeros."""
    assert isinstance(filters, nn.Conv1d)
    swept = filters(F.pad(words.mT, (0, filters.kernel_size[0] - 1))).tanh()
    largest: Tensor = swept.masked_fill(~mask.unsqueeze(1), -1.0).amax(-1)
    return largest


D_ATTN = Member(
    name="d-attn",
    title="Dual local and global attention (D-Attn)",
    formula="s(i) = sigmoid((x_(i−(w−1)/2), …, x_(i+(w−1)/2)) ∗ W¹ + b¹)\nx̂_i = s(i) x_i\n"
    "Z(i, j) = tanh((x̂_i, …, x̂_(i+w_f−1)) ∗ W²_j + b²_j)\nz_j = max_i Z(i, j)\n"
    "local: w few words, w_f = 1;  global: w the whole document, w_f = 2, 3, 4\n"
    "rating = u(user document)ᵀ v(item document)",
    symbols={
        "x_i": "vector of word i",
        "w, w_f": "width of the gate's window, and of the filters",
        "∗": "sum of the products element by element",
        "W, b": "learned",
    },
    source="Seo et al. 2017, Interpretable Convolutional Neural Networks with Dual Local and Global Attention for "
    "Review Rating Prediction, section 3",
    original="Ratings of products and businesses from reviews",
    known="A gate judges each word by itself and its neighbours; its weights do not compete, so none, one or all words "
    "may be open.",
    helps="Finding the words that matter when their number is not known.",
    make=DualAttention,
    differs="The survey's global equation is only the convolution after the gate; the gate itself has the whole "
    "document as its window.",
)
