"""Models that must be asked: each change once, and only answers that are probabilities come through."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.random import Generator

import heedful
from heedful.adapters.asking import AskedReading, SubjectError, checked_names, checked_probabilities, probable
from heedful.errors import InputError, UnknownName
from heedful.models.classifier import Classifier
from heedful.probes.reading import ModelReading
from heedful.subjects import DELETE, MASK, Reading, Subject
from heedful.text.corpus import Corpus
from tests.adapters.hostile import WRONG, Predictor, a_good_one

HOSTILE = 1_200


def a_reading(function: Predictor, *texts: str, **how: object) -> Reading:
    return heedful.subject(function, **how).read(texts)  # type: ignore[arg-type]


class Counting:
    """The share of capital letters; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: list[str]) -> list[float]:
        self.asked += texts
        return [sum(sign.isupper() for sign in text) / max(1, len(text)) for text in texts]


def test_every_change_is_asked_about_once() -> None:
    counting = Counting()
    reading = a_reading(counting, "A b C", "d E", mask="_")
    counting.asked.clear()
    assert isinstance(reading, AskedReading)
    rows, gone = torch.tensor([0, 0, 1, 0]), torch.tensor([1, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0]).bool()
    told = reading.without(rows, gone, DELETE)
    assert counting.asked == ["b C", "A C", "d"]
    assert told[:, 1].tolist() == [1 / 3, 2 / 3, 0.0, 1 / 3]
    assert torch.equal(reading.without(rows.flip(0), gone[[8, 9, 10, 6, 7, 3, 4, 5, 0, 1, 2]], DELETE), told.flip(0))
    assert counting.asked == ["b C", "A C", "d"]
    reading.without(rows, gone, MASK)
    assert counting.asked[3:] == ["_ b C", "A _ C", "d _"]
    assert reading.passes == 6


def test_with_nothing_gone_all_ways_are_one() -> None:
    counting = Counting()
    reading = a_reading(counting, "A b", mask="_")
    counting.asked.clear()
    nothing = torch.zeros(2, dtype=torch.bool)
    for how in (DELETE, MASK):
        assert torch.equal(reading.without(torch.tensor([0]), nothing, how), reading.probabilities)
    assert counting.asked == ["A b"]
    assert reading.decisions.tolist() == [0]
    assert reading.decide(torch.tensor([0]), torch.tensor([False, True]), DELETE).tolist() == [1]
    assert reading.without(torch.tensor([], dtype=torch.int64), nothing[:0], DELETE).shape == (0, 2)


def test_another_way_is_refused_with_those_there_are() -> None:
    reading = a_reading(Counting(), "A b")
    with pytest.raises(UnknownName, match=r"no way to take units away 'mask'.*Known: delete"):
        reading.without(torch.tensor([0]), torch.tensor([True, False]), MASK)


def test_hostile_predictors_end_in_a_sentence_each() -> None:
    """NaN, wrong shapes, logits, strings, generators, exceptions, chance: never a traceback, never an answer."""
    said = set()
    for seed in range(HOSTILE):
        generator = np.random.default_rng(seed)
        make = WRONG[seed % len(WRONG)]
        with pytest.raises(SubjectError) as told:
            everything(make(generator), generator)
        sentence = str(told.value)
        assert sentence.startswith(("What wrong says", "wrong ")), (make.__name__, sentence)
        assert sentence.endswith(".")
        assert "\n" not in sentence
        assert len(sentence) < 600
        said.add(sentence[:32])
    assert len(said) == 6


def everything(function: Predictor, generator: Generator) -> None:
    """What a user may do with a subject."""
    reading = a_reading(function, "a good film", "late trouble, I fear", name="wrong")
    gone = torch.from_numpy(generator.random(int(reading.units.offsets[-1])) < 0.5)
    assert reading.probabilities.isfinite().all()
    reading.without(torch.arange(2), gone, DELETE)


def test_good_predictors_are_believed_in_whatever_form_they_answer() -> None:
    for seed in range(60):
        function, plain = a_good_one(np.random.default_rng(seed))
        reading = a_reading(function, "a good film", "dull")
        expected = torch.tensor([plain("a good film"), plain("dull")]).double()
        torch.testing.assert_close(reading.probabilities, expected, rtol=0, atol=1e-3)
        after = reading.without(torch.tensor([0]), torch.tensor([False, True, False]), DELETE)
        torch.testing.assert_close(after, torch.tensor([plain("a film")]).double(), rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ([[0.5, np.nan], [0.5, 0.5]], r"What me says must be finite; .*The first is at \[0, 1\]\."),
        ([[0.5, 0.5], [1.5, -0.5]], r"me must give probabilities, .*it gave 1\.5, -0\.5\. Apply a softmax"),
        ([[0.5, 0.5], [0.2, 0.2]], r"sum to one; of a text it gave 0\.2, 0\.2\."),
        ([[0.5, 0.5]], r"me must give one row of probabilities per text .* expected 2 × 2, got 1 × 2\."),
        ([[0.2, 0.3, 0.5]] * 2, r"one column per class: expected 2 × 2, got 2 × 3\."),
        (0.5, r"got a single number\."),
        (None, r"What me says must be numbers in a regular array: it holds 'None'\."),
        ([["0.5", "0.5"]] * 2, r"must be numbers in a regular array: it holds '0\.5'\."),
        ([[0.5 + 1j, 0.5]] * 2, r"must be numbers in a regular array: it holds '\(0\.5\+1j\)'\."),
        ([[10**400, 0], [0, 1]], r"must be numbers in a regular array: int too large"),
        ([[0.5, 0.5], [1.0]], r"must be numbers in a regular array:"),
    ],
)
def test_what_is_no_probability_is_refused_by_its_sentence(told: object, sentence: str) -> None:
    with pytest.raises(SubjectError, match=sentence):
        checked_probabilities(told, 2, 2, "me")


