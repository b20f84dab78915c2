"""The audit: train on your data, look at what is attended to and what is used, and say whether the two agree."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import pandas as pd
from matplotlib.figure import Figure as Canvas

from heedful.analysis.faithfulness.cost import MOST_UNITS
from heedful.claims import Verdicts, verdict_table
from heedful.claims.answer import CORPUS as CORPUS_QUESTION
from heedful.claims.answer import STORY, Answer
from heedful.config import RunSettings
from heedful.errors import ConfigError, InputError
from heedful.figures import tokens as drawings
from heedful.figures.dynamics import attention_over_time
from heedful.figures.erasure import Grid
from heedful.figures.manipulation import adversary_histograms, permutation_violins
from heedful.figures.picture import Figure, Picture, check_formats
from heedful.notebook import View, Viewed, counted
from heedful.pipeline import Run, environment, read_corpus, run
from heedful.probes.recording import SCORES as MOMENTS
from heedful.report.exports import save_tables
from heedful.report.html import render_html, write_html
from heedful.report.instances import Instances
from heedful.report.page import Page, PageTable, Section, page_view, payload, verdicts_section
from heedful.report.strips import telling_instances
from heedful.report.timeline import timeline
from heedful.report.vocabulary import Vocabulary, towards
from heedful.store import Store, usual_store
from heedful.studies.advice import Advice, advise
from heedful.studies.attack import KINDS, AttackedAttention
from heedful.studies.compare import check_names
from heedful.studies.examine import ErasedAttention, Examination, examine
from heedful.studies.foreign import TEXTS, ForeignAudit, audit_foreign
from heedful.studies.one_attention import claimed_groups, one_attention
from heedful.studies.telling import instances_of, opening, rule_of
from heedful.studies.wording import (
    accuracy_words,
    class_naming,
    copies_said,
    left_out_classes,
    strongest_in_words,
    strongest_tokens,
    with_all_groups,
)
from heedful.sweep.loop import SweepEvent
from heedful.text.corpus import Corpus
from heedful.text.datasets import Source, load_corpus
from heedful.traces import Trace
from heedful.training.events import Observer
from heedful.training.loop import limited_threads

FIGURE_FORMATS = ("svg",)
"""Of the figures that an audit writes unless it is asked for more."""

BY_CLASS, WITHOUT_GROUPS = ("push-and-attention", "scores-by-rank"), ("learning-curves",)
"""Figures with a panel for each class; and those that show no groups of tokens."""


def _figure(name: str, title: str, table: str, draw: Callable[[pd.DataFrame], Canvas], caption: str) -> Figure:
    """A figure of one table."""
    return Figure(name=name, title=title, caption=caption, needs=(table,), draw=lambda tables: draw(tables[table]))


FIGURES = (
    _figure(
        "push-and-attention",
        "Push and attention",
        "tokens",
        drawings.polarity_against_attention,
        "Every point is a token. Where attention explains, the arms of polar words rise above neutral ones.",
    ),
    _figure(
        "scores-by-rank",
        "Scores by frequency rank",
        "tokens",
        drawings.scores_by_rank,
        "Polarity and attention scores by how frequent the token is; groups by how one-sided it occurs.",
    ),
    _figure(
        "weights-by-group",
        "Attention weight by group",
        "weights",
        drawings.weights_by_group,
        "Weights depend on the text a word stands in, so they may separate the groups less than scores.",
    ),
    _figure(
        "learning-curves",
        "Learning curves",
        "history",
        drawings.learning_curves,
        "Training loss, dev loss and dev accuracy.",
    ),
)
OVER_TIME = _figure(
    "attention-over-time",
    "Attention over training time",
    MOMENTS,
    attention_over_time,
    "Mean attention score of each group, the middle 80 % of its tokens as a band; and a few tokens by name.",
)
POLAR = (
    "A polar word (a polarity token) occurs mostly in texts of one class, beyond chance; a neutral one in all about "
    "equally. The polarity score of a word is what it pushes towards, its attention score how much attention it draws."
)
HERE = Grid(models=("this model",), datasets={"": "test texts"})


def _of_this_model(table: pd.DataFrame) -> pd.DataFrame:
    """The texts of a table in the only panel of `HERE`."""
    return table.assign(model=HERE.models[0], dataset="")


MANIPULATED = (
    _figure(
        "other-attention",
        "Other attention with the same output",
        "adversary",
        lambda table: adversary_histograms(
            _of_this_model(table), HERE, {name: kind.words for name, kind in KINDS.items()}
        ),
        "How far from a text's own attention the farthest one lies that keeps to what is said; dotted: log 2, the most "
        "there is.",
    ),
    _figure(
        "shuffled-attention",
        "Shuffled attention",
        "permutation",
        lambda table: permutation_violins(_of_this_model(table), HERE),
        "How far the output moves when a text's weights are dealt out to its units anew (the median of 100 shuffles), "
        "by its largest weight; black lines are medians, numbers below how many texts there are.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Audit(Viewed):
    """A finished audit: the run it rests on, what was examined and advised, its page, and where its report is."""

    run: Run
    examined: Examination
    advice: Advice
    page: Page
    report: Path

    def __repr__(self) -> str:
        return f"Audit({self.answer.headline} Report: {self.report})"

    @property
    def answer(self) -> Answer:
        """The headline, the questions behind it, and what attention may be used for."""
        return self.examined.answer

    @property
    def view(self) -> View:
        return page_view(self.page)

    def to_html(self) -> str:
        """The whole report, a page of HTML that needs nothing else."""
        return render_html(self.page)

    def to_frame(self) -> pd.DataFrame:
        """Its verdicts."""
        return self.verdicts.to_frame()

    @property
    def verdicts(self) -> Verdicts:
        """All of them: of the words, of erasure, of other attention, of the model, and of the sweep over λ."""
        return Verdicts([*self.examined.verdicts, *self.advice.verdicts])

    @property
    def erasure(self) -> ErasedAttention:
        return self.examined.erased

    @property
    def attack(self) -> AttackedAttention:
        return self.examined.attacked

    def summary(self) -> dict[str, Any]:
        """The audit as plain data (`heedful.report.page`)."""
        return payload(self.page)


@overload
def audit(
    source: RunSettings | Corpus | Source | None = None,
    store: Store | Path | str | None = None,
    *,
    settings: RunSettings | None = None,
    out: Path | None = None,
    corpus: Corpus | None = None,
    observers: Sequence[Observer] = (),
    fresh: bool = False,
    advice: bool | None = None,
    workers: int | None = 1,
    figures: Sequence[str] = FIGURE_FORMATS,
    watch: Callable[[SweepEvent], None] | None = None,
) -> Audit: ...
@overload
def audit(
    source: RunSettings | Corpus | Source | None = None,
    store: Store | Path | str | None = None,
    *,
    model: object,
    settings: RunSettings | None = None,
    out: Path | None = None,
    corpus: Corpus | None = None,
    figures: Sequence[str] = FIGURE_FORMATS,
    watch: Callable[[SweepEvent], None] | None = None,
    texts: int = TEXTS,
    by: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    how: str | None = None,
    truncate: bool = False,
    threads: int | None = None,
    most: int = MOST_UNITS,
) -> ForeignAudit: ...
def audit(
    source: RunSettings | Corpus | Source | None = None,
    store: Store | Path | str | None = None,
    *,
    model: object = None,
    settings: RunSettings | None = None,
    out: Path | None = None,
    corpus: Corpus | None = None,
    observers: Sequence[Observer] = (),
    fresh: bool = False,
    advice: bool | None = None,
    workers: int | None = 1,
    figures: Sequence[str] = FIGURE_FORMATS,
    watch: Callable[[SweepEvent], None] | None = None,
    texts: int = TEXTS,
    by: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    how: str | None = None,
    truncate: bool = False,
    threads: int | None = None,
    most: int = MOST_UNITS,
) -> Audit | ForeignAudit:
    """Can attention be trusted as an explanation here? Train (or find the run), examine, try other λ, write a report.

    With a model of your own nothing is trained: it is examined as it is, on the test texts of the data.

    source: the data: a corpus of `load_corpus`, or what that reads (a name, the path of a file, a data frame, a tuple
        of texts and labels); or `RunSettings` that name them. None: what the settings name
    model: one's own: a subject (`heedful.subject`), the folder of a transformer, a run of heedful's, or any other model
        that `heedful.subject` takes; None trains one. Its classes are matched with the labels by name, or else by order
    store: where runs are kept, a `Store` or the path of a folder: a finished run is never computed twice; None: as on
        the command line the folder `runs`, or the one that HEEDFUL_STORE names
    settings: which model, how trained, and how a file is read; None: the defaults of `RunSettings`
    out: where report, tables and figures go; None: into the run; of a model of one's own, into the folder `audits` of
        the store
    corpus: the data of settings that come first, where they are at hand; None: read as `settings.data` says
    observers: functions that are told of every step and epoch
    fresh: compute the audited run again (not those that try other λ); False: take it if it is there
    advice: try λ = 1, 10, 100 with and without a penalty on VᵀW: True always, False never, None unless the training
        is a large one (tokens × epochs × numbers per token; never the clock). Where all those runs are in the store
        they are shown in any case: that trains nothing
    workers: processes that try other λ, on data that settings or a path name; 1: here, None: as many
        as there are cores, or one where there is little to do
    figures: formats of the figures beside the report: svg, pdf, png
    watch: a function that is told how those trainings get on, or the examination of a model of one's own

    Of a model of one's own:
    texts: so many test texts are explained, drawn by the seed of the settings; ten times as many are read
    by: names of explainers (`heedful explainers list`); None: the usual ones that can be had
    metrics: names of metrics (docs/metrics.md); None: all that can be measured
    how: how units are taken away: attention, delete or mask; None: as is usual for the model
    truncate: whether of texts that are too long for a transformer only the beginning is read; False refuses them
    threads: of torch while the model reads; None: those of a subject, one of anything else
    most: so many units of changed texts the model reads at most; what takes more is refused before it begins

    The `Audit` has `answer` (headline, questions, uses), `verdicts`, `report` (a path), `summary()` as plain data.

    >>> import heedful
    >>> words = {"good": "superb lovely bright warm".split(), "bad": "awful dreary dull cold".split()}
    >>> rows = [(f"a {one} and {two} film", label) for label, some in words.items() for one in some for two in some]
    >>> corpus = heedful.load_corpus(tuple(zip(*rows)))
    >>> small = heedful.RunSettings().change({"model.embedding_size": 8, "training.epochs": 3})
    >>> done = heedful.audit(corpus, settings=small, advice=False)
    >>> done.answer.question("corpus").decision
    'not shown'
    >>> done.verdicts[0].evidence
    '0 polar tokens'
    >>> done.report.parts[0], done.report.name
    ('runs', 'report.html')

    `heedful.audit("reviews.csv")` is what `heedful audit reviews.csv` does, and finds its runs.
    """
    figures = check_formats(figures)
    if model is not None:
        by, metrics = check_names(by, metrics, how)
    settings, data = _request(source, settings, corpus)
    store = store if isinstance(store, Store) else Store(store) if store is not None else usual_store()
    if model is not None:
        return audit_foreign(
            data,
            model,
            lambda name: out or store.root / "audits" / _slug(name),
            texts=texts,
            by=by,
            metrics=metrics,
            how=how,
            truncate=truncate,
            threads=threads,
            most=most,
            figures=figures,
            seed=settings.training.seed,
            watch=watch,
        )
    workers = workers if source is None or isinstance(source, (RunSettings, str, os.PathLike)) else 1
    audited = run(settings, store, corpus=data, observers=observers, fresh=fresh)
    advised = advise(audited, data, store, wanted=advice, workers=workers, observers=observers, watch=watch)
    return _report(audited, data, advised, out or audited.path, figures)


def _slug(name: str) -> str:
    """As the name of a folder, of a length that every file system takes."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:120]


