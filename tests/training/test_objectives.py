"""What training minimises: the usual loss by hand, and objectives on attention itself against plain autograd."""

import math
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.config import ModelSettings, TrainingSettings
from heedful.errors import ConfigError, InputError
from heedful.models.classifier import AttendedUnits, Classifier, Output
from heedful.text.corpus import Corpus
from heedful.text.ragged import Batch, offsets_of, segments_of
from heedful.text.synthetic import binary
from heedful.traces import Trace
from heedful.tracing import trace
from heedful.training.loop import fit, train, training_step
from heedful.training.objectives import (
    adversary,
    alignment_penalty,
    conicity,
    cross_entropy,
    deceptive,
    diverse,
)
from heedful.training.state import TrainingState
from tests.models.test_classifier import make_batch, make_model
from tests.models.test_hierarchical import documents_of_sentences
from tests.oracles.classifiers import encode

pytestmark = pytest.mark.usefixtures("one_thread")

DOCUMENTS = [[[1, 2, 2], [5]], [[3, 1, 4, 1, 5]], [[6], [6, 2], [6, 5, 3]]]
INSTANCES = [4, 0, 2]
"""Which rows of the split the documents are."""


def base_of(weights: list[list[float]], probabilities: list[list[float]]) -> Trace:
    """A trace with these weights and, whatever the weights, these probabilities."""
    lengths = [len(row) for row in weights]
    logits = torch.tensor(probabilities, dtype=torch.float64).log()
    return Trace.from_arrays(
        offsets=offsets_of(torch.tensor(lengths)),
        attention_weights=[weight for row in weights for weight in row],
        polarity_scores=torch.repeat_interleave(logits, torch.tensor(lengths), 0),
        bias=torch.zeros(logits.shape[1]),
    )


def output_of(weights: list[list[float]], logits: list[list[float]]) -> tuple[Output, Tensor]:
    """An output with these attention weights, which can be differentiated, and these logits."""
    offsets = offsets_of(torch.tensor([len(row) for row in weights]))
    alpha = torch.tensor([weight for row in weights for weight in row], dtype=torch.float64, requires_grad=True)
    count = len(alpha)
    units = AttendedUnits(
        hidden=torch.zeros(count, 1), scores=torch.zeros(count), index=torch.arange(count), offsets=offsets
    )
    vars(units)["attention_weights"] = alpha
    return Output(logits=torch.tensor(logits, dtype=torch.float64), units=units), alpha


def test_an_adversary_by_hand_with_weights_of_exactly_zero() -> None:
    """TVD of (.9, .1) and (.5, .5) is .4; KL of (½, ½, 0) from (¼, ½, ¼) is ½ log 2, and from (0, 1, 0) it is finite.

    A unit without weight adds nothing and pulls nothing, wherever the zero is.
    """
    base = base_of([[1.0], [0.25, 0.5, 0.25], [0.0, 1.0, 0.0]], [[0.5, 0.5]] * 3)
    output, alpha = output_of([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]], [[math.log(9), 0.0], [0.0, 0.0]])
    batch = replace(make_batch([1, 2, 3], [4, 5, 6]), instances=torch.tensor([1, 2]))
    loss = adversary(base, 3.0)(make_model(), batch, output)
    assert loss.item() == pytest.approx((0.4 - 3 * 0.5 * math.log(2) + 0.0) / 2, abs=1e-14)
    loss.backward()
    assert alpha.grad is not None
    expected = [-1.5 * (1 + math.log(2)), -1.5, 0.0, 0.0, -1.5, 0.0]
    assert alpha.grad.tolist() == pytest.approx(expected, abs=1e-14)
    output, alpha = output_of([[0.5, 0.5, 0.0]], [[0.0, 0.0]])
    lone = replace(make_batch([4, 5, 6]), instances=torch.tensor([2]))
    far = adversary(base, 1.0)(make_model(), lone, output)
    assert far.item() == pytest.approx(-(0.5 * math.log(0.5 / 1e-10) + 0.5 * math.log(0.5)), abs=1e-12)


def test_an_adversary_of_a_trace_of_other_texts_is_refused() -> None:
    base = base_of([[1.0], [0.5, 0.5]], [[0.5, 0.5]] * 2)
    with pytest.raises(InputError, match="taken from a trace of the same units of the same texts"):
        adversary(base, 1.0)(make_model(), make_batch([1, 2], [3]), make_model()(make_batch([1, 2], [3])))


