"""Jobs, and where they run: processes of this machine, or a Ray cluster. The same jobs give the same results on both.

Jobs and outcomes are plain values that cross processes and machines as JSON. An engine is a context that does `workers`
jobs at once. `run` takes jobs and yields what happens to them, in the order in which it happens; every job ends, and a
worker that dies is a failed job, never the end of the others. `resize` changes how many it does from now on.

As a process of its own this module is a worker: it reads jobs from stdin and answers on stdout. It lives no longer than
the process that started it: when stdin ends, whatever it is doing, it is gone.
"""

import functools
import importlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from heedful.config import RunSettings, Settings
from heedful.errors import ConfigError, HeedfulError, InputError, StoreBusy, UnknownName
from heedful.store import CORPUS, Store

if TYPE_CHECKING:
    from heedful.text.corpus import Corpus

RETRIES = 3  # how often Ray repeats a task whose worker or node died
LOST = frozenset(("WorkerDied", "WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ObjectLostError"))
"""How an outcome is called where not the job failed but who did it."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
CORPORA_AT_ONCE = 4  # mapped corpora that a worker keeps open; each costs its vocabulary, not its text


def _environment() -> dict[str, str]:
    """What decides where named corpora lie; a worker on another machine has its own environment."""
    return {name: str(Path(os.environ[name]).absolute()) for name in ("HEEDFUL_DATA",) if os.environ.get(name)}


class Job(Settings):
    """One thing to do: cache the corpus of some settings, compute their run, or write or erase a shard of a trace."""

    action: Literal["corpus", "run", "trace", "erase"]
    settings: RunSettings
    asked: dict[str, Any] = Field(default_factory=dict)
    """Which shard of what (`heedful.sweep.shards`)."""
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
    from heedful.text.cached import open_corpus

    return open_corpus(place)


def _trace_shard(job: Job) -> Outcome:
    from heedful.sweep.shards import write_trace_shard

    write_trace_shard(job)
    return Outcome(status="done")


def _erase_shard(job: Job) -> Outcome:
    from heedful.sweep.shards import write_erased_shard

    write_erased_shard(job)
    return Outcome(status="done")


ACTIONS: Mapping[str, Callable[[Job], Outcome]] = {
    "corpus": _cache_corpus,
    "run": _compute_run,
    "trace": _trace_shard,
    "erase": _erase_shard,
}


@dataclass(frozen=True, kw_only=True)
class Started:
    """A job was taken up by a worker."""

    job: Job


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A job came to its end; a busy one will be tried again."""

    job: Job
    outcome: Outcome


Event = Started | Ended


class LocalEngine:
    """Worker processes of this machine, one thread each; they end with this process, whatever ends it."""

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise ConfigError(f"A sweep needs at least one worker, not {workers}.")
        self.workers = workers
        self._pool: list[_Process] = []

    def __enter__(self) -> "LocalEngine":
        self._fill(self.workers)
        return self

    def __exit__(self, *_error: object) -> None:
        for process in self._pool:
            process.kill()
        self._pool.clear()

    def resize(self, workers: int) -> None:
        self.workers = workers
        for process in self._pool[workers:]:
            process.kill()
        del self._pool[workers:]

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        waiting = deque(jobs)
        while waiting or any(process.job for process in self._pool):
            self._fill(min(self.workers, len(waiting) + sum(process.job is not None for process in self._pool)))
            for process in self._pool:
                if waiting and process.job is None:
                    job = waiting.popleft()
                    process.give(job)
                    yield Started(job=job)
            ready = wait([process.answers for process in self._pool if process.job])
            for process in [process for process in self._pool if process.answers in ready]:
                job, outcome = process.take()
                if process.dead:
                    self._pool.remove(process)
                yield Ended(job=job, outcome=outcome)

    def _fill(self, count: int) -> None:
        while len(self._pool) < count:
            self._pool.append(_Process())


