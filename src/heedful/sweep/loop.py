"""`sweep`: run what is missing of a plan, survive what goes wrong, and collect one table. The loop emits events."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from heedful.config import DataSettings, RunSettings
from heedful.errors import StoreError
from heedful.store import PREFIX, Store, read_manifest
from heedful.sweep.engines import Engine, make_engine
from heedful.sweep.estimate import seconds_left
from heedful.sweep.jobs import Ended, Job, Outcome, Planned, SweepEvent, Waiting
from heedful.sweep.memory import BASE_BYTES, available_bytes, cores, fitting_workers, worker_bytes
from heedful.sweep.plan import Plan

if TYPE_CHECKING:
    import pandas as pd

POLL_SECONDS = 0.5
"""How often runs that other processes compute are looked at."""

UNREAD = "unread"
"""Stands for the fingerprint of a corpus that could not be read, in the record of its failed runs."""

Corpora = Mapping[DataSettings, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that could not be computed, and why."""

    settings: RunSettings
    kind: str
    message: str

    def payload(self) -> dict[str, Any]:
        return {"settings": self.settings.model_dump(mode="json"), "kind": self.kind, "message": self.message}


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
    plan: Plan,
    store: Store,
    *,
    on: str = "local",
    workers: int | None = None,
    watch: Callable[[SweepEvent], None] | None = None,
) -> Sweep:
    """Compute the runs of a plan that the store does not hold yet, on `local` processes, `ray` or `ray://host:port`.

    A run that fails is recorded in the store with its error and tried again by the next call; a run that another
    process computes is waited for. A store that cannot be written ends the sweep with a StoreError.
    """
    store.check()
    ended: list[Ended] = []
    with make_engine(on, workers or _first_guess(plan)) as engine:
        corpora, unreadable = _cache_corpora(plan, store, engine)
        jobs = [_run_job(settings, store, corpora) for settings in plan.runs if settings.data in corpora]
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


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What a sweep would do."""

    name: str
    total: int
    done: int
    workers: int
    varied: tuple[str, ...]
    seconds: float | None
    """Estimated from finished runs; None when there are none."""

    def payload(self) -> dict[str, Any]:
        return asdict(self)


def preview(plan: Plan, store: Store, *, workers: int | None = None) -> Preview:
    """How much of a plan is done and how long the rest may take. Nothing is run or written."""
    done = set(finished_runs(plan, store))
    missing = [run for run in plan.runs if run not in done]
    count = workers or _first_guess(plan)
    seconds = seconds_left(missing, store, count)
    return Preview(name=plan.name, total=len(plan), done=len(done), workers=count, varied=plan.varied, seconds=seconds)


def finished_runs(plan: Plan, store: Store) -> list[RunSettings]:
    """The runs of a plan that the store holds; reads a corpus only where a run on it is finished."""
    defaults = DataSettings().model_dump(mode="json")  # of settings that were not there when a run was computed
    known = [defaults | manifest["settings"]["data"] for _, manifest in store.manifests()]
    seen = [data for data in _distinct_data(plan) if data.model_dump(mode="json") in known]
    if not seen:
        return []
    from heedful.text.cache import corpus_facts

    prints = {data: corpus_facts(data, store.corpora).fingerprint for data in seen}
    index = store.index()
    return [run for run in plan.runs if run.data in prints and run.digest(prints[run.data])[:PREFIX] in index]


def _first_guess(plan: Plan) -> int:
    """Workers to start before the corpora are known: one for each run or core, if they fit."""
    threads = max(settings.training.threads for settings in plan.runs)
    return fitting_workers(min(len(plan), max(1, cores() // threads)), BASE_BYTES, available_bytes())


def _fitting(most: int, jobs: Sequence[Job], corpora: Corpora) -> int:
    """Workers that fit when each computes the largest of the runs."""
    needed = max(
        worker_bytes(job.settings, vocabulary=facts["vocabulary"], traced_units=_traced_units(job, facts))
        for job in jobs
        for facts in [corpora[job.settings.data]]
    )
    return fitting_workers(min(most, len(jobs)), needed, available_bytes())


def _traced_units(job: Job, facts: Mapping[str, Any]) -> int:
    """Contextual encoders are traced on the training split too, for the local scores of words."""
    contextual = job.settings.model.encoder not in {"none", "affine"}
    return int(facts["units"] if contextual else facts["held_out_units"])


def _distinct_data(plan: Plan) -> list[DataSettings]:
    return list(dict.fromkeys(run.data for run in plan.runs))


def _cache_corpora(plan: Plan, store: Store, engine: Engine) -> tuple[Corpora, list[Ended]]:
    """Tokenise each corpus once, in the workers; the runs of a corpus that cannot be read have failed."""
    jobs = [
        Job(action="corpus", settings=RunSettings(data=data), store=str(store.root.absolute()))
        for data in _distinct_data(plan)
    ]
    corpora: dict[DataSettings, Mapping[str, Any]] = {}
    unreadable: list[Ended] = []
    for event in engine.run(jobs):
        if isinstance(event, Ended):
            if event.outcome.facts is not None:
                corpora[event.job.settings.data] = event.outcome.facts
                for run in _runs_on(plan, event.job.settings.data):
                    store.forget_failure(run.digest(UNREAD))
            else:
                unreadable += _fail_all(plan, event)
    return corpora, unreadable


def _fail_all(plan: Plan, event: Ended) -> Iterator[Ended]:
    for run in _runs_on(plan, event.job.settings.data):
        job = Job(action="run", settings=run, store=event.job.store, digest=run.digest(UNREAD))
        yield Ended(job=job, outcome=event.outcome)


def _runs_on(plan: Plan, data: DataSettings) -> list[RunSettings]:
    return [run for run in plan.runs if run.data == data]


def _run_job(settings: RunSettings, store: Store, corpora: Corpora) -> Job:
    facts = corpora[settings.data]
    return Job(
        action="run",
        settings=settings,
        store=str(store.root.absolute()),
        digest=settings.digest(facts["fingerprint"]),
        corpus=facts["key"],
    )


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
        left = []
        for job in jobs:
            if store.find(job.digest):
                yield Ended(job=job, outcome=Outcome(status="done", found=True))
            else:
                left.append(job)
        jobs = left
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
    from heedful.sweep.tables import collect, metric_names, summarize

    failed = [event for event in ended if event.outcome.status == "failed"]
    done = [event for event in ended if event.outcome.status == "done" and not event.outcome.found]
    computed = {event.job.digest: event.outcome.worker for event in done}
    manifests = _manifests(store, jobs, {event.job.digest for event in failed})
    runs = collect(manifests)
    return Sweep(
        runs=runs,
        summary=summarize(runs, plan.varied, metric_names(manifest for _, manifest in manifests)),
        found=len(plan) - len(computed) - len(failed),
        computed=computed,
        failures=tuple(
            Failure(settings=event.job.settings, kind=event.outcome.kind, message=event.outcome.message)
            for event in failed
        ),
    )


def _manifests(store: Store, jobs: Iterable[Job], failed: set[str]) -> list[tuple[str, dict[str, Any]]]:
    """The manifests of all runs that did not fail, in the order of the plan."""
    index = store.index()
    wanted = [job.digest[:PREFIX] for job in jobs if job.digest not in failed]
    lost = [digest for digest in wanted if digest not in index]
    if lost:
        raise StoreError(
            f"Run {lost[0]} was finished, but is not in '{store.root}'. On a cluster every node must see the store "
            "under the same path; and a run must not be removed while a sweep goes on."
        )
    return [(index[digest].name, read_manifest(index[digest])) for digest in wanted]
