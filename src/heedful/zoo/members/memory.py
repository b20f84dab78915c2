"""Attention to a memory, hop after hop (Weston et al. 2014; Sukhbaatar et al. 2015)."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.reading import Read, attend
from heedful.attention.scores import Bare, dot
from heedful.attention.weighting import Weigh, softmax
from heedful.zoo.member import Member


class Memory(nn.Module):
    """Each hop addresses the memory, reads it, and adds what it read to the question: u ← H u + o, at first with H = I.

    The context is u after the last hop, the weights are those of the last hop, all hops are in `within`.
    """

    def __init__(self, size: int, hops: int = 1, normalise: Weigh = softmax) -> None:
        super().__init__()
        self.hops, self.normalise = hops, normalise
        self.score = Bare(dot)
        self.between = nn.Linear(size, size, bias=False)
        nn.init.eye_(self.between.weight)

    def forward(
        self,
        query: Float[Tensor, "... features"],
        keys: Float[Tensor, "... keys features"],
        values: Float[Tensor, "... keys features"] | None = None,
        *,
        mask: Bool[Tensor, "... keys"] | None = None,
    ) -> Read:
        reads: list[Read] = []
        for _ in range(self.hops):
            reads.append(attend(self.score, query, keys, values, mask=mask, normalise=self.normalise))
            query = self.between(query) + reads[-1].context
        last = reads[-1]
        return Read(context=query, weights=last.weights, scores=last.scores, within=tuple(reads))


MEMORY = Member(
    name="memory",
    title="Memory with several hops",
    formula="e_i = qᵀk_i                      address\nα_i = exp(e_i) / Σ_j exp(e_j)    normalise\n"
    "c = Σ_i α_i v_i                  read\nq ← H q + c                      and again",
    symbols={"q": "question", "k_i, v_i": "fact i as it is found, and as it is read", "H": "learned"},
    source="Sukhbaatar et al. 2015, End-To-End Memory Networks, Eqs. 1–4, with layer-wise tied hops",
    original="Questions about short stories",
    known="One hop finds what is like the question. What is only found by way of another fact needs a second hop: the "
    "first brings a name, the second asks with it.",
    helps="Questions over a set of facts, where the answer takes as many steps as there are hops.",
    make=Memory,
    differs="The layer gives the state after the last hop, of which the paper makes the answer. In our tasks it is "
    "made of what the last hop read alone: else a network may read everything first and take away what is wrong.",
)
