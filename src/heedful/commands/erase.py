"""`heedful erase`: erase attention weights of a text, or of a whole trace, and see when decisions flip."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from heedful.commands.options import Json, print_json


def erase(
    text: Annotated[str | None, typer.Argument(help="The text; - reads standard input.")] = None,
    run: Annotated[Path | None, typer.Option("--run", help="A run directory: its model reads the text.")] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="A trace file (.parquet, .safetensors) instead of a text.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws the random ranking.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="With --trace: where the tables go.")] = None,
    as_json: Json = False,
) -> None:
    """Erase attention weights along each ranking until the decision flips, beside the provably smallest set.

    With TEXT and --run, one text; with --run alone, the test split of that run; with --trace, a trace of any model.
    """
    if text is not None and run is not None and trace is None:
        _erase_text(sys.stdin.read() if text == "-" else text, run, seed, as_json)
    elif text is None and (run is None) != (trace is None):
        _erase_trace(run, trace, seed, out, as_json)
    else:
        raise typer.BadParameter("give a TEXT with --run, or --run alone, or --trace alone")


def _erase_text(text: str, run: Path, seed: int, as_json: bool) -> None:
    from heedful.pipeline import Run
    from heedful.studies.erasure import erase_text, print_erasure

    found = erase_text(Run(run).model(), text, seed=seed)
    if as_json:
        print_json(found.summary())
    else:
        print_erasure(found)


def _erase_trace(run: Path | None, file: Path | None, seed: int, out: Path | None, as_json: bool) -> None:
    from heedful.pipeline import Run
    from heedful.studies.erasure import erasure_tables, print_tables
    from heedful.traces import Trace

    tables = erasure_tables(Run(run).trace() if run else Trace.load(file or Path()), seed=seed)
    if out is not None:
        tables.save(out)
    if as_json:
        print_json({"summary": tables.summary.to_dict("records"), "quality": tables.quality.to_dict("records")})
    else:
        print_tables(tables)
