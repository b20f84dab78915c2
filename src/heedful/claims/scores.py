"""Claims of Sun & Lu 2020 about token scores and attention weights of a trained model."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Estimate, Numbers, area, bootstrap, share
from heedful.analysis.tokens import group_of_class
from heedful.claims.kinds import Claim, Tables

NOT_POLAR = ("neutral", "none")


def polar(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of tokens that belong to a class."""
    return table[~table["group"].isin(NOT_POLAR)]


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


def _sign_share(tables: Tables) -> Estimate | None:
    signs = right_signs(tables["tokens"])
    return share(int(signs.sum()), len(signs)) if len(signs) else None


def _separation(table: str, column: str) -> Callable[[Tables], Estimate | None]:
    """AUC of a column for polar against neutral tokens."""

    def estimate(tables: Tables) -> Estimate | None:
        rows = tables[table].dropna(subset=[column])
        high = polar(rows)[column].to_numpy(dtype=np.float64)
        low = neutral(rows)[column].to_numpy(dtype=np.float64)
        return bootstrap(area, high, low) if len(high) and len(low) else None

    return estimate


CLAIMS = (
    Claim(
        name="C1",
        statement="The polarity score of a token has the sign of its group.",
        statistic="share of polar tokens with the right sign",
        threshold=0.9,
        needs=("tokens",),
        estimate=_sign_share,
        words={
            "holds": "What the model uses follows the data: {found.value:.1%} of the clearly polar words push "
            "towards their own class.",
            "does not hold": "What the model uses does not follow the data: only {found.value:.1%} of the clearly "
            "polar words push towards their own class.",
            "undecided": "{found.value:.1%} of the clearly polar words push towards their own class; too close to "
            "the line of 90 %, or too few words, to call.",
        },
    ),
    Claim(
        name="C2",
        statement="Polarity tokens have larger attention scores than neutral tokens.",
        statistic="AUC of attention scores, polar against neutral tokens",
        threshold=0.7,
        needs=("tokens",),
        estimate=_separation("tokens", "attention"),
        words={
            "holds": "Attention singles out the words that matter: a polar word has a larger attention score than "
            "a neutral one in {found.value:.1%} of all pairs.",
            "does not hold": "Attention does not single out the words that matter: a polar word has a larger "
            "attention score than a neutral one in only {found.value:.1%} of all pairs (50 % is chance).",
            "undecided": "A polar word has a larger attention score than a neutral one in {found.value:.1%} of all "
            "pairs; that is too close to the line of 70 % to call.",
        },
    ),
    Claim(
        name="C8",
        statement="Polarity tokens get larger attention weights on test text.",
        statistic="AUC of mean test attention weights, polar against neutral tokens",
        threshold=0.7,
        needs=("weights",),
        estimate=_separation("weights", "weight"),
        words={
            "holds": "On unseen text the weights show it too: a polar word gets more weight than a neutral one in "
            "{found.value:.1%} of all pairs.",
            "does not hold": "On unseen text the weights do not show it: a polar word gets more weight than a "
            "neutral one in only {found.value:.1%} of all pairs (50 % is chance).",
            "undecided": "On unseen text a polar word gets more weight than a neutral one in {found.value:.1%} of "
            "all pairs; that is too close to the line of 70 % to call.",
        },
    ),
)
