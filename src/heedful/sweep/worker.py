"""A worker: does one job after another. As a process of its own it reads jobs from stdin and answers on stdout.

It lives no longer than the process that started it: when stdin ends, whatever it is doing, it is gone.
"""

import functools
import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import HeedfulError, StoreBusy
from heedful.store import Store
from heedful.sweep.jobs import Job, Outcome

if TYPE_CHECKING:
    from heedful.text.corpus import Corpus

CORPORA_AT_ONCE = 4
"""Mapped corpora that a worker keeps open; each costs its vocabulary, not its text."""


def perform(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Do a job; whatever goes wrong is an outcome, never an exception."""
    try:
        job = Job.of(payload)
        _settle(job)
        outcome = ACTIONS[job.action](job)
    except StoreBusy as error:
        outcome = Outcome(status="busy", kind="StoreBusy", message=str(error))
    except Exception as error:
        message = str(error) if isinstance(error, HeedfulError) else f"{type(error).__name__}: {error}"
        outcome = Outcome(status="failed", kind=type(error).__name__, message=message, details=traceback.format_exc())
    return outcome.payload()


def _settle(job: Job) -> None:
    """See the data as the process that made the job sees them: relative paths, and the folder of named corpora."""
    os.environ.update(job.environment)
    if Path(job.folder).is_dir() and Path.cwd() != Path(job.folder):
        os.chdir(job.folder)


def _cache_corpus(job: Job) -> Outcome:
    from heedful.text.cache import cache_corpus

    return Outcome(status="done", facts=asdict(cache_corpus(job.settings.data, Store(job.store).corpora)))


def _compute_run(job: Job) -> Outcome:
    from heedful.pipeline import run

    store = Store(job.store)
    done = run(job.settings, store, corpus=_corpus(store.corpora / job.corpus), wait=False)
    return Outcome(status="done", found=not done.new)


@functools.lru_cache(maxsize=CORPORA_AT_ONCE)
def _corpus(place: Path) -> "Corpus":
    """A cached corpus, opened once per process: its content never changes under its key."""
    from heedful.text.cache import open_corpus

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
        answer = perform(json.loads(jobs.get()))
        with suppress(BrokenPipeError):
            print(json.dumps(answer), file=answers, flush=True)


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
