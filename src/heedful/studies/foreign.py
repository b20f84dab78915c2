"""The audit of a model that was not trained here: whether its attention explains it, and what explains it better.

Every section of the usual audit that applies, and for each that does not the reason. A model with a trace (heedful's
own, or a torch module whose parts are named) is judged exactly; any other is asked: words are taken away from its texts
instead of their attention weights, and instead of the provably smallest set there is the smallest that was found.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.adapters import ClassifierSubject
from heedful.analysis.flips import TraceReading
from heedful.analysis.statistics import share
from heedful.analysis.words import Words, measure_words
from heedful.claims import Verdict, judge, verdict_table
from heedful.claims.answer import Answer, answer
from heedful.claims.scores import LEARNED
from heedful.explainers import EXPLAINERS, explain
from heedful.explanations import Explanation
from heedful.figures.picture import Figure
from heedful.figures.words import attention_against_effect
from heedful.files import digest_of
from heedful.notebook import counted
from heedful.pipeline import environment
from heedful.probes.scores import token_scores
from heedful.report.exports import save_tables
from heedful.report.html import write_html
from heedful.report.page import Page, PageTable, Section, payload
from heedful.report.strips import Example, Shading, make_shaded
from heedful.report.terminal import printable
from heedful.studies.compare import ATTENTION, Compared, compare
from heedful.studies.examine import ON_REMOVED_WORDS, ON_WORDS, Examination, chance_words, examine
from heedful.studies.models import Classes, Stages, Texts, cut_said, drawn_rows, drawn_texts, match_classes, subject_of
from heedful.studies.removed import Removed, remove_units
from heedful.studies.wording import accuracy_words, class_naming, left_out_classes, strongest_tokens
from heedful.subjects import DELETE, Reading, Subject, check_way
from heedful.sweep.loop import SweepEvent
from heedful.text.corpus import Corpus
from heedful.traces import Trace

TEXTS = 200
"""Test texts that are explained."""

MORE_TEXTS, REMOVALS = 10, 25
"""Of so many times as many the attention and accuracy are known; so many times as many words are taken away."""

SHOWN = 5
"""Texts that are shown."""

ATTENDED = 12
"""Words with the most attention that are listed."""

NO_READOUT = (
    "its logits are not known to be an affine function of its attention weights, without which other weights with the "
    "same output cannot be found."
)
NOTHING_TO_EXPLAIN = "Nothing is chosen: the model is not shown to tell the classes apart better than guessing does."
NOT_TRAINED = "the model was not trained here."

WORDS = Figure(
    name="attention-and-effect",
    title="Attention and effect of words",
    caption="Every point is a word that was taken away. Where attention explains, words that move the output lie high, "
    "above those that do not; the line is an even share.",
    needs=("words",),
    draw=lambda tables: attention_against_effect(tables["words"]),
)

KEY = (
    "Each text as the attention its words get, as the best explanation sees it (green speaks for the decision, purple "
    "against it), and with the smallest set of words found whose removal flips the decision. Hover for the numbers."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A model, the test texts that it read, and what is known of them."""

    model: Subject
    corpus: Corpus
    classes: Classes
    texts: Texts
    reading: Reading
    attention: Explanation | None
    how: str
    seed: int
    notices: Sequence[str] = ()

    @property
    def labels(self) -> Int[Tensor, " texts"]:
        """In the numbers of the model."""
        return self.classes.numbers[self.texts.labels]

    @property
    def outcomes(self) -> pd.DataFrame:
        """Per text its class, and the one that the model decides for."""
        return pd.DataFrame({"label": self.labels.numpy(), "decision": self.reading.decisions.numpy(force=True)})

    @property
    def metrics(self) -> dict[str, Any]:
        """Accuracy with its interval, and what always guessing the commonest class would give."""
        right = share(int((self.outcomes["label"] == self.outcomes["decision"]).sum()), len(self.outcomes))
        commonest = self.classes.numbers[self.corpus.train.labels.mode().values]
        guessing = float((self.labels == commonest).double().mean())
        return {
            "test_accuracy": right.value,
            "test_accuracy_low": right.low,
            "test_accuracy_high": right.high,
            "majority_accuracy": guessing,
        }

    @property
    def trace(self) -> Trace | None:
        """Of the test texts, with their labels, where the model has one."""
        return replace(self.reading.trace, labels=self.labels) if isinstance(self.reading, TraceReading) else None

    @property
    def why_no_attention(self) -> str:
        return EXPLAINERS[ATTENTION].why_not(self.reading)


