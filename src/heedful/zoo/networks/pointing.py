"""A decoder whose answers are places of its input, with attention or with an output for each place."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention.reading import Attention
from heedful.attention.weighting import softmax
from heedful.zoo.networks.recurrent import Reader
from heedful.zoo.task import Examples, Looks, Network, Outcome


class Pointing(Network):
    """Reads items and answers with places among them, one after the other. What was answered is not answered again.

    pointer: makes the layer; without one a linear layer has an output for each of `places` places (the baseline).
    stop: whether a further item that stands first means the end; it may always be answered.
    """

    def __init__(
        self, features: int, hidden: int, *, pointer: Attention | None, places: int, stop: bool = False
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(features, hidden)
        self.reader = Reader(hidden, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.first = nn.Parameter(torch.zeros(hidden))
        self.end = nn.Parameter(torch.randn(hidden) / hidden**0.5) if stop else None
        self.pointer = pointer
        self.places = None if pointer is not None else nn.Linear(hidden, places)

    def forward(self, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
        """Inputs: items [examples places features], mask [examples places]."""
        mask = examples.inputs["mask"]
        items = self.embed(examples.inputs["items"])
        keys, state = self.reader(items, mask)
        if self.end is not None:
            mask, items, keys = (self._with_end(part) for part in (mask, items, keys))
        free, given = mask, self.first.expand(len(items), -1)
        scores, weights = [], []
        for step in range(examples.targets.shape[1]):
            state = self.cell(given, state)
            readable = free & ~without[""][:, step] if without else free
            said, by = self._point(state, keys, readable)
            scores.append(said)
            weights.append(by)
            chosen = examples.targets[:, step].clamp(min=0) if forced else said.argmax(-1)
            given = items[torch.arange(len(items)), chosen]
            free = self._used(free, chosen)
        looks = {"": torch.stack(weights, 1)} if self.pointer is not None else {}
        return Outcome(logits=torch.stack(scores, 1), weights=looks)

    def _point(
        self,
        state: Float[Tensor, "examples hidden"],
        keys: Float[Tensor, "examples places hidden"],
        mask: Bool[Tensor, "examples places"],
    ) -> tuple[Float[Tensor, "examples places"], Float[Tensor, "examples places"]]:
        """Scores and weights; where nothing is left to be answered all scores are alike."""
        if self.pointer is not None:
            read = self.pointer(state, keys, mask=mask)
            scores, weights = read.scores, read.weights
        else:
            assert self.places is not None
            scores = self.places(state)[:, : keys.shape[1]].masked_fill(~mask, -torch.inf)
            weights = softmax(scores, mask)
        return scores.masked_fill(~mask.any(1, keepdim=True), 0.0), weights

    def _with_end(self, part: Tensor) -> Tensor:
        assert self.end is not None
        first = part.new_ones(len(part), 1) if part.dim() == 2 else self.end.expand(len(part), 1, -1)
        return torch.cat([first, part], 1)

    def _used(
        self, free: Bool[Tensor, "examples places"], chosen: Int[Tensor, " examples"]
    ) -> Bool[Tensor, "examples places"]:
        left = free.scatter(1, chosen.unsqueeze(1), False)
        if self.end is not None:
            left[:, 0] = True
        return left
