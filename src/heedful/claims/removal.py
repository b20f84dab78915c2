"""Claims about a model that can only be asked: what its words do when they are taken away, and what guides to them.

D1 and D3 stand for C1 and S13, which need an affine readout: without one there are no polarity scores and no provably
smallest set. The others are of explanations of any origin.
"""

from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.separation import matched_area, right_signs
from heedful.analysis.statistics import FEWEST, Estimate, bounded_mean, share, too_few
from heedful.claims.claim import UNTOLD, UNTOLD_FROM_HALF, Claim, close, named
from heedful.claims.combine import over_runs
from heedful.claims.erasure import MAJORITY
from heedful.claims.erasure_numbers import lead_taken, wins
from heedful.claims.scores import ALL_RIGHT, RIGHT, SMALLEST_LIFT

DECISIVE, IDLE = 0.25, 0.5
"""The words that move the output most and least: these shares of those that can be compared; the rest is neither. Words
with the same effect are on the same side, whatever their order."""

GUIDE = "leave_one_out"
"""The order by what goes with each unit alone."""


def sign_share(words: pd.DataFrame) -> Estimate:
    """Of the words of a class that were taken away the share whose class loses probability."""
    column = next(str(name) for name in words if str(name).startswith("polarity"))
    signs = right_signs(words.dropna(subset=[column]))
    return share(int(signs.sum()), len(signs)) if len(signs) else too_few(0)


def attended_where_it_matters(words: pd.DataFrame) -> Estimate:
    """AUC of attention over an even share, in one half of the texts, of the words with the largest effects in the other
    half, against those with the smallest, within strata of frequency."""
    rows = words.dropna(subset=["lift_apart", "effect_apart"])
    if not len(rows):
        return too_few(0, 0)
    effects = rows["effect_apart"].to_numpy(np.float64)
    weak = effects <= np.quantile(effects, IDLE)
    strong = (effects >= np.quantile(effects, 1 - DECISIVE)) & (effects > 0) & ~weak
    lifts = np.log(rows["lift_apart"].clip(lower=SMALLEST_LIFT)).to_numpy(np.float64)
    often = rows["occurrences"].to_numpy(np.float64)
    return matched_area(lifts[strong], lifts[weak], (often[strong], often[weak]))


def better_by(table: pd.DataFrame) -> Estimate:
    """The mean over texts of how much larger the area is that an explanation has than attention's."""
    values = table["difference"].dropna().to_numpy(np.float64)
    return bounded_mean(values, low=-1.0, high=1.0) if len(values) >= FEWEST else too_few(len(values))


_FEW_WORDS = f"There are too few words to tell: {FEWEST} are needed that {{}}. More texts may help."

CLAIMS = named(
    D1=Claim(
        table="words",
        statement="Without a word of a class its texts lose probability for that class.",
        statistic="share of polar tokens whose removal takes probability from their own class, in the mean",
        threshold=RIGHT,
        estimate=sign_share,
        found="taking one away takes probability from its own class for {only}{:.1%} of the words that clearly belong "
        "to one",
        yes="What the model uses follows the data: {found}.",
        no="What the model uses does not follow the data: {found}.",
        doubt=f"; that is too close to the line of {100 * RIGHT:g} %, or rests on too few words, to call (it takes "
        f"{ALL_RIGHT} that all do).",
        silence=_FEW_WORDS.format("clearly belong to a class and stand in the test texts"),
        sides=("polar tokens",),
        least=FEWEST,
    ),
    D2=Claim(
        table="words",
        statement="At equal frequency, the words whose removal moves the output most get more attention than words "
        "that hardly move it.",
        statistic="AUC of mean attention over an even share (α · n), the quarter of the words with the largest effects "
        "against the half with the smallest, within strata of frequency; attention and effects are of different texts",
        threshold=0.7,
        estimate=attended_where_it_matters,
        found="a word of the quarter that moves the output most gets more of an even share of attention than one of "
        "the half that moves it least, about as frequent, in {only}{:.1%} of all pairs",
        yes="Attention goes to the words that move the output: {found}.",
        no="Attention does not go to the words that move the output: {found} (50 % is chance).",
        silence=_FEW_WORDS.format(
            "move the output most, and as many that hardly do, seen several times in the test texts"
        ),
        sides=("words that move the output most", "words that hardly do"),
        least=FEWEST,
    ),
    D3=Claim(
        table="flips",
        statement="The most attended units are those that the decision rests on, as far as a search can tell.",
        statistic="share of the lead that a text gives to its decision, gone with the most attended units, as many as "
        "the smallest set found has",
        threshold=MAJORITY,
        estimate=over_runs(partial(lead_taken, "attention")),
        found="as many as the smallest set found to flip it has, a decision loses {only}{:.1%} of the lead that its "
        "text gives it in the mean",
        yes="Decisions rest on what is attended to: without the most attended units, {found} (one that grows counts as "
        "none lost).",
        no="Decisions rest on other units than the most attended ones: without these, {found} (one that grows counts "
        "as none lost).",
        unsure="Without the most attended units, {found}",
        doubt=close(MAJORITY, "texts"),
        silence=f"There are too few texts to tell: {FEWEST} are needed whose decision was flipped before all is gone. "
        "More test texts may help.",
        sides=("texts",),
    ),
    D4=Claim(
        table="flips",
        statement="Leaving out one unit at a time finds smaller sets that flip the decision than attention does.",
        statistic="share of wins of leave-one-out over attention where counts differ",
        threshold=0.5,
        estimate=over_runs(partial(wins, GUIDE, "attention")),
        found="the decision flips with fewer units than by attention in {:.1%} of the texts where they differ",
        yes="By what goes with each unit alone, {found}.",
        no="What goes with each unit alone is no better a guide than attention: the decision flips with fewer units in "
        "only {:.1%} of the texts where they differ.",
        unsure="By what goes with each unit alone, {found}",
        doubt=UNTOLD_FROM_HALF,
        silence=f"There are too few texts to tell: {FEWEST} are needed on which the two differ. More test texts may "
        "help.",
        sides=("texts",),
    ),
    D5=Claim(
        table="chosen",
        statement="Another explanation is truer to the model than attention.",
        statistic="AOPC of the explanation that was best on other texts, less that of attention",
        threshold=0.0,
        estimate=better_by,
        found="its area between the curves (AOPC) is {:+.3f} against that of attention, on texts that did not choose "
        "it",
        yes="Another explanation is truer to the model than attention: {found}.",
        no="Attention is truer to the model than the best of the others: {found}.",
        unsure="Of the best other explanation {found}",
        doubt=UNTOLD,
        silence=f"There are too few texts to tell: {FEWEST} are needed beside those that choose.",
        sides=("texts",),
        span=(-0.5, 0.5),
    ),
)

FOREIGN = ("S4", "S6b", "D3", "D4")
"""Judged on the texts of a model that can only be asked."""
