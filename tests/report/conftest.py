"""A report on a corpus that would like to run code."""

from pathlib import Path

import pytest

from heedful.config import ModelSettings, RunSettings, TrainingSettings
from heedful.store import Store
from heedful.studies.audit import Audit, audit
from heedful.text.datasets import load_corpus

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
CLASSES = (SCRIPT, IMAGE, "{{ 7 * 7 }} & $x$")


@pytest.fixture(scope="session")
def hostile_audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """Three classes named like attacks, texts that hold them, one long word."""
    signs = ("awful", "middling", "superb")
    texts = [f"{signs[row % 3]} {SCRIPT} {IMAGE} text{row} {'x' * 300}" for row in range(120)]
    corpus = load_corpus((texts, [CLASSES[row % 3] for row in range(120)]))
    settings = RunSettings(model=ModelSettings(embedding_size=8), training=TrainingSettings(epochs=2))
    store = Store(tmp_path_factory.mktemp("store"))
    return audit(settings, store, corpus=corpus)


@pytest.fixture(scope="session")
def hostile_page(hostile_audit: Audit) -> Path:
    return hostile_audit.report
