"""How good rankings are, judged by their flips: tables of `first_flips` and `minimum_flips` in, tables out.

Serrano & Smith 2019 leave instances of one unit out, and for each ranking those that it never flips. Rankings then
stand on different instances, so the set that all of them flip is reported beside: the conventions `own` and `common`.

Both depend on what the bias says alone, where everything is erased: a model without one then has no preference, the
first class wins, and what rests on nothing flips in the other class only. The convention `resting` does not: it takes
the instances that fewer units than all can flip, and a ranking that never flips one counts as everything erased.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import binomtest, spearmanr

from heedful.analysis.rankings import RANKINGS
from heedful.errors import InputError
from heedful.subjects import ATTENTION

Tables = Mapping[str, pd.DataFrame]
"""The rows of each ranking."""

COMMON = ("attention", "gradient", "product", "margin", "minimum")
"""What must flip an instance for it to be common, so that the set does not depend on what else is looked at."""

INSTANCE = ["dataset", "model", "seed", "instance"]
"""What tells the instances of many runs apart."""

THRESHOLDS = (0.1, 0.25, 0.5, 0.75, 0.9)
KINDS = ("mean", "median")


def flip_summary(tables: Tables, conventions: Sequence[str] = ("own", "common")) -> pd.DataFrame:
    """Per ranking and convention how many instances count and which do not, the fractions and the mass erased.

    `one_unit` and `never` are not of the convention `own`; of several random orders `never` is the mean, and
    `instances` are those that count in any order. `over_half` is the share that loses more than half.
    """
    kept = {convention: CONVENTIONS[convention](tables) for convention in conventions}
    both = [(name, convention) for name in tables for convention in kept]
    return pd.DataFrame([_summary(name, kind, tables[name], kept[kind][name]) for name, kind in both])


def _summary(ranking: str, convention: str, table: pd.DataFrame, counted: pd.DataFrame) -> dict[str, object]:
    """Numbers of a ranking's rows, and of those that count."""
    orders = len(table) / max(table["instance"].nunique(), 1)
    return {
        "ranking": ranking,
        "convention": convention,
        "instances": counted["instance"].nunique(),
        "one_unit": table.loc[table["units"] == 1, "instance"].nunique(),
        "never": int(table.loc[table["units"] > 1, "erased"].isna().sum()) / max(orders, 1.0),
        "mean_fraction": counted["fraction"].mean(),
        "median_fraction": counted["fraction"].median(),
        "over_half": _over(counted, 0.5),
        "mean_mass": counted["mass"].mean(),
        "median_mass": counted["mass"].median(),
    }


def fraction_distribution(tables: Tables, thresholds: Sequence[float] = THRESHOLDS) -> pd.DataFrame:
    """The share of instances that lose more than each fraction of their units before they flip (Figure 6's tail)."""
    kept = {convention: CONVENTIONS[convention](tables) for convention in ("own", "common")}
    rows = [
        (name, convention, threshold, counted[name]["instance"].nunique(), _over(counted[name], threshold))
        for name in tables
        for convention, counted in kept.items()
        for threshold in thresholds
    ]
    return pd.DataFrame(rows, columns=["ranking", "convention", "threshold", "instances", "share"])


def erasure_curves(tables: Tables, points: int = 101) -> pd.DataFrame:
    """Per ranking and share of the units that is erased, how many decisions are not what they were.

    Of the instances of the convention `resting`; of several random orders the mean. What flips only when everything is
    erased, or never, is not flipped.
    """
    rows = []
    for name, table in tables.items():
        resting = _resting(table, tables["minimum"])
        parts = resting["fraction"].where(resting["erased"] < resting["units"]).to_numpy(np.float64, na_value=np.inf)
        for fraction in np.linspace(0, 1, points).round(6).tolist():
            rows.append((name, fraction, float((parts <= fraction + 1e-9).mean()) if len(parts) else float("nan")))
    return pd.DataFrame(rows, columns=["ranking", "fraction", "flipped"])


