"""Gradients and rates of Sun & Lu's classifiers by autograd through loops over documents and words.

Shares no code with src. Also the equations of the paper exactly as they are printed, summed literally over occurrences.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Model:
    """Leaf tensors in float64; W has one row for two classes (label 1 is y = +1), a row per class for more."""

    embedding: Tensor
    V: Tensor
    W: Tensor
    scale: float
    M: Tensor | None = None
    Ma: Tensor | None = None

    def __post_init__(self) -> None:
        for tensor in self.tensors().values():
            tensor.requires_grad_()

    def tensors(self) -> dict[str, Tensor]:
        named = {"embedding": self.embedding, "V": self.V, "W": self.W, "M": self.M, "Ma": self.Ma}
        return {name: tensor for name, tensor in named.items() if tensor is not None}


Texts = Sequence[Sequence[int]]


def hidden(model: Model, vector: Tensor) -> Tensor:
    return vector if model.M is None else model.M @ vector


def attention_score(model: Model, h: Tensor) -> Tensor:
    return torch.dot(h if model.Ma is None else torch.tanh(model.Ma @ h), model.V) / model.scale


def token_scores(model: Model, token: int) -> tuple[Tensor, Tensor]:
    """a_e and s_e of a token alone."""
    h = hidden(model, model.embedding[token])
    return attention_score(model, h), model.W @ h


def document_output(
    model: Model, text: Sequence[int], word_masks: Sequence[Tensor] | None = None, mask: Tensor | None = None
) -> tuple[Tensor, Tensor, list[Tensor], Tensor]:
    """s, h, the words' hidden vectors and α; masks multiply the embeddings and the document vector."""
    vectors = [model.embedding[token] for token in text]
    if word_masks is not None:
        vectors = [vector * word_mask for vector, word_mask in zip(vectors, word_masks, strict=True)]
    states = [hidden(model, vector) for vector in vectors]
    exponentials = [torch.exp(attention_score(model, h)) for h in states]
    total = sum(exponentials[1:], exponentials[0])
    alpha = torch.stack([exponential / total for exponential in exponentials])
    document = torch.zeros_like(states[0])
    for weight, h in zip(alpha, states, strict=True):
        document = document + weight * h
    read = document if mask is None else document * mask
    return model.W @ read, document, states, alpha


def document_loss(output: Tensor, label: int) -> Tensor:
    if len(output) == 1:
        y = 1 if label == 1 else -1
        return torch.log(1 + torch.exp(-y * output[0]))
    return torch.log(torch.exp(output).sum()) - output[label]


def mean_loss(
    model: Model,
    texts: Texts,
    labels: Sequence[int],
    word_masks: Sequence[Sequence[Tensor]] | None = None,
    masks: Sequence[Tensor] | None = None,
) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for number, (text, label) in enumerate(zip(texts, labels, strict=True)):
        words = None if word_masks is None else word_masks[number]
        mask = None if masks is None else masks[number]
        total = total + document_loss(document_output(model, text, words, mask)[0], label)
    return total / len(texts)


def gradients(
    model: Model,
    texts: Texts,
    labels: Sequence[int],
    word_masks: Sequence[Sequence[Tensor]] | None = None,
    masks: Sequence[Tensor] | None = None,
) -> dict[str, Tensor]:
    """∂ℓ/∂θ by autograd."""
    tensors = model.tensors()
    found = torch.autograd.grad(mean_loss(model, texts, labels, word_masks, masks), list(tensors.values()))
    return dict(zip(tensors, found, strict=True))


def rate(model: Model, quantity: Tensor, slope: dict[str, Tensor]) -> float:
    """dq/dτ = −Σ_θ ⟨∂q/∂θ, ∂ℓ/∂θ⟩ of a scalar under gradient flow."""
    tensors = model.tensors()
    found = torch.autograd.grad(quantity, list(tensors.values()), allow_unused=True, retain_graph=True)
    return -sum(float((f * slope[name]).sum()) for name, f in zip(tensors, found, strict=True) if f is not None)


def token_rates(model: Model, texts: Texts, labels: Sequence[int]) -> tuple[Tensor, Tensor]:
    """ds_e/dτ [vocab, outputs] and da_e/dτ [vocab] by autograd, token by token."""
    slope = gradients(model, texts, labels)
    polarity, attention = [], []
    for token in range(len(model.embedding)):
        polarity.append([rate(model, token_scores(model, token)[1][output], slope) for output in range(len(model.W))])
        attention.append(rate(model, token_scores(model, token)[0], slope))
    return torch.tensor(polarity, dtype=torch.float64), torch.tensor(attention, dtype=torch.float64)


