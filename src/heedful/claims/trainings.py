"""Claims of Sun & Lu 2020 about trainings: what λ does, models other than the plain one, and how scores develop.

Those about λ and other models are judged on the table `scaling`, one row per run of one data set
(`heedful.studies.measures`). Runs of one seed share their initial parameters, so they are averaged first; the interval
is then Student's over seeds, and where the statistic is one of tokens or texts, the interval of their resamples is
added to it in quadrature.

Those about how scores, dot products and VᵀW develop are judged over independent runs. Where such a claim has several
parts (signs of several terms, of several kinds of pairs), its statistic is the weakest of them in each run: it holds
only when every part does.
"""

import math
from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.separation import neutral, polar, right_signs
from heedful.analysis.statistics import Estimate, Numbers, area, bootstrap
from heedful.claims.claim import Claim, close, named
from heedful.claims.combine import SHARES, accuracy_difference, mean_column, mean_of_runs
from heedful.claims.scores import RIGHT

SMALL, MODERATE, LARGE, VERY_LARGE = (0.0, 1.0), (10.0, 50.0), (100.0, math.inf), (1000.0, math.inf)
"""λ up to 1 is small, 10 to 50 moderate (√d = 10), from 100 on large, from 1,000 on nothing but mean pooling."""

USUAL = 10.0

ACCURACY_LOSS = 0.01
"""C5: accuracy is hurt when the mean over runs falls by more than a point, about the noise of a test set of 2,000."""

BALANCED = 0.5  # C6: the share of positive texts that is not skewed
APPROACHING = 0.5  # C10: a local minimum is approached once the mean β has fallen below this part of where it began
SIGNED_TERMS = ("B", "C", "E", "F")
POLAR = ("positive", "negative")
EXPECTED = {"pos-pos": 1.0, "neg-neg": 1.0, "pos-neg": -1.0}
"""C7: the sign of the dot product of two polarity tokens, by their kind."""


def _plain(rows: pd.DataFrame, scales: tuple[float, float] = (0.0, math.inf)) -> pd.DataFrame:
    """The runs of the plain model (DP: dot-product attention on the embeddings) with such λ."""
    return rows[_is_plain(rows) & rows["scale"].between(*scales)]


def _is_plain(rows: pd.DataFrame) -> "pd.Series[bool]":
    return (rows["attention"] == "dot") & (rows["encoder"] == "none")


def _at(rows: pd.DataFrame, scale: float) -> pd.DataFrame:
    return rows[rows["scale"] == scale]


def _aligned(rows: pd.DataFrame, column: str, *, middle: float) -> Estimate | None:
    """The mean of a column that is mirrored about its middle, with its bounds, where VᵀW is negative."""
    rows = rows.dropna(subset=["alignment", column])
    negative = rows["alignment"] < 0
    bounds = {column: column, f"{column}_low": f"{column}_high", f"{column}_high": f"{column}_low"}
    mirrored = {name: rows[name].where(~negative, 2 * middle - rows[other]) for name, other in bounds.items()}
    return mean_column(rows.assign(**mirrored), column, most=1.0)


def magnitude_ratio(rows: pd.DataFrame) -> Estimate | None:
    """Mean |polarity| of polar tokens at λ = 100 over that at λ = 10 of the same seed."""
    pairs = _at(_plain(rows), LARGE[0]).merge(_at(_plain(rows), USUAL), on="seed", suffixes=("", "_before"))
    if pairs.empty:
        return None
    halves = {end: (pairs[f"magnitude_high{end}"] - pairs[f"magnitude_low{end}"]) / 2 for end in ("", "_before")}
    spread = np.hypot(*((half / pairs[f"magnitude{end}"]).to_numpy(np.float64) for end, half in halves.items()))
    ratio = pairs["magnitude"] / pairs["magnitude_before"]
    bounds = {"ratio": ratio, "ratio_low": ratio * (1 - spread), "ratio_high": ratio * (1 + spread)}
    return mean_column(pairs.assign(**bounds), "ratio")


