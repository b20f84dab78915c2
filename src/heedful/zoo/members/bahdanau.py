"""Additive attention over the source of a translation (Bahdanau, Cho & Bengio 2014)."""

from heedful.attention.reading import Attention
from heedful.attention.scores import Additive
from heedful.zoo.member import Member


def make_bahdanau(query_size: int, key_size: int, size: int) -> Attention:
    """e_j = vᵀ tanh(W s + U h_j): no bias, as in the appendix of the paper."""
    return Attention(Additive(key_size, size, query_size=query_size, bias=False))


BAHDANAU = Member(
    name="bahdanau",
    title="Additive attention",
    formula="e_tj = vᵀ tanh(W s_(t−1) + U h_j)\nα_tj = exp(e_tj) / Σ_k exp(e_tk)\nc_t = Σ_j α_tj h_j",
    symbols={
        "s_(t−1)": "state of the decoder before word t",
        "h_j": "annotation of source word j, from a recurrent network in both directions",
        "W, U, v": "learned",
    },
    source="Bahdanau, Cho & Bengio 2014, Neural Machine Translation by Learning to Jointly Align and Translate, A.1.2",
    original="Translation from English to French",
    known="The first soft alignment in translation. The look comes before the state is renewed, so s_(t−1) asks; query "
    "and key may differ in size.",
    helps="A decoder that has to find one part of its input at each step. W and U cost more than a dot product; Uh can "
    "be computed once per source.",
    make=make_bahdanau,
    differs="The survey prints c_tj for e_tj and h_i for h_j; W[s; h] there is W s + U h here, one matrix cut in two.",
)
