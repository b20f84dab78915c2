"""The runs of the study: Jain & Wallace's LSTM with tanh attention, trained as theirs and in the neighbours' ways.

`deceptive` takes attention from the words that belong to a class (Pruthi et al. 2020), `diverse` makes the hidden
vectors of a text point in different directions (Mohankumar et al. 2020); the number is λ, and λ = 0 is the base itself.
`sparsemax` and `entmax15` take the place of the softmax (Meister et al. 2021). The violation test (Liu et al. 2022) is
of all of them. Beside them stands the token-wise model, where attention is the only way to a word.

Differs from the papers: the data, the base and its training are Jain & Wallace's; the words that attention must leave
are those of a class in the training split, in place of lists by hand; hidden vectors are made diverse by training
only, and not orthogonal by the encoder.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from heedful.config import DataSettings, RunSettings
from heedful.studies.jain2019 import runs as jain2019
from heedful.studies.study import Selection
from heedful.studies.wiegreffe2019.runs import ALONE

LSTM, TOKEN_WISE = "lstm+tanh", "average+tanh"

STRENGTHS = (0.1, 1.0)
"""λ of the objectives."""

_LSTM, _TOKEN_WISE = (jain2019.MODELS[name] for name in (LSTM, TOKEN_WISE))


def _objective(name: str, strength: float) -> dict[str, Any]:
    return {"training.objective": name, "training.objective_weight": strength, **ALONE}


MODELS: Mapping[str, Mapping[str, Any]] = {
    LSTM: _LSTM,
    **{
        f"lstm+{name}-{strength:g}": {**_LSTM, **_objective(name, strength)}
        for name in ("deceptive", "diverse")
        for strength in STRENGTHS
    },
    **{f"lstm+{name}": {**_LSTM, "model.normaliser": name, **ALONE} for name in ("sparsemax", "entmax15")},
    TOKEN_WISE: _TOKEN_WISE,
    "average+deceptive-1": {**_TOKEN_WISE, **_objective("deceptive", 1.0)},
}
"""All models as changes of settings."""

FEW = (LSTM, "lstm+deceptive-1", "lstm+diverse-1", "lstm+sparsemax", TOKEN_WISE)
WHOLE = Selection(datasets=("sst",), models=tuple(MODELS), seeds=3, synthetic=False)
QUICK = Selection(datasets=("sst",), models=FEW, quick=True, synthetic=False)


def settings_of(dataset: str, model: str, seed: int = 0) -> RunSettings:
    """A model of the study on a data set."""
    return RunSettings(data=DataSettings(source=dataset)).change({**MODELS[model], "training.seed": seed})


trials = partial(jain2019.trials, settings=settings_of)
"""All runs, in the order of the tables."""
