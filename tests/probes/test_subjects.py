"""Every subject through one list of checks, and flips along an order of a subject that is neither trace nor model."""

from dataclasses import dataclass

import pandas as pd
import pytest
import torch
from torch import Tensor

from heedful.analysis.erasure import first_flips
from heedful.analysis.flips import Grid, TraceReading, flips_along
from heedful.analysis.rankings import ranked
from heedful.errors import UnknownName
from heedful.probes.reading import ModelReading
from heedful.subjects import ATTENTION, DELETE, MASK, Reading, Units
from heedful.text.ragged import offsets_of, segment_sum
from heedful.tracing import trace
from tests.oracles import erasure as oracle
from tests.oracles.random_traces import random_trace
from tests.oracles.reading import parts
from tests.probes.test_reading import a_model, as_split, documents

TEXTS = as_split(documents(12, seed=6))
SUBJECTS: dict[str, Reading] = {
    "trace": TraceReading(trace=random_trace(2, instances=20, longest=9)),
    "wide trace": TraceReading(trace=random_trace(7, instances=20, longest=9)),
    "flat": ModelReading.of(a_model("flat", "gru"), TEXTS),
    "without encoder": ModelReading.of(a_model("flat", "none"), TEXTS),
    "hierarchical": ModelReading.of(a_model("hierarchical", "conv"), TEXTS),
}
WAYS = [(name, how) for name, subject in SUBJECTS.items() for how in subject.ways]


def every(subject: Reading) -> Tensor:
    return torch.arange(len(subject.units.lengths))


def some_gone(subject: Reading, seed: int = 0) -> Tensor:
    return torch.rand(int(subject.units.offsets[-1]), generator=torch.Generator().manual_seed(seed)) < 0.4


@pytest.mark.parametrize("name", SUBJECTS)
def test_what_a_subject_says_of_its_texts(name: str) -> None:
    subject = SUBJECTS[name]
    assert subject.probabilities.shape == (len(subject.units.lengths), len(subject.class_names))
    torch.testing.assert_close(subject.probabilities.sum(1), torch.ones(len(subject.probabilities)).double())
    assert torch.equal(subject.decisions, subject.probabilities.argmax(1))


@pytest.mark.parametrize(("name", "how"), WAYS)
def test_with_nothing_gone_nothing_changes(name: str, how: str) -> None:
    subject = SUBJECTS[name]
    nothing = torch.zeros(int(subject.units.offsets[-1]), dtype=torch.bool)
    torch.testing.assert_close(subject.without(every(subject), nothing, how), subject.probabilities)
    assert torch.equal(subject.decide(every(subject), nothing, how), subject.decisions)


@pytest.mark.parametrize(("name", "how"), [pair for pair in WAYS if pair[1] != MASK])
def test_with_everything_gone_the_bias_is_left(name: str, how: str) -> None:
    subject = SUBJECTS[name]
    assert isinstance(subject, TraceReading)
    after = subject.without(every(subject), torch.ones(int(subject.units.offsets[-1]), dtype=torch.bool), how)
    torch.testing.assert_close(after, subject.trace.bias.softmax(0).expand_as(after))


@pytest.mark.parametrize(("name", "how"), WAYS)
def test_texts_are_answered_in_the_order_asked_and_by_themselves(name: str, how: str) -> None:
    subject, gone = SUBJECTS[name], some_gone(SUBJECTS[name])
    whole = subject.without(every(subject), gone, how)
    torch.testing.assert_close(whole.sum(1), torch.ones(len(whole)).double())
    rows = torch.tensor([7, 2, 9])
    marks = gone[subject.units.of_rows(rows)]
    torch.testing.assert_close(subject.without(rows, marks, how), whole[rows])
    assert torch.equal(subject.decide(rows, marks, how), whole[rows].argmax(1))


@pytest.mark.parametrize(("name", "how"), WAYS)
def test_one_text_may_be_asked_about_many_times_at_once(name: str, how: str) -> None:
    subject, rows = SUBJECTS[name], torch.tensor([3, 1, 3, 3])
    marks = [some_gone(subject, seed)[subject.units.segments == row] for seed, row in enumerate(rows.tolist())]
    together = subject.without(rows, torch.cat(marks), how)
    alone = [subject.without(rows[[place]], mark, how) for place, mark in enumerate(marks)]
    torch.testing.assert_close(together, torch.cat(alone))
    assert torch.equal(subject.decide(rows, torch.cat(marks), how), together.argmax(1))


@pytest.mark.parametrize("name", SUBJECTS)
def test_another_way_is_refused_with_those_there_are(name: str) -> None:
    subject = SUBJECTS[name]
    with pytest.raises(UnknownName, match="no way to take units away 'drop'"):
        subject.without(every(subject), some_gone(subject), "drop")


