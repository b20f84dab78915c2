"""Table 2: test accuracy of every model at every λ, beside the paper's."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from heedful.analysis.statistics import Estimate
from heedful.claims.combine import own_or_over_seeds
from heedful.pipeline import Run
from heedful.studies.sun2020.runs import Cell, Runs, Selection, called
from heedful.studies.sun2020_facts import accuracy

OUTSIDE = "†"
"""Marks a cell whose interval does not hold the paper's number."""


def table_2(runs: Runs, selection: Selection) -> pd.DataFrame:
    """One row per cell: our mean in per cent, its 95 % interval, the paper's number, the difference.

    With several seeds the interval is Student's over seeds, with one it is Wilson's for the share of test texts. The
    paper prints one run per cell, whose own spread over seeds no interval of ours holds.
    """
    rows = [_row(cell, runs.of_cell(cell, selection.seeds)) for cell in selection.cells()]
    return pd.DataFrame([row for row in rows if row is not None])


def _row(cell: Cell, runs: list[Run]) -> dict[str, object] | None:
    if not runs:
        return None
    found = _estimate(runs)
    paper = accuracy(cell.dataset, cell.model, cell.scale)
    return {
        "dataset": called(cell.dataset),
        "model": cell.model,
        "scale": cell.scale,
        "accuracy": found.value,
        "low": found.low,
        "high": found.high,
        "seeds": len(runs),
        "paper": paper,
        "difference": None if paper is None else found.value - paper,
        "outside": None if paper is None else not found.low <= paper <= found.high,
    }


def _estimate(runs: list[Run]) -> Estimate:
    """Accuracy in per cent, over seeds or over test texts."""
    names = {"value": "test_accuracy", "low": "test_accuracy_low", "high": "test_accuracy_high"}
    rows = [{end: 100 * run.metrics[name] for end, name in names.items()} for run in runs]
    return own_or_over_seeds([Estimate(**row, count=1) for row in rows])


def as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """The arrangement of the paper: a row per data set and λ, a column per model, cells in words."""
    rows: dict[tuple[str, float], dict[str, object]] = {}
    for cell in table.to_dict("records"):
        row = rows.setdefault((cell["dataset"], cell["scale"]), {"data": cell["dataset"], "λ": f"{cell['scale']:g}"})
        row[str(cell["model"])] = cell_words(cell)
    return pd.DataFrame(list(rows.values())).fillna("–")


def cell_words(cell: Mapping[Hashable, Any]) -> str:
    """Such as `82.8 [81.0, 84.4], paper 82.2`, with a mark where the paper lies outside."""
    words = f"{cell['accuracy']:.1f} [{cell['low']:.1f}, {cell['high']:.1f}]"
    if pd.isna(cell["paper"]):
        return words
    return f"{words}, paper {cell['paper']:.1f}{OUTSIDE if cell['outside'] else ''}"


def as_markdown(table: pd.DataFrame) -> str:
    """A table for documentation, cells of Table 2 in the paper's arrangement; pipes are escaped."""
    return "\n".join([*_markdown_rows(as_printed(table)), "", _legend(table), ""])


def _markdown_rows(shown: pd.DataFrame) -> Iterator[str]:
    yield _line(shown.columns)
    yield _line("---" for _ in shown.columns)
    for row in shown.itertuples(index=False):
        yield _line(row)


def _line(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", r"\|") for cell in cells) + " |"


def _legend(table: pd.DataFrame) -> str:
    seeds = int(table["seeds"].max())
    interval = "over the test texts (Wilson)" if seeds == 1 else f"over {seeds} seeds (Student)"
    return (
        f"Test accuracy in per cent with its 95 % interval {interval}. {OUTSIDE} marks cells whose interval does not "
        "hold the paper's number, which is one run."
    )


def summary_words(table: pd.DataFrame) -> str:
    """How near the paper the table is, in one sentence."""
    known = table.dropna(subset=["paper"])
    if known.empty:
        return f"{len(table)} cells, none of them in the paper."
    differences = known["difference"].astype(float)
    inside = int((~known["outside"].astype(bool)).sum())
    return (
        f"{len(known)} cells of the paper's Table 2: mean difference {differences.mean():+.1f} points, median absolute "
        f"difference {differences.abs().median():.1f}; the paper's number lies within our interval in {inside}."
    )
