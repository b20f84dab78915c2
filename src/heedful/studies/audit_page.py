"""The page of an audit: figures drawn, tables shortened, sentences put beside them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from heedful.analysis.statistics import Estimate
from heedful.analysis.tokens import NEUTRAL, NONE
from heedful.claims import Verdict
from heedful.claims.answer import Answer
from heedful.figures.dynamics import attention_over_time
from heedful.figures.style import brief, house_style, inline_svg, save_figure
from heedful.figures.tokens import (
    MOST_CLASSES,
    learning_curves,
    polarity_against_attention,
    polarity_names,
    scores_by_rank,
    weights_by_group,
)
from heedful.pipeline import Run, environment
from heedful.report.page import Part, Picture, Report
from heedful.report.strips import Example, make_example, telling_instances, word_pieces
from heedful.report.timeline import timeline
from heedful.studies.advice import Advice, commonest_class, majority_rate
from heedful.studies.audit_erasure import ErasedAttention, shown_decisions, shown_table
from heedful.studies.moments import TABLE as MOMENTS
from heedful.text.corpus import Corpus
from heedful.tracing import unit_spans, word_weights

STRONGEST = 12


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What an audit found and its page shows."""

    answer: Answer
    worth: Sequence[Verdict]
    judged: Sequence[Verdict]
    """Of the audited run."""
    erased: ErasedAttention
    advice: Advice | None
    no_advice: str
    scaled: Sequence[Verdict]
    """Of the sweep over λ."""
    tables: Mapping[str, pd.DataFrame]
    notices: Sequence[str] = ()


def compose(finished: Run, corpus: Corpus, findings: Findings, figures: Path) -> Report:
    """The whole page; its figures are saved in a folder."""
    metrics, settings, tables = finished.metrics, finished.settings, findings.tables
    naming = class_naming(corpus.class_names)
    return Report(
        title=corpus.name,
        answer=findings.answer,
        verdicts=findings.judged,
        accuracy=Estimate(
            value=metrics["test_accuracy"],
            low=metrics["test_accuracy_low"],
            high=metrics["test_accuracy_high"],
            count=len(corpus.test),
        ),
        baseline=majority_rate(corpus.test, commonest_class(corpus)),
        worth=findings.worth,
        pictures=_draw({name: claimed_groups(table) for name, table in tables.items()}, figures, naming),
        naming=naming,
        erasure=_erasure_part(findings.erased),
        advice=_advice_part(findings),
        training=_training_part(tables[MOMENTS], figures, naming) if MOMENTS in tables else None,
        strongest=strongest_tokens(tables["tokens"], corpus.class_names),
        examples=_examples(finished, corpus),
        notices=findings.notices,
        facts={
            "Data": {**settings.data.model_dump(), **_taken(corpus)},
            "Model": settings.model.model_dump(),
            "Training": {
                **settings.training.model_dump(),
                "best epoch": metrics["best_epoch"],
                "VᵀW": ", ".join(f"{value:+.3f}" for value in metrics["alignment"]),
            },
            "Versions": environment() | {"run": finished.manifest["digest"]},
        },
    )


def class_naming(class_names: Sequence[str]) -> str:
    """Which class is called positive where two classes have other names; nothing to say otherwise."""
    if len(class_names) != 2 or [name.casefold() for name in class_names] == ["negative", "positive"]:
        return ""
    negative, positive = (brief(name, 40) for name in class_names)
    return f"positive: towards {positive}, negative: towards {negative}"


@dataclass(frozen=True, kw_only=True)
class Sketch:
    """A figure of the report before it is drawn."""

    name: str
    title: str
    caption: str
    table: str
    draw: Callable[[pd.DataFrame], Figure]
    by_class: bool = False
    by_group: bool = False
    """Whether it shows groups of tokens, which are called positive and negative where there are two classes."""


