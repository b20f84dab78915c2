"""What training minimises, and how good a model is on a split."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from heedful.models.classifier import Classifier, Output
from heedful.text.corpus import Split
from heedful.text.ragged import Batch, in_order
from heedful.traces import Trace

UNITS_AT_ONCE = 100_000


Objective = Callable[[Classifier, Batch, Output], Float[Tensor, ""]]
"""The loss of one batch, to be differentiated.

`output.units.attention_weights` and `.attention_scores` are as differentiable as `output.logits`, and `batch.instances`
says which documents of the training split the batch holds, for targets of their own.
"""


def cross_entropy(_model: Classifier, batch: Batch, output: Output) -> Float[Tensor, ""]:
    """−log p of the label, the mean over the batch; of two classes log(1 + exp(−y s)) (Sun & Lu 2020)."""
    return F.cross_entropy(output.logits, batch.labels)


def alignment_penalty(model: Classifier, strength: float) -> Float[Tensor, ""]:
    """c·Σ|VᵀW|, which keeps V and W at right angles (Sun & Lu 2020, section 5)."""
    return strength * model.alignment().abs().sum()


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Mean loss and accuracy over a split, without dropout."""

    loss: float
    accuracy: float


@torch.no_grad()
def evaluate(model: Classifier, split: Split, weights: Trace | None = None) -> Quality:
    """Cross-entropy and accuracy of the model as it is, in its own precision."""
    loss = right = 0.0
    for rows in in_order(split.lengths, UNITS_AT_ONCE):
        batch = split.batch(rows, sentences=model.hierarchical).to(model.readout_weight.device)
        logits = model(batch, weights=weights).logits
        loss += float(F.cross_entropy(logits, batch.labels, reduction="sum"))
        right += float((logits.argmax(1) == batch.labels).sum())
    return Quality(loss=loss / len(split), accuracy=right / len(split))
