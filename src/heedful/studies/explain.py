"""One text: explained by what each token gets and gives, and erased along every ranking until its decision flips."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from heedful.analysis.erasure import first_flips, minimum_flips
from heedful.analysis.rankings import ranked
from heedful.explanation_files import ERASER, write_explanations
from heedful.explanations import Explanation as Scored
from heedful.models.classifier import Classifier
from heedful.notebook import Strip, View, Viewed
from heedful.probes.reading import input_flips
from heedful.report.strips import pushes_of, shadings_of
from heedful.text.tables import writable
from heedful.traces import Trace
from heedful.tracing import WordWeights, trace_texts, unit_spans, word_weights

RANKINGS = ("attention", "gradient", "product", "polarity", "margin", "random")
LOOKS = 50
"""How often a shortened text is read again, for each ranking; of a text with more units a count is an upper bound."""


@dataclass(frozen=True, kw_only=True)
class Explanation(Viewed):
    """The trace of one text and where its tokens stand in it."""

    ENDINGS: ClassVar = (".jsonl", ERASER)
    text: str
    trace: Trace
    spans: list[tuple[int, int]]
    known: list[bool]
    """Whether the model's vocabulary holds the token; others share the unknown token's scores."""
    words: WordWeights | None = None
    """Of a hierarchical model, what it attends to within sentences."""

    @property
    def view(self) -> View:
        found, units = self.trace, [self.text[start:end] for start, end in self.spans]
        decision = int(found.predictions[0])
        return View(
            title=f"predicted {found.class_names[decision]} ({float(found.probabilities[0, decision]):.1%})",
            parts=[
                Strip(heading=one.name, units=units, values=one.values.tolist(), signed=one.signed)
                for one in shadings_of(found)
            ],
            drawing="units",
            data=found.to_frame().assign(unit=units),
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per token."""
        table = self.trace.to_frame().drop(columns="instance")
        places = pd.DataFrame(self.spans, columns=["start", "end"])
        return table.assign(unit=[self.text[start:end] for start, end in self.spans], **places, known=self.known)

    def save(self, path: Path | str) -> None:
        """Write it by the ending of the name: a table (.csv, .parquet, .tex), a picture (.svg, .pdf, .png), a page
        (.html), what is attended to and what is used (.jsonl), or what is attended to in ERASER's form
        (.eraser.jsonl)."""
        if Path(path).suffix != ".jsonl":
            super().save(path)
        else:
            attended, used = self.explanations
            write_explanations(path, [attended] if str(path).endswith(ERASER) else [attended, used])

    @property
    def explanations(self) -> tuple[Scored, Scored]:
        """Attention and what was used, as explanations of the decision."""
        found = self.trace
        about: dict[str, Any] = {"texts": [self.text], "spans": [self.spans], "class_names": found.class_names}
        about["targets"] = found.predictions
        weights, used = found.attention_weights.tolist(), found.contributions.tolist()
        return (
            Scored.of_lists([weights], method="attention", signed=False, **about),
            Scored.of_lists([used], method="contribution", signed=True, **about),
        )

    def summary(self) -> dict[str, object]:
        """The explanation as plain data, one entry per token."""
        found = self.trace
        columns: dict[str, Sequence[object]] = {
            "token": [self.text[start:end] for start, end in self.spans],
            "start": [start for start, _ in self.spans],
            "end": [end for _, end in self.spans],
            "known": self.known,
            "attention_score": found.attention_scores.tolist(),
            "attention_weight": found.attention_weights.tolist(),
            "contribution": found.contributions.tolist(),
            "push": pushes_of(found).tolist(),
            "polarity": [dict(zip(found.class_names, one, strict=True)) for one in found.polarity_scores.tolist()],
        }
        return {
            "text": self.text,
            "predicted": found.class_names[int(found.predictions[0])],
            "probabilities": dict(zip(found.class_names, found.probabilities[0].tolist(), strict=True)),
            "tokens": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
            **({} if self.words is None else {"words": word_rows(self.text, self.words)}),
        }


