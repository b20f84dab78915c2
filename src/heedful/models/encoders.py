"""Encoders: from embeddings to hidden vectors. `contextual` says whether a token's vector depends on its neighbours."""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from heedful.models.attention import uniform
from heedful.text.ragged import lengths_of, segments_of


class NoEncoder(nn.Module):
    """h_j = e_j (DP)."""

    contextual = False

    def __init__(self, embedding_size: int, _hidden_size: int, _generator: torch.Generator) -> None:
        super().__init__()
        self.size = embedding_size

    def forward(
        self, embedded: Float[Tensor, "units features"], _offsets: Int[Tensor, " documents+1"]
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
        self, embedded: Float[Tensor, "units features"], _offsets: Int[Tensor, " documents+1"]
    ) -> Float[Tensor, "units hidden"]:
        return embedded @ self.projection.T


class LSTMEncoder(nn.Module):
    """h_j from a bidirectional LSTM with half of the hidden size in each direction (DP-L)."""

    contextual = True

    def __init__(self, embedding_size: int, hidden_size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.size = 2 * max(1, hidden_size // 2)
        self.lstm = nn.LSTM(embedding_size, self.size // 2, bidirectional=True)
        with torch.no_grad():
            for parameter in self.lstm.parameters():
                parameter.copy_(uniform(tuple(parameter.shape), (self.size // 2) ** -0.5, generator))

    def forward(
        self, embedded: Float[Tensor, "units features"], offsets: Int[Tensor, " documents+1"]
    ) -> Float[Tensor, "units hidden"]:
        order, batch_sizes = _by_time(offsets)
        packed = PackedSequence(embedded[order], batch_sizes)
        hidden: Tensor = self.lstm(packed)[0].data
        return hidden[order.argsort()]


def _by_time(offsets: Int[Tensor, " documents+1"]) -> tuple[Int[Tensor, " units"], Int[Tensor, " steps"]]:
    """The units as a recurrent network reads them: all first words, all second words …, the longest document first.

    Packing straight from the ragged batch: one long document costs its own length and no padding of the others.
    """
    documents, places = segments_of(offsets), _places(offsets)
    rank = lengths_of(offsets).argsort(descending=True, stable=True).argsort()
    order = (places * len(rank) + rank[documents]).argsort()
    return order, places.bincount().cpu()


def _places(offsets: Int[Tensor, " documents+1"]) -> Int[Tensor, " units"]:
    """For every unit its position in its own document."""
    return torch.arange(int(offsets[-1]), device=offsets.device) - offsets[:-1][segments_of(offsets)]


ENCODERS: Mapping[str, type[NoEncoder] | type[AffineEncoder] | type[LSTMEncoder]] = {
    "none": NoEncoder,
    "affine": AffineEncoder,
    "lstm": LSTMEncoder,
}
