"""What is looked at to judge a world: by the audit, its test texts; for the truth, very many fresh texts.

The truth of a claim is its own number in the population: on so many fresh texts that chance is next to nothing, and
with the planted owners of words in the place of the groups that counts suggest.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heedful.analysis.flips import measure
from heedful.analysis.statistics import Estimate
from heedful.analysis.tokens import NEUTRAL, NONE, GroupRule
from heedful.claims import CLAIMS
from heedful.claims.answer import CHANCE, LEADS, SCORES, SOUND, TEXTS
from heedful.claims.scores import LEARNED, outcomes
from heedful.studies.calibration.language import Groups, Marks
from heedful.traces import Trace

BEHIND = (LEARNED, SOUND, SCORES, TEXTS, CHANCE, LEADS)
"""The claims that the answer rests on."""

ERASED = ("attention", "random")
"""The rankings that these claims read."""

OFTEN = GroupRule().count
"""Words that are rarer can be told to belong to no group."""

FRESH = 5000
"""Texts of a population: the largest deviation of a mean of shares is then .007."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What an audit looks at: the tables `tokens` and `weights`, and a trace with labels."""

    tables: Mapping[str, pd.DataFrame]
    trace: Trace


@dataclass(frozen=True, kw_only=True)
class Population:
    """What is true of a world: the number of every claim behind the answer that has one, and what decisions rest on."""

    numbers: Mapping[str, Estimate]
    resting: float
    """The share of decisions that flip before everything is erased: they rest on parts of their text."""

    def margin(self, claim: str) -> float:
        """How far the number lies above the claim's line; minus infinity where there is none."""
        return self.numbers[claim].value - CLAIMS[claim].threshold if claim in self.numbers else -np.inf

    def enough(self, claim: str) -> bool:
        """Whether the world holds as many observations as the claim asks for."""
        return claim in self.numbers and min(self.numbers[claim].sides) >= CLAIMS[claim].least


def population(whole: Evidence) -> Population:
    """The numbers of the claims on fresh texts and planted groups."""
    tables = {**whole.tables, **measure(whole.trace, rankings=ERASED), "outcomes": outcomes(whole.trace)}
    found = {name: CLAIMS[name].estimate(tables[CLAIMS[name].table]) for name in BEHIND}
    numbers = {name: each for name, each in found.items() if each is not None and each.known}
    count = numbers[LEADS].count if LEADS in numbers else 0
    return Population(numbers=numbers, resting=count / len(whole.trace))


def with_planted_groups(tokens: pd.DataFrame, groups: Groups, seen: Marks) -> pd.DataFrame:
    """The table of tokens with the groups that were planted; words that no training text has belong to none."""
    groups = np.where(seen, groups, NONE)
    return tokens.assign(group=groups, beyond_chance=True, even=(groups == NEUTRAL) & (tokens["count"] > OFTEN))
