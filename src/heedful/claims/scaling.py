"""Claims of Sun & Lu 2020 about what λ does, and about models other than the plain one.

They are judged on the table `scaling`, one row per run of one data set (`heedful.studies.sun2020.measures`). Runs of
one seed share their initial parameters, so they are averaged first; the interval is then Student's over seeds, and
where the statistic is one of tokens or texts, the interval of their resamples is added to it in quadrature.
"""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Estimate, Numbers, mean_over_seeds
from heedful.claims.kinds import Claim, Tables
from heedful.claims.scores import RIGHT

SMALL, MODERATE, LARGE, VERY_LARGE = 1.0, (10.0, 50.0), 100.0, 1000.0
"""λ up to 1 is small, 10 to 50 moderate (√d = 10), from 100 on large, from 1,000 on nothing but mean pooling."""

FEW_SEEDS = 3
"""With fewer, the spread over seeds is unknown, and an accuracy has the interval of its test texts."""

PLAIN = "DP"


def _small(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["scale"] <= SMALL]


def _moderate(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["scale"].between(*MODERATE)]


def _large(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["scale"] >= LARGE]


def _very_large(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["scale"] >= VERY_LARGE]


def _at(rows: pd.DataFrame, scale: float) -> pd.DataFrame:
    return rows[rows["scale"] == scale]


def _of(tables: Tables, model: str) -> pd.DataFrame:
    rows = tables["scaling"]
    return rows[rows["model"] == model]


def over_runs(rows: pd.DataFrame, column: str, *, most: float = math.inf, of: str = "its tokens") -> Estimate | None:
    """The mean of a measured column: over the runs of each seed, then over seeds, with both kinds of interval.

    The column's own interval is one `of` tokens, or texts.
    """
    known = rows.dropna(subset=[column]) if column in rows else rows.iloc[:0]
    if known.empty:
        return None
    found = mean_over_seeds(known.groupby("seed")[column].mean().to_numpy(np.float64))
    below = float((known[column] - known[f"{column}_low"]).mean())
    above = float((known[f"{column}_high"] - known[column]).mean())
    return Estimate(
        value=found.value,
        low=found.value - math.hypot(found.value - found.low, below),
        high=min(most, found.value + math.hypot(found.high - found.value, above)),
        count=len(known),
        over=of if found.count == 1 else f"seeds and {of.replace('its', 'their')}",
    )


def accuracy_difference(first: pd.DataFrame, second: pd.DataFrame) -> Estimate | None:
    """Test accuracy of some runs minus that of others, by seed, on one test split.

    From three seeds on the interval is the one over seeds. With fewer it is that of two independent shares of the
    test texts, which is wide, because both models read the same texts.
    """
    if first.empty or second.empty:
        return None
    one, other = (rows.groupby("seed")["test_accuracy"].mean() for rows in (first, second))
    differences = (one - other).dropna().to_numpy(np.float64)
    if not len(differences):
        return None
    found = mean_over_seeds(differences)
    if len(differences) >= FEW_SEEDS:
        return found
    half = math.hypot(*(float((r["test_accuracy_high"] - r["test_accuracy_low"]).mean()) / 2 for r in (first, second)))
    low, high = found.value - half, found.value + half
    return Estimate(value=found.value, low=low, high=high, count=found.count, over="test texts")


def aligned_parting(tables: Tables) -> Estimate | None:
    """At large λ, the AUC of attention scores of the tokens on the side of VᵀW against those of the other side."""
    rows = _large(_of(tables, PLAIN)).dropna(subset=["alignment", "parting"])
    return over_runs(_towards(rows, "parting", middle=0.5), "parting", most=1.0)


def aligned_asymmetry(tables: Tables) -> Estimate | None:
    """At small λ, how much stronger the polarity of the tokens on the side of VᵀW is."""
    rows = _small(_of(tables, PLAIN)).dropna(subset=["alignment", "asymmetry"])
    return over_runs(_towards(rows, "asymmetry", middle=0.0), "asymmetry", most=1.0)


def _towards(rows: pd.DataFrame, column: str, *, middle: float) -> pd.DataFrame:
    """The column mirrored about its middle where VᵀW is negative, with its bounds."""
    negative = rows["alignment"] < 0
    bounds = {column: column, f"{column}_low": f"{column}_high", f"{column}_high": f"{column}_low"}
    mirrored = {name: rows[name].where(~negative, 2 * middle - rows[other]) for name, other in bounds.items()}
    return rows.assign(**mirrored)


def magnitude_ratio(tables: Tables) -> Estimate | None:
    """Mean |polarity| of polar tokens at λ = 100 over that at λ = 10 of the same seed."""
    rows = _of(tables, PLAIN)
    pairs = _at(rows, LARGE).merge(_at(rows, MODERATE[0]), on="seed", suffixes=("", "_before"))
    if pairs.empty:
        return None
    spread = np.hypot(_relative_half(pairs, ""), _relative_half(pairs, "_before"))
    ratio = pairs["magnitude"] / pairs["magnitude_before"]
    bounds = {"ratio": ratio, "ratio_low": ratio * (1 - spread), "ratio_high": ratio * (1 + spread)}
    return over_runs(pairs.assign(**bounds), "ratio")


