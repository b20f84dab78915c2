"""The audit's answer in worlds whose truth is known, and how often the answer, or a claim behind it, is not the truth.

The truth of a claim is its own number in the population: on so many fresh texts that chance is next to nothing. That
another attention could tell another story is what claim J3b says, and its truth that of the claim. A yes
is wrong where the truth is not yes, a no where it is not no. "Not shown" is held against the answer where the truth is
clear: not near a line, and about something that there is.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from heedful.analysis.adversary import told_elsewhere
from heedful.analysis.flips import measure
from heedful.analysis.statistics import Estimate
from heedful.claims import CLAIMS, Decision
from heedful.claims.answer import CHANCE, FEWEST_DECISIONS, LEADS, OTHERWISE, SCORES, SOUND, TEXTS
from heedful.claims.manipulation import ELSEWHERE
from heedful.claims.scores import LEARNED, outcomes
from heedful.studies.attack import KINDS
from heedful.studies.calibration.planted import grow, plant
from heedful.studies.calibration.worlds import TRAINED, Evidence, Planted, World
from heedful.studies.examine import examine
from heedful.sweep.loop import cores
from heedful.sweep.processes import processes
from heedful.traces import Trace

Rows = list[dict[str, Any]]

ASKED: Mapping[str, tuple[str, ...]] = {
    "corpus": (SOUND, SCORES, TEXTS), "decision": (CHANCE, LEADS), "story": (OTHERWISE,),
}  # fmt: skip
"""The claims that each question rests on."""

BEHIND = (LEARNED, *ASKED["corpus"], *ASKED["decision"], *ASKED["story"])
"""The claims that the answer rests on."""

ERASED = ("attention", "random")  # the rankings that these claims read
REPLACED = {ELSEWHERE: KINDS[ELSEWHERE]}  # and the kind of other weights
NEAR = 0.05  # so near a line the truth hangs on chance


@dataclass(frozen=True, kw_only=True)
class Population:
    """What is true of a world: the number of every claim behind the answer that has one, and what decisions rest on."""

    numbers: Mapping[str, Estimate]
    resting: float
    """The share of decisions that flip before everything is erased: they rest on parts of their text."""

    def margin(self, claim: str) -> float:
        """How far the number lies above the claim's line; minus infinity where there is none."""
        return self.numbers[claim].value - CLAIMS[claim].threshold if claim in self.numbers else -np.inf

    def enough(self, claim: str) -> bool:
        """Whether the world holds as many observations as the claim asks for."""
        return claim in self.numbers and min(self.numbers[claim].sides) >= CLAIMS[claim].least


@dataclass(frozen=True, kw_only=True)
class RightAnswer:
    """What the right answer is, and whether "not shown" is right as well."""

    truth: Decision
    number: float | None = None
    """What was held against the line, where something was."""
    near: bool = False
    """The truth lies so near the line that a careful answer is "not shown"."""
    moot: bool = False
    """There is nothing to ask for: the model has learned nothing, its words are too few or push at random, or its
    decisions rest on no part of their texts."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What the audit says of worlds, beside what is true of them."""

    answers: pd.DataFrame
    """One row per world and question."""
    claims: pd.DataFrame
    """One row per world and claim behind the answer."""


def calibrate(
    wanted: Sequence[World], *, workers: int | None = None, watch: Callable[[int, int], None] | None = None
) -> Calibration:
    """Make every world and judge it; rows in the order of the worlds, whatever the number of processes."""
    judged: list[tuple[Rows, Rows]] = []
    for rows in _judged(wanted, workers or cores()):
        judged.append(rows)
        if watch is not None:
            watch(len(judged), len(wanted))
    answers, claims = (pd.DataFrame([*itertools.chain(*rows)]) for rows in zip(*judged, strict=True))
    return Calibration(answers=answers, claims=claims)


def _judged(wanted: Sequence[World], workers: int) -> Iterator[tuple[Rows, Rows]]:
    if workers == 1 or len(wanted) < 2:
        yield from map(judge_world, wanted)
        return
    with processes(workers) as pool:
        yield from pool.map(judge_world, wanted)


def judge_world(world: World) -> tuple[Rows, Rows]:
    """What the audit says to each question and claim in one world, beside the truth."""
    torch.set_num_threads(1)
    case = grow(world) if world.kind in TRAINED else plant(world)
    seen = examine(case.seen.tables, case.seen.trace, seed=world.seed, kinds=REPLACED, shuffles=1)
    whole, named = population(case.whole), asdict(world)
    questions = [
        {**named, "question": name, **asdict(question_truth(name, planted, whole))}
        | {"answer": seen.answer.question(name).decision}
        for name, planted in case.planted.items()
    ]
    verdicts = {verdict.claim: verdict for verdict in seen.verdicts}
    claims = [
        {**named, "claim": name, **asdict(right), "line": CLAIMS[name].threshold}
        | {end: getattr(verdicts[name].estimate, end, None) for end in ("value", "low", "high")}
        | {"answer": verdicts[name].decision}
        for name in BEHIND
        if (right := claim_truth(name, whole)) is not None and name in verdicts
    ]
    return questions, claims


def population(whole: Evidence) -> Population:
    """The numbers of the claims on fresh texts and planted groups."""
    tables = {
        **whole.tables,
        **measure(whole.trace, rankings=ERASED),
        "adversary": _elsewhere(whole.trace),
        "outcomes": outcomes(whole.trace),
    }
    estimates = {name: CLAIMS[name].estimate(tables[CLAIMS[name].table]) for name in BEHIND}
    numbers = {name: each for name, each in estimates.items() if each is not None and each.known}
    count = numbers[LEADS].count if LEADS in numbers else 0
    return Population(numbers=numbers, resting=count / len(whole.trace))


