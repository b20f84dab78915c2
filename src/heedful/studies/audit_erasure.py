"""Erasure in the audit: how much attention must go before decisions flip, against the provable minimum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from heedful.analysis.quality import flip_summary, on_common, ranking_quality
from heedful.claims import Verdict, judge
from heedful.claims.erasure import OF_ONE_MODEL
from heedful.studies.serrano2019.measures import measure
from heedful.text.ragged import offsets_of, positions_of
from heedful.traces import Trace

MOST_INSTANCES = 2000
MINIMUM = "minimum"


@dataclass(frozen=True, kw_only=True)
class ErasedAttention:
    """What erasing attention weights of test texts came to."""

    tables: Mapping[str, pd.DataFrame]
    """`single` and `flips`, one row per instance and ranking (`serrano2019.measures`)."""
    summary: pd.DataFrame
    """One row per ranking: ranking, instances, median_fraction, over_half, mean_mass, attained, mean_ratio."""
    verdicts: Sequence[Verdict]
    words: str
    notice: str = ""
    """Said when not all texts were looked at."""


def erase_attention(found: Trace, *, seed: int = 0, unit: str = "words", most: int = MOST_INSTANCES) -> ErasedAttention:
    """Erase the weights of every text along each ranking; of more than `most` texts a sample drawn by the seed."""
    seen = sample_instances(found, most, seed)
    tables = measure(seen, seed=seed)
    summary = summarise(tables["flips"])
    return ErasedAttention(
        tables=tables,
        summary=summary,
        verdicts=judge(OF_ONE_MODEL, tables),
        words=erasure_words(tables["flips"], summary, unit),
        notice=f"Of {len(found):,} test texts {len(seen):,} were drawn for this." if len(seen) < len(found) else "",
    )


def sample_instances(found: Trace, most: int, seed: int) -> Trace:
    """So many instances of a trace, in their order; the trace itself if it has no more."""
    if len(found) <= most:
        return found
    drawn = np.random.default_rng(seed).choice(len(found), most, replace=False)
    rows = torch.from_numpy(np.sort(drawn))
    places = positions_of(found.offsets, rows)
    units = found.units
    return Trace.from_arrays(
        offsets=offsets_of(found.lengths[rows]),
        attention_scores=found.attention_scores[places],
        polarity_scores=found.polarity_scores[places],
        bias=found.bias,
        labels=None if found.labels is None else found.labels[rows],
        units=None if units is None else [units[place] for place in places.tolist()],
        class_names=found.class_names,
    )


def summarise(flips: pd.DataFrame) -> pd.DataFrame:
    """One row per ranking, all on the same instances: those of the convention `common`."""
    tables = {str(name): rows for name, rows in flips.groupby("ranking", sort=False)}
    common = on_common(tables)
    quality = ranking_quality(common, common[MINIMUM])
    summary = flip_summary(tables)
    summary = summary[summary["convention"] == "common"]
    columns = ["ranking", "instances", "median_fraction", "over_half", "mean_mass", "attained", "mean_ratio"]
    return summary.merge(quality[["ranking", "attained", "mean_ratio"]], on="ranking", how="left")[columns]


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
        }
    )


def _per_cent(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.1%}"
