"""The inner loops of NAOPC's ends on traces, compiled: best sets of each size, chains made of them, all sets.

The area is 1/L Σ_k p − p_k: it is largest along the chain of sets whose p_k have the smallest sum, smallest along the
one with the largest. `end` is 1 for the first and −1 for the second; `c` are the scores of another class less those of
the class that is explained, times `end`, so that in both cases means of `c` are to be large.
"""

import math
from typing import no_type_check

import numpy as np

from heedful.compiled import compiled

ROUNDS = 200


@compiled
@no_type_check
def ends(start, stop, offsets, weights, polarity, bias, targets, certified, attained):
    """Of each text Σ_k p_k of the best chain and of the best sets: smallest sums in column 0, largest in 1."""
    for t in range(start, stop):
        own = slice(offsets[t], offsets[t + 1])
        for column in range(2):
            end = 1.0 - 2.0 * column
            counts, total = best_sets(weights[own], polarity[own], bias, targets[t], end)
            certified[t, column] = total
            found = improved(np.argsort(counts, kind="mergesort"), weights[own], polarity[own], bias, targets[t], end)
            if end * (found - total) > 1e-12:
                order = greedy(weights[own], polarity[own], bias, targets[t], end)
                other = improved(order, weights[own], polarity[own], bias, targets[t], end)
                found = other if end * other < end * found else found
            attained[t, column] = found


@compiled
@no_type_check
def best_sets(weights, polarity, bias, y, end):
    """In how many of the best remaining sets each unit is, and the sum over sizes of what no set can pass.

    For every size from large to small and every other class: the largest Σ α c / Σ α over the sets of that size, by
    Dinkelbach's iteration from that of the next larger size, which is never above it.
    """
    n, classes = polarity.shape
    counts, total = np.zeros(n), 0.0
    largest, c = np.empty((n, classes)), np.empty(n)
    for k in range(classes):
        if k == y:
            continue
        for i in range(n):
            c[i] = end * (polarity[i, k] - polarity[i, y])
        mean = np.sum(weights * c) / np.sum(weights)
        for size in range(n - 1, 0, -1):
            mean, chosen = best_mean(weights, c, size, mean)
            largest[size, k] = mean
            idle = weightless(weights, size)
            if mean < 0 and len(idle) == size:  # nothing of weight remains: the bias alone, which is better
                largest[size, k], chosen = 0.0, idle
            for i in chosen:
                counts[i] += 1
    for size in range(n):
        odds = 1.0
        for k in range(classes):
            if k != y:
                odds += math.exp(bias[k] - bias[y] + (end * largest[size, k] if size > 0 else 0.0))
        total += 1 / odds
    return counts, total


@compiled
@no_type_check
def weightless(weights, size):
    """The first units without any weight, as many as `size` at most."""
    found, count = np.empty(size, np.int64), 0
    for i in range(len(weights)):
        if weights[i] == 0 and count < size:
            found[count] = i
            count += 1
    return found[:count]


@compiled
@no_type_check
def best_mean(weights, c, size, mean):
    """The largest Σ α c / Σ α over the sets of a size, and the set; `mean` is not above it."""
    chosen = np.arange(size)
    for _ in range(ROUNDS):
        chosen = np.argsort(-weights * (c - mean), kind="mergesort")[:size]
        top, below = 0.0, 0.0
        for i in chosen:
            top += weights[i] * c[i]
            below += weights[i]
        if below <= 0 or top / below <= mean:
            break
        mean = top / below
    return mean, chosen


@compiled
@no_type_check
def probability(sums, total, bias, y):
    """p of the class when Σ α (z_k − z_y) and Σ α of what remains are these; the bias alone where nothing does."""
    odds = 1.0
    for k in range(len(bias)):
        if k != y:
            odds += math.exp(bias[k] - bias[y] + (sums[k] / total if total > 0 else 0.0))
    return 1 / odds


@compiled
@no_type_check
def improved(order, weights, polarity, bias, y, end):
    """Σ_k p_k along an order of removal after swapping neighbours as long as it helps."""
    best = chain(order, weights, polarity, bias, y)
    for _ in range(ROUNDS):
        before = best
        swap(order, weights, polarity, bias, y, end)
        best = chain(order, weights, polarity, bias, y)
        if end * (before - best) <= 1e-14:
            break
    return best


