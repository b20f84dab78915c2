"""A run is a value: frozen settings with defaults, TOML and JSON both ways, identified by a digest."""

import csv
import difflib
import io
import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_serializer,
    model_validator,
)

from heedful.errors import ConfigError, border
from heedful.files import digest_of, digest_of_files, is_file, write_text
from heedful.limits import DEPTH
from heedful.version import RESULTS_VERSION

S = TypeVar("S", bound="Settings")  # not Self, which the checks of shapes cannot read

BASE = "base"

ENCODER_FILES = (
    "config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer*", "vocab*", "merges.txt", "*.model",
    "special_tokens_map.json", "added_tokens.json",
)  # fmt: skip
"""What a transformer's folder holds that can change what it says of a text."""

HEAD: Mapping[str, Any] = {
    "model.score_scale": 20.0,  # √d
    "model.dropout": 0.1,
    "model.readout_bias": True,
    "training.optimizer": "adam",
    "training.learning_rate": 0.01,
    "training.epochs": 25,
    "training.patience": 6,
}
"""How a head on a frozen transformer is usually trained, chosen by the dev accuracy of MiniLM on SST. The defaults
below are for embeddings that learn along, and leave such a head half trained."""


def _odd(number: int) -> int:
    if number % 2 == 0:
        raise ValueError("a window has a middle, so its width is odd")
    return number


def _as_text(path: Any) -> Any:
    return os.fspath(path) if isinstance(path, os.PathLike) else path


FolderName = Annotated[str, BeforeValidator(_as_text)]
OddNumber = Annotated[int, Field(ge=1), AfterValidator(_odd)]


class Settings(BaseModel):
    """Frozen, no unknown keys, no NaN; a wrong value is a sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    @classmethod
    def of(cls: type[S], values: Mapping[str, Any]) -> S:
        """Validated settings, or a ConfigError that names every wrong value."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise ConfigError(" ".join(_sentence(cls, problem) for problem in error.errors())) from None


def write_split_values(values: Any) -> Any:
    """What the values of a split column mean, {"validate": "dev"}, as the command line has it: dev=validate."""
    if not isinstance(values, Mapping):
        return values
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="").writerow(f"{split}={value}" for value, split in values.items())
    return line.getvalue()


class DataSettings(Settings):
    """Which corpus, and how its text is read."""

    source: str = "synthetic-1"  # a corpus name or a path
    seed: int = Field(0, ge=0)  # draws splits and made corpora; not the training's, so that seeds share their data
    text_column: str | None = None
    label_column: str | None = None
    split_column: Literal["none"] | str | None = None  # none: no column is used; None: one is recognised
    split_values: Annotated[str | None, BeforeValidator(write_split_values)] = None  # text, as settings can be keys
    missing_labels: Literal["skip", "keep"] = "skip"  # rows labelled NaN, null, N/A …: left out, or a class
    tokenizer: Literal["words", "alphanumeric", "whitespace"] = "words"
    lowercase: bool = True
    min_count: int = Field(1, ge=1)
    encoding: str = "utf-8"


