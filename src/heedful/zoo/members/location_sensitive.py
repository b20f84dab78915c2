"""Attention that knows where it looked a step before (Chorowski et al. 2015)."""

from heedful.attention.reading import Attention
from heedful.attention.scores import Additive
from heedful.zoo.member import Member


def make_hybrid(query_size: int, key_size: int, size: int, *, filters: int = 4, width: int = 7) -> Attention:
    """e_j = wᵀ tanh(W s + V h_j + U f_j + b), f = F ∗ α of the step before."""
    return Attention(Additive(key_size, size, query_size=query_size, filters=filters, width=width))


def make_location_based(_query_size: int, key_size: int, size: int, *, filters: int = 4, width: int = 7) -> Attention:
    """e_j = vᵀ tanh(W h_j + U f_j): no query."""
    return Attention(Additive(key_size, size, filters=filters, width=width, bias=False))


SOURCE = "Chorowski et al. 2015, Attention-Based Models for Speech Recognition"
SYMBOLS = {
    "h_j": "annotation of place j",
    "α_(i−1)": "weights of the step before",
    "F": "learned filters, swept over α_(i−1)",
    "w, V, U, b": "learned",
}

LOCATION_SENSITIVE = Member(
    name="location-sensitive",
    title="Location-sensitive (hybrid) attention",
    formula="f_i = F ∗ α_(i−1)\ne_ij = wᵀ tanh(W s_(i−1) + V h_j + U f_ij + b)\nα_ij = exp(e_ij) / Σ_k exp(e_ik)",
    symbols={**SYMBOLS, "s_(i−1)": "state of the decoder", "W": "learned"},
    source=f"{SOURCE}, Eqs. 8–9",
    original="Recognition of phonemes",
    known="Content alone cannot tell two equal sounds apart; with the last place known it need only look a little "
    "further. A content-based model that learned absolute places fails on longer inputs.",
    helps="Inputs read in order, with repetitions, or longer than those of training.",
    make=make_hybrid,
)
LOCATION_BASED = Member(
    name="location-based",
    title="Location-based attention",
    formula="f_i = F ∗ α_(i−1)\ne_ij = vᵀ tanh(W h_j + U f_ij)\nα_ij = exp(e_ij) / Σ_k exp(e_ik)",
    symbols={**SYMBOLS, "v, W": "learned"},
    source="Section 11 of the survey; Graves 2013 moves on by place alone",
    original="Synthesis of handwriting",
    known="The state does not ask: where to look next follows from the last place and from what stands around it.",
    helps="Reading in order. It cannot jump because of something that the decoder knows.",
    make=make_location_based,
)
