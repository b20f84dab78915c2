"""Claims of Sun & Lu 2020 about what λ does, and about models other than the plain one.

They are judged on the table `scaling`, one row per run of one data set (`heedful.studies.measures`). Runs of one seed
share their initial parameters, so they are averaged first; the interval is then Student's over seeds, and where the
statistic is one of tokens or texts, the interval of their resamples is added to it in quadrature.
"""

import math
from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Estimate, Numbers
from heedful.claims.claim import Claim, close
from heedful.claims.combine import accuracy_difference, mean_column
from heedful.claims.scores import RIGHT

SMALL, MODERATE, LARGE, VERY_LARGE = (0.0, 1.0), (10.0, 50.0), (100.0, math.inf), (1000.0, math.inf)
"""λ up to 1 is small, 10 to 50 moderate (√d = 10), from 100 on large, from 1,000 on nothing but mean pooling."""

USUAL = 10.0


def _plain(rows: pd.DataFrame, scales: tuple[float, float] = (0.0, math.inf)) -> pd.DataFrame:
    """The runs of the plain model (DP: dot-product attention on the embeddings) with such λ."""
    return rows[_is_plain(rows) & rows["scale"].between(*scales)]


def _is_plain(rows: pd.DataFrame) -> "pd.Series[bool]":
    return (rows["attention"] == "dot") & (rows["encoder"] == "none")


def _at(rows: pd.DataFrame, scale: float) -> pd.DataFrame:
    return rows[rows["scale"] == scale]


def aligned_parting(rows: pd.DataFrame) -> Estimate | None:
    """At large λ, the AUC of attention scores of the tokens on the side of VᵀW against those of the other side."""
    return mean_column(_towards(_plain(rows, LARGE), "parting", middle=0.5), "parting", most=1.0)


def aligned_asymmetry(rows: pd.DataFrame) -> Estimate | None:
    """At small λ, how much stronger the polarity of the tokens on the side of VᵀW is."""
    return mean_column(_towards(_plain(rows, SMALL), "asymmetry", middle=0.0), "asymmetry", most=1.0)


def _towards(rows: pd.DataFrame, column: str, *, middle: float) -> pd.DataFrame:
    """The column mirrored about its middle where VᵀW is negative, with its bounds."""
    rows = rows.dropna(subset=["alignment", column])
    negative = rows["alignment"] < 0
    bounds = {column: column, f"{column}_low": f"{column}_high", f"{column}_high": f"{column}_low"}
    mirrored = {name: rows[name].where(~negative, 2 * middle - rows[other]) for name, other in bounds.items()}
    return rows.assign(**mirrored)


def magnitude_ratio(rows: pd.DataFrame) -> Estimate | None:
    """Mean |polarity| of polar tokens at λ = 100 over that at λ = 10 of the same seed."""
    pairs = _at(_plain(rows), LARGE[0]).merge(_at(_plain(rows), USUAL), on="seed", suffixes=("", "_before"))
    if pairs.empty:
        return None
    spread = np.hypot(_relative_half(pairs, ""), _relative_half(pairs, "_before"))
    ratio = pairs["magnitude"] / pairs["magnitude_before"]
    bounds = {"ratio": ratio, "ratio_low": ratio * (1 - spread), "ratio_high": ratio * (1 + spread)}
    return mean_column(pairs.assign(**bounds), "ratio")


def _relative_half(pairs: pd.DataFrame, end: str) -> Numbers:
    half = (pairs[f"magnitude_high{end}"] - pairs[f"magnitude_low{end}"]) / 2
    return (half / pairs[f"magnitude{end}"]).to_numpy(np.float64)


def weakest_variant(column: str, rows: pd.DataFrame) -> Estimate | None:
    """The smallest of a column's means over the models at λ = 10: DP-L in both scopes; DP only with several classes."""
    found = [
        mean_column(some, name, most=1.0)
        for _, some in _at(rows, USUAL).groupby("model")
        if not _is_plain(some).all() or int(some["classes"].max()) > 2
        for name in (column, f"local_{column}")
    ]
    return min((one for one in found if one is not None), key=lambda one: one.value, default=None)


_TWO_CLASSES = "This asks for two classes, a clearly polar word of each, and runs with such a λ."
_NO_RUNS = "There are no runs with such λ to compare."
_NEAR = "; that is too near the line of 70 %, or varies too much over runs, to call."

_of_runs = partial(Claim, table="scaling", sides=("runs",), silence=_NO_RUNS)
_of_seeds = partial(Claim, table="scaling", sides=("seeds",), silence=_NO_RUNS)

