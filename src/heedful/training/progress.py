"""A progress bar on stderr, as an observer of the training loop."""

import sys
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from heedful.training.events import EpochDone, Event


class ProgressBar:
    """Shows epochs done, dev accuracy and time left once a training runs; use it as a context."""

    def __init__(self, epochs: int, *, title: str = "training") -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("dev accuracy {task.fields[accuracy]}"),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
        )
        self._task = self._bar.add_task(escape(title), total=epochs, accuracy="–")

    def __call__(self, event: Event) -> None:
        self._bar.start()  # not before: a run that is already there shows no bar
        if isinstance(event, EpochDone):
            self._bar.update(self._task, completed=event.epoch, accuracy=f"{event.row['dev_accuracy']:.3f}")

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._bar.stop()
