"""Classifiers whose attention is sparsemax or 1.5-entmax: logits, gradients, traces with exact zeros, frozen ones."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.analysis.erasure import first_flips, minimum_flips
from heedful.config import ModelSettings
from heedful.errors import InputError
from heedful.models.checkpoint import load_model, save_model
from heedful.models.classifier import Classifier, make_classifier
from heedful.probes.scores import flow_terms, token_scores
from heedful.text.corpus import Corpus
from heedful.trace_files import read_fields
from heedful.traces import Trace
from heedful.tracing import trace, trace_vocabulary
from heedful.training.loop import fit
from tests.models.test_classifier import make_batch, make_model
from tests.models.test_hierarchical import documents_of_sentences
from tests.oracles.normalisers import by_bisection

pytestmark = pytest.mark.usefixtures("one_thread")

SPARSE = {"sparsemax": 2.0, "entmax15": 1.5}
EVERY = pytest.mark.parametrize("normaliser", SPARSE)
BOTH = pytest.mark.parametrize("structure", ["flat", "hierarchical"])
QUICK: dict[str, Any] = {"embedding_size": 8, "hidden_size": 6, "epochs": 3, "batch_size": 50, "learning_rate": 0.2}


def some_model(normaliser: str, structure: str = "flat", encoder: str = "none") -> Classifier:
    settings = ModelSettings.of(
        {"embedding_size": 4, "hidden_size": 6, "encoder": encoder, "structure": structure, "readout_bias": True,
         "normaliser": normaliser, "score_scale": 0.3, "embedding_range": 1.0}
    )  # fmt: skip
    return make_classifier(make_model(3).interface, settings, torch.Generator().manual_seed(3)).double()


@EVERY
@BOTH
@pytest.mark.parametrize("encoder", ["none", "gru"])
def test_logits_are_those_of_the_bisections_weights(normaliser: str, structure: str, encoder: str) -> None:
    model = some_model(normaliser, structure, encoder)
    batch = documents_of_sentences([[[1, 2, 2], [5]], [[3, 1, 4, 1]], [[9], [9, 2], [6, 5, 3]]])
    units = model.own_units(batch)
    scores, hidden = units.scores[units.index], units.hidden[units.index]
    weights = [by_bisection(scores[a:b].tolist(), SPARSE[normaliser]) for a, b in pairwise(units.offsets.tolist())]
    vectors = [
        torch.tensor(alpha, dtype=torch.float64) @ hidden[a:b]
        for alpha, (a, b) in zip(weights, pairwise(units.offsets.tolist()), strict=True)
    ]
    expected = torch.stack(vectors) @ model.readout_weight.T + model.bias()
    output = model(batch)
    torch.testing.assert_close(output.logits, expected, atol=1e-12, rtol=0)
    assert output.units.attention_weights.tolist() == pytest.approx([w for some in weights for w in some], abs=1e-12)


@EVERY
def test_the_gradient_reaches_every_parameter_as_by_finite_differences(normaliser: str) -> None:
    model, batch = some_model(normaliser), make_batch([1, 2, 3, 1], [4], [2, 5, 6])
    named = dict(model.named_parameters())

    def loss(*values: Tensor) -> Tensor:
        output = torch.func.functional_call(model, dict(zip(named, values, strict=True)), (batch,))
        total: Tensor = (output.logits * torch.arange(9.0).reshape(3, 3)).sum()
        return total

    inputs = tuple(p.detach().clone() for p in named.values())
    leaves = [value.clone().requires_grad_() for value in inputs]
    gradients = torch.autograd.grad(loss(*leaves), leaves)
    for number, gradient in enumerate(gradients):
        step = torch.zeros_like(inputs[number])
        flat = step.view(-1)
        dense = gradient.to_dense().flatten()
        for place in range(len(flat)):
            flat[place] = 1e-6
            ahead, behind = (
                loss(*(value + sign * step if k == number else value for k, value in enumerate(inputs)))
                for sign in (1, -1)
            )
            flat[place] = 0.0
            assert dense[place].item() == pytest.approx((ahead - behind).item() / 2e-6, abs=1e-6)


@EVERY
@BOTH
def test_a_trace_has_exact_zeros_and_the_logits_of_the_model(
    small_corpus: Corpus, normaliser: str, structure: str, tmp_path: Path
) -> None:
    model = fit(small_corpus, normaliser=normaliser, structure=structure, score_scale=0.5, **QUICK)
    found = trace(model, small_corpus.test)
    batch = small_corpus.test.batch(torch.arange(len(small_corpus.test)), sentences=model.hierarchical)
    output = model.double()(batch)
    torch.testing.assert_close(found.logits, output.logits.detach(), atol=1e-10, rtol=0)
    torch.testing.assert_close(found.attention_weights, output.units.attention_weights.detach(), atol=1e-13, rtol=0)
    zero = output.units.attention_weights == 0
    if structure == "flat":
        assert 0.3 < float(zero.double().mean()) < 1
    assert torch.equal(found.attention_weights == 0, zero)
    assert torch.equal(found.attention_scores == -math.inf, zero)
    found.save(tmp_path / "trace.safetensors")
    again = Trace.load(tmp_path / "trace.safetensors")
    assert torch.equal(again.attention_weights, found.attention_weights)
    assert "attention_scores" in read_fields(tmp_path / "trace.safetensors")
    shortest = minimum_flips(again)["erased"].dropna()
    assert (shortest <= first_flips(again)["erased"].dropna().reindex(shortest.index).fillna(999)).all()


@EVERY
def test_a_token_alone_keeps_its_score(small_corpus: Corpus, normaliser: str) -> None:
    """A weight of one says nothing of it; the scores of the vocabulary are those before the normaliser."""
    model = fit(small_corpus, normaliser=normaliser, **QUICK)
    exact = model.double()
    expected = exact.embedding @ exact.attention.context_vector / 10
    torch.testing.assert_close(trace_vocabulary(model).attention_scores, expected.detach(), atol=1e-12, rtol=0)
    assert token_scores(model, small_corpus)["attention"].tolist() == pytest.approx(expected.tolist(), abs=1e-12)


@EVERY
def test_frozen_and_given_weights_are_kept_with_their_zeros(small_corpus: Corpus, normaliser: str) -> None:
    settings = {"normaliser": normaliser, "score_scale": 0.05, **QUICK}
    frozen = fit(small_corpus, attention_weights="frozen", **settings)
    found = trace(frozen, small_corpus.test)
    assert frozen.initial is not None
    own = frozen.initial.double().own_units(small_corpus.test.batch(torch.arange(len(small_corpus.test))))
    torch.testing.assert_close(found.attention_weights, own.attention_weights, atol=1e-12, rtol=0)
    assert bool((found.attention_weights == 0).any())
    splits = {"train": trace(frozen, small_corpus.train), "dev": trace(frozen, small_corpus.dev)}
    given = fit(small_corpus, attention_weights=splits, **settings)
    imposed = trace(given, small_corpus.test, weights=found)
    assert torch.equal(imposed.attention_weights, found.attention_weights)


@EVERY
def test_a_saved_model_normalises_as_before(small_corpus: Corpus, normaliser: str, tmp_path: Path) -> None:
    model = fit(small_corpus, normaliser=normaliser, encoder="conv", **QUICK)
    save_model(model, tmp_path)
    assert torch.equal(trace(load_model(tmp_path), small_corpus.test).logits, trace(model, small_corpus.test).logits)
    assert f"λ=10, {normaliser}, " in repr(model)


@pytest.mark.parametrize(
    "change", [{"normaliser": "sparsemax"}, {"encoder": "tanh"}, {"attention": "additive", "context_size": 3}]
)
def test_models_that_the_flow_terms_are_not_of_are_refused(small_corpus: Corpus, change: dict[str, Any]) -> None:
    model = fit(small_corpus, **QUICK | {"epochs": 1} | change)
    with pytest.raises(
        InputError, match=r"Flow terms are those of Sun & Lu 2020: encoder 'none' or 'affine', attention"
    ):
        flow_terms(model, small_corpus.train)
