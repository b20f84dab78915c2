"""Attention to words, then to sentences (Yang et al. 2016)."""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.reading import Attention, Read
from heedful.attention.scores import Additive
from heedful.zoo.member import Member

Encode = Callable[[Tensor, Tensor], Tensor]
"""From sentence vectors and their mask to sentence annotations."""


class Hierarchical(nn.Module):
    """Words are read into sentences, sentences into a document; the contexts are vectors that nobody asks with.

    The weights are those of sentences; those of words are in `within`, [… sentences words].
    """

    def __init__(self, word_size: int, size: int, sentence_size: int | None = None) -> None:
        super().__init__()
        self.words = Attention(Additive(word_size, size))
        self.sentences = Attention(Additive(sentence_size or word_size, size))

    def forward(
        self,
        words: Float[Tensor, "... sentences words features"],
        *,
        mask: Bool[Tensor, "... sentences words"] | None = None,
        encode: Encode | None = None,
        sentence_mask: Bool[Tensor, "... sentences"] | None = None,
    ) -> Read:
        """encode: between words and document, a network over sentences; by default there is none.
        sentence_mask: which sentences may be read; by default those with a word."""
        inner = self.words(None, words, mask=mask)
        if sentence_mask is None:
            sentence_mask = words.new_ones(words.shape[:-2]).bool() if mask is None else mask.any(-1)
        annotations = encode(inner.context, sentence_mask) if encode else inner.context
        outer: Read = self.sentences(None, annotations, mask=sentence_mask)
        return Read(context=outer.context, weights=outer.weights, scores=outer.scores, within=(inner,))


HIERARCHICAL = Member(
    name="hierarchical",
    title="Hierarchical attention",
    formula="u_it = tanh(W_w h_it + b_w)\nα_it = exp(u_itᵀ u_w) / Σ_t exp(u_itᵀ u_w)\ns_i = Σ_t α_it h_it\n"
    "u_i = tanh(W_s h_i + b_s)\nα_i = exp(u_iᵀ u_s) / Σ_i exp(u_iᵀ u_s)\nv = Σ_i α_i h_i",
    symbols={
        "h_it": "annotation of word t of sentence i",
        "h_i": "annotation of sentence i, made of s_i by a network over sentences",
        "u_w, u_s": "learned context vectors: which word, which sentence is informative",
        "W_w, b_w, W_s, b_s": "learned",
    },
    source="Yang et al. 2016, Hierarchical Attention Networks for Document Classification, Eqs. 5–10",
    original="Classification of reviews and answers",
    known="The weight of a word in the document is α_i α_it. Pooling into an affine readout, it has a trace, and "
    "whatever heedful asks of a trace can be asked of its sentences.",
    helps="Long documents with sentences: few decisions on each level, and a picture that is read from the top.",
    make=Hierarchical,
)
