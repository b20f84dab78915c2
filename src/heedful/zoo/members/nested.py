"""Attention to words, and within the word that is looked at to its letters (Ji et al. 2017)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.reading import Read, attend
from heedful.attention.scores import TanhDot, place_vectors
from heedful.zoo.member import Member


class Nested(nn.Module):
    """A word level, and a letter level that reads the letters of the word with the largest weight.

    places: numbers by which both scores know the step of the query and the place of the key; 0 leaves them out.
    """

    def __init__(
        self, query_size: int, word_size: int, letter_query_size: int, letter_size: int, size: int, *, places: int = 0
    ) -> None:
        super().__init__()
        self.places = places
        self.words = TanhDot(query_size + places, word_size + places, size)
        self.letters = TanhDot(letter_query_size + places, letter_size + places, size)

    def forward(
        self,
        query: Float[Tensor, "... query_features"],
        words: Float[Tensor, "... words features"],
        letter_query: Float[Tensor, "... letter_query_features"],
        letters: Float[Tensor, "... words letters letter_features"],
        *,
        mask: Bool[Tensor, "... words"] | None = None,
        letter_mask: Bool[Tensor, "... words letters"] | None = None,
        step: int = 0,
        letter_step: int = 0,
    ) -> Read:
        """The context is that of words; the look at letters, [… letters], is in `within`."""
        outer = self.look_at_words(query, words, mask=mask, step=step)
        chosen = outer.weights.argmax(-1)
        if letter_mask is None:
            letter_mask = torch.ones(letters.shape[:-1], dtype=torch.bool, device=letters.device)
        inner = self.look_at_letters(
            letter_query, pick(letters, chosen, 3), mask=pick(letter_mask, chosen, 2), step=letter_step
        )
        return Read(context=outer.context, weights=outer.weights, scores=outer.scores, within=(inner,))

    def look_at_words(
        self,
        query: Float[Tensor, "... query_features"],
        words: Float[Tensor, "... words features"],
        *,
        mask: Bool[Tensor, "... words"] | None = None,
        step: int = 0,
    ) -> Read:
        return self._look(self.words, query, words, mask, step)

    def look_at_letters(
        self,
        query: Float[Tensor, "... query_features"],
        letters: Float[Tensor, "... letters features"],
        *,
        mask: Bool[Tensor, "... letters"] | None = None,
        step: int = 0,
    ) -> Read:
        return self._look(self.letters, query, letters, mask, step)

    def _look(self, score: TanhDot, query: Tensor, keys: Tensor, mask: Tensor | None, step: int) -> Read:
        if not self.places:
            return attend(score, query, keys, mask=mask)
        at = place_vectors(query.new_tensor(float(step)), self.places).expand(*query.shape[:-1], -1)
        places = torch.arange(keys.shape[-2], dtype=keys.dtype, device=keys.device)
        there = place_vectors(places, self.places).expand(*keys.shape[:-1], -1)
        return attend(score, torch.cat([query, at], -1), torch.cat([keys, there], -1), keys, mask=mask)


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
        "d_s": "state of the decoder at word s; in our tasks that before it",
        "h_k": "annotation of source word k",
        "φ₁, φ₂": "learned layers, of their own on each level",
        "z_s": "the word that is looked at: its letters are read",
    },
    source="Ji et al. 2017, A Nested Attention Neural Hybrid Model for Grammatical Error Correction, section 3",
    original="Correcting grammar and spelling of learners",
    known="Words that no vocabulary holds are written letter by letter, from the letters of the word they come from. "
    "The choice of that word is hard and gives no gradient.",
    helps="Rewriting texts with misspellings and rare names. Without `places` a name may be written well and its "
    "letters not looked at: the state of the decoder knows how it is spelt.",
    make=Nested,
    differs="The survey leaves exp out of the normaliser, by which weights could be negative. With `places` the "
    "step of the decoder and the place of each key enter both scores.",
)
