"""The examination: every claim that one trained model can be judged by, and the answer they give together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from heedful.claims import CLAIMS, Verdict, judge
from heedful.claims.answer import Answer, answer
from heedful.studies.audit_erasure import ErasedAttention, erase_attention
from heedful.traces import Trace

ON_WORDS = ("C1", "C2", "C8", "C8b")
"""Judged on the words of the model; those of erasure are judged on its texts."""


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What the words and the texts of one model show, and the answer."""

    words: Sequence[Verdict]
    erased: ErasedAttention
    answer: Answer


def examine(tables: Mapping[str, pd.DataFrame], trace: Trace, *, seed: int = 0, unit: str = "words") -> Examination:
    """Judge `tokens` and, where there are any, `weights`, erase the attention of the trace, and answer."""
    words = judge(tuple(name for name in ON_WORDS if set(CLAIMS[name].needs) <= set(tables)), tables)
    erased = erase_attention(trace, seed=seed, unit=unit)
    return Examination(words=words, erased=erased, answer=answer([*words, *erased.verdicts], unit=unit))
