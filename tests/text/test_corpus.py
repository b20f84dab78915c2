"""Splits keep their order, and every score finds its text again."""

import pytest
import torch

from heedful.errors import DataError
from heedful.text.corpus import Corpus, Labelled, build_corpus
from heedful.text.tokenize import Tokenizer

TRAIN = (["Good film.", "bad", "good  food"], [1, 0, 1])
DEV = (["bad film"], [0])
TEST = (["Awful!", "good"], [0, 1])


def make(train: Labelled = TRAIN, dev: Labelled = DEV, test: Labelled = TEST, *, min_count: int = 1) -> Corpus:
    return build_corpus(
        name="tiny",
        splits={"train": train, "dev": dev, "test": test},
        class_names=["negative", "positive"],
        tokenizer=Tokenizer(),
        min_count=min_count,
    )


def test_rows_keep_their_order() -> None:
    corpus = make()
    assert corpus.train.texts == ("Good film.", "bad", "good  food")
    assert corpus.train.labels.tolist() == [1, 0, 1]
    assert corpus.train.offsets.tolist() == [0, 3, 4, 6]
    assert (len(corpus.train), len(corpus.dev), len(corpus.test), corpus.classes) == (3, 1, 2, 2)


def test_tokens_are_read_back_from_the_text_as_written() -> None:
    corpus = make()
    assert corpus.train.surface(0) == ["Good", "film", "."]
    assert corpus.train.spans(2).tolist() == [[0, 4], [6, 10]]


def test_a_batch_holds_the_documents_asked_for() -> None:
    corpus = make()
    batch = corpus.train.batch(torch.tensor([2, 1]))
    words = [corpus.vocabulary.tokens[number] for number in batch.tokens.tolist()]
    assert words == ["good", "food", "bad"]
    assert batch.offsets.tolist() == [0, 2, 3]
    assert batch.labels.tolist() == [1, 0]
    assert batch.instances.tolist() == [2, 1]


def test_sentences_are_kept() -> None:
    corpus = make((["Good film. Go!", "bad"], [1, 0]))
    assert corpus.train.sentences.bounds.tolist()[:-1] == [0, 3, int(corpus.train.offsets[1])]
    assert corpus.train.sentences.offsets.tolist() == [0, 2, 3]


def test_texts_without_a_token_are_left_out_and_said() -> None:
    corpus = make((["good", " ", "bad", ""], [1, 1, 0, 0]))
    assert corpus.train.texts == ("good", "bad")
    assert corpus.train.labels.tolist() == [1, 0]
    assert corpus.train.surface(1) == ["bad"]
    assert corpus.notices == ("2 train texts have no token and are left out.",)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_split_without_documents_is_refused(split: str) -> None:
    with pytest.raises(DataError, match=rf"The {split} split of 'tiny' has no documents\. Give more rows"):
        build_corpus(
            name="tiny",
            splits={"train": TRAIN, "dev": DEV, "test": TEST, split: ([" "], [0])},
            class_names=["negative", "positive"],
            tokenizer=Tokenizer(),
        )


def test_one_class_is_refused() -> None:
    with pytest.raises(DataError, match=r"at least two classes .* 'tiny' has one: 'positive'\. Check which column"):
        make((["good", "fine"], [1, 1]))


def test_a_class_that_is_not_in_training_is_named() -> None:
    with pytest.raises(DataError, match="Every class must occur in the training split of 'three'; missing: c"):
        build_corpus(
            name="three",
            splits={"train": (["x", "y"], [0, 1]), "dev": (["z"], [2]), "test": (["z"], [2])},
            class_names=["a", "b", "c"],
            tokenizer=Tokenizer(),
        )


def test_a_minimum_count_of_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="The minimum count of a token is 1 or more, not 0"):
        make(min_count=0)


def test_the_fingerprint_sees_texts_labels_and_tokens() -> None:
    same, other_text, other_label, other_tokens = (
        make(),
        make(test=(["Awful?", "good"], [0, 1])),
        make(test=(["Awful!", "good"], [1, 1])),
        make(min_count=2),
    )
    assert make().fingerprint == same.fingerprint
    assert len({corpus.fingerprint for corpus in (same, other_text, other_label, other_tokens)}) == 4
