"""The tables of the study, models beside each other: patterns of words, rare words, and when decisions flip."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Estimate
from heedful.claims.combine import SHARES, own_or_over_seeds
from heedful.papers.jain2019 import NAMES
from heedful.studies.contextual.measured import RANKED, rare_summary
from heedful.studies.measures import CELL, MINIMUM, RUN, InWords, called, in_words

WORDS: Mapping[str, str] = {
    "test_accuracy": "accuracy",
    "signs": "right signs",
    "separation": "attention scores",
    "separation_alone": "word alone",
    "unseen": "weights, new texts",
}
RARE: Mapping[str, str] = {
    "rare_heard": "side in new texts",
    "rare_told": "side of similar words",
    "rare_attention": "attention",
}
FLIPS: Mapping[str, str] = {f"fraction_{name}": name for name in (*RANKED, MINIMUM)}


def over_seeds(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Columns of every data set and model, each the mean over seeds, with its interval in _low and _high."""
    found = []
    for key, some in rows.groupby(CELL, sort=False):
        said: dict[str, object] = dict(zip(CELL, key, strict=True))
        for column in columns:
            said |= _mean(some, column)
        found.append({**said, "seeds": some["seed"].nunique()})
    return pd.DataFrame(found, columns=None if found else [*CELL, "seeds"])


def _mean(rows: pd.DataFrame, column: str) -> dict[str, float]:
    """Student's interval over seeds; of one seed its own, or none."""
    known = rows.dropna(subset=[column])
    ends = [known.get(name, known[column]) for name in (column, f"{column}_low", f"{column}_high")]
    seeds = [Estimate(value=v, low=a, high=b, count=1) for v, a, b in zip(*map(_floats, ends), strict=True)]
    mean = own_or_over_seeds(seeds, SHARES) if seeds else None
    parts = {"": "value", "_low": "low", "_high": "high"}
    return {column + end: np.nan if mean is None else getattr(mean, part) for end, part in parts.items()}


def _floats(values: pd.Series) -> list[float]:
    return [float(value) for value in values]


def words_table(models: pd.DataFrame) -> pd.DataFrame:
    """What words of a class get, by model."""
    return over_seeds(models, list(WORDS))


def flips_table(models: pd.DataFrame) -> pd.DataFrame:
    """Median fractions of the units that flip decisions, by model."""
    return over_seeds(models, list(FLIPS))


def rare_runs(words: pd.DataFrame) -> pd.DataFrame:
    """One row per run: how well rare words tell their sides; none of runs without such words."""
    rows = [
        {**dict(zip(RUN, key, strict=True)), "words": int(some["heard"].notna().sum()), **rare_summary(some)}
        for key, some in words.groupby(RUN, sort=False)
    ]
    return pd.DataFrame(rows, columns=None if rows else [*RUN, "words", *RARE])


def rare_table(words: pd.DataFrame) -> pd.DataFrame:
    """How well the scores of rare words tell their sides, by model."""
    runs = rare_runs(words)
    counts = runs.groupby(CELL, sort=False)["words"].first().reset_index()
    return over_seeds(runs, list(RARE)).merge(counts, on=CELL)


def shown(columns: Mapping[str, str], table: pd.DataFrame, *, per_cent: bool = False) -> pd.DataFrame:
    """Those columns with their intervals, in words."""
    unit, digits = (100.0, 1) if per_cent else (1.0, 3)

    def cell(row: pd.Series, column: str) -> str:
        ends = [unit * row[column + end] for end in ("", "_low", "_high")]
        return "–" if np.isnan(ends[0]) else "{:.{d}f} [{:.{d}f}, {:.{d}f}]".format(*ends, d=digits)

    words = {name: [cell(row, name) for _, row in table.iterrows()] for name in columns}
    heads: InWords = {"data": ("dataset", partial(called, names=NAMES)), "model": ("model", str)}
    return in_words(table, heads).assign(**{columns[name]: cells for name, cells in words.items()})


words_in_words = partial(shown, WORDS)
rare_in_words = partial(shown, RARE)
flips_in_words = partial(shown, FLIPS, per_cent=True)
