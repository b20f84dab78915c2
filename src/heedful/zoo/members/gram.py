"""A code as a mixture of its ancestors in an ontology (Choi et al. 2017)."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from heedful.attention.reading import Read, attend
from heedful.attention.scores import Additive
from heedful.zoo.member import Member


class Gram(nn.Module):
    """Vectors of all codes, each made of the vectors of the code and its ancestors.

    ancestors: for each code the numbers of its nodes, itself first; −1 where it has fewer than others.
    """

    ancestors: Int[Tensor, "codes depth"]
    mask: Bool[Tensor, "codes depth"]

    def __init__(self, ancestors: Int[Tensor, "codes depth"], node_size: int, size: int) -> None:
        super().__init__()
        self.register_buffer("ancestors", ancestors.clamp(min=0), persistent=False)
        self.register_buffer("mask", ancestors >= 0, persistent=False)
        self.nodes = nn.Parameter(torch.randn(int(ancestors.max()) + 1, node_size) / node_size**0.5)
        self.score = Additive(node_size, size, query_size=node_size)

    def forward(self) -> Read:
        held = self.nodes[self.ancestors]
        return attend(self.score, held[:, 0], held, mask=self.mask)


GRAM = Member(
    name="gram",
    title="Attention to ancestors (GRAM)",
    formula="f(e_i, e_j) = uᵀ tanh(W [e_i; e_j] + b)\nα_ij = exp(f(e_i, e_j)) / Σ_(k∈A(i)) exp(f(e_i, e_k))\n"
    "g_i = Σ_(j∈A(i)) α_ij e_j",
    symbols={
        "e_i": "learned vector of node i of the ontology",
        "A(i)": "code i and its ancestors",
        "g_i": "vector by which code i is read",
        "W, b, u": "learned",
    },
    source="Choi et al. 2017, GRAM: Graph-based Attention Model for Healthcare Representation Learning, Eqs. 1–3",
    original="Predicting the next diagnoses of a patient",
    known="Rare codes borrow from their ancestors, frequent ones keep to themselves. The weights belong to a code, not "
    "to a visit.",
    helps="Many rare categories in a tree that means something for the task; a shuffled tree must not help.",
    make=Gram,
)
