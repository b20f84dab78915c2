"""`heedful calibrate`: how often the audit's answer, and every claim behind it, is wrong where the truth is known."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Json, print_json

if TYPE_CHECKING:
    import pandas as pd

    from heedful.studies.calibration.judging import Calibration
    from heedful.studies.calibration.worlds import World

TITLES: Mapping[str, str] = {
    "confusion": "The answer where attention is planted",
    "confusion-of-claims": "The claims behind it",
    "trained-confusion": "The answer where a model is trained",
    "trained-confusion-of-claims": "The claims behind it",
}
"""The tables that are printed, and what stands above them."""


def calibrate(
    seeds: Annotated[int, typer.Option(min=1, help="Worlds of each kind.")] = 2,
    first: Annotated[int, typer.Option("--first-seed", min=0, help="The first seed; others are other worlds.")] = 0,
    sizes: Annotated[
        list[int] | None, typer.Option("--texts", min=100, help="Texts of a world; repeat for several.")
    ] = None,
    trained: Annotated[
        bool, typer.Option("--trained/--no-trained", help="Whether models are trained as well, in worlds of their own.")
    ] = True,
    workers: Annotated[int | None, typer.Option("--workers", "-j", min=1, help="Processes; default: by cores.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where the tables go, as CSV, Parquet and LaTeX.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge worlds as an audit does, and count where the answer, or a claim behind it, is not the truth.

    Planted attention of nine kinds, right, wrong and in between; two to ten classes, balanced to 95:5; short and long
    texts; words in bursts or not, with or without a bias; 200, 2,000 and 20,000 texts. And models that are trained on
    noise, on copies of noise, on words of their classes, and on one word of each class.
    """
    from heedful.report.exports import save_table
    from heedful.studies.calibration import worlds
    from heedful.studies.calibration.judging import calibration_tables

    given = {"sizes": tuple(sizes)} if sizes else {}
    planted = _judged("judging planted worlds", worlds.worlds(seeds=seeds, first=first, **given), workers)
    grown = None
    if trained:
        grown = _judged("training and judging", worlds.trained_worlds(seeds=seeds, first=first, **given), workers)
    tables = calibration_tables(planted, grown)
    if out is not None:
        for name, table in tables.items():
            save_table(table, out / name)
    if as_json:
        print_json({name.replace("-", "_"): table.to_dict("records") for name, table in tables.items()})
    else:
        _print(tables)


def _judged(title: str, wanted: "Sequence[World]", workers: int | None) -> "Calibration":
    from heedful.cli.progress import counting
    from heedful.studies.calibration.judging import calibrate as judge

    with counting(title) as watch:
        return judge(wanted, workers=workers, watch=watch)


def _print(tables: "Mapping[str, pd.DataFrame]") -> None:
    from heedful.report.terminal import grid, wide_console
    from heedful.studies.calibration.judging import shown_confusion

    console = wide_console()
    for name, title in TITLES.items():
        if name in tables:
            words = shown_confusion(tables[name]).map(lambda cell: cell if isinstance(cell, str) else f"{cell:,}")
            console.print(f"\n[bold]{title}[/bold]", grid(words), sep="\n")
