"""One text explained: each token with the attention it gets and the pull it has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from heedful.models.classifier import Classifier
from heedful.report.strips import own_polarity
from heedful.studies.words import printable
from heedful.text.readers import writable
from heedful.traces import Trace
from heedful.tracing import WordWeights, trace_texts, unit_spans, word_weights


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
                    "pull": pull,
                    "polarity": dict(zip(found.class_names, polarity, strict=True)),
                }
                for (start, end), known, score, weight, pull, polarity in zip(
                    self.spans,
                    self.known,
                    found.attention_scores.tolist(),
                    found.attention_weights.tolist(),
                    own_polarity(found).tolist(),
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
    """The text twice in colour, then a table of its strongest tokens."""
    screen = console or Console()
    found = explanation.trace
    predicted = int(found.predictions[0])
    weights = found.attention_weights / found.attention_weights.max()
    pulls = own_polarity(found)
    strongest = float(pulls.abs().max()) or 1.0
    screen.print(Text(f"predicted {found.class_names[predicted]} ({float(found.probabilities[0, predicted]):.1%})"))
    text, spans = explanation.text, explanation.spans
    screen.print(Text("attends to  ", "dim") + _coloured(text, spans, weights.tolist(), _amber))
    if explanation.words is not None:
        screen.print(Text("in sentences ", "dim") + coloured_words(text, explanation.words))
    screen.print(Text("uses        ", "dim") + _coloured(text, spans, (pulls / strongest).tolist(), _blue_or_vermilion))
    screen.print(Text("\nweight   pull    token", "dim"))
    order = found.attention_weights.argsort(descending=True, stable=True).tolist()
    for unit in order[:12]:
        start, end = explanation.spans[unit]
        unknown = "" if explanation.known[unit] else "  (not in the vocabulary)"
        numbers = f"{float(found.attention_weights[unit]):6.3f}  {float(pulls[unit]):+6.2f}"
        screen.print(Text(f"{numbers}   {printable(explanation.text[start:end])}{unknown}"))


def coloured_words(text: str, words: WordWeights) -> Text:
    """The words by their weights within sentences."""
    return _coloured(text, words.spans.tolist(), words.relative.tolist(), _amber)


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


def _amber(shade: float) -> str:
    """White to amber: the more, the more attention."""
    return _mix((230, 159, 0), shade)


def _blue_or_vermilion(shade: float) -> str:
    """Blue pulls towards the prediction, vermilion away from it."""
    return _mix((86, 160, 211) if shade >= 0 else (230, 130, 70), abs(shade))


def _mix(colour: tuple[int, int, int], share: float) -> str:
    red, green, blue = (round(255 + (channel - 255) * min(1.0, max(0.0, share))) for channel in colour)
    return f"#{red:02x}{green:02x}{blue:02x}"
