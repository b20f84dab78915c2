"""What finished runs come to: one row of numbers for each, as tables.

What a model is stands in columns, taken from the settings of its run: structure, attention, encoder, and whether the
encoder sees a token's neighbours (contextual).
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import torch

from heedful.analysis.decisions import pooling_agreement
from heedful.analysis.separation import clarity, group_measures, separation, sign_share
from heedful.analysis.statistics import FEWEST, Estimate
from heedful.analysis.tokens import as_printed
from heedful.config import ModelSettings
from heedful.pipeline import Run
from heedful.traces import Trace

METRICS = ("test_accuracy", "test_accuracy_low", "test_accuracy_high")

POOLED_FROM = 100.0
"""From this λ on it is asked whether the model is one of mean pooling."""


def what_it_is(model: ModelSettings) -> dict[str, object]:
    """The columns that say what a model is."""
    return {name: getattr(model, name) for name in ("structure", "attention", "encoder", "contextual")}


def run_row(run: Run) -> pd.DataFrame:
    """One row: how many test texts, the share of their largest class, and the test accuracy with its interval."""
    trace = run.trace()
    row = {"instances": len(trace), "largest_class": _largest_class(trace)}
    return pd.DataFrame([row | {name: run.metrics[name] for name in METRICS}])


def _largest_class(trace: Trace) -> float:
    return np.nan if trace.labels is None else float(torch.bincount(trace.labels).max()) / len(trace)


def measure_runs(dataset: str, model: str, runs: Iterable[Run], *, printed: bool = True) -> pd.DataFrame:
    """A row per run; columns ending in _low and _high are bounds of 95 % over resampled tokens or test texts.

    Accuracy, VᵀW (`alignment`), and how the groups of tokens differ (`group_measures`): in the groups that the paper's
    definition `printed`, or else in those that class sizes cannot move. Of an LSTM `local_separation` and
    `local_signs` are of scores in context, and `clarity` is the difference of the separations; `pooling` is the share
    of test texts whose decision stays when attention is made even.
    """
    return pd.DataFrame([{"dataset": dataset, "model": model, **_row(run, printed)} for run in runs])


def _row(run: Run, printed: bool) -> dict[str, object]:
    tokens, metrics, settings = _grouped(run, "tokens", printed), run.metrics, run.settings
    found = dict(group_measures(tokens))
    if settings.model.encoder == "lstm":
        local = _grouped(run, "tokens_local", printed)
        found |= {"local_separation": separation(local), "local_signs": sign_share(local)}
        found["clarity"] = clarity(tokens, local)
    if settings.model.score_scale >= POOLED_FROM:
        found["pooling"] = pooling_agreement(run.trace())
    return {
        **what_it_is(settings.model),
        "scale": settings.model.score_scale,
        "seed": settings.training.seed,
        "classes": max(2, len(metrics["alignment"])),
        **{name: metrics[name] for name in (*METRICS, "dev_accuracy", "best_epoch")},
        "alignment": metrics["alignment"][0] if len(metrics["alignment"]) == 1 else None,
        **{column: value for name, one in found.items() for column, value in _bounds(name, one).items()},
    }


def _grouped(run: Run, table: str, printed: bool) -> pd.DataFrame:
    return as_printed(run.table(table)) if printed else run.table(table)


def _bounds(name: str, found: Estimate | None) -> dict[str, object]:
    """A number and its interval as columns, empty where it rests on too little."""
    known = found is not None and min(found.sides) >= FEWEST
    ends = {"": "value", "_low": "low", "_high": "high"}
    return {name + end: getattr(found, part) if known else None for end, part in ends.items()}
