"""What words get and what they do, over many texts of any reading: the attention on them, and what goes without them.

The analogue of token scores for a model that can only be asked. The attention of a word is its share of a text's
attention over an even share; what it does is how the output moves when it is taken away alone. To ask whether the two
go together, attention is taken from one half of the texts and what words do from the other.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.tokens import corpus_groups, weights_of_tokens
from heedful.subjects import Reading, Units
from heedful.text.corpus import Corpus
from heedful.text.ragged import offsets_of, segment_sum
from heedful.traces import polarity_columns

EACH = 4
"""So many occurrences of a word are taken away at most in each half of the texts."""

SEEN = 2
"""A word must occur so often in each half of the texts to be compared."""

UNKNOWN = 0


@dataclass(frozen=True, kw_only=True)
class Words:
    """Words of some texts.

    table: one row per word that occurs: token, count_<class>, group, beyond_chance, count, even (what the training
        split says, as in token scores); occurrences here; removed (how many of them were taken away), effect (how far
        the output moves then: total variation, in the mean) and polarity (how much probability goes then from the
        second of two classes; of more `polarity_<class>`); where attention is known weight, lift (over an even share)
        and `lift_apart`, `effect_apart`: attention in one half of the texts, effect in the other.
    passes: how many changed texts were asked about.
    """

    table: pd.DataFrame
    passes: int


def word_numbers(units: Units, corpus: Corpus) -> Int[Tensor, " units"]:
    """The number in the corpus's vocabulary of each unit; 0 where it is not one token of it."""
    names = list(units.shown)
    distinct = list(dict.fromkeys(names))
    found = corpus.tokenizer.encode(distinct, corpus.vocabulary)
    lengths = torch.diff(found.offsets)
    numbers = torch.full((len(distinct),), UNKNOWN)
    alone = lengths == 1
    numbers[alone] = found.numbers[found.offsets[:-1][alone]]
    place = dict(zip(distinct, numbers.tolist(), strict=True))
    return torch.tensor([place[name] for name in names])


def shares(scores: Float[Tensor, " units"], units: Units) -> Float[Tensor, " units"]:
    """Scores that are not negative as shares of their text's; an even share where all are zero."""
    kept = scores.clamp(min=0)
    sums, even = segment_sum(kept, units.offsets)[units.segments], 1 / units.lengths[units.segments].double()
    return torch.where(sums > 0, kept / sums.where(sums > 0, 1.0), even)


def measure_words(
    reading: Reading,
    corpus: Corpus,
    attention: Float[Tensor, " units"] | None = None,
    *,
    classes: Int[Tensor, " classes"],
    how: str,
    most: int,
    seed: int = 0,
) -> Words:
    """What each word of the texts gets and does.

    classes: for each class of the corpus its number in the reading.
    attention: of each unit, not negative; None where there is none.
    how: how words are taken away.
    most: so many occurrences are taken away at most; which ones the seed draws. Words that belong to a class beyond
        chance come first, then words that are seen often enough in both halves of the texts.
    """
    numbers, scored = word_numbers(reading.units, corpus), corpus_groups(corpus)
    known = (numbers != UNKNOWN).nonzero().squeeze(1)
    halves = reading.units.segments % 2
    chosen = _chosen(numbers, halves, scored, most, np.random.default_rng(seed))
    moved = _moved(reading, chosen, how)[:, classes]
    weights = torch.full((len(numbers),), torch.nan).double() if attention is None else shares(attention, reading.units)
    lengths = reading.units.lengths[reading.units.segments]
    table = weights_of_tokens(weights[known], lengths[known], numbers[known], scored)
    columns = ["token", *(f"count_{name}" for name in corpus.class_names)]
    table = scored[columns].merge(table, on="token")
    removed = _by_word(numbers[chosen], scored, _effects(moved, corpus.class_names))
    first, second = known[halves[known] == 0], halves[chosen] == 1
    apart = {
        "lift_apart": _mean_by(numbers[first], (weights * lengths)[first], len(scored)),
        "effect_apart": _mean_by(numbers[chosen[second]], moved[second].clamp(min=0).sum(1), len(scored)),
    }
    rows = scored["token"].to_frame().assign(**apart)
    kept = table.merge(removed, on="token", how="left").merge(rows, on="token", how="left")
    kept["removed"] = kept["removed"].fillna(0).astype(int)
    nothing = ["weight", "lift", "lift_apart"] if attention is None else []
    return Words(table=kept.drop(columns=["group_by_counts", *nothing]), passes=len(chosen))


