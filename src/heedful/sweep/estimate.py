"""How long runs may take, by the finished runs that are most like them."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from heedful.config import RunSettings
from heedful.store import Store

Alike = Callable[[Mapping[str, Any]], tuple[Any, ...]]

# What two runs must share for the time of one to tell that of the other: the first that any finished run shares.
_LIKENESS: tuple[Alike, ...] = (
    lambda settings: (settings["data"]["source"], settings["model"]["encoder"], settings["training"]["batch_size"]),
    lambda settings: (settings["data"]["source"], settings["model"]["encoder"]),
    lambda settings: (settings["data"]["source"],),
    lambda _settings: (),
)


def seconds_left(missing: Sequence[RunSettings], store: Store, workers: int) -> float | None:
    """The sum over missing runs of their epochs times the median time of an epoch of like runs, by so many workers."""
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
