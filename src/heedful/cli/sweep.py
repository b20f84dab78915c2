"""`heedful sweep`: run what is missing of a plan and write one table."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Json, StoreRoot, print_json
from heedful.notebook import counted

if TYPE_CHECKING:
    from heedful.sweep.loop import Planned, Sweep
    from heedful.sweep.plan import Plan


def sweep(
    file: Annotated[Path, typer.Argument(help="A TOML or JSON file with base, grid, runs and seeds.")],
    on: Annotated[str, typer.Option("--on", help="local, ray, or ray://host:port.")] = "local",
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
    if as_json:
        numbers = {"total": seen.total, "done": seen.found, "workers": seen.workers}
        print_json({"name": plan.name, **numbers, "varied": plan.varied, "seconds": seen.seconds})
        return
    print(f"{plan.name}: {seen.total} runs, {seen.found} done, {seen.total - seen.found} to do", end="")
    print(f" with {seen.workers} workers; varied: {', '.join(plan.varied) or 'nothing'}")
    unknown = "unknown, no finished run tells it"
    print(f"estimated time: {unknown if seen.seconds is None else timedelta(seconds=round(seen.seconds))}")


def _print_sweep(done: "Sweep", stem: Path, as_json: bool) -> None:
    if as_json:
        failed = [failure.payload() for failure in done.failures]
        counts = {"runs": len(done.runs), "found": done.found, "computed": len(done.computed), "failed": failed}
        print_json({**counts, "table": f"{stem}.csv", "summary": done.summary.to_dict("records")})
        return
    for row in done.summary[done.summary["metric"] == "test_accuracy"].to_dict("records"):
        settings = " ".join(str(value) for name, value in row.items() if "." in str(name))
        interval = "" if row["seeds"] == 1 else f" [{row['low']:.4f}, {row['high']:.4f}]"
        print(f"{settings:50} {row['mean']:.4f}{interval} over {counted(row['seeds'], 'seed')}")
    print(f"{len(done.runs)} runs, {done.found} of them found, {len(done.failures)} failed")
    for failure in done.failures:
        print(f"failed: {failure.message}")
    print(f"table {stem}.csv")
