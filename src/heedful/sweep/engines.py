"""Where jobs run: processes of this machine, or a Ray cluster. The same jobs give the same results on both.

An engine is a context. `run` takes jobs and yields what happens to them, in the order in which it happens; a worker
that dies is a failed job, never the end of the others.
"""

import importlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from heedful.errors import ConfigError, InputError, UnknownName
from heedful.sweep.worker import Job, Outcome, perform

RETRIES = 3
"""How often Ray repeats a task whose worker or node died."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


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


@runtime_checkable
class Engine(Protocol):
    """Something that does jobs."""

    workers: int
    """How many jobs it does at once."""

    def __enter__(self) -> "Engine": ...
    def __exit__(self, *_error: object) -> None: ...

    def resize(self, workers: int) -> None:
        """Do at most so many jobs at once from now on."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """Do the jobs; every one of them ends."""


def make_engine(name: str, workers: int) -> Engine:
    """`local`, `ray` (the cluster at hand, or one that is started here) or `ray://host:port`."""
    if name == "local":
        return LocalEngine(workers)
    if name == "ray" or name.startswith("ray://"):
        return RayEngine(None if name == "ray" else name)
    raise UnknownName("engine", name, ("local", "ray", "ray://host:port"))


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
            for process in _answering([process for process in self._pool if process.job]):
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
        self._process = subprocess.Popen(
            [sys.executable, "-m", "heedful.sweep.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": _search_path()},
            encoding="utf-8",
        )
        self.answers: Any = self._process.stdout
        self.job: Job | None = None
        self.dead = False

    def give(self, job: Job) -> None:
        assert self._process.stdin is not None
        self.job = job
        with suppress(BrokenPipeError):  # a dead one will give no answer
            self._process.stdin.write(json.dumps(job.payload()) + "\n")
            self._process.stdin.flush()

    def take(self) -> tuple[Job, Outcome]:
        """The answer to the job in hand; no answer is a worker that died."""
        assert self.job is not None
        job, self.job = self.job, None
        line = self.answers.readline()
        if line.endswith("\n"):
            return job, Outcome(**{**json.loads(line), "worker": f"process {self._process.pid}"})
        code, last_words = self._process.wait(), self._last_words()
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

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-2000:].strip()


def _answering(processes: Sequence[_Process]) -> list[_Process]:
    """Wait for the first answers."""
    with selectors.DefaultSelector() as selector:
        for process in processes:
            selector.register(process.answers, selectors.EVENT_READ, process)
        return [key.data for key, _ in selector.select()]


def _search_path() -> str:
    """Workers import the very package that runs here, from wherever it was imported."""
    package = str(Path(__file__).parents[2])
    return os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])


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
        waiting = {self._task(job).remote(job.payload()): job for job in jobs}
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

    def _task(self, job: Job) -> Any:
        return self._ray.remote(
            num_cpus=job.settings.training.threads, max_retries=RETRIES, scheduling_strategy="SPREAD"
        )(_perform_on_ray)

    def _outcome(self, reference: Any) -> Outcome:
        try:
            return Outcome(**self._ray.get(reference))
        except self._ray.exceptions.RayError as error:
            return Outcome(status="failed", kind=type(error).__name__, message=f"Ray gave up: {str(error).strip()}")


def _perform_on_ray(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A job, with the name of the node that did it."""
    ray = _import_ray()
    return {**perform(payload), "worker": f"node {ray.get_runtime_context().get_node_id()}"}


def _import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise InputError("Sweeps on Ray need Ray: `pip install 'heedful[ray]'`.") from error
