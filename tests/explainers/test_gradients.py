"""Gradients at the vectors of tokens: finite differences, completeness, layers that DeepLIFT has rules for."""

from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import heedful
from heedful.adapters.pieces import PieceReading
from heedful.errors import InputError, UnknownName
from heedful.explainers import EXPLAINERS, explain_all, find_explainer, possible
from heedful.explainers.gradients import TOLERANCE, leads, missed_sums
from heedful.models.classifier import Classifier
from heedful.probes.saliency import Saliency
from heedful.studies.compare import compare
from heedful.subjects import MASK, Reading
from heedful.text.corpus import Corpus
from tests.adapters.test_modules import TEXTS as WORDS
from tests.adapters.test_modules import Attentive, a_subject, encode
from tests.covering import covers
from tests.explainers.test_attention import reading_of, rows
from tests.tiny_transformers import FAMILIES, made

pytestmark = pytest.mark.usefixtures("one_thread")

GRADIENTS = ["input_gradient", "gradient_norm", "integrated_gradients"]


class Bag(nn.Module):
    """The mean of the vectors of tokens, through a layer that bends."""

    def __init__(self, outputs: int = 3) -> None:
        super().__init__()
        self.embedding, self.first = nn.Embedding(60, 4), nn.Linear(4, 8)
        self.bend, self.second = nn.ReLU(), nn.Linear(8, outputs)

    def forward(self, numbers: Tensor) -> Tensor:
        told: Tensor = self.second(self.bend(self.first(self.embedding(numbers).mean(1))))
        return told


@cache
def bag(outputs: int = 3) -> Bag:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = Bag(outputs)
        with torch.no_grad():
            for values in module.parameters():
                values.mul_(2)
    return module


def bag_reading(outputs: int = 3, **how: Any) -> PieceReading:
    names = ["no", "yes"] if outputs == 1 else ["a", "b", "c"]
    found = heedful.subject(bag(outputs), encode, class_names=names, **how).read(WORDS)
    assert isinstance(found, PieceReading)
    return found


def nothing_left(reading: Reading, how: str = MASK) -> Tensor:
    """What is said of the texts when all units are masked."""
    gone = torch.ones(int(reading.units.offsets[-1]), dtype=torch.bool)
    return reading.without(torch.arange(len(reading.units)), gone, how)


def sums(found: heedful.Explanation) -> Tensor:
    return torch.zeros(len(found)).double().index_add_(0, found.segments, found.scores)


@covers(explainer=("input_gradient", "gradient_norm"))
@pytest.mark.parametrize("outputs", [1, 3])
def test_gradients_are_those_of_finite_differences(outputs: int) -> None:
    """Of p of a class, for every feature of the vector of every token."""
    reading, module = bag_reading(outputs), bag(outputs)
    product, norm = explain_all(reading, ["input_gradient", "gradient_norm"], targets=1)
    for row, text in enumerate(WORDS):
        vectors = module.embedding.weight[[number for number, _ in encode(text)]].detach().double()
        expected = slopes(module, vectors)
        assert rows(product)[row] == pytest.approx((vectors * expected).sum(1).tolist(), abs=1e-6)
        assert rows(norm)[row] == pytest.approx(expected.norm(dim=1).tolist(), abs=1e-6)
    assert product.passes == norm.passes == len(WORDS)


def slopes(module: Bag, vectors: Tensor) -> Tensor:
    parts = [(part.weight.detach().double(), part.bias.detach().double()) for part in (module.first, module.second)]

    def said(given: Tensor) -> float:
        (a, b), (c, d) = parts
        logits = c @ (a @ given.mean(0) + b).clamp(min=0) + d
        return float(logits.sigmoid() if len(logits) == 1 else logits.softmax(0)[1])

    found = torch.zeros_like(vectors)
    for place in range(vectors.numel()):
        step = torch.zeros_like(vectors)
        step.view(-1)[place] = 1e-6
        found.view(-1)[place] = (said(vectors + step) - said(vectors - step)) / 2e-6
    return found


@covers(explainer=("integrated_gradients",))
@pytest.mark.parametrize("family", FAMILIES)
def test_integrated_gradients_of_transformers_are_complete(family: str) -> None:
    """They sum to p(x) − p(all masked) to 0.005, though the weights are wild: steps are doubled where they do not."""
    reading = reading_of(family)
    found = heedful.explain(reading, by="integrated_gradients", targets=1)
    gained = (reading.probabilities - nothing_left(reading))[:, 1]
    assert (sums(found) - gained).abs().max() <= TOLERANCE + 1e-5
    assert (found.passes or 0) >= 22 * len(found)


