"""Metrics along the curve of an explanation: its units gone one after the other, or kept one after the other.

p is the probability of the class that is explained.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.faithfulness.metric import (
    BEAM,
    CHANGED,
    FEW,
    HIGHER,
    LOWER,
    NOTHING,
    ORDER,
    Answers,
    Case,
    Metric,
    each_unit,
)
from heedful.analysis.faithfulness.removal import Question
from heedful.analysis.flips import flips_along
from heedful.subjects import ATTENTION


def _curve(case: Case) -> tuple[Question, ...]:
    return (case.curve(),)


def _along(case: Case, answers: Answers) -> Float[Tensor, " units"]:
    """p along a curve: one value for each unit."""
    return case.own(answers[0], case.units.segments)


def area(case: Case, answers: Answers) -> Float[Tensor, " instances"]:
    """Σ_k (p − p_k) / L."""
    return case.before - case.total(_along(case, answers)) / case.units.lengths


AOPC = Metric(
    name="aopc",
    title="Area over the perturbation curve",
    formula="1/L Σ_{k=1…L} p(x) − p(x without the first k units)",
    source="Samek et al. 2017; for texts Edin et al. 2025",
    direction=HIGHER,
    low=-1,
    high=1,
    inflates=f"{CHANGED} A short text, or a model that needs one word only, gives every order a large area.",
    elsewhere="Samek et al. divide by L + 1 and count k = 0, whose difference is zero: their value is ours times "
    "L / (L + 1). Often the same name is given to ERASER's mean over shares.",
    signs=ORDER,
    example=("7/16", "3/20"),
    asks=_curve,
    sets=each_unit,
    value=area,
)


def _normalised(case: Case, answers: Answers) -> Float[Tensor, " instances"]:
    assert case.bounds is not None
    span = case.bounds.high - case.bounds.low
    return ((area(case, answers) - case.bounds.low) / span).where(span > NOTHING, torch.nan)


def searched(lengths: Int[Tensor, " instances"]) -> Int[Tensor, " instances"]:
    """All sets of a short text, of others what a beam looks at on its way to both ends."""
    return torch.where(lengths <= FEW, 2 ** lengths.clamp(max=FEW), BEAM * lengths**2)


NAOPC = Metric(
    name="naopc",
    title="Normalised area over the perturbation curve",
    formula="(AOPC − low) / (high − low), the smallest and the largest AOPC of all orders of the text",
    source="Edin et al. 2025",
    direction=HIGHER,
    low=0,
    high=1,
    inflates=f"{CHANGED} Ends that were searched and not proven may be too narrow, which lifts the middle.",
    elsewhere="Edin et al. try all orders of short texts and search others with a beam. Here ends are exact where all "
    "sets can be asked, certified on traces of two classes, and a beam's elsewhere; the table says which. Texts on "
    "which every order has the same area have no value.",
    signs=ORDER,
    example=("1", "16/39"),
    asks=_curve,
    sets=searched,
    value=_normalised,
    bounded=True,
)


def _trapezoid(case: Case, along: Float[Tensor, " units"], *, kept: bool) -> Float[Tensor, " instances"]:
    """The area under a curve of L + 1 points, of which the whole text is the first (or with `kept` the last)."""
    end = along[case.units.offsets[:-1] if kept else case.units.offsets[1:] - 1]
    return (case.total(along) + (case.before - end) / 2) / case.units.lengths


DELETION = Metric(
    name="deletion",
    title="Deletion curve",
    formula="the area under p(x without the first k units) over k / L, by trapezoids, k = 0 … L",
    source="Petsiuk et al. 2018",
    direction=LOWER,
    low=0,
    high=1,
    inflates=f"{CHANGED} An unsure model has a low curve under any order.",
    elsewhere="Petsiuk et al. remove pixels, a few at a time; libraries differ in their steps and in how they sum.",
    signs=ORDER,
    example=("11/32", "101/160"),
    asks=_curve,
    sets=each_unit,
    value=lambda case, answers: _trapezoid(case, _along(case, answers), kept=False),
)

INSERTION = Metric(
    name="insertion",
    title="Insertion curve",
    formula="the area under p(the first k units alone) over k / L, by trapezoids, k = 0 … L",
    source="Petsiuk et al. 2018",
    direction=HIGHER,
    low=0,
    high=1,
    inflates=f"{CHANGED} A model that is sure of the class without any text has a high curve under any order.",
    elsewhere="As of the deletion curve; Petsiuk et al. begin with a blurred picture, not with nothing.",
    signs=ORDER,
    example=("133/160", "19/32"),
    asks=lambda case: (case.curve(kept=True),),
    sets=each_unit,
    value=lambda case, answers: _trapezoid(case, _along(case, answers), kept=True),
)


def first_flips(case: Case, flipped: Bool[Tensor, " units"]) -> Float[Tensor, " instances"]:
    """How many units are gone at the first flip along the curve, infinite where there is none; of a trace exactly."""
    if case.asked.trace is not None:
        weights = case.asked.trace.attention_weights
        table = flips_along(case.asked.reading, case.explanation.order, weights, how=ATTENTION)
        return torch.from_numpy(table["erased"].to_numpy(dtype=np.float64, na_value=np.inf))
    counts = torch.arange(len(flipped)) - case.units.offsets[case.units.segments] + 1
    first = counts.double().where(flipped, torch.inf)
    return torch.segment_reduce(first, "min", offsets=case.units.offsets)


def _flip_fraction(case: Case, answers: Answers) -> Float[Tensor, " instances"]:
    flipped = answers[0].argmax(1) != case.asked.whole.argmax(1)[case.units.segments]
    return (first_flips(case, flipped) / case.units.lengths).clamp(max=1)


FLIP_FRACTION = Metric(
    name="flip_fraction",
    title="Decision flip, fraction of units",
    formula="k / L for the first k at which the decision without the first k units is another; 1 where it never is",
    source="Serrano & Smith 2019; Chrysostomou & Aletras 2021 (fraction of tokens)",
    direction=LOWER,
    low=0,
    high=1,
    inflates="Decisions near the line flip early under any order. A flip with everything gone and none at all both "
    "count 1. Of several most probable classes the first is the decision.",
    elsewhere="Serrano & Smith erase attention weights and leave one unit; here units go as the reading lets them.",
    signs=ORDER,
    example=("1/4", "1/2"),
    asks=_curve,
    sets=each_unit,
    value=_flip_fraction,
)
