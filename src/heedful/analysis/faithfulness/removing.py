"""Metrics that take away the first units of an explanation, or one by one, and see what the model says.

p is the probability of the class that is explained.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.agreement import agree
from heedful.analysis.decisions import decisions
from heedful.analysis.faithfulness.curves import AOPC, DELETION, FLIP_FRACTION, INSERTION, NAOPC, first_flips
from heedful.analysis.faithfulness.metric import (
    CHANGED,
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
from heedful.analysis.violation import erasure_effects, violation_table

TOP = 0.2
BINS = (0.01, 0.05, 0.1, 0.2, 0.5)
"""ERASER's shares of the text."""

TINY = torch.finfo(torch.float64).tiny


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


def _single_flip(case: Case, answers: Answers) -> Float[Tensor, " instances"]:
    flipped = answers[0].argmax(1) != case.asked.whole.argmax(1)
    if case.asked.trace is not None:
        flipped = first_flips(case, flipped) == 1
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
