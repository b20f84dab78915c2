"""`fit`: learns what was planted, same seed same bits, chooses the first best epoch, and tells its observers."""

import inspect
from typing import Any

import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from heedful.analysis.statistics import area
from heedful.config import ModelSettings, TrainingSettings
from heedful.errors import ConfigError
from heedful.models.classifier import Interface
from heedful.probes.scores import token_scores
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.synthetic import binary, multi
from heedful.training.events import EpochDone, Event, StepDone
from heedful.training.loop import fit, training_step
from heedful.training.metrics import evaluate
from heedful.training.state import TrainingState

QUICK: dict[str, Any] = {"embedding_size": 16, "hidden_size": 16, "epochs": 3, "batch_size": 50}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return binary(name="small", seed=0, size=600)


@pytest.mark.parametrize("encoder", ["none", "affine", "lstm"])
@pytest.mark.parametrize("attention", ["dot", "additive"])
def test_planted_polarity_is_recovered(attention: str, encoder: str) -> None:
    corpus = binary(name="planted", seed=0, size=3000)
    weight_decay = 0.0 if encoder == "none" else 1e-4
    model = fit(corpus, attention=attention, encoder=encoder, epochs=8, seed=0, weight_decay=weight_decay)
    assert evaluate(model, corpus.test).accuracy > 0.99
    table = token_scores(model, corpus)
    sign = table["planted"].map({"positive": 1, "negative": -1})
    polar = table[sign.notna()]
    assert (polar["polarity"] * sign.dropna() > 0).mean() >= 0.98
    scores = {group: rows["attention"].to_numpy() for group, rows in table.groupby("planted")}
    areas = [area(scores[group], scores["neutral"]) for group in ("positive", "negative")]
    # An LSTM tells the classes apart by attending to one polarity: which, and whether to both, depends on the seed.
    assert (max(areas) if encoder == "lstm" else min(areas)) > 0.95


def test_the_default_corpus_and_settings_recover_what_was_planted() -> None:
    """What `make demo` shows: dev accuracy, separation by attention, and signs, all at least .99."""
    corpus = load_corpus("synthetic-1")
    model = fit(corpus)
    assert model.history["dev_accuracy"].max() >= 0.99
    table = token_scores(model, corpus)
    sign = table["planted"].map({"positive": 1, "negative": -1})
    polar, neutral = table[sign.notna()], table[table["planted"] == "neutral"]
    assert len(polar) == 100
    assert (polar["polarity"] * sign.dropna() > 0).mean() >= 0.99
    assert area(polar["attention"].to_numpy(), neutral["attention"].to_numpy()) >= 0.99


def test_planted_topics_are_recovered_with_three_classes() -> None:
    corpus = multi(name="topics", seed=0, size=3000)
    table = token_scores(fit(corpus, epochs=8), corpus)
    for topic in corpus.class_names:
        rows = table[table["planted"] == topic]
        best = rows[[f"polarity_{name}" for name in corpus.class_names]].idxmax(axis=1)
        assert (best == f"polarity_{topic}").mean() >= 0.98


@pytest.mark.parametrize("optimizer", ["adagrad", "sgd", "adam"])
@pytest.mark.parametrize("encoder", ["none", "lstm"])
def test_the_same_seed_gives_the_same_bits(corpus: Corpus, encoder: str, optimizer: str) -> None:
    first, second = (
        fit(corpus, encoder=encoder, optimizer=optimizer, seed=4, learning_rate=0.01, clip=1.0, **QUICK)
        for _ in range(2)
    )
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name]), name
    pd.testing.assert_frame_equal(first.history, second.history)


def test_another_seed_gives_other_parameters(corpus: Corpus) -> None:
    first, second = (fit(corpus, seed=seed, **QUICK) for seed in (0, 1))
    assert not torch.equal(first.readout_weight, second.readout_weight)


def test_the_first_epoch_with_the_best_dev_accuracy_is_returned(corpus: Corpus) -> None:
    model = fit(corpus, **{**QUICK, "epochs": 8})
    best = model.history["dev_accuracy"].max()
    assert evaluate(model, corpus.dev).accuracy == best
    stopped = fit(corpus, **{**QUICK, "epochs": int(model.history["dev_accuracy"].argmax()) + 1})
    assert torch.equal(model.embedding, stopped.embedding)


def test_patience_stops_so_many_epochs_after_the_best(corpus: Corpus) -> None:
    model = fit(corpus, patience=2, **{**QUICK, "epochs": 60})
    best = int(model.history["dev_accuracy"].argmax()) + 1
    assert len(model.history) == best + 2


def test_observers_are_told_every_step_and_epoch(corpus: Corpus) -> None:
    events: list[Event] = []
    fit(corpus, observers=[events.append], **QUICK)
    steps = [event for event in events if isinstance(event, StepDone)]
    epochs = [event for event in events if isinstance(event, EpochDone)]
    assert [event.step for event in steps] == list(range(1, 3 * 12 + 1))
    assert [event.epoch for event in epochs] == [1, 2, 3]
    for epoch in range(1, 4):
        seen = torch.cat([event.batch.instances for event in steps if event.epoch == epoch])
        assert sorted(seen.tolist()) == list(range(600))


