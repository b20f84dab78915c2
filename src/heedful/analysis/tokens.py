"""Tokens as the corpus sees them (counts, association, group) and as the model sees them (attention, polarity).

Of thousands of words some stand mostly in texts of one class by accident, above all rare ones and those that one text
repeats. A test for each word, corrected for how many are tested, tells the others from them (`beyond_chance`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from scipy import special, stats
from torch import Tensor

from heedful.errors import InputError
from heedful.text.corpus import Corpus
from heedful.text.ragged import segments_of
from heedful.traces import Trace, polarity_columns

POSITIVE, NEGATIVE, NEUTRAL, NONE = "positive", "negative", "neutral", "none"

Measure = Literal["rates", "counts"]
"""What a token's association is made of: how often a class uses it, or how often it occurs there."""

SMALLEST_CLASS = 0.1
"""Of several classes one with less than this share of a mean class's tokens has rates too rough to compare."""

FALSE_DISCOVERIES = 0.05
"""Of the words that are said to belong to a class beyond chance, at most so many do by chance, in expectation."""


@dataclass(frozen=True, kw_only=True)
class GroupRule:
    """When a token belongs to a class, to none, or to both alike (Sun & Lu 2020, section 5).

    `by` rates, with r_k the share of the tokens of class k that the token takes: γ = (r⁺ − r⁻) / (r⁺ + r⁻), class
    shares r_k / Σ r_j, and counts as a sample would have them in which the other classes are as large as the token's
    own, f_k · min(1, T_others / T_k) with T the tokens of a class: nineteen occurrences in a class that is nineteen
    times as large say no more than one. Class sizes and the lengths of texts move none of these, and where classes are
    equally large they are the paper's. `by` counts, the paper's own: γ = (f⁺ − f⁻) / (f⁺ + f⁻) and shares f_k / Σ f_j.

    Two classes: positive if γ > `association` and f⁺ > `count`, negative likewise, neutral if |γ| <
    `neutral_association` and |f⁺ − f⁻| < `neutral_difference`. More classes: a class if its share exceeds `share` and
    its count exceeds `count`; neutral if all shares lie within `neutral_share` of 1/K. `min_count` asks neutral tokens
    for that many occurrences in all.

    Differs from the paper: γ = ±1 is included, as its published group sizes need, although it prints open intervals.
    """

    by: Measure = "rates"
    association: float = 0.5
    count: int = 5
    neutral_association: float = 0.1
    neutral_difference: int = 5
    share: float = 0.75
    neutral_share: float = 0.1
    min_count: int = 1


AS_PRINTED = GroupRule(by="counts")
"""The groups of the paper, which the reproductions of it show."""


def class_counts(
    tokens: Int[Tensor, " units"], classes: Int[Tensor, " units"], *, vocabulary_size: int, class_count: int
) -> Int[Tensor, "vocab classes"]:
    """How often each token occurs in documents of each class."""
    cells = torch.bincount(tokens * class_count + classes, minlength=vocabulary_size * class_count)
    return cells.view(vocabulary_size, class_count)


def training_counts(corpus: Corpus) -> Int[Tensor, "vocab classes"]:
    """How often each token of the vocabulary occurs in training documents of each class."""
    classes, sizes = corpus.train.labels[segments_of(corpus.train.offsets)], (len(corpus.vocabulary), corpus.classes)
    return class_counts(corpus.train.tokens.numbers, classes, vocabulary_size=sizes[0], class_count=sizes[1])


def training_effective_counts(corpus: Corpus) -> Float[Tensor, " vocab"]:
    """How many independent occurrences those of each token in the training split are worth; a text counts once."""
    texts, _ = pd.factorize(pd.Series(list(corpus.train.texts), dtype=object))
    documents = torch.from_numpy(texts.astype(np.int64))[segments_of(corpus.train.offsets)]
    return effective_counts(corpus.train.tokens.numbers, documents, vocabulary_size=len(corpus.vocabulary))


def associations(counts: Int[Tensor, "vocab classes"], by: Measure = "rates") -> Float[Tensor, " vocab"]:
    """γ for two classes (Eq. 28), the largest class share for more; NaN for unseen tokens."""
    found = _comparable(counts, by)
    return ((found[:, 1] - found[:, 0]) if counts.shape[1] == 2 else found.amax(1)) / found.sum(1)


def token_groups(
    counts: Int[Tensor, "vocab classes"], class_names: Sequence[str], rule: GroupRule | None = None
) -> list[str]:
    """The group of each token: positive, negative, neutral, none; with more than two classes a class name."""
    chosen = rule or GroupRule()
    groups = np.full(len(counts), NONE, dtype=object)
    groups[_neutral(counts, chosen)] = NEUTRAL
    for name, members in zip(class_groups(class_names), _members(counts, chosen).T, strict=True):
        groups[members.numpy()] = name
    return list(groups)


def words_of_a_class(corpus: Corpus) -> Bool[Tensor, " vocab"]:
    """Which tokens belong to a class in the training split."""
    groups = token_groups(training_counts(corpus), corpus.class_names)
    return torch.tensor([group not in {NEUTRAL, NONE} for group in groups])


