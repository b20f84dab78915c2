"""Models that are ready to be asked: runs of heedful's, and other classifiers. What does not apply is said."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.adapters import subject
from heedful.analysis.decisions import decisions_after, erased_logits
from heedful.analysis.erasure import minimum_flips, verify_flip
from heedful.analysis.flips import Grid, TraceReading
from heedful.errors import HeedfulError, InputError, UnknownName
from heedful.models.classifier import Classifier
from heedful.pipeline import Run, read_corpus
from heedful.report import plain
from heedful.report.strips import telling_instances
from heedful.studies.attack import Kind, attack_text
from heedful.studies.explain import RANKINGS, Explanation, erase_text, explain
from heedful.subjects import Reading, Subject
from heedful.text.corpus import Corpus
from heedful.traces import Trace
from heedful.web.work import Check

Answer = dict[str, Any]

LOOKS = 60
"""How many places of a curve are known; of a text with no more units every one is."""

ALONE = "alone"
MOST_ALONE = 300
"""Units of a text that another model is asked about one by one."""
AT_ONCE = 32

EXAMPLES = 3
SHORTEST_EXAMPLE, LONGEST_EXAMPLE = 8, 120
"""Units of a text to start from, where there are such texts."""

ONLY_TRACES = "This model was not made by heedful: its attention is not known, and each erasure is asked of it."
NOT_HERE: Mapping[str, str] = {
    "attention": ONLY_TRACES,
    "minimum": "A smallest set is known only where decisions follow from attention weights, and here they do not.",
    "adversary": "Other weights for the same output are known only where the output is affine in the weights.",
    "tokens": "There is no table of the words of this model.",
}


class TooManyWords(InputError):
    """A text that is longer than this server allows."""


class NotApplicable(InputError):
    """Something that this kind of model does not have."""


@dataclass(frozen=True, kw_only=True)
class Served(ABC):
    """A model that is ready."""

    name: str
    title: str
    words: int
    """How many words a text may have."""
    examples: Sequence[Answer] = ()
    notice: str = ""
    """What to know: why there are no examples."""
    rankings: Sequence[str] = RANKINGS
    missing: Mapping[str, str] = field(default_factory=dict)
    """What does not apply, and why."""
    unit: str = "word"
    quick: bool = False
    """Whether a short text takes so little time that no thread is needed."""

    @property
    @abstractmethod
    def class_names(self) -> tuple[str, ...]: ...

    @abstractmethod
    def explain(self, text: str, check: Check) -> Answer:
        """What is attended to and used in a text."""

    @abstractmethod
    def erase(self, text: str, positions: Sequence[int], rankings: Sequence[str], seed: int, check: Check) -> Answer:
        """What is said without some units, and how far each ranking must go for another decision."""

    def minimum(self, text: str) -> Answer:
        """A smallest set whose erasure flips the decision."""
        raise NotApplicable(NOT_HERE["minimum"])

    def adversary(self, text: str, asked: Kind, shuffles: int, seed: int) -> Answer:
        """The weights farthest from the text's own that keep to what is asked."""
        raise NotApplicable(NOT_HERE["adversary"])

    def tokens(self, find: str, by: str, descending: bool, offset: int, limit: int) -> Answer:
        """Words of the vocabulary with their scores."""
        raise NotApplicable(NOT_HERE["tokens"])

    def summary(self) -> Answer:
        """What this model is and what it offers."""
        return {
            "name": self.name,
            "title": self.title,
            "class_names": list(self.class_names),
            "unit": self.unit,
            "rankings": list(self.rankings),
            "missing": dict(self.missing),
            "examples": list(self.examples),
            "notice": self.notice,
            "facts": self.facts(),
        }

    def facts(self) -> Answer:
        return {}

    def _check_rankings(self, rankings: Sequence[str]) -> None:
        unknown = [name for name in rankings if name not in self.rankings]
        if unknown:
            raise UnknownName("ranking", unknown[0], self.rankings)

    def _check_words(self, count: int) -> None:
        if count > self.words:
            raise TooManyWords(f"A text may have {self.words:,} words here; this one has {count:,}.")


