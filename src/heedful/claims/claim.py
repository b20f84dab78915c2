"""Claims of the papers as objects: a sentence, a statistic on a table, a threshold, a verdict with its evidence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from heedful.analysis.statistics import Estimate
from heedful.notebook import Grid, View, Viewed, counted

Tables = Mapping[str, pd.DataFrame]
Decision = Literal["yes", "no", "not shown"]
"""Whether the data show what a claim states: they do, they show that it is not so, or they do not tell."""

UNTOLD = "; that cannot be told from none."
UNTOLD_FROM_HALF = "; that cannot be told from half, or rests on too few."
UNTOLD_FROM_CHANCE = "; that cannot be told from chance, 50 %."


def close(line: float | str, few: str = "") -> str:
    """How a sentence ends whose number is too near a line to call, or rests on too `few` of something."""
    named = line if isinstance(line, str) else f"the line of {100 * line:g} %"
    return f"; that is too close to {named}{f', or rests on too few {few},' if few else ''} to call."


@dataclass(frozen=True, kw_only=True)
class Verdict(Viewed):
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
        sizes = zip(self.estimate.sides if self.estimate else (), self.sides, strict=False)
        return ", ".join(f"{count:,} {_singular(name) if count == 1 else name}" for count, name in sizes)

    @property
    def evidence(self) -> str:
        """How much the number rests on: how many observations, and what the interval is over if not these."""
        over = self.estimate.over if self.estimate else ""
        return f"{self.counts}, interval over {over}" if over else self.counts

    @property
    def interval(self) -> str:
        """The number and its interval; empty where there is none."""
        found = self.estimate if self.known else None
        return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]" if found else ""

    @property
    def view(self) -> View:
        facts = {"number": self.interval, "yes above": f"{self.threshold:.3g}", "rests on": self.evidence}
        return View(
            title=f"{self.claim}: {self.statement} {sentence(self.decision)}.",
            sentences=[self.words],
            parts=[Grid.pairs({name: words for name, words in facts.items() if words})],
            drawing="verdicts",
            data=_drawn([self]),
        )

    def to_frame(self) -> pd.DataFrame:
        return verdict_table([self])

    def row(self) -> dict[str, object]:
        """The verdict as one row of a table; without a value where the evidence allows none."""
        known = self.estimate if self.known else None
        return {
            "claim": self.claim,
            "statement": self.statement,
            "verdict": self.decision,
            "words": self.words,
            "statistic": self.statistic,
            **{end: getattr(known, end, None) for end in ("value", "low", "high")},
            "threshold": self.threshold,
            "count": self.estimate.count if self.estimate else 0,
            "evidence": self.evidence,
        }


class Verdicts(Viewed, list[Verdict]):
    """Verdicts, to be seen together."""

    @property
    def view(self) -> View:
        said = [one.decision for one in self]
        tally = ", ".join(f"{said.count(decision)} {decision}" for decision in dict.fromkeys(said))
        rows = [[one.claim, one.decision, one.interval, f"{one.threshold:.3g}", one.words] for one in self]
        header = ["claim", "verdict", "number", "yes above", "in words"]
        title = f"{counted(len(self), 'verdict')}: {tally}" if self else "No verdicts"
        return View(title=title, parts=[Grid(header=header, rows=rows)], drawing="verdicts", data=_drawn(self))

    def to_frame(self) -> pd.DataFrame:
        return verdict_table(self)


def verdict_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """One row per verdict."""
    return pd.DataFrame([verdict.row() for verdict in verdicts])


def _drawn(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """The table with the ends of the scale that each number is shown on."""
    ends = pd.DataFrame([one.span for one in verdicts], columns=["least", "most"])
    return pd.concat([verdict_table(verdicts), ends], axis=1)


def _singular(name: str) -> str:
    """The name of one of what is counted: "texts where …" is "text where …"."""
    head, space, rest = name.partition(" where ")
    return head.removesuffix("s") + space + rest


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence that data can support or refute.

    It is shown when the whole interval lies above the threshold, and refuted when all of it lies below. Fewer than
    `least` observations on any side show nothing.
    """

    name: str = ""
    statement: str
    statistic: str
    threshold: float
    table: str
    """The table that it is judged on."""
    estimate: Callable[[pd.DataFrame], Estimate | None]
    found: str
    """What was found, with a place for the number, and one for the "only" that is said of a number below the line."""
    yes: str
    no: str
    unsure: str = "{found}"
    """Said of each decision, with a place for what was found, or for the number."""
    doubt: str | None = None
    """How what is said of an unsure one ends, where it is not that the number is too close to the line."""
    silence: str
    """Said when the table holds too little to estimate from: what is missing, and what would help."""
    sides: tuple[str, ...] = ("tokens",)
    least: int = 1
    span: tuple[float, float] = (0.0, 1.0)

    @property
    def words(self) -> Mapping[Decision, str]:
        unsure = self.unsure + (close(self.threshold) if self.doubt is None else self.doubt)
        said: Mapping[Decision, str] = {"yes": self.yes, "no": self.no, "not shown": unsure}
        return {decision: sentence(words.replace("{found}", self.found)) for decision, words in said.items()}

    def judge(self, tables: Tables) -> Verdict:
        """Compute the statistic from its table and decide."""
        found = self.estimate(tables[self.table])
        enough = found is not None and found.known and min(found.sides) >= self.least
        alike = {name: getattr(self, name) for name in ("statement", "statistic", "threshold", "sides", "span")}
        decision = decide(found, self.threshold) if enough else "not shown"
        verdict = Verdict(claim=self.name, decision=decision, estimate=found, words=self.silence, **alike)
        if found is None:
            return verdict
        there = f"{self.silence} There are {verdict.counts.replace(', ', ' and ')}."
        said = self.words[decision].format(found.value, only="only " if decision == "no" else "") + found.remark
        return replace(verdict, words=said if enough else there)


def sentence(words: str) -> str:
    """The words with a capital."""
    return words[0].upper() + words[1:]


def named(**claims: Claim) -> tuple[Claim, ...]:
    """The claims, each with the name that it is declared by."""
    return tuple(replace(claim, name=name) for name, claim in claims.items())


def decide(found: Estimate | None, threshold: float) -> Decision:
    if found is None or not found.known or found.low <= threshold <= found.high:
        return "not shown"
    return "yes" if found.low > threshold else "no"
