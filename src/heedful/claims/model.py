"""Is there anything to explain? A claim of ours that comes before all others: the model has learned something."""

import pandas as pd
from jaxtyping import Int
from torch import Tensor

from heedful.analysis.statistics import Estimate, paired_difference
from heedful.claims.kinds import FEWEST, Claim, Tables
from heedful.traces import Trace

LEARNED = "M1"


def outcomes(trace: Trace, labels: Int[Tensor, " instances"], commonest: int) -> pd.DataFrame:
    """Per text whether the model is right, and whether always guessing one class would be."""
    right, guessed = trace.predictions == labels, labels == commonest
    return pd.DataFrame({"right": right.numpy(force=True), "guessed": guessed.numpy(force=True)})


def better_than_guessing(tables: Tables) -> Estimate:
    """Accuracy less that of always guessing the commonest class, on the same texts."""
    right, guessed = tables["outcomes"]["right"], tables["outcomes"]["guessed"]
    return paired_difference(gained=int((right & ~guessed).sum()), lost=int((guessed & ~right).sum()), pairs=len(right))


CLAIMS = (
    Claim(
        name=LEARNED,
        statement="The model does better than always guessing the commonest class.",
        statistic="test accuracy less that of the commonest class of the training texts",
        threshold=0.0,
        needs=("outcomes",),
        estimate=better_than_guessing,
        words={
            "yes": "There is something to explain: the model is right on {found.value:.1%} more of the test texts than "
            "always guessing the commonest class.",
            "no": "There is nothing to explain: always guessing the commonest class is right more often than the model "
            "({found.value:+.1%}).",
            "not shown": "It is not shown that there is anything to explain: against always guessing the commonest "
            "class the model is right on {found.value:+.1%} of the test texts, which cannot be told from none.",
        },
        silence=f"There are too few test texts to tell whether the model has learned anything: {FEWEST} are needed.",
        sides=("texts",),
        least=FEWEST,
        span=(-1.0, 1.0),
    ),
)