@dataclass(frozen=True, kw_only=True)
class ServedRun(Served):
    """A run of heedful's: everything follows from the trace of a text."""

    run: Run
    model: Classifier
    """In float64, as traces are computed."""

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.model.interface.class_names

    @cached_property
    def _tokens(self) -> pd.DataFrame:
        return self.run.table("tokens")

    def explain(self, text: str, check: Check) -> Answer:
        found = self._explained(text)
        check()
        return {"model": self.name, "unit": self.unit, **found.summary()}

    def _explained(self, text: str) -> Explanation:
        if len(text) > self.words:  # as many letters at least
            self._check_words(len(self.model.interface.read([text]).tokens.numbers))
        return explain(self.model, text)

    def erase(self, text: str, positions: Sequence[int], rankings: Sequence[str], seed: int, check: Check) -> Answer:
        self._check_rankings(rankings)
        trace = self._explained(text).trace
        answer = {**_before(self.name, trace.class_names, trace.probabilities[0], int(trace.predictions[0]))}
        answer |= {"level": "attention", "after": _after(trace, positions)}
        if not rankings:
            return answer | {"rankings": []}
        check()
        erased = erase_text(self.model, text, seed=seed, rankings=rankings, check=check)
        reading, courses = TraceReading(trace=trace), []
        for course in erased.courses:
            check()
            courses.append({**vars(course), "curve": curve_along(reading, course.order, "attention")})
        return answer | erased.summary() | {"rankings": courses}

    def minimum(self, text: str) -> Answer:
        trace = self._explained(text).trace
        table = minimum_flips(trace)
        positions = table["positions"].iloc[0]
        after = None if positions is None else _after(trace, positions)
        return {
            **_before(self.name, trace.class_names, trace.probabilities[0], int(trace.predictions[0])),
            "units": len(trace.attention_weights),
            "erased": None if positions is None else len(positions),
            "positions": positions,
            "flipped_to": None if after is None else after["predicted"],
            "verified": None if positions is None else bool(verify_flip(trace, table)["holds"].iloc[0]),
            "after": after,
        }

    def adversary(self, text: str, asked: Kind, shuffles: int, seed: int) -> Answer:
        if len(text) > self.words:
            self._explained(text)
        attacked = attack_text(self.model, text, asked=asked, shuffles=shuffles, seed=seed)
        return {"model": self.name, **attacked.summary()}

    def tokens(self, find: str, by: str, descending: bool, offset: int, limit: int) -> Answer:
        table = self._tokens
        if by and by not in table:
            raise UnknownName("column", by, map(str, table.columns))
        rows = table[table["token"].str.contains(find, case=False, regex=False)] if find else table
        if by:
            rows = rows.sort_values([by, "token"] if by != "token" else by, ascending=not descending)
        shown = rows.iloc[offset : offset + limit]
        return {"model": self.name, "total": len(rows), "columns": list(map(str, rows)), "rows": plain(shown)}

    def facts(self) -> Answer:
        settings, metrics = self.run.settings.model, self.run.metrics
        return {
            "corpus": self.run.manifest["corpus"],
            "test_accuracy": metrics["test_accuracy"],
            "attention": settings.attention,
            "encoder": settings.encoder,
            "score_scale": settings.score_scale,
            "vocabulary": len(self.model.interface.vocabulary),
        }


def _before(
    name: str, class_names: Sequence[str], probabilities: Float[Tensor, " classes"], predicted: int
) -> dict[str, Any]:
    return {
        "model": name,
        "predicted": class_names[predicted],
        "probabilities": dict(zip(class_names, probabilities.tolist(), strict=True)),
    }


