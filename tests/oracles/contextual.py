"""A frozen transformer with an attention head, read word by word: library → mean of pieces → attention → readout."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def word_vectors(model: Any, tokenizer: Any, layer: int, text: str, spans: Sequence[tuple[int, int]]) -> list[Tensor]:
    """The mean of the vectors of the pieces that share a letter with each word, in half precision; text read alone."""
    told = tokenizer(text, return_offsets_mapping=True)
    with torch.no_grad():
        hidden = model(input_ids=torch.tensor([told["input_ids"]]), output_hidden_states=True).hidden_states[layer][0]
    vectors = []
    for begin, end in spans:
        own = [
            hidden[place]
            for place, (start, stop) in enumerate(told["offset_mapping"])
            if stop > start and start < end and stop > begin
        ]
        mean = torch.stack(own).mean(0) if own else torch.zeros(hidden.shape[1])
        vectors.append(mean.half().double())
    return vectors


def logits(vectors: Sequence[Tensor], parameters: dict[str, Tensor], scale: float) -> list[float]:
    """b + Wᵀ Σ_j α_j h_j of one text; two classes have one output s and the logits (0, s)."""
    context = parameters["attention.context_vector"].double()
    scores = []
    for h in vectors:
        if "attention.projection" in parameters:
            h = torch.tanh(parameters["attention.projection"].double() @ h)
        scores.append(float(h @ context) / scale)
    total = sum(2.718281828459045**score for score in scores)
    pooled = torch.zeros_like(vectors[0])
    for h, score in zip(vectors, scores, strict=True):
        pooled = pooled + 2.718281828459045**score / total * h
    outputs = (parameters["readout_weight"].double() @ pooled).tolist()
    if "readout_bias" in parameters:
        outputs = [one + float(bias) for one, bias in zip(outputs, parameters["readout_bias"], strict=True)]
    return [0.0, *outputs] if len(outputs) == 1 else outputs
