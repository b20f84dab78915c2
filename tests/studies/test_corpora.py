"""What a corpus holds, beside the row that a paper prints for it."""

import io

import pandas as pd
import pytest
from rich.console import Console

from heedful.cli.data import print_statistics
from heedful.studies.corpora import beside_the_paper, corpus_statistics, table_1, table_1_as_printed
from heedful.text.corpus import Corpus, build_corpus
from heedful.text.tokenize import Tokenizer


@pytest.fixture
def tiny() -> Corpus:
    """Called sst, but small: four words and a mark, two of them only in the test split."""
    texts = (["Good film .", "bad film ."] * 3, [0, 1] * 3)
    held = (["new Words here .", "bad film ."], [0, 1])
    splits = {"train": texts, "dev": held, "test": held}
    return build_corpus(
        name="sst", splits=splits, class_names=("negative", "positive"), tokenizer=Tokenizer("whitespace")
    )


def test_a_corpus_beside_the_paper_by_hand(tiny: Corpus) -> None:
    paper = beside_the_paper(tiny)
    assert paper is not None
    length, vocabulary, train = paper["columns"][:3]
    assert (length["ours"], length["paper"], length["same"]) == ("3", "18", False)
    assert (vocabulary["ours"], vocabulary["paper"]) == ("4", "16,174")
    assert vocabulary["why"].endswith("as the paper takes it: 7.")
    assert (train["column"], train["ours"], train["paper"]) == ("train: negative/positive", "3/3", "3310/3610")
    groups = paper["columns"][-1]
    assert (groups["column"], groups["ours"]) == ("tokens: positive/negative/neutral", "0/0/2")
    assert groups["paper"] == "412/265/1384"
    assert "three marks of its own" in paper["remark"]


def test_the_statistics_are_printed_with_the_reasons(tiny: Corpus) -> None:
    console = Console(file=io.StringIO(), width=100)
    print_statistics(corpus_statistics(tiny), console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "beside Sun & Lu 2020, Table 1" in printed
    assert "16,174" in printed
    assert "vocabulary differs: Ours is the training split's" in printed


def test_other_corpora_stand_beside_no_paper(small_corpus: Corpus) -> None:
    assert beside_the_paper(small_corpus) is None


def test_table_1_by_hand(tiny: Corpus) -> None:
    table = table_1({"yahoo-1k": tiny, "reviews/own.csv": tiny})
    sample, own = table.to_dict("records")
    assert (sample["stands_for"], pd.isna(own["stands_for"])) == ("yahoo", True)
    assert (sample["words"], sample["sentences"], sample["training"], sample["test"]) == (2.2, 1.0, 8, 2)
    assert (sample["paper_words"], sample["paper_training"]) == (104, 1_400_000)
    printed = table_1_as_printed(table).to_dict("records")
    assert printed[0]["dataset"] == "yahoo-1k"
    assert printed[0]["words"] == "2 (0), paper 104 (114)"
    assert printed[0]["training"] == "8, paper 1,400,000"
    assert (printed[1]["dataset"], printed[1]["words"], printed[1]["test"]) == ("own.csv", "2 (0)", "2")
