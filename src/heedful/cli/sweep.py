"""`heedful sweep`, `reproduce` and `calibrate`: many runs, by a plan, of a paper, or of worlds whose truth is known."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Json, On, StoreRoot, TablesOut, Workers, print_json, print_lines, show_page
from heedful.errors import ConfigError
from heedful.notebook import counted

if TYPE_CHECKING:
    import pandas as pd

    from heedful.studies.calibration.judging import Calibration
    from heedful.studies.calibration.worlds import World
    from heedful.sweep.loop import Planned, Sweep
    from heedful.sweep.plan import Plan

TITLES: Mapping[str, str] = {
    "confusion": "The answer where attention is planted",
    "confusion-of-claims": "The claims behind it",
    "trained-confusion": "The answer where a model is trained",
    "trained-confusion-of-claims": "The claims behind it",
}
"""The tables that are printed, and what stands above them."""


def sweep(
    file: Annotated[Path, typer.Argument(help="A TOML or JSON file with base, grid, runs and seeds.")],
    on: On = "local",
    workers: Annotated[
        int | None,
        typer.Option("--workers", "-j", min=1, help="Local processes; default: as many as cores and memory."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what there is to do.")] = False,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a base setting of the plan.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the tables; default: sweeps/ beside the store.")
    ] = None,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Run what is missing of a plan, on all cores or on Ray, and write one table with means over seeds.

    The file has [base] settings, a [grid] of lists of values (every combination), [[runs]] (each a set of changes,
    taken with every point of the grid) and seeds (a number or a list). What is finished is never computed twice;
    a sweep that was stopped goes on when it is called again, and runs that failed are tried again.
    """
    from heedful.cli.progress import SweepProgress
    from heedful.files import write_table
    from heedful.store import Store
    from heedful.sweep.loop import preview
    from heedful.sweep.loop import sweep as run_sweep
    from heedful.sweep.plan import Plan

    plan, place = Plan.read(file, changes or ()), Store(store)
    if dry_run:
        _print_plan(plan, preview(plan, place, workers=workers), as_json)
        return
    with SweepProgress(plan.name) as progress:
        done = run_sweep(plan, place, on=on, workers=workers, watch=progress)
    stem = (out or store.absolute().parent / "sweeps") / plan.name
    for ending in (".csv", ".parquet"):
        write_table(stem.with_name(f"{plan.name}{ending}"), done.summary)
        write_table(stem.with_name(f"{plan.name}_runs{ending}"), done.runs)
    _print_sweep(done, stem, as_json)
    if done.failures:
        raise typer.Exit(1)


def _print_plan(plan: "Plan", seen: "Planned", as_json: bool) -> None:
    numbers = {"total": seen.total, "done": seen.found, "workers": seen.workers}
    varied = ", ".join(plan.varied) or "nothing"
    unknown = "unknown, no finished run tells it"
    needed = unknown if seen.seconds is None else timedelta(seconds=round(seen.seconds))
    lines = [
        f"{plan.name}: {seen.total} runs, {seen.found} done, {seen.total - seen.found} to do with {seen.workers} "
        f"workers; varied: {varied}",
        f"estimated time: {needed}",
    ]
    print_lines({"name": plan.name, **numbers, "varied": plan.varied, "seconds": seen.seconds}, lines, as_json)


def _print_sweep(done: "Sweep", stem: Path, as_json: bool) -> None:
    failed = [failure.payload() for failure in done.failures]
    counts = {"runs": len(done.runs), "found": done.found, "computed": len(done.computed), "failed": failed}
    lines = []
    for row in done.summary[done.summary["metric"] == "test_accuracy"].to_dict("records"):
        settings = " ".join(str(value) for name, value in row.items() if "." in str(name))
        interval = "" if row["seeds"] == 1 else f" [{row['low']:.4f}, {row['high']:.4f}]"
        lines.append(f"{settings:50} {row['mean']:.4f}{interval} over {counted(row['seeds'], 'seed')}")
    lines.append(f"{len(done.runs)} runs, {done.found} of them found, {len(done.failures)} failed")
    lines += [*(f"failed: {failure.message}" for failure in done.failures), f"table {stem}.csv"]
    print_lines({**counts, "table": f"{stem}.csv", "summary": done.summary.to_dict("records")}, lines, as_json)


