"""Erasure in the audit: how much attention must go before decisions flip, against the provable minimum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from heedful.analysis.quality import flip_summary, on_common, ranking_quality
from heedful.claims import Verdict, judge
from heedful.claims.erasure import OF_ONE_MODEL
from heedful.studies.serrano2019.measures import measure
from heedful.traces import Trace

MINIMUM = "minimum"


@dataclass(frozen=True, kw_only=True)
class ErasedAttention:
    """What erasing attention weights of test texts came to."""

    tables: Mapping[str, pd.DataFrame]
    """`single` and `flips`, one row per instance and ranking (`serrano2019.measures`)."""
    summary: pd.DataFrame
    """One row per ranking: ranking, instances, median_fraction, over_half, mean_mass, mean_ratio on the common
    instances; attained and lead_taken on all whose decision flips before everything is erased."""
    verdicts: Sequence[Verdict]
    words: str


def erase_attention(found: Trace, *, seed: int = 0, unit: str = "words") -> ErasedAttention:
    """Erase the weights of every text along each ranking; the seed draws the random orders."""
    tables = measure(found, seed=seed)
    summary = summarise(tables["flips"])
    return ErasedAttention(
        tables=tables,
        summary=summary,
        verdicts=judge(OF_ONE_MODEL, tables),
        words=erasure_words(tables["flips"], summary, unit),
    )


def summarise(flips: pd.DataFrame) -> pd.DataFrame:
    """One row per ranking: on the instances of the convention `common`, and how near the minimum it comes."""
    tables = {str(name): rows for name, rows in flips.groupby("ranking", sort=False)}
    common = on_common(tables)
    ratios = ranking_quality(common, common[MINIMUM])[["ranking", "mean_ratio"]]
    attained = ranking_quality(tables, tables[MINIMUM])[["ranking", "attained"]]
    taken = flips[flips["units"] > 1].groupby("ranking", sort=False)["lead_taken"].mean().reset_index()
    summary = flip_summary(tables)
    summary = summary[summary["convention"] == "common"]
    for part in (attained, ratios, taken):
        summary = summary.merge(part, on="ranking", how="left")
    columns = ["ranking", "instances", "median_fraction", "over_half", "mean_mass"]
    return summary[[*columns, "attained", "mean_ratio", "lead_taken"]]


def erasure_words(flips: pd.DataFrame, summary: pd.DataFrame, unit: str) -> str:
    """How much goes by attention and how much must, in plain words."""
    minimum = flips[(flips["ranking"] == MINIMUM) & (flips["units"] > 1)]
    if minimum.empty:
        return f"No test text has two {unit} or more: there is nothing to erase."
    rows = summary.set_index("ranking")
    count = int(rows["instances"].max())
    if not count:
        return f"There is no text whose decision every ranking flips, however much attention to its {unit} is erased."
    most, least = (float(rows["median_fraction"][name]) for name in ("attention", MINIMUM))
    never = int(minimum["erased"].isna().sum())
    still = f" {never:,} of {len(minimum):,} decisions never flip, whatever is erased." if never else ""
    able = minimum.loc[minimum["erased"].notna(), "instance"]
    attended = flips[(flips["ranking"] == "attention") & flips["instance"].isin(able)]
    missed = int(attended["erased"].isna().sum())
    still += f" Another {missed:,} never flip along attention, and are not in these medians." if missed else ""
    return (
        f"Erased from the largest attention weight on, {most:.1%} of a text's {unit} must go before the decision "
        f"flips; provably {least:.1%} are enough (medians over {count:,} texts).{still}"
    )


def shown_table(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary with cells as words, for a page or a terminal."""
    return pd.DataFrame(
        {
            "ranking": summary["ranking"],
            "median erased": summary["median_fraction"].map(_per_cent),
            "over half": summary["over_half"].map(_per_cent),
            "weight erased": summary["mean_mass"].map(_per_cent),
            "is minimal": summary["attained"].map(_per_cent),
            "× minimum": summary["mean_ratio"].map(lambda value: "–" if pd.isna(value) else f"{value:.2f}"),
            "lead gone": summary["lead_taken"].map(_per_cent),
        }
    )


def _per_cent(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.1%}"
