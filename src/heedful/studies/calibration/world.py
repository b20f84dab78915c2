"""A world is a value: what kind it is, how its texts are, and a seed that draws everything else."""

from dataclasses import dataclass

import numpy as np

from heedful.studies.calibration.language import LENGTHS, SHARES

PLANTED = (
    "informative",
    "blind",
    "misleading",
    "corpus only",
    "decision only",
    "graded",
    "found in part",
    "unsound",
    "frequency",
)
"""Kinds of worlds whose attention is planted (`heedful.studies.calibration.attention`)."""

TRAINED = ("noise", "copies", "words", "one word")
"""Kinds of worlds in which a model is trained (`heedful.studies.calibration.trained`)."""

KINDS = (*PLANTED, *TRAINED)


@dataclass(frozen=True, kw_only=True)
class World:
    """One world; everything else about it is drawn by the seed."""

    kind: str
    classes: str
    length: str
    texts: int
    seed: int
    bursts: bool = False
    """Whether a word of a text is repeated there."""
    bias: bool = False
    """Whether the readout has a bias."""

    def rng(self) -> np.random.Generator:
        """The chance of this world."""
        places = KINDS.index(self.kind), list(SHARES).index(self.classes), list(LENGTHS).index(self.length)
        return np.random.default_rng([self.seed, self.texts, *places])
