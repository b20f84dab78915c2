"""Ratings from the documents of a user and of an item."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.attention.reading import Read
from heedful.zoo.members.d_attn import DualAttention
from heedful.zoo.task import Examples, Looks, Network, Outcome

PAD = 0


class Rating(Network):
    """rating = u(user document)ᵀ v(item document) + b; the logits have one class, the rating.

    open_gates: both gates are one everywhere: what convolutions see then are the words themselves (the baseline).
    """

    def __init__(
        self, words: int, size: int, latent: int, *, reach: int, open_gates: bool = False, width: int = 3
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, size, padding_idx=PAD)
        self.user, self.item = (
            DualAttention(size, width=width, reach=reach, local_filters=32, filters=16) for _ in range(2)
        )
        self.user_latent, self.item_latent = (nn.Linear(self.user.size, latent) for _ in range(2))
        self.bias = nn.Parameter(torch.zeros(()))
        self.open_gates = open_gates

    def forward(self, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
        """Inputs: user and item [examples words], zeros where a document has ended."""
        del forced  # all is answered at once
        reads = {name: self._read(name, examples.inputs[name], without) for name in ("user", "item")}
        user, item = self.user_latent(reads["user"].context), self.item_latent(reads["item"].context)
        rating = (user * item).sum(-1) + self.bias
        looks = {} if self.open_gates else {name: open_to(read).unsqueeze(1) for name, read in reads.items()}
        return Outcome(logits=rating[:, None, None], weights=looks)

    def _read(self, name: str, words: Int[Tensor, "examples words"], without: Looks | None) -> Read:
        network = self.user if name == "user" else self.item
        assert isinstance(network, DualAttention)
        mask = words != PAD
        if without and name in without:
            mask = mask & ~without[name][:, 0]
        read: Read = network(self.embed(words), mask=mask, open_gates=self.open_gates)
        return read


def open_to(read: Read) -> Float[Tensor, "documents words"]:
    """How open the wider open one of both gates is for each word: they share the words between them."""
    near, far = read.within
    return torch.maximum(near.weights, far.weights)


def squared(outcome: Outcome, examples: Examples) -> Float[Tensor, ""]:
    return F.mse_loss(outcome.logits.squeeze(-1), examples.targets)
