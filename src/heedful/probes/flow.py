"""Where gradient flow would move every token's scores: for a model as it is, and recorded while it is trained.

The terms and their equations are in `heedful.analysis.dynamics`. All is computed on whole splits and in float64, from
float64 copies of the parameters.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.dynamics import (
    Documents,
    Moment,
    Parameters,
    dot_product_terms,
    dot_products,
    flow_of,
    observe,
    sum_of,
    summary,
)
from heedful.analysis.flips import in_front
from heedful.analysis.tokens import AS_PRINTED, token_groups, training_counts
from heedful.errors import ConfigError, InputError
from heedful.files import write_table
from heedful.models.classifier import Classifier
from heedful.models.layers import AdditiveAttention, AffineEncoder
from heedful.text.corpus import Corpus, Split
from heedful.training.events import Event, StepDone

Columns = dict[str, Float[Tensor, " vocab"]]
Pairs = int | Sequence[tuple[str, str]]
Places = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

SHORT_NAMES: Mapping[str, str] = {"positive": "pos", "negative": "neg", "neutral": "neu"}


def flow_terms(model: Classifier, split: Split) -> pd.DataFrame:
    """How gradient flow on the mean loss over a split moves the polarity and attention score of every vocabulary token.

        polarity_rate = A + B + C        attention_rate = D + E + F        (Sun & Lu 2020, Eqs. 16–27)

    Rates are those of plain gradient flow for the model as it is, without dropout, penalty or weight decay, whatever it
    was trained by.

    model: a flat classifier with the encoder none or affine and without biases; others have no such terms and raise.
    split: the texts whose loss flows, usually `corpus.train` of the corpus that the model was trained on.

    One row per token of the vocabulary. Columns: token, A … F, pi, rho, polarity_rate, attention_rate. An affine
    encoder adds A_encoder, B_encoder, D_encoder, E_encoder to the sums (Eqs. 63, 64), additive attention E_projection
    and, with the suffix _approximate, the attention terms for tanh(x) ≈ x (Eq. 71). With more than two classes, what
    has a value per class (A, B, C, pi, polarity_rate) has the suffix _<class>.

    >>> import heedful
    >>> texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    >>> corpus = heedful.load_corpus((texts, ["positive"] * 5 + ["negative"] * 5))
    >>> model = heedful.fit(corpus, embedding_size=8, epochs=1)
    >>> terms = heedful.flow_terms(model, corpus.train)
    >>> list(terms)
    ['token', 'A', 'B', 'C', 'D', 'E', 'F', 'pi', 'rho', 'polarity_rate', 'attention_rate']
    >>> bool((terms[["A", "B", "C"]].sum(axis=1) - terms["polarity_rate"]).abs().max() < 1e-12)
    True
    """
    moment = observe(parameters_of(model), documents_of(split, model))
    columns = {name: values.cpu().numpy() for name, values in term_columns(moment, output_names(model)).items()}
    return pd.DataFrame({"token": list(model.interface.vocabulary.tokens), **columns})


@torch.no_grad()
def parameters_of(model: Classifier) -> Parameters:
    """The model's parameters in float64."""
    if model.contextual:
        raise InputError(
            "Flow terms need a token's hidden vector to be the same wherever the token stands; the encoder "
            f"'{model.settings.encoder}' mixes it with its neighbours, so that no token has sums π and ρ of its own. "
            "Use the encoder 'none' or 'affine'."
        )
    if model.settings.attention_bias or model.settings.readout_bias:
        raise InputError("Flow terms are those of Sun & Lu 2020, whose models have no biases; this one has.")
    if model.settings.encoder == "tanh" or model.settings.context_size or model.settings.normaliser != "softmax":
        raise InputError(
            "Flow terms are those of Sun & Lu 2020: encoder 'none' or 'affine', attention of the hidden size, softmax; "
            f"this model has the encoder '{model.settings.encoder}', the context size "
            f"{model.settings.context_size or model.encoder.size} and {model.settings.normaliser}."
        )
    if model.settings.attention_weights != "learned":
        raise InputError(
            f"Flow terms are those of learned attention; this model's is {model.settings.attention_weights}."
        )
    encoder, attention = model.encoder, model.attention
    return Parameters(
        embedding=model.embedding.detach().double(),
        context_vector=attention.context_vector.detach().double(),
        readout_weight=model.readout_weight.detach().double(),
        score_scale=float(attention.score_scale),
        encoder=encoder.projection.detach().double() if isinstance(encoder, AffineEncoder) else None,
        projection=attention.projection.detach().double() if isinstance(attention, AdditiveAttention) else None,
    )


