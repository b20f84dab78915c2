"""How good rankings are, judged by their flips: tables of `first_flips` and `minimum_flips` in, tables out.

Serrano & Smith 2019 leave instances of one unit out, and for each ranking those that it never flips. Rankings then
stand on different instances, so the set that all of them flip is reported beside: the conventions `own` and `common`.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd
from scipy.stats import binomtest

from heedful.errors import InputError

Tables = Mapping[str, pd.DataFrame]

THRESHOLDS = (0.1, 0.25, 0.5, 0.75, 0.9)


def flip_summary(tables: Tables) -> pd.DataFrame:
    """Per ranking and convention how many instances count and which do not, the fractions and the mass erased.

    `one_unit` and `never` are left out in either convention; `over_half` is the share that loses more than half.
    """
    rows = []
    for name, convention, table, kept in _conventions(tables):
        rows.append(
            {
                "ranking": name,
                "convention": convention,
                "instances": len(kept),
                "one_unit": int((table["units"] == 1).sum()),
                "never": int((table["erased"].isna() & (table["units"] > 1)).sum()),
                "mean_fraction": kept["fraction"].mean(),
                "median_fraction": kept["fraction"].median(),
                "over_half": (kept["fraction"] > 0.5).mean(),
                "mean_mass": kept["mass"].mean(),
            }
        )
    return pd.DataFrame(rows)


def fraction_distribution(tables: Tables, thresholds: Sequence[float] = THRESHOLDS) -> pd.DataFrame:
    """The share of instances that lose more than each fraction of their units before they flip (Figure 6's tail)."""
    return pd.DataFrame(
        [
            {
                "ranking": name,
                "convention": convention,
                "threshold": threshold,
                "instances": len(kept),
                "share": (kept["fraction"] > threshold).mean(),
            }
            for name, convention, _, kept in _conventions(tables)
            for threshold in thresholds
        ]
    )


def optimality_gaps(tables: Tables, minimum: pd.DataFrame) -> pd.DataFrame:
    """Per ranking and instance with a minimum: gap = erased − minimum, ratio = erased / minimum, attained or not."""
    smallest = minimum.set_index("instance")["erased"].rename("minimum")
    parts = []
    for name, table in tables.items():
        part = table.join(smallest, on="instance").assign(ranking=name)
        part = part[(part["units"] > 1) & part["minimum"].notna()]
        gap = part["erased"] - part["minimum"]
        ratio = part["erased"].astype("Float64") / part["minimum"].astype("Float64")
        parts.append(part.assign(gap=gap, ratio=ratio, attained=(gap == 0).fillna(False).astype(bool)))
    columns = ["ranking", "instance", "units", "erased", "minimum", "gap", "ratio", "attained"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def ranking_quality(tables: Tables, minimum: pd.DataFrame) -> pd.DataFrame:
    """Per ranking: the share of instances where it attains the minimum, and its gap and ratio where it flips.

    `instances` have more than one unit and a minimum; where a ranking never flips one it does not attain it.
    """
    gaps = optimality_gaps(tables, minimum)
    grouped = gaps.groupby("ranking", sort=False)
    summary = pd.DataFrame(
        {
            "instances": grouped.size(),
            "never": grouped["erased"].agg(lambda erased: int(erased.isna().sum())),
            "attained": grouped["attained"].mean(),
            "mean_gap": grouped["gap"].mean().astype(float),
            "median_gap": grouped["gap"].median().astype(float),
            "mean_ratio": grouped["ratio"].mean().astype(float),
            "median_ratio": grouped["ratio"].median().astype(float),
        }
    )
    return summary.reset_index()


def pairwise_wins(tables: Tables) -> pd.DataFrame:
    """Per pair of rankings how often each flips with fewer erasures, and the two-sided sign test on the wins.

    On instances that both flip; of several random orders the mean counts.
    """
    counts = _per_instance({name: table["erased"].astype(float) for name, table in tables.items()}, tables)
    rows = []
    for first, second in combinations(tables, 2):
        both = counts[[first, second]].dropna()
        fewer, more = int((both[first] < both[second]).sum()), int((both[first] > both[second]).sum())
        rows.append(
            {
                "first": first,
                "second": second,
                "instances": len(both),
                "first_wins": fewer,
                "second_wins": more,
                "ties": len(both) - fewer - more,
                "p_value": _sign_test(fewer, more),
            }
        )
    return pd.DataFrame(rows)


def pairwise_attainment(tables: Tables, minimum: pd.DataFrame) -> pd.DataFrame:
    """Per pair of rankings on how many instances only one attains the minimum, and McNemar's exact test.

    On all instances that have a minimum; of several random orders all must attain it.
    """
    smallest = minimum.set_index("instance")["erased"]
    attained = {
        name: (table["erased"] == table["instance"].map(smallest)).fillna(False).astype(float)
        for name, table in tables.items()
    }
    marks = _per_instance(attained, tables) == 1
    marks = marks[smallest.reindex(marks.index).notna().to_numpy()]
    rows = []
    for first, second in combinations(tables, 2):
        left, right = int((marks[first] & ~marks[second]).sum()), int((marks[second] & ~marks[first]).sum())
        rows.append(
            {
                "first": first,
                "second": second,
                "instances": len(marks),
                "only_first": left,
                "only_second": right,
                "p_value": _sign_test(left, right),
            }
        )
    return pd.DataFrame(rows)


def _conventions(tables: Tables) -> list[tuple[str, str, pd.DataFrame, pd.DataFrame]]:
    """Name, convention, all rows and the rows that count, with their fraction and mass."""
    own = {name: _flipped(table) for name, table in tables.items()}
    common = _common(tables)
    return [
        (name, convention, tables[name], kept if convention == "own" else kept[kept["instance"].isin(common)])
        for name, kept in own.items()
        for convention in ("own", "common")
    ]


def _flipped(table: pd.DataFrame) -> pd.DataFrame:
    kept = table[(table["units"] > 1) & table["erased"].notna()]
    mass = kept["mass"] if "mass" in kept else float("nan")
    return kept.assign(fraction=kept["erased"].astype(float) / kept["units"], mass=mass)


def _common(tables: Tables) -> set[int]:
    """The instances that every ranking flips, in every order."""
    sets = [
        set(table["instance"]) - set(table.loc[table["erased"].isna() | (table["units"] == 1), "instance"])
        for table in tables.values()
    ]
    return set.intersection(*sets) if sets else set()


def _per_instance(values: Mapping[str, Any], tables: Tables) -> pd.DataFrame:
    """One row per instance of more than one unit, one column per ranking; missing where any order is missing."""
    columns = {}
    for name, table in tables.items():
        several = table["units"] > 1
        grouped = values[name][several].groupby(table.loc[several, "instance"])
        columns[name] = grouped.agg(lambda part: part.mean(skipna=False))
    sizes = {len(column) for column in columns.values()}
    if len(sizes) > 1:
        raise InputError(f"The tables must be of the same instances; they have {sorted(sizes)} of more than one unit.")
    return pd.DataFrame(columns)


def _sign_test(left: int, right: int) -> float:
    return float(binomtest(left, left + right).pvalue) if left + right else 1.0
