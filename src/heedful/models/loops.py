"""The inner loops of training without a contextual encoder, compiled for the CPU.

Each is the plain loop over occurrences that its formula says. Compiled, it reads every embedding row where it lies and
writes where the result belongs; the same by tensor operations needs several copies of the rows, and a dozen calls.
"""

import math
from typing import no_type_check

import numpy as np

from heedful.compiled import compiled


@compiled
@no_type_check
def find_distinct(tokens, vocabulary_size):
    """The distinct tokens in ascending order, and for every unit its place among them."""
    place = np.full(vocabulary_size, -1)
    for j in range(len(tokens)):
        place[tokens[j]] = 0
    distinct = np.empty(min(vocabulary_size, len(tokens)), np.int64)
    count = 0
    for token in range(vocabulary_size):
        if place[token] == 0:
            distinct[count] = token
            place[token] = count
            count += 1
    index = np.empty(len(tokens), np.int64)
    for j in range(len(tokens)):
        index[j] = place[tokens[j]]
    return distinct[:count], index


@compiled
@no_type_check
def pool(hidden, scores, index, offsets, weights, pooled):
    """α = softmax of the scores in each document into `weights`, Σ α_j h_j added to `pooled`."""
    for t in range(len(offsets) - 1):
        begin, end = offsets[t], offsets[t + 1]
        largest = -np.inf
        for j in range(begin, end):
            largest = max(largest, scores[index[j]])
        total = 0.0
        for j in range(begin, end):
            weights[j] = math.exp(scores[index[j]] - largest)
            total += weights[j]
        sums = pooled[t]
        for j in range(begin, end):
            weights[j] /= total
            weight, row = weights[j], hidden[index[j]]
            for k in range(len(row)):
                sums[k] += weight * row[k]


@compiled
@no_type_check
def pool_backward(hidden, index, offsets, weights, pooled, g, hidden_gradient, scores_gradient):
    """α_j g_t added to the gradient of h_e, α_j (h_e − h_t)ᵀ g_t to that of a_e, for every occurrence j of e."""
    for t in range(len(offsets) - 1):
        gradient = g[t]
        mean = dot(pooled[t], gradient)
        for j in range(offsets[t], offsets[t + 1]):
            e, weight = index[j], weights[j]
            scores_gradient[e] += weight * (dot(hidden[e], gradient) - mean)
            sums = hidden_gradient[e]
            for k in range(len(sums)):
                sums[k] += weight * gradient[k]


@compiled
@no_type_check
def dot(left, right):
    total = left[0] * right[0]
    for k in range(1, len(left)):
        total += left[k] * right[k]
    return total


@compiled
@no_type_check
def adagrad_rows(table, sums, gradient, rows, rate, epsilon):
    """S ← S + g², θ ← θ − rate · g / (√S + ε), in the given rows of the table."""
    for i in range(len(rows)):
        values, squares, g = table[rows[i]], sums[rows[i]], gradient[i]
        for k in range(len(g)):
            squares[k] += g[k] * g[k]
            values[k] -= rate * g[k] / (math.sqrt(squares[k]) + epsilon)


@compiled
@no_type_check
def coins(words, kept, mask):
    """Each entry of the mask by one bit of the 32-bit words: `kept` or 0."""
    for w in range(len(words)):
        word, entries = words[w], mask[32 * w : 32 * w + 32]
        for s in range(len(entries)):
            entries[s] = kept * np.float32(np.int32(word >> np.int32(s)) & np.int32(1))


@compiled
@no_type_check
def dice(drawn, least, kept, mask):
    """Each entry of the mask by one number: `kept` where it is at least `least`, else 0."""
    for i in range(len(mask)):
        mask[i] = kept if drawn[i] >= least else np.float32(0)
