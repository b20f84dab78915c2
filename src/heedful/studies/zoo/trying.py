"""Every entrant of a task is trained, once and kept, and what they reached stands beside what they should reach."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from pathlib import Path

import pandas as pd
import torch

from heedful.analysis.statistics import Estimate, mean_over_seeds
from heedful.errors import DataError, UnknownName
from heedful.store import Store
from heedful.sweep.loop import cores
from heedful.sweep.processes import processes
from heedful.zoo.members import MEMBERS
from heedful.zoo.results import Result, Trial, find, keep, trials
from heedful.zoo.task import Bars, Task
from heedful.zoo.tasks import TASKS, find_task, tasks_of

EVERY = "all"
ERRORS = ("rmse", "constant")
"""Figures that may be larger than one; all others are shares."""
Watch = Callable[[int, int], None]
"""Told of how many trainings are done, of how many."""


def chosen(name: str) -> list[Task]:
    """The task of that name, or those of a member; `all` are those whose data are at hand."""
    if name == EVERY:
        return [task for task in TASKS.values() if not task.missing()]
    if name not in TASKS and name not in MEMBERS:
        raise UnknownName("member or task of the zoo", name, [*MEMBERS, *TASKS])
    tasks = [TASKS[name]] if name in TASKS else tasks_of(name)
    for task in tasks:
        if task.missing():
            raise DataError(wanting(task))
    return tasks


def wanting(task: Task) -> str:
    """What to say of a task whose data are not at hand."""
    return f"The task '{task.name}' needs {task.missing()} in the data folder; set HEEDFUL_DATA to it."


def try_tasks(
    tasks: Sequence[Task],
    store: Store,
    *,
    seeds: int | None = None,
    quick: bool = False,
    workers: int | None = None,
    fresh: bool = False,
    watch: Watch | None = None,
) -> list[Result]:
    """All trainings of these tasks; what is kept already is found."""
    wanted = [trial for task in tasks for trial in trials(task, seeds=range(seeds_of(task, seeds, quick)), quick=quick)]
    wanted.sort(key=lambda trial: -trial.steps)
    found = []
    for done, result in enumerate(_results(wanted, store.root, workers or cores(), fresh), start=1):
        found.append(result)
        if watch:
            watch(done, len(wanted))
    return found


def _results(wanted: Sequence[Trial], root: Path, workers: int, fresh: bool) -> Iterator[Result]:
    """As they end."""
    if workers == 1 or len(wanted) < 2:
        yield from (try_one(trial, root, fresh) for trial in wanted)
        return
    with processes(workers) as pool:
        for ended in as_completed([pool.submit(try_one, trial, root, fresh) for trial in wanted]):
            yield ended.result()


def try_one(trial: Trial, root: Path, fresh: bool = False) -> Result:
    torch.set_num_threads(1)
    return keep(trial, find_task(trial.task), Store(root), fresh=fresh)


def seeds_of(task: Task, seeds: int | None, quick: bool) -> int:
    """How many: as many as are asked for, or as the task has; one is quick."""
    return seeds or (1 if quick else task.seeds)


def results(tasks: Sequence[Task], store: Store, *, seeds: int | None = None, quick: bool = False) -> list[Result]:
    """Those that are kept, of tasks whose data are at hand."""
    return [
        result
        for task in tasks
        if not task.missing()
        for trial in trials(task, seeds=range(seeds_of(task, seeds, quick)), quick=quick)
        if (result := find(trial, task, store)) is not None
    ]


BY = ["task", "entrant", "split", "figure"]
REACHED = ["task", "entrant", "role", "split", "figure", "seeds", "value", "low", "high", "least", "most", "reached"]


def reached(given: Sequence[Result]) -> pd.DataFrame:
    """A row for each task, entrant, test split and figure: the mean over seeds with its interval, and what is asked."""
    rows = [
        {"task": one.record["task"], "entrant": one.record["entrant"], "split": split, "figure": name, "value": value}
        for one in given
        for split, figures in one.figures.items()
        for name, value in figures.items()
    ]
    table = []
    for (task, entrant, split, figure), some in pd.DataFrame(rows, columns=[*BY, "value"]).groupby(BY, sort=False):
        estimate = mean_over_seeds(some["value"].to_numpy())
        found = find_task(str(task))
        bar = bar_of(found.entrant(str(entrant)).bars, found, str(split), str(figure))
        table.append(
            {
                "task": task,
                "entrant": entrant,
                "role": found.entrant(str(entrant)).role,
                "split": split,
                "figure": figure,
                "seeds": estimate.count,
                "value": estimate.value,
                "low": max(0.0, estimate.low),
                "high": estimate.high if figure in ERRORS else min(1.0, estimate.high),
                "least": bar[0] if bar else None,
                "most": bar[1] if bar else None,
                "reached": _within(estimate, bar),
            }
        )
    return pd.DataFrame(table, columns=REACHED)


def bar_of(bars: Bars, task: Task, split: str, figure: str) -> tuple[float, float] | None:
    """What is asked of a figure on a test split."""
    own = bars.get(f"{figure}@{split}")
    return bars.get(figure) if own is None and split == task.tests[0] else own


def _within(estimate: Estimate, bar: tuple[float, float] | None) -> bool | None:
    """By the mean over seeds."""
    return None if bar is None else bool(bar[0] <= estimate.value <= bar[1])


def costs(given: Sequence[Result]) -> pd.DataFrame:
    """Parameters, steps and time of each entrant."""
    rows = [{name: one.record[name] for name in COSTS} for one in given]
    table = pd.DataFrame(rows, columns=COSTS)
    means = {"parameters": "first", "steps": "first", "best_step": "median", "milliseconds": "median"}
    return table.groupby(["task", "entrant"], sort=False).agg(means).reset_index()


COSTS = ["task", "entrant", "parameters", "steps", "best_step", "milliseconds"]
