"""The scikit-learn estimator: labels of any kind, searches and pipelines, files, and what it refuses."""

import copy
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

import heedful
from heedful.adapters import ClassifierSubject
from heedful.adapters.functions import FunctionSubject
from heedful.errors import CheckpointError, ConfigError, DataError, HeedfulError, InputError, UnknownName
from heedful.estimator import AttentionClassifier
from heedful.text.splits import hold_out
from heedful.training.objectives import cross_entropy

WORDS, THINGS = ("good", "bad", "dull"), ("film", "plot", "cast", "play", "song", "Set!")
TEXTS = [f"{word} {thing}" for word in WORDS for thing in THINGS]
LABELS = ["yes"] * 6 + ["no"] * 12

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**parameters: Any) -> AttentionClassifier:
    """A classifier that learns the texts above in no time."""
    return AttentionClassifier(
        **{"embedding_size": 8, "epochs": 4, "learning_rate": 0.5, "batch_size": 1, **parameters}
    )


@pytest.fixture(scope="module")
def fitted() -> AttentionClassifier:
    return quick().fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    "labels",
    [
        ["yes", "no", "no"],
        [2, 10, 1],
        [True, False, False],
        [1.0, 2.0, 3.0],
        [np.str_("b"), np.str_("a"), np.str_("a")],
        [np.int8(1), np.int8(0), np.int8(2)],
        [np.bool_(False), np.bool_(True), np.bool_(True)],
    ],
)
@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, lambda y: np.array(y, dtype=object)])
def test_labels_come_back_as_they_went_in(labels: Sequence[Any], kind: Any) -> None:
    given = [labels[number] for number in range(3) for _ in THINGS]
    model = quick().fit(TEXTS, kind(given))
    assert model.classes_.tolist() == sorted(set(given))
    said = model.predict(TEXTS)
    assert said.tolist() == given
    assert {type(label) for label in said.tolist()} == {type(label) for label in np.array(given).tolist()}
    assert model.score(TEXTS, given) == 1.0
    assert model.model_.interface.class_names == tuple(map(str, model.classes_.tolist()))


@pytest.mark.parametrize("kind", [tuple, np.array, pd.Series, lambda X: np.array(X, dtype=object)])
def test_texts_may_be_a_list_an_array_or_a_column(fitted: AttentionClassifier, kind: Any) -> None:
    model = quick().fit(kind(TEXTS), LABELS)
    np.testing.assert_array_equal(model.predict_proba(kind(TEXTS)), fitted.predict_proba(TEXTS))


def test_probabilities_are_those_of_the_model_in_the_order_of_the_classes(fitted: AttentionClassifier) -> None:
    assert fitted.classes_.tolist() == ["no", "yes"]
    said = fitted.predict_proba(TEXTS)
    np.testing.assert_allclose(said, fitted.model_.predict_proba(TEXTS), rtol=0, atol=1e-15)
    assert fitted.predict(TEXTS).tolist() == [["no", "yes"][row] for row in said.argmax(1)]
    margin = fitted.decision_function(TEXTS)
    np.testing.assert_allclose(said[:, 1], 1 / (1 + np.exp(-margin)), rtol=1e-12)


def test_of_three_classes_the_decision_function_has_a_column_for_each() -> None:
    model = quick().fit(TEXTS, [number for number in (5, 3, 4) for _ in THINGS])
    logits = torch.from_numpy(model.decision_function(TEXTS))
    assert logits.shape == (18, 3)
    np.testing.assert_allclose(logits.softmax(1).numpy(), model.predict_proba(TEXTS), rtol=0, atol=1e-15)
    assert not hasattr(model, "n_features_in_")


