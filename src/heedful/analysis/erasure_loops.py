"""The inner loops of erasure, compiled: every instance from its last remaining unit backwards, every class at once.

They say where rounding could decide (`doubtful`); the callers repeat those in whole numbers. Each does some of the
instances, `rows` or those from `start` to `stop`, and writes what it finds in their places, so that `each` can do
several such parts at a time.
"""

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar, no_type_check

import numpy as np
import torch
from torch import Tensor

from heedful.compiled import compiled, inlined

Numbers = np.ndarray[Any, np.dtype[Any]]

S = TypeVar("S")
T = TypeVar("T")

THREADS = "heedful-analysis"
MOST_UNITS, SHARE = 65_536, 50_000
LEAST_FILLED, SHORT = 0.8, 16
NEVER = LAST = np.iinfo(np.int64).max
UNKNOWN = -1
FEW, LANES, FAR = 64, 4, 1000
TOGETHER = 1.01
"""What all weights of an instance may sum to, and room to spare."""

ROOM = 1.001
"""Losses larger than this times all gains of a class can never be made up for."""


def arrays(*tensors: Tensor) -> tuple[Numbers, ...]:
    """The same numbers for compiled loops, which know no tensors."""
    return tuple(tensor.numpy(force=True) for tensor in tensors)