def _after(trace: Trace, positions: Sequence[int]) -> Answer:
    """What the trace says without these units: exactly, from its numbers."""
    gone = marked(len(trace.attention_weights), positions)
    predicted = int(decisions_after(trace, gone)[0])
    return {
        "positions": sorted({*positions}),
        "erased": int(gone.sum()),
        "predicted": trace.class_names[predicted],
        "flipped": predicted != int(trace.predictions[0]),
        "probabilities": dict(zip(trace.class_names, erased_logits(trace, gone).softmax(1)[0].tolist(), strict=True)),
    }


def marked(units: int, positions: Sequence[int]) -> Tensor:
    """A mark for each of the units; positions that there are not are refused."""
    wrong = next((place for place in positions if not 0 <= place < units), None)
    if wrong is not None:
        raise InputError(f"The text has the positions 0 to {units - 1}; {wrong} is none of them.")
    gone = torch.zeros(units, dtype=torch.bool)
    gone[torch.tensor(list(positions), dtype=torch.int64)] = True
    return gone


def curve_along(reading: Reading, order: Sequence[int], how: str, check: Check = lambda: None) -> Answer:
    """The probability of the decision on the only text, with the first units of an order gone: so many, from 0 on."""
    decision, units = int(reading.decisions[0]), len(order)
    sizes = [0, *Grid(steps=LOOKS).sizes(units)]
    places = torch.empty(units, dtype=torch.int64)
    places[torch.tensor(list(order))] = torch.arange(units)
    gone = torch.stack([places < size for size in sizes])
    return {"erased": sizes, "probability": asked(reading, gone, how, check)[:, decision].tolist()}


def asked(
    reading: Reading, gone: "Int[Tensor, 'changes units'] | Tensor", how: str, check: Check
) -> Float[Tensor, "changes classes"]:
    """What is said of the only text after each of these changes, a few of them at a time."""
    told = []
    for some in gone.split(AT_ONCE):
        check()
        told.append(reading.without(torch.zeros(len(some), dtype=torch.int64), some.flatten(), how))
    return torch.cat(told)


@dataclass(frozen=True, kw_only=True)
class ServedSubject(Served):
    """Any other classifier: units leave the text, or are hidden, and it is asked again."""

    subject: Subject
    rankings: Sequence[str] = (ALONE, "random")
    missing: Mapping[str, str] = field(default_factory=lambda: NOT_HERE)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.subject.class_names

    def explain(self, text: str, check: Check) -> Answer:
        reading = self._read(text)
        shown, spans = reading.units.shown, reading.units.spans
        assert spans is not None
        falls = falls_alone(reading, check)
        tokens = [
            {"token": name, "start": start, "end": end, "known": True, "alone": fall}
            for name, (start, end), fall in zip(shown, spans.tolist(), falls, strict=True)
        ]
        return {**self._said(reading), "unit": self.unit, "text": text, "tokens": tokens}

    def erase(self, text: str, positions: Sequence[int], rankings: Sequence[str], seed: int, check: Check) -> Answer:
        self._check_rankings(rankings)
        reading = self._read(text)
        how, decision = reading.ways[0], int(reading.decisions[0])
        told = asked(reading, marked(len(reading.units.shown), positions)[None], how, check)[0]
        after = {
            "positions": sorted({*positions}),
            "erased": len({*positions}),
            "predicted": self.class_names[int(told.argmax())],
            "flipped": int(told.argmax()) != decision,
            "probabilities": dict(zip(self.class_names, told.tolist(), strict=True)),
        }
        courses = [self._course(reading, by, seed, check) for by in rankings]
        return {**self._said(reading), "level": how, "after": after, "rankings": courses}

    def _course(self, reading: Reading, by: str, seed: int, check: Check) -> Answer:
        units, decision = len(reading.units.shown), int(reading.decisions[0])
        if by == ALONE:
            falls = torch.tensor([0.0 if fall is None else fall for fall in falls_alone(reading, check)])
            order = falls.argsort(descending=True, stable=True).tolist()
        else:
            order = torch.randperm(units, generator=torch.Generator().manual_seed(seed)).tolist()
        how = reading.ways[0]
        curve = curve_along(reading, order, how, check)
        places = torch.empty(units, dtype=torch.int64)
        places[torch.tensor(order)] = torch.arange(units)
        told = asked(reading, torch.stack([places < size for size in curve["erased"]]), how, check).argmax(1).tolist()
        first = next(((size, one) for size, one in zip(curve["erased"], told, strict=True) if one != decision), None)
        erased, flipped_to = (None, None) if first is None else (first[0], self.class_names[first[1]])
        return {"ranking": by, "order": order, "erased": erased, "flipped_to": flipped_to, "curve": curve}

    def _read(self, text: str) -> Reading:
        reading = self.subject.read([text])
        self._check_words(len(reading.units.shown))
        return reading

    def _said(self, reading: Reading) -> Answer:
        return _before(self.name, self.class_names, reading.probabilities[0], int(reading.decisions[0]))