def report_run(audited: Run, report: Path) -> Audit:
    """The report of a finished run, written to that file alone: nothing is trained, and no tables stand beside it."""
    corpus = corpus_of(audited)
    advised = advise(audited, corpus, Store(audited.path.parent), wanted=False)
    done, _ = _examine(audited, corpus, advised, report)
    write_html(done.page, report)
    return done


def corpus_of(audited: Run) -> Corpus:
    """The data of a run, which must be those that it was trained on."""
    corpus = read_corpus(audited.settings)
    if corpus.fingerprint != audited.manifest["fingerprint"]:
        raise InputError(
            f"The data of run '{audited.path.name}' are not those of its training any more: '{corpus.name}' was "
            "changed, so that its texts cannot be shown. Train on it again, or bring the old data back."
        )
    return corpus


def _report(audited: Run, corpus: Corpus, advice: Advice, folder: Path, figures: Sequence[str]) -> Audit:
    """Examine the run, and write its tables, figures and page."""
    done, tables = _examine(audited, corpus, advice, folder / "report.html")
    save_tables(tables, folder / "tables")
    for picture in done.page.pictures():
        picture.save(folder / "figures", figures)
    write_html(done.page, done.report)
    return done


def _examine(audited: Run, corpus: Corpus, advice: Advice, report: Path) -> tuple[Audit, dict[str, pd.DataFrame]]:
    """What the run shows, and all tables of it."""
    settings, trace = audited.settings, audited.trace()
    tables = {name: audited.table(name) for name in ("tokens", "weights", "history", MOMENTS) if audited.has(name)}
    unit, seed = settings.model.unit, settings.training.seed
    with limited_threads(settings.training.threads):
        whole = one_attention(audited.model(), corpus, tables["tokens"], seed=seed)
    examined = examine(tables, trace, seed=seed, unit=unit, scope=_scope(settings, corpus), whole=whole)
    page = _compose(audited, trace, corpus, examined, advice, tables, report)
    done = Audit(run=audited, examined=examined, advice=advice, page=page, report=report)
    erased, attacked = examined.erased, examined.attacked
    return done, {
        **tables,
        **erased.tables,
        "erasure": erased.resting,
        "decisions": erased.decisions,
        "erasure-curves": erased.curves,
        **attacked.tables,
        "other-attention": attacked.others,
        "shuffled-attention": attacked.shuffled,
        **whole.tables,
        "verdicts": verdict_table(done.verdicts),
        **advice.tables(),
    }