def test_rounded_probabilities_are_made_to_sum_to_one() -> None:
    told = checked_probabilities(np.array([[0.3333, 0.6664], [1.0004, -0.0004]], dtype=np.float32), 2, 2, "me")
    torch.testing.assert_close(told.sum(1), torch.ones(2).double(), rtol=0, atol=1e-15)
    assert told[1].tolist() == [1.0, 0.0]


def test_one_number_per_text_is_that_of_the_second_class() -> None:
    for told in ([0.25, 1.0], [[0.25], [1.0]], torch.tensor([0.25, 1.0]), pd.Series([0.25, 1.0])):
        assert checked_probabilities(told, 2, None, "me").tolist() == [[0.75, 0.25], [0.0, 1.0]]
    with pytest.raises(SubjectError, match="expected 2 × 3, got 2"):
        checked_probabilities([0.25, 1.0], 2, 3, "me")


def test_logits_by_hand() -> None:
    assert probable(torch.tensor([[0.0, 0.0]]).double()).tolist() == [[0.5, 0.5]]
    told = probable(torch.tensor([3.0]).log()[:, None].double())
    torch.testing.assert_close(told, torch.tensor([[0.25, 0.75]]).double(), rtol=0, atol=1e-7)


@pytest.mark.parametrize("names", ["ab", ["one"], ["same", "same"], []])
def test_class_names_are_two_or_more_and_differ(names: object) -> None:
    with pytest.raises(SubjectError, match="class_names of me must be two different names or more"):
        checked_names(names, "me")  # type: ignore[arg-type]


TROUBLES = [
    ([], "Expected at least one text, got an empty list"),
    (["good", " "], r"A text needs at least one word; number 1 \(the first is 0\), ' ', has none"),
    ([""], "A text needs at least one word; this one has none"),
    (b"good", "Expected a list of texts, one text, .*got bytes"),
    ([b"good"], "Every text must be a string; number 0 .* is none"),
    ([None], "Every text must be a string; number 0 .*None.* is none"),
    (None, "Expected a list of texts, .*got NoneType"),
]


@pytest.mark.parametrize(("texts", "sentence"), TROUBLES)
def test_what_is_no_text_is_refused_by_its_sentence(texts: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        heedful.subject(Counting()).read(texts)  # type: ignore[arg-type]


def test_one_string_is_one_text() -> None:
    assert list(heedful.subject(Counting()).read("A good one").units.shown) == ["A", "good", "one"]


def test_a_lone_surrogate_is_read_as_a_mark() -> None:
    assert list(a_reading(Counting(), "a \ud800 b").units.shown) == ["a", "\ufffd", "b"]


@pytest.mark.parametrize("thing", [3, None, object(), ["a"]])
def test_what_is_no_model_is_refused_with_what_may_be_one(thing: object) -> None:
    with pytest.raises(SubjectError, match=f"A subject is a model of heedful's, .* got {type(thing).__name__}"):
        heedful.subject(thing)


def test_a_model_of_heedfuls_is_a_subject(small_model: Classifier, small_corpus: Corpus) -> None:
    subject = heedful.subject(small_model)
    assert isinstance(subject, Subject)
    assert subject.class_names == small_corpus.class_names
    reading = subject.read(small_corpus.test.texts[:3])
    assert isinstance(reading, ModelReading)
    expected = torch.from_numpy(small_model.predict_proba(small_corpus.test.texts[:3])).double()
    torch.testing.assert_close(reading.probabilities, expected, rtol=0, atol=1e-6)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    subject = heedful.subject(Counting(), watch=lambda done, of: told.append((done, of)))
    reading = subject.read(["A b"] * 700)
    assert reading.probabilities.shape == (700, 2)
    assert told == [(512, 700), (700, 700)]


@pytest.mark.parametrize("wanted", [1, 2])
def test_models_read_with_their_threads_and_leave_them_as_they_were(wanted: int) -> None:
    seen: list[int] = []

    class Counting(torch.nn.Module):
        def forward(self, numbers: torch.Tensor) -> torch.Tensor:
            seen.append(torch.get_num_threads())
            return torch.zeros(len(numbers), 2)

    def says(texts: list[str]) -> list[float]:
        seen.append(torch.get_num_threads())
        return [0.25] * len(texts)

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        module = heedful.subject(
            Counting(), lambda text: [(1, (0, len(text)))], class_names=["no", "yes"], threads=wanted
        )
        for subject in (module, heedful.subject(says, threads=wanted)):
            heedful.explain(subject, ["a film"], by="leave_one_out")
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {wanted}


def test_no_threads_are_refused() -> None:
    with pytest.raises(SubjectError, match=r"threads must be 1 or more; got 0\."):
        heedful.subject(lambda texts: [0.5] * len(texts), threads=0)
