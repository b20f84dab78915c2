"""Tokenised corpora as files that processes map into memory instead of reading them: many workers, one copy.

A corpus is tokenised once per store. Token numbers, places, offsets and labels are safetensors, texts are an Arrow
file; both are mapped, so their pages are shared by all processes of a machine and loaded when they are touched. The
fingerprint is kept beside them.
"""

import ctypes
import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, overload

import pyarrow as pa
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.config import DataSettings
from heedful.files import explained, read_json, write_json
from heedful.store import CORPUS, Store
from heedful.text.corpus import SPLITS, Corpus, Split
from heedful.text.datasets import data_folder, find_dataset, load_corpus
from heedful.text.tokenize import Tokenizer, Tokens, Vocabulary
from heedful.version import RESULTS_VERSION, __version__

FORMAT = 2
"""Raised when the files of a cached corpus change, or how a table becomes a corpus; part of its key, so that other
versions do not see each other's."""

FACTS, ARRAYS, TEXTS = "corpus.json", "arrays.safetensors", "{}.arrow"
PARTS = ("numbers", "offsets", "spans")


@dataclass(frozen=True, kw_only=True)
class CorpusFacts:
    """What can be known of a cached corpus without opening it."""

    key: str
    fingerprint: str
    units: int
    held_out_units: int
    """Tokens of the test split, which a run traces."""
    vocabulary: int


class MappedTexts(Sequence[str]):
    """Texts in a mapped Arrow file; each becomes a string when it is asked for."""

    def __init__(self, path: Path) -> None:
        with pa.memory_map(str(path)) as file:
            self._array = pa.ipc.open_file(file).get_batch(0).column(0)  # a view of the mapped file, not a copy

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return tuple(self[row] for row in range(*place.indices(len(self))))
        if not -len(self) <= place < len(self):
            raise IndexError(f"There are {len(self)} texts; number {place} is not among them.")
        return str(self._array[place].as_py(), "utf-8", "surrogatepass")


def cached_corpus(data: DataSettings, store: Store) -> Corpus:
    """The corpus that the settings name, mapped from the store; it is tokenised and written there on first use."""
    return open_corpus(store.place(CORPUS, cache_corpus(data, store).key))


def cache_corpus(data: DataSettings, store: Store) -> CorpusFacts:
    """Make sure that the store holds the corpus, and say what it is."""
    key = corpus_key(data)

    def make(place: Path) -> None:
        _write(load_corpus(**data.model_dump()), key, place)
        _give_back_memory()

    place, _ = store.keep(CORPUS, key, make)
    return _read_facts(place)


def corpus_facts(data: DataSettings, store: Store) -> CorpusFacts:
    """As `cache_corpus`, but writes nothing."""
    key = corpus_key(data)
    place = store.find(key, CORPUS)
    return _read_facts(place) if place else _facts_of(load_corpus(**data.model_dump()), key)


def corpus_key(data: DataSettings) -> str:
    """The identity of a cached corpus: how it is read, the bytes it is read from, and by which version."""
    known = find_dataset(data.source)
    paths = [data_folder() / name for name in known.files] if known else [Path(data.source)]
    content = {
        "data": data.model_dump(mode="json"),
        "bytes": [_hash(path) for path in paths if path.is_file()],  # a missing one is `load_corpus`'s to complain of
        "version": [FORMAT, RESULTS_VERSION, __version__],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_corpus(place: Path) -> Corpus:
    """A cached corpus, mapped into memory."""
    facts, arrays = read_json(place / FACTS), load_file(place / ARRAYS)
    corpus = Corpus(
        name=facts["name"],
        **{split: _open_split(place, split, arrays) for split in SPLITS},
        class_names=tuple(facts["class_names"]),
        vocabulary=Vocabulary(tuple(facts["tokens"])),
        tokenizer=Tokenizer(**facts["tokenizer"]),
        planted=facts["planted"],
        notices=tuple(facts["notices"]),
    )
    vars(corpus)["fingerprint"] = facts["fingerprint"]  # fills the cached property: texts are not hashed again
    return corpus


def _open_split(place: Path, split: str, arrays: dict[str, Any]) -> Split:
    tokens = Tokens(**{part: arrays[f"{split}.{part}"] for part in PARTS})
    return Split(texts=MappedTexts(place / TEXTS.format(split)), labels=arrays[f"{split}.labels"], tokens=tokens)


def _write(corpus: Corpus, key: str, place: Path) -> None:
    """All files of a cached corpus."""
    with explained(place):
        place.mkdir()
        arrays: dict[str, Tensor] = {}
        for name, split in corpus.splits().items():
            arrays[f"{name}.labels"] = split.labels.contiguous()
            arrays |= {f"{name}.{part}": getattr(split.tokens, part).contiguous() for part in PARTS}
            _write_texts(place / TEXTS.format(name), split.texts)
        save_file(arrays, place / ARRAYS)
        write_json(place / FACTS, {**_description(corpus), **asdict(_facts_of(corpus, key))})


def _write_texts(path: Path, texts: Sequence[str]) -> None:
    """Bytes, not Arrow strings, so that a text with a lone surrogate survives."""
    array = pa.array([text.encode("utf-8", "surrogatepass") for text in texts], pa.large_binary())
    batch = pa.record_batch({"text": array})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def _description(corpus: Corpus) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": corpus.name,
        "class_names": corpus.class_names,
        "tokens": corpus.vocabulary.tokens,
        "tokenizer": asdict(corpus.tokenizer),
        "planted": corpus.planted,
        "notices": corpus.notices,
    }


def _facts_of(corpus: Corpus, key: str) -> CorpusFacts:
    units = {name: len(split.tokens.numbers) for name, split in corpus.splits().items()}
    return CorpusFacts(
        key=key,
        fingerprint=corpus.fingerprint,
        units=sum(units.values()),
        held_out_units=units["test"],
        vocabulary=len(corpus.vocabulary),
    )


def _read_facts(place: Path) -> CorpusFacts:
    content = read_json(place / FACTS)
    return CorpusFacts(**{field.name: content[field.name] for field in fields(CorpusFacts)})


def _give_back_memory() -> None:
    """Tokenising leaves the allocator with free pages; a worker that goes on for hours should not keep them."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
