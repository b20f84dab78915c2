"""Importances by the book: autograd where a gradient is meant, loops elsewhere."""

from typing import Any

import torch
from torch import Tensor


def attention_gradient(weights: Tensor, polarity: Tensor, bias: Tensor) -> Tensor:
    """∂d/∂α of d = the largest softmax probability, with α free, by autograd in float64."""
    free = weights.detach().double().clone().requires_grad_()
    d = torch.softmax(bias.double() + free @ polarity.double(), 0).max()
    (gradient,) = torch.autograd.grad(d, free)
    return gradient


def polarity_importance(polarity: Any, chosen: int) -> list[float]:
    classes = range(len(polarity[0]))
    return [z[chosen] - sum(z[k] for k in classes if k != chosen) / (len(z) - 1) for z in polarity]


def margin_importance(weights: Any, polarity: Any, bias: Any) -> list[float]:
    logits = [b + sum(w * z[k] for w, z in zip(weights, polarity, strict=True)) for k, b in enumerate(bias)]
    first, second = sorted(range(len(logits)), key=lambda k: -logits[k])[:2]
    return [w * (z[first] - z[second] + bias[first] - bias[second]) for w, z in zip(weights, polarity, strict=True)]
