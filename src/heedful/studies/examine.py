"""The examination: every claim that one trained model can be judged by, and the answer they give together.

Words are judged by the tables of a run; texts by erasing attention weights, how much must go before decisions flip, and
by replacing them: whether others would give the same output.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool

from heedful.analysis.flips import MEASURED, measure
from heedful.analysis.quality import (
    by_ranking,
    erasure_curves,
    flip_summary,
    on_resting,
    ranking_quality,
    rests_on_a_part,
)
from heedful.analysis.separation import NOT_POLAR, polar
from heedful.analysis.statistics import LEVEL
from heedful.claims import CLAIMS, Verdict, judge
from heedful.claims.answer import CHANCE, DECISION, LEADS, Answer, answer, single_decisions
from heedful.claims.claim import decide
from heedful.claims.erasure import OF_ONE_MODEL
from heedful.claims.erasure_numbers import lead_taken, more_lead_than_chance
from heedful.claims.scores import LEARNED, has_learned, outcomes
from heedful.figures.erasure import flip_curves
from heedful.figures.picture import Figure
from heedful.notebook import counted
from heedful.report.page import PageTable, Section
from heedful.report.terminal import printable
from heedful.studies.attack import KINDS, SHUFFLES, AttackedAttention, Kind, attack_attention
from heedful.studies.measures import MINIMUM, InWords, in_words, per_cent, two_digits
from heedful.studies.one_attention import CorpusAttention
from heedful.traces import Trace

ON_WORDS = ("C1", "C2", "C2b", "C8", "C8b", "C8c")
"""Judged on the words of the model; those of erasure are judged on its texts."""

ON_REMOVED_WORDS = ("D1", "C8b", "C8c", "D2")
"""Judged on words that were taken away, where the scores of words are not known."""

RESTING_WORDS: InWords = {
    "ranking": ("ranking", str),
    "median erased": ("median_fraction", per_cent),
    "over half": ("over_half", per_cent),
    "weight erased": ("mean_mass", per_cent),
    "is minimal": ("attained", per_cent),
    "× minimum": ("mean_ratio", two_digits),
    "lead gone": ("lead_taken", per_cent),
}
DECISION_WORDS: InWords = {
    "decided for": ("decision", printable),
    "texts": ("texts", "{:,}".format),
    "resting": ("resting", "{:,}".format),
    "median erased": ("median_fraction", per_cent),
    "minimum": ("median_minimum", per_cent),
    "beats chance": ("beats_chance", per_cent),
    "lead gone": ("lead_taken", per_cent),
    "found": ("found", str),
}

DECISION_COLUMNS = (
    "decision", "texts", "resting", "found", "beats_chance", "lead_taken", "median_fraction", "median_minimum",
)  # fmt: skip

NOTE = (
    "Weights are set to zero along each ranking, the others renormalised, until the decision flips. Both tables are on "
    "the texts whose decision rests on a part of them: fewer units than all can flip it. A ranking that never flips "
    "one counts as everything erased. No set smaller than the minimum flips the decision; “× minimum” says how many "
    "times as many units a ranking needs in the mean, “is minimal” how often it needs no more (S9), and “lead gone” "
    "how much of the lead over the next class goes with as many units as the minimum has (S13). In the second table, "
    "for the decisions of each class: how many rest on a part, how often more of the lead goes with the most attended "
    "units than with random ones (“beats chance”, S6b), and whether attention finds what decided."
)


CURVES = Figure(
    name="erasure-curves",
    title="Erasure along each ranking",
    caption="How many decisions are not what they were once so much of their text is erased, along each ranking; the "
    "minimum is the most that any can reach. On the texts of the tables.",
    needs=("erasure-curves",),
    draw=lambda tables: flip_curves(tables["erasure-curves"]),
)


@dataclass(frozen=True, kw_only=True)
class ErasedAttention:
    """What erasing attention weights of the instances of a trace came to."""

    tables: Mapping[str, pd.DataFrame]
    """`single` and `flips`, one row per instance and ranking."""
    resting: pd.DataFrame
    """One row per ranking: ranking, instances, median_fraction, over_half, mean_mass, attained, mean_ratio and
    lead_taken, on the instances whose decision rests on a part of their units."""
    decisions: pd.DataFrame
    """One row per class that instances are decided for: decision, texts, resting, whether attention finds what decided,
    and of the resting ones beats_chance (S6b), lead_taken (S13), median_fraction by attention and median_minimum."""
    curves: pd.DataFrame
    """One row per ranking and share of a text that is erased: ranking, fraction, flipped."""
    verdicts: Sequence[Verdict]
    words: str

    def section(self, lead: str = "", *, drawn: bool = False) -> Section:
        """It as a part of a page, with its picture or without."""
        pictures = [CURVES.picture({"erasure-curves": self.curves})] if drawn and self.curves["flipped"].any() else []
        tables = [
            PageTable(name="erasure", cells=in_words(self.resting, RESTING_WORDS), data=self.resting),
            PageTable(name="decisions", cells=in_words(self.decisions, DECISION_WORDS), data=self.decisions),
        ]
        return Section(
            name="erasure",
            title="Erase attention",
            question=DECISION,
            lead=lead or self.words,
            verdicts=self.verdicts,
            pictures=pictures,
            tables=tables,
            note=NOTE,
        )


def erase_attention(
    trace: Trace, *, seed: int = 0, unit: str = "words", rankings: Sequence[str] = MEASURED
) -> ErasedAttention:
    """Erase the weights of every instance along each ranking; the seed draws the random orders.

    Verdicts and what is summed up count a text that is there ten times once.
    """
    tables = measure(trace, seed=seed, rankings=rankings)
    first = trace.distinct.numpy(force=True)
    return summed_up(tables, first, trace.class_names, learned=has_learned(trace), unit=unit)


def summed_up(
    tables: Mapping[str, pd.DataFrame],
    first: Bool[np.ndarray, " instances"],
    class_names: Sequence[str],
    *,
    learned: bool,
    unit: str = "words",
) -> ErasedAttention:
    """What the tables `flips` and `single` come to; instances count that are the `first` with their units."""
    once = {name: table[first[table["instance"]]] for name, table in tables.items()}
    resting = summarise(once["flips"])
    return ErasedAttention(
        tables=tables,
        resting=resting,
        decisions=by_decision(once["flips"], class_names, learned=learned),
        curves=erasure_curves(by_ranking(once["flips"])),
        verdicts=judge(OF_ONE_MODEL, once),
        words=erasure_words(once["flips"], resting, unit),
    )


def summarise(flips: pd.DataFrame) -> pd.DataFrame:
    """One row per ranking, on the texts whose decision rests on a part of them: the convention `resting`."""
    tables = by_ranking(flips)
    resting = on_resting(tables)
    quality = ranking_quality(resting, resting[MINIMUM])[["ranking", "attained", "mean_ratio"]]
    taken = flips[flips["units"] > 1].groupby("ranking", sort=False)["lead_taken"].mean().reset_index()
    columns = ["ranking", "instances", "median_fraction", "over_half", "mean_mass"]
    summary = flip_summary(tables, ["resting"])[columns]
    return summary.merge(quality, on="ranking", how="left").merge(taken, on="ranking", how="left")


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
    table = pd.DataFrame(found, columns=list(DECISION_COLUMNS))
    return table if learned else table.assign(found="not shown")


def _of_decisions(rows: pd.DataFrame, level: float) -> dict[str, object]:
    tables = by_ranking(rows)
    resting = on_resting(tables)
    attended, minimum = resting["attention"], resting[MINIMUM]
    numbers = {CHANCE: more_lead_than_chance("attention", rows, level), LEADS: lead_taken("attention", rows, level)}
    judged = {claim: decide(number, CLAIMS[claim].threshold) for claim, number in numbers.items()}
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


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What the words and the texts of one model show, and the answer."""

    worth: Sequence[Verdict]
    """Whether the model has learned anything; nothing where that is not asked."""
    words: Sequence[Verdict]
    erased: ErasedAttention
    attacked: AttackedAttention
    whole: CorpusAttention | None
    """What one attention for the whole corpus could do, where that was looked at."""
    answer: Answer

    @property
    def verdicts(self) -> list[Verdict]:
        whole = self.whole.verdicts if self.whole else ()
        return [*self.words, *self.erased.verdicts, *self.attacked.verdicts, *whole, *self.worth]