def _request(
    source: RunSettings | Corpus | Source | None, settings: RunSettings | None, corpus: Corpus | None
) -> tuple[RunSettings, Corpus]:
    """The settings and the data, from whatever says them."""
    if isinstance(source, RunSettings):
        _refuse_twice("settings", settings)
        return source, corpus or read_corpus(source)
    usual = settings or RunSettings()
    if source is None:
        return usual, corpus or read_corpus(usual)
    _refuse_twice("corpus", corpus)
    if isinstance(source, (str, os.PathLike)):
        named = usual.change({"data.source": os.fspath(source)})
        return named, read_corpus(named)
    data = source if isinstance(source, Corpus) else load_corpus(source, **usual.data.model_dump(exclude={"source"}))
    return usual.change({"data.source": data.name}), data


def _refuse_twice(name: str, value: object) -> None:
    if value is not None:
        raise ConfigError(f"The first argument gives the {name} already. Leave `{name}` away, or the first argument.")


def _scope(settings: RunSettings, corpus: Corpus) -> str:
    """What the answer is of, and how to know more."""
    training = set(corpus.train.texts)
    known = sum(text in training for text in corpus.test.texts)
    seen = f" {known:,} of these also occur in the training split, and are not unseen." if known else ""
    return (
        f"This is of one training (seed {settings.training.seed}) on {counted(len(corpus.train), 'text')}, and "
        f"{counted(len(corpus.test), 'test text')}.{seen} Another training may answer otherwise: try other seeds "
        "(`--seed`)."
    )


