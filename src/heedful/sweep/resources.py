"""What runs cost: how many workers fit, by cores and memory, and how long runs may take, by those that are alike."""

import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.config import RunSettings
from heedful.store import Store

BASE_BYTES = 500 * 2**20
"""A worker that has loaded its libraries, before any model."""

COPIES = 12
"""4-byte copies of the embedding table at the worst moment: parameters, dense gradient, two moments of Adam, the best
epoch's, a checkpoint being written, the float64 copy that is traced, and tables. It errs on the large side."""

BYTES_PER_TRACED_UNIT = 250
"""Scores for a handful of classes, the weight and the word itself of each token that is traced."""

Alike = Callable[[Mapping[str, Any]], tuple[Any, ...]]

# What two runs must share for the time of one to tell that of the other: the first that any finished run shares.
_LIKENESS: tuple[Alike, ...] = (
    lambda settings: (settings["data"]["source"], settings["model"]["encoder"], settings["training"]["batch_size"]),
    lambda settings: (settings["data"]["source"], settings["model"]["encoder"]),
    lambda settings: (settings["data"]["source"],),
    lambda _settings: (),
)


def worker_bytes(settings: RunSettings, *, vocabulary: int, traced_units: int) -> int:
    """Memory of a worker that computes this run. The corpus is mapped and shared, and not counted."""
    table = 4 * vocabulary * settings.model.embedding_size
    return BASE_BYTES + COPIES * table + BYTES_PER_TRACED_UNIT * traced_units


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

    None where no finished run tells it.
    """
    if not missing:
        return 0.0
    manifests = [manifest for _, manifest in store.manifests()]
    rates = [_rates(alike, manifests) for alike in _LIKENESS]
    if not rates[-1]:
        return None
    return sum(_seconds(settings, rates) for settings in missing) / min(workers, len(missing))


def _rates(alike: Alike, manifests: Iterable[Mapping[str, Any]]) -> dict[tuple[Any, ...], float]:
    """Median seconds per epoch of the finished runs that are alike."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for manifest in manifests:
        rate = manifest["seconds"] / max(1, manifest["metrics"]["epochs"])
        groups.setdefault(alike(manifest["settings"]), []).append(rate)
    return {key: statistics.median(values) for key, values in groups.items()}


def _seconds(settings: RunSettings, rates: Sequence[Mapping[tuple[Any, ...], float]]) -> float:
    values = settings.model_dump(mode="json")
    keys = [alike(values) for alike in _LIKENESS]
    rate = next(known[key] for known, key in zip(rates, keys, strict=True) if key in known)
    return rate * settings.training.epochs
