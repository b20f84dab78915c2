"""A verdict made by hand."""

from heedful.analysis.statistics import Estimate
from heedful.claims import Decision, Verdict


def verdict(claim: str, decision: Decision) -> Verdict:
    return Verdict(
        claim=claim,
        statement="s",
        decision=decision,
        statistic="x",
        estimate=Estimate(value=0.5, low=0.4, high=0.6, count=9),
        threshold=0.7,
        words="w",
    )
