"""How numbers of single runs are put together over seeds, models and data sets, with intervals that may be trusted.

Tables are of one run, or of many told apart by the columns dataset, model and seed; the columns structure and encoder
say what a model is. Runs that differ in their seed alone are averaged, and Student's interval over seeds is added in
quadrature to that over texts or tokens. Over models and data sets the mean counts; it has the mean of the intervals, as
if all erred together, because models of one data set read the same texts.

Where a claim is of every model, or of each of several rankings, the smallest number counts (`smallest`). Every part can
be estimated at any level, because the smallest of many falls below a line by chance more often than one does.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.statistics import LEVEL, Estimate, Numbers, mean_over_seeds

OfRun = Callable[[pd.DataFrame, float], Estimate | None]
"""A number of one run with its interval at a level, not a number on too few texts; None where it was not measured."""
OfPair = Callable[[pd.DataFrame, pd.DataFrame, float], Estimate | None]
"""The same of two runs on the same texts."""
OfTable = Callable[[pd.DataFrame], Estimate | None]
AtLevel = Callable[[float], Estimate | None]

Span = tuple[float, float]
Key = tuple[str, ...]
"""What tells runs apart that do not differ in their seed alone."""

STRUCTURES = ("hierarchical", "flat")
NO_ENCODER = "none"
SHARES: Span = (0.0, 1.0)
DIFFERENCES: Span = (-1.0, 1.0)
FEW_SEEDS = 3  # with fewer, the spread over seeds is unknown, and an accuracy has the interval of its test texts


def in_quadrature(values: Numbers, below: float, above: float, *, level: float = LEVEL) -> Estimate:
    """The mean over seeds; Student's interval, and one that a single run has already, in quadrature."""
    seeds = mean_over_seeds(values, level=level)
    low = seeds.value - math.hypot(seeds.value - seeds.low, below)
    return replace(seeds, low=low, high=seeds.value + math.hypot(seeds.high - seeds.value, above))


def over_seeds(found: Sequence[Estimate], level: float = LEVEL) -> Estimate:
    """The mean of runs that differ in their seed alone; both intervals in quadrature."""
    below = float(np.mean([one.value - one.low for one in found]))
    above = float(np.mean([one.high - one.value for one in found]))
    mean = in_quadrature(np.array([one.value for one in found], dtype=np.float64), below, above, level=level)
    return replace(mean, count=sum(one.count for one in found), groups=_both_sides(found))


def own_or_over_seeds(found: Sequence[Estimate], within: Span = (-math.inf, math.inf)) -> Estimate:
    """One seed's own interval, or Student's over several, within what the number can be."""
    if len(found) == 1:
        return found[0]
    mean = mean_over_seeds(np.array([one.value for one in found], dtype=np.float64))
    return _clipped(replace(mean, count=round(sum(one.count for one in found) / len(found))), within)


def mean_table(parts: Sequence[pd.DataFrame], keys: Sequence[str]) -> pd.DataFrame:
    """The mean of every column of numbers over the tables that differ in their seed alone, and how many there are."""
    grouped = pd.concat(parts, ignore_index=True).groupby(list(keys), sort=False)
    return grouped.mean(numeric_only=True).drop(columns="seed").assign(seeds=grouped.size()).reset_index()


def mean_column(
    rows: pd.DataFrame, column: str, *, least: float = -math.inf, most: float = math.inf, of: str = "its tokens"
) -> Estimate | None:
    """The mean of a measured column: over the runs of each seed, then over seeds, with both kinds of interval.

    The column's own interval is one `of` tokens, or texts.
    """
    known = rows.dropna(subset=[column]) if column in rows else rows.iloc[:0]
    if known.empty:
        return None
    values = known.groupby("seed")[column].mean().to_numpy(np.float64)
    below, above = (known[column] - known[f"{column}_low"]).mean(), (known[f"{column}_high"] - known[column]).mean()
    mean = in_quadrature(values, float(below), float(above))
    over = of if len(values) == 1 else f"seeds and {of.replace('its', 'their')}"
    return replace(_clipped(mean, (least, most)), count=len(known), over=over)


def accuracy_difference(first: pd.DataFrame, second: pd.DataFrame) -> Estimate | None:
    """Test accuracy of some runs minus that of others, by seed, on one test split.

    From three seeds on the interval is the one over seeds. With fewer it is that of two independent shares of the
    test texts, which is wide, because both models read the same texts.
    """
    one, other = (rows.groupby("seed")["test_accuracy"].mean() for rows in (first, second))
    differences = (one - other).dropna().to_numpy(np.float64)
    if not len(differences):
        return None
    found = mean_over_seeds(differences)
    if len(differences) >= FEW_SEEDS:
        return found
    half = math.hypot(*(float((r["test_accuracy_high"] - r["test_accuracy_low"]).mean()) / 2 for r in (first, second)))
    return replace(found, low=found.value - half, high=found.value + half, over="test texts")


def mean_of_runs(
    statistic: Callable[[pd.DataFrame], float | None], within: Span = (-math.inf, math.inf)
) -> Callable[..., Estimate | None]:
    """The mean of a statistic of each run with its interval over seeds, within what the statistic can be.

    One run is no evidence of a regularity, and two are the least that have an interval. It is at the usual level, or
    at one that is given beside the table.
    """

    def estimate(rows: pd.DataFrame, level: float = LEVEL) -> Estimate | None:
        found = [statistic(run) for _, run in rows.groupby("seed")]
        values = np.array([value for value in found if value is not None], dtype=np.float64)
        return _clipped(mean_over_seeds(values, level=level), within) if len(values) > 1 else None

    return estimate


