"""A progress bar on stderr, as an observer of the training loop."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from heedful.training.events import EpochDone, Event


class ProgressBar:
    """Shows epochs done, dev accuracy and time left while a training runs; use it as a context."""

    def __init__(self, epochs: int, *, title: str = "training") -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("dev accuracy {task.fields[accuracy]}"),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
        )
        self._task = self._bar.add_task(title, total=epochs, accuracy="–")

    def __call__(self, event: Event) -> None:
        if isinstance(event, EpochDone):
            self._bar.update(self._task, completed=event.epoch, accuracy=f"{event.row['dev_accuracy']:.3f}")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._bar.stop()
