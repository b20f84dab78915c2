"""Runs as tables: one row per run, and one row per configuration and metric with the interval over seeds."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heedful.analysis.statistics import mean_over_seeds
from heedful.errors import InputError
from heedful.files import replacing
from heedful.store import flatten
from heedful.sweep.plan import SEED

ALWAYS = ("data.source", "model.attention", "model.encoder", "model.score_scale")
"""Settings that say what a row is about even when they do not vary."""

COLUMNS = ("metric", "mean", "low", "high", "seeds")


def table_of(manifests: Iterable[tuple[str, Mapping[str, Any]]], *, timed: bool = True) -> pd.DataFrame:
    """Named manifests as one table: name, digest, settings and metrics under dotted names.

    Times and versions, which differ from call to call, can be left out.
    """
    rows = [
        {
            "run": name,
            "digest": manifest["digest"],
            "corpus": manifest["corpus"],
            **flatten(manifest["settings"]),
            **flatten_metrics(manifest["metrics"]),
            **({"seconds": manifest["seconds"], "version": manifest["version"]} if timed else {}),
        }
        for name, manifest in manifests
    ]
    return pd.DataFrame(rows)


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
                mean = mean_over_seeds(values)
                rows.append((*group[settings].iloc[0], metric, mean.value, mean.low, mean.high, mean.count))
    return pd.DataFrame(rows, columns=[*settings, *COLUMNS])


def metric_names(manifests: Iterable[Mapping[str, Any]]) -> list[str]:
    """The metrics to summarise: all numbers but the bounds of a single run's interval."""
    flat = [flatten_metrics(manifest["metrics"]) for manifest in manifests]
    names = dict.fromkeys(name for metrics in flat for name, value in metrics.items() if not isinstance(value, str))
    return [name for name in names if not name.endswith(("_low", "_high"))]


def write_as(table: pd.DataFrame, path: Path) -> None:
    """A table as CSV for people or Parquet for programs, by the ending of the name."""
    if path.suffix not in {".csv", ".parquet"}:
        raise InputError(f"Tables are written as .csv or .parquet, not as '{path.name}'.")
    with replacing(path) as temporary:
        if path.suffix == ".csv":
            table.to_csv(temporary, index=False)
        else:
            table.to_parquet(temporary, index=False)
