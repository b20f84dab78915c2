"""Trace files that others wrote, with plain pyarrow, pandas and safetensors: read right, or refused with a sentence."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from heedful.errors import TraceError
from heedful.studies.erase import erase_trace
from heedful.traces import Trace

PAGE = Path(__file__).parents[1] / "docs" / "traces.md"
SCORES = [[0.0, math.log(3.0)], [5.0]]
POLARITY = [[[0.0, 4.0], [0.0, -8.0]], [[0.0, 1.0]]]
COLUMNS: dict[str, Any] = {"attention_scores": SCORES, "polarity_scores": POLARITY, "bias": [[0.5, 0.0]] * 2}
LOGITS = [[0.5, -5.0], [0.5, 1.0]]
"""¼ · 4 − ¾ · 8 = −5 and 1, beside the bias of one half."""

TENSORS: dict[str, torch.Tensor] = {
    "offsets": torch.tensor([0, 2, 3]),
    "attention_scores": torch.tensor([0.0, math.log(3.0), 5.0]),
    "polarity_scores": torch.tensor([[0.0, 4.0], [0.0, -8.0], [0.0, 1.0]]),
    "bias": torch.tensor([0.5, 0.0]),
}


def parquet(folder: Path, columns: dict[str, Any], metadata: dict[str, str] | None = None) -> Path:
    path = folder / "foreign.parquet"
    kept = {name: column for name, column in columns.items() if column is not None}
    pq.write_table(pa.table(kept, metadata=metadata), path)
    return path


def safetensors(folder: Path, changes: dict[str, Any], metadata: dict[str, str] | None = None) -> Path:
    path = folder / "foreign.safetensors"
    save_file({name: tensor for name, tensor in (TENSORS | changes).items() if tensor is not None}, path, metadata)
    return path


def check_hand(trace: Trace) -> None:
    assert trace.offsets.tolist() == [0, 2, 3]
    assert trace.attention_weights.tolist() == pytest.approx([0.25, 0.75, 1.0], abs=1e-7)
    assert trace.polarity_scores.tolist() == [[0.0, 4.0], [0.0, -8.0], [0.0, 1.0]]
    assert trace.logits.flatten().tolist() == pytest.approx([0.5, -5.0, 0.5, 1.0], abs=1e-6)


def check_refused(path: Path, *sentences: str) -> None:
    with pytest.raises(TraceError) as caught:
        Trace.load(path)
    for sentence in sentences:
        assert sentence in str(caught.value)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_examples_of_the_page_run_and_give_the_tables_found_by_hand(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks[number], f"{PAGE.name}, example {number}", "exec"), {})
    (file,) = tmp_path.iterdir()
    trace = Trace.load(file)
    assert trace.units is not None
    assert trace.labels is not None
    assert list(trace.units) == ["the", "dull", "plot", "great", "fun"]
    assert (trace.class_names, trace.labels.tolist()) == (("negative", "positive"), [0, 1])
    tables = erase_trace(trace).tables()
    for ranking, erased, mass in (("attention", [2, 2], [0.75, 1.0]), ("margin", [1, 2], [0.25, 1.0])):
        flips = tables[f"flips-{ranking}"]
        assert flips["erased"].tolist() == erased
        assert flips["fraction"].tolist() == pytest.approx([erased[0] / 3, 1.0])
        assert flips["mass"].tolist() == pytest.approx(mass)
    assert tables["minimum"]["erased"].tolist() == [1, 2]
    assert [list(positions) for positions in tables["minimum"]["positions"]] == [[1], [0, 1]]
    assert tables["minimum"]["flipped_to"].tolist() == [1, 0]


NUMBER = [pa.float64(), pa.float32(), pa.float16()]


@pytest.mark.parametrize("number", NUMBER, ids=str)
@pytest.mark.parametrize("outer", [pa.list_, pa.large_list], ids=["list", "large_list"])
@pytest.mark.parametrize("inner", [pa.list_, pa.large_list, lambda kind: pa.list_(kind, 2)], ids=["list", "large", "2"])
def test_every_kind_of_list_and_number_is_read(number: Any, outer: Any, inner: Any, tmp_path: Path) -> None:
    scores = pa.array(np.array([0, math.log(3), 5], number.to_pandas_dtype()))
    columns = {
        "attention_scores": pa.array([[0.0, scores[1].as_py()], [5.0]], outer(number)),
        "polarity_scores": pa.array(POLARITY, outer(inner(number))),
        "bias": pa.array([[0.5, 0.0]] * 2, inner(number)),
    }
    trace = Trace.load(parquet(tmp_path, columns))
    assert trace.offsets.tolist() == [0, 2, 3]
    assert trace.polarity_scores.tolist() == [[0.0, 4.0], [0.0, -8.0], [0.0, 1.0]]
    assert trace.attention_scores.tolist() == [0.0, float(scores[1].as_py()), 5.0]
    assert trace.bias.tolist() == [0.5, 0.0]


def test_rows_of_a_fixed_size_and_of_several_groups_are_read(tmp_path: Path) -> None:
    columns = {
        "attention_scores": pa.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], pa.list_(pa.float32(), 2)),
        "polarity_scores": pa.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]),
    }
    path = tmp_path / "groups.parquet"
    pq.write_table(pa.table(columns, metadata={"bias": "[0, 0]"}), path, row_group_size=1)
    trace = Trace.load(path)
    assert trace.offsets.tolist() == [0, 2, 4, 6]
    assert trace.attention_scores.tolist() == [0, 1, 2, 3, 4, 5]
    assert trace.polarity_scores.flatten().tolist() == list(range(1, 13))


def test_one_output_may_come_as_single_numbers(tmp_path: Path) -> None:
    columns = {
        "attention_scores": SCORES,
        "polarity_scores": [[4.0, -8.0], [1.0]],
        "bias": [0.5, 0.5],
        "logits": [-4.5, 1.5],
        "probabilities": [1 / (1 + math.exp(4.5)), 1 / (1 + math.exp(-1.5))],
    }
    trace = Trace.load(parquet(tmp_path, columns))
    assert trace.logits.flatten().tolist() == pytest.approx([0, -4.5, 0, 1.5], abs=1e-12)


@pytest.mark.parametrize("name", ["label", "labels"])
def test_labels_go_by_both_names_in_both_files(name: str, tmp_path: Path) -> None:
    for path in (
        parquet(tmp_path, COLUMNS | {name: pa.array([1, 0], pa.int8())}),
        safetensors(tmp_path, {name: torch.tensor([1, 0])}),
    ):
        labels = Trace.load(path).labels
        assert labels is not None
        assert labels.tolist() == [1, 0]


def test_labels_under_both_names_are_refused(tmp_path: Path) -> None:
    sentence = "given twice, as labels and as label; give one of the two."
    check_refused(parquet(tmp_path, COLUMNS | {"label": [0, 1], "labels": [0, 1]}), sentence)
    both = {"label": torch.tensor([0, 1]), "labels": torch.tensor([0, 1])}
    check_refused(safetensors(tmp_path, both), sentence)


def test_bias_and_class_names_come_from_metadata_or_from_columns(tmp_path: Path) -> None:
    plain = COLUMNS | {"bias": None}
    names = {"class_names": '["no", "yes"]'}
    noted = Trace.load(parquet(tmp_path, plain, {"bias": "[0.5, 0.0]"} | names))
    given = Trace.load(parquet(tmp_path, COLUMNS | {"class_names": [["no", "yes"]] * 2}))
    for trace in (noted, given):
        check_hand(trace)
        assert trace.class_names == ("no", "yes")


def test_categories_of_pandas_and_other_columns_do_no_harm(tmp_path: Path) -> None:
    table = pd.DataFrame({**COLUMNS, "labels": pd.Categorical([1, 0]), "text": ["a b", "c"]}, index=[7, 9])
    table.to_parquet(tmp_path / "pandas.parquet")
    trace = Trace.load(tmp_path / "pandas.parquet")
    check_hand(trace)
    assert trace.labels is not None
    assert trace.labels.tolist() == [1, 0]


def test_a_folder_named_like_a_column_adds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "labels=1"
    folder.mkdir()
    assert Trace.load(parquet(folder, COLUMNS)).labels is None


UNEVEN = "polarity_scores must have one entry per unit, so lists of one length in each row; in row 0"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"polarity_scores": [[[0, 1]], [[0, 1], [0, 2]]]}, f"attention_scores and {UNEVEN} (counted from 0) they"),
        ({"polarity_scores": [[[0, 1]], [[0, 1], [0, 2]]]}, "have 2 and 1."),
        ({"attention_scores": [[0.0, 1.0], [2.0, 3.0]]}, "in row 1 (counted from 0) they have 2 and 1."),
        ({"units": [["a", "b"], ["c", "d"]]}, "attention_scores and units must have one entry per unit"),
        ({"attention_weights": [[0.25], [1.0]]}, "attention_scores and attention_weights must have one entry"),
        ({"attention_scores": [0.0, 1.0]}, "must be a column of lists, one row per instance with one entry per unit"),
        ({"attention_scores": [0.0, 1.0]}, "it is a column of double. If the file has one row per unit, gather"),
        ({"attention_scores": ["a", "b"]}, "attention_scores must be a column of lists"),
        ({"attention_scores": [["0", "1"], ["2"]]}, "attention_scores must hold numbers; the column holds string."),
        ({"attention_scores": [[True, False], [True]]}, "attention_scores must hold numbers; the column holds bool."),
        ({"attention_scores": [[0.0, None], [1.0]]}, "must be complete; there is a null in row 0 (counted from 0)."),
        ({"attention_scores": [[0.0, 1.0], [None]]}, "must be complete; there is a null in row 1 (counted from 0)."),
        ({"attention_scores": [[0.0, 1.0], None]}, "attention_scores must be complete; there is a null in row 1"),
        ({"attention_scores": [[None, None], [None]]}, "attention_scores must be complete; there is a null in row 0"),
        ({"attention_scores": [[0.0, math.nan], [1.0]]}, "attention_scores must be finite; it holds NaN"),
        ({"attention_scores": [[[0.0], [1.0]], [[2.0]]]}, "attention_scores must be a flat array"),
        ({"attention_scores": None}, "Give attention_scores, or attention_weights where the scores are not known."),
        ({"attention_scores": None, "attention_weights": [[0.5, 0.4], [1.0]]}, "those of instance 0 sum to 0.9"),
        ({"attention_scores": [[], []], "polarity_scores": [[], []]}, "must hold numbers; the column holds null."),
        ({"attention_scores": [[1.0], []], "polarity_scores": [[[0, 1]], []]}, "offsets must increase"),
        ({"polarity_scores": [[[0, 4], [0]], [[0, 1]]]}, "its first list has 2, one in row 0 (counted from 0) has 1."),
        ({"polarity_scores": [[[0, 4], [0, 1]], [[0]]]}, "its first list has 2, one in row 1 (counted from 0) has 1."),
        ({"polarity_scores": [[[0, 4], [0, None]], [[0, 1]]]}, "polarity_scores must be complete; there is a null in"),
        ({"polarity_scores": [[[0, 4], [0, 1]], [[0, None]]]}, "there is a null in row 1 (counted from 0)."),
        ({"polarity_scores": [[[0, 4], [0, 1]], [None]]}, "there is a null in row 1 (counted from 0)."),
        ({"polarity_scores": [[["0", "4"], ["0", "1"]], [["0", "1"]]]}, "polarity_scores must hold numbers"),
        ({"polarity_scores": [[[[0], [4]], [[0], [1]]], [[[0], [1]]]]}, "The readout must be affine in the attention"),
        ({"polarity_scores": None}, "lacks polarity_scores; a trace needs scores or weights, polarity_scores, bias."),
        ({"bias": None}, "Give bias as a column (a list with one number per class, the same in each row), or as a"),
        (
            {"bias": None},
            "or as a JSON list under 'bias' in the schema metadata. Columns in the file: attention_scores",
        ),
        ({"bias": [[0.5, 0.0], [0.5, 1.0]]}, "bias must be the same in each row; row 0 has [0.5, 0.0], row 1 [0.5"),
        ({"bias": [[0.5, 0.0], [0.5]]}, "bias must have the same number of classes everywhere; its first list has 2"),
        ({"bias": [[0.5, 0.0], None]}, "bias must be complete; there is a null in row 1"),
        ({"bias": [["a", "b"]] * 2}, "bias must hold numbers; the column holds string."),
        ({"bias": [0.5, 0.5]}, "polarity_scores must be [units, classes] and bias [classes]; got [3, 2] and []."),
        ({"bias": [[0.5, 0.0, 0.0]] * 2}, "the same number in polarity_scores and bias; got 2 and 3."),
        ({"class_names": [["a", "b"], ["b", "a"]]}, "class_names must be the same in each row; row 0 has ['a', 'b']"),
        ({"units": [[1, 2], [3]]}, "units must hold text; the column holds int64."),
        ({"units": [["a", None], ["c"]]}, "units must be complete; there is a null in row 0"),
        ({"labels": [0, None]}, "labels must be complete; there is a null in row 1"),
        ({"labels": [0.0, 1.0]}, "labels must be whole numbers"),
        ({"labels": [[0], [1]]}, "labels must be whole numbers"),
        ({"labels": ["no", "yes"]}, "labels must be whole numbers"),
        ({"label": [0, 2]}, "labels must lie between 0 and 1; they go from 0 to 2."),
        ({"logits": [[0.5, -5.0], [0.5]]}, "logits must have the same number of classes everywhere"),
        ({"logits": [[0.5, -5.0], [0.5, 2.0]]}, "for instance 1, class '1', bias + Σ α_i z_i gives 1, the model 2."),
    ],
)
def test_columns_that_make_no_trace_are_refused_with_a_sentence(
    changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    check_refused(parquet(tmp_path, COLUMNS | changes), sentence)


def test_zero_classes_are_refused(tmp_path: Path) -> None:
    empty = pa.array([[[], []], [[]]], pa.list_(pa.list_(pa.float64())))
    nothing = pa.array([[], []], pa.list_(pa.float64()))
    check_refused(parquet(tmp_path, COLUMNS | {"polarity_scores": empty, "bias": nothing}), "two classes or more")
    none = {"polarity_scores": torch.zeros(3, 0), "bias": torch.zeros(0)}
    check_refused(safetensors(tmp_path, none), "There must be two classes or more")


def test_a_table_without_rows_or_with_a_column_twice_is_refused(tmp_path: Path) -> None:
    table = pa.table(COLUMNS)
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    check_refused(tmp_path / "empty.parquet", "has no rows; a trace has one row per instance.")
    pq.write_table(table.append_column("bias", table.column("bias")), tmp_path / "twice.parquet")
    check_refused(tmp_path / "twice.parquet", "has the column bias more than once")


@pytest.mark.parametrize(
    ("metadata", "sentence"),
    [
        ({"bias": "0.5, 0"}, "bias must be a JSON list: "),
        ({"bias": '{"no": 1}'}, "bias must be a JSON list; got {'no': 1}."),
        ({"bias": '["a", "b"]'}, "bias must be numbers in a regular array: it holds 'a'."),
        ({"bias": "[[0, 1], [2]]"}, "bias must be numbers in a regular array"),
        ({"bias": "[0, NaN]"}, "bias must be finite"),
        ({"bias": "[0, null]"}, "bias must be numbers in a regular array: it holds 'None'."),
        ({"bias": "[0, 0]", "class_names": '"ab"'}, "class_names must be a JSON list; got ab."),
        ({"bias": "[0, 0]", "class_names": "[1, 2]"}, "class_names must be a JSON list of texts"),
    ],
)
def test_metadata_that_make_no_trace_are_refused(metadata: dict[str, str], sentence: str, tmp_path: Path) -> None:
    check_refused(parquet(tmp_path, COLUMNS | {"bias": None}, metadata), sentence)


def test_a_bias_given_twice_is_refused(tmp_path: Path) -> None:
    check_refused(parquet(tmp_path, COLUMNS, {"bias": "[0.5, 0]"}), "bias is given twice, as a column and in the")


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_safetensors_of_every_precision_are_read(kind: torch.dtype, tmp_path: Path) -> None:
    small = {name: tensor.to(kind) for name, tensor in TENSORS.items() if name != "offsets"}
    trace = Trace.load(safetensors(tmp_path, {**small, "logits": torch.tensor(LOGITS, dtype=kind)}))
    assert trace.attention_scores.dtype == torch.float64
    assert trace.attention_scores.tolist() == small["attention_scores"].tolist()
    assert trace.polarity_scores.tolist() == [[0.0, 4.0], [0.0, -8.0], [0.0, 1.0]]
    assert trace.attention_weights.tolist() == pytest.approx([0.25, 0.75, 1.0], abs=2e-3)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16], ids=str)
def test_weights_in_half_precision_are_divided_by_their_sum(kind: torch.dtype, tmp_path: Path) -> None:
    weights = torch.tensor([0.1, 0.9, 1.0], dtype=kind)
    rounded = weights.double()
    assert abs(float(rounded[:2].sum()) - 1) > 1e-6
    trace = Trace.load(safetensors(tmp_path, {"attention_scores": None, "attention_weights": weights}))
    expected = [float(rounded[0] / rounded[:2].sum()), float(rounded[1] / rounded[:2].sum()), 1.0]
    assert trace.attention_weights.tolist() == pytest.approx(expected, abs=1e-15)
    half = {"attention_scores": TENSORS["attention_scores"].to(kind)}
    both = torch.tensor([0.25, 0.75, 1.0], dtype=kind)
    assert len(Trace.load(safetensors(tmp_path, {**half, "attention_weights": both}))) == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"offsets": torch.tensor([0, 3, 2])}, "offsets must increase (an instance has at least one unit); instance 1"),
        ({"offsets": torch.tensor([0.0, 2.0, 3.0]).bfloat16()}, "offsets must be whole numbers"),
        ({"offsets": None}, "lacks offsets; a trace needs offsets, scores or weights"),
        (
            {"bias": None},
            "lacks bias; a trace needs offsets, scores or weights, polarity_scores, bias. Tensors in the file: ",
        ),
        ({"labels": torch.tensor([0.0, 1.0]).half()}, "labels must be whole numbers"),
        ({"attention_scores": torch.tensor([0, math.nan, 1]).bfloat16()}, "attention_scores must be finite"),
        ({"attention_scores": None, "attention_weights": torch.tensor([0.3, 0.5, 1]).bfloat16()}, "must sum to one"),
        ({"attention_weights": torch.tensor([0.5, 0.5, 1]).bfloat16()}, "are not the softmax of attention_scores"),
        ({"polarity_scores": torch.zeros(3, 2, dtype=torch.complex64)}, "polarity_scores must be numbers in a regular"),
        ({"polarity_scores": torch.zeros(3, 2, 2)}, "The readout must be affine in the attention"),
        ({"units": torch.zeros(3)}, "units must be the bytes (uint8) of a JSON list, not torch.float32."),
        ({"units": torch.tensor(list(b"[1, 2, 3]"), dtype=torch.uint8)}, "units must be a JSON list of texts"),
        ({"units": torch.tensor(list(b"a, b, c"), dtype=torch.uint8)}, "units must be a JSON list: "),
    ],
)
def test_tensors_that_make_no_trace_are_refused(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    check_refused(safetensors(tmp_path, changes), sentence)


def test_other_tensors_are_ignored_and_class_names_must_be_texts(tmp_path: Path) -> None:
    extra = {"embedding.weight": torch.zeros(2, 2)}
    named = Trace.load(safetensors(tmp_path, extra, {"class_names": json.dumps(["no", "yes"]), "format": "pt"}))
    check_hand(named)
    assert named.class_names == ("no", "yes")
    check_refused(safetensors(tmp_path, extra, {"class_names": "no"}), "class_names must be a JSON list: ")
