"""Which kind of visit comes next, from the codes of a visit."""

import torch
from jaxtyping import Int
from torch import Tensor, nn

from heedful.zoo.members.gram import Gram
from heedful.zoo.task import Examples, Looks, Network, Outcome


class Visiting(Network):
    """A visit is tanh of the sum of the vectors of its codes, and a linear readout of that.

    ancestors: of each code in an ontology, itself first; without them every code has a vector of its own.
    """

    def __init__(
        self, codes: int, kinds: int, size: int, *, ancestors: Int[Tensor, "codes depth"] | None, context: int = 32
    ) -> None:
        super().__init__()
        self.gram = None if ancestors is None else Gram(ancestors, size, context)
        self.own = nn.Parameter(torch.randn(codes, size) / size**0.5) if ancestors is None else None
        self.say = nn.Linear(size, kinds)

    def forward(self, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
        """Inputs: codes [examples codes of a visit]. A look is at the ancestors of each code."""
        del forced  # all is answered at once
        codes = examples.inputs["codes"]
        if self.gram is None:
            assert self.own is not None
            return Outcome(logits=self.say(self.own[codes].sum(1).tanh()).unsqueeze(1))
        read = self.gram()
        vectors, weights = read.context[codes], read.weights[codes]
        if without:
            weights = weights.masked_fill(without[""], 0.0)
            weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)
            vectors = torch.einsum("...n,...nd->...d", weights, self.gram.nodes[self.gram.ancestors[codes]])
        return Outcome(logits=self.say(vectors.sum(1).tanh()).unsqueeze(1), weights={"": weights})
