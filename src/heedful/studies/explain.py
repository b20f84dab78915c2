"""One text explained: each token with the attention it gets, what it gave to the decision, and what it would push."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.text import Text

from heedful.figures.style import ATTENDED, AWAY, TOWARDS
from heedful.models.classifier import Classifier
from heedful.report.strips import pushes_of, relative
from heedful.studies.excerpts import MOST_SENTENCES, MOST_WORDS, coloured, cut, left_out, telling
from heedful.studies.words import printable
from heedful.text.tables import writable
from heedful.traces import Trace
from heedful.tracing import WordWeights, trace_texts, unit_spans, word_weights

MOST_TOKENS = 12
"""In the table."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The trace of one text and where its tokens stand in it."""

    text: str
    trace: Trace
    spans: list[tuple[int, int]]
    known: list[bool]
    """Whether the model's vocabulary holds the token; others share the unknown token's scores."""
    words: WordWeights | None = None
    """Of a hierarchical model, what it attends to within sentences."""

    def summary(self) -> dict[str, object]:
        """The explanation as plain data, one entry per token."""
        found = self.trace
        probabilities = dict(zip(found.class_names, found.probabilities[0].tolist(), strict=True))
        return {
            "text": self.text,
            "predicted": found.class_names[int(found.predictions[0])],
            "probabilities": probabilities,
            "tokens": [
                {
                    "token": self.text[start:end],
                    "start": start,
                    "end": end,
                    "known": known,
                    "attention_score": score,
                    "attention_weight": weight,
                    "contribution": used,
                    "push": push,
                    "polarity": dict(zip(found.class_names, polarity, strict=True)),
                }
                for (start, end), known, score, weight, used, push, polarity in zip(
                    self.spans,
                    self.known,
                    found.attention_scores.tolist(),
                    found.attention_weights.tolist(),
                    found.contributions.tolist(),
                    pushes_of(found).tolist(),
                    found.polarity_scores.tolist(),
                    strict=True,
                )
            ],
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


def print_explanation(explanation: Explanation, console: Console | None = None, *, everything: bool = False) -> None:
    """The text in colour by attention, by what was used and by what words would push, then a table of its tokens.

    Of a long text the units that matter, unless `everything` is asked for.
    """
    screen = console or Console()
    found = explanation.trace
    predicted = int(found.predictions[0])
    screen.print(Text(f"predicted {found.class_names[predicted]} ({float(found.probabilities[0, predicted]):.1%})"))
    places = None if everything else _places(explanation)
    for name, strip in _strips(explanation, places):
        screen.print(Text(f"{name:11} ", "dim") + strip)
    if places is not None and len(places) < len(explanation.spans):
        noun = "words" if explanation.words is None else "sentences"
        screen.print(Text(left_out(len(places), len(explanation.spans), noun), "dim"))
    _print_table(screen, explanation, everything=everything)


def _places(explanation: Explanation) -> list[int]:
    """The units that are shown of a long text."""
    most = MOST_WORDS if explanation.words is None else MOST_SENTENCES
    return telling(most, explanation.trace.attention_weights, explanation.trace.contributions)


def _strips(explanation: Explanation, places: Sequence[int] | None) -> Iterator[tuple[str, Text]]:
    found, text, spans = explanation.trace, explanation.text, explanation.spans
    yield "attention", coloured(text, spans, relative(found.attention_weights).tolist(), _attended, places)
    if explanation.words is not None:
        yield "in sentences", coloured_words(text, explanation.words, places)
    yield "used here", coloured(text, spans, relative(found.contributions).tolist(), _for_or_against, places)
    yield "would push", coloured(text, spans, relative(pushes_of(found)).tolist(), _for_or_against, places)


def _print_table(screen: Console, explanation: Explanation, *, everything: bool) -> None:
    """The tokens that gave most, with their numbers."""
    weights, used = explanation.trace.attention_weights, explanation.trace.contributions
    pushes, shown = pushes_of(explanation.trace), printable if everything else cut
    screen.print(Text("\nweight α  used α·z  push z   token", "dim"))
    order = used.abs().argsort(descending=True, stable=True).tolist()
    for unit in order if everything else order[:MOST_TOKENS]:
        start, end = explanation.spans[unit]
        unknown = "" if explanation.known[unit] else "  (not in the vocabulary)"
        numbers = f"{float(weights[unit]):8.3f}  {float(used[unit]):+8.2f}  {float(pushes[unit]):+6.2f}"
        screen.print(Text(f"{numbers}   {shown(explanation.text[start:end])}{unknown}"))
    if len(order) > MOST_TOKENS and not everything:
        screen.print(Text(f"and {len(order) - MOST_TOKENS:,} more that gave less (--all shows them)", "dim"))


def coloured_words(text: str, words: WordWeights, sentences: Sequence[int] | None = None) -> Text:
    """The words by their weights within sentences; of some sentences those attended to most."""
    shades, spans = words.relative, words.spans.tolist()
    if sentences is None:
        return coloured(text, spans, shades.tolist(), _attended)
    inside = torch.isin(words.sentences, torch.tensor(sentences))
    places = telling(MOST_WORDS, shades * inside)
    return coloured(text, spans, shades.tolist(), _attended, [place for place in places if inside[place]])


def _attended(shade: float) -> str:
    """White to amber: the more, the more attention."""
    return _mix(ATTENDED, shade)


def _for_or_against(shade: float) -> str:
    """Green speaks for the decision, purple against it."""
    return _mix(TOWARDS if shade >= 0 else AWAY, 0.8 * abs(shade))


def _mix(colour: str, share: float) -> str:
    """White turned into a colour by a share."""
    channels = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    red, green, blue = (round(255 + (channel - 255) * min(1.0, max(0.0, share))) for channel in channels)
    return f"#{red:02x}{green:02x}{blue:02x}"
