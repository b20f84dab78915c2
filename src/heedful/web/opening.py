"""Runs and folders of models, made ready; and real texts to start from."""

from itertools import islice
from pathlib import Path

import torch

from heedful.adapters import subject
from heedful.errors import HeedfulError, InputError
from heedful.pipeline import Run, read_corpus
from heedful.report.strips import telling_instances
from heedful.text.corpus import Corpus
from heedful.traces import Trace
from heedful.web.asking import ServedSubject
from heedful.web.served import Answer, ServedRun

EXAMPLES = 3
SHORTEST_EXAMPLE, LONGEST_EXAMPLE = 8, 120
"""Units of a text to start from, where there are such texts."""


def serve_run(run: Run, *, words: int) -> ServedRun:
    """A run that is ready: its model in float64, and some texts of its corpus to start from."""
    settings = run.settings
    if settings.model.attention_weights == "given":
        raise InputError(
            f"'{run.path.name}' was trained with attention weights from elsewhere, which a new text does not have. "
            "Serve a run with weights of its own."
        )
    model = run.model().exact()
    examples, notice = examples_of(run)
    structure = "hierarchical, " if model.hierarchical else ""
    model_words = f"{structure}{settings.model.attention} attention, {_encoder_words(settings.model.encoder)}"
    return ServedRun(
        name=run.path.name,
        title=f"{run.manifest['corpus']}: {model_words}, λ = {settings.model.score_scale:g}",
        words=words,
        examples=examples,
        notice=notice,
        unit="sentence" if model.hierarchical else "word",
        quick=not model.contextual,
        run=run,
        model=model,
    )


def _encoder_words(encoder: str) -> str:
    return "no encoder" if encoder == "none" else f"encoder {encoder}"


def serve_subject(folder: Path, *, words: int) -> ServedSubject:
    """A transformers classifier that is ready; nothing is fetched from elsewhere."""
    found = subject(folder)
    return ServedSubject(name=folder.resolve().name, title=folder.resolve().name, words=words, subject=found)


def examples_of(run: Run) -> tuple[list[Answer], str]:
    """Some texts of the test split, each with why; where the corpus is not at hand, none and why."""
    try:
        corpus = read_corpus(run.settings)
    except HeedfulError as error:
        return [], f"There are no texts to start from: {error}"
    if corpus.fingerprint != run.manifest["fingerprint"]:
        return [], "There are no texts to start from: the data are not those of the training any more."
    return telling_texts(run.trace(), corpus), ""


def telling_texts(trace: Trace, corpus: Corpus) -> list[Answer]:
    """A sure decision, a sure mistake, and one where attention and use part, of texts that are not very long."""
    usual = (trace.lengths >= SHORTEST_EXAMPLE) & (trace.lengths <= LONGEST_EXAMPLE)
    rows = usual.nonzero().squeeze(1) if usual.any() else torch.arange(len(trace))
    found = telling_instances(trace.take(rows), most=len(trace.class_names) + EXAMPLES)
    kinds: dict[str, tuple[int, str]] = {}
    for number, why in found:
        kinds.setdefault(why.partition(" for ")[0], (int(rows[number]), why))
    chosen = dict([*kinds.values(), *((int(rows[number]), why) for number, why in found)])
    return [
        {"text": corpus.test.texts[row], "label": corpus.class_names[int(corpus.test.labels[row])], "why": why}
        for row, why in islice(chosen.items(), EXAMPLES)
    ]
