"""Claims of Jain & Wallace 2019 (J) and Wiegreffe & Pinter 2019 (W) about attention that is shuffled and replaced.

Judged on tables with one row per test text and run: `agreement` (measure, tau), `permutation` (largest_weight,
tvd_median), `adversary` (kind, jsd); one row per pair of words: `orders` (reversed, held); and one row per run: `runs`
and `diagnostic` (weights, test_accuracy) of a model and of one without context, `curve` (kind, tvd, jsd, jsd_per_text).
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.statistics import FEWEST, Estimate, share, too_few
from heedful.claims.claim import UNTOLD, Claim, close, named
from heedful.claims.combine import DIFFERENCES, accuracy_difference, mean_of_runs, over_runs

WEAK = 0.5
"""Kendall's τ below it is weak agreement: of three pairs of words in four the two have the same order."""

PEAKED = 0.5
"""Attention is peaked where one unit has so much of it, or more."""

BARELY = 0.1
"""An output that moves by no more, in total variation, barely moves."""

MANY = 0.25
FAR = 0.75 * float(np.log(2))
"""Attention is far away from this JSD on; log 2 is the most there is."""

LITTLE = 0.02
"""An accuracy that is lower by no more has lost little: two points."""

WITHIN, ELSEWHERE = "within", "without top"
"""The kinds of `adversary` that claims are about: output within .05; the very same without the most attended unit."""

_FEW = f"There are too few texts to tell: {FEWEST} are needed. More test texts may help."
_RUNS = "This compares trainings, and the tables do not hold those that it takes."


def weak_agreement(measure: str, run: pd.DataFrame, level: float) -> Estimate | None:
    """The share of texts on which τ of attention with this measure is below WEAK; of contextual models."""
    if not run["contextual"].all():
        return None
    taus = run.loc[run["measure"] == measure, "tau"].dropna()
    return share(int((taus < WEAK).sum()), len(taus), level=level) if len(taus) >= FEWEST else too_few(len(taus))


def barely_moved(run: pd.DataFrame, level: float) -> Estimate | None:
    """The share of texts with peaked attention whose output barely moves when it is shuffled."""
    peaked = run.loc[(run["largest_weight"] >= PEAKED) & (run["units"] > 1), "tvd_median"]
    return (
        share(int((peaked <= BARELY).sum()), len(peaked), level=level)
        if len(peaked) >= FEWEST
        else too_few(len(peaked))
    )


def far_away(run: pd.DataFrame, level: float) -> Estimate | None:
    """The share of texts for which attention far away gives the same output, within ε.

    With three classes or more the farthest may lie farther than what was found: the interval reaches up to that of the
    texts for which it is not ruled out (`jsd_upper`).
    """
    found = run[(run["kind"] == WITHIN) & (run["units"] > 1)]
    if len(found) < FEWEST:
        return too_few(len(found))
    least, most = (
        share(int((found[column] >= FAR).sum()), len(found), level=level)
        for column in ("jsd", "jsd_upper" if "jsd_upper" in found else "jsd")
    )
    return replace(least, high=most.high)


def told_otherwise(run: pd.DataFrame, level: float) -> Estimate | None:
    """The share of texts for which attention without the most attended unit gives the very same output."""
    found = run.loc[(run["kind"] == ELSEWHERE) & (run["units"] > 1), "jsd"]
    return share(int(found.notna().sum()), len(found), level=level) if len(found) >= FEWEST else too_few(len(found))


def order_reversed(run: pd.DataFrame, level: float) -> Estimate | None:
    """The share of pairs of words whose order one attention for the whole corpus reverses, all at once.

    Another might reverse more: the interval reaches up to that of the pairs whose order the outputs do not hold.
    """
    if len(run) < FEWEST:
        return too_few(len(run))
    least, most = (share(int(marks.sum()), len(run), level=level) for marks in (run["reversed"], ~run["held"]))
    return replace(least, high=most.high)


def _compared(rows: pd.DataFrame, first: str, second: str) -> Estimate | None:
    """Test accuracy of the runs with these attention weights minus that of those."""
    return accuracy_difference(*(rows[rows["weights"] == weights] for weights in (first, second)))


def less_than_per_text(run: pd.DataFrame) -> float | None:
    """By how much less JSD a model trained as an adversary reaches than adversaries for single texts.

    Every text by itself has the trained adversary's mean TVD as its ε, so that the mean of theirs is no larger.
    """
    trained = run[run["kind"] == "adversary"].dropna(subset=["jsd_per_text"])
    return float((trained["jsd_per_text"] - trained["jsd"]).mean()) if len(trained) else None


