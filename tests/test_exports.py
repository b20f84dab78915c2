"""Whatever has a view is written as the ending of a name says, from Python and from the command line."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import heedful
from heedful.claims import judge
from heedful.errors import InputError
from heedful.explanation_files import read_explanations
from heedful.explanations import Explanation
from heedful.notebook import PICTURES, Viewed
from heedful.pipeline import Run
from heedful.studies.explain import explain
from tests.commands import Call, write_corpus

TEXTS = ["a good film", "a film , dull"]
BEGIN = {".svg": b"<?xml", ".pdf": b"%PDF", ".png": b"\x89PNG", ".html": b"<!doctype html>"}


def explanation() -> Explanation:
    return Explanation.of_lists(
        [[0.0, 2.0, 0.5], [0.0, 1.0, 0.25, -3.0]],
        targets=[1, 0],
        class_names=["no", "yes"],
        method="mine",
        texts=TEXTS,
        spans=[[(0, 1), (2, 6), (7, 11)], [(0, 1), (2, 6), (7, 8), (9, 13)]],
    )


def trace() -> heedful.Trace:
    return heedful.Trace.from_arrays(
        offsets=[0, 2, 3],
        attention_weights=[0.25, 0.75, 1.0],
        polarity_scores=[4, -8, 1],
        bias=[0],
        units=["good", "dull & <b>", "fine"],
    )


def values() -> dict[str, Viewed]:
    table = pd.DataFrame({"label": [0, 1] * 20, "decision": [0, 1] * 20})
    return {
        "trace": trace(),
        "explanation": explanation(),
        "verdicts": judge(("M1",), {"outcomes": table}),
        "faithfulness": heedful.faithfulness(trace(), heedful.explain(trace(), by="product"), ["aopc"]),
        "flips": heedful.first_flips(trace()),
        "adversary": heedful.adversarial_attention(trace()),
    }


@pytest.mark.parametrize("ending", [*BEGIN])
@pytest.mark.parametrize("name", [*values()])
def test_pictures_and_pages_by_their_endings(name: str, ending: str, tmp_path: Path) -> None:
    value, path = values()[name], tmp_path / f"it{ending}"
    value.save(path)
    assert path.read_bytes().startswith(BEGIN[ending])
    if ending == ".svg":
        assert ET.fromstring(path.read_text()).tag == "{http://www.w3.org/2000/svg}svg"
    if ending in PICTURES:
        value.save(tmp_path / f"again{ending}")
        assert (tmp_path / f"again{ending}").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", [*values()])
def test_tables_by_their_endings(name: str, tmp_path: Path) -> None:
    value = values()[name]
    table = value.to_frame()
    value.save(str(tmp_path / "it.csv"))
    assert len(pd.read_csv(tmp_path / "it.csv")) == len(table)
    value.save(tmp_path / "it.tex")
    lines = (tmp_path / "it.tex").read_text().splitlines()
    assert lines[0] == r"\begin{tabular}{" + "l" * lines[2].count("&") + "l}"
    assert len(lines) == len(table) + 6
    if name not in ("trace", "explanation"):  # which have Parquet of their own
        value.save(tmp_path / "it.parquet")
        assert pd.read_parquet(tmp_path / "it.parquet").columns.tolist() == table.columns.tolist()


def test_what_is_to_be_read_again_comes_back(tmp_path: Path) -> None:
    trace().save(tmp_path / "trace.parquet")
    assert torch.equal(heedful.Trace.load(tmp_path / "trace.parquet").polarity_scores, trace().polarity_scores)
    for ending in (".parquet", ".jsonl"):
        explanation().save(tmp_path / f"mine{ending}")
        (found,) = read_explanations(tmp_path / f"mine{ending}")
        assert torch.equal(found.scores, explanation().scores)


def test_an_explanation_in_erasers_form(tmp_path: Path) -> None:
    explanation().save(tmp_path / "mine.eraser.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "mine.eraser.jsonl").read_text().splitlines()]
    assert [row["annotation_id"] for row in rows] == ["0", "1"]
    assert [row["classification"] for row in rows] == ["yes", "no"]
    assert rows[0]["rationales"][0]["soft_rationale_predictions"] == [0.0, 2.0, 0.5]
    assert rows[1]["rationales"][0]["soft_rationale_predictions"] == [0.0, 1.0, 0.25, -3.0]


def test_an_unknown_ending_says_which_are_known(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.csv, \.parquet, \.tex, \.svg, \.pdf, \.png or \.html, not as 'it\.xls'"):
        values()["verdicts"].save(tmp_path / "it.xls")
    assert not [*tmp_path.iterdir()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    from heedful import pipeline

    folder = tmp_path_factory.mktemp("exports")
    settings = heedful.RunSettings().change(
        {
            "data.source": str(write_corpus(folder / "corpus.csv")),
            "model.embedding_size": 4,
            "training.epochs": 2,
        }
    )
    return pipeline.run(settings, heedful.Store(folder / "runs"))


def test_explain_writes_what_the_ending_says(run: Run, call: Call, tmp_path: Path) -> None:
    text = "good <b>film"
    own = explain(run.model(), text)
    for ending in (".csv", ".parquet", ".tex", ".jsonl", ".eraser.jsonl", *BEGIN):
        done = call("explain", text, "--run", run.path, "--out", tmp_path / f"it{ending}")
        assert (done.code, done.out) == (0, "")
    table: Any = pd.read_parquet(tmp_path / "it.parquet")
    assert table["unit"].tolist() == [text[start:end] for start, end in own.spans]
    assert table["attention_weight"].tolist() == own.trace.attention_weights.tolist()
    assert pd.read_csv(tmp_path / "it.csv")["end"].tolist() == [end for _, end in own.spans]
    attended, used = read_explanations(tmp_path / "it.jsonl")
    assert (attended.method, used.method) == ("attention", "contribution")
    assert used.scores.tolist() == own.trace.contributions.tolist()
    (folded,) = read_explanations(tmp_path / "it.eraser.jsonl", texts={"0": text})
    assert float(folded.scores.sum()) == pytest.approx(1)
    assert "<b>" not in (tmp_path / "it.html").read_text()
    wrong = call("explain", text, "--run", run.path, "--out", tmp_path / "it.doc")
    assert (wrong.code, wrong.out) == (1, "")
    assert ".png, .html, .jsonl or .eraser.jsonl, not as 'it.doc' does." in " ".join(wrong.err.split())


def test_faithfulness_writes_the_explanations_that_it_measured(run: Run, call: Call, tmp_path: Path) -> None:
    mine = heedful.explain(run.trace(), by="attention")
    mine = mine.with_scores(mine.scores, "../../a name/")
    mine.save(tmp_path / "mine.jsonl")
    run.trace().save(tmp_path / "trace.parquet")
    done = call(
        "faithfulness", "--model", tmp_path / "trace.parquet", "--by", "product", "--metrics", "flip_fraction",
        "--explanations", tmp_path / "mine.jsonl", "--texts", 5, "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    folder = tmp_path / "out"
    endings = ["-0-product.eraser.jsonl", "-1-..-..-a-name-.eraser.jsonl", ".csv", ".jsonl", ".parquet"]
    assert sorted(path.name for path in folder.glob("explained-texts*")) == [f"explained-texts{end}" for end in endings]
    found = read_explanations(folder / "explained-texts.parquet")
    assert {one.method for one in found} == {"../../a name/", "product"}
    assert [len(one) for one in found] == [5, 5]
    assert {path.suffix for path in (tmp_path / "out").iterdir()} >= {".csv", ".parquet", ".tex", *PICTURES}
