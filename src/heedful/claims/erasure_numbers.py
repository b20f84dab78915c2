"""What the claims of Serrano & Smith 2019 are judged by: numbers of one run, or of two runs on the same texts.

Each has an interval over instances that is never a point: Wilson's for a share, the exact one of pairs for a difference
of shares, that of an area, and that of bootstrap resamples for anything else. A group of fewer than `FEWEST` instances
gives no number but how many there are. How they are put together over seeds and models is said in
`heedful.claims.combine`.
"""

import numpy as np
import pandas as pd

from heedful.analysis.quality import check_same_instances, counts_by_order, erased_counts, of_several_units
from heedful.analysis.rankings import PAPERS
from heedful.analysis.statistics import (
    FEWEST,
    Estimate,
    Numbers,
    area_estimate,
    bootstrap,
    bounded_mean,
    paired_difference,
    share,
    too_few,
)

CHANCE = "random"
BINS = 10  # tenths of the range of Δα, in which the medians of ΔJS are taken

UPSWING = 0.01
"""The upswing of ΔJS begins where its median passes so many nats: most values are close to zero (A.2), and the most
that there can be is log 2."""


def _top(run: pd.DataFrame, ranking: str = "attention") -> pd.DataFrame:
    return run[run["ranking"] == ranking]


def _share(successes: int, trials: int, level: float) -> Estimate:
    return share(successes, trials, level=level) if trials >= FEWEST else too_few(trials)


def _mean(values: Numbers, level: float, low: float = 0.0) -> Estimate:
    """The mean of shares; of differences of shares with −1 as the lowest."""
    return bounded_mean(values, low=low, high=1.0, level=level) if len(values) >= FEWEST else too_few(len(values))


def positive_divergence(run: pd.DataFrame, level: float) -> Estimate | None:
    """The share of ΔJS > 0 among those that are not zero."""
    values = _top(run)["delta_js"]
    return _share(int((values > 0).sum()), int((values != 0).sum()), level)


def smaller_difference(run: pd.DataFrame, level: float) -> Estimate | None:
    """P(Δα where ΔJS < 0 is smaller than where ΔJS > 0): one half where they are alike, one where it always is."""
    rows = _top(run)
    positive = rows.loc[rows["delta_js"] > 0, "delta_weight"].to_numpy(np.float64)
    negative = rows.loc[rows["delta_js"] < 0, "delta_weight"].to_numpy(np.float64)
    sides = len(positive), len(negative)
    return area_estimate(positive, negative, level=level) if min(sides) >= FEWEST else too_few(*sides)


def top_only(run: pd.DataFrame, level: float) -> Estimate | None:
    """Of the instances where exactly one of the two erasures flips, the share where that of the top unit does."""
    rows = _top(run)
    alone = rows[rows["flip_top"] != rows["flip_random"]]
    return _share(int(alone["flip_top"].sum()), len(alone), level)


def unmoved(run: pd.DataFrame, level: float) -> Estimate | None:
    """The share of decisions that stay when the most attended unit is erased."""
    rows = _top(run)
    return _share(int((~rows["flip_top"]).sum()), len(rows), level)


def more_top_flips(first: str, second: str, run: pd.DataFrame, level: float) -> Estimate | None:
    """How much more often the top unit of one ranking flips alone than that of another, on the same instances."""
    one, other = (_top(run, name).set_index("instance")["flip_top"] for name in (first, second))
    return _more(one, other, level)


def more_flips(one: pd.DataFrame, other: pd.DataFrame, level: float) -> Estimate | None:
    """How much more often erasing the top unit or the other one flips in one model than in another."""
    first, second = (_top(run).set_index("instance")[["flip_top", "flip_random"]].any(axis=1) for run in (one, other))
    return _more(first, second, level)


def _more(first: "pd.Series[bool]", second: "pd.Series[bool]", level: float) -> Estimate | None:
    if first.empty or second.empty:  # not measured
        return None
    check_same_instances(first.index, second.index)
    second = second.reindex(first.index)  # in the same order
    if len(first) < FEWEST:
        return too_few(len(first))
    gained, lost = int((first & ~second).sum()), int((second & ~first).sum())
    return paired_difference(gained=gained, lost=lost, pairs=len(first), level=level)


def _beside(run: pd.DataFrame, column: str, first: str, second: str) -> tuple[Numbers, Numbers] | None:
    """A column of two rankings instance by instance, and order by order; None where one was not measured."""
    values = counts_by_order(run, column)
    if not {first, second} <= set(values.columns.get_level_values(0)):
        return None
    return values[first].to_numpy(), values[second].to_numpy()


def wins(first: str, second: str, run: pd.DataFrame, level: float) -> Estimate | None:
    """Of the instances in which two rankings erase different numbers of units, the share where `first` needs fewer."""
    counts = _beside(run, "erased", first, second)
    if counts is None:
        return None
    one, other = (count[:, 0] for count in counts)
    return _share(int((one < other).sum()), int((one != other).sum()), level)


def sooner_than_chance(ranking: str, run: pd.DataFrame, level: float) -> Estimate | None:
    """P(the ranking needs fewer units than a random order), equal numbers counting half: a half where it is chance.

    The mean over instances of the mean over random orders.
    """
    counts = _beside(run, "erased", ranking, CHANCE)
    return None if counts is None else _mean(_beats(-counts[0][:, :1], -counts[1]), level)


def _beats(own: Numbers, others: Numbers) -> Numbers:
    """For each row the share of the others that are smaller, equal ones counting half."""
    shares: Numbers = ((own > others) + 0.5 * (own == others)).mean(1)
    return shares


