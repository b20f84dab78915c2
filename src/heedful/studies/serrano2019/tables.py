"""The tables of the study that have the paper's numbers: flip tables, accuracy, the tail; and tables in words.

Shares are in per cent. With one seed their interval is Wilson's over the instances; with several it is Student's over
seeds. Numbers of the paper stand beside ours where the data set is one of its own or stands for one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Estimate, share
from heedful.claims.combine import SHARES, own_or_over_seeds
from heedful.papers import serrano2019 as paper_numbers
from heedful.studies.measures import CELL, MINIMUM, Cell, arranged, beside, beside_in_words, called, cell_shares

HALF = 0.5
ORDER = ("random", "attention", "gradient", "product", "margin", MINIMUM)
"""The rankings as the paper's legend has them, then ours."""


def _over_seeds(
    rows: pd.DataFrame, keys: list[str], of_run: Callable[[pd.DataFrame], Mapping[str, Estimate]]
) -> Iterator[tuple[dict[str, str], str, Estimate, int]]:
    """What the keys are, and of each number of a run: its name, the number over seeds, and how many seeds there are."""
    for key, part in rows.groupby(keys, sort=False):
        seeds = [of_run(run) for _, run in part.groupby("seed", sort=False)]
        for name in seeds[0]:
            found = own_or_over_seeds([one[name] for one in seeds], SHARES)
            yield dict(zip(keys, map(str, key), strict=True)), name, found, len(seeds)


def _known(number: float | None) -> float:
    return np.nan if number is None else number


def table_2(single: pd.DataFrame) -> pd.DataFrame:
    """Per data set, model and ranking the share of instances in each cell of the 2 × 2 table of flips.

    `cell` says which erasure flips the decision: that of the ranking's top unit, that of a random other one, both or
    neither. Columns: dataset, model, ranking, cell, share, low, high, instances, seeds, paper, difference.
    """
    rows = []
    for said, cell, found, seeds in _over_seeds(single, [*CELL, "ranking"], cell_shares):
        paper = (paper_numbers.flip_cells(**said) or {}).get(cell)
        rows.append({**said, "cell": cell, **beside("share", found, seeds, _known(paper))})
    return pd.DataFrame(rows)


def table_2_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """A row per data set, model and ranking, a column per cell of the 2 × 2 table, cells in words."""
    return arranged(table, [*CELL, "ranking"], "cell", partial(beside_in_words, value="share"))


def attention_tops(printed: pd.DataFrame) -> pd.DataFrame:
    """What is shown of it: the paper's Table 2."""
    return named(printed[printed["ranking"] == "attention"].drop(columns="ranking"))


def table_3(runs: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy of every model on every data set, beside the paper's.

    `largest` is what a model would have that always says the most frequent class of the test texts. Columns: dataset,
    model, accuracy, low, high, instances, seeds, paper, difference, largest.
    """
    largest = runs.groupby(CELL)["largest_class"].agg(lambda shares: 100 * shares.mean())
    rows = []
    for said, name, found, seeds in _over_seeds(runs, CELL, _accuracy):
        numbers = beside(name, found, seeds, _known(paper_numbers.accuracy(**said)))
        rows.append({**said, **numbers, "largest": float(largest[said["dataset"], said["model"]])})
    return pd.DataFrame(rows)


def _accuracy(run: pd.DataFrame) -> dict[str, Estimate]:
    row = run.iloc[0]
    value, low, high = (float(row[f"test_accuracy{end}"]) for end in ("", "_low", "_high"))
    return {"accuracy": Estimate(value=value, low=low, high=high, count=int(row["instances"]))}


def table_3_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """The arrangement of the paper: a row per data set, a column per model; and the share of the largest class."""
    largest = table.drop_duplicates("dataset").set_index("dataset")["largest"]
    rows = arranged(table, ["dataset"], "model", partial(beside_in_words, value="accuracy"))
    return rows.assign(**{"largest class": [f"{largest[name]:.1f}" for name in rows["dataset"]]})


def tail_table(flips: pd.DataFrame) -> pd.DataFrame:
    """Per ranking the share of instances that lose more than half of their units before they flip (Figure 6).

    Of the instances that the ranking flips; of several random orders, all together count as they do in the paper, but
    the interval is that of one. Columns: dataset, model, ranking, over_half, low, high, instances, seeds, paper,
    difference.
    """
    flipped = flips[flips["erased"].notna() & (flips["units"] > 1)]
    rows = []
    for said, name, found, seeds in _over_seeds(flipped, [*CELL, "ranking"], _over_half):
        rows.append({**said, **beside(name, found, seeds, _known(paper_numbers.over_half(**said)))})
    return pd.DataFrame(rows)


def _over_half(run: pd.DataFrame) -> dict[str, Estimate]:
    orders, late = int(run["order"].nunique()), int((run["fraction"] > HALF).sum())
    return {"over_half": replace(share(round(late / orders), round(len(run) / orders)), value=late / len(run))}


def fractions_in_words(flips: pd.DataFrame) -> pd.DataFrame:
    """Median fraction and share above one half: a row per data set, model and convention, a column per ranking."""

    def words(row: Cell) -> str:
        median = row["median_fraction"]
        return "–" if pd.isna(median) else f"{median:.2f} / {100 * row['over_half']:.0f} %"

    return _by_ranking(flips, [*CELL, "convention"], words)


def attained_in_words(quality: pd.DataFrame) -> pd.DataFrame:
    """How often the minimum is attained, and the mean ratio to it: a row per data set and model."""
    return _by_ranking(quality, CELL, lambda row: f"{100 * row['attained']:.0f} % / {row['mean_ratio']:.2f}")


def inputs_in_words(inputs: pd.DataFrame) -> pd.DataFrame:
    """Medians of both notions of erasure and their correlation: a row per data set, model and mode."""

    def words(row: Cell) -> str:
        given, rho = row["median_fraction_input"], row["correlation"]
        both = f"{given:.2f} / {row['median_fraction_attention']:.2f}"
        return "–" if pd.isna(given) else both + ("" if pd.isna(rho) else f", ρ {rho:.2f}")

    return _by_ranking(inputs, [*CELL, "mode"], words)


def _by_ranking(table: pd.DataFrame, keys: list[str], words: Callable[[Cell], str]) -> pd.DataFrame:
    """One column for each ranking, rows in the order in which they come."""
    rows = arranged(table, keys, "ranking", words)
    return named(rows[[*keys, *(name for name in ORDER if name in rows)]])


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Data sets as the paper calls them."""
    return table.assign(dataset=[called(name, paper_numbers.NAMES) for name in table["dataset"]])
