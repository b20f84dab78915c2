"""Corpora by name."""

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from heedful.analysis.tokens import AS_PRINTED, class_counts, token_groups
from heedful.errors import DataError
from heedful.papers import serrano2019, sun2020
from heedful.studies.corpora import beside_the_paper
from heedful.text.datasets import load_corpus
from heedful.text.ragged import segments_of
from heedful.text.recipes import DATASETS, data_folder
from heedful.text.tokenize import UNKNOWN


def test_sst_has_the_sizes_of_the_paper(data_folder: Path) -> None:
    assert data_folder.is_dir()
    corpus = load_corpus("sst", seed=5)
    assert corpus.class_names == ("negative", "positive")
    assert [len(split) for split in corpus.splits().values()] == [6920, 872, 1821]
    assert corpus.train.labels.bincount().tolist() == [3310, 3610]
    assert corpus.dev.labels.bincount().tolist() == [428, 444]
    assert corpus.test.labels.bincount().tolist() == [912, 909]
    assert corpus.train.surface(0)[8:12] == ["Century", "s", "new", "Conan"]
    assert round(float(torch.cat([split.lengths for split in corpus.splits().values()]).double().mean()), 1) == 17.5
    train = corpus.train
    classes = train.labels[segments_of(train.offsets)]
    counts = class_counts(train.tokens.numbers, classes, vocabulary_size=len(corpus.vocabulary), class_count=2)
    sizes = Counter(token_groups(counts, corpus.class_names, AS_PRINTED))
    assert [sizes[group] for group in ("positive", "negative", "neutral")] == [412, 265, 1384]


def test_a_corpus_that_is_not_at_hand_says_where_to_put_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    assert not DATASETS["sst"].available
    with pytest.raises(DataError, match=r"'sst2_tree\.jsonl\.gz' is not in the data folder .* or set HEEDFUL_DATA"):
        load_corpus("sst")


def test_the_data_folder_is_in_the_cache_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".cache" / "heedful" / "data"


@pytest.mark.parametrize("name", ["synthetic-1", "synthetic-2", "synthetic-skew", "synthetic-multi"])
def test_made_corpora_are_always_at_hand(name: str) -> None:
    assert DATASETS[name].available
    assert DATASETS[name].name == name
    assert DATASETS[name].files == ()


def test_the_seed_draws_a_made_corpus() -> None:
    corpus = load_corpus("synthetic-skew", seed=1)
    assert corpus.name == "synthetic-skew"
    assert corpus.train.labels.bincount().tolist() == [1_200, 10_800]
    assert corpus.train.texts != load_corpus("synthetic-skew", seed=2).train.texts


def test_a_named_corpus_takes_a_minimum_count() -> None:
    """As if it were read from texts with that count."""
    whole, frequent = load_corpus("synthetic-1"), load_corpus("synthetic-1", min_count=120)
    counts = Counter(word for text in whole.train.texts for word in text.split())
    assert set(frequent.vocabulary.tokens[1:]) == {word for word, count in counts.items() if count >= 120}
    assert 1 < len(frequent.vocabulary) < len(whole.vocabulary)
    for one, other in zip(whole.splits().values(), frequent.splits().values(), strict=True):
        assert one.texts == other.texts
        words = [word if counts[word] >= 120 else UNKNOWN for word in one.texts[7].split()]
        found = other.tokens.numbers[int(other.offsets[7]) : int(other.offsets[8])]
        assert [frequent.vocabulary.tokens[number] for number in found.tolist()] == words


@pytest.mark.parametrize(
    "option",
    [
        {"text_column": "x"},
        {"split_column": "none"},
        {"split_values": {"x": "dev"}},
        {"tokenizer": "whitespace"},
        {"lowercase": False},
        {"encoding": "latin-1"},
    ],
)
def test_what_cannot_be_set_for_a_named_corpus_is_refused(option: dict[str, Any]) -> None:
    (name,) = option
    with pytest.raises(DataError, match=rf"'synthetic-1' comes with its columns and tokens: {name} cannot be set"):
        load_corpus("synthetic-1", **option)


NAMED = {*DATASETS, *sun2020.TABLE_1, *serrano2019.TABLE_1, *serrano2019.STANDS_FOR}


def write_rows(path: Path) -> Path:
    path.write_text("text,label\n" + "".join(f"word{row},{row % 2}\n" for row in range(20)), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_file_is_never_taken_for_a_named_corpus(name: str, tmp_path: Path) -> None:
    corpus = load_corpus(write_rows(tmp_path / f"{name}.csv"))
    assert corpus.name == f"{name}.csv"
    assert beside_the_paper(corpus) is None


def test_tables_and_lists_are_never_taken_for_a_named_corpus(tmp_path: Path) -> None:
    table = pd.read_csv(write_rows(tmp_path / "x.csv"))
    for corpus in (load_corpus(table), load_corpus((table["text"].tolist(), table["label"].tolist()))):
        assert corpus.name not in NAMED
        assert beside_the_paper(corpus) is None


def test_the_name_of_a_file_is_no_part_of_the_fingerprint(tmp_path: Path) -> None:
    one, other = (load_corpus(write_rows(tmp_path / name)) for name in ("imdb.csv", "other.csv"))
    assert one.fingerprint == other.fingerprint


def test_a_path_is_a_file_and_never_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"There is no file 'synthetic-1'\. Give a path to .*, or a corpus name\."):
        load_corpus(Path("synthetic-1"))