def test_the_same_texts_and_state_give_the_same_classifier(fitted: AttentionClassifier) -> None:
    np.testing.assert_array_equal(clone(fitted).fit(TEXTS, LABELS).predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    other = quick(random_state=1).fit(TEXTS, LABELS)
    assert np.abs(other.predict_proba(TEXTS) - fitted.predict_proba(TEXTS)).max() > 1e-6
    drawn = [quick(random_state=np.random.RandomState(7)).fit(TEXTS, LABELS).predict_proba(TEXTS) for _ in range(2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])


def test_it_learns_what_fit_learns_of_the_same_texts(fitted: AttentionClassifier) -> None:
    corpus = fitted.corpus_
    model = heedful.fit(corpus, embedding_size=8, epochs=4, learning_rate=0.5, batch_size=1, seed=0)
    np.testing.assert_array_equal(fitted.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert sorted([*corpus.train.texts, *corpus.dev.texts]) == sorted(TEXTS)
    assert len(corpus.dev) == 2  # a tenth of six and of twelve
    assert sorted(corpus.dev.labels.tolist()) == [0, 1]


def test_a_share_of_each_class_is_held_out_and_copies_stay_together() -> None:
    texts = [f"text {number}" for number in range(40)] * 2
    held = hold_out(texts, [number % 2 for number in range(40)] * 2, share=0.25, seed=3)
    assert held.sum() == 20
    np.testing.assert_array_equal(held[:40], held[40:])
    assert held[::2].sum() == 10
    assert hold_out(["a", "b", "c", "d"], [0, 0, 1, 1], share=0.9, seed=0).reshape(2, 2).sum(1).tolist() == [1, 1]


def test_parameters_beyond_its_own_go_through_settings() -> None:
    model = quick(settings={"embedding_range": 0.5, "readout_bias": True}, normaliser="sparsemax").fit(TEXTS, LABELS)
    settings = model.model_.settings
    assert (settings.embedding_range, settings.readout_bias, settings.normaliser) == (0.5, True, "sparsemax")
    numbers = quick().set_params(epochs=np.int64(1), score_scale=np.float32(3))  # as a search sets them
    assert numbers.fit(TEXTS, LABELS).model_.settings.score_scale == 3


def test_a_text_without_words_gets_what_the_bias_says() -> None:
    model = quick(settings={"readout_bias": True}).fit([*TEXTS, "", " "], [*LABELS, "no", "no"])
    bias = model.model_.bias().detach().double().softmax(0).numpy()
    said = model.predict_proba(["", "good film", " \n"])
    np.testing.assert_array_equal(said[[0, 2]], [bias, bias])
    np.testing.assert_array_equal(said[1:2], model.predict_proba(["good film"]))
    np.testing.assert_array_equal(model.predict_proba([""]), [bias])
    assert "" not in model.corpus_.train.texts


def test_a_grid_search_finds_parameters_and_is_a_subject() -> None:
    grid = {"score_scale": [1.0, 10.0], "embedding_size": np.array([4, 8])}
    search = GridSearchCV(quick(), grid, cv=StratifiedKFold(3)).fit(TEXTS, LABELS)
    assert len(search.cv_results_["params"]) == 4
    subject = heedful.subject(search)
    assert isinstance(subject, ClassifierSubject)
    assert subject.model is search.best_estimator_.model_


def test_cross_validation_is_better_than_guessing() -> None:
    texts = [f"{text} {thing}" for text in TEXTS for thing in THINGS]
    labels = ["yes" if text.startswith("good") else "no" for text in texts]
    scores = cross_val_score(quick(), np.array(texts), np.array(labels), cv=StratifiedKFold(3))
    assert scores.min() > 0.9  # always "no" has two thirds


def lowered(texts: Sequence[str]) -> list[str]:
    return [text.lower().replace("!", "") for text in texts]


def test_the_last_step_of_a_pipeline_reads_what_the_others_made() -> None:
    pipeline = make_pipeline(FunctionTransformer(lowered), quick(lowercase=False, epochs=10)).fit(TEXTS, LABELS)
    assert pipeline.score(TEXTS, LABELS) == 1
    assert "set" in pipeline[-1].model_.interface.vocabulary
    assert "!" not in pipeline[-1].model_.interface.vocabulary
    subject = heedful.subject(pipeline)
    assert isinstance(subject, FunctionSubject)  # what happens before the last step is part of it
    assert subject.class_names == ("no", "yes")
    np.testing.assert_allclose(subject.read(TEXTS).probabilities.numpy(), pipeline.predict_proba(TEXTS), atol=1e-15)


@pytest.mark.parametrize("nothing", ["passthrough", None])
def test_a_pipeline_in_which_nothing_happens_before_is_its_classifier(
    fitted: AttentionClassifier, nothing: str | None
) -> None:
    subject = heedful.subject(Pipeline([("clean", nothing), ("classify", fitted)]))
    assert isinstance(subject, ClassifierSubject)
    assert subject.model is fitted.model_


def test_as_a_subject_it_is_its_exact_trace(fitted: AttentionClassifier) -> None:
    subject = heedful.subject(fitted)
    assert subject.class_names == ("no", "yes")
    reading = subject.read(["good film", "dull play"])
    assert reading.ways[0] == "attention"
    np.testing.assert_array_equal(reading.probabilities.numpy(), fitted.predict_proba(["good film", "dull play"]))


def test_its_trace_and_token_scores_are_those_of_its_model(fitted: AttentionClassifier) -> None:
    traced = fitted.trace(["a good film", "dull"])
    assert traced.units == ["a", "good", "film", "dull"]
    assert [fitted.classes_[number] for number in traced.predictions] == ["yes", "no"]
    table = fitted.token_scores()
    pd.testing.assert_frame_equal(table, heedful.token_scores(fitted.model_, fitted.corpus_))
    polarity = table.set_index("token")["polarity"]
    assert polarity["good"] > 0 > polarity["dull"]


def test_it_is_saved_without_pickle_and_comes_back(tmp_path: Path) -> None:
    model = quick(settings={"embedding_range": 0.05}, score_scale=np.float64(5), random_state=3)
    model.fit(TEXTS, [number for number in (10, 2, 3) for _ in THINGS]).save(tmp_path / "kept")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "estimator.json",
        "model.json",
        "model.safetensors",
    ]
    again = AttentionClassifier.load(tmp_path / "kept")
    assert again.get_params() == model.get_params()
    assert again.classes_.tolist() == [2, 3, 10]
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    with pytest.raises(InputError, match="not saved with an estimator"):
        again.token_scores()


def test_a_copy_of_it_says_the_same(fitted: AttentionClassifier) -> None:
    again = copy.deepcopy(fitted)
    assert again.model_ is not fitted.model_
    np.testing.assert_array_equal(again.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_files_that_hold_no_estimator_are_refused(fitted: AttentionClassifier, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"holds no estimator"):
        AttentionClassifier.load(tmp_path)
    fitted.save(tmp_path)
    place, good = tmp_path / "estimator.json", json.loads((tmp_path / "estimator.json").read_text())
    for bad in ("[", "[]", json.dumps(good | {"format": 9}), json.dumps(good | {"parameters": {"depth": 1}})):
        place.write_text(bad)
        with pytest.raises(CheckpointError, match=r"estimator\.json"):
            AttentionClassifier.load(tmp_path)
    place.write_text(json.dumps(good | {"labels": {"dtype": "<U3", "values": ["no", "so"]}}))
    with pytest.raises(CheckpointError, match=r"not those of the model"):
        AttentionClassifier.load(tmp_path)


def test_a_parameter_that_is_no_text_cannot_be_saved(tmp_path: Path) -> None:
    model = quick(epochs=1, settings={"objective": cross_entropy}).fit(TEXTS, LABELS)
    with pytest.raises(InputError, match=r"'objective' .*cross_entropy"):
        model.save(tmp_path)


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        ([1, 2], [0, 1], r"Every text must be a string; number 0"),
        (["a", None], [0, 1], r"Every text must be a string; number 1"),
        (np.zeros((2, 3)), [0, 1], r"in one dimension; got ndarray of shape \(2, 3\)"),
        (pd.DataFrame({"text": TEXTS}), LABELS, r"in one dimension; got DataFrame of shape \(18, 1\)"),
        ("a good film", ["yes"], r"X must be a list of texts, one string for each; got one string"),
        ([], [], r"at least one text"),
        (TEXTS, None, r"requires y to be passed, but the target y is None"),
        (TEXTS, LABELS[1:], r"one label for each text of X: 18 texts, 17 labels"),
        (TEXTS, [3] * 18, r"two classes or more; all 18 labels are 3"),
        (TEXTS, [float("nan"), *LABELS[1:]], r"Every text needs a label; number 0"),
        (TEXTS, np.array([0.0] * 17 + [np.nan]), r"Every text needs a label; number 17"),
        (TEXTS, pd.Series([None, *LABELS[1:]]), r"Every text needs a label; number 0"),
        (TEXTS, [1, *LABELS[1:]], r"all strings, all numbers or all booleans; y holds int, str"),
        (TEXTS, [b"yes"] * 6 + [b"no"] * 12, r"y holds bytes"),
        (TEXTS, np.linspace(0, 1, 18), r"fractions in it, such as 0\.0588"),
        (TEXTS, [[0, 1]] * 18, r"one label per text, in one dimension; got shape \(18, 2\)"),
        (["", *TEXTS], ["none", *LABELS], r"No text of the class 'none' has a word"),
        (["a", "b"], [0, 1], r"every class needs a text to learn from, and one of them two different ones"),
        (["a", "b"] * 3, [0, 1, 1, 0, 0, 1], r"copies of a text stay together"),
    ],
)
def test_what_it_cannot_learn_from_is_a_sentence(X: Any, y: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        quick().fit(X, y)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("parameters", "error", "sentence"),
    [
        ({"validation_fraction": 1.0}, ConfigError, r"between 0 and 1; got 1\.0"),
        ({"validation_fraction": 0.0}, ConfigError, r"between 0 and 1"),
        ({"random_state": "now"}, ConfigError, r"random_state must be .*; got 'now'"),
        ({"settings": {"seed": 1}}, ConfigError, r"it is the parameter random_state"),
        ({"settings": {"epochs": 1}}, ConfigError, r"it is the parameter epochs"),
        ({"settings": {"embeding_range": 1}}, UnknownName, r"Did you mean 'embedding_range'"),
        ({"epochs": 0}, ConfigError, r"'epochs' is 0"),
        ({"attention": "sparse"}, ConfigError, r"'attention' is 'sparse'"),
        ({"tokenizer": "letters"}, UnknownName, r"no tokenizer 'letters'"),
        ({"min_count": 0}, DataError, r"1 or more, not 0"),
    ],
)
def test_a_parameter_that_cannot_be_is_a_sentence(parameters: Any, error: type[HeedfulError], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        quick(**parameters).fit(TEXTS, LABELS)


def test_asked_before_it_is_fitted_it_says_so_to_both_libraries(tmp_path: Path) -> None:
    model = AttentionClassifier()
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    for ask in (model.predict, model.predict_proba, model.decision_function, model.trace):
        with pytest.raises(NotFittedError, match=r"call fit\(texts, labels\) first") as caught:
            ask(TEXTS)
        assert isinstance(caught.value, HeedfulError)
    with pytest.raises(NotFittedError):
        model.save(tmp_path)


CHECKS = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_mixin_order",
    "check_get_params_invariance",
    "check_set_params",
    "check_parameters_default_constructible",
)
"""What of scikit-learn's checks gives an estimator no data; the others hand it tables of numbers."""


