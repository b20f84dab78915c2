"""Sun & Lu 2020 on synthetic data (supplement B–F): the paper's recipe, and all trainings that the study records.

A recording is a run that looks at the dynamics while it trains (`record.flow`); its tables are named without `flow_`.
"""

from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from heedful.config import RunSettings
from heedful.pipeline import Run
from heedful.text.synthetic import DESCRIBED, TRAIN_SIZE

RATE, BATCH = 0.015, 200
"""The paper's fixed learning rate and batch size."""

EPOCHS, STEPS = 500, TRAIN_SIZE // BATCH
"""Epochs, and the steps of one."""

EVERY = 5 * STEPS
"""Steps between the moments that are kept."""

HASTE = 25
"""Quick recordings take 25 times the rate for a 25th of the epochs: the same time of gradient flow. The step is still
small against the curvature: final scores differ from those at the paper's rate in the third digit."""

QUICK_MOMENTS = 50
"""So many moments of a quick recording are kept."""

PENALTY = 1e-3
"""c of c·|VᵀW| on synthetic data."""

SEEDS = (0, 1, 2, 3, 4)
QUICK_SEEDS = (0, 1, 2)
RATIO_SEEDS = (0, 1, 2, 3)
RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Shares of positive texts. The paper has five ratios and does not print them."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A synthetic corpus: Data I by default, Data II with noise, skewed, or of several classes."""

    classes: int = 2
    noise: float = 0.0
    """The share of texts with words of another class."""
    positive_share: float = 0.5
    size: int = TRAIN_SIZE

    @property
    def source(self) -> str:
        """The corpus as `load_corpus` takes it: what is not as usual."""
        unusual = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        return DESCRIBED + ",".join(f"{name}={getattr(self, name)}" for name in unusual)

    @classmethod
    def of(cls, source: str) -> "Planted":
        """The corpus that such a text describes."""
        said = dict(part.split("=") for part in source.removeprefix(DESCRIBED).split(",") if part)
        return cls(**{name: type(usual)(said[name]) for name, usual in vars(cls()).items() if name in said})


@dataclass(frozen=True)
class Recording:
    """A run that was recorded; its tables are read when they are asked for."""

    run: Run

    @property
    def settings(self) -> RunSettings:
        return self.run.settings

    @property
    def data(self) -> Planted:
        return Planted.of(self.settings.data.source)

    @property
    def seed(self) -> int:
        return self.settings.training.seed

    @property
    def test_accuracy(self) -> float:
        """After the last epoch, not after the best."""
        return float(self.table("accuracy")["test_accuracy"].item())

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables; `time` counts epochs of the paper's rate and batches, so that quick recordings compare."""
        table = self.run.table(name if name == "history" else f"flow_{name}")
        if "step" in table:
            table.insert(2, "time", table["step"] * self.settings.training.learning_rate / (RATE * STEPS))
        return table


def recipe(
    *,
    seed: int = 0,
    quick: bool = False,
    data: Planted | None = None,
    attention: str = "dot",
    encoder: str = "none",
    score_scale: float = 10.0,
    embedding_range: float = 0.1,
    penalty: float = 0.0,
) -> RunSettings:
    """The paper's synthetic recipe: SGD at a fixed rate, d = 100, W ~ U(−1, 1), no dropout."""
    haste = HASTE if quick else 1
    model = {
        "attention": attention,
        "encoder": encoder,
        "score_scale": score_scale,
        "embedding_range": embedding_range,
        "readout_range": 1.0,
        "dropout": 0.0,
    }
    training = {
        "optimizer": "sgd",
        "learning_rate": RATE * haste,
        "learning_rate_decay": 0.0,
        "batch_size": BATCH,
        "epochs": EPOCHS // haste,
        "alignment_penalty": penalty,
        "seed": seed,
    }
    every = EPOCHS // haste * STEPS // QUICK_MOMENTS if quick else EVERY
    source = (data or Planted()).source
    return RunSettings.of({"data": {"source": source}, "model": model, "training": training, "record": {"flow": every}})


def plan(*, quick: bool = False) -> dict[str, tuple[RunSettings, ...]]:
    """All recordings of the study by the name of their set; equal settings in two sets are one recording."""

    def seeds(**changes: Any) -> tuple[RunSettings, ...]:
        return tuple(recipe(seed=seed, quick=quick, **changes) for seed in (QUICK_SEEDS if quick else SEEDS))

    sets = {
        "data-1": seeds(),
        "penalised": seeds(penalty=PENALTY),
        "data-2": seeds(data=Planted(noise=0.05)),
        "wide": seeds(embedding_range=1.0),
        "affine": (recipe(quick=quick, encoder="affine", penalty=PENALTY),),
        "additive": (recipe(quick=quick, attention="additive"),),
        "multi": (recipe(quick=quick, data=Planted(classes=3)),),
    }
    for share in RATIOS:
        data = Planted(positive_share=share)
        sets[ratio_name(share)] = tuple(recipe(seed=seed, quick=quick, data=data) for seed in RATIO_SEEDS)
    return {**sets, "large-scale": seeds(score_scale=100.0)}


def ratio_name(positive_share: float) -> str:
    """The name of a set of recordings with so many positive texts."""
    return f"ratio-{positive_share:g}"
