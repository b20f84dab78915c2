"""Claims of Sun & Lu 2020 about how scores, dot products and VᵀW develop, each judged over independent runs.

Where a claim has several parts (signs of several terms, of several kinds of pairs), its statistic is the weakest of
them in each run: it holds only when every part does.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.separation import neutral, polar, right_signs
from heedful.analysis.statistics import Estimate, Numbers, area, bootstrap
from heedful.claims.claim import Claim, close
from heedful.claims.combine import SHARES, mean_of_runs

ACCURACY_LOSS = 0.01
"""C5: accuracy is hurt when the mean over runs falls by more than a point, about the noise of a test set of 2,000."""

BALANCED = 0.5
"""C6: the share of positive texts that is not skewed."""

APPROACHING = 0.5
"""C10: a local minimum is approached once the mean β has fallen below this part of where it began."""

SIGNED_TERMS = ("B", "C", "E", "F")
POLAR = ("positive", "negative")
EXPECTED = {"pos-pos": 1.0, "neg-neg": 1.0, "pos-neg": -1.0}
"""C7: the sign of the dot product of two polarity tokens, by their kind."""


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
    parts = [*_right_shares(run[scale == scale.min()]), *_without_a(run[scale == scale.max()])]
    return min(parts) if parts else None


def _right_shares(run: pd.DataFrame) -> Iterator[float]:
    rows = _approaching(run)
    signed = rows[rows["term"].isin(SIGNED_TERMS) & rows["group"].isin(POLAR)]
    downwards = (signed["group"] == "negative") & signed["term"].isin(("B", "C"))
    right = signed["positive"].where(~downwards, 1 - signed["positive"])
    yield from right.groupby([signed["term"], signed["group"]]).mean().tolist()


def _without_a(run: pd.DataFrame) -> Iterator[float]:
    rows = _approaching(run)
    polarity = rows[rows["term"].isin(("A", "B", "C")) & rows["group"].isin(POLAR)]
    for _, group in polarity.groupby("group"):
        sizes = group["mean"].abs().groupby(group["term"]).mean()
        yield float(1 - sizes["A"] / sizes.sum())


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


_of_runs = partial(Claim, sides=("runs",), silence="It takes at least two runs of each kind to tell.")

CLAIMS = (
    _of_runs(
        name="C5",
        statement="Penalising VᵀW closes the gap between the attention scores of positive and negative tokens without "
        "hurting accuracy.",
        statistic="part of the gap closed, none if accuracy falls by over a point",
        threshold=0.7,  # "almost disappeared" (supplement C.3): less than a third is left
        estimate=closed_gap,
        yes="Penalising VᵀW closes {:.0%} of the attention gap between positive and negative words and costs no "
        "accuracy.",
        no="Penalising VᵀW closes only {:.0%} of the attention gap between positive and negative words, or costs "
        "accuracy.",
        unsure="Penalising VᵀW closes {:.0%} of the attention gap between positive and negative words; over so few "
        "runs that is too close to the line of 70 % to call.",
        table="penalty",
    ),
    _of_runs(
        name="C6",
        statement="|VᵀW| is larger on skewed than on balanced data.",
        statistic="mean |VᵀW| on skewed data minus |VᵀW| on balanced data, from the same initialisation",
        threshold=0.0,  # any difference: the paper names no size
        estimate=mean_of_runs(_skew_effect),
        yes="Skewed data leave V and W more aligned: |VᵀW| is larger by {:.2f} than on balanced data.",
        no="Skewed data do not leave V and W more aligned: |VᵀW| differs by {:+.2f} from that on balanced data.",
        unsure="|VᵀW| on skewed data differs by {:+.2f} from that on balanced data, which the spread over "
        "initialisations does not tell from none.",
        table="ratios",
        span=(-5.0, 5.0),
    ),
    _of_runs(
        name="C7",
        statement="Embeddings of the same polarity have positive dot products, of opposite polarity negative ones, "
        "smaller in magnitude, and those of neutral tokens stay near zero.",
        statistic="weakest of the right-signed shares of three kinds of pairs and of two AUCs of |Ω|",
        threshold=0.7,  # the line of C2: a clear separation, where a half is chance
        estimate=mean_of_runs(_weakest_product, SHARES),
        yes="Words of a class come to point the same way and those of the other the opposite way: even the weakest "
        "part of the pattern holds for {:.0%} of the pairs.",
        no="The pattern of dot products is incomplete: its weakest part holds for only {:.0%} of the pairs (50 % is "
        "chance).",
        unsure="The weakest part of the pattern of dot products holds for {:.0%} of the pairs",
        doubt=close(0.7),
        table="dot_products",
    ),
    _of_runs(
        name="C10",
        statement="Near a minimum and at moderate λ, B and C have the sign of the token's group and E and F are "
        "positive for polarity tokens; at large λ the term A is small.",
        statistic="weakest of the right-signed shares of B, C, E, F and of the part of the polarity rate that is not A",
        threshold=0.9,  # the line of C1, which these terms are to explain
        estimate=mean_of_runs(_weakest_term, SHARES),
        yes="The terms of the gradient flow act as derived: even the weakest has the right sign, or size, in {:.0%} "
        "of the cases.",
        no="Not all terms of the gradient flow act as derived: the weakest has the right sign, or size, in only "
        "{:.0%} of the cases.",
        unsure="The weakest term of the gradient flow has the right sign, or size, in {:.0%} of the cases",
        doubt=close(0.9),
        table="terms",
    ),
    _of_runs(
        name="C13",
        statement="A smaller initialisation of the embeddings develops the pattern of dot products sooner.",
        statistic="epochs by which a pair keeps its sign later from the wide than from the narrow initialisation",
        threshold=0.0,  # any delay: the paper names no size
        estimate=mean_of_runs(_settling_delay),
        yes="From a smaller initialisation a pair of words settles on its sign {:.0f} epochs earlier.",
        no="A smaller initialisation does not help: a pair of words settles on its sign {:+.0f} epochs later from the "
        "wider one.",
        unsure="A pair of words settles on its sign {:+.0f} epochs later from the wider initialisation, which the "
        "spread over runs does not tell from none.",
        table="settling",
        span=(0.0, 500.0),
    ),
    _of_runs(
        name="C14",
        statement="With noise (Data II) polarity scores keep their signs and attention scores still single out "
        "polarity tokens.",
        statistic="weaker of the right-signed share of polar tokens and the AUC of attention, polar against neutral",
        threshold=0.9,  # the line of C1; made data are clean enough to ask the same of attention
        estimate=mean_of_runs(_noisy_pattern, SHARES),
        yes="Noise leaves the pattern intact: the weaker of signs and attention still holds for {:.0%} of the words.",
        no="Noise breaks the pattern: the weaker of signs and attention holds for only {:.0%} of the words.",
        unsure="With noise the weaker of signs and attention holds for {:.0%} of the words",
        doubt=close(0.9),
        table="noise",
    ),
)