@compiled
@no_type_check
def swap(order, weights, polarity, bias, y, end):
    """One pass over the order from its end: of two neighbours that one remains longer with which p is better."""
    n, classes = polarity.shape
    rest, total = np.zeros(classes), 0.0
    one, other = np.empty(classes), np.empty(classes)
    for j in range(n - 2, -1, -1):
        i, kept = order[j], order[j + 1]
        for k in range(classes):
            one[k] = rest[k] + weights[kept] * (polarity[kept, k] - polarity[kept, y])
            other[k] = rest[k] + weights[i] * (polarity[i, k] - polarity[i, y])
        stays = probability(one, total + weights[kept], bias, y)
        swapped = probability(other, total + weights[i], bias, y)
        if end * swapped < end * stays - 1e-15:
            order[j], order[j + 1] = kept, i
        last = order[j + 1]
        for k in range(classes):
            rest[k] += weights[last] * (polarity[last, k] - polarity[last, y])
        total += weights[last]


@compiled
@no_type_check
def chain(order, weights, polarity, bias, y):
    """Σ_{k=1…L} p without the first k units of an order."""
    n, classes = polarity.shape
    rest, total = np.zeros(classes), 0.0
    found = probability(rest, total, bias, y)
    for j in range(n - 1, 0, -1):
        i = order[j]
        total += weights[i]
        for k in range(classes):
            rest[k] += weights[i] * (polarity[i, k] - polarity[i, y])
        found += probability(rest, total, bias, y)
    return found


@compiled
@no_type_check
def greedy(weights, polarity, bias, y, end):
    """The order that removes at every step the unit without which p is best."""
    n, classes = polarity.shape
    order, without = np.arange(n), np.empty(classes)
    for j in range(n - 1):
        best, chosen = np.inf, j
        for at in range(j, n):
            total, without[:] = 0.0, 0.0
            for other in range(j, n):
                if other != at:
                    i = order[other]
                    total += weights[i]
                    for k in range(classes):
                        without[k] += weights[i] * (polarity[i, k] - polarity[i, y])
            found = end * probability(without, total, bias, y)
            if found < best:
                best, chosen = found, at
        order[j], order[chosen] = order[chosen], order[j]
    return order


@compiled
@no_type_check
def lattice(rows, offsets, weights, polarity, bias, targets, attained):
    """Σ_k p_k of the best chains of some texts, by dynamic programming over all sets of what remains: exact."""
    classes = polarity.shape[1]
    for t in rows:
        begin, n, y = offsets[t], offsets[t + 1] - offsets[t], targets[t]
        sums, totals, values = np.zeros((1 << n, classes)), np.zeros(1 << n), np.empty(1 << n)
        values[0] = probability(sums[0], 0.0, bias, y)
        for s in range(1, 1 << n):
            low = 0
            while not (s >> low) & 1:
                low += 1
            i, rest = begin + low, s & (s - 1)
            totals[s] = totals[rest] + weights[i]
            for k in range(classes):
                sums[s, k] = sums[rest, k] + weights[i] * (polarity[i, k] - polarity[i, y])
            values[s] = probability(sums[s], totals[s], bias, y)
        attained[t, 0], attained[t, 1] = chains(values, n)


@compiled
@no_type_check
def chains(values, n):
    """The smallest and the largest sum of values along chains of sets, from the empty one to all but the whole.

    `values` has the sets by number, bit i for unit i: V(S) = v(S) + best V(S without i), i in S.
    """
    least, most = values.copy(), values.copy()
    whole = (1 << n) - 1
    for s in range(1, 1 << n):
        low, high = np.inf, -np.inf
        for i in range(n):
            if (s >> i) & 1:
                low, high = min(low, least[s ^ (1 << i)]), max(high, most[s ^ (1 << i)])
        least[s], most[s] = (low, high) if s == whole else (low + values[s], high + values[s])
    return least[whole], most[whole]