@dataclass(frozen=True, kw_only=True, eq=False)
class ForeignAudit:
    """A finished audit of a model that was not trained here.

    answer: None where the model has no attention to judge. examined: of a model with a trace; removed: of any other.
    """

    model: Subject
    answer: Answer | None
    verdicts: Sequence[Verdict]
    words: Words
    compared: Compared
    examined: Examination | None
    removed: Removed | None
    page: Page
    report: Path

    def __repr__(self) -> str:
        return f"ForeignAudit({self.page.headline} Report: {self.report})"

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
    seed: int = 0,
    watch: Callable[[SweepEvent], None] | None = None,
) -> ForeignAudit:
    """Read the test texts, measure what words and explanations do, and write the report into the folder of that name.

    Nothing is written before everything is known.
    """
    stages = Stages(watch)
    stages.begin("reading the test texts")
    asked = ask(corpus, stages.watched(subject_of(model, truncate=truncate)), texts=texts, how=how, seed=seed)
    worth = judge((LEARNED,), {"outcomes": asked.outcomes})
    stages.begin("taking words away")
    words = _words(asked, texts)
    rows = drawn_rows(len(asked.texts.texts), texts, seed)
    sample = asked.texts.take(rows)
    few = replace(asked, texts=sample, reading=asked.model.read(sample.texts))
    stages.begin("explaining")
    compared = compare(few.reading, by=by, metrics=metrics, how=asked.how, seed=seed, watch=stages.told)
    stages.begin("looking for smallest sets")
    learned = worth[0].decision == "yes"
    if not learned:
        compared = replace(compared, choice=None, why_none=NOTHING_TO_EXPLAIN)
    examined = _examined(asked, words) if asked.trace is not None else None
    removed = _removed(few, compared, learned) if examined is None else None
    stages.begin("writing the report")
    parts = Parts(asked=asked, few=few, worth=worth, words=words, compared=compared, examined=examined, removed=removed)
    return _report(parts, folder(_name(asked, {"texts": texts, "by": by, "metrics": metrics, "truncate": truncate})))


def _name(asked: Asked, options: Mapping[str, Any]) -> str:
    """Model and data by name, and before them what tells this audit from others of the same names: the data, what the
    model says of them, and what was asked for."""
    says = sha256(asked.reading.probabilities.numpy(force=True).round(6).tobytes()).hexdigest()
    own = {**options, "data": asked.corpus.fingerprint, "says": says, "how": asked.how, "seed": asked.seed}
    return f"{digest_of(own)[:12]}_{asked.model.name}_{asked.corpus.name}"


def ask(corpus: Corpus, model: Subject, *, texts: int, how: str | None, seed: int) -> Asked:
    """Let the model read the test texts; classes that do not fit, and answers that are none, are refused here."""
    classes = match_classes(corpus.class_names, model.class_names, model.name)
    test, said = drawn_texts(corpus, MORE_TEXTS * texts, seed)
    reading = model.read(test.texts)
    way = how or reading.ways[0]
    check_way(way, reading)
    reading.probabilities  # noqa: B018 (what is wrong with it is said now)
    attention = None if EXPLAINERS[ATTENTION].why_not(reading) else explain(reading, by=ATTENTION, seed=seed)
    return Asked(
        model=model,
        corpus=corpus,
        classes=classes,
        texts=test,
        reading=reading,
        attention=attention,
        how=way,
        seed=seed,
        notices=[*corpus.notices, *classes.notices, *said, *cut_said(reading.units), *left_out_classes(corpus)],
    )


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
    return examine(tables, asked.trace, seed=asked.seed, scope=_scope(asked, None), on_words=claims)


def _removed(few: Asked, compared: Compared, learned: bool) -> Removed:
    """Along attention, leaving out one at a time, and the best explanation; the search begins along all of them."""
    best = compared.choice.best if compared.choice else None
    own = None if few.attention is None else explain(few.reading, by=ATTENTION, seed=few.seed)
    single = explain(few.reading, by="leave_one_out", how=few.how)
    shown = {one.method: one for one in (own, single, best and compared.explanation(best)) if one}
    return remove_units(
        few.reading, list(shown.values()), how=few.how, search=compared.explanations, seed=few.seed, learned=learned
    )


