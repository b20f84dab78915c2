"""Any function of texts, and any scikit-learn pipeline, as a subject: words are deleted from the text, or masked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.adapters.asking import (
    AskedReading,
    SubjectError,
    checked_probabilities,
    checked_texts,
    text_without,
    word_units,
)
from heedful.subjects import DELETE, MASK, Subject, Units
from heedful.text.ragged import offsets_of

TEXTS_AT_ONCE = 512
EMPTY = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionSubject(Subject):
    """A function from a list of texts to their class probabilities.

    filler: what stands in the place of a masked word; None: words can only be deleted.
    """

    name: str
    function: Callable[[list[str]], Any]
    class_names: tuple[str, ...]
    filler: str | None = None

    def read(self, texts: Sequence[str]) -> AskedReading:
        """The words of these texts; the function is asked when something is wanted."""
        units = word_units(checked_texts(texts))
        ways = (DELETE,) if self.filler is None else (DELETE, MASK)
        return AskedReading(units=units, class_names=self.class_names, ways=ways, answer=self._answer(units))

    def _answer(self, units: Units) -> Callable[..., Float[Tensor, "rows classes"]]:
        def answer(
            rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str
        ) -> Float[Tensor, "rows classes"]:
            return self._ask(_changed(units, rows, gone, self.filler if how == MASK else None))

        return answer

    def _ask(self, texts: list[str]) -> Float[Tensor, "rows classes"]:
        parts = [texts[place : place + TEXTS_AT_ONCE] for place in range(0, len(texts), TEXTS_AT_ONCE)]
        return torch.cat([ask(self.function, part, len(self.class_names), self.name) for part in parts])


def _changed(units: Units, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], filler: str | None) -> list[str]:
    """The texts of the rows without the marked units, or with the filler in their places."""
    assert units.texts is not None
    assert units.spans is not None
    begins = offsets_of(units.lengths[rows]).tolist()
    spans, marks, changed = units.spans.tolist(), gone.tolist(), []
    for row, begin, end in zip(rows.tolist(), begins, begins[1:], strict=False):
        own = spans[int(units.offsets[row]) : int(units.offsets[row + 1])]
        changed.append(text_without(units.texts[row], own, marks[begin:end], filler))
    return changed


def ask(
    function: Callable[[list[str]], Any], texts: list[str], classes: int | None, who: str
) -> Float[Tensor, "rows classes"]:
    """What a function says of texts; whatever goes wrong in it is said in a sentence."""
    try:
        told = function(list(texts))
    except Exception as error:
        raise SubjectError(
            f"{who} failed on {len(texts)} texts: {type(error).__name__}: {error}. It must take a list of texts, empty "
            "ones too."
        ) from error
    return checked_probabilities(told, len(texts), classes, who)


def function_subject(
    function: Callable[[list[str]], Any],
    *,
    name: str | None = None,
    class_names: Sequence[str] | None = None,
    filler: str | None = None,
) -> FunctionSubject:
    """A function of texts as a subject; it is asked once about an empty text, how many classes there are."""
    who = name or getattr(function, "__name__", type(function).__name__)
    known = None if class_names is None else len(class_names)
    first, second = ask(function, [EMPTY, "text"], known, who), ask(function, ["text", EMPTY], known, who)
    if not torch.allclose(first, second.flip(0), atol=1e-6):
        raise SubjectError(
            f"{who} says something else of the same text when it is asked again, or in another order. Set it to "
            "evaluation mode and take out what is random."
        )
    names = class_names or [str(number) for number in range(first.shape[1])]
    return FunctionSubject(name=who, function=function, class_names=tuple(map(str, names)), filler=filler)


def sklearn_subject(
    model: Any, *, name: str | None = None, class_names: Sequence[str] | None = None, filler: str | None = None
) -> FunctionSubject:
    """A fitted scikit-learn pipeline, or any object with predict_proba and classes_, from texts to classes."""
    if not hasattr(model, "predict_proba"):
        raise SubjectError(
            f"{type(model).__name__} has no predict_proba: probabilities are needed. Take a classifier that gives them, "
            "or calibrate it (CalibratedClassifierCV)."
        )
    names = class_names if class_names is not None else getattr(model, "classes_", None)
    if names is None:
        raise SubjectError(f"{type(model).__name__} has no classes_: fit it first, or give class_names.")
    who = name or type(model).__name__
    return function_subject(model.predict_proba, name=who, class_names=[str(one) for one in names], filler=filler)