def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(help="The study of a paper, such as jain2019; --list shows all of them and what they have."),
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option("--table", help="Only this table, by its number or name; may be repeated.")
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
        str | None, typer.Option("--models", help="The paper's names, with commas between, such as DP,AD.")
    ] = None,
    scales: Annotated[str | None, typer.Option("--scales", help="Values of λ, with commas between; sun2020.")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Runs per model and data set.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where tables, figures and the page go.")] = Path("study"),
    on: On = "local",
    workers: Workers = None,
    store: StoreRoot = Path("runs"),
    listing: Annotated[bool, typer.Option("--list", help="Show every study with its tables, figures, claims.")] = False,
    as_json: Json = False,
) -> None:
    """Run a paper again: its tables beside the printed numbers, its figures, and verdicts on its claims.

    Without --table, --figure or --claims all of them. A study that was stopped goes on when it is called again.
    """
    from heedful.cli.progress import SweepProgress
    from heedful.store import Store
    from heedful.studies.reproduce import reproduce as run_study
    from heedful.studies.study import find_study, want

    if listing:
        _list(paper, as_json)
        return
    if paper is None:
        raise typer.BadParameter("name a study, such as sun2020, or give --list to see all of them")
    study = find_study(paper)
    wanted = want(
        study,
        tables=_words(tables or ()),
        figures=_words(figures or ()),
        claims=claims,
        quick=quick,
        datasets=None if datasets is None else _words([datasets]),
        models=None if models is None else _words([models]),
        scales=None if scales is None else [_number(word) for word in _words([scales])],
        seeds=seeds,
    )
    with SweepProgress(study.name) as watch:
        done = run_study(study, wanted, Store(store), out, on=on, workers=workers, watch=watch)
    show_page(done.page, as_json, done.summary() if as_json else None)
    if done.failures:
        raise typer.Exit(1)


def _list(paper: str | None, as_json: bool) -> None:
    """Every study, or one, with what it has."""
    from heedful.claims import CLAIMS
    from heedful.studies.study import STUDIES, find_study

    studies = [find_study(name) for name in ([paper] if paper else STUDIES)]
    parts: dict[str, dict[str, dict[str, str]]] = {
        study.name: {
            "models": dict.fromkeys(study.models, ""),
            "datasets": dict.fromkeys(study.whole.datasets, ""),
            "tables": {table.name: "" for table in study.tables if not table.comes_with},
            "figures": {figure.name: figure.caption for figure in study.figures},
            "claims": {name: CLAIMS[name].statement for name in study.claims},
        }
        for study in studies
    }
    lines = []
    for study in studies:
        lines.append(f"{study.name}  {study.title}")
        for part, names in parts[study.name].items():
            lines.append(f"  {part}  {', '.join(names)}" if not any(names.values()) else f"  {part}")
            lines += [f"    {name:8} {said}" for name, said in names.items() if said]
    content = [{"name": study.name, "title": study.title, **parts[study.name]} for study in studies]
    print_lines(content, lines, as_json)


def _words(texts: Sequence[str]) -> list[str]:
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ConfigError(f"λ is a number above 0, not '{word}'.") from None


def calibrate(
    seeds: Annotated[int, typer.Option(min=1, help="Worlds of each kind.")] = 2,
    first: Annotated[int, typer.Option("--first-seed", min=0, help="The first seed; others are other worlds.")] = 0,
    sizes: Annotated[
        list[int] | None, typer.Option("--texts", min=100, help="Texts of a world; repeat for several.")
    ] = None,
    trained: Annotated[
        bool, typer.Option("--trained/--no-trained", help="Whether models are trained as well, in worlds of their own.")
    ] = True,
    workers: Workers = None,
    out: TablesOut = None,
    as_json: Json = False,
) -> None:
    """Judge worlds as an audit does, and count where the answer, or a claim behind it, is not the truth.

    Planted attention of eleven kinds, right, wrong and in between, needed for the output or not; two to ten classes,
    balanced to 95:5; short and long texts; words in bursts or not, with or without a bias; 200, 2,000 and 20,000 texts.
    And models that are trained on noise, on copies of noise, on words of their classes, and on one word of each class.
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