SKETCHES = (
    Sketch(
        name="push-and-attention",
        title="Push and attention",
        caption="Every point is a token. Where attention explains, the arms of polar words rise above neutral ones.",
        table="tokens",
        draw=polarity_against_attention,
        by_class=True,
        by_group=True,
    ),
    Sketch(
        name="scores-by-rank",
        title="Scores by frequency rank",
        caption="Polarity and attention scores by how frequent the token is; groups by how one-sided it occurs.",
        table="tokens",
        draw=scores_by_rank,
        by_class=True,
        by_group=True,
    ),
    Sketch(
        name="weights-by-group",
        title="Attention weight by group",
        caption="Weights depend on the text a word stands in, so they may separate the groups less than scores.",
        table="weights",
        draw=weights_by_group,
        by_group=True,
    ),
    Sketch(
        name="learning-curves",
        title="Learning curves",
        caption="Training loss, dev loss and dev accuracy.",
        table="history",
        draw=learning_curves,
    ),
)

OVER_TIME = Sketch(
    name="attention-over-time",
    title="Attention over training time",
    caption="Mean attention score of each group, the middle 80 % of its tokens as a band; and a few tokens by name.",
    table=MOMENTS,
    draw=attention_over_time,
    by_group=True,
)


def claimed_groups(table: pd.DataFrame) -> pd.DataFrame:
    """The table with only those tokens in the group of a class that the claims rest on."""
    if "beyond_chance" not in table:
        return table
    return table.assign(group=table["group"].where(table["beyond_chance"] | (table["group"] == NEUTRAL), NONE))


def _draw(tables: Mapping[str, pd.DataFrame], folder: Path, naming: str) -> list[Picture]:
    """The figures of the tables at hand, saved and ready for the page."""
    classes = len(polarity_names(tables["tokens"]))
    shown = f" Shown for the first {MOST_CLASSES} of {classes} classes." if classes > MOST_CLASSES else ""
    return [
        _picture(sketch, tables[sketch.table], folder, naming, shown if sketch.by_class else "")
        for sketch in SKETCHES
        if sketch.table in tables
    ]


def _picture(sketch: Sketch, table: pd.DataFrame, folder: Path, naming: str, shown: str = "") -> Picture:
    figure = sketch.draw(table)
    if naming and sketch.by_group:
        with house_style():
            figure.suptitle(naming, fontsize=9, color="#5b6675")  # above: a legend may stand below
    return Picture(
        title=sketch.title,
        caption=sketch.caption + shown,
        svg=inline_svg(save_figure(figure, folder / sketch.name)[0]),
        wide=bool(figure.get_figwidth() > 10),
    )


def _erasure_part(erased: ErasedAttention) -> Part:
    return Part(
        name="erasure",
        title="Erase attention",
        lead=erased.words,
        verdicts=erased.verdicts,
        tables=(shown_table(erased.summary), shown_decisions(erased.decisions)),
        note="Weights are set to zero along each ranking, the others renormalised, until the decision flips. Both "
        "tables are on the texts whose decision rests on a part of them: fewer units than all can flip it. A ranking "
        "that never flips one counts as everything erased. No set smaller than the minimum flips the decision; “× "
        "minimum” says how many times as many units a ranking needs in the mean, “is minimal” how often it needs no "
        "more (S9), and “lead gone” how much of the lead over the next class goes with as many units as the minimum "
        "has (S13). In the second table, for the decisions of each class: how many rest on a part, how often more of "
        "the lead goes with the most attended units than with random ones (“beats chance”, S6b), and whether attention "
        "finds what decided.",
    )


def _advice_part(findings: Findings) -> Part:
    found = findings.advice
    return Part(
        name="advice",
        title="Which λ?",
        lead=found.words if found else findings.no_advice,
        verdicts=findings.scaled,
        tables=(advice_table(found.table),) if found else (),
        note="λ divides the attention scores. Separation is the AUC of the attention scores of polar against other "
        "words of about the same frequency (C2b; chance is .5); preference is how far the AUC of one class's words "
        "against another's is from a half. Dev accuracies within one standard error of the best count as equal."
        if found
        else "",
    )


