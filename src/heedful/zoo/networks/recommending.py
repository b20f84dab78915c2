"""Which of some items comes next, from a user and the items of a history, each with components."""

from typing import Literal

from torch import nn

from heedful.attention.reading import Read
from heedful.zoo.members.acf import CollaborativeFiltering
from heedful.zoo.task import Examples, Looks, Network, Outcome, Pooled


class Recommending(Network):
    """r̂_j = (u + what the history says)ᵀ v_j, for each of the candidates.

    history: what is made of it: attention on two levels, attention to items that are seen through the mean of their
        components, the mean of its items, or nothing (matrix factorisation).
    """

    def __init__(
        self,
        users: int,
        items: int,
        features: int,
        size: int,
        *,
        history: Literal["acf", "items", "mean", "none"],
        hidden: int = 32,
    ) -> None:
        super().__init__()
        self.users, self.chosen, self.choices = (
            nn.Embedding(users, size), nn.Embedding(items, size), nn.Embedding(items, size)
        )  # fmt: skip
        for table in (self.users, self.chosen, self.choices):
            nn.init.normal_(table.weight, std=0.3)
        self.history = history
        self.look = CollaborativeFiltering(size, size, features, hidden) if history in {"acf", "items"} else None

    def forward(self, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
        """Inputs: user [examples], history [examples items] (−1 where it has ended), components [examples items
        components features] (all zeros where an item has fewer), candidates [examples candidates]."""
        del forced  # all is answered at once
        inputs = examples.inputs
        user, mask = self.users(inputs["user"]), inputs["history"] >= 0
        said, looks = user, {}
        if self.look is not None:
            read = self._read(examples, without)
            said = user + read.context
            looks = {"item": read.weights.unsqueeze(1)}
            if self.history == "acf":
                looks["component"] = read.within[0].weights
        elif self.history == "mean":
            shares = mask / mask.sum(1, keepdim=True).clamp(min=1)
            said = user + (shares.unsqueeze(-1) * self.chosen(inputs["history"].clamp(min=0))).sum(1)
        scores = (said.unsqueeze(1) * self.choices(inputs["candidates"])).sum(-1)
        return Outcome(logits=scores.unsqueeze(1), weights=looks)

    def _read(self, examples: Examples, without: Looks | None) -> Read:
        assert self.look is not None
        inputs = examples.inputs
        mask, past = inputs["history"] >= 0, inputs["history"].clamp(min=0)
        parts = inputs["components"].any(-1)
        if without and "item" in without:
            mask = mask & ~without["item"][:, 0]
        if without and "component" in without:
            parts = parts & ~without["component"]
        components = inputs["components"]
        if self.history == "items":
            shares = parts / parts.sum(-1, keepdim=True).clamp(min=1)
            components, parts = (shares.unsqueeze(-1) * components).sum(-2, keepdim=True), parts.any(-1, keepdim=True)
        found: Read = self.look(
            self.users(inputs["user"]),
            self.choices(past),
            self.chosen(past),
            components,
            mask=mask,
            component_mask=parts,
        )
        return found

    def pooled(self, examples: Examples) -> Pooled | None:
        """The items of the history; what the user alone says to each candidate is the same for all of them."""
        if self.look is None:
            return None
        inputs = examples.inputs
        choices = self.choices(inputs["candidates"])
        said = self.users(inputs["user"]).unsqueeze(1) + self.chosen(inputs["history"].clamp(min=0))
        polarity = said @ choices.mT
        return Pooled(
            scores=self._read(examples, None).scores,
            polarity=polarity,
            bias=polarity.new_zeros(choices.shape[1]),
            what="item",
        )
