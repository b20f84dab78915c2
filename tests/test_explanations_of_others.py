"""Objects of Captum, SHAP, ferret, Inseq and transformers-interpret as explanations, with the libraries' own classes.

ferret's dependencies exclude ours (numpy below 2, transformers below 5), so that it is not installed here: `Said` has
the five fields of its `ferret.explainers.explanation.Explanation`, and where ferret is there its own class is tested
too, loaded from its one file. The JSON below was saved by Inseq 0.7.1 from numbers written by hand.
"""

import doctest
import importlib.util
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from captum.attr._utils.visualization import VisualizationDataRecord

from heedful import explanations_of_others as others
from heedful.adapters.asking import word_units
from heedful.errors import InputError
from heedful.explanations_of_others import from_captum, from_ferret, from_inseq, from_pairs, from_shap
from heedful.folding import fold

CLASSES = ["no", "yes"]
TEXTS = ["A dull film", "Good!"]
TOKENS = [["[CLS]", "a", "du", "##ll", "film", "[SEP]"], ["[CLS]", "good", "!", "[SEP]"]]


def test_pairs_are_tokens_with_scores() -> None:
    pairs = [list(zip(own, range(len(own)), strict=True)) for own in TOKENS]
    found = from_pairs(pairs, targets=["no", 1], class_names=CLASSES, method="lig", texts=TEXTS)
    assert found.shown == ["A", "du", "ll", "film", "Good", "!"]
    assert found.scores.tolist() == [1, 2, 3, 4, 1, 2]
    assert (found.targets.tolist(), found.method, found.class_names) == ([0, 1], "lig", ("no", "yes"))
    assert fold(found, word_units(TEXTS)).scores.tolist() == [1, 5, 4, 1, 2]
    numbers: list[Any] = [torch.tensor([0, 1]), np.array([0, 1]), [np.int64(0), "yes"]]
    for targets in numbers:  # such as the decisions of a reading
        assert from_pairs(pairs, targets=targets, class_names=CLASSES, method="lig").targets.tolist() == [0, 1]
    without = from_pairs(pairs, targets=0, class_names=CLASSES, method="lig")
    assert without.shown == [*TOKENS[0], *TOKENS[1]]
    assert fold(without, word_units(TEXTS)).scores.tolist() == [1, 5, 4, 1, 2]


def test_attributions_of_captum_are_summed_over_features_without_padding() -> None:
    weights = torch.tensor([2.0, -1.0])
    attributed = IntegratedGradients(lambda inputs: (inputs @ weights).sum(1)).attribute(
        torch.arange(24.0).reshape(2, 6, 2), n_steps=4
    )
    found = from_captum(attributed, TOKENS, targets=[0, 1], class_names=CLASSES, texts=TEXTS)
    expected = [2 * (2 * place) - (2 * place + 1) for place in (1, 2, 3, 4, 7, 8)]
    assert found.scores.tolist() == pytest.approx(expected)
    assert found.shown == ["A", "du", "ll", "film", "Good", "!"]
    flat = from_captum(attributed.sum(2), TOKENS, targets=[0, 1], class_names=CLASSES, texts=TEXTS)
    assert flat.scores.tolist() == found.scores.tolist()


def record(tokens: list[str], scores: list[float], of: Any) -> VisualizationDataRecord:
    return VisualizationDataRecord(
        word_attributions=torch.tensor(scores),
        pred_prob=0.9,
        pred_class=1,
        true_class=1,
        attr_class=of,
        attr_score=sum(scores),
        raw_input_ids=tokens,
        convergence_score=0.0,
    )


def test_records_of_captum_know_their_tokens_and_classes() -> None:
    records = [record(TOKENS[0], [0, 1, 2, 3, 4, 9.0], "no"), record(TOKENS[1], [0, 0.5, -0.25, 9.0], torch.tensor(1))]
    found = from_captum(records, class_names=CLASSES, texts=TEXTS)
    assert found.targets.tolist() == [0, 1]
    assert fold(found, word_units(TEXTS)).scores.tolist() == [1, 5, 4, 0.5, -0.25]
    alone = from_captum(records[0], targets="yes", class_names=CLASSES)
    assert (alone.targets.tolist(), alone.shown) == ([1], TOKENS[0])


