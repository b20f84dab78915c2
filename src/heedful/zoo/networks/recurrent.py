"""Recurrent networks that read rows of unequal length."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Reader(nn.Module):
    """A GRU in one or both directions over the places of each row, and a first state for a decoder made of its ends."""

    def __init__(self, size: int, hidden: int, *, both: bool = True, state: int | None = None) -> None:
        super().__init__()
        directions = 2 if both else 1
        self.recurrent = nn.GRU(size, hidden // directions, bidirectional=both, batch_first=True)
        self.begin = nn.Linear(hidden, state or hidden)
        self.size = hidden

    def forward(
        self, rows: Float[Tensor, "examples places features"], mask: Bool[Tensor, "examples places"]
    ) -> tuple[Float[Tensor, "examples places hidden"], Float[Tensor, "examples state"]]:
        packed = pack_padded_sequence(rows, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        read, ends = self.recurrent(packed)
        hidden, _ = pad_packed_sequence(read, batch_first=True, total_length=rows.shape[1])
        return hidden, self.begin(ends.transpose(0, 1).flatten(1)).tanh()


def mask_of(lengths: Int[Tensor, " examples"], places: int) -> Bool[Tensor, "examples places"]:
    """True where a row has a place."""
    return torch.arange(places) < lengths.unsqueeze(1)


def marks(places: Int[Tensor, "examples steps"], count: int) -> Bool[Tensor, "examples steps keys"]:
    """One mark at the place of each step; none where it is −1."""
    return torch.arange(count) == places.unsqueeze(-1)
