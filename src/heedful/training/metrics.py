"""How good a model is on a split."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from heedful.models.classifier import Classifier
from heedful.text.corpus import Split
from heedful.text.ragged import in_order

UNITS_AT_ONCE = 100_000


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Mean loss and accuracy over a split, without dropout."""

    loss: float
    accuracy: float


@torch.no_grad()
def evaluate(model: Classifier, split: Split) -> Quality:
    """Loss and accuracy of the model as it is, in its own precision."""
    device = model.readout_weight.device
    loss = right = 0.0
    for rows in in_order(split.lengths, UNITS_AT_ONCE):
        batch = split.batch(rows, sentences=model.hierarchical).to(device)
        logits = model(batch)
        loss += float(F.cross_entropy(logits, batch.labels, reduction="sum"))
        right += float((logits.argmax(1) == batch.labels).sum())
    return Quality(loss=loss / len(split), accuracy=right / len(split))