def _compose(
    audited: Run,
    trace: Trace,
    corpus: Corpus,
    examined: Examination,
    advice: Advice,
    tables: Mapping[str, pd.DataFrame],
    report: Path,
) -> Page:
    """All that the page shows."""
    tables = {name: with_all_groups(table, corpus.class_names) for name, table in tables.items()}
    naming = class_naming(corpus.class_names)
    commonest = int(corpus.train.labels.mode().values)
    guessing = float((corpus.test.labels == commonest).double().mean())
    worth = (
        f"Test accuracy {accuracy_words(audited.metrics)} on {counted(len(trace), 'text')}; always guessing the "
        f"commonest class would give {100 * guessing:.1f} %."
    )
    texts = instances_of(audited.model(), corpus.test, trace, examined, audited.settings.model.unit)
    return Page(
        title=f"{corpus.name}: can you trust attention as an explanation here?",
        headline=examined.answer.headline,
        answer=examined.answer,
        worth=worth,
        unit=audited.settings.model.unit,
        opening=opening(texts, trace, examined.attacked),
        rule=rule_of(texts.unit),
        sections=[
            Section(name="accuracy", title="Is the model worth explaining?", lead=worth, verdicts=examined.worth),
            Section(
                name="verdicts",
                title="Across the corpus: the words",
                lead=POLAR,
                verdicts=examined.words,
                question=CORPUS_QUESTION,
            ),
            examined.erased.section(drawn=True),
            _attack(examined.attacked),
            *([replace(examined.whole.section(), question=STORY)] if examined.whole else []),
            _texts(texts, trace),
            Section(
                name="figures",
                title="The whole vocabulary",
                lead=f"Groups of tokens: {naming}." if naming else "",
                vocabulary=Vocabulary(table=tables["tokens"], classes=towards(corpus.class_names)),
                pictures=_draw({name: claimed_groups(table) for name, table in tables.items()}, naming),
                on_terminal=False,
            ),
            _strongest(strongest_tokens(tables["tokens"], corpus.class_names)),
            *_over_time(tables, naming),
            advice.section(),
            verdicts_section([*examined.verdicts, *advice.verdicts]),
        ],
        notices=[*audited.notices(corpus), *left_out_classes(corpus), *copies_said(trace)],
        numbers={**audited.metrics, "majority_accuracy": guessing}
        | {"recommended_scale": advice.scale, "recommended_penalty": advice.penalty},
        facts=_facts(audited, corpus),
        places={"run": audited.path, "report": report},
    )


