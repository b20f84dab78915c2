"""The tables of the study: accuracy by attention weights, the diagnostic model, seeds, the points of the curve."""

import pandas as pd

from heedful.analysis.permutation import quarters
from heedful.studies.jain2019.tables import accuracy_table
from heedful.studies.measures import Cell, arranged, beside_in_words

POINT = ["dataset", "model", "kind", "strength"]


def weights_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy by whose attention weights a model has, in per cent: dataset, weights, accuracy, low, high, …."""
    if runs.empty:
        return pd.DataFrame()
    table = accuracy_table(runs.assign(model=runs["weights"])).rename(columns={"model": "weights"})
    return table.drop(columns=["paper", "difference"])


def diagnostic_table(diagnostic: pd.DataFrame) -> pd.DataFrame:
    """The same of the diagnostic model; adversaries are told apart by their λ."""
    return weights_table(diagnostic.assign(weights=list(map(_guide, diagnostic["weights"], diagnostic["strength"]))))


def _guide(weights: str, strength: float) -> str:
    return weights if pd.isna(strength) else f"adversary, λ = {strength:g}"


def weights_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A row per data set, a column per kind of weights."""
    return arranged(table.assign(paper=None), ["dataset"], "weights", lambda cell: beside_in_words(cell, "accuracy"))


def seeds_summary(seeds: pd.DataFrame) -> pd.DataFrame:
    """How far another seed's attention and output lie from the first one's, by quarter of the largest weight.

    Columns: dataset, largest_weight (the quarter, of the first seed), texts, median_jsd, upper_quartile_jsd,
    median_tvd; texts of one unit are left out, and seeds are pooled.
    """
    some = seeds[seeds["units"] > 1]
    placed = some.assign(largest_weight=quarters(some["largest_weight"]))
    grouped = placed.groupby(["dataset", "largest_weight"], sort=False, observed=True)
    return pd.DataFrame(
        {
            "texts": grouped.size(),
            "median_jsd": grouped["jsd"].median(),
            "upper_quartile_jsd": grouped["jsd"].quantile(0.75),
            "median_tvd": grouped["tvd"].median(),
        }
    ).reset_index()


def seeds_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A row per data set, a column per quarter of the largest weight: median JSD, median TVD, and how many texts."""

    def words(cell: Cell) -> str:
        return f"{cell['median_jsd']:.3f}, {cell['median_tvd']:.3f} ({cell['texts']:,})"

    return arranged(table.sort_values("largest_weight", kind="stable"), ["dataset"], "largest_weight", words)


def curve_summary(curve: pd.DataFrame) -> pd.DataFrame:
    """The points of the curve, means over seeds: dataset, model, kind, strength, tvd, jsd, jsd_per_text, seeds."""
    grouped = curve.groupby(POINT, sort=False, dropna=False)
    means = grouped[["tvd", "jsd", "jsd_per_text"]].mean()
    return means.assign(seeds=grouped.size()).reset_index()


def curve_in_words(table: pd.DataFrame) -> pd.DataFrame:
    """As a page shows it."""
    rows = []
    for cell in table.to_dict("records"):
        numbers = {name: _number(cell[name]) for name in ("tvd", "jsd", "jsd_per_text")}
        named = {"dataset": cell["dataset"], "model": cell["model"], "kind": cell["kind"]}
        strength = "–" if pd.isna(cell["strength"]) else f"{cell['strength']:g}"
        rows.append({**named, "λ or ε": strength, **numbers, "seeds": cell["seeds"]})
    return pd.DataFrame(rows).rename(columns={"tvd": "TVD", "jsd": "JSD", "jsd_per_text": "JSD, single texts"})


def _number(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.3f}"