def _scope(asked: Asked, few: Asked | None) -> str:
    """What the answer is of."""
    some = "" if few is None else f", {len(few.texts.texts):,} of which were explained"
    return (
        f"This is of one model ({asked.model.name}) and {counted(len(asked.texts.texts), 'test text')}{some}. Whether "
        "it has seen them in its training is not known here. Other texts may answer otherwise: try another `--seed`."
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """What a report is made of."""

    asked: Asked
    few: Asked
    worth: Sequence[Verdict]
    words: Words
    compared: Compared
    examined: Examination | None
    removed: Removed | None
    on_words: Sequence[Verdict] = field(init=False)
    answer: Answer | None = field(init=False)

    def __post_init__(self) -> None:
        judged = self.examined.words if self.examined else _on_words(self.asked, self.words)
        object.__setattr__(self, "on_words", judged)
        object.__setattr__(self, "answer", self._answered())

    @property
    def verdicts(self) -> list[Verdict]:
        choice = self.compared.choice
        better = [choice.verdict] if choice and choice.verdict else []
        own = self.examined.verdicts if self.examined else [*self.on_words, *self._removed_verdicts, *self.worth]
        return [*own, *better]

    @property
    def _removed_verdicts(self) -> Sequence[Verdict]:
        return self.removed.verdicts if self.removed else ()

    def _answered(self) -> Answer | None:
        """The answer of all verdicts; of a model without attention there is none."""
        if self.examined is not None:
            return replace(self.examined.answer, instead=(*self.examined.answer.instead, *self._instead()))
        if self.asked.attention is None or self.removed is None:
            return None
        return answer(
            [*self.worth, *self.on_words, *self.removed.verdicts],
            classes={printable(row["decision"]): row["found"] for row in self.removed.decisions.to_dict("records")},
            scope=_scope(self.asked, self.few),
            note=chance_words(self.words.table),
            unasked=f"Not asked: {NO_READOUT}",
            instead=tuple(self._instead()),
        )

    def _instead(self) -> Iterator[str]:
        if self.examined is None:
            yield "To explore the corpus, read what goes without each word (table words): what it does, wherever it is."
        if self.compared.choice:
            yield self.compared.choice.words

    @property
    def headline(self) -> str:
        if self.answer is not None:
            return self.answer.headline
        choice, said = self.compared.choice, f"There is no attention to judge; {self.asked.why_no_attention}"
        return f"{said} {choice.words if choice else self.compared.why_none}"


def _on_words(asked: Asked, words: Words) -> list[Verdict]:
    """The claims about words that can be asked: without attention only what the model uses."""
    names = ON_REMOVED_WORDS if asked.attention is not None else ("D1",)
    return judge(tuple(name for name in names if name != "C8b"), {"words": words.table, "weights": words.table})


def _report(parts: Parts, folder: Path) -> ForeignAudit:
    """Draw everything, then write it."""
    page = _compose(parts, folder / "report.html")
    tables = {
        "words": parts.words.table,
        **parts.compared.tables,
        **(_exact_tables(parts.examined) if parts.examined else {}),
        **(parts.removed.tables if parts.removed else {}),
        "verdicts": verdict_table(parts.verdicts),
    }
    save_tables(tables, folder / "tables")
    for picture in page.pictures():
        picture.save(folder / "figures")
    write_html(page, folder / "report.html")
    return ForeignAudit(
        model=parts.asked.model,
        answer=parts.answer,
        verdicts=parts.verdicts,
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


def _compose(parts: Parts, report: Path) -> Page:
    """All that the page shows."""
    asked, metrics = parts.asked, parts.asked.metrics
    lead = (
        f"Test accuracy {accuracy_words(metrics)} on {counted(len(asked.texts.texts), 'text')}; always guessing the "
        f"commonest class would give {100 * metrics['majority_accuracy']:.1f} %."
    )
    return Page(
        title=f"{asked.model.name} on {asked.corpus.name}: can you trust attention as an explanation here?",
        headline=parts.headline,
        answer=parts.answer,
        sections=[
            Section(name="accuracy", title="Is the model worth explaining?", lead=lead, verdicts=parts.worth),
            _words_section(parts),
            *_single_sections(parts),
            parts.compared.section(),
            Section(name="examples", title="Test texts", texts=_examples(parts), key=KEY, on_terminal=False),
            parts.compared.whole_section(),
            _left_out(parts),
        ],
        notices=asked.notices,
        numbers=metrics,
        facts=_facts(parts),
        places={"report": report},
    )


def _words_section(parts: Parts) -> Section:
    """What words get and do."""
    table, corpus = parts.words.table, parts.asked.corpus
    naming = class_naming(corpus.class_names)
    strongest = {name: rows for name, rows in _strongest(table, corpus).items() if len(rows)}
    tables = [_strong_table(place, name, rows) for place, (name, rows) in enumerate(strongest.items())]
    pictures = []
    if "lift" in table:
        tables.append(_attended_table(table))
        if table["effect"].notna().any():
            pictures.append(WORDS.headed(naming).picture({"words": table}))
    removed = int(table["removed"].sum())
    lead = (
        f"{counted(removed, 'occurrence')} of {counted(int((table['removed'] > 0).sum()), 'word')} were taken away, "
        "each alone, and it was looked at how far the output moves. Which words belong to a class the training split "
        "says; attention and effects are of test texts."
    )
    return Section(
        name="words",
        title="Across the corpus: what words get, and what they do",
        lead=f"{lead} {_correlated(table)}".strip(),
        verdicts=parts.on_words,
        tables=tables,
        pictures=pictures,
    )


def _correlated(table: pd.DataFrame) -> str:
    """How attention in one half of the texts goes with effects in the other."""
    both = table.dropna(subset=["lift_apart", "effect_apart"]) if "lift_apart" in table else table.iloc[:0]
    if len(both) < 3 or both["lift_apart"].nunique() < 2 or both["effect_apart"].nunique() < 2:
        return ""
    found = both["lift_apart"].corr(both["effect_apart"], method="spearman")
    return f"The rank correlation of a word's attention and its effect is {found:+.2f} ({len(both):,} words)."


def _strongest(table: pd.DataFrame, corpus: Corpus) -> dict[str, pd.DataFrame]:
    """For each class the words that give it most, among those that were taken away several times."""
    known = table[table["removed"] > 1].assign(attention=table["lift"] if "lift" in table else float("nan"))
    return strongest_tokens(known, corpus.class_names)


def _strong_table(place: int, name: str, rows: pd.DataFrame) -> PageTable:
    renamed = {"token": "word", "polarity": "gives", "attention": "attention × even", "count": "in training"}
    data = rows.rename(columns=renamed)
    cells = data.assign(
        **{
            "gives": [f"{abs(value):+.3f}" for value in data["gives"]],
            "attention × even": ["–" if pd.isna(value) else f"{value:.2f}" for value in data["attention × even"]],
        }
    )
    return PageTable(name=f"strongest-{place}", title=f"give most to {name}", cells=cells, data=data)


def _attended_table(table: pd.DataFrame) -> PageTable:
    """The words with the most attention, of those that occur several times."""
    rows = table[table["occurrences"] > 2].nlargest(ATTENDED, "lift")
    data = rows[["token", "lift", "effect", "occurrences"]].rename(columns={"token": "word"})
    data = data.rename(columns={"lift": "attention × even", "effect": "output moves", "occurrences": "times"})
    shown = {
        name: ["–" if pd.isna(value) else f"{value:.2f}" for value in data[name]]
        for name in ("attention × even", "output moves")
    }
    return PageTable(name="most-attended", title="get most attention", cells=data.assign(**shown), data=data)


def _single_sections(parts: Parts) -> Iterator[Section]:
    """For one decision, and whether another attention could tell another story."""
    if parts.examined is not None:
        yield parts.examined.erased.section()
        yield parts.examined.attacked.section()
    elif parts.removed is not None:
        yield parts.removed.section()


def _left_out(parts: Parts) -> Section:
    """Sections of the usual audit that do not apply, and why."""
    rows = {
        "Other λ, and attention over training time": f"Not asked: {NOT_TRAINED}",
        "One attention for the whole corpus": f"Not asked: {NOT_TRAINED}",
    }
    if parts.examined is None:
        rows["Another attention with the same output; the provably smallest set"] = f"Not asked: {NO_READOUT}"
        rows["Attention scores of the whole vocabulary (C1, C2b)"] = (
            "Not asked: what a word gets depends on the text it stands in; D1, C8c and D2 stand for it."
        )
    if parts.asked.attention is None:
        rows["Whether attention explains (C8c, D2, S4, S6b, D3, D4)"] = f"Not asked: {parts.asked.why_no_attention}"
    for name, why in parts.compared.left_out.items():
        rows[f"Explanation by {name.replace('_', ' ')}"] = f"Not at hand: {why}"
    cells = pd.DataFrame({"section": list(rows), "why": list(rows.values())})
    table = PageTable(name="not-asked", cells=cells)
    return Section(name="not-asked", title="What does not apply here", tables=[table], on_terminal=False)


def _examples(parts: Parts) -> list[Example]:
    """Some of the explained texts, attention beside the best explanation, the smallest set marked."""
    return [_example(parts, row, why) for row, why in _telling(parts).items()]


def _telling(parts: Parts) -> dict[int, str]:
    """The surest text of each of two classes, the surest mistake, and where the smallest set is not attended to."""
    few = parts.few
    said, decided = few.reading.probabilities, few.reading.decisions
    sure, chosen = said.amax(1), dict[int, str]()
    for number, name in enumerate(few.model.class_names[:2]):
        _take(chosen, sure.where(decided == number, -1.0), f"surest for {name}")
    _take(chosen, sure.where(decided != few.labels, -1.0), "surest mistake")
    sets, attention = parts.removed.sets if parts.removed else None, parts.compared.explanation(ATTENTION)
    if sets is not None and attention is not None:
        missed = torch.zeros(len(sets.erased), dtype=torch.float64)
        tops = attention.order[few.reading.units.offsets[:-1]]
        missed[sets.resting & ~sets.gone[tops]] = 1.0
        _take(chosen, missed * sure, "the most attended word is not needed to flip it")
        _take(chosen, missed * sure, "the most attended word is not needed to flip it")
    return dict(list(chosen.items())[:SHOWN])


def _take(chosen: dict[int, str], values: Tensor, why: str) -> None:
    """The text with the largest value that is not there yet, if it is above zero."""
    for row in values.argsort(descending=True, stable=True).tolist():
        if float(values[row]) <= 0:
            return
        if row not in chosen:
            chosen[row] = why
            return


def _example(parts: Parts, row: int, why: str) -> Example:
    few, units = parts.few, parts.few.reading.units
    assert units.texts is not None
    assert units.spans is not None
    place = slice(int(units.offsets[row]), int(units.offsets[row + 1]))
    decided = int(few.reading.decisions[row])
    return make_shaded(
        units.texts[row],
        units.spans[place],
        list(_shadings(parts, place)),
        predicted=few.model.class_names[decided],
        probability=float(few.reading.probabilities[row, decided]),
        label=few.model.class_names[int(few.labels[row])],
        why=why,
    )


def _shadings(parts: Parts, place: slice) -> Iterator[Shading]:
    attention, choice = parts.compared.explanation(ATTENTION), parts.compared.choice
    best = parts.compared.explanation(choice.best) if choice else None
    if attention is not None:
        yield Shading(name="attention", values=attention.scores[place], note="attention {:.3f}")
    if best is not None:
        name = best.method.replace("_", " ")
        yield Shading(name=name, values=best.scores[place], note=f"{name} {{:+.3f}}", signed=best.signed)
    if parts.removed is not None:
        marks = parts.removed.sets.gone[place].double()
        yield Shading(name="smallest set", values=marks, note="{:.0f}")


def _facts(parts: Parts) -> dict[str, dict[str, object]]:
    asked, compared = parts.asked, parts.compared
    return {
        "Data": {"corpus": asked.corpus.name, "test texts": f"{len(asked.texts.texts):,}", "seed": asked.seed},
        "Model": {"name": asked.model.name, "classes": ", ".join(asked.model.class_names), "kind": _kind(asked.model)},
        "Measured": {
            "explained texts": f"{len(parts.few.texts.texts):,}",
            "units go by": asked.how,
            "words taken away": f"{parts.words.passes:,}",
            "changed texts of the metrics": f"{compared.measured.passes:,}",
            "seconds of the metrics": f"{compared.measured.seconds:.1f}",
            "seconds of the explanations": f"{sum(one.seconds or 0 for one in compared.explanations):.1f}",
        },
        "Versions": {**environment()},
    }


def _kind(model: Subject) -> str:
    own = getattr(model, "model", None)
    return type(own if own is not None else model).__name__