class ModelSettings(Settings):
    """The classifier of Sun & Lu 2020, section 3, and its variants. Defaults reproduce their published figures.

    HAN and FLAN of Serrano & Smith 2019 are `structure` hierarchical and flat with additive attention, the encoder gru,
    conv or none, and both biases. The models of Jain & Wallace 2019 have the encoder tanh ("average"), lstm, or conv
    with windows of 1, 3, 5 and 7 tokens, and dot attention with λ = √H or additive attention of half the hidden size.
    """

    structure: Literal["flat", "hierarchical"] = "flat"  # attention over words, or over words and then sentences
    attention: Literal["dot", "additive"] = "dot"
    attention_weights: Literal["learned", "uniform", "frozen", "given"] = "learned"  # of the final attention
    normaliser: Literal["softmax", "sparsemax", "entmax15"] = "softmax"  # of the scores: which weights they become
    encoder: Literal["none", "affine", "tanh", "lstm", "gru", "conv", "transformer"] = "none"
    encoder_path: FolderName | None = (
        None  # of transformer: a local folder with its weights and tokenizer; it stays frozen
    )
    encoder_layer: int | None = Field(None, ge=0)  # whose vectors are read, 0 the embeddings; None: two thirds up
    widths: Annotated[tuple[OddNumber, ...], Field(min_length=1)] = (3, 5)  # of the windows of conv, in tokens
    score_scale: float = Field(10.0, gt=0)  # λ, a divisor: √d keeps scores of order one
    embedding_size: int = Field(100, ge=1)
    hidden_size: int = Field(100, ge=1)  # an LSTM has half of it in each direction, each window of conv an equal part
    context_size: int | None = Field(None, ge=1)  # of the tanh layer of additive attention; None: as the hidden vectors
    dropout: float = Field(0.5, ge=0, lt=1)  # on the embeddings
    document_dropout: float | None = Field(None, ge=0, lt=1)  # on the document vector; None: as on the embeddings
    sentence_dropout: float = Field(0.0, ge=0, lt=1)  # on the sentence vectors of a hierarchical model
    logit_dropout: float = Field(0.0, ge=0, lt=1)  # on the logits, where Serrano & Smith's runs had it
    attention_bias: bool = False  # of the tanh layer of additive attention
    readout_bias: bool = False
    dropout_mask: Literal["token", "occurrence"] = "token"  # one mask per distinct token of a batch, or per occurrence
    embedding_range: float = Field(0.1, gt=0)  # uniform in ±
    vectors: str = (
        "random"  # of the tokens at first: drawn; word2vec of the training text; glove of the data folder; a file
    )
    context_deviation: float = Field(1.0, gt=0)  # V ~ N(0, ·²): the norm matters for how fast attention develops
    readout_range: float | None = Field(None, gt=0)  # W uniform in ±; None is 1/√d

    @model_validator(mode="after")
    def _transformer_is_there(self) -> "ModelSettings":
        if self.encoder != "transformer":
            return self
        if self.encoder_path is None:
            raise ValueError(
                "The encoder transformer is one of a local folder: name it, model.encoder_path=FOLDER (config.json, "
                "model.safetensors, tokenizer.json)."
            )
        if self.structure == "hierarchical" or self.vectors != "random":
            raise ValueError(
                "A frozen transformer gives the vectors of words: with it model.structure is flat and model.vectors "
                f"random, not {self.structure} and {self.vectors}."
            )
        return self

    @property
    def contextual(self) -> bool:
        """Whether what a unit says hangs on its neighbours."""
        return self.structure == "hierarchical" or self.encoder not in {"none", "affine", "tanh"}

    @property
    def unit(self) -> str:
        """What has the weights of a text."""
        return "sentences" if self.structure == "hierarchical" else "words"


class TrainingSettings(Settings):
    """How the classifier is fitted."""

    optimizer: Literal["adagrad", "sgd", "adam"] = "adagrad"
    amsgrad: bool = False  # Adam that divides by the largest second moment so far (Reddi et al. 2018)
    learning_rate: float = Field(0.02, gt=0)
    learning_rate_decay: float = Field(0.001, ge=0)  # rate / (1 + decay · step)
    weight_decay: float = Field(0.0, ge=0)
    decayed: Literal["layers", "all but attention"] = "layers"  # encoder and additive weights, as Sun & Lu 2020 decay
    alignment_penalty: float = Field(0.0, ge=0)  # c in c·|VᵀW|
    objective: Literal["cross_entropy", "adversary", "deceptive", "diverse"] = "cross_entropy"
    objective_weight: float = Field(1.0, ge=0)  # λ of the other objectives (`heedful.training.objectives`)
    batch_size: int = Field(100, ge=1)
    epochs: int = Field(40, ge=1)
    ties: Literal["loss", "first"] = "loss"  # of epochs with equal dev accuracy the one kept; the papers' is the first
    patience: int | None = Field(None, ge=1)  # epochs without a better one before stopping
    plateau: int | None = Field(None, ge=1)  # epochs without a better dev accuracy before the rate is halved
    clip: float | None = Field(None, gt=0)  # largest gradient norm
    seed: int = Field(0, ge=0)
    threads: int = Field(1, ge=1)  # part of the identity: sums depend on it
    device: str = "cpu"

    @model_validator(mode="after")
    def _amsgrad_is_adam(self) -> "TrainingSettings":
        if self.amsgrad and self.optimizer != "adam":
            raise ValueError(
                f"AMSGrad is a form of Adam; the optimizer is {self.optimizer}. Set training.optimizer to adam, or "
                "training.amsgrad to false."
            )
        return self


class RecordSettings(Settings):
    """What is written down while the classifier is fitted; it changes no other result."""

    scores: bool = True  # attention and polarity of the commonest tokens after every epoch: the table `moments`
    flow: int | None = Field(None, ge=1)  # steps from one look at the dynamics to the next; None: no tables `flow_…`
    pairs: int = Field(100, ge=1)  # of tokens whose dot products `flow` follows, for every two groups
    tokens: bool = True  # whether `flow` keeps the scores of every token


