"""`AttentionClassifier`: a classifier of heedful's as a scikit-learn estimator, texts in, labels of any kind out.

scikit-learn is an extra: this module is loaded when the class is first asked for, and without scikit-learn the class
is there, and an error that says how to get it when one is made.
"""

from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from heedful.errors import CheckpointError, ConfigError, DataError, InputError, StoreError, UnknownName, load_extra
from heedful.files import read_json, write_json
from heedful.models.checkpoint import load_model, save_model
from heedful.models.interface import strings
from heedful.notebook import short
from heedful.probes.scores import token_scores
from heedful.text.corpus import Corpus, build_corpus
from heedful.text.ragged import lengths_of
from heedful.text.splits import hold_out
from heedful.text.tables import writable
from heedful.text.tokenize import Tokenizer
from heedful.traces import Trace
from heedful.tracing import trace
from heedful.training.loop import fit

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import NotFittedError
except ImportError:

    class BaseEstimator:  # type: ignore[no-redef]
        """Stands for that of scikit-learn where it is missing: nothing can be made of it."""

        def __new__(cls, *_: Any, **__: Any) -> Any:
            load_extra("sklearn", "sklearn", "Estimators")

    class ClassifierMixin:  # type: ignore[no-redef]
        """Stands for that of scikit-learn."""

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """Stands for that of scikit-learn."""


FORMAT, DESCRIPTION = 1, "estimator.json"

OF_THE_DATA = ("tokenizer", "lowercase", "min_count")
OF_THE_ESTIMATOR = (*OF_THE_DATA, "validation_fraction", "random_state", "settings")
"""Parameters that `heedful.fit` does not have under their names."""

LARGEST_SEED = 2**31 - 1

Labels = Sequence[Any] | NDArray[Any] | pd.Series


class NotFitted(InputError, NotFittedError):  # type: ignore[misc]
    """An estimator that was asked before it was fitted."""


class AttentionClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A text classifier with attention as a scikit-learn estimator: for `GridSearchCV`, `cross_val_score`, pipelines.

    X is a list, array or column of texts; y has one label for each, strings, numbers or booleans, and predictions are
    of the same kind. A part of the texts of each class (`validation_fraction`) is not learned: it picks the epoch, and
    copies of a text stay together. A text without any word is left out of training, and its prediction is what the
    classifier says of nothing: its bias. The same texts and parameters give the same classifier.

    The parameters of `heedful.fit` have their names and meanings here:
        structure, attention, normaliser, encoder, score_scale, embedding_size, hidden_size, dropout, vectors: of the
            model.
        optimizer, learning_rate, weight_decay, clip, batch_size, epochs, patience, threads: how it learns.
    Those of `heedful.load_corpus`:
        tokenizer, lowercase, min_count: how texts are cut, and which tokens are known.
    And:
        validation_fraction: the part of the texts by which the epoch is chosen, between 0 and 1.
        random_state: of every draw: a whole number, a numpy RandomState, or None for another one each time.
        settings: any other parameters of `heedful.fit`, {"embedding_range": 0.05}.

    After `fit`:
        classes_: the labels, sorted; columns of `predict_proba` are in this order.
        model_: the classifier, of which `heedful.trace`, `heedful.subject` and the rest are made.
        corpus_: the texts that it learned from and those that chose the epoch; not saved by `save`.

    >>> import heedful
    >>> texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    >>> classifier = heedful.AttentionClassifier(embedding_size=8, epochs=5, learning_rate=0.5, batch_size=1)
    >>> classifier.fit(texts, [True] * 5 + [False] * 5).predict(["a good evening", "bad"]).tolist()
    [True, False]
    >>> classifier.predict_proba(["a good evening"]).shape
    (1, 2)
    >>> classifier.trace(["a good evening"]).units
    ['a', 'good', 'evening']
    """

    classes_: NDArray[Any]

    def __init__(
        self,
        *,
        structure: str = "flat",
        attention: str = "dot",
        normaliser: str = "softmax",
        encoder: str = "none",
        score_scale: float = 10.0,
        embedding_size: int = 100,
        hidden_size: int = 100,
        dropout: float = 0.5,
        vectors: str = "random",
        optimizer: str = "adagrad",
        learning_rate: float = 0.02,
        weight_decay: float = 0.0,
        clip: float | None = None,
        batch_size: int = 100,
        epochs: int = 40,
        patience: int | None = None,
        threads: int = 1,
        tokenizer: str = "words",
        lowercase: bool = True,
        min_count: int = 1,
        validation_fraction: float = 0.1,
        random_state: Any = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.structure = structure
        self.attention = attention
        self.normaliser = normaliser
        self.encoder = encoder
        self.score_scale = score_scale
        self.embedding_size = embedding_size
        self.hidden_size = hidden_size
        self.dropout = dropout
        self.vectors = vectors
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.clip = clip
        self.batch_size = batch_size
        self.epochs = epochs
        self.patience = patience
        self.threads = threads
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.min_count = min_count
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.settings = settings

    def fit(self, X: Any, y: Labels | None) -> "AttentionClassifier":
        """Learn from texts and their labels; returns itself."""
        texts = _texts(X)
        classes, numbers = _classes(y, len(texts))
        settings, seed = self._settings(), _seed(self.random_state)
        corpus = self._corpus(texts, numbers, tuple(str(label) for label in classes.tolist()), seed)
        model = fit(corpus, seed=seed, **settings)
        self.classes_, self.corpus_, self.model_ = classes, corpus, model
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each text."""
        logits = self._logits(X)
        return np.asarray(self.classes_[logits.argmax(1)])

    def predict_proba(self, X: Any) -> Float[np.ndarray, "texts classes"]:
        """The probability of each class for each text, columns in the order of `classes_`."""
        return torch.from_numpy(self._logits(X)).softmax(1).numpy()

    def decision_function(self, X: Any) -> Float[np.ndarray, "texts ..."]:
        """The logits, [texts, classes]; of two classes how far the second is above the first, [texts]."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def trace(self, X: Any) -> Trace:
        """What the classifier attends to and what it uses, for every unit of these texts (`heedful.trace`)."""
        return trace(self._fitted().model_, _texts(X))

    def token_scores(self) -> pd.DataFrame:
        """What the training texts say of every token, and what was learned of it (`heedful.token_scores`)."""
        if not hasattr(self._fitted(), "corpus_"):
            raise InputError(
                "Token scores count the training texts, which are not saved with an estimator. Fit it again, or give "
                "a corpus: heedful.token_scores(classifier.model_, corpus)."
            )
        return token_scores(self.model_, self.corpus_)

    def save(self, folder: Path | str) -> None:
        """Write the classifier to a folder: numbers as safetensors, labels and parameters as JSON; never pickle.

        The training texts and the history of the training are not written.
        """
        own = self._fitted()
        description = {"format": FORMAT, "parameters": _plain(own.get_params(deep=False)), "labels": _plain_labels(own)}
        save_model(own.model_, folder)
        write_json(Path(folder) / DESCRIPTION, description)

    @classmethod
    def load(cls, folder: Path | str) -> "AttentionClassifier":
        """A fitted classifier that `save` wrote; a folder that holds none is refused with a sentence."""
        description, model = _description(Path(folder)), load_model(folder)
        try:
            made = cls(**description["parameters"])
            labels = description["labels"]
            made.classes_ = np.array(labels["values"], dtype=labels["dtype"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"'{Path(folder) / DESCRIPTION}' does not describe an estimator: {error}.") from error
        if tuple(map(str, made.classes_.tolist())) != model.interface.class_names:
            raise CheckpointError(f"The labels in '{Path(folder) / DESCRIPTION}' are not those of the model beside it.")
        made.model_ = model
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        """Texts in one dimension go in, and nothing else."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _fitted(self) -> "AttentionClassifier":
        if not self.__sklearn_is_fitted__():
            raise NotFitted(f"This {type(self).__name__} is not fitted yet: call fit(texts, labels) first.")
        return self

    def _logits(self, X: Any) -> Float[np.ndarray, "texts classes"]:
        """What the model says; of a text without words its bias, as when all its units are erased."""
        model, texts = self._fitted().model_, _texts(X)
        tokens = model.interface.tokenizer.encode(texts, model.interface.vocabulary)
        worded = lengths_of(tokens.offsets) > 0
        logits = model.bias().detach().double().cpu().repeat(len(texts), 1)
        if worded.any():
            read = model.interface.read([texts[row] for row in worded.nonzero().squeeze(1).tolist()])
            logits[worded] = model.exact_trace(read).logits
        return logits.numpy()

    def _settings(self) -> dict[str, Any]:
        """What `heedful.fit` is told; the seed is drawn."""
        own = self.get_params(deep=False)
        more = {} if own["settings"] is None else own["settings"]
        if not isinstance(more, Mapping):
            raise ConfigError(
                f"settings must be a mapping, such as {{'embedding_range': 0.05}}; got {short(repr(more))}."
            )
        known = set(signature(fit).parameters) - {"corpus", "seed"}
        for name in more:
            if name in own or name == "seed":
                instead = "random_state" if name == "seed" else name
                raise ConfigError(
                    f"'{name}' is given in settings; it is the parameter {instead} of AttentionClassifier."
                )
            if name not in known:
                raise UnknownName("parameter of heedful.fit", name, known - set(own))
        given = {name: value for name, value in own.items() if name not in OF_THE_ESTIMATOR}
        return {name: _python(value) for name, value in (given | dict(more)).items()}

    def _corpus(self, texts: list[str], numbers: NDArray[np.int64], class_names: tuple[str, ...], seed: int) -> Corpus:
        """The texts to learn from, and as dev (and test, which nothing looks at) those that choose the epoch."""
        cut = Tokenizer(self.tokenizer, bool(self.lowercase))
        worded = (lengths_of(cut.encode(texts, cut.vocabulary(texts)).offsets) > 0).numpy()
        if len(found := np.unique(numbers[worded])) < len(class_names):
            lost = next(name for number, name in enumerate(class_names) if number not in found)
            raise DataError(f"No text of the class '{lost}' has a word; every class needs one. Leave the class out.")
        own, labels = [text for text, has in zip(texts, worded, strict=True) if has], numbers[worded]
        held = self._held_out(own, labels, seed)
        parts = {"train": ~held, "dev": held, "test": held}
        splits = {
            name: ([own[row] for row in np.flatnonzero(rows)], labels[rows].tolist()) for name, rows in parts.items()
        }
        least = _python(self.min_count)
        return build_corpus(name="X", splits=splits, class_names=class_names, tokenizer=cut, min_count=least)

    def _held_out(self, texts: list[str], labels: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
        share = _python(self.validation_fraction)
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise ConfigError(f"validation_fraction must be a number between 0 and 1; got {short(repr(share))}.")
        held = hold_out(texts, labels.tolist(), share=share, seed=seed)
        if not held.any() or len(np.unique(labels[~held])) < len(np.unique(labels)):
            raise DataError(
                "Some texts of X are kept from training to choose the epoch (validation_fraction), and copies of a "
                "text stay together: every class needs a text to learn from, and one of them two different ones."
            )
        return held


def _texts(X: Any) -> list[str]:
    """Texts in one dimension; anything else is refused."""
    if isinstance(X, str):
        raise InputError("X must be a list of texts, one string for each; got one string. Give a list: [text].")
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) != 1:
        raise InputError(
            f"X must be a list, array or column of texts, in one dimension; got {type(X).__name__} of shape "
            f"{tuple(shape)}. Of a table give its column of texts."
        )
    return strings(X)