def documents_of(split: Split, model: Classifier) -> Documents:
    """The split as numbers, on the model's device."""
    if int(split.tokens.numbers.max()) >= len(model.embedding) or int(split.labels.max()) >= model.classes:
        raise InputError(
            f"The split has tokens or classes that the model ({len(model.embedding)} tokens, {model.classes} classes) "
            "does not know. Give a split of the corpus that the model was trained on."
        )
    device = model.embedding.device
    return Documents(
        tokens=split.tokens.numbers.to(device), offsets=split.offsets.to(device), labels=split.labels.to(device)
    )


def output_names(model: Classifier) -> tuple[str, ...]:
    """One name per output of the readout: none for the single output of two classes."""
    return ("",) if model.classes == 2 else tuple(f"_{name}" for name in model.interface.class_names)


def term_columns(moment: Moment, suffixes: Sequence[str]) -> Columns:
    """The terms as named columns, the paper's letters first."""
    flow = flow_of(moment)
    terms: dict[str, Float[Tensor, ...]] = {**flow.polarity, **flow.attention}
    ordered = {name: terms[name] for name in sorted(terms, key=lambda name: (len(name) > 1, name))}
    sums = {"pi": moment.pi, "rho": moment.rho}
    rates = {"polarity_rate": flow.polarity_rate, "attention_rate": flow.attention_rate}
    columns = _spread({**ordered, **sums, **rates}, suffixes)
    approximate = flow.approximate_attention_rate
    if approximate is not None:
        columns |= {f"{name}_approximate": values for name, values in flow.approximate.items()}
        columns["attention_rate_approximate"] = approximate
    return columns


def score_columns(moment: Moment, suffixes: Sequence[str]) -> Columns:
    """The global scores as named columns."""
    return _spread({"polarity": moment.polarity_scores, "attention": moment.attention_scores}, suffixes)


def _spread(values: Mapping[str, Float[Tensor, "..."]], suffixes: Sequence[str]) -> Columns:
    """A column for each array with a number per token, a column with suffix for each output of the others."""
    columns: Columns = {}
    for name, array in values.items():
        if array.ndim == 1:
            columns[name] = array
        else:
            columns |= {f"{name}{suffix}": array[:, number] for number, suffix in enumerate(suffixes)}
    return columns


@dataclass(frozen=True, kw_only=True)
class Record:
    """What was seen after one step: numbers of the model, of each pair, of each group, and perhaps of each token."""

    epoch: int
    step: int
    model: Mapping[str, float]
    pairs: Mapping[str, Float[Tensor, " pairs"]]
    columns: tuple[str, ...]
    groups: Float[Tensor, "groups columns"]
    tokens: Float[Tensor, "columns vocab"] | None


