"""The inner loops of agreement, compiled: two orders of the same units, their ties, and what a merge sort must move."""

from typing import no_type_check

import numpy as np

from heedful.compiled import compiled

RUN = 8
"""Values that are sorted by insertion before runs are merged."""


@compiled
@no_type_check
def compare(start, stop, offsets, tops, one, two, order, other_order, opposite, joint, common, ties):
    """Of each instance pairs in opposite order, pairs that tie twice and common tops; and the ties of either number.

    Along the other order the units are put into the places of the first, those that tie in it next to each other:
    that sorts them by both numbers. What is then out of order are the pairs that disagree.
    """
    longest = np.max(offsets[start + 1 : stop + 1] - offsets[start:stop])
    place, other_place, line = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    spare, filled, again = np.empty_like(line), np.empty_like(line), np.empty_like(line)
    for t in range(start, stop):
        begin, n = offsets[t], offsets[t + 1] - offsets[t]
        first_places(one, order, begin, n, place, ties[0, t])
        first_places(two, other_order, begin, n, other_place, ties[1, t])
        filled[:n], again[:n] = 0, 0
        for j in range(n):
            i = other_order[begin + j] - begin
            first = place[i]
            last = first + filled[first]
            line[last] = other_place[i]
            again[first] = again[first] + 1 if last > first and line[last - 1] == line[last] else 0
            joint[t] += again[first]
            filled[first] += 1
        opposite[t] = inversions(line, spare, n)
        if tops[t] < n:
            common[t] = common_tops(order[begin:][: tops[t]], other_order[begin:][: tops[t]], begin, n)


@compiled
@no_type_check
def first_places(values, order, begin, n, places, ties):
    """For each unit of an instance the place in its order where the units of the same value begin; sums over ties."""
    first = 0
    for j in range(n):
        if j > 0 and values[order[begin + j]] != values[order[begin + j - 1]]:
            add_ties(j - first, ties)
            first = j
        places[order[begin + j] - begin] = first
    add_ties(n - first, ties)


@compiled
@no_type_check
def add_ties(group, ties):
    """Σ over groups of g equal units: g (g − 1) / 2, g (g − 1)(g − 2), g (g − 1)(2g + 5)."""
    size = float(group)
    ties[0] += size * (size - 1) / 2
    ties[1] += size * (size - 1) * (size - 2)
    ties[2] += size * (size - 1) * (2 * size + 5)


@compiled
@no_type_check
def common_tops(tops, other_tops, begin, n):
    """How many units of an instance are among both."""
    marked, found = np.zeros(n, np.bool_), 0
    for i in tops:
        marked[i - begin] = True
    for i in other_tops:
        found += marked[i - begin]
    return found


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
