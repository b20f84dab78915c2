"""Noise at what a model reads: how far vectors move, that nothing else does, and how sensitive explanations are."""

import copy
import math

import pytest
import torch

import heedful
from heedful.errors import InputError
from heedful.explainers.gradients import table_of
from heedful.explainers.noise import Noise, moved, no_noise, under_noise
from heedful.models.classifier import Classifier
from heedful.studies.compare import compare
from heedful.subjects import DELETE
from heedful.text.corpus import Corpus
from tests.adapters.test_modules import TEXTS as WORDS
from tests.adapters.test_modules import a_subject, encode
from tests.explainers.test_attention import reading_of
from tests.explainers.test_gradients import bag, bag_reading
from tests.tiny_transformers import FAMILIES

NOT_GIVEN = "not measured: give again=, a function that explains under noise (heedful.explainers.noise)"

pytestmark = pytest.mark.usefixtures("one_thread")


def test_every_vector_moves_by_its_share_the_same_way_wherever_its_token_stands() -> None:
    numbers = torch.tensor([[5, 7, 5], [7, 9, 0]])
    vectors = torch.arange(24.0).reshape(2, 3, 4)
    vectors[0, 2], vectors[1, 2] = vectors[0, 0], 0.0
    found = Noise(0, 0.25).at(numbers, vectors)
    torch.testing.assert_close(found.norm(dim=2), 0.25 * vectors.norm(dim=2))
    assert torch.equal(found[0, 0], found[0, 2])
    torch.testing.assert_close(found[0, 1] / found[0, 1].norm(), found[1, 0] / found[1, 0].norm())
    assert found[1, 2].tolist() == [0.0] * 4
    assert torch.equal(Noise(0, 0.25).at(numbers, vectors), found)
    assert not torch.allclose(Noise(1, 0.25).at(numbers, vectors), found)


def test_a_reading_under_noise_is_that_of_a_module_whose_table_moved() -> None:
    reading, shifted = bag_reading(), copy.deepcopy(bag())
    with torch.no_grad():
        table = shifted.embedding.weight
        table += Noise(3, 0.1).at(torch.arange(len(table)), table)
    expected = heedful.subject(shifted, encode, class_names=["a", "b", "c"]).read(WORDS)
    before = reading.probabilities.clone()
    with moved(reading, 3, 0.1) as other:
        torch.testing.assert_close(other.probabilities, expected.probabilities)
        for by in ("leave_one_out", "input_gradient"):
            told, own = (heedful.explain(one, by=by, targets=0).scores for one in (other, expected))
            torch.testing.assert_close(told, own)
    assert not torch.allclose(expected.probabilities, before, atol=1e-4)
    assert torch.equal(bag_reading().probabilities, before)
    assert not table_of(reading)._forward_hooks


def test_small_noise_moves_an_explanation_in_proportion() -> None:
    reading = a_subject().read(WORDS)
    said = heedful.explain(reading, by="input_gradient")
    sizes = []
    for radius in (1e-3, 1e-2):
        again = {"input_gradient": under_noise(reading, "input_gradient", radius=radius)}
        sizes.append(float(heedful.faithfulness(reading, said, ["sensitivity"], again=again).table["value"].iloc[0]))
    assert sizes[1] / sizes[0] == pytest.approx(10, rel=0.15)


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_explained_under_noise(family: str) -> None:
    reading = reading_of(family)
    before = {name: value.clone() for name, value in reading.subject.model.state_dict().items()}
    for by in ("attention", "leave_one_out", "input_gradient"):
        usual, again = heedful.explain(reading, by=by), under_noise(reading, by)
        one, same, other = again(0), again(0), again(1)
        assert torch.equal(one.targets, usual.targets)
        assert torch.equal(one.scores, same.scores)
        assert not torch.equal(one.scores, usual.scores)
        assert not torch.equal(one.scores, other.scores)
    after = reading.subject.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_of_own_models_and_of_modules_with_parts_the_trace_moves(small_model: Classifier, small_corpus: Corpus) -> None:
    texts = list(small_corpus.test.texts[:6])
    for reading in (heedful.subject(small_model).read(texts), a_subject().read(WORDS)):
        for by in ("attention", "gradient", "leave_one_out"):
            usual, one = heedful.explain(reading, by=by), under_noise(reading, by, radius=0.01)(0)
            assert one.scores.shape == usual.scores.shape
            assert 0 < float((one.scores - usual.scores).norm() / usual.scores.norm()) < 0.5


def test_sensitivity_is_measured_where_it_is_asked_for() -> None:
    reading = reading_of("bert")
    found = compare(reading, by=["attention", "leave_one_out", "random"], metrics=["sensitivity", "aopc"])
    table = found.measured.table.set_index(["metric", "method"])["value"]["sensitivity"]
    assert table["random"] == 0
    assert math.isclose(table["attention"], float(heedful.faithfulness(
        reading, heedful.explain(reading), ["sensitivity"], again={"attention": under_noise(reading)}
    ).table["value"].iloc[0]))  # fmt: skip
    assert 0 < table["attention"] < math.inf
    cheap = compare(reading, by=["attention", "random"], metrics=["aopc"])
    assert set(cheap.measured.table["metric"]) == {"aopc"}


def test_where_there_is_no_noise_it_is_said() -> None:
    finds = heedful.subject(lambda texts: [0.75 if "good" in text else 0.25 for text in texts]).read(["a good film"])
    assert "it needs a model with vectors of tokens" in no_noise(finds)
    with pytest.raises(InputError, match="There is no noise at what this model reads: it needs a model with vectors"):
        under_noise(finds, "leave_one_out")
    found = compare(finds, by=["leave_one_out", "random"], metrics=["sensitivity"], how=DELETE)
    assert set(found.measured.table["remark"]) == {NOT_GIVEN}
    with pytest.raises(InputError, match=r"radius is a share of a vector's length, between 0 and 1; got 2\.0"):
        under_noise(reading_of("bert"), radius=2.0)
