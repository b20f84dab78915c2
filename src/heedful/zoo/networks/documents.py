"""Documents of sentences, pooled into a linear readout."""

from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.reading import Attention, Read
from heedful.attention.scores import Additive
from heedful.zoo.members.hierarchical import Hierarchical
from heedful.zoo.task import Examples, Looks, Network, Outcome, Pooled

PAD = 0


class Documents(Network):
    """Words are their own vectors; the readout is affine in what was pooled.

    pool: two levels of attention, one level over all words, or the mean of all words.
    """

    def __init__(
        self, words: int, size: int, classes: int, *, pool: Literal["hierarchical", "flat", "mean"], context: int = 0
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, size, padding_idx=PAD)
        self.pool = pool
        self.levels = Hierarchical(size, context or size) if pool == "hierarchical" else None
        self.look = Attention(Additive(size, context or size)) if pool == "flat" else None
        self.say = nn.Linear(size, classes)

    def forward(self, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
        """Inputs: words [examples sentences words], zeros where there is none."""
        del forced  # all is answered at once
        tokens = examples.inputs["words"]
        mask, vectors = tokens != PAD, self.embed(tokens)
        if self.levels is not None:
            read = self.read(vectors, mask, without)
            looks = {"sentence": read.weights.unsqueeze(1), "word": read.within[0].weights}
            return Outcome(logits=self.say(read.context).unsqueeze(1), weights=looks)
        flat, there = vectors.flatten(1, 2), mask.flatten(1, 2)
        if self.look is None:
            mean = (flat * there.unsqueeze(-1)).sum(1) / there.sum(1, keepdim=True)
            return Outcome(logits=self.say(mean).unsqueeze(1))
        read = self.look(None, flat, mask=there & ~without[""][:, 0] if without else there)
        return Outcome(logits=self.say(read.context).unsqueeze(1), weights={"": read.weights.unsqueeze(1)})

    def read(
        self,
        vectors: Float[Tensor, "examples sentences words size"],
        mask: Bool[Tensor, "examples sentences words"],
        without: Looks | None,
    ) -> Read:
        assert self.levels is not None
        there = mask.any(-1)
        if without and "word" in without:
            mask = mask & ~without["word"]
        if without and "sentence" in without:
            there = there & ~without["sentence"][:, 0]
        found: Read = self.levels(vectors, mask=mask, sentence_mask=there)
        return found

    def pooled(self, examples: Examples) -> Pooled | None:
        tokens = examples.inputs["words"]
        mask, vectors = tokens != PAD, self.embed(tokens)
        if self.levels is not None:
            read, what = self.read(vectors, mask, None), "sentence"
            rows = read.within[0].context
        elif self.look is not None:
            rows, what = vectors.flatten(1, 2), "word"
            read = self.look(None, rows, mask=mask.flatten(1, 2))
        else:
            return None
        return Pooled(scores=read.scores, polarity=rows @ self.say.weight.T, bias=self.say.bias, what=what)
