"""What the training loop tells: everything else (progress, recording, stopping a clock) is an observer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from heedful.models.classifier import Classifier
from heedful.text.ragged import Batch


@dataclass(frozen=True, kw_only=True)
class StepDone:
    """One update was made."""

    epoch: int
    step: int
    loss: float
    batch: Batch
    model: Classifier


@dataclass(frozen=True, kw_only=True)
class EpochDone:
    """One pass over the training split was made; `row` is the new row of the history."""

    epoch: int
    epochs: int
    row: Mapping[str, int | float]
    best: bool
    model: Classifier


Event = StepDone | EpochDone
Observer = Callable[[Event], None]
