"""One text explained: each token with the attention it gets, what it gave to the decision, and what it would push."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from heedful.figures.style import ATTENDED, AWAY, TOWARDS
from heedful.models.classifier import Classifier
from heedful.report.strips import pushes_of, relative
from heedful.studies.words import printable
from heedful.text.readers import writable
from heedful.traces import Trace
from heedful.tracing import WordWeights, trace_texts, unit_spans, word_weights

MOST_TOKENS = 12
"""In the table; --json has all."""


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


def print_explanation(explanation: Explanation, console: Console | None = None) -> None:
    """The text in colour by attention, by what was used and by what words would push, then a table of its tokens."""
    screen = console or Console()
    found = explanation.trace
    predicted = int(found.predictions[0])
    weights, used, pushes = found.attention_weights, found.contributions, pushes_of(found)
    screen.print(Text(f"predicted {found.class_names[predicted]} ({float(found.probabilities[0, predicted]):.1%})"))
    text, spans = explanation.text, explanation.spans
    screen.print(Text("attention   ", "dim") + _coloured(text, spans, relative(weights).tolist(), _attended))
    if explanation.words is not None:
        screen.print(Text("in sentences ", "dim") + coloured_words(text, explanation.words))
    screen.print(Text("used here   ", "dim") + _coloured(text, spans, relative(used).tolist(), _for_or_against))
    screen.print(Text("would push  ", "dim") + _coloured(text, spans, relative(pushes).tolist(), _for_or_against))
    screen.print(Text("\nweight α  used α·z  push z   token", "dim"))
    order = used.abs().argsort(descending=True, stable=True).tolist()
    for unit in order[:MOST_TOKENS]:
        start, end = spans[unit]
        unknown = "" if explanation.known[unit] else "  (not in the vocabulary)"
        numbers = f"{float(weights[unit]):8.3f}  {float(used[unit]):+8.2f}  {float(pushes[unit]):+6.2f}"
        screen.print(Text(f"{numbers}   {printable(text[start:end])}{unknown}"))
    if len(order) > MOST_TOKENS:
        screen.print(Text(f"and {len(order) - MOST_TOKENS:,} more that gave less", "dim"))


def coloured_words(text: str, words: WordWeights) -> Text:
    """The words by their weights within sentences."""
    return _coloured(text, words.spans.tolist(), words.relative.tolist(), _attended)


def _coloured(
    text: str, spans: Sequence[Sequence[int]], shades: Sequence[float], colour: Callable[[float], str]
) -> Text:
    shown = Text()
    place = 0
    for (start, end), shade in zip(spans, shades, strict=True):
        shown.append(printable(text[place:start]))
        shown.append(printable(text[start:end]), f"black on {colour(shade)}")
        place = end
    return shown


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
