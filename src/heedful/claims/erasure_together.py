"""How numbers of single runs are put together over seeds, models and data sets, with intervals that may be trusted.

The tables are `single` and `flips` (`heedful.studies.serrano2019.measures`), of one run, or of many told apart by the
columns dataset, model and seed. Runs that differ in their seed alone are averaged, and Student's interval over seeds is
added in quadrature. Over models and data sets the mean counts; it has the mean of the intervals, as if all erred
together, because models of one data set read the same texts.

Where a claim is of every model, or of each of several rankings, the smallest number counts (`smallest`). Every part can
be estimated at any level, because the smallest of many falls below a line by chance more often than one does.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.statistics import LEVEL, Estimate, mean_over_seeds
from heedful.claims.kinds import Tables

OfRun = Callable[[pd.DataFrame, float], Estimate | None]
"""A number of one run with its interval at a level, not a number on too few texts; None where it was not measured."""
OfPair = Callable[[pd.DataFrame, pd.DataFrame, float], Estimate | None]
"""The same of two runs on the same texts."""
OfTables = Callable[[Tables], Estimate | None]
AtLevel = Callable[[float], Estimate | None]

Named = tuple[str, str]
"""A data set and a model."""

STRUCTURES = ("HAN", "FLAN")
NO_ENCODER = "noenc"
SHARES = (0.0, 1.0)
DIFFERENCES = (-1.0, 1.0)


def over_seeds(found: Sequence[Estimate], level: float = LEVEL) -> Estimate:
    """The mean of runs that differ in their seed alone; both intervals in quadrature."""
    seeds = mean_over_seeds(np.array([one.value for one in found], dtype=np.float64), level=level)
    below = float(np.mean([one.value - one.low for one in found]))
    above = float(np.mean([one.high - one.value for one in found]))
    return Estimate(
        value=seeds.value,
        low=seeds.value - math.hypot(seeds.value - seeds.low, below),
        high=seeds.value + math.hypot(seeds.high - seeds.value, above),
        count=sum(one.count for one in found),
        groups=_both_sides(found),
    )


def _both_sides(found: Sequence[Estimate]) -> tuple[int, int] | None:
    """The sides of several comparisons together; None where one is no comparison."""
    sides = [one.groups for one in found if one.groups is not None]
    return (sum(one for one, _ in sides), sum(other for _, other in sides)) if len(sides) == len(found) else None


def mean_of(found: Sequence[Estimate]) -> Estimate:
    """The mean over models, its interval the mean of theirs."""
    return Estimate(
        value=float(np.mean([one.value for one in found])),
        low=float(np.mean([one.low for one in found])),
        high=float(np.mean([one.high for one in found])),
        count=sum(one.count for one in found),
        groups=_both_sides(found),
    )


def smallest(parts: Sequence[AtLevel], level: float = LEVEL) -> Estimate | None:
    """The smallest of several numbers; its count is that of the part where it is smallest.

    It exceeds a line when every part does: its low end is the smallest of theirs, at the level itself. It falls below
    when any part does, and with m parts there are m chances to do so by accident: its high end is the smallest of
    theirs at Bonferroni's level 1 − (1 − level)/m. A part that cannot be estimated may be anything: there is no low
    end then, so that what is said of every part may be refuted but not upheld.
    """
    every = [part(level) for part in parts]
    found = _known(every)
    if not found:
        return _none_known(every)
    strict = _known(part(1 - (1 - level) / len(found)) for part in parts) if len(found) > 1 else found
    weakest = min(found, key=lambda one: one.value)
    return Estimate(
        value=weakest.value,
        low=min(one.low for one in found) if len(found) == len(parts) else -math.inf,
        high=min(one.high for one in strict),
        count=weakest.count,
        groups=weakest.groups,
    )


def over_runs(
    table: str,
    *of_run: OfRun,
    every: bool = False,
    encoder: bool | None = None,
    within: tuple[float, float] = SHARES,
) -> OfTables:
    """A number of every run of a table, over seeds, then the mean over models and data sets; of several the smallest.

    `every`: the smallest over models and data sets instead of the mean. `encoder`: only models with one, or only those
    without; a table that names no model is that of one with an encoder. `within`: what the number can be.
    """

    def estimate(tables: Tables) -> Estimate | None:
        numbers = [list(_by_model(tables[table], one, encoder).values()) for one in of_run]
        parts = [part for models in numbers for part in models] if every else [_mean(models) for models in numbers]
        return _within(smallest(parts), within)

    return estimate


def contrast(table: str, of_pair: OfPair, *pairs: tuple[str, str]) -> OfTables:
    """A number of two encoders on the same texts, over seeds, then over data sets and structures that have both.

    Of several pairs of encoders the one where it is smallest. Runs of the same seed are compared.
    """

    def estimate(tables: Tables) -> Estimate | None:
        runs = _seeds(tables[table])
        return _within(smallest([_mean(_compared(runs, of_pair, *pair)) for pair in pairs]), DIFFERENCES)

    return estimate


def _compared(runs: dict[Named, dict[object, pd.DataFrame]], of_pair: OfPair, one: str, other: str) -> list[AtLevel]:
    found = []
    for dataset in dict.fromkeys(dataset for dataset, _ in runs):
        for structure in STRUCTURES:
            first, second = (runs.get((dataset, structure + encoder), {}) for encoder in (one, other))
            found.append(_of_pairs(of_pair, [(first[seed], second[seed]) for seed in first if seed in second]))
    return found


def _of_pairs(of_pair: OfPair, pairs: Sequence[tuple[pd.DataFrame, pd.DataFrame]]) -> AtLevel:
    return _averaged([partial(of_pair, *pair) for pair in pairs])


def _by_model(rows: pd.DataFrame, of_run: OfRun, encoder: bool | None = None) -> dict[Named, AtLevel]:
    """The number by data set and model."""
    return {
        named: _averaged([partial(of_run, run) for run in seeds.values()])
        for named, seeds in _seeds(rows).items()
        if encoder is None or encoder != named[1].endswith(NO_ENCODER)
    }


def _averaged(runs: Sequence[AtLevel]) -> AtLevel:
    """Over seeds; those whose run has no number are left out."""

    def at(level: float) -> Estimate | None:
        every = [run(level) for run in runs]
        found = _known(every)
        return over_seeds(found, level) if found else _none_known(every)

    return at


def _mean(models: Sequence[AtLevel]) -> AtLevel:
    """Over models; those that have no number are left out."""

    def at(level: float) -> Estimate | None:
        every = [model(level) for model in models]
        found = _known(every)
        return mean_of(found) if found else _none_known(every)

    return at


def _known(found: Iterable[Estimate | None]) -> list[Estimate]:
    return [one for one in found if one is not None and one.known]


def _none_known(found: Iterable[Estimate | None]) -> Estimate | None:
    """Of several that are too few the one that has most; None where nothing was measured."""
    return max((one for one in found if one is not None), key=lambda one: one.count, default=None)


def _within(found: Estimate | None, bounds: tuple[float, float]) -> Estimate | None:
    if found is None or not found.known:
        return found
    return replace(found, low=max(found.low, bounds[0]), high=min(found.high, bounds[1]))


def _seeds(rows: pd.DataFrame) -> dict[Named, dict[object, pd.DataFrame]]:
    """The rows of every run by data set and model, then by seed; names are empty where the table has none."""
    keys = [name for name in ("dataset", "model", "seed") if name in rows]
    found: dict[Named, dict[object, pd.DataFrame]] = {}
    for values, run in rows.groupby(keys, sort=False) if keys else [((), rows)]:
        said = dict(zip(keys, values, strict=True))
        named = str(said.get("dataset", "")), str(said.get("model", ""))
        found.setdefault(named, {})[said.get("seed")] = run
    return found


@dataclass(frozen=True, kw_only=True)
class Remarked(Estimate):
    """An estimate and a sentence on how many of the models show something by themselves; empty for a single one."""

    remark: str


def remarked(
    estimate: OfTables, table: str, *of_run: OfRun, above: float, words: str, encoder: bool | None = None
) -> OfTables:
    """The estimate with the number of models (on each data set) where every `of_run` is above a line.

    `words` have the places {those} and {models}; models that rest on too few texts do not count.
    """

    def with_remark(tables: Tables) -> Estimate | None:
        found = estimate(tables)
        if found is None or not found.known:
            return found
        rows = tables[table]
        marks = _marks(rows, of_run, above, encoder) if "model" in rows else []
        remark = " " + words.format(those=sum(marks), models=len(marks)) if len(marks) > 1 else ""
        return Remarked(value=found.value, low=found.low, high=found.high, count=found.count, remark=remark)

    return with_remark


def _marks(rows: pd.DataFrame, of_run: Sequence[OfRun], above: float, encoder: bool | None) -> list[bool]:
    """For each model that has all numbers, whether all are above the line."""
    numbers = [{named: at(LEVEL) for named, at in _by_model(rows, one, encoder).items()} for one in of_run]
    models = [_known(number[named] for number in numbers) for named in numbers[0]]
    return [all(one.value > above for one in found) for found in models if len(found) == len(of_run)]