def pair_rate(model: Model, first: int, second: int, texts: Texts, labels: Sequence[int]) -> float:
    """dΩ/dτ of e_iᵀe_k by autograd."""
    return rate(model, torch.dot(model.embedding[first], model.embedding[second]), gradients(model, texts, labels))


@dataclass
class Occurrence:
    """One word of one document: its token, α, e, h, s_j, and of its document s, h, y β and p̂."""

    token: int
    alpha: float
    e: Tensor
    h: Tensor
    s_word: Tensor
    s: Tensor
    y_beta: float
    p_hat: Tensor


@torch.no_grad()
def occurrences(model: Model, texts: Texts, labels: Sequence[int]) -> list[Occurrence]:
    found = []
    for text, label in zip(texts, labels, strict=True):
        s, _, states, alpha = document_output(model, text)
        y = 1 if label == 1 else -1
        y_beta = y / (1 + float(torch.exp(y * s[0])))
        p_hat = torch.softmax(s, 0)
        p_hat[label if len(s) > 1 else 0] -= 1
        for token, h, weight in zip(text, states, alpha, strict=True):
            e = model.embedding[token]
            found.append(Occurrence(token, float(weight), e, h, model.W @ h, s, y_beta, p_hat))
    return found


@torch.no_grad()
def printed_44(model: Model, i: int, k: int, texts: Texts, labels: Sequence[int], *, corrected: bool) -> float:
    """−(∂ℓ/∂e_i)ᵀe_k: as printed, a_k is divided by λ once more."""
    a_k, s_k = token_scores(model, k)
    extra = 1.0 if corrected else model.scale
    total = 0.0
    for o in occurrences(model, texts, labels):
        if o.token == i:
            total += o.y_beta * o.alpha * float((o.s_word - o.s)[0] * a_k / extra + s_k[0])
    return total / len(texts)


@torch.no_grad()
def printed_46(model: Model, i: int, k: int, texts: Texts, labels: Sequence[int]) -> float:
    """π(e_k) s_i + π(e_i) s_k, printed without 1/m."""
    found = occurrences(model, texts, labels)
    pi = {token: sum(o.y_beta * o.alpha for o in found if o.token == token) for token in (i, k)}
    return float(pi[k] * token_scores(model, i)[1][0] + pi[i] * token_scores(model, k)[1][0])


@torch.no_grad()
def printed_71(model: Model, token: int, texts: Texts, labels: Sequence[int]) -> float:
    """da_e/dτ of additive attention with tanh(x) ≈ x."""
    assert model.Ma is not None
    e, scale = model.embedding[token], model.scale
    mv = model.Ma.T @ model.V
    total = 0.0
    for o in occurrences(model, texts, labels):
        surplus = float((o.s_word - o.s)[0])
        if o.token == token:
            total += o.y_beta * o.alpha * float(mv @ mv / scale**2 * surplus + model.W[0] @ mv / scale)
        inner = float(e @ o.e * (model.V @ model.V) + (model.Ma @ e) @ (model.Ma @ o.e))
        total += o.y_beta * o.alpha * surplus * inner / scale**2
    return total / len(texts)


@torch.no_grad()
def printed_82(model: Model, token: int, texts: Texts, labels: Sequence[int], *, corrected: bool) -> Tensor:
    """ds_e/dτ for K classes; α_j is missing in print."""
    m, e = len(texts), model.embedding[token]
    total = torch.zeros(len(model.W), dtype=torch.float64)
    for o in occurrences(model, texts, labels):
        if o.token == token:
            weight = o.alpha if corrected else 1.0
            total -= weight * (model.W @ model.V) * ((o.s_word - o.s) @ o.p_hat) / (m * model.scale)
            total -= weight * (model.W @ model.W.T @ o.p_hat) / m
        total -= o.p_hat * (o.alpha * o.h @ e) / m
    return total


@torch.no_grad()
def printed_83(model: Model, token: int, texts: Texts, labels: Sequence[int], *, corrected: bool) -> float:
    """da_e/dτ for K classes; in print the first term has the wrong sign and 1/λ for 1/λ²."""
    m, e, scale = len(texts), model.embedding[token], model.scale
    total = 0.0
    for o in occurrences(model, texts, labels):
        first = o.alpha * float(e @ o.e * ((o.s_word - o.s) @ o.p_hat))
        total += -first / (m * scale**2) if corrected else first / (m * scale)
        if o.token == token:
            norm = float(model.V @ model.V)
            total -= o.alpha * float(o.p_hat @ (o.s_word - o.s)) * norm / (m * scale**2)
            total -= o.alpha * float(o.p_hat @ (model.W @ model.V)) / (m * scale)
    return total
