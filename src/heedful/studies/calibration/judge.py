"""The audit's answer in worlds whose truth is known: one row per world and question, one per world and claim."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
import torch

from heedful.claims import CLAIMS, Verdict
from heedful.studies.calibration.case import Case, Truth, claim_truth, question_truth
from heedful.studies.calibration.evidence import BEHIND, Population, population
from heedful.studies.calibration.planted import plant
from heedful.studies.calibration.trained import grow
from heedful.studies.calibration.world import TRAINED, World
from heedful.studies.examine import Examination, examine
from heedful.sweep.resources import cores

Rows = list[dict[str, Any]]


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
    answers: Rows = []
    claims: Rows = []
    for done, (of_questions, of_claims) in enumerate(_judged(wanted, workers or cores()), 1):
        answers += of_questions
        claims += of_claims
        if watch is not None:
            watch(done, len(wanted))
    return Calibration(answers=pd.DataFrame(answers), claims=pd.DataFrame(claims))


def judge_world(world: World) -> tuple[Rows, Rows]:
    """What the audit says to each question and claim in one world, beside the truth."""
    torch.set_num_threads(1)
    case = grow(world) if world.kind in TRAINED else plant(world)
    seen = examine(case.seen.tables, case.seen.trace, seed=world.seed)
    whole = population(case.whole)
    return _questions(world, case, seen, whole), _claims(world, seen, whole)


def _judged(wanted: Sequence[World], workers: int) -> Iterator[tuple[Rows, Rows]]:
    if workers == 1 or len(wanted) < 2:
        yield from map(judge_world, wanted)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(judge_world, wanted)


def _questions(world: World, case: Case, seen: Examination, whole: Population) -> Rows:
    return [
        _row(world, question=name, truth=question_truth(name, planted, whole))
        | {"answer": seen.answer.question(name).decision}
        for name, planted in case.planted.items()
    ]


def _claims(world: World, seen: Examination, whole: Population) -> Rows:
    verdicts = {verdict.claim: verdict for verdict in (*seen.worth, *seen.words, *seen.erased.verdicts)}
    truths = {name: claim_truth(name, whole) for name in BEHIND}
    return [
        _row(world, claim=name, truth=truth) | _measured(verdicts[name])
        for name, truth in truths.items()
        if truth is not None and name in verdicts
    ]


def _row(world: World, *, truth: Truth, **name: str) -> dict[str, Any]:
    found = asdict(truth)
    return {**asdict(world), **name, "truth": found.pop("decision"), **found}


def _measured(verdict: Verdict) -> dict[str, Any]:
    found = verdict.estimate
    return {
        "line": CLAIMS[verdict.claim].threshold,
        "value": found.value if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "answer": verdict.decision,
    }
