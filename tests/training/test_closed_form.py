"""Compiled epochs beside a literal training, their masks, and who trains by them."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.config import ModelSettings, TrainingSettings
from heedful.models.classifier import Interface
from heedful.text.corpus import Corpus, Split
from heedful.text.ragged import offsets_of
from heedful.text.synthetic import binary
from heedful.text.tokenize import Tokenizer, Tokens, Vocabulary
from heedful.training import epoch as epochs
from heedful.training.closed_form import bend, run_steps
from heedful.training.epoch import closed_form_epoch, in_closed_form, rules_of
from heedful.training.events import EpochDone, Event, StepDone, hears_steps
from heedful.training.loop import fit, train
from heedful.training.masks import Dropout, draw_words, fresh_state, read_mask
from heedful.training.objectives import cross_entropy, diverse
from heedful.training.state import TrainingState
from tests.oracles.closed_form import literal_mask, literal_training, xoshiro

QUICK: dict[str, Any] = {"embedding_size": 6, "hidden_size": 5, "batch_size": 3}
DOCUMENTS = [[1, 2, 1, 1, 3], [4], [2, 2], [5, 1, 6, 7, 8, 2], [3, 4, 5], [8], [1, 8, 1]]


def make_split(documents: list[list[int]], classes: int) -> Split:
    numbers = torch.tensor([token for document in documents for token in document])
    return Split(
        texts=["text"] * len(documents),
        labels=torch.arange(len(documents)) % classes,
        tokens=Tokens(
            numbers=numbers,
            offsets=offsets_of(torch.tensor([len(document) for document in documents])),
            spans=torch.zeros(len(numbers), 2, dtype=torch.int32),
        ),
    )


def start(classes: int, tokens: int = 9, **settings: Any) -> tuple[TrainingState, TrainingSettings]:
    chosen = {**QUICK, **settings}
    model, training = (
        kind.of({name: value for name, value in chosen.items() if name in kind.model_fields})
        for kind in (ModelSettings, TrainingSettings)
    )
    assert isinstance(model, ModelSettings)
    assert isinstance(training, TrainingSettings)
    interface = Interface(
        vocabulary=Vocabulary.of(f"w{n}" for n in range(tokens - 1)),
        tokenizer=Tokenizer(),
        class_names=tuple(f"c{n}" for n in range(classes)),
    )
    return TrainingState.start(interface, model, training), training


def run_epoch(
    state: TrainingState, split: Split, training: TrainingSettings, *, singly: bool = False
) -> tuple[list[int], list[float]]:
    """The order of an epoch and its losses."""
    steps = list(closed_form_epoch(state, split, training, singly=singly))
    return torch.cat([rows for rows, *_ in steps]).tolist(), [loss for _, loss, _ in steps]


VARIANTS: list[dict[str, Any]] = [
    {"attention": "additive", "context_size": 4, "alignment_penalty": 0.3},
    {"attention": "additive", "attention_bias": True, "readout_bias": True, "dropout": 0.3, "document_dropout": 0.25},
    {"encoder": "affine", "attention": "additive", "context_size": 4, "alignment_penalty": 0.3, "weight_decay": 0.2},
    {"encoder": "affine", "attention": "additive", "attention_bias": True, "alignment_penalty": 0.1},
    {"encoder": "affine", "weight_decay": 0.2, "learning_rate_decay": 0.5, "dropout": 0.5, "document_dropout": 0.0},
    {"dropout": 0.0, "document_dropout": 0.5, "score_scale": 0.5, "readout_bias": True},
]
GRID: list[dict[str, Any]] = [
    {**kind, "dropout": dropout, "alignment_penalty": penalty}
    for kind, dropout, penalty in itertools.product(
        ({"attention": "dot"}, {"attention": "additive"}, {"encoder": "affine"}), (0.0, 0.5), (0.0, 0.3)
    )
]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("settings", [*GRID, *VARIANTS], ids=str)
def test_an_epoch_is_the_literal_one_with_the_same_masks(settings: dict[str, Any], classes: int) -> None:
    state, training = start(classes, learning_rate=0.1, **{"score_scale": 2.0, **settings})
    state.model.double()
    split = make_split(DOCUMENTS, classes)
    before = {name: tensor.clone() for name, tensor in state.model.state_dict().items()}
    twin = torch.Generator()
    twin.set_state(state.dropout.get_state())
    words = [int(word) for word in fresh_state(twin)]
    assert in_closed_form(state, training, cross_entropy, None)
    order, losses = run_epoch(state, split, training)
    chosen = {**state.model.settings.model_dump(), **training.model_dump()}
    chosen["document_dropout"] = chosen["dropout"] if chosen["document_dropout"] is None else chosen["document_dropout"]
    labels = split.labels.tolist()
    expected, their_losses = literal_training(before, DOCUMENTS, labels, order, words, chosen)
    assert losses == pytest.approx(their_losses, abs=1e-12)
    for name, tensor in state.model.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-11, rtol=0, msg=f"{name} differs")
    assert any(not torch.equal(before[name], tensor) for name, tensor in state.model.state_dict().items())


@pytest.mark.parametrize("kind", [{"attention": "dot"}, {"attention": "additive"}, {"encoder": "affine"}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_single_precision_stays_near_the_double(kind: dict[str, Any], classes: int) -> None:
    """Gradients that rounding alone makes are as large a step to Adagrad as any: the losses are compared."""
    found = []
    for double in (False, True):
        state, training = start(classes, score_scale=3.0, learning_rate=0.05, **kind)
        state.model.double() if double else state.model.float()
        found.append([run_epoch(state, make_split(DOCUMENTS, classes), training)[1] for _ in range(3)])
    assert np.array(found[0]) == pytest.approx(np.array(found[1]), abs=2e-4)


def test_random_words_are_those_of_xoshiro() -> None:
    """The first words from the state 1, 2, 3, 4 as the generator's authors have them."""
    state, words = np.array([1, 2, 3, 4], np.uint64), np.empty(3, np.uint64)
    draw_words(state, words)
    assert words.tolist() == [41943041, 58720359, 3588806011781223]
    literal = xoshiro([1, 2, 3, 4])
    assert [next(literal) for _ in range(3)] == words.tolist()
    draw_words(state, words)
    assert [next(literal) for _ in range(3)] == words.tolist()


