"""Attention as the answer: a distribution over the input itself (Vinyals, Fortunato & Jaitly 2015)."""

from heedful.attention.reading import Attention
from heedful.attention.scores import Additive
from heedful.zoo.member import Member


def make_pointer(query_size: int, key_size: int, size: int) -> Attention:
    """u_j = vᵀ tanh(W₁ e_j + W₂ d): no bias."""
    return Attention(Additive(key_size, size, query_size=query_size, bias=False))


POINTER = Member(
    name="pointer",
    title="Pointer network",
    formula="u_ij = vᵀ tanh(W₁ e_j + W₂ d_i)\np(C_i = j) = exp(u_ij) / Σ_k exp(u_ik)",
    symbols={"e_j": "state of the encoder at item j", "d_i": "state of the decoder at step i", "W₁, W₂, v": "learned"},
    source="Vinyals, Fortunato & Jaitly 2015, Pointer Networks, Eq. 3",
    original="Convex hulls, Delaunay triangulations, tours of a travelling salesman",
    known="The weights are the output: the set of answers is as large as the input, whatever was seen in training. The "
    "score is Bahdanau's; only what is done with it differs.",
    helps="Answers that are places in the input: sorting, choosing, copying of words that no vocabulary holds.",
    make=make_pointer,
    differs="The survey dates it 2017. The layer gives Σ_j α_ij e_j too, as every other; a pointer network makes no "
    "use of it.",
)