class RunSettings(Settings):
    """Everything that decides what a run computes: which data, which model, how it is trained, what is recorded.

    data: `DataSettings`, which corpus and how its text is read; synthetic-1 unless another is named
    model: `ModelSettings`, the classifier; that of Sun & Lu 2020 with dot-product attention, no encoder, λ = 10
    training: `TrainingSettings`, how it is fitted; 40 epochs of Adagrad
    record: `RecordSettings`, what is written down while it is fitted; the scores of common tokens
    base: `RunSettings` of the run whose traces this one rests on, or None: it gives the weights where
        model.attention_weights is given, and what an adversary stays near. It reads the same data.

    Every setting is described where it is defined, in `heedful.config`. Settings are frozen values: `change` and
    `override` make new ones, `read` and `write` are TOML or JSON, `digest` is the identity of the run.

    >>> import heedful
    >>> usual = heedful.RunSettings()
    >>> (usual.data.source, usual.model.attention, usual.model.score_scale, usual.training.epochs)
    ('synthetic-1', 'dot', 10.0, 40)
    >>> changed = usual.override(["model.score_scale=100", "data.source=reviews.csv"])
    >>> changed.model.score_scale, changed.data.source
    (100.0, 'reviews.csv')
    >>> usual.override(["model.score_scael=100"])
    Traceback (most recent call last):
    heedful.errors.ConfigError: There is no setting 'model.score_scael'; did you mean 'model.score_scale'? Known: ...
    """

    data: DataSettings = DataSettings()
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()
    record: RecordSettings = RecordSettings()
    base: "RunSettings | None" = None

    @model_validator(mode="before")
    @classmethod
    def _give_the_base_the_same_data(cls, values: Any) -> Any:
        base = values.get(BASE) if isinstance(values, Mapping) else None
        if isinstance(base, RunSettings):
            base = {**base.model_dump(mode="json"), "data": base.data}
        if not isinstance(base, Mapping):
            return values
        data, said = values.get("data", {}), base.get("data", {})
        if _changed(said) not in ({}, _changed(data)):
            raise ValueError(
                f"A base reads the data of the run that rests on it, but base.data has {_changed(said)!r}. Set data, "
                "not base.data."
            )
        return {**values, BASE: {**base, "data": data}}

    @model_serializer(mode="wrap")
    def _leave_out_the_data_of_the_base(self, write: Callable[["RunSettings"], dict[str, Any]]) -> dict[str, Any]:
        values = write(self)
        if values.get(BASE):
            values[BASE].pop("data", None)
        return values

    def digest(self, fingerprint: str) -> str:
        """The run's identity: canonical settings, the data's fingerprint, and the version of what affects results.

        Canonical are the settings that differ from their defaults, so that a new setting whose default changes nothing
        leaves every finished run where it is. A changed default raises RESULTS_VERSION. A frozen transformer counts by
        its files: others behind the same path make another run.
        """
        settings = self.model_dump(mode="json", exclude_defaults=True)
        read = [encoder_digest(str(one.encoder_path)) for one in self._models() if one.encoder == "transformer"]
        more = {"encoders": read} if read else {}
        return digest_of({"settings": settings, "data": fingerprint, "results": RESULTS_VERSION, **more})

    def on_transformer(self, path: Path | str, layer: int | None = None) -> "RunSettings":
        """New settings of a head on the frozen transformer of a folder, trained as such heads usually are (`HEAD`).

        >>> import heedful
        >>> made = heedful.RunSettings().on_transformer("my-model", layer=4)
        >>> made.model.encoder, made.model.encoder_layer, made.training.optimizer
        ('transformer', 4, 'adam')
        """
        named = {"model.encoder": "transformer", "model.encoder_path": str(path), "model.encoder_layer": layer}
        return self.change({**HEAD, **named})

    def _models(self) -> list[ModelSettings]:
        """Its own and those of the runs that it rests on."""
        return [self.model, *(self.base._models() if self.base else ())]

    @classmethod
    def read(cls, path: Path) -> "RunSettings":
        """Settings from a TOML or JSON file; what it does not name has its default."""
        return cls.of(read_mapping(path))

    def write(self, path: Path) -> None:
        """The settings as TOML or JSON, by the ending of the name; unset values are left out of TOML."""
        if path.suffix not in {".toml", ".json"}:
            raise ConfigError(f"Settings are written as .toml or .json, not as '{path.name}'.")
        import tomli_w

        values = self.model_dump(mode="json", exclude_none=path.suffix == ".toml")
        write_text(path, tomli_w.dumps(values) if path.suffix == ".toml" else json.dumps(values, indent=2) + "\n")

    def override(self, changes: Iterable[str]) -> "RunSettings":
        """New settings with changes such as `model.score_scale=100`; values are read as TOML, a word is itself."""
        return self.change(dict(parse_change(change) for change in changes))

    def change(self, changes: Mapping[str, Any]) -> "RunSettings":
        """New settings with other values under dotted names; the word `none` unsets what can be unset.

        A change of the base, such as base.model.encoder, makes one where there is none.
        """
        values = self.model_dump(mode="json")
        optional = set(_places(type(self), optional=True))
        for place, value in changes.items():
            bases, own = _in_its_run(place)
            if bases and own.partition(".")[0] == "data":
                raise ConfigError(f"A base reads the data of the run that rests on it: change '{own}', not '{place}'.")
            unset = isinstance(value, str) and value.lower() in {"none", "null"} and own in optional
            set_dotted(values, place, None if unset else value)
        return type(self).of(values)


