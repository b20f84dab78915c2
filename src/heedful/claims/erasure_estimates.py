"""What the claims of Serrano & Smith 2019 are judged by: numbers of one run, put together over seeds and models.

The tables are `single` and `flips` (`heedful.studies.serrano2019.measures`), of one run, or of many told apart by the
columns dataset, model and seed. A number of one run has an interval over its instances: Wilson's for a share, that of
bootstrap resamples for anything else. Runs that differ in their seed alone are averaged, and Student's interval over
seeds is added in quadrature. Over models and data sets the mean counts, or the weakest where a claim is of every model;
the mean has the mean of the intervals, as if all erred together, because models of one data set read the same texts.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Estimate, Numbers, area, bootstrap, mean_over_seeds, share
from heedful.claims.kinds import Tables

OfRun = Callable[[pd.DataFrame], Estimate | None]
OfTables = Callable[[Tables], Estimate | None]
Together = Callable[[Sequence[Estimate]], Estimate]

STRUCTURES = ("HAN", "FLAN")
NO_ENCODER = "noenc"
PAPERS = ("attention", "gradient", "product", "random")
"""The rankings of the paper."""

BINS = 10
FEWEST = 5
"""Instances that a tenth of the range of Δα must hold in each of two models to compare them there."""


def over_seeds(found: Sequence[Estimate]) -> Estimate:
    """The mean of runs that differ in their seed alone; both intervals in quadrature."""
    seeds = mean_over_seeds(np.array([one.value for one in found], dtype=np.float64))
    below = float(np.mean([one.value - one.low for one in found]))
    above = float(np.mean([one.high - one.value for one in found]))
    return Estimate(
        value=seeds.value,
        low=seeds.value - math.hypot(seeds.value - seeds.low, below),
        high=seeds.value + math.hypot(seeds.high - seeds.value, above),
        count=sum(one.count for one in found),
    )


def mean_of(found: Sequence[Estimate]) -> Estimate:
    """The mean over models, its interval the mean of theirs."""
    return Estimate(
        value=float(np.mean([one.value for one in found])),
        low=float(np.mean([one.low for one in found])),
        high=float(np.mean([one.high for one in found])),
        count=sum(one.count for one in found),
    )


def weakest_of(found: Sequence[Estimate]) -> Estimate:
    """The model where it is smallest."""
    return min(found, key=lambda one: one.value)


def over_runs(
    table: str,
    of_run: OfRun,
    *,
    together: Together = mean_of,
    encoder: bool | None = None,
    within: tuple[float, float] = (0.0, 1.0),
) -> OfTables:
    """A number of every run of a table, over seeds, then over models and data sets.

    `encoder`: only models with one, or only those without; a table that names no model is that of one with an encoder.
    `within`: what the number can be.
    """

    def estimate(tables: Tables) -> Estimate | None:
        models = _by_model(tables[table], of_run, encoder)
        return _within(together(list(models.values())), within) if models else None

    return estimate


def _within(found: Estimate, bounds: tuple[float, float]) -> Estimate:
    return replace(found, low=max(found.low, bounds[0]), high=min(found.high, bounds[1]))


def _by_model(rows: pd.DataFrame, of_run: OfRun, encoder: bool | None = None) -> dict[tuple[str, str], Estimate]:
    """The number by data set and model; seeds whose run has none are left out."""
    seeds: dict[tuple[str, str], list[Estimate]] = {}
    for dataset, model, run in _runs(rows):
        if encoder is None or encoder != model.endswith(NO_ENCODER):
            found = of_run(run)
            if found is not None:
                seeds.setdefault((dataset, model), []).append(found)
    return {key: over_seeds(found) for key, found in seeds.items()}


def _runs(rows: pd.DataFrame) -> Iterable[tuple[str, str, pd.DataFrame]]:
    """Data set, model and rows of every run; both names are empty where the table has none."""
    keys = [name for name in ("dataset", "model", "seed") if name in rows]
    groups = rows.groupby(keys, sort=False) if keys else [((), rows)]
    for values, run in groups:
        named = dict(zip(keys, values, strict=True))
        yield str(named.get("dataset", "")), str(named.get("model", "")), run


def contrast(table: str, of_run: OfRun, *, of: str, against: Sequence[str]) -> OfTables:
    """A number with one encoder minus that with another, over data sets and structures (HAN, FLAN) that have both.

    Of several encoders on the other side the largest number counts.
    """

    def estimate(tables: Tables) -> Estimate | None:
        models = _by_model(tables[table], of_run)
        found = []
        for dataset in dict.fromkeys(dataset for dataset, _ in models):
            for structure in STRUCTURES:
                one = models.get((dataset, structure + of))
                others = [models.get((dataset, structure + encoder)) for encoder in against]
                known = [other for other in others if other is not None]
                if one is not None and len(known) == len(against):
                    found.append(minus(one, max(known, key=lambda other: other.value)))
        return mean_of(found) if found else None

    return estimate


def minus(one: Estimate, other: Estimate) -> Estimate:
    """The difference of two independent estimates."""
    value = one.value - other.value
    return Estimate(
        value=value,
        low=value - math.hypot(one.value - one.low, other.high - other.value),
        high=value + math.hypot(one.high - one.value, other.value - other.low),
        count=one.count + other.count,
    )


def _top(run: pd.DataFrame, ranking: str = "attention") -> pd.DataFrame:
    return run[run["ranking"] == ranking]


def positive_divergence(run: pd.DataFrame) -> Estimate | None:
    """The share of instances with ΔJS > 0, of those where it is not exactly zero."""
    difference = _top(run)["divergence_difference"]
    above, below = int((difference > 0).sum()), int((difference < 0).sum())
    return share(above, above + below) if above + below else None


def smaller_difference(run: pd.DataFrame) -> Estimate | None:
    """P(Δα is smaller where ΔJS is negative than where it is positive), equals counting half."""
    rows = _top(run)
    positive = rows.loc[rows["divergence_difference"] > 0, "difference"].to_numpy(np.float64)
    negative = rows.loc[rows["divergence_difference"] < 0, "difference"].to_numpy(np.float64)
    return bootstrap(area, positive, negative) if len(positive) and len(negative) else None


def top_only(run: pd.DataFrame) -> Estimate | None:
    """Of the instances where exactly one of the two erasures flips, the share where that of the top unit does."""
    rows = _top(run)
    alone = rows[rows["flips_top"] != rows["flips_other"]]
    return share(int(alone["flips_top"].sum()), len(alone)) if len(alone) else None


def unmoved(run: pd.DataFrame) -> Estimate | None:
    """The share of decisions that stay when the most attended unit is erased."""
    rows = _top(run)
    return share(int((~rows["flips_top"]).sum()), len(rows)) if len(rows) else None


def some_flip(run: pd.DataFrame) -> Estimate | None:
    """The share of instances where erasing the top unit or the other one flips."""
    rows = _top(run)
    return share(int((rows["flips_top"] | rows["flips_other"]).sum()), len(rows)) if len(rows) else None


def more_top_flips(run: pd.DataFrame) -> Estimate | None:
    """How much more often the product's top unit flips alone than attention's, on the same instances."""
    product, attention = (_top(run, name).set_index("instance")["flips_top"] for name in ("product", "attention"))
    paired = np.asarray(product.astype(float) - attention.astype(float), dtype=np.float64)
    return bootstrap(_mean, paired) if len(paired) else None


def erased_counts(run: pd.DataFrame, column: str = "erased") -> pd.DataFrame:
    """A column of `flips` by instance and ranking, for more than one unit; the mean of random orders, null if one is.

    Nothing is averaged for the other rankings: they have one order.
    """
    several = run[run["units"] > 1]
    values = pd.Series(several[column].to_numpy(np.float64, na_value=np.nan), index=several.index)
    keys = [several["instance"], several["ranking"]]
    means, missing = values.groupby(keys, sort=False).mean(), values.isna().groupby(keys, sort=False).any()
    return means.mask(missing).unstack("ranking")


def wins(first: str, *others: str) -> OfRun:
    """Of the instances that two rankings flip after different numbers of units, the share where `first` needs fewer.

    Of several others the one against which `first` does worst.
    """

    def of_run(run: pd.DataFrame) -> Estimate | None:
        counts = erased_counts(run)
        found = [_wins(counts[first], counts[other]) for other in others if {first, other} <= set(counts)]
        known = [one for one in found if one is not None]
        return weakest_of(known) if known else None

    return of_run


def _wins(first: "pd.Series[float]", other: "pd.Series[float]") -> Estimate | None:
    fewer, more = int((first < other).sum()), int((first > other).sum())
    return share(fewer, fewer + more) if fewer + more else None


def faster_than_attention(run: pd.DataFrame) -> Estimate | None:
    """The weaker of gradient and product: share of wins over attention."""
    found = [wins(name, "attention")(run) for name in ("gradient", "product")]
    known = [one for one in found if one is not None]
    return weakest_of(known) if len(known) == len(found) else None


def mean_fraction(run: pd.DataFrame) -> Estimate | None:
    """The mean fraction erased at the flip: over the paper's rankings, on the instances that all of them flip."""
    fractions = erased_counts(run, "fraction")
    known = fractions[[name for name in PAPERS if name in fractions]].dropna()
    return bootstrap(_mean, known.mean(axis=1).to_numpy(np.float64)) if len(known) else None


