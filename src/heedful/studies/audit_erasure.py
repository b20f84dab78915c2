"""Erasure in the audit: how much attention must go before decisions flip, against the provable minimum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from heedful.analysis.flips import measure
from heedful.analysis.quality import by_ranking, flip_summary, on_resting, ranking_quality, rests_on_a_part
from heedful.analysis.statistics import LEVEL
from heedful.claims import CLAIMS, Verdict, judge
from heedful.claims.answer import CHANCE, LEADS, single_decisions
from heedful.claims.claim import decide
from heedful.claims.erasure import OF_ONE_MODEL
from heedful.claims.erasure_numbers import lead_taken, more_lead_than_chance
from heedful.claims.scores import has_learned
from heedful.notebook import counted
from heedful.studies.words import printable
from heedful.traces import Trace

MINIMUM = "minimum"
DECISION_COLUMNS = [
    "decision",
    "texts",
    "resting",
    "found",
    "beats_chance",
    "lead_taken",
    "median_fraction",
    "median_minimum",
]


@dataclass(frozen=True, kw_only=True)
class ErasedAttention:
    """What erasing attention weights of test texts came to."""

    tables: Mapping[str, pd.DataFrame]
    """`single` and `flips`, one row per instance and ranking (`heedful.analysis.flips`)."""
    summary: pd.DataFrame
    """One row per ranking: ranking, instances, median_fraction, over_half, mean_mass, mean_ratio, attained and
    lead_taken, on the texts of the convention `resting`."""
    decisions: pd.DataFrame
    """One row per class that texts are decided for: decision, texts, resting, whether attention finds what decided,
    and of the resting ones beats_chance (S6b), lead_taken (S13), median_fraction by attention and median_minimum."""
    verdicts: Sequence[Verdict]
    words: str


def erase_attention(found: Trace, *, seed: int = 0, unit: str = "words") -> ErasedAttention:
    """Erase the weights of every text along each ranking; the seed draws the random orders."""
    tables = measure(found, seed=seed)
    judged = once_each(tables, found)
    summary = summarise(judged["flips"])
    return ErasedAttention(
        tables=tables,
        summary=summary,
        decisions=by_decision(judged["flips"], found.class_names, learned=has_learned(found)),
        verdicts=judge(OF_ONE_MODEL, judged),
        words=erasure_words(judged["flips"], summary, unit),
    )


def once_each(tables: Mapping[str, pd.DataFrame], found: Trace) -> dict[str, pd.DataFrame]:
    """The rows of the first of each set of copies: a text that is there ten times is one observation."""
    first = found.distinct.numpy(force=True)
    return {name: table[first[table["instance"]]] for name, table in tables.items()}


def summarise(flips: pd.DataFrame) -> pd.DataFrame:
    """One row per ranking, on the texts whose decision rests on a part of them: the convention `resting`."""
    tables = by_ranking(flips)
    resting = on_resting(tables)
    summary = flip_summary(tables, ["resting"])
    quality = ranking_quality(resting, resting[MINIMUM])[["ranking", "attained", "mean_ratio"]]
    taken = flips[flips["units"] > 1].groupby("ranking", sort=False)["lead_taken"].mean().reset_index()
    for part in (quality, taken):
        summary = summary.merge(part, on="ranking", how="left")
    columns = ["ranking", "instances", "median_fraction", "over_half", "mean_mass"]
    return summary[[*columns, "attained", "mean_ratio", "lead_taken"]]


def by_decision(flips: pd.DataFrame, class_names: Sequence[str], *, learned: bool = True) -> pd.DataFrame:
    """What erasure shows of the decisions for each class: they need not rest on attention alike.

    Among many classes one is easily refuted by accident: intervals are at Bonferroni's level. Of a model that is not
    shown to have learned anything it is not said whether attention finds what decided.
    """
    several = flips[flips["units"] > 1]
    parts = {name: several[several["decision"] == number] for number, name in enumerate(class_names)}
    decided = {name: rows for name, rows in parts.items() if len(rows)}
    level = 1 - (1 - LEVEL) / max(len(decided), 1)
    found = [{"decision": name, **_of_decisions(rows, level)} for name, rows in decided.items()]
    table = pd.DataFrame(found, columns=DECISION_COLUMNS)
    return table if learned else table.assign(found="not shown")


def _of_decisions(rows: pd.DataFrame, level: float) -> dict[str, object]:
    tables = by_ranking(rows)
    resting = on_resting(tables)
    attended, minimum = resting["attention"], resting[MINIMUM]
    numbers = {CHANCE: more_lead_than_chance("attention", rows, level), LEADS: lead_taken("attention", rows, level)}
    judged = {claim: decide(found, CLAIMS[claim].threshold) for claim, found in numbers.items()}
    better = numbers[CHANCE]
    return {
        "texts": len(tables[MINIMUM]),
        "resting": len(minimum),
        "found": single_decisions(judged, len(minimum), len(tables[MINIMUM])),
        "beats_chance": better.value if better else float("nan"),
        "lead_taken": attended["lead_taken"].mean(),
        "median_fraction": attended["fraction"].median(),
        "median_minimum": minimum["fraction"].median(),
    }


def erasure_words(flips: pd.DataFrame, summary: pd.DataFrame, unit: str) -> str:
    """How much goes by attention and how much must, in plain words."""
    minimum = flips[(flips["ranking"] == MINIMUM) & (flips["units"] > 1)]
    if minimum.empty:
        return f"No test text has two {unit} or more: there is nothing to erase."
    resting = minimum.loc[rests_on_a_part(minimum), "instance"]
    if resting.empty:
        return f"No decision rests on a part of its {unit}: they flip only when everything is erased, or never."
    rows = summary.set_index("ranking")
    most, least = (float(rows["median_fraction"][name]) for name in ("attention", MINIMUM))
    attended = flips[(flips["ranking"] == "attention") & flips["instance"].isin(resting)]
    missed = int((attended["erased"].isna() | (attended["erased"] == attended["units"])).sum())
    never = f" Along attention {missed:,} of these flip only when everything is erased, or never." if missed else ""
    firm = len(minimum) - len(resting)
    others = f" {counted(firm, 'other decision')} can be flipped by nothing less than all." if firm else ""
    return (
        f"Erased from the largest attention weight on, {most:.1%} of a text's {unit} must go before the decision "
        f"flips; provably {least:.1%} are enough (medians over {counted(len(resting), 'text')}).{never}{others}"
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


def shown_decisions(decisions: pd.DataFrame) -> pd.DataFrame:
    """One line per class that texts are decided for, with cells as words."""
    return pd.DataFrame(
        {
            "decided for": decisions["decision"].map(printable),
            "texts": decisions["texts"].map("{:,}".format),
            "resting": decisions["resting"].map("{:,}".format),
            "median erased": decisions["median_fraction"].map(_per_cent),
            "minimum": decisions["median_minimum"].map(_per_cent),
            "beats chance": decisions["beats_chance"].map(_per_cent),
            "lead gone": decisions["lead_taken"].map(_per_cent),
            "found": decisions["found"],
        }
    )


def _per_cent(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.1%}"
