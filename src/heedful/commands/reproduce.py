"""`heedful reproduce`: a paper's tables, figures and claims, run again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.commands.options import Json, StoreRoot, print_json
from heedful.errors import ConfigError, UnknownName

if TYPE_CHECKING:
    from heedful.studies.study import Outcome

TABLES: Mapping[str, tuple[str, ...]] = {"sun2020": ("2",), "serrano2019": ("1", "2", "3", "inputs")}
"""The papers and their tables."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What was asked for, as it was written; None where it was not."""

    tables: Sequence[str]
    figures: Sequence[str]
    claims: bool
    quick: bool
    datasets: Sequence[str] | None
    models: Sequence[str] | None
    scales: Sequence[str] | None
    seeds: int | None

    @property
    def everything(self) -> bool:
        return not self.tables and not self.figures and not self.claims

    def selection(self) -> dict[str, Any]:
        """What of a selection is given: data sets, models, seeds."""
        given = {"datasets": self.datasets, "models": self.models}
        chosen: dict[str, Any] = {name: tuple(value) for name, value in given.items() if value is not None}
        return chosen if self.seeds is None else {**chosen, "seeds": self.seeds}

    def figure_names(self, drawable: Sequence[str]) -> tuple[str, ...]:
        """The figures by name, each once; `all` are those that can be drawn from the selection."""
        names = ["all"] if self.everything else self.figures
        return tuple(dict.fromkeys(one for name in names for one in (drawable if name == "all" else [name])))


@dataclass(frozen=True, kw_only=True)
class Where:
    """Where runs are computed and kept, and where the study goes."""

    store: Path
    out: Path
    on: str
    workers: int | None


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            help="sun2020: Sun & Lu 2020, Understanding Attention for Text Classification. "
            "serrano2019: Serrano & Smith 2019, Is Attention Interpretable?"
        ),
    ],
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table", help="Only this table: 2 of sun2020; 1, 2, 3 or inputs of serrano2019; may be repeated."
        ),
    ] = None,
    figures: Annotated[
        list[str] | None,
        typer.Option("--figure", help="Only this figure, such as 3, S14, minimum or all; may be repeated."),
    ] = None,
    claims: Annotated[bool, typer.Option("--claims", help="Only the verdicts on the paper's claims.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes instead of hours: fewer data and settings.")] = False,
    datasets: Annotated[
        str | None, typer.Option("--datasets", help="Names or files, with commas between; default: those of the study.")
    ] = None,
    models: Annotated[
        str | None,
        typer.Option("--models", help="Such as DP,AD for sun2020 and HANrnn,FLANconv for serrano2019."),
    ] = None,
    scales: Annotated[str | None, typer.Option("--scales", help="Values of λ, with commas between; sun2020.")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Runs per model and data set.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where tables, figures and the page go.")] = Path("study"),
    on: Annotated[str, typer.Option("--on", help="local, ray, or ray://host:port.")] = "local",
    workers: Annotated[int | None, typer.Option("--workers", "-j", min=1, help="Local processes.")] = None,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Run a paper again: its tables beside the printed numbers, its figures, and verdicts on its claims.

    Without --table, --figure or --claims all of them. A study that was stopped goes on when it is called again.
    """
    if paper not in TABLES:
        raise UnknownName("paper", paper, TABLES)
    wanted = Wanted(
        tables=_words(tables or ()),
        figures=_words(figures or ()),
        claims=claims,
        quick=quick,
        datasets=None if datasets is None else _words([datasets]),
        models=None if models is None else _words([models]),
        scales=None if scales is None else _words([scales]),
        seeds=seeds,
    )
    for table in wanted.tables:
        if table not in TABLES[paper]:
            raise UnknownName("table", table, TABLES[paper])
    study = _STUDIES[paper](wanted, Where(store=store, out=out, on=on, workers=workers))
    if as_json:
        print_json(study.summary())
    else:
        _print(study)
    if study.failures:
        raise typer.Exit(1)


def _sun2020(wanted: Wanted, where: Where) -> "Outcome":
    from dataclasses import replace

    from heedful.commands.progress import SweepProgress
    from heedful.store import Store
    from heedful.studies.sun2020.catalogue import figures_on
    from heedful.studies.sun2020.runs import QUICK, Selection
    from heedful.studies.sun2020.study import Request
    from heedful.studies.sun2020.study import reproduce as run_study

    selection = replace(QUICK if wanted.quick else Selection(), **wanted.selection())
    if wanted.scales is not None:
        selection = replace(selection, scales=tuple(_number(word) for word in wanted.scales))
    synthetic = wanted.datasets is None
    names = wanted.figure_names(figures_on(selection.datasets, synthetic=synthetic))
    request = Request(
        selection=selection,
        table=bool(wanted.tables) or wanted.everything,
        figures=tuple(dict.fromkeys(_figure_name(name) for name in names)),
        claims=wanted.claims or wanted.everything,
        synthetic=synthetic,
        quick=wanted.quick,
    )
    with SweepProgress("sun2020") as watch:
        return run_study(request, Store(where.store), where.out, on=where.on, workers=where.workers, watch=watch)


def _serrano2019(wanted: Wanted, where: Where) -> "Outcome":
    from dataclasses import replace

    from heedful.commands.progress import SweepProgress
    from heedful.store import Store
    from heedful.studies.serrano2019.catalogue import figures_of
    from heedful.studies.serrano2019.runs import QUICK, Selection
    from heedful.studies.serrano2019.study import Request
    from heedful.studies.serrano2019.study import reproduce as run_study

    if wanted.scales is not None:
        raise ConfigError("--scales is of sun2020: Serrano & Smith do not divide the attention scores by a λ.")
    selection = replace(QUICK if wanted.quick else Selection(), **wanted.selection())
    request = Request(
        selection=selection,
        tables=TABLES["serrano2019"] if wanted.everything else tuple(wanted.tables),
        figures=wanted.figure_names(figures_of(selection.models)),
        claims=wanted.claims or wanted.everything,
    )
    with SweepProgress("serrano2019") as watch:
        return run_study(request, Store(where.store), where.out, on=where.on, workers=where.workers, watch=watch)


_STUDIES: Mapping[str, Callable[[Wanted, Where], "Outcome"]] = {"sun2020": _sun2020, "serrano2019": _serrano2019}


def _figure_name(name: str) -> str:
    """S13 may be written s13."""
    return name.upper() if name[1:].isdigit() else name


def _words(texts: Sequence[str]) -> list[str]:
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ConfigError(f"λ is a number above 0, not '{word}'.") from None


def _print(study: "Outcome") -> None:
    from rich.console import Console
    from rich.text import Text

    from heedful.studies.verdict_lines import print_verdict

    console = Console(highlight=False, markup=False, soft_wrap=True)
    for line in study.words():
        console.print(line)
    for judged in study.judged:
        console.print(Text(judged.dataset, "bold"))
        for verdict in judged.verdicts:
            print_verdict(console, verdict)
    for failure in study.failures:
        console.print(f"failed: {failure.message}")
    drawn = len(study.drawn)
    console.print(f"{drawn} {'figure' if drawn == 1 else 'figures'}; page {study.page}")
