"""What the claims of Serrano & Smith 2019 are judged by: numbers of one run, or of two runs on the same texts.

Each has an interval over instances that is never a point: Wilson's for a share, the exact one of pairs for a difference
of shares, that of an area, and that of bootstrap resamples for anything else. A group of fewer than `FEWEST` instances
gives no number but how many there are. How they are put together over seeds and models is said in
`heedful.claims.erasure_together`.
"""

import numpy as np
import pandas as pd

from heedful.analysis.quality import by_chance, rests_on_a_part, with_everything_erased
from heedful.analysis.statistics import (
    Estimate,
    Numbers,
    area_estimate,
    bootstrap,
    bounded_mean,
    paired_difference,
    share,
    too_few,
)
from heedful.claims.erasure_together import OfRun
from heedful.claims.kinds import FEWEST
from heedful.errors import InputError

PAPERS = ("attention", "gradient", "product", "random")
"""The rankings of the paper."""

CHANCE = "random"

BINS = 10
"""Tenths of the range of Δα, in which the medians of ΔJS are taken."""

UPSWING = 0.01
"""The upswing of ΔJS begins where its median passes so many nats: most values are close to zero (A.2), and the most
that there can be is log 2."""


def _top(run: pd.DataFrame, ranking: str = "attention") -> pd.DataFrame:
    return run[run["ranking"] == ranking]


def _share(successes: int, trials: int, level: float) -> Estimate:
    return share(successes, trials, level=level) if trials >= FEWEST else too_few(trials)


def positive_divergence(run: pd.DataFrame, level: float) -> Estimate | None:
    """The share of ΔJS > 0 among those that are not zero."""
    values = _top(run)["divergence_difference"]
    return _share(int((values > 0).sum()), int((values != 0).sum()), level)


def smaller_difference(run: pd.DataFrame, level: float) -> Estimate | None:
    """P(Δα where ΔJS < 0 is smaller than where ΔJS > 0): one half where they are alike, one where it always is."""
    rows = _top(run)
    positive = rows.loc[rows["divergence_difference"] > 0, "difference"].to_numpy(np.float64)
    negative = rows.loc[rows["divergence_difference"] < 0, "difference"].to_numpy(np.float64)
    sides = len(positive), len(negative)
    return area_estimate(positive, negative, level=level) if min(sides) >= FEWEST else too_few(*sides)


def top_only(run: pd.DataFrame, level: float) -> Estimate | None:
    """Of the instances where exactly one of the two erasures flips, the share where that of the top unit does."""
    rows = _top(run)
    alone = rows[rows["flips_top"] != rows["flips_other"]]
    return _share(int(alone["flips_top"].sum()), len(alone), level)


def unmoved(run: pd.DataFrame, level: float) -> Estimate | None:
    """The share of decisions that stay when the most attended unit is erased."""
    rows = _top(run)
    return _share(int((~rows["flips_top"]).sum()), len(rows), level)


def more_top_flips(first: str, second: str) -> OfRun:
    """How much more often the top unit of one ranking flips alone than that of another, on the same instances."""

    def of_run(run: pd.DataFrame, level: float) -> Estimate | None:
        one, other = (_top(run, name).set_index("instance")["flips_top"] for name in (first, second))
        return _more(one, other, level)

    return of_run


def more_flips(one: pd.DataFrame, other: pd.DataFrame, level: float) -> Estimate | None:
    """How much more often erasing the top unit or the other one flips in one model than in another."""
    first, second = (_top(run).set_index("instance")[["flips_top", "flips_other"]].any(axis=1) for run in (one, other))
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


def check_same_instances(one: "pd.Index[int]", other: "pd.Index[int]") -> None:
    """What is compared instance by instance must be of the same ones, each once."""
    if not (one.is_unique and other.is_unique):
        raise InputError("Expected each instance once in a run and ranking: name the runs by data set, model and seed.")
    if set(one) != set(other):
        apart = len(set(one) ^ set(other))
        raise InputError(
            f"Expected the same instances on both sides, but {apart} are on one side only ({len(one)} and {len(other)} "
            "in all): measure both on the same texts."
        )


def erased_counts(run: pd.DataFrame, column: str = "erased") -> pd.DataFrame:
    """A column of `flips` by instance and ranking, for more than one unit, null where a ranking does not flip.

    Of random orders the mean, each that does not flip counting as everything erased (`heedful.analysis.quality`).
    """
    several = _several(run)
    random = several["ranking"].map(by_chance)
    rows = several.where(~random, with_everything_erased(several))
    values = pd.Series(rows[column].to_numpy(np.float64, na_value=np.nan), index=rows.index)
    return values.groupby([several["instance"], several["ranking"]], sort=False).mean().unstack("ranking")


