"""The audit: train on your data, look at what is attended to and what is used, and say whether the two agree."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pandas as pd

from heedful.claims import CLAIMS as KNOWN
from heedful.claims import Verdict, judge, verdict_table
from heedful.config import ModelSettings, RunSettings
from heedful.pipeline import Run, read_corpus, run
from heedful.report.page import write_report
from heedful.store import Store
from heedful.studies.advice import SCALES, Advice, missing_runs, recommend_scale, sweep_settings
from heedful.studies.audit_erasure import ErasedAttention, erase_attention
from heedful.studies.audit_page import Findings, compose
from heedful.studies.moments import TABLE as MOMENTS
from heedful.studies.moments import ScoreRecorder, keep_moments
from heedful.studies.sun2020.measures import measure_runs
from heedful.studies.tables import save_table
from heedful.sweep.jobs import SweepEvent
from heedful.sweep.memory import cores
from heedful.text.corpus import Corpus
from heedful.training.events import Observer

CLAIMS = ("C1", "C2", "C8")
"""Judged on the audited run alone; the short answer rests on them."""

LONG_SECONDS = 300.0
"""After a longer training than this, λ is not tried out unless it is asked for."""

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
            "answer": answer(self.verdicts)[0],
            "notices": list(self.notices),
            "metrics": self.run.metrics,
            "verdicts": [verdict.row() for verdict in self.verdicts],
            "erasure": {"words": self.erasure.words, "rankings": self.erasure.summary.to_dict("records")},
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
    """Run the settings (or find the run), judge the claims, try out λ, draw the figures, write tables and report.

    `advice` tries other λ: always, never, or (None) unless the training took more than five minutes. With several
    `workers` those trainings run in processes that read the corpus of the settings; `watch` is told of them.
    `fresh` computes the audited run again, not the other ones.
    """
    data = corpus or read_corpus(settings)
    recorder = ScoreRecorder(data)
    finished = run(settings, store, corpus=data, observers=[*observers, recorder], fresh=fresh)
    keep_moments(finished, recorder)
    unit = "sentences" if settings.model.structure == "hierarchical" else "words"
    erased = erase_attention(finished.trace(), seed=settings.training.seed, unit=unit)
    advised, silence = _advise(finished, data, store, advice, workers, observers, watch)
    tables = {name: finished.table(name) for name in ("tokens", "weights", "history", MOMENTS) if finished.has(name)}
    judged = judge(tuple(name for name in CLAIMS if set(KNOWN[name].needs) <= set(tables)), tables)
    scaled, scaling = _judge_scales(settings.model, data, advised)
    verdicts = [*judged, *erased.verdicts, *scaled]
    folder = out or finished.path
    extra = {**erased.tables, "erasure": erased.summary, "verdicts": verdict_table(verdicts), **scaling}
    for name, table in {**tables, **extra}.items():
        save_table(table, folder / "tables" / name)
    short, why = answer(verdicts)
    notices = tuple(dict.fromkeys([*data.notices, *finished.manifest["notices"]]))
    findings = Findings(
        answer=short,
        summary=why,
        judged=judged,
        erased=erased,
        advice=advised,
        no_advice=silence,
        scaled=scaled,
        tables=tables,
        notices=notices,
    )
    write_report(compose(finished, data, findings, folder / "figures"), folder / "report.html")
    return Audit(
        run=finished,
        verdicts=verdicts,
        erasure=erased,
        advice=advised,
        no_advice=silence,
        notices=notices,
        report=folder / "report.html",
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
    missing = missing_runs(sweep_settings(settings, scales), store, corpus)
    seconds = float(finished.manifest["seconds"])
    if missing and wanted is None and seconds > LONG_SECONDS:
        return None, too_long(seconds, len(missing), workers or cores())
    found = recommend_scale(
        settings, store, corpus=corpus, scales=scales, workers=workers, observers=observers, watch=watch
    )
    return found, ""


def too_long(seconds: float, missing: int, workers: int) -> str:
    """Why λ was not tried out, and what it would take."""
    rounds = -(-missing // min(workers, missing))
    took, takes = (timedelta(seconds=round(value)) for value in (seconds, rounds * seconds))
    return (
        f"Other λ were not tried: this training took {took}, and {missing} more would take about {takes}. "
        "Ask for them by --advice."
    )


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
    scaling = measure_runs(corpus.name, name, advised.runs)
    verdicts = judge(scaling_claims(model, corpus.classes), {"scaling": scaling})
    return verdicts, {"advice": advised.table, "scaling": scaling}


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
