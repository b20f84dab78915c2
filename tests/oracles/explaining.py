"""Explanations by loops: units taken away one set at a time, and a BERT looked into position by position.

Nothing of this is shared with the package or with the library.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import torch
from torch import Tensor

from tests.oracles.transformer_passes import BERT, HEADS, State, embedded, gelu, layer_norm, linear

Say = Callable[[Sequence[str]], float]
"""From the words that are there to the probability of the class."""

Matrix = list[list[float]]


def leave_one_out(say: Say, words: Sequence[str]) -> list[float]:
    return [say(words) - say([*words[:i], *words[i + 1 :]]) for i in range(len(words))]


def occlusion(say: Say, words: Sequence[str], width: int) -> list[float]:
    width = min(width, len(words))
    starts = range(len(words) - width + 1)
    drops = {start: say(words) - say([*words[:start], *words[start + width :]]) for start in starts}
    found = []
    for i in range(len(words)):
        own = [drops[start] for start in starts if start <= i < start + width]
        found.append(sum(own) / len(own))
    return found


def shapley(say: Say, words: Sequence[str]) -> list[float]:
    """The mean over all orders."""
    gains = [0.0] * len(words)
    orders = list(permutations(range(len(words))))
    for order in orders:
        for place, i in enumerate(order):
            before = sorted(order[:place])
            with_i = sorted([*before, i])
            gains[i] += say([words[j] for j in with_i]) - say([words[j] for j in before])
    return [gain / len(orders) for gain in gains]


def product(left: Matrix, right: Matrix) -> Matrix:
    count = len(left)
    return [[sum(left[i][k] * right[k][j] for k in range(count)) for j in range(count)] for i in range(count)]


def rollout(layers: Sequence[Matrix]) -> Matrix:
    """Â_L ⋯ Â_1 with Â = ½ (A + I)."""
    count = len(layers[0])
    found = [[float(i == j) for j in range(count)] for i in range(count)]
    for layer in layers:
        mixed = [[(layer[i][j] + (i == j)) / 2 for j in range(count)] for i in range(count)]
        found = product([[value / sum(row) for value in row] for row in mixed], found)
    return found


@dataclass(frozen=True)
class Block:
    """What happened in one block: attention by head, values by head, what the block put out."""

    attention: list[Matrix]
    values: list[list[Tensor]]
    out: list[Tensor]


def bert_blocks(state: State, numbers: Sequence[int], layers: int = 2) -> list[Block]:
    x = embedded(state, "bert.embeddings", numbers)
    found = []
    for layer in range(layers):
        found.append(bert_block(state, layer, x))
        x = found[-1].out
    return found


def bert_block(state: State, layer: int, x: Sequence[Tensor], without: int | None = None) -> Block:
    """One block of BERT; the value vector of one position may be zero."""
    query, key, value, out, norm, up, down, last = (f"bert.encoder.layer.{layer}.{name}" for name in BERT)
    q, k, v = ([linear(state, name, one) for one in x] for name in (query, key, value))
    if without is not None:
        v[without] = torch.zeros_like(v[without])
    attention, values, mixed = [], [], [torch.zeros(0).double() for _ in x]
    for head in range(HEADS):
        keys, own = ([one.chunk(HEADS)[head] for one in vectors] for vectors in (k, v))
        rows = []
        for i, one in enumerate(q):
            mine = one.chunk(HEADS)[head]
            strengths = [math.exp(float(mine @ other) / math.sqrt(len(mine))) for other in keys]
            rows.append([strength / sum(strengths) for strength in strengths])
            heard = sum((weight * vector for weight, vector in zip(rows[-1], own, strict=True)), torch.zeros(()))
            mixed[i] = torch.cat([mixed[i], heard])
        attention.append(rows)
        values.append(own)
    y = [layer_norm(state, norm, one + linear(state, out, more)) for one, more in zip(x, mixed, strict=True)]
    z = [layer_norm(state, last, one + linear(state, down, gelu(linear(state, up, one)))) for one in y]
    return Block(attention=attention, values=values, out=z)


def heads_mean(block: Block) -> Matrix:
    count = len(block.out)
    return [[sum(head[i][j] for head in block.attention) / HEADS for j in range(count)] for i in range(count)]


def norms(state: State, layer: int, block: Block, position: int) -> list[float]:
    """‖Σ_h α_h v_h W_h‖ for each piece that one position attends to."""
    weight = state[f"bert.encoder.layer.{layer}.attention.output.dense.weight"]
    size = weight.shape[1] // HEADS
    found = []
    for j in range(len(block.out)):
        total = torch.zeros(len(weight)).double()
        for head in range(HEADS):
            part = weight[:, head * size : (head + 1) * size]
            total = total + block.attention[head][position][j] * (part @ block.values[head][j])
        found.append(math.sqrt(sum(float(value) ** 2 for value in total)))
    return found


def value_zeroing(state: State, numbers: Sequence[int], layer: int) -> Matrix:
    """How far each position turns for each value that is zero, rows of sum one."""
    x = embedded(state, "bert.embeddings", numbers)
    for earlier in range(layer):
        x = bert_block(state, earlier, x).out
    usual, count = bert_block(state, layer, x).out, len(x)
    others = [bert_block(state, layer, x, without=j).out for j in range(count)]
    rows = [[1 - cosine(usual[i], others[j][i]) for j in range(count)] for i in range(count)]
    return [[value / sum(row) for value in row] for row in rows]


def cosine(one: Tensor, other: Tensor) -> float:
    return float(one @ other) / math.sqrt(float(one @ one) * float(other @ other))