def attained(ranking: str) -> OfRun:
    """The share of instances where a ranking attains the minimum, among those where it could miss it.

    Where only erasing everything flips, every ranking attains the minimum, and nothing is learned of it.
    """

    def of_run(run: pd.DataFrame) -> Estimate | None:
        counts = erased_counts(run)
        if not {ranking, "minimum"} <= set(counts):
            return None
        units = run.groupby("instance")["units"].first().reindex(counts.index)
        open_ones = counts[counts["minimum"].notna() & (counts["minimum"] < units)]
        best = int((open_ones[ranking] == open_ones["minimum"]).sum())
        return share(best, len(open_ones)) if len(open_ones) else None

    return of_run


def less_mass(run: pd.DataFrame) -> Estimate | None:
    """How much less attention weight gradient and product erase than attention: the smaller of the two means.

    Over the instances that both flip.
    """
    masses = erased_counts(run, "mass")
    if not {"attention", "gradient", "product"} <= set(masses):
        return None
    saved = [(masses["attention"] - masses[name]).dropna().to_numpy(np.float64) for name in ("gradient", "product")]
    return weakest_of([bootstrap(_mean, part) for part in saved]) if all(map(len, saved)) else None


def earlier_upswing(tables: Tables) -> Estimate | None:
    """Mean ΔJS without encoder minus that with a recurrent one, at equal Δα: above zero, the upswing comes earlier.

    The range of Δα is cut into tenths; those with five instances of both models count, weighted by the smaller number.
    Models of one seed are compared; then over seeds, then over data sets and structures (HAN, FLAN).
    """
    tops: dict[tuple[str, str], dict[object, pd.DataFrame]] = {}
    for dataset, model, run in _runs(tables["single"]):
        tops.setdefault((dataset, model), {})[run["seed"].iloc[0] if "seed" in run else 0] = _top(run)
    found = []
    for dataset in dict.fromkeys(dataset for dataset, _ in tops):
        for structure in STRUCTURES:
            less, more = (tops.get((dataset, structure + encoder), {}) for encoder in (NO_ENCODER, "rnn"))
            seeds = [_above_at_equal_difference(less[seed], more[seed]) for seed in less if seed in more]
            known = [one for one in seeds if one is not None]
            found += [over_seeds(known)] if known else []
    return mean_of(found) if found else None


