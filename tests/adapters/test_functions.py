"""Texts without some of their words, and scikit-learn pipelines."""

import doctest
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC

import heedful
from heedful.adapters import functions
from heedful.adapters.asking import SubjectError, word_units
from heedful.adapters.functions import text_without
from heedful.subjects import DELETE, MASK
from tests import strategies

TEXTS = ["a good film", "good acting , a fine film", "a dull film", "dull and long", "good good", "so dull !"]


def without(text: str, *gone: int, filler: str | None = None) -> str:
    """The text without the units of these numbers."""
    spans = word_units([text]).spans
    assert spans is not None
    return text_without(text, spans.tolist(), [number in gone for number in range(len(spans))], filler)


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("a good film", (), "a good film"),
        ("a good film", (1,), "a film"),
        ("a good film", (0,), "good film"),
        ("a good film", (2,), "a good"),
        ("a good film", (0, 2), "good"),
        ("a good film", (0, 1, 2), ""),
        ("good", (0,), ""),
        ("a good film!", (2,), "a good!"),
        ("a good film ! it is", (2,), "a good ! it is"),
        ("a good film!? it is", (2,), "a good!? it is"),
        ("a (good film), it is", (3,), "a (good), it is"),
        ("a good film, it is", (1, 2), "a, it is"),
        ("3 films.5", (1,), "3 .5"),
        ("a well-made", (1,), "a -made"),
        ('a "good" film', (2,), 'a "" film'),
        ("a good film!", (3,), "a good film"),
        ("so, a film", (1,), "so a film"),
        ("so, a film", (0,), ", a film"),
        ("so , a film", (1,), "so a film"),
        ("well-made", (1,), "well made"),
        ("well-made", (0,), "-made"),
        ("well-made", (2,), "well-"),
        ("(good)", (1,), "()"),
        ("good!!!", (1, 2), "good!"),
        ("don't go", (0,), "go"),
        ("  a  good\nfilm \t", (1,), "  a  film \t"),
        ("  a  good\nfilm \t", (0,), "  good\nfilm \t"),
        ("  a  good\nfilm \t", (2,), "  a  good \t"),
        ("a 👍🏽 film", (1,), "a film"),
        ("a👍🏽film", (1,), "a film"),
        ("👍👍🏽👍", (1,), "👍 👍"),
        ("好电影。真好", (1,), "好电影 真好"),
        ("x''y", (1,), "x 'y"),
    ],
)
def test_texts_without_words_by_hand(text: str, gone: tuple[int, ...], left: str) -> None:
    assert without(text, *gone) == left


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("a good film", (1,), "a ___ film"),
        ("a good film", (0, 1, 2), "___ ___ ___"),
        ("good!", (0,), "___ !"),
        ("good!", (1,), "good ___"),
        ("well-made", (1,), "well ___ made"),
        (" a\nfilm ", (1,), " a\n___ "),
    ],
)
def test_a_filler_stands_by_itself(text: str, gone: tuple[int, ...], left: str) -> None:
    assert without(text, *gone, filler="___") == left


def test_the_example_does_what_it_says() -> None:
    assert doctest.testmod(functions) == (0, 4)


@given(text=strategies.texts, seed=strategies.seeds)
def test_the_units_that_are_left_are_the_units_of_what_is_left(text: str, seed: int) -> None:
    if not text.strip() or not len(word_units(["x " + text]).shown):
        return
    units = word_units([f"x {text}"])
    gone = torch.rand(len(units.shown), generator=torch.Generator().manual_seed(seed)) < 0.5
    gone[0] = False
    left = without(f"x {text}", *gone.nonzero().squeeze(1).tolist())
    assert word_units([left]).shown == [unit for unit, out in zip(units.shown, gone.tolist(), strict=True) if not out]


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return fitted(["yes", "yes", "no", "no", "yes", "no"])


def fitted(labels: list[Any]) -> Pipeline:
    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, labels)


def test_a_pipeline_says_what_it_predicts(pipeline: Pipeline) -> None:
    subject = heedful.subject(pipeline)
    assert subject.name == "Pipeline"
    assert subject.class_names == ("no", "yes")
    reading = subject.read(TEXTS)
    np.testing.assert_allclose(reading.probabilities.numpy(), pipeline.predict_proba(TEXTS), rtol=0, atol=1e-15)
    assert reading.ways == (DELETE,)


