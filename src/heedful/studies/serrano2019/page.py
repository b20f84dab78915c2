"""What the page and the terminal show of the study's tables: cells in words, a row per model."""

from collections.abc import Mapping

import pandas as pd

from heedful.pipeline import environment
from heedful.report.study import PageTable, StudyPage
from heedful.studies.serrano2019.runs import MODELS, called
from heedful.studies.study import Outcome

TITLE = "Serrano & Smith 2019, Is Attention Interpretable?"
ORDER = ("random", "attention", "gradient", "product", "margin", "minimum")
"""The rankings as the paper's legend has them, then ours."""

Frames = Mapping[str, pd.DataFrame]


def compose(study: Outcome, tables: Frames) -> StudyPage:
    """The page of a study."""
    return StudyPage(
        title=TITLE,
        lead=study.lead(),
        judged=study.judged,
        tables=page_tables(tables),
        pictures=[one.picture() for one in study.drawn],
        notices=study.notices(),
        facts={"Models": {name: _choices(name) for name in MODELS}, "Versions": environment()},
    )


def lines(tables: Frames) -> list[str]:
    """The tables that were made, for the terminal."""
    return [line for one in page_tables(tables) for line in (one.title, *_rows(one.table))]


def _rows(table: pd.DataFrame) -> list[str]:
    """A line of names and one for each row, in columns."""
    cells = [[str(cell) for cell in row] for row in [list(table.columns), *table.to_numpy().tolist()]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return [f"  {line.rstrip()}" for line in lines]


def page_tables(tables: Frames) -> list[PageTable]:
    """The tables in the order of the page, those that are there."""
    found = []
    if "table1" in tables:
        found.append(PageTable(title="Table 1", note=_TABLE_1, table=tables["table1-as-printed"]))
    if "table2" in tables:
        printed = tables["table2-as-printed"]
        attention = printed[printed["ranking"] == "attention"].drop(columns="ranking")
        found.append(PageTable(title="Table 2", note=_TABLE_2, table=_named(attention)))
    if "table3" in tables:
        found.append(PageTable(title="Table 3", note=_TABLE_3, table=_named(tables["table3-as-printed"])))
    if "flips" in tables:
        found.append(PageTable(title="Fraction erased at the flip", note=_FLIPS, table=fractions(tables["flips"])))
    if "quality" in tables:
        found.append(PageTable(title="The minimum attained", note=_QUALITY, table=attained(tables["quality"])))
    if "inputs" in tables:
        found.append(PageTable(title="Erasure at the input", note=_INPUTS, table=read_again(tables["inputs"])))
    return found


_TABLE_1 = "Words and sentences per text with their deviation, and how many texts; beside the paper's corpus."
_TABLE_2 = (
    "Per cent of test texts whose decision flips without the most attended unit, without a random other one, both or "
    "neither, with 95 % intervals. Those of gradient and product tops are Figures 12 and 13."
)
_TABLE_3 = "Test accuracy in per cent with its 95 % interval, beside the paper's on the corpus that ours stands for."
_FLIPS = (
    "Median fraction of the units erased at the first flip, and, after the stroke, the per cent of texts that lose "
    "more than half. Own leaves out, ranking by ranking, what it never flips, as the paper does; common takes the "
    "texts that all rankings flip."
)
_QUALITY = (
    "Per cent of texts on which a ranking flips the decision with the fewest erasures possible, and, after the stroke, "
    "how many times the fewest it erases on average."
)

_INPUTS = (
    "Units deleted from the text, or masked by the unknown word, and the text read again: median fraction at the flip, "
    "after the stroke that of erased weights on the same texts, and the rank correlation of the two counts. A random "
    "draw of test texts; at most 20 looks at each. Without an encoder deleting is erasing."
)


def fractions(flips: pd.DataFrame) -> pd.DataFrame:
    """Median fraction and share above one half: a row per data set, model and convention, a column per ranking."""
    words = flips.assign(
        words=[
            "–" if pd.isna(median) else f"{median:.2f} / {100 * over:.0f} %"
            for median, over in zip(flips["median_fraction"], flips["over_half"], strict=True)
        ]
    )
    return _wide(words, ["dataset", "model", "convention"])


def attained(quality: pd.DataFrame) -> pd.DataFrame:
    """How often the minimum is attained, and the mean ratio to it: a row per data set and model."""
    words = quality.assign(
        words=[
            f"{100 * share:.0f} % / {ratio:.2f}"
            for share, ratio in zip(quality["attained"], quality["mean_ratio"], strict=True)
        ]
    )
    return _wide(words, ["dataset", "model"])


def read_again(inputs: pd.DataFrame) -> pd.DataFrame:
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
    return _named(rows[[name for name in ORDER if name in rows]].fillna("–").reset_index())


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Data sets as the paper calls them."""
    return table.assign(dataset=[called(name) for name in table["dataset"]])


def _choices(model: str) -> str:
    return ", ".join(f"{name} = {value}" for name, value in MODELS[model].items())
