"""The runs of the study of Serrano & Smith 2019: the paper's values, what samples take, and what is refused."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful.config import RunSettings
from heedful.errors import ConfigError, UnknownName
from heedful.papers import serrano2019 as facts
from heedful.pipeline import run
from heedful.store import Store
from heedful.studies.measures import called
from heedful.studies.serrano2019 import STUDY
from heedful.studies.serrano2019 import runs as study_runs
from heedful.studies.serrano2019.runs import (
    CONFIGURATIONS,
    EPOCHS,
    MODELS,
    NEAREST,
    QUICK,
    WHOLE,
    configured_as,
    cost,
    trial,
    trials,
)
from heedful.studies.study import want
from heedful.text import synthetic, vectors
from heedful.text.recipes import DATASETS


def test_the_models_are_those_of_the_paper_in_its_order() -> None:
    assert tuple(MODELS) == facts.MODELS
    assert set(CONFIGURATIONS) == {(corpus, model) for corpus in facts.NAMES for model in MODELS}


@pytest.mark.parametrize(
    ("model", "structure", "encoder", "patience"),
    [
        ("HANrnn", "hierarchical", "gru", 5),
        ("HANconv", "hierarchical", "conv", 5),
        ("HANnoenc", "hierarchical", "none", 10),
        ("FLANrnn", "flat", "gru", 5),
        ("FLANconv", "flat", "conv", 5),
        ("FLANnoenc", "flat", "none", 10),
    ],
)
def test_a_model_becomes_settings(model: str, structure: str, encoder: str, patience: int) -> None:
    settings = trial("yelp10k", model, 3).settings
    made, training = settings.model, settings.training
    assert (made.structure, made.encoder, training.patience) == (structure, encoder, patience)
    assert (made.attention, made.attention_bias, made.readout_bias, made.score_scale) == ("additive", True, True, 1.0)
    assert (made.embedding_size, made.hidden_size, made.vectors) == (200, 100, "word2vec")
    assert (training.optimizer, training.clip, training.plateau, training.seed) == ("adam", 10.0, 1, 3)
    assert (training.learning_rate_decay, training.weight_decay, made.document_dropout) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("corpus", "model", "dropouts", "rate"),
    [
        ("yahoo", "HANrnn", (0.4445, 0.2202, 0.3749), 0.0004),
        ("yahoo", "FLANnoenc", (0.4445, 0.0, 0.4457), 0.0004),
        ("imdb-10", "HANconv", (0.4445, 0.2202, 0.2457), 0.0004),
        ("imdb-10", "FLANrnn", (0.4445, 0.0, 0.3457), 0.0004),
        ("amazon", "HANnoenc", (0.6, 0.2, 0.4), 0.0002),
        ("amazon", "FLANconv", (0.6, 0.0, 0.4), 0.0002),
        ("yelp", "HANrnn", (0.7, 0.1, 0.7), 0.0001),
        ("yelp", "FLANrnn", (0.7, 0.0, 0.7), 0.0001),
    ],
)
def test_a_corpus_of_the_paper_has_the_values_of_its_appendix(
    corpus: str, model: str, dropouts: tuple[float, float, float], rate: float
) -> None:
    settings = trial(corpus, model).settings
    made = settings.model
    assert (made.dropout, made.sentence_dropout, made.logit_dropout) == dropouts
    assert (settings.training.learning_rate, settings.training.batch_size, settings.training.epochs) == (rate, 64, 60)


def test_a_sample_has_the_values_of_its_corpus_but_a_larger_rate_and_fewer_epochs() -> None:
    whole, sample = (trial(name, "FLANrnn").settings for name in ("amazon", "amazon-multi"))
    assert sample.model == whole.model
    changed = {"learning_rate": study_runs.SAMPLE_RATE, "epochs": EPOCHS["amazon-multi"]}
    assert sample.training == whole.training.model_copy(update=changed)


def test_every_data_set_has_a_corpus_of_the_paper() -> None:
    assert {name: configured_as(name) for name in (*WHOLE.datasets, "imdb-ratings", "pl-scale", "agnews", "yelp")} == {
        "yelp10k": "yelp",
        "amazon-multi": "amazon",
        "yahoo-1k": "yahoo",
        "imdb-ratings": "imdb-10",
        "pl-scale": "imdb-10",
        "agnews": "yahoo",
        "yelp": "yelp",
    }
    assert configured_as("my reviews.csv") == "yahoo"
    assert trial("my reviews.csv", "HANrnn").settings.data.min_count == 5
    assert set(NEAREST) | set(EPOCHS) <= set(DATASETS)


def test_the_selection_has_every_model_on_every_data_set_once_per_seed() -> None:
    wanted = trials(replace(WHOLE, seeds=2))
    assert len({one.settings for one in wanted}) == 36
    assert (wanted[0].dataset, wanted[0].model) == ("yelp10k", "HANrnn")
    assert wanted[1].columns["seed"] == 1
    assert tuple(called(name, facts.NAMES) for name in ("yelp", "yelp10k", "a/my.csv")) == ("Yelp", "yelp10k", "my.csv")


def test_the_quick_selection_has_every_model_and_few_epochs() -> None:
    settings = [one.settings for one in trials(QUICK)]
    assert len({one.model for one in settings}) == 6
    assert {one.data.source for one in settings} == {"yahoo-1k"}
    assert {one.training.epochs for one in settings} == {15}
    assert trial("yelp10k", "HANrnn", quick=True).settings.training.epochs == EPOCHS["yelp10k"]  # never more


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datasets": ("yelp10",)}, "There is no data set 'yelp10'. Did you mean 'yelp10k'?"),
        ({"models": ("HANrn",)}, "There is no model 'HANrn'. Did you mean 'HANrnn'?"),
        ({"seeds": 0}, "A study needs at least one seed, not 0."),
        ({"models": ()}, "A study needs at least one data set and one model"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises((UnknownName, ConfigError)) as caught:
        want(STUDY, **changes)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_long_runs_come_first() -> None:
    wanted = sorted([one.settings for one in trials(WHOLE)], key=cost, reverse=True)
    assert (wanted[0].data.source, wanted[0].model.encoder) == ("yelp10k", "gru")
    assert (wanted[-1].data.source, wanted[-1].model.encoder) == ("yahoo-1k", "none")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model small, trained for two epochs on vectors that were trained for two."""
    small = {"model.embedding_size": 8, "model.hidden_size": 8}
    models: Mapping[str, Mapping[str, Any]] = {name: {**changes, **small} for name, changes in MODELS.items()}
    monkeypatch.setattr(study_runs, "MODELS", models)
    monkeypatch.setattr(vectors, "RECIPE", {**vectors.RECIPE, "epochs": 2})


@pytest.mark.usefixtures("tiny")
def test_all_six_models_are_trained_and_found_again(tmp_path: Path) -> None:
    corpus = synthetic.binary(name="tiny", seed=0, size=60)
    store = Store(tmp_path)
    for wanted in trials(QUICK):
        settings = wanted.settings.change({"training.epochs": 1})
        made = run(settings, store, corpus=corpus)
        assert run(settings, store, corpus=corpus) == made
        assert made.settings == settings
        trace = made.trace()
        assert (trace.bias != 0).any()
        assert len(trace) == len(corpus.test)
    assert len(list((tmp_path / ".vectors").iterdir())) == 1  # six models, one training of word2vec


def test_settings_survive_a_file(tmp_path: Path) -> None:
    settings = trial("imdb-ratings", "HANrnn", 1).settings
    settings.write(tmp_path / "run.toml")
    assert RunSettings.read(tmp_path / "run.toml") == settings
