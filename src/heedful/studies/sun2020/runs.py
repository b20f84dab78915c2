"""The runs of the study on real data: a data set, a model, a λ and a seed become settings, and settings find runs.

The paper's models (Table 2): DP is dot-product attention on the embeddings, DP-L puts a bidirectional LSTM before it,
DP-A an affine layer, AD has additive attention. What the paper does not print is chosen here and said in `MODELS`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config import DataSettings, RunSettings
from heedful.errors import ConfigError, UnknownName
from heedful.papers.sun2020 import SCALES
from heedful.studies import runs
from heedful.studies.runs import Runs
from heedful.sweep.plan import Plan
from heedful.text.datasets import DATASETS

__all__ = ["MODELS", "NAMES", "QUICK", "Cell", "Runs", "Selection", "called", "plan_of"]

WEIGHT_DECAY = {"DP-L": 1e-5, "DP-A": 1e-5, "AD": 0.01}
"""L2 on the LSTM, affine and additive weights. The paper says that it was used, not how strong. The rule
was made after 0.01 for all had ruined DP-L's attention pattern at the same accuracy (docs/sun2020.md): of 1e-5, 1e-4 …
0.03 the weakest whose dev accuracy on SST at λ = 10 is within 0.7 points (half a standard error) of the best."""

MODELS: Mapping[str, Mapping[str, Any]] = {
    "DP": {},
    "DP-L": {
        "model.encoder": "lstm",
        "model.hidden_size": 100,  # 50 in each direction; the paper prints no size
        "training.weight_decay": WEIGHT_DECAY["DP-L"],
        "training.epochs": 20,
        "training.patience": 5,
    },
    "DP-A": {"model.encoder": "affine", "training.weight_decay": WEIGHT_DECAY["DP-A"]},
    "AD": {"model.attention": "additive", "training.weight_decay": WEIGHT_DECAY["AD"]},
}

NAMES: Mapping[str, str] = {"sst": "SST", "imdb": "IMDB", "20news-1": "20News I", "20news-2": "20News II"}
"""The data sets of the paper and what it calls them."""

QUICK_SCALES = (0.001, 1.0, 10.0, 100.0, 10000.0)

LARGE_CORPORA: Mapping[str, Mapping[str, Any]] = {"imdb": {"training.patience": 10}}
"""IMDB has 30 times the words of SST: ten epochs without a better dev accuracy end a training there."""


@dataclass(frozen=True, kw_only=True, order=True)
class Cell:
    """One cell of Table 2: a model with a λ on a data set; its runs differ in their seeds."""

    dataset: str
    model: str
    scale: float

    def settings(self, seed: int = 0) -> RunSettings:
        changes = {**LARGE_CORPORA.get(self.dataset, {}), **MODELS[self.model]}
        base = RunSettings(data=DataSettings(source=self.dataset))
        own = {"model.score_scale": self.scale, "training.ties": "first", "training.seed": seed}
        return base.change({**changes, **own})

    @property
    def title(self) -> str:
        return f"{called(self.dataset)} ({self.model}, λ={self.scale:g})"


def called(dataset: str) -> str:
    """What the paper calls a data set; a file is called by its name."""
    return NAMES.get(dataset, Path(dataset).name)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which cells of Table 2 to look at, with how many seeds."""

    datasets: tuple[str, ...] = tuple(NAMES)
    models: tuple[str, ...] = tuple(MODELS)
    scales: tuple[float, ...] = SCALES
    seeds: int = 1
    slow_models_at: tuple[float, ...] | None = None
    """The λ at which models other than DP are trained, where that is fewer."""

    def __post_init__(self) -> None:
        for dataset in self.datasets:
            if dataset not in DATASETS and not Path(dataset).is_file():
                raise UnknownName("data set", dataset, DATASETS)
        for model in self.models:
            if model not in MODELS:
                raise UnknownName("model", model, MODELS)
        for scale in self.scales:
            if not 0 < scale < float("inf"):
                raise ConfigError(f"λ divides the attention scores and must be a number above 0, not {scale:g}.")
        if self.seeds < 1:
            raise ConfigError(f"A study needs at least one seed, not {self.seeds}.")

    def cells(self) -> list[Cell]:
        """All cells, in the order of the table."""
        return [
            Cell(dataset=dataset, model=model, scale=scale)
            for dataset in self.datasets
            for model in self.models
            for scale in self.scales
            if model == "DP" or self.slow_models_at is None or scale in self.slow_models_at
        ]

    def settings(self) -> list[RunSettings]:
        return [cell.settings(seed) for cell in self.cells() for seed in range(self.seeds)]


QUICK = Selection(datasets=("sst",), scales=QUICK_SCALES, seeds=3, slow_models_at=(10.0,))
"""Minutes: SST, all λ that the claims compare for DP, λ = 10 for the others."""


def plan_of(name: str, settings: Iterable[RunSettings]) -> Plan:
    """The runs as a plan, each once; what takes longest comes first, so that workers end together."""
    return runs.plan_of(name, settings, _cost)


def _cost(settings: RunSettings) -> tuple[bool, bool, bool]:
    return settings.data.source == "imdb", settings.model.encoder == "lstm", settings.model.attention == "additive"
