"""The tables of the study: agreement of attention with other measures, shuffled attention, adversaries, accuracy."""

from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.agreement import ALL, agreement_summary
from heedful.analysis.permutation import quarters
from heedful.analysis.statistics import Estimate
from heedful.claims.combine import SHARES, own_or_over_seeds
from heedful.claims.manipulation import FAR
from heedful.papers.jain2019 import AGREEMENT
from heedful.studies.measures import CELL, RUN, Cell, arranged, beside, beside_in_words
from heedful.studies.one_attention import PINNED

Z = 1.96  # of an interval of 95 %
PRINTED = "gradient"
"""The measure whose τ the paper's numbers at hand are of."""


def accuracy_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy of every model on every data set, in per cent: dataset, model, accuracy, low, high, seeds, …."""
    rows = []
    for key, part in runs.groupby(CELL, sort=False):
        found = own_or_over_seeds([_accuracy(row) for row in part.to_dict("records")], SHARES)
        rows.append({**dict(zip(CELL, map(str, key), strict=True)), **beside("accuracy", found, len(part), None)})
    return pd.DataFrame(rows)


def _accuracy(row: Cell) -> Estimate:
    value, low, high = (float(row[f"test_accuracy{end}"]) for end in ("", "_low", "_high"))
    return Estimate(value=value, low=low, high=high, count=int(row["instances"]))


def accuracy_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A row per data set, a column per model."""
    return arranged(table, ["dataset"], "model", partial(beside_in_words, value="accuracy"))


def agreement_table(agreement: pd.DataFrame) -> pd.DataFrame:
    """Per data set, model, measure and predicted class Kendall's τ with attention, over seeds.

    Columns: dataset, model, measure, predicted (`all` and each class); tau, low, high (the mean over seeds of the mean
    over texts, with Student's interval over seeds); sd over texts, significant (share of texts with p < .05), top_k,
    instances, constant (texts without a τ because attention, or the other measure, is the same for all words), seeds,
    paper.
    """
    summary = agreement_summary(agreement, by=(*RUN, "measure"))
    rows = []
    for key, part in summary.groupby([*CELL, "measure", "predicted"], sort=False):
        said = dict(zip([*CELL, "measure", "predicted"], map(str, key), strict=True))
        known = part.dropna(subset=["mean"])
        found = [_mean(row) for row in known.to_dict("records")]
        if not found:
            continue
        over = own_or_over_seeds(found, (-1.0, 1.0))
        printed = said["measure"] == PRINTED and said["predicted"] == ALL
        rows.append(
            {
                **said,
                "tau": over.value,
                "low": over.low,
                "high": over.high,
                **{name: float(part[name].mean()) for name in ("sd", "significant", "top_k")},
                "instances": int(part["counted"].mean()),
                "constant": int((part["constant_attention"] + part["constant_other"]).sum()),
                "seeds": len(found),
                "paper": AGREEMENT.get((said["dataset"], said["model"])) if printed else None,
            }
        )
    return pd.DataFrame(rows)


def _mean(row: Cell) -> Estimate:
    """The mean τ of one run with the interval of its texts."""
    half = Z * row["sd"] / np.sqrt(row["counted"])
    return Estimate(value=row["mean"], low=row["mean"] - half, high=row["mean"] + half, count=int(row["counted"]))


def agreement_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A row per data set and model, a column per measure: mean τ with its interval, share significant, the paper's."""

    def words(cell: Cell) -> str:
        paper: str = "" if pd.isna(cell["paper"]) else f", paper {cell['paper']:.2f}"
        return f"{cell['tau']:.2f} [{cell['low']:.2f}, {cell['high']:.2f}], {cell['significant']:.0%}{paper}"

    return arranged(table[table["predicted"] == ALL], CELL, "measure", words)


def permutation_table(permutation: pd.DataFrame) -> pd.DataFrame:
    """Per data set, model and quarter of the largest weight how far shuffling moves the output, seeds pooled.

    Columns: dataset, model, largest_weight (the quarter), texts, median, upper_quartile of the texts' median TVD, and
    flips, the mean share of shuffles that change the decision.
    """
    placed = permutation.assign(largest_weight=quarters(permutation["largest_weight"]))
    grouped = placed.groupby([*CELL, "largest_weight"], sort=False, observed=True)
    moved = grouped["tvd_median"]
    return pd.DataFrame(
        {
            "texts": grouped.size(),
            "median": moved.median(),
            "upper_quartile": moved.quantile(0.75),
            "flips": grouped["flips"].mean(),
        }
    ).reset_index()


def permutation_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A row per data set and model, a column per quarter of the largest weight: median TVD, and how many texts."""
    ordered = table.sort_values("largest_weight", kind="stable")
    return arranged(ordered, CELL, "largest_weight", lambda cell: f"{cell['median']:.3f} ({cell['texts']:,})")


def determined_table(determined: pd.DataFrame) -> pd.DataFrame:
    """Per data set, model and tolerance how far outputs determine the scores of words.

    Columns: dataset, model, within, words, pinned (the share whose score moves by less than 1), without (the share that
    could do without attention), median (of largest less smallest score; infinite for most), proved (the share of
    words both of whose bounds are).
    """
    grouped = determined.groupby([*CELL, "within"], sort=False)
    return pd.DataFrame(
        {
            "words": grouped.size(),
            "pinned": grouped["width"].apply(lambda width: float((width < PINNED).mean())),
            "without": grouped["low"].apply(lambda low: float((low == -np.inf).mean())),
            "median": grouped["width"].median(),
            "proved": grouped["status"].apply(lambda status: float((status == "proved").mean())),
        }
    ).reset_index()


def determined_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A row per data set and model, a column per tolerance."""

    def words(cell: Cell) -> str:
        return f"{cell['pinned']:.0%} pinned, {cell['without']:.0%} without"

    named = table.assign(within=[f"ε = {value:g}" for value in table["within"]])
    return arranged(named, CELL, "within", words)


def adversary_table(adversary: pd.DataFrame) -> pd.DataFrame:
    """Per data set, model and kind of adversary how far attention may lie, seeds pooled.

    Columns: dataset, model, kind, texts, exists (the share of texts for which there is one), median and mean JSD of
    those, far (the share of all texts with JSD ≥ ¾ log 2), exact (the share of answers that are proven to be largest).
    """
    grouped = adversary[adversary["units"] > 1].groupby([*CELL, "kind"], sort=False)
    return pd.DataFrame(
        {
            "texts": grouped.size(),
            "exists": grouped["jsd"].apply(lambda jsd: float(jsd.notna().mean())),
            "median": grouped["jsd"].median(),
            "mean": grouped["jsd"].mean(),
            "far": grouped["jsd"].apply(lambda jsd: float((jsd >= FAR).mean())),
            "exact": grouped["exact"].apply(lambda exact: float(exact.dropna().mean())),
        }
    ).reset_index()


def adversary_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A row per data set and model, a column per kind: median JSD, and for what share of the texts there is one."""

    def words(cell: Cell) -> str:
        return "–" if pd.isna(cell["median"]) else f"{cell['median']:.2f}, {cell['exists']:.0%}"

    return arranged(table, CELL, "kind", words)