class FlowRecorder:
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
        if every < 1:
            raise ConfigError(f"Recording happens every 1 or more steps, not every {every}.")
        self.corpus = corpus
        self.every = every
        if groups is None:
            groups = token_groups(training_counts(corpus), corpus.class_names, AS_PRINTED)
        self.groups = list(groups)
        if len(self.groups) != len(corpus.vocabulary):
            raise InputError(f"Give one group per token: {len(corpus.vocabulary)} tokens, {len(self.groups)} groups.")
        self.keep_tokens = tokens
        self.kinds, self.pairs = _find_pairs(corpus, self.groups, pairs, seed)
        self.records: list[Record] = []
        self._names = sorted(set(self.groups))
        self._means = _mean_matrix(self.groups, self._names)
        self._documents: Documents | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepDone) and (event.step == 1 or event.step % self.every == 0):
            self.record(event.model, epoch=event.epoch, step=event.step)

    @torch.no_grad()
    def record(self, model: Classifier, *, epoch: int, step: int) -> None:
        """Look at the model as it is now."""
        parameters, suffixes = parameters_of(model), output_names(model)
        if self._documents is None:
            self._documents = documents_of(self.corpus.train, model)
        moment = observe(parameters, self._documents)
        columns = score_columns(moment, suffixes) | term_columns(moment, suffixes)
        values = torch.stack([*columns.values()]).cpu()
        self.records.append(
            Record(
                epoch=epoch,
                step=step,
                model=_model_numbers(moment, suffixes),
                pairs=_pair_numbers(moment, self.pairs),
                columns=tuple(columns),
                groups=self._means @ values.T,
                tokens=values if self.keep_tokens else None,
            )
        )

    def tables(self) -> dict[str, pd.DataFrame]:
        """Tidy tables with columns epoch and step.

        `model`: loss, mean β, VᵀW, norms. `groups`: mean scores and terms of each group of tokens. `pairs`: Ω of each
        pair, its rate, and the rate for large λ (Eq. 46). `tokens`: scores and terms of each token, if they were kept.
        """
        tables: dict[str, Callable[[Record], pd.DataFrame]] = {
            "model": lambda record: pd.DataFrame([record.model]),
            "groups": self._group_table,
            "pairs": self._pair_table,
            **({"tokens": self._token_table} if self.keep_tokens else {}),
        }
        return {name: _joined(self.records, table) for name, table in tables.items()}

    def save(self, folder: Path | str) -> None:
        """Write every table to <name>.parquet in a folder."""
        for name, table in self.tables().items():
            write_table(Path(folder) / f"{name}.parquet", table)

    def _group_table(self, record: Record) -> pd.DataFrame:
        sizes = [self.groups.count(name) for name in self._names]
        means = pd.DataFrame(record.groups.numpy(), columns=list(record.columns))
        return in_front({"group": self._names, "tokens": sizes}, means)

    def _pair_table(self, record: Record) -> pd.DataFrame:
        names = self.corpus.vocabulary.tokens
        first, second = ([names[number] for number in column.tolist()] for column in self.pairs.unbind(1))
        numbers = {name: values.numpy() for name, values in record.pairs.items()}
        return pd.DataFrame({"kind": self.kinds, "first": first, "second": second, **numbers})

    def _token_table(self, record: Record) -> pd.DataFrame:
        assert record.tokens is not None
        values = pd.DataFrame(record.tokens.T.numpy(), columns=list(record.columns))
        return in_front({"token": list(self.corpus.vocabulary.tokens), "group": self.groups}, values)


def _joined(records: Sequence[Record], table: Callable[[Record], pd.DataFrame]) -> pd.DataFrame:
    """The tables of all records below each other, each with its epoch and step in front."""
    parts = [in_front({"epoch": record.epoch, "step": record.step}, table(record)) for record in records]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _model_numbers(moment: Moment, suffixes: Sequence[str]) -> dict[str, float]:
    columns = _spread({name: values[None] for name, values in summary(moment).items()}, suffixes)
    return {name: float(value) for name, value in columns.items()}


def _pair_numbers(moment: Moment, pairs: Int[Tensor, "pairs 2"]) -> dict[str, Float[Tensor, " pairs"]]:
    there = pairs.to(moment.rho.device)
    terms = dot_product_terms(moment, there)
    omega = dot_products(moment.parameters.embedding, there)
    return {"omega": omega.cpu(), "rate": sum_of(terms.values()).cpu(), "rate_approximate": terms["B"].cpu()}


def _find_pairs(
    corpus: Corpus, groups: Sequence[str], pairs: Pairs, seed: int
) -> tuple[list[str], Int[Tensor, "pairs 2"]]:
    """The chosen pairs by number, or drawn ones, and the kind of each."""
    if isinstance(pairs, int):
        return sample_pairs(groups, pairs, seed)
    number = corpus.vocabulary.number
    chosen = torch.tensor([[number(first), number(second)] for first, second in pairs], dtype=torch.int64).reshape(
        -1, 2
    )
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
        same = first == second
        drawn.append((_within if same else _between)(members[first], members[second], count, rng))
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


def _within(members: Places, _same: Places, count: int, rng: np.random.Generator) -> Places:
    """Number n stands for the pair (i, k), k < i, with n = i (i − 1) / 2 + k."""
    possible = len(members) * (len(members) - 1) // 2
    numbers = rng.choice(possible, min(count, possible), replace=False) if possible else np.zeros(0, dtype=np.int64)
    larger = ((1 + np.sqrt(1 + 8.0 * numbers)) / 2).astype(np.int64)
    return np.stack([members[numbers - larger * (larger - 1) // 2], members[larger]], 1)


def _rank(group: str) -> tuple[int, str]:
    """Groups in the order of the paper: positive, negative (or the classes by name), neutral, none."""
    return {"positive": 0, "negative": 1, "neutral": 3, "none": 4}.get(group, 2), group


def _mean_matrix(groups: Sequence[str], names: Sequence[str]) -> Float[Tensor, "groups vocab"]:
    """A row for each group that takes the mean over its tokens."""
    place = {name: number for number, name in enumerate(names)}
    member = torch.nn.functional.one_hot(torch.tensor([place[group] for group in groups]), len(names)).double()
    return (member / member.sum(0)).T.contiguous()
