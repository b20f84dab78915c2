"""The runs of the study: three encoders, two attentions.

`lstm` is bidirectional with 128 + 128, `conv` has widths 1, 3, 5 and 7 with 32 channels each, `average` is token-wise,
tanh(M e + c) with 128. Attention is `tanh`, a layer of half the hidden size before the context vector, or `dot`,
divided by the root of the hidden size. Adam with amsgrad at a rate of .001, decay of 1e-5 on everything but attention,
batches of 32, eight epochs, pretrained vectors (Jain & Wallace 2019, section 3 and appendix).

Differs from the paper: the epoch with the best dev accuracy is kept, where the published code kept the best on test;
vectors are GloVe's with 50 numbers; first values of attention are normal with the deviation of torch's uniform ones.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heedful.config import DataSettings, RunSettings
from heedful.studies.study import Selection, Trial

SHARED: Mapping[str, Any] = {
    "model.vectors": "glove",
    "model.embedding_size": 50,
    "model.dropout": 0.0,
    "model.readout_bias": True,
    "training.optimizer": "adam",
    "training.amsgrad": True,
    "training.learning_rate": 0.001,
    "training.learning_rate_decay": 0.0,
    "training.weight_decay": 1e-5,
    "training.decayed": "all but attention",
    "training.batch_size": 32,
    "training.epochs": 8,
    "training.ties": "first",
}

ENCODERS: Mapping[str, Mapping[str, Any]] = {
    "average": {"model.encoder": "tanh", "model.hidden_size": 128},
    "conv": {"model.encoder": "conv", "model.hidden_size": 128, "model.widths": [1, 3, 5, 7]},
    "lstm": {"model.encoder": "lstm", "model.hidden_size": 256},
}


def _attention(name: str, size: int) -> dict[str, Any]:
    """Of hidden vectors of this size; V is as wide as torch draws the weights of a layer with so many inputs."""
    if name == "dot":
        return {"model.attention": "dot", "model.score_scale": math.sqrt(size), **_deviation(size)}
    layer = {"model.attention": "additive", "model.attention_bias": True, "model.context_size": size // 2}
    return {**layer, "model.score_scale": 1.0, **_deviation(size // 2)}


def _deviation(inputs: int) -> dict[str, float]:
    return {"model.context_deviation": round(1 / math.sqrt(3 * inputs), 4)}


MODELS: Mapping[str, Mapping[str, Any]] = {
    f"{encoder}+{attention}": {
        **SHARED,
        **ENCODERS[encoder],
        **_attention(attention, ENCODERS[encoder]["model.hidden_size"]),
    }
    for encoder in ENCODERS
    for attention in ("tanh", "dot")
}
"""The paper's six models as changes of settings."""

FOUR = ("average+tanh", "average+dot", "lstm+tanh", "lstm+dot")
WHOLE = Selection(datasets=("sst", "20news-1", "amazon-multi"), models=tuple(MODELS), seeds=3, synthetic=False)
QUICK = Selection(datasets=("sst",), models=FOUR, quick=True, synthetic=False)


def settings_of(dataset: str, model: str, seed: int = 0, **changes: Any) -> RunSettings:
    """A model of the paper on a data set; further changes under dotted names."""
    own = {**MODELS[model], "training.seed": seed, **changes}
    return RunSettings(data=DataSettings(source=dataset)).change(own)


def trials(selection: Selection, settings: Callable[[str, str, int], RunSettings] = settings_of) -> list[Trial]:
    """All runs, in the order of the tables; `settings` are those of a data set, a model and a seed."""
    return [
        Trial(dataset=dataset, model=model, settings=settings(dataset, model, seed))
        for dataset in selection.datasets
        for model in selection.models
        for seed in range(selection.seeds)
    ]


def token_wise(wanted: Sequence[Trial]) -> list[Trial]:
    """Those whose words have a score of their own, of the first seed."""
    return [trial for trial in wanted if not trial.settings.model.contextual and trial.settings.training.seed == 0]


def cost(settings: RunSettings) -> float:
    """What takes longer comes first: an LSTM five times as long as a token-wise encoder, convolutions three times."""
    size = {"sst": 1.0, "20news-1": 1.6, "amazon-multi": 1.2}.get(settings.data.source, 2.0)
    return settings.training.epochs * size * {"lstm": 5.0, "conv": 3.0}.get(settings.model.encoder, 1.0)
