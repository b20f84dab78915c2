"""A corpus as a folder: written once, batch by batch where it is large, and mapped into memory instead of read.

Token numbers, places, offsets and labels are safetensors, texts are Arrow files of many batches; both are mapped, so
their pages are shared by all processes of a machine and loaded when they are touched. The fingerprint is kept beside
them, as is whatever can be known without opening them.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, overload

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Int
from pydantic import BaseModel
from torch import Tensor

from heedful.errors import DataError, StoreError
from heedful.files import explained, hash_once, is_file, read_json, write_json
from heedful.tensor_files import RawTensor, load_tensors, save_tensors
from heedful.text.corpus import SPLITS, Corpus, Split, check_classes, check_documents, fingerprint_start, left_out
from heedful.text.ragged import lengths_of, offsets_of
from heedful.text.splits import Division, as_stored
from heedful.text.tables import Table
from heedful.text.tokenize import Tokenizer, Tokens, Vocabulary, encode

FORMAT = 3
"""Raised when the files of a cached corpus change, or how a table becomes a corpus; part of its key, so that other
versions do not see each other's."""

FACTS, ARRAYS, TEXTS, SPOOL = "corpus.json", "arrays.safetensors", "{}.arrow", "{}.spool"
PARTS = ("numbers", "offsets", "spans")
_REMOVE = "Remove the folder: the corpus is cached again when it is needed."
MOST_BYTES, MOST_TEXTS = 2**22, 4096
"""Of a batch of texts in a file."""

SCHEMA = pa.schema({"text": pa.large_binary()})
"""Bytes, not Arrow strings, so that a text with a lone surrogate survives."""


class CorpusFacts(BaseModel, frozen=True):
    """What can be known of a cached corpus without opening it."""

    key: str
    fingerprint: str
    units: int
    held_out_units: int  # tokens of the test split, which a run traces
    vocabulary: int


class MappedTexts(Sequence[str]):
    """Texts in a mapped Arrow file; each becomes a string when it is asked for."""

    def __init__(self, path: Path) -> None:
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
            self._parts = [batch.column(0) for batch in batches]  # views of the mapped file, not copies
        self._bounds = [0, *accumulate(map(len, self._parts))]

    def __len__(self) -> int:
        return self._bounds[-1]

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return tuple(self[row] for row in range(*place.indices(len(self))))
        if not -len(self) <= place < len(self):
            raise IndexError(f"There are {len(self)} texts; number {place} is not among them.")
        row = place % len(self)
        part = bisect_right(self._bounds, row) - 1
        return _text(self._parts[part][row - self._bounds[part]].as_py())


