"""HAN and FLAN by their formulas: one document, one sentence and one word at a time, in plain torch.

Parameters come under the names of the model's state. Dropout masks are drawn from a generator, each at once for the
whole batch, in the order of the forward pass: words, sentence vectors, document vectors, logits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

Parameters = Mapping[str, Tensor]
Document = list[list[int]]


@dataclass(frozen=True, kw_only=True)
class Dropouts:
    """The probability to be set to zero, place by place."""

    words: float = 0.0
    sentences: float = 0.0
    documents: float = 0.0
    logits: float = 0.0


NONE = Dropouts()


def literal_logits(
    parameters: Parameters,
    documents: list[Document],
    *,
    encoder: str,
    hierarchical: bool,
    dropouts: Dropouts = NONE,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Logits of each document, given as sentences of tokens; a flat model reads on across their ends."""
    tokens = [token for document in documents for sentence in document for token in sentence]
    words = iter(dropped([parameters["embedding"][token] for token in tokens], dropouts.words, generator))
    if hierarchical:
        sentences = []
        for document in documents:
            for sentence in document:
                hidden = encode([next(words) for _ in sentence], parameters, "word_encoder", encoder)
                sentences.append(attend(hidden, parameters, "word_attention"))
        units = iter(dropped(sentences, dropouts.sentences, generator))
        lengths = [len(document) for document in documents]
    else:
        units, lengths = words, [sum(len(sentence) for sentence in document) for document in documents]
    vectors = []
    for length in lengths:
        hidden = encode([next(units) for _ in range(length)], parameters, "encoder", encoder)
        vectors.append(attend(hidden, parameters, "attention"))
    outputs = [read_out(vector, parameters) for vector in dropped(vectors, dropouts.documents, generator)]
    return torch.stack(dropped(outputs, dropouts.logits, generator))


def read_out(vector: Tensor, parameters: Parameters) -> Tensor:
    """W h + b; the one output s of two classes becomes (0, s)."""
    outputs = parameters["readout_weight"] @ vector + parameters["readout_bias"]
    return torch.cat([outputs.new_zeros(1), outputs]) if len(outputs) == 1 else outputs


def attend(hidden: list[Tensor], parameters: Parameters, name: str) -> Tensor:
    """Σ α_j h_j with α_j = exp(a_j) / Σ exp(a) and a_j = tanh(M h_j + c)ᵀV."""
    matrix, bias, context = (parameters[f"{name}.{part}"] for part in ("projection", "bias", "context_vector"))
    strengths = [torch.exp(torch.tanh(matrix @ h + bias) @ context) for h in hidden]
    weighted = [strength / sum(strengths) * h for strength, h in zip(strengths, hidden, strict=True)]
    return torch.stack(weighted).sum(0)


def encode(vectors: list[Tensor], parameters: Parameters, name: str, encoder: str) -> list[Tensor]:
    """The hidden vector of every unit of one sentence or document."""
    if encoder == "none":
        return vectors
    if encoder == "conv":
        return convolve(vectors, parameters, f"{name}.convolutions")
    forward = read(vectors, parameters, f"{name}.recurrent", "l0")
    backward = read(vectors[::-1], parameters, f"{name}.recurrent", "l0_reverse")[::-1]
    return [torch.cat(both) for both in zip(forward, backward, strict=True)]


def read(vectors: list[Tensor], parameters: Parameters, name: str, direction: str) -> list[Tensor]:
    """A gated recurrent unit from a state of zeros (Cho et al. 2014, with the reset gate after the product):

    r = σ(W_r x + U_r h), z = σ(W_z x + U_z h), n = tanh(W_n x + r ∘ U_n h), h ← (1 − z) ∘ n + z ∘ h; biases in W and U.
    """
    w, u, b, c = (parameters[f"{name}.{part}_{direction}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    size = u.shape[1]
    state, found = u.new_zeros(size), []
    for x in vectors:
        seen, kept = w @ x + b, u @ state + c
        reset = 1 / (1 + torch.exp(-seen[:size] - kept[:size]))
        update = 1 / (1 + torch.exp(-seen[size : 2 * size] - kept[size : 2 * size]))
        new = torch.tanh(seen[2 * size :] + reset * kept[2 * size :])
        state = (1 - update) * new + update * state
        found.append(state)
    return found


def convolve(vectors: list[Tensor], parameters: Parameters, name: str) -> list[Tensor]:
    """max(0, b + Σ_s W_s e_{j+s}) for windows of three and of five centred on j, nothing beyond the ends."""
    found = []
    for place in range(len(vectors)):
        parts = []
        for number, width in enumerate((3, 5)):
            weight, total = parameters[f"{name}.{number}.weight"], parameters[f"{name}.{number}.bias"]
            assert weight.shape[2] == width
            for column in range(width):
                neighbour = place + column - width // 2
                if 0 <= neighbour < len(vectors):
                    total = total + weight[:, :, column] @ vectors[neighbour]
            parts.append(torch.where(total > 0, total, torch.zeros_like(total)))
        found.append(torch.cat(parts))
    return found


def dropped(rows: list[Tensor], dropout: float, generator: torch.Generator | None) -> list[Tensor]:
    """The rows times a mask of zeros and 1/(1 − dropout); without a generator or a probability as they are."""
    if generator is None or dropout == 0:
        return rows
    mask = draw_mask(len(rows), len(rows[0]), dropout, generator)
    return [row * kept for row, kept in zip(rows, mask, strict=True)]


def draw_mask(rows: int, columns: int, dropout: float, generator: torch.Generator) -> Tensor:
    """One number an entry, cut from 64 random bits at a time, the lowest first; an entry is kept from a level on.

    Numbers have one bit for a half, eight for other multiples of 1/256, else sixteen. Masks are made in float32.
    """
    bits = 1 if dropout == 0.5 else 8 if dropout * 256 == int(dropout * 256) else 16
    needed = -(-rows * columns * bits // 64)
    words = torch.empty(needed, dtype=torch.int64).random_(-(2**63), None, generator=generator).tolist()
    numbers = [(word >> bits * place) % 2**bits for word in words for place in range(64 // bits)]
    least = round(dropout * 2**bits)
    kept = float(torch.tensor(2**bits / (2**bits - least), dtype=torch.float32))
    entries = [kept if number >= least else 0.0 for number in numbers[: rows * columns]]
    return torch.tensor(entries, dtype=torch.float64).reshape(rows, columns)