def examine(
    tables: Mapping[str, pd.DataFrame],
    trace: Trace,
    *,
    seed: int = 0,
    unit: str = "words",
    scope: str = "",
    kinds: Mapping[str, Kind] = KINDS,
    shuffles: int = SHUFFLES,
    whole: CorpusAttention | None = None,
    on_words: Sequence[str] = ON_WORDS,
) -> Examination:
    """Judge `tokens` or `words`, and `weights`, erase and replace the attention of the trace, and answer.

    With labels in the trace it is asked first whether the model has learned anything. `scope` says what the answer is
    of, `unit` what has the weights; `kinds` of other weights are looked for, and weights are shuffled so often; `whole`
    is what one attention for the whole corpus could do. `on_words` are the claims about words.
    """
    worth = judge((LEARNED,), {"outcomes": outcomes(trace)}) if trace.labels is not None else []
    words = judge(tuple(name for name in on_words if CLAIMS[name].table in tables), tables)
    erased = erase_attention(trace, seed=seed, unit=unit)
    attacked = attack_attention(trace, seed=seed, unit=unit, kinds=kinds, shuffles=shuffles)
    answered = answer(
        [*worth, *words, *erased.verdicts, *attacked.verdicts, *(whole.verdicts if whole else ())],
        unit=unit,
        classes={printable(row["decision"]): row["found"] for row in erased.decisions.to_dict("records")},
        scope=scope,
        note=chance_words(tables["tokens"] if "tokens" in tables else tables["words"]),
        drawn=attacked.drawn,
    )
    return Examination(worth=worth, words=words, erased=erased, attacked=attacked, whole=whole, answer=answered)


def chance_words(tokens: pd.DataFrame) -> str:
    """How many words of a class are left out because chance may have made them so; nothing where none is."""
    every, kept = len(tokens) - int(tokens["group"].isin(NOT_POLAR).sum()), len(polar(tokens))
    if every == kept:
        return ""
    return f"Of {every:,} words that occur mostly in one class, {kept:,} do so beyond chance; only these count."