def _above_at_equal_difference(one: pd.DataFrame, other: pd.DataFrame) -> Estimate | None:
    pairs = _shared_bins(one, other)
    if not pairs:
        return None
    weights = np.array([min(len(first), len(second)) for first, second in pairs], dtype=np.float64)

    def height(*samples: Numbers) -> float:
        means = [samples[place].mean() - samples[place + 1].mean() for place in range(0, len(samples), 2)]
        return float(np.average(means, weights=weights))

    return bootstrap(height, *(sample for pair in pairs for sample in pair))


def _shared_bins(one: pd.DataFrame, other: pd.DataFrame) -> list[tuple[Numbers, Numbers]]:
    """ΔJS of two models within each tenth of the range of Δα that both have enough of."""
    parts = [_binned(rows) for rows in (one, other)]
    pairs = [(parts[0].get(bin_), parts[1].get(bin_)) for bin_ in range(BINS)]
    return [(a, b) for a, b in pairs if a is not None and b is not None and min(len(a), len(b)) >= FEWEST]


def _binned(rows: pd.DataFrame) -> dict[int, Numbers]:
    bins = (rows["difference"].clip(0, 1) * BINS).astype(int).clip(upper=BINS - 1)
    return {
        int(str(bin_)): part.to_numpy(np.float64)
        for bin_, part in rows["divergence_difference"].groupby(bins.to_numpy())
    }


def _mean(values: Numbers) -> float:
    return float(values.mean())
