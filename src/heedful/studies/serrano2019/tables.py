"""The tables of the study, from what its study measures: flip tables, accuracy, fractions, distance to the minimum.

Shares are in per cent. With one seed their interval is Wilson's over the instances; with several it is Student's over
seeds. Numbers of the paper stand beside ours where the data set is one of its own or stands for one.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from heedful.analysis.quality import (
    by_ranking,
    compare_levels,
    flip_summary,
    fraction_distribution,
    pairwise_attainment,
    pairwise_wins,
    ranking_quality,
)
from heedful.analysis.statistics import Estimate, share
from heedful.claims.combine import SHARES, mean_table, own_or_over_seeds
from heedful.papers import serrano2019 as paper_numbers
from heedful.papers.serrano2019 import CELLS
from heedful.studies.serrano2019.runs import called

Row = dict[str, Any]

CELL = ["dataset", "model"]
RUN = [*CELL, "seed"]
MINIMUM = "minimum"
HALF = 0.5
ORDER = ("random", "attention", "gradient", "product", "margin", MINIMUM)
"""The rankings as the paper's legend has them, then ours."""


def table_2(single: pd.DataFrame) -> pd.DataFrame:
    """Per data set, model and ranking the share of instances in each cell of the 2 × 2 table of flips.

    `cell` says which erasure flips the decision: that of the ranking's top unit, that of a random other one, both or
    neither. Columns: dataset, model, ranking, cell, share, low, high, instances, seeds, paper, difference.
    """
    rows = []
    for key, part in single.groupby([*CELL, "ranking"], sort=False):
        dataset, model, ranking = map(str, key)
        seeds = [_cells(run) for _, run in part.groupby("seed", sort=False)]
        paper = paper_numbers.flip_cells(dataset, model, ranking) or {}
        for cell in CELLS:
            found = own_or_over_seeds([one[cell] for one in seeds], SHARES)
            said = {"dataset": dataset, "model": model, "ranking": ranking, "cell": cell}
            rows.append({**said, **_beside("share", found, len(seeds), paper.get(cell))})
    return pd.DataFrame(rows)


def _cells(run: pd.DataFrame) -> dict[str, Estimate]:
    top, other = run["flip_top"], run["flip_random"]
    marks = (top & other, top & ~other, ~top & other, ~top & ~other)
    return {cell: share(int(mark.sum()), len(run)) for cell, mark in zip(CELLS, marks, strict=True)}


def _beside(name: str, found: Estimate, seeds: int, paper: float | None) -> Row:
    """A share in per cent, its interval, and the paper's number with the difference."""
    return {
        name: 100 * found.value,
        "low": 100 * found.low,
        "high": 100 * found.high,
        "instances": found.count,
        "seeds": seeds,
        "paper": np.nan if paper is None else paper,
        "difference": np.nan if paper is None else 100 * found.value - paper,
    }


def table_2_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A row per data set, model and ranking, a column per cell of the 2 × 2 table, cells in words."""
    return _printed(table, ["dataset", "model", "ranking"], "cell", "share")


def table_3(runs: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy of every model on every data set, beside the paper's.

    `largest` is what a model would have that always says the most frequent class of the test texts. Columns: dataset,
    model, accuracy, low, high, instances, seeds, paper, difference, largest.
    """
    rows = []
    for key, part in runs.groupby(CELL, sort=False):
        dataset, model = map(str, key)
        found = own_or_over_seeds([_accuracy(row) for row in part.to_dict("records")], SHARES)
        paper = paper_numbers.accuracy(dataset, model)
        largest = {"largest": 100 * float(part["largest_class"].mean())}
        rows.append({"dataset": dataset, "model": model, **_beside("accuracy", found, len(part), paper), **largest})
    return pd.DataFrame(rows)


def _accuracy(row: Mapping[Hashable, Any]) -> Estimate:
    low, high = (float(row[f"test_accuracy_{end}"]) for end in ("low", "high"))
    return Estimate(value=float(row["test_accuracy"]), low=low, high=high, count=int(row["instances"]))


