"""Which tokens belong to a class beyond chance.

Of thousands of words some stand mostly in texts of one class by accident, above all rare ones and those that one text
repeats. A test for each word, corrected for how many are tested, tells the others from them.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy import special, stats
from torch import Tensor

FALSE_DISCOVERIES = 0.05
"""Of the words that are said to belong to a class beyond chance, at most so many do by chance, in expectation."""


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
    found = np.zeros(len(counts), dtype=bool)
    if tested.any():
        some = (counts.double().numpy()[tested], effective.numpy()[tested], owners.numpy()[tested])
        found[tested] = stats.false_discovery_control(_chances(*some, _sizes(counts))) <= FALSE_DISCOVERIES
    return torch.from_numpy(found)


def _sizes(counts: Int[Tensor, "vocab classes"]) -> np.ndarray:
    sizes: np.ndarray = (counts.sum(0).double() / counts.sum()).numpy()
    return sizes


def _chances(counts: np.ndarray, effective: np.ndarray, owners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    rows = np.arange(len(counts))
    hits = counts[rows, owners] / counts.sum(1) * effective
    tails = special.betainc(np.maximum(hits, 1e-12), effective - hits + 1, sizes[owners])
    chances: np.ndarray = np.where(owners < 0, 1.0, np.minimum(tails * len(sizes), 1.0))
    return chances
