"""Progress on stderr: of an audit (its training, then the sweep over λ, one bar at a time), and of what is counted."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import Progress

from heedful.studies.words import printable
from heedful.sweep.jobs import SweepEvent
from heedful.sweep.progress import SweepProgress
from heedful.training.events import Event
from heedful.training.progress import ProgressBar


class AuditProgress:
    """An observer of trainings and, by `watch`, of a sweep; use it as a context."""

    def __init__(self, epochs: int, *, name: str) -> None:
        self._epochs = epochs
        self._title = f"training on {printable(name)}"
        self._shown: ProgressBar | SweepProgress | None = None

    def __call__(self, event: Event) -> None:
        if not isinstance(self._shown, ProgressBar):
            self._replace(ProgressBar(self._epochs, title=self._title))
        assert isinstance(self._shown, ProgressBar)
        self._shown(event)

    def watch(self, event: SweepEvent) -> None:
        if not isinstance(self._shown, SweepProgress):
            self._replace(SweepProgress("trying other λ"))
        assert isinstance(self._shown, SweepProgress)
        self._shown(event)

    def _replace(self, new: ProgressBar | SweepProgress | None) -> None:
        """Two bars at once would write over each other."""
        if self._shown is not None:
            self._shown.__exit__(None, None, None)
        self._shown = new.__enter__() if new else None
        if isinstance(new, SweepProgress):
            self._title = "trying another λ"  # what an audit trains here after its sweep

    def __enter__(self) -> "AuditProgress":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._replace(None)


@contextmanager
def counting(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told how many of how many are done."""
    with Progress(console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
