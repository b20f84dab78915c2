"""The runs of a study: its settings as a plan, and finished runs found by their settings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from heedful.config import RunSettings
from heedful.errors import ConfigError
from heedful.pipeline import Run
from heedful.store import Store
from heedful.sweep.plan import Plan

Cost = Callable[[RunSettings], Any]
"""What orders runs by how long they take; only comparisons matter."""


@runtime_checkable
class Cell(Protocol):
    """One cell of a study's tables; its runs differ in their seeds."""

    def settings(self, seed: int = 0) -> RunSettings:
        """What to run for the cell."""


def plan_of(name: str, settings: Iterable[RunSettings], cost: Cost) -> Plan:
    """The runs as a plan, each once; what takes longest comes first, so that workers end together."""
    distinct = list(dict.fromkeys(settings))
    if not distinct:
        raise ConfigError("There is nothing to run: give data sets, models and seeds that make a run.")
    return Plan(name=name, runs=tuple(sorted(distinct, key=cost, reverse=True)))


class Runs(Mapping[RunSettings, Run]):
    """Finished runs by their settings."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = {run.settings: run for run in runs}

    @classmethod
    def of(cls, store: Store, names: Iterable[str]) -> "Runs":
        """The runs of a store with these directory names."""
        return cls(Run(store.root / name) for name in names)

    def __getitem__(self, settings: RunSettings) -> Run:
        return self._runs[settings]

    def __iter__(self) -> Iterator[RunSettings]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def of_cell(self, cell: Cell, seeds: int) -> list[Run]:
        """The runs of a cell that are there, by seed."""
        return [self[cell.settings(seed)] for seed in range(seeds) if cell.settings(seed) in self]

    def has(self, cells: Sequence[Cell]) -> bool:
        """Whether the first seed of every one of these cells is there."""
        return all(cell.settings() in self for cell in cells)