def _relative_half(pairs: pd.DataFrame, end: str) -> Numbers:
    half = (pairs[f"magnitude_high{end}"] - pairs[f"magnitude_low{end}"]) / 2
    return (half / pairs[f"magnitude{end}"]).to_numpy(np.float64)


def weakest_variant(column: str) -> Callable[[Tables], Estimate | None]:
    """The smallest of a column's means over the models at λ = 10: DP-L in both scopes; DP only with several classes."""

    def estimate(tables: Tables) -> Estimate | None:
        rows = _at(tables["scaling"], MODERATE[0])
        variants = [
            over_runs(some, name, most=1.0)
            for model, some in rows.groupby("model")
            if model != PLAIN or int(some["classes"].max()) > 2
            for name in (column, f"local_{column}")
        ]
        known = [found for found in variants if found is not None]
        return min(known, key=lambda found: found.value, default=None)

    return estimate


def _small_against_moderate(tables: Tables) -> Estimate | None:
    rows = _of(tables, PLAIN)
    return accuracy_difference(_moderate(rows), _small(rows))


def _moderate_against_very_large(tables: Tables) -> Estimate | None:
    rows = _of(tables, PLAIN)
    return accuracy_difference(_moderate(rows), _very_large(rows))


_TWO_CLASSES = "This asks for two classes, a clearly polar word of each, and runs with such a λ."
_NO_RUNS = "There are no runs with such λ to compare."

