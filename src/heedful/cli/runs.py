"""`heedful runs`: look at, compare and remove finished runs."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import Json, RunName, StoreRoot, print_json
from heedful.errors import ConfigError
from heedful.store import Store, flatten, read_manifest

runs_app = typer.Typer(help="The finished runs of a store.", no_args_is_help=True, rich_markup_mode=None)

Where = Annotated[
    list[str] | None, typer.Option("--where", metavar="NAME=VALUE", help="Only runs with this setting or metric.")
]


@runs_app.command("list")
def list_runs(
    where: Where = None,
    failed: Annotated[bool, typer.Option("--failed", help="The runs that failed instead, with their errors.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write a .csv or .parquet table instead.")] = None,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """List all finished runs, or write them as one table."""
    if failed:
        _list_failures(Store(store), as_json)
        return
    rows = [{"run": path.name, **manifest} for path, manifest in Store(store).manifests()]
    rows = _matching(rows, where or [])
    if out is not None:
        _write(rows, out)
    elif as_json:
        # One line per run and no indentation: 10,000 runs are printed in a quarter of a second.
        print("[" + ",\n ".join(json.dumps(row, ensure_ascii=False) for row in rows) + "]")
    else:
        _print_rows(rows)


@runs_app.command("show")
def show_run(run: RunName, store: StoreRoot = Path("runs"), as_json: Json = False) -> None:
    """Show the settings and metrics of a run."""
    path = Store(store).resolve(run)
    manifest = read_manifest(path)
    if as_json:
        print_json({"run": str(path), **manifest})
    else:
        for name, value in {"run": path, **flatten(manifest)}.items():
            print(f"{name:36} {_words(value)}")


@runs_app.command("diff")
def diff_runs(first: RunName, second: RunName, store: StoreRoot = Path("runs"), as_json: Json = False) -> None:
    """Show the settings and metrics in which two runs differ."""
    where = Store(store)
    differences = _differences(read_manifest(where.resolve(first)), read_manifest(where.resolve(second)))
    if as_json:
        print_json({name: {"first": one, "second": other} for name, (one, other) in differences.items()})
    else:
        for name, (one, other) in differences.items():
            print(f"{name:36} {_words(one):>24} {_words(other):>24}")


@runs_app.command("rm")
def remove_runs(
    runs: Annotated[list[str], typer.Argument(help="The runs to remove, by the beginning of their names.")],
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Remove finished runs."""
    where = Store(store)
    named = {where.resolve(name).name for name in runs}  # all must exist before any is removed
    removed = [str(where.remove(name)) for name in sorted(named)]
    if as_json:
        print_json(removed)
    else:
        print("\n".join(f"removed {path}" for path in removed))


@runs_app.command("gc")
def collect_garbage(
    everything: Annotated[
        bool, typer.Option("--all", help="Also checkpoints of unfinished runs, cached corpora, records of failures.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Remove what killed processes left behind. Finished runs, and runs being computed, are never touched."""
    where = Store(store)
    rubbish = where.rubbish(everything=everything)
    freed = 0 if dry_run else where.collect(rubbish)
    if as_json:
        print_json({"paths": [str(path) for path in rubbish], "freed_bytes": freed, "dry_run": dry_run})
        return
    for path in rubbish:
        print(f"{'would remove' if dry_run else 'removed'} {path}")
    print(f"{freed / 2**20:.1f} MB freed")


def _matching(rows: list[dict[str, Any]], where: list[str]) -> list[dict[str, Any]]:
    """The rows whose settings or metrics have these values."""
    if not where:
        return rows
    from heedful.config import parse_change

    wanted = dict(parse_change(condition) for condition in where)
    flat = [_flat(row) for row in rows]
    unknown = [name for name in wanted if flat and not any(name in row for row in flat)]
    if unknown:
        raise ConfigError(f"No run has '{unknown[0]}'. Known: {', '.join(sorted(flat[0]))}.")
    return [row for row, values in zip(rows, flat, strict=True) if _agrees(values, wanted)]


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, **flatten(row["settings"]), **flatten(row["metrics"])}


def _agrees(values: dict[str, Any], wanted: dict[str, Any]) -> bool:
    unset = {"none", "null"}
    return all(
        values.get(name) == value or (values.get(name) is None and str(value).lower() in unset)
        for name, value in wanted.items()
    )


def _list_failures(store: Store, as_json: bool) -> None:
    failures = store.failures()
    if as_json:
        print_json(failures)
    else:
        for failure in failures:
            print(f"{failure['digest'][:12]}  {failure['message']}")


def _write(rows: list[dict[str, Any]], out: Path) -> None:
    from heedful.sweep.tables import table_of, write_as

    write_as(table_of((row["run"], row) for row in rows), out)


def _print_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        metrics = row["metrics"]
        print(f"{row['run']:60} {100 * metrics['test_accuracy']:6.2f} %  {row['seconds']:8.1f} s")
    print(f"{len(rows)} runs")


def _differences(first: dict[str, Any], second: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    one, other = flatten(first), flatten(second)
    names = dict.fromkeys([*one, *other])
    return {name: (one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)}


def _words(value: Any) -> str:
    return "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
