"""Metrics of faithfulness as one would write them from the papers: one text, loops over units and sets, plain floats.

A game is a function of the units that are there; p is its value for the class that is explained.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, combinations, permutations

Game = Callable[[frozenset[int]], float]
Scores = Sequence[float]
NAN = math.nan


def linear(weights: Scores, bias: float, target: int) -> Game:
    """p of one of two classes whose log-odds are a sum."""

    @cache
    def p(there: frozenset[int]) -> float:
        odds = bias + math.fsum(weights[unit] for unit in there)
        yes = 1 / (1 + math.exp(-odds))
        return yes if target == 1 else 1 / (1 + math.exp(odds))

    return p


def order(scores: Scores) -> list[int]:
    return sorted(range(len(scores)), key=lambda unit: (-scores[unit], unit))


def whole(n: int) -> frozenset[int]:
    return frozenset(range(n))


def top(scores: Scores, share: float) -> frozenset[int]:
    return frozenset(order(scores)[: max(1, math.ceil(share * len(scores) - 1e-9))])


def comprehensiveness(p: Game, scores: Scores, share: float = 0.2) -> float:
    every = whole(len(scores))
    return p(every) - p(every - top(scores, share))


def sufficiency(p: Game, scores: Scores, share: float = 0.2) -> float:
    return p(whole(len(scores))) - p(top(scores, share))


BINS = (0.01, 0.05, 0.1, 0.2, 0.5)


def aopc_comprehensiveness(p: Game, scores: Scores) -> float:
    return sum(comprehensiveness(p, scores, share) for share in BINS) / 5


def aopc_sufficiency(p: Game, scores: Scores) -> float:
    return sum(sufficiency(p, scores, share) for share in BINS) / 5


def area(p: Game, removed: Sequence[int]) -> float:
    every, total = whole(len(removed)), 0.0
    for k in range(1, len(removed) + 1):
        total += p(every) - p(every - set(removed[:k]))
    return total / len(removed)


def aopc(p: Game, scores: Scores) -> float:
    return area(p, order(scores))


def ends(p: Game, n: int) -> tuple[float, float]:
    """The smallest and the largest area of all orders, each tried."""
    found = [area(p, one) for one in permutations(range(n))]
    return min(found), max(found)


def naopc(p: Game, scores: Scores) -> float:
    low, high = ends(p, len(scores))
    return (aopc(p, scores) - low) / (high - low) if high - low > 1e-9 else NAN


def deletion(p: Game, scores: Scores) -> float:
    n, along = len(scores), order(scores)
    heights = [p(whole(n) - set(along[:k])) for k in range(n + 1)]
    return sum((heights[k] + heights[k + 1]) / 2 / n for k in range(n))


def insertion(p: Game, scores: Scores) -> float:
    n, along = len(scores), order(scores)
    heights = [p(frozenset(along[:k])) for k in range(n + 1)]
    return sum((heights[k] + heights[k + 1]) / 2 / n for k in range(n))


def decided(p: Game, there: frozenset[int], target: int) -> int:
    """Of two classes; of equal ones the first."""
    if p(there) == 0.5:
        return 0
    return target if p(there) > 0.5 else 1 - target


def flip_fraction(p: Game, scores: Scores, target: int) -> float:
    n, along = len(scores), order(scores)
    for k in range(1, n + 1):
        if decided(p, whole(n) - set(along[:k]), target) != decided(p, whole(n), target):
            return k / n
    return 1.0


def single_flip(p: Game, scores: Scores, target: int) -> float:
    every = whole(len(scores))
    return float(decided(p, every - {order(scores)[0]}, target) != decided(p, every, target))


def log_odds(p: Game, scores: Scores) -> float:
    every = whole(len(scores))
    return math.log(p(every - top(scores, 0.2))) - math.log(p(every))


def effects(p: Game, n: int) -> list[float]:
    found = [p(whole(n)) - p(whole(n) - {unit}) for unit in range(n)]
    return [0.0 if abs(effect) <= 1e-9 else effect for effect in found]


def sign(number: float) -> int:
    return (number > 0) - (number < 0)


def tau(one: Scores, other: Scores) -> float:
    pairs = list(combinations(range(len(one)), 2))
    signs = [(sign(one[i] - one[j]), sign(other[i] - other[j])) for i, j in pairs]
    sizes = [sum(pair[side] != 0 for pair in signs) for side in (0, 1)]
    return sum(a * b for a, b in signs) / math.sqrt(sizes[0] * sizes[1]) if all(sizes) else NAN


def tau_loo(p: Game, scores: Scores) -> float:
    return tau(scores, effects(p, len(scores)))


def violation(p: Game, scores: Scores) -> float:
    largest = max(range(len(scores)), key=lambda unit: (abs(scores[unit]), -unit))
    if len(scores) < 2 or scores[largest] == 0:
        return NAN
    return float(sign(scores[largest]) * effects(p, len(scores))[largest] < 0)


def subsets(n: int) -> list[frozenset[int]]:
    every = chain.from_iterable(combinations(range(n), size) for size in range(n + 1))
    return [frozenset(one) for one in every]


def chances(scores: Scores) -> list[float]:
    """min(1, c a) with sum n / 4, c by bisection; what is then missing goes evenly to the smallest."""
    own = [score - min(scores) for score in scores]
    wanted = len(scores) / 4
    above = [value for value in own if value > 0]
    if len(above) <= wanted:
        rest = (wanted - len(above)) / max(1, len(own) - len(above))
        return [1.0 if value > 0 else rest for value in own]
    low, high = 0.0, 1 / min(above)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(min(1, middle * value) for value in own) < wanted else (low, middle)
    return [min(1.0, high * value) for value in own]


def soft(p: Game, scores: Scores, *, kept: bool) -> float:
    n, chance = len(scores), chances(scores)
    most = p(whole(n)) - p(frozenset())
    if most <= 1e-9:
        return NAN
    total = 0.0
    for chosen in subsets(n):
        probability = math.prod(chance[unit] if unit in chosen else 1 - chance[unit] for unit in range(n))
        there = chosen if kept else whole(n) - chosen
        share = min(1.0, max(0.0, p(whole(n)) - p(there)) / most)
        total += probability * (1 - share if kept else share)
    return total


def soft_sufficiency(p: Game, scores: Scores) -> float:
    return soft(p, scores, kept=True)


def soft_comprehensiveness(p: Game, scores: Scores) -> float:
    return soft(p, scores, kept=False)


def sums_and_falls(p: Game, scores: Scores) -> list[tuple[float, float]]:
    every = whole(len(scores))
    return [(math.fsum(scores[unit] for unit in gone), p(every) - p(every - gone)) for gone in subsets(len(scores))]


def infidelity(p: Game, scores: Scores) -> float:
    """The best scale by ternary search: a parabola has one valley."""
    pairs = sums_and_falls(p, scores)

    def error(scale: float) -> float:
        return sum((scale * one - fall) ** 2 for one, fall in pairs) / len(pairs)

    low, high = 0.0, 100.0
    for _ in range(300):
        left, right = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (low, right) if error(left) < error(right) else (left, high)
    return error((low + high) / 2)


def correlation(p: Game, scores: Scores) -> float:
    pairs = sums_and_falls(p, scores)
    means = [sum(pair[side] for pair in pairs) / len(pairs) for side in (0, 1)]
    apart = [(one - means[0], other - means[1]) for one, other in pairs]
    squares = [sum(pair[side] ** 2 for pair in apart) for side in (0, 1)]
    return sum(a * b for a, b in apart) / math.sqrt(squares[0] * squares[1]) if min(squares) > 1e-16 else NAN


def gini(scores: Scores) -> float:
    """Half the mean difference of all pairs, in units of the mean."""
    sizes, n = [abs(score) for score in scores], len(scores)
    return sum(abs(a - b) for a in sizes for b in sizes) / (2 * n * sum(sizes)) if sum(sizes) else NAN


def entropy(scores: Scores) -> float:
    total = sum(map(abs, scores))
    shares = [abs(score) / total for score in scores if score] if total else []
    return -sum(share * math.log(share) for share in shares) if total else NAN


def common_tops(one: Scores, other: Scores) -> float:
    if len(top(one, 0.2)) >= len(one) or math.isnan(tau(one, other)):
        return NAN
    return len(top(one, 0.2) & top(other, 0.2)) / len(top(one, 0.2))


def auprc(scores: Scores, marks: Sequence[bool]) -> float:
    """Average precision: over falling thresholds, precision times the growth of recall."""
    if not any(marks):
        return NAN
    total, before = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        said = [mark for score, mark in zip(scores, marks, strict=True) if score >= threshold]
        recall = sum(said) / sum(marks)
        total += (recall - before) * sum(said) / len(said)
        before = recall
    return total


def token_f1(scores: Scores, marks: Sequence[bool], share: float) -> float:
    if not any(marks):
        return NAN
    said, wanted = top(scores, share), {unit for unit, mark in enumerate(marks) if mark}
    precision, recall = len(said & wanted) / len(said), len(said & wanted) / len(wanted)
    return 2 * precision * recall / (precision + recall) if precision else 0.0


def spans(units: set[int]) -> list[set[int]]:
    found: list[set[int]] = []
    for unit in sorted(units):
        if found and unit - 1 in found[-1]:
            found[-1].add(unit)
        else:
            found.append({unit})
    return found


def iou_f1(scores: Scores, marks: Sequence[bool], share: float) -> float:
    if not any(marks):
        return NAN
    said = spans(set(top(scores, share)))
    wanted = spans({unit for unit, mark in enumerate(marks) if mark})
    hits = sum(any(len(one & other) / len(one | other) >= 0.5 for other in wanted) for one in said)
    precision, recall = hits / len(said), hits / len(wanted)
    return min(1.0, 2 * precision * recall / (precision + recall)) if hits else 0.0


def shapley(p: Game, n: int) -> list[float]:
    """The mean over all orders of what each unit adds when it comes."""
    found = [0.0] * n
    for coming in permutations(range(n)):
        for place, unit in enumerate(coming):
            found[unit] += p(frozenset(coming[: place + 1])) - p(frozenset(coming[:place]))
    return [value / math.factorial(n) for value in found]