class TextsWriter:
    """Texts into an Arrow file, a batch whenever enough of them wait."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: list[bytes] = []
        self._size = 0

    def __enter__(self) -> "TextsWriter":
        self._stack = ExitStack()
        with explained(self._path):
            file = self._stack.enter_context(pa.OSFile(str(self._path), "wb"))
            self._writer = self._stack.enter_context(pa.ipc.new_file(file, SCHEMA))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with explained(self._path):
            if kind is None:
                self._flush()
            self._stack.__exit__(kind, error, trace)

    def write(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._waiting.append(text.encode("utf-8", "surrogatepass"))
            self._size += len(self._waiting[-1])
            if self._size > MOST_BYTES or len(self._waiting) == MOST_TEXTS:
                self._flush()

    def _flush(self) -> None:
        if self._waiting:
            with explained(self._path):
                self._writer.write_batch(pa.record_batch([pa.array(self._waiting, pa.large_binary())], schema=SCHEMA))
        self._waiting, self._size = [], 0


def read_texts(path: Path) -> Iterator[list[str]]:
    """The texts of an Arrow file, a batch at a time; none of it stays in memory."""
    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield [_text(held) for held in reader.get_batch(number).column(0).to_pylist()]


def _text(held: bytes) -> str:
    return str(held, "utf-8", "surrogatepass")


def open_corpus(place: Path, *, held: bool = False) -> Corpus:
    """A corpus in a folder, mapped into memory; or all of it read, so that the folder can go.

    It is refused where a file of it does not hold what was written to it.
    """
    arrays, checksums = load_tensors(place / ARRAYS, StoreError, _REMOVE)
    for name, known in checksums.items():
        if not is_file(place / name) or hash_once(place / name) != known:
            raise StoreError(f"'{place / name}' is damaged: it does not hold what was written to it. {_REMOVE}")
    facts = read_json(place / FACTS)
    if held:
        arrays = {name: array.clone() for name, array in arrays.items()}
    texts = {name: MappedTexts(place / TEXTS.format(name)) for name in SPLITS}
    splits: dict[str, Any] = {
        name: Split(
            texts=tuple(texts[name]) if held else texts[name],
            labels=arrays[f"{name}.labels"],
            tokens=Tokens(**{part: arrays[f"{name}.{part}"] for part in PARTS}),
        )
        for name in SPLITS
    }
    corpus = Corpus(
        name=facts["name"],
        **splits,
        class_names=tuple(facts["class_names"]),
        vocabulary=Vocabulary(tuple(facts["tokens"])),
        tokenizer=Tokenizer(**facts["tokenizer"]),
        planted=facts["planted"],
        notices=tuple(facts["notices"]),
    )
    vars(corpus)["fingerprint"] = facts["fingerprint"]  # fills the cached property: texts are not hashed again
    return corpus


def write_corpus(corpus: Corpus, key: str, place: Path) -> None:
    """A corpus that is in memory."""
    with explained(place):
        place.mkdir()
        arrays: dict[str, Tensor] = {}
        for name, split in corpus.splits().items():
            arrays[f"{name}.labels"] = split.labels.contiguous()
            arrays |= {f"{name}.{part}": getattr(split.tokens, part).contiguous() for part in PARTS}
            with TextsWriter(place / TEXTS.format(name)) as writer:
                writer.write(split.texts)
        about = {name: getattr(corpus, name) for name in ("name", "class_names", "planted", "notices")}
        _write_facts(place, about, corpus.vocabulary, corpus.tokenizer, facts_of(corpus, key))
        save_tensors(place / ARRAYS, arrays, _checksums(place))


def facts_of(corpus: Corpus, key: str) -> CorpusFacts:
    units = {name: len(split.tokens.numbers) for name, split in corpus.splits().items()}
    return _facts(key, corpus.fingerprint, units, corpus.vocabulary)


def _facts(key: str, fingerprint: str, units: Mapping[str, int], vocabulary: Vocabulary) -> CorpusFacts:
    sums = {"units": sum(units.values()), "held_out_units": units["test"]}
    return CorpusFacts(key=key, fingerprint=fingerprint, vocabulary=len(vocabulary), **sums)


def _write_facts(
    place: Path, about: Mapping[str, Any], vocabulary: Vocabulary, tokenizer: Tokenizer, facts: CorpusFacts
) -> None:
    known = {"format": FORMAT, "tokens": vocabulary.tokens, "tokenizer": asdict(tokenizer)}
    write_json(place / FACTS, {**known, **about, **facts.model_dump()})


def _checksums(place: Path) -> dict[str, str]:
    """Of the files beside the arrays, which are written last and hold them."""
    return {name: hash_once(place / name) for name in (FACTS, *map(TEXTS.format, SPLITS))}


@dataclass(frozen=True, kw_only=True)
class Written:
    """A split that was tokenised into files."""

    arrays: Mapping[str, RawTensor | Tensor]
    units: int
    dropped: int


def stream_corpus(
    place: Path, table: Table, column: str, division: Division, *, name: str, cut: Tokenizer, min_count: int, key: str
) -> None:
    """What `build_corpus` makes, from a table that is read once more: in memory are the vocabulary and a batch."""
    with explained(place):
        place.mkdir()
    if min_count < 1:
        raise DataError(f"The minimum count of a token is 1 or more, not {min_count}.")
    vocabulary = cut.vocabulary(_training_texts(place, table, column, division), min_count=min_count)
    digest = fingerprint_start(division.class_names, cut, vocabulary)
    said, arrays, units = list(division.notices), dict[str, RawTensor | Tensor](), {}
    for split in SPLITS:
        made = _encode_split(place, split, division, cut, vocabulary, digest)
        arrays |= made.arrays
        units[split] = made.units
        said += left_out(split, made.dropped)
        check_documents(name, split, len(division.rows[split]) - made.dropped)
    labels = arrays["train.labels"]
    assert isinstance(labels, Tensor)
    check_classes(name, labels, division.class_names)
    about = {"name": name, "class_names": division.class_names, "planted": None, "notices": said}
    _write_facts(place, about, vocabulary, cut, _facts(key, digest.hexdigest(), units, vocabulary))
    with explained(place):
        save_tensors(place / ARRAYS, arrays, _checksums(place))
        for array in arrays.values():
            if isinstance(array, RawTensor):
                array.path.unlink()


def _training_texts(place: Path, table: Table, column: str, division: Division) -> Iterator[list[str]]:
    """Every text into the file of its split; those of training are also given."""
    split_of = np.full(division.count, len(SPLITS), dtype=np.int8)
    for number, split in enumerate(SPLITS):
        split_of[division.rows[split]] = number
    start = 0
    with ExitStack() as stack:
        spools = [stack.enter_context(TextsWriter(place / SPOOL.format(split))) for split in SPLITS]
        for batch in table.batches([column]):
            texts = batch[column]
            own = split_of[start : start + len(texts)]
            start += len(texts)
            for number, spool in enumerate(spools):
                chosen = [as_stored(texts[row]) for row in np.flatnonzero(own == number).tolist()]
                spool.write(chosen)
                if chosen and number == 0:
                    yield chosen


def _encode_split(
    place: Path, split: str, division: Division, cut: Tokenizer, vocabulary: Vocabulary, digest: "hashlib._Hash"
) -> Written:
    """Tokenise the texts of a split, batch by batch, without those that have no token."""
    spool, worker = place / SPOOL.format(split), cut.worker(vocabulary)
    raw = {part: place / f"{split}.{part}" for part in ("numbers", "spans")}
    lengths: list[Int[Tensor, " texts"]] = [torch.empty(0, dtype=torch.int64)]
    with explained(place), ExitStack() as stack:
        files = {part: stack.enter_context(path.open("wb")) for part, path in raw.items()}
        writer = stack.enter_context(TextsWriter(place / TEXTS.format(split)))
        for texts in read_texts(spool):
            tokens = encode(worker, texts)
            lengths.append(lengths_of(tokens.offsets))
            kept = [text for text, length in zip(texts, lengths[-1].tolist(), strict=True) if length]
            writer.write(kept)
            for text in kept:
                digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
            for part, file in files.items():
                file.write(getattr(tokens, part).numpy().data)
    spool.unlink()
    every = torch.cat(lengths)
    if len(every) != len(division.rows[split]):
        raise DataError("The file changed while it was read. Read it again when nobody writes to it.")
    labels, offsets = torch.from_numpy(division.labels[split])[every > 0], offsets_of(every[every > 0])
    units = int(offsets[-1])
    numbers = RawTensor(path=raw["numbers"], dtype=torch.int64, shape=(units,))
    digest.update(labels.numpy().data)
    for piece in numbers.pieces():
        digest.update(piece)
    arrays: dict[str, RawTensor | Tensor] = {
        "labels": labels,
        "offsets": offsets,
        "numbers": numbers,
        "spans": RawTensor(path=raw["spans"], dtype=torch.int32, shape=(units, 2)),
    }
    dropped = int((every == 0).sum())
    return Written(arrays={f"{split}.{part}": array for part, array in arrays.items()}, units=units, dropped=dropped)
