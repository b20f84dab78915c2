"""Is there anything to explain? A claim of ours that comes before all others: the model has learned something."""

from dataclasses import replace

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Estimate, mean_of_shares
from heedful.claims.kinds import FEWEST, Claim, Tables
from heedful.traces import Trace

LEARNED = "M1"

DEALS = 2000
"""So often decisions are dealt out at random to see what chance does."""

SURE = 0.99
"""The level of its interval: everything else is said only of models that have learned something."""


def outcomes(trace: Trace) -> pd.DataFrame:
    """Per distinct text its class, and the one that the model decides for."""
    assert trace.labels is not None
    both = {"label": trace.labels[trace.distinct], "decision": trace.predictions[trace.distinct]}
    return pd.DataFrame({name: classes.numpy(force=True) for name, classes in both.items()})


def better_than_guessing(tables: Tables) -> Estimate:
    """Balanced accuracy, the mean over classes of the share of their texts that are right, less 1/K.

    Whoever does not look at the texts gets 1/K at most in the mean, however skewed the classes are: always the same
    class gets all texts of one class right and none of the others. The interval is the wider of that of the shares and
    that of chance: what decisions dealt out to the texts anew get, whatever the classes and how rare they are.
    """
    rows = tables["outcomes"]
    hits = pd.Series(rows["label"] == rows["decision"]).groupby(rows["label"]).agg(["sum", "size"])
    found = mean_of_shares(hits["sum"].tolist(), hits["size"].tolist(), level=SURE)
    guessed = 1 / len(hits)
    value = found.value - guessed
    least, most = np.quantile(_by_chance(rows), [(1 - SURE) / 2, (1 + SURE) / 2])
    return replace(
        found,
        value=value,
        low=max(-guessed, min(found.low - guessed, value - float(most))),
        high=min(1 - guessed, max(found.high - guessed, value - float(least))),
        over=f"them at the {SURE:.0%} level",
    )


def _by_chance(rows: pd.DataFrame) -> np.ndarray:
    """The number that the same decisions would get if they were dealt out to the texts at random, many times."""
    labels, decisions = pd.factorize(rows["label"])[0], rows["decision"].to_numpy()
    names, sizes = np.asarray(pd.unique(rows["label"])), np.bincount(labels)
    rng = np.random.default_rng(0)
    return np.array([_balanced(labels, names, rng.permutation(decisions), sizes) for _ in range(DEALS)])


def _balanced(labels: np.ndarray, names: np.ndarray, decisions: np.ndarray, sizes: np.ndarray) -> float:
    hits = np.bincount(labels, weights=names[labels] == decisions, minlength=len(sizes))
    return float((hits / sizes).mean() - 1 / len(sizes))


CLAIMS = (
    Claim(
        name=LEARNED,
        statement="The model tells the classes apart better than guessing does.",
        statistic="balanced test accuracy (the mean of the classes' own) less 1/K, the most that guessing gets",
        threshold=0.0,
        needs=("outcomes",),
        estimate=better_than_guessing,
        words={
            "yes": "There is something to explain: the share of a class's texts that the model gets right is "
            "{found.value:.2f} above that of guessing, in the mean over classes.",
            "no": "There is nothing to explain: the share of a class's texts that the model gets right is below that "
            "of guessing ({found.value:+.2f} in the mean over classes).",
            "not shown": "It is not shown that there is anything to explain: the share of a class's texts that the "
            "model gets right is {found.value:+.2f} against guessing, in the mean over classes, which cannot be told "
            "from none.",
        },
        silence=f"There are too few test texts to tell whether the model has learned anything: {FEWEST} are needed.",
        sides=("texts",),
        least=FEWEST,
        span=(-1.0, 1.0),
    ),
)


def has_learned(trace: Trace) -> bool:
    """Whether the model of a trace is shown to have learned something; without labels there is no telling otherwise."""
    (claim,) = CLAIMS
    return trace.labels is None or claim.judge({"outcomes": outcomes(trace)}).decision == "yes"
