"""Tokens as the corpus sees them (counts, association, group) and as the model sees them (attention, polarity)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import InputError
from heedful.text.corpus import Corpus
from heedful.text.ragged import segments_of
from heedful.traces import Trace

POSITIVE, NEGATIVE, NEUTRAL, NONE = "positive", "negative", "neutral", "none"


@dataclass(frozen=True, kw_only=True)
class GroupRule:
    """When a token belongs to a class, to none, or to both alike (Sun & Lu 2020, section 5).

    Two classes, with counts f⁺ and f⁻ and γ = (f⁺ − f⁻) / (f⁺ + f⁻): positive if γ > `association` and f⁺ > `count`,
    negative likewise, neutral if |γ| < `neutral_association` and |f⁺ − f⁻| < `neutral_difference`.
    More classes: a class if its share of the occurrences exceeds `share` and its count exceeds `count`; neutral if all
    shares lie within `neutral_share` of 1/K. `min_count` asks neutral tokens for that many occurrences in all.

    Differs from the paper: γ = ±1 is included, as its published group sizes need, although it prints open intervals.
    """

    association: float = 0.5
    count: int = 5
    neutral_association: float = 0.1
    neutral_difference: int = 5
    share: float = 0.75
    neutral_share: float = 0.1
    min_count: int = 1


def class_counts(
    tokens: Int[Tensor, " units"], classes: Int[Tensor, " units"], *, vocabulary_size: int, class_count: int
) -> Int[Tensor, "vocab classes"]:
    """How often each token occurs in documents of each class."""
    cells = torch.bincount(tokens * class_count + classes, minlength=vocabulary_size * class_count)
    return cells.view(vocabulary_size, class_count)


def training_counts(corpus: Corpus) -> Int[Tensor, "vocab classes"]:
    """How often each token of the vocabulary occurs in training documents of each class."""
    train = corpus.train
    classes = train.labels[segments_of(train.offsets)]
    return class_counts(
        train.tokens.numbers, classes, vocabulary_size=len(corpus.vocabulary), class_count=corpus.classes
    )


def associations(counts: Int[Tensor, "vocab classes"]) -> Float[Tensor, " vocab"]:
    """γ = (f⁺ − f⁻) / (f⁺ + f⁻) for two classes (Eq. 28), the largest class share for more; NaN for unseen tokens."""
    exact = counts.double()
    if counts.shape[1] == 2:
        return (exact[:, 1] - exact[:, 0]) / exact.sum(1)
    return exact.amax(1) / exact.sum(1)


def token_groups(
    counts: Int[Tensor, "vocab classes"], class_names: Sequence[str], rule: GroupRule | None = None
) -> list[str]:
    """The group of each token: positive, negative, neutral, none; with more than two classes a class name."""
    chosen = rule or GroupRule()
    groups = np.full(len(counts), NONE, dtype=object)
    groups[_neutral(counts, chosen)] = NEUTRAL
    for name, members in _members(counts, class_names, chosen).items():
        groups[members] = name
    return list(groups)


def _members(counts: Tensor, class_names: Sequence[str], rule: GroupRule) -> dict[str, np.ndarray]:
    if counts.shape[1] == 2:
        gamma = associations(counts)
        return {
            POSITIVE: ((gamma > rule.association) & (counts[:, 1] > rule.count)).numpy(),
            NEGATIVE: ((gamma < -rule.association) & (counts[:, 0] > rule.count)).numpy(),
        }
    shares = counts / counts.sum(1, keepdim=True)
    wanted = (shares > rule.share) & (counts > rule.count)
    return {group_of_class(name): wanted[:, number].numpy() for number, name in enumerate(class_names)}


def group_of_class(name: str) -> str:
    """The name of the group of a class's own tokens: the class's, unless that already means something else."""
    return f"{name} (class)" if name in {NEUTRAL, NONE} else name


def _neutral(counts: Tensor, rule: GroupRule) -> np.ndarray:
    total = counts.sum(1)
    if counts.shape[1] == 2:
        even = (associations(counts).abs() < rule.neutral_association) & (
            (counts[:, 1] - counts[:, 0]).abs() < rule.neutral_difference
        )
    else:
        shares = counts / total[:, None]
        even = ((shares - 1 / counts.shape[1]).abs() < rule.neutral_share).all(1)
    mask: np.ndarray = (even & (total >= rule.min_count)).numpy()
    return mask


def token_table(
    vocabulary: Trace, counts: Int[Tensor, "vocab classes"], *, rule: GroupRule | None = None
) -> pd.DataFrame:
    """One row per token of a vocabulary trace: counts per class, association, group, polarity, attention."""
    if vocabulary.units is None or len(vocabulary) != int(vocabulary.offsets[-1]):
        raise InputError("A vocabulary trace has one named unit per instance.")
    names = vocabulary.class_names
    table = pd.DataFrame({"token": list(vocabulary.units)})
    for number, name in enumerate(names):
        table[f"count_{name}"] = counts[:, number].numpy()
    table["association"] = associations(counts).numpy()
    table["group"] = token_groups(counts, names, rule)
    for column, values in polarity_columns(vocabulary.polarity_scores, names).items():
        table[column] = values.numpy()
    table["attention"] = vocabulary.attention_scores.numpy()
    return table


def polarity_columns(
    scores: Float[Tensor, "units classes"], class_names: Sequence[str]
) -> dict[str, Float[Tensor, " units"]]:
    """`polarity` towards the second of two classes, or `polarity_<class>` for each of more."""
    if len(class_names) == 2:
        return {"polarity": scores[:, 1] - scores[:, 0]}
    return {f"polarity_{name}": scores[:, number] for number, name in enumerate(class_names)}


def mean_weights(
    trace: Trace, tokens: Int[Tensor, " units"], vocabulary: Sequence[str], groups: Sequence[str]
) -> pd.DataFrame:
    """The mean attention weight of each token that occurs in the traced text (Sun & Lu 2020, Figure 5)."""
    sums = torch.zeros(len(vocabulary), dtype=torch.float64).index_add_(0, tokens, trace.attention_weights)
    counts = torch.bincount(tokens, minlength=len(vocabulary))
    seen = counts.nonzero().squeeze(1).tolist()
    return pd.DataFrame(
        {
            "token": [vocabulary[number] for number in seen],
            "group": [groups[number] for number in seen],
            "occurrences": counts[seen].numpy(),
            "weight": (sums[seen] / counts[seen]).numpy(),
        }
    )
