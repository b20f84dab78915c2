"""Sun & Lu 2020 on synthetic data (supplement B–F): the paper's recipe, and all trainings that the study records."""

from collections.abc import Callable, Sequence
from typing import Any

from heedful.config import ModelSettings, TrainingSettings
from heedful.store import Store
from heedful.studies.sun2020.recording import (
    BATCH,
    EVERY,
    RATE,
    STEPS,
    PlantedSettings,
    Recording,
    Recordings,
    RecordingSettings,
    record,
)

__all__ = ["RATIOS", "Recording", "Recordings", "plan", "ratio_name", "recipe", "recordings"]

EPOCHS = 500

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


def recipe(
    *,
    seed: int = 0,
    quick: bool = False,
    data: PlantedSettings | None = None,
    attention: str = "dot",
    encoder: str = "none",
    score_scale: float = 10.0,
    embedding_range: float = 0.1,
    penalty: float = 0.0,
) -> RecordingSettings:
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
    return RecordingSettings(
        data=data or PlantedSettings(),
        model=ModelSettings.of(model),
        training=TrainingSettings.of(training),
        every=EPOCHS // haste * STEPS // QUICK_MOMENTS if quick else EVERY,
    )


def plan(*, quick: bool = False) -> dict[str, tuple[RecordingSettings, ...]]:
    """All recordings of the study by the name of their set; equal settings in two sets are one recording."""
    noisy, several = PlantedSettings(noise=0.05), PlantedSettings(classes=3)

    def seeds(**changes: Any) -> tuple[RecordingSettings, ...]:
        return tuple(recipe(seed=seed, quick=quick, **changes) for seed in (QUICK_SEEDS if quick else SEEDS))

    sets = {
        "data-1": seeds(),
        "penalised": seeds(penalty=PENALTY),
        "data-2": seeds(data=noisy),
        "wide": seeds(embedding_range=1.0),
        "affine": (recipe(quick=quick, encoder="affine", penalty=PENALTY),),
        "additive": (recipe(quick=quick, attention="additive"),),
        "multi": (recipe(quick=quick, data=several),),
    }
    for share in RATIOS:
        data = PlantedSettings(positive_share=share)
        sets[ratio_name(share)] = tuple(recipe(seed=seed, quick=quick, data=data) for seed in RATIO_SEEDS)
    return {**sets, "large-scale": seeds(score_scale=100.0)}


def ratio_name(positive_share: float) -> str:
    """The name of a set of recordings with so many positive texts."""
    return f"ratio-{positive_share:g}"


def recordings(
    store: Store,
    *,
    quick: bool = False,
    sets: Sequence[str] | None = None,
    workers: int | None = None,
    watch: Callable[[Recording], None] | None = None,
) -> dict[str, list[Recording]]:
    """The named sets of the plan (by default all), recorded where they are missing."""
    planned = plan(quick=quick)
    names = tuple(planned) if sets is None else tuple(dict.fromkeys(sets))
    wanted = [settings for name in names for settings in planned[name]]
    found = dict(zip(wanted, record(store, wanted, workers=workers, watch=watch), strict=True))
    return {name: [found[settings] for settings in planned[name]] for name in names}
