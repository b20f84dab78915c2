"""Attention to words, and within the word that is looked at to its letters (Ji et al. 2017)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.reading import Attention, Read
from heedful.attention.scores import TanhDot
from heedful.zoo.member import Member


class Nested(nn.Module):
    """A word level, and a letter level that reads the letters of the word with the largest weight.

    width: of a filter over the weights of the step before, in both scores; 0 leaves it out.
    """

    def __init__(
        self,
        query_size: int,
        word_size: int,
        letter_query_size: int,
        letter_size: int,
        size: int,
        *,
        width: int = 0,
    ) -> None:
        super().__init__()
        self.words = Attention(TanhDot(query_size, word_size, size, width=width))
        self.letters = Attention(TanhDot(letter_query_size, letter_size, size, width=width))

    def forward(
        self,
        query: Float[Tensor, "... query_features"],
        words: Float[Tensor, "... words features"],
        letter_query: Float[Tensor, "... letter_query_features"],
        letters: Float[Tensor, "... words letters letter_features"],
        *,
        mask: Bool[Tensor, "... words"] | None = None,
        letter_mask: Bool[Tensor, "... words letters"] | None = None,
        previous: Float[Tensor, "... words"] | None = None,
        previous_letters: Float[Tensor, "... letters"] | None = None,
    ) -> Read:
        """The context is that of words; the look at letters, [… letters], is in `within`."""
        outer: Read = self.words(query, words, mask=mask, previous=previous)
        chosen = outer.weights.argmax(-1)
        if letter_mask is None:
            letter_mask = torch.ones(letters.shape[:-1], dtype=torch.bool, device=letters.device)
        inner: Read = self.letters(
            letter_query,
            pick(letters, chosen, 3),
            mask=pick(letter_mask, chosen, 2),
            previous=previous_letters,
        )
        return Read(context=outer.context, weights=outer.weights, scores=outer.scores, within=(inner,))


def pick(rows: Tensor, chosen: Tensor, depth: int) -> Tensor:
    """Of the axis that is the `depth`-th from the end, the chosen row."""
    index = chosen.reshape(*chosen.shape, *[1] * depth)
    rest = rows.shape[rows.dim() - depth + 1 :]
    return rows.gather(rows.dim() - depth, index.expand(*chosen.shape, 1, *rest)).squeeze(rows.dim() - depth)


NESTED = Member(
    name="nested",
    title="Nested attention of words and letters",
    formula="u_sk = φ₁(d_s)ᵀ φ₂(h_k),  φ(x) = tanh(W x + b)\nα_sk = exp(u_sk) / Σ_j exp(u_sj)\nc_s = Σ_j α_sj h_j\n"
    "z_s = argmax_k α_sk; and the same over the letters of word z_s, asked by the decoder of letters",
    symbols={
        "d_s": "state of the decoder at word s",
        "h_k": "annotation of source word k",
        "φ₁, φ₂": "learned layers, of their own on each level",
        "z_s": "the word that is looked at: its letters are read",
    },
    source="Ji et al. 2017, A Nested Attention Neural Hybrid Model for Grammatical Error Correction, section 3",
    original="Correcting grammar and spelling of learners",
    known="Words that no vocabulary holds are written letter by letter, from the letters of the word they come from. "
    "The choice of that word is hard and gives no gradient.",
    helps="Rewriting texts with misspellings and rare names. Copying needs to know the last place: see `width`.",
    make=Nested,
    differs="The survey leaves exp out of the normaliser, by which weights could be negative. A filter over the "
    "weights of the step before, as in location-sensitive attention, is added where a width is given.",
)
