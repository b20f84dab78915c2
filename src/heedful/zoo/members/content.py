"""Attention by likeness of content (Graves, Wayne & Danihelka 2014)."""

from heedful.attention.reading import Attention
from heedful.attention.scores import Bare, cosine
from heedful.zoo.member import Member


def make_content(query_size: int, key_size: int, _size: int = 0, *, sharpness: float = 1.0) -> Attention:
    """e_j = β cos(q, k_j)."""
    assert query_size == key_size, "a cosine needs query and keys of one size"
    return Attention(Bare(cosine, sharpness))


CONTENT = Member(
    name="content",
    title="Content-based attention",
    formula="e_j = β qᵀk_j / (|q| |k_j|)\nα_j = exp(e_j) / Σ_k exp(e_k)\nc = Σ_j α_j v_j",
    symbols={"q": "query", "k_j": "key", "v_j": "value", "β": "sharpness; 1 in the survey"},
    source="Graves, Wayne & Danihelka 2014, Neural Turing Machines, Eqs. 5–6",
    original="Addressing the memory of a Neural Turing Machine",
    known="Scores lie between −β and β: with β = 1 the largest weight over n keys is at most e² / (e² + n − 1).",
    helps="Looking up what is like the query, whatever its length. Needs a sharpness of about 10 to point at one key "
    "of many.",
    make=make_content,
)
