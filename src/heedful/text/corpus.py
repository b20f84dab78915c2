"""A corpus: labelled documents in train, dev and test, tokenised, each score able to find its text again."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.errors import DataError
from heedful.notebook import Grid, View, Viewed, counted, listed, short
from heedful.text.ragged import Batch, Sentences, lengths_of, offsets_of, positions_of
from heedful.text.tokenize import Tokenizer, Tokens, Vocabulary, sentence_starts

SPLITS = ("train", "dev", "test")
MOST_COLUMNS = 8  # of a table in a notebook; what further classes hold is counted together


@dataclass(frozen=True, kw_only=True)
class Split:
    """Documents in a fixed order: texts, labels, tokens and where each token stands in its text."""

    texts: Sequence[str]
    labels: Int[Tensor, " instances"]
    tokens: Tokens

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"Split({counted(len(self), 'text')}, {counted(len(self.tokens.numbers), 'token')})"

    @property
    def offsets(self) -> Int[Tensor, " bounds"]:
        return self.tokens.offsets

    @cached_property
    def lengths(self) -> Int[Tensor, " instances"]:
        return lengths_of(self.offsets)

    def part(self, start: int, stop: int) -> "Split":
        """The documents from one number up to another; their texts are those of this split, not copies."""
        begin, end = int(self.offsets[start]), int(self.offsets[stop])
        tokens = Tokens(
            numbers=self.tokens.numbers[begin:end],
            offsets=self.offsets[start : stop + 1] - begin,
            spans=self.tokens.spans[begin:end],
        )
        return Split(texts=self.texts[start:stop], labels=self.labels[start:stop], tokens=tokens)

    def batch(self, rows: Int[Tensor, " rows"], *, sentences: bool = False) -> Batch:
        """These documents, in the order asked for; with their sentences for a hierarchical model."""
        held = None
        if sentences:
            lengths = lengths_of(self.sentences.bounds)[positions_of(self.sentences.offsets, rows)]
            offsets = offsets_of(lengths_of(self.sentences.offsets)[rows])
            held = Sentences(bounds=offsets_of(lengths), offsets=offsets)
        return Batch(
            tokens=self.tokens.numbers[positions_of(self.offsets, rows)],
            offsets=offsets_of(self.lengths[rows]),
            labels=self.labels[rows],
            instances=rows,
            sentences=held,
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the texts and of where their tokens stand."""
        digest = hashlib.sha256()
        for text in self.texts:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        digest.update(self.offsets.numpy().data)
        digest.update(self.tokens.spans.contiguous().numpy().data)
        return digest.hexdigest()

    def spans(self, instance: int) -> Int[Tensor, "units 2"]:
        """[start, end) of each token of one document, in characters of its text."""
        return self.tokens.spans[int(self.offsets[instance]) : int(self.offsets[instance + 1])]

    def sentence_spans(self, instance: int) -> Int[Tensor, "sentences 2"]:
        """[start, end) of each sentence of one document, from its first token to the end of its last."""
        place = slice(int(self.sentences.offsets[instance]), int(self.sentences.offsets[instance + 1]))
        first, last = self.sentences.bounds[:-1][place], self.sentences.bounds[1:][place] - 1
        return torch.stack([self.tokens.spans[first, 0], self.tokens.spans[last, 1]], 1)

    def surface(self, instance: int) -> list[str]:
        """The tokens of one document as they are written in its text."""
        text = self.texts[instance]
        return [text[start:end] for start, end in self.spans(instance).tolist()]

    def words(self) -> list[str]:
        """The tokens of all documents as they are written."""
        return [word for row in range(len(self)) for word in self.surface(row)]

    def sentence_texts(self) -> list[str]:
        """The sentences of all documents, from the beginning of the first token to the end of the last."""
        return [
            text[begin:end] for row, text in enumerate(self.texts) for begin, end in self.sentence_spans(row).tolist()
        ]

    @cached_property
    def sentences(self) -> Sentences:
        starts = [sentence_starts(text, self.spans(row)) for row, text in enumerate(self.texts)]
        begins = [first + begin for first, begin in zip(starts, self.offsets[:-1], strict=True)]
        return Sentences(
            bounds=torch.cat([*begins, self.offsets[-1:]]),
            offsets=offsets_of(torch.tensor([len(first) for first in starts])),
        )