def sooner(first: str, second: str, run: pd.DataFrame, level: float) -> Estimate | None:
    """Of all instances of two units or more, the share where `first` flips with fewer units, or alone flips."""
    counts = erased_counts(run)
    if not {first, second} <= set(counts):
        return None
    fewer = counts[first].fillna(np.inf) < counts[second].fillna(np.inf)
    return _share(int(fewer.sum()), len(counts), level)


def attained(ranking: str, run: pd.DataFrame, level: float) -> Estimate | None:
    """The share of instances where a ranking attains the minimum, among those where it could miss it.

    Where only erasing everything flips, every ranking attains the minimum, and nothing is learned of it.
    """
    counts = erased_counts(run)
    if not {ranking, "minimum"} <= set(counts):
        return None
    units = run.groupby("instance")["units"].first().reindex(counts.index)
    open_ones = counts[counts["minimum"].notna() & (counts["minimum"] < units)]
    return _share(int((open_ones[ranking] == open_ones["minimum"]).sum()), len(open_ones), level)


def lead_taken(ranking: str, run: pd.DataFrame, level: float) -> Estimate | None:
    """The mean share of the decision's lead that goes with as many units of the ranking as the minimum has."""
    return _mean(_top(run[run["units"] > 1], ranking)["lead_taken"].dropna().to_numpy(np.float64), level)


def more_lead_than_chance(ranking: str, run: pd.DataFrame, level: float) -> Estimate | None:
    """P(more of the lead goes with the units of the ranking than with as many random ones), equal shares counting half.

    As many as the minimum has; the mean over instances of the mean over random orders.
    """
    if not {ranking, CHANCE} <= set(run["ranking"]):
        return None
    rows = of_several_units(run).dropna(subset=["lead_taken"])
    if not {ranking, CHANCE} <= set(rows["ranking"]):
        return too_few(0)
    keys = [rows["instance"], rows["ranking"], rows["order"]]
    taken = rows["lead_taken"].groupby(keys, sort=False).first().unstack([1, 2])
    return _mean(_beats(taken[ranking].to_numpy()[:, :1], taken[CHANCE].to_numpy()), level)


def less_mass(ranking: str, run: pd.DataFrame, level: float) -> Estimate | None:
    """How much less attention weight a ranking erases than attention does, in the mean."""
    masses = _beside(run, "mass", "attention", ranking)
    return None if masses is None else _mean(masses[0][:, 0] - masses[1][:, 0], level, low=-1.0)


def later_flip(one: pd.DataFrame, other: pd.DataFrame, level: float) -> Estimate | None:
    """How much more of the units one model loses before it flips than another, on the instances that both flip."""
    first, second = (mean_fractions(run) for run in (one, other))
    check_same_instances(first.index, second.index)
    return _mean(np.asarray((first - second).dropna(), dtype=np.float64), level, low=-1.0)


def mean_fractions(run: pd.DataFrame) -> "pd.Series[float]":
    """The fraction erased at the flip by instance: the mean of the paper's rankings, null where one never flips."""
    fractions = erased_counts(run, "fraction")
    return fractions[[name for name in PAPERS if name in fractions]].mean(axis=1, skipna=False)


def earlier_upswing(one: pd.DataFrame, other: pd.DataFrame, level: float) -> Estimate | None:
    """How much smaller the Δα is at which the upswing of ΔJS begins in the second model than in the first.

    The onset is where the line through the medians of ΔJS, one in each tenth of the range of Δα, first passes
    `UPSWING`. Only tenths in which both models have enough instances count: a model that has not swung up at the end of
    that range counts as doing so there, so that the difference is rather too small; where neither has, there is none.
    Instances are resampled with what both models make of them.
    """
    first, second = (_top(run).set_index("instance")[["delta_weight", "delta_js"]] for run in (one, other))
    check_same_instances(first.index, second.index)
    paired = np.hstack([first.to_numpy(np.float64), second.reindex(first.index).to_numpy(np.float64)])
    paired[:, [0, 2]] = np.floor(paired[:, [0, 2]] * BINS).clip(0, BINS - 1)
    counts = [np.bincount(paired[:, place].astype(np.int64), minlength=BINS) for place in (0, 2)]
    shared = np.flatnonzero(np.minimum(*counts) >= FEWEST).astype(np.float64)
    centres = (shared + 0.5) / BINS

    def onset(rows: Numbers, place: int) -> float:
        parts = [rows[rows[:, place] == tenth, place + 1] for tenth in shared]
        return _onset(centres, np.array([np.median(part) if len(part) else np.nan for part in parts], np.float64))

    if len(shared) < 2 or min(onset(paired, 0), onset(paired, 2)) >= centres[-1]:
        return None
    return bootstrap(lambda rows: onset(rows, 0) - onset(rows, 2), paired, level=level)


def _onset(centres: Numbers, medians: Numbers) -> float:
    """Where the line through the medians that there are first reaches `UPSWING`; the last centre if it never does."""
    places, heights = centres[~np.isnan(medians)], medians[~np.isnan(medians)]
    reached = np.flatnonzero(heights >= UPSWING)
    if not len(reached):
        return float(centres[-1])
    place = int(reached[0])
    if place == 0:
        return float(places[0])
    below, above = heights[place - 1 : place + 1]
    part = (UPSWING - below) / (above - below)
    return float(places[place - 1] + part * (places[place] - places[place - 1]))
