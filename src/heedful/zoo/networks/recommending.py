"""Which of some items comes next, from a user and the items of a history, each with components."""

from typing import Literal

import torch
from torch import nn

from heedful.zoo.members.acf import CollaborativeFiltering
from heedful.zoo.task import Examples, Looks, Network, Outcome


class Recommending(Network):
    """r̂_j = (u + what the history says)ᵀ v_j, for each of the candidates.

    history: what is made of it: attention on two levels, the mean of its items, or nothing (matrix factorisation).
    """

    def __init__(
        self,
        users: int,
        items: int,
        features: int,
        size: int,
        *,
        history: Literal["acf", "mean", "none"],
        hidden: int = 32,
    ) -> None:
        super().__init__()
        self.users, self.chosen, self.choices = (
            nn.Embedding(users, size), nn.Embedding(items, size), nn.Embedding(items, size)
        )  # fmt: skip
        for table in (self.users, self.chosen, self.choices):
            nn.init.normal_(table.weight, std=0.3)
        self.history = history
        self.look = CollaborativeFiltering(size, size, features, hidden) if history == "acf" else None

    def forward(self, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
        """Inputs: user [examples], history [examples items] (−1 where it has ended), components [examples items
        components features], candidates [examples candidates]."""
        del forced  # all is answered at once
        inputs = examples.inputs
        user, mask = self.users(inputs["user"]), inputs["history"] >= 0
        past = inputs["history"].clamp(min=0)
        said, looks = user, {}
        if self.look is not None:
            parts = torch.ones(inputs["components"].shape[:-1], dtype=torch.bool)
            if without:
                mask = mask & ~without["item"][:, 0] if "item" in without else mask
                parts = parts & ~without["component"] if "component" in without else parts
            read = self.look(
                user, self.choices(past), self.chosen(past), inputs["components"], mask=mask, component_mask=parts
            )
            said = user + read.context
            looks = {"item": read.weights.unsqueeze(1), "component": read.within[0].weights}
        elif self.history == "mean":
            shares = mask / mask.sum(1, keepdim=True).clamp(min=1)
            said = user + (shares.unsqueeze(-1) * self.chosen(past)).sum(1)
        scores = (said.unsqueeze(1) * self.choices(inputs["candidates"])).sum(-1)
        return Outcome(logits=scores.unsqueeze(1), weights=looks)