@pytest.mark.parametrize("rate", [0.5, 0.25, 0.3])
@pytest.mark.parametrize("size", [1, 7, 100, 130])
def test_masks_are_the_literal_ones(rate: float, size: int) -> None:
    dropout, mask = Dropout.of(rate), np.empty(size, np.float64)
    words = np.empty(dropout.words(size), np.uint64)
    draw_words(np.array([5, 6, 7, 8], np.uint64), words)
    read_mask(words, dropout, mask)
    assert mask.tolist() == literal_mask(iter(words.tolist()), size, rate).tolist()


@pytest.mark.parametrize("rate", [0.5, 0.25, 0.1])
def test_masks_have_their_rate_and_hang_neither_on_each_other_nor_on_their_place(rate: float) -> None:
    """Drawn as steps draw them: a row of features for each token, one after the other."""
    tokens, features = 4000, 50
    dropout, state = Dropout.of(rate), fresh_state(torch.Generator().manual_seed(0))
    masks, words = np.empty((tokens, features), np.float32), np.empty(dropout.words(features), np.uint64)
    for mask in masks:
        draw_words(state, words)
        read_mask(words, dropout, mask)
    gone = (masks == 0).astype(float)
    assert masks.max() == pytest.approx(1 / (1 - rate), rel=1e-4)
    deviation = (rate * (1 - rate)) ** 0.5
    assert gone.mean() == pytest.approx(rate, abs=5 * deviation / (tokens * features) ** 0.5)
    centred = (gone - rate) / deviation
    between_features = (centred.T @ centred / tokens)[~np.eye(features, dtype=bool)]
    assert np.abs(between_features).max() < 6 / tokens**0.5
    for lag in (1, 2, 3):
        between_tokens = (centred[lag:] * centred[:-lag]).mean(0)
        assert np.abs(between_tokens).max() < 6 / tokens**0.5


def test_the_quick_tanh_is_the_tanh() -> None:
    values = np.concatenate([np.linspace(-12, 12, 20_001), 10.0 ** np.arange(-30, 2)]).astype(np.float32)
    expected, found = np.tanh(values.astype(np.float64)), values.copy()
    bend(found)
    assert np.abs(found - expected).max() < 3e-7
    small = np.abs(values) < 1e-3
    assert np.abs(found[small] / np.where(values[small] == 0, 1, values[small]) - (values[small] != 0)).max() < 1e-6


@pytest.mark.parametrize("kind", [{"attention": "dot"}, {"attention": "additive"}, {"encoder": "affine"}], ids=str)
def test_tiny_scales_long_texts_and_batches_of_one_give_finite_numbers(kind: dict[str, Any]) -> None:
    long = np.random.default_rng(0).integers(0, 40, 100_000).tolist()
    split = make_split([long, [1], [2, 2, 2], [3, 3, 4]], 2)
    for scale in (0.001, 10_000.0):
        for size in (1, 3):
            state, training = start(2, 40, score_scale=scale, **{**kind, "batch_size": size, "learning_rate": 0.5})
            for _ in range(2):
                assert np.isfinite(run_epoch(state, split, training)[1]).all()
            assert all(bool(tensor.isfinite().all()) for tensor in state.model.state_dict().values())


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return binary(name="small", seed=0, size=300)


