"""A world that was made: what the audit sees of it, and the truth of its claims and questions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from heedful.claims import CLAIMS, Decision
from heedful.claims.answer import CHANCE, FEWEST_DECISIONS, LEADS, SCORES, SOUND, TEXTS
from heedful.claims.scores import LEARNED
from heedful.studies.calibration.evidence import Evidence, Population

Planted = Decision | float | None
"""What is known of a question by planting: its answer; the share of texts in which attention is on what decides; or
nothing, so that the population tells."""

NEAR = 0.05
"""So near a line the truth hangs on chance."""

ASKED: Mapping[str, tuple[str, ...]] = {"corpus": (SOUND, SCORES, TEXTS), "decision": (CHANCE, LEADS)}
"""The claims that each question rests on."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A world that was made."""

    seen: Evidence
    """Its test texts, and the groups that training counts suggest."""
    whole: Evidence
    """Very many fresh texts, and the groups that were planted."""
    planted: Mapping[str, Planted]
    """By question; one whose truth is neither planted nor to be had without its own claims is not here."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What the right answer is, and whether "not shown" is right as well."""

    decision: Decision
    number: float | None = None
    """What was held against the line, where something was."""
    near: bool = False
    """The truth lies so near the line that a careful answer is "not shown"."""
    moot: bool = False
    """There is nothing to ask for: the model has learned nothing, its words are too few or push at random, or its
    decisions rest on no part of their texts."""


def claim_truth(claim: str, whole: Population) -> Truth | None:
    """A claim is true if its number in the population lies above its line; None where it has no number."""
    return _beyond(whole.margin(claim), whole.numbers[claim].value) if claim in whole.numbers else None


def question_truth(question: str, planted: Planted, whole: Population) -> Truth:
    """By planting where that tells, else by the claims in the population; where words push at random always no."""
    truth = _asked(question, planted, whole)
    if question == "corpus" and whole.margin(SOUND) < 0 and truth.decision != "not shown":
        truth = replace(truth, decision="no", moot=True)
    return replace(truth, moot=truth.moot or truth.decision == "not shown" or _moot(question, whole))


def _asked(question: str, planted: Planted, whole: Population) -> Truth:
    if isinstance(planted, str):
        return Truth(decision=planted)
    if planted is not None:
        return _beyond(planted - CLAIMS[LEADS].threshold, planted)
    weakest = min(ASKED[question], key=whole.margin)
    return _beyond(whole.margin(weakest), whole.numbers[weakest].value if weakest in whole.numbers else None)


def _beyond(margin: float, number: float | None) -> Truth:
    return Truth(decision="yes" if margin > 0 else "no", number=number, near=abs(margin) < NEAR)


def _moot(question: str, whole: Population) -> bool:
    if whole.margin(LEARNED) < NEAR:
        return True
    if question == "decision":
        return whole.resting < FEWEST_DECISIONS + NEAR
    return not all(whole.enough(claim) for claim in ASKED[question])