def _comparable(counts: Int[Tensor, "vocab classes"], by: Measure) -> Float[Tensor, "vocab classes"]:
    """Counts, or numbers in proportion to rates: counts in samples of the classes that are as large as the smallest.

    Equally large classes keep their counts to the last bit; a class too small to compare has none.
    """
    if by == "counts":
        return counts.double()
    sizes, kept = counts.sum(0).double().clamp(min=1), compared_classes(counts)
    return counts * (sizes[kept].min() / sizes) * kept


def compared_classes(counts: Int[Tensor, "vocab classes"]) -> Bool[Tensor, " classes"]:
    """The classes with tokens enough to compare their rates; of two classes both."""
    sizes = counts.sum(0).double()
    return sizes >= SMALLEST_CLASS * sizes.mean() if len(sizes) > 2 else torch.ones_like(sizes, dtype=torch.bool)


def _weighed(counts: Int[Tensor, "vocab classes"], by: Measure) -> Float[Tensor, "vocab classes"]:
    """Counts as they would be if the other classes had as many tokens as the own one."""
    sizes = counts.sum(0).double()
    return counts * ((sizes.sum() - sizes) / sizes.clamp(min=1)).clamp(max=1) if by == "rates" else counts.double()


def _members(counts: Int[Tensor, "vocab classes"], rule: GroupRule) -> Bool[Tensor, "vocab classes"]:
    """Whether each token belongs to each class."""
    if counts.shape[1] == 2:
        gamma = associations(counts, rule.by)
        wanted = torch.stack([gamma < -rule.association, gamma > rule.association], 1)
    else:
        found = _comparable(counts, rule.by)
        wanted = found / found.sum(1, keepdim=True) > rule.share
    return wanted & (_weighed(counts, rule.by) > rule.count)


def class_groups(class_names: Sequence[str]) -> tuple[str, ...]:
    """The group of the tokens of each class."""
    return (NEGATIVE, POSITIVE) if len(class_names) == 2 else tuple(map(group_of_class, class_names))


def group_of_class(name: str) -> str:
    """The name of the group of a class's own tokens: the class's, unless that already means something else."""
    return f"{name} (class)" if name in {NEUTRAL, NONE} else name


def _neutral(counts: Tensor, rule: GroupRule) -> np.ndarray:
    neutral: np.ndarray = _even(counts, rule) & (counts.sum(1) >= rule.min_count).numpy()
    if counts.shape[1] == 2:
        weighed = _weighed(counts, rule.by)
        neutral &= ((weighed[:, 1] - weighed[:, 0]).abs() < rule.neutral_difference).numpy()
    return neutral


def _even(counts: Tensor, rule: GroupRule) -> np.ndarray:
    """Whether all classes use a token about alike; unseen tokens are none of them."""
    if counts.shape[1] == 2:
        even = associations(counts, rule.by).abs() < rule.neutral_association
    else:
        found = _comparable(counts, rule.by)
        found = found[:, compared_classes(counts)] if rule.by == "rates" else found
        shares = found / found.sum(1, keepdim=True)
        even = ((shares - 1 / shares.shape[1]).abs() < rule.neutral_share).all(1)
    return np.asarray(even)


def effective_counts(
    tokens: Int[Tensor, " units"], documents: Int[Tensor, " units"], *, vocabulary_size: int
) -> Float[Tensor, " vocab"]:
    """How many independent occurrences those of a token are worth: (Σ c)² / Σ c², with c those in one document.

    Kish's (1965) effective sample size: occurrences in documents of their own count fully, six in one document as one.
    """
    pairs, repeats = torch.unique(documents * vocabulary_size + tokens, return_counts=True)
    sums, squares = (
        torch.zeros(vocabulary_size, dtype=torch.float64).index_add_(0, pairs % vocabulary_size, values)
        for values in (repeats.double(), repeats.double() ** 2)
    )
    return sums**2 / squares.clamp(min=1)


def beyond_chance(
    counts: Int[Tensor, "vocab classes"],
    effective: Float[Tensor, " vocab"],
    owners: Int[Tensor, " vocab"],
    *,
    more_than: int,
) -> Bool[Tensor, " vocab"]:
    """Whether the class that a token is said to belong to uses it more than by chance; `owners` −1 belong to none.

    Without a class of its own each of a token's n occurrences falls into class k with the share p_k of all tokens that
    this class has, so that P(X ≥ x) = I_p(x, n − x + 1), with n the effective number and x the part of it in k. The
    probability counts times the number of classes (Bonferroni), that of a token which belongs to none is one, and
    Benjamini & Hochberg's (1995) procedure over all tokens with `more_than` so many occurrences keeps the share of
    false discoveries among those that are said to belong to a class.
    """
    tested = (counts.sum(1) > more_than).numpy()
    marks = np.zeros(len(counts), dtype=bool)
    if tested.any():
        sizes = (counts.sum(0).double() / counts.sum()).numpy()
        some = (counts.double().numpy()[tested], effective.numpy()[tested], owners.numpy()[tested])
        marks[tested] = stats.false_discovery_control(_chances(*some, sizes)) <= FALSE_DISCOVERIES
    return torch.from_numpy(marks)


