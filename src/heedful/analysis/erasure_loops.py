"""The inner loops of erasure, compiled: every instance from its last remaining unit backwards, every class at once.

They return where rounding could decide (`doubtful`); the callers repeat those in whole numbers.
"""

import math
from typing import no_type_check

import numpy as np

from heedful.compiled import compiled, inlined

NEVER = LAST = np.iinfo(np.int64).max
UNKNOWN = -1
FEW, LANES, FAR = 64, 4, 1000
TOGETHER = 1.01
"""What all weights of an instance may sum to, and room to spare."""

ROOM = 1.001
"""Losses larger than this times all gains of a class can never be made up for."""


@compiled
@no_type_check
def gradients(offsets, polarity, shares, chosen, found):
    """Σ_k shares_k (z_iy − z_ik) of every unit, the same way for each, so that equal units tie."""
    for t in range(len(chosen)):
        share, y = shares[t], chosen[t]
        for i in range(offsets[t], offsets[t + 1]):
            row = polarity[i]
            total = 0.0
            for k in range(len(row)):
                total += share[k] * (row[y] - row[k])
            found[i] = total


@compiled
@no_type_check
def reaches(offsets, polarity, bias, chosen, found):
    """The most by which a unit of each instance is for another class and against the chosen one; none is zero."""
    for t in range(len(chosen)):
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
def pack(keys, units, lengths, bits, reverse, packed):
    """Rows of whole numbers that sort as the keys do, the largest first: the top bits of each key, then its place.

    `keys` are the doubles, `bits` the same memory as whole numbers. What lies beyond the end of a row comes last.
    """
    low = np.int64(1)
    while low < packed.shape[1]:
        low *= 2
    for r in range(len(packed)):
        for j in range(packed.shape[1]):
            if j >= lengths[r]:
                packed[r, j] = LAST
                continue
            i = units[r, j]
            number = bits[i] if keys[i] != 0 else np.int64(0)  # one zero, not two
            number ^= (number >> 63) & LAST  # what is negative sorts backwards
            packed[r, j] = ((number if reverse else ~number) & -low) | j
    return low - 1


@compiled
@no_type_check
def unpack(packed, low, keys, units, lengths, order, spoiled):
    """The units of each row in their order; `spoiled` where keys differ in the bits that made room for the places."""
    for r in range(len(packed)):
        for j in range(packed.shape[1]):
            order[r, j] = units[r, packed[r, j] & low if j < lengths[r] else j]
            if 0 < j < lengths[r] and packed[r, j] & ~low == packed[r, j - 1] & ~low:
                spoiled[r] |= keys[order[r, j]] != keys[order[r, j - 1]]


@compiled
@no_type_check
def power_of_two(exponent):
    """2^exponent, of exponents far below zero one that is as good as nothing, far above one that dwarfs everything."""
    return math.ldexp(1.0, min(max(exponent, -FAR), FAR))


@compiled
@no_type_check
def first_flips(rows, units, classes, found):
    """For each row of an order of units: the shortest prefix whose erasure flips, the class after it, its weight.

    `doubts[r]`: how far, relative to the remaining weight, the sums of row r may be off. `reach[r]`: how much, relative
    to its weight, one more unit can help another class; where that cannot be enough the classes need no comparing.
    The terms of a row are made in the order of the memory first: a cache holds them, in whatever order they are added.
    """
    order, starts, lengths, chosen, wide, doubts, reach = rows
    mantissas, exponents, weights, polarity = units
    bias, scale = classes
    erased, flipped_to, mass, doubtful = found
    bias_class, lanes = np.argmax(bias), -(-len(bias) // LANES) * LANES
    sums, terms = np.empty(lanes), np.zeros((order.shape[1], lanes))
    for r in range(len(order)):
        n, start = lengths[r], starts[r]
        for i in range(n):
            for k in range(len(bias)):
                terms[i, k] = mantissas[start + i] * ((polarity[start + i, k] + bias[k]) * scale)
        limits = chosen[r], bias_class, wide[r], doubts[r], reach[r]
        erased[r], flipped_to[r], doubtful[r] = first_flip(
            order, r, start, n, limits, mantissas, exponents, terms, len(bias), sums
        )
        mass[r] = 0.0
        for j in range(min(erased[r], n)):
            mass[r] += weights[order[r, j]]


@inlined
@no_type_check
def first_flip(order, r, start, n, limits, mantissas, exponents, terms, classes, sums):
    """How many units are erased at the first flip, the class then, and whether rounding could decide.

    Sums are relative to 2^top, with `top` the largest exponent so far: what is too small beside it makes no difference.
    """
    y, bias_class, wide, doubt, reach = limits
    lanes = -(-classes // LANES) * LANES
    surely, perhaps, weightless, unclear = 0, 0, 0, False
    winner, remaining, lead, gained, top = bias_class, 0.0, np.inf, 0.0, np.int64(0)
    sums[:] = 0.0
    for j in range(n - 1, 0, -1):
        unit = order[r, j]
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


@compiled
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
def minimum_sets(rows, units, classes, found):
    """Mark a smallest set of units of each instance whose erasure flips it, unless that is doubtful.

    `after` is the class after the erasure, or UNKNOWN where rounding could decide.

    With c_i^k = α_i (z_ik − z_iy + b_k − b_y) class k gets ahead when all gains and so many of the smallest losses
    remain as stay below them. Losses beyond all gains never remain, so only the smallest ones are sorted. A loss is
    known up to `fuzz` times its weight, and sums up to `slacks[r]` times all gains: where more than that is at stake
    the row is doubtful.
    """
    offsets, chosen, wide, slacks, doubts = rows
    mantissas, exponents, polarity, erased = units
    bias, scale, fuzz = classes
    doubtful, after = found
    longest = 0
    for r in range(len(chosen)):
        longest = max(longest, offsets[r + 1] - offsets[r])
    losses, small, sums = np.empty((len(bias), longest)), np.empty(longest), np.empty(len(bias))
    for r in range(len(chosen)):
        own, y, n = slice(offsets[r], offsets[r + 1]), chosen[r], offsets[r + 1] - offsets[r]
        powers, scores = (mantissas[own], exponents[own], wide[r]), polarity[own]
        for i in range(n):
            weight, own_score = powers[0][i], scores[i, y]
            for k in range(len(bias)):
                losses[k, i] = weight * ((own_score - scores[i, k] + (bias[y] - bias[k])) * scale)
        most, best, largest_kept, ties = -1, y, 0.0, 0
        for k in range(len(bias)):
            if k == y:
                continue
            free, kept, unsure = remaining(losses[k, :n], powers, scores, bias, y, k, fuzz, slacks[r], small)
            doubtful[r] |= unsure
            if free + kept > most:
                most, best, largest_kept, ties = free + kept, k, small[kept - 1] if kept > 0 else 0.0, 0
                while ties < kept and small[kept - 1 - ties] == largest_kept:
                    ties += 1
        if not doubtful[r]:
            if most < 0:
                erased[own] = (powers[0] > 0) & (y != np.argmax(bias))
            else:
                mark(losses[best, :n], largest_kept, ties, erased[own])
            after[r] = winner_without(erased[own], powers[0], powers[1], scores, bias, scale, doubts[r], sums)


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
