"""Claims of four neighbours of the debate on attention (N): Pruthi et al. 2020 (N1), Mohankumar et al. 2020 (N2),
Meister et al. 2021 (N3), Liu et al. 2022 (N4).

Judged on the table `models`, one row per run: what it is (contextual, objective, strength, normaliser) and what it
comes to (mass, conicity, tvd, …; `heedful.studies.neighbours.measured`). Models stand beside the usual ones: softmax
attention trained by cross-entropy alone. Of deceptive models it is asked what can be done, and those with the largest λ
count; of diverse ones what holds at every λ that was tried. The lines are ours.
"""

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd

from heedful.analysis.statistics import Estimate
from heedful.claims.claim import UNTOLD, Claim, close, named
from heedful.claims.combine import (
    DIFFERENCES,
    SHARES,
    AtLevel,
    accuracy_difference,
    mean_column,
    mean_of_runs,
    smallest,
)
from heedful.claims.manipulation import LITTLE

Statistic = Callable[[pd.DataFrame], float | None]
"""A number of the runs of one seed."""

GONE = 0.9
"""Attention has left some words where so much of what they had is gone."""

RISE = 0.05
"""Kendall's τ that grows by no more does not grow."""

NOTICEABLE = 0.1

SPARSE = ("sparsemax", "entmax15")
MEASURES = ("tau_gradient", "tau_leave_one_out")


def usual(rows: pd.DataFrame) -> pd.DataFrame:
    """Softmax attention, trained by cross-entropy alone."""
    return rows[(rows["objective"] == "cross_entropy") & (rows["normaliser"] == "softmax")]


def contextual(rows: pd.DataFrame) -> pd.DataFrame:
    """Models with an encoder that sees a word's neighbours."""
    return rows.loc[rows["contextual"].astype(bool)]


def trained(rows: pd.DataFrame, objective: str) -> pd.DataFrame:
    """Those trained by an objective beside cross-entropy."""
    return rows[rows["objective"] == objective]


def strongest(rows: pd.DataFrame, objective: str) -> pd.DataFrame:
    """Those of them with the largest λ."""
    some = trained(rows, objective)
    return some[some["strength"] == float(some["strength"].max())]


def gone(run: pd.DataFrame) -> float | None:
    """How much of the attention on words of a class a deceptive model has not: 1 − mass / mass of the usual model."""
    return _mean(1 - _by_data(strongest(run, "deceptive"), "mass") / _by_data(usual(run), "mass"))


def difference(one: pd.DataFrame, other: pd.DataFrame, column: str) -> float | None:
    """A column of some runs minus that of others."""
    return _mean(_by_data(one, column) - _by_data(other, column))


def diverse_difference(column: str, sign: int, rows: pd.DataFrame) -> Estimate | None:
    """By how much a column of diverse models is larger than that of usual ones, times a sign: the smallest over λ."""

    def larger(strength: float, run: pd.DataFrame) -> float | None:
        some = trained(run, "diverse")
        found = difference(some[some["strength"] == strength], usual(run), column)
        return None if found is None else sign * found

    known = contextual(rows)
    return weakest([partial(larger, strength) for strength in trained(known, "diverse")["strength"].unique()], known)


def lower_agreement(rows: pd.DataFrame) -> Estimate | None:
    """τ of softmax attention minus that of sparse attention: the smallest by normaliser and measure."""

    def lower(normaliser: str, measure: str, run: pd.DataFrame) -> float | None:
        return difference(usual(run), run[run["normaliser"] == normaliser], measure)

    known = contextual(rows)
    kinds = [(name, measure) for name in SPARSE if name in set(known["normaliser"]) for measure in MEASURES]
    return weakest([partial(lower, *kind) for kind in kinds], known)


def weakest(statistics: Sequence[Statistic], rows: pd.DataFrame) -> Estimate | None:
    """The smallest of several numbers, each with its interval over seeds; None where there is none."""
    parts: list[AtLevel] = [partial(mean_of_runs(one, DIFFERENCES), rows) for one in statistics]
    return smallest(parts) if parts else None


def _by_data(run: pd.DataFrame, column: str) -> "pd.Series[float]":
    return run.groupby("dataset")[column].mean()


def _mean(found: "pd.Series[float]") -> float | None:
    """Over the data sets that have both models."""
    known = found.dropna()
    return float(known.mean()) if len(known) else None


_RUNS = "This compares trainings, and the table does not hold those that it takes."
_of_trainings = partial(
    Claim, table="models", sides=("seeds",), span=DIFFERENCES, silence=f"{_RUNS} Two seeds or more are needed."
)