def weakest_variant(column: str, rows: pd.DataFrame) -> Estimate | None:
    """The smallest of a column's means over the models at λ = 10: DP-L in both scopes; DP only with several classes."""
    found = [
        mean_column(some, name, most=1.0)
        for _, some in _at(rows, USUAL).groupby("model")
        if not _is_plain(some).all() or int(some["classes"].max()) > 2
        for name in (column, f"local_{column}")
    ]
    return min((one for one in found if one is not None), key=lambda one: one.value, default=None)


def closed_gap(table: pd.DataFrame) -> Estimate | None:
    """The part of the positive–negative attention gap that the penalty removes: 1 − Σ gap with / Σ gap without.

    Runs with and without penalty are paired by corpus and seed, and resampled as pairs. A resample whose mean accuracy
    is hurt counts as nothing closed: a penalty that costs accuracy does not have the claimed effect.
    Columns: corpus, seed, penalty (0 without), gap, accuracy.
    """
    plain, penalised = table[table["penalty"] == 0], table[table["penalty"] > 0]
    pairs = plain.merge(penalised, on=["corpus", "seed"], suffixes=("", "_penalised"))
    if len(pairs) < 2:
        return None
    gaps = pairs[["gap", "gap_penalised"]].to_numpy(dtype=np.float64)
    losses = (pairs["accuracy"] - pairs["accuracy_penalised"]).to_numpy(dtype=np.float64)

    def closed(rows: Numbers) -> float:
        drawn = rows.astype(int)
        without, penalised = gaps[drawn].sum(0)
        return 0.0 if losses[drawn].mean() > ACCURACY_LOSS else float(1 - penalised / without)

    return bootstrap(closed, np.arange(len(pairs), dtype=np.float64))


def _skew_effect(run: pd.DataFrame) -> float | None:
    """Mean |VᵀW| on skewed data minus |VᵀW| on balanced data, from one initialisation."""
    size = run["alignment"].abs()
    balanced = np.isclose(run["positive_share"], BALANCED)
    return float(size[~balanced].mean() - size[balanced].mean()) if 0 < balanced.sum() < len(run) else None


def _weakest_product(run: pd.DataFrame) -> float | None:
    """The weakest of five numbers between 0 and 1, for each of which a half is chance.

    Shares of pos-pos and neg-neg pairs with Ω > 0 and of pos-neg pairs with Ω < 0; P(|Ω| of two polarity tokens
    exceeds |Ω| of a pair with a neutral one); P(|Ω| of a same-group pair exceeds that of a pos-neg pair).
    """
    omegas = {str(kind): rows["omega"].to_numpy(dtype=np.float64) for kind, rows in run.groupby("kind")}
    if not set(EXPECTED) <= set(omegas):
        return None
    shares = [float((sign * omegas[kind] > 0).mean()) for kind, sign in EXPECTED.items()]
    same = np.abs(np.concatenate([omegas["pos-pos"], omegas["neg-neg"]]))
    across = np.abs(omegas["pos-neg"])
    quiet = [np.abs(values) for kind, values in omegas.items() if kind.endswith("-neu")]
    loud = np.concatenate([same, across])
    return min([*shares, area(same, across), *([area(loud, np.concatenate(quiet))] if quiet else [])])


def _weakest_term(run: pd.DataFrame) -> float | None:
    """The weakest of the right-signed shares of B, C, E, F, and of the part of the polarity rate that is not A.

    Shares are over polarity tokens and the moments at which a minimum is approached; B and C have the group's sign, E
    and F are positive. Signs are judged at the smallest λ of the table, the moderate one: at a large one D rules
    attention, as the paper says, and F follows whichever group D favours. A is judged at the largest λ, as
    (|B| + |C|) / (|A| + |B| + |C|).
    """
    scale = run["score_scale"]
    moderate, large = (_approaching(run[scale == end]) for end in (scale.min(), scale.max()))
    signed = moderate[moderate["term"].isin(SIGNED_TERMS) & moderate["group"].isin(POLAR)]
    downwards = (signed["group"] == "negative") & signed["term"].isin(("B", "C"))
    right = signed["positive"].where(~downwards, 1 - signed["positive"])
    parts = right.groupby([signed["term"], signed["group"]]).mean().tolist()
    for _, group in large[large["term"].isin(("A", "B", "C")) & large["group"].isin(POLAR)].groupby("group"):
        sizes = group["mean"].abs().groupby(group["term"]).mean()
        parts.append(float(1 - sizes["A"] / sizes.sum()))
    return min(parts) if parts else None


