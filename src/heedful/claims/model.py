"""Is there anything to explain? A claim of ours that comes before all others: the model has learned something."""

from dataclasses import replace

import pandas as pd

from heedful.analysis.statistics import Estimate, mean_of_shares
from heedful.claims.kinds import FEWEST, Claim, Tables
from heedful.traces import Trace

LEARNED = "M1"

SURE = 0.99
"""The level of its interval: everything else is said only of models that have learned something."""


def outcomes(trace: Trace) -> pd.DataFrame:
    """Per text its class, and whether the model is right."""
    assert trace.labels is not None
    right = trace.predictions == trace.labels
    return pd.DataFrame({"label": trace.labels.numpy(force=True), "right": right.numpy(force=True)})


def better_than_guessing(tables: Tables) -> Estimate:
    """Balanced accuracy, the mean over classes of the share of their texts that are right, less 1/K.

    Whoever does not look at the texts gets 1/K at most, however skewed the classes are: always the same class gets all
    texts of one class right and none of the others.
    """
    classes = tables["outcomes"].groupby("label")["right"].agg(["sum", "size"])
    found = mean_of_shares(classes["sum"].tolist(), classes["size"].tolist(), level=SURE)
    chance = 1 / len(classes)
    low, high, over = found.low - chance, found.high - chance, f"them at the {SURE:.0%} level"
    return replace(found, value=found.value - chance, low=low, high=high, over=over)


CLAIMS = (
    Claim(
        name=LEARNED,
        statement="The model tells the classes apart better than guessing does.",
        statistic="balanced test accuracy (the mean of the classes' own) less 1/K, the most that guessing gets",
        threshold=0.0,
        needs=("outcomes",),
        estimate=better_than_guessing,
        words={
            "yes": "There is something to explain: of a class's texts the model gets {found.value:.1%} more right than "
            "guessing would, in the mean over classes.",
            "no": "There is nothing to explain: of a class's texts the model gets fewer right than guessing would "
            "({found.value:+.1%} in the mean over classes).",
            "not shown": "It is not shown that there is anything to explain: of a class's texts the model gets "
            "{found.value:+.1%} right against guessing, in the mean over classes, which cannot be told from none.",
        },
        silence=f"There are too few test texts to tell whether the model has learned anything: {FEWEST} are needed.",
        sides=("texts",),
        least=FEWEST,
        span=(-1.0, 1.0),
    ),
)