def falls_alone(reading: Reading, check: Check) -> list[float | None]:
    """By how much the probability of the decision falls without each unit alone; unknown of a text with very many."""
    units, decision = len(reading.units.shown), int(reading.decisions[0])
    if units > MOST_ALONE:
        return [None] * units
    told = asked(reading, torch.eye(units, dtype=torch.bool), reading.ways[0], check)
    falls: list[float | None] = (reading.probabilities[0, decision] - told[:, decision]).tolist()
    return falls


def serve_run(run: Run, *, words: int) -> ServedRun:
    """A run that is ready: its model in float64, and some texts of its corpus to start from."""
    settings = run.settings
    if settings.model.attention_weights == "given":
        raise InputError(
            f"'{run.path.name}' was trained with attention weights from elsewhere, which a new text does not have. "
            "Serve a run with weights of its own."
        )
    model = run.model().exact()
    examples, notice = examples_of(run)
    model_words = f"{settings.model.attention} attention, {_encoder_words(settings.model.encoder)}"
    return ServedRun(
        name=run.path.name,
        title=f"{run.manifest['corpus']}: {model_words}, λ = {settings.model.score_scale:g}",
        words=words,
        examples=examples,
        notice=notice,
        unit="sentence" if model.hierarchical else "word",
        quick=not model.contextual,
        run=run,
        model=model,
    )


def _encoder_words(encoder: str) -> str:
    return "no encoder" if encoder == "none" else f"encoder {encoder}"


def serve_subject(folder: Path, *, words: int) -> ServedSubject:
    """A transformers classifier that is ready; nothing is fetched from elsewhere."""
    found = subject(folder)
    return ServedSubject(name=folder.resolve().name, title=folder.resolve().name, words=words, subject=found)


def examples_of(run: Run) -> tuple[list[Answer], str]:
    """Some texts of the test split, each with why; where the corpus is not at hand, none and why."""
    try:
        corpus = read_corpus(run.settings)
    except HeedfulError as error:
        return [], f"There are no texts to start from: {error}"
    if corpus.fingerprint != run.manifest["fingerprint"]:
        return [], "There are no texts to start from: the data are not those of the training any more."
    return telling_texts(run.trace(), corpus), ""


def telling_texts(trace: Trace, corpus: Corpus) -> list[Answer]:
    """A sure decision, a sure mistake, and one where attention and use part, of texts that are not very long."""
    usual = (trace.lengths >= SHORTEST_EXAMPLE) & (trace.lengths <= LONGEST_EXAMPLE)
    rows = usual.nonzero().squeeze(1) if usual.any() else torch.arange(len(trace))
    found = telling_instances(trace.take(rows), most=len(trace.class_names) + EXAMPLES)
    kinds: dict[str, tuple[int, str]] = {}
    for number, why in found:
        kinds.setdefault(why.partition(" for ")[0], (int(rows[number]), why))
    chosen = dict([*kinds.values(), *((int(rows[number]), why) for number, why in found)])
    return [
        {"text": corpus.test.texts[row], "label": corpus.class_names[int(corpus.test.labels[row])], "why": why}
        for row, why in islice(chosen.items(), EXAMPLES)
    ]
