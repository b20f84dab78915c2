"""From attention scores to weights that are not negative and sum to one in each document.

With s_i = α_i^(2−p) where α_i > 0 and zero elsewhere, the Jacobian of the p-entmax is diag(s) − s sᵀ / Σ s: softmax is
p = 1 (s = α), 1.5-entmax p = 3/2 (s = √α), sparsemax p = 2 (s = 1 on the support). The last two give most units a
weight of exactly zero (Martins & Astudillo 2016; Peters et al. 2019; on attention as explanation Meister et al. 2021).
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, no_type_check

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.compiled import compiled
from heedful.text.ragged import segment_softmax, segment_sum, segments_of

Normaliser = Callable[[Float[Tensor, " units"], Int[Tensor, " bounds"]], Float[Tensor, " units"]]


def softmax(scores: Float[Tensor, " units"], offsets: Int[Tensor, " bounds"]) -> Float[Tensor, " units"]:
    """α_i = exp(a_i) / Σ exp(a)."""
    return segment_softmax(scores, offsets)


def sparsemax(scores: Float[Tensor, " units"], offsets: Int[Tensor, " bounds"]) -> Float[Tensor, " units"]:
    """α_i = max(0, a_i − τ), with τ so that they sum to one: the nearest point of the simplex to a.

    Martins & Astudillo 2016, algorithm 1.
    """
    weights: Tensor = _Entmax.apply(scores, offsets, 2.0)  # type: ignore[no-untyped-call]
    return weights


def entmax15(scores: Float[Tensor, " units"], offsets: Int[Tensor, " bounds"]) -> Float[Tensor, " units"]:
    """α_i = max(0, a_i/2 − τ)², with τ so that they sum to one: between softmax and sparsemax.

    Peters, Niculae & Martins 2019, algorithm 2.
    """
    weights: Tensor = _Entmax.apply(scores, offsets, 1.5)  # type: ignore[no-untyped-call]
    return weights


class _Entmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, offsets: Tensor, p: float) -> Tensor:
        weights = np.zeros(len(scores))
        threshold = threshold_squares if p == 1.5 else threshold_differences
        threshold(scores.detach().cpu().double().contiguous().numpy(), offsets.cpu().numpy(), weights)
        result = torch.from_numpy(weights).to(scores)
        ctx.save_for_backward(result, offsets)
        ctx.p = p
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        weights, offsets = ctx.saved_tensors
        s = weights.sqrt() if ctx.p == 1.5 else (weights > 0).to(weights)
        mean = segment_sum(s * gradients[0], offsets) / segment_sum(s, offsets)
        return s * (gradients[0] - mean[segments_of(offsets)]), None, None


@compiled
@no_type_check
def threshold_differences(scores, offsets, weights):
    """Sparsemax of each document. Of the scores in falling order the k-th belongs to the support while
    1 + k a_(k) > Σ_{j≤k} a_(j), and τ = (Σ_{support} a − 1) / k; all relative to the largest."""
    for t in range(len(offsets) - 1):
        begin, end = offsets[t], offsets[t + 1]
        if begin == end:
            continue
        falling = np.sort(scores[begin:end])[::-1]
        largest, total, tau = falling[0], 0.0, -1.0
        for k in range(len(falling)):
            a = falling[k] - largest
            if 1 + (k + 1) * a <= total + a:
                break
            total += a
            tau = (total - 1) / (k + 1)
        for j in range(begin, end):
            weights[j] = max(0.0, scores[j] - largest - tau)


@compiled
@no_type_check
def threshold_squares(scores, offsets, weights):
    """1.5-entmax of each document. With x = a/2 relative to the largest, in falling order, M and V the mean and the
    variance of the first k, τ_k = M − √(max(0, 1/k − V)); the support are the k with τ_k ≤ x_(k), the last gives τ.

    Mean and squared deviations are updated from unit to unit (Welford 1962), so that nothing cancels.
    """
    for t in range(len(offsets) - 1):
        begin, end = offsets[t], offsets[t + 1]
        if begin == end:
            continue
        falling = np.sort(scores[begin:end])[::-1]
        largest, mean, squares, tau = falling[0], 0.0, 0.0, -1.0
        for k in range(len(falling)):
            x = (falling[k] - largest) / 2
            if x < -1.0:
                break
            change = x - mean
            moved = mean + change / (k + 1)
            spread = squares + change * (x - moved)
            candidate = moved - math.sqrt(max(0.0, (1 - spread) / (k + 1)))
            if candidate > x:
                break
            mean, squares, tau = moved, spread, candidate
        for j in range(begin, end):
            weights[j] = max(0.0, (scores[j] - largest) / 2 - tau) ** 2


NORMALISERS: Mapping[str, Normaliser] = {"softmax": softmax, "sparsemax": sparsemax, "entmax15": entmax15}
