"""The page of the audit of a model that was not trained here: every section that applies, and why others do not."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from heedful.figures.picture import Figure
from heedful.figures.words import attention_against_effect
from heedful.notebook import counted
from heedful.pipeline import environment
from heedful.report.page import Page, PageTable, Section
from heedful.report.strips import Example, Shading, make_shaded
from heedful.studies.compare import ATTENTION
from heedful.studies.foreign_found import NO_READOUT, Parts
from heedful.studies.wording import accuracy_words, class_naming, strongest_tokens
from heedful.subjects import Subject
from heedful.text.corpus import Corpus

SHOWN = 5
"""Texts that are shown."""

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

KEY = (
    "Each text as the attention its words get, as the best explanation sees it (green speaks for the decision, purple "
    "against it), and with the smallest set of words found whose removal flips the decision. Hover for the numbers."
)


def compose(parts: Parts, report: Path) -> Page:
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