CLAIMS = (
    Claim(
        name="C3",
        statement="At large λ the attention scores of positive and negative tokens part, with the sign of VᵀW.",
        statistic="AUC of attention scores at λ ≥ 100, tokens on the side of VᵀW against the other side",
        threshold=0.7,  # as for C2: the line above which one set clearly exceeds the other
        needs=("scaling",),
        estimate=aligned_parting,
        words={
            "yes": "With a large λ attention prefers one class: in {found.value:.1%} of all pairs the word on the "
            "side of VᵀW has the larger score, so that attention says more of VᵀW than of the words.",
            "no": "With a large λ attention does not follow VᵀW: the word on its side has the larger "
            "score in only {found.value:.1%} of all pairs (50 % is chance).",
            "not shown": "With a large λ the word on the side of VᵀW has the larger attention score in "
            "{found.value:.1%} of all pairs; that is too near the line of 70 %, or varies too much over runs, to call.",
        },
        silence=_TWO_CLASSES,
        sides=("runs",),
    ),
    Claim(
        name="C4",
        statement="A small λ hurts accuracy.",
        statistic="test accuracy at λ = 10 … 50 minus that at λ ≤ 1 (DP)",
        threshold=0.02,  # seeds of one cell differ by up to 1.6 points (papers.md): two points are more than chance
        needs=("scaling",),
        estimate=_small_against_moderate,
        words={
            "yes": "A small λ hurts: it costs {found.value:.1%} of accuracy.",
            "no": "A small λ does little harm: the difference in accuracy is {found.value:+.1%}.",
            "not shown": "A small λ changes accuracy by {found.value:+.1%} against a moderate one; that is too close "
            "to the line of two points, or rests on too few runs, to call.",
        },
        silence=_NO_RUNS,
        sides=("seeds",),
        span=(-0.1, 0.5),
    ),
    Claim(
        name="C4b",
        statement="A moderate λ is at least as good as a very large one.",
        statistic="test accuracy at λ = 10 … 50 minus that at λ ≥ 1,000 (DP)",
        threshold=-0.01,  # a point less would be within what seeds do: not worse is what the paper says
        needs=("scaling",),
        estimate=_moderate_against_very_large,
        words={
            "yes": "A moderate λ is no worse than a very large one ({found.value:+.1%} accuracy).",
            "no": "A very large λ is better than a moderate one ({found.value:+.1%} accuracy).",
            "not shown": "A moderate λ and a very large one differ by {found.value:+.1%} of accuracy; that is too "
            "close, or rests on too few runs, to call.",
        },
        silence=_NO_RUNS,
        sides=("seeds",),
        span=(-0.1, 0.1),
    ),
    Claim(
        name="C4c",
        statement="With a very large λ the model is one of mean pooling.",
        statistic="share of test decisions that stay with even weights, λ ≥ 1,000 (DP)",
        threshold=0.98,  # two decisions in a hundred are what another seed changes in accuracy
        needs=("scaling",),
        estimate=lambda tables: over_runs(_very_large(_of(tables, PLAIN)), "pooling", most=1.0, of="its test texts"),
        words={
            "yes": "With a very large λ attention does nothing: {found.value:.1%} of the decisions stay when all "
            "words get the same weight.",
            "no": "Even with a very large λ attention matters: only {found.value:.1%} of the decisions "
            "stay when all words get the same weight.",
            "not shown": "With a very large λ {found.value:.1%} of the decisions stay when all words get the same "
            "weight; that is too close to the line of 98 % to call.",
        },
        silence=_NO_RUNS,
        sides=("runs",),
    ),
    Claim(
        name="C9",
        statement="Polarity tokens have larger attention scores also in DP-A, AD and DP-L, and with several classes.",
        statistic="AUC of attention scores at λ = 10, polar against neutral tokens, in the model where it is smallest",
        threshold=0.7,  # the line of C2
        needs=("scaling",),
        estimate=weakest_variant("separation"),
        words={
            "yes": "Every model's attention singles out the words that matter, in context and out of it; where it "
            "does so least, a polar word has the larger score in {found.value:.1%} of all pairs.",
            "no": "Not every model's attention singles out the words that matter: where it does so least, "
            "a polar word has the larger score in only {found.value:.1%} of all pairs.",
            "not shown": "In the model whose attention singles out polar words least they have the larger score in "
            "{found.value:.1%} of all pairs; that is too near the line of 70 %, or varies too much over runs, to call.",
        },
        silence=_NO_RUNS,
        sides=("runs",),
    ),
    Claim(
        name="C9b",
        statement="The polarity score has the sign of the group also in DP-A, AD and DP-L, and with several classes.",
        statistic="share of polar tokens with the right sign at λ = 10, in the model where it is smallest",
        threshold=RIGHT,  # the line of C1
        needs=("scaling",),
        estimate=weakest_variant("signs"),
        words={
            "yes": "What each model uses follows the data: at least {found.value:.1%} of the polar words push "
            "towards their own class, in context and out of it.",
            "no": "Not every model uses words as the data would have it: in one only {found.value:.1%} of "
            "the polar words push towards their own class.",
            "not shown": "In the worst model {found.value:.1%} of the polar words push towards their own class; that "
            "is too close to the line of 80 % to call.",
        },
        silence=_NO_RUNS,
        sides=("runs",),
    ),
    Claim(
        name="C11",
        statement="A large λ gives polarity scores of larger magnitude.",
        statistic="mean |polarity| of polar tokens at λ = 100 over that at λ = 10 (DP)",
        threshold=1.0,  # larger is larger than one
        needs=("scaling",),
        estimate=magnitude_ratio,
        words={
            "yes": "With a large λ words are used more strongly, {found.value:.2f} times as much: what attention "
            "no longer does the polarity scores must do.",
            "no": "With a large λ words are not used more strongly ({found.value:.2f} times as much).",
            "not shown": "With a large λ words are used {found.value:.2f} times as strongly; that is too close to "
            "one, or rests on too few runs, to call.",
        },
        silence=_NO_RUNS,
        sides=("seeds",),
        span=(0.0, 3.0),
    ),
    Claim(
        name="C11b",
        statement="At small λ term A parts the strengths of positive and negative polarity, with the sign of VᵀW.",
        statistic="(mean s⁺ + mean s⁻) / (mean |s⁺| + mean |s⁻|) at λ ≤ 1, times the sign of VᵀW (DP)",
        threshold=0.0,  # the term predicts a direction; how far is the statistic
        needs=("scaling",),
        estimate=aligned_asymmetry,
        words={
            "yes": "With a small λ the words of one class are used more strongly, those on the side of VᵀW "
            "(by {found.value:.2f} of the mean strength).",
            "no": "With a small λ the words on the side of VᵀW are used less strongly ({found.value:+.2f}).",
            "not shown": "With a small λ the strengths of the two classes part by {found.value:+.2f} towards VᵀW; "
            "over these seeds that cannot be told from none.",
        },
        silence=_TWO_CLASSES,
        sides=("runs",),
        span=(-1.0, 1.0),
    ),
    Claim(
        name="C12",
        statement="For the LSTM the pattern is clearer in global than in local attention scores.",
        statistic="AUC of attention scores, polar against neutral tokens: global minus local (DP-L, λ = 10)",
        threshold=0.0,  # clearer is more than none; the same tokens are resampled for both
        needs=("scaling",),
        estimate=lambda tables: over_runs(_at(_of(tables, "DP-L"), MODERATE[0]), "clarity", most=1.0),
        words={
            "yes": "The LSTM's attention is clearer for a word alone than for the word in its texts "
            "(AUC larger by {found.value:.3f}).",
            "no": "The LSTM's attention is not clearer for a word alone than in its texts (AUC {found.value:+.3f}).",
            "not shown": "The LSTM's attention to words alone and in their texts differs by {found.value:+.3f} in "
            "AUC; over these runs that cannot be told from none.",
        },
        silence="There is no run of the LSTM at λ = 10.",
        sides=("runs",),
        span=(-0.5, 0.5),
    ),
)
