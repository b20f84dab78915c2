"""Metrics that take units away in an order, or one by one, and see what the model says.

p is the probability of the class that is explained.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.agreement import agree
from heedful.analysis.decisions import decisions
from heedful.analysis.faithfulness.metric import (
    BEAM,
    FEW,
    HIGHER,
    LOWER,
    NOTHING,
    ORDER,
    SIZE,
    Answers,
    Case,
    Metric,
    each_unit,
    so_many,
)
from heedful.analysis.faithfulness.removal import Question, singles
from heedful.analysis.flips import flips_along
from heedful.analysis.violation import erasure_effects, violation_table
from heedful.subjects import ATTENTION

TOP = 0.2
BINS = (0.01, 0.05, 0.1, 0.2, 0.5)
"""ERASER's shares of the text."""

TINY = torch.finfo(torch.float64).tiny
CHANGED = "Texts with units gone may be unlike anything the model has seen, and its answer to them an accident."


def _first(share: int | float, *, kept: bool) -> Callable[[Case], tuple[Question, ...]]:
    return lambda case: (case.top(share, kept=kept),)


def _fall(case: Case, answers: Answers) -> Float[Tensor, " instances"]:
    """p − p', the mean over the questions, which have one set per text."""
    after = [case.own(said, case.rows) for said in answers]
    return case.before - torch.stack(after).mean(0)


def _at(metric: Metric, share: int | float) -> Metric:
    return metric if share == TOP else replace(metric, name=f"{metric.name}@{share:g}")


def comprehensiveness(share: int | float = TOP) -> Metric:
    """How far p falls without the first units: a share of the text, rounded up, or a number of them."""
    metric = Metric(
        name="comprehensiveness",
        title="Comprehensiveness",
        formula="p(x) − p(x without the top 20 %), rounded up, one unit at least",
        source="DeYoung et al. 2020 (ERASER)",
        direction=HIGHER,
        low=-1,
        high=1,
        inflates=f"{CHANGED} It grows with how sure the model is: models are not comparable by it.",
        elsewhere="ERASER takes the rationale that a model predicts; Sanyal & Ren round the share down, which in short "
        "texts is no unit at all.",
        signs=ORDER,
        example=("1/2", "-3/20"),
        asks=_first(share, kept=False),
        sets=so_many(1),
        value=_fall,
    )
    return _at(metric, share)


def sufficiency(share: int | float = TOP) -> Metric:
    """How far p falls when only the first units are left."""
    metric = Metric(
        name="sufficiency",
        title="Sufficiency",
        formula="p(x) − p(the top 20 % alone), rounded up, one unit at least",
        source="DeYoung et al. 2020 (ERASER)",
        direction=LOWER,
        low=-1,
        high=1,
        inflates="A few words out of their text are the least natural input of all; a model that is sure of anything "
        "makes every explanation sufficient.",
        elsewhere="Early versions of ferret masked the units that should stay. The normalised form (Carton et al. "
        "2020), which some tools print under the same name, is better when higher.",
        signs=ORDER,
        example=("-3/20", "1/2"),
        asks=_first(share, kept=True),
        sets=so_many(1),
        value=_fall,
    )
    return _at(metric, share)


def _binned(*, kept: bool) -> Callable[[Case], tuple[Question, ...]]:
    return lambda case: tuple(case.top(share, kept=kept) for share in BINS)


AOPC_COMPREHENSIVENESS = Metric(
    name="aopc_comprehensiveness",
    title="Comprehensiveness over ERASER's shares",
    formula="the mean of comprehensiveness at 1, 5, 10, 20 and 50 % of the units, each rounded up, one at least",
    source="DeYoung et al. 2020 (ERASER), which calls it AOPC",
    direction=HIGHER,
    low=-1,
    high=1,
    inflates=f"In short texts most shares are one and the same unit. {CHANGED}",
    elsewhere="What ferret prints under this name is the mean over all prefixes, here `aopc`.",
    signs=ORDER,
    example=("1/2", "-7/100"),
    asks=_binned(kept=False),
    sets=so_many(len(BINS)),
    value=_fall,
)

AOPC_SUFFICIENCY = Metric(
    name="aopc_sufficiency",
    title="Sufficiency over ERASER's shares",
    formula="the mean of sufficiency at 1, 5, 10, 20 and 50 % of the units, each rounded up, one at least",
    source="DeYoung et al. 2020 (ERASER)",
    direction=LOWER,
    low=-1,
    high=1,
    inflates="As of sufficiency; in short texts most shares are one and the same unit.",
    elsewhere="As of comprehensiveness over ERASER's shares.",
    signs=ORDER,
    example=("-3/20", "2/5"),
    asks=_binned(kept=True),
    sets=so_many(len(BINS)),
    value=_fall,
)


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


def _first_flips(case: Case, flipped: Bool[Tensor, " units"]) -> Float[Tensor, " instances"]:
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
    return (_first_flips(case, flipped) / case.units.lengths).clamp(max=1)


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


