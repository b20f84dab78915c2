"""Strips show the original characters with the trace's numbers."""

import pytest
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.report.instances import Instances
from heedful.report.strips import MOST_UNITS, Example, Piece, pushes_of, shadings_of, telling_instances
from heedful.traces import Trace
from heedful.tracing import WordWeights


def trace_of(
    polarity: list[list[float]], *, offsets: list[int], weights: list[float], labels: list[int] | None = None
) -> Trace:
    return Trace.from_arrays(
        offsets=offsets,
        polarity_scores=polarity,
        attention_weights=weights,
        bias=[0.0] * len(polarity[0]),
        labels=labels,
        class_names=["negative", "positive", "mixed"][: len(polarity[0])],
    )


ONE = trace_of([[0.0, 4.0], [0.0, -2.0], [0.0, 0.0]], offsets=[0, 3], weights=[0.5, 0.25, 0.25], labels=[0])
TEXT = "  So good, 😀"
SPANS = torch.tensor([[2, 4], [5, 9], [9, 10]])


def test_a_push_is_towards_the_predicted_class_and_what_is_used_is_weighed() -> None:
    assert pushes_of(ONE).tolist() == [4.0, -2.0, 0.0]
    assert ONE.contributions.tolist() == [2.0, -0.5, 0.0]
    assert pushes_of(trace_of([[0.0, -1.0]], offsets=[0, 1], weights=[1.0])).tolist() == [1.0]


def test_the_push_of_several_classes_is_against_the_mean_of_the_others() -> None:
    assert pushes_of(trace_of([[5.0, 1.0, 3.0]], offsets=[0, 1], weights=[1.0])).tolist() == [3.0]


def example_of(
    trace: Trace,
    text: str,
    spans: Int[Tensor, "units 2"],
    words: WordWeights | None = None,
    marked: tuple[int, ...] = (),
) -> Example:
    """The only text of a trace, with these units as its smallest set."""
    instances = Instances(
        texts=[text],
        offsets=trace.offsets,
        spans=spans,
        shadings=shadings_of(trace),
        marks=torch.tensor([unit in marked for unit in range(len(spans))]),
        predicted=trace.predictions,
        probability=trace.probabilities.amax(1),
        labels=trace.labels,
        class_names=trace.class_names,
        within=None if words is None else {0: words},
    )
    return instances.example(0, "why", "a note")


def strip(example: Example, name: str) -> list[Piece]:
    return next(list(strip.pieces) for strip in example.strips if strip.name == name)


def test_an_example_shades_the_text_as_it_was_written() -> None:
    example = example_of(ONE, TEXT, SPANS, marked=(1,))
    assert strip(example, "attention") == [
        Piece(text="So", shade=1.0, note="attention weight 0.500"),
        Piece(text=" "),
        Piece(text="good", shade=0.5, note="attention weight 0.250", marked=True),
        Piece(text=",", shade=0.5, note="attention weight 0.250"),
    ]
    assert [piece.shade for piece in strip(example, "used here")] == [1.0, None, -0.25, 0.0]
    assert [piece.note for piece in strip(example, "used here")][::2] == [
        "gave +2.000 to the decision",
        "gave -0.500 to the decision",
    ]
    assert [piece.shade for piece in strip(example, "would push")] == [1.0, None, -0.5, 0.0]
    assert [piece.note for piece in strip(example, "would push")] == [
        "would push +4.00",
        "",
        "would push -2.00",
        "would push +0.00",
    ]
    assert (example.predicted, example.label, example.why, example.cut) == ("positive", "negative", "why", 0)
    assert example.note == "a note"
    assert example.probability == pytest.approx(1 / (1 + 2.718281828459045**-1.5))


def test_words_are_shaded_within_their_sentences() -> None:
    words = WordWeights(spans=SPANS, weights=torch.tensor([0.8, 0.2, 1.0]).double(), sentences=torch.tensor([0, 0, 1]))
    pieces = strip(example_of(ONE, TEXT, SPANS, words), "within sentences")
    assert [piece.shade for piece in pieces] == [1.0, None, 0.25, 1.0]
    assert pieces[2] == Piece(text="good", shade=0.25, note="weight within its sentence 0.200")


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    units = MOST_UNITS + 7
    long = trace_of([[0.0, 1.0]] * units, offsets=[0, units], weights=[1 / units] * units)
    spans = torch.arange(units)[:, None] * 2 + torch.tensor([0, 1])
    example = example_of(long, "x " * units, spans)
    assert len([piece for piece in strip(example, "attention") if piece.shade is not None]) == MOST_UNITS
    assert example.cut == 7
    assert example.label is None


def test_telling_instances_are_the_surest_of_each_class_mistakes_and_partings() -> None:
    polarity = [[0.0, 5.0], [0.0, 1.0], [0.0, -4.0], [0.0, 3.0], [0.0, 2.0], [0.0, 0.1]]
    trace = trace_of(
        polarity, offsets=[0, 1, 2, 3, 4, 6], weights=[1.0, 1.0, 1.0, 1.0, 0.4, 0.6], labels=[1, 1, 0, 0, 1]
    )
    assert telling_instances(trace) == [
        (2, "surest for negative"),
        (0, "surest for positive"),
        (3, "surest mistake"),
        (4, "attention and use part here"),
    ]


def test_attention_and_use_do_not_part_by_a_hair() -> None:
    trace = trace_of([[0.0, 2.0], [0.0, 2.01]], offsets=[0, 2], weights=[0.5, 0.5])
    assert [why for _, why in telling_instances(trace)] == ["surest for positive"]


def test_no_more_instances_are_told_than_asked_for() -> None:
    count = 30
    trace = trace_of(
        [[0.0, 0.5 + number] for number in range(count)],
        offsets=list(range(count + 1)),
        weights=[1.0] * count,
        labels=[0] * count,
    )
    assert len(telling_instances(trace, most=5)) <= 5
