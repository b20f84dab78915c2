"""The texts of the audit of a model that was not trained here: attention beside the best explanation, with the smallest
set that flips the decision, which is provably the smallest where the model has a trace."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool
from torch import Tensor

from heedful.analysis.erasure import minimum_sets
from heedful.report.instances import Instances, Trait
from heedful.report.page import Section
from heedful.report.strips import ATTENTION, Example, Shading
from heedful.studies.foreign_found import Parts
from heedful.studies.measures import MINIMUM
from heedful.studies.telling import MISLEADS, ONE, RIGHT, WRONG, many_words, needed_along, resting_of

SHOWN = 5
"""Texts that are worth reading first."""

PROVEN, FOUND = "provably the smallest set that flips the decision", "the smallest set found that flips the decision"


def key_of(texts: Instances) -> str:
    """What the strips show."""
    framed = f" Framed: together {texts.mark}." if texts.mark else ""
    return (
        "Each text as the attention its words get, and as the best explanation sees it (green speaks for the decision, "
        f"purple against it).{framed} Each strip is relative to its own strongest word; point at a word or tap it for "
        "the number, or go through a strip by the arrow keys."
    )


def texts_of(parts: Parts) -> Instances:
    """The explained texts as strips."""
    few, units = parts.few, parts.few.reading.units
    assert units.texts is not None
    assert units.spans is not None
    marks = _marks(parts)
    whole = Instances(
        texts=units.texts,
        offsets=units.offsets,
        spans=units.spans,
        shadings=list(_shadings(parts)),
        marks=torch.zeros(len(units.segments), dtype=torch.bool) if marks is None else marks,
        predicted=few.reading.decisions,
        probability=few.reading.probabilities.amax(1),
        labels=few.labels,
        class_names=few.model.class_names,
        needed=_needed(parts),
        mark="" if marks is None else PROVEN if few.trace is not None else FOUND,
    )
    return whole.with_traits(list(_traits(parts, whole)))


def _marks(parts: Parts) -> Bool[Tensor, " units"] | None:
    """The smallest set of each text whose decision rests on a part of it, where that is known."""
    segments = parts.few.reading.units.segments
    if parts.removed is not None:
        return parts.removed.sets.gone & parts.removed.sets.resting[segments]
    if parts.few.trace is None:
        return None
    marks, _ = minimum_sets(parts.few.trace)
    return marks & resting_of(parts.few.trace, marks)[segments]


def _needed(parts: Parts) -> dict[str, list[int | None]]:
    """How many words go along each explanation until the decision flips, where they were taken away."""
    if parts.removed is None:
        return {}
    flips = parts.removed.tables["flips"]
    names = [str(name) for name in flips["ranking"].unique() if name not in {MINIMUM, "random"}]
    return {name.replace("_", " "): needed_along(flips, name, len(parts.few.texts.texts)) for name in names}


def _shadings(parts: Parts) -> Iterator[Shading]:
    attention, choice = parts.compared.explanation(ATTENTION), parts.compared.choice
    best = parts.compared.explanation(choice.best) if choice else None
    if attention is not None:
        yield Shading(name=ATTENTION, values=attention.scores, note="attention {:.3f}")
    if best is not None:
        name = best.method.replace("_", " ")
        yield Shading(name=name, values=best.scores, note=f"{name} {{:+.3f}}", signed=best.signed)


def _traits(parts: Parts, texts: Instances) -> Iterator[Trait]:
    yield Trait(name=WRONG, words="the decision is not the label", where=texts.predicted != parts.few.labels)
    if not texts.mark:
        return
    count = texts.marked
    if any(shading.name == ATTENTION for shading in texts.shadings):
        said = "the most attended words are a smallest set that flips the decision"
        yield Trait(name=RIGHT, words=said, where=texts.marked_first(ATTENTION) & (count > 0))
        said = "the most attended word is not of the smallest set that flips the decision"
        yield Trait(name=MISLEADS, words=said, where=~texts.top_marked(ATTENTION) & (count > 0))
    yield Trait(name=ONE, words="one of its words is enough to flip the decision", where=count == 1)


def opening(texts: Instances) -> list[Example]:
    """A text where attention is right, and one where it misleads, as far as there are such."""
    known = {trait.name: trait for trait in texts.traits}
    resting, shown = int((texts.marked > 0).sum()), []
    for name, title in ((RIGHT, "Here attention is right"), (MISLEADS, "Here it misleads")):
        row = texts.typical(known[name].where) if name in known else None
        if row is not None:
            count = int(known[name].where.sum())
            shown.append(texts.example(row, title, f"{many_words(count, resting)}: {known[name].words}."))
    return shown


def texts_section(parts: Parts, texts: Instances) -> Section:
    """All explained texts to be looked into, and some that are worth reading first."""
    chosen: dict[int, str] = {}
    for number, name in enumerate(texts.class_names[:2]):
        _take(chosen, texts.probability.where(texts.predicted == number, -1.0), f"surest for {name}")
    _take(chosen, texts.probability.where(texts.predicted != parts.few.labels, -1.0), "surest mistake")
    for trait in texts.traits:
        if trait.name == MISLEADS:
            _take(chosen, trait.where * texts.probability, trait.words)
    shown = [texts.example(row, why) for row, why in list(chosen.items())[:SHOWN]]
    return Section(
        name="examples", title="Test texts", instances=texts, texts=shown, key=key_of(texts), on_terminal=False
    )


def _take(chosen: dict[int, str], values: Tensor, why: str) -> None:
    """The text with the largest value that is not there yet, if it is above zero."""
    for row in values.argsort(descending=True, stable=True).tolist():
        if float(values[row]) <= 0:
            return
        if row not in chosen:
            chosen[row] = why
            return
