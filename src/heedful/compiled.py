"""Loops compiled for the CPU: where tensor operations would pass over the memory many times, one loop does it once."""

import hashlib
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
        made: Any = numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no folder to keep it in
        return cast(F, numba.njit(**OPTIONS)(function))
    keep_apart(made._cache._cache_file)
    return cast(F, made)


def keep_apart(kept: Any) -> None:
    """Have the file of every kept loop called by the types it is compiled for.

    Numba counts: two processes that compile a loop at the same time for different types both write to number 1, and
    whoever then reads the index of one and the code of the other computes with wrong types, in silence.
    """

    def save(key: object, data: object) -> None:
        name = kept._data_name_pattern.replace("{number:d}", _digest(key))
        kept._save_data(name, data)  # before the index names it
        kept._save_index({**kept._load_index(), key: name})

    kept.save = save


def _digest(key: object) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]


def inlined(function: F) -> F:
    """A part of compiled loops that is put in its place there: a call for every short row would cost as much as it."""
    return cast(F, numba.njit(inline="always", **OPTIONS)(function))