@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_of_scikit_learn_that_are_without_numbers_hold(name: str) -> None:
    check = getattr(estimator_checks, name)
    check("AttentionClassifier", AttentionClassifier())


def test_scikit_learn_itself_runs_none_of_its_checks_on_texts() -> None:
    with pytest.warns(SkipTestWarning, match="requires input"):
        assert list(estimator_checks._yield_all_checks(AttentionClassifier(), legacy=True)) == []
    tags = AttentionClassifier().__sklearn_tags__()
    assert (tags.input_tags.string, tags.input_tags.two_d_array, tags.estimator_type) == (True, False, "classifier")


def run(code: str) -> str:
    """What a fresh process prints, without the checks of shapes, which refuse a wrong parameter before it is used."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_no_parameter_is_judged_before_it_is_used() -> None:
    checks = "from sklearn.utils.estimator_checks import check_do_not_raise_errors_in_init_or_set_params as check"
    assert run(f"{checks}; import heedful; check('', heedful.AttentionClassifier()); print('held')") == "held"


def test_without_scikit_learn_the_class_is_there_and_says_how_to_get_it() -> None:
    code = """
import sys
sys.modules["sklearn"] = None
from heedful import AttentionClassifier
try:
    AttentionClassifier(epochs=1)
except Exception as error:
    print(type(error).__name__, error)
"""
    said = run(code)
    assert said.startswith("MissingExtra Estimators need sklearn")
    assert said.endswith("pip install 'heedful[sklearn]'.")
