"""Live progress of a sweep on stderr, as an observer of its events: a bar on a terminal, lines elsewhere."""

import sys
import time
from datetime import timedelta
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from heedful.sweep.jobs import Ended, Measuring, Planned, Started, SweepEvent, Waiting


class SweepProgress:
    """Runs done, running, failed, and the time left; use it as a context."""

    def __init__(self, title: str) -> None:
        self._console = Console(file=sys.stderr)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._title = title
        self._task = self._bar.add_task(title, total=None, state="reading corpora")
        self._plan: Planned | None = None
        self._begun = time.monotonic()
        self._done = self._failed = self._running = 0

    def __call__(self, event: SweepEvent) -> None:
        if isinstance(event, Measuring):
            self._show_measuring(event)
            return
        if isinstance(event, Planned):
            self._plan, self._done, self._begun = event, event.found, time.monotonic()
        elif isinstance(event, Started):
            self._running += 1
        elif isinstance(event, Ended):
            self._count(event)
        self._show(event)

    def _count(self, event: Ended) -> None:
        self._running = max(0, self._running - 1)
        self._done += event.outcome.status == "done"
        self._failed += event.outcome.status == "failed"

    def _show(self, event: SweepEvent) -> None:
        if self._plan is None:
            return
        self._bar.update(self._task, total=self._plan.total, completed=self._done + self._failed, state=self.state())
        if isinstance(event, Waiting):
            self._say(f"{self._title}: {event.runs} runs are being computed by another process; waiting for them.")
        if isinstance(event, Ended) and event.outcome.status == "failed":
            self._say(f"{self._title}: a run failed: {event.outcome.message}")
        if not self._console.is_terminal and isinstance(event, Planned | Ended):
            self._say(f"{self._title}: {self.state()}")

    def _show_measuring(self, event: Measuring) -> None:
        state = f"{event.what}: {event.done} of {event.total} runs"
        self._bar.update(self._task, total=event.total, completed=event.done, state=state)
        if not self._console.is_terminal:
            self._say(f"{self._title}: {state}")

    def state(self) -> str:
        """Where the sweep stands, in words."""
        assert self._plan is not None
        left = self._seconds_left()
        known = f", about {timedelta(seconds=round(left))} left" if left is not None else ""
        counts = f"{self._done} of {self._plan.total} runs done"
        return f"{counts}, {self._running} running, {self._failed} failed{known}"

    def _seconds_left(self) -> float | None:
        """By the runs of this sweep, as soon as there are some."""
        assert self._plan is not None
        ended = self._done + self._failed - self._plan.found
        if not ended:
            return self._plan.seconds
        left = self._plan.total - self._done - self._failed
        return (time.monotonic() - self._begun) / ended * left

    def _say(self, words: str) -> None:
        self._console.print(words, highlight=False, markup=False, soft_wrap=True)

    def __enter__(self) -> "SweepProgress":
        self._bar.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._bar.stop()
