"""A model as files: parameters in safetensors, settings and vocabulary in JSON. Loading runs no code."""

from pathlib import Path
from typing import Any

import torch

from heedful.config import ModelSettings
from heedful.errors import CheckpointError, ConfigError, HeedfulError, InputError, StoreError
from heedful.files import read_json, replacing, write_json
from heedful.models.classifier import Classifier, Interface, make_classifier
from heedful.models.frozen import FrozenTransformer
from heedful.store import Store
from heedful.tensor_files import load_tensors, save_tensors
from heedful.text.tokenize import Tokenizer, Vocabulary

FORMAT = 1
"""Raised when the layout of the files changes; a file of a newer format is refused."""

PARAMETERS, DESCRIPTION = "model.safetensors", "model.json"

ENCODER = "encoder"
"""Under which the description names a frozen transformer."""


def save_model(model: Classifier, folder: Path | str) -> None:
    """Write a model to two files of a folder: its parameters, then the description that makes them readable.

    `model.safetensors` holds numbers only and `model.json` text only: neither can run code. The history is not written.
    Of a frozen transformer they hold no weights but where it lies, its layer and the digest of its files.

    model: a classifier, from `heedful.fit`.
    folder: where to; it is made where it is missing, and a model that it holds is replaced.

    >>> import heedful
    >>> texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    >>> corpus = heedful.load_corpus((texts, ["positive"] * 5 + ["negative"] * 5))
    >>> model = heedful.fit(corpus, embedding_size=8, epochs=1)
    >>> heedful.save_model(model, "my-model")
    >>> heedful.load_model("my-model").predict(texts) == model.predict(texts)
    True
    """
    interface = model.interface
    with replacing(Path(folder) / PARAMETERS) as temporary:
        save_tensors(temporary, model.state_dict())
    description = {
        "format": FORMAT,
        "settings": model.settings.model_dump(mode="json"),
        "class_names": interface.class_names,
        "tokenizer": {"mode": interface.tokenizer.mode, "lowercase": interface.tokenizer.lowercase},
        "vocabulary": interface.vocabulary.tokens,
        **({} if model.reader is None else {ENCODER: model.reader.description}),
    }
    write_json(Path(folder) / DESCRIPTION, description)


def load_model(folder: Path | str, *, device: str = "cpu", store: Store | None = None) -> Classifier:
    """A model that `save_model` wrote, ready to read texts; a file that is not one is refused with a sentence, and so
    is one whose frozen transformer is gone or was changed.

    folder: where it was saved; of a run of `heedful train`, its folder `model`.
    device: where it shall compute: "cpu", or one that torch knows, such as "cuda".
    store: of a model with a frozen transformer, where what that made of known texts is found; None reads all anew.

    >>> import heedful
    >>> texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    >>> corpus = heedful.load_corpus((texts, ["positive"] * 5 + ["negative"] * 5))
    >>> heedful.save_model(heedful.fit(corpus, embedding_size=8, epochs=1), "my-model")
    >>> model = heedful.load_model("my-model")
    >>> model.settings.attention, model.settings.embedding_size, model.interface.class_names
    ('dot', 8, ('negative', 'positive'))
    """
    place = Path(folder)
    description = _description(place)
    try:
        interface = Interface(
            vocabulary=Vocabulary(tuple(description["vocabulary"])),
            tokenizer=Tokenizer(**description["tokenizer"]),
            class_names=tuple(description["class_names"]),
        )
        settings = ModelSettings.of(description["settings"])
    except (KeyError, TypeError, ConfigError, InputError) as error:
        raise CheckpointError(f"'{place / DESCRIPTION}' does not describe a heedful model: {error}.") from error
    reader = _reader(place, settings, description.get(ENCODER), store)
    model = make_classifier(interface, settings, torch.Generator(), reader=reader)
    _load_parameters(model, place / PARAMETERS)
    return model.to(device).eval()


def _description(folder: Path) -> dict[str, Any]:
    if not (folder / DESCRIPTION).is_file():
        raise CheckpointError(
            f"'{folder}' holds no heedful model: there is no {DESCRIPTION}. Train one with `heedful train`."
        )
    try:
        description = read_json(folder / DESCRIPTION)
    except StoreError as error:
        raise CheckpointError(str(error)) from error
    if not isinstance(description, dict) or "format" not in description:
        raise CheckpointError(f"'{folder / DESCRIPTION}' does not describe a heedful model.")
    if description["format"] != FORMAT:
        raise CheckpointError(
            f"'{folder}' has model format {description['format']}, this version of heedful reads format {FORMAT}. "
            "Load it with the version that wrote it, or train again."
        )
    return description


def _reader(place: Path, settings: ModelSettings, said: Any, store: Store | None) -> FrozenTransformer | None:
    """The frozen transformer that the model was trained with, the very same files."""
    if settings.encoder != "transformer":
        return None
    if not isinstance(said, dict) or not {"path", "layer", "digest"} <= said.keys():
        raise CheckpointError(f"'{place / DESCRIPTION}' does not say which transformer it rests on.")
    try:
        named = {"encoder_path": str(said["path"]), "encoder_layer": said["layer"]}
        found = FrozenTransformer.of(settings.model_copy(update=named), store)
    except HeedfulError as error:
        raise CheckpointError(f"The model in '{place}' rests on a frozen transformer that is gone. {error}") from error
    if found.digest != said["digest"]:
        raise CheckpointError(
            f"The model in '{place}' rests on the transformer that was in '{said['path']}' when it was trained (digest "
            f"{said['digest'][:12]}); other files are there now ({found.digest[:12]}). Put those back, or train again."
        )
    return found


def _load_parameters(model: Classifier, path: Path) -> None:
    tensors, _ = load_tensors(path, CheckpointError)
    expected = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    got = {name: list(tensor.shape) for name, tensor in tensors.items()}
    if expected != got:
        wrong = sorted(name for name in expected.keys() | got.keys() if expected.get(name) != got.get(name))
        details = "; ".join(f"{name}: expected {expected.get(name)}, got {got.get(name)}" for name in wrong)
        raise CheckpointError(f"'{path}' does not fit its description. {details}.")
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise CheckpointError(f"'{path}' holds numbers that are not finite.")
    model.load_state_dict(tensors)
