"""Texts that tell: all of a split to be looked into, and the three that a report opens with.

Where attention is right, where it misleads, and where another attention gives the same output; of each it is said by
which rule it was chosen, and of how many texts the same is true.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.analysis.decisions import decisions
from heedful.analysis.erasure import minimum_sets
from heedful.claims.manipulation import FAR, WITHIN
from heedful.figures.style import brief
from heedful.models.classifier import Classifier
from heedful.notebook import counted
from heedful.report.instances import Instances, Trait, usual_lengths
from heedful.report.strips import ATTENTION, PUSHES, USED, Example, Shading, shadings_of
from heedful.studies.attack import AttackedAttention, example_row, replaced_weights
from heedful.studies.examine import Examination
from heedful.studies.measures import MINIMUM
from heedful.text.corpus import Split
from heedful.traces import Trace
from heedful.tracing import unit_spans, words_within

RIGHT, MISLEADS, ONE, ELSEWHERE = "attention is right", "attention misleads", "one is enough", "attention far away"
WRONG = "wrongly decided"

GUIDES = ("attention", "gradient", "product", "margin")
"""The rankings whose flips are told of every text."""

HALF = 0.5
"""Attention misleads where less than half of the lead goes with as many units as the smallest set has."""

MOST_NAMED = 4  # units that share another attention, by name

NEARBY = 0.1  # nats: attention that is no other in the eyes of a reader
SHOWN = 0.005  # smaller weights would be named as 0.00
WHOLE = 1e-9  # of rounding


def instances_of(
    model: Classifier, split: Split, trace: Trace, examined: Examination, unit: str = "words"
) -> Instances:
    """Every text of a split: the numbers of its units, the smallest set that flips it, and what is true of it."""
    marks, _ = minimum_sets(trace)
    whole = Instances(
        texts=split.texts,
        offsets=trace.offsets,
        spans=torch.cat([unit_spans(model, split, number) for number in range(len(trace))]),
        shadings=shadings_of(trace),
        marks=marks & resting_of(trace, marks)[trace.segments],
        predicted=decisions(trace),
        probability=trace.probabilities.amax(1),
        labels=trace.labels,
        class_names=trace.class_names,
        traits=list(_traits(trace, examined, unit)),
        needed={name: needed_along(examined.erased.tables["flips"], name, len(trace)) for name in GUIDES},
        unit=unit,
    )
    return replace(whole, within=words_within(model, split, whole.rows)) if model.hierarchical else whole


def resting_of(trace: Trace, marks: Bool[Tensor, " units"]) -> Bool[Tensor, " instances"]:
    """Whether a decision rests on a part of its text: fewer units than all flip it."""
    count = torch.zeros(len(trace), dtype=torch.int64).index_add_(0, trace.segments, marks.long())
    return (count > 0) & (count < trace.lengths)


def _traits(trace: Trace, examined: Examination, unit: str) -> Iterator[Trait]:
    """What is true of which texts, in the words of the report."""
    flips = examined.erased.tables["flips"]
    minimum, attended = (flips[flips["ranking"] == name].set_index("instance") for name in (MINIMUM, "attention"))
    fewest, needed = (_numbers(rows["erased"], trace) for rows in (minimum, attended))
    rests = fewest < trace.lengths.numpy(force=True)
    if trace.labels is not None:
        yield Trait(name=WRONG, words="the decision is not the label", where=decisions(trace) != trace.labels)
    said = f"the most attended {unit} are a smallest set that flips the decision"
    yield Trait(name=RIGHT, words=said, where=torch.from_numpy(rests & (needed == fewest)))
    taken = _numbers(attended["lead_taken"], trace)
    said = f"as many of the most attended {unit} as the smallest set has take less than half of the lead"
    yield Trait(name=MISLEADS, words=said, where=torch.from_numpy(rests & (taken < HALF)))
    said = f"erasing one of its {unit} flips the decision"
    yield Trait(name=ONE, words=said, where=torch.from_numpy(rests & (fewest == 1)))
    adversary = examined.attacked.tables["adversary"]
    far = adversary[(adversary["kind"] == WITHIN) & (adversary["jsd"] >= FAR)]["instance"]
    where = torch.zeros(len(trace), dtype=torch.bool)
    where[torch.from_numpy(far.to_numpy(np.int64, copy=True))] = True
    yield Trait(name=ELSEWHERE, words="attention far from its own keeps the output within .05", where=where)


def needed_along(flips: pd.DataFrame, ranking: str, texts: int) -> list[int | None]:
    """By instance how many units a ranking erases until the decision flips; None where it never does."""
    erased = flips[flips["ranking"] == ranking].set_index("instance")["erased"].reindex(range(texts))
    return [None if pd.isna(count) else int(count) for count in erased]


def _numbers(column: "pd.Series[float]", trace: Trace) -> np.typing.NDArray[np.float64]:
    """By instance; not a number where there is none, so that nothing is true of it."""
    values = column.reindex(range(len(trace))).to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(values, np.float64)


def opening(instances: Instances, trace: Trace, attacked: AttackedAttention) -> list[Example]:
    """Three texts that a report opens with, as far as there are such."""
    shown = (ATTENTION, USED)
    examples = []
    plain = instances.marked_first(ATTENTION)  # where the set that is marked is the one that attention finds
    for name, title in ((RIGHT, "Here attention is right"), (MISLEADS, "Here it misleads")):
        trait = instances.trait(name)
        some = trait.where & plain if name == RIGHT and (trait.where & plain).any() else trait.where
        row = instances.typical(some)
        if row is not None:
            resting = int((instances.marked > 0).sum())
            note = f"{many_words(int(trait.where.sum()), resting)}: {trait.words}."
            examples.append(instances.example(row, title, note, shown))
    chosen = example_row(attacked, trace, instances.unit)
    if chosen is not None:
        examples.append(_pair(instances, trace, *chosen, pair_title(float(chosen[0]["jsd_upper"]))))
    return examples


def rule_of(unit: str) -> str:
    """By which rule the texts are chosen that a report opens with."""
    shortest, longest = usual_lengths(unit)
    return f"Texts of {shortest} to {longest} {unit}, or else short ones, rightly decided and middling sure."


def many_words(count: int, among: int) -> str:
    """Of how many texts it is so."""
    of = f"of the {counted(among, 'decision')} that rest on a part of their text"
    return f"It is the only one {of}" if count == 1 else f"The same is true of {count:,} {of}"


def _pair(instances: Instances, trace: Trace, row: pd.Series, rule: str, title: str) -> Example:
    """A text with its own weights and with others that give the same output."""
    number, other = int(row["instance"]), replaced_weights(row)
    place = trace.instance(number)
    own = next(one for one in instances.shadings if one.name == ATTENTION)
    push = next(one for one in instances.shadings if one.name == PUSHES)
    shadings = [
        replace(own, values=own.values[place]),
        Shading(name="another", values=other, note=own.note),
        replace(push, values=push.values[place]),
    ]
    note = f"Chosen as {rule}. {pair_words(trace, number, other)}"
    return instances.shaded(number, shadings, title, note, marked=False)


def pair_title(farthest: float) -> str:
    """What two attentions show of which it is known how far apart (JSD) they can be at most."""
    if farthest < NEARBY:
        return "And here the same output leaves attention nearly as it is"
    return "And here another attention gives the same output"


def pair_words(trace: Trace, number: int, other: Float[Tensor, " units"]) -> str:
    """Where one text's own attention is, and where it might be."""
    assert trace.units is not None
    place = trace.instance(number)
    names, own = trace.units[place], trace.attention_weights[place]
    top = int(own.argmax())
    order = other.argsort(descending=True, stable=True)[: int((other >= SHOWN).sum())].tolist()
    said = [f"“{brief(names[unit])}” ({float(other[unit]):.2f})" for unit in order]
    few = said if len(said) <= MOST_NAMED else [*said[: MOST_NAMED - 1], f"{len(said) - MOST_NAMED + 1} more"]
    where = " and ".join(filter(None, [", ".join(few[:-1]), few[-1]]))
    most = f"“{brief(names[top])}” ({float(own[top]):.2f})"
    whole = "all" if float(other[order].sum()) > 1 - WHOLE else "nearly all"
    return f"Attention is most on {most}; {whole} of it on {where} gives the same output."
