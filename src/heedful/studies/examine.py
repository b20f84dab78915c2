"""The examination: every claim that one trained model can be judged by, and the answer they give together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from heedful.claims import CLAIMS, Verdict, judge
from heedful.claims.answer import Answer, answer
from heedful.claims.model import LEARNED, outcomes
from heedful.studies.audit_erasure import ErasedAttention, erase_attention
from heedful.traces import Trace

ON_WORDS = ("C1", "C2", "C8", "C8b")
"""Judged on the words of the model; those of erasure are judged on its texts."""


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What the words and the texts of one model show, and the answer."""

    worth: Sequence[Verdict]
    """Whether the model has learned anything; nothing where that is not asked."""
    words: Sequence[Verdict]
    erased: ErasedAttention
    answer: Answer


def examine(
    tables: Mapping[str, pd.DataFrame],
    trace: Trace,
    *,
    commonest: int | None = None,
    seed: int = 0,
    unit: str = "words",
) -> Examination:
    """Judge `tokens` and, where there are any, `weights`, erase the attention of the trace, and answer.

    With the number of the `commonest` class and labels in the trace it is asked first whether the model does better
    than always guessing that class.
    """
    worth = []
    if commonest is not None and trace.labels is not None:
        worth = judge((LEARNED,), {"outcomes": outcomes(trace, trace.labels, commonest)})
    words = judge(tuple(name for name in ON_WORDS if set(CLAIMS[name].needs) <= set(tables)), tables)
    erased = erase_attention(trace, seed=seed, unit=unit)
    answered = answer([*worth, *words, *erased.verdicts], unit=unit)
    return Examination(worth=worth, words=words, erased=erased, answer=answered)
