"""What the training loop tells: everything else (progress, recording, stopping a clock) is an observer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from heedful.models.classifier import FlatClassifier
from heedful.text.ragged import Batch


@dataclass(frozen=True, kw_only=True)
class StepDone:
    """One update was made."""

    epoch: int
    step: int
    loss: float
    batch: Batch
    model: FlatClassifier


@dataclass(frozen=True, kw_only=True)
class EpochDone:
    """One pass over the training split was made; `row` is the new row of the history."""

    epoch: int
    epochs: int
    row: Mapping[str, float]
    best: bool
    model: FlatClassifier


Event = StepDone | EpochDone
Observer = Callable[[Event], None]