@pytest.mark.parametrize(("kind", "tolerance"), [("bag", 1e-2), ("lstm", 1e-6)])
def test_integrated_gradients_of_modules_are_complete(kind: str, tolerance: float) -> None:
    """Kinks cost steps: a hundred leave 0.006 where a layer has them."""
    reading = bag_reading(mask=1) if kind == "bag" else a_subject().read(WORDS)
    for target in range(3):
        found = heedful.explain(reading, by="integrated_gradients@100", targets=target)
        gained = (reading.probabilities - nothing_left(reading))[:, target]
        assert (sums(found) - gained).abs().max() < tolerance
        assert found.passes == 102 * len(found)


def test_more_steps_only_where_they_are_needed_and_a_given_number_is_kept() -> None:
    reading = reading_of("llama")
    free, few = (
        heedful.explain(reading, by="integrated_gradients"),
        heedful.explain(reading, by="integrated_gradients@2"),
    )
    assert few.passes == 4 * len(few)
    gained = (reading.probabilities - nothing_left(reading)).gather(1, reading.decisions[:, None]).squeeze(1)
    missed = (sums(few) - gained).abs()
    assert missed.max() > 0.01
    assert few.remark.startswith(
        f"The scores of {int((missed > TOLERANCE).sum())} of {len(few)} texts do not sum to what separates the text "
        f"from nothing: they miss it by up to {missed.max():.3f}"
    )
    assert few.remark in repr(few)
    assert free.remark == ""
    assert (free.passes or 0) > 22 * len(free)
    assert (sums(free) - gained).abs().max() <= TOLERANCE + 1e-5


def test_sums_that_are_missed_are_said_where_explanations_are_measured() -> None:
    reading = reading_of("llama")
    explained = heedful.explain(reading, by="integrated_gradients@2")
    found = heedful.faithfulness(reading, [explained, heedful.explain(reading, by="random")], ["gini"])
    assert found.remarks == {"integrated_gradients@2": explained.remark}
    assert explained.remark in found._repr_html_()
    compared = compare(reading, by=["integrated_gradients@2", "random"], metrics=["aopc"])
    assert f"Of integrated_gradients@2: {explained.remark}" in compared.section().note


def test_of_own_models_too_what_is_missed_is_said() -> None:
    assert missed_sums(torch.tensor([0.0, 0.004, 1e-4]).double(), 1e-3).startswith(
        "The scores of 1 of 3 texts do not sum to what separates the text from nothing: they miss it by up to 0.004"
    )
    assert missed_sums(torch.tensor([0.001], dtype=torch.float64), 1e-3) == ""


def test_the_text_of_nothing_can_be_chosen() -> None:
    """Masks, padding, or zeros; special tokens stay, and have no share."""
    reading = reading_of("bert")
    found = {
        name: heedful.explain(reading, by="integrated_gradients", baseline=name) for name in ("mask", "pad", "zero")
    }
    usual = heedful.explain(reading, by="integrated_gradients")
    assert torch.equal(found["mask"].scores, usual.scores)
    assert not torch.allclose(found["pad"].scores, usual.scores)
    assert not torch.allclose(found["zero"].scores, found["pad"].scores)
    with pytest.raises(UnknownName, match=r"no baseline 'mark'. Did you mean 'mask'"):
        heedful.explain(reading, by="integrated_gradients", baseline="mark")
    with pytest.raises(InputError, match=r"Bag has no token 'pad'; take baseline='zero'"):
        heedful.explain(bag_reading(), by="integrated_gradients", baseline="pad")


@covers(explainer=("deep_lift",))
@pytest.mark.parametrize("outputs", [1, 3])
def test_deep_lift_sums_to_what_the_logit_gains(outputs: int) -> None:
    reading, module = bag_reading(outputs, mask=1), bag(outputs)
    found = heedful.explain(reading, by="deep_lift", targets=1)
    for row, text in enumerate(WORDS):
        numbers = [number for number, _ in encode(text)]
        with torch.no_grad():
            told = module(torch.tensor([numbers, [1] * len(numbers)])).double()
        lead = told[:, 0] if outputs == 1 else told[:, 1] - (told[:, 0] + told[:, 2]) / 2
        assert sum(rows(found)[row]) == pytest.approx(float(lead[0] - lead[1]), abs=1e-5)
    assert leads(torch.tensor([[1.0, 4.0, 2.0]])).tolist() == [[-2, 2.5, -0.5]]


