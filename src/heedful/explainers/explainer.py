"""An explainer: what it is, where it can be had, and the numbers that it gives to the units of a reading."""

import importlib.util
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.faithfulness.cost import Cost
from heedful.analysis.faithfulness.removal import Asked
from heedful.errors import InputError, UnknownName
from heedful.subjects import Reading, Units


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """What is to be explained: a reading, the class of each of its texts, and by which chance.

    `asked` remembers what the reading said without some of its units; explainers of one reading share it.
    """

    asked: Asked
    targets: Int[Tensor, " instances"]
    seed: int = 0

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more; got {self.seed}.")

    @property
    def reading(self) -> Reading:
        return self.asked.reading

    @property
    def units(self) -> Units:
        return self.asked.units

    @property
    def whole(self) -> Float[Tensor, " instances"]:
        """What the whole texts have for the class that is explained."""
        return self.asked.whole.gather(1, self.targets[:, None]).squeeze(1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scored:
    """One number per unit, how many texts the model read for them, beyond the reading itself, and what must be said."""

    scores: Float[Tensor, " units"]
    passes: int
    remark: str = ""


def anywhere(_: Reading) -> str:
    """Nothing stands against it."""
    return ""


def few(lengths: Int[Tensor, " instances"], **_: Any) -> Int[Tensor, " instances"]:
    """No changed text."""
    return torch.zeros_like(lengths)


def missing(extra: str) -> str:
    """What to do where an optional library is not there, or nothing."""
    there = importlib.util.find_spec(extra) is not None
    return "" if there else f"it needs {extra}, which is not installed: pip install 'heedful[{extra}]'."


@dataclass(frozen=True, kw_only=True)
class Explainer:
    """A way to give every unit of a text a number.

    name: what it is called, also in tables.
    words, formula, source: what it is in one sentence, what is computed, and who proposed it.
    signed: whether what is below zero speaks against the class.
    family: whether it looks at attention or gradients, asks the model without some units, ranks a trace, or draws.
    needs: of what it can be had.
    extra: the optional library that it needs, or nothing.
    at: the options that may stand in the name, as in `attention@2.5` or `lime@500`.
    scores: the function; its options are its keyword arguments.
    sets: about how many texts, changed ones too, the model reads for texts of so many units, with the same options;
        those that read each text a few times only have none.
    hinders: why it cannot be had of a reading, or nothing.
    options: those that were chosen.
    """

    name: str
    words: str
    formula: str
    source: str
    signed: bool
    family: str
    needs: str
    scores: Callable[..., Scored] = field(repr=False)
    hinders: Callable[[Reading], str] = field(default=anywhere, repr=False)
    sets: Callable[..., Int[Tensor, " instances"]] = field(default=few, repr=False)
    extra: str = ""
    at: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def why_not(self, reading: Reading) -> str:
        """Why it cannot be had here, in a sentence; nothing where it can."""
        return (missing(self.extra) if self.extra else "") or self.hinders(reading)

    @property
    def known_options(self) -> tuple[str, ...]:
        """The names of its options."""
        taken = inspect.signature(self.scores).parameters.values()
        return tuple(one.name for one in taken if one.kind is one.KEYWORD_ONLY)

    def with_options(self, options: Mapping[str, Any]) -> "Explainer":
        """The same with other options; those that may stand in its name do."""
        for option in options:
            if option not in self.known_options:
                raise UnknownName(f"option of '{self.name}'", option, self.known_options)
        chosen = {**self.options, **options}
        in_name = [str(chosen[option]) for option in self.at if chosen.get(option) is not None]
        own = self.name.partition("@")[0]
        return replace(self, name=f"{own}@{'.'.join(in_name)}" if in_name else own, options=chosen)

    def with_name(self, name: str) -> "Explainer":
        """The same with the options that stand after @ in the name: whole numbers with dots between them."""
        parts = name.partition("@")[2].split(".")
        if not self.at:
            raise InputError(f"'{self.name}' takes nothing after @; got '{name}'.")
        if len(parts) > len(self.at) or not all(part.isdecimal() for part in parts):
            example = ".".join(f"<{option}>" for option in self.at)
            raise InputError(f"'{name}' must have whole numbers after @: {self.name}@{example}.")
        return self.with_options(dict(zip(self.at, map(int, parts), strict=False)))

    def cost(self, units: Units) -> Cost:
        """What the model reads for it at most."""
        return Cost.of(units.lengths, self.sets(units.lengths, **self.options))

    def of(self, request: Request) -> Scored:
        """The numbers of the units, and their cost."""
        return self.scores(request, **self.options)


def at_least_one(value: int, option: str) -> int:
    """A number of which there must be one."""
    if value < 1:
        raise InputError(f"{option} must be 1 or more; got {value}.")
    return value


def lengths_of_texts(units: Units) -> dict[int, Int[Tensor, " rows"]]:
    """For each length the texts that have it."""
    return {length: (units.lengths == length).nonzero().squeeze(1) for length in units.lengths.unique().tolist()}
