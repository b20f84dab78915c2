"""A run is a value: frozen settings with defaults, readable from and written to JSON, identified by a digest."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heedful.errors import ConfigError
from heedful.version import RESULTS_VERSION


class Settings(BaseModel):
    """Frozen, no unknown keys, no NaN; a wrong value is a sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Validated settings, or a ConfigError that names every wrong value."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise ConfigError(_sentences(cls, error)) from None


class DataSettings(Settings):
    """Which corpus, and how its text is read."""

    source: str = "synthetic-1"  # a corpus name or a path
    seed: int = 0  # draws splits and synthetic corpora; not the training seed, so that seeds share their data
    text_column: str | None = None
    label_column: str | None = None
    split_column: str | None = None
    tokenizer: Literal["words", "whitespace"] = "words"
    lowercase: bool = True
    min_count: int = Field(1, ge=1)
    encoding: str = "utf-8"


class ModelSettings(Settings):
    """The classifier of Sun & Lu 2020, section 3, and its variants. Defaults reproduce their published figures."""

    attention: Literal["dot", "additive"] = "dot"
    encoder: Literal["none", "affine", "lstm"] = "none"
    score_scale: float = Field(10.0, gt=0)  # λ, a divisor: √d keeps scores of order one
    embedding_size: int = Field(100, ge=1)
    hidden_size: int = Field(100, ge=1)  # an LSTM has half of it in each direction
    dropout: float = Field(0.5, ge=0, lt=1)  # on the embeddings and on the document vector
    dropout_mask: Literal["token", "occurrence"] = "token"  # one mask per distinct token of a batch, or per occurrence
    embedding_range: float = Field(0.1, gt=0)  # uniform in ±
    context_deviation: float = Field(1.0, gt=0)  # V ~ N(0, ·²): the norm matters for how fast attention develops
    readout_range: float | None = Field(None, gt=0)  # W uniform in ±; None is 1/√d


class TrainingSettings(Settings):
    """How the classifier is fitted."""

    optimizer: Literal["adagrad", "sgd", "adam"] = "adagrad"
    learning_rate: float = Field(0.02, gt=0)
    learning_rate_decay: float = Field(0.001, ge=0)  # rate / (1 + decay · step)
    weight_decay: float = Field(0.0, ge=0)  # on affine, LSTM and additive weights, the parts the paper regularises
    alignment_penalty: float = Field(0.0, ge=0)  # c in c·|VᵀW|
    batch_size: int = Field(100, ge=1)
    epochs: int = Field(40, ge=1)
    patience: int | None = Field(None, ge=1)  # epochs without a better dev accuracy before stopping
    clip: float | None = Field(None, gt=0)  # largest gradient norm
    seed: int = Field(0, ge=0)
    threads: int = Field(1, ge=1)  # part of the identity: sums depend on it
    device: str = "cpu"


class RunSettings(Settings):
    """Everything that decides what a run computes."""

    data: DataSettings = DataSettings()
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()

    def digest(self, fingerprint: str) -> str:
        """The run's identity: canonical settings, the data's fingerprint, and the version of what affects results."""
        content = {"settings": self.model_dump(mode="json"), "data": fingerprint, "results": RESULTS_VERSION}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _sentences(cls: type[Settings], error: ValidationError) -> str:
    parts = []
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            parts.append(f"There is no setting '{place}'; known: {', '.join(cls.model_fields)}.")
        else:
            parts.append(f"Setting '{place}' is {problem['input']!r}: {problem['msg'].lower()}.")
    return " ".join(parts)
