"""Agreement of two numbers per unit within each instance: Kendall's τ-b with its p-value, and the share of common tops.

The first number is usually attention, the other what a gradient or the removal of the unit says (Jain & Wallace 2019,
section 4.1). Agreement is not quality: two orders may differ and both be true to the model. Where there is no τ it is
null, and the table says why.

Pairs of units are counted as Knight 1966 does, in n log n steps: all instances are sorted by the first number, equal
ones by the other, and what a merge sort then has to move are the pairs that disagree.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from scipy import special
from torch import Tensor

from heedful.analysis.agreement_loops import compare
from heedful.analysis.erasure_loops import Numbers, arrays, each, one_thread, shares
from heedful.analysis.rankings import sorted_units
from heedful.errors import InputError
from heedful.text.ragged import lengths_of

KNOWN, ONE_UNIT, CONSTANT_ATTENTION, CONSTANT_OTHER = range(4)
REASONS = (None, "one unit", "constant attention", "constant other")
"""Why an instance has no τ, by number; the first has one."""

ALL = "all"
SIGNIFICANT = 0.05
MOST_EXACT = 33
"""Units without ties up to which the p-value is exact, as in scipy."""

BESIDE = 1e-9
"""A share of the units is rounded up, but not for rounding's sake."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Of each instance; `reason` is a number of `REASONS`, and what there is not is not a number."""

    tau: Float[Tensor, " instances"]
    p_value: Float[Tensor, " instances"]
    tops: Int[Tensor, " instances"]
    """k: how many of the most attended units were looked at."""
    top_share: Float[Tensor, " instances"]
    reason: Int[Tensor, " instances"]


def agreement(
    attention: Float[Tensor, " units"],
    other: Float[Tensor, " units"],
    offsets: Int[Tensor, " bounds"],
    *,
    k: int | float = 0.1,
) -> pd.DataFrame:
    """How far two numbers of the same units agree, instance by instance.

        τ_b = (C − D) / √((P − T_a)(P − T_o))

    with P pairs of units, C of them in the same order by both numbers, D in opposite order, T_a and T_o tied in one.
    The p-value is that of τ = 0, two-sided: exact for up to 33 units without ties (or at most one pair that differs),
    else by the normal approximation with ties, which are the choices of `scipy.stats.kendalltau`.

    attention, other: one number per unit, any scale; of the weights and the scores of attention only the order matters.
    k: how many of the most attended units are looked up among the k with the largest other number; a whole number, or a
        share of the units between 0 and 1, rounded up. Ties are broken by position.

    Columns: instance, units, tau, p_value, k, top_k (the share of the k that is common; k / units by chance), missing
    (null, or why there is no τ: one unit, constant attention, constant other). tau, p_value and top_k are null then;
    top_k also where an instance has no more than k units.
    """
    found = agree(attention, other, offsets, k=k)
    missing = found.reason.numpy(force=True)
    return pd.DataFrame(
        {
            "instance": np.arange(len(missing)),
            "units": lengths_of(offsets).numpy(force=True),
            "tau": nullable(found.tau),
            "p_value": nullable(found.p_value),
            "k": found.tops.numpy(force=True),
            "top_k": nullable(found.top_share),
            "missing": pd.array(np.array(REASONS, dtype=object)[missing], dtype="string"),
        }
    )


@one_thread()
def agree(
    attention: Float[Tensor, " units"],
    other: Float[Tensor, " units"],
    offsets: Int[Tensor, " bounds"],
    *,
    k: int | float = 0.1,
) -> Agreement:
    """`agreement` as tensors."""
    both = [_checked(name, values) for name, values in (("attention", attention), ("other", other))]
    starts = offsets.cpu()
    lengths = lengths_of(starts)
    count, tops = len(lengths), tops_of(lengths, k)
    counts, ties = np.zeros((3, count), np.int64), np.zeros((2, count, 3))
    own = arrays(starts, tops, *both, *(sorted_units(values, starts) for values in both))
    each(lambda part: compare(*part, *own, *counts, ties), shares(count, len(both[0])))
    opposite, joint, common = counts
    tau, p_value, reason = map(torch.from_numpy, _judged(lengths.numpy(), opposite, joint, ties))
    share = (torch.from_numpy(common) / tops.double()).where((reason == KNOWN) & (tops < lengths), torch.nan)
    return Agreement(tau=tau, p_value=p_value, tops=tops, top_share=share, reason=reason)


def agreement_summary(
    table: pd.DataFrame, *, by: Sequence[str] = ("measure",), significant: float = SIGNIFICANT
) -> pd.DataFrame:
    """Tables of `agreement` in a few numbers: for all instances and for those of each predicted class.

    Columns: those of `by` that the table has; predicted (the first row of each measure is `all`), instances, counted
    (that have a τ), one_unit, constant_attention, constant_other (that have none, and why), mean and sd of τ,
    significant (the share of the counted with p below the level), top_k (its mean).
    """
    keys = [key for key in by if key in table]
    whole = table.assign(predicted=ALL)
    parts = [whole, table] if "predicted" in table else [whole]
    grouped = [part.groupby([*keys, "predicted"], sort=False) for part in parts]
    rows = [
        dict(zip([*keys, "predicted"], values, strict=True)) | _in_short(some, significant)
        for groups in grouped
        for values, some in groups
    ]
    found = pd.DataFrame(rows)
    if not keys:
        return found
    places = [found[key].map({name: place for place, name in enumerate(table[key].unique())}) for key in keys]
    order = np.lexsort([np.arange(len(found)), *(place.to_numpy() for place in reversed(places))])
    return found.iloc[order].reset_index(drop=True)