def _approaching(run: pd.DataFrame) -> pd.DataFrame:
    """The moments from which on the mean β is small; none of a training that never gets there."""
    first = float(run["mean_beta"].iloc[int(run["time"].argmin())])
    return run[run["mean_beta"] < APPROACHING * first]


def _settling_delay(run: pd.DataFrame) -> float | None:
    """How much later a pair keeps its sign from the widest initialisation than from the narrowest, in epochs."""
    times = run.groupby("embedding_range")["settled"].mean().sort_index()
    return float(times.iloc[-1] - times.iloc[0]) if len(times) > 1 else None


def _noisy_pattern(run: pd.DataFrame) -> float | None:
    """On the noisiest data the weaker of: share of right signs, AUC of attention for polar against neutral tokens."""
    noisy = run[run["noise"] == run["noise"].max()]
    if not noisy["noise"].max() > 0 or not len(polar(noisy)) or not len(neutral(noisy)):
        return None
    scores = [rows["attention"].to_numpy(dtype=np.float64) for rows in (polar(noisy), neutral(noisy))]
    return min(float(right_signs(noisy).mean()), area(*scores))


_TWO_CLASSES = "This asks for two classes, a clearly polar word of each, and runs with such a λ."
_NO_RUNS = "There are no runs with such λ to compare."
_NEAR = "; that is too near the line of 70 %, or varies too much over runs, to call."

_of_scales = partial(Claim, table="scaling", sides=("runs",), silence=_NO_RUNS)
_of_seeds = partial(_of_scales, sides=("seeds",))
_of_recordings = partial(Claim, sides=("runs",), silence="It takes at least two runs of each kind to tell.")

