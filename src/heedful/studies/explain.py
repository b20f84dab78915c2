"""One text explained: each token with the attention it gets, what it gave to the decision, and what it would push."""

from dataclasses import dataclass

from heedful.models.classifier import Classifier
from heedful.report.strips import pushes_of
from heedful.text.tables import writable
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
