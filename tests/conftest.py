"""Fixtures that several rooms share: a small corpus whose truth is known, a model fitted on it, the real data."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from heedful.models.classifier import Classifier
from heedful.text import synthetic
from heedful.text.corpus import Corpus
from heedful.training.loop import fit

settings.register_profile("heedful", deadline=None)  # a busy machine is not a wrong answer
settings.load_profile("heedful")


@pytest.fixture(scope="session")
def small_corpus() -> Corpus:
    """Two classes, 600 training texts of ten neutral and two polar words."""
    return synthetic.binary(name="small", seed=0, size=600)


@pytest.fixture(scope="session")
def small_model(small_corpus: Corpus) -> Classifier:
    """A model that has seen the small corpus a few times; do not change it."""
    return fit(small_corpus, embedding_size=16, epochs=3, batch_size=20)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real corpora."""
    given = os.environ.get("HEEDFUL_DATA")
    if not given:
        pytest.skip("HEEDFUL_DATA is not set: the real corpora are not at hand")
    return Path(given)
