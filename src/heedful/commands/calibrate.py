"""`heedful calibrate`: how often the audit's answer is wrong where the truth is known."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.commands.options import Json, print_json


def calibrate(
    seeds: Annotated[int, typer.Option(min=1, help="Worlds of each kind.")] = 2,
    sizes: Annotated[
        list[int] | None, typer.Option("--texts", min=100, help="Texts of a world; repeat for several.")
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", "-j", min=1, help="Processes; default: by cores.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where the tables go, as CSV, Parquet and LaTeX.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge planted worlds as an audit does, and count where the answer is not the planted truth.

    Attention that is informative, blind, misleading, right across the corpus only, right in single decisions only, and
    graded; two to ten classes, balanced to 95:5; short and long texts; 200, 2,000 and 20,000 of them.
    """
    from heedful.commands.progress import counting
    from heedful.studies import calibration
    from heedful.studies.tables import save_table

    wanted = calibration.worlds(seeds=seeds, sizes=tuple(sizes or calibration.SIZES))
    with counting("judging planted worlds") as watch:
        cases = calibration.calibrate(wanted, workers=workers, watch=watch)
    tables = {
        "cases": cases,
        "confusion": calibration.confusion(cases),
        "confusion-by-attention": calibration.confusion(cases, ("question", "attention")),
        "confusion-by-classes": calibration.confusion(cases, ("question", "classes")),
    }
    if out is not None:
        for name, table in tables.items():
            save_table(table, out / name)
    if as_json:
        print_json({name.replace("-", "_"): table.to_dict("records") for name, table in tables.items()})
    else:
        _print(calibration.shown_confusion(tables["confusion"]))


def _print(table: "object") -> None:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    assert isinstance(table, pd.DataFrame)
    shown = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for column in table.columns:
        shown.add_column(str(column), justify="left" if column == "question" else "right")
    for row in table.itertuples(index=False):
        shown.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    Console(highlight=False).print(shown)
