"""Linear programs: the least ratio of two coordinates over a polyhedral cone, and what proves it; the least cost."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import OptimizeResult, linprog

from heedful.analysis.erasure_loops import Numbers

METHODS = ("highs-ipm", "highs-ds")
"""Interior points, ten times faster on corpora than simplex, which is asked where they prove nothing."""

OPTIONS = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


@dataclass(frozen=True, kw_only=True, eq=False)
class LeastRatio:
    """The least x[goal] / x[other] where  inequalities @ x ≥ 0,  equalities @ x = 0,  x ≥ 0.

    Everything is homogeneous, so x[other] = 1 may be asked for (Charnes & Cooper 1962). Solved by HiGHS (Huangfu &
    Hall 2018) through scipy.
    """

    inequalities: sparse.csr_array
    equalities: sparse.csr_array
    goal: int
    other: int

    def allows(self, x: Numbers) -> bool:
        """Whether x is one of those that are compared, up to what HiGHS lets through."""
        slack = OPTIONS["primal_feasibility_tolerance"]
        return bool((self.inequalities @ x >= -slack).all() and (np.abs(self.equalities @ x) <= slack).all())

    def solve(self, method: str, seconds: float) -> OptimizeResult:
        """What HiGHS finds in that time: x (None where it has none), status 0 where it calls it optimal."""
        size = self.inequalities.shape[1]
        bounds = np.column_stack([np.zeros(size), np.full(size, np.inf)])
        bounds[self.other] = 1.0
        return _solved(
            np.eye(1, size, self.goal).ravel(),
            A_ub=-self.inequalities,
            b_ub=np.zeros(self.inequalities.shape[0]),
            A_eq=self.equalities,
            b_eq=np.zeros(self.equalities.shape[0]),
            bounds=bounds,
            method=method,
            options={**OPTIONS, "time_limit": seconds},
        )

    def proved(self, found: OptimizeResult) -> float:
        """A lower bound of the ratio, from the multipliers: with reduced costs r ≥ 0 it is r[other].

        Rounding makes some r slightly negative; then it is the bound for all x that exceed those found by one at most.
        """
        above, equal = np.minimum(found.ineqlin.marginals, 0.0), found.eqlin.marginals
        reduced = self.inequalities.T @ above - self.equalities.T @ equal
        reduced[self.goal] += 1.0
        rest = np.delete(np.minimum(reduced, 0.0) * (found.x + 1.0), self.other)
        return float(reduced[self.other] + rest.sum())


def least_cost(costs: Numbers, rows: sparse.csr_array, above: Numbers, bounds: Numbers) -> OptimizeResult:
    """The least costs @ x where  rows @ x ≥ above  and x lies between its bounds, two columns; by interior points."""
    return _solved(costs, A_ub=-rows, b_ub=-above, bounds=bounds, method=METHODS[0], options=OPTIONS)


def _solved(*arguments: Any, **more: Any) -> OptimizeResult:
    highs: Any = linprog  # scipy takes sparse matrices, its types do not say so
    found: OptimizeResult = highs(*arguments, **more)
    return found


def scaled_rows(rows: sparse.csr_array) -> sparse.csr_array:
    """Each row by its largest entry; empty rows are left out."""
    largest: Numbers = abs(rows).max(axis=1).toarray().ravel()
    some = largest > 0
    scaled: sparse.csr_array = (sparse.diags_array(1 / largest[some]) @ rows[some]).tocsr()
    return scaled
