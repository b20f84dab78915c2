"""`fit`: learns what was planted, same seed same bits, chooses the best epoch, and tells its observers."""

import inspect
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.analysis.statistics import area
from heedful.config import ModelSettings, TrainingSettings
from heedful.errors import ConfigError
from heedful.models.classifier import Interface
from heedful.probes.scores import token_scores
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.ragged import Batch
from heedful.text.synthetic import binary, multi
from heedful.text.tokenize import Tokenizer, Vocabulary
from heedful.training.events import EpochDone, Event, StepDone
from heedful.training.loop import fit, training_step
from heedful.training.objectives import Quality, evaluate
from heedful.training.state import TrainingState, best_epoch
from tests.models.test_hierarchical import documents_of_sentences
from tests.oracles.adam import LiteralAdam
from tests.oracles.classifiers import literal_logits

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


def test_the_first_epoch_with_the_best_dev_accuracy_is_returned_as_the_papers_have_it(corpus: Corpus) -> None:
    model = fit(corpus, ties="first", **{**QUICK, "epochs": 8})
    best = model.history["dev_accuracy"].max()
    assert evaluate(model, corpus.dev).accuracy == best
    first = int(model.history["dev_accuracy"].argmax()) + 1
    assert model.history.loc[model.history["kept"], "epoch"].tolist() == [first]
    stopped = fit(corpus, ties="first", **{**QUICK, "epochs": first})
    assert torch.equal(model.embedding, stopped.embedding)


def test_of_epochs_with_equal_dev_accuracy_the_one_with_the_smallest_dev_loss_is_kept(corpus: Corpus) -> None:
    model = fit(corpus, learning_rate=0.2, **{**QUICK, "epochs": 20})
    equal = model.history[model.history["dev_accuracy"] == model.history["dev_accuracy"].max()]
    assert len(equal) > 1
    assert model.history.loc[model.history["kept"], "dev_loss"].tolist() == [equal["dev_loss"].min()]
    assert evaluate(model, corpus.dev).loss == equal["dev_loss"].min()


@pytest.mark.parametrize(("ties", "expected"), [("first", 2), ("loss", 4)])
def test_the_best_epoch_by_hand(ties: str, expected: int) -> None:
    measured = zip((0.5, 0.75, 0.75, 0.75, 0.25), (0.1, float("nan"), 0.9, 0.8, 0.0), strict=True)
    rows = [{"epoch": n, "dev_accuracy": found, "dev_loss": loss} for n, (found, loss) in enumerate(measured, 1)]
    assert best_epoch(rows, ties) == expected


def test_patience_stops_so_many_epochs_after_the_best(corpus: Corpus) -> None:
    model = fit(corpus, patience=2, ties="first", **{**QUICK, "epochs": 60})
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


@pytest.mark.parametrize("encoder", ["none", "lstm"])
def test_every_epoch_reads_the_texts_in_another_order(corpus: Corpus, encoder: str) -> None:
    """Batches of other texts in every epoch, and not those that stand side by side."""
    seen: dict[int, list[list[int]]] = {}

    def listen(event: Event) -> None:
        if isinstance(event, StepDone):
            seen.setdefault(event.epoch, []).append(sorted(event.batch.instances.tolist()))

    fit(corpus, encoder=encoder, observers=[listen], **{**QUICK, "epochs": 2})
    first, second = ({tuple(batch) for batch in batches} for batches in seen.values())
    assert not first & second
    assert all(max(batch) - min(batch) > 300 for batch in (*first, *second))


def test_the_loss_of_an_epoch_is_the_mean_over_texts_and_not_over_batches(corpus: Corpus) -> None:
    """600 texts in batches of 250, 250 and 100."""
    steps: list[StepDone] = []

    def listen(event: Event) -> None:
        if isinstance(event, StepDone):
            steps.append(event)

    model = fit(corpus, observers=[listen], **{**QUICK, "epochs": 1, "batch_size": 250})
    assert [len(step.batch) for step in steps] == [250, 250, 100]
    mean = sum(step.loss * len(step.batch) for step in steps) / 600
    assert model.history["train_loss"].tolist() == pytest.approx([mean], rel=1e-12)
    assert mean != pytest.approx(sum(step.loss for step in steps) / 3, rel=1e-5)


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
        fit(corpus, **{**QUICK, "optimizer": "sgd", **settings, "epochs": 1})
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
        if name not in {"corpus", "base", "impermissible", "observers"}
    }
    settings = {**ModelSettings().model_dump(), **TrainingSettings().model_dump()}
    assert defaults == settings


