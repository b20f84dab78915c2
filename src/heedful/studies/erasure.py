"""Erasure for people: one text losing its units along each ranking, or the flip tables of a whole trace."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.analysis.erasure import first_flips, single_erasure
from heedful.analysis.flipsets import minimum_flips
from heedful.analysis.quality import flip_summary, pairwise_wins, ranking_quality
from heedful.analysis.rankings import ranked
from heedful.claims import judge, verdict_table
from heedful.claims.erasure import OF_ONE_MODEL
from heedful.models.classifier import Classifier
from heedful.probes.inputs import input_flips
from heedful.studies.explain import coloured_words, word_rows
from heedful.studies.serrano2019.measures import measure
from heedful.studies.tables import save_table
from heedful.traces import Trace
from heedful.tracing import WordWeights, trace_texts, word_weights

RANKINGS = ("attention", "gradient", "product", "polarity", "margin", "random")
LOOKS = 50
"""How often a shortened text is read again, for each ranking; of a text with more units a count is an upper bound."""

ORDERS = 5
"""How many random orders the tables of a trace average over."""


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

    def summary(self) -> dict[str, Any]:
        exact = {"minimum": {"positions": self.minimum, "flipped_to": self.minimum_to}} if self.inputs is None else {}
        inner = {} if self.words is None else {"words": word_rows(self.text, self.words)}
        return {
            "level": self.inputs or "attention",
            "units": list(self.units),
            "predicted": self.predicted,
            "rankings": [vars(course) for course in self.courses],
            **exact,
            **inner,
        }


def erase_text(model: Classifier, text: str, *, inputs: str | None = None, seed: int = 0) -> Erasure:
    """Erase the attention weights of one text along every ranking until the decision flips.

    With `inputs` (delete or mask) the units leave the text instead, and the model reads what remains.
    """
    found, split = trace_texts(model, [text])
    assert found.units is not None
    erasure = Erasure(
        units=found.units,
        predicted=found.class_names[int(found.predictions[0])],
        courses=[],
        inputs=inputs,
        text=text,
        words=word_weights(model, split, 0) if model.hierarchical else None,
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


def print_erasure(erasure: Erasure, console: Console | None = None) -> None:
    """The text once per ranking, with the units in brackets that must go before the decision flips."""
    screen = console or Console()
    how = "what is erased" if erasure.inputs is None else f"what leaves the text ({erasure.inputs})"
    bound = erasure.inputs is not None and len(erasure.units) > LOOKS
    few = f"; with {LOOKS} looks at so many units it is an upper bound" if bound else ""
    screen.print(f"decision: {erasure.predicted}; in brackets: {how} until it flips{few}", markup=False)
    for course in erasure.courses:
        gone = set(course.order[: course.erased or 0])
        _print_row(screen, course.ranking, erasure.units, gone, course.flipped_to)
    if erasure.inputs is None:
        _print_row(screen, "minimum", erasure.units, set(erasure.minimum or ()), erasure.minimum_to)
    if erasure.words is not None:
        screen.print(Text(f"{'attends to, within sentences':34}", "dim") + coloured_words(erasure.text, erasure.words))


def _print_row(screen: Console, name: str, units: Sequence[str], gone: set[int], flipped_to: str | None) -> None:
    end = f"{len(gone)} of {len(units)} → {flipped_to}" if flipped_to else "never flips"
    line = Text(f"{name:10}", "bold") + Text(f"{end:24}", "dim")
    for place, unit in enumerate(units):
        line.append(f"[{unit}]" if place in gone else unit, "#d55e00" if place in gone else "")
        line.append(" ")
    screen.print(line)


@dataclass(frozen=True, kw_only=True)
class ErasureTables:
    """The tables of Serrano & Smith 2019 for one trace."""

    flips: dict[str, pd.DataFrame]
    minimum: pd.DataFrame
    single: pd.DataFrame
    summary: pd.DataFrame
    quality: pd.DataFrame
    wins: pd.DataFrame
    verdicts: pd.DataFrame
    """The claims of the paper that one model can be judged by."""

    def save(self, folder: Path) -> None:
        """Every table as CSV, Parquet and LaTeX."""
        named = {f"flips-{name}": table for name, table in self.flips.items()}
        named |= {"minimum": self.minimum, "single": self.single, "summary": self.summary}
        named |= {"quality": self.quality, "wins": self.wins, "verdicts": self.verdicts}
        for name, table in named.items():
            save_table(table, folder / name)


def erasure_tables(found: Trace, *, seed: int = 0) -> ErasureTables:
    """All rankings on all instances of a trace, the exact minimum, and single erasures."""
    flips = {
        name: first_flips(found, by=name, seed=seed, orders=ORDERS if name == "random" else 1) for name in RANKINGS
    }
    minimum = minimum_flips(found)
    return ErasureTables(
        flips=flips,
        minimum=minimum,
        single=single_erasure(found, seed=seed),
        summary=flip_summary({**flips, "minimum": minimum}),
        quality=ranking_quality(flips, minimum),
        wins=pairwise_wins(flips),
        verdicts=verdict_table(judge(OF_ONE_MODEL, measure(found, seed=seed, orders=ORDERS))),
    )


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


def print_tables(tables: ErasureTables, console: Console | None = None) -> None:
    """How far each ranking is from the minimum, and what that says of attention."""
    screen = console or Console()
    summary = tables.summary[tables.summary["convention"] == "common"].set_index("ranking")
    quality = tables.quality.set_index("ranking")
    shown = Table(title="Erasing attention weights until the decision flips", title_justify="left")
    for column in ("ranking", "median erased", "over half", "mass erased", "attains the minimum", "mean ratio"):
        shown.add_column(column, justify="left" if column == "ranking" else "right")
    for name, row in summary.iterrows():
        found = quality.loc[str(name)] if name in quality.index else None
        shown.add_row(
            str(name),
            f"{row['median_fraction']:.1%}",
            f"{row['over_half']:.1%}",
            "" if pd.isna(row["mean_mass"]) else f"{row['mean_mass']:.1%}",
            "by definition" if found is None else f"{found['attained']:.1%}",
            "" if found is None else f"{found['mean_ratio']:.2f}",
        )
    screen.print(shown)
    counted = summary.iloc[0]
    screen.print(
        f"on the {counted['instances']} instances that every ranking flips; {counted['one_unit']} have one unit only, "
        f"{int(tables.minimum['erased'].isna().sum())} never flip",
        highlight=False,
    )
    for verdict in tables.verdicts.itertuples():
        screen.print(f"{verdict.claim:4} {verdict.verdict:14}{verdict.words}", highlight=False, markup=False)