CLAIMS = named(
    J1=Claim(
        table="agreement",
        sides=("texts",),
        silence=f"{_FEW} The claim is about encoders that see a word's neighbours.",
        statement="With a contextual encoder attention agrees weakly with gradients and with leaving words out.",
        statistic=f"share of texts with Kendall τ below {WEAK:g}: the smaller of gradient and leave-one-out",
        threshold=0.5,
        estimate=over_runs(partial(weak_agreement, "gradient"), partial(weak_agreement, "leave_one_out")),
        found="attention orders words otherwise than gradients and leaving words out do (τ below .5) on {only}{:.1%} "
        "of the texts",
        yes="Attention and other measures tell different stories: {found}.",
        no="Attention agrees with other measures: {found}.",
        doubt=close("half", "texts"),
    ),
    J2=Claim(
        table="permutation",
        sides=("texts where attention is peaked",),
        silence=f"There are too few texts to tell: {FEWEST} are needed one unit of which has half of the attention.",
        statement="For many texts with peaked attention, shuffling it barely moves the output.",
        statistic=f"share of median TVD ≤ {BARELY:g} among texts with a weight of {PEAKED:g} or more",
        threshold=MANY,
        estimate=over_runs(barely_moved),
        found="of the texts with peaked attention {only}{:.1%} keep their output, within .1, when it is shuffled",
        yes="Where attention points is often of no account: {found}.",
        no="Where attention points matters: {found}.",
        doubt=close("a quarter", "texts"),
    ),
    J3=Claim(
        table="adversary",
        sides=("texts",),
        silence=_FEW,
        statement="For most texts attention far away gives the same output.",
        statistic=f"share of texts with JSD ≥ {FAR:.2f} (most: log 2) within .05 of the output",
        threshold=0.5,
        estimate=over_runs(far_away),
        found="for {only}{:.1%} of the texts attention far from the model's own gives the same output, within .05",
        yes="Each text by itself allows other attention: {found}.",
        no="Outputs hold attention near: {found}.",
        doubt=close("half", "texts"),
    ),
    J3b=Claim(
        table="adversary",
        sides=("texts",),
        silence=_FEW,
        statement="For most texts the very same output can be had without the most attended unit.",
        statistic="share of texts for which attention without the most attended unit gives exactly the same output",
        threshold=0.5,
        estimate=over_runs(told_otherwise),
        found="for {only}{:.1%} of the texts other weights give exactly the same output without the most attended unit",
        yes="Another story can be told: {found}.",
        no="The most attended unit is needed: {found}.",
        doubt=close("half", "texts"),
    ),
    J4=Claim(
        table="orders",
        sides=("pairs of words",),
        silence=f"There are too few words to tell: {FEWEST} pairs are needed, of a word of a class and one that all "
        "classes use alike, about as frequent and with a smaller attention score. More training texts may help.",
        statement="One attention for the whole corpus could put most words of a class below words that all classes use "
        "alike, and keep every output.",
        statistic="share of pairs of such words whose order one attention reverses, all at once, with the output of "
        "every training text within .05",
        threshold=0.5,
        estimate=over_runs(order_reversed),
        found="with the outputs of all texts within .05, one attention reverses the order of {only}{:.1%} of the pairs "
        "of a word of a class and one that all classes use alike",
        yes="The outputs of the whole corpus leave open which words are attended to: {found}.",
        no="The outputs of the whole corpus hold attention: {found}, and none reverses most.",
        doubt=close("half", "pairs"),
    ),
    W1=Claim(
        table="runs",
        sides=("seeds",),
        span=DIFFERENCES,
        silence=_RUNS,
        statement="Even attention loses little.",
        statistic="test accuracy with even weights minus that with learned ones",
        threshold=-LITTLE,
        estimate=lambda rows: _compared(rows, "uniform", "learned"),
        found="with even weights the model's accuracy differs by {:+.1%}",
        yes="Attention is hardly needed here: {found} from that with its own.",
        no="Attention is needed here: {found} from that with its own.",
        unsure="{found} from that with learned ones",
        doubt="; that is too close to a loss of two points to call.",
    ),
    W2=Claim(
        table="diagnostic",
        sides=("seeds",),
        span=DIFFERENCES,
        silence=_RUNS,
        statement="To a model without context the trained attention is worth more than an adversary's.",
        statistic="test accuracy of the diagnostic model given the base model's weights minus given the adversary's",
        threshold=0.0,
        estimate=lambda rows: _compared(rows, "base", "adversary"),
        found="given the trained weights a model without context differs by {:+.1%} in accuracy from one given the "
        "adversary's",
        yes="Trained attention carries something of the task: {found}.",
        no="Trained attention carries no more of the task than an adversary's: {found}.",
        doubt=UNTOLD,
    ),
    W3=Claim(
        table="curve",
        sides=("seeds",),
        span=DIFFERENCES,
        silence=f"{_RUNS} Two seeds or more are needed.",
        statement="A model trained as an adversary reaches less JSD than adversaries for single texts within its TVD.",
        statistic="mean JSD of adversaries for single texts, each within the trained one's mean TVD, minus its own",
        threshold=0.0,
        estimate=mean_of_runs(less_than_per_text, DIFFERENCES),
        found="a trained adversary moves attention by {:.2f} nats less than adversaries for single texts do, which "
        "change no output by more than it does in the mean",
        yes="What a single text allows a whole model does not: {found}.",
        no="A whole model can do what single texts allow: {found}.",
        doubt=UNTOLD,
    ),
)