class Epochs:
    """An observer that asks for no steps."""

    hears_steps = False

    def __init__(self) -> None:
        self.heard: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.heard.append(event)


def parameters_after(corpus: Corpus, observers: list[Any], **settings: Any) -> dict[str, Tensor]:
    return fit(corpus, observers=observers, epochs=3, **{**QUICK, "batch_size": 20, **settings}).state_dict()


@pytest.mark.parametrize("kind", [{"attention": "dot"}, {"attention": "additive"}, {"encoder": "affine"}], ids=str)
def test_whoever_listens_the_bits_are_the_same(corpus: Corpus, kind: dict[str, Any], monkeypatch: Any) -> None:
    heard: list[Event] = []
    quiet = Epochs()
    assert (hears_steps(heard.append), hears_steps(quiet)) == (True, False)
    first = parameters_after(corpus, [quiet], **kind)
    single = parameters_after(corpus, [heard.append, quiet], **kind)
    monkeypatch.setattr(epochs, "STRETCH", 4)
    stretched = parameters_after(corpus, [], **kind)
    for name, tensor in first.items():
        assert torch.equal(tensor, single[name]), name
        assert torch.equal(tensor, stretched[name]), name
    assert len([event for event in heard if isinstance(event, StepDone)]) == 3 * 15
    assert all(isinstance(event, EpochDone) for event in quiet.heard)


def test_an_interrupted_training_goes_on_to_the_same_bits(corpus: Corpus, tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    def kill(event: Event) -> None:
        if isinstance(event, EpochDone) and event.epoch == 3:
            raise Killed

    settings = {**QUICK, "encoder": "affine", "dropout": 0.3, "epochs": 4, "batch_size": 20}
    model, training = (
        kind.of({name: value for name, value in settings.items() if name in kind.model_fields})
        for kind in (ModelSettings, TrainingSettings)
    )
    assert isinstance(model, ModelSettings)
    assert isinstance(training, TrainingSettings)
    place = tmp_path / "checkpoint"
    whole = train(corpus, model, training)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heedful.training.loop.CHECKPOINT_SECONDS", 0.0)
        with pytest.raises(Killed):
            train(corpus, model, training, observers=[kill], checkpoint=place)
    again = train(corpus, model, training, checkpoint=place)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name


@pytest.mark.parametrize(
    ("settings", "compiled"),
    [
        ({}, True),
        ({"readout_bias": True}, True),
        ({"attention": "additive"}, False),
        ({"encoder": "affine", "weight_decay": 0.1, "alignment_penalty": 0.1, "plateau": 1}, True),
        ({"dropout_mask": "occurrence", "dropout": 0.0, "document_dropout": 0.5}, True),
        ({"threads": 2}, True),
        ({"dropout_mask": "occurrence"}, False),
        ({"encoder": "tanh"}, False),
        ({"encoder": "lstm"}, False),
        ({"structure": "hierarchical"}, False),
        ({"normaliser": "sparsemax"}, False),
        ({"attention_weights": "uniform"}, False),
        ({"attention_weights": "frozen"}, False),
        ({"logit_dropout": 0.1}, False),
        ({"optimizer": "adam"}, False),
        ({"optimizer": "sgd"}, False),
        ({"clip": 1.0}, False),
        ({"weight_decay": 0.1, "decayed": "all but attention"}, False),
    ],
    ids=str,
)
def test_who_trains_by_compiled_steps(
    corpus: Corpus, settings: dict[str, Any], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {"compiled": 0, "differentiated": 0}

    def counted(name: str, original: Any) -> Any:
        def call(*given: Any) -> Any:
            calls[name] += 1
            return original(*given)

        return call

    import heedful.training.loop as loop

    monkeypatch.setattr(epochs, "run_steps", counted("compiled", run_steps))
    monkeypatch.setattr(loop, "training_step", counted("differentiated", loop.training_step))
    fit(corpus, epochs=1, **{**QUICK, "batch_size": 100, "hidden_size": 6, **settings})
    assert calls == ({"compiled": 1, "differentiated": 0} if compiled else {"compiled": 0, "differentiated": 3})


def test_another_objective_is_differentiated() -> None:
    state, training = start(2)
    assert in_closed_form(state, training, cross_entropy, None)
    assert not in_closed_form(state, training, diverse(1.0), None)


def test_the_rate_is_halved_after_a_plateau() -> None:
    state, training = start(2, learning_rate=0.08, plateau=1)
    for accuracies, rate in (([], 0.08), ([0.5, 0.6], 0.08), ([0.5, 0.6, 0.6], 0.04), ([0.5, 0.4, 0.4], 0.02)):
        state.rows = [{"epoch": number, "dev_accuracy": found} for number, found in enumerate(accuracies, 1)]
        assert rules_of(state, training).rate == rate
