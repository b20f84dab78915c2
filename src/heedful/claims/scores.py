"""Claims of Sun & Lu 2020 about token scores and attention weights of a trained model."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from heedful.analysis.matched import matched_area
from heedful.analysis.statistics import Estimate, Numbers, area_estimate, share, too_few
from heedful.analysis.tokens import group_of_class
from heedful.claims.kinds import FEWEST, Claim, Tables

NOT_POLAR = ("neutral", "none")


def polar(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of tokens that belong to a class, beyond chance where the table tells."""
    rows = table[~table["group"].isin(NOT_POLAR)]
    return rows[rows["beyond_chance"]] if "beyond_chance" in rows else rows


def neutral(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of tokens that occur alike in all classes."""
    return table[table["group"] == "neutral"]


def right_signs(table: pd.DataFrame) -> Numbers:
    """For each polar token 1 if its polarity points to its own class, else 0.

    Two classes: the sign of the polarity score. More: its own class has the largest of the scores.
    """
    rows = polar(table)
    if "polarity" in rows:
        sign = np.where(rows["group"] == "positive", 1.0, -1.0)
        return np.asarray(sign * rows["polarity"].to_numpy() > 0, dtype=np.float64)
    columns = [column for column in rows if str(column).startswith("polarity_")]
    best = rows[columns].to_numpy().argmax(1) if len(rows) else np.empty(0, dtype=int)
    own = rows["group"].map({group_of_class(str(c).removeprefix("polarity_")): k for k, c in enumerate(columns)})
    return np.asarray(best == own.to_numpy(), dtype=np.float64)


def _sign_share(tables: Tables) -> Estimate:
    signs = right_signs(tables["tokens"])
    return share(int(signs.sum()), len(signs)) if len(signs) else too_few(0)


def separation(table: pd.DataFrame, column: str = "attention") -> Estimate:
    """AUC of a column for polar against neutral tokens."""
    rows = table.dropna(subset=[column])
    return area_estimate(*(side[column].to_numpy(dtype=np.float64) for side in (polar(rows), neutral(rows))))


def matched_separation(table: pd.DataFrame, column: str = "attention") -> Estimate:
    """AUC of a column for polar tokens against tokens that all classes use alike, at equal frequency."""
    rows = table.dropna(subset=[column])
    sides = polar(rows), rows[rows["even"]]
    values = [side[column].to_numpy(dtype=np.float64) for side in sides]
    counts = [side["count"].to_numpy(dtype=np.float64) for side in sides]
    return matched_area(values[0], values[1], (counts[0], counts[1]))


def _matched_scores(tables: Tables) -> Estimate:
    return matched_separation(tables["tokens"])


def _matched_lifts(tables: Tables) -> Estimate:
    """Of the logarithms: what is freed from frequency is a factor of an even share."""
    weights = tables["weights"]
    return matched_separation(weights.assign(lift=np.log(weights["lift"].clip(lower=SMALLEST_LIFT))), "lift")


def _separated(table: str, column: str) -> Callable[[Tables], Estimate]:
    return lambda tables: separation(tables[table], column)


SMALLEST_LIFT = 1e-12

RIGHT = 0.8
"""Four words in five: what a model uses need not follow the data in every word to be sound."""

ALL_RIGHT = 16
"""So many words must there be, all pushing towards their own class, for the interval of C1 to lie above that."""

BOTH = ("polar tokens", "neutral tokens")
"""The sides of every comparison of groups."""

MATCHED = ("polar tokens", "tokens that all classes use alike")
"""The sides of comparisons at equal frequency."""

_FEW_MATCHED = (
    f"There are too few words to tell: {FEWEST} are needed that clearly belong to a class and {FEWEST} that all "
    "classes use alike, of about the same frequency. More texts may help, or fewer classes."
)

_FEW = (
    f"There are too few words to tell: {FEWEST} are needed that clearly belong to a class and {FEWEST} that clearly "
    "belong to none. More texts may help, or fewer classes."
)

CLAIMS = (
    Claim(
        name="C1",
        statement="The polarity score of a token has the sign of its group.",
        statistic="share of polar tokens with the right sign",
        threshold=RIGHT,
        needs=("tokens",),
        estimate=_sign_share,
        silence=_FEW,
        sides=BOTH[:1],
        least=FEWEST,
        words={
            "yes": "What the model uses follows the data: {found.value:.1%} of the clearly polar words push "
            "towards their own class.",
            "no": "What the model uses does not follow the data: only {found.value:.1%} of the clearly "
            "polar words push towards their own class.",
            "not shown": "{found.value:.1%} of the clearly polar words push towards their own class; that is too close "
            f"to the line of 80 %, or rests on too few words, to call (it takes {ALL_RIGHT} that all do).",
        },
    ),
    Claim(
        name="C2",
        statement="Polarity tokens have larger attention scores than neutral tokens.",
        statistic="AUC of attention scores, polar against neutral tokens",
        threshold=0.7,
        needs=("tokens",),
        estimate=_separated("tokens", "attention"),
        silence=_FEW,
        sides=BOTH,
        least=FEWEST,
        words={
            "yes": "Attention singles out the words that matter: a polar word has a larger attention score than "
            "a neutral one in {found.value:.1%} of all pairs.",
            "no": "Attention does not single out the words that matter: a polar word has a larger "
            "attention score than a neutral one in only {found.value:.1%} of all pairs (50 % is chance).",
            "not shown": "A polar word has a larger attention score than a neutral one in {found.value:.1%} of all "
            "pairs; that is too close to the line of 70 % to call.",
        },
    ),
    Claim(
        name="C2b",
        statement="At equal frequency, polarity tokens have larger attention scores than tokens that all classes use "
        "alike.",
        statistic="AUC of attention scores, polar against evenly used tokens, within strata of frequency",
        threshold=0.7,
        needs=("tokens",),
        estimate=_matched_scores,
        silence=_FEW_MATCHED,
        sides=MATCHED,
        least=FEWEST,
        words={
            "yes": "It is not how frequent they are: a polar word has a larger attention score than a word of about "
            "the same frequency that all classes use alike in {found.value:.1%} of all pairs.",
            "no": "Among words of about the same frequency, a polar one has a larger attention score than one that all "
            "classes use alike in only {found.value:.1%} of all pairs (50 % is chance).",
            "not shown": "Among words of about the same frequency, a polar one has a larger attention score than one "
            "that all classes use alike in {found.value:.1%} of all pairs; that is too close to the line of 70 % to "
            "call.",
        },
    ),
    Claim(
        name="C8",
        statement="Polarity tokens get larger attention weights on test text.",
        statistic="AUC of mean test attention weights, polar against neutral tokens",
        threshold=0.7,
        needs=("weights",),
        estimate=_separated("weights", "weight"),
        silence=_FEW,
        sides=BOTH,
        least=FEWEST,
        words={
            "yes": "On unseen text the weights show it too: a polar word gets more weight than a neutral one in "
            "{found.value:.1%} of all pairs.",
            "no": "On unseen text the weights do not show it: a polar word gets more weight than a "
            "neutral one in only {found.value:.1%} of all pairs (50 % is chance). Weights are small where texts are "
            "long, whatever attention does; C8b leaves the length out.",
            "not shown": "On unseen text a polar word gets more weight than a neutral one in {found.value:.1%} of "
            "all pairs; that is too close to the line of 70 % to call.",
        },
    ),
    Claim(
        name="C8b",
        statement="Against an even share of a test text's attention, polarity tokens get more than neutral tokens.",
        statistic="AUC of mean test attention over an even share (α · n), polar against neutral tokens",
        threshold=0.7,
        needs=("weights",),
        estimate=_separated("weights", "lift"),
        silence=_FEW,
        sides=BOTH,
        least=FEWEST,
        words={
            "yes": "On unseen text attention goes to these words, however long the text is: a polar word gets more of "
            "an even share than a neutral one in {found.value:.1%} of all pairs.",
            "no": "On unseen text attention does not go to these words: a polar word gets more of an even share than a "
            "neutral one in only {found.value:.1%} of all pairs (50 % is chance).",
            "not shown": "On unseen text a polar word gets more of an even share of attention than a neutral one in "
            "{found.value:.1%} of all pairs; that is too close to the line of 70 % to call.",
        },
    ),
    Claim(
        name="C8c",
        statement="At equal frequency, polarity tokens get more of an even share of a test text's attention than "
        "tokens that all classes use alike.",
        statistic="AUC of mean test attention over an even share (α · n), polar against evenly used tokens, within "
        "strata of frequency",
        threshold=0.7,
        needs=("weights",),
        estimate=_matched_lifts,
        silence=_FEW_MATCHED,
        sides=MATCHED,
        least=FEWEST,
        words={
            "yes": "On unseen text attention goes to these words, however long the text and however frequent the word "
            "is: a polar word gets more of an even share than a word of about the same frequency that all classes use "
            "alike in {found.value:.1%} of all pairs.",
            "no": "On unseen text attention does not go to these words: a polar word gets more of an even share than a "
            "word of about the same frequency that all classes use alike in only {found.value:.1%} of all pairs (50 % "
            "is chance).",
            "not shown": "On unseen text a polar word gets more of an even share of attention than a word of about the "
            "same frequency that all classes use alike in {found.value:.1%} of all pairs; that is too close to the "
            "line of 70 % to call.",
        },
    ),
)