def _in_short(table: pd.DataFrame, level: float) -> dict[str, Any]:
    known = table[table["missing"].isna()]
    reasons = {str(name).replace(" ", "_"): int((table["missing"] == name).sum()) for name in REASONS[1:]}
    tau = known["tau"].to_numpy(dtype=np.float64)
    tops = table["top_k"].dropna().to_numpy(dtype=np.float64)
    return {
        "instances": len(table),
        "counted": len(known),
        **reasons,
        "mean": float(tau.mean()) if len(tau) else np.nan,
        "sd": float(tau.std(ddof=1)) if len(tau) > 1 else np.nan,
        "significant": float((known["p_value"] < level).mean()) if len(tau) else np.nan,
        "top_k": float(tops.mean()) if len(tops) else np.nan,
    }


def nullable(values: Float[Tensor, " instances"]) -> pd.arrays.FloatingArray:
    found = values.numpy(force=True)
    missing = np.isnan(found)
    return pd.arrays.FloatingArray(np.where(missing, 0.0, found), missing)


def _checked(name: str, values: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    strange = values.isnan().nonzero()
    if len(strange):
        raise InputError(f"Agreement needs a number for each unit; '{name}' has none (NaN) for unit {int(strange[0])}.")
    return values.detach().cpu().double().contiguous()


def tops_of(lengths: Int[Tensor, " instances"], k: int | float) -> Int[Tensor, " instances"]:
    """How many units are the top of each instance."""
    if isinstance(k, bool) or not (0 < k < 1 or (k >= 1 and float(k).is_integer())):
        raise InputError(f"k must be a whole number from 1 on, or a share of the units between 0 and 1; got {k}.")
    if k >= 1:
        return lengths.clamp(max=int(k))
    return (lengths.double() * k - BESIDE).ceil().long().clamp(min=1)


def _judged(units: Numbers, opposite: Numbers, joint: Numbers, ties: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """τ and its p-value, not a number where there is none, and the reason.

    Of each instance: its units, pairs in opposite order and tied in both numbers, and for each number the sums over
    ties of `add_ties`.
    """
    n = units.astype(np.float64)
    total = n * (n - 1) / 2
    (tied, cubes, spread), (other_tied, other_cubes, other_spread) = np.moveaxis(ties, 2, 1)
    reason = np.where(other_tied == total, CONSTANT_OTHER, KNOWN)
    reason = np.where(tied == total, CONSTANT_ATTENTION, reason)
    reason = np.where(n < 2, ONE_UNIT, reason)
    lead = total - tied - other_tied + joint - 2 * opposite
    with np.errstate(divide="ignore", invalid="ignore"):
        tau = np.clip(lead / np.sqrt(total - tied) / np.sqrt(total - other_tied), -1, 1)
        ordered = n * (n - 1)
        variance = (ordered * (2 * n + 5) - spread - other_spread) / 18 + 2 * tied * other_tied / ordered
        variance += np.where(n > 2, cubes * other_cubes / (9 * ordered * (n - 2)), 0)
        p_value = special.erfc(np.abs(lead) / np.sqrt(2 * variance))
    fewer = np.minimum(opposite, total - opposite).astype(np.int64)
    plain = (tied == 0) & (other_tied == 0) & (reason == KNOWN)
    short = plain & (units <= MOST_EXACT)
    p_value[short] = exact_p_values()[units[short], fewer[short]]
    long = plain & ~short & (fewer <= 1)
    p_value[long] = 2 * np.exp(-special.gammaln(n[long] + 1 - fewer[long]))
    unknown = reason != KNOWN
    return np.where(unknown, np.nan, tau), np.where(unknown, np.nan, p_value), reason


@cache
def exact_p_values() -> Numbers:
    """[n, c]: twice the share of the orders of n units in which at most c pairs are swapped, 1 at most.

    The orders with c swapped pairs are counted in whole numbers: a unit more can swap 0 … n − 1 further pairs.
    """
    most = MOST_EXACT * (MOST_EXACT - 1) // 4
    table = np.ones((MOST_EXACT + 1, most + 1))
    orders = [1]
    for n in range(2, MOST_EXACT + 1):
        longer = [0] * (len(orders) + n - 1)
        for swapped, number in enumerate(orders):
            for more in range(n):
                longer[swapped + more] += number
        orders = longer
        below = 0
        for swapped in range(n * (n - 1) // 4 + 1):
            below += orders[swapped]
            table[n, swapped] = min(1.0, 2 * below / math.factorial(n))
    return table
