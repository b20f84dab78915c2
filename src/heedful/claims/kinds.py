"""Claims of the papers as objects: a sentence, a statistic on tables, a threshold, a verdict with its evidence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from heedful.analysis.statistics import Estimate

Tables = Mapping[str, pd.DataFrame]
Decision = Literal["holds", "does not hold", "undecided"]


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
    unit: str = "tokens"
    """What the estimate's count counts: tokens, runs, instances, pairs."""
    span: tuple[float, float] = (0.0, 1.0)
    """The range in which the statistic is shown."""

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
    silence: str = "There are too few clearly polar or neutral words to tell."
    """Said when the tables hold nothing to estimate from."""
    unit: str = "tokens"
    span: tuple[float, float] = (0.0, 1.0)

    def judge(self, tables: Tables) -> Verdict:
        """Compute the statistic from the tables and decide."""
        found = self.estimate(tables)
        decision = decide(found, self.threshold)
        words = self.words[decision] if found else self.silence
        return Verdict(
            claim=self.name,
            statement=self.statement,
            decision=decision,
            statistic=self.statistic,
            estimate=found,
            threshold=self.threshold,
            words=words.format(found=found) if found else words,
            unit=self.unit,
            span=self.span,
        )


def decide(found: Estimate | None, threshold: float) -> Decision:
    if found is None or found.low <= threshold <= found.high:
        return "undecided"
    return "holds" if found.low > threshold else "does not hold"
