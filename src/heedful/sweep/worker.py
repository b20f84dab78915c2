"""A job, its outcome, and the worker that does one after another.

Jobs and outcomes are plain values that cross processes and machines as JSON. As a process of its own a worker reads
jobs from stdin and answers on stdout. It lives no longer than the process that started it: when stdin ends, whatever
it is doing, it is gone.
"""

import functools
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from heedful.config import RunSettings, Settings
from heedful.errors import HeedfulError, StoreBusy
from heedful.store import CORPUS, Store

if TYPE_CHECKING:
    from heedful.text.corpus import Corpus

CORPORA_AT_ONCE = 4
"""Mapped corpora that a worker keeps open; each costs its vocabulary, not its text."""

ENVIRONMENT = ("HEEDFUL_DATA",)
"""What decides where named corpora lie; a worker on another machine has its own environment."""


def _environment() -> dict[str, str]:
    return {name: str(Path(os.environ[name]).absolute()) for name in ENVIRONMENT if name in os.environ}


class Job(Settings):
    """One thing to do: cache the corpus of some settings, or compute their run."""

    action: Literal["corpus", "run"]
    settings: RunSettings
    store: str
    digest: str = ""
    corpus: str = ""  # the key of the cached corpus, for a run
    folder: str = Field(default_factory=os.getcwd)
    environment: dict[str, str] = Field(default_factory=_environment)


class Outcome(Settings):
    """How a job ended: done, busy (another process computes this very run), or failed, with its error."""

    status: Literal["done", "busy", "failed"]
    kind: str = ""  # the class of the error
    message: str = ""
    details: str = ""  # where the error came from, for its maker
    facts: dict[str, Any] | None = None  # of a corpus that was cached
    found: bool = False  # whether another process had finished the run in the meantime
    worker: str = ""  # the process or node that did it


def perform(written: str) -> str:
    """Do a job, and say how it ended, both as JSON; whatever goes wrong is an outcome, never an exception."""
    try:
        job = Job.model_validate_json(written)
        os.environ.update(job.environment)  # see named corpora and relative paths as the process that made the job
        if Path(job.folder).is_dir():
            os.chdir(job.folder)
        outcome = ACTIONS[job.action](job)
    except StoreBusy as error:
        outcome = Outcome(status="busy", kind="StoreBusy", message=str(error))
    except Exception as error:
        kind = type(error).__name__
        said = (str(error) if isinstance(error, HeedfulError) else f"{kind}: {error}", traceback.format_exc())
        message, details = (text.encode(errors="replace").decode() for text in said)  # JSON has no halves of characters
        outcome = Outcome(status="failed", kind=kind, message=message, details=details)
    return outcome.model_dump_json()


def _cache_corpus(job: Job) -> Outcome:
    from heedful.text.datasets import cache_corpus

    return Outcome(status="done", facts=cache_corpus(job.settings.data, Store(job.store)).model_dump())


def _compute_run(job: Job) -> Outcome:
    from heedful.pipeline import run

    store = Store(job.store)
    done = run(job.settings, store, corpus=_corpus(store.place(CORPUS, job.corpus)), wait=False)
    return Outcome(status="done", found=not done.new)


@functools.lru_cache(maxsize=CORPORA_AT_ONCE)
def _corpus(place: Path) -> "Corpus":
    """A cached corpus, opened once per process: its content never changes under its key."""
    from heedful.text.datasets import open_corpus

    return open_corpus(place)


ACTIONS: Mapping[str, Callable[[Job], Outcome]] = {"corpus": _cache_corpus, "run": _compute_run}


def main() -> None:
    """Serve jobs until stdin ends. One line of JSON each way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started us; it will end us
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints does not mix with the answers
    jobs: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    _warm_up()
    while True:
        answer = perform(jobs.get())
        with suppress(BrokenPipeError):
            print(answer, file=answers, flush=True)


def _listen(jobs: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        jobs.put(line)
    os._exit(0)  # not sys.exit: the main thread may be training


def _warm_up() -> None:
    """Load what is heavy while the first job is still being thought about; torch loads half of itself only when the
    first optimiser is made."""
    import torch

    import heedful.pipeline  # noqa: F401

    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)])


if __name__ == "__main__":
    main()