def _classes(y: Any, texts: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The labels, sorted, and for every text the number of its own."""
    labels = _labels(y)
    if len(labels) != texts:
        raise InputError(f"y must have one label for each text of X: {texts} texts, {len(labels)} labels.")
    classes, numbers = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"y must hold two classes or more; all {texts} labels are {_python(classes[0])!r}.")
    if classes.dtype.kind == "f" and not np.equal(classes, classes.round()).all():
        raise InputError(
            "y must hold classes; there are fractions in it, such as "
            f"{next(float(label) for label in classes if label != round(label))}: measurements, not classes."
        )
    return classes, numbers.astype(np.int64)


def _labels(y: Any) -> NDArray[Any]:
    """Strings, booleans or numbers in one dimension, none missing."""
    if y is None:
        raise InputError("AttentionClassifier requires y to be passed, but the target y is None: one label per text.")
    found = np.array([_python(label) for label in y], dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found.ravel()
    if found.ndim != 1:
        raise InputError(f"y must have one label per text, in one dimension; got shape {found.shape}.")
    missing = np.flatnonzero(pd.isna(found))
    if len(missing):
        raise InputError(
            f"Every text needs a label; number {missing[0]} (the first is 0) has {found[missing[0]]!r}. Leave it out."
        )
    return _of_one_kind(found)


def _of_one_kind(found: NDArray[Any]) -> NDArray[Any]:
    """Labels that can be sorted: all strings, all booleans, or all numbers."""
    if found.dtype.kind in "biufU":
        return found
    own = [_python(label) for label in found]
    for kinds in ((str,), (bool,), (int,), (int, float)):
        if all(type(label) in kinds or (kinds == (str,) and isinstance(label, str)) for label in own):
            return np.array([str(writable(label)) for label in own]) if kinds == (str,) else np.array(own)
    names = ", ".join(sorted({type(label).__name__ for label in own}))
    raise InputError(f"Labels must be all strings, all numbers or all booleans; y holds {names}.")


def _python(value: Any) -> Any:
    """A number of numpy's as one of Python's; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def _seed(given: Any) -> int:
    """A number from what scikit-learn takes for chance: a number, its generators, or None."""
    if isinstance(given, (int, np.integer)) and given is not True and given is not False:
        return int(given)
    if given is None:
        return int(np.random.default_rng().integers(LARGEST_SEED))
    if isinstance(given, np.random.RandomState):
        return int(given.randint(LARGEST_SEED))
    raise ConfigError(f"random_state must be a whole number, a numpy RandomState or None; got {short(repr(given))}.")


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON has them; what it cannot have is refused."""
    values = {name: _python(value) for name, value in parameters.items()}
    if isinstance(values["random_state"], np.random.RandomState):
        values["random_state"] = None
    values["settings"] = None if values["settings"] is None else {k: _python(v) for k, v in values["settings"].items()}
    for name, value in (values | (values["settings"] or {})).items():
        if not isinstance(value, (str, bool, int, float, list, tuple, type(None))) and name != "settings":
            raise InputError(
                f"An estimator is saved with its parameters, and '{name}' ({short(repr(value))}) is no text."
            )
    return values


def _plain_labels(own: AttentionClassifier) -> dict[str, Any]:
    return {"dtype": own.classes_.dtype.str, "values": own.classes_.tolist()}


def _description(folder: Path) -> dict[str, Any]:
    if not (folder / DESCRIPTION).is_file():
        raise CheckpointError(
            f"'{folder}' holds no estimator: there is no {DESCRIPTION}. AttentionClassifier.save writes one."
        )
    try:
        found = read_json(folder / DESCRIPTION)
    except StoreError as error:
        raise CheckpointError(str(error)) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise CheckpointError(f"'{folder / DESCRIPTION}' does not describe an estimator of this version of heedful.")
    return found
