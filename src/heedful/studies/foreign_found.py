"""A model that was not trained here and the texts that it read: what is known of both, what was found, what it says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
from jaxtyping import Int
from torch import Tensor

from heedful.analysis.flips import TraceReading
from heedful.analysis.statistics import share
from heedful.analysis.words import Words
from heedful.claims import Verdict, judge
from heedful.claims.answer import Answer, answer
from heedful.explainers import EXPLAINERS, explain
from heedful.explanations import Explanation
from heedful.notebook import counted
from heedful.report.terminal import printable
from heedful.studies.compare import ATTENTION, Compared
from heedful.studies.examine import ON_REMOVED_WORDS, Examination, chance_words
from heedful.studies.models import Classes, Texts, cut_said, drawn_texts, match_classes
from heedful.studies.removed import Removed
from heedful.studies.wording import left_out_classes
from heedful.subjects import Reading, Subject, check_way
from heedful.text.corpus import Corpus
from heedful.traces import Trace

MORE_TEXTS = 10
"""Of so many times as many texts as are explained the attention and the accuracy are known."""

NO_READOUT = (
    "its logits are not known to be an affine function of its attention weights, without which other weights with the "
    "same output cannot be found."
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


def scope_words(asked: Asked, few: Asked | None) -> str:
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
            scope=scope_words(self.asked, self.few),
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
