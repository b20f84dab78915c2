"""From traces to the two tables that every figure, table and claim of the study reads: `single` and `flips`.

Serrano & Smith 2019, sections 4 and 5: one unit erased beside another one, and units erased along a ranking until the
decision flips. To the paper's four rankings come `margin` and, per instance, the true `minimum`.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch

from heedful.analysis.decisions import decisions
from heedful.analysis.erasure import first_flips, single_erasure
from heedful.analysis.flipsets import minimum_flips
from heedful.analysis.leads import leads_taken
from heedful.analysis.quality import by_chance
from heedful.errors import InputError
from heedful.pipeline import Run
from heedful.text.ragged import segment_sum
from heedful.traces import Trace

TOPS = ("attention", "gradient", "product")
"""The rankings whose top unit is erased alone."""

RANKINGS = (*TOPS, "random", "margin", "minimum")
"""The rankings of the table `flips`; the minimum is none, but its sets stand beside theirs."""

ORDERS = 3
METRICS = ("test_accuracy", "test_accuracy_low", "test_accuracy_high")

FLIP_COLUMNS = ["ranking", "order", "instance", "decision", "units", "erased", "fraction", "mass", "lead_taken"]


def measure(
    found: Trace, *, seed: int = 0, orders: int = ORDERS, rankings: Sequence[str] = RANKINGS
) -> dict[str, pd.DataFrame]:
    """Both tables of one trace; `seed` draws the other unit and the random orders.

    `single`: one row per ranking and instance of two units or more; ΔJS is `divergence_difference`, Δα `difference`.
    `flips`: one row per ranking, order and instance. `erased` is null where nothing flips; instances of one unit are
    there and told by `units`, so that each convention of what to leave out can be had. `lead_taken` is the share of
    the decision's lead that goes with as many units of the ranking as the minimum has (`heedful.analysis.leads`).
    """
    return {"single": _single(found, seed), "flips": _flips(found, seed, orders, rankings)}


def measures_of(runs: Iterable[tuple[Mapping[str, object], Run]]) -> dict[str, pd.DataFrame]:
    """The tables of many runs below each other, each with what is said of it (dataset, model, seed) in front.

    A third table `runs` has one row per run: how many test texts, the share of their largest class, and the test
    accuracy with its interval.
    """
    parts: dict[str, list[pd.DataFrame]] = {"single": [], "flips": [], "runs": []}
    for said, run in runs:
        found = run.trace()
        row = {"instances": len(found), "largest_class": _largest_class(found)}
        row |= {name: run.metrics[name] for name in METRICS}
        seed = run.settings.training.seed
        for name, table in {**measure(found, seed=seed), "runs": pd.DataFrame([row])}.items():
            parts[name].append(in_front(said, table))
    if not parts["runs"]:
        raise InputError("There is no run to measure: train some first, or ask for other data sets, models or seeds.")
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}


def _largest_class(found: Trace) -> float:
    return np.nan if found.labels is None else float(torch.bincount(found.labels).max()) / len(found)


def in_front(said: Mapping[str, object], table: pd.DataFrame) -> pd.DataFrame:
    """The table with constant columns before its own."""
    return pd.concat([pd.DataFrame(dict(said), index=table.index), table], axis=1)


def _single(found: Trace, seed: int) -> pd.DataFrame:
    shared = pd.DataFrame(
        {
            "units": found.lengths.numpy(force=True),
            "label": _labels(found),
            "decision": decisions(found).numpy(force=True),
        }
    )
    tables = [_single_of(found, by, seed).join(shared, on="instance") for by in TOPS]
    columns = ["ranking", "instance", "units", "label", "decision", "difference"]
    columns += ["divergence_top", "divergence_other", "divergence_difference", "flips_top", "flips_other"]
    whole = pd.concat(tables, ignore_index=True)
    return whole.loc[whole["units"] > 1, columns].astype({"flips_other": bool}).reset_index(drop=True)


def _single_of(found: Trace, by: str, seed: int) -> pd.DataFrame:
    names = {
        "delta_weight": "difference",
        "js_top": "divergence_top",
        "js_random": "divergence_other",
        "delta_js": "divergence_difference",
        "flip_top": "flips_top",
        "flip_random": "flips_other",
    }
    return single_erasure(found, by=by, seed=seed).rename(columns=names).assign(ranking=by)


def _labels(found: Trace) -> pd.arrays.IntegerArray:
    """The class number of each instance, missing in a trace without labels."""
    if found.labels is None:
        return pd.arrays.IntegerArray(np.zeros(len(found), np.int64), np.ones(len(found), bool))
    return pd.arrays.IntegerArray(found.labels.numpy(force=True), np.zeros(len(found), bool))


def _flips(found: Trace, seed: int, orders: int, rankings: Sequence[str]) -> pd.DataFrame:
    minimum = minimum_flips(found)
    others = [by for by in rankings if by != "minimum"]
    tables = [_ranked(found, minimum, by, seed, orders if by_chance(by) else 1) for by in others]
    flips = pd.concat([*tables, _minimum(found, minimum)], ignore_index=True)
    return flips.assign(decision=decisions(found).numpy(force=True)[flips["instance"]])[FLIP_COLUMNS]


def _ranked(found: Trace, minimum: pd.DataFrame, by: str, seed: int, orders: int) -> pd.DataFrame:
    table = first_flips(found, by=by, seed=seed, orders=orders)
    taken = torch.cat([leads_taken(found, minimum, by, seed=seed, order=order) for order in range(orders)])
    table = table if "order" in table else table.assign(order=0)
    return table.assign(ranking=by, lead_taken=taken.numpy(force=True))


def _minimum(found: Trace, table: pd.DataFrame) -> pd.DataFrame:
    never = table["erased"].isna().to_numpy()
    counts = table["erased"].to_numpy(dtype=np.float64, na_value=np.nan)
    return table.assign(
        ranking="minimum",
        order=0,
        fraction=counts / table["units"],
        mass=np.where(never, np.nan, _mass(found, table).numpy(force=True)),
        lead_taken=np.where(counts < table["units"], 1.0, np.nan),
    )


def _mass(found: Trace, table: pd.DataFrame) -> torch.Tensor:
    """The attention weight of the units at the positions of a table of minimum sets."""
    starts = found.offsets[:-1].tolist()
    units = [
        start + position
        for start, positions in zip(starts, table["positions"], strict=True)
        for position in positions or ()
    ]
    gone = torch.zeros_like(found.attention_weights)
    gone[units] = found.attention_weights[units]
    return segment_sum(gone, found.offsets)
