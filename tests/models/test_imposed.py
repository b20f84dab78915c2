"""Attention weights that are not learned: uniform, frozen at the first values, or those of another model's trace."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.config import ModelSettings, RunSettings, TrainingSettings
from heedful.errors import ConfigError, InputError
from heedful.models.checkpoint import load_model, save_model
from heedful.models.classifier import Classifier, make_classifier
from heedful.probes.scores import flow_terms
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.vectors import Vectors
from heedful.traces import Trace
from heedful.tracing import trace, trace_vocabulary
from heedful.training.loop import fit, train
from heedful.training.objectives import evaluate
from heedful.training.state import TrainingState
from tests.models.test_classifier import TRAINED, make_batch, make_model
from tests.models.test_hierarchical import documents_of_sentences

pytestmark = pytest.mark.usefixtures("one_thread")

QUICK: dict[str, Any] = {"embedding_size": 8, "hidden_size": 6, "epochs": 3, "batch_size": 10, "learning_rate": 0.2}
BOTH = pytest.mark.parametrize("structure", ["flat", "hierarchical"])
EVERY = pytest.mark.parametrize("encoder", TRAINED)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """One, two or three sentences, of which one decides."""
    words = ("red", "blue", "green", "grey")
    texts = [
        " ".join([f"We saw {first}.", f"It was {word} and {first}.", "So it was."][: 2 + len(first) % 2])
        for first in words
        for number in range(6)
        for word in (f"fine{number}", f"poor{number}")
    ]
    return load_corpus((texts, ["good" if "fine" in text else "bad" for text in texts]))


def hand_model(**settings: Any) -> Classifier:
    """Tokens 1, 2, 3 are (1, 0), (0, 2), (4, 4), W = (1, −1), and an attention that prefers the third."""
    model = make_model(embedding_size=2, **settings)
    with torch.no_grad():
        model.embedding[1:4] = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]])
        model.readout_weight.copy_(torch.tensor([[1.0, -1.0]]))
        model.attention.context_vector.fill_(5.0)
    return model


def test_uniform_attention_is_the_mean_by_hand() -> None:
    """((1, 0) + (0, 2) + (4, 4) + (1, 0)) / 4 = (3/2, 3/2) and (0, 2): logits 0 and −2."""
    output = hand_model(attention_weights="uniform")(make_batch([1, 2, 3, 1], [2]))
    assert output.logits.tolist() == [[0.0, 0.0], [0.0, -2.0]]
    assert output.units.attention_weights.tolist() == [0.25] * 4 + [1.0]
    assert output.units.attention_scores.tolist() == pytest.approx([-math.log(4)] * 4 + [0.0], abs=1e-15)


@BOTH
@EVERY
def test_uniform_attention_is_the_mean_of_the_hidden_vectors(encoder: str, structure: str) -> None:
    settings = ModelSettings.of(
        {"embedding_size": 4, "hidden_size": 6, "encoder": encoder, "structure": structure, "readout_bias": True,
         "attention_weights": "uniform"}
    )  # fmt: skip
    model = make_classifier(make_model(3).interface, settings, torch.Generator().manual_seed(3)).double()
    batch = documents_of_sentences([[[1, 2, 2], [5]], [[3, 1, 4, 1]], [[9], [9, 2], [6, 5, 3]]])
    units = model.own_units(batch)
    hidden = units.hidden[units.index]
    means = torch.stack([hidden[a:b].mean(0) for a, b in pairwise(units.offsets.tolist())])
    expected = means @ model.readout_weight.T + model.bias()
    torch.testing.assert_close(model(batch).logits, expected, atol=1e-12, rtol=0)


def test_weights_of_a_trace_take_the_place_of_the_models_own_by_hand() -> None:
    """½ (1, 0) + ½ (4, 4) = (5/2, 2): a logit of ½; and all on (0, 2): −2. A unit without weight does nothing."""
    model, batch = hand_model(), make_batch([1, 2, 3], [3, 2])
    given = Trace.from_arrays(
        offsets=[0, 3, 5], attention_weights=[0.5, 0.0, 0.5, 0.0, 1.0], polarity_scores=np.zeros(5), bias=[0]
    )
    output = model(batch, weights=given)
    assert output.logits.tolist() == [[0.0, 0.5], [0.0, -2.0]]
    assert output.units.attention_weights.tolist() == [0.5, 0.0, 0.5, 0.0, 1.0]
    assert output.units.attention_scores.tolist() == [math.log(0.5), -math.inf, math.log(0.5), -math.inf, 0.0]
    output.logits[:, 1].sum().backward()
    assert model.attention.context_vector.grad is None
    assert model.embedding.grad is not None
    gradient = model.embedding.grad.to_dense()
    assert gradient[1:4].tolist() == [[0.5, -0.5], [1.0, -1.0], [0.5, -0.5]]


@BOTH
@EVERY
def test_the_models_own_weights_given_back_change_nothing(corpus: Corpus, encoder: str, structure: str) -> None:
    """Rows of the batch are found by their instance numbers, in any order."""
    model = fit(corpus, encoder=encoder, structure=structure, **QUICK)
    own = trace(model, corpus.test)
    again = trace(model, corpus.test, weights=own)
    assert torch.equal(again.attention_scores, own.attention_scores)
    assert torch.equal(again.logits, own.logits)
    exact = model.double()
    rows = torch.arange(len(corpus.test)).flip(0)
    batch = corpus.test.batch(rows, sentences=model.hierarchical)
    torch.testing.assert_close(exact(batch, weights=own).logits, exact(batch).logits, atol=1e-12, rtol=0)


@BOTH
def test_a_trace_of_uniform_weights_has_their_logarithms(corpus: Corpus, structure: str) -> None:
    model = fit(corpus, structure=structure, attention_weights="uniform", **QUICK)
    found = trace(model, corpus.test)
    expected = (1 / found.lengths.double())[found.segments]
    torch.testing.assert_close(found.attention_weights, expected, atol=1e-15, rtol=0)
    torch.testing.assert_close(found.attention_scores, expected.log(), atol=1e-15, rtol=0)
    logits = model.double()(corpus.test.batch(torch.arange(len(corpus.test)), sentences=model.hierarchical)).logits
    torch.testing.assert_close(found.logits, logits.detach(), atol=1e-12, rtol=0)
    assert trace_vocabulary(model).attention_scores.unique().tolist() == [0.0]


@BOTH
def test_uniform_attention_learns_and_leaves_the_context_vector_alone(corpus: Corpus, structure: str) -> None:
    settings = {"structure": structure, "attention_weights": "uniform", **QUICK, "epochs": 20}
    model = fit(corpus, **settings)
    assert evaluate(model, corpus.test).accuracy == 1.0
    assert torch.equal(model.attention.context_vector, begun(corpus, settings).attention.context_vector)
    assert ", uniform weights, " in repr(model)


def begun(corpus: Corpus, settings: dict[str, Any]) -> Classifier:
    """The model of these settings before its training, with its own attention."""
    model = {name: value for name, value in settings.items() if name in ModelSettings.model_fields}
    own = ModelSettings.of(model | {"attention_weights": "learned"})
    interface = fit(corpus, **QUICK | {"epochs": 1}).interface
    return TrainingState.start(interface, own, TrainingSettings()).model


@BOTH
@EVERY
def test_frozen_weights_are_those_of_the_model_before_its_training(
    corpus: Corpus, encoder: str, structure: str
) -> None:
    settings = {"encoder": encoder, "structure": structure, "attention_weights": "frozen", **QUICK}
    model, first = fit(corpus, **settings), begun(corpus, settings)
    found, expected = trace(model, corpus.test), trace(first, corpus.test)
    assert torch.equal(found.attention_scores, expected.attention_scores)
    assert torch.equal(found.attention_weights, expected.attention_weights)
    assert not torch.equal(model.embedding, first.embedding)
    assert not torch.equal(found.polarity_scores, expected.polarity_scores)
    assert torch.equal(model.attention.context_vector, first.attention.context_vector)


def test_vectors_that_are_given_are_part_of_what_is_frozen(corpus: Corpus) -> None:
    vectors = Vectors(source="hand", rows=torch.tensor([2, 5]), values=torch.ones(2, 8), tokens=len(corpus.vocabulary))
    model = train(
        corpus,
        ModelSettings.of({"embedding_size": 8, "attention_weights": "frozen"}),
        TrainingSettings.of({"epochs": 1}),
        vectors=vectors,
    )
    assert model.initial is not None
    assert model.initial.embedding[[2, 5]].tolist() == [[1.0] * 8] * 2


@BOTH
def test_a_model_is_trained_predicts_and_is_traced_with_the_weights_of_another(corpus: Corpus, structure: str) -> None:
    """A model of words alone, guided by one that reads context."""
    guide = fit(corpus, structure=structure, encoder="gru", **QUICK)
    guiding = {name: trace(guide, split) for name, split in corpus.splits().items()}
    model = fit(corpus, structure=structure, attention_weights=guiding, **QUICK | {"epochs": 20})
    assert model.settings.attention_weights == "given"
    found = trace(model, corpus.test, weights=guiding["test"])
    assert torch.equal(found.attention_weights, guiding["test"].attention_weights)
    assert found.accuracy() == 1.0
    assert model.predict(corpus.test, weights=guiding["test"]) == [
        corpus.class_names[label] for label in corpus.test.labels.tolist()
    ]
    chances = model.predict_proba(corpus.test, weights=guiding["test"])
    assert np.array_equal(chances, found.probabilities.numpy())
    kept = model.history[model.history["kept"]].iloc[0]
    assert evaluate(model, corpus.dev, guiding["dev"]).accuracy == kept["dev_accuracy"]
    with pytest.raises(InputError, match="trained with attention weights from elsewhere: give those of these texts"):
        model.predict(corpus.test)


def literal_step(before: dict[str, Tensor], documents: list[list[int]], labels: list[int], given: Trace) -> Tensor:
    """Mean log(1 + exp(−y s)) with s = Σ w_j e_jᵀW, document by document."""
    losses = []
    for number, (tokens, label) in enumerate(zip(documents, labels, strict=True)):
        weights = given.attention_weights[given.instance(number)]
        s = sum(w * before["embedding"][t] @ before["readout_weight"][0] for w, t in zip(weights, tokens, strict=True))
        losses.append(torch.log1p(torch.exp(-(2 * label - 1) * torch.as_tensor(s))))
    return torch.stack(losses).mean()


def test_the_gradient_with_given_weights_is_that_of_the_formula() -> None:
    documents, labels = [[1, 2, 1, 3], [3], [4, 2]], [1, 0, 1]
    weights = [0.1, 0.2, 0.3, 0.4, 1.0, 0.25, 0.75]
    given = Trace.from_arrays(offsets=[0, 4, 5, 7], attention_weights=weights, polarity_scores=np.zeros(7), bias=[0])
    model = make_model()
    loss = torch.nn.functional.cross_entropy(model(make_batch(*documents), weights=given).logits, torch.tensor(labels))
    loss.backward()
    leaves = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    expected = literal_step(leaves, documents, labels, given)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-14)
    expected.backward()
    for name in ("embedding", "readout_weight"):
        gradient = model.get_parameter(name).grad
        assert gradient is not None
        torch.testing.assert_close(gradient.to_dense(), leaves[name].grad, atol=1e-14, rtol=0)


@pytest.mark.parametrize("kind", ["uniform", "frozen"])
def test_a_saved_model_keeps_what_is_imposed(corpus: Corpus, kind: str, tmp_path: Path) -> None:
    model = fit(corpus, encoder="lstm", attention_weights=kind, **QUICK)
    save_model(model, tmp_path)
    assert torch.equal(trace(load_model(tmp_path), corpus.test).logits, trace(model, corpus.test).logits)


def test_a_training_with_frozen_weights_goes_on_where_it_was(corpus: Corpus, tmp_path: Path) -> None:
    model = ModelSettings.of({"embedding_size": 8, "attention_weights": "frozen"})
    training = TrainingSettings.of({"epochs": 2, "learning_rate": 0.2})
    interface = fit(corpus, **QUICK | {"epochs": 1}).interface
    first, second = (TrainingState.start(interface, model, training) for _ in range(2))
    with torch.no_grad():
        assert first.model.initial is not None
        first.model.initial.embedding.add_(1.0)
    first.rows = [{"epoch": 0, "dev_accuracy": 0.5, "dev_loss": 0.5}]
    first.keep_if_best("loss")
    first.save(tmp_path / "state.safetensors")
    second.restore(tmp_path / "state.safetensors")
    assert second.model.initial is not None
    assert torch.equal(first.model.initial.embedding, second.model.initial.embedding)


def test_weights_of_other_texts_are_refused(corpus: Corpus) -> None:
    model = fit(corpus, **QUICK)
    for texts in (["It was fine."], ["It was fine."] * len(corpus.test)):
        with pytest.raises(
            InputError, match=r"of the same units of the same texts; this one is Trace\(\d instances?, "
        ):
            trace(model, corpus.test, weights=trace(model, texts))


def test_given_weights_are_needed_for_both_splits(corpus: Corpus) -> None:
    only = {"train": trace(fit(corpus, **QUICK), corpus.train)}
    for given in (only, "given"):
        with pytest.raises(ConfigError, match="are traces of both splits that training reads; give them in Python"):
            fit(corpus, attention_weights=given, **QUICK)


def test_attention_that_is_not_learned_has_no_flow_terms(corpus: Corpus) -> None:
    model = fit(corpus, attention_weights="uniform", **QUICK)
    with pytest.raises(InputError, match=r"Flow terms are those of learned attention; this model's is uniform\."):
        flow_terms(model, corpus.train)


def test_the_usual_settings_keep_their_identity() -> None:
    """A setting that is at its default is no part of the digest, so finished runs stay where they are."""
    assert RunSettings().digest("data") == RunSettings().change({"model.attention_weights": "learned"}).digest("data")
    assert RunSettings().digest("data") != RunSettings().change({"model.attention_weights": "uniform"}).digest("data")
