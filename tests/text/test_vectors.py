"""Initial word vectors: word2vec to the same bits in every process, GloVe files read or refused with a sentence."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from heedful.config import ModelSettings, RunSettings
from heedful.errors import ConfigError, DataError
from heedful.pipeline import run
from heedful.store import Store
from heedful.text import synthetic
from heedful.text import vectors as module
from heedful.text.corpus import Corpus, build_corpus
from heedful.text.tokenize import Tokenizer, Vocabulary
from heedful.text.vectors import initial_vectors, read_vectors, word2vec
from heedful.training import loop
from heedful.training.events import EpochDone, Event
from heedful.training.loop import fit

WORDS = Vocabulary(("<unk>", "good", "bad", "film"))

SCRIPT = """
from heedful.text import synthetic
from heedful.text.vectors import word2vec
found = word2vec(synthetic.binary(name="small", seed=0, size=100), size=6, seed=3)
print(found.values.numpy().tobytes().hex())
"""


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """word2vec that reads the text twice: enough where it is not asked what it learned."""
    monkeypatch.setattr(module, "RECIPE", {**module.RECIPE, "epochs": 2})


def file_of(folder: Path, *lines: str, name: str = "glove.txt") -> Path:
    path = folder / name
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def pairs(*, count: int = 300) -> Corpus:
    """Texts of two worlds that share no word: what occurs together should come to lie together."""
    rng = np.random.default_rng(0)
    worlds = (("sea", "ship", "wave", "sail"), ("bread", "oven", "flour", "yeast"))
    texts = [" ".join(rng.choice(worlds[row % 2], 8)) for row in range(count)]
    labels = [row % 2 for row in range(count)]
    return build_corpus(
        name="worlds",
        splits={"train": (texts, labels), "dev": (texts[:10], labels[:10]), "test": (texts[:10], labels[:10])},
        class_names=("sea", "kitchen"),
        tokenizer=Tokenizer(),
    )


def test_the_default_changes_no_identity_and_another_source_does() -> None:
    plain, other = RunSettings(), RunSettings().change({"model.vectors": "word2vec"})
    named = RunSettings.of({"model": {"vectors": "random"}})
    assert plain.digest("data") == named.digest("data") != other.digest("data")
    assert "vectors" not in plain.model_dump(exclude_defaults=True)
    assert ModelSettings().vectors == "random"


def test_words_that_occur_together_get_similar_vectors() -> None:
    corpus = pairs()
    found = word2vec(corpus, size=20, seed=0)
    vectors = dict(zip(found.rows.tolist(), found.values, strict=True))

    def alike(first: str, second: str) -> float:
        return float(vectors[corpus.vocabulary.number(first)] @ vectors[corpus.vocabulary.number(second)])

    assert min(alike("sea", "ship"), alike("bread", "oven")) > max(alike("sea", "oven"), alike("ship", "bread")) + 0.3
    torch.testing.assert_close(found.values.norm(dim=1), torch.ones(8), atol=1e-5, rtol=0)
    assert found.rows.tolist() == list(range(1, 9))  # all but the unknown token, which does not occur
    assert found.notice == "8 of 9 tokens began with a vector of word2vec; the others were drawn."


@pytest.mark.usefixtures("brief")
def test_rare_words_give_the_unknown_token_its_vector() -> None:
    texts, labels = ["a b c", "a b d"] * 5 + ["a rare"], [0, 1] * 5 + [0]
    corpus = build_corpus(
        name="rare",
        splits=dict.fromkeys(("train", "dev", "test"), (texts, labels)),
        class_names=("c", "d"),
        tokenizer=Tokenizer(),
        min_count=5,
    )
    found = word2vec(corpus, size=4, seed=0)
    assert found.rows.tolist() == [0, 1, 2, 3, 4]
    assert found.notice == "5 of 5 tokens began with a vector of word2vec."


def test_the_same_seed_gives_the_same_bits_in_a_process_that_hashes_differently() -> None:
    here = word2vec(synthetic.binary(name="small", seed=0, size=100), size=6, seed=3)
    there = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    ).stdout
    assert bytes.fromhex(there) == here.values.numpy().tobytes()


@pytest.mark.usefixtures("brief")
def test_another_seed_gives_other_vectors(small_corpus: Corpus) -> None:
    first, second = (word2vec(small_corpus, size=4, seed=seed) for seed in (0, 1))
    assert not torch.equal(first.values, second.values)


def test_long_texts_are_cut_and_not_ignored(monkeypatch: pytest.MonkeyPatch, small_corpus: Corpus) -> None:
    monkeypatch.setattr(module, "LONGEST", 5)
    texts = list(module._texts(small_corpus.train))
    assert {len(text) for text in texts} == {5, 2}  # documents of twelve words
    joined = [int(word) for text in texts for word in text]
    assert joined == small_corpus.train.tokens.numbers.tolist()


@pytest.mark.usefixtures("brief")
def test_a_second_call_reads_what_the_first_kept(
    tmp_path: Path, small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = word2vec(small_corpus, size=4, seed=0, store=Store(tmp_path))
    (kept,) = (tmp_path / ".vectors").iterdir()
    monkeypatch.setattr(module, "_train_word2vec", lambda *_: pytest.fail("the cache was not read"))
    second = word2vec(small_corpus, size=4, seed=0, store=Store(tmp_path))
    assert torch.equal(first.rows, second.rows)
    assert torch.equal(first.values, second.values)
    assert kept.suffix == ".safetensors"


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("damage", ["cut", "other shape", "not finite", "rows beyond", "no values"])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, damage: str) -> None:
    corpus = pairs(count=40)
    first = word2vec(corpus, size=4, seed=0, store=Store(tmp_path))
    (kept,) = (tmp_path / ".vectors").iterdir()
    held = load_file(kept)
    if damage == "cut":
        kept.write_bytes(kept.read_bytes()[:100])
    else:
        changed = {
            "other shape": {"values": held["values"][:, :3].contiguous()},
            "not finite": {"values": held["values"] * torch.inf},
            "rows beyond": {"rows": held["rows"] + 10_000},
            "no values": {},
        }[damage]
        parts = {"rows": held["rows"]} if damage == "no values" else {**held, **changed}
        save_file(parts, kept)
    again = word2vec(corpus, size=4, seed=0, store=Store(tmp_path))
    assert torch.equal(first.values, again.values)
    assert torch.equal(load_file(kept)["values"], first.values)


@pytest.mark.usefixtures("brief")
def test_size_seed_corpus_and_recipe_have_vectors_of_their_own(
    small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {module._key(small_corpus, *given, "4.4") for given in ((4, 0), (5, 0), (4, 1))}
    keys |= {module._key(pairs(count=20), 4, 0, "4.4"), module._key(small_corpus, 4, 0, "4.5")}
    monkeypatch.setattr(module, "RECIPE", {**module.RECIPE, "epochs": 3})
    keys.add(module._key(small_corpus, 4, 0, "4.4"))
    assert len(keys) == 6


def test_without_gensim_the_user_is_told_what_to_install(small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    with pytest.raises(ConfigError, match=r"pip install 'heedful\[word2vec\]'"):
        fit(small_corpus, vectors="word2vec", epochs=1)


@pytest.mark.parametrize("name", ["glove.txt", "glove.txt.gz"])
def test_a_file_gives_the_vectors_of_the_words_it_has(tmp_path: Path, name: str) -> None:
    path = file_of(tmp_path, "the 9 9", "bad -1 0.5", ". . . 3 3", "good 1 -0.25", "bad 7 7", name=name)
    found = read_vectors(path, WORDS, size=2)
    assert found.rows.tolist() == [1, 2]
    assert found.values.tolist() == [[1.0, -0.25], [-1.0, 0.5]]
    assert found.notice == f"2 of 4 tokens began with a vector of {name}; the others were drawn."
    assert found.metrics == {"source": name, "found": 2, "tokens": 4}


def test_a_first_line_with_the_number_of_words_and_the_dimension_is_passed_over(tmp_path: Path) -> None:
    found = read_vectors(file_of(tmp_path, "2 3", "good 1 2 3", "bad 4 5 6"), WORDS, size=3)
    assert found.values.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def packed(folder: Path, **arrays: Any) -> Path:
    path = folder / "glove.npz"
    np.savez(path, **arrays)
    return path


def test_an_npz_file_gives_the_vectors_of_the_words_it_has(tmp_path: Path) -> None:
    vectors = np.array([[9, 9], [-1, 0.5], [1, -0.25], [7, 7], [np.inf, 0]], dtype=np.float16)
    path = packed(tmp_path, words=np.array("the\nbad\ngood\nbad\nelsewhere"), vectors=vectors)
    found = read_vectors(path, WORDS, size=2)
    assert found.rows.tolist() == [1, 2]
    assert found.values.tolist() == [[1.0, -0.25], [-1.0, 0.5]]
    assert found.values.dtype == torch.float32
    assert found.metrics == {"source": "glove.npz", "found": 2, "tokens": 4}


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (
            {"words": "good\nbad", "vectors": np.ones((2, 3))},
            "has 3 numbers after its word; the model's embedding size",
        ),
        (
            {"words": "good\nbad", "vectors": np.ones((3, 2))},
            "2 words and an array of float64 of shape [3, 2]; expected",
        ),
        ({"words": "good\nbad", "vectors": np.ones(2)}, "of shape [2]; expected numbers with a row for each word."),
        ({"words": "good", "vectors": np.full((1, 2), "a")}, "1 words and an array of <U1 of shape [1, 2]"),
        ({"words": "good", "vectors": np.full((1, 2), np.nan)}, "The vector of 'good' in"),
        ({"words": "the", "vectors": np.ones((1, 2))}, "None of the 4 tokens of the vocabulary has a vector in"),
        ({"words": "good"}, "cannot be read: 'vectors is not a file in the archive'. An .npz file of vectors has"),
        (
            {"words": "good", "vectors": np.array([[{}, 1]], dtype=object)},
            "cannot be read: Object arrays cannot be loaded",
        ),
    ],
)
def test_a_broken_npz_file_is_refused_with_a_sentence(tmp_path: Path, arrays: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        read_vectors(packed(tmp_path, **arrays), WORDS, size=2)
    assert sentence in str(caught.value)


def test_an_npz_file_that_is_none_is_refused(tmp_path: Path) -> None:
    array, text, cut = (tmp_path / name for name in ("array.npz", "text.npz", "cut.npz"))
    with array.open("wb") as file:
        np.save(file, np.ones(3))
    text.write_text("good 1 2")
    cut.write_bytes(packed(tmp_path, words="good", vectors=np.ones((1, 2))).read_bytes()[:-40])
    for path in (array, text, cut):
        with pytest.raises(DataError, match=r"cannot be read: .*An \.npz file of vectors has the array `words`"):
            read_vectors(path, WORDS, size=2)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["good 1 2 3"], "Line 1 of the word vectors"),
        (["good 1 2 3"], "has 3 numbers after its word; the model's embedding size is 2"),
        (["bad 1 2", "good 1"], "Line 2 of the word vectors"),
        (["bad 1 2", "", "good 1 2"], "has 0 numbers after its word"),
        (["9 3", "good 1 2"], "has 3 numbers after its word"),
        (["bad 1 2", "good 1 two"], "holds what is no number: could not convert string to float: 'two'"),
        (["good 1 nan"], "Line 1 of the word vectors"),
        (["good inf 1"], "holds a number that is not finite"),
        (["the 1 2"], "None of the 4 tokens of the vocabulary has a vector in"),
        ([], "None of the 4 tokens of the vocabulary has a vector in"),
    ],
)
def test_a_broken_file_is_refused_with_a_sentence(tmp_path: Path, lines: list[str], sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        read_vectors(file_of(tmp_path, *lines), WORDS, size=2)
    assert sentence in str(caught.value)


def test_a_file_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_bytes(b"good 1 2\nna\xefve 1 2\n")
    with pytest.raises(DataError, match=r"Line 2 of the word vectors '.*' is not UTF-8: invalid continuation byte\."):
        read_vectors(path, WORDS, size=2)


def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path) -> None:
    false, cut = tmp_path / "false.gz", tmp_path / "cut.gz"
    false.write_bytes(b"good 1 2\n")
    cut.write_bytes(gzip.compress(b"good 1 2\n" * 100)[:-12])
    for path in (false, cut):
        with pytest.raises(DataError, match="cannot be read: "):
            read_vectors(path, WORDS, size=2)


def test_a_word_that_is_no_source_is_answered_with_the_sources(small_corpus: Corpus) -> None:
    with pytest.raises(DataError, match=r"There is no file 'wrod2vec'.*'random', 'word2vec' or the path of a GloVe"):
        initial_vectors(small_corpus, "wrod2vec", size=4, seed=0)


def first_embedding(corpus: Corpus, **settings: Any) -> torch.Tensor:
    """The embeddings of a model whose learning rate moves nothing."""
    return fit(corpus, embedding_size=2, epochs=1, optimizer="sgd", learning_rate=1e-30, **settings).embedding.detach()


def test_found_words_begin_with_their_vector_and_the_others_with_their_draw(
    tmp_path: Path, small_corpus: Corpus
) -> None:
    word = small_corpus.vocabulary.tokens[5]
    path = file_of(tmp_path, f"{word} 3 -4")
    drawn, given = first_embedding(small_corpus), first_embedding(small_corpus, vectors=str(path))
    assert given[5].tolist() == [3.0, -4.0]
    others = torch.arange(len(drawn)) != 5
    assert torch.equal(drawn[others], given[others])


class Interrupted(Exception):
    """Stands for whatever ends a training early."""


@pytest.mark.usefixtures("brief")
def test_an_interrupted_training_resumes_to_the_same_bits_and_says_what_it_began_with(
    tmp_path: Path, small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    small = {"model.embedding_size": 8, "training.epochs": 4, "training.batch_size": 50, "training.optimizer": "adam"}
    wanted = RunSettings().change({**small, "model.vectors": "word2vec"})
    whole = run(wanted, Store(tmp_path / "whole"), corpus=small_corpus)

    def stop(event: Event) -> None:
        if isinstance(event, EpochDone) and event.epoch == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        run(wanted, Store(tmp_path / "broken"), corpus=small_corpus, observers=[stop])
    resumed = run(wanted, Store(tmp_path / "broken"), corpus=small_corpus)
    files = [found.path / "model" / "model.safetensors" for found in (whole, resumed)]
    assert files[0].read_bytes() == files[1].read_bytes()
    count = len(small_corpus.vocabulary)
    assert whole.metrics == resumed.metrics
    assert whole.metrics["vectors"] == {"source": "word2vec", "found": count - 1, "tokens": count}
    assert whole.manifest["notices"][-1].startswith(f"{count - 1:,} of {count:,} tokens began with a vector")
    assert len(list((tmp_path / "whole" / ".vectors").iterdir())) == 1


def test_a_run_with_drawn_vectors_says_nothing_of_them(tmp_path: Path, small_corpus: Corpus) -> None:
    small = {"model.embedding_size": 4, "training.epochs": 1}
    done = run(RunSettings().change(small), Store(tmp_path), corpus=small_corpus)
    assert "vectors" not in done.metrics
    assert not (tmp_path / ".vectors").exists()


def test_glove_is_looked_for_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    corpus = pairs(count=20)
    with pytest.raises(DataError) as refused:
        initial_vectors(corpus, "glove", size=2, seed=0)
    assert str(refused.value) == (
        f"There are no GloVe vectors of 2 numbers in '{tmp_path}'. Put one of glove.6B.2d.txt, glove.6B.2d.txt.gz, "
        "glove6B2d_subset_f16.npz there (the folder is $HEEDFUL_DATA), or name a file."
    )
    file_of(tmp_path, "sea 1 2", "oven 3 4", name="glove.6B.2d.txt.gz")
    found = initial_vectors(corpus, "glove", size=2, seed=0)
    assert found is not None
    tokens = corpus.vocabulary.tokens
    assert {tokens[row]: value for row, value in zip(found.rows.tolist(), found.values.tolist(), strict=True)} == {
        "sea": [1.0, 2.0],
        "oven": [3.0, 4.0],
    }
