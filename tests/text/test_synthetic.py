"""Made corpora hold exactly what was asked for."""

from collections.abc import Callable

import pytest

from heedful.config import DataSettings
from heedful.errors import DataError
from heedful.text import synthetic
from heedful.text.corpus import Corpus, Split
from heedful.text.datasets import corpus_key, load_corpus


def groups_of(corpus: Corpus, text: str) -> list[str]:
    assert corpus.planted is not None
    return [corpus.planted[word] for word in text.split()]


def polar_class(corpus: Corpus, text: str) -> str:
    """The one class that the polar words of a text belong to."""
    (group,) = set(groups_of(corpus, text)) - {"neutral"}
    return group


def agreement(corpus: Corpus, split: Split) -> float:
    """The share of texts whose polar words are of their own class."""
    right: list[bool] = [
        polar_class(corpus, text) == corpus.class_names[label]
        for text, label in zip(split.texts, split.labels.tolist(), strict=True)
    ]
    return sum(right) / len(right)


def test_the_word_lists_have_the_sizes_of_the_paper_and_share_no_word() -> None:
    lists = [synthetic.words("positive"), synthetic.words("negative"), synthetic.words("neutral")]
    assert [len(listed) for listed in lists] == [50, 50, 1000]
    assert len({word for listed in lists for word in listed}) == 1100
    assert all(word == word.lower() for listed in lists for word in listed)


def test_the_topics_share_no_word_with_each_other_or_the_neutral_words() -> None:
    topics = synthetic.topics()
    assert all(len(listed) == 50 for listed in topics.values())
    every = [*synthetic.words("neutral"), *(word for listed in topics.values() for word in listed)]
    assert len(set(every)) == len(every) == 1000 + 50 * len(topics)


def test_data_one_has_the_sizes_of_the_paper(small_corpus: Corpus) -> None:
    corpus = synthetic.binary(name="I", seed=0)
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (12_000, 1_200, 1_200)
    assert corpus.train.labels.bincount().tolist() == [6_000, 6_000]
    assert corpus.test.labels.bincount().tolist() == [600, 600]
    assert len(corpus.vocabulary) == 1_101
    assert len(small_corpus.train) == 600


def test_a_text_is_ten_neutral_words_and_two_of_its_class(small_corpus: Corpus) -> None:
    for split in small_corpus.splits().values():
        assert split.lengths.unique().tolist() == [12]
    for text in small_corpus.train.texts[:200]:
        assert groups_of(small_corpus, text).count("neutral") == 10
        assert len(set(text.split())) == 12
    assert agreement(small_corpus, small_corpus.train) == 1.0


def test_the_planted_groups_name_every_token(small_corpus: Corpus) -> None:
    assert small_corpus.planted is not None
    assert set(small_corpus.vocabulary.tokens[1:]) <= set(small_corpus.planted)
    assert set(small_corpus.planted.values()) == {"neutral", "negative", "positive"}


def test_noise_swaps_the_words_of_so_many_texts() -> None:
    corpus = synthetic.binary(name="II", seed=0, noise=0.05, size=4_000)
    assert agreement(corpus, corpus.train) == pytest.approx(0.95, abs=0.01)


def test_skew_is_exact() -> None:
    corpus = synthetic.binary(name="skew", seed=0, positive_share=0.9, size=1_000)
    assert corpus.train.labels.bincount().tolist() == [100, 900]
    assert corpus.test.labels.bincount().tolist() == [120, 1_080]


@pytest.mark.parametrize("classes", [3, 5])
def test_several_classes_are_even_and_each_has_its_topic(classes: int) -> None:
    corpus = synthetic.multi(name="multi", seed=0, classes=classes, size=100 * classes)
    assert corpus.classes == classes
    assert corpus.train.labels.bincount().tolist() == [100] * classes
    assert agreement(corpus, corpus.train) == 1.0


Maker = Callable[[int], Corpus]


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: synthetic.binary(name="x", seed=seed, noise=0.1, size=50),
        lambda seed: synthetic.multi(name="x", seed=seed, size=50),
    ],
    ids=["binary", "multi"],
)
def test_the_same_seed_makes_the_same_corpus_and_another_seed_another(make: Maker) -> None:
    assert make(3).fingerprint == make(3).fingerprint
    assert make(3).fingerprint != make(4).fingerprint


@pytest.mark.parametrize(("noise", "share"), [(-0.1, 0.5), (1.0, 0.5), (0.0, 0.0), (0.0, 1.0)])
def test_impossible_shares_are_refused(noise: float, share: float) -> None:
    with pytest.raises(DataError, match=r"Noise lies in \[0, 1\) and class shares in \(0, 1\)"):
        synthetic.binary(name="x", seed=0, noise=noise, positive_share=share)


@pytest.mark.parametrize("classes", [2, 99])
def test_too_few_or_too_many_classes_are_refused(classes: int) -> None:
    with pytest.raises(DataError, match=rf"has 3 to \d+ of them, not {classes}"):
        synthetic.multi(name="x", seed=0, classes=classes)


@pytest.mark.parametrize(
    ("text", "make"),
    [
        ("synthetic:size=50", lambda: synthetic.binary(name="x", seed=4, size=50)),
        (
            "synthetic:noise=0.05, positive_share=0.3,size=60,seed=1",
            lambda: synthetic.binary(name="x", seed=1, noise=0.05, positive_share=0.3, size=60),
        ),
        (
            "synthetic:classes=4,noise=0.1,size=60",
            lambda: synthetic.multi(name="x", seed=4, classes=4, noise=0.1, size=60),
        ),
    ],
)
def test_a_text_describes_a_made_corpus(text: str, make: Callable[[], Corpus]) -> None:
    corpus = load_corpus(text, seed=4)
    assert corpus.name == text
    assert corpus.fingerprint == make().fingerprint
    assert corpus.planted == make().planted


def test_a_description_without_keys_is_data_one() -> None:
    assert load_corpus("synthetic:").fingerprint == load_corpus("synthetic-1").fingerprint


@pytest.mark.parametrize("part", ["noises=0.1", "noise", "noise=much", "size=1e3", "seed=-1"])
def test_a_description_that_is_none_is_answered_with_its_keys(part: str) -> None:
    with pytest.raises(DataError, match=rf"'{part}' of .* not one of classes, size, seed, noise, positive_share with"):
        load_corpus(f"synthetic:classes=3,{part}")


def test_a_described_corpus_of_several_classes_has_no_positive_share() -> None:
    with pytest.raises(DataError, match=r"A positive share is of two classes; .* has 3, which are equally large"):
        load_corpus("synthetic:classes=3,positive_share=0.3")


def test_what_cannot_be_set_for_a_described_corpus_is_refused() -> None:
    with pytest.raises(DataError, match=r"'synthetic:' comes with its columns and tokens: lowercase cannot be set"):
        load_corpus("synthetic:", lowercase=False)


def test_a_described_corpus_has_a_key_of_its_own() -> None:
    """What is kept of it is found by its text."""
    keys = {corpus_key(DataSettings(source=f"synthetic:{keys}")) for keys in ("", "noise=0.1", "noise=0.2")}
    assert len(keys) == 3
