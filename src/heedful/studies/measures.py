"""What finished runs come to, as tables that several studies have.

What a model is stands in columns, taken from the settings of its run: structure, attention, encoder, and whether the
encoder sees a token's neighbours (contextual). Tables of erasure come from the measures `single`, `flips` and `inputs`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from heedful.analysis import quality
from heedful.analysis.decisions import pooling_agreement
from heedful.analysis.separation import clarity, group_measures, separation, sign_share
from heedful.analysis.statistics import FEWEST, Estimate, share
from heedful.analysis.tokens import as_printed
from heedful.claims.combine import mean_table
from heedful.config import ModelSettings
from heedful.papers.serrano2019 import CELLS
from heedful.pipeline import Run

Make = Callable[[pd.DataFrame], pd.DataFrame]
Cell = Mapping[Hashable, Any]
"""A row of a table that becomes a cell in words."""
InWords = Mapping[str, tuple[str, Callable[[Any], str]]]
"""Columns as they are shown: what each is a column of, and how its cells become words."""

METRICS = ("test_accuracy", "test_accuracy_low", "test_accuracy_high")
CELL = ["dataset", "model"]
RUN = [*CELL, "seed"]
MINIMUM = "minimum"

POOLED_FROM = 100.0
"""From this λ on it is asked whether the model is one of mean pooling."""


def as_it_is(table: pd.DataFrame) -> pd.DataFrame:
    return table


def called(dataset: str, names: Mapping[str, str]) -> str:
    """What a paper calls a data set; one that it does not have keeps its own name, a file is called by its name."""
    return names.get(dataset, Path(dataset).name)


def what_it_is(model: ModelSettings) -> dict[str, object]:
    """The columns that say what a model is."""
    return {name: getattr(model, name) for name in ("structure", "attention", "encoder", "contextual")}


def run_row(run: Run) -> pd.DataFrame:
    """One row: how many test texts, the share of their largest class, and the test accuracy with its interval."""
    trace = run.trace()
    largest = np.nan if trace.labels is None else float(torch.bincount(trace.labels).max()) / len(trace)
    row = {"instances": len(trace), "largest_class": largest}
    return pd.DataFrame([row | {name: run.metrics[name] for name in METRICS}])


def measure_runs(dataset: str, model: str, runs: Iterable[Run], *, printed: bool = True) -> pd.DataFrame:
    """A row per run; columns ending in _low and _high are bounds of 95 % over resampled tokens or test texts.

    Accuracy, VᵀW (`alignment`), and how the groups of tokens differ (`group_measures`): in the groups that the paper's
    definition `printed`, or else in those that class sizes cannot move. Of an LSTM `local_separation` and
    `local_signs` are of scores in context, and `clarity` is the difference of the separations; `pooling` is the share
    of test texts whose decision stays when attention is made even.
    """
    return pd.DataFrame([{"dataset": dataset, "model": model, **_row(run, printed)} for run in runs])


def _row(run: Run, printed: bool) -> dict[str, object]:
    def grouped(table: str) -> pd.DataFrame:
        return as_printed(run.table(table)) if printed else run.table(table)

    tokens, metrics, settings = grouped("tokens"), run.metrics, run.settings
    found = dict(group_measures(tokens))
    if settings.model.encoder == "lstm":
        local = grouped("tokens_local")
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
        **{column: value for name, one in found.items() for column, value in bounds(name, one).items()},
    }


def bounds(name: str, found: Estimate | None) -> dict[str, float | None]:
    """A number and its interval as columns, empty where it rests on too little."""
    known = found is not None and min(found.sides) >= FEWEST
    ends = {"": "value", "_low": "low", "_high": "high"}
    return {name + end: getattr(found, part) if known else None for end, part in ends.items()}


def beside(name: str, found: Estimate, seeds: int, paper: float | None, *, unit: float = 100.0) -> dict[str, Any]:
    """A number in per cent, its interval, and the paper's number with the difference."""
    ours, low, high = (unit * number for number in (found.value, found.low, found.high))
    counts = {"instances": found.count, "seeds": seeds}
    difference = None if paper is None else ours - paper
    return {name: ours, "low": low, "high": high, **counts, "paper": paper, "difference": difference}


def beside_in_words(cell: Cell, value: str) -> str:
    """Such as `8.7 [7.9, 9.6], paper 8.7`."""
    words = f"{cell[value]:.1f} [{cell['low']:.1f}, {cell['high']:.1f}]"
    return words if pd.isna(cell["paper"]) else f"{words}, paper {cell['paper']:.1f}"