def _single_flip(case: Case, answers: Answers) -> Float[Tensor, " instances"]:
    flipped = answers[0].argmax(1) != case.asked.whole.argmax(1)
    if case.asked.trace is not None:
        flipped = _first_flips(case, flipped) == 1
    return flipped.double()


SINGLE_FLIP = Metric(
    name="single_flip",
    title="Decision flip, most informative unit",
    formula="1 where the decision is another without the first unit, else 0",
    source="Serrano & Smith 2019; Chrysostomou & Aletras 2021 (most informative token)",
    direction=HIGHER,
    low=0,
    high=1,
    inflates="Few decisions rest on one unit; the others say nothing, whatever the explanation. Short texts flip more.",
    elsewhere="In no library; here as in the papers, units going as the reading lets them.",
    signs=ORDER,
    example=("1", "0"),
    asks=_first(1, kept=False),
    sets=so_many(1),
    value=_single_flip,
)


def log_odds(share: int | float = TOP) -> Metric:
    """How far the logarithm of p falls without the first units."""
    metric = Metric(
        name="log_odds",
        title="Log-odds",
        formula="log p(x without the top 20 %) − log p(x), rounded up, one unit at least",
        source="Shrikumar et al. 2017; for texts Sanyal & Ren 2021",
        direction=LOWER,
        low=None,
        high=None,
        inflates="A few texts whose p falls to nearly nothing outweigh all others in the mean.",
        elsewhere="It is a difference of logarithms of probabilities, not of odds, as in the code of Sanyal & Ren, who "
        "put padding in place of the units and round their share down. Probabilities below the smallest double count "
        "as that.",
        signs=ORDER,
        example=("-log(3)", "log(6/5)"),
        asks=_first(share, kept=False),
        sets=so_many(1),
        value=lambda case, answers: _logarithms(case.own(answers[0], case.rows)) - _logarithms(case.before),
    )
    return _at(metric, share)


def _logarithms(values: Float[Tensor, " instances"]) -> Float[Tensor, " instances"]:
    return values.clamp(min=TINY).log()


def _known(case: Case) -> bool:
    """Whether a trace knows the effects of single units on its decisions, with all their digits."""
    trace = case.asked.trace
    return trace is not None and torch.equal(case.explanation.targets, decisions(trace))


def _ask_singles(case: Case) -> tuple[Question, ...]:
    return () if _known(case) else (singles(case.units),)


def _effects(case: Case, answers: Answers) -> Float[Tensor, " units"]:
    """p − p' of every unit that goes alone."""
    if _known(case):
        assert case.asked.trace is not None
        return erasure_effects(case.asked.trace).decision
    found = case.before[case.units.segments] - case.own(answers[0], case.units.segments)
    return found.where(found.abs() > NOTHING, 0.0)


def _violated(case: Case, answers: Answers) -> Float[Tensor, " instances"]:
    table = violation_table(case.explanation.scores, _effects(case, answers), case.units.offsets)
    found = np.full(len(case.units), np.nan)
    found[table["instance"]] = table["violated"].astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
    return torch.from_numpy(found)


TAU = Metric(
    name="tau_loo",
    title="Kendall's τ with leave-one-out",
    formula="τ-b of the scores and p(x) − p(x without the unit), over the units of the text",
    source="Jain & Wallace 2019",
    direction=HIGHER,
    low=-1,
    high=1,
    inflates="It is agreement with one other explanation, which misses units that stand in for each other; many units "
    "without effect make it noise.",
    elsewhere="Jain & Wallace correlate with the total variation, which has no sign; here, as in ferret, the effect "
    "has one. Where all scores or all effects are equal there is no value.",
    signs=ORDER,
    example=("1", "-1/5"),
    asks=_ask_singles,
    sets=each_unit,
    alike=True,
    value=lambda case, answers: agree(case.explanation.scores, _effects(case, answers), case.units.offsets).tau,
)

VIOLATION = Metric(
    name="violation",
    title="Violation test",
    formula="1 where sign(s_i) (p(x) − p(x without i)) < 0 for i = argmax |s|, else 0",
    source="Liu et al. 2022",
    direction=LOWER,
    low=0,
    high=1,
    inflates="It looks at one unit, and only at its sign: any unit that helps the class will do.",
    elsewhere="In no library. An explanation that gives the top unit zero, and a text of one unit, have no value.",
    signs=SIZE,
    example=("0", "1"),
    asks=_ask_singles,
    sets=each_unit,
    alike=True,
    value=_violated,
)


REMOVING = (
    comprehensiveness(),
    sufficiency(),
    AOPC_COMPREHENSIVENESS,
    AOPC_SUFFICIENCY,
    AOPC,
    NAOPC,
    DELETION,
    INSERTION,
    FLIP_FRACTION,
    SINGLE_FLIP,
    log_odds(),
    TAU,
    VIOLATION,
)
