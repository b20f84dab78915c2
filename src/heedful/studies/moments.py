"""Attention over training time: an observer that keeps the scores of chosen tokens after every epoch.

The tokens are chosen before the training, by their counts: the most frequent of each group. Their table lies beside
the other tables of the run, so that an audit of a finished run shows it too.
"""

import pandas as pd
import torch

from heedful.analysis.tokens import NONE, token_groups, training_counts
from heedful.models.classifier import Classifier
from heedful.pipeline import Run, write_table
from heedful.text.corpus import Corpus
from heedful.tracing import trace_tokens
from heedful.training.events import EpochDone, Event

TABLE = "moments"
MOST, LEAST = 400, 10
"""So many tokens are followed in all, shared alike by the groups, but no fewer than this of each."""


class ScoreRecorder:
    """An observer for `fit`: time (the epoch), token, group, attention and polarity after every epoch.

    `polarity` is towards the second of two classes; with more it is `strongest polarity`, the largest score of a class
    less the mean of the others.
    """

    def __init__(self, corpus: Corpus) -> None:
        numbers, self._groups = _followed(corpus)
        self._numbers = torch.tensor(numbers, dtype=torch.int64)
        self._tokens = [corpus.vocabulary.tokens[number] for number in numbers]
        self._moments: list[pd.DataFrame] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, EpochDone) and self._tokens:
            self._moments.append(self._look(event.model).assign(time=event.epoch))

    def _look(self, model: Classifier) -> pd.DataFrame:
        found = trace_tokens(model, self._numbers)
        scores = found.polarity_scores
        classes = scores.shape[1]
        two = classes == 2
        polarity = scores[:, 1] - scores[:, 0] if two else (classes * scores.amax(1) - scores.sum(1)) / (classes - 1)
        return pd.DataFrame(
            {
                "token": self._tokens,
                "group": self._groups,
                "attention": found.attention_scores.numpy().astype("float32"),
                "polarity" if two else "strongest polarity": polarity.numpy().astype("float32"),
            }
        )

    def table(self) -> pd.DataFrame | None:
        """All moments; None if there were none to see."""
        return pd.concat(self._moments, ignore_index=True) if self._moments else None


def keep_moments(finished: Run, recorder: ScoreRecorder) -> None:
    """Put what was recorded beside the run's tables, if this process computed the run."""
    table = recorder.table()
    if finished.new and table is not None:
        write_table(finished.path / f"{TABLE}.parquet", table)


def _followed(corpus: Corpus) -> tuple[list[int], list[str]]:
    """The numbers of the tokens to follow, and their groups."""
    counts = training_counts(corpus)
    table = pd.DataFrame({"group": token_groups(counts, corpus.class_names), "count": counts.sum(1).numpy()})
    grouped = table[(table["group"] != NONE) & (table["count"] > 0)]
    each = max(LEAST, MOST // max(1, grouped["group"].nunique()))
    frequent = grouped.sort_values("count", ascending=False, kind="stable").groupby("group", sort=True).head(each)
    return [int(number) for number in frequent.index], [str(group) for group in frequent["group"]]
