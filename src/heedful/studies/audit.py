"""The audit: train on your data, look at what is attended to and what is used, and say whether the two agree."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from heedful.analysis.tokens import compared_classes, training_counts
from heedful.claims import Verdict, judge, verdict_table
from heedful.claims.answer import Answer
from heedful.config import ModelSettings, RunSettings
from heedful.pipeline import Run, read_corpus, run
from heedful.report.page import write_report
from heedful.store import Store
from heedful.studies.advice import (
    MOST_WORK,
    SCALES,
    Advice,
    commonest_class,
    majority_rate,
    recommend_scale,
    sweep_settings,
    training_work,
)
from heedful.studies.audit_erasure import ErasedAttention
from heedful.studies.audit_page import Findings, compose
from heedful.studies.examine import examine
from heedful.studies.moments import TABLE as MOMENTS
from heedful.studies.moments import ScoreRecorder, keep_moments
from heedful.studies.sun2020.measures import measure_runs
from heedful.studies.tables import save_table
from heedful.sweep.jobs import SweepEvent
from heedful.text.corpus import Corpus
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
    settings: RunSettings,
    store: Store,
    *,
    out: Path | None = None,
    corpus: Corpus | None = None,
    observers: Sequence[Observer] = (),
    fresh: bool = False,
    advice: bool | None = None,
    workers: int | None = 1,
    watch: Callable[[SweepEvent], None] | None = None,
) -> Audit:
    """Can attention be trusted as an explanation here? Train (or find the run), examine, try other λ, write a report.

    settings: what to train on what; see `RunSettings`
    store: where runs are kept: a finished run is never computed twice
    out: where report, tables and figures go; None: into the run
    corpus: the data, where they are at hand; None: read as `settings.data` says
    observers: functions that are told of every step and epoch
    fresh: compute the audited run again (not those that try other λ); False: take it if it is there
    advice: try λ = 1, 10, 100 with and without a penalty on VᵀW: True always, False never, None unless the training
        is a large one (tokens × epochs × numbers per token; never the clock)
    workers: processes that try other λ; 1: here, None: as many as there are cores
    watch: a function that is told how those trainings get on

    The `Audit` has `answer` (headline, questions, uses), `verdicts`, `report` (a path), `summary()` as plain data.

    >>> import heedful, tempfile
    >>> words = {"good": "superb lovely bright warm".split(), "bad": "awful dreary dull cold".split()}
    >>> rows = [(f"a {one} and {two} film", label) for label, some in words.items() for one in some for two in some]
    >>> corpus = heedful.load_corpus(tuple(zip(*rows)))
    >>> settings = heedful.RunSettings().change({"model.embedding_size": 8, "training.epochs": 3})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = heedful.audit(settings, heedful.Store(folder), corpus=corpus, advice=False)
    >>> done.answer.question("corpus").decision
    'not shown'
    >>> done.verdicts[0].evidence
    '0 polar tokens'
    """
    data = corpus or read_corpus(settings)
    recorder = ScoreRecorder(data)
    finished = run(settings, store, corpus=data, observers=[*observers, recorder], fresh=fresh)
    keep_moments(finished, recorder)
    unit = "sentences" if settings.model.structure == "hierarchical" else "words"
    advised, silence = _advise(finished, data, store, advice, workers, observers, watch)
    names = ("tokens", "weights", "history", MOMENTS)
    tables = {name: finished.table(name) for name in names if finished.has(name)}
    common = commonest_class(data)
    seen = examine(tables, finished.trace(), seed=settings.training.seed, unit=unit, scope=_scope(settings, data))
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
    notices = (*finished.notices(data), *left_out_classes(data))
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
    return (
        f"This is of one training (seed {settings.training.seed}) on {len(corpus.train):,} texts, and its "
        f"{len(corpus.test):,} test texts. Another training may answer otherwise: try other seeds "
        "(`--seed`)."
    )


def _advise(
    finished: Run,
    corpus: Corpus,
    store: Store,
    wanted: bool | None,
    workers: int | None,
    observers: Sequence[Observer],
    watch: Callable[[SweepEvent], None] | None,
) -> tuple[Advice | None, str]:
    """Advice on λ, or why there is none."""
    settings = finished.settings
    scales = sorted({*SCALES, settings.model.score_scale})
    if wanted is False:
        return None, "Other λ were not tried: --no-advice was given."
    work = training_work(settings, corpus)
    if wanted is None and work > MOST_WORK:
        return None, too_much(work, len(sweep_settings(settings, scales)))
    found = recommend_scale(
        settings, store, corpus=corpus, scales=scales, workers=workers, observers=observers, watch=watch
    )
    return found, ""


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