def test_a_deceptive_attention_by_hand() -> None:
    """Mass outside the tokens 2 and 5: ½, 1, and a text of nothing else, which does not count; no mass is finite."""
    impermissible = torch.zeros(10, dtype=torch.bool)
    impermissible[[2, 5]] = True
    batch = replace(make_batch([1, 2, 3], [4], [2, 5]), labels=torch.tensor([0, 1, 1]))
    output, alpha = output_of([[0.25, 0.5, 0.25], [1.0], [0.5, 0.5]], [[0.0, 0.0]] * 3)
    loss = deceptive(impermissible, 2.0)(make_model(), batch, output)
    assert loss.item() == pytest.approx(math.log(2) - 2 * math.log(0.5) / 3, abs=1e-14)
    loss.backward()
    assert alpha.grad is not None
    assert alpha.grad.tolist() == pytest.approx([-4 / 3, 0, -4 / 3, -2 / 3, 0, 0], abs=1e-14)
    output, _ = output_of([[0.0, 1.0, 0.0], [1.0], [0.5, 0.5]], [[0.0, 0.0]] * 3)
    assert deceptive(impermissible, 2.0)(make_model(), batch, output).isfinite()


def test_words_of_a_hierarchical_model_cannot_be_impermissible() -> None:
    model = start("hierarchical", "none", "dot")[0].model
    batch = documents_of_sentences(DOCUMENTS)
    with pytest.raises(ConfigError, match=r"is on the attention to words; a hierarchical model's is on sentences\."):
        deceptive(torch.ones(10, dtype=torch.bool), 1.0)(model, batch, model(batch))


def test_conicity_by_hand() -> None:
    """(3, 0), (0, 4) with mean (1½, 2): cosines .6 and .8. Equal directions have one, and a vector of zeros none."""
    hidden = torch.tensor([[3.0, 0.0], [0.0, 4.0], [1.0, 2.0], [2.0, 4.0], [0.0, 0.0], [5.0, 0.0]], dtype=torch.float64)
    found = conicity(hidden.requires_grad_(), torch.tensor([0, 2, 4, 6]))
    assert found.tolist() == pytest.approx([0.7, 1.0, 0.5], abs=1e-12)
    found.sum().backward()
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()


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


Literal = Callable[..., Tensor]
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
    known = (*literal_pass(leaves, state.model.settings), leaves)
    expected = literal(*known[: len(signature(literal).parameters)])
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
    base = base_of([row.tolist() for row in weights], probabilities.tolist())

    def literal(logits: list[Tensor], alphas: list[Tensor]) -> Tensor:
        losses = []
        for number, row, alpha in zip(INSTANCES, logits, alphas, strict=True):
            p = torch.exp(row) / torch.exp(row).sum()
            tvd = sum(abs(p[k] - probabilities[number, k]) for k in range(3)) / 2
            kl = sum(a * torch.log(a / b) for a, b in zip(alpha, weights[number], strict=True))
            losses.append(tvd - 0.7 * kl)
        return torch.stack(losses).sum() / 3

    check_step(kind, adversary(base, 0.7), literal, [0, 0, 0])


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

    impermissible = torch.zeros(10, dtype=torch.bool)
    impermissible[[2, 6]] = True
    check_step(kind, deceptive(impermissible, 0.3), literal, labels)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[0] == "flat"], ids="-".join)