def _several(run: pd.DataFrame) -> pd.DataFrame:
    """The rows of more than one unit, which must be of the same instances in every ranking and order."""
    several = run[run["units"] > 1]
    parts = [part.index for _, part in several.set_index("instance").groupby(["ranking", "order"], sort=False)]
    for part in parts:
        check_same_instances(parts[0], part)
    return several


def _orders(run: pd.DataFrame, column: str = "erased") -> pd.DataFrame:
    """A column of `flips` by instance, and by ranking and order, where fewer units than all can flip the decision.

    What a ranking does not flip counts as everything erased, whether chance made the ranking or not: to leave out
    where one of two fails would be to its favour. Where only everything flips the decision, or nothing does, it is the
    bias alone that tells, and no ranking can be told from another.
    """
    several = _several(run)
    minimum = several[several["ranking"] == "minimum"]
    resting = minimum.loc[rests_on_a_part(minimum), "instance"]
    rows = with_everything_erased(several[several["instance"].isin(resting)] if len(minimum) else several)
    values = rows[column].astype(float)
    return values.groupby([rows["instance"], rows["ranking"], rows["order"]], sort=False).first().unstack([1, 2])


def wins(first: str, second: str) -> OfRun:
    """Of the instances in which two rankings erase different numbers of units, the share where `first` needs fewer."""

    def of_run(run: pd.DataFrame, level: float) -> Estimate | None:
        counts = _orders(run)
        if not {first, second} <= set(counts.columns.get_level_values(0)):
            return None
        one, other = (counts[name].to_numpy()[:, 0] for name in (first, second))
        return _share(int((one < other).sum()), int((one != other).sum()), level)

    return of_run


def sooner_than_chance(ranking: str) -> OfRun:
    """P(the ranking needs fewer units than a random order), equal numbers counting half: a half where it is chance.

    The mean over instances of the mean over random orders.
    """

    def of_run(run: pd.DataFrame, level: float) -> Estimate | None:
        counts = _orders(run)
        if not {ranking, CHANCE} <= set(counts.columns.get_level_values(0)):
            return None
        if len(counts) < FEWEST:
            return too_few(len(counts))
        own, random = counts[ranking].to_numpy()[:, :1], counts[CHANCE].to_numpy()
        scores = ((own < random) + 0.5 * (own == random)).mean(1)
        return bounded_mean(scores, low=0.0, high=1.0, level=level)

    return of_run


def sooner(first: str, second: str) -> OfRun:
    """Of all instances of two units or more, the share where `first` flips with fewer units, or alone flips."""

    def of_run(run: pd.DataFrame, level: float) -> Estimate | None:
        counts = erased_counts(run)
        if not {first, second} <= set(counts):
            return None
        fewer = counts[first].fillna(np.inf) < counts[second].fillna(np.inf)
        return _share(int(fewer.sum()), len(counts), level)

    return of_run


def attained(ranking: str) -> OfRun:
    """The share of instances where a ranking attains the minimum, among those where it could miss it.

    Where only erasing everything flips, every ranking attains the minimum, and nothing is learned of it.
    """

    def of_run(run: pd.DataFrame, level: float) -> Estimate | None:
        counts = erased_counts(run)
        if not {ranking, "minimum"} <= set(counts):
            return None
        units = run.groupby("instance")["units"].first().reindex(counts.index)
        open_ones = counts[counts["minimum"].notna() & (counts["minimum"] < units)]
        best = int((open_ones[ranking] == open_ones["minimum"]).sum())
        return _share(best, len(open_ones), level)

    return of_run


def lead_taken(ranking: str) -> OfRun:
    """The mean share of the decision's lead that goes with as many units of the ranking as the minimum has."""

    def of_run(run: pd.DataFrame, level: float) -> Estimate | None:
        values = _top(run[run["units"] > 1], ranking)["lead_taken"].dropna().to_numpy(np.float64)
        return bounded_mean(values, low=0.0, high=1.0, level=level) if len(values) >= FEWEST else too_few(len(values))

    return of_run


