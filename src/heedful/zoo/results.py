"""Trainings of the zoo, kept: what a task, an entrant, a seed and a number of steps came to is computed once."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from heedful.errors import StoreError
from heedful.files import digest_of, read_json, write_json, write_table
from heedful.store import ZOO, Store
from heedful.tensor_files import load_tensors, save_tensors
from heedful.zoo.task import Entrant, Figures, Network, Task
from heedful.zoo.training import Observer, make, train

VERSION = 2
"""Raised when what is drawn or computed changes; what was kept before is then not found."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Who tries what, with which seed, for how long."""

    task: str
    entrant: str
    seed: int
    steps: int


@dataclass(frozen=True, kw_only=True)
class Result:
    """A training that is kept."""

    path: Path
    new: bool = False

    @cached_property
    def record(self) -> dict[str, Any]:
        """Trial, figures by test split, parameters, milliseconds of a step, and which step was the best."""
        record: dict[str, Any] = read_json(self.path / "result.json")
        return record

    @property
    def figures(self) -> dict[str, Figures]:
        figures: dict[str, Figures] = self.record["figures"]
        return figures

    def history(self) -> pd.DataFrame:
        return pd.read_parquet(self.path / "history.parquet")

    def network(self, entrant: Entrant) -> Network:
        network = make(entrant, self.record["seed"])
        tensors, _ = load_tensors(self.path / "network.safetensors", StoreError, "Train it again (--fresh).")
        network.load_state_dict(tensors)
        return network.eval()


def trials(task: Task, *, seeds: Sequence[int], quick: bool = False) -> list[Trial]:
    """All trainings of a task."""
    steps = task.quick_steps if quick else task.steps
    return [Trial(task=task.name, entrant=one.name, seed=seed, steps=steps) for seed in seeds for one in task.entrants]


def key_of(trial: Trial, task: Task) -> str:
    """By what a training is found: the trial, and what decides on its numbers beside it."""
    network = make(task.entrant(trial.entrant), trial.seed)
    shapes = {name: list(part.shape) for name, part in network.state_dict().items()}
    how = [task.batch, task.rate, task.clip, task.size, task.tests, task.best]
    return digest_of([VERSION, asdict(trial), *how, str(network), shapes])[:24]


def find(trial: Trial, task: Task, store: Store) -> Result | None:
    """A training that was kept."""
    path = store.find(key_of(trial, task), ZOO)
    return Result(path=path) if path else None


def keep(trial: Trial, task: Task, store: Store, *, fresh: bool = False, observers: Sequence[Observer] = ()) -> Result:
    """The training, found or computed, with one thread: sums depend on their number."""
    entrant = task.entrant(trial.entrant)

    def compute(folder: Path) -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            trained = train(task, entrant, seed=trial.seed, steps=trial.steps, observers=observers)
        finally:
            torch.set_num_threads(threads)
        folder.mkdir()
        save_tensors(folder / "network.safetensors", trained.network.state_dict())
        write_table(folder / "history.parquet", trained.history)
        record = {
            **asdict(trial),
            "member": entrant.member,
            "role": entrant.role,
            "figures": trained.figures,
            "best_step": trained.step,
            "parameters": trained.parameters,
            "milliseconds": round(trained.milliseconds, 3),
        }
        write_json(folder / "result.json", record)

    path, new = store.keep(ZOO, key_of(trial, task), compute, fresh=fresh)
    return Result(path=path, new=new)
