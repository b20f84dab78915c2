"""Claims of the study of word vectors, ours: does what Sun & Lu 2020 and Serrano & Smith 2019 saw hold with
vectors that were trained on other texts, and with those of a frozen transformer? They left both to the future."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Estimate, area, bootstrap
from heedful.claims.claim import UNTOLD, Claim, named
from heedful.claims.combine import DIFFERENCES, SHARES, AtLevel, mean_column, mean_of_runs, over_seeds, smallest

RANDOM, GLOVE, LSTM_GLOVE, TRANSFORMER = "none+random", "none+glove", "lstm+glove", "transformer"
LINE, RIGHT = 0.7, 0.8
"""Those of C2b and C8c, and of C1."""


def of_model(rows: pd.DataFrame, model: str) -> pd.DataFrame:
    return rows[rows["model"] == model]


def column_of(model: str, column: str) -> Callable[[pd.DataFrame], Estimate | None]:
    """A column of a model, the mean over seeds."""
    return lambda rows: mean_column(of_model(rows, model), column, least=0.0, most=1.0)


def difference(
    first: str, second: str, number: Callable[[pd.DataFrame], "pd.Series[float]"]
) -> Callable[..., Estimate | None]:
    """A number of one model minus that of another, by seed and data set."""

    def of_run(run: pd.DataFrame) -> float | None:
        both = [number(of_model(run, model).set_index("dataset")) for model in (first, second)]
        known = (both[0] - both[1]).dropna()
        return float(known.mean()) if len(known) else None

    return mean_of_runs(of_run, DIFFERENCES)


def fraction(ranking: str) -> Callable[[pd.DataFrame], "pd.Series[float]"]:
    return lambda rows: rows[f"fraction_{ranking}"]


def excess(rows: pd.DataFrame) -> "pd.Series[float]":
    """How much more is erased along attention than must be."""
    return rows["fraction_attention"] - rows["fraction_minimum"]


def smallest_of(*parts: Callable[..., Estimate | None]) -> Callable[[pd.DataFrame], Estimate | None]:
    """The smallest of several differences."""

    def estimate(rows: pd.DataFrame) -> Estimate | None:
        bound: list[AtLevel] = [partial(part, rows) for part in parts]
        return smallest(bound)

    return estimate


def rare_gain(first: str, second: str, words: pd.DataFrame) -> Estimate | None:
    """AUC of the polarity of rare words by their side in new texts, one model minus another on the same words.

    The interval resamples words, of each side on its own, and has that over seeds beside it.
    """
    keys = ["dataset", "seed", "token"]
    known = words.dropna(subset=["heard"])
    pairs = of_model(known, first).merge(of_model(known, second)[[*keys, "polarity"]], on=keys, suffixes=("", "_other"))
    found = [_paired_areas(run) for _, run in pairs.groupby(["dataset", "seed"])]
    parts = [one for one in found if one is not None]
    return _words_once(over_seeds(parts), pairs["seed"].nunique()) if parts else None


def _words_once(found: Estimate, seeds: int) -> Estimate:
    """Every seed has the same words, and each counts once."""
    one, other = found.sides
    return replace(found, count=found.count // seeds, groups=(one // seeds, other // seeds))


def _paired_areas(words: pd.DataFrame) -> Estimate | None:
    second, first = (
        words.loc[words["heard"] == side, ["polarity", "polarity_other"]].to_numpy(np.float64) for side in (1, 0)
    )
    if not len(first) or not len(second):
        return None

    def gain(above: np.ndarray, below: np.ndarray) -> float:
        return area(above[:, 0], below[:, 0]) - area(above[:, 1], below[:, 1])

    found = bootstrap(gain, second, first)
    return Estimate(
        value=found.value, low=found.low, high=found.high, count=len(words), groups=(len(second), len(first))
    )


_SILENCE = "This compares models of the study `contextual`, and the table does not hold those that it takes."
_of_words = partial(Claim, table="models", sides=("runs",), span=SHARES, silence=_SILENCE, threshold=LINE)
_of_rare = partial(
    Claim, table="rare", sides=("words of one class", "words of the other"), least=10, span=DIFFERENCES,
    silence=_SILENCE, threshold=0.0, doubt=UNTOLD,
)  # fmt: skip
_of_trainings = partial(
    Claim, table="models", sides=("seeds",), span=DIFFERENCES, threshold=0.0, doubt=UNTOLD,
    silence=f"{_SILENCE} Two seeds or more are needed.",
)  # fmt: skip

_PAIRS = "in {only}{:.1%} of all pairs of about the same frequency"

CLAIMS = named(
    X1=_of_words(
        statement="With GloVe vectors, too, words of a class push towards it.",
        statistic="share of words of a class whose polarity has the right sign (C1), no encoder, GloVe vectors",
        threshold=RIGHT,
        estimate=column_of(GLOVE, "signs"),
        found="of the words of a class {only}{:.1%} push towards it",
        yes="Pretrained vectors learn what words are for: {found}.",
        no="Pretrained vectors do not learn what words are for: {found}.",
    ),
    X1b=_of_words(
        statement="In the vectors of a frozen transformer, too, words of a class push towards it.",
        statistic="share of words of a class whose mean polarity in texts has the right sign (C1), frozen transformer",
        threshold=RIGHT,
        estimate=column_of(TRANSFORMER, "signs"),
        found="of the words of a class {only}{:.1%} push towards it",
        yes="In context words say what they say alone: {found}.",
        no="In context words do not say what they say alone: {found}.",
    ),
    X2=_of_words(
        statement="With GloVe vectors words of a class get larger attention scores than words that all classes use "
        "alike.",
        statistic="AUC of attention scores within strata of frequency (C2b), no encoder, GloVe vectors",
        estimate=column_of(GLOVE, "separation"),
        found=f"a word of a class has the larger attention score {_PAIRS}",
        yes="The pattern of Sun & Lu holds with pretrained vectors: {found}.",
        no="The pattern of Sun & Lu does not hold with pretrained vectors: {found} (50 % is chance).",
    ),
    X2b=_of_words(
        statement="In the vectors of a frozen transformer words of a class get larger attention scores than words "
        "that all classes use alike.",
        statistic="AUC of mean attention scores in texts within strata of frequency (C2b), frozen transformer",
        estimate=column_of(TRANSFORMER, "separation"),
        found=f"a word of a class has the larger attention score {_PAIRS}",
        yes="The pattern of Sun & Lu holds with contextual vectors: {found}.",
        no="The pattern of Sun & Lu does not hold with contextual vectors: {found} (50 % is chance).",
    ),
    X3=_of_words(
        statement="On new texts the attention of a head on a frozen transformer goes to words of a class.",
        statistic="AUC of mean test attention over an even share within strata of frequency (C8c), frozen transformer",
        estimate=column_of(TRANSFORMER, "unseen"),
        found=f"a word of a class gets more of an even share {_PAIRS}",
        yes="On unseen text attention goes to these words: {found}.",
        no="On unseen text attention does not go to these words: {found} (50 % is chance).",
    ),
    X4=_of_rare(
        statement="Similar words help each other: with GloVe vectors rare words are nearer to their side in new texts "
        "than with random vectors.",
        statistic="AUC of the polarity of rare words by their side in dev and test texts, GloVe minus random vectors, "
        "no encoder",
        estimate=partial(rare_gain, GLOVE, RANDOM),
        found="the polarity of rare words tells their side with an AUC that is {:+.3f} against random vectors",
        yes="Rare words learn from similar ones: {found}.",
        no="Rare words do not learn from similar ones: {found}.",
    ),
    X4b=_of_rare(
        statement="A frozen transformer tells the side of rare words better than random vectors do.",
        statistic="AUC of the polarity of rare words, read alone, by their side in dev and test texts, frozen "
        "transformer minus random vectors without an encoder",
        estimate=partial(rare_gain, TRANSFORMER, RANDOM),
        found="the polarity of rare words tells their side with an AUC that is {:+.3f} against random vectors",
        yes="What was read elsewhere helps rare words: {found}.",
        no="What was read elsewhere does not help rare words: {found}.",
    ),
    X5=_of_trainings(
        statement="Along attention decisions flip later with a frozen transformer than without an encoder.",
        statistic="median fraction of units erased along attention, frozen transformer minus no encoder: the smaller "
        "of random and GloVe vectors",
        estimate=smallest_of(*(difference(TRANSFORMER, other, fraction("attention")) for other in (RANDOM, GLOVE))),
        found="decisions flip after {:+.1%} of the units where the difference is smallest",
        yes="Flips come later with context: {found}.",
        no="Flips do not come later with context: {found}.",
    ),
    X5b=_of_trainings(
        statement="Along attention decisions flip later still with a frozen transformer than with an LSTM.",
        statistic="median fraction of units erased along attention, frozen transformer minus LSTM with GloVe vectors",
        estimate=difference(TRANSFORMER, LSTM_GLOVE, fraction("attention")),
        found="decisions flip after {:+.1%} of the units against the LSTM",
        yes="Flips are later still: {found}.",
        no="Flips are not later still: {found}.",
    ),
    X6=_of_trainings(
        statement="The fewest units that can flip a decision are more with a frozen transformer than without an "
        "encoder.",
        statistic="median exact minimum fraction, frozen transformer minus no encoder: the smaller of random and GloVe "
        "vectors",
        estimate=smallest_of(*(difference(TRANSFORMER, other, fraction("minimum")) for other in (RANDOM, GLOVE))),
        found="the exact minimum differs by {:+.1%} of the units where the difference is smallest",
        yes="Decisions rest on more of the text: {found}.",
        no="Decisions do not rest on more of the text: {found}.",
    ),
    X7=_of_trainings(
        statement="Attention misses the minimum by more with a frozen transformer than with GloVe vectors alone.",
        statistic="median fraction erased along attention less the exact minimum, frozen transformer minus GloVe "
        "vectors without an encoder",
        estimate=difference(TRANSFORMER, GLOVE, excess),
        found="what attention erases beyond the minimum differs by {:+.1%} of the units",
        yes="Context makes attention a worse guide to decisions: {found}.",
        no="Context does not make attention a worse guide to decisions: {found}.",
    ),
    X8=_of_trainings(
        statement="A head on a frozen transformer is more accurate than an LSTM on GloVe vectors.",
        statistic="test accuracy, frozen transformer minus LSTM with GloVe vectors",
        estimate=difference(TRANSFORMER, LSTM_GLOVE, lambda rows: rows["test_accuracy"]),
        found="its test accuracy differs by {:+.1%}",
        yes="It is the better model: {found}.",
        no="It is not the better model: {found}.",
    ),
)
