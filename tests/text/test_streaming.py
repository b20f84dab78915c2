"""Files read batch by batch: the corpus of a file is that of its table in memory, bit for bit, in little memory."""

import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings

from heedful.config import DataSettings
from heedful.errors import DataError, StoreError
from heedful.text import cached, datasets, tables
from heedful.text.cached import open_corpus
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from tests import strategies
from tests.commands import environment

Write = Callable[[Path, list[dict[str, Any]]], None]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_packed(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(gzip.compress(pd.DataFrame(rows).to_csv(index=False, sep="\t").encode()))


WRITERS: dict[str, Write] = {
    "rows.csv": lambda path, rows: pd.DataFrame(rows).to_csv(path, index=False),
    "rows.tsv.gz": write_packed,
    "rows.jsonl": write_lines,
    "rows.json": lambda path, rows: pd.DataFrame(rows).to_json(path, orient="records"),
    "rows.parquet": lambda path, rows: pd.DataFrame(rows).to_parquet(path),
}


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven rows at a time, texts in batches of three, and pieces that end inside a character."""
    monkeypatch.setattr(tables, "ROWS", 7)
    monkeypatch.setattr(tables, "PIECE", 5)
    monkeypatch.setattr(cached, "MOST_TEXTS", 3)


def outcome(make: Callable[[], Corpus]) -> object:
    """All that a corpus holds, or the sentence that refuses it."""
    try:
        corpus = make()
    except DataError as error:
        return str(error)
    splits = [
        (list(split.texts), split.labels.tolist(), *(part.tolist() for part in vars(split.tokens).values()))
        for split in corpus.splits().values()
    ]
    return corpus.fingerprint, corpus.class_names, corpus.vocabulary, corpus.notices, splits


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.usefixtures("small_batches")
@settings(max_examples=25)
@given(strategies.rows_of_files, strategies.few_seeds, strategies.flags)
def test_the_corpus_of_a_file_is_that_of_its_table(
    name: str, tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], seed: int, anew: bool
) -> None:
    path = tmp_path_factory.mktemp("rows") / name
    WRITERS[name](path, rows)
    options: dict[str, Any] = {"seed": seed, "split_column": "none" if anew else None}
    streamed = outcome(lambda: load_corpus(path, **options))
    whole = outcome(lambda: load_corpus(tables.read_table(path), **options))
    same = str(whole).replace("'table'", f"'{name}'") if isinstance(whole, str) else whole
    assert streamed == same


@pytest.mark.usefixtures("small_batches")
def test_a_row_that_cannot_be_read_is_named_wherever_it_stands(tmp_path: Path) -> None:
    rows = [{"text": f"text {row}", "label": row % 2} for row in range(30)]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "x.jsonl").write_text("\n".join([*lines[:25], "{broken", *lines[25:]]))
    with pytest.raises(DataError, match=r"Line 26 of 'x\.jsonl' is not JSON: .* Each line must be one object\."):
        load_corpus(tmp_path / "x.jsonl")
    (tmp_path / "x.csv").write_text("text,label\n" + "so,1\n" * 20 + "so,it,goes,1\n" + "so,1\n")
    with pytest.raises(DataError, match="cannot be read as a table: Expected 2 fields in line 22, saw 4"):
        load_corpus(tmp_path / "x.csv")
    (tmp_path / "y.csv").write_bytes(b"\xef\xbb\xbftext,label\n" + b"so,1\n" * 20 + b"caf\xe9,0\n")
    with pytest.raises(DataError, match=r"'y\.csv' is not utf-8 text: byte 117 is 0xe9\."):
        load_corpus(tmp_path / "y.csv")


def test_a_large_corpus_stays_on_disk_and_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    pd.DataFrame({"text": [f"word{row} so" for row in range(40)], "label": ["a", "b"] * 20}).to_csv(path, index=False)
    held = load_corpus(path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(datasets, "MOST_HELD", 0)
    mapped = load_corpus(path)
    assert [one.name for one in tmp_path.iterdir()] == ["rows.csv"]
    assert isinstance(mapped.train.texts, cached.MappedTexts)
    assert list(mapped.train.texts) == list(held.train.texts)
    assert torch.equal(mapped.train.tokens.spans, held.train.tokens.spans)
    assert mapped.fingerprint == held.fingerprint


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    pd.DataFrame({"text": [f"word{row} so" for row in range(40)], "label": ["a", "b"] * 20}).to_csv(path, index=False)
    how = datasets._how(DataSettings(source=str(path)))
    datasets._write_file(tmp_path / "corpus", path, "utf-8", **how)
    arrays = tmp_path / "corpus" / cached.ARRAYS
    content = bytearray(arrays.read_bytes())
    content[-5] ^= 1
    arrays.write_bytes(content)
    with pytest.raises(StoreError, match=r"arrays\.safetensors' is damaged"):
        open_corpus(tmp_path / "corpus")


BUILD = """
import resource, sys
from pathlib import Path
from heedful.config import DataSettings
from heedful.store import Store
from heedful.text.datasets import cache_corpus
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(cache_corpus(DataSettings(source=sys.argv[1]), Store(sys.argv[2])).units)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_building_a_corpus_needs_memory_for_a_batch_not_for_the_texts(tmp_path: Path) -> None:
    """20 MB of text; what is left are libraries, a batch and a few bytes a row."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(2000)])
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        for row in range(1300):
            text = " ".join(words[rng.integers(0, len(words), 1700)])
            file.write(json.dumps({"text": text, "label": ("no", "yes")[row % 2]}) + "\n")
    command = [sys.executable, "-c", BUILD, str(path), str(tmp_path / "store")]
    found = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout.split()
    assert int(found[0]) == 1300 * 1700
    assert path.stat().st_size > 18e6
    assert int(found[1]) < 150
