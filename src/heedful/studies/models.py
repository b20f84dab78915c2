"""Models that are not trained here: what is meant by one, whose classes its answers are, and which texts it reads."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.adapters import subject
from heedful.adapters.asking import THREADS, SubjectError, checked_threads
from heedful.errors import DataError
from heedful.files import is_file
from heedful.notebook import counted, listed
from heedful.pipeline import Run
from heedful.store import MANIFEST
from heedful.subjects import Subject, Units
from heedful.sweep.loop import Measuring, SweepEvent
from heedful.text.corpus import Corpus


def subject_of(model: Any, *, truncate: bool = False, threads: int | None = None) -> Subject:
    """A subject from whatever is a model: a subject, a run of heedful's or its folder, or what `heedful.subject` takes.

    truncate: whether of texts that are too long for a transformer only the beginning is read.
    threads: of torch while it reads; None: those of a subject, one of anything else.
    """
    if isinstance(model, Run):
        return subject(model.model(), name=model.path.name)
    if isinstance(model, (str, os.PathLike)) and is_file(Path(model) / MANIFEST):
        return subject_of(Run(Path(model)))
    if isinstance(model, Subject):
        asked = {"truncate": truncate or None, "threads": None if threads is None else checked_threads(threads)}
        own = {name: value for name, value in asked.items() if value is not None and _has(model, name)}
        return replace(model, **own) if own else model  # type: ignore[type-var]
    return subject(model, truncate=truncate, threads=THREADS if threads is None else threads)


def _has(model: Any, name: str) -> bool:
    return name in {field.name for field in fields(model)} if hasattr(model, "__dataclass_fields__") else False


@dataclass
class Stages:
    """Tells what is being done, and how far it is; handed to a subject that asks its model for long."""

    watch: Callable[[SweepEvent], None] | None
    what: str = ""

    def begin(self, what: str) -> None:
        """Something else is done from now on."""
        self.what = what
        self(0, 0)

    def __call__(self, done: int, total: int) -> None:
        if self.watch is not None:
            self.watch(Measuring(what=self.what, done=done, total=total))

    def told(self, done: int, total: int, name: str) -> None:
        """So many of several are there, this one the last."""
        self.what = f"explaining ({name} is there)"
        self(done, total)

    def watched(self, model: Subject) -> Subject:
        """The subject, which says how far it is, where it can and nobody else is told."""
        return replace(model, watch=self) if _has(model, "watch") and model.watch is None else model  # type: ignore


@dataclass(frozen=True, kw_only=True)
class Classes:
    """For each class of a corpus its number in a model, and what must be said of how they were matched."""

    numbers: Int[Tensor, " classes"]
    notices: tuple[str, ...] = ()


def match_classes(corpus: Sequence[str], model: Sequence[str], who: str) -> Classes:
    """By name, whatever the case; where no name is the same by order, which is said.

    Of as many classes as there are labels: a model with more, labels that it does not know, are refused.
    """
    if len(corpus) != len(model):
        raise SubjectError(
            f"{who} has {len(model)} classes ({listed(model)}), the data have {len(corpus)} labels ({listed(corpus)}). "
            "Give texts of all classes, or a model of these."
        )
    own, known = [[name.strip().casefold() for name in names] for names in (corpus, model)]
    unknown = [name for name, plain in zip(corpus, own, strict=True) if plain not in known]
    if not unknown:
        return Classes(numbers=torch.tensor([known.index(plain) for plain in own]))
    if len(unknown) < len(corpus):
        raise SubjectError(
            f"{who} does not know the labels {listed(unknown)}: its classes are {listed(model)}. Call the labels as it "
            "does, or name its classes: heedful.subject(…, class_names=[…])."
        )
    pairs = listed([f"{one} is {other}" for one, other in zip(corpus, model, strict=True)])
    notice = (
        f"No label is called like a class of {who}, so they are matched by order: {pairs}. If that is wrong, name "
        "them: heedful.subject(…, class_names=[…])."
    )
    return Classes(numbers=torch.arange(len(corpus)), notices=(notice,))


def drawn_rows(count: int, most: int, seed: int) -> Int[Tensor, " rows"]:
    """At most so many of the numbers from 0 on, drawn by the seed, in their order."""
    rows = np.random.default_rng(seed).permutation(count)[:most]
    return torch.from_numpy(np.sort(rows))


def distinct_rows(texts: Sequence[str]) -> list[int]:
    """The first of texts that are copies of each other."""
    first: dict[str, int] = {}
    for row, text in enumerate(texts):
        first.setdefault(text, row)
    return list(first.values())


def cut_said(units: Units) -> list[str]:
    """What must be said of texts of which only the beginning was read."""
    if units.texts is None or units.spans is None:
        return []
    ends = units.spans[units.offsets[1:] - 1, 1].tolist()
    cut = sum(bool(text[end:].strip()) for text, end in zip(units.texts, ends, strict=True))
    return [f"Of {counted(cut, 'text')} only the beginning was read: the model cannot read more."] if cut else []


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Some test texts of a corpus, each once."""

    texts: list[str]
    labels: Int[Tensor, " texts"]

    def take(self, rows: Int[Tensor, " rows"]) -> "Texts":
        return Texts(texts=[self.texts[row] for row in rows.tolist()], labels=self.labels[rows])


def drawn_texts(corpus: Corpus, most: int, seed: int) -> tuple[Texts, list[str]]:
    """At most so many test texts, and what must be said of those that are not among them."""
    if most < 1:
        raise DataError(f"One test text or more must be read; {most} were asked for.")
    rows = distinct_rows(corpus.test.texts)
    kept = torch.tensor(rows)[drawn_rows(len(rows), most, seed)]
    said = []
    if len(rows) < len(corpus.test):
        said.append(f"{len(corpus.test) - len(rows):,} test texts are copies of others and are left out.")
    if len(kept) < len(rows):
        said.append(f"Of {len(rows):,} test texts {len(kept):,} were read, drawn by seed {seed}.")
    texts = [str(corpus.test.texts[row]) for row in kept.tolist()]
    return Texts(texts=texts, labels=corpus.test.labels[kept]), said