@pytest.fixture(scope="module")
def shap() -> ModuleType:
    """The library itself, which cannot be imported where warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("shap")


def test_values_of_shap_are_those_of_the_largest_output_or_of_the_one_asked_for(shap: ModuleType) -> None:
    values = [np.array([[0, 0], [0.5, -0.5], [-0.25, 0.25]]), np.array([[-0.125, 0.125]])]
    data = (np.array(["A ", "dull ", "film"]), np.array(["Good!"]))
    held = np.empty(2, dtype=object)
    held[:] = values
    said = shap.Explanation(
        values=held, base_values=np.full((2, 2), 0.5), data=data, output_names=CLASSES, compute_time=2.5
    )
    found = from_shap(said)
    assert found.texts == ["A dull film", "Good!"]
    assert found.targets.tolist() == [0, 1]
    assert found.scores.tolist() == [0, 0.5, -0.25, 0.125]
    assert (found.class_names, found.signed, found.seconds) == (("no", "yes"), True, 2.5)
    assert fold(found, word_units(TEXTS)).scores.tolist() == pytest.approx([0, 0.5, -0.25, 0.1, 0.025])
    assert from_shap(said, targets="yes").scores.tolist() == [0, -0.5, 0.25, 0.125]
    assert from_shap(said[0]).scores.tolist() == [0, 0.5, -0.25]
    one = from_shap(said[:, :, 1], class_names=CLASSES)
    assert (one.targets.tolist(), one.scores.tolist()) == ([1, 1], [0, -0.5, 0.25, 0.125])
    assert from_shap(said[0, :, 1], class_names=CLASSES).scores.tolist() == [0, -0.5, 0.25]


def test_pieces_as_a_masker_of_shap_cuts_them_stand_in_their_words(shap: ModuleType) -> None:
    texts = ["a good film, really", "dull dull thing", "one"]
    data = tuple(np.array(shap.maskers.Text(r"\W+").data_transform(text)[0]) for text in texts)
    yes = [np.array([0.25 * ("good" in piece) - 0.125 * ("dull" in piece) for piece in own]) for own in data]
    values = np.empty(3, dtype=object)
    values[:] = [np.stack([-own, own], 1) for own in yes]
    said = shap.Explanation(values=values, base_values=np.full((3, 2), 0.5), data=data, output_names=CLASSES)
    found = fold(from_shap(said, targets=1), word_units(texts))
    assert found.shown == ["a", "good", "film", ",", "really", "dull", "dull", "thing", "one"]
    assert found.scores.tolist() == [0, 0.25, 0, 0, 0, -0.125, -0.125, 0, 0]
    assert from_shap(said).targets.tolist() == [1, 0, 0]


def test_pieces_of_shap_without_spaces_are_aligned_later() -> None:
    said = SimpleNamespace(
        values=[np.array([1.0, 2, 4])], data=[np.array(["▁a", "▁du", "ll"])], base_values=None, output_names="yes"
    )
    found = from_shap(said, class_names=CLASSES)
    assert found.texts is None
    assert fold(found, word_units(["A dull"])).scores.tolist() == [1, 6]


@dataclass
class Said:
    """An explanation as ferret has it."""

    text: str
    tokens: Any
    scores: Any
    explainer: str
    target: int


def ferrets_own() -> type:
    """The class of ferret, from its file: importing the package would import all that it depends on."""
    there = importlib.util.find_spec("ferret")
    if there is None or there.origin is None:
        pytest.skip("ferret is not installed: its dependencies exclude those of heedful")
    place = Path(there.origin).parent / "explainers" / "explanation.py"
    spec = importlib.util.spec_from_file_location("ferret_explanation", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Explanation  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["stand-in", "its own"])
def test_ferret_has_one_explanation_for_each_explainer(kind: str) -> None:
    make = Said if kind == "stand-in" else ferrets_own()
    said = [
        make(text, tokens, np.arange(len(tokens)) * size, explainer, target)
        for text, tokens, target in zip(TEXTS, TOKENS, (0, 1), strict=True)
        for explainer, size in (("Gradient", 1.0), ("LIME", -0.5))
    ]
    found = from_ferret(said, class_names=CLASSES)
    assert [one.method for one in found] == ["Gradient", "LIME"]
    assert [one.targets.tolist() for one in found] == [[0, 1], [0, 1]]
    units = word_units(TEXTS)
    assert fold(found[0], units).scores.tolist() == [1, 5, 4, 1, 2]
    assert fold(found[1], units).scores.tolist() == [-0.5, -2.5, -2, -0.5, -1]
    assert from_ferret(said[0])[0].class_names == ("0", "1")


def inseqs(tokens: list[str], saved: str, side: str = "source") -> dict[str, Any]:
    """What Inseq saves of one text and one generated token, in the form of its version 0.7.1."""
    given = {
        f"{side}_attributions": saved,
        side: [_instance("TokenWithId", token=t, id=n) for n, t in enumerate(tokens)],
    }
    nothing: dict[str, Any] = {"source_attributions": None, "target_attributions": None, "source": [], "target": []}
    sequence = _instance("FeatureAttributionSequenceOutput", **(nothing | given), attr_pos_start=0, attr_pos_end=1)
    notes = {"attribution_method": "saliency", "generated_texts": ["no"], "input_texts": ["A dull film"]}
    return _instance("FeatureAttributionOutput", info=notes, sequence_attributions=[sequence], step_attributions=None)


def _instance(kind: str, **attributes: Any) -> dict[str, Any]:
    return {"__instance_type__": ["inseq.data.attribution", kind], "attributes": attributes}


SAVED = (
    "SAAAAAAAAAB7ImF0dHJpYnV0aW9uIjp7ImR0eXBlIjoiRjMyIiwic2hhcGUiOls1LDFdLCJkYXRhX29mZnNldHMiOlswLDIwXX19ICAgICAAAAA+"
    "AAAAPwAAgD4AAIC9AAAAPQ=="
)
"""As Inseq wrote the column 1/8, 1/2, 1/4, −1/16, 1/32."""


def test_what_inseq_saves_is_read() -> None:
    saved = inseqs(["▁A", "▁dul", "l", "▁film", "</s>"], SAVED)
    found = from_inseq(json.loads(json.dumps(saved)), targets="no", class_names=CLASSES)
    assert (found.method, found.texts, found.signed) == ("saliency", ["A dull film"], True)
    assert found.scores.tolist() == [0.125, 0.5, 0.25, -0.0625]
    assert fold(found, word_units(["A dull film"])).scores.tolist() == [0.125, 0.75, -0.0625]


def test_objects_of_inseq_are_read_and_tokens_after_the_step_left_out() -> None:
    tokens = [SimpleNamespace(token=token, id=0) for token in ("ĠA", "Ġfilm", "Ġno")]
    attributions = torch.tensor([[0.5], [0.25], [float("nan")]])
    sequence = SimpleNamespace(source_attributions=None, target_attributions=attributions, source=[], target=tokens)
    said = SimpleNamespace(sequence_attributions=[sequence], info={"input_texts": ["A film"]})
    found = from_inseq(said, targets=["no"], class_names=CLASSES, method="mine")
    assert (found.shown, found.scores.tolist(), found.method) == (["A", "film"], [0.5, 0.25], "mine")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: from_pairs([["good"]], targets=0, class_names=CLASSES, method="me"), r"a list of pairs"),
        (lambda: from_pairs([[("a", "x")]], targets=0, class_names=CLASSES, method="me"), r"a list of pairs"),
        (
            lambda: from_pairs([[("a", 1.0)]], targets=2, class_names=CLASSES, method="me"),
            r"no class '2'\. Known: no, yes",
        ),
        (lambda: from_pairs([[("a", 1.0)]], targets="maybe", class_names=CLASSES, method="me"), r"no class 'maybe'"),
        (
            lambda: from_pairs([[("a", 1.0)]], targets=[0, 1], class_names=CLASSES, method="me"),
            r"There are 2 targets for 1 text; give one class, or one for each",
        ),
        (
            lambda: from_pairs([[("a", 1.0)]], targets=0, class_names=CLASSES, method="me", texts=[]),
            r"me explains 1 text; 0 are given",
        ),
        (
            lambda: from_pairs([[("a", 1.0)]], targets=0, class_names=CLASSES, method="me", texts=["b"]),
            r"Text 0: Piece 0 .*'a', does not stand",
        ),
        (lambda: from_captum(torch.ones(1, 2)), r"need the tokens of each text"),
        (lambda: from_captum(torch.ones(1, 2), [["a"], ["b"]]), r"are of 1 text, the tokens of 2"),
        (lambda: from_captum(torch.ones(1, 2), [["a", "b", "c"]]), r"Text 0 has 3 tokens; .* got 2"),
        (lambda: from_captum(torch.ones(1, 2), [["a", "b"]], class_names=CLASSES), r"give targets"),
        (lambda: from_captum(torch.ones(1, 2), [["a", "b"]], targets=0), r"give class_names"),
        (lambda: from_ferret([SimpleNamespace(text="a", tokens=["a"])]), r"number 0 lacks scores"),
        (lambda: from_inseq({}, targets=0, class_names=CLASSES), r"sequence_attributions; there are none"),
        (
            lambda: from_inseq(inseqs(["▁A"], "c29tZQ=="), targets=0, class_names=CLASSES),
            r"saved by Inseq cannot be read",
        ),
        (
            lambda: from_shap(
                SimpleNamespace(values=[np.ones((1, 3))], data=[np.array(["a"])], output_names=list("abc")),
                targets=0,
                class_names=CLASSES,
            ),
            r"values have 3 outputs; the classes are no, yes",
        ),
        (
            lambda: from_shap(SimpleNamespace(values=[np.ones((1, 3, 3))], data=[np.array(["a"])])),
            r"one number, or one per class",
        ),
    ],
)
def test_what_does_not_fit_is_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()


def test_the_examples_do_what_they_say() -> None:
    assert doctest.testmod(others) == (0, 4)