def table_3_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """The arrangement of the paper: a row per data set, a column per model; and the share of the largest class."""
    largest = table.drop_duplicates("dataset").set_index("dataset")["largest"]
    rows = _printed(table, ["dataset"], "model", "accuracy")
    return rows.assign(**{"largest class": [f"{largest[name]:.1f}" for name in rows["dataset"]]})


def _printed(table: pd.DataFrame, keys: Sequence[str], column: str, value: str) -> pd.DataFrame:
    rows: dict[tuple[object, ...], Row] = {}
    for cell in table.to_dict("records"):
        key = tuple(cell[name] for name in keys)
        rows.setdefault(key, dict(zip(keys, key, strict=True)))[str(cell[column])] = _words(cell, value)
    return pd.DataFrame(list(rows.values())).fillna("–")


def _words(cell: Mapping[Hashable, Any], value: str) -> str:
    """Such as `8.7 [7.9, 9.6], paper 8.7`."""
    words = f"{cell[value]:.1f} [{cell['low']:.1f}, {cell['high']:.1f}]"
    return words if pd.isna(cell["paper"]) else f"{words}, paper {cell['paper']:.1f}"


def summary_table(flips: pd.DataFrame) -> pd.DataFrame:
    """Per ranking the fraction of units and the attention weight erased at the flip, means over seeds.

    `convention` own leaves out, for each ranking, the instances that it never flips, as the paper does; common takes
    those that all rankings flip. Instances of one unit are left out of both.
    """
    parts = [flip_summary(tables).assign(**said) for said, tables, _ in _runs(flips)]
    return mean_table(parts, [*CELL, "ranking", "convention"])


def fractions_table(flips: pd.DataFrame) -> pd.DataFrame:
    """The share of instances that lose more than a tenth, a quarter, … of their units, means over seeds."""
    parts = [fraction_distribution(tables).assign(**said) for said, tables, _ in _runs(flips)]
    return mean_table(parts, [*CELL, "ranking", "convention", "threshold"])


def _flipped(run: pd.DataFrame) -> pd.DataFrame:
    return run[run["erased"].notna() & (run["units"] > 1)]


def quality_table(flips: pd.DataFrame) -> pd.DataFrame:
    """Per ranking how near it comes to the true minimum (`ranking_quality`), means over seeds."""
    parts = []
    for said, tables, _ in _runs(flips):
        minimum = tables.pop(MINIMUM)
        parts.append(ranking_quality(tables, minimum).assign(**said))
    return mean_table(parts, [*CELL, "ranking"])


def wins_table(flips: pd.DataFrame) -> pd.DataFrame:
    """Per run and pair of rankings how often each flips with fewer erasures, with the sign test of `pairwise_wins`.

    `first_share` is of all instances that both flip, as the paper counts when it says that gradient beats attention on
    over half of them; `ratio` is wins by losses.
    """
    parts = []
    for said, tables, _ in _runs(flips):
        table = wins_and_attainment(tables)
        ratio = table["first_wins"] / table["second_wins"].where(table["second_wins"] > 0)
        table = table.assign(first_share=table["first_wins"] / table["instances"].where(table["instances"] > 0))
        parts.append(table.assign(ratio=ratio, **said))
    return _in_front(pd.concat(parts, ignore_index=True), RUN)


