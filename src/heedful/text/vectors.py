"""Initial word vectors: word2vec trained on the training split, or a GloVe file. Other words keep their random draw.

word2vec is gensim's, an extra (`pip install 'heedful[word2vec]'`), with one worker and a seed of its own, so that the
same corpus and seed give the same bits in every process. What it learned can be kept in a store.
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import ConfigError, DataError
from heedful.files import digest_of, explained
from heedful.store import VECTORS, Store
from heedful.tensor_files import load_tensors, save_tensors
from heedful.text.corpus import Corpus, Split
from heedful.text.recipes import DATA_VARIABLE, data_folder
from heedful.text.tokenize import Vocabulary

RANDOM, WORD2VEC, GLOVE = "random", "word2vec", "glove"

RECIPE: Mapping[str, Any] = {
    "sg": 0,
    "window": 5,
    "negative": 5,
    "sample": 1e-3,
    "epochs": 30,
    "alpha": 0.025,
    "min_alpha": 1e-4,
    "min_count": 1,
}
"""How word2vec is trained: gensim's continuous bag of words for 30 epochs, as Serrano & Smith 2019 did. The vocabulary
has left the rare words out already."""

LONGEST = 10_000  # gensim ignores what comes after so many words of a text; longer ones are cut
FORMAT = 1  # raised when the same key would stand for other vectors; part of the key


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """Vectors of some tokens of a vocabulary, by their numbers."""

    source: str
    rows: Int[Tensor, " known"]
    values: Float[Tensor, "known features"]
    tokens: int  # how many tokens the vocabulary has, the unknown one included

    @property
    def notice(self) -> str:
        said = f"{len(self.rows):,} of {self.tokens:,} tokens began with a vector of {self.source}"
        return f"{said}; the others were drawn." if len(self.rows) < self.tokens else f"{said}."

    @property
    def metrics(self) -> dict[str, Any]:
        return {"source": self.source, "found": len(self.rows), "tokens": self.tokens}


def initial_vectors(corpus: Corpus, source: str, *, size: int, seed: int, store: Store | None = None) -> Vectors | None:
    """What the setting `vectors` asks for: nothing for "random", else word2vec, GloVe of the data folder, or a file."""
    if source == RANDOM:
        return None
    if source == WORD2VEC:
        return word2vec(corpus, size=size, seed=seed, store=store)
    return read_vectors(find_glove(size) if source == GLOVE else Path(source), corpus.vocabulary, size=size)


def find_glove(size: int) -> Path:
    """The file of GloVe vectors of this size in the data folder."""
    names = [f"glove.6B.{size}d.txt", f"glove.6B.{size}d.txt.gz", f"glove6B{size}d_subset_f16.npz"]
    for path in (data_folder() / name for name in names):
        if path.is_file():
            return path
    raise DataError(
        f"There are no GloVe vectors of {size} numbers in '{data_folder()}'. Put one of {', '.join(names)} there (the "
        f"folder is ${DATA_VARIABLE}), or name a file."
    )


def word2vec(corpus: Corpus, *, size: int, seed: int, store: Store | None = None) -> Vectors:
    """Vectors of length one, learned from the training split; found in the store where it holds them.

    The rare words that the vocabulary leaves out are all the unknown token, which so gets a vector too.
    Differs from the paper: a window may reach from one sentence into the next, and dev texts are not read.
    """
    version, tokens = _gensim().__version__, len(corpus.vocabulary)
    learn = partial(_train_word2vec, corpus, size, seed)
    kept = None
    if store is not None:
        keep = partial(store.keep, VECTORS, _key(corpus, size, seed, version), partial(_write, learn))
        kept = _read(keep()[0], (tokens, size)) or _read(keep(fresh=True)[0], (tokens, size))
    rows, values = kept or learn()
    return Vectors(source=WORD2VEC, rows=rows, values=values, tokens=tokens)


def _train_word2vec(corpus: Corpus, size: int, seed: int) -> tuple[Tensor, Tensor]:
    """The numbers of the tokens in order, and their vectors."""
    texts = list(_texts(corpus.train))
    own_seed = int.from_bytes(hashlib.sha256(f"{seed}/vectors".encode()).digest()[:4])  # in the bits that gensim takes
    model = _gensim().models.Word2Vec(vector_size=size, seed=own_seed, workers=1, hashfxn=_stable_hash, **RECIPE)
    model.build_vocab(texts)
    model.train(texts, total_examples=model.corpus_count, epochs=model.epochs)
    numbers = np.array([int(word) for word in model.wv.index_to_key], dtype=np.int64)
    order = np.argsort(numbers)
    vectors = cast(NDArray[np.float32], model.wv.vectors)[order]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return torch.from_numpy(numbers[order]), torch.from_numpy(vectors / np.maximum(lengths, 1e-12))


def _texts(split: Split) -> Iterator[list[str]]:
    """The documents as gensim reads them; a token is its number, written."""
    for begin, end in pairwise(split.offsets.tolist()):
        for start in range(begin, end, LONGEST):
            yield [str(number) for number in split.tokens.numbers[start : min(end, start + LONGEST)].tolist()]


def _stable_hash(word: str) -> int:
    """Python's own differs from process to process."""
    return zlib.crc32(word.encode())


def _gensim() -> Any:
    try:
        import gensim
    except ImportError as error:
        raise ConfigError(
            "Vectors of word2vec need gensim, which is not installed: pip install 'heedful[word2vec]'. "
            "Or set model.vectors to 'random', or to the path of a GloVe file."
        ) from error
    return gensim


def _key(corpus: Corpus, size: int, seed: int, version: str) -> str:
    how = {"format": FORMAT, "recipe": dict(RECIPE), "gensim": version}
    return digest_of({**how, "corpus": corpus.fingerprint, "size": size, "seed": seed})[:24]


