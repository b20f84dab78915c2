"""Encoders: from embeddings to hidden vectors. `contextual` says whether a token's vector depends on its neighbours."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.models.attention import uniform
from heedful.text.ragged import lengths_of, segments_of


class NoEncoder(nn.Module):
    """h_j = e_j (DP)."""

    contextual = False

    def __init__(self, embedding_size: int, _hidden_size: int, _generator: torch.Generator) -> None:
        super().__init__()
        self.size = embedding_size

    def forward(
        self, embedded: Float[Tensor, "units features"], _offsets: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "units features"]:
        return embedded


class AffineEncoder(nn.Module):
    """h_j = M e_j (DP-A; no bias)."""

    contextual = False

    def __init__(self, embedding_size: int, hidden_size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.size = hidden_size
        self.projection = nn.Parameter(uniform((hidden_size, embedding_size), embedding_size**-0.5, generator))

    def forward(
        self, embedded: Float[Tensor, "units features"], _offsets: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "units hidden"]:
        return embedded @ self.projection.T


class RecurrentEncoder(nn.Module, ABC):
    """h_j from a bidirectional recurrent network with half of the hidden size in each direction.

    The batch is read in stretches of a few steps, the state handed on from one to the next. In one pass over the
    packed batch, torch's gradient clears an array as large as the whole input at every step, and its time grows with
    the square of the length.
    """

    contextual = True
    cell: type[nn.LSTM] | type[nn.GRU]
    states: int
    """How many vectors the network hands on from step to step."""
    stretch = 16

    def __init__(self, embedding_size: int, hidden_size: int, generator: torch.Generator) -> None:
        super().__init__()
        half = max(1, hidden_size // 2)
        self.size = 2 * half
        self.recurrent = self.cell(embedding_size, half, bidirectional=True)
        with torch.no_grad():
            for parameter in self.recurrent.parameters():
                parameter.copy_(uniform(tuple(parameter.shape), half**-0.5, generator))

    def forward(
        self, embedded: Float[Tensor, "units features"], offsets: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "units hidden"]:
        if not len(embedded):
            return embedded.new_zeros(0, self.size)
        places = _places(offsets)
        from_the_end = lengths_of(offsets)[segments_of(offsets)] - 1 - places
        weights: list[Tensor] = list(self.recurrent.parameters())
        return torch.cat(
            [
                self._read(embedded, offsets, places, weights[: len(weights) // 2]),
                self._read(embedded, offsets, from_the_end, weights[len(weights) // 2 :]),
            ],
            1,
        )

    def _read(
        self,
        embedded: Float[Tensor, "units features"],
        offsets: Int[Tensor, " bounds"],
        places: Int[Tensor, " units"],
        weights: list[Tensor],
    ) -> Float[Tensor, "units half"]:
        """One direction: every document from place 0 on."""
        order, sizes = _by_time(offsets, places)
        steps = sizes.split(self.stretch)
        state = [embedded.new_zeros(1, len(offsets) - 1, self.size // 2) for _ in range(self.states)]
        found = []
        for rows, alive in zip(embedded[order].split([int(part.sum()) for part in steps]), steps, strict=True):
            hidden, state = self._run(rows, alive, [kept[:, : alive[0]] for kept in state], weights)
            found.append(hidden)
        return torch.cat(found)[order.argsort()]

    @abstractmethod
    def _run(
        self, rows: Tensor, sizes: Tensor, state: list[Tensor], weights: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Some steps of one direction on a packed batch."""


class LSTMEncoder(RecurrentEncoder):
    """Long short-term memory (DP-L of Sun & Lu 2020)."""

    cell = nn.LSTM
    states = 2

    def _run(
        self, rows: Tensor, sizes: Tensor, state: list[Tensor], weights: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        hidden, *state = torch.lstm(rows, sizes, state, weights, True, 1, 0.0, self.training, False)
        return hidden, state


class GRUEncoder(RecurrentEncoder):
    """Gated recurrent units (the rnn models of Serrano & Smith 2019)."""

    cell = nn.GRU
    states = 1

    def _run(
        self, rows: Tensor, sizes: Tensor, state: list[Tensor], weights: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        hidden, *state = torch.gru(rows, sizes, state[0], weights, True, 1, 0.0, self.training, False)
        return hidden, state


class ConvEncoder(nn.Module):
    """h_j = ReLU of convolutions over three and over five tokens centred on j, half of the hidden size each.

    The conv models of Serrano & Smith 2019. The documents of a batch lie on one line with zeros between them, so that
    one convolution serves all and no document is padded to the length of another.
    """

    contextual = True
    widths = (3, 5)

    def __init__(self, embedding_size: int, hidden_size: int, generator: torch.Generator) -> None:
        super().__init__()
        half = max(1, hidden_size // 2)
        self.size = half * len(self.widths)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embedding_size, half, width, padding="same") for width in self.widths
        )
        with torch.no_grad():
            for width, convolution in zip(self.widths, self.convolutions, strict=True):
                for parameter in convolution.parameters():
                    parameter.copy_(uniform(tuple(parameter.shape), (embedding_size * width) ** -0.5, generator))

    def forward(
        self, embedded: Float[Tensor, "units features"], offsets: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "units hidden"]:
        gap = max(self.widths) // 2
        places = torch.arange(len(embedded), device=embedded.device) + gap * segments_of(offsets)
        line = embedded.new_zeros(len(embedded) + gap * len(offsets), embedded.shape[1]).index_copy(0, places, embedded)
        swept = torch.cat([convolution(line.T[None]) for convolution in self.convolutions], 1)
        return swept[0].T[places].relu()


def _by_time(
    offsets: Int[Tensor, " bounds"], places: Int[Tensor, " units"]
) -> tuple[Int[Tensor, " units"], Int[Tensor, " steps"]]:
    """The units as a recurrent network reads them: all first words, all second words …, the longest document first.

    Packing straight from the ragged batch: one long document costs its own length and no padding of the others.
    """
    rank = lengths_of(offsets).argsort(descending=True, stable=True).argsort()
    order = (places * len(rank) + rank[segments_of(offsets)]).argsort()
    return order, places.bincount().cpu()


def _places(offsets: Int[Tensor, " bounds"]) -> Int[Tensor, " units"]:
    """For every unit its position in its own document."""
    return torch.arange(int(offsets[-1]), device=offsets.device) - offsets[:-1][segments_of(offsets)]


Encoder = NoEncoder | AffineEncoder | RecurrentEncoder | ConvEncoder

ENCODERS: Mapping[str, type[NoEncoder] | type[AffineEncoder] | type[RecurrentEncoder] | type[ConvEncoder]] = {
    "none": NoEncoder,
    "affine": AffineEncoder,
    "lstm": LSTMEncoder,
    "gru": GRUEncoder,
    "conv": ConvEncoder,
}
