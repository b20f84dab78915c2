"""The vertex of a polytope of weights that overlaps given weights least: the adversary of three and more classes.

    min Σ_i G_i(γ_i)   with   γ ≥ 0,  Σ γ = 1,  low ≤ D γ ≤ high        G_i(γ) = g(α_i, φ + ρ γ) − g(α_i, φ)

with g the overlap of `heedful.analysis.adversary`, φ the least weight of a unit and ρ = 1 − nφ what is left to share.
The G_i are concave, so a vertex is best: while they are few all are looked at. Otherwise every G_i is replaced by its
chord on [0, u_i], u_i the largest share that unit i can have. That is a linear program, whose solution is a vertex and
whose dual prices prove a bound: for any prices y

    min ≥ y_0 + Σ_k min(y_k low_k, y_k high_k) + Σ_i u_i min(0, c_i − y_0 − Σ_k y_k D_ki)        c_i = G_i(u_i) / u_i

From the vertices of a few such programs the best neighbours are followed until there is none.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linprog

PerUnit = Float[np.ndarray, " units"]
PerRow = Float[np.ndarray, " rows"]

NOTHING = 1e-11
"""Shares below it are rounding."""

UNMET = 1e-9
"""Equations of size one that miss by more are not met."""

ROUNDING = 1e-12
"""What rounding may do to a row of size one, before it is divided by what is left to share."""

MOST_STEPS = 200

Unsolved = Literal["empty", "unsolved"]
INFEASIBLE = 2
"""What scipy calls a program without solutions."""


def overlaps(alpha: Float[np.ndarray, "..."], beta: Float[np.ndarray, "..."] | float) -> Float[np.ndarray, "..."]:
    """g(α, β) = α log((α + β)/α) + β log((α + β)/β), 0 where one of them is 0."""
    small, large = np.minimum(alpha, beta), np.maximum(alpha, beta)
    both = small > 0
    small, large = np.where(both, small, 1.0), np.where(both, large, 1.0)
    more = np.log1p(small / large)
    return np.where(both, small * (np.log(large) - np.log(small) + more) + large * more, 0.0)


@dataclass(frozen=True, kw_only=True)
class Polytope:
    """Shares γ of some units, and what they would overlap."""

    weights: PerUnit
    differences: Float[np.ndarray, "rows units"]
    low: PerRow
    high: Float[np.ndarray, " rows"]
    floor: float
    room: float

    def cost(self, shares: Float[np.ndarray, "*some"], units: Int[np.ndarray, "*some"]) -> Float[np.ndarray, "*some"]:
        """G of these shares of these units."""
        alpha = self.weights[units]
        added: Float[np.ndarray, "*some"] = overlaps(alpha, self.floor + self.room * shares) - overlaps(
            alpha, self.floor
        )
        return added

    @cached_property
    def largest(self) -> PerUnit:
        """u_i: no share of unit i beyond it can be made up for by the unit at the other end, in any row.

        Of rows of size one. Rounding takes no share away: where all units say the same, each may have everything.
        """
        most, least = self.differences.max(1, keepdims=True), self.differences.min(1, keepdims=True)
        low, high = self.low[:, None] - ROUNDING / self.room, self.high[:, None] + ROUNDING / self.room
        with np.errstate(divide="ignore", invalid="ignore"):
            above = (high - least) / (self.differences - least)
            below = (most - low) / (most - self.differences)
        above = np.where(self.differences > high, above, 1.0)
        below = np.where(self.differences < low, below, 1.0)
        largest: PerUnit = np.clip(np.minimum(above, below).min(0, initial=1.0), 0.0, 1.0)
        return largest

    def scaled(self) -> "Polytope":
        """With rows of size one: the same shares. What units do not say at all may still be asked of them."""
        asked = np.abs(np.where(np.isfinite([self.low, self.high]), [self.low, self.high], 0.0)).max(0)
        size = np.maximum(np.abs(self.differences).max(1), 1e-12 * asked)
        size = np.where(size > 0, size, 1.0)
        rows = {"differences": self.differences / size[:, None], "low": self.low / size, "high": self.high / size}
        return Polytope(weights=self.weights, floor=self.floor, room=self.room, **rows)


@dataclass(frozen=True, kw_only=True)
class Vertex:
    """The shares of a few units."""

    units: Int[np.ndarray, " some"]
    shares: Float[np.ndarray, " some"]
    cost: float


def least_overlap(polytope: Polytope, most_vertices: int) -> tuple[Vertex | None, float]:
    """The best vertex found, None where none was, and a cost that none is below: infinite where there is none."""
    polytope = polytope.scaled()
    if (polytope.low == polytope.high).all():
        equations = Equations.of(polytope, polytope.low)
        if not equations.solvable:
            return None, np.inf
        few = comb(polytope.weights.size, equations.rank) <= most_vertices
        if few and (best := equations.all_vertices()) is not None:
            return best, best.cost
    return _bounded(polytope)


@dataclass(frozen=True, kw_only=True)
class Equations:
    """M γ = t with as many rows as are independent: a vertex has so many units at most."""

    polytope: Polytope
    matrix: Float[np.ndarray, "rank units"]
    target: Float[np.ndarray, " rank"]
    solvable: bool
    """Whether any γ meets them, be it negative: fewer units than classes may say nothing of the kind."""

    @classmethod
    def of(cls, polytope: Polytope, values: Float[np.ndarray, " rows"]) -> "Equations":
        """Σ γ = 1 and D γ = values."""
        matrix = np.vstack([np.ones(polytope.weights.size), polytope.differences])
        turn, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
        rows, wanted = turn[:, sizes > 1e-12 * sizes[0]].T, np.concatenate([[1.0], values])
        apart = float(np.linalg.norm(wanted - rows.T @ (rows @ wanted)))
        return cls(polytope=polytope, matrix=rows @ matrix, target=rows @ wanted, solvable=apart <= UNMET)

    @property
    def rank(self) -> int:
        return len(self.matrix)

    def all_vertices(self) -> Vertex | None:
        """The best of all."""
        size = self.matrix.shape[1]
        sets = np.array(list(combinations(range(size), self.rank)), dtype=np.int64)
        parts = self.matrix[:, sets].transpose(1, 0, 2)
        lengths = np.linalg.norm(parts, axis=1).prod(1)
        regular = np.abs(np.linalg.det(parts)) > 1e-12 * lengths
        sets, parts = sets[regular], parts[regular]
        shares = np.linalg.solve(parts, np.broadcast_to(self.target, (len(parts), self.rank))[..., None])[..., 0]
        inside = (shares >= -NOTHING).all(1)
        if not inside.any():
            return None
        sets, shares = sets[inside], np.maximum(shares[inside], 0.0)
        costs = self.polytope.cost(shares, sets).sum(1)
        best = int(costs.argmin())
        return Vertex(units=sets[best], shares=shares[best], cost=float(costs[best]))

    def descend(self, units: Int[np.ndarray, " some"]) -> Vertex | None:
        """From the vertex of these units to ever better neighbours; None where they have no vertex."""
        basis = self._completed(units)
        shares = np.linalg.solve(self.matrix[:, basis], self.target)
        if (shares < -1e-7).any():
            return None
        for _ in range(MOST_STEPS):
            shares = np.maximum(shares, 0.0)
            cost = float(self.polytope.cost(shares, basis).sum())
            moved = self._best_neighbour(basis, shares)
            if moved is None or moved.cost >= cost - NOTHING:
                break
            basis = moved.units
            shares = np.linalg.solve(self.matrix[:, basis], self.target)
        shares = np.maximum(np.linalg.solve(self.matrix[:, basis], self.target), 0.0)
        return Vertex(units=basis, shares=shares, cost=float(self.polytope.cost(shares, basis).sum()))

    def _completed(self, units: Int[np.ndarray, " some"]) -> Int[np.ndarray, " rank"]:
        """As many independent units as there are equations, these before all others."""
        chosen: list[int] = []
        rest = self.matrix.copy()
        others = np.setdiff1d(np.arange(rest.shape[1]), units)
        for group in (units, others):
            while len(chosen) < self.rank and len(group):
                sizes = (rest[:, group] ** 2).sum(0)
                best = int(group[sizes.argmax()])
                if sizes.max() <= 1e-20:
                    break
                direction = rest[:, best] / np.linalg.norm(rest[:, best])
                rest = rest - np.outer(direction, direction @ rest)
                chosen.append(best)
        return np.array(chosen, dtype=np.int64)

    def _best_neighbour(self, basis: Int[np.ndarray, " rank"], shares: Float[np.ndarray, " rank"]) -> Vertex | None:
        """The vertex of least cost that differs in one unit."""
        rates = np.linalg.solve(self.matrix[:, basis], self.matrix)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(rates > 1e-9, shares[:, None] / rates, np.inf)
        entering, leaving = steps.min(0), steps.argmin(0)
        enters = np.isfinite(entering) & ~np.isin(np.arange(len(entering)), basis)
        if not enters.any():
            return None
        units = np.flatnonzero(enters)
        new = np.maximum(shares[:, None] - entering[units] * rates[:, units], 0.0)
        costs = self.polytope.cost(new, np.broadcast_to(basis[:, None], new.shape)).sum(0)
        costs = costs + self.polytope.cost(entering[units], units)
        best = int(costs.argmin())
        moved = basis.copy()
        moved[leaving[units[best]]] = units[best]
        return Vertex(units=moved, shares=shares, cost=float(costs[best]))


def _bounded(polytope: Polytope) -> tuple[Vertex | None, float]:
    """The best of the vertices that three linear programs lead to, and what the chords prove."""
    reach, rank = polytope.largest, len(polytope.low) + 1
    units = np.arange(len(reach))
    chords = polytope.cost(reach, units) / np.maximum(reach, NOTHING)
    even = polytope.cost(np.full(len(reach), 1 / rank), units)
    first = _solved(polytope, chords, reach)
    if first == "empty":
        return None, np.inf
    solved = [first, *(_solved(polytope, costs, reach) for costs in (even, polytope.weights))]
    found = [vertex for one in solved if isinstance(one, Solution) and (vertex := _vertex(polytope, one)) is not None]
    best = min(found, key=lambda vertex: vertex.cost, default=None)
    bound = _proven(polytope, chords, reach, first.prices) if isinstance(first, Solution) else -np.inf
    return best, bound if best is None else min(bound, best.cost)


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Of a linear program: shares, the values D γ, and the prices of the equations."""

    shares: PerUnit
    values: Float[np.ndarray, " rows"]
    prices: Float[np.ndarray, " rank"]