def _read(path: Path, shape: tuple[int, int]) -> tuple[Tensor, Tensor] | None:
    """What the file holds; nothing where there is none, or a damaged one."""
    tokens, size = shape
    try:
        content, _ = load_tensors(path, DataError)
        rows, values = content["rows"].clone(), content["values"].clone()  # not views of a file that may be made anew
    except (DataError, KeyError):
        return None
    known = rows.dtype == torch.int64 and rows.ndim == 1 and bool(((rows >= 0) & (rows < tokens)).all())
    whole = values.dtype == torch.float32 and values.shape == (len(rows), size) and bool(values.isfinite().all())
    return (rows, values) if known and whole and len(rows) else None


def _write(learn: Callable[[], tuple[Tensor, Tensor]], path: Path) -> None:
    rows, values = learn()
    with explained(path):
        save_tensors(path, {"rows": rows, "values": values})


def read_vectors(path: Path, vocabulary: Vocabulary, *, size: int) -> Vectors:
    """The vectors of the vocabulary's tokens in a GloVe file, text (plain or .gz) or .npz; of a repeated word the
    first.

    Every line of a text file is a word and `size` numbers, with single spaces between them; a first line with the
    number of words and the dimension, as word2vec and fastText write it, is passed over. An .npz file has the array
    `words`, one text with a word on each line, and the array `vectors`, [words, size].
    """
    if not path.is_file():
        raise DataError(
            f"There is no file '{path}' of word vectors. model.vectors is 'random', 'word2vec' or the path of a GloVe "
            "text file (word v1 v2 …, plain or .gz) or .npz file (words, vectors)."
        )
    vectors = (_packed_vectors if path.suffix == ".npz" else _listed_vectors)(path, vocabulary, size)
    if not vectors:
        raise DataError(
            f"None of the {len(vocabulary):,} tokens of the vocabulary has a vector in '{path}'. "
            "Is it a file for this language, and are its words lower-case as the tokens are?"
        )
    rows = torch.tensor(sorted(vectors))
    values = torch.from_numpy(np.stack([vectors[number] for number in rows.tolist()]))
    return Vectors(source=path.name, rows=rows, values=values, tokens=len(vocabulary))


def _packed_vectors(path: Path, vocabulary: Vocabulary, size: int) -> dict[int, NDArray[np.float32]]:
    """Of an .npz file, by the numbers of their tokens. Loading runs no code."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            words, values = str(file["words"]).split("\n"), file["vectors"]
    except Exception as error:  # whatever zipfile and numpy raise on what is no such file
        raise DataError(
            f"The word vectors '{path}' cannot be read: {error}. An .npz file of vectors has the array `words`, one "
            "text with a word on each line, and the array `vectors`, [words, dimension]."
        ) from error
    if values.ndim != 2 or values.dtype.kind != "f" or len(values) != len(words):
        raise DataError(
            f"The word vectors '{path}' have {len(words):,} words and an array of {values.dtype} of shape "
            f"{list(values.shape)}; expected numbers with a row for each word."
        )
    if values.shape[1] != size:
        raise _wrong_size(f"Every row of the word vectors '{path}'", values.shape[1], size)
    places: dict[int, int] = {}
    for place, word in enumerate(words):
        if word in vocabulary.numbers:
            places.setdefault(vocabulary.numbers[word], place)
    found = {number: values[place].astype(np.float32) for number, place in places.items()}
    strange = next((words[places[number]] for number, row in found.items() if not np.isfinite(row).all()), None)
    if strange is not None:
        raise DataError(f"The vector of '{strange}' in '{path}' holds a number that is not finite.")
    return found


def _listed_vectors(path: Path, vocabulary: Vocabulary, size: int) -> dict[int, NDArray[np.float32]]:
    """Of a text file, by the numbers of their tokens."""
    vectors: dict[int, NDArray[np.float32]] = {}
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for place, line in enumerate(file, 1):
                where = f"Line {place} of the word vectors '{path}'"
                if place == 1 and _is_header(line, where, size):
                    continue
                word, numbers = _parts(line, where, size)
                number = vocabulary.numbers.get(word)
                if number is not None and number not in vectors:
                    vectors[number] = _floats(numbers, where)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"The word vectors '{path}' cannot be read: {error}.") from error
    return vectors


def _is_header(line: bytes, where: str, size: int) -> bool:
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields) or size == 1:
        return False
    if int(fields[1]) != size:
        raise _wrong_size(where, int(fields[1]), size)
    return True


def _parts(line: bytes, where: str, size: int) -> tuple[str, list[str]]:
    """The word, which may itself hold spaces, and its numbers as they are written."""
    try:
        text = line.decode("utf-8").rstrip()
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8: {error.reason}.") from error
    word, *numbers = text.rsplit(" ", size)
    surplus = " " in word and _is_number(word.rpartition(" ")[2])
    if not word or len(numbers) < size or surplus:
        raise _wrong_size(where, max(0, len(text.split(" ")) - 1), size)
    return word, numbers


def _wrong_size(where: str, count: int, size: int) -> DataError:
    return DataError(
        f"{where} has {count} numbers after its word; the model's embedding size is {size}. "
        "Set model.embedding_size to the file's dimension, or mend the line."
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _floats(numbers: list[str], where: str) -> NDArray[np.float32]:
    try:
        values = np.array(numbers, dtype=np.float32)
    except ValueError as error:
        raise DataError(f"{where} holds what is no number: {error}.") from error
    if not np.isfinite(values).all():
        raise DataError(f"{where} holds a number that is not finite.")
    return values
