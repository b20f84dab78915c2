"""Erasure for people: how much attention must go before decisions flip, of one text and of a whole trace."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from heedful.analysis.erasure import first_flips, minimum_flips, verify_flip
from heedful.analysis.flips import MEASURED, in_front, measure
from heedful.analysis.quality import (
    by_ranking,
    flip_summary,
    fraction_distribution,
    on_resting,
    ranking_quality,
    rests_on_a_part,
)
from heedful.analysis.rankings import ranked
from heedful.analysis.statistics import LEVEL
from heedful.claims import CLAIMS, Verdict, judge
from heedful.claims.answer import CHANCE, LEADS, single_decisions
from heedful.claims.claim import decide
from heedful.claims.erasure import OF_ONE_MODEL
from heedful.claims.erasure_numbers import lead_taken, more_lead_than_chance
from heedful.claims.scores import has_learned
from heedful.models.classifier import Classifier
from heedful.notebook import counted
from heedful.pipeline import Run
from heedful.probes.reading import input_flips
from heedful.report.page import Page, PageTable, Section
from heedful.report.terminal import printable
from heedful.studies.explain import word_rows
from heedful.studies.serrano2019.inputs import read_changed_texts
from heedful.studies.serrano2019.tables import input_summary_table, inputs_table, table_2, wins_and_attainment
from heedful.text.corpus import Corpus
from heedful.text.tables import writable
from heedful.traces import Trace
from heedful.tracing import WordWeights, trace_texts, word_weights

RANKINGS = ("attention", "gradient", "product", "polarity", "margin", "random")
MINIMUM = "minimum"
LOOKS = 50
"""How often a shortened text is read again, for each ranking; of a text with more units a count is an upper bound."""

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

NOTE = (
    "Weights are set to zero along each ranking, the others renormalised, until the decision flips. Both tables are on "
    "the texts whose decision rests on a part of them: fewer units than all can flip it. A ranking that never flips "
    "one counts as everything erased. No set smaller than the minimum flips the decision; “× minimum” says how many "
    "times as many units a ranking needs in the mean, “is minimal” how often it needs no more (S9), and “lead gone” "
    "how much of the lead over the next class goes with as many units as the minimum has (S13). In the second table, "
    "for the decisions of each class: how many rest on a part, how often more of the lead goes with the most attended "
    "units than with random ones (“beats chance”, S6b), and whether attention finds what decided."
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
    verdicts: Sequence[Verdict]
    words: str

    def section(self, lead: str = "") -> Section:
        """It as a part of a page."""
        tables = [
            PageTable(name="erasure", cells=resting_in_words(self.resting), data=self.resting),
            PageTable(name="decisions", cells=decisions_in_words(self.decisions), data=self.decisions),
        ]
        return Section(
            name="erasure",
            title="Erase attention",
            lead=lead or self.words,
            verdicts=self.verdicts,
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
    once = {name: table[first[table["instance"]]] for name, table in tables.items()}
    resting = summarise(once["flips"])
    return ErasedAttention(
        tables=tables,
        resting=resting,
        decisions=by_decision(once["flips"], trace.class_names, learned=has_learned(trace)),
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
    table = pd.DataFrame(
        [{"decision": name, **_of_decisions(rows, level)} for name, rows in decided.items()], columns=DECISION_COLUMNS
    )
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


def resting_in_words(summary: pd.DataFrame) -> pd.DataFrame:
    """One line per ranking."""
    return pd.DataFrame(
        {
            "ranking": summary["ranking"],
            "median erased": summary["median_fraction"].map(per_cent),
            "over half": summary["over_half"].map(per_cent),
            "weight erased": summary["mean_mass"].map(per_cent),
            "is minimal": summary["attained"].map(per_cent),
            "× minimum": summary["mean_ratio"].map(lambda value: "–" if pd.isna(value) else f"{value:.2f}"),
            "lead gone": summary["lead_taken"].map(per_cent),
        }
    )


def decisions_in_words(decisions: pd.DataFrame) -> pd.DataFrame:
    """One line per class that texts are decided for."""
    return pd.DataFrame(
        {
            "decided for": decisions["decision"].map(printable),
            "texts": decisions["texts"].map("{:,}".format),
            "resting": decisions["resting"].map("{:,}".format),
            "median erased": decisions["median_fraction"].map(per_cent),
            "minimum": decisions["median_minimum"].map(per_cent),
            "beats chance": decisions["beats_chance"].map(per_cent),
            "lead gone": decisions["lead_taken"].map(per_cent),
            "found": decisions["found"],
        }
    )


def per_cent(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.1%}"


def erase_trace(trace: Trace, *, seed: int = 0) -> Page:
    """All rankings on all instances of a trace, the exact minimum, and single erasures: the tables of the paper.

    The section `tables` holds every table: what each ranking erases at the flip (flips-…), the smallest sets with
    whether plain erasure of each flips the decision (minimum), single erasures and which of two flips (single, tops),
    and how rankings compare (summary, fractions, quality, wins).
    """
    erased = erase_attention(trace, seed=seed, rankings=RANKINGS)
    flips, single = by_ranking(erased.tables["flips"]), erased.tables["single"]
    minimum = minimum_flips(trace)
    cells = table_2(single.assign(dataset="", model="", seed=0))
    tables = {
        **{f"flips-{name}": rows for name, rows in flips.items()},
        "minimum": minimum.assign(verified=verify_flip(trace, minimum)["holds"]),
        "single": single,
        "tops": cells.reindex(columns=["ranking", "cell", "share", "low", "high", "instances"]),
        "summary": flip_summary(flips),
        "fractions": fraction_distribution(flips),
        "quality": ranking_quality({name: table for name, table in flips.items() if name != MINIMUM}, minimum),
        "wins": wins_and_attainment(flips),
    }
    every = Section(
        name="tables",
        title="All tables",
        tables=[PageTable(name=name, cells=table) for name, table in tables.items()],
        on_terminal=False,
    )
    return Page(
        title="Erasing attention weights until the decision flips",
        headline="Erasing attention weights until the decision flips",
        sections=[erased.section(_instances(erased, trace)), every],
    )


def _instances(erased: ErasedAttention, trace: Trace) -> str:
    """On which instances the tables stand, and what became of the others."""
    resting, several = int(erased.resting["instances"].max()), int(erased.decisions["texts"].sum())
    repeated = int((~trace.distinct).sum())
    copies = f"{repeated:,} are copies of others, " if repeated else ""
    return (
        f"On the {resting:,} instances whose decision rests on a part of them: fewer units than all can flip it. A "
        f"ranking that never flips one counts as everything erased. Of {len(trace):,} in all, {copies}"
        f"{len(trace) - repeated - several:,} have one unit only, {several - resting:,} flip only when everything is "
        "erased, or never."
    )


def erase_inputs(run: Run, corpus: Corpus, mode: str, *, watch: Callable[[int, int], None] | None = None) -> Page:
    """Units that leave some test texts of a run beside erased weights: compared, and the flips of both summed up."""
    said = {"dataset": corpus.name, "model": run.path.name, "seed": run.settings.training.seed}
    levels = in_front(said, read_changed_texts(run, corpus, [mode], watch=watch))
    compared = inputs_table(levels)
    rates = ("median_fraction_input", "median_fraction_attention", "input_sooner", "equal")
    names = ("median, text", "median, weights", "text sooner", "same")
    cells = {name: compared[column].map(per_cent) for name, column in zip(names, rates, strict=True)}
    correlation = compared["correlation"].map(lambda value: "–" if pd.isna(value) else f"{value:.2f}")
    shown = pd.DataFrame({"ranking": compared["ranking"], **cells, "rank correlation": correlation})
    title = "Units leave the text, and it is read again"
    section = Section(
        name="inputs",
        title=f"{title} ({mode})",
        lead=f"On {compared['instances'].iloc[0]:.0f} test texts of several units, medians over those that both flip.",
        tables=[PageTable(name="inputs", cells=shown, data=compared)],
    )
    flips = PageTable(name="input-flips", cells=input_summary_table(levels))
    every = Section(name="flips", title="What is erased at the flip", tables=[flips], on_terminal=False)
    return Page(title=title, headline=title, sections=[section, every])


@dataclass(frozen=True, kw_only=True)
class Course:
    """One ranking on one text: the order of erasure, and how many units go before the decision flips."""

    ranking: str
    order: list[int]
    erased: int | None
    flipped_to: str | None


@dataclass(frozen=True, kw_only=True)
class ErasedText:
    """One text: its units, the decision, the course of every ranking and the minimum set."""

    units: Sequence[str]
    predicted: str
    courses: list[Course]
    minimum: list[int] | None = None
    minimum_to: str | None = None
    inputs: str | None = None
    """How units leave the text (delete, mask) when not their weights are erased; there is no exact minimum then."""
    text: str = ""
    words: WordWeights | None = None
    """Of a hierarchical model, what it attends to within sentences."""
    unknown: int = 0
    """How many of its words the vocabulary does not hold."""
    tied: bool = False
    """Whether nothing but the order of the classes decides when everything is erased: the bias prefers none."""

    def summary(self) -> dict[str, Any]:
        exact = {"minimum": {"positions": self.minimum, "flipped_to": self.minimum_to}} if self.inputs is None else {}
        inner = {} if self.words is None else {"words": word_rows(self.text, self.words)}
        return {
            "level": self.inputs or "attention",
            "unknown_words": self.unknown,
            "units": list(self.units),
            "predicted": self.predicted,
            "tied_when_all_is_erased": self.tied,
            "rankings": [vars(course) for course in self.courses],
            **exact,
            **inner,
        }


def erase_text(model: Classifier, text: str, *, inputs: str | None = None, seed: int = 0) -> ErasedText:
    """Erase the attention weights of one text along every ranking until the decision flips.

    With `inputs` (delete or mask) the units leave the text instead, and the model reads what remains.
    """
    text = str(writable(text))
    trace, split = trace_texts(model, [text])
    assert trace.units is not None

    def course(by: str) -> Course:
        if inputs is None:
            row = first_flips(trace, by=by, seed=seed).iloc[0]
        else:
            row = input_flips(model, split, by, mode=inputs, steps=LOOKS, spacing="geometric", seed=seed).iloc[0]
        return Course(
            ranking=by,
            order=ranked(trace, by, seed=seed).tolist(),
            erased=None if pd.isna(row["erased"]) else int(row["erased"]),
            flipped_to=_class(trace, row["flipped_to"]),
        )

    erased = ErasedText(
        units=trace.units,
        predicted=trace.class_names[int(trace.predictions[0])],
        courses=[course(by) for by in RANKINGS],
        inputs=inputs,
        text=text,
        words=word_weights(model, split, 0) if model.hierarchical else None,
        unknown=int((split.tokens.numbers == 0).sum()),
        tied=int((trace.bias == trace.bias.max()).sum()) > 1,
    )
    if inputs is not None:
        return erased
    smallest = minimum_flips(trace).iloc[0]
    return replace(erased, minimum=smallest["positions"], minimum_to=_class(trace, smallest["flipped_to"]))


def _class(trace: Trace, number: Any) -> str | None:
    return None if pd.isna(number) else trace.class_names[int(number)]