def test_what_deep_lift_has_no_rule_for_is_said() -> None:
    lift = EXPLAINERS["deep_lift"]
    assert lift.why_not(a_subject().read(WORDS)).startswith(
        "DeepLIFT has no rule for something in Attentive (products such as attention, recurrent layers): its scores"
    )
    assert lift.why_not(reading_of("bert")).startswith("DeepLIFT has no rule for attention")
    assert lift.name in possible(bag_reading())


def test_modules_keep_their_gradients_modes_and_hooks() -> None:
    module = Attentive()
    module.train()
    module.lstm.eval()
    reading = a_subject(module, class_names=["a", "b", "c"]).read(WORDS)
    explain_all(reading, GRADIENTS)
    assert (module.training, module.lstm.training, module.dropout.training) == (True, False, True)
    assert all(values.grad is None for values in module.parameters())
    assert not any(part._forward_hooks or part._backward_hooks for part in module.modules())


def test_a_module_whose_tokens_are_looked_up_otherwise_is_refused() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList([nn.Embedding(60, 3), nn.Embedding(60, 3)])

        def forward(self, numbers: Tensor) -> Tensor:
            return sum((table(numbers).mean(1) for table in self.tables), torch.zeros(()))

    two = heedful.subject(Counting(), encode, class_names=["a", "b", "c"]).read(WORDS)
    assert (
        EXPLAINERS["input_gradient"].why_not(two)
        == "Counting must have one nn.Embedding, that of its tokens; it has 2."
    )

    class Weighing(Bag):
        def forward(self, numbers: Tensor) -> Tensor:
            told: Tensor = self.second(self.bend(self.first(self.embedding.weight[numbers].mean(1))))
            return told

    other = heedful.subject(Weighing(), encode, class_names=["a", "b", "c"]).read(WORDS)
    assert EXPLAINERS["input_gradient"].why_not(other) == (
        "Weighing does not read its tokens from the table that was found."
    )
    function = heedful.subject(lambda texts: [0.5] * len(texts)).read(["a"])
    assert EXPLAINERS["gradient_norm"].why_not(function).startswith("it needs a model whose gradients can be taken")


def test_sure_decisions_have_gradients() -> None:
    """Probabilities that are one in single precision."""
    model, tokenizer = made("bert")
    with torch.no_grad():
        model.classifier.bias += torch.tensor([25.0, 0, 0])
    reading = heedful.subject(model, tokenizer).read(["a good film"])
    assert reading.probabilities.float()[0, 0] == 1
    assert (heedful.explain(reading, by="input_gradient").scores != 0).all()


def test_of_own_models_they_are_those_of_saliency(small_corpus: Corpus, small_model: Classifier) -> None:
    texts = list(small_corpus.test.texts[:5])
    reading = heedful.subject(small_model).read(texts)
    saliency = Saliency.of(small_model, small_model.interface.read(texts))
    found = explain_all(reading, GRADIENTS)
    for one, name in zip(found, ["input_gradient", "full_gradient_norm", "integrated_gradient"], strict=True):
        torch.testing.assert_close(one.scores, saliency.numbers(name), rtol=1e-6, atol=1e-12)
    other = heedful.explain(reading, by="input_gradient", targets=1 - reading.decisions)
    torch.testing.assert_close(other.scores, -found[0].scores)  # of two classes one loses what the other gains
    with pytest.raises(InputError, match=r"Of heedful's own models the baseline is 'zero'"):
        heedful.explain(reading, by="integrated_gradients", baseline="mask")


def test_what_integrated_gradients_cost_is_known_beforehand() -> None:
    """Each text is read once for each step and at both ends; by default some are read again, with twice the steps."""
    reading = bag_reading()
    cost = {by: find_explainer(f"integrated_gradients{by}").cost(reading.units).texts for by in ("@30", "")}
    assert cost["@30"] == 32 * len(WORDS) == heedful.explain(reading, by="integrated_gradients@30").passes
    assert cost[""] == (22 + 42) * len(WORDS)