CLAIMS = named(
    N1=_of_trainings(
        statement="Trained to, attention leaves the words that belong to a class.",
        statistic="1 − attention on words of a class, deceptive over usual model, largest λ",
        threshold=GONE,
        estimate=lambda rows: mean_of_runs(gone, DIFFERENCES)(contextual(rows)),
        found="of the attention on words of a class {only}{:.1%} is gone in new texts",
        yes="Attention can be led away: {found}.",
        no="Attention is not led away altogether: {found}.",
        span=SHARES,
    ),
    N1b=_of_trainings(
        statement="Attention that was led away costs less than two points of accuracy.",
        statistic="test accuracy of the deceptive model minus that of the usual one, largest λ",
        threshold=-LITTLE,
        estimate=lambda rows: accuracy_difference(strongest(contextual(rows), "deceptive"), usual(contextual(rows))),
        found="the deceptive model's accuracy differs by {:+.1%} from the usual one's",
        yes="It costs little: {found}.",
        no="It costs accuracy: {found}.",
        doubt="; that is too close to a loss of two points to call.",
        silence=_RUNS,
    ),
    N1c=_of_trainings(
        statement="A model whose attention was led away from some words still uses them.",
        statistic="accuracy without as many other words minus without words of a class, deceptive model, largest λ",
        threshold=LITTLE,
        estimate=lambda rows: mean_column(
            strongest(contextual(rows), "deceptive"), "used", of="its test texts", least=-1.0, most=1.0
        ),
        found="taking words of a class out of the texts costs the deceptive model {:+.1%} more of its accuracy than "
        "taking out as many others",
        yes="It uses what it does not attend to: {found}.",
        no="It does not use what it does not attend to: {found}.",
        doubt="; that is too close to two points to call.",
        sides=("runs",),
        silence=_RUNS,
    ),
    N2=_of_trainings(
        statement="Hidden vectors that are trained to be diverse are less alike in new texts.",
        statistic="median conicity of the usual model minus that of the diverse one: the smallest over λ",
        threshold=0.0,
        estimate=partial(diverse_difference, "conicity", -1),
        found="conicity is lower by {:.2f} where it falls least",
        yes="Hidden vectors can be made diverse: {found}.",
        no="Hidden vectors are not made diverse: {found}.",
        doubt=UNTOLD,
    ),
    N2b=_of_trainings(
        statement="With diverse hidden vectors shuffling attention moves the output more.",
        statistic="median TVD of shuffled attention, diverse minus usual model: the smallest over λ",
        threshold=0.0,
        estimate=partial(diverse_difference, "tvd", 1),
        found="with diverse hidden vectors shuffled attention moves the output by {:+.3f} further where it does so "
        "least",
        yes="Where attention points matters more: {found}.",
        no="Where attention points matters no more: {found}.",
        doubt=UNTOLD,
    ),
    N2c=_of_trainings(
        statement="With diverse hidden vectors decisions flip sooner along attention.",
        statistic="median fraction of units erased along attention, usual minus diverse model: the smallest over λ",
        threshold=0.0,
        estimate=partial(diverse_difference, "erased", -1),
        found="erased along attention, decisions of the diverse model flip {:+.1%} of the units sooner where they do "
        "so least",
        yes="Attention finds sooner what a decision rests on: {found}.",
        no="Attention does not find sooner what a decision rests on: {found}.",
        doubt=UNTOLD,
    ),
    N3=_of_trainings(
        statement="Sparser attention does not agree more with gradients and with leaving words out.",
        statistic="mean Kendall τ of softmax attention minus that of sparse attention: the smallest of sparsemax and "
        "1.5-entmax, gradient and leave-one-out",
        threshold=-RISE,
        estimate=lower_agreement,
        found="where sparse attention does best, the τ of softmax attention differs by {:+.2f} from its own",
        yes="Zeros do not bring attention nearer to other measures: {found}.",
        no="With zeros attention agrees more with another measure: {found}.",
        doubt=close("a rise of .05", "seeds"),
    ),
    N4=_of_trainings(
        statement="In a noticeable share of texts the decision is more probable without the most attended unit.",
        statistic="share of texts whose decision is more probable without the weight of the most attended unit",
        threshold=NOTICEABLE,
        estimate=lambda rows: mean_column(usual(rows), "violated", least=0.0, most=1.0, of="its test texts"),
        found="for {only}{:.1%} of the texts the decision is more probable without the most attended unit",
        yes="A large weight need not be a reason: {found}.",
        no="Where attention is largest there is a reason: {found}.",
        doubt=close("a tenth", "texts"),
        sides=("runs",),
        span=SHARES,
        silence="There is no run with softmax attention that was trained by cross-entropy alone.",
    ),
)
