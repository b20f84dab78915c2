"""Claims of the papers as objects: a sentence, a statistic on tables, a threshold, a verdict with its evidence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from heedful.analysis.statistics import Estimate

Tables = Mapping[str, pd.DataFrame]
Decision = Literal["yes", "no", "not shown"]
"""Whether the data show what a claim states: they do, they show that it is not so, or they do not tell."""

FEWEST = 10
"""Observations that each side of a comparison must have: fewer say too little of the rest, however clear they are."""


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
    sides: tuple[str, ...] = ("tokens",)
    """What the estimate's sides count: tokens, runs, texts; both groups where it compares two."""
    span: tuple[float, float] = (0.0, 1.0)
    """The range in which the statistic is shown."""

    @property
    def known(self) -> bool:
        """Whether there is a number to show, however little it shows."""
        return self.estimate is not None and self.estimate.known

    @property
    def counts(self) -> str:
        """How many observations there are: "116 polar tokens, 1 neutral token"."""
        named = zip(self.estimate.sides if self.estimate else (), self.sides, strict=False)
        return ", ".join(f"{count:,} {_singular(name) if count == 1 else name}" for count, name in named)

    @property
    def evidence(self) -> str:
        """How much the number rests on: how many observations, and what the interval is over if not these."""
        over = self.estimate.over if self.estimate else ""
        return f"{self.counts}, interval over {over}" if over else self.counts

    def row(self) -> dict[str, object]:
        """The verdict as one row of a table; without a value where the evidence allows none."""
        found = self.estimate
        known = found if self.known else None
        return {
            "claim": self.claim,
            "statement": self.statement,
            "verdict": self.decision,
            "words": self.words,
            "statistic": self.statistic,
            "value": known.value if known else None,
            "low": known.low if known else None,
            "high": known.high if known else None,
            "threshold": self.threshold,
            "count": found.count if found else 0,
            "evidence": self.evidence,
        }


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence that data can support or refute.

    It is shown when the whole interval lies above the threshold, and refuted when all of it lies below. Fewer than
    `least` observations on any side show nothing.
    """

    name: str
    statement: str
    statistic: str
    threshold: float
    needs: tuple[str, ...]
    estimate: Callable[[Tables], Estimate | None]
    words: Mapping[Decision, str]
    silence: str
    """Said when the tables hold too little to estimate from: what is missing, and what would help."""
    sides: tuple[str, ...] = ("tokens",)
    least: int = 1
    span: tuple[float, float] = (0.0, 1.0)

    def judge(self, tables: Tables) -> Verdict:
        """Compute the statistic from the tables and decide."""
        found = self.estimate(tables)
        enough = found is not None and found.known and min(found.sides) >= self.least
        decision = decide(found, self.threshold) if enough else "not shown"
        verdict = Verdict(
            claim=self.name,
            statement=self.statement,
            decision=decision,
            statistic=self.statistic,
            estimate=found,
            threshold=self.threshold,
            words=self.words[decision].format(found=found) if enough else self.silence,
            sides=self.sides,
            span=self.span,
        )
        return verdict if enough or found is None else replace(verdict, words=f"{self.silence} {_have(verdict)}")


def _singular(name: str) -> str:
    """The name of one of what is counted: "texts where …" is "text where …"."""
    head, space, rest = name.partition(" where ")
    return head.removesuffix("s") + space + rest


def _have(verdict: Verdict) -> str:
    return f"There are {verdict.counts.replace(', ', ' and ')}."


def decide(found: Estimate | None, threshold: float) -> Decision:
    if found is None or not found.known or found.low <= threshold <= found.high:
        return "not shown"
    return "yes" if found.low > threshold else "no"
