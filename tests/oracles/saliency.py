"""The probability of a class as a plain function of the vectors that one document's final encoder reads.

Loops over units and formulas only, in torch so that autograd can be asked; nothing of this is shared with the package.
Parameters come under the names of the model's state.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from tests.oracles.classifiers import convolve, read
from tests.oracles.normalisers import by_bisection

Parameters = Mapping[str, Tensor]


def literal_probabilities(
    parameters: Parameters,
    vectors: Tensor,
    *,
    encoder: str,
    attention: str,
    scale: float = 1.0,
    held: bool = False,
    uniform: bool = False,
    p: float = 1.0,
) -> Tensor:
    """softmax(W Σ α_j h_j + b); with `held` the weights are numbers, with `uniform` they are 1/n.

    With p above one they are the p-entmax of the scores, and numbers too.
    """
    hidden = _encode(list(vectors), parameters, encoder)
    scores = [_score(h, parameters, attention) / scale for h in hidden]
    strengths = [torch.exp(score) for score in scores]
    weights = [strength / sum(strengths) for strength in strengths]
    if p > 1:
        weights = [torch.tensor(w, dtype=torch.float64) for w in by_bisection([score.item() for score in scores], p)]
    if held:
        weights = [torch.tensor(weight.item(), dtype=torch.float64) for weight in weights]
    if uniform:
        weights = [torch.tensor(1 / len(hidden), dtype=torch.float64)] * len(hidden)
    pooled = torch.stack([weight * h for weight, h in zip(weights, hidden, strict=True)]).sum(0)
    outputs = parameters["readout_weight"] @ pooled
    if "readout_bias" in parameters:
        outputs = outputs + parameters["readout_bias"]
    logits = torch.cat([outputs.new_zeros(1), outputs]) if len(outputs) == 1 else outputs
    return torch.exp(logits) / torch.exp(logits).sum()


def _score(h: Tensor, parameters: Parameters, attention: str) -> Tensor:
    if attention == "dot":
        return h @ parameters["attention.context_vector"]
    seen = parameters["attention.projection"] @ h
    if "attention.bias" in parameters:
        seen = seen + parameters["attention.bias"]
    return torch.tanh(seen) @ parameters["attention.context_vector"]


def _encode(vectors: list[Tensor], parameters: Parameters, encoder: str) -> list[Tensor]:
    if encoder == "none":
        return vectors
    if encoder == "affine":
        return [parameters["encoder.projection"] @ e for e in vectors]
    if encoder == "conv":
        return convolve(vectors, parameters, "encoder.convolutions")
    cell = read if encoder == "gru" else _remember
    forward = cell(vectors, parameters, "encoder.recurrent", "l0")
    backward = cell(vectors[::-1], parameters, "encoder.recurrent", "l0_reverse")[::-1]
    return [torch.cat(both) for both in zip(forward, backward, strict=True)]


def _remember(vectors: list[Tensor], parameters: Parameters, name: str, direction: str) -> list[Tensor]:
    """Long short-term memory: c ← σ(f) c + σ(i) tanh(g), h = σ(o) tanh(c), (i, f, g, o) = W x + U h + biases."""
    w, u, b, v = (parameters[f"{name}.{part}_{direction}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    state = memory = u.new_zeros(u.shape[1])
    found = []
    for x in vectors:
        enter, forget, new, leave = (w @ x + b + u @ state + v).chunk(4)
        memory = memory / (1 + torch.exp(-forget)) + torch.tanh(new) / (1 + torch.exp(-enter))
        state = torch.tanh(memory) / (1 + torch.exp(-leave))
        found.append(state)
    return found


def literal_gradient(parameters: Parameters, vectors: Tensor, chosen: int, **kind: object) -> Tensor:
    """∂p_y/∂x of one document."""
    x = vectors.clone().requires_grad_()
    literal_probabilities(parameters, x, **kind)[chosen].backward()  # type: ignore[arg-type]
    assert x.grad is not None
    return x.grad