CLAIMS = (
    _of_runs(
        name="C3",
        statement="At large λ the attention scores of positive and negative tokens part, with the sign of VᵀW.",
        statistic="AUC of attention scores at λ ≥ 100, tokens on the side of VᵀW against the other side",
        threshold=0.7,  # as for C2: the line above which one set clearly exceeds the other
        estimate=aligned_parting,
        yes="With a large λ attention prefers one class: in {:.1%} of all pairs the word on the side of VᵀW has the "
        "larger score, so that attention says more of VᵀW than of the words.",
        no="With a large λ attention does not follow VᵀW: the word on its side has the larger score in only {:.1%} of "
        "all pairs (50 % is chance).",
        unsure="With a large λ the word on the side of VᵀW has the larger attention score in {:.1%} of all pairs",
        doubt=_NEAR,
        silence=_TWO_CLASSES,
    ),
    _of_seeds(
        name="C4",
        statement="A small λ hurts accuracy.",
        statistic="test accuracy at λ = 10 … 50 minus that at λ ≤ 1 (DP)",
        threshold=0.02,  # seeds of one cell differ by up to 1.6 points (papers.md): two points are more than chance
        estimate=lambda rows: accuracy_difference(_plain(rows, MODERATE), _plain(rows, SMALL)),
        yes="A small λ hurts: it costs {:.1%} of accuracy.",
        no="A small λ does little harm: a moderate one is better by {:+.1%} of accuracy.",
        unsure="A moderate λ is better than a small one by {:+.1%} of accuracy",
        doubt=close("the line of two points", "runs"),
        span=(-0.1, 0.5),
    ),
    _of_seeds(
        name="C4b",
        statement="A moderate λ is at least as good as a very large one.",
        statistic="test accuracy at λ = 10 … 50 minus that at λ ≥ 1,000 (DP)",
        threshold=-0.01,  # a point less would be within what seeds do: not worse is what the paper says
        estimate=lambda rows: accuracy_difference(_plain(rows, MODERATE), _plain(rows, VERY_LARGE)),
        yes="A moderate λ is no worse than a very large one ({:+.1%} accuracy).",
        no="A very large λ is better than a moderate one ({:+.1%} accuracy).",
        unsure="A moderate λ and a very large one differ by {:+.1%} of accuracy; that is too close, or rests on too "
        "few runs, to call.",
        span=(-0.1, 0.1),
    ),
    _of_runs(
        name="C4c",
        statement="With a very large λ the model is one of mean pooling.",
        statistic="share of test decisions that stay with even weights, λ ≥ 1,000 (DP)",
        threshold=0.98,  # two decisions in a hundred are what another seed changes in accuracy
        estimate=lambda rows: mean_column(_plain(rows, VERY_LARGE), "pooling", most=1.0, of="its test texts"),
        yes="With a very large λ attention does nothing: {:.1%} of the decisions stay when all words get the same "
        "weight.",
        no="Even with a very large λ attention matters: only {:.1%} of the decisions stay when all words get the same "
        "weight.",
        unsure="With a very large λ {:.1%} of the decisions stay when all words get the same weight",
        doubt=close(0.98),
    ),
    _of_runs(
        name="C9",
        statement="Polarity tokens have larger attention scores also in DP-A, AD and DP-L, and with several classes.",
        statistic="AUC of attention scores at λ = 10, polar against neutral tokens, in the model where it is smallest",
        threshold=0.7,  # the line of C2
        estimate=partial(weakest_variant, "separation"),
        yes="Every model's attention singles out the words that matter, in context and out of it; where it does so "
        "least, a polar word has the larger score in {:.1%} of all pairs.",
        no="Not every model's attention singles out the words that matter: where it does so least, a polar word has "
        "the larger score in only {:.1%} of all pairs.",
        unsure="In the model whose attention singles out polar words least they have the larger score in {:.1%} of "
        "all pairs",
        doubt=_NEAR,
    ),
    _of_runs(
        name="C9b",
        statement="The polarity score has the sign of the group also in DP-A, AD and DP-L, and with several classes.",
        statistic="share of polar tokens with the right sign at λ = 10, in the model where it is smallest",
        threshold=RIGHT,  # the line of C1
        estimate=partial(weakest_variant, "signs"),
        yes="What each model uses follows the data: at least {:.1%} of the polar words push towards their own class, "
        "in context and out of it.",
        no="Not every model uses words as the data would have it: in one only {:.1%} of the polar words push towards "
        "their own class.",
        unsure="In the worst model {:.1%} of the polar words push towards their own class",
        doubt=close(RIGHT),
    ),
    _of_seeds(
        name="C11",
        statement="A large λ gives polarity scores of larger magnitude.",
        statistic="mean |polarity| of polar tokens at λ = 100 over that at λ = 10 (DP)",
        threshold=1.0,  # larger is larger than one
        estimate=magnitude_ratio,
        yes="With a large λ words are used more strongly, {:.2f} times as much: what attention no longer does the "
        "polarity scores must do.",
        no="With a large λ words are not used more strongly ({:.2f} times as much).",
        unsure="With a large λ words are used {:.2f} times as strongly",
        doubt=close("one", "runs"),
        span=(0.0, 3.0),
    ),
    _of_runs(
        name="C11b",
        statement="At small λ term A parts the strengths of positive and negative polarity, with the sign of VᵀW.",
        statistic="(mean s⁺ + mean s⁻) / (mean |s⁺| + mean |s⁻|) at λ ≤ 1, times the sign of VᵀW (DP)",
        threshold=0.0,  # the term predicts a direction; how far is the statistic
        estimate=aligned_asymmetry,
        yes="With a small λ the words of one class are used more strongly, those on the side of VᵀW (by {:.2f} of the "
        "mean strength).",
        no="With a small λ the words on the side of VᵀW are used less strongly ({:+.2f}).",
        unsure="With a small λ the strengths of the two classes part by {:+.2f} towards VᵀW; over these seeds that "
        "cannot be told from none.",
        silence=_TWO_CLASSES,
        span=(-1.0, 1.0),
    ),
    _of_runs(
        name="C12",
        statement="For the LSTM the pattern is clearer in global than in local attention scores.",
        statistic="AUC of attention scores, polar against neutral tokens: global minus local (DP-L, λ = 10)",
        threshold=0.0,  # clearer is more than none; the same tokens are resampled for both
        estimate=lambda rows: mean_column(_at(rows[rows["encoder"] == "lstm"], USUAL), "clarity", most=1.0),
        yes="The LSTM's attention is clearer for a word alone than for the word in its texts (AUC larger by {:.3f}).",
        no="The LSTM's attention is not clearer for a word alone than in its texts (AUC {:+.3f}).",
        unsure="The LSTM's attention to words alone and in their texts differs by {:+.3f} in AUC; over these runs "
        "that cannot be told from none.",
        silence="There is no run of the LSTM at λ = 10.",
        span=(-0.5, 0.5),
    ),
)