def wins_and_attainment(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """`pairwise_wins`, and beside the minimum on how many instances only one of the two attains it, by McNemar."""
    rankings = {name: table for name, table in tables.items() if name != MINIMUM}
    attained = pairwise_attainment(rankings, tables[MINIMUM]).rename(columns={"p_value": "p_attained"})
    return pairwise_wins(tables).merge(attained.drop(columns="instances"), on=["first", "second"], how="left")


def inputs_table(levels: pd.DataFrame) -> pd.DataFrame:
    """Erasure at the input beside erasure of weights: the columns of `compare_levels`, means over seeds."""
    parts = [compare_levels(run).assign(**said) for said, _, run in _runs(levels)]
    return mean_table(parts, [*CELL, "mode", "ranking"])


def input_summary_table(levels: pd.DataFrame) -> pd.DataFrame:
    """What `summary_table` says of erased weights, of each level: attention, delete and mask, on the same texts."""
    parts = [summary_table(rows).assign(level=level) for level, rows in levels.groupby("level", sort=False)]
    return _in_front(pd.concat(parts, ignore_index=True), [*CELL, "level"])


def tail_table(flips: pd.DataFrame) -> pd.DataFrame:
    """Per ranking the share of instances that lose more than half of their units before they flip (Figure 6).

    Of the instances that the ranking flips; of several random orders, all together count as they do in the paper, but
    the interval is that of one. Columns: dataset, model, ranking, over_half, low, high, instances, seeds, paper,
    difference.
    """
    rows = []
    kept = _flipped(flips)
    for key, part in kept.groupby([*CELL, "ranking"], sort=False):
        dataset, model, ranking = map(str, key)
        seeds = [_over_half(run) for _, run in part.groupby("seed", sort=False)]
        paper = paper_numbers.over_half(dataset, model, ranking)
        said = {"dataset": dataset, "model": model, "ranking": ranking}
        rows.append({**said, **_beside("over_half", own_or_over_seeds(seeds, SHARES), len(seeds), paper)})
    return pd.DataFrame(rows)


def _over_half(run: pd.DataFrame) -> Estimate:
    orders, late = int(run["order"].nunique()), int((run["fraction"] > HALF).sum())
    return replace(share(round(late / orders), round(len(run) / orders)), value=late / len(run))


def _runs(flips: pd.DataFrame) -> Iterator[tuple[Row, dict[str, pd.DataFrame], pd.DataFrame]]:
    """What is said of each run, its rows by ranking, and all its rows."""
    for key, run in flips.groupby(RUN, sort=False):
        yield dict(zip(RUN, key, strict=True)), by_ranking(run), run


def _in_front(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    return table[[*columns, *(name for name in table if name not in columns)]]


def fractions_in_words(flips: pd.DataFrame) -> pd.DataFrame:
    """Median fraction and share above one half: a row per data set, model and convention, a column per ranking."""
    words = flips.assign(
        words=[
            "–" if pd.isna(median) else f"{median:.2f} / {100 * over:.0f} %"
            for median, over in zip(flips["median_fraction"], flips["over_half"], strict=True)
        ]
    )
    return _wide(words, ["dataset", "model", "convention"])


def attained_in_words(quality: pd.DataFrame) -> pd.DataFrame:
    """How often the minimum is attained, and the mean ratio to it: a row per data set and model."""
    words = quality.assign(
        words=[
            f"{100 * share:.0f} % / {ratio:.2f}"
            for share, ratio in zip(quality["attained"], quality["mean_ratio"], strict=True)
        ]
    )
    return _wide(words, ["dataset", "model"])


def inputs_in_words(inputs: pd.DataFrame) -> pd.DataFrame:
    """Medians of both notions of erasure and their correlation: a row per data set, model and mode."""
    words = inputs.assign(
        words=[
            "–" if pd.isna(given) else f"{given:.2f} / {weighed:.2f}" + ("" if pd.isna(rho) else f", ρ {rho:.2f}")
            for given, weighed, rho in zip(
                inputs["median_fraction_input"],
                inputs["median_fraction_attention"],
                inputs["correlation"],
                strict=True,
            )
        ]
    )
    return _wide(words, ["dataset", "model", "mode"])


def _wide(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One column for each ranking, rows in the order in which they come."""
    rows = table.pivot(index=keys, columns="ranking", values="words")
    rows = rows.reindex(pd.MultiIndex.from_frame(table[keys].drop_duplicates()))
    return named(rows[[name for name in ORDER if name in rows]].fillna("–").reset_index())


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Data sets as the paper calls them."""
    return table.assign(dataset=[called(name) for name in table["dataset"]])
