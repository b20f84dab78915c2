"""`heedful reproduce`: a paper's tables, figures and claims, run again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.commands.options import Json, StoreRoot, print_json
from heedful.errors import ConfigError, UnknownName

if TYPE_CHECKING:
    from heedful.studies.sun2020.runs import Selection
    from heedful.studies.sun2020.study import Request, Study

PAPERS = ("sun2020",)
TABLES = ("2",)


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="sun2020: Sun & Lu 2020, Understanding Attention for Text Classification.")
    ],
    table: Annotated[str | None, typer.Option("--table", help="Only this table: 2.")] = None,
    figures: Annotated[
        list[str] | None, typer.Option("--figure", help="Only this figure, such as 3 or S14, or all; may be repeated.")
    ] = None,
    claims: Annotated[bool, typer.Option("--claims", help="Only the verdicts on the paper's claims.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes: synthetic data, and SST with fewer λ.")] = False,
    datasets: Annotated[
        str | None, typer.Option("--datasets", help="Names or files, with commas between; default: the paper's four.")
    ] = None,
    models: Annotated[str | None, typer.Option("--models", help="Of DP, DP-L, DP-A, AD, with commas between.")] = None,
    scales: Annotated[str | None, typer.Option("--scales", help="Values of λ, with commas between.")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Runs per cell; default 1, quick 3.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where tables, figures and the page go.")] = Path("study"),
    on: Annotated[str, typer.Option("--on", help="local, ray, or ray://host:port.")] = "local",
    workers: Annotated[int | None, typer.Option("--workers", "-j", min=1, help="Local processes.")] = None,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Run a paper again: its tables beside the printed numbers, its figures, and verdicts on its claims.

    Without --table, --figure or --claims all of them. A study that was stopped goes on when it is called again.
    """
    if paper not in PAPERS:
        raise UnknownName("paper", paper, PAPERS)
    if table is not None and table not in TABLES:
        raise UnknownName("table", table, TABLES)
    selection = _selection(quick, datasets, models, scales, seeds)
    request = _request(selection, table is not None, figures, claims, synthetic=datasets is None, quick=quick)
    study = _follow(request, store, out, on, workers)
    if as_json:
        print_json(study.summary())
    else:
        _print(study)
    if study.failures:
        raise typer.Exit(1)


def _selection(
    quick: bool, datasets: str | None, models: str | None, scales: str | None, seeds: int | None
) -> "Selection":
    """The full or the quick selection, with what was asked for in its place."""
    from dataclasses import replace

    from heedful.studies.sun2020.runs import QUICK, Selection

    found = QUICK if quick else Selection()
    if datasets is not None:
        found = replace(found, datasets=tuple(_words(datasets)))
    if models is not None:
        found = replace(found, models=tuple(_words(models)))
    if scales is not None:
        found = replace(found, scales=tuple(_number(word) for word in _words(scales)))
    return found if seeds is None else replace(found, seeds=seeds)


def _request(
    selection: "Selection", table: bool, figures: list[str] | None, claims: bool, *, synthetic: bool, quick: bool
) -> "Request":
    from heedful.studies.sun2020.catalogue import figures_on
    from heedful.studies.sun2020.study import Request

    everything = not table and not figures and not claims
    names = [name for given in figures or (["all"] if everything else []) for name in _words(given)]
    drawable = figures_on(selection.datasets, synthetic=synthetic)
    listed = [one for name in names for one in (drawable if name == "all" else [_figure_name(name)])]
    return Request(
        selection=selection,
        table=table or everything,
        figures=tuple(dict.fromkeys(listed)),
        claims=claims or everything,
        synthetic=synthetic,
        quick=quick,
    )


def _figure_name(name: str) -> str:
    """S13 may be written s13."""
    return name.upper() if name[1:].isdigit() else name


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ConfigError(f"λ is a number above 0, not '{word}'.") from None


def _follow(request: "Request", store: Path, out: Path, on: str, workers: int | None) -> "Study":
    from heedful.store import Store
    from heedful.studies.sun2020.study import reproduce as run_study
    from heedful.sweep.progress import SweepProgress

    with SweepProgress("sun2020") as progress:
        return run_study(request, Store(store), out, on=on, workers=workers, watch=progress)


def _print(study: "Study") -> None:
    from rich.console import Console
    from rich.text import Text

    from heedful.studies.sun2020.table2 import as_printed, summary_words

    console = Console(highlight=False, markup=False, soft_wrap=True)
    if len(study.table):
        for row in as_printed(study.table).to_dict("records"):
            console.print(f"{row.pop('data'):10} λ={row.pop('λ'):6} ", "   ".join(f"{k} {v}" for k, v in row.items()))
        console.print(summary_words(study.table))
    colours = {"holds": "green", "does not hold": "red", "undecided": "yellow"}
    for judged in study.judged:
        console.print(Text(judged.dataset, "bold"))
        for verdict in judged.verdicts:
            mark = Text(f"  {verdict.claim:5} {verdict.decision:14}", colours[verdict.decision])
            console.print(mark + Text(verdict.words))
    for failure in study.failures:
        console.print(f"failed: {failure.message}")
    console.print(f"{len(study.drawn)} figures; page {study.page}")
