"""Any function of texts, and any scikit-learn pipeline, as a subject: words are deleted from the text, or masked."""

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.adapters.asking import (
    SUM_TOLERANCE,
    THREADS,
    AskedReading,
    SubjectError,
    Watch,
    checked_names,
    checked_probabilities,
    in_a_sentence,
    word_units,
)
from heedful.models.kernels import limited_threads
from heedful.subjects import DELETE, MASK, Subject, Units

ENDING = frozenset(".,;:!?)]}…»”")
"""Marks that end what stands before them."""

Function = Callable[[list[str]], Any]
"""From a list of texts to the probabilities of their classes."""

TEXTS_AT_ONCE = 512

MARKS = frozenset(string.punctuation) - {"'", "_"}
"""What never grows together with a word."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionSubject(Subject):
    """A function from a list of texts to their class probabilities.

    filler: what stands in the place of a masked word; None: words can only be deleted.
    threads: of torch while it answers; afterwards there are as many as before.
    """

    name: str
    function: Function
    class_names: tuple[str, ...]
    filler: str | None = None
    threads: int = THREADS
    watch: Watch | None = None

    def read(self, texts: object) -> AskedReading:
        """The words of these texts; the function is asked when something is wanted."""
        units = word_units(texts)

        def answer(
            rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str
        ) -> Float[Tensor, "rows classes"]:
            return self._ask(_changed(units, rows, gone, self.filler if how == MASK else None))

        ways = (DELETE,) if self.filler is None else (DELETE, MASK)
        return AskedReading(units=units, class_names=self.class_names, ways=ways, answer=answer)

    def _ask(self, texts: list[str]) -> Float[Tensor, "rows classes"]:
        told = []
        for place in range(0, len(texts), TEXTS_AT_ONCE):
            part = texts[place : place + TEXTS_AT_ONCE]
            with limited_threads(self.threads):
                told.append(ask(self.function, part, len(self.class_names), self.name))
            if self.watch is not None:
                self.watch(place + len(part), len(texts))
        return torch.cat(told)


def _changed(units: Units, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], filler: str | None) -> list[str]:
    """The texts of the rows without the marked units, or with the filler in their places."""
    assert units.texts is not None
    assert units.spans is not None
    lengths = units.lengths[rows].tolist()
    marks, spans = gone.split(lengths), units.spans[units.of_rows(rows)].split(lengths)
    return [
        text_without(units.texts[row], own.tolist(), out.tolist(), filler)
        for row, own, out in zip(rows.tolist(), spans, marks, strict=True)
    ]


def text_without(text: str, spans: Sequence[Sequence[int]], gone: Sequence[bool], filler: str | None = None) -> str:
    """The text without the marked units, or with a filler in the place of each.

    What stands around units stays. Of the gaps that meet where units go one is left; none where a mark that ended the
    word that goes now ends the one before it ("a good film!" is "a good!" without film); where none is and two words
    would become one, a space. A filler always stands by itself.

    >>> from heedful.adapters.functions import text_without
    >>> spans = [(0, 1), (2, 6), (6, 7), (7, 11), (12, 16)]
    >>> text_without("a well-made film", spans, [False, False, True, False, False])
    'a well made film'
    >>> text_without("a well-made film", spans, [False, True, True, False, True], "_")
    'a _ _ made _'
    """
    units = [text[start:end] for start, end in spans]
    gaps = [text[end:start] for (_, end), (start, _) in pairwise([(0, 0), *spans, (len(text), 0)])]
    told = [(place, (filler if gone[place] else unit) or "") for place, unit in enumerate(units)]
    there = told if filler is not None else [one for one in told if not gone[one[0]]]
    parts = [gaps[0], there[0][1]] if there else []
    for (before, left), (after, right) in pairwise(there):
        gap = next(filter(None, gaps[before + 1 : after + 1]), "")
        if filler is None and after - before > 1 and _ends(left, units, gaps, after):
            gap = ""
        touched = after - before > 1 or gone[before] or gone[after]
        parts += [" " if touched and not gap and (filler or _grow_together(left, right)) else gap, right]
    return "".join([*parts, gaps[-1]]) if there else ""


def _ends(left: str, units: Sequence[str], gaps: Sequence[str], place: int) -> bool:
    """Whether a word comes before what stands here, marks alone up to the next gap, and there is no gap before them."""
    if gaps[place] or not left[-1].isalnum():
        return False
    while place < len(units) and units[place] in ENDING:
        place += 1
        if gaps[place]:
            return True
    return place == len(units)


def _grow_together(left: str, right: str) -> bool:
    """Whether two units without a gap may be taken for one."""
    return not (right[0] in MARKS or (left[-1] in MARKS and right[0].isalnum()))


def ask(function: Function, texts: list[str], classes: int | None, who: str) -> Float[Tensor, "rows classes"]:
    """What a function says of texts; whatever goes wrong in it is said in a sentence."""
    with in_a_sentence(who, f"on a list of {len(texts)} texts (some may be empty)"):
        return checked_probabilities(function(list(texts)), len(texts), classes, who)


def function_subject(
    function: Function,
    *,
    name: str | None = None,
    class_names: Sequence[Any] | None = None,
    filler: str | None = None,
    threads: int = THREADS,
    watch: Watch | None = None,
) -> FunctionSubject:
    """A function of texts as a subject; it is tried on two texts, and on three in another order."""
    who = name or str(getattr(function, "__name__", type(function).__name__))
    given = None if class_names is None else checked_names(class_names, who)
    if filler is not None and not str(filler).strip():
        raise SubjectError(f"mask of {who} must be a word that stands in the place of others; got {filler!r}.")
    with limited_threads(threads):
        first = ask(function, ["", "text"], None if given is None else len(given), who)
        again = ask(function, ["text", "", "text"], first.shape[1], who)
    if not torch.allclose(again, first[[1, 0, 1]], atol=SUM_TOLERANCE):
        raise SubjectError(
            f"{who} says something else of the same text when it is asked again, or beside others. Set it to "
            "evaluation mode and take out what is random."
        )
    names = given or tuple(map(str, range(first.shape[1])))
    how: dict[str, Any] = {"filler": filler, "threads": threads, "watch": watch}
    return FunctionSubject(name=who, function=function, class_names=names, **how)


def sklearn_subject(model: Any, *, name: str | None, class_names: Sequence[Any] | None, **how: Any) -> FunctionSubject:
    """A fitted scikit-learn pipeline, or any object with predict_proba and classes_, from texts to classes."""
    who = name or type(model).__name__
    if not hasattr(model, "predict_proba"):
        raise SubjectError(
            f"{who} has no predict_proba: probabilities are needed. Take a classifier that gives them, or calibrate it "
            "(CalibratedClassifierCV)."
        )
    names = class_names if class_names is not None else getattr(model, "classes_", None)
    if names is None:
        raise SubjectError(f"{who} has no classes_: fit it first.")
    return function_subject(model.predict_proba, name=who, class_names=list(names), **how)
