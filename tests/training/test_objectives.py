"""What training minimises: the usual loss by hand, and objectives on attention itself against plain autograd."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.config import ModelSettings, TrainingSettings
from heedful.models.classifier import Classifier, Output
from heedful.text.corpus import Corpus
from heedful.text.ragged import Batch, segment_sum, segments_of
from heedful.text.synthetic import binary
from heedful.traces import Trace
from heedful.tracing import trace
from heedful.training.loop import fit, training_step
from heedful.training.objectives import alignment_penalty, cross_entropy
from heedful.training.state import TrainingState
from tests.models.test_classifier import make_batch, make_model
from tests.models.test_hierarchical import documents_of_sentences
from tests.oracles.classifiers import encode

pytestmark = pytest.mark.usefixtures("one_thread")

DOCUMENTS = [[[1, 2, 2], [5]], [[3, 1, 4, 1, 5]], [[6], [6, 2], [6, 5, 3]]]
INSTANCES = [4, 0, 2]
"""Which rows of the split the documents are."""


@dataclass(frozen=True)
class Adversary:
    """Outputs like those given and attention unlike it: mean over documents of TVD(p, q) − λ KL(α ‖ β)."""

    probabilities: Tensor
    weights: list[Tensor]
    strength: float

    def __call__(self, _model: Classifier, batch: Batch, output: Output) -> Tensor:
        own, units = output.logits.softmax(1), output.units
        distance = (own - self.probabilities[batch.instances].to(own)).abs().sum(1) / 2
        given = torch.cat([self.weights[number] for number in batch.instances.tolist()]).to(own)
        alpha = units.attention_weights
        return (distance - self.strength * segment_sum(alpha * (alpha / given).log(), units.offsets)).mean()


@dataclass(frozen=True)
class Deceiver:
    """Cross-entropy, and −λ log of the mass outside the impermissible tokens (Pruthi et al. 2020)."""

    impermissible: set[int]
    strength: float

    def __call__(self, model: Classifier, batch: Batch, output: Output) -> Tensor:
        allowed = torch.tensor([token not in self.impermissible for token in batch.tokens.tolist()])
        mass = segment_sum(output.units.attention_weights * allowed, output.units.offsets)
        return cross_entropy(model, batch, output) - self.strength * mass.log().mean()


def test_cross_entropy_of_two_classes_is_that_of_the_paper() -> None:
    model, batch = make_model(), replace(make_batch([1, 2], [3]), labels=torch.tensor([1, 0]))
    output = model(batch)
    s = output.logits[:, 1].tolist()
    expected = (math.log1p(math.exp(-s[0])) + math.log1p(math.exp(s[1]))) / 2
    assert cross_entropy(model, batch, output).item() == pytest.approx(expected, abs=1e-15)


def test_the_penalty_by_hand() -> None:
    model = make_model(3, embedding_size=2)
    with torch.no_grad():
        model.attention.context_vector.copy_(torch.tensor([1.0, 2.0]))
        model.readout_weight.copy_(torch.tensor([[1.0, 0.0], [0.0, -3.0], [2.0, -1.0]]))
    assert alignment_penalty(model, 0.5).item() == 0.5 * (1 + 6 + 0)


def start(structure: str, encoder: str, attention: str, **training: Any) -> tuple[TrainingState, TrainingSettings]:
    """A small model in double precision about to be trained by plain gradient descent at rate 1."""
    usual = {"optimizer": "sgd", "learning_rate": 1.0, "learning_rate_decay": 0.0}
    settings = TrainingSettings.of(usual | training)
    model = ModelSettings.of(
        {"structure": structure, "encoder": encoder, "attention": attention, "embedding_size": 3, "hidden_size": 4,
         "dropout": 0.0, "score_scale": 0.5, "embedding_range": 1.0, "readout_bias": True,
         "attention_bias": attention == "additive"}
    )  # fmt: skip
    state = TrainingState.start(make_model(3).interface, model, settings)
    state.model.double()
    return state, settings


def literal_pass(parameters: dict[str, Tensor], settings: ModelSettings) -> tuple[list[Tensor], list[Tensor]]:
    """Logits of each document and weights of its units, one document at a time, in plain torch."""

    def weights_of(hidden: list[Tensor], name: str) -> Tensor:
        rows = torch.stack(hidden)
        if settings.attention == "additive":
            rows = torch.tanh(rows @ parameters[f"{name}.projection"].T + parameters[f"{name}.bias"])
        return torch.softmax(rows @ parameters[f"{name}.context_vector"] / settings.score_scale, 0)

    logits, weights = [], []
    for document in DOCUMENTS:
        units = [parameters["embedding"][token] for sentence in document for token in sentence]
        if settings.structure == "hierarchical":
            words = [encode([parameters["embedding"][t] for t in s], parameters, "word_encoder", settings.encoder) for s in document]  # fmt: skip  # noqa: E501
            units = [weights_of(hidden, "word_attention") @ torch.stack(hidden) for hidden in words]
        hidden = encode(units, parameters, "encoder", settings.encoder)
        weights.append(weights_of(hidden, "attention"))
        vector = weights[-1] @ torch.stack(hidden)
        logits.append(parameters["readout_weight"] @ vector + parameters["readout_bias"])
    return logits, weights


Literal = Callable[[list[Tensor], list[Tensor]], Tensor]
KINDS = [
    (structure, encoder, attention)
    for structure in ("flat", "hierarchical")
    for encoder in ("none", "gru", "conv")
    for attention in ("dot", "additive")
]


def check_step(kind: tuple[str, str, str], objective: Any, literal: Literal, labels: list[int]) -> None:
    """One step at rate 1 is minus the gradient of the literal loss, for every parameter."""
    state, settings = start(*kind)
    leaves = {name: p.detach().clone().requires_grad_() for name, p in state.model.named_parameters()}
    batch = replace(documents_of_sentences(DOCUMENTS), labels=torch.tensor(labels), instances=torch.tensor(INSTANCES))
    loss = training_step(state, batch, settings, objective)
    expected = literal(*literal_pass(leaves, state.model.settings))
    assert loss == pytest.approx(expected.item(), abs=1e-13)
    expected.backward()
    for name, parameter in state.model.named_parameters():
        gradient = leaves[name].grad
        assert gradient is not None
        torch.testing.assert_close(parameter.detach(), (leaves[name] - gradient).detach(), atol=1e-12, rtol=0)
    moved = leaves["attention.context_vector"].grad
    assert moved is not None
    assert moved.abs().max() > 1e-6


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_an_objective_on_outputs_and_weights_per_instance_has_the_gradient_of_plain_autograd(
    kind: tuple[str, str, str],
) -> None:
    generator = torch.Generator().manual_seed(0)
    sizes = [len(document) if kind[0] == "hierarchical" else sum(map(len, document)) for document in DOCUMENTS]
    probabilities = torch.rand(5, 3, dtype=torch.float64, generator=generator).softmax(1)
    length = dict(zip(INSTANCES, sizes, strict=True))
    weights = [torch.rand(length.get(n, 1), dtype=torch.float64, generator=generator).softmax(0) for n in range(5)]

    def literal(logits: list[Tensor], alphas: list[Tensor]) -> Tensor:
        losses = []
        for number, row, alpha in zip(INSTANCES, logits, alphas, strict=True):
            p = torch.exp(row) / torch.exp(row).sum()
            tvd = sum(abs(p[k] - probabilities[number, k]) for k in range(3)) / 2
            kl = sum(a * torch.log(a / b) for a, b in zip(alpha, weights[number], strict=True))
            losses.append(tvd - 0.7 * kl)
        return torch.stack(losses).sum() / 3

    check_step(kind, Adversary(probabilities, weights, 0.7), literal, [0, 0, 0])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[0] == "flat"], ids="-".join)
def test_an_objective_on_the_mass_of_some_tokens_has_the_gradient_of_plain_autograd(kind: tuple[str, str, str]) -> None:
    labels = [2, 0, 1]

    def literal(logits: list[Tensor], alphas: list[Tensor]) -> Tensor:
        losses = []
        for document, label, row, alpha in zip(DOCUMENTS, labels, logits, alphas, strict=True):
            tokens = [token for sentence in document for token in sentence]
            mass = sum(a for a, token in zip(alpha, tokens, strict=True) if token not in {2, 6})
            losses.append(torch.log(torch.exp(row).sum()) - row[label] - 0.3 * torch.log(torch.as_tensor(mass)))
        return torch.stack(losses).mean()

    check_step(kind, Deceiver({2, 6}, 0.3), literal, labels)


def test_the_penalty_of_the_settings_is_added_to_any_objective() -> None:
    """The objective has no gradient for V and W but through the penalty; the loss that is told is without it."""
    state, settings = start("flat", "none", "dot", alignment_penalty=0.25)
    v, w = (p.detach().clone().requires_grad_() for p in (state.model.attention.context_vector, state.model.readout_weight))  # fmt: skip  # noqa: E501
    batch = make_batch([1, 2], [3])
    loss = training_step(state, batch, settings, lambda model, _batch, _output: model.embedding.sum())
    assert loss == pytest.approx(float((state.model.embedding + 1).sum().detach()), abs=1e-12)
    (0.25 * (w @ v).abs().sum()).backward()
    assert v.grad is not None
    torch.testing.assert_close(state.model.attention.context_vector.detach(), (v - v.grad).detach(), atol=1e-13, rtol=0)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return binary(name="small", seed=0, size=200)


def test_batches_say_which_instances_of_the_training_split_they_hold(corpus: Corpus) -> None:
    seen: list[int] = []

    def watch(model: Classifier, batch: Batch, output: Output) -> Tensor:
        assert batch.labels.tolist() == corpus.train.labels[batch.instances].tolist()
        assert torch.equal(output.units.offsets, batch.offsets)
        seen.extend(batch.instances.tolist())
        return cross_entropy(model, batch, output)

    fit(corpus, embedding_size=4, epochs=1, objective=watch)
    assert sorted(seen) == list(range(len(corpus.train)))


def test_an_adversary_keeps_the_outputs_and_moves_the_attention(corpus: Corpus) -> None:
    settings: dict[str, Any] = {"embedding_size": 16, "batch_size": 20, "dropout": 0.0, "learning_rate": 0.1}
    base = fit(corpus, epochs=10, **settings)
    told = trace(base, corpus.train)
    weights = [told.attention_weights[told.instance(number)] for number in range(len(told))]

    def moved(strength: float) -> tuple[float, float]:
        """Mean TVD of the outputs and mean KL of the attention from those of the base."""
        objective = Adversary(told.probabilities, weights, strength)
        found = trace(fit(corpus, seed=1, epochs=10, objective=objective, **settings), corpus.train)
        tvd = (found.probabilities - told.probabilities).abs().sum(1).mean() / 2
        return float(tvd), divergence(found, told)

    (near, like), (_, unlike) = moved(0.0), moved(1.0)
    assert near < 0.1
    assert unlike > 2 * like


def divergence(one: Trace, other: Trace) -> float:
    alpha, beta = one.attention_weights, other.attention_weights
    terms = alpha * (alpha / beta).log()
    return float(torch.zeros(len(one), dtype=torch.float64).index_add_(0, segments_of(one.offsets), terms).mean())
