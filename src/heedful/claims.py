"""Claims of the papers as objects: a sentence, a statistic on tables, a threshold, a verdict with its evidence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Estimate, Numbers, area, bootstrap, share
from heedful.errors import UnknownName

Tables = Mapping[str, pd.DataFrame]
Decision = Literal["holds", "does not hold", "undecided"]

NOT_POLAR = ("neutral", "none")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a claim came to on some data: the decision, the number behind it, and a sentence in plain words."""

    claim: str
    statement: str
    decision: Decision
    statistic: str
    estimate: Estimate | None
    threshold: float
    words: str

    def row(self) -> dict[str, object]:
        """The verdict as one row of a table."""
        found = self.estimate
        return {
            "claim": self.claim,
            "verdict": self.decision,
            "statistic": self.statistic,
            "value": found.value if found else None,
            "low": found.low if found else None,
            "high": found.high if found else None,
            "threshold": self.threshold,
            "count": found.count if found else 0,
            "statement": self.statement,
            "words": self.words,
        }


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence that data can support or refute. It holds when the whole interval lies above the threshold."""

    name: str
    statement: str
    statistic: str
    threshold: float
    needs: tuple[str, ...]
    estimate: Callable[[Tables], Estimate | None]
    words: Mapping[Decision, str]

    def judge(self, tables: Tables) -> Verdict:
        """Compute the statistic from the tables and decide."""
        found = self.estimate(tables)
        decision = _decide(found, self.threshold)
        words = self.words[decision] if found else "There are too few clearly polar or neutral words to tell."
        return Verdict(
            claim=self.name,
            statement=self.statement,
            decision=decision,
            statistic=self.statistic,
            estimate=found,
            threshold=self.threshold,
            words=words.format(found=found) if found else words,
        )


def _decide(found: Estimate | None, threshold: float) -> Decision:
    if found is None or found.low <= threshold <= found.high:
        return "undecided"
    return "holds" if found.low > threshold else "does not hold"


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
    own = rows["group"].map({str(column).removeprefix("polarity_"): k for k, column in enumerate(columns)})
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


CLAIMS: Mapping[str, Claim] = {
    claim.name: claim
    for claim in (
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
}


def judge(names: tuple[str, ...], tables: Tables) -> list[Verdict]:
    """The verdicts of the named claims on these tables."""
    for name in names:
        if name not in CLAIMS:
            raise UnknownName("claim", name, CLAIMS)
    return [CLAIMS[name].judge(tables) for name in names]


def verdict_table(verdicts: list[Verdict]) -> pd.DataFrame:
    return pd.DataFrame([verdict.row() for verdict in verdicts])
