"""Anything that classifies texts becomes a subject: a model of heedful's, a transformer, a module, a function."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from heedful.adapters.asking import THREADS, SubjectError, Watch, checked_names, checked_threads
from heedful.adapters.functions import function_subject, sklearn_subject
from heedful.adapters.modules import ModuleSubject
from heedful.adapters.pretrained import load_pretrained, pretrained_subject
from heedful.models.classifier import Classifier
from heedful.probes.reading import ModelReading
from heedful.subjects import DELETE, MASK, Subject


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierSubject(Subject):
    """A model of heedful's own."""

    name: str
    model: Classifier

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.model.interface.class_names

    def read(self, texts: object) -> ModelReading:
        """Erased weights exactly, deleted and masked units by reading again."""
        return ModelReading.of(self.model, self.model.interface.read(texts))


def subject(
    model: Any,
    tokenizer: Any = None,
    *,
    name: str | None = None,
    class_names: Sequence[Any] | None = None,
    parts: Any = None,
    mask: Any = None,
    truncate: bool = False,
    hub: bool = False,
    threads: int = THREADS,
    watch: Watch | None = None,
) -> Subject:
    """Whatever classifies texts, as something that can be examined.

    model: a model of heedful's, or a fitted `heedful.AttentionClassifier`; the folder of a transformers sequence
        classifier, the model itself, or the library's pipeline of it; a torch module from token numbers [texts, tokens]
        to logits [texts, classes]; a fitted scikit-learn pipeline; or any function from a list of texts to
        probabilities, [texts, classes] or one number per text for the second of two classes.
    tokenizer: of a transformers model its tokenizer; of a torch module a function from a text to a list of (number,
        (start, end)), one for each token.
    name: what it is called in tables; by default what its class is called.
    class_names: by default what the model knows.
    parts: of a torch module where its attention is (`heedful.adapters.modules.Parts`): its trace is then exact.
    mask: what stands in the place of a masked unit: a word for a function, a token number for a torch module.
    truncate: of texts that are too long for the model only the beginning is read; by default they are refused.
    hub: whether a name that is no folder may be fetched from the hub of transformers.
    threads: of torch while the model reads, afterwards as many as before; more than one help where cores are idle, and
        may change the last digits. A model of heedful's own has those that torch has.
    watch: is told how many changed texts were read, of how many.

    >>> import heedful
    >>> good = heedful.subject(lambda texts: [0.75 if "good" in text else 0.25 for text in texts], name="finds good")
    >>> reading = good.read(["a good film"])
    >>> reading.units.shown, reading.probabilities.tolist()
    (['a', 'good', 'film'], [[0.25, 0.75]])
    """
    how: dict[str, Any] = {"threads": checked_threads(threads), "watch": watch}
    if (own := _own_classifier(model)) is not None:
        return ClassifierSubject(name=name or "heedful", model=own)
    if isinstance(model, (str, os.PathLike)):
        loaded, own = load_pretrained(Path(model), tokenizer, hub=hub)
        named = name or Path(model).name
        return pretrained_subject(loaded, own, name=named, class_names=class_names, truncate=truncate, **how)
    inner = getattr(model, "model", model) if hasattr(model, "tokenizer") else model  # of a pipeline of the library
    if hasattr(getattr(inner, "config", None), "num_labels"):
        own = tokenizer or getattr(model, "tokenizer", None)
        return pretrained_subject(inner, own, name=name, class_names=class_names, truncate=truncate, **how)
    if isinstance(model, nn.Module):
        return _module_subject(model, tokenizer, name, class_names, parts=parts, mask=mask, **how)
    if hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
        return sklearn_subject(model, name=name, class_names=class_names, filler=mask, **how)
    if callable(model):
        return function_subject(model, name=name, class_names=class_names, filler=mask, **how)
    raise SubjectError(
        "A subject is a model of heedful's, the folder of a transformers classifier, a torch module, a scikit-learn "
        f"pipeline or a function of texts; got {type(model).__name__}."
    )


def _own_classifier(model: Any) -> Classifier | None:
    """A classifier of heedful's, alone or in a fitted estimator: at the end of a pipeline before which nothing happens,
    or the best one of a search."""
    if isinstance(model, nn.Module) or not hasattr(model, "predict_proba"):
        return model if isinstance(model, Classifier) else None
    chosen = getattr(model, "best_estimator_", model)
    *before, last = [step for _, step in getattr(chosen, "steps", [("", chosen)])]
    found = getattr(last, "model_", None)
    return found if isinstance(found, Classifier) and all(step in (None, "passthrough") for step in before) else None


def _module_subject(
    model: nn.Module, encode: Any, name: str | None, class_names: Sequence[Any] | None, **how: Any
) -> ModuleSubject:
    who = name or type(model).__name__
    if not callable(encode) or class_names is None:
        raise SubjectError(
            f"A torch module ({who}) needs class_names and a tokenizer, a function from a text to a list of (number, "
            "(start, end)): heedful.subject(module, tokenizer, class_names=[…])."
        )
    ways = (DELETE,) if how["mask"] is None else (DELETE, MASK)
    return ModuleSubject(
        name=who, model=model, encode=encode, class_names=checked_names(class_names, who), ways=ways, **how
    )