class _Process:
    """One worker process and the job it has in hand."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        here = str(Path(__file__).parents[2])  # workers import the very package that runs here
        search_path = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "heedful.sweep.engines"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(search_path)},
            encoding="utf-8",
        )
        self.answers: Any = self._process.stdout
        self.job: Job | None = None
        self.dead = False

    def give(self, job: Job) -> None:
        assert self._process.stdin is not None
        self.job = job
        with suppress(BrokenPipeError):  # a dead one will give no answer
            self._process.stdin.write(job.model_dump_json() + "\n")
            self._process.stdin.flush()

    def take(self) -> tuple[Job, Outcome]:
        """The answer to the job in hand; no answer is a worker that died."""
        assert self.job is not None
        job, self.job = self.job, None
        line = self.answers.readline()
        if line.endswith("\n"):
            outcome = Outcome.model_validate_json(line)
            return job, outcome.model_copy(update={"worker": f"process {self._process.pid}"})
        code = self._process.wait()
        self._errors.seek(0)
        last_words = self._errors.read().decode(errors="replace")[-2000:].strip()
        self.kill()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        message = f"The worker process died ({how}). {'Memory may have run out.' if code == -9 else last_words}".strip()
        return job, Outcome(status="failed", kind="WorkerDied", message=message, details=last_words)

    def kill(self) -> None:
        """At any moment: what a worker writes is whole or absent."""
        self.dead = True
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self.answers, self._errors):
            with suppress(BrokenPipeError):  # a job may still be on its way
                stream.close()  # type: ignore[union-attr]


class RayEngine:
    """Tasks of a Ray cluster, repeated when their node dies. The store must lie where every node sees it."""

    def __init__(self, address: str | None) -> None:
        self._ray = _import_ray()
        self._address = address
        self._ours = False
        self.workers = 1

    def __enter__(self) -> "RayEngine":
        self._ours = not self._ray.is_initialized()
        if self._ours:
            try:
                self._ray.init(address=self._address, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise InputError(f"There is no Ray cluster at '{self._address or 'auto'}': {error}") from error
        self.workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        return self

    def __exit__(self, *_error: object) -> None:
        if self._ours:
            self._ray.shutdown()

    def resize(self, workers: int) -> None:
        """Ray places tasks itself."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        repeated = functools.partial(self._ray.remote, max_retries=RETRIES, scheduling_strategy="SPREAD")
        tasks = [repeated(num_cpus=job.settings.training.threads)(_perform_on_ray) for job in jobs]
        waiting = {task.remote(job.model_dump_json()): job for task, job in zip(tasks, jobs, strict=True)}
        started = 0
        try:
            while waiting:
                while started < len(jobs) and started - (len(jobs) - len(waiting)) < self.workers:
                    yield Started(job=jobs[started])
                    started += 1
                ready, _ = self._ray.wait(list(waiting), num_returns=1)
                yield Ended(job=waiting.pop(ready[0]), outcome=self._outcome(ready[0]))
        finally:  # the sweep was stopped: nobody will ask for these
            for reference in waiting:
                self._ray.cancel(reference, force=True)

    def _outcome(self, reference: Any) -> Outcome:
        try:
            written, worker = self._ray.get(reference)
            return Outcome.model_validate_json(written).model_copy(update={"worker": worker})
        except self._ray.exceptions.RayError as error:
            return Outcome(status="failed", kind=type(error).__name__, message=f"Ray gave up: {str(error).strip()}")


def _perform_on_ray(written: str) -> tuple[str, str]:
    """How a job ended, and the name of the node that did it."""
    return perform(written), f"node {_import_ray().get_runtime_context().get_node_id()}"


def _import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise InputError("Sweeps on Ray need Ray: `pip install 'heedful[ray]'`.") from error


Engine = LocalEngine | RayEngine


def make_engine(name: str, workers: int) -> Engine:
    """`local`, `ray` (the cluster at hand, or one that is started here) or `ray://host:port`."""
    if name == "local":
        return LocalEngine(workers)
    if name == "ray" or name.startswith("ray://"):
        return RayEngine(None if name == "ray" else name)
    raise UnknownName("engine", name, ("local", "ray", "ray://host:port"))


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
    """Load what is heavy while the first job is thought about."""
    import torch

    import heedful.pipeline  # noqa: F401

    torch.set_num_threads(1)


if __name__ == "__main__":
    main()
