"""Between the embeddings and the pooled vector: encoders, and attentions that score what they give."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attention.scores import additive, dot
from heedful.config import ModelSettings
from heedful.text.ragged import lengths_of, segments_of


def uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Float[Tensor, "..."]:
    """Numbers drawn uniformly from ± bound."""
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)


class Encoder(nn.Module):
    """From embeddings to hidden vectors."""

    contextual = False
    """Whether a token's vector depends on its neighbours."""
    size: int
    """Of a hidden vector."""


class NoEncoder(Encoder):
    """h_j = e_j (DP)."""

    def __init__(self, embedding_size: int, _hidden_size: int, _generator: torch.Generator) -> None:
        super().__init__()
        self.size = embedding_size

    def forward(
        self, embedded: Float[Tensor, "units features"], _offsets: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "units features"]:
        return embedded


class FrozenEncoder(NoEncoder):
    """h_j = what a frozen transformer makes of word j in its text (`heedful.models.frozen`): batches bring it along."""

    contextual = True


class AffineEncoder(Encoder):
    """h_j = M e_j (DP-A; no bias)."""

    def __init__(self, embedding_size: int, hidden_size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.size = hidden_size
        self.projection = nn.Parameter(uniform((hidden_size, embedding_size), embedding_size**-0.5, generator))

    def forward(
        self, embedded: Float[Tensor, "units features"], _offsets: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "units hidden"]:
        return embedded @ self.projection.T


class TanhEncoder(Encoder):
    """h_j = tanh(M e_j + c), each token by itself: "average" of Jain & Wallace 2019, the diagnostic network of
    Wiegreffe & Pinter 2019."""

    def __init__(self, embedding_size: int, hidden_size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.size = hidden_size
        self.projection = nn.Parameter(uniform((hidden_size, embedding_size), embedding_size**-0.5, generator))
        self.bias = nn.Parameter(torch.zeros(hidden_size))

    def forward(
        self, embedded: Float[Tensor, "units features"], _offsets: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "units hidden"]:
        return torch.addmm(self.bias, embedded, self.projection.T).tanh()


class RecurrentEncoder(Encoder):
    """h_j from a bidirectional recurrent network with half of the hidden size in each direction.

    The batch is read in stretches of a few steps, the state handed on from one to the next. In one pass over the
    packed batch, torch's gradient clears an array as large as the whole input at every step, and its time grows with
    the square of the length.
    """

    contextual = True
    stretch = 16
    network: type[nn.LSTM] | type[nn.GRU]
    states: int
    """How many vectors the network hands on from step to step."""
    run: Callable[..., Any]
    """Some steps of one direction on a packed batch."""

    def __init__(self, embedding_size: int, hidden_size: int, generator: torch.Generator) -> None:
        super().__init__()
        half = max(1, hidden_size // 2)
        self.size = 2 * half
        self.recurrent = self.network(embedding_size, half, bidirectional=True)
        _draw_parameters(self.recurrent, half**-0.5, generator)

    def forward(
        self, embedded: Float[Tensor, "units features"], offsets: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "units hidden"]:
        if not len(embedded):
            return embedded.new_zeros(0, self.size)
        owners = segments_of(offsets)
        places = torch.arange(len(embedded), device=offsets.device) - offsets[:-1][owners]
        from_the_end = lengths_of(offsets)[owners] - 1 - places
        weights: list[Tensor] = list(self.recurrent.parameters())
        half = len(weights) // 2
        both = [(places, weights[:half]), (from_the_end, weights[half:])]
        return torch.cat([self._read(embedded, offsets, *direction) for direction in both], 1)

    def _read(
        self,
        embedded: Float[Tensor, "units features"],
        offsets: Int[Tensor, " bounds"],
        places: Int[Tensor, " units"],
        weights: list[Tensor],
    ) -> Float[Tensor, "units half"]:
        """One direction: every document from place 0 on."""
        order, sizes = _by_time(offsets, places)
        stretches = sizes.split(self.stretch)
        state = [embedded.new_zeros(1, len(offsets) - 1, self.size // 2) for _ in range(self.states)]
        hidden = []
        for rows, alive in zip(embedded[order].split([int(part.sum()) for part in stretches]), stretches, strict=True):
            begin = [kept[:, : alive[0]] for kept in state]
            handed = begin if self.states > 1 else begin[0]
            read, *state = self.run(rows, alive, handed, weights, True, 1, 0.0, self.training, False)
            hidden.append(read)
        return torch.cat(hidden)[order.argsort()]


class LSTMEncoder(RecurrentEncoder):
    """Long short-term memory (DP-L of Sun & Lu 2020)."""

    network, states, run = nn.LSTM, 2, staticmethod(torch.lstm)


class GRUEncoder(RecurrentEncoder):
    """Gated recurrent units (the rnn models of Serrano & Smith 2019)."""

    network, states, run = nn.GRU, 1, staticmethod(torch.gru)


class ConvEncoder(Encoder):
    """h_j = ReLU of convolutions over windows of tokens centred on j, an equal part of the hidden size for each width.

    Three and five tokens in the conv models of Serrano & Smith 2019; one, three, five and seven in those of Jain &
    Wallace 2019. The documents of a batch lie on one line with zeros between them, so that one convolution serves all
    and no document is padded to the length of another.
    """

    contextual = True

    def __init__(
        self, embedding_size: int, hidden_size: int, generator: torch.Generator, widths: Sequence[int] = (3, 5)
    ) -> None:
        super().__init__()
        part = max(1, hidden_size // len(widths))
        self.widths = tuple(widths)
        self.size = part * len(widths)
        self.convolutions = nn.ModuleList(nn.Conv1d(embedding_size, part, w, padding="same") for w in widths)
        for width, convolution in zip(widths, self.convolutions, strict=True):
            _draw_parameters(convolution, (embedding_size * width) ** -0.5, generator)

    def forward(
        self, embedded: Float[Tensor, "units features"], offsets: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "units hidden"]:
        gap = max(self.widths) // 2
        places = torch.arange(len(embedded), device=embedded.device) + gap * segments_of(offsets)
        line = embedded.new_zeros(len(embedded) + gap * len(offsets), embedded.shape[1]).index_copy(0, places, embedded)
        swept = torch.cat([convolution(line.T[None]) for convolution in self.convolutions], 1)
        return swept[0].T[places].relu()


@torch.no_grad()
def _draw_parameters(module: nn.Module, bound: float, generator: torch.Generator) -> None:
    for parameter in module.parameters():
        parameter.copy_(uniform(tuple(parameter.shape), bound, generator))


def _by_time(
    offsets: Int[Tensor, " bounds"], places: Int[Tensor, " units"]
) -> tuple[Int[Tensor, " units"], Int[Tensor, " steps"]]:
    """The units as a recurrent network reads them: all first words, all second words …, the longest document first.

    Packing straight from the ragged batch: one long document costs its own length and no padding of the others.
    """
    rank = lengths_of(offsets).argsort(descending=True, stable=True).argsort()
    order = (places * len(rank) + rank[segments_of(offsets)]).argsort()
    return order, places.bincount().cpu()


ENCODERS: Mapping[str, Callable[[int, int, torch.Generator], Encoder]] = {
    "none": NoEncoder,
    "affine": AffineEncoder,
    "tanh": TanhEncoder,
    "lstm": LSTMEncoder,
    "gru": GRUEncoder,
    "conv": ConvEncoder,
    "transformer": FrozenEncoder,
}


def make_encoder(size: int, settings: ModelSettings, generator: torch.Generator) -> Encoder:
    """The encoder that the settings name, for embeddings of this size."""
    if settings.encoder == "conv":
        return ConvEncoder(size, settings.hidden_size, generator, settings.widths)
    return ENCODERS[settings.encoder](size, settings.hidden_size, generator)


def dot_scores(
    hidden: Float[Tensor, "units features"], context_vector: Float[Tensor, " features"], score_scale: float
) -> Float[Tensor, " units"]:
    """a_j = h_jᵀV / λ (Sun & Lu 2020, Eq. 1)."""
    return dot(context_vector, hidden) / score_scale


def additive_scores(
    hidden: Float[Tensor, "units features"],
    projection: Float[Tensor, "context features"],
    context_vector: Float[Tensor, " context"],
    score_scale: float,
    bias: Float[Tensor, " context"] | None = None,
) -> Float[Tensor, " units"]:
    """a_j = tanh(M h_j)ᵀV / λ (Sun & Lu 2020, supplement Eq. 65); with a bias tanh(M h_j + c) (Yang et al. 2016)."""
    return additive(hidden, key_weight=projection, vector=context_vector, bias=bias) / score_scale


class Attention(nn.Module):
    """How much attention each hidden vector asks for, before the softmax."""

    score_scale: float
    context_vector: nn.Parameter


class DotAttention(Attention):
    """Scaled dot product with a learned context vector V ~ N(0, σ²)."""

    def __init__(self, size: int, settings: ModelSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.score_scale = settings.score_scale
        self.context_vector = nn.Parameter(torch.randn(size, generator=generator) * settings.context_deviation)

    def forward(self, hidden: Float[Tensor, "units features"]) -> Float[Tensor, " units"]:
        return dot_scores(hidden, self.context_vector, self.score_scale)


class AdditiveAttention(Attention):
    """A tanh layer before the dot product, of the size of the hidden vectors unless the settings give it its own."""

    def __init__(self, size: int, settings: ModelSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.score_scale = settings.score_scale
        own = settings.context_size or size
        self.projection = nn.Parameter(uniform((own, size), size**-0.5, generator))
        self.context_vector = nn.Parameter(torch.randn(own, generator=generator) * settings.context_deviation)
        self.bias = nn.Parameter(torch.zeros(own)) if settings.attention_bias else None

    def forward(self, hidden: Float[Tensor, "units features"]) -> Float[Tensor, " units"]:
        return additive_scores(hidden, self.projection, self.context_vector, self.score_scale, self.bias)


ATTENTIONS: Mapping[str, Callable[[int, ModelSettings, torch.Generator], Attention]] = {
    "dot": DotAttention,
    "additive": AdditiveAttention,
}
