"""An analysis of instances, run over the shards of a trace: only its tables are in memory."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from heedful.analysis.erasure import minimum_flips, verify_flip
from heedful.analysis.flips import MEASURED, ORDERS, measure
from heedful.trace_folders import TraceFolder
from heedful.traces import Trace, digests_of

Analysis = Callable[[Trace], pd.DataFrame]

GROUPS = ("kind", "ranking", "order")
"""Columns by which a table of a whole trace is in parts, each of which has all instances in their order."""


def in_shards(folder: TraceFolder | Trace, analysis: Analysis) -> pd.DataFrame:
    """The table that an analysis of a whole trace gives, made shard by shard: the same rows, the same numbers.

    folder: a trace in shards, from `heedful.trace` with `out` or `heedful.save_shards`; one in memory is analysed as it
        is.
    analysis: a function of a trace whose table has a column `instance`, and whose rows depend on their own instance
        alone: `heedful.first_flips`, `minimum_flips`, `single_erasure`, `permutation_test`, `adversarial_attention` and
        others. Further arguments are bound to it by functools.partial or a lambda.

    >>> import heedful
    >>> scores = {"attention_weights": [0.5, 0.5, 1.0], "polarity_scores": [2, -1, 1]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 2, 3], bias=[0], **scores)
    >>> folder = heedful.save_shards(trace, "my-trace", shard_size=1)
    >>> found = heedful.in_shards(folder, lambda shard: heedful.first_flips(shard, by="random", seed=3))
    >>> found.equals(heedful.first_flips(trace, by="random", seed=3))
    True
    """
    if isinstance(folder, Trace):
        return analysis(folder)
    return joined([of_shard(shard, analysis) for shard in folder.shards()])


def of_shard(shard: Trace, analysis: Analysis) -> pd.DataFrame:
    """The table of one shard, its instances counted as those of the whole."""
    return _numbered(shard, analysis(shard))


def _numbered(shard: Trace, table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(instance=table["instance"] + (shard.part.first if shard.part else 0))


def joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The tables of all shards as that of the whole: part after part, in each the instances in their order."""
    groups = [name for name in GROUPS if name in tables[0]]
    whole = pd.concat(tables, ignore_index=True)
    if not groups:
        return whole
    places = whole.groupby(groups, sort=False).ngroup()  # parts are numbered as the first shard has them
    return whole.iloc[places.argsort(kind="stable")].reset_index(drop=True)


def measured(
    shard: Trace, *, seed: int = 0, orders: int = ORDERS, rankings: Sequence[str] = MEASURED
) -> dict[str, pd.DataFrame]:
    """The tables of `measure` for one shard."""
    found = measure(shard, seed=seed, orders=orders, rankings=rankings)
    return {name: _numbered(shard, table) for name, table in found.items()}


def erased_tables(shard: Trace, *, seed: int, rankings: Sequence[str]) -> dict[str, pd.DataFrame]:
    """All that is said of erasing the weights of one shard: the tables of `measure`, the `minimum` with whether plain
    erasure of each set flips, and what the `instances` are, by which copies are told."""

    def minimum(trace: Trace) -> pd.DataFrame:
        found = minimum_flips(trace)
        return found.assign(verified=verify_flip(trace, found)["holds"])

    found = {"minimum": minimum, "instances": instances_of}
    tables = {name: of_shard(shard, analysis) for name, analysis in found.items()}
    return {**measured(shard, seed=seed, rankings=rankings), **tables}


def instances_of(trace: Trace) -> pd.DataFrame:
    """One row per instance: units, label (null where there is none), predicted, and a digest of its units."""
    count, unlabelled = len(trace), trace.labels is None
    labels = np.zeros(count, np.int64) if trace.labels is None else trace.labels.numpy(force=True)
    return pd.DataFrame(
        {
            "instance": np.arange(count),
            "units": trace.lengths.numpy(force=True),
            "label": pd.arrays.IntegerArray(labels, np.full(count, unlabelled)),
            "predicted": trace.predictions.numpy(force=True),
            "digest": digests_of(trace),
        }
    )
