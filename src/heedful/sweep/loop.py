"""`sweep`: run what is missing of a plan, survive what goes wrong, and collect one table. The loop emits events."""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heedful.config import DataSettings, RunSettings
from heedful.errors import StoreError
from heedful.store import PREFIX, Store, read_manifest
from heedful.sweep.engines import Ended, Engine, Started, make_engine
from heedful.sweep.plan import Plan
from heedful.sweep.resources import BASE_BYTES, available_bytes, cores, fitting_workers, seconds_left, worker_bytes
from heedful.sweep.worker import Job, Outcome

if TYPE_CHECKING:
    import pandas as pd

POLL_SECONDS = 0.5
"""How often runs that other processes compute are looked at."""

UNREAD = "unread"
"""Stands for the fingerprint of a corpus that could not be read, in the record of its failed runs."""

Corpora = Mapping[DataSettings, Mapping[str, Any]]
"""The facts of every corpus that could be read."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """It is known what there is to do."""

    total: int
    found: int
    """Runs that were finished before."""
    workers: int
    seconds: float | None
    """How long the rest may take, by the runs in the store; None when they say nothing of it."""


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
    found: int
    """Runs that had been finished before, or by others in the meantime."""
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
        jobs = [_job(settings, store, corpora[settings.data]) for settings in plan.runs if settings.data in corpora]
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
    done = _finished_runs(plan, store)
    missing = [run for run in plan.runs if run not in done]
    count = workers or _first_guess(plan)
    return Planned(total=len(plan), found=len(done), workers=count, seconds=seconds_left(missing, store, count))


def _finished_runs(plan: Plan, store: Store) -> set[RunSettings]:
    """The runs of a plan that the store holds; reads a corpus only where a run on it is finished."""
    defaults = DataSettings().model_dump(mode="json")  # of settings that were not there when a run was computed
    known = [defaults | manifest["settings"]["data"] for _, manifest in store.manifests()]
    seen = [data for data in _distinct_data(plan) if data.model_dump(mode="json") in known]
    if not seen:
        return set()
    from heedful.text.cache import corpus_facts

    prints = {data: corpus_facts(data, store).fingerprint for data in seen}
    index = store.index()
    return {run for run in plan.runs if run.data in prints and run.digest(prints[run.data])[:PREFIX] in index}


def _first_guess(plan: Plan) -> int:
    """Workers to start before the corpora are known: one for each run or core, if they fit."""
    threads = max(settings.training.threads for settings in plan.runs)
    return fitting_workers(min(len(plan), max(1, cores() // threads)), BASE_BYTES, available_bytes())


def _fitting(most: int, jobs: Sequence[Job], corpora: Corpora) -> int:
    """Workers that fit when each computes the largest of the runs."""
    needed = max(_bytes_of(job.settings, corpora[job.settings.data]) for job in jobs)
    return fitting_workers(min(most, len(jobs)), needed, available_bytes())


def _bytes_of(settings: RunSettings, facts: Mapping[str, Any]) -> int:
    """Contextual encoders are traced on the training split too, for the local scores of words."""
    traced = facts["held_out_units" if settings.model.encoder in {"none", "affine", "tanh"} else "units"]
    return worker_bytes(settings, vocabulary=facts["vocabulary"], traced_units=traced)


def _distinct_data(plan: Plan) -> list[DataSettings]:
    return list(dict.fromkeys(run.data for run in plan.runs))


def _cache_corpora(plan: Plan, store: Store, engine: Engine) -> tuple[Corpora, list[Ended]]:
    """Tokenise each corpus once, in the workers; the runs of a corpus that cannot be read have failed."""
    place = str(store.root.absolute())
    corpora: dict[DataSettings, Mapping[str, Any]] = {}
    unreadable: list[Ended] = []
    wanted = [Job(action="corpus", settings=RunSettings(data=data), store=place) for data in _distinct_data(plan)]
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
    lost = [digest for digest in digests if digest not in index]
    if lost:
        raise StoreError(
            f"Run {lost[0]} was finished, but is not in '{store.root}'. On a cluster every node must see the store "
            "under the same path; and a run must not be removed while a sweep goes on."
        )
    return [(index[digest].name, read_manifest(index[digest])) for digest in digests]
