"""What the training loop tells: everything else (progress, recording, stopping a clock) is an observer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pandas as pd

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
    """One pass over the training split was made; `row` is the new row of the history, `last` whether none follows."""

    epoch: int
    epochs: int
    row: Mapping[str, int | float]
    best: bool
    model: Classifier
    last: bool = False


@dataclass(frozen=True, kw_only=True)
class TextsRead:
    """A frozen transformer has read so many texts of a split, before the training that takes what it made of them."""

    split: str
    done: int
    total: int
    epoch: int = 0


Event = StepDone | EpochDone | TextsRead
Observer = Callable[[Event], None]
"""Told of every event; one that says `hears_steps = False` only of epochs, and training need not stop at every step."""


def hears_steps(observer: Observer) -> bool:
    """Whether an observer is told of single steps, as those are who say nothing else."""
    return bool(getattr(observer, "hears_steps", True))


@runtime_checkable
class Recorder(Protocol):
    """An observer that keeps tables of what it sees. Checkpoints carry them, so that a training that was interrupted
    ends with the same tables."""

    def __call__(self, event: Event) -> None: ...

    def tables(self) -> dict[str, pd.DataFrame]:
        """All that was recorded so far."""

    def restore(self, tables: Mapping[str, pd.DataFrame]) -> None:
        """Go on from what `tables` gave."""