def _over(rows: pd.DataFrame, threshold: float) -> float:
    """The share of rows that lose more than a fraction; not a number where there is none."""
    return float((rows["fraction"] > threshold).mean()) if len(rows) else float("nan")


def on_common(tables: Tables) -> dict[str, pd.DataFrame]:
    """The rows of the instances of several units that all rankings of `COMMON` flip, those of them that are there.

    Other rankings, and so chance, do not choose them: an order that does not flip one of these instances counts as if
    everything had been erased.
    """
    fixed = [table for name, table in tables.items() if name in COMMON]
    sets = [set(_flipped(table)["instance"]) for table in fixed or tables.values()]
    common = set.intersection(*sets) if sets else set()
    return {name: with_everything_erased(table[table["instance"].isin(common)]) for name, table in tables.items()}


def on_own(tables: Tables) -> dict[str, pd.DataFrame]:
    """The rows of the instances of several units that each ranking flips."""
    return {name: _flipped(table) for name, table in tables.items()}


def on_resting(tables: Tables) -> dict[str, pd.DataFrame]:
    """The rows of the instances whose decision rests on a part of their units: fewer than all are enough to flip it."""
    return {name: with_everything_erased(_resting(table, tables["minimum"])) for name, table in tables.items()}


def _resting(table: pd.DataFrame, minimum: pd.DataFrame) -> pd.DataFrame:
    return table[table["instance"].isin(minimum.loc[rests_on_a_part(minimum), "instance"])]


def rests_on_a_part(minimum: pd.DataFrame) -> "pd.Series[bool]":
    """For each row of the minimum whether fewer units than all flip the decision."""
    return (minimum["erased"] < minimum["units"]).fillna(False).astype(bool)


CONVENTIONS = {"own": on_own, "common": on_common, "resting": on_resting}
"""Which instances count, by name."""


