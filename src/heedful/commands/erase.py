"""`heedful erase`: erase attention weights of a text, or of a whole trace, and see when decisions flip."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.commands.lookup import find_run
from heedful.commands.options import AllUnits, Json, StoreRoot, print_json

if TYPE_CHECKING:
    from heedful.pipeline import Run
    from heedful.traces import Trace


def erase(
    text: Annotated[str | None, typer.Argument(help="The text; - reads standard input.")] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", help="A run: its directory, or the beginning of its name in the store."),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="A trace file (.parquet, .safetensors) instead of a text.")
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option("--input", help="Units leave the text and it is read again: delete, or mask by the unknown word."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draws random orders; default: the run's seed, 0 for a trace.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where the tables go, as CSV, Parquet and LaTeX.")
    ] = None,
    everything: AllUnits = False,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Erase attention weights along each ranking until the decision flips, beside the provably smallest set.

    With TEXT and --run, one text; with --run alone, the test split of that run; with --trace, a trace of any model.
    With --input and --run, words leave the text beside their weights: on the TEXT, or on 100 test texts of the run.
    """
    if text is not None and run is not None and trace is None:
        if out is not None:
            raise typer.BadParameter("--out is for the tables of many texts; of one text --json prints everything")
        _erase_text(
            sys.stdin.read() if text == "-" else text, find_run(run, store), inputs, seed or 0, everything, as_json
        )
    elif inputs is not None:
        if text is not None or run is None or trace is not None:
            raise typer.BadParameter("--input needs a model to read again: give --run, with or without a TEXT")
        _erase_inputs(find_run(run, store), inputs, out, as_json)
    elif text is None and (run is None) != (trace is None):
        kept = find_run(run, store) if run is not None else None
        found = kept.trace() if kept else _load(trace or Path())
        drawn = kept.settings.training.seed if kept and seed is None else seed or 0
        _erase_trace(found, drawn, out, as_json)
    else:
        raise typer.BadParameter("give a TEXT with --run, or --run alone, or --trace alone")


def _load(file: Path) -> "Trace":
    from heedful.traces import Trace

    return Trace.load(file)


def _erase_text(text: str, run: "Run", inputs: str | None, seed: int, everything: bool, as_json: bool) -> None:
    from heedful.studies.erasure import erase_text, print_erasure

    found = erase_text(run.model(), text, inputs=inputs, seed=seed)
    if as_json:
        print_json(found.summary())
    else:
        print_erasure(found, everything=everything)


def _erase_inputs(run: "Run", mode: str, out: Path | None, as_json: bool) -> None:
    from heedful.commands.progress import counting
    from heedful.pipeline import read_corpus
    from heedful.studies.erasure import input_tables, print_inputs
    from heedful.studies.study import plain
    from heedful.studies.tables import save_table

    with counting("reading changed texts") as watch:
        tables = input_tables(run, read_corpus(run.settings), mode, watch=watch)
    if out is not None:
        for name, table in tables.items():
            save_table(table, out / f"{name}-{mode}")
    if as_json:
        print_json({name: plain(table) for name, table in tables.items()})
    else:
        print_inputs(tables["inputs"])


def _erase_trace(found: "Trace", seed: int, out: Path | None, as_json: bool) -> None:
    from heedful.studies.erasure import erasure_tables, print_tables
    from heedful.studies.study import plain

    tables = erasure_tables(found, seed=seed)
    if out is not None:
        tables.save(out)
    if as_json:
        print_json({name: plain(table) for name, table in tables.named().items()})
    else:
        print_tables(tables)
