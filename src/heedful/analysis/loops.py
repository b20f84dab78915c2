"""The inner loops of erasure, compiled: every instance from its last remaining unit backwards, every class at once.

They return where rounding could decide (`doubtful`); the callers repeat those in whole numbers.
"""

from typing import no_type_check

import numpy as np

from heedful.compiled import compiled

NEVER = np.iinfo(np.int64).max
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
def first_flips(order, lengths, weights, polarity, bias, chosen, doubts, erased, flipped_to, mass, doubtful):
    """For each row of an order of units: the shortest prefix whose erasure flips, the class after it, its weight.

    `doubts[r]`: how far, relative to the remaining weight, the sums of row r may be off.
    """
    classes, bias_class = len(bias), np.argmax(bias)
    sums = np.empty(classes)
    for r in range(len(order)):
        y, n, units = chosen[r], lengths[r], order[r]
        surely, perhaps, weightless, unclear = 0, 0, 0, False
        winner, remaining = bias_class, 0.0
        sums[:] = 0.0
        for j in range(n - 1, 0, -1):
            weight, row = weights[units[j]], polarity[units[j]]
            remaining += weight
            for k in range(classes):
                sums[k] += weight * (row[k] + bias[k])
            if remaining == 0:
                weightless += 1
                continue
            best, first, second = y, -np.inf, -np.inf
            for k in range(classes):
                if k != y and sums[k] > first:
                    best, first, second = k, sums[k], first
                elif k != y and sums[k] > second:
                    second = sums[k]
            lead, doubt = first - sums[y], remaining * doubts[r]
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
            mass[r] += weights[units[j]]


@compiled
@no_type_check
def minimum_sets(offsets, rows, weights, polarity, bias, chosen, slacks, erased, gains, least, doubtful):
    """Mark a smallest set of units of each row's instance whose erasure flips it, unless that is doubtful.

    With c_i^k = α_i (z_ik − z_iy + b_k − b_y) class k gets ahead when all gains and so many of the smallest losses
    remain as stay below them. Losses beyond all gains never remain, so only the smaller ones are sorted.
    """
    classes, bias_class = len(bias), np.argmax(bias)
    for r in range(len(rows)):
        begin, end, y = offsets[rows[r]], offsets[rows[r] + 1], chosen[r]
        losses, small, best_losses = np.empty(end - begin), np.empty(end - begin), np.zeros(end - begin)
        most, largest_kept, kept_ties = -1, 0.0, 0
        for k in range(classes):
            gain, lowest, free = 0.0, np.inf, 0
            for i in range(begin, end):
                loss = weights[i] * (polarity[i, y] - polarity[i, k] + (bias[y] - bias[k]))
                losses[i - begin] = loss
                lowest = min(lowest, loss)
                if loss <= 0:
                    gain -= loss
                    free += 1
            gains[r, k], least[r, k] = gain, lowest
            if k == y or gain <= 0:
                continue
            count = 0
            for i in range(end - begin):
                if 0 < losses[i] <= ROOM * gain:
                    small[count] = losses[i]
                    count += 1
            if free + count <= most:
                continue
            candidates = np.sort(small[:count])
            slack, total, kept = slacks[r] * gain, -gain, 0
            while kept < count and total + candidates[kept] < -slack:
                total += candidates[kept]
                kept += 1
            if kept < count and total + candidates[kept] <= slack:
                doubtful[r] = True
            if free + kept > most:
                most = free + kept
                best_losses[:] = losses
                largest_kept = candidates[kept - 1] if kept > 0 else 0.0
                kept_ties = np.sum(candidates[:kept] == largest_kept)
        if doubtful[r]:
            continue
        for i in range(end - begin - 1, -1, -1):
            loss = best_losses[i]
            if most < 0:
                erased[begin + i] = y != bias_class and weights[begin + i] > 0
            elif loss == largest_kept and kept_ties > 0:
                kept_ties -= 1
            else:
                erased[begin + i] = loss > 0 and loss >= largest_kept
