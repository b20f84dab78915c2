"""Classifiers that are not heedful's: each erasure is asked of them. What they do not have is said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from heedful.subjects import Reading, Subject
from heedful.web.served import NOT_HERE, Answer, Served, asked, before, curve_along, marked
from heedful.web.work import Check

ALONE = "alone"
"""The ranking by what is lost when a unit alone goes."""
MOST_ALONE = 300
"""Units of a text that are asked about one by one."""


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
        told = asked(reading, marked(len(reading.units.shown), positions)[None], how, check)[0][0]
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
        units = len(reading.units.shown)
        if by == ALONE:
            falls = torch.tensor([0.0 if fall is None else fall for fall in falls_alone(reading, check)])
            order = falls.argsort(descending=True, stable=True).tolist()
        else:
            order = torch.randperm(units, generator=torch.Generator().manual_seed(seed)).tolist()
        curve = curve_along(reading, order, reading.ways[0], check)
        first = next((size for size, flipped in zip(curve["erased"], curve["flipped"], strict=True) if flipped), None)
        flipped_to = None
        if first is not None:
            told = asked(reading, marked(units, order[:first])[None], reading.ways[0], check)[1]
            flipped_to = self.class_names[int(told[0])]
        return {"ranking": by, "order": order, "erased": first, "flipped_to": flipped_to, "curve": curve}

    def _read(self, text: str) -> Reading:
        reading = self.subject.read([text])
        self._check_words(len(reading.units.shown))
        return reading

    def _said(self, reading: Reading) -> Answer:
        return before(self.name, self.class_names, reading.probabilities[0], int(reading.decisions[0]))


def falls_alone(reading: Reading, check: Check) -> list[float | None]:
    """By how much the probability of the decision falls without each unit alone; unknown of a text with very many."""
    units, decision = len(reading.units.shown), int(reading.decisions[0])
    if units > MOST_ALONE:
        return [None] * units
    told, _ = asked(reading, torch.eye(units, dtype=torch.bool), reading.ways[0], check)
    falls: list[float | None] = (reading.probabilities[0, decision] - told[:, decision]).tolist()
    return falls
