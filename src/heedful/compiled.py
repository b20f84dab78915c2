"""Loops compiled for the CPU: where tensor operations would pass over the memory many times, one loop does it once."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])
FAST = {"reassoc", "contract", "nsz", "arcp"}
OPTIONS: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy", "nogil": True}


def compiled(function: F) -> F:
    """Compiled at its first call for the types it is given, and kept on disk for the next process.

    Sums may be reordered by the compiler (for vector instructions); infinities and NaN keep their meaning. Mark such
    functions with `no_type_check`: the compiler reads the plain function.
    """
    try:
        return cast(F, numba.njit(cache=True, **OPTIONS)(function))
    except RuntimeError:  # no folder to keep it in
        return cast(F, numba.njit(**OPTIONS)(function))


def inlined(function: F) -> F:
    """A part of compiled loops that is put in its place there: a call for every short row would cost as much as it."""
    return cast(F, numba.njit(inline="always", **OPTIONS)(function))
