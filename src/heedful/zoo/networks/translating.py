"""A decoder that writes symbols, looking at its source at each step, or not."""

import inspect
from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.reading import Read
from heedful.zoo.networks.recurrent import Reader
from heedful.zoo.task import Examples, Looks, Network, Outcome

When = Literal["before", "after"]
PAD = 0
"""The number that stands where a source has ended; no symbol has it."""


class Translating(Network):
    """Reads a source of symbols and writes a target.

    look: the attention, called with query and keys; None is a decoder that has its first state and nothing else.
    when: whether the state of the step before asks (Bahdanau et al. 2014), or that of the step (Luong et al. 2015).
    encoded: whether keys are made by a network in both directions; otherwise they are the symbols' own vectors.
    written: how many symbols a target is made of; None where they are those of the source.
    """

    def __init__(
        self,
        symbols: int,
        embedding: int,
        hidden: int,
        *,
        look: Callable[[int, int], nn.Module] | None,
        when: When = "before",
        encoded: bool = True,
        written: int | None = None,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(symbols, embedding)
        self.reader = Reader(embedding, hidden) if encoded else None
        self.first = nn.Parameter(torch.zeros(hidden))
        self.key_size = hidden if encoded else embedding
        self.look = None if look is None else look(hidden, self.key_size)
        self.when = when
        given = embedding + (0 if look is None else self.key_size)
        self.begin = nn.Parameter(torch.zeros(embedding))
        self.wrote = None if written is None else nn.Embedding(written, embedding)
        self.cell = nn.GRUCell(given, hidden)
        self.mix = nn.Linear(hidden + (0 if look is None else self.key_size), hidden)
        self.say = nn.Linear(hidden, symbols if written is None else written)
        self._asks = set(inspect.signature(self.look.forward).parameters) if self.look else set()

    def forward(self, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
        """Inputs: source [examples places], zeros where it has ended."""
        source = examples.inputs["source"]
        mask = source != PAD
        rows = self.embed(source)
        keys, state = self.reader(rows, mask) if self.reader else (rows, self.first.expand(len(rows), -1))
        given, context = self.begin.expand(len(rows), -1), keys.new_zeros(len(rows), self.key_size)
        weights = torch.zeros_like(mask, dtype=keys.dtype)
        weights[:, 0] = 1.0
        said, looks = [], []
        for step in range(examples.targets.shape[1]):
            readable = mask & ~without[""][:, step] if without else mask
            if self.look is None:
                state = self.cell(given, state)
                logits = self.say(self.mix(state).tanh())
            else:
                if self.when == "before":
                    context, weights = self._read(state, keys, readable, weights, step)
                    state = self.cell(torch.cat([given, context], 1), state)
                else:
                    state = self.cell(torch.cat([given, context], 1), state)
                    context, weights = self._read(state, keys, readable, weights, step)
                logits = self.say(self.mix(torch.cat([state, context], 1)).tanh())
                looks.append(weights)
            said.append(logits)
            wrote = examples.targets[:, step].clamp(min=0) if forced else logits.argmax(-1)
            given = (self.wrote or self.embed)(wrote)
        return Outcome(logits=torch.stack(said, 1), weights={"": torch.stack(looks, 1)} if looks else {})

    def _read(
        self,
        state: Float[Tensor, "examples hidden"],
        keys: Float[Tensor, "examples places features"],
        mask: Bool[Tensor, "examples places"],
        previous: Float[Tensor, "examples places"],
        step: int,
    ) -> tuple[Float[Tensor, "examples features"], Float[Tensor, "examples places"]]:
        assert self.look is not None
        more = {name: value for name, value in (("previous", previous), ("step", step)) if name in self._asks}
        read: Read = self.look(state, keys, mask=mask, **more)
        return read.context, read.weights
