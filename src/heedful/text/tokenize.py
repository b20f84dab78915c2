"""Tokens and sentences, with their places in the original text; and the vocabulary that numbers the tokens."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import tokenizers
import torch
from jaxtyping import Int
from tokenizers import models, normalizers, pre_tokenizers, trainers
from torch import Tensor

from heedful.errors import DataError, UnknownName
from heedful.text.ragged import offsets_of

UNKNOWN = "<unk>"

# A word may hold apostrophes (don't); everything else that is not white space stands alone, as readers count it: an
# emoji with its skin tone is one mark.
WORD = r"\w+(?:['’]\w+)*|(?!\s)\X"

MODES: Mapping[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "words": lambda: pre_tokenizers.Split(tokenizers.Regex(WORD), "removed", invert=True),
    "alphanumeric": lambda: pre_tokenizers.Split(tokenizers.Regex(r"\w+"), "removed", invert=True),
    "whitespace": lambda: pre_tokenizers.WhitespaceSplit(),
}

_CHUNK = 512  # texts handed over at once: bounds the memory that encodings hold


@dataclass(frozen=True)
class Vocabulary:
    """Distinct tokens in a fixed order; `tokens[0]` stands for every token that is not in it."""

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.tokens or self.tokens[0] != UNKNOWN:
            raise DataError(f"A vocabulary begins with the token {UNKNOWN}, this one with {self.tokens[:1]}.")
        if len(self.numbers) != len(self.tokens):
            raise DataError("A vocabulary holds each token once, this one repeats some.")

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.tokens):,} tokens)"

    @classmethod
    def of(cls, tokens: Iterable[str]) -> "Vocabulary":
        """The unknown token first, then these in their order."""
        return cls((UNKNOWN, *(token for token in tokens if token != UNKNOWN)))

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self.numbers

    def number(self, token: str) -> int:
        """The token's number; a token that is not here is an error that names its nearest neighbour."""
        if token not in self.numbers:
            raise UnknownToken(token, self.tokens)
        return self.numbers[token]


class UnknownToken(UnknownName):
    """A token that the vocabulary does not hold. A vocabulary is too long to list: a few tokens with the same beginning
    are, or the most frequent ones."""

    def __init__(self, token: str, tokens: Sequence[str]) -> None:
        beginnings = (token[:size] for size in range(len(token), -1, -1))
        similar = ([other for other in tokens if other.startswith(beginning)][:8] for beginning in beginnings)
        super().__init__("token", token, next(filter(None, similar), []))


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Tokenised texts: numbers, where each document begins, and each token's [start, end) in its own text."""

    numbers: Int[Tensor, " units"]
    offsets: Int[Tensor, " bounds"]
    spans: Int[Tensor, "units 2"]


@dataclass(frozen=True)
class Tokenizer:
    """How text is cut: into words and marks, into runs of letters and digits, or at white space."""

    mode: str = "words"
    lowercase: bool = True

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UnknownName("tokenizer", self.mode, MODES)

    def vocabulary(self, texts: Iterable[str] | Iterable[list[str]], *, min_count: int = 1) -> Vocabulary:
        """Every token that occurs at least `min_count` times, the frequent first, equals in alphabetical order. Texts
        may come batch by batch; they are read once and not kept."""
        worker = self._worker({UNKNOWN: 0})
        trainer = trainers.WordLevelTrainer(
            vocab_size=2**31, min_frequency=min_count, special_tokens=[], show_progress=False
        )
        worker.train_from_iterator(texts, trainer)
        numbers = worker.get_vocab(with_added_tokens=False)
        return Vocabulary.of(sorted(numbers, key=numbers.__getitem__))

    def encode(self, texts: Sequence[str], vocabulary: Vocabulary) -> Tokens:
        """Numbers and character places of all tokens of all texts, in order."""
        return encode(self.worker(vocabulary), texts)

    def worker(self, vocabulary: Vocabulary) -> tokenizers.Tokenizer:
        """What cuts and numbers texts. To make it takes milliseconds, which counts where texts come one by one."""
        return self._worker(dict(vocabulary.numbers))

    def _worker(self, numbers: dict[str, int]) -> tokenizers.Tokenizer:
        worker = tokenizers.Tokenizer(models.WordLevel(numbers, unk_token=UNKNOWN))
        if self.lowercase:
            worker.normalizer = normalizers.Lowercase()
        worker.pre_tokenizer = MODES[self.mode]()
        return worker


def encode(worker: tokenizers.Tokenizer, texts: Sequence[str]) -> Tokens:
    """Numbers and character places of all tokens of all texts, in order."""
    numbers: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    spans: list[np.ndarray[tuple[int], np.dtype[np.int32]]] = []
    for start in range(0, len(texts), _CHUNK):
        for encoding in worker.encode_batch(list(texts[start : start + _CHUNK]), add_special_tokens=False):
            numbers.append(np.array(encoding.ids, dtype=np.int64))
            ends = itertools.chain.from_iterable(encoding.offsets)
            spans.append(np.fromiter(ends, dtype=np.int32, count=2 * len(encoding)))
    return Tokens(
        numbers=torch.from_numpy(np.concatenate([*numbers, np.empty(0, np.int64)])),
        offsets=offsets_of(torch.tensor([len(part) for part in numbers], dtype=torch.int64)),
        spans=torch.from_numpy(np.concatenate([*spans, np.empty(0, np.int32)])).view(-1, 2),
    )


def sentence_starts(text: str, spans: Int[Tensor, "units 2"], *, language: str = "en") -> Int[Tensor, " sentences"]:
    """The position of the first token of each sentence; a line break ends a sentence too."""
    from sentencex import get_sentence_boundaries  # a compiled library that only hierarchical models need

    begins = {int(boundary["start_index"]) for boundary in get_sentence_boundaries(language, text)}
    begins |= {0} | {place + 1 for place, character in enumerate(text) if character == "\n"}
    first = torch.searchsorted(spans[:, 0].contiguous(), torch.tensor(sorted(begins), dtype=spans.dtype))
    starts: Tensor = torch.unique(first[first < len(spans)])
    return starts