def _chances(counts: np.ndarray, effective: np.ndarray, owners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    hits = counts[np.arange(len(counts)), owners] / counts.sum(1) * effective
    tails = special.betainc(np.maximum(hits, 1e-12), effective - hits + 1, sizes[owners])
    return np.asarray(np.where(owners < 0, 1.0, np.minimum(tails * len(sizes), 1.0)))


def token_table(
    vocabulary: Trace,
    counts: Int[Tensor, "vocab classes"],
    *,
    effective: Float[Tensor, " vocab"] | None = None,
    rule: GroupRule | None = None,
) -> pd.DataFrame:
    """One row per token of a vocabulary trace: counts per class, association, group, polarity, attention.

    `beyond_chance` says whether the token belongs to a class by more than accident; `effective` counts are the counts
    themselves if they are not given. `even` are tokens that all classes use about alike, however often, and often
    enough to tell. `association_by_counts` and `group_by_counts` are the paper's own, whatever the rule.
    """
    if vocabulary.units is None or len(vocabulary) != int(vocabulary.offsets[-1]):
        raise InputError("A vocabulary trace has one named unit per instance.")
    names = vocabulary.class_names
    table = group_table(vocabulary.units, names, counts, effective=effective, rule=rule)
    for column, values in polarity_columns(vocabulary.polarity_scores, names).items():
        table[column] = values.numpy()
    table["attention"] = vocabulary.attention_scores.numpy()
    return table


def group_table(
    tokens: Sequence[str],
    names: Sequence[str],
    counts: Int[Tensor, "vocab classes"],
    *,
    effective: Float[Tensor, " vocab"] | None = None,
    rule: GroupRule | None = None,
) -> pd.DataFrame:
    """What the corpus says of each token, without any model: the columns of `token_table` before the scores."""
    table = pd.DataFrame({"token": list(tokens)})
    for number, name in enumerate(names):
        table[f"count_{name}"] = counts[:, number].numpy()
    chosen = rule or GroupRule()
    table["association"] = associations(counts, chosen.by).numpy()
    table["group"] = token_groups(counts, names, chosen)
    worth = counts.sum(1).double() if effective is None else effective
    numbers = {name: number for number, name in enumerate(class_groups(names))}
    owners = torch.tensor([numbers.get(group, -1) for group in table["group"]], dtype=torch.int64)
    table["beyond_chance"] = beyond_chance(counts, worth, owners, more_than=chosen.count).numpy()
    table["count"] = counts.sum(1).numpy()
    table["even"] = _even(counts, chosen) & (table["count"] > chosen.count)
    table["association_by_counts"] = associations(counts, "counts").numpy()
    table["group_by_counts"] = token_groups(counts, names, replace(chosen, by="counts"))
    return table


def corpus_groups(corpus: Corpus) -> pd.DataFrame:
    """`group_table` of the training split of a corpus, a row per token of its vocabulary."""
    counts, effective = training_counts(corpus), training_effective_counts(corpus)
    return group_table(corpus.vocabulary.tokens, corpus.class_names, counts, effective=effective)


def as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A table of tokens whose groups and associations are those that the paper's definition gives, chance included."""
    names = ("association", "group")
    printed = {name: table[f"{name}_by_counts"] for name in names if f"{name}_by_counts" in table}
    return table.assign(**printed).drop(columns="beyond_chance", errors="ignore")


def mean_weights(trace: Trace, tokens: Int[Tensor, " units"], scored: pd.DataFrame) -> pd.DataFrame:
    """What attention each token of the vocabulary gets in the traced text, one row per token that occurs there.

    `weight` is its mean weight (Sun & Lu 2020, Figure 5). A weight is small where a text is long: `lift` is the mean
    of α_i · n, with n the units of the text, which is 1 for a unit that gets as much as every other.
    """
    return weights_of_tokens(trace.attention_weights, trace.lengths[trace.segments], tokens, scored)


def weights_of_tokens(
    weights: Float[Tensor, " units"],
    lengths: Int[Tensor, " units"],
    tokens: Int[Tensor, " units"],
    scored: pd.DataFrame,
) -> pd.DataFrame:
    """`mean_weights` of some units: the weight of each, how many units its text has, and which token it is."""
    counts = torch.bincount(tokens, minlength=len(scored))
    seen = counts.nonzero().squeeze(1)
    weight, lift = (
        torch.zeros(len(scored), dtype=torch.float64).index_add_(0, tokens, values)[seen] / counts[seen]
        for values in (weights, weights * lengths)
    )
    columns = ["token", "group", "beyond_chance", "count", "even", "group_by_counts"]
    kept = scored[columns].iloc[seen.numpy()].reset_index(drop=True)
    return kept.assign(occurrences=counts[seen].numpy(), weight=weight.numpy(), lift=lift.numpy())
