"""A task of the zoo as a value: examples on which the right place to look is known, and who tries it.

Examples are drawn, never stored: the same generator gives the same ones. Targets are class numbers, −1 where nothing
is asked.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.errors import UnknownName

Figures = dict[str, float]
"""Numbers of a network on some examples, by name."""
Looks = Mapping[str, Bool[Tensor, "examples _ _"]]
"""By the name of a look, for each of its steps a mark on places."""


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Some examples; the first axis of every tensor is theirs."""

    inputs: Mapping[str, Tensor]
    """What a network reads."""
    targets: Int[Tensor, "examples steps"] | Float[Tensor, "examples steps"]
    sources: Looks = field(default_factory=dict)
    """Where the right places are; a step without any is not counted."""

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: slice | Int[Tensor, " rows"]) -> "Examples":
        """Some of them."""
        return replace(
            self,
            inputs={name: part[rows] for name, part in self.inputs.items()},
            targets=self.targets[rows],
            sources={name: part[rows] for name, part in self.sources.items()},
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a network made of examples."""

    logits: Float[Tensor, "examples steps classes"]
    weights: Mapping[str, Float[Tensor, "examples _ _"]] = field(default_factory=dict)
    """Of every look, a row for each of its steps; none in networks without attention."""

    @property
    def answers(self) -> Int[Tensor, "examples steps"]:
        return self.logits.argmax(-1)


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """Of a network whose last look pools into an affine readout: logits = b + Σ α z (`heedful.traces`)."""

    scores: Float[Tensor, "examples keys"]
    """−∞ where nothing may be read."""
    polarity: Float[Tensor, "examples keys classes"]
    bias: Float[Tensor, " classes"]
    what: str
    """What is pooled, in the singular."""


class Network(nn.Module):
    """Reads examples and answers."""

    def forward(self, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
        """forced: whether each step is told the right answer of the step before, as in training; elsewhere its own.
        without: places that a look may not read at a step, beside those it may not read anyway."""
        raise NotImplementedError

    def pooled(self, examples: Examples) -> Pooled | None:
        """What a trace is made of, where the last look pools into an affine readout."""
        del examples
        return None


Draw = Callable[[str, int, torch.Generator], Examples]
"""So many examples of a split."""
Judge = Callable[[Outcome, Examples], Figures]
Loss = Callable[[Outcome, Examples], Tensor]
Role = Literal["member", "control", "baseline"]
Bars = Mapping[str, tuple[float, float]]
"""Between what and what a figure of the first test split must lie; `name@split` is of another."""


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """Who tries a task: a member of the zoo, a control that differs in one thing, or a baseline without attention."""

    name: str
    make: Callable[[], Network]
    role: Role = "member"
    member: str | None = None
    """Of the zoo; None in a baseline."""
    words: str = ""
    bars: Bars = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Words:
    """What stands at the rows (steps) and columns (places) of a picture of one example, by look."""

    rows: Mapping[str, Sequence[str]]
    columns: Mapping[str, Sequence[str]]
    cells: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """What stands in the cells, where columns differ from row to row."""
    first: Mapping[str, int] = field(default_factory=dict)
    """The step of the first row, where that is not the first step."""
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is to be learned, by whom, and for how long."""

    name: str
    title: str
    words: str
    """What is asked, and where the right place is."""
    draw: Draw
    entrants: tuple[Entrant, ...]
    show: Callable[[Examples, Outcome, int], Words]
    steps: int
    quick_steps: int
    batch: int = 64
    rate: float = 1e-3
    clip: float = 1.0
    tests: tuple[str, ...] = ("test",)
    size: int = 500
    """Examples of dev and of each test split."""
    seeds: int = 3
    """Trainings of each entrant that a mean is taken of."""
    best: str = "right"
    """The figure on dev by which the step is chosen."""
    loss: Loss = field(default_factory=lambda: cross_entropy)
    judge: Judge = field(default_factory=lambda: judge)
    chance: float | None = None
    """What guessing reaches of `best`."""
    files: tuple[str, ...] = ()
    """What it reads from the data folder; most tasks read nothing."""
    real: bool = False
    """Whether its examples are of people: nothing is planted, and nothing is asked of anyone."""

    def missing(self) -> str:
        """The first of its files that is not in the data folder; empty where all are."""
        folder = os.environ.get("HEEDFUL_DATA")
        return next((name for name in self.files if not folder or not (Path(folder) / name).is_file()), "")

    def entrant(self, name: str) -> Entrant:
        known = {one.name: one for one in self.entrants}
        if name not in known:
            raise UnknownName(f"entrant of '{self.name}'", name, known)
        return known[name]


def cross_entropy(outcome: Outcome, examples: Examples) -> Float[Tensor, ""]:
    """Mean over all that is asked."""
    return F.cross_entropy(outcome.logits.flatten(0, 1), examples.targets.flatten(), ignore_index=-1)


def judge(outcome: Outcome, examples: Examples) -> Figures:
    """right: of what is asked; exact: examples with nothing wrong; pointed: how often the largest weight lies on a
    right place, by look."""
    asked = examples.targets >= 0
    right = (outcome.answers == examples.targets) & asked
    figures = {"right": share(right, asked), "exact": float((right | ~asked).all(1).float().mean())}
    return figures | pointed(outcome.weights, examples.sources)


def pointed(weights: Mapping[str, Tensor], sources: Looks) -> Figures:
    """How often the largest weight of each look lies on a right place, where there is one."""
    return {
        f"pointed {look}" if look else "pointed": share(at(marks, weights[look].argmax(-1)), marks.any(-1))
        for look, marks in sources.items()
        if look in weights
    }


def at(marks: Bool[Tensor, "*steps keys"], places: Int[Tensor, "*steps"]) -> Bool[Tensor, "*steps"]:
    return marks.gather(-1, places.unsqueeze(-1)).squeeze(-1)


def share(some: Bool[Tensor, "..."], of: Bool[Tensor, "..."]) -> float:
    """Of those that count, how many are marked."""
    return float((some & of).sum() / of.sum().clamp(min=1))