def test_an_objective_on_the_hidden_vectors_has_the_gradient_of_plain_autograd(kind: tuple[str, str, str]) -> None:
    labels = [2, 0, 1]
    state, _ = start(*kind)

    def literal(logits: list[Tensor], _alphas: list[Tensor], parameters: dict[str, Tensor]) -> Tensor:
        losses = []
        for document, label, row in zip(DOCUMENTS, labels, logits, strict=True):
            units = [parameters["embedding"][token] for sentence in document for token in sentence]
            hidden = encode(units, parameters, "encoder", state.model.settings.encoder)
            mean = torch.stack(hidden).sum(0) / len(hidden)
            cosines = [h @ mean / torch.sqrt(h @ h) / torch.sqrt(mean @ mean) for h in hidden]
            losses.append(torch.log(torch.exp(row).sum()) - row[label] + 0.4 * sum(cosines) / len(cosines))
        return torch.stack(losses).mean()

    check_step(kind, diverse(0.4), literal, labels)


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
    told = {name: trace(base, split) for name, split in corpus.splits().items()}

    def moved(strength: float) -> tuple[float, float]:
        """Mean TVD of the outputs and mean KL of the attention from those of the base."""
        model = fit(corpus, seed=1, epochs=10, objective="adversary", objective_weight=strength, base=told, **settings)
        history = model.history
        assert history.loc[history["kept"], "dev_objective"].item() == history["dev_objective"].min()
        assert list(history) == ["epoch", "train_loss", "dev_loss", "dev_accuracy", "dev_objective", "kept"]
        found, given = trace(model, corpus.dev), told["dev"]
        tvd = float((found.probabilities - given.probabilities).abs().sum(1).mean() / 2)
        value = history["dev_objective"].min()
        assert value == pytest.approx(tvd - strength * divergence(found, given), abs=1e-4)
        found = trace(model, corpus.train)
        tvd = float((found.probabilities - told["train"].probabilities).abs().sum(1).mean() / 2)
        return tvd, divergence(found, told["train"])

    (near, like), (_, unlike) = moved(0.0), moved(1.0)
    assert near < 0.1
    assert unlike > 2 * like


def divergence(one: Trace, other: Trace) -> float:
    alpha, beta = one.attention_weights, other.attention_weights
    terms = alpha * (alpha / beta).log()
    return float(torch.zeros(len(one), dtype=torch.float64).index_add_(0, segments_of(one.offsets), terms).mean())


def test_a_deceptive_attention_leaves_the_words_that_decide_and_the_outputs_stay(small_corpus: Corpus) -> None:
    """Pruthi et al. 2020: a contextual encoder carries what the words say to those that may be attended to."""
    assert small_corpus.planted is not None
    polar = [token for token, group in small_corpus.planted.items() if group != "neutral"]
    settings: dict[str, Any] = {
        "embedding_size": 16, "hidden_size": 16, "encoder": "lstm", "score_scale": 4.0, "batch_size": 20,
        "learning_rate": 0.1, "epochs": 10,
    }  # fmt: skip
    masses = []
    for aim in ("cross_entropy", "deceptive"):
        found = trace(fit(small_corpus, objective=aim, impermissible=polar, **settings), small_corpus.test)
        assert found.accuracy() > 0.9
        assert found.units is not None
        marked = torch.tensor([word.lower() in set(polar) for word in found.units])
        masses.append(float((found.attention_weights * marked).sum() / len(found)))
    assert masses[0] > 0.15
    assert masses[1] < 0.02


def test_a_diverse_model_has_hidden_vectors_of_more_directions(corpus: Corpus) -> None:
    settings: dict[str, Any] = {
        "embedding_size": 8,
        "batch_size": 20,
        "learning_rate": 0.1,
        "epochs": 5,
        "encoder": "lstm",
    }
    cones = []
    for weight in (0.0, 2.0):
        model = fit(corpus, objective="diverse", objective_weight=weight, **settings)
        units = model.own_units(corpus.test.batch(torch.arange(len(corpus.test))))
        cones.append(conicity(units.hidden[units.index], units.offsets).mean().item())
    assert cones[1] < cones[0] - 0.05


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"objective": "adversary"},
            "keeps the outputs of another run and leaves its attention: name that run by settings",
        ),
        (
            {"objective": "deceptive"},
            "takes attention from impermissible tokens, and the vocabulary has none. In Python",
        ),
        ({"objective": "deceptive", "impermissible": ["nowhere"]}, "and the vocabulary has none"),
        ({"objective": "wish"}, "Setting 'objective' is 'wish': input should be 'cross_entropy', "),
        (
            {"objective": "diverse", "objective_weight": -1.0},
            "Setting 'objective_weight' is -1.0: input should be greater",
        ),
    ],
)
def test_an_objective_without_what_it_needs_is_refused(corpus: Corpus, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fit(corpus, epochs=1, **settings)
    assert sentence in str(caught.value)


def test_settings_that_name_an_objective_do_not_train_without_what_it_needs(corpus: Corpus) -> None:
    with pytest.raises(ConfigError, match="The objective 'adversary' keeps the outputs of another run"):
        train(corpus, ModelSettings(), TrainingSettings.of({"objective": "adversary"}))