def _chosen(
    numbers: Int[Tensor, " units"],
    halves: Int[Tensor, " units"],
    scored: pd.DataFrame,
    most: int,
    rng: np.random.Generator,
) -> Int[Tensor, " chosen"]:
    """The units that are taken away alone: some occurrences of the words that can tell something."""
    units = pd.DataFrame({"unit": np.arange(len(numbers)), "number": numbers.numpy(), "half": halves.numpy()})
    units = units[units["number"] != UNKNOWN].iloc[rng.permutation(int((numbers != UNKNOWN).sum()))]
    rank = units.groupby(["number", "half"]).cumcount()
    sizes = units.groupby(["number", "half"]).size().unstack(fill_value=0).reindex(columns=[0, 1], fill_value=0)
    often = set(sizes.index[(sizes >= SEEN).all(axis=1)])
    own = set(np.flatnonzero(scored["beyond_chance"].to_numpy()))
    classes = [0 if number in own else 1 if number in often else 2 for number in units["number"]]
    kept = units.assign(first=classes, word=rng.permutation(len(scored))[units["number"]])[rank < EACH]
    ordered = kept[kept["first"] < 2].sort_values(["first", "word"], kind="stable")
    return torch.from_numpy(np.sort(ordered["unit"].to_numpy()[:most]))


def _moved(reading: Reading, units: Int[Tensor, " chosen"], how: str) -> Float[Tensor, "chosen classes"]:
    """What each class loses when a unit is taken away alone."""
    rows = reading.units.segments[units]
    starts = offsets_of(reading.units.lengths[rows])
    gone = torch.zeros(int(starts[-1]), dtype=torch.bool)
    gone[starts[:-1] + units - reading.units.offsets[rows]] = True
    return (reading.probabilities[rows] - reading.without(rows, gone, how)).double()


def _effects(moved: Float[Tensor, "chosen classes"], names: tuple[str, ...]) -> dict[str, Float[Tensor, " chosen"]]:
    """How far the output moves, Σ max(0, Δp), and what goes from each class."""
    return {"effect": moved.clamp(min=0).sum(1), **polarity_columns(_towards(moved), names)}


def _towards(moved: Float[Tensor, "chosen classes"]) -> Float[Tensor, "chosen classes"]:
    """Of two classes what goes from the second, in both columns' terms: (0, Δp)."""
    if moved.shape[1] != 2:
        return moved
    return torch.stack([torch.zeros_like(moved[:, 1]), moved[:, 1]], 1)


def _by_word(
    numbers: Int[Tensor, " chosen"], scored: pd.DataFrame, values: dict[str, Float[Tensor, " chosen"]]
) -> pd.DataFrame:
    """The mean of each column over the occurrences of a word, and how many these are."""
    table = pd.DataFrame({name: column.numpy() for name, column in values.items()})
    grouped = table.groupby(scored["token"].to_numpy()[numbers.numpy()])
    found = grouped.mean().assign(removed=grouped.size())
    return found.rename_axis("token").reset_index()


def _mean_by(numbers: Int[Tensor, " some"], values: Float[Tensor, " some"], size: int) -> np.ndarray:
    """The mean over the units of each word; not a number where it has none, or fewer than are compared."""
    counts = torch.bincount(numbers, minlength=size)
    sums = torch.zeros(size, dtype=torch.float64).index_add_(0, numbers, values.double())
    return (sums / counts.where(counts >= SEEN, torch.nan)).numpy()
