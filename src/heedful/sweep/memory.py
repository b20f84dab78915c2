"""How many workers fit: cores, and memory by an estimate that is stated here and errs on the large side."""

import os
from pathlib import Path

from heedful.config import RunSettings

BASE_BYTES = 500 * 2**20
"""A worker that has loaded its libraries, before any model."""

COPIES = 12
"""4-byte copies of the embedding table at the worst moment: parameters, dense gradient, two moments of Adam, the best
epoch's, a checkpoint being written, the float64 copy that is traced, and tables."""

BYTES_PER_TRACED_UNIT = 250
"""Scores for a handful of classes, the weight and the word itself of each token that is traced."""


def worker_bytes(settings: RunSettings, *, vocabulary: int, traced_units: int) -> int:
    """Memory of a worker that computes this run. The corpus is mapped and shared, and not counted."""
    table = 4 * vocabulary * settings.model.embedding_size
    return BASE_BYTES + COPIES * table + BYTES_PER_TRACED_UNIT * traced_units


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_bytes() -> int | None:
    """Memory that can be had without swapping, within the limit of the container; None where it cannot be known."""
    known = [value for value in (_machine_bytes(), _container_bytes()) if value is not None]
    return min(known) if known else None


def fitting_workers(wanted: int, needed: int, available: int | None) -> int:
    """As many as wanted and as fit in nine tenths of the memory; always one."""
    if available is None:
        return max(1, wanted)
    return max(1, min(wanted, int(0.9 * available) // needed))


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