def test_threads_are_restored(corpus: Corpus) -> None:
    before = torch.get_num_threads()
    fit(corpus, threads=2, **QUICK)
    assert torch.get_num_threads() == before


def test_evaluation_is_that_of_the_logits(corpus: Corpus) -> None:
    model = fit(corpus, **QUICK)
    logits = model(corpus.dev.batch(torch.arange(len(corpus.dev)))).logits.detach()
    quality = evaluate(model, corpus.dev)
    assert quality.accuracy == pytest.approx(float((logits.argmax(1) == corpus.dev.labels).double().mean()), abs=1e-12)
    assert quality.loss == pytest.approx(float(F.cross_entropy(logits, corpus.dev.labels)), rel=1e-5)


def _scripted(corpus: Corpus, accuracies: list[float], **settings: Any) -> tuple[list[list[float]], pd.DataFrame]:
    """A training whose dev accuracies are given: all rates of the optimiser's groups in each epoch, and its history."""
    import heedful.training.loop as loop

    used: dict[int, set[tuple[float, ...]]] = {}
    original = loop.training_step
    script = iter(accuracies)

    def watched(state: TrainingState, *rest: Any) -> float:
        loss = original(state, *rest)
        used.setdefault(state.epoch, set()).add(tuple(group["lr"] for group in state.optimizer.param_groups))
        return loss

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "training_step", watched)
        patch.setattr(loop, "evaluate", lambda *_: Quality(loss=1.0, accuracy=next(script)))
        tiny: dict[str, Any] = {"embedding_size": 2, "batch_size": 300, "attention": "additive", "optimizer": "adam"}
        model = fit(corpus, **{**tiny, "learning_rate": 0.08, "learning_rate_decay": 0.0, **settings})
    return [[rate for rates in used[epoch] for rate in rates] for epoch in sorted(used)], model.history


@pytest.mark.parametrize(
    ("plateau", "rates"),
    [
        (None, [0.08] * 9),
        (1, [0.08, 0.08, 0.08, 0.04, 0.02, 0.02, 0.01, 0.005, 0.0025]),
        (2, [0.08, 0.08, 0.08, 0.08, 0.04, 0.04, 0.04, 0.02, 0.02]),
        (3, [0.08] * 8 + [0.04]),
    ],
)
def test_the_optimiser_steps_with_half_the_rate_after_each_plateau(
    corpus: Corpus, plateau: int | None, rates: list[float]
) -> None:
    """Best are the epochs 1, 2 and 5; the epochs 3 and 6 only equal the best. Both groups have the same rate."""
    accuracies = [0.5, 0.6, 0.6, 0.55, 0.7, 0.7, 0.1, 0.2, 0.3]
    used, _ = _scripted(corpus, accuracies, plateau=plateau, epochs=9)
    assert used == [[rate, rate] for rate in rates]


@pytest.mark.parametrize(("patience", "epochs"), [(1, 3), (2, 4), (3, 8), (4, 9), (None, 10)])
def test_patience_ends_training_so_many_epochs_after_the_first_best(
    corpus: Corpus, patience: int | None, epochs: int
) -> None:
    """Best are the epochs 2 and 5; to equal the best is not to beat it."""
    accuracies = [0.5, 0.6, 0.6, 0.55, 0.7, 0.7, 0.1, 0.2, 0.7, 0.4]
    used, history = _scripted(corpus, accuracies, patience=patience, plateau=1, epochs=10)
    assert history["dev_accuracy"].tolist() == accuracies[:epochs]
    assert len(used) == epochs