@dataclass(frozen=True, kw_only=True)
class Corpus(Viewed):
    """Three splits over one vocabulary, which knows the training split only. Made by `heedful.load_corpus`.

    name: what it is called.
    train, dev, test: the splits; each keeps its order and has `texts`, `labels` (class numbers), `tokens`, a length.
    class_names: the classes in the order of their numbers.
    vocabulary: the tokens of the training split, number 0 for every other.
    tokenizer: how texts are cut.
    planted: of a made corpus the true group of each token; otherwise None.
    notices: what was done to the data, one sentence each: rows left out, splits drawn.

    >>> import heedful
    >>> texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    >>> corpus = heedful.load_corpus((texts, ["positive"] * 5 + ["negative"] * 5))
    >>> corpus.class_names
    ('negative', 'positive')
    >>> len(corpus.train) + len(corpus.dev) + len(corpus.test)
    10
    >>> all(text in texts for text in corpus.test.texts)
    True
    """

    name: str
    train: Split
    dev: Split
    test: Split
    class_names: tuple[str, ...]
    vocabulary: Vocabulary
    tokenizer: Tokenizer
    planted: Mapping[str, str] | None = None
    notices: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(split):,} {name}" for name, split in self.splits().items())
        known = f"classes {listed(self.class_names)}; {counted(len(self.vocabulary), 'token')}"
        said = f"; {counted(len(self.notices), 'notice')}" if self.notices else ""
        return f"Corpus({short(self.name)}: {sizes} texts; {known}{said})"

    @property
    def view(self) -> View:
        own, more = self.class_names[: MOST_COLUMNS - 1], self.class_names[MOST_COLUMNS - 1 :]
        columns = [*own, *([f"{len(more)} other classes"] if len(more) > 1 else more)]
        rows = [[name, *_row(split, self.classes, len(columns))] for name, split in self.splits().items()]
        header = ["split", "texts", *(short(name) for name in columns), "mean length"]
        return View(
            title=f"Corpus {short(self.name)}: {self.classes} classes, {counted(len(self.vocabulary), 'token')}",
            sentences=self.notices,
            parts=[Grid(header=header, rows=rows)],
            drawing="classes",
            data=self._counts(),
        )

    def _counts(self) -> pd.DataFrame:
        """How many texts of each class each split has."""
        counts = {name: torch.bincount(split.labels, minlength=self.classes) for name, split in self.splits().items()}
        return pd.DataFrame({"class": self.class_names, **{name: found.numpy() for name, found in counts.items()}})

    @property
    def classes(self) -> int:
        return len(self.class_names)

    def splits(self) -> dict[str, Split]:
        return {name: getattr(self, name) for name in SPLITS}

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that training can see of the data: texts, labels, classes, tokens."""
        digest = fingerprint_start(self.class_names, self.tokenizer, self.vocabulary)
        for split in self.splits().values():
            for text in split.texts:
                digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
            digest.update(split.labels.numpy().data)
            digest.update(split.tokens.numbers.numpy().data)
        return digest.hexdigest()


def fingerprint_start(class_names: Sequence[str], tokenizer: Tokenizer, vocabulary: Vocabulary) -> "hashlib._Hash":
    """Of a corpus; what follows are the texts, labels and token numbers of its splits."""
    return hashlib.sha256(repr((tuple(class_names), tokenizer, len(vocabulary))).encode())


def _row(split: Split, classes: int, columns: int) -> list[str]:
    """Texts in all, in each class (those beyond the last column together), and tokens per text."""
    counts = torch.bincount(split.labels, minlength=classes).tolist()
    texts = [len(split), *counts[: columns - 1], sum(counts[columns - 1 :])]
    return [*(f"{number:,}" for number in texts), f"{len(split.tokens.numbers) / max(1, len(split)):.1f}"]


Labelled = tuple[Sequence[str], Sequence[int]]


def build_corpus(
    *,
    name: str,
    splits: Mapping[str, Labelled],
    class_names: Sequence[str],
    tokenizer: Tokenizer,
    min_count: int = 1,
    planted: Mapping[str, str] | None = None,
    notices: Sequence[str] = (),
) -> Corpus:
    """Tokenise three lists of labelled texts over the vocabulary of the first. Texts without a token are left out."""
    if min_count < 1:
        raise DataError(f"The minimum count of a token is 1 or more, not {min_count}.")
    vocabulary = tokenizer.vocabulary(splits["train"][0], min_count=min_count)
    said, made = list(notices), {}
    for split in SPLITS:
        made[split], dropped = _encode(*splits[split], tokenizer, vocabulary)
        said += left_out(split, dropped)
        check_documents(name, split, len(made[split]))
    check_classes(name, made["train"].labels, class_names)
    return Corpus(
        name=name,
        **made,
        class_names=tuple(class_names),
        vocabulary=vocabulary,
        tokenizer=tokenizer,
        planted=planted,
        notices=tuple(said),
    )


def with_min_count(corpus: Corpus, min_count: int) -> Corpus:
    """The corpus over the tokens that occur so often in its training split; the others become the unknown token."""
    if min_count == 1:
        return corpus
    if min_count < 1:
        raise DataError(f"The minimum count of a token is 1 or more, not {min_count}.")
    known = torch.bincount(corpus.train.tokens.numbers, minlength=len(corpus.vocabulary)) >= min_count
    known[0] = True
    numbers = torch.where(known, known.cumsum(0) - 1, 0)
    splits: dict[str, Any] = {
        name: replace(split, tokens=replace(split.tokens, numbers=numbers[split.tokens.numbers]))
        for name, split in corpus.splits().items()
    }
    tokens = (token for token, kept in zip(corpus.vocabulary.tokens, known.tolist(), strict=True) if kept)
    return replace(corpus, **splits, vocabulary=Vocabulary(tuple(tokens)))


def _encode(texts: Sequence[str], labels: Sequence[int], cut: Tokenizer, vocabulary: Vocabulary) -> tuple[Split, int]:
    tokens = cut.encode(texts, vocabulary)
    lengths = lengths_of(tokens.offsets)
    kept = lengths.nonzero().squeeze(1)
    numbers = torch.tensor(labels, dtype=torch.int64)
    held = Tokens(numbers=tokens.numbers, spans=tokens.spans, offsets=offsets_of(lengths[kept]))
    split = Split(texts=tuple(texts[row] for row in kept.tolist()), labels=numbers[kept], tokens=held)
    return split, len(texts) - len(kept)


def left_out(split: str, dropped: int) -> list[str]:
    """What is said of texts without a token."""
    return [f"{dropped} {split} texts have no token and are left out."] if dropped else []


def check_documents(name: str, split: str, count: int) -> None:
    """Refuse a split without texts."""
    if not count:
        raise DataError(f"The {split} split of '{name}' has no documents. Give more rows, or other splits.")


def check_classes(name: str, labels: Int[Tensor, " instances"], class_names: Sequence[str]) -> None:
    """Refuse a training split that lacks a class, or has one only."""
    present = labels.unique().tolist()
    if len(class_names) < 2 or len(present) < 2:
        only = class_names[present[0]] if present else "none"
        raise DataError(
            f"A classifier needs at least two classes in the training split; '{name}' has one: '{only}'. "
            "Check which column holds the labels."
        )
    if missing := sorted(set(range(len(class_names))) - set(present)):
        names = ", ".join(class_names[number] for number in missing)
        raise DataError(f"Every class must occur in the training split of '{name}'; missing: {names}.")
