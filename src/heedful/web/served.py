"""Models that are ready to be asked, and what they answer: plain data, by the names of `heedful explain --json`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.decisions import decisions_after, erased_logits
from heedful.analysis.erasure import minimum_flips, verify_flip
from heedful.analysis.flips import Grid, TraceReading
from heedful.errors import InputError, UnknownName
from heedful.models.classifier import Classifier
from heedful.pipeline import Run
from heedful.report import plain
from heedful.studies.attack import Kind, attack_text
from heedful.studies.explain import RANKINGS, Explanation, erase_text, explain
from heedful.subjects import Reading
from heedful.traces import Trace
from heedful.web.work import Check

Answer = dict[str, Any]

LOOKS = 60
"""How many places of a curve are known; of a text with no more units every one is."""

AT_ONCE = 32
"""Changes of a text that are asked about together."""

NOT_HERE: Mapping[str, str] = {
    "attention": "This model was not made by heedful: its attention is not known, and each erasure is asked of it.",
    "minimum": "A smallest set is known only where decisions follow from attention weights, and here they do not.",
    "adversary": "Other weights for the same output are known only where the output is affine in the weights.",
    "tokens": "There is no table of the words of this model.",
}


class TooManyWords(InputError):
    """A text that is longer than this server allows."""


class NotApplicable(InputError):
    """Something that this kind of model does not have."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """What other weights must keep to, and how often the text's own are shuffled."""

    kind: Kind
    shuffles: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which words of the vocabulary: a part of them, in an order."""

    find: str
    by: str
    descending: bool
    offset: int
    limit: int


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

    def minimum(self, _: str) -> Answer:
        """A smallest set whose erasure flips the decision on a text."""
        raise NotApplicable(NOT_HERE["minimum"])

    def adversary(self, _: str, __: Attack) -> Answer:
        """The weights farthest from a text's own that keep to what is asked."""
        raise NotApplicable(NOT_HERE["adversary"])

    def tokens(self, _: Wanted) -> Answer:
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
        answer = {**before(self.name, trace.class_names, trace.probabilities[0], int(trace.predictions[0]))}
        answer |= {"level": "attention", "after": _after(trace, positions)}
        if not rankings:
            return answer | {"rankings": []}
        check()
        erased = erase_text(self.model, text, seed=seed, rankings=rankings, check=check)
        reading, courses = TraceReading(trace=trace), []
        for course in erased.courses:
            check()
            courses.append(
                {**vars(course), "curve": curve_along(reading, course.order, "attention", check, flip=course.erased)}
            )
        return answer | erased.summary() | {"rankings": courses}

    def minimum(self, text: str) -> Answer:
        trace = self._explained(text).trace
        table = minimum_flips(trace)
        positions = table["positions"].iloc[0]
        after = None if positions is None else _after(trace, positions)
        return {
            **before(self.name, trace.class_names, trace.probabilities[0], int(trace.predictions[0])),
            "units": len(trace.attention_weights),
            "erased": None if positions is None else len(positions),
            "positions": positions,
            "flipped_to": None if after is None else after["predicted"],
            "verified": None if positions is None else bool(verify_flip(trace, table)["holds"].iloc[0]),
            "after": after,
        }

    def adversary(self, text: str, attack: Attack) -> Answer:
        if len(text) > self.words:
            self._explained(text)
        attacked = attack_text(self.model, text, asked=attack.kind, shuffles=attack.shuffles, seed=attack.seed)
        return {"model": self.name, **attacked.summary()}

    def tokens(self, wanted: Wanted) -> Answer:
        rows, by = self._tokens, wanted.by
        if by and by not in rows:
            raise UnknownName("column", by, map(str, rows.columns))
        if wanted.find:
            rows = rows[rows["token"].str.contains(wanted.find, case=False, regex=False)]
        if by:
            rows = rows.sort_values(list(dict.fromkeys([by, "token"])), ascending=not wanted.descending)
        shown = rows.iloc[wanted.offset : wanted.offset + wanted.limit]
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


def before(
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


def marked(units: int, positions: Sequence[int]) -> Bool[Tensor, " units"]:
    """A mark for each of the units; positions that there are not are refused."""
    wrong = next((place for place in positions if not 0 <= place < units), None)
    if wrong is not None:
        raise InputError(f"The text has the positions 0 to {units - 1}; {wrong} is none of them.")
    gone = torch.zeros(units, dtype=torch.bool)
    gone[torch.tensor(list(positions), dtype=torch.int64)] = True
    return gone


def curve_along(
    reading: Reading, order: Sequence[int], how: str, check: Check, *, flip: int | None = None
) -> dict[str, list[Any]]:
    """The only text with the first units of an order gone: so many (from 0 on, among them `flip`), the probability of
    its decision then, and whether the decision is another one."""
    units, decision = len(order), int(reading.decisions[0])
    sizes = sorted({0, *Grid(steps=LOOKS).sizes(units), *(() if flip is None else (flip,))})
    places = torch.empty(units, dtype=torch.int64)
    places[torch.tensor(list(order))] = torch.arange(units)
    gone = torch.stack([places < size for size in sizes])
    told, decided = asked(reading, gone, how, check)
    return {"erased": sizes, "probability": told[:, decision].tolist(), "flipped": (decided != decision).tolist()}


def asked(
    reading: Reading, gone: Bool[Tensor, "changes units"], how: str, check: Check
) -> tuple[Float[Tensor, "changes classes"], Int[Tensor, " changes"]]:
    """What is said of the only text after each of these changes, and decided; a few of them at a time."""
    told, decided = [], []
    for some in gone.split(AT_ONCE):
        check()
        rows, places = torch.zeros(len(some), dtype=torch.int64), some.flatten()
        told.append(reading.without(rows, places, how))
        decided.append(reading.decide(rows, places, how))
    return torch.cat(told), torch.cat(decided)
