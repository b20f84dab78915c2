"""Runs as tables: one row per run, and one row per configuration and metric with the interval over seeds."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Numbers, mean_over_seeds
from heedful.store import flatten
from heedful.sweep.plan import SEED

ALWAYS = ("data.source", "model.attention", "model.encoder", "model.score_scale")
"""Settings that say what a row is about even when they do not vary."""

COLUMNS = ("metric", "mean", "low", "high", "seeds")


def table_of(manifests: Iterable[tuple[str, Mapping[str, Any]]], *, timed: bool = True) -> pd.DataFrame:
    """Named manifests as one table: name, digest, settings and metrics under dotted names. Times and versions, which
    differ from call to call, can be left out."""
    rows = [
        {
            "run": name,
            "digest": manifest["digest"],
            "corpus": manifest["corpus"],
            **{place: _cell(value) for place, value in flatten(manifest["settings"]).items()},
            **flatten_metrics(manifest["metrics"]),
            **({"seconds": manifest["seconds"], "version": manifest["version"]} if timed else {}),
        }
        for name, manifest in manifests
    ]
    return pd.DataFrame(rows)


def _cell(value: Any) -> Any:
    """A setting of several numbers as words: rows are told apart by it."""
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def flatten_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics with one number each; a list of one is its number, a longer one is numbered from 0."""
    flat: dict[str, Any] = {}
    for name, value in flatten(metrics).items():
        if isinstance(value, list) and len(value) != 1:
            flat |= {f"{name}.{place}": item for place, item in enumerate(value)}
        else:
            flat[name] = value[0] if isinstance(value, list) else value
    return flat


def summarize(runs: pd.DataFrame, varied: Sequence[str], metrics: Sequence[str]) -> pd.DataFrame:
    """One row per configuration and metric: its mean over seeds, the 95 % interval, and how many seeds."""
    settings = [name for name in dict.fromkeys((*ALWAYS, *varied)) if name != SEED]
    if runs.empty:
        return pd.DataFrame(columns=[*settings, *COLUMNS])
    rows = []
    for _, group in runs.groupby(settings, sort=False, dropna=False):
        for metric in metrics:
            values = group[metric].dropna().to_numpy(np.float64)
            if len(values):
                rows.append((*group[settings].iloc[0], metric, *_with_interval(metric, values)))
    return pd.DataFrame(rows, columns=[*settings, *COLUMNS])


def _with_interval(metric: str, values: Numbers) -> tuple[float, float, float, int]:
    """Mean, interval and number of seeds; one seed has no interval, and a share lies between 0 and 1."""
    mean = mean_over_seeds(values)
    if mean.count == 1:
        return mean.value, math.nan, math.nan, 1
    low, high = (0.0, 1.0) if "accuracy" in metric else (-math.inf, math.inf)
    return mean.value, max(mean.low, low), min(mean.high, high), mean.count


def metric_names(manifests: Iterable[Mapping[str, Any]]) -> list[str]:
    """The metrics to summarise: all numbers but the bounds of a single run's interval."""
    flat = [flatten_metrics(manifest["metrics"]) for manifest in manifests]
    names = dict.fromkeys(name for metrics in flat for name, value in metrics.items() if not isinstance(value, str))
    return [name for name in names if not name.endswith(("_low", "_high"))]
