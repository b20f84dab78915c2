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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config import RunSettings, read_mapping
from heedful.errors import ConfigError
from heedful.store import flatten

PARTS = ("name", "base", "grid", "runs", "seeds")
SEED = "training.seed"

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
        """Each of `runs` with every point of the `grid` and every seed, all as changes of the base settings.

        Changes have dotted names, such as {"model.score_scale": [1, 10]}. A number of seeds means 0, 1, 2 …
        """
        start = base or RunSettings()
        points = [*_points(_flat_lists(grid or {}))]
        entries = [flatten(entry) for entry in runs] or [{}]
        _refuse_overlap(entries, points[0], seeds)
        found = (
            start.change({**entry, **point, **seed})
            for entry, point, seed in itertools.product(entries, points, _seeds(seeds))
        )
        return cls(name=name, runs=tuple(dict.fromkeys(found)))

    @classmethod
    def read(cls, path: Path, changes: Iterable[str] = ()) -> "Plan":
        """The plan of a TOML or JSON file; `changes` such as `training.epochs=3` alter its base settings."""
        content = read_mapping(path)
        unknown = sorted(set(content) - set(PARTS))
        if unknown:
            raise ConfigError(f"'{path}' has '{unknown[0]}'; a plan has {', '.join(PARTS)} and nothing else.")
        _check_kinds(path, content)
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
    def varied(self) -> tuple[str, ...]:
        """The dotted names of the settings that differ between runs, in the order of the settings."""
        flat = [flatten(settings.model_dump(mode="json")) for settings in self.runs]
        return tuple(name for name in flat[0] if len({repr(values[name]) for values in flat}) > 1)


def _flat_lists(grid: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    flat = flatten(grid)
    for name, values in flat.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise ConfigError(f"The grid gives each setting a list of values; '{name}' has {values!r}.")
    return flat


def _points(grid: Mapping[str, Sequence[Any]]) -> Iterator[Changes]:
    """Every combination, the last setting changing fastest."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _seeds(seeds: int | Sequence[int] | None) -> list[Changes]:
    if seeds is None:
        return [{}]
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not numbers or isinstance(seeds, bool):
        raise ConfigError(f"Seeds are a number of 1 or more, or a list of numbers, not {seeds!r}.")
    return [{SEED: number} for number in numbers]


def _refuse_overlap(entries: Sequence[Changes], point: Changes, seeds: int | Sequence[int] | None) -> None:
    """A setting that two parts of a plan change would silently lose one of them."""
    listed = {name for entry in entries for name in entry}
    twice = sorted((listed & set(point)) | ((listed | set(point)) & ({SEED} if seeds is not None else set())))
    if twice:
        raise ConfigError(f"'{twice[0]}' is changed by two parts of the plan; name it in one of grid, runs, seeds.")


def _check_kinds(path: Path, content: Mapping[str, Any]) -> None:
    kinds: dict[str, type | tuple[type, ...]] = {
        "base": Mapping, "grid": Mapping, "runs": list, "seeds": (int, list), "name": str
    }  # fmt: skip
    for part, kind in kinds.items():
        if part in content and not isinstance(content[part], kind):
            raise ConfigError(f"'{part}' of '{path}' cannot be {content[part]!r}; see `heedful sweep --help`.")
    if not all(isinstance(entry, Mapping) for entry in content.get("runs", ())):
        raise ConfigError(f"Each of the runs in '{path}' is a table of changes, written as [[runs]].")