def encoder_digest(path: str) -> str:
    """The identity of the transformer in a folder: its weights, configuration and tokenizer, wherever it lies."""
    folder = Path(path)
    if not is_file(folder / "config.json") or not [*folder.glob("*.safetensors")]:
        raise ConfigError(
            f"There is no transformer in '{path}': model.encoder_path is a local folder with config.json, "
            "model.safetensors and tokenizer.json, as save_pretrained writes it."
        )
    return digest_of_files(folder, ENCODER_FILES)


def read_mapping(path: Path) -> dict[str, Any]:
    loads = {".toml": tomllib.loads, ".json": json.loads}.get(path.suffix)
    if loads is None:
        raise ConfigError(f"Settings are read from .toml or .json, not from '{path.name}'.")
    with border(f"'{path}'", ConfigError):
        content = loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ConfigError(f"'{path}' must hold a table of settings, not {type(content).__name__}.")
    if _is_deeper(content, DEPTH.most):
        raise ConfigError(f"'{path}' is nested more than {DEPTH.most} levels deep; settings need three. {DEPTH.remedy}")
    return content


def _is_deeper(value: Any, depth: int) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(depth == 0 or _is_deeper(part, depth - 1) for part in parts)


def parse_change(change: str) -> tuple[str, Any]:
    """The dotted name and the value of a text like `model.score_scale=100`: as TOML, or a word without quotes."""
    place, equals, text = change.partition("=")
    if not equals or not place.strip():
        raise ConfigError(f"A setting is changed by name=value, such as model.score_scale=100; got '{change}'.")
    try:
        return place.strip(), tomllib.loads(f"value = {text.strip()}")["value"]
    except (ValueError, RecursionError):  # no TOML, or such as no one means: thousands of digits, or of brackets
        return place.strip(), text.strip()


def set_dotted(values: dict[str, Any], place: str, value: Any) -> None:
    """Set one value of a nested mapping in place, by its dotted name."""
    *parents, last = place.split(".")
    for parent in parents:
        if parent == BASE and values.get(BASE, 0) is None:
            values[BASE] = {
                name: part for name, part in RunSettings().model_dump(mode="json").items() if name != "data"
            }
        if not isinstance(values.get(parent), dict):
            raise ConfigError(f"There is no group of settings '{parent}'; known: {', '.join(values)}.")
        values = values[parent]
    values[last] = value


def _sentence(cls: type[Settings], problem: Mapping[str, Any]) -> str:
    """What is wrong with one value, and what would be right."""
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        known = sorted(_places(cls))
        bases, own = _in_its_run(place)
        near = difflib.get_close_matches(own, known, n=1, cutoff=0.5)
        hint = f"did you mean '{bases}{near[0]}'? Known" if near else "known"
        return f"There is no setting '{place}'; {hint}: {', '.join(known)}."
    if problem["type"] == "model_type":
        return f"'{place}' is a group of settings, not {problem['input']!r}; known: {', '.join(_places(cls))}."
    if problem["type"] == "value_error":
        said = str(problem["ctx"]["error"])
        return said if isinstance(problem["input"], Mapping) else f"Setting '{place}' is {problem['input']!r}: {said}."
    return f"Setting '{place}' is {problem['input']!r}: {problem['msg'].lower()}."


def _places(cls: type[Settings], prefix: str = "", *, optional: bool = False) -> Iterable[str]:
    """All settings by their dotted names, or only those that can be unset."""
    for name, field in cls.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            yield from _places(field.annotation, f"{prefix}{name}.", optional=optional)
        elif not optional or {type(None), Literal["none"]} & set(get_args(field.annotation)) == {type(None)}:
            yield prefix + name  # where the word none is a value itself, it unsets nothing


def _in_its_run(place: str) -> tuple[str, str]:
    """base.base.model.encoder as base.base. and model.encoder: which run it is of, and what it is there."""
    own = place
    while own.startswith(f"{BASE}."):
        own = own.removeprefix(f"{BASE}.")
    return place.removesuffix(own), own


def _changed(data: Any) -> Any:
    """What differs from the usual data settings."""
    values = data.model_dump() if isinstance(data, DataSettings) else data
    usual = DataSettings().model_dump()
    return {k: v for k, v in values.items() if usual.get(k) != v} if isinstance(values, Mapping) else values
