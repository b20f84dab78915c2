"""The same explanation under small noise at what a model reads: for the metric `sensitivity`.

The texts stay as they are. The vector of every token moves by a share of its own length, in a direction drawn by the
number of the noise, the same wherever the token stands, so that changed texts are read under the same noise.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.errors import InputError
from heedful.explainers import explain
from heedful.explainers.explainer import Explainer
from heedful.explainers.gradients import table_of
from heedful.explainers.listening import pieces_of, tried
from heedful.explainers.registry import find_explainer
from heedful.explanations import Explanation
from heedful.probes.reading import ModelReading
from heedful.subjects import Reading

RADIUS = 0.05
"""By how much of its length every vector moves."""


def under_noise(
    reading: Reading,
    by: str | Explainer = "attention",
    *,
    radius: float = RADIUS,
    how: str | None = None,
    seed: int = 0,
) -> Callable[[int], Explanation]:
    """For `heedful.faithfulness(…, again={by: …})`: from the number of a noise to the explanation under it.

    It is of the class that the model decides for without noise; rankings of a trace are of the decision in any case.
    Chance of the explainer is the same under all noises, so that only the noise counts.
    """
    if against := no_noise(reading):
        raise InputError(f"There is no noise at what this model reads: {against}")
    if not 0 < radius < 1:
        raise InputError(f"radius is a share of a vector's length, between 0 and 1; got {radius}.")
    explainer = find_explainer(by)
    targets = None if explainer.family == "trace" else reading.decisions.cpu()

    def again(number: int) -> Explanation:
        with moved(reading, number, radius) as other:
            return explain(other, by=explainer, targets=targets, how=how, seed=seed)

    return again


def no_noise(reading: Reading) -> str:
    """Why there is none, or nothing: the vectors of tokens must be at hand."""
    if isinstance(reading, ModelReading):
        return "" if reading.model.reader is None else "the vectors of a frozen transformer were made beforehand."
    pieces = pieces_of(reading)
    if pieces is None:
        return "it needs a model with vectors of tokens: heedful's own, a transformer or a torch module."
    return tried(lambda: table_of(pieces))


@contextmanager
def moved(reading: Reading, number: int, radius: float) -> Iterator[Reading]:
    """The same texts as the model reads them under the noise of this number, while the block lasts."""
    noise = Noise(number, radius)
    if isinstance(reading, ModelReading):
        model = copy.deepcopy(reading.model)
        with torch.no_grad():
            model.embedding.add_(noise.at(torch.arange(len(model.embedding)), model.embedding))
        yield ModelReading.of(model, reading.split)
        return
    pieces = pieces_of(reading)
    assert pieces is not None
    handle = table_of(pieces).register_forward_hook(noise, with_kwargs=True)
    try:
        yield pieces.subject.read(pieces.units.texts or ())
    finally:
        handle.remove()


class Noise:
    """Moves vectors of tokens; what it drew for a token it remembers."""

    def __init__(self, number: int, radius: float) -> None:
        self.number, self.radius = number, radius
        self._drawn: dict[int, Float[Tensor, " features"]] = {}

    def __call__(self, _: nn.Module, given: tuple[Any, ...], named: dict[str, Any], told: Tensor) -> Tensor:
        numbers: Tensor = (*given, *named.values())[0]
        return told + self.at(numbers, told)

    def at(
        self, numbers: Int[Tensor, "*places"], vectors: Float[Tensor, "*places features"]
    ) -> Float[Tensor, "*places features"]:
        """By how much the vectors of these tokens move."""
        distinct, place = numbers.cpu().unique(return_inverse=True)
        drawn = torch.stack([self._direction(token, vectors.shape[-1]) for token in distinct.tolist()])
        sizes: Tensor = vectors.norm(dim=-1, keepdim=True)
        return self.radius * sizes * drawn[place].to(vectors)

    def _direction(self, token: int, size: int) -> Float[Tensor, " features"]:
        if token not in self._drawn:
            drawn = torch.from_numpy(np.random.default_rng([self.number, token]).normal(size=size))
            self._drawn[token] = drawn / drawn.norm()
        return self._drawn[token]