def _han(tokens: int, **training: Any) -> tuple[TrainingState, TrainingSettings]:
    """A small HAN in double precision with all biases and so many tokens, about to be trained."""
    settings = TrainingSettings.of({"learning_rate_decay": 0.0, **training})
    interface = Interface(
        vocabulary=Vocabulary.of(f"w{n}" for n in range(tokens - 1)),
        tokenizer=Tokenizer(),
        class_names=("a", "b", "c"),
    )
    model = ModelSettings.of(
        {"structure": "hierarchical", "attention": "additive", "encoder": "gru", "embedding_size": 3, "hidden_size": 4,
         "dropout": 0.0, "score_scale": 1.0, "attention_bias": True, "readout_bias": True}
    )  # fmt: skip
    state = TrainingState.start(interface, model, settings)
    state.model.double()
    return state, settings


def _batch(documents: list[list[list[int]]], labels: list[int]) -> Batch:
    return replace(documents_of_sentences(documents), labels=torch.tensor(labels))


def _literal_gradients(state: TrainingState, documents: list[list[list[int]]], labels: list[int]) -> dict[str, Tensor]:
    """Of the mean cross-entropy, dense, by autograd through the literal forward pass."""
    leaves = {name: p.detach().clone().requires_grad_() for name, p in state.model.named_parameters()}
    logits = literal_logits(leaves, documents, encoder="gru", hierarchical=True)
    losses = [-torch.log_softmax(row, 0)[label] for row, label in zip(logits, labels, strict=True)]
    gradients = torch.autograd.grad(torch.stack(losses).mean(), list(leaves.values()))
    return dict(zip(leaves, gradients, strict=True))


@pytest.mark.parametrize(("scale", "clipped"), [(300.0, True), (1.0, False)])
def test_a_step_is_clipped_as_torch_clips_dense_gradients(scale: float, clipped: bool) -> None:
    """A step of SGD at rate 1 is the gradient itself. Words repeat, within documents and between them."""
    state, settings = _han(8, optimizer="sgd", learning_rate=1.0, clip=10.0)
    with torch.no_grad():
        state.model.readout_weight.mul_(scale)
    before = {name: p.detach().clone() for name, p in state.model.named_parameters()}
    documents, labels = [[[1, 2, 2], [5]], [[2, 1, 4]]], [0, 2]
    copies = {name: nn.Parameter(value.clone()) for name, value in before.items()}
    for name, gradient in _literal_gradients(state, documents, labels).items():
        copies[name].grad = gradient
    norm = float(nn.utils.clip_grad_norm_(copies.values(), 10.0))
    assert (norm > 20) == clipped
    training_step(state, _batch(documents, labels), settings)
    assert state.model.embedding.grad is not None
    assert state.model.embedding.grad.is_sparse
    steps = {name: before[name] - p.detach() for name, p in state.model.named_parameters()}
    joint = float(torch.cat([step.flatten() for step in steps.values()]).norm())
    assert joint == pytest.approx(10.0 if clipped else norm, rel=1e-12)
    for name, step in steps.items():
        # torch divides by the norm plus 1e-6
        torch.testing.assert_close(step, copies[name].grad, atol=1e-13, rtol=1e-6 / norm + 1e-11)


def test_three_steps_of_adam_are_those_of_the_formula_for_used_and_unused_words() -> None:
    """Moments of a word decay, and move it, in steps that do not use it; a word that was never used stays."""
    state, settings = _han(8, optimizer="adam", learning_rate=0.01)
    literal = LiteralAdam(rate=0.01)
    values = {name: p.detach().clone() for name, p in state.model.named_parameters()}
    tables = [values["embedding"]]
    steps: list[tuple[list[list[list[int]]], list[int]]] = [
        ([[[1, 2, 2], [5]], [[2, 1]]], [0, 2]),
        ([[[3, 3]], [[4], [1, 3]]], [1, 0]),
        ([[[4, 1, 4]]], [2]),
    ]
    for documents, labels in steps:
        values = literal.update(values, _literal_gradients(state, documents, labels))
        training_step(state, _batch(documents, labels), settings)
        tables.append(values["embedding"])
        for name, parameter in state.model.named_parameters():
            torch.testing.assert_close(parameter.detach(), values[name], atol=1e-12, rtol=0)
    moved = [[bool((after[word] != before[word]).all()) for word in (2, 3, 6)] for before, after in pairwise(tables)]
    assert moved == [[True, False, False], [True, True, False], [True, True, False]]
    assert torch.equal(state.model.embedding[6].detach(), tables[0][6])
