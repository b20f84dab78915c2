"""The runs of the study: an LSTM whose attention is learned, even, frozen, attacked; a token-wise model given weights.

The base is Jain & Wallace's biLSTM with tanh attention, and everything is trained as theirs (`studies.jain2019.runs`).
With weights `uniform` attention is the mean, with `frozen` its parameters keep their first values. The diagnostic model
(`mlp`) is their token-wise one, tanh(M e + c), whose attention is even, its own, that of the base, or that of an
adversary of the base. An adversary has the architecture of its base and minimises TVD(ŷ, ŷ_base) − λ KL(α ‖ α_base) on
its outputs, without labels (Wiegreffe & Pinter 2019, sections 3 and 4).

Differs from the paper: epochs are chosen on dev, by accuracy or, of adversaries, by their objective, where the
published code looked at test; an adversary starts from the same first values as its base, having its seed; GloVe
vectors with 50 numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heedful.config import RunSettings
from heedful.studies.jain2019 import runs as jain2019
from heedful.studies.study import Selection, Trial

LSTM, ADVERSARY, MLP = "lstm+tanh", "adversary", "mlp"

LSTMS: Mapping[str, str] = {LSTM: "learned", "lstm+uniform": "uniform", "lstm+frozen": "frozen"}
"""Models of the uniform baseline, and what attention weights they have."""

GUIDES: Mapping[str, str] = {f"{MLP}+{weights}": weights for weights in ("uniform", "own", "base", "adversary")}
"""Diagnostic models, and whose weights they are given."""

ALONE: Mapping[str, Any] = {"record.scores": False}
"""Nobody looks at scores over the training time of runs that are of this study alone."""

_LSTM, _TOKEN_WISE = jain2019.MODELS[LSTM], jain2019.MODELS["average+tanh"]
MODELS: Mapping[str, Mapping[str, Any]] = {
    **{
        name: {**_LSTM, **({} if weights == "learned" else {"model.attention_weights": weights, **ALONE})}
        for name, weights in LSTMS.items()
    },
    ADVERSARY: {**_LSTM, "training.objective": "adversary", **ALONE},
    f"{MLP}+uniform": {**_TOKEN_WISE, "model.attention_weights": "uniform", **ALONE},
    f"{MLP}+own": _TOKEN_WISE,
    f"{MLP}+base": {**_TOKEN_WISE, "model.attention_weights": "given", **ALONE},
    f"{MLP}+adversary": {**_TOKEN_WISE, "model.attention_weights": "given", **ALONE},
}
"""All models as changes of settings."""

GUIDE = 0.01
"""λ of the adversary whose weights the diagnostic model is given where a claim compares: its attention is far away."""

STRENGTHS = (0.001, GUIDE)
MORE_STRENGTHS: Mapping[str, Sequence[float]] = {"sst": (0.0005, 0.001, 0.003, GUIDE, 0.1)}
"""λ of the adversaries, of data sets that have others."""

QUICK_STRENGTHS = (0.001, GUIDE)

WHOLE = Selection(datasets=("sst", "20news-1", "amazon-multi"), models=tuple(MODELS), seeds=3, synthetic=False)
QUICK = Selection(
    datasets=("sst",),
    models=tuple(name for name in MODELS if LSTMS.get(name) != "frozen"),
    seeds=2,
    quick=True,
    synthetic=False,
)


def strengths(selection: Selection, dataset: str) -> Sequence[float]:
    """λ of the adversaries."""
    return QUICK_STRENGTHS if selection.quick else MORE_STRENGTHS.get(dataset, STRENGTHS)


def settings_of(dataset: str, model: str, seed: int = 0, strength: float = GUIDE) -> RunSettings:
    """A model of the study on a data set; `strength` is λ of an adversary, or of the one whose weights are given."""
    own = RunSettings.of({"data": {"source": dataset}}).change({**MODELS[model], "training.seed": seed})
    if model == ADVERSARY:
        own = own.change({"training.objective_weight": strength})
    base = {ADVERSARY: LSTM, f"{MLP}+base": LSTM, f"{MLP}+adversary": ADVERSARY}.get(model)
    return own if base is None else own.change({"base": _dumped(settings_of(dataset, base, seed, strength))})


def _dumped(settings: RunSettings) -> dict[str, Any]:
    return settings.model_dump(mode="json")


def trials(selection: Selection, *models: str) -> list[Trial]:
    """The runs of these models, as far as they are selected, in the order of the tables; all without a name."""
    wanted = [name for name in models or MODELS if name in selection.models]
    return list(_trials(selection, wanted))


def _trials(selection: Selection, models: Sequence[str]) -> Iterator[Trial]:
    for dataset in selection.datasets:
        for model in models:
            varied = strengths(selection, dataset) if model in {ADVERSARY, f"{MLP}+adversary"} else (GUIDE,)
            for strength in varied:
                for seed in range(selection.seeds):
                    yield Trial(dataset=dataset, model=model, settings=settings_of(dataset, model, seed, strength))


def strength_of(settings: RunSettings) -> float | None:
    """λ of an adversary, or of the one whose weights are given; None where there is none."""
    adversary = settings if settings.training.objective == "adversary" else settings.base
    is_one = adversary is not None and adversary.training.objective == "adversary"
    return adversary.training.objective_weight if adversary is not None and is_one else None


def cost(settings: RunSettings) -> tuple[int, float]:
    """Bases come before what rests on them, and then what takes longer before what does not."""
    depth, base = 0, settings.base
    while base is not None:
        depth, base = depth + 1, base.base
    return -depth, jain2019.cost(settings)