def test_a_step_of_sgd_is_minus_rate_times_the_gradient_of_the_stated_objective(corpus: Corpus) -> None:
    training = TrainingSettings.of(
        {"optimizer": "sgd", "learning_rate": 0.5, "learning_rate_decay": 0.0, "alignment_penalty": 0.3}
    )
    interface = Interface(vocabulary=corpus.vocabulary, tokenizer=corpus.tokenizer, class_names=corpus.class_names)
    state = TrainingState.start(interface, ModelSettings.of({"dropout": 0.0, "embedding_size": 5}), training)
    state.model.double()
    before = {name: p.detach().clone().requires_grad_() for name, p in state.model.named_parameters()}
    batch = corpus.train.batch(torch.arange(20))
    training_step(state, batch, training)
    e, v, w = before["embedding"], before["attention.context_vector"], before["readout_weight"]
    outputs = []
    for document in range(20):
        words = e[batch.tokens[batch.offsets[document] : batch.offsets[document + 1]]]
        outputs.append(torch.softmax(words @ v / 10, 0) @ words @ w[0])
    sign = batch.labels * 2.0 - 1
    (F.softplus(-sign * torch.stack(outputs)).mean() + 0.3 * (w @ v).abs().sum()).backward()
    for name, parameter in state.model.named_parameters():
        expected = before[name].detach() - 0.5 * before[name].grad  # type: ignore[operator]
        torch.testing.assert_close(parameter.detach(), expected, atol=1e-12, rtol=0)


def test_the_rate_decays_by_step(corpus: Corpus) -> None:
    rates: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, StepDone):
            rates.append(0.02 / (1 + 0.5 * (event.step - 1)))

    recorded = _recorded_rates(corpus, learning_rate_decay=0.5, observers=[listen])
    assert recorded == pytest.approx(rates, abs=1e-12)


def _recorded_rates(corpus: Corpus, **settings: Any) -> list[float]:
    """The rate each SGD step really used: how far the readout moved, over how long its gradient was."""
    import heedful.training.loop as loop

    used: list[float] = []
    original = loop.training_step

    def watched(state: TrainingState, *rest: Any) -> float:
        loss = original(state, *rest)
        used.append(float(state.optimizer.param_groups[0]["lr"]))
        return loss

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "training_step", watched)
        fit(corpus, **{**QUICK, **settings, "epochs": 1})
    return used


@pytest.mark.parametrize("scale", [0.001, 10_000.0])
@pytest.mark.parametrize("encoder", ["none", "lstm"])
def test_extreme_scales_give_finite_numbers(corpus: Corpus, encoder: str, scale: float) -> None:
    model = fit(corpus, encoder=encoder, score_scale=scale, **QUICK)
    assert all(bool(p.isfinite().all()) for p in model.parameters())
    assert model.history.notna().all().all()


def test_one_word_documents_and_a_class_seen_twice_train() -> None:
    texts = ["good", "bad", "fine", "poor"] * 6 + ["odd 😀"] * 2
    labels = ["pos", "neg"] * 12 + ["strange"] * 2
    model = fit(load_corpus((texts, labels)), **QUICK)
    assert model.classes == 3


def test_divergence_is_said_and_not_returned(corpus: Corpus) -> None:
    with pytest.raises(
        ConfigError, match=r"Training diverged: the loss of epoch \d+ is (nan|inf)\. Lower the learning"
    ):
        fit(corpus, optimizer="sgd", learning_rate=1e30, **QUICK)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"score_scale": 0.0}, "Setting 'score_scale' is 0.0: input should be greater than 0"),
        ({"score_scale": float("nan")}, "Setting 'score_scale' is nan: input should be a finite number"),
        ({"attention": "dott"}, "Setting 'attention' is 'dott': input should be 'dot' or 'additive'"),
        ({"dropout": 1.0}, "Setting 'dropout' is 1.0: input should be less than 1"),
        ({"epochs": 0}, "Setting 'epochs' is 0: input should be greater than or equal to 1"),
    ],
)
def test_wrong_settings_are_refused_with_a_sentence(corpus: Corpus, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fit(corpus, **settings)
    assert sentence in str(caught.value)


def test_the_defaults_of_fit_are_those_of_the_settings() -> None:
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(fit).parameters.items()
        if name not in {"corpus", "observers"}
    }
    settings = {**ModelSettings().model_dump(), **TrainingSettings().model_dump()}
    assert defaults == settings


def test_threads_are_restored(corpus: Corpus) -> None:
    before = torch.get_num_threads()
    fit(corpus, threads=2, **QUICK)
    assert torch.get_num_threads() == before


def test_evaluation_is_that_of_the_logits(corpus: Corpus) -> None:
    model = fit(corpus, **QUICK)
    logits = model(corpus.dev.batch(torch.arange(len(corpus.dev)))).detach()
    quality = evaluate(model, corpus.dev)
    assert quality.accuracy == pytest.approx(float((logits.argmax(1) == corpus.dev.labels).double().mean()), abs=1e-12)
    assert quality.loss == pytest.approx(float(F.cross_entropy(logits, corpus.dev.labels)), rel=1e-5)
