"""The vocabulary: the training split's tokens, the frequent first."""

import pytest

from heedful.errors import DataError
from heedful.text.corpus import build_corpus
from heedful.text.tokenize import UNKNOWN, Tokenizer, UnknownToken, Vocabulary


def test_frequent_tokens_come_first_and_equals_in_alphabetical_order() -> None:
    vocabulary = Tokenizer().vocabulary(["b b a", "c a d"])
    assert vocabulary.tokens == (UNKNOWN, "a", "b", "c", "d")


def test_rare_tokens_are_left_out() -> None:
    vocabulary = Tokenizer().vocabulary(["b b a", "c a d"], min_count=2)
    assert vocabulary.tokens == (UNKNOWN, "a", "b")
    assert "c" not in vocabulary
    assert len(vocabulary) == 3


def test_case_counts_only_without_lower_casing() -> None:
    assert Tokenizer().vocabulary(["Good good"]).tokens == (UNKNOWN, "good")
    assert Tokenizer(lowercase=False).vocabulary(["Good good"]).tokens == (UNKNOWN, "Good", "good")


def test_a_literal_unknown_token_is_not_a_second_one() -> None:
    assert Tokenizer("whitespace").vocabulary(["a <unk> <unk>"]).tokens == (UNKNOWN, "a")


def test_only_the_training_split_is_counted() -> None:
    corpus = build_corpus(
        name="three",
        splits={"train": (["good", "bad"], [1, 0]), "dev": (["fine good"], [1]), "test": (["awful"], [0])},
        class_names=["negative", "positive"],
        tokenizer=Tokenizer(),
    )
    assert corpus.vocabulary.tokens == (UNKNOWN, "bad", "good")
    assert corpus.dev.tokens.numbers.tolist() == [0, 2]
    assert corpus.test.tokens.numbers.tolist() == [0]


def test_numbers_and_tokens_are_inverse() -> None:
    vocabulary = Vocabulary.of(["x", "y"])
    assert [vocabulary.number(token) for token in vocabulary.tokens] == [0, 1, 2]


def test_an_unknown_token_is_answered_with_its_neighbours() -> None:
    with pytest.raises(UnknownToken, match=r"no token 'goood'. Did you mean 'good'\? Known: good, goofy\."):
        Vocabulary.of(["good", "goofy", "bad"]).number("goood")


def test_a_token_without_neighbours_is_answered_with_frequent_ones() -> None:
    with pytest.raises(UnknownToken, match=r"no token 'x'. Known: <unk>, bad, good\."):
        Vocabulary.of(["good", "bad"]).number("x")


def test_a_vocabulary_must_begin_with_the_unknown_token() -> None:
    with pytest.raises(DataError, match="begins with the token <unk>"):
        Vocabulary(("good", "bad"))


def test_a_vocabulary_must_not_repeat_a_token() -> None:
    with pytest.raises(DataError, match="holds each token once"):
        Vocabulary((UNKNOWN, "good", "good"))
