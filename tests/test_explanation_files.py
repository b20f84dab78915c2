"""Explanations come back from files to the last bit; foreign files are read, or refused with a sentence."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given

from heedful.adapters.asking import word_units
from heedful.eraser_files import write_eraser
from heedful.errors import InputError, UnknownName
from heedful.explanation_files import read_explanations, write_explanations
from heedful.explanations import Explanation, ExplanationError
from tests import strategies
from tests.test_explanations_of_others import SAVED, inseqs

CLASSES = ("no", "yes", "perhaps")
TEXTS = ["A dull film, 😀", "good"]
SPANS = [[(0, 1), (2, 6), (7, 11), (11, 12), (13, 14)], [(0, 4)]]
SCORES = [[0.1, 1 / 3, -2e-300, 5e300, 0.1 + 0.2], [-0.0]]


def explanation(**other: Any) -> Explanation:
    about: dict[str, Any] = {"targets": [2, 0], "class_names": CLASSES, "method": "me", "texts": TEXTS, "spans": SPANS}
    return Explanation.of_lists(**{"scores": SCORES, **about, **other})


def check_same(found: Explanation, expected: Explanation) -> None:
    """All of it, to the last bit."""
    assert found.scores.numpy().tobytes() == expected.scores.numpy().tobytes()
    for name in ("offsets", "targets"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=0, atol=0)
    for name in ("class_names", "method", "signed", "seconds", "passes", "remark"):
        assert getattr(found, name) == getattr(expected, name), name
    for name in ("texts", "names"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None)
        assert one is None or list(one) == list(other)
    assert (found.spans is None) == (expected.spans is None)
    assert found.spans is None or (expected.spans is not None and found.spans.tolist() == expected.spans.tolist())


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_explanations_come_back_to_the_last_bit(ending: str, tmp_path: Path) -> None:
    several = [
        explanation(),
        explanation(targets=[0, 1], seconds=0.1, passes=12, signed=False, remark="So it is."),  # of the same method
        explanation(method="other", texts=None, spans=None, units=[["a", "b", "c", "d", "e"], ["good"]]),
        explanation(method="bare", texts=None, spans=None),
        explanation(method="half", spans=None),
    ]
    path = tmp_path / f"said.{ending}"
    write_explanations(path, several)
    found = read_explanations(path)
    assert len(found) == len(several)
    for one, expected in zip(found, several, strict=True):
        check_same(one, expected)


@given(scores=strategies.ragged_scores(1e9))
def test_any_numbers_come_back(scores: list[list[float]], tmp_path_factory: pytest.TempPathFactory) -> None:
    said = Explanation.of_lists(scores, targets=[0] * len(scores), class_names=CLASSES, method="me")
    folder = tmp_path_factory.mktemp("numbers")
    for ending in ("parquet", "jsonl"):
        write_explanations(folder / f"said.{ending}", [said])
        check_same(read_explanations(folder / f"said.{ending}")[0], said)


def test_rows_as_others_write_them_need_scores_and_a_target(tmp_path: Path) -> None:
    rows = [
        {"scores": [1, 2], "target": "yes", "units": ["a", "film"]},
        {"scores": [3], "target": "no", "units": ["x"]},
    ]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "said.parquet")
    for name in ("said.jsonl", "said.parquet"):
        found = read_explanations(tmp_path / name)
        assert len(found) == 1
        assert found[0].class_names == ("no", "yes")
        assert found[0].targets.tolist() == [1, 0]
        assert (found[0].scores.tolist(), found[0].shown) == ([1, 2, 3], ["a", "film", "x"])


def test_classes_get_the_numbers_of_the_model(tmp_path: Path) -> None:
    write_explanations(tmp_path / "said.jsonl", [explanation()])
    found = read_explanations(tmp_path / "said.jsonl", class_names=["perhaps", "yes", "no"])[0]
    assert found.targets.tolist() == [0, 2]
    with pytest.raises(UnknownName, match=r"There is no class 'perhaps'\. Known: bad, good"):
        read_explanations(tmp_path / "said.jsonl", class_names=["good", "bad"])


def test_pieces_are_folded_into_the_units_of_a_reading(tmp_path: Path) -> None:
    units = word_units(TEXTS)
    pieces = [["[CLS]", "a", "du", "##ll", "film", ",", "[UNK]", "[SEP]"], ["good"]]
    said = explanation(
        scores=[[9.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 9.0], [64.0]], units=pieces, texts=None, spans=None
    )
    write_explanations(tmp_path / "said.parquet", [said])
    found = read_explanations(tmp_path / "said.parquet", units)[0]
    assert found.shown == units.shown
    assert found.scores.tolist() == [1, 6, 8, 16, 32, 64]


def test_a_text_that_is_explained_twice_is_so_in_one_way(tmp_path: Path) -> None:
    """Copies are matched; the same text for another class, or with other scores, is refused."""
    units = word_units(["good film", "a film"])
    row = {"text": "a film", "scores": [1, 2], "units": ["a", "film"], "target": "yes", "class_names": ["no", "yes"]}
    first = row | {"text": "good film", "units": ["good", "film"]}
    place = tmp_path / "said.jsonl"
    place.write_text("".join(json.dumps(one) + "\n" for one in (row, first, row)))
    (found,) = read_explanations(place, units)
    assert (found.texts, found.scores.tolist()) == (["good film", "a film"], [1, 2, 1, 2])
    for other in ({"target": "no"}, {"scores": [2, 1]}):
        place.write_text("".join(json.dumps(one) + "\n" for one in (row, first, row | other)))
        with pytest.raises(ExplanationError, match=r"explains text 0 \(the first is 0\) again as text 2, and"):
            read_explanations(place, units)


def test_a_table_for_people_has_one_row_per_unit(tmp_path: Path) -> None:
    write_explanations(tmp_path / "said.csv", [explanation(), explanation(method="bare", texts=None, spans=None)])
    table = pd.read_csv(tmp_path / "said.csv")
    assert list(table) == ["method", "instance", "position", "unit", "score", "target", "start", "end"]
    assert len(table) == 12
    assert table[["method", "unit", "target", "start", "end"]].to_numpy().tolist()[1] == ["me", "dull", "perhaps", 2, 6]
    assert table["score"].tolist()[:5] == SCORES[0]
    assert table["start"].isna().tolist() == [False] * 6 + [True] * 6


def test_eraser_has_a_score_for_each_token_between_white_space(tmp_path: Path) -> None:
    said = explanation(scores=[[0.1, 1 / 3, 0.5, 0.25, 1e-9], [-2.0]])
    write_eraser(tmp_path / "said.jsonl", said, ids=["first", "second"])
    rows = [json.loads(line) for line in (tmp_path / "said.jsonl").read_text().splitlines()]
    rationale = {
        "docid": "first",
        "hard_rationale_predictions": [],
        "soft_rationale_predictions": [0.1, 1 / 3, 0.75, 1e-9],
    }
    assert rows[0] == {"annotation_id": "first", "rationales": [rationale], "classification": "perhaps"}
    assert rows[1]["rationales"][0]["soft_rationale_predictions"] == [-2.0]


def test_eraser_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    texts, scores = ["a dull film .", "good"], [[0.1, 1 / 3, 0.0, 0.7], [2e-300]]
    units = word_units(texts)
    flat = torch.tensor([number for row in scores for number in row], dtype=torch.float64)
    said = Explanation.on(units, flat, torch.tensor([0, 1]), ["no", "yes"], method="said", signed=False)
    write_eraser(tmp_path / "said.jsonl", said)
    check_same(read_explanations(tmp_path / "said.jsonl", units)[0], said)
    bare = read_explanations(tmp_path / "said.jsonl")[0]
    assert bare.scores.tolist() == flat.tolist()
    assert bare.names is None


def eraser(path: Path, *rationales: Any, **other: Any) -> Path:
    rows = [
        {"annotation_id": str(number), "rationales": own, "classification": "yes", **other}
        for number, own in enumerate(rationales)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def spans(*places: tuple[int, int]) -> list[dict[str, Any]]:
    hard = [{"start_token": start, "end_token": end} for start, end in places]
    return [{"docid": "x", "hard_rationale_predictions": hard}]


def soft(*scores: Any) -> list[dict[str, Any]]:
    return [{"docid": "x", "soft_rationale_predictions": list(scores)}]


def test_eraser_is_matched_by_id_or_by_its_own_text_and_by_nothing_else(tmp_path: Path) -> None:
    path = eraser(tmp_path / "said.jsonl", soft(0.5), soft(4, 3, 2, 1))
    by_id = {"1": TEXTS[0], "0": TEXTS[1], "2": "another"}
    found = read_explanations(path, texts=by_id)[0]
    assert (found.texts, found.method) == ([TEXTS[1], TEXTS[0]], "said")
    onto = read_explanations(path, word_units(TEXTS), texts=by_id)[0]
    torch.testing.assert_close(onto.scores, torch.tensor([4, 3, 1.6, 0.4, 1, 0.5]).double())
    one = read_explanations(path, word_units(TEXTS[1:]), texts=by_id)[0]
    assert one.scores.tolist() == [0.5]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row | {"text": TEXTS[1 - place]}) + "\n" for place, row in enumerate(rows)))
    own = read_explanations(path)[0]
    assert own.texts == [TEXTS[1], TEXTS[0]]
    other = r"Of 2 rows 1 have an annotation_id that no text of the data has, such as '1'; the data have '0' and 1 more"
    path = eraser(tmp_path / "said.jsonl", soft(0.5), soft(4, 3, 2, 1))
    with pytest.raises(ExplanationError, match=other):
        read_explanations(path, texts={"0": "good", "5": "dull"})
    with pytest.raises(ExplanationError, match=r"Row 0 has 1 score; its text has 4 tokens"):
        read_explanations(path, texts={"0": TEXTS[0], "1": TEXTS[1]})


def test_rows_of_two_forms_are_refused(tmp_path: Path) -> None:
    path = eraser(tmp_path / "said.jsonl", spans())
    path.write_text(path.read_text() + '{"scores": [1], "target": "yes"}\n')
    with pytest.raises(ExplanationError, match=r"'said.jsonl' has rows in ERASER's form and others"):
        read_explanations(path, word_units(TEXTS))


def test_spans_of_eraser_are_ones_in_their_texts(tmp_path: Path) -> None:
    path = eraser(tmp_path / "said.jsonl", spans((1, 3)), spans(), classification_scores={"yes": 0.75, "no": 0.25})
    found = read_explanations(path, word_units(TEXTS))[0]
    assert found.class_names == ("no", "yes")
    assert found.shown == ["A", "dull", "film", ",", "😀", "good"]
    assert found.scores.tolist() == [0, 1, 1, 1, 0, 0]  # the span ends with "film,"
    with pytest.raises(ExplanationError, match=r"Row 0 has spans and no scores: how long its text is"):
        read_explanations(path)


@pytest.mark.parametrize(
    ("rationales", "sentence"),
    [
        (
            [soft(1, 2), soft(1)],
            r"Row 0 has 2 scores; its text has 4 tokens",
        ),
        ([soft(1, 2, 3, 4), spans()], r"Row 1 has no soft_rationale_predictions and others have"),
        ([spans((1, 5)), spans()], r"Row 0 has a span \[1, 5\); its text has 4 tokens between white space\."),
        ([spans((3, 2)), spans()], r"Row 0 has a span \[3, 2\)"),
        ([[{"docid": "x", "hard_rationale_predictions": [[0, 1]]}], spans()], r"Row 0 must have spans \{start_token"),
        ([soft("a", 1, 2, 3), soft(1)], r"Row 0 must have numbers as soft_rationale_predictions"),
        ([{"docid": "x"}, spans()], r"Row 0 must have the rationale of one document; it has 0"),
        ([spans()], r"ERASER's file is of 1 text, the reading of 2"),
        ([spans() + spans(), spans()], r"Row 0 must have the rationale of one document; it has 2"),
    ],
)
def test_what_does_not_fit_of_eraser_is_a_sentence(rationales: Sequence[Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ExplanationError, match=sentence):
        read_explanations(eraser(tmp_path / "said.jsonl", *rationales), word_units(TEXTS))


def test_plain_lists_and_what_inseq_saves_are_one_object(tmp_path: Path) -> None:
    lists = {"scores": [[1, 2.5], [3]], "targets": ["yes", 0], "class_names": ["no", "yes"], "method": "me"}
    (tmp_path / "lists.json").write_text(json.dumps(lists))
    found = read_explanations(tmp_path / "lists.json", word_units(["a film", "good"]))[0]
    assert (found.scores.tolist(), found.targets.tolist(), found.shown) == ([1, 2.5, 3], [1, 0], ["a", "film", "good"])
    (tmp_path / "inseq.json").write_text(json.dumps(inseqs(["▁A", "▁dul", "l", "▁film", "</s>"], SAVED)))
    found = read_explanations(tmp_path / "inseq.json", word_units(["A dull film"]), class_names=["no", "yes"])[0]
    assert (found.scores.tolist(), found.targets.tolist()) == ([0.125, 0.75, -0.0625], [0])
    with pytest.raises(ExplanationError, match=r"give class_names"):
        read_explanations(tmp_path / "inseq.json")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("said.txt", "", r"read from \.parquet, \.jsonl, \.json, not from 'said\.txt'"),
        ("said.jsonl", "", r"holds no explanation"),
        ("said.jsonl", '{"scores": [1]}', r"Row 0 .* must have scores and target, .*; it has scores"),
        ("said.jsonl", '{"scores": [1], "target": "yes"}\n{', r"line 2 of said\.jsonl is not JSON"),
        ("said.jsonl", "[1]", r"Row 0 .* it has \[1\]"),
        ("said.jsonl", '{"scores": [NaN], "target": "yes"}', r"must be finite"),
        (
            "said.jsonl",
            '{"scores": [1], "target": 7, "class_names": ["no", "yes"]}',
            r"There is no class '7'\. Known: no, yes",
        ),
        (
            "said.jsonl",
            '{"scores": [1], "target": "a", "text": "x"}\n{"scores": [1], "target": "a"}',
            r"text must be known of all texts of an explanation or of none; text 1",
        ),
        ("said.jsonl", '{"scores": [1], "target": "a", "units": ["x", "y"]}', r"1 scores and 2 units"),
        ("said.jsonl", '{"scores": [1], "target": "a", "starts": [0], "ends": [1, 2]}', r"there are 1 and 2"),
        ("said.json", "[1]", r"A \.json file holds one object"),
        ("said.json", '{"targets": [0]}', r"The object must hold scores"),
        ("said.json", '{"scores": [[1]], "targets": [0], "depth": 1}', r"must hold scores, .*depth"),
        ("said.parquet", "PAR1", r"not a readable Parquet file"),
    ],
)
def test_files_that_hold_no_explanations_are_refused(name: str, content: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=sentence):
        read_explanations(tmp_path / name)


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExplanationError, match=r"There is no explanation to write"):
        write_explanations(tmp_path / "said.jsonl", [])
    with pytest.raises(ExplanationError, match=r"written as \.parquet, \.jsonl or \.csv, not as 'said\.txt'"):
        write_explanations(tmp_path / "said.txt", [explanation()])
    with pytest.raises(ExplanationError, match=r"There are 2 texts and 1 ids"):
        write_eraser(tmp_path / "said.jsonl", explanation(), ids=["x"])
    with pytest.raises(ExplanationError, match=r"There is no file"):
        read_explanations(tmp_path / "none.jsonl")
