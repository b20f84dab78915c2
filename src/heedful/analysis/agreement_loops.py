"""The inner loops of agreement, compiled: ranks and ties of sorted rows, and what a merge sort has to move."""

from typing import no_type_check

import numpy as np

from heedful.compiled import compiled

RUN = 8
"""Values that are sorted by insertion before runs are merged."""


@compiled
@no_type_check
def dense_ranks(values, order, lengths, first, ranks, ties):
    """The place of each unit's value among the distinct ones of its row, from the largest on, and sums over ties."""
    for r in range(len(order)):
        rank, group = 0, 1
        for j in range(lengths[r]):
            if j > 0 and values[order[r, j]] == values[order[r, j - 1]]:
                group += 1
            elif j > 0:
                add_ties(group, ties[r])
                rank, group = rank + 1, 1
            ranks[r, order[r, j] - first[r]] = rank
        add_ties(group, ties[r])


@compiled
@no_type_check
def add_ties(group, ties):
    size = float(group)
    ties[0] += size * (size - 1) / 2
    ties[1] += size * (size - 1) * (size - 2)
    ties[2] += size * (size - 1) * (2 * size + 5)


@compiled
@no_type_check
def common_tops(one, two, tops, first, marked, common):
    """How many of the first units of both orders are the same."""
    for r in range(len(one)):
        marked[:] = False
        for j in range(tops[r]):
            marked[one[r, j] - first[r]] = True
        for j in range(tops[r]):
            common[r] += marked[two[r, j] - first[r]]


@compiled
@no_type_check
def count_pairs(both, bits, lengths, spare, opposite, joint):
    """Pairs in opposite order and pairs that tie twice, of rows sorted by rank · 2^bits + other rank."""
    low = (1 << bits) - 1
    for r in range(len(both)):
        n, group = lengths[r], 1
        for j in range(1, n + 1):
            if j < n and both[r, j] == both[r, j - 1]:
                group += 1
            else:
                joint[r] += group * (group - 1) // 2
                group = 1
        for j in range(n):
            spare[0, j] = both[r, j] & low
        opposite[r] = inversions(spare[0], spare[1], n)


@compiled
@no_type_check
def inversions(values, spare, n):
    """How many pairs of the first n values stand in the wrong order: what a merge sort has to move."""
    moved, size = sort_runs(values, n), RUN
    while size < n:
        for start in range(0, n, 2 * size):
            middle, end = min(start + size, n), min(start + 2 * size, n)
            left, right, place = start, middle, start
            while left < middle and right < end:  # without a branch that a processor would guess wrong half of the time
                wrong = np.int64(values[right] < values[left])
                spare[place] = min(values[left], values[right])
                moved += wrong * (middle - left)
                left, right, place = left + 1 - wrong, right + wrong, place + 1
            while left < middle:
                spare[place] = values[left]
                left, place = left + 1, place + 1
            while right < end:
                spare[place] = values[right]
                right, place = right + 1, place + 1
        values, spare = spare, values
        size *= 2
    return moved


@compiled
@no_type_check
def sort_runs(values, n):
    """Sort every few values by insertion; by how many places they were moved in all."""
    moved = 0
    for start in range(0, n, RUN):
        for place in range(start + 1, min(start + RUN, n)):
            value, free = values[place], place
            while free > start and values[free - 1] > value:
                values[free] = values[free - 1]
                free -= 1
            values[free] = value
            moved += place - free
    return moved
