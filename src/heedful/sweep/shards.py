"""Shards of a trace as jobs: written, and erased, by processes of this machine or by a Ray cluster.

What a job makes is a file, whole or absent, that depends on the shard alone: who does it, how often, and how many at
once changes no bit, and whatever dies loses the shards it had in hand and nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.analysis.in_shards import erased_tables, joined
from heedful.config import RunSettings
from heedful.errors import InputError, StoreError
from heedful.files import digest_of, make_folder, write_table
from heedful.pipeline import Run
from heedful.store import CORPUS, Store
from heedful.sweep.engines import LOST, RETRIES, Ended, Job, make_engine
from heedful.text.cached import open_corpus
from heedful.text.corpus import SPLITS
from heedful.text.datasets import cache_corpus
from heedful.trace_folders import SHARD_SIZE, TraceFolder
from heedful.tracing import Shards
from heedful.training.loop import limited_threads
from heedful.version import RESULTS_VERSION

Watch = Callable[[int, int], None]

LOCAL = "local"
TABLES = ("flips", "single", "minimum", "instances")


def trace_run(
    run: Run,
    split: str,
    out: Path,
    *,
    shard_size: int = SHARD_SIZE,
    on: str = LOCAL,
    workers: int = 1,
    watch: Watch | None = None,
) -> TraceFolder:
    """The trace of a finished run on a split of its corpus, in shards. The corpus is mapped from the run's store."""
    if split not in SPLITS:
        raise InputError(f"A split is {', '.join(SPLITS)}, not '{split}'.")
    facts = cache_corpus(run.settings.data, Store(run.path.parent))
    if facts.fingerprint != run.manifest["fingerprint"]:
        raise StoreError(
            f"The data are not those that '{run.path}' was trained on: '{run.settings.data.source}' changed."
        )
    asked = {"run": str(run.path.absolute()), "corpus": facts.key, "split": split, "out": str(out.absolute())}
    shards = _shards(**asked, shard_size=shard_size)
    jobs = [_job("trace", run.settings, {**asked, "shard_size": shard_size}, number) for number in shards.begin()]
    share_out(jobs, on, workers, watch)
    return shards.plan.finish(out)


def erase_shards(
    folder: TraceFolder,
    *,
    seed: int,
    rankings: Sequence[str],
    on: str = LOCAL,
    workers: int = 1,
    watch: Watch | None = None,
) -> dict[str, pd.DataFrame]:
    """The tables `flips`, `single`, `minimum` and `instances` of a trace in shards (`erased_tables`). Those of each
    shard are kept in the folder, so that nothing is done twice."""
    asked = {"folder": str(folder.path.absolute()), "seed": seed, "rankings": list(rankings)}
    key = digest_of([RESULTS_VERSION, seed, list(rankings), [shard.checksum for shard in folder.manifest.shards]])[:12]
    place = folder.path / f"erased-{key}"
    make_folder(place)
    missing = [number for number in range(folder.count) if not all(path.is_file() for path in _tables(place, number))]
    share_out(
        [_job("erase", RunSettings(), {**asked, "out": str(place)}, number) for number in missing], on, workers, watch
    )
    parts = [[_read(path) for path in _tables(place, number)] for number in range(folder.count)]
    return {name: joined(tables) for name, tables in zip(TABLES, zip(*parts, strict=True), strict=True)}


def _tables(place: Path, number: int) -> list[Path]:
    return [place / f"shard-{number:05d}.{name}.parquet" for name in TABLES]


def _read(path: Path) -> pd.DataFrame:
    table = pd.read_parquet(path)
    if "positions" in table:
        sets = [None if found is None else found.tolist() for found in table["positions"]]
        table["positions"] = pd.Series(sets, dtype=object)
    return table


def _job(action: Any, settings: RunSettings, asked: Mapping[str, Any], number: int) -> Job:
    return Job(action=action, settings=settings, store="", asked={**asked, "shard": number})


def share_out(jobs: Sequence[Job], on: str, workers: int, watch: Watch | None) -> None:
    """Do all jobs; one whose worker or node died is done again by another, and any other failure ends all."""
    from heedful.sweep.engines import ACTIONS

    if on == LOCAL and workers == 1:
        for done, job in enumerate(jobs, 1):
            ACTIONS[job.action](job)
            if watch is not None:
                watch(done, len(jobs))
        return
    waiting, done, tries = list(jobs), 0, 0
    with make_engine(on, workers) as engine:
        while waiting:
            lost: list[Job] = []
            for event in engine.run(waiting):
                if not isinstance(event, Ended):
                    continue
                if event.outcome.status != "done":
                    if event.outcome.kind not in LOST or tries == RETRIES:
                        raise StoreError(f"Shard {event.job.asked['shard']}: {event.outcome.message}")
                    lost.append(event.job)
                    continue
                done += 1
                if watch is not None:
                    watch(done, len(jobs))
            waiting, tries = lost, tries + 1


def write_trace_shard(job: Job) -> None:
    asked = dict(job.asked)
    number = asked.pop("shard")
    with limited_threads(job.settings.training.threads):
        _shards(**asked).write(number)


def write_erased_shard(job: Job) -> None:
    asked = job.asked
    shard = TraceFolder(Path(asked["folder"])).shard(asked["shard"])
    found = erased_tables(shard, seed=asked["seed"], rankings=asked["rankings"])
    for name, path in zip(TABLES, _tables(Path(asked["out"]), asked["shard"]), strict=True):
        write_table(path, found[name])


@lru_cache(maxsize=1)
def _shards(run: str, corpus: str, split: str, out: str, shard_size: int) -> Shards:
    """What is traced, opened once per process."""
    found = Run(Path(run))
    data = open_corpus(Store(found.path.parent).place(CORPUS, corpus))
    return Shards(model=found.model(), split=data.splits()[split], folder=Path(out), shard_size=shard_size)
