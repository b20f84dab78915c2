"""Erasure for people: one text losing its units along each ranking, or the flip tables of a whole trace."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.analysis.erasure import first_flips
from heedful.analysis.flips import in_front, measure
from heedful.analysis.minimum import minimum_flips, verify_flip
from heedful.analysis.quality import by_ranking, flip_summary, fraction_distribution, ranking_quality
from heedful.analysis.rankings import ranked
from heedful.claims import Verdict, judge, verdict_table
from heedful.claims.erasure import OF_ONE_MODEL
from heedful.claims.scores import has_learned
from heedful.models.classifier import Classifier
from heedful.pipeline import Run
from heedful.probes.reading import input_flips
from heedful.studies.audit_erasure import MINIMUM, by_decision, once_each, shown_decisions, shown_table, summarise
from heedful.studies.excerpts import MOST_SENTENCES, MOST_WORDS, cut, in_stretches
from heedful.studies.explain import word_rows
from heedful.studies.serrano2019.inputs import read_changed_texts
from heedful.studies.serrano2019.tables import input_summary_table, inputs_table, table_2, wins_and_attainment
from heedful.studies.tables import save_table
from heedful.studies.verdict_lines import print_below_each_other, print_verdict
from heedful.studies.words import printable
from heedful.text.corpus import Corpus
from heedful.text.readers import writable
from heedful.traces import Trace
from heedful.tracing import WordWeights, trace_texts, word_weights

RANKINGS = ("attention", "gradient", "product", "polarity", "margin", "random")
LOOKS = 50
"""How often a shortened text is read again, for each ranking; of a text with more units a count is an upper bound."""

ERASED = "bold"


@dataclass(frozen=True, kw_only=True)
class Course:
    """One ranking on one text: the order of erasure, and how many units go before the decision flips."""

    ranking: str
    order: list[int]
    erased: int | None
    flipped_to: str | None


@dataclass(frozen=True, kw_only=True)
class Erasure:
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


def erase_text(model: Classifier, text: str, *, inputs: str | None = None, seed: int = 0) -> Erasure:
    """Erase the attention weights of one text along every ranking until the decision flips.

    With `inputs` (delete or mask) the units leave the text instead, and the model reads what remains.
    """
    text = str(writable(text))
    found, split = trace_texts(model, [text])
    assert found.units is not None
    erasure = Erasure(
        units=found.units,
        predicted=found.class_names[int(found.predictions[0])],
        courses=[],
        inputs=inputs,
        text=text,
        words=word_weights(model, split, 0) if model.hierarchical else None,
        unknown=int((split.tokens.numbers == 0).sum()),
        tied=int((found.bias == found.bias.max()).sum()) > 1,
    )
    if inputs is not None:
        tables = {
            by: input_flips(model, split, by, mode=inputs, steps=LOOKS, spacing="geometric", seed=seed)
            for by in RANKINGS
        }
        return replace(erasure, courses=[_course(found, by, table.iloc[0], seed) for by, table in tables.items()])
    smallest = minimum_flips(found).iloc[0]
    return replace(
        erasure,
        courses=[_course(found, by, first_flips(found, by=by, seed=seed).iloc[0], seed) for by in RANKINGS],
        minimum=smallest["positions"],
        minimum_to=_class(found, smallest["flipped_to"]),
    )


def _course(found: Trace, ranking: str, row: "pd.Series[Any]", seed: int) -> Course:
    return Course(
        ranking=ranking,
        order=ranked(found, ranking, seed=seed).tolist(),
        erased=None if pd.isna(row["erased"]) else int(row["erased"]),
        flipped_to=_class(found, row["flipped_to"]),
    )


def _class(found: Trace, number: Any) -> str | None:
    return None if pd.isna(number) else found.class_names[int(number)]


def print_erasure(erasure: Erasure, console: Console | None = None, *, everything: bool = False) -> None:
    """The text once per ranking: in brackets what must go before the decision flips, numbered in that order.

    Of a long text what goes first, unless `everything` is asked for.
    """
    screen = console or Console()
    how = "what is erased" if erasure.inputs is None else f"what leaves the text ({erasure.inputs})"
    bound = erasure.inputs is not None and len(erasure.units) > LOOKS
    few = f"; with {LOOKS} looks at so many units it is an upper bound" if bound else ""
    decided = f"decision: {erasure.predicted}; in ⟦brackets⟧: {how} until it flips, in that order{few}"
    screen.print(printable(decided), markup=False)
    if erasure.tied and any(course.erased in (None, len(erasure.units)) for course in erasure.courses):
        screen.print("when all is erased there is a tie, which goes to the first class", markup=False)
    if erasure.unknown:
        screen.print(f"{erasure.unknown:,} of its words are not in the model's vocabulary", markup=False)
    most = len(erasure.units) if everything else MOST_WORDS if erasure.words is None else MOST_SENTENCES
    for course in erasure.courses:
        gone = course.order[: course.erased or 0]
        _print_row(screen, course.ranking, erasure.units, gone, course.flipped_to, most)
    if erasure.inputs is None:
        _print_row(screen, MINIMUM, erasure.units, erasure.minimum or [], erasure.minimum_to, most)
    if most < len(erasure.units):
        screen.print(
            Text(
                f"of {len(erasure.units):,} units each row shows {most} at most, what goes first; --all shows all",
                "dim",
            )
        )
    if erasure.words is not None:
        screen.print(Text("attended to most within each sentence:", "dim"))
        for line in _word_lines(erasure.text, erasure.words, most):
            screen.print(Text(f"  {line}"))


def _print_row(
    screen: Console, name: str, units: Sequence[str], gone: Sequence[int], flipped_to: str | None, most: int
) -> None:
    end = f"{len(gone):,} of {len(units):,} → {flipped_to}" if flipped_to else "never flips"
    line = Text(f"{name:10} ", "bold") + Text(f"{printable(end):24} ", "dim")
    screen.print(line + _bracketed(units, gone, most))


def _bracketed(units: Sequence[str], gone: Sequence[int], most: int) -> Text:
    """The units with those that go in brackets: all, or of many those that go first, and the first of the others."""
    order = {unit: number for number, unit in enumerate(gone, start=1)}
    shown, whole = Text(), len(units) <= most
    places = range(len(units)) if whole else sorted(islice(dict.fromkeys([*gone, *range(len(units))]), most))
    for place, gap in in_stretches(places, len(units)):
        shown.append("… " if gap else "")
        if place in order:
            shown.append(f"{order[place]}⟦{cut(units[place])}⟧ ", ERASED)
        elif place < len(units):
            shown.append(f"{cut(units[place])} ")
    return shown


def _word_lines(text: str, words: WordWeights, sentences: int, most: int = 5) -> list[str]:
    """Sentence by sentence the words with the largest weights."""
    lines = []
    spans = words.spans.tolist()
    for number in range(min(int(words.sentences.max()) + 1, sentences)):
        inside = (words.sentences == number).nonzero().squeeze(1)
        order = inside[words.weights[inside].argsort(descending=True, stable=True)][:most].tolist()
        said = [f"{cut(text[slice(*spans[word])])} {float(words.weights[word]):.2f}" for word in order]
        lines.append(f"{number + 1}: {', '.join(said)}")
    return lines


@dataclass(frozen=True, kw_only=True)
class ErasureTables:
    """The tables of Serrano & Smith 2019 for one trace."""

    flips: Mapping[str, pd.DataFrame]
    """Per ranking, and for the minimum, what is erased when an instance flips."""
    minimum: pd.DataFrame
    """The smallest sets with their positions; `verified` says that plain erasure of each flips the decision."""
    single: pd.DataFrame
    tops: pd.DataFrame
    """For attention, gradient and product which of two erasures flips: that of the top unit, that of another."""
    resting: pd.DataFrame
    """One row per ranking, on the instances whose decision rests on a part of their units."""
    decisions: pd.DataFrame
    """One row per class that instances are decided for."""
    summary: pd.DataFrame
    fractions: pd.DataFrame
    quality: pd.DataFrame
    wins: pd.DataFrame
    judged: Sequence[Verdict]
    """The claims of the paper that one model can be judged by."""
    copies: int
    """Instances that repeat others: verdicts, `resting` and `decisions` are without them."""

    def named(self) -> dict[str, pd.DataFrame]:
        """Every table by the name it is saved under."""
        others = {name: table for name, table in vars(self).items() if isinstance(table, pd.DataFrame)}
        flips = {f"flips-{name}": table for name, table in self.flips.items()}
        return {**flips, **others, "verdicts": verdict_table(list(self.judged))}

    def save(self, folder: Path) -> None:
        """Every table as CSV, Parquet and LaTeX."""
        for name, table in self.named().items():
            save_table(table, folder / name)


def erasure_tables(found: Trace, *, seed: int = 0) -> ErasureTables:
    """All rankings on all instances of a trace, the exact minimum, and single erasures."""
    measured = measure(found, seed=seed, rankings=RANKINGS)
    judged = once_each(measured, found)
    flips = by_ranking(measured["flips"])
    minimum = minimum_flips(found)
    return ErasureTables(
        flips=flips,
        minimum=minimum.assign(verified=verify_flip(found, minimum)["holds"]),
        single=measured["single"],
        tops=flip_cells(measured["single"]),
        resting=summarise(judged["flips"]),
        decisions=by_decision(judged["flips"], found.class_names, learned=has_learned(found)),
        summary=flip_summary(flips),
        fractions=fraction_distribution(flips),
        quality=ranking_quality({name: table for name, table in flips.items() if name != MINIMUM}, minimum),
        wins=wins_and_attainment(flips),
        judged=judge(OF_ONE_MODEL, judged),
        copies=int((~found.distinct).sum()),
    )


def flip_cells(single: pd.DataFrame) -> pd.DataFrame:
    """The 2 × 2 tables of one trace: per ranking and cell the share of instances with its interval."""
    table = table_2(single.assign(dataset="", model="", seed=0))
    return table.reindex(columns=["ranking", "cell", "share", "low", "high", "instances"])


def print_tables(tables: ErasureTables, console: Console | None = None) -> None:
    """How far each ranking is from the minimum, and what that says of attention."""
    screen = console or Console()
    screen.print("Erasing attention weights until the decision flips", style="bold")
    print_below_each_other(screen, shown_table(tables.resting), shown_decisions(tables.decisions))
    screen.print(_counted(tables), highlight=False)
    for verdict in tables.judged:
        print_verdict(screen, verdict)


def _counted(tables: ErasureTables) -> str:
    """On which instances the table stands, and what became of the others."""
    every, resting = len(tables.minimum), int(tables.resting["instances"].max())
    several = int(tables.decisions["texts"].sum())
    copies = f"{tables.copies:,} are copies of others, " if tables.copies else ""
    return (
        f"On the {resting:,} instances whose decision rests on a part of them: fewer units than all can flip it. A "
        f"ranking that never flips one counts as everything erased. Of {every:,} in all, {copies}"
        f"{every - tables.copies - several:,} have one unit only, {several - resting:,} flip only when everything is "
        "erased, or never."
    )


def input_tables(
    run: Run, corpus: Corpus, mode: str, *, watch: Callable[[int, int], None] | None = None
) -> dict[str, pd.DataFrame]:
    """Units that leave some test texts of a run beside erased weights: compared, and the flips of both summed up."""
    said = {"dataset": corpus.name, "model": run.path.name, "seed": run.settings.training.seed}
    levels = in_front(said, read_changed_texts(run, corpus, [mode], watch=watch))
    return {"inputs": inputs_table(levels), "input-flips": input_summary_table(levels)}


def print_inputs(table: pd.DataFrame, console: Console | None = None) -> None:
    """Words that leave the text beside weights that are erased, ranking by ranking."""
    screen = console or Console()
    shown = Table(title="Units leave the text, and it is read again", title_justify="left")
    for column in ("ranking", "median, text", "median, weights", "rank correlation", "text sooner", "same"):
        shown.add_column(column, justify="left" if column == "ranking" else "right")
    for row in table.to_dict("records"):
        correlation = "–" if pd.isna(row["correlation"]) else f"{row['correlation']:.2f}"
        names = ("median_fraction_input", "median_fraction_attention", "input_sooner", "equal")
        given, weighed, sooner, same = ("–" if pd.isna(row[name]) else f"{row[name]:.1%}" for name in names)
        shown.add_row(row["ranking"], given, weighed, correlation, sooner, same)
    screen.print(shown)
    count = int(table["instances"].iloc[0])
    screen.print(
        f"{table['mode'].iloc[0]}; on {count} test texts of several units, medians over those that both flip",
        highlight=False,
    )
