"""Who watches the verdicts: the audit's answer on planted worlds, whose truth is known, and how often it is wrong."""

import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pandas as pd
import torch

from heedful.claims.kinds import Decision
from heedful.errors import ConfigError
from heedful.studies.examine import examine
from heedful.studies.planted import KINDS, LENGTHS, SHARES, World, plant
from heedful.sweep.memory import cores

SIZES = (200, 2_000, 20_000)
DECISIONS: tuple[Decision, ...] = ("yes", "no", "not shown")


def worlds(*, seeds: int = 2, sizes: Sequence[int] = SIZES) -> list[World]:
    """Every kind of attention with all class sizes, both lengths and these numbers of texts."""
    if seeds < 1 or min(sizes, default=0) < 100:
        raise ConfigError(f"Calibration takes 1 seed or more and worlds of 100 texts or more, not {seeds} and {sizes}.")
    return [
        World(attention=attention, classes=classes, length=length, texts=texts, seed=seed)
        for seed, texts, attention, classes, length in itertools.product(range(seeds), sizes, KINDS, SHARES, LENGTHS)
    ]


def judge_world(world: World) -> list[dict[str, Any]]:
    """What the audit answers to each question in one world, beside the truth."""
    torch.set_num_threads(1)
    planted = plant(world)
    questions = examine(planted.tables, planted.trace, seed=world.seed).answer.questions
    return [
        {**vars(world), "question": question.name, "truth": truth, "near": near, "answer": question.decision}
        for question, truth, near in zip(questions, planted.truth, planted.near, strict=True)
    ]


def calibrate(
    wanted: Sequence[World], *, workers: int | None = None, watch: Callable[[int, int], None] | None = None
) -> pd.DataFrame:
    """One row per world and question, in the order of the worlds, whatever the number of processes."""
    rows: list[dict[str, Any]] = []
    for done, found in enumerate(_judged(wanted, workers or cores()), 1):
        rows += found
        if watch is not None:
            watch(done, len(wanted))
    return pd.DataFrame(rows)


def _judged(wanted: Sequence[World], workers: int) -> Iterator[list[dict[str, Any]]]:
    if workers == 1 or len(wanted) < 2:
        yield from map(judge_world, wanted)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(judge_world, wanted)


def confusion(cases: pd.DataFrame, by: Iterable[str] = ("question", "texts")) -> pd.DataFrame:
    """How often the answer is yes where the truth is no, no where it is yes, and not shown, with what it is of.

    `wrong_yes` is of the worlds whose truth is no, `wrong_no` of those whose truth is yes, `not_shown` of those whose
    truth does not lie near a line, where a careful answer is "not shown".
    """
    return pd.DataFrame(
        [
            {**dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True)), **_rates(rows)}
            for key, rows in cases.groupby(list(by), sort=False)
        ]
    )


def _rates(rows: pd.DataFrame) -> dict[str, object]:
    no, yes, clear = rows[rows["truth"] == "no"], rows[rows["truth"] == "yes"], rows[~rows["near"]]
    return {
        "worlds": len(rows),
        "truth_no": len(no),
        "wrong_yes": int((no["answer"] == "yes").sum()),
        "truth_yes": len(yes),
        "wrong_no": int((yes["answer"] == "no").sum()),
        "clear": len(clear),
        "not_shown": int((clear["answer"] == "not shown").sum()),
        "near": int(rows["near"].sum()),
        "near_not_shown": int((rows.loc[rows["near"], "answer"] == "not shown").sum()),
    }


def shown_confusion(table: pd.DataFrame) -> pd.DataFrame:
    """The table with cells as words: counts, what they are of, and the share."""
    keys = [column for column in table if column not in _rates_columns()]
    return table[keys].assign(
        worlds=table["worlds"],
        **{
            "wrong yes": _shares(table, "wrong_yes", "truth_no"),
            "wrong no": _shares(table, "wrong_no", "truth_yes"),
            "not shown": _shares(table, "not_shown", "clear"),
            "near the line: not shown": _shares(table, "near_not_shown", "near"),
        },
    )


def _rates_columns() -> set[str]:
    empty = pd.DataFrame({"truth": [], "answer": [], "near": pd.Series([], dtype=bool)})
    return set(_rates(empty))


def _shares(table: pd.DataFrame, part: str, whole: str) -> list[str]:
    pairs = zip(table[part], table[whole], strict=True)
    return [f"{some} of {all_of} ({some / all_of:.1%})" if all_of else "–" for some, all_of in pairs]
