"""Which columns hold the text and the label, and what is said where several could."""

import pandas as pd
import pytest

from heedful.errors import DataError
from heedful.text.columns import listed, name_of
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus

ROWS = range(20)
TABLE = pd.DataFrame(
    {
        "id": ROWS,
        "stars": [row % 5 + 1 for row in ROWS],
        "category": ["food" if row % 2 else "hotel" for row in ROWS],
        "text": [f"text{row}" for row in ROWS],
    }
)


def said_of_columns(corpus: Corpus) -> list[str]:
    return [notice for notice in corpus.notices if "is read from column" in notice]


def test_of_two_labels_one_is_taken_and_said() -> None:
    corpus = load_corpus(TABLE)
    assert corpus.class_names == ("food", "hotel")
    assert said_of_columns(corpus) == [
        "The label is read from column 'category'; 'stars' could hold it too. "
        "Choose with --label-column, in Python label_column."
    ]
    assert corpus.notices[0] == said_of_columns(corpus)[0]


def test_of_three_texts_one_is_taken_and_said() -> None:
    table = TABLE.drop(columns="stars").assign(Review="r", body=[f"body{row}" for row in ROWS])
    corpus = load_corpus(table)
    assert corpus.train.texts[0].startswith("text")
    assert said_of_columns(corpus) == [
        "The text is read from column 'text'; 'Review' and 'body' could hold it too. "
        "Choose with --text-column, in Python text_column."
    ]


def test_nothing_is_said_of_a_column_that_was_given() -> None:
    assert said_of_columns(load_corpus(TABLE, label_column="stars")) == []
    assert said_of_columns(load_corpus(TABLE, label_column="category")) == []


def test_nothing_is_said_where_there_is_one_candidate() -> None:
    assert said_of_columns(load_corpus(TABLE.drop(columns="stars"))) == []


def test_names_that_differ_in_case_are_two_candidates() -> None:
    table = TABLE.drop(columns="stars").assign(Category=["a", "b"] * 10)
    (notice,) = said_of_columns(load_corpus(table))
    assert notice.startswith("The label is read from column 'category'; 'Category' could hold it too.")


def test_a_column_that_is_the_text_is_not_the_label_too() -> None:
    table = TABLE.drop(columns="text").assign(topic=[f"topic{row}" for row in ROWS])
    corpus = load_corpus(table.drop(columns="stars"), text_column="topic")
    assert corpus.class_names == ("food", "hotel")
    assert said_of_columns(corpus) == []


def test_a_column_that_is_the_label_is_not_the_text_too() -> None:
    table = TABLE[["category", "text"]].rename(columns={"category": "question"})
    corpus = load_corpus(table, label_column="question")
    assert corpus.class_names == ("food", "hotel")
    assert said_of_columns(corpus) == []


def test_the_label_alone_is_no_table() -> None:
    with pytest.raises(DataError, match=r"No column looks like the text\. .* Columns: stars, category\."):
        load_corpus(TABLE[["stars", "category"]])


def test_values_are_listed_in_quotes_on_one_line() -> None:
    assert listed(["a"]) == "'a'"
    assert listed(["a", "b"]) == "'a' and 'b'"
    assert listed([*"abcdef"]) == "'a', 'b', 'c', 'd', 'e' and 'f'"
    assert listed([*"abcdefg"]) == "'a', 'b', 'c', 'd', 'e' and 2 others"
    assert listed(["two\nlines", "word " * 20]) == "'two lines' and 'word word word word word word word word…'"


def test_values_are_named_as_people_write_them() -> None:
    assert [name_of(value) for value in (4.0, 0.5, True, " a ", 3)] == ["4", "0.5", "True", "a", "3"]