def advice_table(table: pd.DataFrame) -> pd.DataFrame:
    """The runs of the sweep with cells as words."""
    return pd.DataFrame(
        {
            "λ": table["scale"].map("{:g}".format),
            "penalty on VᵀW": table["penalty"].map("{:g}".format),
            "dev accuracy": table["dev_accuracy"].map("{:.1%}".format),
            "separation": _intervals(table),
            "preference": table["parting"].map(_two_digits),
            "": table["chosen"].map({True: "recommended", False: ""}),
        }
    )


def _intervals(table: pd.DataFrame) -> list[str]:
    bounds = zip(table["separation"], table["separation_low"], table["separation_high"], strict=True)
    return ["–" if pd.isna(value) else f"{value:.2f} [{low:.2f}, {high:.2f}]" for value, low, high in bounds]


def _two_digits(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.2f}"


def _training_part(moments: pd.DataFrame, folder: Path, naming: str) -> Part:
    """Attention over training time, as a figure and to be moved through."""
    first, last = int(moments["time"].min()), int(moments["time"].max())
    polarity = next(str(column) for column in moments if "polarity" in str(column))
    shown = "The most frequent tokens of each group"
    return Part(
        name="training",
        title="Over training time",
        lead=f"{shown}, after each of the epochs {first} to {last}." + (f" In colour, {naming}." if naming else ""),
        pictures=[_picture(OVER_TIME, moments, folder, naming)],
        fragment=timeline(moments, name="moments", title="Move through the training by the slider", x=polarity),
    )


def strongest_tokens(tokens: pd.DataFrame, class_names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """For each class the tokens that push towards it most, among those seen more than five times."""
    counts = tokens[[f"count_{name}" for name in class_names]].sum(axis=1)
    frequent = tokens.assign(count=counts)[counts > 5]
    if len(class_names) == 2:
        negative, positive = frequent[frequent["polarity"] < 0], frequent[frequent["polarity"] > 0]
        ordered = [negative.nsmallest(STRONGEST, "polarity"), positive.nlargest(STRONGEST, "polarity")]
        return {name: _short(rows, "polarity") for name, rows in zip(class_names, ordered, strict=True)}
    columns = dict(zip(class_names, polarity_names(tokens), strict=True))
    return {
        name: _short(frequent[frequent[column] > 0].nlargest(STRONGEST, column), column)
        for name, column in columns.items()
    }


def _short(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    table = rows[["token", column, "attention", "count"]].rename(columns={column: "polarity"})
    numbers = {name: table[name].map("{:+.2f}".format) for name in ("polarity", "attention")}
    return table.assign(token=[brief(token) for token in table["token"]], **numbers)


def _examples(finished: Run, corpus: Corpus) -> list[Example]:
    """Telling test texts as strips of words, or, for a hierarchical model, of sentences with the words in them."""
    found, model, test = finished.trace(), finished.model(), corpus.test
    telling = telling_instances(found)
    examples = [
        make_example(found, number, test.texts[number], unit_spans(model, test, number), why) for number, why in telling
    ]
    if not model.hierarchical:
        return examples
    return [
        replace(example, words=word_pieces(test.texts[number], word_weights(model, test, number)))
        for example, (number, _) in zip(examples, telling, strict=True)
    ]


def _taken(corpus: Corpus) -> dict[str, object]:
    """The corpus as it was taken in; a named one has a tokenizer of its own."""
    tokens = {"tokenizer": corpus.tokenizer.mode, "lowercase": corpus.tokenizer.lowercase}
    sizes = {f"{name} texts": f"{len(split):,}" for name, split in corpus.splits().items()}
    return {**tokens, **sizes, "vocabulary": f"{len(corpus.vocabulary):,}", "classes": ", ".join(corpus.class_names)}
