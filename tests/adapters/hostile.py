"""Predictors that are wrong, each in its own way, and predictors that are right in every form of answer."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.random import Generator
from numpy.typing import NDArray

Predictor = Callable[[list[str]], Any]


def fair(generator: Generator, rows: int, classes: int = 0) -> NDArray[np.float64]:
    """Random probabilities."""
    return generator.dirichlet(np.ones(classes or int(generator.integers(2, 6))), size=rows)


def holding(*strange: float) -> Callable[[Generator], Predictor]:
    """Probabilities of which one is something else."""

    def make(generator: Generator) -> Predictor:
        classes, value = int(generator.integers(2, 6)), strange[int(generator.integers(len(strange)))]

        def predict(texts: list[str]) -> Any:
            told = fair(generator, len(texts), classes)
            told[generator.integers(len(texts)), generator.integers(classes)] = value
            return told if generator.random() < 0.5 else told.tolist()

        return predict

    return make


def of_another_shape(generator: Generator) -> Predictor:
    classes = int(generator.integers(2, 6))
    shapes: Sequence[Callable[[int], tuple[int, ...]]] = (
        lambda rows: (rows + 1, classes),
        lambda rows: (rows - 1, classes),
        lambda _: (1, classes),
        lambda _: (classes,),
        lambda rows: (rows, classes, 1),
        lambda rows: (1, rows, classes),
        lambda _: (),
        lambda _: (0,),
        lambda rows: (rows, 0),
        lambda rows: (2 * rows, classes),
        lambda rows: (rows, rows + 1),
    )
    shape = shapes[int(generator.integers(len(shapes)))]
    return lambda texts: np.full(shape(len(texts)), 1 / classes)


def scaled(generator: Generator) -> Predictor:
    size, classes = generator.choice([0.0, 0.5, 0.9, 1.1, 2.0, 100.0, -1.0, 1e300]), int(generator.integers(2, 6))
    return lambda texts: size * fair(generator, len(texts), classes)


def logits(generator: Generator) -> Predictor:
    classes = int(generator.integers(2, 6))
    return lambda texts: 3 + generator.normal(size=(len(texts), classes)) ** 2


def below_zero(generator: Generator) -> Predictor:
    by = generator.uniform(0.01, 5)
    return lambda texts: [[1 + by, -by]] * len(texts)


def beyond_one(generator: Generator) -> Predictor:
    by = generator.uniform(0.01, 5)
    return lambda texts: [1 + by] * len(texts)


def of_another_kind(generator: Generator) -> Predictor:
    kinds: Sequence[Predictor] = (
        lambda texts: [[0.5 + 0.1j, 0.5]] * len(texts),
        lambda texts: np.full((len(texts), 2), 0.5 + 0.5j),
        lambda texts: torch.full((len(texts), 2), 0.5 + 0.5j),
        lambda texts: [["0.5", "0.5"]] * len(texts),
        lambda texts: np.full((len(texts), 2), "0.5"),
        lambda texts: np.full((len(texts), 2), b"0.5"),
        lambda _: "positive",
        lambda texts: ["positive"] * len(texts),
        lambda texts: [{"label": "yes", "score": 0.9}] * len(texts),
        lambda texts: dict.fromkeys(texts, 0.5),
        lambda texts: set(texts),
        lambda _: None,
        lambda texts: [None] * len(texts),
        lambda texts: [[None, 0.5]] * len(texts),
        lambda texts: (0.5 for _ in texts),
        lambda texts: map(len, texts),
        lambda texts: iter([[0.5, 0.5]] * len(texts)),
        lambda _: len,
        lambda _: object(),
        lambda texts: np.full((len(texts), 2), np.datetime64("2020-01-01")),
        lambda texts: np.full((len(texts), 2), np.timedelta64(1, "D")),
        lambda texts: np.zeros(len(texts), dtype=[("no", float), ("yes", float)]),
        lambda texts: torch.empty(len(texts), 2, device="meta"),
        lambda texts: torch.full((len(texts), 2), 0.5).to_sparse(),
        lambda texts: pd.DataFrame({"no": ["x"] * len(texts), "yes": 0.5}),
        lambda texts: [[10**400, -(10**400) + 1]] * len(texts),
        lambda texts: [[0.5, 0.5]] * (len(texts) - 1) + [[1.0]],
        lambda texts: [[0.5, [0.5]]] * len(texts),
        lambda _: endless(),
        lambda _: Lying(),
        lambda _: NotImplemented,
        lambda _: type,
        lambda texts: [texts] * len(texts),
    )  # fmt: skip
    return kinds[int(generator.integers(len(kinds)))]


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


class Lying:
    """Says that it is an array and is none."""

    def __array__(self, *_: object, **__: object) -> Any:
        raise LookupError("there is no array")

    def __len__(self) -> int:
        return 10**9


class Unspeakable(Exception):
    """Cannot be said."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def failing(generator: Generator) -> Predictor:
    kinds = (ValueError("no"), KeyError("text"), TypeError(), RuntimeError("a\nb" * 400), ZeroDivisionError("."))
    kinds += (StopIteration(3), RecursionError("deep"), MemoryError(), UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"))  # type: ignore[assignment]
    kinds += (Unspeakable(), AssertionError(), OSError(2, "gone"), Warning("careful"), GeneratorError("x"))  # type: ignore[assignment]
    chosen: Exception = kinds[int(generator.integers(len(kinds)))]

    def predict(_: list[str]) -> Any:
        raise chosen

    return predict


class GeneratorError(Exception):
    """An exception of one's own."""


def by_chance(generator: Generator) -> Predictor:
    return lambda texts: fair(generator, len(texts), 3)


def another_count_each_time(generator: Generator) -> Predictor:
    counts = iter(generator.permutation(np.arange(2, 40)).tolist())
    return lambda texts: np.full((len(texts), count := next(counts)), 1 / count)


def emptying(_: Generator) -> Predictor:
    def predict(texts: list[str]) -> Any:
        texts.clear()
        return [[0.5, 0.5] for _ in texts]

    return predict


def by_neighbours(_: Generator) -> Predictor:
    """What it says of a text depends on the others: a batch is normalised as a whole."""
    return lambda texts: [len(text) / (1 + sum(map(len, texts))) for text in texts]


def late(generator: Generator) -> Predictor:
    """All is well until a word comes."""
    wrong = EARLY[int(generator.integers(len(EARLY)))](generator)

    def predict(texts: list[str]) -> Any:
        return wrong(texts) if any("trouble" in text for text in texts) else [[0.25, 0.5, 0.25]] * len(texts)

    return predict


EARLY = (holding(np.nan, np.inf, -np.inf), of_another_kind, below_zero, beyond_one, failing, emptying, scaled)

WRONG: Sequence[Callable[[Generator], Predictor]] = (
    *EARLY,
    of_another_shape,
    logits,
    by_chance,
    another_count_each_time,
    by_neighbours,
    late,
    late,
)
"""Each makes a predictor from which nothing can be learnt."""


def a_good_one(generator: Generator) -> tuple[Predictor, Callable[[str], list[float]]]:
    """A predictor, and what it says of a text."""
    classes = int(generator.integers(2, 5))
    shift = generator.normal(size=classes)

    def plain(text: str) -> list[float]:
        strengths = np.exp(shift * (len(text) % 7) / 3)
        return [float(strength) for strength in strengths / strengths.sum()]

    forms: Sequence[Callable[[list[list[float]]], Any]] = (
        list,
        tuple,
        np.array,
        lambda rows: np.array(rows, dtype=np.float16),
        lambda rows: np.array(rows, dtype=object),
        lambda rows: [[Fraction(number) for number in row] for row in rows],
        lambda rows: torch.tensor(rows, requires_grad=True),
        lambda rows: torch.tensor(rows, dtype=torch.bfloat16).double().softmax(1) * 0 + torch.tensor(rows).double(),
        pd.DataFrame,
        lambda rows: np.array(rows)[:, 1] if classes == 2 else np.array(rows),
        lambda rows: np.array(rows)[:, 1:] if classes == 2 else np.array(rows),
    )
    form = forms[int(generator.integers(len(forms)))]
    return lambda texts: form([plain(text) for text in texts]), plain
