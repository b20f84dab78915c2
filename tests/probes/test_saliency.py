"""Numbers per unit beside plain code for one document at a time, finite differences, and texts read again as texts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from heedful.analysis.agreement import agreement, agreement_summary
from heedful.config import ModelSettings
from heedful.errors import InputError, UnknownName
from heedful.models.classifier import Classifier, make_classifier
from heedful.models.interface import Interface
from heedful.probes import saliency as module
from heedful.probes.agreement import agreement_table
from heedful.probes.saliency import MEASURES, Saliency
from heedful.text.corpus import Corpus, Split
from heedful.tracing import trace, trace_texts
from heedful.training.loop import limited_threads
from tests.models.test_classifier import make_model
from tests.oracles.saliency import literal_gradient, literal_probabilities
from tests.probes.test_reading import as_batch, as_split, documents

KINDS = [("none", "dot"), ("affine", "additive"), ("lstm", "additive"), ("gru", "dot"), ("conv", "additive")]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with limited_threads(1):
        yield


def a_model(encoder: str, attention: str = "additive", *, classes: int = 3, **settings: Any) -> Classifier:
    """Untrained, with parameters large enough that nothing is linear."""
    kind = {"encoder": encoder, "attention": attention, "score_scale": 1.5, "embedding_size": 4, "hidden_size": 6}
    chosen = ModelSettings.of({**kind, "readout_bias": True, **settings})
    model = make_classifier(make_model(classes).interface, chosen, torch.Generator().manual_seed(3))
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        model.embedding.normal_(0, 1, generator=generator)
        model.readout_weight.normal_(0, 2, generator=generator)
    return model


def exact_state(model: Classifier) -> dict[str, Tensor]:
    return {name: values.detach().double() for name, values in model.state_dict().items()}


def kind_of(model: Classifier) -> dict[str, Any]:
    settings = model.settings
    return {"encoder": settings.encoder, "attention": settings.attention, "scale": settings.score_scale}


def input_vectors(model: Classifier, split: Split, instance: int) -> Tensor:
    """What the final encoder reads of one document: embeddings, or sentence vectors."""
    if model.hierarchical:
        double = make_copy(model)
        vectors: Tensor = double.word_units(split.batch(torch.tensor([instance]), sentences=True)).pooled().detach()
        return vectors
    where = slice(int(split.offsets[instance]), int(split.offsets[instance + 1]))
    return model.embedding.detach().double()[split.tokens.numbers[where]]


def make_copy(model: Classifier) -> Any:
    double = make_classifier(model.interface, model.settings, torch.Generator())
    double.load_state_dict(model.state_dict())
    return double.double().requires_grad_(False)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_gradients_are_those_of_plain_code_for_one_document(encoder: str, attention: str, classes: int) -> None:
    model, split = a_model(encoder, attention, classes=classes), as_split(documents(12))
    saliency, state = Saliency.of(model, split), exact_state(model)
    predicted = trace(model, split).predictions.tolist()
    for held, names in (
        (True, ("gradient", "gradient_norm", "signed_gradient")),
        (False, ("full_gradient", "full_gradient_norm", "input_gradient")),
    ):
        size, norm, signed = (saliency.numbers(name) for name in names)
        for instance, chosen in enumerate(predicted):
            x = input_vectors(model, split, instance)
            gradient = literal_gradient(state, x, chosen, held=held, **kind_of(model))
            where = saliency.trace.instance(instance)
            expected = (gradient * x).sum(1)
            torch.testing.assert_close(signed[where], expected, rtol=1e-9, atol=1e-14)
            torch.testing.assert_close(size[where], expected.abs(), rtol=1e-9, atol=1e-14)
            torch.testing.assert_close(norm[where], gradient.pow(2).sum(1).sqrt(), rtol=1e-9, atol=1e-14)
    assert not torch.allclose(saliency.numbers("gradient"), saliency.numbers("full_gradient"))


@pytest.mark.parametrize("encoder", ["none", "gru", "conv"])
def test_the_gradient_of_a_hierarchical_model_is_at_its_sentence_vectors(encoder: str) -> None:
    model, split = a_model(encoder, structure="hierarchical", attention_bias=True), as_split(documents(8))
    saliency, state = Saliency.of(model, split), exact_state(model)
    assert len(saliency.numbers("gradient")) == len(trace(model, split).attention_scores)
    for instance, chosen in enumerate(trace(model, split).predictions.tolist()):
        x = input_vectors(model, split, instance)
        for held, name in ((True, "signed_gradient"), (False, "input_gradient")):
            gradient = literal_gradient(state, x, chosen, held=held, **kind_of(model))
            found = saliency.numbers(name)[saliency.trace.instance(instance)]
            torch.testing.assert_close(found, (gradient * x).sum(1), rtol=1e-9, atol=1e-14)


SPARSE = {"softmax": 1.0, "sparsemax": 2.0, "entmax15": 1.5}


@pytest.mark.parametrize("normaliser", SPARSE)
@pytest.mark.parametrize(("encoder", "attention"), [("none", "dot"), ("lstm", "additive")])
def test_input_times_gradient_is_a_finite_difference_along_the_input(
    encoder: str, attention: str, normaliser: str
) -> None:
    """(p_y(x + h x_i) − p_y(x − h x_i)) / 2h, one unit moved at a time."""
    model, split, h = a_model(encoder, attention, normaliser=normaliser), as_split(documents(5, seed=2)), 1e-5
    saliency, state = Saliency.of(model, split), exact_state(model)
    for instance, chosen in enumerate(trace(model, split).predictions.tolist()):
        x = input_vectors(model, split, instance)
        expected = []
        for unit in range(len(x)):
            ends = []
            for step in (h, -h):
                moved = x.clone()
                moved[unit] *= 1 + step
                ends.append(float(literal_probabilities(state, moved, p=SPARSE[normaliser], **kind_of(model))[chosen]))
            expected.append((ends[0] - ends[1]) / (2 * h))
        found = saliency.numbers("input_gradient")[saliency.trace.instance(instance)]
        torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("normaliser", ["sparsemax", "entmax15"])
def test_gradients_hold_the_weights_of_sparse_attention(normaliser: str) -> None:
    model, split = a_model("lstm", normaliser=normaliser), as_split(documents(6, seed=8))
    saliency, state = Saliency.of(model, split), exact_state(model)
    for instance, chosen in enumerate(trace(model, split).predictions.tolist()):
        x = input_vectors(model, split, instance)
        gradient = literal_gradient(state, x, chosen, p=SPARSE[normaliser], **kind_of(model))
        found = saliency.numbers("signed_gradient")[saliency.trace.instance(instance)]
        torch.testing.assert_close(found, (gradient * x).sum(1), rtol=1e-7, atol=1e-12)


def test_gradients_of_imposed_attention_do_not_follow_it() -> None:
    model, split = a_model("gru", "additive", attention_weights="uniform"), as_split(documents(6))
    saliency, state = Saliency.of(model, split), exact_state(model)
    torch.testing.assert_close(saliency.numbers("signed_gradient"), saliency.numbers("input_gradient"))
    for instance, chosen in enumerate(trace(model, split).predictions.tolist()):
        x = input_vectors(model, split, instance)
        gradient = literal_gradient(state, x, chosen, uniform=True, **kind_of(model))
        found = saliency.numbers("input_gradient")[saliency.trace.instance(instance)]
        torch.testing.assert_close(found, (gradient * x).sum(1), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_integrated_gradients_are_a_fine_sum_and_complete(encoder: str, attention: str) -> None:
    model, split = a_model(encoder, attention), as_split(documents(6, seed=5))
    saliency, state = Saliency.of(model, split), exact_state(model)
    found, kind = saliency.integrated, kind_of(model)
    assert (found.gap <= 1e-3).all()
    close = 2e-3 if encoder == "conv" else 5e-4  # a gradient that jumps where a convolution is cut off
    for instance, chosen in enumerate(trace(model, split).predictions.tolist()):
        x = input_vectors(model, split, instance)
        where = saliency.trace.instance(instance)
        ends = [float(literal_probabilities(state, size * x, **kind)[chosen]) for size in (1.0, 0.0)]
        assert float(found.scores[where].sum()) == pytest.approx(ends[0] - ends[1], abs=1e-3)
        steps = (np.arange(200) + 0.5) / 200
        mean = torch.stack([literal_gradient(state, step * x, chosen, **kind) for step in steps]).mean(0)
        torch.testing.assert_close(found.scores[where], (mean * x).sum(1), rtol=0, atol=close)
    torch.testing.assert_close(saliency.numbers("integrated_size"), found.scores.abs())


def test_where_the_sum_is_not_what_it_must_be_there_are_more_steps() -> None:
    model, split = a_model("conv"), as_split(documents(10, seed=6))
    found = Saliency.of(model, split, steps=1).integrated
    assert int(found.steps.max()) > 1
    assert (found.gap <= 1e-3).all()
    assert set(found.steps.tolist()) <= {2**power for power in range(11)}
    with pytest.raises(InputError, match="Integrated gradients need 1 or more steps, not 0"):
        Saliency.of(model, split, steps=0)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("encoder", ["none", "affine", "lstm", "conv"])
@pytest.mark.parametrize("structure", ["flat", "hierarchical"])
@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax"])
def test_leaving_a_unit_out_is_the_model_on_the_shortened_document(
    normaliser: str, structure: str, encoder: str, classes: int
) -> None:
    model = a_model(encoder, classes=classes, structure=structure, normaliser=normaliser)
    found = documents(10, seed=7)
    found.append([[3, 3], [3, 4, 4], [3, 3]])  # equal neighbours
    saliency, double = Saliency.of(model, as_split(found)), make_copy(model)
    expected = []
    for document in found:
        parts = document if model.hierarchical else [[word] for line in document for word in line]
        before = double(as_batch(parts)).logits[0].softmax(0)
        for unit in range(len(parts)):
            left = parts[:unit] + parts[unit + 1 :]
            after = double(as_batch(left)).logits[0].softmax(0) if left else double.bias().softmax(0)
            chosen = int(before.argmax())
            expected.append([float((before - after).abs().sum() / 2), float(before[chosen] - after[chosen])])
    variation, decision = torch.tensor(expected, dtype=torch.float64).T
    torch.testing.assert_close(saliency.numbers("leave_one_out"), variation, rtol=1e-9, atol=1e-13)
    torch.testing.assert_close(saliency.numbers("leave_one_out_signed"), decision, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("encoder", ["none", "lstm"])
def test_leaving_a_word_out_is_predict_proba_of_the_shorter_text(small_corpus: Corpus, encoder: str) -> None:
    settings = ModelSettings.of({"encoder": encoder, "embedding_size": 6, "hidden_size": 6, "score_scale": 1.0})
    model = make_classifier(trained_interface(small_corpus), settings, torch.Generator().manual_seed(1))
    with torch.no_grad():
        model.embedding.normal_(0, 1, generator=torch.Generator().manual_seed(2))
    texts = [" ".join(small_corpus.test.surface(row)) for row in range(5)]
    _, split = trace_texts(model, texts)
    found, place = Saliency.of(model, split).numbers("leave_one_out").tolist(), 0
    for text in texts:
        words, whole = text.split(), float(model.predict_proba([text])[0, 1])
        for unit in range(len(words)):
            shorter = " ".join(words[:unit] + words[unit + 1 :])
            expected = abs(float(model.predict_proba([shorter])[0, 1]) - whole)
            assert found[place] == pytest.approx(expected, rel=1e-9, abs=1e-13)
            place += 1
    assert place == len(found)


def trained_interface(corpus: Corpus) -> Interface:
    return Interface(vocabulary=corpus.vocabulary, tokenizer=corpus.tokenizer, class_names=corpus.class_names)


@pytest.mark.parametrize("encoder", ["none", "affine"])
def test_equal_tokens_have_equal_numbers_without_a_contextual_encoder(encoder: str) -> None:
    split = as_split([[[2, 5, 2, 7, 5, 2, 1]], [[2, 2, 5]]])
    saliency = Saliency.of(a_model(encoder), split)
    for name in set(MEASURES) - {"random"}:
        values = saliency.numbers(name).tolist()
        assert values[0] == values[2] == values[5] and values[1] == values[4], name  # noqa: PT018
        assert len(set(values[:7])) == 4, name
        assert values[7] == values[8] != values[0], name


def test_leaving_out_either_of_two_equal_neighbours_is_the_same() -> None:
    saliency = Saliency.of(a_model("lstm"), as_split([[[2, 5, 5, 7, 5]], [[5, 5, 5]]]))
    values = saliency.numbers("leave_one_out").tolist()
    assert values[1] == values[2] != values[4]
    assert values[5] == values[6] == values[7]


@pytest.mark.parametrize("encoder", ["none", "lstm"])
def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch, encoder: str) -> None:
    model, split, told = a_model(encoder), as_split(documents(12, seed=8)), list[tuple[str, int, int]]()
    whole = {name: Saliency.of(model, split).numbers(name) for name in MEASURES}
    monkeypatch.setattr(module, "UNITS_AT_ONCE", 10)
    again = Saliency.of(model, split, watch=lambda *what: told.append(what))
    for name, expected in whole.items():
        torch.testing.assert_close(again.numbers(name), expected, rtol=1e-10, atol=1e-14)
    gradients = [(done, total) for what, done, total in told if what == "gradient"]
    assert len(gradients) > 3
    assert gradients[-1] == (12, 12)
    assert any(what == "leaving units out" for what, _, _ in told) == (encoder == "lstm")


def test_a_sure_decision_keeps_its_gradients() -> None:
    """At p = 1 in floating point the gradient of a probability is zero; here it is about (1 − p) times a slope."""
    model = a_model("none", "dot", classes=2)
    with torch.no_grad():
        model.readout_weight.mul_(30)
    found = Saliency.of(model, as_split([[[1, 2, 3]], [[4, 5]]]))
    assert (found.trace.probabilities.max(1).values == 1).any()
    assert (found.numbers("gradient") > 0).all()


def test_the_table_is_that_of_each_measure() -> None:
    model, split = a_model("lstm", classes=2), as_split(documents(30, seed=9))
    table = agreement_table(model, split, measures=["gradient", "random"], k=2, seed=4)
    assert list(table) == ["instance", "units", "measure", "predicted", "tau", "p_value", "k", "top_k", "missing"]
    saliency = Saliency.of(model, split, seed=4)
    for measure, part in table.groupby("measure", sort=False):
        own = saliency.trace
        expected = agreement(own.attention_scores, saliency.numbers(str(measure)), own.offsets, k=2)
        pd.testing.assert_frame_equal(part.reset_index(drop=True)[list(expected)], expected)
        assert part["predicted"].tolist() == [own.class_names[number] for number in own.predictions.tolist()]
    assert agreement_summary(table)["predicted"].tolist()[0] == "all"


def test_a_sample_is_some_rows_of_the_whole() -> None:
    model, split = a_model("gru"), as_split(documents(20, seed=10))
    whole = agreement_table(model, split).set_index(["measure", "instance"])
    some = agreement_table(model, split, sample=7, seed=3)
    assert some["instance"].nunique() == 7
    assert some["instance"].tolist()[:7] == sorted(some["instance"].tolist()[:7])
    same = whole.loc[list(zip(some["measure"], some["instance"], strict=True))].reset_index()
    pd.testing.assert_frame_equal(some, same[list(some)], rtol=1e-9)
    assert agreement_table(model, split, sample=7, seed=4)["instance"].tolist() != some["instance"].tolist()


def test_constant_attention_is_counted_and_has_no_tau() -> None:
    model, split = a_model("none", attention_weights="uniform"), as_split([[[1, 2, 3]], [[4]]])
    summary = agreement_summary(agreement_table(model, split, measures=["gradient"]))
    row = summary.iloc[0]
    assert row[["instances", "counted", "one_unit", "constant_attention"]].tolist() == [2, 0, 1, 1]


def test_what_cannot_be_measured_is_refused_with_a_sentence() -> None:
    model, split = a_model("none"), as_split([[[1, 2, 3]]])
    with pytest.raises(UnknownName, match=r"There is no measure of units 'gradiant'\. Did you mean 'gradient'"):
        agreement_table(model, split, measures=["gradiant"])
    with pytest.raises(UnknownName, match="There is no measure of units 'loo'"):
        Saliency.of(model, split).numbers("loo")
    with pytest.raises(InputError, match="A sample has from 1 to 1 texts, as many as there are; got 2"):
        agreement_table(model, split, sample=2)
