"""The trace: by hand, validated, saved and loaded bit for bit."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

from heedful.errors import TraceError
from heedful.traces import Trace
from tests import strategies

HAND: dict[str, Any] = {
    "offsets": [0, 2, 3],
    "attention_scores": [0.0, math.log(3.0), 5.0],
    "polarity_scores": [[0.0, 4.0], [0.0, -8.0], [0.0, 1.0]],
    "bias": [0.5, 0.0],
}


def test_weights_logits_and_predictions_by_hand() -> None:
    trace = Trace.from_arrays(**HAND, labels=[1, 1], units=["a", "b", "c"], class_names=["no", "yes"])
    assert trace.attention_weights.tolist() == pytest.approx([0.25, 0.75, 1.0], abs=1e-15)
    assert trace.logits.flatten().tolist() == pytest.approx([0.5, -5.0, 0.5, 1.0], abs=1e-14)
    assert trace.predictions.tolist() == [0, 1]
    assert trace.accuracy() == 0.5
    assert float(trace.probabilities[1, 1]) == pytest.approx(1 / (1 + math.exp(-0.5)), abs=1e-15)
    assert len(trace) == 2
    assert trace.logits.dtype == torch.float64


def test_a_single_output_becomes_two_columns() -> None:
    trace = Trace.from_arrays(offsets=[0, 1], attention_scores=[0.0], polarity_scores=[2.0], bias=[0.25])
    assert trace.polarity_scores.tolist() == [[0.0, 2.0]]
    assert trace.logits.tolist() == [[0.0, 2.25]]


def test_equal_logits_predict_the_lowest_class() -> None:
    trace = Trace.from_arrays(offsets=[0, 1], attention_scores=[0.0], polarity_scores=[[1.0, 1.0, 1.0]], bias=[0, 0, 0])
    assert trace.predictions.tolist() == [0]


def test_weights_given_alone_are_kept_and_zero_weight_is_a_score_of_minus_infinity() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 2], attention_weights=[1.0, 0.0], polarity_scores=[[0, 1], [0, 2]], bias=[0, 0]
    )
    assert trace.attention_scores.tolist() == [0.0, -math.inf]
    assert trace.logits.tolist() == [[0.0, 1.0]]


def test_scores_of_any_size_give_weights_that_sum_to_one() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 3], attention_scores=[-2000.0, 1999.0, 2000.0], polarity_scores=np.zeros((3, 2)), bias=[0, 0]
    )
    assert trace.attention_weights.tolist() == pytest.approx([0.0, 1 / (1 + math.e), math.e / (1 + math.e)], abs=1e-15)


@given(strategies.ragged_scores(700), strategies.score(50))
def test_weights_sum_to_one_and_a_constant_changes_nothing(scores: list[list[float]], constant: float) -> None:
    offsets = np.cumsum([0, *map(len, scores)])
    flat = np.concatenate(scores)
    made = [
        Trace.from_arrays(offsets=offsets, attention_scores=a, polarity_scores=np.zeros((len(flat), 2)), bias=[0, 0])
        for a in (flat, flat + constant)
    ]
    for start, end in itertools.pairwise(offsets):
        assert float(made[0].attention_weights[start:end].sum()) == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(made[0].attention_weights, made[1].attention_weights, atol=1e-10, rtol=0)


@pytest.mark.parametrize("suffix", ["safetensors", "parquet"])
@pytest.mark.parametrize("full", [True, False])
def test_a_saved_trace_is_loaded_bit_for_bit(suffix: str, full: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    extras: dict[str, Any] = (
        {"labels": [2, 0], "units": ["ä", "<b>", "😀"], "class_names": ["x", "y", "z"]} if full else {}
    )
    trace = Trace.from_arrays(
        offsets=[0, 1, 3],
        attention_scores=rng.normal(size=3) * 300,
        polarity_scores=rng.normal(size=(3, 3)),
        bias=rng.normal(size=3),
        **extras,
    )
    path = tmp_path / f"trace.{suffix}"
    trace.save(path)
    loaded = Trace.load(path)
    for name in ("offsets", "attention_scores", "attention_weights", "polarity_scores", "bias", "logits"):
        assert torch.equal(getattr(trace, name), getattr(loaded, name)), name
    assert loaded.class_names == trace.class_names
    assert loaded.units is None or list(loaded.units) == ["ä", "<b>", "😀"]
    assert (loaded.labels is None) == (trace.labels is None)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"offsets": [0, 2, 2]}, "offsets must increase (an instance has at least one unit); instance 1 does not."),
        ({"offsets": [1, 2, 3]}, "offsets must start with 0, not 1."),
        ({"offsets": [0.0, 3.0]}, "offsets must be whole numbers"),
        ({"offsets": [0, 2, 4]}, "polarity_scores must have one entry per unit: expected 4, got 3."),
        ({"attention_scores": [0.0, math.nan, 1.0]}, "attention_scores must be finite; it holds NaN or infinity."),
        ({"attention_scores": [0.0, math.inf, 1.0]}, "attention_scores must be finite; it holds NaN or infinity."),
        ({"attention_scores": [-math.inf, -math.inf, 0.0]}, "Every instance needs a unit with a finite attention"),
        ({"attention_scores": None}, "Give attention_scores, or attention_weights"),
        ({"attention_scores": None, "attention_weights": [0.5, 0.4, 1]}, "those of instance 0 sum to 0.9"),
        ({"attention_scores": None, "attention_weights": [1.5, -0.5, 1]}, "attention_weights must not be negative."),
        ({"attention_weights": [0.5, 0.5, 1.0]}, "are not the softmax of attention_scores; give one of the two."),
        ({"bias": []}, "There must be two classes or more"),
        ({"polarity_scores": np.zeros((3, 0)), "bias": []}, "There must be two classes or more"),
        ({"polarity_scores": np.zeros((3, 2, 2))}, "The readout must be affine in the attention"),
        ({"polarity_scores": [[0, 1e308]] * 3}, "polarity_scores and bias must stay below 1e+300"),
        ({"polarity_scores": [[0, math.inf]] * 3}, "polarity_scores must be finite"),
        ({"polarity_scores": [[0, 1], [0]]}, "polarity_scores must be numbers in a regular array"),
        ({"labels": [0, 2]}, "labels must lie between 0 and 1; they go from 0 to 2."),
        ({"labels": [0.5, 1.0]}, "labels must be whole numbers"),
        ({"units": ["a"]}, "units must have one entry per unit: expected 3, got 1."),
        ({"class_names": ["a"]}, "class_names must have one entry per class: expected 2, got 1."),
    ],
)
def test_arrays_that_make_no_trace_are_refused_with_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TraceError) as caught:
        Trace.from_arrays(**(HAND | changes))
    assert sentence in str(caught.value)


def test_files_that_hold_no_trace_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"ends in \.safetensors or \.parquet, not in '\.csv'"):
        Trace.load(tmp_path / "trace.csv")
    with pytest.raises(TraceError, match="There is no trace file"):
        Trace.load(tmp_path / "trace.parquet")
    for name in ("broken.parquet", "broken.safetensors"):
        (tmp_path / name).write_bytes(b"not a file of that kind")
        with pytest.raises(TraceError, match="cannot be read"):
            Trace.load(tmp_path / name)


def test_the_table_of_a_binary_trace_by_hand() -> None:
    """Weights ¼, ¾, 1. The decision of the first is "no": the contributions are −¼·4 and ¾·8; of the second 1·1."""
    table = Trace.from_arrays(**HAND, labels=[1, 1], units=["a", "b", "c"], class_names=["no", "yes"]).to_frame()
    assert list(table) == [
        "instance", "position", "unit", "attention_score", "attention_weight",
        "polarity", "contribution", "predicted", "label",
    ]  # fmt: skip
    assert table["instance"].tolist() == [0, 0, 1]
    assert table["position"].tolist() == [0, 1, 0]
    assert table["unit"].tolist() == ["a", "b", "c"]
    assert table["attention_score"].tolist() == [0.0, math.log(3.0), 5.0]
    assert table["attention_weight"].tolist() == pytest.approx([0.25, 0.75, 1.0], abs=1e-15)
    assert table["polarity"].tolist() == [4.0, -8.0, 1.0]
    assert table["contribution"].tolist() == pytest.approx([-1.0, 6.0, 1.0], abs=1e-14)
    assert table["predicted"].tolist() == ["no", "no", "yes"]
    assert table["label"].tolist() == ["yes", "yes", "yes"]


def test_the_table_of_three_classes_by_hand() -> None:
    """Logits (1.5, 2, 0): the decision is b, and the contributions are ½·(6 − (3 + 2)/2) and ½·(−2 − (0 − 2)/2)."""
    table = Trace.from_arrays(
        offsets=[0, 2],
        attention_weights=[0.5, 0.5],
        polarity_scores=[[3.0, 6.0, 2.0], [0.0, -2.0, -2.0]],
        bias=[0, 0, 0],
        class_names=["a", "b", "c"],
    ).to_frame()
    assert table[["polarity_a", "polarity_b", "polarity_c"]].to_numpy().tolist() == [[3, 6, 2], [0, -2, -2]]
    assert table["contribution"].tolist() == [1.75, -0.5]
    assert table["predicted"].tolist() == ["b", "b"]
    assert table["unit"].isna().all()
    assert not {"label", "polarity"} & set(table)


def test_a_trace_without_labels_has_no_accuracy() -> None:
    with pytest.raises(TraceError, match="has no labels"):
        Trace.from_arrays(**HAND).accuracy()


def test_some_instances_in_an_order_of_ones_own() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 2, 3, 6],
        attention_weights=[0.25, 0.75, 1.0, 0.5, 0.25, 0.25],
        polarity_scores=[1, 2, 3, 4, 5, 6],
        bias=[0.5],
        labels=[0, 1, 0],
        units=list("abcdef"),
    )
    some = trace.take(torch.tensor([2, 0]))
    assert (some.offsets.tolist(), some.units) == ([0, 3, 5], ["d", "e", "f", "a", "b"])
    assert some.attention_weights.tolist() == [0.5, 0.25, 0.25, 0.25, 0.75]
    assert some.labels is not None
    assert some.labels.tolist() == [0, 0]
    assert torch.equal(some.logits, trace.logits[[2, 0]])
    bare = Trace.from_arrays(offsets=[0, 1, 2], attention_scores=[0, 0], polarity_scores=[1, 2], bias=[0])
    assert (bare.take(torch.tensor([1])).units, len(bare.take(torch.tensor([1])))) == (None, 1)