def mean_of(found: Sequence[Estimate], _level: float = LEVEL) -> Estimate:
    """The mean over models, its interval the mean of theirs, whatever their level is."""
    value, low, high = (float(np.mean([getattr(one, end) for one in found])) for end in ("value", "low", "high"))
    return Estimate(value=value, low=low, high=high, count=sum(one.count for one in found), groups=_both_sides(found))


def _both_sides(found: Sequence[Estimate]) -> tuple[int, int] | None:
    """The sides of several comparisons together; None where one is no comparison."""
    sides = [one.groups for one in found if one.groups is not None]
    return (sum(one for one, _ in sides), sum(other for _, other in sides)) if len(sides) == len(found) else None


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
        return _nearest_to_known(every)
    strict = _known(part(1 - (1 - level) / len(found)) for part in parts) if len(found) > 1 else found
    weakest = min(found, key=lambda one: one.value)
    low = min(one.low for one in found) if len(found) == len(parts) else -math.inf
    return replace(weakest, low=low, high=min(one.high for one in strict))


def over_runs(*of_run: OfRun, every: bool = False, encoder: bool | None = None, within: Span = SHARES) -> OfTable:
    """A number of every run of a table, over seeds, then the mean over models and data sets; of several the smallest.

    `every`: the smallest over models and data sets instead of the mean. `encoder`: only models with one, or only those
    without; a table that does not say is that of one with an encoder. `within`: what the number can be.
    """

    def estimate(rows: pd.DataFrame) -> Estimate | None:
        numbers = [list(_by_model(rows, one, encoder).values()) for one in of_run]
        means: list[AtLevel] = [partial(_joined, mean_of, models) for models in numbers]
        found = smallest([part for models in numbers for part in models] if every else means)
        return found and _clipped(found, within)

    return estimate


def contrast(of_pair: OfPair, *pairs: tuple[str, str]) -> OfTable:
    """A number of two encoders on the same texts, over seeds, then over data sets and structures that have both.

    Of several pairs of encoders the one where it is smallest. Runs of the same seed are compared.
    """

    def estimate(rows: pd.DataFrame) -> Estimate | None:
        runs = _runs(rows, "dataset", "structure", "encoder")
        found = smallest([partial(_joined, mean_of, _compared(runs, of_pair, *pair)) for pair in pairs])
        return found and _clipped(found, DIFFERENCES)

    return estimate


def _compared(runs: dict[Key, dict[object, pd.DataFrame]], of_pair: OfPair, one: str, other: str) -> list[AtLevel]:
    """The number of each data set and structure."""
    found: list[AtLevel] = []
    for dataset in dict.fromkeys(dataset for dataset, _, _ in runs):
        for structure in STRUCTURES:
            first, second = (runs.get((dataset, structure, encoder), {}) for encoder in (one, other))
            pairs = [partial(of_pair, first[seed], second[seed]) for seed in first if seed in second]
            found.append(partial(_joined, over_seeds, pairs))
    return found


def _by_model(rows: pd.DataFrame, of_run: OfRun, encoder: bool | None = None) -> dict[Key, AtLevel]:
    """The number by data set and model."""
    if encoder is not None and "encoder" in rows:
        rows = rows[(rows["encoder"] != NO_ENCODER) == encoder]
    elif encoder is False:
        return {}
    runs = _runs(rows, "dataset", "model")
    found = {key: [partial(of_run, run) for run in seeds.values()] for key, seeds in runs.items()}
    return {key: partial(_joined, over_seeds, parts) for key, parts in found.items()}


def _runs(rows: pd.DataFrame, *names: str) -> dict[Key, dict[object, pd.DataFrame]]:
    """The rows of every run by what these columns say, then by seed; what the table does not say is empty."""
    keys = [name for name in (*names, "seed") if name in rows]
    found: dict[Key, dict[object, pd.DataFrame]] = {}
    for values, run in rows.groupby(keys, sort=False) if keys else [((), rows)]:
        said = dict(zip(keys, values, strict=True))
        found.setdefault(tuple(str(said.get(name, "")) for name in names), {})[said.get("seed")] = run
    return found


def _joined(
    join: Callable[[Sequence[Estimate], float], Estimate], parts: Sequence[AtLevel], level: float
) -> Estimate | None:
    """Several numbers as one, at a level; those that are not known are left out."""
    every = [part(level) for part in parts]
    found = _known(every)
    return join(found, level) if found else _nearest_to_known(every)


def _known(found: Iterable[Estimate | None]) -> list[Estimate]:
    return [one for one in found if one is not None and one.known]


def _nearest_to_known(found: Iterable[Estimate | None]) -> Estimate | None:
    """Of several that are too few the one that has most; None where nothing was measured."""
    return max((one for one in found if one is not None), key=lambda one: one.count, default=None)


def _clipped(found: Estimate, within: Span) -> Estimate:
    return replace(found, low=max(found.low, within[0]), high=min(found.high, within[1]))


def remarked(estimate: OfTable, *of_run: OfRun, above: float, words: str, encoder: bool | None = None) -> OfTable:
    """The estimate with a sentence on how many models (on each data set) have every `of_run` above a line.

    `words` have the places {those} and {models}; models that rest on too few texts do not count, and of a single one
    nothing is said.
    """

    def with_remark(rows: pd.DataFrame) -> Estimate | None:
        found = estimate(rows)
        if found is None or not found.known or "model" not in rows:
            return found
        numbers = [{key: at(LEVEL) for key, at in _by_model(rows, one, encoder).items()} for one in of_run]
        models = [_known(number[key] for number in numbers) for key in numbers[0]]
        marks = [all(one.value > above for one in every) for every in models if len(every) == len(of_run)]
        return replace(found, remark=" " + words.format(those=sum(marks), models=len(marks)) if len(marks) > 1 else "")

    return with_remark
