"""Cached corpora: the same corpus, opened from a map; one copy in memory for all processes."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from heedful.config import DataSettings
from heedful.errors import DataError
from heedful.store import CORPUS, Store
from heedful.text import datasets
from heedful.text.cached import MappedTexts, TextsWriter, open_corpus
from heedful.text.corpus import Corpus
from heedful.text.datasets import cache_corpus, corpus_facts, corpus_key, load_corpus
from tests.commands import environment, write_corpus

READ_ALL = """
import sys
from pathlib import Path
from heedful.text.cached import open_corpus
corpus = open_corpus(Path(sys.argv[1]))
sum(map(len, corpus.train.texts)) + int(corpus.train.tokens.numbers.sum() + corpus.train.tokens.spans.sum())
print("read", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def data(tmp_path: Path) -> DataSettings:
    return DataSettings(source=str(write_corpus(tmp_path / "small.csv")))


def cached_corpus(data: DataSettings, store: Store) -> Corpus:
    """As a worker gets it: written by one process, opened by its key."""
    return open_corpus(store.place(CORPUS, cache_corpus(data, store).key))


def test_a_cached_corpus_is_the_corpus(tmp_path: Path, data: DataSettings) -> None:
    plain, mapped = load_corpus(**data.model_dump()), cached_corpus(data, Store(tmp_path / "cache"))
    assert mapped.fingerprint == plain.fingerprint
    vars(mapped).pop("fingerprint")
    assert mapped.fingerprint == plain.fingerprint  # and computed from the mapped texts it is the same
    for name in ("name", "class_names", "vocabulary", "tokenizer", "planted", "notices"):
        assert getattr(mapped, name) == getattr(plain, name)
    for name, split in plain.splits().items():
        found = mapped.splits()[name]
        assert list(found.texts) == list(split.texts)
        assert found.surface(0) == split.surface(0)
        assert torch.equal(found.labels, split.labels)
        assert torch.equal(found.tokens.spans, split.tokens.spans)
        assert torch.equal(found.batch(torch.tensor([2, 0])).tokens, split.batch(torch.tensor([2, 0])).tokens)


def test_a_made_corpus_keeps_its_planted_groups(tmp_path: Path) -> None:
    assert cached_corpus(DataSettings(source="synthetic-multi"), Store(tmp_path)).planted is not None


def test_a_corpus_is_tokenised_once_and_its_texts_are_not_hashed_again(
    tmp_path: Path, data: DataSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = cache_corpus(data, Store(tmp_path / "cache"))
    monkeypatch.delattr(datasets, "load_corpus")
    assert cache_corpus(data, Store(tmp_path / "cache")) == corpus_facts(data, Store(tmp_path / "cache")) == facts
    assert [path.name for path in (tmp_path / "cache" / ".corpora").iterdir()] == [facts.key]


def test_the_key_follows_the_bytes_and_the_settings(data: DataSettings) -> None:
    keys = {corpus_key(data), corpus_key(data.model_copy(update={"lowercase": False}))}
    path = Path(data.source)
    path.write_bytes(path.read_bytes() + b"one more text,positive,train\n")
    assert len(keys | {corpus_key(data)}) == 3


def test_facts_can_be_had_without_writing(tmp_path: Path, data: DataSettings) -> None:
    facts = corpus_facts(data, Store(tmp_path / "cache"))
    assert not (tmp_path / "cache").exists()
    assert facts == cache_corpus(data, Store(tmp_path / "cache"))


def test_a_missing_file_is_the_readers_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no file"):
        cache_corpus(DataSettings(source=str(tmp_path / "nowhere.csv")), Store(tmp_path / "cache"))
    assert {path.name for path in (tmp_path / "cache").rglob("*")} == {"store.json", ".work"}


def test_mapped_texts_are_a_sequence_of_strings(tmp_path: Path) -> None:
    texts = ["plain", "", "Zoë ☕", "half \ud83d of a pair"]
    with TextsWriter(tmp_path / "texts.arrow") as writer:
        writer.write(texts)
    mapped = MappedTexts(tmp_path / "texts.arrow")
    assert list(mapped) == texts
    assert (mapped[-1], mapped[1:3], len(mapped)) == (texts[-1], ("", "Zoë ☕"), 4)
    with pytest.raises(IndexError, match="There are 4 texts; number 4 is not among them"):
        mapped[4]


def shared_kilobytes(place: Path, count: int) -> int:
    """The memory in which so many processes hold a cached corpus that they have read."""
    command = [sys.executable, "-c", READ_ALL, str(place)]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            for _ in range(count)
        ]
        assert all(process.stdout and process.stdout.readline() for process in processes)
        total = sum(mapped_kilobytes(process.pid, place) for process in processes)
        for process in processes:
            process.kill()
    return total


def mapped_kilobytes(process: int, place: Path) -> int:
    """The share of the mapped corpus that counts as this process's (a page of two processes is half of each's)."""
    inside, total = False, 0
    for line in Path(f"/proc/{process}/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            inside = str(place) in line
        elif inside and line.startswith("Pss:"):
            total += int(line.split()[1])
    return total


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux to tell who holds which page")
def test_two_processes_hold_one_copy_of_a_corpus(tmp_path: Path) -> None:
    data = DataSettings(source=str(write_corpus(tmp_path / "long.csv", texts=400, length=1000)))
    place = tmp_path / "cache" / ".corpora" / cache_corpus(data, Store(tmp_path / "cache")).key
    alone = shared_kilobytes(place, 1)
    assert 4_000 < alone < 13_000
    assert shared_kilobytes(place, 2) < 1.1 * alone
