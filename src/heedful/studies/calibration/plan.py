"""Which worlds are made: every kind with every set of classes, the rest by coins."""

import itertools
from collections.abc import Sequence

import numpy as np

from heedful.errors import ConfigError
from heedful.studies.calibration.language import LENGTHS, SHARES
from heedful.studies.calibration.world import KINDS, PLANTED, TRAINED, World

SIZES = (200, 2_000, 20_000)
TRAINED_SIZES = (500, 2_000)
TRAINED_CLASSES = ("50:50", "90:10", "10 even")
TRAINED_SEEDS = 2
"""For each seed of the planted worlds."""


def worlds(*, seeds: int = 2, first: int = 0, sizes: Sequence[int] = SIZES) -> list[World]:
    """Every kind of attention with all class sizes, both lengths, these numbers of texts, and seeds from `first` on."""
    if seeds < 1 or first < 0 or min(sizes, default=0) < 100:
        raise ConfigError(
            "Calibration takes 1 seed or more, from 0 on, and worlds of 100 texts or more, not "
            f"{seeds} from {first} on and {sizes}."
        )
    chances = range(first, first + seeds)
    return [_world(*place) for place in itertools.product(chances, sizes, PLANTED, SHARES, LENGTHS)]


def trained_worlds(*, seeds: int = 2, first: int = 0, sizes: Sequence[int] = TRAINED_SIZES) -> list[World]:
    """Every kind of world in which a model is trained, few classes and many, both lengths, these numbers of texts."""
    chances = range(TRAINED_SEEDS * first, TRAINED_SEEDS * (first + seeds))
    return [_world(*place) for place in itertools.product(chances, sizes, TRAINED, TRAINED_CLASSES, LENGTHS)]


def _world(seed: int, texts: int, kind: str, classes: str, length: str) -> World:
    """In half of the worlds words come in bursts, and in half of them the readout has a bias."""
    bursts, bias = np.random.default_rng([seed, texts, KINDS.index(kind), *map(ord, classes + length)]).random(2) < 0.5
    return World(
        kind=kind, classes=classes, length=length, texts=texts, seed=seed, bursts=bool(bursts), bias=bool(bias)
    )
