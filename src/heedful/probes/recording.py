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

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.analysis.dynamics import Moment, dot_product_terms, dot_products, observe, see_tokens, sum_of, summary
from heedful.analysis.flips import in_front
from heedful.analysis.tokens import AS_PRINTED, NONE, token_groups, training_counts
from heedful.config import RecordSettings
from heedful.errors import ConfigError, InputError
from heedful.files import write_table
from heedful.models.classifier import Classifier
from heedful.probes.scores import documents_of, output_names, parameters_of, spread, term_columns, token_scores
from heedful.text.corpus import Corpus
from heedful.text.ragged import Batch
from heedful.tracing import trace_tokens
from heedful.training.events import EpochDone, Event, Recorder, StepDone
from heedful.training.objectives import evaluate

Pairs = int | Sequence[tuple[str, str]]
Places = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

SHORT_NAMES: Mapping[str, str] = {"positive": "pos", "negative": "neg", "neutral": "neu"}

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

    hears_steps = False

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


class FlowRecorder(GrowingTables):
    """An observer for `fit`: after the first step and then every so many, the dynamics on the whole training split.

    `groups` is the group of each vocabulary token (by default the paper's, see `analysis.tokens`), `pairs` the
    pairs of tokens whose dot product Ω is followed, or how many to draw for every two groups, `tokens` whether to keep
    the scores and terms of every token and not only their group means.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        every: int = 100,
        groups: Sequence[str] | None = None,
        pairs: Pairs = 10,
        tokens: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if every < 1:
            raise ConfigError(f"Recording happens every 1 or more steps, not every {every}.")
        if groups is None:
            groups = token_groups(training_counts(corpus), corpus.class_names, AS_PRINTED)
        if len(groups) != len(corpus.vocabulary):
            raise InputError(f"Give one group per token: {len(corpus.vocabulary)} tokens, {len(groups)} groups.")
        self.corpus, self.every, self.groups, self.keep_tokens = corpus, every, list(groups), tokens
        self.kinds, self.pairs = _find_pairs(corpus, self.groups, pairs, seed)
        numbers, self._names = pd.factorize(np.array(self.groups, dtype=object), sort=True)
        member = torch.nn.functional.one_hot(torch.from_numpy(numbers)).double()
        self._means = (member / member.sum(0)).T.contiguous()
        self._documents: Batch | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepDone) and (event.step == 1 or event.step % self.every == 0):
            self.record(event.model, epoch=event.epoch, step=event.step)

    def record(self, model: Classifier, *, epoch: int, step: int) -> None:
        """Look at the model as it is now; the rows begin with epoch and step."""
        for name, rows in self.look(model).items():
            self.add(name, in_front({"epoch": epoch, "step": step}, rows))

    @torch.no_grad()
    def look(self, model: Classifier) -> dict[str, pd.DataFrame]:
        """`model`: loss, mean β, VᵀW, norms. `groups`: mean scores and terms of each group of tokens. `pairs`: Ω of
        each pair, its rate, and the rate for large λ (Eq. 46). `tokens`: scores and terms of each token, if kept."""
        suffixes, vocabulary = output_names(model), self.corpus.vocabulary.tokens
        if self._documents is None:
            self._documents = documents_of(self.corpus.train, model)
        moment = observe(parameters_of(model), self._documents)
        scores = {"polarity": moment.polarity_scores, "attention": moment.attention_scores}
        columns = spread(scores, suffixes) | term_columns(moment, suffixes)
        values, names = torch.stack([*columns.values()]).cpu(), list(columns)
        groups = {"group": self._names, "tokens": [self.groups.count(name) for name in self._names]}
        numbers = spread({name: value[None] for name, value in summary(moment).items()}, suffixes)
        first, second = ([vocabulary[number] for number in column.tolist()] for column in self.pairs.unbind(1))
        pairs = {"kind": self.kinds, "first": first, "second": second, **_pair_numbers(moment, self.pairs)}
        tables = {
            "model": pd.DataFrame([{name: float(value) for name, value in numbers.items()}]),
            "groups": in_front(groups, pd.DataFrame((self._means @ values.T).numpy(), columns=names)),
            "pairs": pd.DataFrame(pairs),
        }
        if self.keep_tokens:
            tokens = pd.DataFrame(values.T.numpy(), columns=names)
            tables["tokens"] = in_front({"token": list(vocabulary), "group": self.groups}, tokens)
        return tables

    def save(self, folder: Path | str) -> None:
        """Write every table to <name>.parquet in a folder."""
        for name, table in self.tables().items():
            write_table(Path(folder) / f"{name}.parquet", table)


class FlowTables(FlowRecorder):
    """What a run keeps of the dynamics of the scores, and what the very end is like.

    `train` gives back the best epoch on dev, which may come early; these tables end with the last. Groups are the
    planted ones of a made corpus, whatever the counts say: on skewed data neutral tokens lean to the larger class.
    """

    def __init__(self, corpus: Corpus, settings: RecordSettings, *, every: int) -> None:
        planted = corpus.planted
        groups = None if planted is None else [planted.get(token, NONE) for token in corpus.vocabulary.tokens]
        super().__init__(corpus, every=every, groups=groups, pairs=settings.pairs, tokens=True)
        self._write_tokens = settings.tokens

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, EpochDone) and event.last:
            self._add_end(event.model)

    def look(self, model: Classifier) -> dict[str, pd.DataFrame]:
        """Those tables, in single precision where a picture is all that is made of them, and the shares of signs."""
        tables = super().look(model)
        tokens, pairs = tables.pop("tokens"), tables.pop("pairs")
        if model.settings.encoder == "affine":
            pairs["omega_hidden"] = dot_products(see_tokens(parameters_of(model)).hidden, self.pairs).numpy()
        tables |= {"pairs": _single_precision(pairs), "signs": _positive_shares(tokens)}
        if self._write_tokens:
            scores = tokens.filter(regex="^(token|group|attention)$|^polarity(?!_rate)")
            tables["tokens"] = _single_precision(scores)
        return {f"flow_{name}": table for name, table in tables.items()}

    def _add_end(self, model: Classifier) -> None:
        scores = token_scores(model, self.corpus).assign(group=self.groups)
        self.add("flow_scores", scores.drop(columns="planted", errors="ignore"))
        splits = {"train_accuracy": self.corpus.train, "test_accuracy": self.corpus.test}
        accuracy = {name: [evaluate(model, split).accuracy] for name, split in splits.items()}
        self.add("flow_accuracy", pd.DataFrame(accuracy))


def _single_precision(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype(dict.fromkeys(table.select_dtypes("float64").columns, "float32"))


def _positive_shares(tokens: pd.DataFrame) -> pd.DataFrame:
    """By group, the share of tokens for which each number is positive."""
    positive = (tokens.drop(columns=["group", "token"]) > 0).astype(float)
    return positive.groupby(tokens["group"]).mean().reset_index()


def _pair_numbers(moment: Moment, pairs: Int[Tensor, "pairs 2"]) -> dict[str, object]:
    there = pairs.to(moment.rho.device)
    terms, omega = dot_product_terms(moment, there), dot_products(moment.parameters.embedding, there)
    numbers = {"omega": omega, "rate": sum_of(terms.values()), "rate_approximate": terms["B"]}
    return {name: values.numpy(force=True) for name, values in numbers.items()}


def _find_pairs(
    corpus: Corpus, groups: Sequence[str], pairs: Pairs, seed: int
) -> tuple[list[str], Int[Tensor, "pairs 2"]]:
    """The kind of each pair, and the pairs by number: the chosen ones, or drawn ones."""
    if isinstance(pairs, int):
        return sample_pairs(groups, pairs, seed)
    numbers = [corpus.vocabulary.number(token) for pair in pairs for token in pair]
    chosen = torch.tensor(numbers, dtype=torch.int64).reshape(-1, 2)
    return pair_kinds(groups, chosen), chosen


def sample_pairs(groups: Sequence[str], count: int, seed: int) -> tuple[list[str], Int[Tensor, "pairs 2"]]:
    """Up to `count` distinct pairs of distinct tokens for every two groups, and the kind of each.

    `groups` has the group of each token. Tokens of the group `none` are left out.
    """
    array = np.array(groups, dtype=object)
    members = {name: np.flatnonzero(array == name) for name in sorted(set(groups) - {"none"}, key=_rank)}
    rng = np.random.default_rng(seed)
    drawn: list[Places] = [np.zeros((0, 2), dtype=np.int64)]
    for first, second in combinations_with_replacement(members, 2):
        same, some = first == second, members[first]
        drawn.append(_within(some, count, rng) if same else _between(some, members[second], count, rng))
    pairs = torch.as_tensor(np.concatenate(drawn))
    return pair_kinds(groups, pairs), pairs


def pair_kinds(groups: Sequence[str], pairs: Int[Tensor, "pairs 2"]) -> list[str]:
    """pos-pos, neg-neg, pos-neg, pos-neu, neg-neu or neu-neu; with more than two classes their names."""
    named = [sorted((groups[first], groups[second]), key=_rank) for first, second in pairs.tolist()]
    return ["-".join(SHORT_NAMES.get(name, name) for name in pair) for pair in named]


def _between(first: Places, second: Places, count: int, rng: np.random.Generator) -> Places:
    possible = len(first) * len(second)
    numbers = rng.choice(possible, min(count, possible), replace=False)
    return np.stack([first[numbers // len(second)], second[numbers % len(second)]], 1)


def _within(members: Places, count: int, rng: np.random.Generator) -> Places:
    """Number n stands for the pair (i, k), k < i, with n = i (i − 1) / 2 + k."""
    possible = len(members) * (len(members) - 1) // 2
    numbers = rng.choice(possible, min(count, possible), replace=False) if possible else np.zeros(0, dtype=np.int64)
    larger = ((1 + np.sqrt(1 + 8.0 * numbers)) / 2).astype(np.int64)
    return np.stack([members[numbers - larger * (larger - 1) // 2], members[larger]], 1)


def _rank(group: str) -> tuple[int, str]:
    """Groups in the order of the paper: positive, negative (or the classes by name), neutral, none."""
    return {"positive": 0, "negative": 1, "neutral": 3, "none": 4}.get(group, 2), group
