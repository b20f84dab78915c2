"""Progress on stderr, as observers of events: of a training, of a sweep, of an audit, and of what is counted."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta

from rich import progress
from rich.console import Console
from rich.markup import escape

from heedful.report.terminal import printable
from heedful.sweep.engines import Ended, Started
from heedful.sweep.loop import Measuring, Planned, SweepEvent, Waiting
from heedful.training.events import EpochDone, Event, TextsRead


def _counted(*columns: progress.ProgressColumn, console: Console, disable: bool = False) -> progress.Progress:
    """A bar with how many of how many are done, and further columns."""
    first = progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn()
    return progress.Progress(*first, *columns, console=console, disable=disable)


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """Shows epochs done, the dev accuracy of the best of them and time left once a training runs, each training in a
    line of its own, such as that of a run's base before that of the run; use it as a context."""

    hears_steps = False

    def __init__(self, epochs: int, *, title: str = "training") -> None:
        accuracy = progress.TextColumn("dev accuracy {task.fields[accuracy]}")
        self._bar = _counted(accuracy, progress.TimeRemainingColumn(), console=Console(file=sys.stderr))
        self._title, self._epochs = escape(title), epochs
        self._task: progress.TaskID | None = None
        self._reading: dict[str, progress.TaskID] = {}

    def __call__(self, event: Event) -> None:
        self._bar.start()  # not before: a run that is already there shows no bar
        if isinstance(event, TextsRead):
            self._show_reading(event)
            return
        if self._task is None:
            self._task = self._bar.add_task(self._title, total=self._epochs, accuracy="–")
        if isinstance(event, EpochDone):
            self._bar.update(self._task, total=event.epochs, completed=event.epoch)
            if event.best:  # this epoch is kept, unless a later one is better
                accuracy = f"{event.row['dev_accuracy']:.3f} (epoch {event.epoch})"
                self._bar.update(self._task, accuracy=accuracy)
            self._task = None if event.last else self._task

    def _show_reading(self, event: TextsRead) -> None:
        if event.split not in self._reading:
            title = f"reading {escape(event.split)}"
            self._reading[event.split] = self._bar.add_task(title, total=event.total, accuracy="–")
        self._bar.update(self._reading[event.split], completed=event.done)

    def __exit__(self, *_error: object) -> None:
        self._bar.stop()


class SweepProgress:
    """Runs done, running, failed, and the time left: a bar on a terminal, lines elsewhere; use it as a context."""

    def __init__(self, title: str) -> None:
        self._console = Console(file=sys.stderr)
        state, quiet = progress.TextColumn("{task.fields[state]}"), not self._console.is_terminal
        self._bar = _counted(state, progress.TimeElapsedColumn(), console=self._console, disable=quiet)
        self._title = title
        self._task = self._bar.add_task(title, total=None, state="reading corpora")
        self._plan: Planned | None = None
        self._begun = time.monotonic()
        self._done = self._failed = self._running = 0

    def __call__(self, event: SweepEvent) -> None:
        match event:
            case Measuring():
                state = f"{event.what}: {event.done} of {event.total} runs"
                self._show(event.total, event.done, state, printed=True)
                return
            case Planned():
                self._plan, self._done, self._begun = event, event.found, time.monotonic()
            case Started():
                self._running += 1
            case Waiting():
                self._say(f"{event.runs} runs are being computed by another process; waiting for them.")
            case Ended():
                self._count(event)
        if self._plan is not None:
            printed = isinstance(event, Planned | Ended)
            self._show(self._plan.total, self._done + self._failed, self._state(self._plan), printed=printed)

    def _count(self, event: Ended) -> None:
        self._running = max(0, self._running - 1)
        self._done += event.outcome.status == "done"
        if event.outcome.status == "failed":
            self._failed += 1
            self._say(f"a run failed: {event.outcome.message}")

    def _state(self, plan: Planned) -> str:
        """Where the sweep stands, in words; the time left by the runs of this sweep, as soon as there are some."""
        ended = self._done + self._failed
        left = plan.seconds
        if ended > plan.found:
            left = (time.monotonic() - self._begun) / (ended - plan.found) * (plan.total - ended)
        known = f", about {timedelta(seconds=round(left))} left" if left is not None else ""
        return f"{self._done} of {plan.total} runs done, {self._running} running, {self._failed} failed{known}"

    def _show(self, total: int, completed: int, state: str, *, printed: bool) -> None:
        self._bar.update(self._task, total=total, completed=completed, state=state)
        if printed and not self._console.is_terminal:
            self._say(state)

    def _say(self, words: str) -> None:
        self._console.print(f"{self._title}: {words}", highlight=False, markup=False, soft_wrap=True)

    def __enter__(self) -> "SweepProgress":
        self._bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._bar.stop()


class AuditProgress(ExitStack):
    """Of trainings and, by `watch`, of a sweep over λ, one bar at a time; use it as a context."""

    hears_steps = False

    def __init__(self, epochs: int, *, name: str) -> None:
        super().__init__()
        self._epochs = epochs
        self._title = f"training on {printable(name)}"
        self._shown: ProgressBar | SweepProgress | None = None

    def __call__(self, event: Event) -> None:
        if not isinstance(self._shown, ProgressBar):
            self.close()  # two bars at once would write over each other
            self._shown = self.enter_context(ProgressBar(self._epochs, title=self._title))
        self._shown(event)

    def watch(self, event: SweepEvent) -> None:
        if not isinstance(self._shown, SweepProgress):
            self.close()
            self._shown = self.enter_context(SweepProgress("trying other λ"))
            self._title = "trying another λ"  # what an audit trains here after its sweep
        self._shown(event)


@contextmanager
def counting(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told how many of how many are done."""
    with progress.Progress(console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def counted_stages() -> Iterator[Callable[[str, int, int], None]]:
    """The same, of one who says what is being done and how far it is."""
    with stages() as watch:
        yield lambda what, done, total: watch(Measuring(what=what, done=done, total=total))


@contextmanager
def stages() -> Iterator[Callable[[SweepEvent], None]]:
    """One bar for what is being done; where nobody looks at a terminal a line for each thing."""
    console = Console(file=sys.stderr)
    with progress.Progress(console=console, disable=not console.is_terminal) as bar:
        task, last = bar.add_task("", total=None), ""

        def watch(event: SweepEvent) -> None:
            nonlocal last
            if not isinstance(event, Measuring):
                return
            bar.update(task, description=escape(event.what), completed=event.done, total=event.total or None)
            if event.what != last and not console.is_terminal:
                console.print(event.what, highlight=False, markup=False, soft_wrap=True)
            last = event.what

        yield watch