def _solved(polytope: Polytope, costs: PerUnit, reach: PerUnit) -> Solution | Unsolved:
    """The shares γ of least cost, each at most its reach: Σ γ = 1, low ≤ v = D γ ≤ high; "empty" if there are none."""
    size, rows = polytope.weights.size, len(polytope.low)
    top = np.concatenate([np.ones(size), np.zeros(rows)])
    ends = [(0.0, float(most)) for most in reach] + list(zip(polytope.low, polytope.high, strict=True))
    solved = linprog(
        np.concatenate([costs, np.zeros(rows)]),
        A_eq=np.vstack([top, np.hstack([polytope.differences, -np.eye(rows)])]),
        b_eq=np.eye(rows + 1)[0],
        bounds=ends,
        method="highs",
    )
    if solved.status != 0 or solved.x is None:
        return "empty" if solved.status == INFEASIBLE else "unsolved"
    return Solution(shares=solved.x[:size], values=solved.x[size:], prices=solved.eqlin.marginals)


def _vertex(polytope: Polytope, solved: Solution) -> Vertex | None:
    """The best that neighbours lead to from a solution."""
    values = np.clip(solved.values, polytope.low, polytope.high)
    return Equations.of(polytope, values).descend(np.flatnonzero(solved.shares > NOTHING))


def _proven(polytope: Polytope, chords: PerUnit, reach: PerUnit, prices: Float[np.ndarray, " rank"]) -> float:
    """What these prices prove: a cost that no shares are below."""
    first, others = prices[0], prices[1:]
    ends = np.stack([polytope.low, polytope.high])
    allowed = np.where(others > 0, np.isfinite(ends[0]), np.isfinite(ends[1]))
    others = np.where(allowed, others, 0.0)
    with np.errstate(invalid="ignore"):
        sides = np.where(others == 0, 0.0, np.where(others > 0, others * ends[0], others * ends[1]))
    reduced = chords - first - others @ polytope.differences
    return float(first + sides.sum() + (reach * np.minimum(reduced, 0.0)).sum())
