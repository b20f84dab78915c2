"""How tests read tables and traces."""

from typing import Any

import numpy as np
import pandas as pd

from heedful.traces import Trace

Numbers = np.ndarray[Any, np.dtype[Any]]


def first(table: pd.DataFrame, *columns: str) -> list[Any]:
    """The values of these columns in the first row."""
    return [table[column].tolist()[0] for column in columns]


def counts(table: pd.DataFrame) -> list[int | None]:
    """How many units are erased, None where nothing flips."""
    return [None if pd.isna(n) else int(n) for n in table["erased"]]


def parts(trace: Trace, t: int) -> tuple[Numbers, Numbers, Numbers]:
    """Scores, polarity scores and bias of one instance."""
    where = trace.instance(t)
    return trace.attention_scores[where].numpy(), trace.polarity_scores[where].numpy(), trace.bias.numpy()
