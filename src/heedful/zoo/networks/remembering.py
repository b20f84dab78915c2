"""A question to a list of facts, answered with one word."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attention.reading import Read
from heedful.zoo.members.memory import Memory
from heedful.zoo.task import Examples, Looks, Network, Outcome, Pooled

SLOTS = 3
"""Words of a fact: who, does what, what."""
DEVIATION = 0.3


class Remembering(Network):
    """Facts are sums of the vectors of their words, one table for each slot, and of how long ago they were.

    At first a name has one vector in all slots and tables, so that a question finds the facts that share a name with
    it, and what is done or asked has none: a question would else like some kind of fact by chance, and a second hop
    that began there stays there (of ten trainings two to five did).

    The answer is made of what the last hop read, and of nothing else. With the question and earlier hops in it, as
    Sukhbaatar et al. have it, the network learns to read all facts first and to take away the wrong ones: the answers
    are right, and the last look lies everywhere but on the right fact.

    deeds: how many words, the first ones, are no names.
    hops: of the memory; 0 is a GRU over the facts instead, whose last state meets the question.
    aged: whether facts say how long ago they were.
    """

    slots: Int[Tensor, " slots"]

    def __init__(self, words: int, facts: int, size: int, *, deeds: int, hops: int, aged: bool = True) -> None:
        super().__init__()
        names = DEVIATION * torch.randn(words - deeds, size)
        first = torch.cat([torch.zeros(deeds, size), names]).repeat(SLOTS, 1)
        self.found, self.read, self.asked = (
            nn.Embedding.from_pretrained(first.clone(), freeze=False) for _ in range(3)
        )
        self.register_buffer("slots", words * torch.arange(SLOTS), persistent=False)
        self.ages = nn.Parameter(0.1 * torch.randn(2, facts, size)) if aged else None
        self.memory = Memory(size, hops) if hops else None
        self.reader = None if hops else nn.GRU(size, size, batch_first=True)
        self.mix = None if hops else nn.Linear(2 * size, size)
        self.say = nn.Linear(size, words)

    def forward(self, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
        """Inputs: facts [examples facts 3], the last one last, and question [examples 2]."""
        del forced  # all is answered at once
        keys, values, question = self._told(examples)
        if self.memory is None:
            assert self.reader is not None
            assert self.mix is not None
            _, end = self.reader(keys)
            mixed = self.mix(torch.cat([end[0], question], -1)).relu()
            return Outcome(logits=self.say(mixed).unsqueeze(1))
        mask = ~torch.stack([*without.values()]).any(0)[:, 0] if without else None
        read: Read = self.memory(question, keys, values, mask=mask)
        looks = {f"hop {hop + 1}": one.weights.unsqueeze(1) for hop, one in enumerate(read.within)}
        return Outcome(logits=self.say(read.within[-1].context).unsqueeze(1), weights=looks)

    def pooled(self, examples: Examples) -> Pooled | None:
        """The last hop: the answer is made of what it read."""
        if self.memory is None:
            return None
        keys, values, question = self._told(examples)
        scores = self.memory(question, keys, values).within[-1].scores
        return Pooled(scores=scores, polarity=values @ self.say.weight.T, bias=self.say.bias, what="fact")

    def _told(
        self, examples: Examples
    ) -> tuple[
        Float[Tensor, "examples facts size"], Float[Tensor, "examples facts size"], Float[Tensor, "examples size"]
    ]:
        """Facts as they are found, as they are read, and the question."""
        facts = examples.inputs["facts"] + self.slots
        keys, values = (self._aged(table(facts).sum(-2), use) for use, table in enumerate((self.found, self.read)))
        return keys, values, self.asked(examples.inputs["question"] + self.slots[:2]).sum(-2)

    def _aged(self, facts: Float[Tensor, "examples facts size"], use: int) -> Float[Tensor, "examples facts size"]:
        return facts if self.ages is None else facts + self.ages[use, : facts.shape[1]].flip(0)