def by_ranking(flips: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each ranking."""
    return {str(name): rows for name, rows in flips.groupby("ranking", sort=False)}


def by_chance(name: str) -> bool:
    """Whether that is a random ranking, of which one order does not speak for the others."""
    return name in RANKINGS and RANKINGS[name].chance


def with_everything_erased(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `first_flips` that say, where nothing flips, that everything was erased."""
    mass = rows["mass"].where(rows["erased"].notna(), 1.0) if "mass" in rows else float("nan")
    erased = rows["erased"].fillna(rows["units"])
    return rows.assign(erased=erased, fraction=erased.astype(float) / rows["units"], mass=mass)


def with_common(flips: pd.DataFrame) -> pd.DataFrame:
    """Rows of many runs of more than one unit that flip, or that are `common`: of instances that every ranking flips.

    Serrano & Smith leave out what a ranking never flips, ranking by ranking (section 5.3). Chance does not choose what
    is common; there a random order that does not flip counts as everything erased.
    """
    several = flips[flips["units"] > 1]
    flipped = several["erased"].notna()
    always = (flipped | (several["ranking"] == "random")).groupby([several[key] for key in INSTANCE]).transform("all")
    return with_everything_erased(several).assign(common=always, flipped=flipped)[flipped | always]


def excess(flips: pd.DataFrame) -> pd.DataFrame:
    """Rows of more than one unit that have a minimum, with `ratio` = erased / minimum, missing where nothing flips."""
    several = flips[flips["units"] > 1]
    fewest = several.loc[several["ranking"] == "minimum", [*INSTANCE, "erased"]].dropna()
    joined = several.merge(fewest.rename(columns={"erased": "fewest"}), on=INSTANCE)
    erased, least = (joined[column].to_numpy(np.float64, na_value=np.nan) for column in ("erased", "fewest"))
    return joined.assign(ratio=erased / least)


def optimality_gaps(tables: Tables, minimum: pd.DataFrame) -> pd.DataFrame:
    """Per ranking and instance with a minimum: gap = erased − minimum, ratio = erased / minimum, attained or not.

    `forced`: only erasing everything flips, so that no ranking can miss the minimum.
    """
    smallest = minimum.set_index("instance")["erased"].rename("minimum")
    parts = []
    for name, table in tables.items():
        part = table.join(smallest, on="instance").assign(ranking=name)
        part = part[(part["units"] > 1) & part["minimum"].notna()]
        gap = part["erased"] - part["minimum"]
        ratio = part["erased"].astype("Float64") / part["minimum"].astype("Float64")
        forced = (part["minimum"] == part["units"]).astype(bool)
        parts.append(part.assign(gap=gap, ratio=ratio, attained=(gap == 0).fillna(False).astype(bool), forced=forced))
    columns = ["ranking", "instance", "units", "erased", "minimum", "gap", "ratio", "attained", "forced"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def ranking_quality(tables: Tables, minimum: pd.DataFrame) -> pd.DataFrame:
    """Per ranking: how often it attains the minimum, and its gap and ratio where it flips.

    `instances` have more than one unit and a minimum, `forced` is the share of those where none can miss it, and
    `attained` the share of the others where this ranking does not; where it never flips one it misses it.
    """
    gaps = optimality_gaps(tables, minimum)
    grouped = gaps.groupby("ranking", sort=False)
    free = gaps[~gaps["forced"].astype(bool)].groupby("ranking", sort=False)
    summary = {
        "instances": grouped.size(),
        "never": grouped["erased"].agg(lambda erased: int(erased.isna().sum())),
        "forced": grouped["forced"].mean(),
        "attained": free["attained"].mean(),
    }
    sizes = {f"{kind}_{name}": grouped[name].agg(kind).astype(float) for name in ("gap", "ratio") for kind in KINDS}
    return pd.DataFrame(summary | sizes).reset_index()


def pairwise_wins(tables: Tables) -> pd.DataFrame:
    """Per pair of rankings how often each flips with fewer erasures, and the two-sided sign test on the wins.

    On instances that both flip; of several random orders the mean counts, of one that does not flip all units.
    """
    erased = {
        name: (table["erased"].fillna(table["units"]) if by_chance(name) else table["erased"]).astype(float)
        for name, table in tables.items()
    }
    return _wins(_per_instance(erased, tables))


def _wins(values: pd.DataFrame) -> pd.DataFrame:
    """Per pair of columns in how many rows, of those that have both, each is smaller, and the two-sided sign test."""
    rows = []
    for first, second in combinations(values, 2):
        both = values[[first, second]].dropna()
        fewer, more = int((both[first] < both[second]).sum()), int((both[first] > both[second]).sum())
        p_value = float(binomtest(fewer, fewer + more).pvalue) if fewer + more else 1.0
        rows.append((first, second, len(both), fewer, more, len(both) - fewer - more, p_value))
    columns = ["first", "second", "instances", "first_wins", "second_wins", "ties", "p_value"]
    return pd.DataFrame(rows, columns=columns if rows else [])


def pairwise_attainment(tables: Tables, minimum: pd.DataFrame) -> pd.DataFrame:
    """Per pair of rankings on how many instances only one attains the minimum, and McNemar's exact test.

    On all instances that have a minimum; of several random orders all must attain it.
    """
    smallest = minimum.set_index("instance")["erased"]
    attained = {
        name: (table["erased"] == table["instance"].map(smallest)).fillna(False).astype(float)
        for name, table in tables.items()
    }
    missed = _per_instance(attained, tables) < 1
    wins = _wins(missed[smallest.reindex(missed.index).notna().to_numpy()].astype(float))
    names = {"first_wins": "only_first", "second_wins": "only_second"}
    return wins.drop(columns="ties", errors="ignore").rename(columns=names)


def _flipped(table: pd.DataFrame) -> pd.DataFrame:
    kept = table[(table["units"] > 1) & table["erased"].notna()]
    mass = kept["mass"] if "mass" in kept else float("nan")
    return kept.assign(fraction=kept["erased"].astype(float) / kept["units"], mass=mass)


def _per_instance(values: Mapping[str, "pd.Series[float]"], tables: Tables) -> pd.DataFrame:
    """One row per instance of more than one unit, one column per ranking; missing where any order is missing."""
    columns = {}
    for name, table in tables.items():
        several = table["units"] > 1
        grouped = values[name][several].groupby(table.loc[several, "instance"])
        columns[name] = grouped.agg(lambda part: part.mean(skipna=False))
    first = next(iter(columns.values()), pd.Series(dtype=float))
    if not all(column.index.equals(first.index) for column in columns.values()):
        sizes = sorted({len(column) for column in columns.values()})
        raise InputError(f"The tables must be of the same instances; they have {sizes} of more than one unit.")
    return pd.DataFrame(columns)


def erased_counts(flips: pd.DataFrame, column: str = "erased") -> pd.DataFrame:
    """A column of a run's `flips` by instance and ranking, for more than one unit, null where a ranking does not flip.

    Of random orders the mean, each that does not flip counting as everything erased.
    """
    several = of_several_units(flips)
    rows = several.where(~several["ranking"].map(by_chance), with_everything_erased(several))
    values = pd.Series(rows[column].to_numpy(np.float64, na_value=np.nan), index=rows.index)
    return values.groupby([several["instance"], several["ranking"]], sort=False).mean().unstack("ranking")


def counts_by_order(flips: pd.DataFrame, column: str = "erased") -> pd.DataFrame:
    """A column of a run's `flips` by instance, and by ranking and order, on the instances of the convention `resting`.

    What a ranking does not flip counts as everything erased, whether chance made the ranking or not: to leave out
    where one of two fails would be to its favour. Where only everything flips the decision, or nothing does, it is the
    bias alone that tells, and no ranking can be told from another.
    """
    several = of_several_units(flips)
    minimum = several[several["ranking"] == "minimum"]
    rows = with_everything_erased(_resting(several, minimum) if len(minimum) else several)
    keys = [rows["instance"], rows["ranking"], rows["order"]]
    return rows[column].astype(float).groupby(keys, sort=False).first().unstack([1, 2])


def of_several_units(flips: pd.DataFrame) -> pd.DataFrame:
    """The rows of more than one unit, which must be of the same instances in every ranking and order."""
    several = flips[flips["units"] > 1]
    parts = [part.index for _, part in several.set_index("instance").groupby(["ranking", "order"], sort=False)]
    for part in parts:
        check_same_instances(parts[0], part)
    return several


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


def compare_levels(flips: pd.DataFrame) -> pd.DataFrame:
    """Each way of changing the input beside erased attention, per ranking, on texts of more than one unit.

    `level` of the flips is attention, delete or mask. Medians of the fraction, the rank correlation of the counts
    (Spearman) and the share where the input flips with fewer are over the texts that both flip (`both`); `equal` is the
    share of all texts where the counts are the same, never counting as a count.
    """
    tables = {key: rows.reset_index(drop=True) for key, rows in flips.groupby(["level", "ranking"], sort=False)}
    return pd.DataFrame(
        [
            {"ranking": by, "mode": level, **_compare(rows, tables[ATTENTION, by])}
            for (level, by), rows in tables.items()
            if level != ATTENTION
        ]
    )


def _compare(given: pd.DataFrame, attended: pd.DataFrame) -> dict[str, object]:
    """One row of `compare_levels`."""
    several = given["units"] > 1
    one, other = (t.loc[several, "erased"].to_numpy(np.float64, na_value=np.nan) for t in (given, attended))
    both = ~np.isnan(one) & ~np.isnan(other)
    fractions = [table.loc[several, "fraction"].to_numpy()[both] for table in (given, attended)]
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    vary = both.sum() > 1 and np.ptp(one[both]) > 0 and np.ptp(other[both]) > 0
    return {
        "instances": int(several.sum()),
        "both": int(both.sum()),
        "never_input": int(np.isnan(one).sum()),
        "never_attention": int(np.isnan(other).sum()),
        "median_fraction_input": float(np.median(fractions[0])) if both.any() else np.nan,
        "median_fraction_attention": float(np.median(fractions[1])) if both.any() else np.nan,
        "correlation": float(spearmanr(one[both], other[both]).statistic) if vary else np.nan,
        "equal": float(same.mean()) if len(same) else np.nan,
        "input_sooner": float((one[both] < other[both]).mean()) if both.any() else np.nan,
    }
