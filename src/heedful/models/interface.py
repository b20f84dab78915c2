"""What a classifier reads and says: texts as numbers, and numbers as classes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
import tokenizers
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.errors import InputError
from heedful.notebook import counted, listed, short
from heedful.text.corpus import Split
from heedful.text.ragged import lengths_of
from heedful.text.tables import writable
from heedful.text.tokenize import Tokenizer, Vocabulary, encode


@dataclass(frozen=True, kw_only=True)
class Interface:
    """What the numbers of a classifier mean: how text becomes numbers, and what its outputs are called."""

    vocabulary: Vocabulary
    tokenizer: Tokenizer
    class_names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Interface({counted(len(self.vocabulary), 'token')}, classes {listed(self.class_names)})"

    def __deepcopy__(self, _: object) -> "Interface":
        """Itself: it never changes, and copies of models need no vocabulary of their own."""
        return self

    @cached_property
    def _worker(self) -> tokenizers.Tokenizer:
        return self.tokenizer.worker(self.vocabulary)

    def read(self, texts: object) -> Split:
        """Texts, or one text, cut and numbered as those of the training were (with labels that mean nothing).

        A split has been read already and is passed through.
        """
        if isinstance(texts, Split):
            return texts
        entries = strings(texts)
        tokens = encode(self._worker, entries)
        check_words(tokens.offsets, entries)
        return Split(texts=entries, labels=torch.zeros(len(entries), dtype=torch.int64), tokens=tokens)


def check_words(offsets: Int[Tensor, " bounds"], texts: Sequence[str]) -> None:
    """Refuse texts that have no units."""
    empty = (lengths_of(offsets) == 0).nonzero()
    if len(empty):
        alone = len(texts) == 1
        which = "this one has none." if alone else f"{_place(int(empty[0]), texts)} has none. Leave it out."
        raise InputError(f"A text needs at least one word; {which}")


def strings(texts: object) -> list[str]:
    """Texts, or one text, as a list; anything else is refused."""
    if isinstance(texts, str):
        return [str(writable(texts))]
    if not isinstance(texts, Iterable) or isinstance(texts, (bytes, Mapping, pd.DataFrame)):
        raise InputError(
            "Expected a list of texts, one text, or a split of a corpus (such as corpus.test); got "
            f"{type(texts).__name__}. Give strings; of a table, its column of texts."
        )
    entries = list(texts)
    wrong = next((number for number, text in enumerate(entries) if not isinstance(text, str)), None)
    if wrong is not None:
        raise InputError(f"Every text must be a string; {_place(wrong, entries)} is none. Leave it out.")
    if not entries:
        raise InputError("Expected at least one text, got an empty list.")
    return [str(writable(text)) for text in entries]


def _place(number: int, texts: Sequence[object]) -> str:
    return f"number {number} (the first is 0), {short(repr(texts[number]))},"
