"""A plan: many runs declared once, as base settings, a grid of changes, lists of changes, and seeds.

As a file:

    name = "scales"                       # optional; otherwise the file's name
    seeds = 3                             # 0, 1, 2; or a list

    [base]
    data.source = "sst"
    training.epochs = 10

    [grid]
    model.score_scale = [1, 10, 100]      # every combination of the lists
    model.encoder = ["none", "lstm"]

    [[runs]]                              # each of these with every point of the grid
    training.optimizer = "adagrad"

    [[runs]]
    training.optimizer = "adam"
    training.learning_rate = 0.001
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config import DataSettings, RunSettings, read_mapping
from heedful.errors import ConfigError
from heedful.limits import RUNS
from heedful.store import flatten

SEED = "training.seed"
PARTS: Mapping[str, Any] = {"name": str, "base": Mapping, "grid": Mapping, "runs": list, "seeds": (int, list)}
"""The parts of a file, and what each is."""

Changes = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The runs of a sweep, in order, each once."""

    name: str
    runs: tuple[RunSettings, ...]

    def __post_init__(self) -> None:
        if not self.name or self.name != Path(self.name).name or self.name.startswith(".") or "\0" in self.name:
            raise ConfigError(
                f"A plan's tables are called by its name, so that it must be one of a file, without folders: not "
                f"{self.name!r}. Change `name` in the plan."
            )

    @classmethod
    def of(
        cls,
        base: RunSettings | None = None,
        *,
        grid: Mapping[str, Any] | None = None,
        runs: Sequence[Changes] = (),
        seeds: int | Sequence[int] | None = None,
        name: str = "sweep",
    ) -> "Plan":
        """Each of `runs` with every point of the `grid` and every seed, all as changes of the base settings. Changes
        have dotted names, such as {"model.score_scale": [1, 10]}. A number of seeds means 0, 1, 2 …"""
        start, lists, entries = base or RunSettings(), _lists(grid or {}), [flatten(entry) for entry in runs] or [{}]
        names = [*{name for entry in entries for name in entry}, *lists, *_seeds(seeds)]
        if twice := sorted(name for name in set(names) if names.count(name) > 1):  # one of them would silently be lost
            raise ConfigError(f"'{twice[0]}' is changed by two parts of the plan; name it in one of grid, runs, seeds.")
        axes = lists | _seeds(seeds)
        if (count := len(entries) * math.prod(map(len, axes.values()))) > RUNS.most:
            raise ConfigError(
                f"The plan has {count:,} runs; {RUNS.most:,} are the most. Make several plans of it. {RUNS.remedy}"
            )
        points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
        changed = (start.change({**entry, **point}) for entry, point in itertools.product(entries, points))
        return cls(name=name, runs=tuple(dict.fromkeys(changed)))

    @classmethod
    def read(cls, path: Path, changes: Iterable[str] = ()) -> "Plan":
        """The plan of a TOML or JSON file; `changes` such as `training.epochs=3` alter its base settings."""
        content = read_mapping(path)
        _check_parts(path, content)
        return cls.of(
            RunSettings().change(flatten(content.get("base", {}))).override(changes),
            grid=content.get("grid"),
            runs=content.get("runs", ()),
            seeds=content.get("seeds"),
            name=str(content.get("name", path.stem)),
        )

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def data(self) -> tuple[DataSettings, ...]:
        return tuple(dict.fromkeys(run.data for run in self.runs))

    @property
    def varied(self) -> tuple[str, ...]:
        """The dotted names of the settings that differ between runs, in the order of the settings."""
        flat = [flatten(settings.model_dump(mode="json")) for settings in self.runs]
        names = dict.fromkeys(name for values in flat for name in values)  # runs without a base have fewer
        return tuple(name for name in names if len({repr(values.get(name)) for values in flat}) > 1)


def _lists(grid: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    flat = flatten(grid)
    for name, values in flat.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise ConfigError(f"The grid gives each setting a list of values; '{name}' has {values!r}.")
    return flat


def _seeds(seeds: int | Sequence[int] | None) -> dict[str, Sequence[Any]]:
    """The seeds as one more list of the grid, that changes fastest."""
    if seeds is None:
        return {}
    numbers = range(min(seeds, RUNS.most)) if isinstance(seeds, int) else list(seeds)
    if not numbers or isinstance(seeds, bool) or (isinstance(seeds, int) and seeds > RUNS.most):
        said = f"Seeds are a number from 1 to {RUNS.most:,}, or a list of numbers, not {seeds!r}."
        raise ConfigError(f"{said} {RUNS.remedy}" if isinstance(seeds, int) and seeds > RUNS.most else said)
    return {SEED: numbers}


def _check_parts(path: Path, content: Mapping[str, Any]) -> None:
    for part, value in content.items():
        if part not in PARTS:
            raise ConfigError(f"'{path}' has '{part}'; a plan has {', '.join(PARTS)} and nothing else.")
        if not isinstance(value, PARTS[part]):
            raise ConfigError(f"'{part}' of '{path}' cannot be {value!r}; see `heedful sweep --help`.")
    if not all(isinstance(entry, Mapping) for entry in content.get("runs", ())):
        raise ConfigError(f"Each of the runs in '{path}' is a table of changes, written as [[runs]].")
