"""Pairs of tokens during training: the dot products of their vectors and the rates at which they change.

Sun & Lu 2020, supplement B.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.dynamics import Moment, sum_of

Places = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

SHORT_NAMES: Mapping[str, str] = {"positive": "pos", "negative": "neg", "neutral": "neu"}


def dot_products(vectors: Float[Tensor, "vocab features"], pairs: Int[Tensor, "pairs 2"]) -> Float[Tensor, " pairs"]:
    """Ω_ik = e_iᵀe_k of chosen tokens (supplement B); of hidden vectors for the affine model's figure 8b."""
    return (vectors[pairs[:, 0]] * vectors[pairs[:, 1]]).sum(1)


def dot_product_terms(moment: Moment, pairs: Int[Tensor, "pairs 2"]) -> dict[str, Float[Tensor, " pairs"]]:
    """dΩ_ik/dτ = −(∂ℓ/∂e_i)ᵀe_k − (∂ℓ/∂e_k)ᵀe_i = A + B (Eq. 43), each the sum of both directions of Eq. 44,

        A_ik = ρ(e_i) a_k / m      B_ik = π(e_i)ᵀs_k / m

    with (∂a_i/∂h_i)ᵀh_k in the place of a_k for additive scores. B alone is Eq. 46, the rate for large λ.

    Differs from the paper: in Eq. 44 the A term is divided by λ once more although a_k already is; 45 and 46 lack 1/m.
    """
    first, second = pairs.unbind(1)
    directions = ((first, second), (second, first))
    slopes = moment.tokens.slopes.expand(len(moment.rho), -1)
    hidden, scale = moment.tokens.hidden, moment.parameters.score_scale
    a = sum_of([moment.rho[i] * (slopes[i] * hidden[k]).sum(1) for i, k in directions]) / scale
    b = sum_of([(moment.pi[i] * moment.polarity_scores[k]).sum(1) for i, k in directions])
    return {"A": a / len(moment), "B": b / len(moment)}


def sample_pairs(groups: Sequence[str], count: int, seed: int) -> tuple[list[str], Int[Tensor, "pairs 2"]]:
    """Up to `count` distinct pairs of distinct tokens for every two groups, and the kind of each.

    `groups` has the group of each token. Tokens of the group `none` are left out.
    """
    array = np.array(groups, dtype=object)
    members = {name: np.flatnonzero(array == name) for name in sorted(set(groups) - {"none"}, key=_rank)}
    rng = np.random.default_rng(seed)
    drawn: list[Places] = [np.zeros((0, 2), dtype=np.int64)]
    for first, second in combinations_with_replacement(members, 2):
        draw = _pairs_within if first == second else _pairs_between
        drawn.append(draw(members[first], members[second], count, rng))
    pairs = torch.as_tensor(np.concatenate(drawn))
    return pair_kinds(groups, pairs), pairs


def pair_kinds(groups: Sequence[str], pairs: Int[Tensor, "pairs 2"]) -> list[str]:
    """pos-pos, neg-neg, pos-neg, pos-neu, neg-neu or neu-neu; with more than two classes their names."""
    named = [sorted((groups[first], groups[second]), key=_rank) for first, second in pairs.tolist()]
    return ["-".join(SHORT_NAMES.get(name, name) for name in pair) for pair in named]


def _pairs_between(first: Places, second: Places, count: int, rng: np.random.Generator) -> Places:
    possible = len(first) * len(second)
    numbers = rng.choice(possible, min(count, possible), replace=False)
    return np.stack([first[numbers // len(second)], second[numbers % len(second)]], 1)


def _pairs_within(members: Places, _same: Places, count: int, rng: np.random.Generator) -> Places:
    """Number n stands for the pair (i, k), k < i, with n = i (i − 1) / 2 + k."""
    possible = len(members) * (len(members) - 1) // 2
    numbers = rng.choice(possible, min(count, possible), replace=False) if possible else np.zeros(0, dtype=np.int64)
    larger = ((1 + np.sqrt(1 + 8.0 * numbers)) / 2).astype(np.int64)
    return np.stack([members[numbers - larger * (larger - 1) // 2], members[larger]], 1)


def _rank(group: str) -> tuple[int, str]:
    """Groups in the order of the paper: positive, negative (or the classes by name), neutral, none."""
    return {"positive": 0, "negative": 1, "neutral": 3, "none": 4}.get(group, 2), group
