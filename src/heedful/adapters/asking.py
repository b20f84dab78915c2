"""A reading of a model that must be asked: every change of a text once, and what it said is remembered and checked."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import InputError
from heedful.models.frozen import in_words
from heedful.models.interface import check_words, strings
from heedful.notebook import listed
from heedful.subjects import Reading, Units, check_way
from heedful.text.ragged import offsets_of, positions_of
from heedful.text.tokenize import Tokenizer, Vocabulary
from heedful.traces import floats

Answer = Callable[[Int[Tensor, " rows"], Bool[Tensor, " places"], str], Float[Tensor, "rows classes"]]
"""What a model says of these rows without the marked units, taken away so: as `Reading.without`, asked of anything."""

Watch = Callable[[int, int], None]
"""Is told how many changed texts were read, of how many."""

THREADS = 1
"""Of torch, while a model reads: beside other work several wait for each other longer than they compute."""

Key = tuple[int, str, bytes]

SUM_TOLERANCE = 1e-3
"""By how much probabilities may miss their sum: those in half precision do."""

SAME = 1e-5
"""By how much what is said of a text may differ between two askings, in single precision."""


class SubjectError(InputError):
    """A model that cannot be examined, or whose answers are none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AskedReading(Reading):
    """Texts that a model was given; it is asked about each change once."""

    units: Units
    class_names: tuple[str, ...]
    ways: tuple[str, ...]
    answer: Answer
    known: dict[Key, NDArray[np.float64]] = field(default_factory=dict, repr=False)
    """What it has said so far."""

    @property
    def passes(self) -> int:
        """How many texts the model has read."""
        return len(self.known)

    @cached_property
    def probabilities(self) -> Float[Tensor, "instances classes"]:
        nothing = torch.zeros(int(self.units.offsets[-1]), dtype=torch.bool)
        return self.without(torch.arange(len(self.units)), nothing, self.ways[0])

    def without(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str
    ) -> Float[Tensor, "rows classes"]:
        check_way(how, self)
        keys = self._keys(rows, gone, how)
        new = {key: place for place, key in reversed(list(enumerate(keys))) if key not in self.known}
        if new:
            asked = torch.tensor(sorted(new.values()))
            where = positions_of(offsets_of(self.units.lengths[rows]), asked)
            told = self.answer(rows[asked], gone[where], how).numpy()
            self.known.update(zip((keys[place] for place in asked.tolist()), told, strict=True))
        found = np.array([self.known[key] for key in keys], dtype=np.float64)
        return torch.from_numpy(found.reshape(len(keys), len(self.class_names)))

    def _keys(self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str) -> list[Key]:
        """Which text, how, and what is gone; where nothing is, all ways are one."""
        ends = self.units.lengths[rows].cumsum(0).tolist()
        marks = np.split(gone.numpy(force=True), ends[:-1]) if ends else []
        return [
            (row, how if own.any() else "", np.packbits(own).tobytes())
            for row, own in zip(rows.tolist(), marks, strict=True)
        ]


def in_a_sentence(who: str, doing: str) -> AbstractContextManager[None]:
    """Whatever goes wrong inside someone else's model, said in a sentence."""
    return in_words(who, doing, SubjectError)


def checked_probabilities(told: object, rows: int, classes: int | None, who: str) -> Float[Tensor, "rows classes"]:
    """What a model said, as probabilities: one row per text, as many columns as classes, finite, summing to one.

    One number per text is the probability of the second of two classes.
    """
    found = floats(f"What {who} says", told, SubjectError)
    if found.ndim in (1, 2) and found.numel() == len(found) == rows and classes in (None, 2):
        second = found.view(rows, 1)
        found = torch.cat([1 - second, second], 1)
    if found.ndim != 2 or len(found) != rows or found.shape[1] != (classes or max(2, found.shape[1])):
        raise SubjectError(
            f"{who} must give one row of probabilities per text and one column per class: expected {rows} × "
            f"{classes or 'classes'}, got {_shape(found)}."
        )
    _check_sums(found, who)
    return found.clamp(min=0) / found.clamp(min=0).sum(1, keepdim=True)


def _check_sums(found: Float[Tensor, "rows classes"], who: str) -> None:
    wrong = ((found.sum(1) - 1).abs() > SUM_TOLERANCE) | (found < -SUM_TOLERANCE).any(1)
    if wrong.any():
        row = found[int(wrong.nonzero()[0])].tolist()
        raise SubjectError(
            f"{who} must give probabilities, which are not negative and sum to one; of a text it gave "
            f"{listed([f'{number:.4g}' for number in row])}. Apply a softmax if these are logits."
        )


def _shape(found: Tensor) -> str:
    return " × ".join(map(str, found.shape)) if found.ndim else "a single number"


def probable(logits: Float[Tensor, "rows outputs"]) -> Float[Tensor, "rows classes"]:
    """The softmax of several outputs; of one the sigmoid, for the second of two classes."""
    if logits.shape[1] == 1:
        return torch.cat([(-logits).sigmoid(), logits.sigmoid()], 1)
    return logits.softmax(1)


def checked_threads(count: int) -> int:
    """A number of threads."""
    if count < 1:
        raise SubjectError(f"threads must be 1 or more; got {count}.")
    return count


def checked_names(names: Sequence[Any], who: str) -> tuple[str, ...]:
    """Two different names or more, in the order of the classes."""
    found = () if isinstance(names, str) else tuple(map(str, names))
    if len(found) < 2 or len(set(found)) < len(found):
        raise SubjectError(
            f"class_names of {who} must be two different names or more, in the order of its outputs; got {names!r}."
        )
    return found


def word_units(texts: object) -> Units:
    """The words and marks of texts, or of one text, where they stand."""
    entries = strings(texts)
    found = Tokenizer(mode="words", lowercase=False).encode(entries, Vocabulary.of(()))
    check_words(found.offsets, entries)
    return Units(offsets=found.offsets, texts=entries, spans=found.spans.long())