def _draw(tables: Mapping[str, pd.DataFrame], naming: str) -> list[Picture]:
    """The figures of the tables at hand."""
    most, classes = drawings.MOST_CLASSES, len(drawings.polarity_names(tables["tokens"]))
    shown = f" Shown for the {most} of {classes} classes that have the most tokens." if classes > most else ""
    return [
        replace(
            figure.headed("" if figure.name in WITHOUT_GROUPS else naming),
            caption=figure.caption + (shown if figure.name in BY_CLASS else ""),
        ).picture(tables)
        for figure in FIGURES
        if figure.possible(tables)
    ]


def _over_time(tables: Mapping[str, pd.DataFrame], naming: str) -> Iterator[Section]:
    """Attention over training time, as a figure and to be moved through."""
    if MOMENTS not in tables:
        return
    moments = tables[MOMENTS]
    first, last = int(moments["time"].min()), int(moments["time"].max())
    polarity = next(str(column) for column in moments if "polarity" in str(column))
    shown = f"The most frequent tokens of each group, after each of the epochs {first} to {last}."
    lead = shown + (f" In colour, {naming}." if naming else "")
    pictures = [OVER_TIME.headed(naming).picture(tables)]
    by_hand = "Move through the training by the slider."
    if polarity != "polarity":
        by_hand += " Strongest polarity score: the largest of a class less the mean of the others."
    moving = timeline(moments, name="moments", title=by_hand, x=polarity)
    title = "Over training time"
    yield Section(name="training", title=title, lead=lead, pictures=pictures, timeline=moving, on_terminal=False)


def _strongest(strongest: Mapping[str, pd.DataFrame]) -> Section:
    tables = [
        PageTable(name=f"strongest-{place}", title=f"towards {name}", cells=strongest_in_words(rows), data=rows)
        for place, (name, rows) in enumerate(strongest.items())
    ]
    return Section(name="tokens", title="Strongest words", tables=tables, on_terminal=False)


def _texts(texts: Instances, trace: Trace) -> Section:
    """All test texts to be looked into, and some that are worth reading first."""
    shown = [texts.example(number, why) for number, why in telling_instances(trace)]
    return Section(name="examples", title="Test texts", instances=texts, texts=shown, on_terminal=False)


def _attack(attacked: AttackedAttention) -> Section:
    """Other attention, with its pictures."""
    drawn = MANIPULATED if attacked.once["adversary"]["jsd"].notna().any() else ()
    pictures = [figure.picture(attacked.once) for figure in drawn]
    return replace(attacked.section(), pictures=pictures, question=STORY)


def _facts(audited: Run, corpus: Corpus) -> dict[str, dict[str, object]]:
    """Settings, the corpus as it was taken in (a named one has a tokenizer of its own), and versions."""
    settings, metrics = audited.settings, audited.metrics
    taken = {
        "tokenizer": corpus.tokenizer.mode,
        "lowercase": corpus.tokenizer.lowercase,
        **{f"{name} texts": f"{len(split):,}" for name, split in corpus.splits().items()},
        "vocabulary": f"{len(corpus.vocabulary):,}",
        "classes": ", ".join(corpus.class_names),
    }
    alignment = ", ".join(f"{value:+.3f}" for value in metrics["alignment"])
    return {
        "Data": {**settings.data.model_dump(), **taken},
        "Model": settings.model.model_dump(),
        "Training": {**settings.training.model_dump(), "best epoch": metrics["best_epoch"], "VᵀW": alignment},
        "Versions": {**environment(), "run": audited.manifest["digest"]},
    }
