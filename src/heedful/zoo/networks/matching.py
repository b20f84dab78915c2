"""Every place of a row answers from what it reads at others."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.reading import Read
from heedful.zoo.members.self_attention import MultiHead, others
from heedful.zoo.task import Examples, Looks, Network, Outcome


class Matching(Network):
    """Places hold a few symbols each, of one table for each; each answers `questions` times.

    look: `MultiHead` over the row, or an attention that every place asks; None is a GRU over the row, in both
        directions. A place never reads itself, and answers from what it read alone.
    """

    def __init__(
        self, sizes: list[int], size: int, *, look: Callable[[int], nn.Module] | None, places: int, questions: int = 1
    ) -> None:
        super().__init__()
        self.embed = nn.ModuleList(nn.Embedding(count, size) for count in sizes)
        self.place = nn.Parameter(torch.randn(places, size) / size**0.5)
        self.look = look(size) if look else nn.GRU(size, size // 2, bidirectional=True, batch_first=True)
        self.say = nn.ModuleList(nn.Linear(size, sizes[-1]) for _ in range(questions))
        self.mix = nn.Linear(size, size)

    def forward(self, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
        """Inputs: symbols [examples places kinds]. Steps are places, question after question."""
        del forced  # all is answered at once
        rows: Tensor = self.place + sum(
            table(kind) for table, kind in zip(self.embed, examples.inputs["symbols"].unbind(-1), strict=True)
        )
        context, looks = self._read(rows, without)
        mixed = self.mix(context).relu()
        return Outcome(logits=torch.cat([say(mixed) for say in self.say], 1), weights=looks)

    def _read(
        self, rows: Float[Tensor, "examples places size"], without: Looks | None
    ) -> tuple[Float[Tensor, "examples places size"], dict[str, Tensor]]:
        mask = others(rows.shape[1]).expand(len(rows), -1, -1)
        if isinstance(self.look, nn.GRU):
            return self.look(rows)[0], {}
        if isinstance(self.look, MultiHead):
            if without:
                mask = mask & ~torch.stack([*without.values()]).any(0)
            read: Read = self.look(rows, rows, mask=mask)
            names = [""] if self.look.heads == 1 else [f"head {head + 1}" for head in range(self.look.heads)]
            return read.context, dict(zip(names, read.weights.unbind(1), strict=True))
        read = self.look(rows, rows.unsqueeze(1), mask=mask & ~without[""] if without else mask)
        return read.context, {"": read.weights}
