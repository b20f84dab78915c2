"""The page of the audit of a model that was not trained here: every section that applies, and why others do not."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from heedful.claims.answer import CORPUS as CORPUS_QUESTION
from heedful.claims.answer import STORY
from heedful.figures.picture import Figure
from heedful.figures.words import attention_against_effect
from heedful.notebook import counted
from heedful.pipeline import environment
from heedful.report.page import Page, PageTable, Section, verdicts_section
from heedful.studies.foreign_found import NO_READOUT, Parts
from heedful.studies.foreign_texts import key_of, opening, texts_of, texts_section
from heedful.studies.telling import rule_of
from heedful.studies.wording import accuracy_words, class_naming, strongest_tokens
from heedful.subjects import Subject
from heedful.text.corpus import Corpus

ATTENDED = 12
"""Words with the most attention that are listed."""

NOT_TRAINED = "the model was not trained here."

WORDS = Figure(
    name="attention-and-effect",
    title="Attention and effect of words",
    caption="Every point is a word that was taken away. Where attention explains, words that move the output lie high, "
    "above those that do not; the line is an even share.",
    needs=("words",),
    draw=lambda tables: attention_against_effect(tables["words"]),
)


def compose(parts: Parts, report: Path) -> Page:
    """All that the page shows."""
    texts = texts_of(parts)
    asked, metrics = parts.asked, parts.asked.metrics
    worth = (
        f"Test accuracy {accuracy_words(metrics)} on {counted(len(asked.texts.texts), 'text')}; always guessing the "
        f"commonest class would give {100 * metrics['majority_accuracy']:.1f} %."
    )
    return Page(
        title=f"{asked.model.name} on {asked.corpus.name}: can you trust attention as an explanation here?",
        headline=parts.headline,
        answer=parts.answer,
        worth=worth,
        unit=texts.unit,
        opening=opening(texts),
        rule=rule_of(texts.unit),
        key=key_of(texts),
        sections=[
            Section(name="accuracy", title="Is the model worth explaining?", lead=worth, verdicts=parts.worth),
            _words_section(parts),
            *_single_sections(parts),
            parts.compared.section(),
            texts_section(parts, texts),
            parts.compared.whole_section(),
            verdicts_section(parts.verdicts),
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
        question=CORPUS_QUESTION,
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
        yield parts.examined.erased.section(drawn=True)
        yield replace(parts.examined.attacked.section(), question=STORY)
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
