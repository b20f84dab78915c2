"""`sweep`: run what is missing of a plan, survive what goes wrong, and collect one table. The loop emits events.

As many workers as fit by cores and memory; how long runs may take is told by finished ones that are alike.
"""

import os
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.config import DataSettings, RunSettings
from heedful.errors import StoreError
from heedful.store import PREFIX, Store, read_manifest
from heedful.sweep.engines import Ended, Engine, Job, Outcome, Started, make_engine
from heedful.sweep.plan import Plan

if TYPE_CHECKING:
    import pandas as pd

POLL_SECONDS = 0.5  # how often runs that other processes compute are looked at
UNREAD = "unread"  # stands for the fingerprint of a corpus that could not be read, in the record of its failed runs
BASE_BYTES = 500 * 2**20  # a worker that has loaded its libraries, before any model

COPIES = 12
"""4-byte copies of the embedding table at the worst moment: parameters, dense gradient, two moments of Adam, the best
epoch's, a checkpoint being written, the float64 copy that is traced, and tables. It errs on the large side."""

BYTES_PER_TRACED_UNIT = 250
"""Scores for a handful of classes, the weight and the word itself of each token that is traced."""

Corpora = Mapping[DataSettings, Mapping[str, Any]]  # the facts of every corpus that could be read


@dataclass(frozen=True, kw_only=True)
class Planned:
    """It is known what there is to do."""

    total: int
    found: int  # runs that were finished before
    workers: int
    seconds: float | None  # how long the rest may take, by the runs in the store; None when they say nothing of it


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Nothing is left but runs that other processes compute."""

    runs: int


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """The runs are there, and something is measured on them."""

    what: str
    done: int
    total: int


SweepEvent = Planned | Started | Ended | Waiting | Measuring
Watch = Callable[[SweepEvent], None]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that could not be computed, and why."""

    settings: RunSettings
    kind: str
    message: str

    def payload(self) -> dict[str, Any]:
        return {**vars(self), "settings": self.settings.model_dump(mode="json")}


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A sweep that came to its end: one table of runs, one of means over seeds, and what failed."""

    runs: "pd.DataFrame"
    summary: "pd.DataFrame"
    found: int  # runs that had been finished before, or by others in the meantime
    computed: Mapping[str, str]
    """The digests of the runs that this sweep computed, with the process or node that did it."""
    failures: tuple[Failure, ...]


def sweep(
    plan: Plan, store: Store, *, on: str = "local", workers: int | None = None, watch: Watch | None = None
) -> Sweep:
    """Compute the runs of a plan that the store does not hold yet, on `local` processes, `ray` or `ray://host:port`.

    A run that fails is recorded in the store with its error and tried again by the next call; a run that another
    process computes is waited for. A store that cannot be written ends the sweep with a StoreError.
    """
    store.check()
    ended: list[Ended] = []
    with make_engine(on, workers or _first_guess(plan)) as engine:
        corpora, unreadable = _cache_corpora(plan, store, engine)
        jobs = [_job(run, store, corpora[run.data]) for run in plan.runs if run.data in corpora]
        index = store.index()
        missing = [job for job in jobs if job.digest[:PREFIX] not in index]
        if missing and workers is None:
            engine.resize(_fitting(engine.workers, missing, corpora))
        for event in _course(engine, missing, unreadable, store, found=len(jobs) - len(missing)):
            if isinstance(event, Ended):
                _record(store, event)
                ended.append(event)
            if watch is not None:
                watch(event)
    return _collect(plan, store, jobs, ended)


def preview(plan: Plan, store: Store, *, workers: int | None = None) -> Planned:
    """How much of a plan is done and how long the rest may take. Nothing is run or written."""
    done = finished_runs(plan, store)
    missing = [run for run in plan.runs if run not in done]
    count = workers or _first_guess(plan)
    return Planned(total=len(plan), found=len(done), workers=count, seconds=seconds_left(missing, store, count))


def finished_runs(plan: Plan, store: Store) -> dict[RunSettings, Path]:
    """The runs of a plan that the store holds, in its order; reads a corpus only where a run on it is finished."""
    defaults = DataSettings().model_dump(mode="json")  # of settings that were not there when a run was computed
    known = [defaults | manifest["settings"]["data"] for _, manifest in store.manifests()]
    seen = [data for data in plan.data if data.model_dump(mode="json") in known]
    if not seen:
        return {}
    from heedful.text.datasets import corpus_facts

    prints = {data: corpus_facts(data, store).fingerprint for data in seen}
    index = store.index()
    digests = {run: run.digest(prints[run.data])[:PREFIX] for run in plan.runs if run.data in prints}
    return {run: index[digest] for run, digest in digests.items() if digest in index}


def _first_guess(plan: Plan) -> int:
    """Workers to start before the corpora are known: one for each run or core, if they fit."""
    threads = max(settings.training.threads for settings in plan.runs)
    return fitting_workers(min(len(plan), max(1, cores() // threads)), BASE_BYTES, available_bytes())


def _fitting(most: int, jobs: Sequence[Job], corpora: Corpora) -> int:
    """Workers that fit when each computes the largest of the runs."""
    needed = []
    for job in jobs:  # contextual encoders are traced on the training split too, for the local scores of words
        facts = corpora[job.settings.data]
        traced = facts["held_out_units" if job.settings.model.encoder in {"none", "affine", "tanh"} else "units"]
        needed.append(worker_bytes(job.settings, vocabulary=facts["vocabulary"], traced_units=traced))
    return fitting_workers(min(most, len(jobs)), max(needed), available_bytes())


def _cache_corpora(plan: Plan, store: Store, engine: Engine) -> tuple[Corpora, list[Ended]]:
    """Tokenise each corpus once, in the workers; the runs of a corpus that cannot be read have failed."""
    place = str(store.root.absolute())
    corpora: dict[DataSettings, Mapping[str, Any]] = {}
    unreadable: list[Ended] = []
    wanted = [Job(action="corpus", settings=RunSettings(data=data), store=place) for data in plan.data]
    for event in engine.run(wanted):
        if isinstance(event, Ended):
            data, facts = event.job.settings.data, event.outcome.facts
            runs = [run for run in plan.runs if run.data == data]
            if facts is None:
                jobs = (Job(action="run", settings=run, store=place, digest=run.digest(UNREAD)) for run in runs)
                unreadable += [Ended(job=job, outcome=event.outcome) for job in jobs]
            else:
                corpora[data] = facts
                for run in runs:
                    store.forget_failure(run.digest(UNREAD))
    return corpora, unreadable


def _job(settings: RunSettings, store: Store, facts: Mapping[str, Any]) -> Job:
    place, digest = str(store.root.absolute()), settings.digest(facts["fingerprint"])
    return Job(action="run", settings=settings, store=place, digest=digest, corpus=facts["key"])


def _course(
    engine: Engine, missing: Sequence[Job], unreadable: Sequence[Ended], store: Store, *, found: int
) -> Iterator[SweepEvent]:
    """All that happens, from the plan to the last run. What other processes compute comes last."""
    seconds = seconds_left([job.settings for job in missing], store, engine.workers)
    total = found + len(missing) + len(unreadable)
    yield Planned(total=total, found=found, workers=engine.workers, seconds=seconds)
    yield from unreadable
    jobs = missing
    while jobs:
        busy = []
        for event in engine.run(jobs):
            yield event
            if isinstance(event, Ended) and event.outcome.status == "busy":
                busy.append(event.job)
        jobs = yield from _await(busy, store)


def _await(jobs: Sequence[Job], store: Store) -> Generator[Waiting | Ended, None, Sequence[Job]]:
    """Wait until every one of these is finished by others, or one is free again; returns what is still to be done."""
    if jobs:
        yield Waiting(runs=len(jobs))
    while jobs:
        finished = [job for job in jobs if store.find(job.digest)]
        yield from (Ended(job=job, outcome=Outcome(status="done", found=True)) for job in finished)
        jobs = [job for job in jobs if job not in finished]
        if any(not store.is_busy(job.digest) for job in jobs):
            break
        time.sleep(POLL_SECONDS if jobs else 0)
    return jobs


def _record(store: Store, event: Ended) -> None:
    """Keep the error of a failed run. A store that cannot be written is no failure of a run: it ends the sweep."""
    outcome = event.outcome
    if outcome.kind == "StoreError":
        raise StoreError(outcome.message)
    if outcome.status == "failed":
        error = {"kind": outcome.kind, "message": outcome.message, "details": outcome.details}
        store.record_failure(event.job.digest, {"settings": event.job.settings.model_dump(mode="json"), **error})


def _collect(plan: Plan, store: Store, jobs: Sequence[Job], ended: Sequence[Ended]) -> Sweep:
    from heedful.sweep.tables import metric_names, summarize, table_of

    failed = {event.job.digest: event for event in ended if event.outcome.status == "failed"}
    done = [event for event in ended if event.outcome.status == "done" and not event.outcome.found]
    computed = {event.job.digest: event.outcome.worker for event in done}
    manifests = _manifests(store, [job.digest[:PREFIX] for job in jobs if job.digest not in failed])
    runs = table_of(manifests, timed=False)
    return Sweep(
        runs=runs,
        summary=summarize(runs, plan.varied, metric_names(manifest for _, manifest in manifests)),
        found=len(plan) - len(computed) - len(failed),
        computed=computed,
        failures=tuple(
            Failure(settings=event.job.settings, kind=event.outcome.kind, message=event.outcome.message)
            for event in failed.values()
        ),
    )


def _manifests(store: Store, digests: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """The names and manifests of runs, in the order of the plan."""
    index = store.index()
    if lost := [digest for digest in digests if digest not in index]:
        raise StoreError(
            f"Run {lost[0]} was finished, but is not in '{store.root}'. On a cluster every node must see the store "
            "under the same path; and a run must not be removed while a sweep goes on."
        )
    return [(index[digest].name, read_manifest(index[digest])) for digest in digests]


def worker_bytes(settings: RunSettings, *, vocabulary: int, traced_units: int) -> int:
    """Memory of a worker that computes this run. The corpus is mapped and shared, and not counted."""
    return BASE_BYTES + COPIES * 4 * vocabulary * settings.model.embedding_size + BYTES_PER_TRACED_UNIT * traced_units


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_bytes() -> int | None:
    """Memory that can be had without swapping, within the limit of the container; None where it cannot be known."""
    return min((value for value in (_machine_bytes(), _container_bytes()) if value is not None), default=None)


def fitting_workers(wanted: int, needed: int, available: int | None) -> int:
    """As many as wanted and as fit in nine tenths of the memory; always one."""
    return max(1, wanted if available is None else min(wanted, int(0.9 * available) // needed))


def _machine_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _container_bytes() -> int | None:
    """What a control group still leaves; file pages can be dropped and count as free."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else int(limit) - used + int(stat.get("file", 0))


def seconds_left(missing: Sequence[RunSettings], store: Store, workers: int) -> float | None:
    """The sum over missing runs of their epochs times the median time of an epoch of like runs, by so many workers.
    None where no finished run tells it."""
    if not missing:
        return 0.0
    seconds: dict[tuple[Any, ...], list[float]] = {}
    for _, manifest in store.manifests():
        for traits in _traits(manifest["settings"]):
            seconds.setdefault(traits, []).append(manifest["seconds"] / max(1, manifest["metrics"]["epochs"]))
    if not seconds:
        return None
    medians = {traits: statistics.median(known) for traits, known in seconds.items()}
    shared = [next(filter(medians.__contains__, _traits(run.model_dump(mode="json")))) for run in missing]
    needed = (medians[traits] * run.training.epochs for traits, run in zip(shared, missing, strict=True))
    return sum(needed) / min(workers, len(missing))


def _traits(settings: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What runs must share for the time of one to tell that of the other: the first that any finished run shares."""
    own = (settings["data"]["source"], settings["model"]["encoder"], settings["training"]["batch_size"])
    return [own[:count] for count in (3, 2, 1, 0)]