def _elsewhere(trace: Trace) -> pd.DataFrame:
    """For which texts there are other weights; how far away they lie is not looked for."""
    jsd = np.where(told_elsewhere(trace), 0.0, np.nan)
    return pd.DataFrame({"kind": ELSEWHERE, "units": trace.lengths.numpy(), "jsd": jsd})


def claim_truth(claim: str, whole: Population) -> RightAnswer | None:
    """A claim is true if its number in the population lies above its line; None where it has no number."""
    return _beyond(whole.margin(claim), whole.numbers[claim].value) if claim in whole.numbers else None


def question_truth(question: str, planted: Planted, whole: Population) -> RightAnswer:
    """By planting where that tells, else by the claims in the population; where words push at random always no."""
    right = _asked(question, planted, whole)
    if question == "corpus" and whole.margin(SOUND) < 0 and right.truth != "not shown":
        right = replace(right, truth="no", moot=True)
    return replace(right, moot=right.moot or right.truth == "not shown" or _moot(question, whole))


def _asked(question: str, planted: Planted, whole: Population) -> RightAnswer:
    if isinstance(planted, str):
        return RightAnswer(truth=planted)
    if planted is not None:
        return _beyond(planted - CLAIMS[LEADS].threshold, planted)
    weakest = min(ASKED[question], key=whole.margin)
    return _beyond(whole.margin(weakest), whole.numbers[weakest].value if weakest in whole.numbers else None)


def _beyond(margin: float, number: float | None) -> RightAnswer:
    return RightAnswer(truth="yes" if margin > 0 else "no", number=number, near=abs(margin) < NEAR)


def _moot(question: str, whole: Population) -> bool:
    if whole.margin(LEARNED) < NEAR:
        return True
    if question == "decision":
        return whole.resting < FEWEST_DECISIONS + NEAR
    if question == "story":
        return False
    return not all(whole.enough(claim) for claim in ASKED[question])


def calibration_tables(planted: Calibration, trained: Calibration | None = None) -> dict[str, pd.DataFrame]:
    """Every table of a calibration by name: cases, how often each is wrong, and the wrong ones themselves."""
    tables = {
        "cases": planted.answers,
        "claims": planted.claims,
        "confusion": confusion(planted.answers, "question", "texts"),
        "confusion-of-claims": confusion(planted.claims, "claim", "texts"),
        "confusion-by-kind": confusion(planted.answers, "question", "kind"),
        "confusion-by-classes": confusion(planted.answers, "question", "classes"),
        "wrong": wrong(planted.answers),
    }
    if trained is None:
        return tables
    return tables | {
        "trained-cases": trained.answers,
        "trained-claims": trained.claims,
        "trained-confusion": confusion(trained.answers, "question", "kind", "texts"),
        "trained-confusion-of-claims": confusion(trained.claims, "claim", "kind"),
        "trained-wrong": wrong(trained.answers),
    }


def wrong(cases: pd.DataFrame) -> pd.DataFrame:
    """The rows whose answer is yes or no, and not the truth."""
    return cases[_mistaken(cases)]


def _mistaken(cases: pd.DataFrame) -> "pd.Series[bool]":
    return (cases["answer"] != "not shown") & (cases["answer"] != cases["truth"])


def confusion(cases: pd.DataFrame, *by: str) -> pd.DataFrame:
    """One row for each value of these columns: how many worlds, what was said, what was wrong, and what that is of.

    `wrong_yes` is of the worlds `not_yes`, whose truth is not yes, `wrong_no` of those `not_no`, and `not_shown` of
    those `clear`; `wrong_near` are those of the wrong ones whose truth lies near a line.
    """
    answer, near, mistaken, clear = cases["answer"], cases["near"], _mistaken(cases), ~cases["near"] & ~cases["moot"]
    marks = {
        "worlds": answer.notna(),
        "yes": answer == "yes",
        "no": answer == "no",
        "not_yes": cases["truth"] != "yes",
        "wrong_yes": mistaken & (answer == "yes"),
        "not_no": cases["truth"] != "no",
        "wrong_no": mistaken & (answer == "no"),
        "wrong_near": mistaken & near,
        "clear": clear,
        "not_shown": clear & (answer == "not shown"),
        "near": near,
        "moot": cases["moot"],
    }
    return cases[list(by)].assign(**marks).groupby(list(by), sort=False, as_index=False)[list(marks)].sum()


def shown_confusion(table: pd.DataFrame) -> pd.DataFrame:
    """The table with cells as words: counts, what they are of, and the share."""
    shown = table.loc[:, :"no"].copy()
    shown["wrong yes"] = _shares(table["wrong_yes"], table["not_yes"])
    shown["wrong no"] = _shares(table["wrong_no"], table["not_no"])
    shown["wrong near"] = table["wrong_near"]
    shown["not shown"] = _shares(table["not_shown"], table["clear"])
    return shown.assign(near=table["near"], moot=table["moot"])


def _shares(parts: "pd.Series[int]", wholes: "pd.Series[int]") -> list[str]:
    return [f"{part}/{whole} ({part / whole:.1%})" if whole else "–" for part, whole in zip(parts, wholes, strict=True)]