def blocks(offsets: Numbers) -> list[Numbers]:
    """All instances, longest first, cut where they become too many or too short: about equal parts of MOST_UNITS.

    Sorting is fastest on the rows of a matrix: those of a block differ in length by a fifth or a few units.
    """
    shrinking = -np.diff(offsets)
    order = np.argsort(shrinking, kind="stable")
    falling, total = shrinking[order], int(offsets[-1])
    most = MOST_UNITS if total <= MOST_UNITS else -(-total // -(-total // MOST_UNITS))
    cuts = [0]
    while cuts[-1] < len(order):
        longest = -int(falling[cuts[-1]])
        similar = int(np.searchsorted(falling, SHORT - int(LEAST_FILLED * longest), side="right"))
        cuts.append(min(cuts[-1] + max(1, most // max(1, longest)), similar))
    return [order[start:end] for start, end in pairwise(cuts)]


def shares(instances: int, units: int) -> list[tuple[int, int]]:
    """From which to which instance each part goes, each of about so many units as are worth a thread."""
    step = max(1, -(-instances * SHARE // max(units, 1)))
    return [(start, min(start + step, instances)) for start in range(0, instances, step)]


@contextmanager
def one_thread(instead: int = 1) -> Iterator[None]:
    """Parts are small: beside other work the threads of one operation wait for each other longer than they compute.

    `instead`: another number, for a part that is not small.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(instead)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def each(function: Callable[[S], T], some: Sequence[S]) -> list[T]:
    """The function of every part, of several at a time: parts are independent, and the heavy work needs no lock.

    Parts of a part are done where they are: threads that waited for threads would wait for ever.
    """
    if len(some) < 2 or threading.current_thread().name.startswith(THREADS):
        return [function(part) for part in some]
    return list(_threads().map(function, some))


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads that wait for work: to start them anew would take as long as the work."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix=THREADS)


os.register_at_fork(after_in_child=_threads.cache_clear)  # threads do not live on in a copy of the process


@compiled
@no_type_check
def gradients(start, stop, offsets, polarity, shares, chosen, found):
    """Σ_k shares_k (z_iy − z_ik) of every unit, the same way for each, so that equal units tie."""
    for t in range(start, stop):
        share, y = shares[t], chosen[t]
        for i in range(offsets[t], offsets[t + 1]):
            row = polarity[i]
            total = 0.0
            for k in range(len(row)):
                total += share[k] * (row[y] - row[k])
            found[i] = total


@compiled
@no_type_check
def reaches(start, stop, offsets, polarity, bias, chosen, found):
    """The most by which a unit of each instance is for another class and against the chosen one; none is zero."""
    for t in range(start, stop):
        y, most = chosen[t], 0.0
        for i in range(offsets[t], offsets[t + 1]):
            largest = -np.inf
            for k in range(len(bias)):
                if k != y:
                    largest = max(largest, polarity[i, k] + bias[k])
            most = max(most, largest - (polarity[i, y] + bias[y]))
        found[t] = most


@compiled
@no_type_check
def pack(rows, offsets, keys, bits, reverse, packed):
    """Rows of whole numbers that sort as the keys do, the largest first: the top bits of each key, then its place.

    `keys` are the doubles, `bits` the same memory as whole numbers. What lies beyond the end of a row comes last.
    """
    low = np.int64(1)
    while low < packed.shape[1]:
        low *= 2
    for r in range(len(rows)):
        start, n = offsets[rows[r]], offsets[rows[r] + 1] - offsets[rows[r]]
        for j in range(n):
            number = bits[start + j] if keys[start + j] != 0 else np.int64(0)  # one zero, not two
            number ^= (number >> 63) & LAST  # what is negative sorts backwards
            packed[r, j] = ((number if reverse else ~number) & -low) | j
        packed[r, n:] = LAST
    return low - 1


@compiled
@no_type_check
def unpack(rows, offsets, keys, packed, low, order):
    """The units of each row in their order; returns the rows whose keys differ in bits that made room for places."""
    spoiled = np.zeros(len(rows), np.bool_)
    for r in range(len(rows)):
        start = offsets[rows[r]]
        for j in range(offsets[rows[r] + 1] - start):
            order[start + j] = start + (packed[r, j] & low)
            if j > 0 and packed[r, j] & ~low == packed[r, j - 1] & ~low:
                spoiled[r] |= keys[order[start + j]] != keys[order[start + j - 1]]
    return rows[spoiled]


@compiled
@no_type_check
def power_of_two(exponent):
    """2^exponent, of exponents far below zero one that is as good as nothing, far above one that dwarfs everything."""
    return math.ldexp(1.0, min(max(exponent, -FAR), FAR))


@compiled
@no_type_check
def first_flips(rows, order, instances, units, classes, found):
    """Along an order of the units: the shortest prefix whose erasure flips, the class after it, its weight.

    `doubts[t]`: how far, relative to the remaining weight, the sums of t may be off. `reach[t]`: how much, relative to
    its weight, one more unit can help another class; where that cannot be enough the classes need no comparing.
    The terms of a row are made in the order of the memory first: a cache holds them, in whatever order they are added.
    """
    offsets, chosen, wide, doubts, reach = instances
    mantissas, exponents, weights, polarity = units
    bias, scale = classes
    erased, flipped_to, mass, doubtful = found
    bias_class, lanes, longest = np.argmax(bias), -(-len(bias) // LANES) * LANES, np.int64(0)
    for t in rows:
        longest = max(longest, offsets[t + 1] - offsets[t])
    sums, terms = np.empty(lanes), np.zeros((longest, lanes))
    for t in rows:
        start, n = offsets[t], offsets[t + 1] - offsets[t]
        for i in range(n):
            for k in range(len(bias)):
                terms[i, k] = mantissas[start + i] * ((polarity[start + i, k] + bias[k]) * scale)
        limits = chosen[t], bias_class, wide[t], doubts[t], reach[t]
        erased[t], flipped_to[t], doubtful[t] = first_flip(
            order, start, n, limits, mantissas, exponents, terms, len(bias), sums
        )
        mass[t] = 0.0
        for j in range(min(erased[t], n)):
            mass[t] += weights[order[start + j]]


@inlined
@no_type_check
def first_flip(order, start, n, limits, mantissas, exponents, terms, classes, sums):
    """How many units are erased at the first flip, the class then, and whether rounding could decide.

    Sums are relative to 2^top, with `top` the largest exponent so far: what is too small beside it makes no difference.
    """
    y, bias_class, wide, doubt, reach = limits
    lanes = -(-classes // LANES) * LANES
    surely, perhaps, weightless, unclear = 0, 0, 0, False
    winner, remaining, lead, gained, top = bias_class, 0.0, np.inf, 0.0, np.int64(0)
    sums[:] = 0.0
    for j in range(n - 1, 0, -1):
        unit = order[start + j]
        weight, part = mantissas[unit], 1.0
        if wide and exponents[unit] != top and weight > 0:
            if remaining == 0 or exponents[unit] > top:
                shrink = power_of_two(top - exponents[unit]) if remaining > 0 else 1.0
                for k in range(lanes):
                    sums[k] *= shrink
                remaining, lead, gained = remaining * shrink, lead * shrink, gained * shrink
                top = exponents[unit]
            else:
                part = power_of_two(exponents[unit] - top)
                weight *= part
        remaining += weight
        for k in range(lanes):
            sums[k] += part * terms[unit - start, k]
        if remaining == 0:
            weightless += 1
            continue
        gained += weight * reach
        if lead + gained < -3 * remaining * doubt:
            continue
        best, first, second = largest_two(sums, classes, y)
        lead, gained = first - sums[y], 0.0
        if lead > remaining * doubt:
            surely = n - j
        if not lead < -remaining * doubt:
            perhaps, winner, unclear = n - j, best, not first - second > remaining * doubt
    if perhaps > 0:
        return n - surely, winner, surely != perhaps or unclear
    return NEVER if y == bias_class else n - weightless, winner, False


@inlined
@no_type_check
def largest_two(sums, classes, y):
    """The class with the largest sum, that, and the second largest; class y does not count."""
    best, first, second = y, -np.inf, -np.inf
    for k in range(classes):
        if k != y and sums[k] > first:
            best, first, second = k, sums[k], first
        elif k != y and sums[k] > second:
            second = sums[k]
    return best, first, second


@compiled
@no_type_check
def smallest(losses, gain, small):
    """The smallest positive losses in ascending order, until they make up for the gain; returns how many they are.

    A few are kept sorted while the rest is looked at; where they become many, all are sorted.
    """
    count, total, limit = 0, 0.0, ROOM * gain
    for i in range(len(losses)):
        loss = losses[i]
        if not 0 < loss <= limit:
            continue
        if count == FEW:
            found = np.sort(losses[(losses > 0) & (losses <= ROOM * gain)])
            small[: len(found)] = found
            return len(found)
        place = count
        while place > 0 and small[place - 1] > loss:
            small[place] = small[place - 1]
            place -= 1
        small[place] = loss
        count, total = count + 1, total + loss
        while total - small[count - 1] > ROOM * gain:
            count -= 1
            total -= small[count]
        if total > ROOM * gain:
            limit = small[count - 1]
    return count


@compiled
@no_type_check
def relative(losses, exponents):
    """Losses, given as mantissas with exponents, made relative to 2^top, the largest exponent of a gain; returns that.

    What is next to nothing beside the gains stays so, and what is beyond all of them too.
    """
    top, found = np.int64(0), False
    for i in range(len(losses)):
        if losses[i] < 0 and (not found or exponents[i] > top):
            top, found = exponents[i], True
    for i in range(len(losses)):
        losses[i] *= power_of_two(exponents[i] - top)
    return top


@inlined
@no_type_check
def uncertain(losses, gain, fuzz, mantissas, exponents, top, polarity, bias, y, k):
    """The weight, relative to 2^top, of the units that can remain and may tip a balance.

    A loss that is exactly zero tips none, but if class k comes first: it wins a tie.
    """
    found = 0.0
    for i in range(len(losses)):
        weight = mantissas[i] * power_of_two(exponents[i] - top)
        idle = y < k and polarity[i, y] == polarity[i, k] and bias[y] == bias[k]
        if losses[i] <= max(ROOM * gain, fuzz * weight) and not idle:
            found += weight
    return found


@inlined
@no_type_check
def winner_without(erased, mantissas, exponents, polarity, bias, scale, doubts, sums):
    """The class that is ahead when the marked units are erased, or UNKNOWN where rounding could decide."""
    top, remaining = np.int64(0), 0.0
    for i in range(len(erased)):
        if not erased[i] and mantissas[i] > 0 and (remaining == 0 or exponents[i] > top):
            top, remaining = exponents[i], 1.0
    if remaining == 0:
        return np.argmax(bias)
    sums[:], remaining = 0.0, 0.0
    for i in range(len(erased)):
        if not erased[i]:
            weight = mantissas[i] if exponents[i] == top else mantissas[i] * power_of_two(exponents[i] - top)
            remaining += weight
            for k in range(len(bias)):
                sums[k] += weight * ((polarity[i, k] + bias[k]) * scale)
    best, first, second = largest_two(sums, len(bias), UNKNOWN)
    return best if first - second > doubts * remaining else UNKNOWN


@compiled
@no_type_check
def minimum_sets(start, stop, instances, units, classes, found):
    """Mark a smallest set of units of each instance whose erasure flips it, unless that is doubtful.

    `after` is the class after the erasure, or UNKNOWN where rounding could decide.

    With c_i^k = α_i (z_ik − z_iy + b_k − b_y) class k gets ahead when all gains and so many of the smallest losses
    remain as stay below them. Losses beyond all gains never remain, so only the smallest ones are sorted. A loss is
    known up to `fuzz` times its weight, and sums up to `slacks[t]` times all gains: where more than that is at stake
    the instance is doubtful.
    """
    offsets, chosen, wide, slacks, doubts = instances
    mantissas, exponents, polarity = units
    bias, scale, fuzz = classes
    erased, doubtful, after = found
    longest = np.int64(0)
    for t in range(start, stop):
        longest = max(longest, offsets[t + 1] - offsets[t])
    losses, small, sums = np.empty((len(bias), longest)), np.empty(longest), np.empty(len(bias))
    for t in range(start, stop):
        own, y, n = slice(offsets[t], offsets[t + 1]), chosen[t], offsets[t + 1] - offsets[t]
        powers, scores, marks = (mantissas[own], exponents[own], wide[t]), polarity[own], erased[own]
        for i in range(n):
            weight, own_score = powers[0][i], scores[i, y]
            for k in range(len(bias)):
                losses[k, i] = weight * ((own_score - scores[i, k] + (bias[y] - bias[k])) * scale)
        most, best, largest_kept, ties = -1, y, 0.0, 0
        for k in range(len(bias)):
            if k == y:
                continue
            free, kept, unsure = remaining(losses[k, :n], powers, scores, bias, y, k, fuzz, slacks[t], small)
            doubtful[t] |= unsure
            if free + kept > most:
                most, best, largest_kept, ties = free + kept, k, small[kept - 1] if kept > 0 else 0.0, 0
                while ties < kept and small[kept - 1 - ties] == largest_kept:
                    ties += 1
        if not doubtful[t]:
            if most < 0:
                marks[:] = (powers[0] > 0) & (y != np.argmax(bias))
            else:
                mark(losses[best, :n], largest_kept, ties, marks)
            after[t] = winner_without(marks, powers[0], powers[1], scores, bias, scale, doubts[t], sums)


@inlined
@no_type_check
def remaining(losses, powers, scores, bias, y, k, fuzz, slack, small):
    """How many units without and with a loss can remain for class k to get ahead, and whether rounding could decide.

    The losses that remain are the first of `small`. Where the class has nothing to gain the first number is −1.
    """
    mantissas, exponents, wide = powers
    top = relative(losses, exponents) if wide else np.int64(0)
    gain, free = 0.0, 0
    for i in range(len(losses)):
        gain -= min(losses[i], 0.0)
        free += losses[i] <= 0
    stake, unsure = fuzz * TOGETHER + slack * gain, False
    if wide or gain <= stake:
        weight = uncertain(losses, gain, fuzz, mantissas, exponents, top, scores, bias, y, k)
        stake = fuzz * weight + slack * gain
        unsure = weight > 0 and gain <= stake
    if gain <= 0:
        return -1, 0, unsure
    count, total, kept = smallest(losses, gain, small), -gain, 0
    while kept < count and total + small[kept] < -stake:
        total += small[kept]
        kept += 1
    return free, kept, unsure or (kept < count and total + small[kept] <= stake)


@inlined
@no_type_check
def mark(losses, largest_kept, ties, erased):
    """Mark the units whose losses do not remain; of those that tie with the largest that does, the last remain."""
    for i in range(len(losses) - 1, -1, -1):
        if losses[i] == largest_kept and ties > 0:
            ties -= 1
        else:
            erased[i] = losses[i] > 0 and losses[i] >= largest_kept
