"""The inner loops of erasure, compiled: every instance from its last remaining unit backwards, every class at once.

They return where rounding could decide (`doubtful`); the callers repeat those in whole numbers.
"""

import math
from typing import no_type_check

import numpy as np

from heedful.compiled import compiled

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
def first_flips(
    order,
    starts,
    lengths,
    chosen,
    doubts,
    reach,
    mantissas,
    exponents,
    weights,
    polarity,
    bias,
    scale,
    erased,
    flipped_to,
    mass,
    doubtful,
):
    """For each row of an order of units: the shortest prefix whose erasure flips, the class after it, its weight.

    `doubts[r]`: how far, relative to the remaining weight, the sums of row r may be off. `reach[r]`: how much, relative
    to its weight, one more unit can help another class; where that cannot be enough the classes need no comparing.
    The terms of a row are made in the order of the memory first: a cache holds them, in whatever order they are added.
    Sums are relative to 2^top, with `top` the largest exponent so far: what is too small beside it makes no difference.
    """
    classes, bias_class = len(bias), np.argmax(bias)
    lanes = -(-classes // LANES) * LANES
    sums, terms = np.empty(lanes), np.zeros((order.shape[1], lanes))
    for r in range(len(order)):
        y, n, start, flat = chosen[r], lengths[r], starts[r], True
        for i in range(n):
            flat &= exponents[start + i] == 0
            for k in range(classes):
                terms[i, k] = mantissas[start + i] * ((polarity[start + i, k] + bias[k]) * scale)
        surely, perhaps, weightless, unclear = 0, 0, 0, False
        winner, remaining, lead, gained, top = bias_class, 0.0, np.inf, 0.0, np.int64(0)
        sums[:] = 0.0
        for j in range(n - 1, 0, -1):
            unit = order[r, j]
            weight, part = mantissas[unit], 1.0
            if not flat and exponents[unit] != top and weight > 0:
                if remaining == 0:
                    top = exponents[unit]
                elif exponents[unit] > top:
                    shrink = power_of_two(top - exponents[unit])
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
            doubt = remaining * doubts[r]
            gained += weight * reach[r]
            if lead + gained < -3 * doubt:
                continue
            best, first, second = y, -np.inf, -np.inf
            for k in range(classes):
                if k != y and sums[k] > first:
                    best, first, second = k, sums[k], first
                elif k != y and sums[k] > second:
                    second = sums[k]
            lead, gained = first - sums[y], 0.0
            if lead > doubt:
                surely = n - j
            if not lead < -doubt:
                perhaps, winner, unclear = n - j, best, not first - second > doubt
        if perhaps > 0:
            erased[r] = n - surely
        else:
            erased[r] = NEVER if y == bias_class else n - weightless
        flipped_to[r] = winner
        doubtful[r] = perhaps > 0 and (surely != perhaps or unclear)
        mass[r] = 0.0
        for j in range(min(erased[r], n)):
            mass[r] += weights[order[r, j]]


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


@compiled
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
    best, first, second = UNKNOWN, -np.inf, -np.inf
    for k in range(len(bias)):
        if sums[k] > first:
            best, first, second = k, sums[k], first
        elif sums[k] > second:
            second = sums[k]
    return best if first - second > doubts * remaining else UNKNOWN


@compiled
@no_type_check
def minimum_sets(
    offsets,
    rows,
    chosen,
    slacks,
    doubts,
    fuzz,
    mantissas,
    exponents,
    polarity,
    bias,
    scale,
    erased,
    doubtful,
    after,
):
    """Mark a smallest set of units of each row's instance whose erasure flips it, unless that is doubtful.

    `after` is the class after the erasure, or UNKNOWN where rounding could decide.

    With c_i^k = α_i (z_ik − z_iy + b_k − b_y) class k gets ahead when all gains and so many of the smallest losses
    remain as stay below them. Losses beyond all gains never remain, so only the smallest ones are sorted. A loss is
    known up to `fuzz` times its weight, and sums up to `slacks[r]` times all gains: where more than that is at stake
    the row is doubtful.
    """
    classes, bias_class = len(bias), np.argmax(bias)
    longest = 0
    for r in range(len(rows)):
        longest = max(longest, offsets[rows[r] + 1] - offsets[rows[r]])
    losses, small, sums = np.empty((classes, longest)), np.empty(longest), np.empty(classes)
    for r in range(len(rows)):
        begin, end, y = offsets[rows[r]], offsets[rows[r] + 1], chosen[r]
        n, flat = end - begin, True
        for i in range(n):
            weight, chosen_score = mantissas[begin + i], polarity[begin + i, y]
            flat &= exponents[begin + i] == 0
            for k in range(classes):
                losses[k, i] = weight * ((chosen_score - polarity[begin + i, k] + (bias[y] - bias[k])) * scale)
        most, best, largest_kept, kept_ties = -1, y, 0.0, 0
        for k in range(classes):
            if k == y:
                continue
            top = np.int64(0) if flat else relative(losses[k, :n], exponents[begin:end])
            gain, free = 0.0, 0
            for i in range(n):
                gain -= min(losses[k, i], 0.0)
                free += losses[k, i] <= 0
            slack = fuzz * TOGETHER + slacks[r] * gain
            if not flat or gain <= slack:
                own = mantissas[begin:end], exponents[begin:end], polarity[begin:end]
                weight = uncertain(losses[k, :n], gain, fuzz, own[0], own[1], top, own[2], bias, y, k)
                slack = fuzz * weight + slacks[r] * gain
                doubtful[r] |= weight > 0 and gain <= slack
            if gain <= 0:
                continue
            count = smallest(losses[k, :n], gain, small)
            total, kept = -gain, 0
            while kept < count and total + small[kept] < -slack:
                total += small[kept]
                kept += 1
            if kept < count and total + small[kept] <= slack:
                doubtful[r] = True
            if free + kept > most:
                most, best = free + kept, k
                largest_kept, kept_ties = small[kept - 1] if kept > 0 else 0.0, 0
                while kept_ties < kept and small[kept - 1 - kept_ties] == largest_kept:
                    kept_ties += 1
        if doubtful[r]:
            continue
        for i in range(n - 1, -1, -1):
            loss = losses[best, i]
            if most < 0:
                erased[begin + i] = y != bias_class and mantissas[begin + i] > 0
            elif loss == largest_kept and kept_ties > 0:
                kept_ties -= 1
            else:
                erased[begin + i] = loss > 0 and loss >= largest_kept
        after[r] = winner_without(
            erased[begin:end],
            mantissas[begin:end],
            exponents[begin:end],
            polarity[begin:end],
            bias,
            scale,
            doubts[r],
            sums,
        )
