"""`heedful report`: the report of finished runs, of a study, or of a sweep, as one file. Nothing is trained."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import AllVerdicts, Json, StoreRoot, find_run, show_page
from heedful.errors import ConfigError, StoreError
from heedful.files import exists, is_file
from heedful.store import MANIFEST

if TYPE_CHECKING:
    from heedful.pipeline import Run
    from heedful.report.page import Page

PLANS = (".toml", ".json")


def report(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|STUDY|SWEEP…",
            help="Runs (a directory, or the beginning of a name in the store), the file of a sweep's plan, whose "
            "finished runs are taken, or a study such as sun2020.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file that the report is written to.")] = Path(
        "report.html"
    ),
    store: StoreRoot = Path("runs"),
    everything: AllVerdicts = False,
    as_json: Json = False,
) -> None:
    """Write the report of a run again, of several runs side by side, of a sweep or of a study, as one offline file.

    Nothing is trained: what is not in the store is left out, and that is said.
    """
    if out.suffix.lower() not in {".html", ".htm"}:
        raise typer.BadParameter(f"the report is an HTML file, such as report.html, not '{out}'", param_hint="'--out'")
    show_page(_page(names, out, store), as_json, everything=everything)


def _page(names: Sequence[str], out: Path, store: Path) -> "Page":
    from heedful.studies.study import STUDIES

    studies = [name for name in names if name in STUDIES and not exists(Path(name))]
    if studies:
        return _study(studies[0], out, store, alone=len(names) == 1)
    notices: list[str] = []
    runs = [run for name in names for run in _runs(name, store, notices)]
    if len(runs) == 1:
        from heedful.studies.audit import report_run

        return report_run(runs[0], out).page
    from heedful.cli.progress import counted_stages
    from heedful.studies.side_by_side import side_by_side

    with counted_stages() as watch:
        return side_by_side(runs, out, notices=notices, watch=watch)


def _study(name: str, out: Path, store: Path, *, alone: bool) -> "Page":
    from heedful.cli.progress import stages
    from heedful.store import Store
    from heedful.studies.reproduce import report_study
    from heedful.studies.study import find_study

    if not alone:
        raise ConfigError(f"The study {name} has a report of its own: name it alone.")
    with stages() as watch:
        return report_study(find_study(name), Store(store), out, watch=watch).page


def _runs(name: str, store: Path, notices: list[str]) -> "Iterator[Run]":
    """The run of that name, or all finished ones of a plan; what is missing is added to the notices."""
    place = Path(name)
    if place.suffix in PLANS and is_file(place):
        yield from _planned(place, store, notices)
        return
    if is_file(place / "study.html"):
        raise StoreError(
            f"'{name}' is the folder of a study, whose report is '{place / 'study.html'}'. To make it again from the "
            "runs in the store, name the study, such as sun2020."
        )
    if is_file(place / "config.json") and not is_file(place / MANIFEST):
        raise StoreError(
            f"'{name}' is the folder of a model and not a run. `heedful audit DATA --model {name}` writes its report."
        )
    yield find_run(name, store)


def _planned(file: Path, store: Path, notices: list[str]) -> "Iterator[Run]":
    from heedful.pipeline import Run
    from heedful.store import Store
    from heedful.sweep.loop import finished_runs
    from heedful.sweep.plan import Plan

    plan = Plan.read(file)
    found = finished_runs(plan, Store(store))
    if not found:
        raise StoreError(
            f"The store '{store}' holds no finished run of the plan '{file}'; `heedful sweep {file}` computes them."
        )
    if len(found) < len(plan):
        notices.append(f"{len(plan) - len(found):,} of {len(plan):,} runs of the sweep {plan.name} are not finished.")
    yield from map(Run, found.values())
