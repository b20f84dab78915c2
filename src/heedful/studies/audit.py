"""The audit: train on your data, look at what is attended to and what is used, and say whether the two agree."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from heedful.analysis.statistics import Estimate
from heedful.claims import CLAIMS as KNOWN
from heedful.claims import Verdict, judge, verdict_table
from heedful.config import RunSettings
from heedful.figures.style import brief, inline_svg, save_figure
from heedful.figures.tokens import (
    MOST_CLASSES,
    polarity_against_attention,
    polarity_names,
    scores_by_rank,
    weights_by_group,
)
from heedful.figures.training import learning_curves
from heedful.pipeline import Run, environment, read_corpus, run
from heedful.report.page import Picture, Report, write_report
from heedful.report.strips import Example, make_example, telling_instances
from heedful.store import Store
from heedful.studies.tables import save_table
from heedful.text.corpus import Corpus
from heedful.traces import Trace
from heedful.training.events import Observer

CLAIMS = ("C1", "C2", "C8")
STRONGEST = 12


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A finished audit: the run it rests on, its verdicts, and where its report lies."""

    run: Run
    verdicts: Sequence[Verdict]
    report: Path

    def summary(self) -> dict[str, object]:
        """The audit as plain data."""
        return {
            "run": str(self.run.path),
            "report": str(self.report),
            "answer": answer(self.verdicts)[0],
            "metrics": self.run.metrics,
            "verdicts": [verdict.row() for verdict in self.verdicts],
        }


def audit(
    settings: RunSettings,
    store: Store,
    *,
    out: Path | None = None,
    corpus: Corpus | None = None,
    observers: Sequence[Observer] = (),
    fresh: bool = False,
) -> Audit:
    """Run the settings (or find the run), judge the claims, draw the figures, write tables and report."""
    data = corpus or read_corpus(settings)
    finished = run(settings, store, corpus=data, observers=observers, fresh=fresh)
    tables = {name: finished.table(name) for name in ("tokens", "weights", "history") if finished.has(name)}
    verdicts = judge(tuple(name for name in CLAIMS if set(KNOWN[name].needs) <= set(tables)), tables)
    folder = out or finished.path
    for name, table in {**tables, "verdicts": verdict_table(verdicts)}.items():
        save_table(table, folder / "tables" / name)
    pictures = _draw(tables, folder / "figures")
    report = _compose(finished, data, tables, verdicts, pictures)
    write_report(report, folder / "report.html")
    return Audit(run=finished, verdicts=verdicts, report=folder / "report.html")


def answer(verdicts: Sequence[Verdict]) -> tuple[str, str]:
    """The short answer and what it rests on, from the verdicts alone."""
    decisions = {verdict.claim: verdict.decision for verdict in verdicts}
    attention = {decisions[claim] for claim in ("C2", "C8") if claim in decisions}
    if decisions["C1"] == "undecided":
        return (
            "Undecided: too little is known of what the model uses.",
            "The words that clearly belong to a class are too few, or push towards it too unreliably, to judge "
            "attention by them. More data may tell.",
        )
    if decisions["C1"] == "does not hold":
        return (
            "Not yet: the model itself is in doubt.",
            "Words that belong to one class do not reliably push towards it: there is nothing sound to explain.",
        )
    if attention == {"holds"}:
        weights = ", and larger weights on unseen text," if "C8" in decisions else ""
        return (
            "For this model, attention points at the words that matter.",
            f"Words that decide the class get larger attention scores{weights} than others.",
        )
    if "does not hold" in attention:
        return (
            "No: attention does not point at the words that matter.",
            "The model uses the right words, but its attention does not set them apart from neutral ones. "
            "Read the polarity scores, not the weights.",
        )
    return (
        "Undecided: attention leans towards the words that matter, but not clearly.",
        "The model uses the right words; the evidence that its attention sets them apart is too weak to call.",
    )


def _draw(tables: Mapping[str, pd.DataFrame], folder: Path) -> list[Picture]:
    """The figures of the tables at hand, saved and ready for the page."""
    classes = len(polarity_names(tables["tokens"]))
    shown = f" Shown for the first {MOST_CLASSES} of {classes} classes." if classes > MOST_CLASSES else ""
    return [_picture(sketch, tables[sketch.table], folder, shown) for sketch in SKETCHES if sketch.table in tables]


@dataclass(frozen=True, kw_only=True)
class Sketch:
    """A figure of the report before it is drawn."""

    name: str
    title: str
    caption: str
    table: str
    draw: Callable[[pd.DataFrame], Figure]
    by_class: bool = False


SKETCHES = (
    Sketch(
        name="used-against-attended",
        title="Used against attended",
        caption="Every point is a token. Where attention explains, the arms of polar words rise above neutral ones.",
        table="tokens",
        draw=polarity_against_attention,
        by_class=True,
    ),
    Sketch(
        name="scores-by-rank",
        title="Scores by frequency rank",
        caption="Polarity and attention scores by how frequent the token is; groups by how one-sided it occurs.",
        table="tokens",
        draw=scores_by_rank,
        by_class=True,
    ),
    Sketch(
        name="weights-by-group",
        title="Attention weight by group",
        caption="Weights depend on the text a word stands in, so they may separate the groups less than scores.",
        table="weights",
        draw=weights_by_group,
    ),
    Sketch(
        name="learning-curves",
        title="Learning curves",
        caption="Training loss, dev loss and dev accuracy.",
        table="history",
        draw=learning_curves,
    ),
)


def _picture(sketch: Sketch, table: pd.DataFrame, folder: Path, shown: str) -> Picture:
    figure = sketch.draw(table)
    return Picture(
        title=sketch.title,
        caption=sketch.caption + (shown if sketch.by_class else ""),
        svg=inline_svg(save_figure(figure, folder / sketch.name)[0]),
        wide=bool(figure.get_figwidth() > 10),
    )


def _compose(
    finished: Run,
    corpus: Corpus,
    tables: Mapping[str, pd.DataFrame],
    verdicts: Sequence[Verdict],
    pictures: list[Picture],
) -> Report:
    metrics = finished.metrics
    short, summary = answer(verdicts)
    settings = finished.settings
    return Report(
        title=corpus.name,
        answer=short,
        summary=summary,
        verdicts=verdicts,
        accuracy=Estimate(
            value=metrics["test_accuracy"],
            low=metrics["test_accuracy_low"],
            high=metrics["test_accuracy_high"],
            count=len(corpus.test),
        ),
        baseline=float((corpus.test.labels == corpus.train.labels.mode().values).double().mean()),
        pictures=pictures,
        strongest=strongest_tokens(tables["tokens"], corpus.class_names),
        examples=_examples(finished.trace(), corpus, sentences=settings.model.structure == "hierarchical"),
        notices=corpus.notices,
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


def _examples(found: Trace, corpus: Corpus, *, sentences: bool) -> list[Example]:
    """Telling test texts as strips of words, or of sentences for a hierarchical model."""
    spans = corpus.test.sentence_spans if sentences else corpus.test.spans
    return [
        make_example(found, number, corpus.test.texts[number], spans(number), why)
        for number, why in telling_instances(found)
    ]


def _taken(corpus: Corpus) -> dict[str, object]:
    """The corpus as it was taken in; a named one has a tokenizer of its own."""
    tokens = {"tokenizer": corpus.tokenizer.mode, "lowercase": corpus.tokenizer.lowercase}
    sizes = {f"{name} texts": f"{len(split):,}" for name, split in corpus.splits().items()}
    return {**tokens, **sizes, "vocabulary": f"{len(corpus.vocabulary):,}", "classes": ", ".join(corpus.class_names)}
