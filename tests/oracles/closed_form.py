"""Training step by step as it is written: one document and one word at a time, autograd in float64, torch's Adagrad;
and the random masks in whole numbers of Python."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

ALL_BITS = 2**64 - 1


def xoshiro(state: list[int]) -> Iterator[int]:
    """xoshiro256++ from its four words of state (Blackman & Vigna 2021)."""
    s0, s1, s2, s3 = state
    while True:
        yield (_rotated((s0 + s3) & ALL_BITS, 23) + s0) & ALL_BITS
        t = (s1 << 17) & ALL_BITS
        s2, s3 = s2 ^ s0, s3 ^ s1
        s1, s0 = s1 ^ s2, s0 ^ s3
        s2, s3 = s2 ^ t, _rotated(s3, 45)


def _rotated(word: int, count: int) -> int:
    return ((word << count) | (word >> (64 - count))) & ALL_BITS


def literal_mask(words: Iterator[int], size: int, rate: float) -> Tensor:
    """One bit an entry of a half, a byte of other multiples of 1/256, else two bytes; words are begun anew."""
    if rate == 0:
        return torch.ones(size, dtype=torch.float64)
    bits = 1 if rate == 0.5 else 8 if (rate * 256).is_integer() else 16
    dropped = round(rate * 2**bits)
    each = 64 // bits
    mask: list[float] = []
    while len(mask) < size:
        word = next(words)
        numbers = [(word >> (bits * place)) % 2**bits for place in range(each)]
        mask += [0.0 if number < dropped else 2**bits / (2**bits - dropped) for number in numbers]
    return torch.tensor(mask[:size], dtype=torch.float64)


def literal_training(
    start: Mapping[str, Tensor],
    documents: list[list[int]],
    labels: list[int],
    order: list[int],
    state: list[int],
    settings: Mapping[str, Any],
) -> tuple[dict[str, Tensor], list[float]]:
    """The parameters after one epoch in this order, and the loss of each batch."""
    p = {name: tensor.detach().clone().requires_grad_() for name, tensor in start.items()}
    decayed = [one for name, one in p.items() if name.endswith("projection")]
    others = [one for name, one in p.items() if not name.endswith("projection")]
    groups = [{"params": others}, {"params": decayed, "weight_decay": settings["weight_decay"]}]
    optimizer = torch.optim.Adagrad([group for group in groups if group["params"]])
    words, losses = xoshiro(state), []
    for step, begin in enumerate(range(0, len(order), settings["batch_size"])):
        rows = order[begin : begin + settings["batch_size"]]
        logits = _logits(p, [documents[row] for row in rows], words, settings)
        loss = F.cross_entropy(logits, torch.tensor([labels[row] for row in rows]))
        for group in optimizer.param_groups:
            group["lr"] = settings["learning_rate"] / (1 + settings["learning_rate_decay"] * step)
        optimizer.zero_grad()
        (loss + settings["alignment_penalty"] * _alignment(p, settings)).backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return {name: one.detach() for name, one in p.items()}, losses


def _logits(
    p: dict[str, Tensor], documents: list[list[int]], words: Iterator[int], settings: Mapping[str, Any]
) -> Tensor:
    distinct = list(dict.fromkeys(token for document in documents for token in document))
    masks = {token: literal_mask(words, p["embedding"].shape[1], settings["dropout"]) for token in distinct}
    logits = []
    for document in documents:
        hidden = [_encoded(p, p["embedding"][token] * masks[token]) for token in document]
        scores = torch.stack([_score(p, h) for h in hidden]) / settings["score_scale"]
        pooled = (scores.softmax(0)[:, None] * torch.stack(hidden)).sum(0)
        pooled = pooled * literal_mask(words, len(pooled), settings["document_dropout"])
        outputs = p["readout_weight"] @ pooled
        if "readout_bias" in p:
            outputs = outputs + p["readout_bias"]
        logits.append(torch.cat([torch.zeros_like(outputs), outputs]) if len(outputs) == 1 else outputs)
    return torch.stack(logits)


def _encoded(p: dict[str, Tensor], vector: Tensor) -> Tensor:
    return p["encoder.projection"] @ vector if "encoder.projection" in p else vector


def _score(p: dict[str, Tensor], hidden: Tensor) -> Tensor:
    context = p["attention.context_vector"]
    if "attention.projection" not in p:
        return hidden @ context
    before = p["attention.projection"] @ hidden
    return torch.tanh(before + p["attention.bias"] if "attention.bias" in p else before) @ context


def _alignment(p: dict[str, Tensor], settings: Mapping[str, Any]) -> Tensor:
    """Σ_k |V'ᵀ W'_k|."""
    context = p["attention.context_vector"]
    if settings.get("context_size") is not None and "attention.projection" in p:
        context = p["attention.projection"].T @ context
    total = torch.zeros((), dtype=torch.float64)
    for readout in p["readout_weight"]:
        if "encoder.projection" in p:
            total = total + ((p["encoder.projection"].T @ readout) @ (p["encoder.projection"].T @ context)).abs()
        else:
            total = total + (readout @ context).abs()
    return total