def test_a_deleted_word_is_the_text_without_it(pipeline: Pipeline) -> None:
    reading = heedful.subject(pipeline, mask="unknown").read(["a good film , not dull"])
    gone = torch.eye(6, dtype=torch.bool)
    told = reading.without(torch.zeros(6, dtype=torch.int64), gone.flatten(), DELETE)
    words = ["a", "good", "film", ",", "not", "dull"]
    shorter = [" ".join(word for place, word in enumerate(words) if place != out) for out in range(6)]
    np.testing.assert_allclose(told.numpy(), pipeline.predict_proba(shorter), rtol=0, atol=1e-15)
    masked = reading.without(torch.tensor([0]), gone[1], MASK)
    expected = pipeline.predict_proba(["a unknown film , not dull"])
    np.testing.assert_allclose(masked.numpy(), expected, rtol=0, atol=1e-15)
    everything = reading.without(torch.tensor([0]), torch.ones(6, dtype=torch.bool), DELETE)
    np.testing.assert_allclose(everything.numpy(), pipeline.predict_proba([""]), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([1, 1, 0, 0, 1, 0], ("0", "1")),
        ([True, True, False, False, True, False], ("False", "True")),
        ([2.0, 2.0, -1.0, -1.0, 7.0, -1.0], ("-1.0", "2.0", "7.0")),
        (["ja", "ja", "nein", "nein", "nun", "nein"], ("ja", "nein", "nun")),
    ],
)
def test_labels_of_any_kind(labels: list[Any], names: tuple[str, ...]) -> None:
    reading = heedful.subject(fitted(labels)).read(TEXTS)
    assert reading.class_names == names
    assert [names[number] for number in reading.decisions.tolist()] == list(map(str, fitted(labels).predict(TEXTS)))


def test_a_classifier_without_probabilities_is_refused() -> None:
    with pytest.raises(SubjectError, match=r"Pipeline has no predict_proba: .*CalibratedClassifierCV"):
        heedful.subject(make_pipeline(TfidfVectorizer(), LinearSVC()).fit(TEXTS, [1, 1, 0, 0, 1, 0]))
    with pytest.raises(SubjectError, match="LinearSVC has no predict_proba"):
        heedful.subject(LinearSVC())


def test_a_pipeline_that_is_not_fitted_is_refused() -> None:
    bare = make_pipeline(TfidfVectorizer(), LogisticRegression())
    with pytest.raises(SubjectError, match="Pipeline has no classes_: fit it first"):
        heedful.subject(bare)
    with pytest.raises(SubjectError, match=r"mine failed on a list of 2 texts .*NotFittedError"):
        heedful.subject(bare, name="mine", class_names=["no", "yes"])


def test_more_classes_than_names_and_fewer_are_refused(pipeline: Pipeline) -> None:
    with pytest.raises(SubjectError, match="expected 2 × 3, got 2 × 2"):
        heedful.subject(pipeline, class_names=["no", "yes", "perhaps"])
    with pytest.raises(SubjectError, match="expected 2 × 2, got 2 × 3"):
        heedful.subject(lambda texts: [[0.2, 0.3, 0.5]] * len(texts), class_names=["no", "yes"])


def test_an_empty_filler_is_refused(pipeline: Pipeline) -> None:
    with pytest.raises(SubjectError, match=r"mask of Pipeline must be a word that .*; got ''"):
        heedful.subject(pipeline, mask="")


def test_a_function_that_says_something_else_the_next_time_is_refused() -> None:
    generator = np.random.default_rng(0)
    with pytest.raises(SubjectError, match=r"dice says something else of the same text .*evaluation mode"):
        heedful.subject(lambda texts: generator.dirichlet([1, 1], size=len(texts)), name="dice")


class Own:
    """No pipeline of scikit-learn, and enough of one."""

    classes_ = ("no", "yes")

    def predict_proba(self, texts: list[str]) -> np.ndarray[Any, Any]:
        return np.full((len(texts), 2), 0.5)


def test_what_predicts_like_a_pipeline_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert heedful.subject(Own()).read(["a"]).probabilities.tolist() == [[0.5, 0.5]]