def more_lead_than_chance(ranking: str) -> OfRun:
    """P(more of the lead goes with the units of the ranking than with as many random ones), equal shares counting half.

    As many as the minimum has; the mean over instances of the mean over random orders.
    """

    def of_run(run: pd.DataFrame, level: float) -> Estimate | None:
        rows = _several(run).dropna(subset=["lead_taken"])
        if not {ranking, CHANCE} <= set(rows["ranking"]):
            return None if run.empty or not {ranking, CHANCE} <= set(run["ranking"]) else too_few(0)
        keys = [rows["instance"], rows["ranking"], rows["order"]]
        taken = rows["lead_taken"].groupby(keys, sort=False).first().unstack([1, 2])
        own, random = taken[ranking].to_numpy()[:, :1], taken[CHANCE].to_numpy()
        scores = ((own > random) + 0.5 * (own == random)).mean(1)
        return bounded_mean(scores, low=0.0, high=1.0, level=level) if len(scores) >= FEWEST else too_few(len(scores))

    return of_run


def less_mass(ranking: str) -> OfRun:
    """How much less attention weight a ranking erases than attention does, in the mean."""

    def of_run(run: pd.DataFrame, level: float) -> Estimate | None:
        masses = _orders(run, "mass")
        if not {"attention", ranking} <= set(masses.columns.get_level_values(0)):
            return None
        attended, other = (masses[name].to_numpy()[:, 0] for name in ("attention", ranking))
        return _mean(attended - other, level)

    return of_run


def later_flip(one: pd.DataFrame, other: pd.DataFrame, level: float) -> Estimate | None:
    """How much more of the units one model loses before it flips than another, on the instances that both flip."""
    first, second = (mean_fractions(run) for run in (one, other))
    check_same_instances(first.index, second.index)
    return _mean(np.asarray((first - second).dropna(), dtype=np.float64), level)


def mean_fractions(run: pd.DataFrame) -> "pd.Series[float]":
    """The fraction erased at the flip by instance: the mean of the paper's rankings, null where one never flips."""
    fractions = erased_counts(run, "fraction")
    return fractions[[name for name in PAPERS if name in fractions]].mean(axis=1, skipna=False)


def _mean(values: Numbers, level: float) -> Estimate:
    """The mean of differences of shares."""
    return bounded_mean(values, low=-1.0, high=1.0, level=level) if len(values) >= FEWEST else too_few(len(values))


def earlier_upswing(one: pd.DataFrame, other: pd.DataFrame, level: float) -> Estimate | None:
    """How much smaller the Δα is at which the upswing of ΔJS begins in the second model than in the first.

    The onset is where the line through the medians of ΔJS, one in each tenth of the range of Δα, first passes
    `UPSWING`. Only tenths in which both models have enough instances count: a model that has not swung up at the end of
    that range counts as doing so there, so that the difference is rather too small; where neither has, there is none.
    Instances are resampled with what both models make of them.
    """
    first, second = (_top(run).set_index("instance")[["difference", "divergence_difference"]] for run in (one, other))
    check_same_instances(first.index, second.index)
    paired = np.hstack([first.to_numpy(np.float64), second.reindex(first.index).to_numpy(np.float64)])
    paired[:, [0, 2]] = _tenths(paired[:, [0, 2]])
    shared = _shared_tenths(paired[:, 0], paired[:, 2])
    centres = (shared + 0.5) / BINS

    def onset(rows: Numbers, place: int) -> float:
        return _onset(centres, _medians(rows[:, place], rows[:, place + 1], shared))

    if len(shared) < 2 or min(onset(paired, 0), onset(paired, 2)) >= centres[-1]:
        return None
    return bootstrap(lambda rows: onset(rows, 0) - onset(rows, 2), paired, level=level)


def _tenths(differences: Numbers) -> Numbers:
    return np.floor(differences * BINS).clip(0, BINS - 1)


def _shared_tenths(first: Numbers, second: Numbers) -> Numbers:
    """The tenths that both models have enough instances in."""
    counts = [np.bincount(tenths.astype(np.int64), minlength=BINS) for tenths in (first, second)]
    return np.flatnonzero(np.minimum(*counts) >= FEWEST).astype(np.float64)


def _medians(tenths: Numbers, divergences: Numbers, shared: Numbers) -> Numbers:
    """The median ΔJS in each tenth; missing where a resample has none."""
    parts = [divergences[tenths == tenth] for tenth in shared]
    return np.array([np.median(part) if len(part) else np.nan for part in parts], dtype=np.float64)


def _onset(centres: Numbers, medians: Numbers) -> float:
    """Where the line through the medians first reaches `UPSWING`: the first centre if it is above there; the last one
    if it never is."""
    known = ~np.isnan(medians)
    places, heights = centres[known], medians[known]
    reached = np.flatnonzero(heights >= UPSWING)
    if not len(reached):
        return float(centres[-1])
    place = int(reached[0])
    if place == 0:
        return float(places[0])
    below, above = heights[place - 1 : place + 1]
    part = (UPSWING - below) / (above - below)
    return float(places[place - 1] + part * (places[place] - places[place - 1]))
