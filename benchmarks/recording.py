"""Recording the gradient flow of all tokens once, beside one traced pass over the same training texts."""

from benchmarks.erasure import timed
from heedful.config import ModelSettings
from heedful.models.classifier import Interface, make_classifier
from heedful.probes.scores import flow_terms
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.recipes import DATASETS
from heedful.tracing import trace
from heedful.training.loop import limited_threads
from heedful.training.state import generator

KINDS = {"dot": ("dot", "none"), "affine": ("dot", "affine"), "additive": ("additive", "none")}


def rows() -> list[dict[str, str]]:
    """On SST where it is at hand, otherwise on the synthetic corpus; one thread each."""
    corpus = load_corpus("sst" if DATASETS["sst"].available else "synthetic-1")
    with limited_threads(1):
        return [compare(name, corpus) for name in KINDS]


def compare(name: str, corpus: Corpus) -> dict[str, str]:
    attention, encoder = KINDS[name]
    interface = Interface(vocabulary=corpus.vocabulary, tokenizer=corpus.tokenizer, class_names=corpus.class_names)
    settings = ModelSettings.of({"attention": attention, "encoder": encoder})
    model = make_classifier(interface, settings, generator(0, "parameters"))
    recording = timed(lambda: flow_terms(model, corpus.train), 5)
    tracing = timed(lambda: trace(model, corpus.train), 5)
    return {
        "what": f"{name}, {corpus.name}, {len(corpus.vocabulary):,} tokens",
        "recording ms": f"{recording * 1e3:.1f}",
        "traced pass ms": f"{tracing * 1e3:.1f}",
        "recording / pass": f"{recording / tracing:.2f}",
        "needed": "≤ 1.5",
    }