CLAIMS = named(
    C3=_of_scales(
        statement="At large λ the attention scores of positive and negative tokens part, with the sign of VᵀW.",
        statistic="AUC of attention scores at λ ≥ 100, tokens on the side of VᵀW against the other side",
        threshold=0.7,  # as for C2: the line above which one set clearly exceeds the other
        estimate=lambda rows: _aligned(_plain(rows, LARGE), "parting", middle=0.5),
        found="with a large λ the word on the side of VᵀW has the larger attention score in {:.1%} of all pairs",
        yes="With a large λ attention prefers one class: in {:.1%} of all pairs the word on the side of VᵀW has the "
        "larger score, so that attention says more of VᵀW than of the words.",
        no="With a large λ attention does not follow VᵀW: the word on its side has the larger score in only {:.1%} of "
        "all pairs (50 % is chance).",
        doubt=_NEAR,
        silence=_TWO_CLASSES,
    ),
    C4=_of_seeds(
        statement="A small λ hurts accuracy.",
        statistic="test accuracy at λ = 10 … 50 minus that at λ ≤ 1 (DP)",
        threshold=0.02,  # seeds of one cell differ by up to 1.6 points (papers.md): two points are more than chance
        estimate=lambda rows: accuracy_difference(_plain(rows, MODERATE), _plain(rows, SMALL)),
        found="a moderate λ is better than a small one by {:+.1%} of accuracy",
        yes="A small λ hurts: it costs {:.1%} of accuracy.",
        no="A small λ does little harm: a moderate one is better by {:+.1%} of accuracy.",
        doubt=close("the line of two points", "runs"),
        span=(-0.1, 0.5),
    ),
    C4b=_of_seeds(
        statement="A moderate λ is at least as good as a very large one.",
        statistic="test accuracy at λ = 10 … 50 minus that at λ ≥ 1,000 (DP)",
        threshold=-0.01,  # a point less would be within what seeds do: not worse is what the paper says
        estimate=lambda rows: accuracy_difference(_plain(rows, MODERATE), _plain(rows, VERY_LARGE)),
        found="a moderate λ and a very large one differ by {:+.1%} of accuracy",
        yes="A moderate λ is no worse than a very large one ({:+.1%} accuracy).",
        no="A very large λ is better than a moderate one ({:+.1%} accuracy).",
        doubt="; that is too close, or rests on too few runs, to call.",
        span=(-0.1, 0.1),
    ),
    C4c=_of_scales(
        statement="With a very large λ the model is one of mean pooling.",
        statistic="share of test decisions that stay with even weights, λ ≥ 1,000 (DP)",
        threshold=0.98,  # two decisions in a hundred are what another seed changes in accuracy
        estimate=lambda rows: mean_column(_plain(rows, VERY_LARGE), "pooling", most=1.0, of="its test texts"),
        found="{only}{:.1%} of the decisions stay when all words get the same weight",
        yes="With a very large λ attention does nothing: {found}.",
        no="Even with a very large λ attention matters: {found}.",
        unsure="With a very large λ {found}",
    ),
    C9=_of_scales(
        statement="Polarity tokens have larger attention scores also in DP-A, AD and DP-L, and with several classes.",
        statistic="AUC of attention scores at λ = 10, polar against neutral tokens, in the model where it is smallest",
        threshold=0.7,  # the line of C2
        estimate=partial(weakest_variant, "separation"),
        found="where it does so least, a polar word has the larger score in {only}{:.1%} of all pairs",
        yes="Every model's attention singles out the words that matter, in context and out of it; {found}.",
        no="Not every model's attention singles out the words that matter: {found}.",
        unsure="In the model whose attention singles out polar words least they have the larger score in {:.1%} of "
        "all pairs",
        doubt=_NEAR,
    ),
    C9b=_of_scales(
        statement="The polarity score has the sign of the group also in DP-A, AD and DP-L, and with several classes.",
        statistic="share of polar tokens with the right sign at λ = 10, in the model where it is smallest",
        threshold=RIGHT,  # the line of C1
        estimate=partial(weakest_variant, "signs"),
        found="{only}{:.1%} of the polar words push towards their own class",
        yes="What each model uses follows the data: at least {found}, in context and out of it.",
        no="Not every model uses words as the data would have it: in one {found}.",
        unsure="In the worst model {found}",
    ),
    C11=_of_seeds(
        statement="A large λ gives polarity scores of larger magnitude.",
        statistic="mean |polarity| of polar tokens at λ = 100 over that at λ = 10 (DP)",
        threshold=1.0,  # larger is larger than one
        estimate=magnitude_ratio,
        found="with a large λ words are used {:.2f} times as strongly",
        yes="With a large λ words are used more strongly, {:.2f} times as much: what attention no longer does the "
        "polarity scores must do.",
        no="With a large λ words are not used more strongly ({:.2f} times as much).",
        doubt=close("one", "runs"),
        span=(0.0, 3.0),
    ),
    C11b=_of_scales(
        statement="At small λ term A parts the strengths of positive and negative polarity, with the sign of VᵀW.",
        statistic="(mean s⁺ + mean s⁻) / (mean |s⁺| + mean |s⁻|) at λ ≤ 1, times the sign of VᵀW (DP)",
        threshold=0.0,  # the term predicts a direction; how far is the statistic
        estimate=lambda rows: _aligned(_plain(rows, SMALL), "asymmetry", middle=0.0),
        found="with a small λ the strengths of the two classes part by {:+.2f} towards VᵀW",
        yes="With a small λ the words of one class are used more strongly, those on the side of VᵀW (by {:.2f} of the "
        "mean strength).",
        no="With a small λ the words on the side of VᵀW are used less strongly ({:+.2f}).",
        doubt="; over these seeds that cannot be told from none.",
        silence=_TWO_CLASSES,
        span=(-1.0, 1.0),
    ),
    C12=_of_scales(
        statement="For the LSTM the pattern is clearer in global than in local attention scores.",
        statistic="AUC of attention scores, polar against neutral tokens: global minus local (DP-L, λ = 10)",
        threshold=0.0,  # clearer is more than none; the same tokens are resampled for both
        estimate=lambda rows: mean_column(_at(rows[rows["encoder"] == "lstm"], USUAL), "clarity", most=1.0),
        found="the LSTM's attention to words alone and in their texts differs by {:+.3f} in AUC",
        yes="The LSTM's attention is clearer for a word alone than for the word in its texts (AUC larger by {:.3f}).",
        no="The LSTM's attention is not clearer for a word alone than in its texts (AUC {:+.3f}).",
        doubt="; over these runs that cannot be told from none.",
        silence="There is no run of the LSTM at λ = 10.",
        span=(-0.5, 0.5),
    ),
    C5=_of_recordings(
        statement="Penalising VᵀW closes the gap between the attention scores of positive and negative tokens without "
        "hurting accuracy.",
        statistic="part of the gap closed, none if accuracy falls by over a point",
        threshold=0.7,  # "almost disappeared" (supplement C.3): less than a third is left
        estimate=closed_gap,
        found="penalising VᵀW closes {only}{:.0%} of the attention gap between positive and negative words",
        yes="{found} and costs no accuracy.",
        no="{found}, or costs accuracy.",
        doubt="; over so few runs that is too close to the line of 70 % to call.",
        table="penalty",
    ),
    C6=_of_recordings(
        statement="|VᵀW| is larger on skewed than on balanced data.",
        statistic="mean |VᵀW| on skewed data minus |VᵀW| on balanced data, from the same initialisation",
        threshold=0.0,  # any difference: the paper names no size
        estimate=mean_of_runs(_skew_effect),
        found="|VᵀW| on skewed data differs by {:+.2f} from that on balanced data, which the spread over "
        "initialisations does not tell from none.",
        yes="Skewed data leave V and W more aligned: |VᵀW| is larger by {:.2f} than on balanced data.",
        no="Skewed data do not leave V and W more aligned: |VᵀW| differs by {:+.2f} from that on balanced data.",
        doubt="",
        table="ratios",
        span=(-5.0, 5.0),
    ),
    C7=_of_recordings(
        statement="Embeddings of the same polarity have positive dot products, of opposite polarity negative ones, "
        "smaller in magnitude, and those of neutral tokens stay near zero.",
        statistic="weakest of the right-signed shares of three kinds of pairs and of two AUCs of |Ω|",
        threshold=0.7,  # the line of C2: a clear separation, where a half is chance
        estimate=mean_of_runs(_weakest_product, SHARES),
        found="holds for {only}{:.0%} of the pairs",
        yes="Words of a class come to point the same way and those of the other the opposite way: even the weakest "
        "part of the pattern {found}.",
        no="The pattern of dot products is incomplete: its weakest part {found} (50 % is chance).",
        unsure="The weakest part of the pattern of dot products {found}",
        table="dot_products",
    ),
    C10=_of_recordings(
        statement="Near a minimum and at moderate λ, B and C have the sign of the token's group and E and F are "
        "positive for polarity tokens; at large λ the term A is small.",
        statistic="weakest of the right-signed shares of B, C, E, F and of the part of the polarity rate that is not A",
        threshold=0.9,  # made data are clean: more is asked than of C1, whose signs these terms are to explain
        estimate=mean_of_runs(_weakest_term, SHARES),
        found="has the right sign, or size, in {only}{:.0%} of the cases",
        yes="The terms of the gradient flow act as derived: even the weakest {found}.",
        no="Not all terms of the gradient flow act as derived: the weakest {found}.",
        unsure="The weakest term of the gradient flow {found}",
        table="terms",
    ),
    C13=_of_recordings(
        statement="A smaller initialisation of the embeddings develops the pattern of dot products sooner.",
        statistic="epochs by which a pair keeps its sign later from the wide than from the narrow initialisation",
        threshold=0.0,  # any delay: the paper names no size
        estimate=mean_of_runs(_settling_delay),
        found="a pair of words settles on its sign {:+.0f} epochs later from the wider",
        yes="From a smaller initialisation a pair of words settles on its sign {:.0f} epochs earlier.",
        no="A smaller initialisation does not help: {found} one.",
        doubt=" initialisation, which the spread over runs does not tell from none.",
        table="settling",
        span=(0.0, 500.0),
    ),
    C14=_of_recordings(
        statement="With noise (Data II) polarity scores keep their signs and attention scores still single out "
        "polarity tokens.",
        statistic="weaker of the right-signed share of polar tokens and the AUC of attention, polar against neutral",
        threshold=0.9,  # made data are clean: more is asked than of C1, and the same of attention
        estimate=mean_of_runs(_noisy_pattern, SHARES),
        found="holds for {only}{:.0%} of the words",
        yes="Noise leaves the pattern intact: the weaker of signs and attention still {found}.",
        no="Noise breaks the pattern: the weaker of signs and attention {found}.",
        unsure="With noise the weaker of signs and attention {found}",
        table="noise",
    ),
)
