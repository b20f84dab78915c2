"""Fixtures that several rooms share: a small corpus and a model fitted on it, the real data, the command line."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from hypothesis import settings
from matplotlib.figure import Figure as Canvas

from heedful import cli
from heedful.models.classifier import Classifier
from heedful.text import synthetic
from heedful.text.corpus import Corpus
from heedful.training.loop import fit, limited_threads
from tests.commands import Call, Outcome

os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported: no test asks a hub

settings.register_profile("heedful", deadline=None)  # a busy machine is not a wrong answer
settings.load_profile("heedful")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """For a few numbers, threads cost more than they give."""
    with limited_threads(1):
        yield


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


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made and not rendered, which takes seconds: for tests that look at something else of an audit."""

    def save(_: Canvas, target: Path | IO[bytes], **__: object) -> None:
        content = b"<svg></svg>"
        target.write_bytes(content) if isinstance(target, Path) else target.write(content)

    monkeypatch.setattr(Canvas, "savefig", save)
    monkeypatch.setattr(Canvas, "draw_without_rendering", lambda _: None)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command in this process."""

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["heedful", *map(str, arguments)])
        capsys.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return Outcome(code, said.out, said.err)

    return run
