"""The audit of a model that was not trained here: whether its attention explains it, and what explains it better.

Every section of the usual audit that applies, and for each that does not the reason. A model with a trace (heedful's
own, or a torch module whose parts are named) is judged exactly; any other is asked: words are taken away from its texts
instead of their attention weights, and instead of the provably smallest set there is the smallest that was found.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.adapters import ClassifierSubject
from heedful.analysis.faithfulness.cost import MOST_UNITS, Cost
from heedful.analysis.smallest import cost_of_search
from heedful.analysis.words import Words, measure_words
from heedful.claims import Verdicts, judge, verdict_table
from heedful.claims.answer import Answer
from heedful.claims.scores import LEARNED
from heedful.explainers import explain
from heedful.figures.picture import FORMATS
from heedful.files import digest_of
from heedful.notebook import View, Viewed
from heedful.probes.scores import token_scores
from heedful.report.exports import save_tables
from heedful.report.html import render_html, write_html
from heedful.report.page import Page, page_view, payload
from heedful.studies.compare import ATTENTION, USUAL, Compared, compare
from heedful.studies.examine import ON_REMOVED_WORDS, ON_WORDS, Examination, examine
from heedful.studies.foreign_found import Asked, Parts, ask, scope_words
from heedful.studies.foreign_page import compose
from heedful.studies.models import Stages, drawn_rows, subject_of
from heedful.studies.removed import Removed, remove_units
from heedful.subjects import DELETE, Subject
from heedful.sweep.loop import SweepEvent
from heedful.text.corpus import Corpus

TEXTS = 200
"""Test texts that are explained."""

REMOVALS = 25
"""So many times as many words are taken away."""

NOTHING_TO_EXPLAIN = "Nothing is chosen: the model is not shown to tell the classes apart better than guessing does."


@dataclass(frozen=True, kw_only=True, eq=False)
class ForeignAudit(Viewed):
    """A finished audit of a model that was not trained here.

    answer: None where the model has no attention to judge. examined: of a model with a trace; removed: of any other.
    """

    model: Subject
    answer: Answer | None
    verdicts: Verdicts
    words: Words
    compared: Compared
    examined: Examination | None
    removed: Removed | None
    page: Page
    report: Path

    def __repr__(self) -> str:
        return f"ForeignAudit({self.page.headline} Report: {self.report})"

    @property
    def view(self) -> View:
        return page_view(self.page)

    def to_html(self) -> str:
        """The whole report, a page of HTML that needs nothing else."""
        return render_html(self.page)

    def to_frame(self) -> pd.DataFrame:
        """Its verdicts."""
        return self.verdicts.to_frame()

    def summary(self) -> dict[str, Any]:
        """The audit as plain data (`heedful.report.page`)."""
        return payload(self.page)


def audit_foreign(
    corpus: Corpus,
    model: Any,
    folder: Callable[[str], Path],
    *,
    texts: int = TEXTS,
    by: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    how: str | None = None,
    truncate: bool = False,
    threads: int | None = None,
    most: int = MOST_UNITS,
    figures: Sequence[str] = FORMATS,
    seed: int = 0,
    watch: Callable[[SweepEvent], None] | None = None,
) -> ForeignAudit:
    """Read the test texts, measure what words and explanations do, and write the report into the folder of that name.

    Nothing is written before everything is known.
    """
    stages = Stages(watch)
    stages.begin("reading the test texts")
    asked = ask(
        corpus, stages.watched(subject_of(model, truncate=truncate, threads=threads)), texts=texts, how=how, seed=seed
    )
    worth = judge((LEARNED,), {"outcomes": asked.outcomes})
    stages.begin("taking words away")
    words = _words(asked, texts)
    rows = drawn_rows(len(asked.texts.texts), texts, seed)
    sample = asked.texts.take(rows)
    few = replace(asked, texts=sample, reading=asked.model.read(sample.texts))
    beside = Cost() if asked.trace is not None else cost_of_search(few.reading.units.lengths, len(by or USUAL))
    compared = compare(
        few.reading, by=by, metrics=metrics, how=asked.how, seed=seed, most=most, beside=beside, stages=stages
    )
    stages.begin(f"looking for smallest sets{f': {beside}' if beside.texts else ''}")
    learned = worth[0].decision == "yes"
    if not learned:
        compared = replace(compared, choice=None, why_none=NOTHING_TO_EXPLAIN)
    examined = _examined(asked, words) if asked.trace is not None else None
    removed = _removed(few, compared, learned) if examined is None else None
    stages.begin("writing the report")
    parts = Parts(asked=asked, few=few, worth=worth, words=words, compared=compared, examined=examined, removed=removed)
    name = _name(asked, {"texts": texts, "by": by, "metrics": metrics, "truncate": truncate})
    return _report(parts, folder(name), figures)


def _name(asked: Asked, options: Mapping[str, Any]) -> str:
    """Model and data by name, and before them what tells this audit from others of the same names: the data, what the
    model says of them, and what was asked for."""
    says = sha256(asked.reading.probabilities.numpy(force=True).round(6).tobytes()).hexdigest()
    own = {**options, "data": asked.corpus.fingerprint, "says": says, "how": asked.how, "seed": asked.seed}
    return f"{digest_of(own)[:12]}_{asked.model.name}_{asked.corpus.name}"


def _words(asked: Asked, texts: int) -> Words:
    """Words are deleted where that can be done, whatever is done to the units of single texts."""
    way = DELETE if DELETE in asked.reading.ways else asked.how
    weights = None if asked.attention is None else asked.attention.scores
    return measure_words(
        asked.reading, asked.corpus, weights, classes=asked.classes.numbers, how=way, most=REMOVALS * texts,
        seed=asked.seed,
    )  # fmt: skip


def _examined(asked: Asked, words: Words) -> Examination:
    """The exact examination of a trace; with the scores of all tokens where the model has the words of this corpus."""
    assert asked.trace is not None
    tables = {"words": words.table, "weights": words.table}
    claims: Sequence[str] = ON_REMOVED_WORDS
    model = asked.model.model if isinstance(asked.model, ClassifierSubject) else None
    own = model.interface if model is not None else None
    if model and own and (own.vocabulary, own.class_names) == (asked.corpus.vocabulary, asked.corpus.class_names):
        tables["tokens"], claims = token_scores(model, asked.corpus), (*ON_WORDS, "D2")
    return examine(tables, asked.trace, seed=asked.seed, scope=scope_words(asked, None), on_words=claims)


def _removed(few: Asked, compared: Compared, learned: bool) -> Removed:
    """Along attention, leaving out one at a time, and the best explanation; the search begins along all of them."""
    best = compared.choice.best if compared.choice else None
    own = None if few.attention is None else explain(few.reading, by=ATTENTION, seed=few.seed)
    single = explain(few.reading, by="leave_one_out", how=few.how)
    shown = {one.method: one for one in (own, single, best and compared.explanation(best)) if one}
    return remove_units(
        few.reading, list(shown.values()), how=few.how, search=compared.explanations, seed=few.seed, learned=learned
    )


def _report(parts: Parts, folder: Path, figures: Sequence[str]) -> ForeignAudit:
    """Draw everything, then write it."""
    page = compose(parts, folder / "report.html")
    tables = {
        "words": parts.words.table,
        **parts.compared.tables,
        **(_exact_tables(parts.examined) if parts.examined else {}),
        **(parts.removed.tables if parts.removed else {}),
        "verdicts": verdict_table(parts.verdicts),
    }
    save_tables(tables, folder / "tables")
    parts.compared.save_texts(folder / "tables")
    for picture in page.pictures():
        picture.save(folder / "figures", figures)
    write_html(page, folder / "report.html")
    return ForeignAudit(
        model=parts.asked.model,
        answer=parts.answer,
        verdicts=Verdicts(parts.verdicts),
        words=parts.words,
        compared=parts.compared,
        examined=parts.examined,
        removed=parts.removed,
        page=page,
        report=folder / "report.html",
    )


def _exact_tables(examined: Examination) -> dict[str, pd.DataFrame]:
    erased, attacked = examined.erased, examined.attacked
    both = {**erased.tables, "erasure": erased.resting, "decisions": erased.decisions, **attacked.tables}
    return {**both, "other-attention": attacked.others, "shuffled-attention": attacked.shuffled}
