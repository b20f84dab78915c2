"""Do the words of a class get larger values than others? Areas under the curve of groups of tokens.

Words that clearly belong to a class are more frequent, or rarer, than those that belong to none, so that attention
which follows nothing but frequency would tell them apart: matched areas compare words within strata of frequency.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from heedful.analysis.statistics import (
    LEVEL,
    Estimate,
    Numbers,
    area_estimate,
    area_of_places,
    bootstrap,
    places_of,
    score_interval,
    share,
    too_few,
)
from heedful.analysis.tokens import NEGATIVE, NEUTRAL, NONE, POSITIVE, group_of_class

OCTAVE = np.log(2.0)
"""Words of one stratum differ in frequency by a factor of two, or by more where one side has none nearer."""

ALIKE = 1e-9
"""Values that differ by less of the largest of them are equal: it is rounding."""

NOT_POLAR = (NEUTRAL, NONE)


def polar(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of tokens that belong to a class, beyond chance where the table tells."""
    rows = table[~table["group"].isin(NOT_POLAR)]
    return rows[rows["beyond_chance"]] if "beyond_chance" in rows else rows


def neutral(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of tokens that occur alike in all classes."""
    return table[table["group"] == NEUTRAL]


def right_signs(table: pd.DataFrame) -> Numbers:
    """For each polar token 1 if its polarity points to its own class, else 0.

    Two classes: the sign of the polarity score. More: its own class has the largest of the scores.
    """
    rows = polar(table)
    if "polarity" in rows:
        sign = np.where(rows["group"] == POSITIVE, 1.0, -1.0)
        return np.asarray(sign * rows["polarity"].to_numpy() > 0, dtype=np.float64)
    scores, own = _scores_by_class(rows)
    best = scores.argmax(1) if len(rows) else np.empty(0, dtype=int)
    return np.asarray(best == own.to_numpy(), dtype=np.float64)


def _scores_by_class(rows: pd.DataFrame) -> tuple[Numbers, "pd.Series[int]"]:
    """The polarity scores of tokens for each of several classes, and the number of each token's own class."""
    columns = [str(column) for column in rows if str(column).startswith("polarity_")]
    places = {group_of_class(name.removeprefix("polarity_")): place for place, name in enumerate(columns)}
    return rows[columns].to_numpy(np.float64), rows["group"].map(places)


def separation(table: pd.DataFrame, column: str = "attention") -> Estimate:
    """AUC of a column for polar against neutral tokens."""
    rows = table.dropna(subset=[column])
    return area_estimate(*(side[column].to_numpy(dtype=np.float64) for side in (polar(rows), neutral(rows))))


def matched_separation(table: pd.DataFrame, column: str = "attention") -> Estimate:
    """AUC of a column for polar tokens against tokens that all classes use alike, at equal frequency."""
    rows = table.dropna(subset=[column])
    sides = [side[[column, "count"]].to_numpy(np.float64).T for side in (polar(rows), rows[rows["even"]])]
    (higher, often), (lower, as_often) = sides
    return matched_area(higher, lower, (often, as_often))


def matched_area(
    higher: Numbers, lower: Numbers, frequencies: tuple[Numbers, Numbers], *, level: float = LEVEL
) -> Estimate:
    """P(a value of `higher` exceeds one of `lower` that is as frequent), equals counting half, with its interval.

    The mean of the areas of the strata, weighed by n m / (n + m) (van Elteren 1960). Within strata values are freed
    from the line through those of `lower` against log frequency, of one slope for all: a stratum still has a width.
    The interval is the wider of bootstrap resamples within strata and Newcombe's for as many values as the weights
    are worth. Words without a counterpart do not count.
    """
    strata = _strata(higher, lower, np.log(frequencies[0]), np.log(frequencies[1]))
    sides = sum(len(one) for one, _ in strata), sum(len(other) for _, other in strata)
    if not strata:
        return too_few(*sides)
    weights = np.array([len(one) * len(other) / (len(one) + len(other)) for one, other in strata])
    ones, others, sizes = zip(*(places_of(*pair) for pair in strata), strict=True)

    def mean_area(*parts: Numbers) -> float:
        areas = [area_of_places(*both) for both in zip(parts[::2], parts[1::2], sizes, strict=True)]
        return float(weights @ areas / weights.sum())

    found = bootstrap(mean_area, *(part for pair in zip(ones, others, strict=True) for part in pair), level=level)
    worth = float(2 * weights.sum())
    low, high = score_interval(found.value, worth, worth, level)
    return replace(found, low=min(found.low, low), high=max(found.high, high), count=sum(sides), groups=sides)


def _strata(higher: Numbers, lower: Numbers, at_higher: Numbers, at_lower: Numbers) -> list[tuple[Numbers, Numbers]]:
    """The values of both sides in strata that both have, freed from what frequency explains within them."""
    if not len(higher):
        return []
    near = (at_lower >= at_higher.min() - OCTAVE) & (at_lower <= at_higher.max() + OCTAVE)
    lower, at_lower = lower[near], at_lower[near]
    own, other = _numbered(at_higher, at_lower)
    shared = np.intersect1d(own, other)
    slope = _slope(lower, at_lower, other, shared)
    grain = ALIKE * max(float(np.abs(higher).max()), float(np.abs(lower).max(initial=0.0)), np.finfo(np.float64).tiny)
    ones, others = (np.round((side - slope * at) / grain) for side, at in ((higher, at_higher), (lower, at_lower)))
    return [(ones[own == number], others[other == number]) for number in shared]


def _numbered(at_higher: Numbers, at_lower: Numbers) -> tuple[Numbers, Numbers]:
    """The stratum of each word: octaves of frequency, joined upwards until both sides have a word in it."""
    octaves = [np.floor(part / OCTAVE) for part in (at_higher, at_lower)]
    strata: dict[float, int] = {}
    number, seen = 0, set[int]()
    for octave in np.unique(np.concatenate(octaves)):
        if len(seen) == 2:
            number, seen = number + 1, set()
        strata[octave] = number
        seen |= {side for side, part in enumerate(octaves) if (part == octave).any()}
    last = number - 1 if len(seen) < 2 and number else number
    own, other = (np.array([min(strata[octave], last) for octave in part], dtype=np.float64) for part in octaves)
    return own, other


def _slope(values: Numbers, at: Numbers, strata: Numbers, shared: Numbers) -> float:
    """Of the line through the values of each shared stratum against log frequency, the same for all of them."""
    above = below = 0.0
    for number in shared:
        some = strata == number
        apart = at[some] - at[some].mean()
        above, below = above + float(apart @ values[some]), below + float(apart @ apart)
    return above / below if below > 0 else 0.0


def group_measures(tokens: pd.DataFrame) -> Mapping[str, Estimate | None]:
    """How the groups of tokens differ in one model; None where the table does not have the groups.

    `separation` is the AUC of attention scores, polar against neutral tokens; `signs` the share of polar tokens with
    the right sign of polarity; `parting` the AUC of attention scores of positive against negative tokens; `magnitude`
    the mean |polarity| of polar tokens; `asymmetry` how much stronger positive than negative tokens are, −1 … 1.
    """
    return {
        "separation": separation(tokens),
        "signs": sign_share(tokens),
        "parting": area_estimate(*_sides(tokens, "attention")),
        "magnitude": magnitude(tokens),
        "asymmetry": _asymmetry(tokens),
    }


def sign_share(tokens: pd.DataFrame) -> Estimate | None:
    """The share of polar tokens, of those that have scores, whose polarity points to their own class."""
    signs = right_signs(tokens.dropna(subset=["attention"]))
    return share(int(signs.sum()), len(signs)) if len(signs) else None


def clarity(tokens: pd.DataFrame, local: pd.DataFrame) -> Estimate | None:
    """Separation by global scores minus separation by local ones, on the same resamples of the same tokens."""
    both = tokens.assign(local=local["attention"]).dropna(subset=["attention", "local"])
    sides = [np.flatnonzero(both.index.isin(rows.index)).astype(np.float64) for rows in (polar(both), neutral(both))]
    if not all(map(len, sides)):
        return None
    ranks = both[["attention", "local"]].rank(method="dense").to_numpy(np.float64) - 1

    def difference(one: Numbers, other: Numbers) -> float:
        above, below = ranks[one.astype(np.int64)], ranks[other.astype(np.int64)]
        whole, part = (area_of_places(above[:, column], below[:, column], len(both)) for column in (0, 1))
        return whole - part

    return bootstrap(difference, *sides)


def _asymmetry(tokens: pd.DataFrame) -> Estimate | None:
    """(mean s⁺ + mean s⁻) / (mean |s⁺| + mean |s⁻|) for two classes."""
    sides = _sides(tokens, "polarity") if "polarity" in tokens else ()

    def relative_sum(positive: Numbers, negative: Numbers) -> float:
        whole = np.abs(positive).mean() + np.abs(negative).mean()
        return float((positive.mean() + negative.mean()) / whole) if whole else 0.0

    return bootstrap(relative_sum, *sides) if sides and all(map(len, sides)) else None


def magnitude(tokens: pd.DataFrame) -> Estimate | None:
    """Mean |s| of polar tokens; with more classes the own score less the mean of the others."""
    rows = polar(tokens)
    if rows.empty:
        return None
    if "polarity" in rows:
        sizes = np.abs(_numbers(rows["polarity"]))
    else:
        scores, own = _scores_by_class(rows)
        chosen = scores[np.arange(len(rows)), own.to_numpy(np.int64)]
        sizes = chosen - (scores.sum(1) - chosen) / (scores.shape[1] - 1)
    return bootstrap(lambda values: float(values.mean()), sizes)


def _sides(tokens: pd.DataFrame, column: str) -> tuple[Numbers, Numbers]:
    """A column of the positive and of the negative tokens; both empty where classes have other names."""
    rows = polar(tokens)
    positive, negative = (_numbers(rows.loc[rows["group"] == name, column]) for name in (POSITIVE, NEGATIVE))
    return positive, negative


def _numbers(column: "pd.Series[float]") -> Numbers:
    return np.asarray(column.dropna().to_numpy(), dtype=np.float64)
