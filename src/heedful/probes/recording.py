"""What a run writes down while its model is trained (`RecordSettings`): tables that grow from moment to moment.

moments         by epoch and token, for the commonest tokens of each group: attention and polarity
flow_model      by moment: loss, mean β, VᵀW, norms
flow_groups     by moment and group of tokens: mean scores and terms
flow_signs      by moment and group: the share of tokens for which each score or term is positive
flow_pairs      by moment and pair of tokens: Ω and its rate (affine: also Ω of hidden vectors)
flow_tokens     by moment and token: polarity and attention
flow_scores     after the last epoch: counts and scores of every token
flow_accuracy   after the last epoch: accuracy on the training and test split
"""

from collections.abc import Mapping

import pandas as pd
import torch

from heedful.analysis.dynamics import dot_products, see_tokens
from heedful.analysis.tokens import NONE, token_groups, training_counts
from heedful.config import RecordSettings
from heedful.models.classifier import Classifier
from heedful.probes.flow import FlowRecorder, parameters_of
from heedful.probes.scores import token_scores
from heedful.text.corpus import Corpus
from heedful.tracing import trace_tokens
from heedful.training.events import EpochDone, Event, Recorder, StepDone
from heedful.training.objectives import evaluate

SCORES = "moments"
MOST, LEAST = 400, 10
"""So many tokens are followed in all, shared alike by the groups, but no fewer than this of each."""


def recorders(settings: RecordSettings, corpus: Corpus) -> list[Recorder]:
    """The observers that record what the settings ask for."""
    wanted: list[Recorder] = [ScoreRecorder(corpus)] if settings.scores else []
    return wanted if settings.flow is None else [*wanted, FlowTables(corpus, settings, every=settings.flow)]


class GrowingTables:
    """Tables by name, each longer by the rows of every new moment."""

    def __init__(self) -> None:
        self._parts: dict[str, list[pd.DataFrame]] = {}

    def add(self, name: str, rows: pd.DataFrame) -> None:
        self._parts.setdefault(name, []).append(rows)

    def tables(self) -> dict[str, pd.DataFrame]:
        return {name: pd.concat(parts, ignore_index=True) for name, parts in self._parts.items()}

    def restore(self, tables: Mapping[str, pd.DataFrame]) -> None:
        self._parts = {name: [table] for name, table in tables.items()}


class ScoreRecorder(GrowingTables):
    """Attention over training time: time (the epoch), token, group, attention and polarity after every epoch.

    The tokens are chosen before the training, by their counts: the most frequent of each group. `polarity` is towards
    the second of two classes; with more it is `strongest polarity`, the largest score of a class less the mean of the
    others. Where no token belongs to a group there is no table.
    """

    def __init__(self, corpus: Corpus) -> None:
        super().__init__()
        numbers, self._groups = _followed(corpus)
        self._numbers = torch.tensor(numbers, dtype=torch.int64)
        self._tokens = [corpus.vocabulary.tokens[number] for number in numbers]

    def __call__(self, event: Event) -> None:
        if isinstance(event, EpochDone) and self._tokens:
            self.add(SCORES, self._look(event.model).assign(time=event.epoch))

    def _look(self, model: Classifier) -> pd.DataFrame:
        traced = trace_tokens(model, self._numbers)
        scores = traced.polarity_scores
        classes = scores.shape[1]
        two = classes == 2
        polarity = scores[:, 1] - scores[:, 0] if two else (classes * scores.amax(1) - scores.sum(1)) / (classes - 1)
        return pd.DataFrame(
            {
                "token": self._tokens,
                "group": self._groups,
                "attention": traced.attention_scores.float().numpy(),
                "polarity" if two else "strongest polarity": polarity.float().numpy(),
            }
        )


def _followed(corpus: Corpus) -> tuple[list[int], list[str]]:
    """The numbers of the tokens to follow, and their groups."""
    counts = training_counts(corpus)
    table = pd.DataFrame({"group": token_groups(counts, corpus.class_names), "count": counts.sum(1).numpy()})
    grouped = table[(table["group"] != NONE) & (table["count"] > 0)]
    each = max(LEAST, MOST // max(1, grouped["group"].nunique()))
    frequent = grouped.sort_values("count", ascending=False, kind="stable").groupby("group", sort=True).head(each)
    return [int(number) for number in frequent.index], [str(group) for group in frequent["group"]]


class FlowTables(GrowingTables):
    """The dynamics of the scores (`FlowRecorder`), and what the very end is like.

    `train` gives back the best epoch on dev, which may come early; these tables end with the last. Groups are the
    planted ones of a made corpus, whatever the counts say: on skewed data neutral tokens lean to the larger class.
    """

    def __init__(self, corpus: Corpus, settings: RecordSettings, *, every: int) -> None:
        super().__init__()
        self._corpus, self._keep_tokens = corpus, settings.tokens
        planted = corpus.planted
        groups = None if planted is None else [planted.get(token, NONE) for token in corpus.vocabulary.tokens]
        self._flow = FlowRecorder(corpus, every=every, groups=groups, pairs=settings.pairs, tokens=True)

    def __call__(self, event: Event) -> None:
        self._flow(event)
        if isinstance(event, StepDone) and self._flow.records:
            self._add_moment(event.model)
        if isinstance(event, EpochDone) and event.last:
            self._add_end(event.model)

    def _add_moment(self, model: Classifier) -> None:
        tables = self._flow.tables()
        self._flow.records.clear()
        tokens, pairs = tables.pop("tokens"), tables.pop("pairs")
        if model.settings.encoder == "affine":
            pairs["omega_hidden"] = dot_products(see_tokens(parameters_of(model)).hidden, self._flow.pairs).numpy()
        tables |= {"pairs": _single_precision(pairs), "signs": _positive_shares(tokens)}
        if self._keep_tokens:
            scores = [name for name in tokens if name == "attention" or _is_polarity(str(name))]
            tables["tokens"] = _single_precision(tokens[["epoch", "step", "token", "group", *scores]])
        for name, table in tables.items():
            self.add(f"flow_{name}", table)

    def _add_end(self, model: Classifier) -> None:
        scores = token_scores(model, self._corpus).assign(group=self._flow.groups)
        self.add("flow_scores", scores.drop(columns="planted", errors="ignore"))
        splits = {"train_accuracy": self._corpus.train, "test_accuracy": self._corpus.test}
        accuracy = {name: [evaluate(model, split).accuracy] for name, split in splits.items()}
        self.add("flow_accuracy", pd.DataFrame(accuracy))


def _is_polarity(column: str) -> bool:
    return column.startswith("polarity") and not column.startswith("polarity_rate")


def _single_precision(table: pd.DataFrame) -> pd.DataFrame:
    """Half of the bytes, where a picture is all that is made of the numbers."""
    return table.astype(dict.fromkeys(table.select_dtypes("float64").columns, "float32"))


def _positive_shares(tokens: pd.DataFrame) -> pd.DataFrame:
    """By moment and group, the share of tokens for which each number is positive."""
    keys = ["epoch", "step", "group"]
    positive = (tokens.drop(columns=[*keys, "token"]) > 0).astype(float)
    return positive.groupby([tokens[key] for key in keys]).mean().reset_index()
