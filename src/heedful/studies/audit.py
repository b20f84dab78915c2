"""The audit: train on your data, look at what is attended to and what is used, and say whether the two agree."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from heedful.analysis.tokens import compared_classes, training_counts
from heedful.claims import Verdict, judge, verdict_table
from heedful.claims.answer import Answer
from heedful.config import ModelSettings, RunSettings
from heedful.errors import ConfigError
from heedful.notebook import counted
from heedful.pipeline import Run, read_corpus, run
from heedful.report.page import write_report
from heedful.store import Store, usual_store
from heedful.studies.advice import (
    MOST_WORK,
    SCALES,
    Advice,
    commonest_class,
    majority_rate,
    missing_runs,
    recommend_scale,
    sweep_settings,
    training_work,
)
from heedful.studies.audit_erasure import ErasedAttention
from heedful.studies.audit_page import Findings, compose
from heedful.studies.examine import examine
from heedful.studies.measures import measure_runs
from heedful.studies.moments import TABLE as MOMENTS
from heedful.studies.moments import ScoreRecorder, keep_moments
from heedful.studies.tables import save_table
from heedful.sweep.jobs import SweepEvent
from heedful.text.corpus import Corpus
from heedful.text.datasets import Source, load_corpus
from heedful.traces import Trace
from heedful.training.events import Observer

PLAIN, RECURRENT = "DP", "DP-L"
MODELS: Mapping[tuple[str, str], str] = {
    ("dot", "none"): PLAIN,
    ("dot", "lstm"): RECURRENT,
    ("dot", "affine"): "DP-A",
    ("additive", "none"): "AD",
}
"""What Sun & Lu 2020 call a model of this attention and encoder."""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A finished audit: the run it rests on, its verdicts, what erasure and a sweep showed, and where its report is."""

    run: Run
    answer: Answer
    worth: Sequence[Verdict]
    """Whether the model tells the classes apart better than guessing."""
    majority: float
    """The test accuracy of always guessing the commonest class of the training texts."""
    verdicts: Sequence[Verdict]
    """All of them: of the run, of erasure and of the sweep over λ."""
    erasure: ErasedAttention
    advice: Advice | None
    no_advice: str
    """Why there is no advice."""
    notices: Sequence[str]
    report: Path

    def __repr__(self) -> str:
        return f"Audit({self.answer.headline} Report: {self.report})"

    def summary(self) -> dict[str, object]:
        """The audit as plain data."""
        return {
            "run": str(self.run.path),
            "report": str(self.report),
            "answer": self.answer.row(),
            "notices": list(self.notices),
            "metrics": {**self.run.metrics, "majority_accuracy": self.majority},
            "verdicts": [verdict.row() for verdict in self.verdicts],
            "erasure": {
                "words": self.erasure.words,
                "rankings": self.erasure.summary.to_dict("records"),
                "decisions": self.erasure.decisions.to_dict("records"),
            },
            "advice": self.advice.summary() if self.advice else None,
            "no_advice": self.no_advice or None,
        }


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
    watch: Callable[[SweepEvent], None] | None = None,
) -> Audit:
    """Can attention be trusted as an explanation here? Train (or find the run), examine, try other λ, write a report.

    source: the data: a corpus of `load_corpus`, or what that reads (a name, the path of a file, a data frame, a tuple
        of texts and labels); or `RunSettings` that name them. None: what the settings name
    store: where runs are kept, a `Store` or the path of a folder: a finished run is never computed twice; None: as on
        the command line the folder `runs`, or the one that HEEDFUL_STORE names
    settings: which model, how trained, and how a file is read; None: the defaults of `RunSettings`
    out: where report, tables and figures go; None: into the run
    corpus: the data of settings that come first, where they are at hand; None: read as `settings.data` says
    observers: functions that are told of every step and epoch
    fresh: compute the audited run again (not those that try other λ); False: take it if it is there
    advice: try λ = 1, 10, 100 with and without a penalty on VᵀW: True always, False never, None unless the training
        is a large one (tokens × epochs × numbers per token; never the clock). Where all those runs are in the store
        they are shown in any case: that trains nothing
    workers: processes that try other λ, on data that settings or a path name; 1: here, None: as many as there are cores
    watch: a function that is told how those trainings get on

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
    settings, data = _request(source, settings, corpus)
    store = store if isinstance(store, Store) else Store(store) if store is not None else usual_store()
    workers = workers if source is None or isinstance(source, (RunSettings, str, os.PathLike)) else 1
    recorder = ScoreRecorder(data)
    finished = run(settings, store, corpus=data, observers=[*observers, recorder], fresh=fresh)
    keep_moments(finished, recorder)
    unit = "sentences" if settings.model.structure == "hierarchical" else "words"
    advised, silence = _advise(finished, data, store, advice, workers, observers, watch)
    names = ("tokens", "weights", "history", MOMENTS)
    tables = {name: finished.table(name) for name in names if finished.has(name)}
    common = commonest_class(data)
    traced = finished.trace()
    seen = examine(tables, traced, seed=settings.training.seed, unit=unit, scope=_scope(settings, data))
    scaled, scaling = _judge_scales(settings.model, data, advised)
    verdicts = [*seen.words, *seen.erased.verdicts, *seen.worth, *scaled]
    folder = out or finished.path
    extra = {
        **seen.erased.tables,
        "erasure": seen.erased.summary,
        "decisions": seen.erased.decisions,
        "verdicts": verdict_table(verdicts),
        **scaling,
    }
    for name, table in {**tables, **extra}.items():
        save_table(table, folder / "tables" / name)
    notices = (*finished.notices(data), *left_out_classes(data), *copies_said(traced))
    findings = Findings(
        answer=seen.answer,
        worth=seen.worth,
        judged=seen.words,
        erased=seen.erased,
        advice=advised,
        no_advice=silence,
        scaled=scaled,
        tables=tables,
        notices=notices,
    )
    write_report(compose(finished, data, findings, folder / "figures"), folder / "report.html")
    return Audit(
        run=finished,
        answer=seen.answer,
        worth=seen.worth,
        majority=majority_rate(data.test, common),
        verdicts=verdicts,
        erasure=seen.erased,
        advice=advised,
        no_advice=silence,
        notices=notices,
        report=folder / "report.html",
    )


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


def copies_said(traced: Trace) -> list[str]:
    """What must be said of test texts that are copies of others."""
    copies = int((~traced.distinct).sum())
    if not copies:
        return []
    return [
        f"{counted(copies, 'test text')} {'is a copy' if copies == 1 else 'are copies'} of others. In verdicts each "
        "text counts once; the accuracy is of all."
    ]


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


def _advise(
    finished: Run,
    corpus: Corpus,
    store: Store,
    wanted: bool | None,
    workers: int | None,
    observers: Sequence[Observer],
    watch: Callable[[SweepEvent], None] | None,
) -> tuple[Advice | None, str]:
    """Advice on λ, or why there is none. Where the runs for it are in the store it is given, whatever is wanted."""
    settings = finished.settings
    scales = sorted({*SCALES, settings.model.score_scale})
    sought = sweep_settings(settings, scales)
    stored = len(sought) - len(missing_runs(sought, store, corpus))
    silence = _silence(wanted, training_work(settings, corpus), len(sought))
    earlier = _earlier_runs(finished.path)
    if silence and stored < (earlier or len(sought)):
        return None, silence + (_gone(finished.path, earlier - stored) if earlier else "")
    found = recommend_scale(
        settings,
        store,
        corpus=corpus,
        scales=scales,
        workers=workers,
        observers=observers,
        watch=watch,
        only_stored=bool(silence),
    )
    return found, ""


def _silence(wanted: bool | None, work: float, trainings: int) -> str:
    """Why nothing is to be trained for advice; empty where it is."""
    if wanted is False:
        return "Other λ were not tried: --no-advice was given."
    return too_much(work, trainings) if wanted is None and work > MOST_WORK else ""


def _earlier_runs(run: Path) -> int:
    """How many runs the advice rests on that an earlier audit left in the run; 0 where it gave none."""
    place = run / "tables" / "advice.parquet"
    return len(pd.read_parquet(place)) if place.is_file() else 0


def _gone(run: Path, count: int) -> str:
    """What is said where an earlier page had advice that cannot be given again."""
    are = "of its runs is" if count == 1 else "of its runs are"
    kept = run / "tables" / "advice.csv"
    return f" An earlier audit tried them, but {count} {are} no longer in the store; what it found is kept in {kept}."


def too_much(work: float, trainings: int) -> str:
    """Why λ was not tried out, whatever the machine, and how to ask for it."""
    return (
        f"Other λ were not tried: tokens × epochs × numbers per token are {work:.1e} for each of {trainings} "
        f"trainings, and more than {MOST_WORK:.0e} is done only when --advice asks for it."
    )


def left_out_classes(corpus: Corpus) -> list[str]:
    """What must be said of classes that are too small for their words to be told from others."""
    kept = compared_classes(training_counts(corpus)).tolist()
    names = [name for name, compared in zip(corpus.class_names, kept, strict=True) if not compared]
    if not names:
        return []
    return [
        f"Too small to compare its words with those of other classes: {', '.join(names)}. It has no group of words."
    ]


def scaling_claims(model: ModelSettings, classes: int) -> tuple[str, ...]:
    """The claims about λ, and about other models than the plain one, that this model can be judged by."""
    name = MODELS.get((model.attention, model.encoder))
    found: list[str] = []
    if name == PLAIN:
        found += ["C4", "C11"] if classes > 2 else ["C3", "C4", "C11", "C11b"]
    if name != PLAIN or classes > 2:
        found += ["C9", "C9b"]
    return (*found, "C12") if name == RECURRENT else tuple(found)


def _judge_scales(
    model: ModelSettings, corpus: Corpus, advised: Advice | None
) -> tuple[list[Verdict], dict[str, pd.DataFrame]]:
    """The verdicts that the sweep over λ allows, and its tables. The claims are about flat models."""
    if advised is None:
        return [], {}
    if model.structure == "hierarchical" or len(advised.runs) < 2:
        return [], {"advice": advised.table}
    name = MODELS.get((model.attention, model.encoder), f"{model.attention}-{model.encoder}")
    scaling = measure_runs(corpus.name, name, advised.runs, printed=False)
    verdicts = judge(scaling_claims(model, corpus.classes), {"scaling": scaling})
    return verdicts, {"advice": advised.table, "scaling": scaling}
