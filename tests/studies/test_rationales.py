"""What people marked, and words that truly matter, as marks on the units of a reading."""

import gzip
import json
from pathlib import Path

import pytest

import heedful
from heedful.errors import DataError
from heedful.studies.rationales import IMPORTANT, marks_of, read_marked, spans_of

TEXT = "a well-made film , good fun"


def marked_words(said: object) -> list[str]:
    units = heedful.subject(lambda texts: [0.5] * len(texts)).read([TEXT]).units
    marks = marks_of({TEXT: said}, units)
    return [name for name, mark in zip(units.shown, marks.tolist(), strict=True) if mark]


def test_spans_count_words_between_white_space_and_mark_all_units_that_they_touch() -> None:
    assert marked_words([[1, 3]]) == ["well", "-", "made", "film"]
    assert marked_words([[0, 1], [5, 6]]) == ["a", "fun"]
    assert marked_words("[[4, 6]]") == ["good", "fun"]


def test_words_are_marked_wherever_they_stand_and_not_inside_others() -> None:
    assert marked_words(["made", "fun"]) == ["made", "fun"]
    assert marked_words("good film") == ["film", "good"]
    assert list(spans_of(["a"], "a cat and a hat")) == [(0, 1), (10, 11)]


@pytest.mark.parametrize("said", [None, float("nan"), [], "[]", ["absent"], [[2, 2]]])
def test_nothing_is_marked_where_nothing_was(said: object) -> None:
    assert marked_words(said) == []


@pytest.mark.parametrize(
    ("said", "why"),
    [([[4, 9]], "must lie within the 6 words"), ([[2]], "must be \\[start, end\\)"), (7, "must be a list of spans")],
)
def test_what_marks_nothing_that_is_there_is_refused(said: object, why: str) -> None:
    with pytest.raises(DataError, match=why):
        marked_words(said)


def test_a_file_with_such_a_column_says_what_was_marked_by_text(tmp_path: Path) -> None:
    path = tmp_path / "films.jsonl.gz"
    rows = [{"text": TEXT, "label": 1, "rationales": [[4, 5]]}, {"text": "dull", "label": 0, "rationales": []}]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    assert read_marked(path) == {TEXT: [[4, 5]], "dull": []}
    assert read_marked(path, IMPORTANT) is None, "what people marked is not what truly matters"
    plain = tmp_path / "plain.csv"
    plain.write_text("text,label\na,b\n", encoding="utf-8")
    assert read_marked(plain) is None
    assert read_marked("sst") is None


def test_eraser_films_are_marked_as_their_file_says(data_folder: Path) -> None:
    found = read_marked(data_folder / "eraser_movies.jsonl.gz")
    assert found is not None
    for text, said in found.items():
        words = text.split()
        marked = [words[start:end] for start, end in said if start < end]  # one span of the file is empty
        assert [text[start:end].split() for start, end in spans_of(said, text)] == marked
