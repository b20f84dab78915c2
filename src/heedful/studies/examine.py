"""The examination: every claim that one trained model can be judged by, and the answer they give together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from heedful.analysis.separation import NOT_POLAR, polar
from heedful.claims import CLAIMS, Verdict, judge
from heedful.claims.answer import Answer, answer
from heedful.claims.scores import LEARNED, outcomes
from heedful.report.terminal import printable
from heedful.studies.erase import ErasedAttention, erase_attention
from heedful.traces import Trace

ON_WORDS = ("C1", "C2", "C2b", "C8", "C8b", "C8c")
"""Judged on the words of the model; those of erasure are judged on its texts."""


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What the words and the texts of one model show, and the answer."""

    worth: Sequence[Verdict]
    """Whether the model has learned anything; nothing where that is not asked."""
    words: Sequence[Verdict]
    erased: ErasedAttention
    answer: Answer

    @property
    def verdicts(self) -> list[Verdict]:
        return [*self.words, *self.erased.verdicts, *self.worth]


def examine(
    tables: Mapping[str, pd.DataFrame], trace: Trace, *, seed: int = 0, unit: str = "words", scope: str = ""
) -> Examination:
    """Judge `tokens` and, where there are any, `weights`, erase the attention of the trace, and answer.

    With labels in the trace it is asked first whether the model has learned anything. `scope` says what the answer is
    of, `unit` what has the weights.
    """
    worth = judge((LEARNED,), {"outcomes": outcomes(trace)}) if trace.labels is not None else []
    words = judge(tuple(name for name in ON_WORDS if CLAIMS[name].table in tables), tables)
    erased = erase_attention(trace, seed=seed, unit=unit)
    answered = answer(
        [*worth, *words, *erased.verdicts],
        unit=unit,
        classes={printable(row["decision"]): row["found"] for row in erased.decisions.to_dict("records")},
        scope=scope,
        note=chance_words(tables["tokens"]),
    )
    return Examination(worth=worth, words=words, erased=erased, answer=answered)


def chance_words(tokens: pd.DataFrame) -> str:
    """How many words of a class are left out because chance may have made them so; nothing where none is."""
    every, kept = len(tokens) - int(tokens["group"].isin(NOT_POLAR).sum()), len(polar(tokens))
    if every == kept:
        return ""
    return f"Of {every:,} words that occur mostly in one class, {kept:,} do so beyond chance; only these count."