@pytest.mark.parametrize("seed", range(6))
def test_without_an_encoder_deleting_equals_erasing(seed: int) -> None:
    subject = SUBJECTS["without encoder"]
    gone = some_gone(subject, seed)
    deleted, erased = (subject.without(every(subject), gone, how) for how in (DELETE, ATTENTION))
    torch.testing.assert_close(deleted, erased, rtol=1e-12, atol=1e-12)
    other = SUBJECTS["flat"]
    deleted, erased = (other.without(every(other), gone, how) for how in (DELETE, ATTENTION))
    assert not torch.allclose(deleted, erased)


def test_a_trace_erases_as_the_literal_loop_does() -> None:
    subject = SUBJECTS["trace"]
    assert isinstance(subject, TraceReading)
    gone = some_gone(subject)
    decided = subject.decide(every(subject), gone, ATTENTION).tolist()
    for row, decision in enumerate(decided):
        positions = gone[subject.trace.instance(row)].nonzero().squeeze(1).tolist()
        assert decision == oracle.decision(*parts(subject.trace, row), positions)


def test_a_readers_units_lie_in_their_texts() -> None:
    words, sentences = (SUBJECTS[name].units for name in ("flat", "hierarchical"))
    assert words.spans is not None
    assert sentences.spans is not None
    said = [TEXTS.texts[row][begin:end] for row, (begin, end) in zip(words.segments, words.spans.tolist(), strict=True)]
    assert said == [word for text in TEXTS.texts for word in text.split()]
    for row, (begin, end) in zip(sentences.segments, sentences.spans.tolist(), strict=True):
        assert TEXTS.texts[row][begin:end] in TEXTS.texts[row].split("\n")


@pytest.mark.parametrize("by", ["attention", "gradient"])
def test_the_exact_way_and_the_looks_agree_on_a_trace(by: str) -> None:
    subject = SUBJECTS["trace"]
    assert isinstance(subject, TraceReading)
    order, weights = ranked(subject.trace, by), subject.trace.attention_weights
    exact = flips_along(subject, order, weights, how=ATTENTION)
    pd.testing.assert_frame_equal(exact, first_flips(subject.trace, by))
    looked = flips_along(subject, order, weights, how=ATTENTION, grid=Grid(steps=1000))
    pd.testing.assert_frame_equal(looked, exact)


def test_the_exact_way_counts_given_weights_and_refuses_other_ways() -> None:
    subject = SUBJECTS["trace"]
    assert isinstance(subject, TraceReading)
    order, tens = ranked(subject.trace, "attention"), torch.full_like(subject.trace.attention_weights, 10.0)
    exact = flips_along(subject, order, tens, how=ATTENTION)
    pd.testing.assert_frame_equal(exact, flips_along(subject, order, tens, how=ATTENTION, grid=Grid(steps=1000)))
    flipped = exact["erased"].notna()
    assert exact.loc[flipped, "mass"].tolist() == [10.0 * count for count in exact.loc[flipped, "erased"]]
    with pytest.raises(UnknownName, match="way to take units away 'delete'"):
        flips_along(subject, order, tens, how=DELETE)


@dataclass(frozen=True)
class Majority(Reading):
    """Class 1 while more than half of a text's units are there, else class 0; of its own it only has probabilities."""

    ways: tuple[str, ...] = (DELETE,)
    class_names: tuple[str, ...] = ("few", "many")

    @property
    def units(self) -> Units:
        return Units(offsets=torch.tensor([0, 4, 9, 10]))

    @property
    def probabilities(self) -> Tensor:
        return torch.tensor([[0.1, 0.9]] * 3).double()

    def without(self, rows: Tensor, gone: Tensor, how: str) -> Tensor:
        assert how in self.ways
        lengths = self.units.lengths[rows]
        there = segment_sum((~gone).double(), offsets_of(lengths)) / lengths
        many = 0.4 + 0.2 * (there > 0.5)
        return torch.stack([1 - many, many], 1)


def test_flips_of_a_subject_by_hand() -> None:
    order = torch.tensor([3, 2, 1, 0, 4, 5, 6, 7, 8, 9])
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.2, 0.2, 0.2, 0.2, 0.2, 1.0]).double()
    table = flips_along(Majority(), order, weights, how=DELETE)
    assert table["units"].tolist() == [4, 5, 1]
    assert table["erased"].tolist() == [2, 3, 1]
    assert table["fraction"].tolist() == [0.5, 0.6, 1.0]
    assert table["mass"].tolist() == pytest.approx([0.7, 0.6, 1.0])
    assert table["flipped_to"].tolist() == [0, 0, 0]
    coarse = flips_along(Majority(), order, weights, how=DELETE, grid=Grid(steps=1))
    assert coarse["erased"].tolist() == [4, 5, 1]


def test_a_trace_of_a_reader_is_that_of_the_model() -> None:
    reader, model = SUBJECTS["flat"], a_model("flat", "gru")
    torch.testing.assert_close(reader.probabilities, trace(model, TEXTS).probabilities)