def arranged(table: pd.DataFrame, keys: Sequence[str], column: str, words: Callable[[Cell], str]) -> pd.DataFrame:
    """As papers print it: a row for each of the keys, a column for each value of one column, cells in words."""
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for cell in table.to_dict("records"):
        key = tuple(cell[name] for name in keys)
        rows.setdefault(key, dict(zip(keys, key, strict=True)))[str(cell[column])] = words(cell)
    return pd.DataFrame(list(rows.values())).fillna("–")


def per_cent(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.1%}"


def two_digits(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.2f}"


def in_words(table: pd.DataFrame, columns: InWords) -> pd.DataFrame:
    """The columns that are shown, each cell in words."""
    return pd.DataFrame({shown: table[name].map(words) for shown, (name, words) in columns.items()})


def cell_shares(single: pd.DataFrame) -> dict[str, Estimate]:
    """The share of instances in each cell of the 2 × 2 table: which of two erasures flips the decision."""
    top, other = single["flip_top"], single["flip_random"]
    marks = (top & other, top & ~other, ~top & other, ~top & ~other)
    return {cell: share(int(mark.sum()), len(single)) for cell, mark in zip(CELLS, marks, strict=True)}


def _of_runs(rows: pd.DataFrame, make: Make) -> Iterator[pd.DataFrame]:
    """A table that is made of each run, with what tells the run apart."""
    for key, run in rows.groupby(RUN, sort=False):
        said: dict[str, Any] = dict(zip(RUN, key, strict=True))
        yield make(run).assign(**said)


def _over_seeds(rows: pd.DataFrame, make: Make, *keys: str) -> pd.DataFrame:
    return mean_table(list(_of_runs(rows, make)), [*CELL, *keys])


def summary_table(flips: pd.DataFrame) -> pd.DataFrame:
    """Per ranking the fraction of units and the attention weight erased at the flip, means over seeds.

    `convention` own leaves out, for each ranking, the instances that it never flips, as the paper does; common takes
    those that all rankings flip. Instances of one unit are left out of both.
    """
    return _over_seeds(flips, lambda run: quality.flip_summary(quality.by_ranking(run)), "ranking", "convention")


def fractions_table(flips: pd.DataFrame) -> pd.DataFrame:
    """The share of instances that lose more than a tenth, a quarter, … of their units, means over seeds."""
    return _over_seeds(
        flips, lambda run: quality.fraction_distribution(quality.by_ranking(run)), "ranking", "convention", "threshold"
    )


def quality_table(flips: pd.DataFrame) -> pd.DataFrame:
    """Per ranking how near it comes to the true minimum (`ranking_quality`), means over seeds."""
    return _over_seeds(flips, lambda run: quality.ranking_quality(*apart(quality.by_ranking(run))), "ranking")


def apart(tables: Mapping[str, pd.DataFrame]) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """The tables of rankings, and that of the minimum."""
    return {name: table for name, table in tables.items() if name != MINIMUM}, tables[MINIMUM]


def wins_table(flips: pd.DataFrame) -> pd.DataFrame:
    """Per run and pair of rankings how often each flips with fewer erasures, with the sign test of `pairwise_wins`.

    `first_share` is of all instances that both flip, as the paper counts when it says that gradient beats attention on
    over half of them; `ratio` is wins by losses.
    """
    table = pd.concat(_of_runs(flips, lambda run: wins_and_attainment(quality.by_ranking(run))), ignore_index=True)
    wins, losses, both = (table[name] for name in ("first_wins", "second_wins", "instances"))
    table = table.assign(first_share=wins / both.where(both > 0), ratio=wins / losses.where(losses > 0))
    return table[list(dict.fromkeys([*RUN, *table]))]


def wins_and_attainment(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """`pairwise_wins`, and beside the minimum on how many instances only one of the two attains it, by McNemar."""
    attained = quality.pairwise_attainment(*apart(tables)).rename(columns={"p_value": "p_attained"})
    return quality.pairwise_wins(tables).merge(attained.drop(columns="instances"), on=["first", "second"], how="left")


def inputs_table(levels: pd.DataFrame) -> pd.DataFrame:
    """Erasure at the input beside erasure of weights: the columns of `compare_levels`, means over seeds."""
    return _over_seeds(levels, quality.compare_levels, "mode", "ranking")


def input_summary_table(levels: pd.DataFrame) -> pd.DataFrame:
    """What `summary_table` says of erased weights, of each level: attention, delete and mask, on the same texts."""
    parts = [summary_table(rows).assign(level=level) for level, rows in levels.groupby("level", sort=False)]
    table = pd.concat(parts, ignore_index=True)
    return table[list(dict.fromkeys([*CELL, "level", *table]))]