def word_rows(text: str, words: WordWeights) -> list[dict[str, object]]:
    """Words as plain data, each with the number of its sentence and its weight there."""
    return [
        {"word": text[start:end], "start": start, "end": end, "sentence": sentence, "weight": weight}
        for (start, end), sentence, weight in zip(
            words.spans.tolist(), words.sentences.tolist(), words.weights.tolist(), strict=True
        )
    ]


def explain(model: Classifier, text: str) -> Explanation:
    """What the model attends to and what it uses in one text."""
    text = str(writable(text))
    found, split = trace_texts(model, [text])
    spans = [(int(start), int(end)) for start, end in unit_spans(model, split, 0).tolist()]
    known = [True] * len(spans) if model.hierarchical else (split.tokens.numbers > 0).tolist()
    words = word_weights(model, split, 0) if model.hierarchical else None
    return Explanation(text=text, trace=found, spans=spans, known=known, words=words)


@dataclass(frozen=True, kw_only=True)
class Course:
    """One ranking on one text: the order of erasure, and how many units go before the decision flips."""

    ranking: str
    order: list[int]
    erased: int | None
    flipped_to: str | None


@dataclass(frozen=True, kw_only=True)
class ErasedText:
    """One text: its units, the decision, the course of every ranking and the minimum set."""

    units: Sequence[str]
    predicted: str
    courses: list[Course]
    minimum: list[int] | None = None
    minimum_to: str | None = None
    inputs: str | None = None
    """How units leave the text (delete, mask) when not their weights are erased; there is no exact minimum then."""
    text: str = ""
    words: WordWeights | None = None
    """Of a hierarchical model, what it attends to within sentences."""
    unknown: int = 0
    """How many of its words the vocabulary does not hold."""
    tied: bool = False
    """Whether nothing but the order of the classes decides when everything is erased: the bias prefers none."""

    def summary(self) -> dict[str, Any]:
        exact = {"minimum": {"positions": self.minimum, "flipped_to": self.minimum_to}} if self.inputs is None else {}
        inner = {} if self.words is None else {"words": word_rows(self.text, self.words)}
        return {
            "level": self.inputs or "attention",
            "unknown_words": self.unknown,
            "units": list(self.units),
            "predicted": self.predicted,
            "tied_when_all_is_erased": self.tied,
            "rankings": [vars(course) for course in self.courses],
            **exact,
            **inner,
        }


def erase_text(
    model: Classifier,
    text: str,
    *,
    inputs: str | None = None,
    seed: int = 0,
    rankings: Sequence[str] = RANKINGS,
    check: Callable[[], None] = lambda: None,
) -> ErasedText:
    """Erase the attention weights of one text along every ranking until the decision flips.

    With `inputs` (delete or mask) the units leave the text instead, and the model reads what remains. `check` is called
    before each ranking: what it raises ends the work.
    """
    text = str(writable(text))
    trace, split = trace_texts(model, [text])
    assert trace.units is not None

    def course(by: str) -> Course:
        check()
        if inputs is None:
            row = first_flips(trace, by=by, seed=seed).iloc[0]
        else:
            row = input_flips(model, split, by, mode=inputs, steps=LOOKS, spacing="geometric", seed=seed).iloc[0]
        return Course(
            ranking=by,
            order=ranked(trace, by, seed=seed).tolist(),
            erased=None if pd.isna(row["erased"]) else int(row["erased"]),
            flipped_to=_class(trace, row["flipped_to"]),
        )

    erased = ErasedText(
        units=trace.units,
        predicted=trace.class_names[int(trace.predictions[0])],
        courses=[course(by) for by in rankings],
        inputs=inputs,
        text=text,
        words=word_weights(model, split, 0) if model.hierarchical else None,
        unknown=int((split.tokens.numbers == 0).sum()),
        tied=int((trace.bias == trace.bias.max()).sum()) > 1,
    )
    if inputs is not None:
        return erased
    smallest = minimum_flips(trace).iloc[0]
    return replace(erased, minimum=smallest["positions"], minimum_to=_class(trace, smallest["flipped_to"]))


def _class(trace: Trace, number: Any) -> str | None:
    return None if pd.isna(number) else trace.class_names[int(number)]
