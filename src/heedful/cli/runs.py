"""`heedful runs`: look at, compare and remove finished runs."""

import json
from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import Json, RunName, StoreRoot, print_lines
from heedful.errors import ConfigError, StoreError
from heedful.files import write_table
from heedful.store import CORPUS, PARTS, PREFIX, VECTORS, Store, flatten, read_manifest, verify

runs_app = typer.Typer(help="The finished runs of a store.", no_args_is_help=True, rich_markup_mode=None)

Row = dict[str, Any]


@runs_app.command("list")
def list_runs(
    where: Annotated[
        list[str] | None, typer.Option("--where", metavar="NAME=VALUE", help="Only runs with this setting or metric.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="The runs that failed instead, with their errors.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write a table instead: .csv, .parquet, .tex.")
    ] = None,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """List all finished runs, or write them as one table."""
    if failed:
        failures = Store(store).failures()
        print_lines(failures, [f"{failure['digest'][:PREFIX]}  {failure['message']}" for failure in failures], as_json)
        return
    rows = _matching([{"run": path.name, **manifest} for path, manifest in Store(store).manifests()], where or [])
    if out is not None:
        from heedful.sweep.tables import table_of

        write_table(out, table_of((row["run"], row) for row in rows))
    elif as_json:
        # One line per run and no indentation: 10,000 runs are printed in a quarter of a second.
        print("[" + ",\n ".join(json.dumps(row, ensure_ascii=False) for row in rows) + "]")
    else:
        for row in rows:
            metrics = row.get("metrics") or {}
            print(f"{row['run']:60} {100 * metrics.get('test_accuracy', nan):6.2f} %  {row.get('seconds', nan):8.1f} s")
        print(f"{len(rows)} runs")


@runs_app.command("show")
def show_run(run: RunName, store: StoreRoot = Path("runs"), as_json: Json = False) -> None:
    """Show the settings and metrics of a run."""
    path = Store(store).resolve(run)
    manifest = _told(path)
    lines = [f"{name:36} {_words(value)}" for name, value in {"run": path, **flatten(manifest)}.items()]
    print_lines({"run": str(path), **manifest}, lines, as_json)


@runs_app.command("diff")
def diff_runs(first: RunName, second: RunName, store: StoreRoot = Path("runs"), as_json: Json = False) -> None:
    """Show the settings and metrics in which two runs differ."""
    one, other = (flatten(_told(Store(store).resolve(name))) for name in (first, second))
    differences = {
        name: {"first": one.get(name), "second": other.get(name)}
        for name in dict.fromkeys([*one, *other])
        if one.get(name) != other.get(name)
    }
    lines = [
        f"{name:36} " + " ".join(f"{_words(value):>24}" for value in two.values()) for name, two in differences.items()
    ]
    print_lines(differences, lines, as_json)


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
    print_lines(removed, [f"removed {path}" for path in removed], as_json)


@runs_app.command("gc")
def collect_garbage(
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also checkpoints of unfinished runs, cached corpora, vectors of words, records of failures.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Remove what killed processes left behind. Finished runs, and runs being computed, are never touched."""
    where = Store(store)
    rubbish = where.rubbish(everything=everything)
    freed = 0 if dry_run else where.collect(rubbish)
    lines = [f"{'would remove' if dry_run else 'removed'} {path}" for path in rubbish]
    summary = {"paths": [str(path) for path in rubbish], "freed_bytes": freed, "dry_run": dry_run}
    print_lines(summary, [*lines, f"{freed / 2**20:.1f} MB freed"], as_json)


def _matching(rows: list[Row], where: list[str]) -> list[Row]:
    """The rows whose settings or metrics have these values."""
    if not where:
        return rows
    from heedful.config import parse_change

    wanted = dict(parse_change(condition) for condition in where)
    flat = [{**row, **flatten(row["settings"]), **flatten(row["metrics"])} for row in rows]
    unknown = [name for name in wanted if flat and not any(name in row for row in flat)]
    if unknown:
        raise ConfigError(f"No run has '{unknown[0]}'. Known: {', '.join(sorted(flat[0]))}.")
    return [
        row
        for row, values in zip(rows, flat, strict=True)
        if all(
            values.get(name) == value or (values.get(name) is None and str(value).lower() in {"none", "null"})
            for name, value in wanted.items()
        )
    ]


def _words(value: Any) -> str:
    return "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


@runs_app.command("verify")
def verify_runs(
    runs: Annotated[list[str] | None, typer.Argument(help="Which, by how their names begin; default: all.")] = None,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Check that files of runs hold what was written."""
    place = Store(store)
    checked, wrong = check_store(place, [place.resolve(name) for name in runs or ()])
    lines = [
        *(sentence for said in wrong.values() for sentence in said),
        f"{checked:,} runs, {len(wrong):,} damaged",
    ]
    print_lines({"runs": checked, "damaged": wrong}, lines, as_json)
    if wrong:
        raise typer.Exit(1)


def check_store(store: Store, chosen: Sequence[Path] = ()) -> tuple[int, dict[str, list[str]]]:
    """How many runs were checked, and what is wrong with which; without a choice all of them, and what they share."""
    from heedful.cli.progress import counting

    runs = chosen or store.finished()
    shared = [] if chosen else [path for kind in (CORPUS, VECTORS) for path in (store.root / kind.folder).glob("[!.]*")]
    wrong: dict[str, list[str]] = {}
    if not runs and not shared:
        return 0, wrong
    with counting("checking runs") as watch:
        for done, path in enumerate([*runs, *shared], 1):
            if said := verify(path) if done <= len(runs) else _verify_shared(path):
                wrong[path.name] = said
            watch(done, len(runs) + len(shared))
    return len(runs), wrong


def _verify_shared(path: Path) -> list[str]:
    """What is wrong with a cached corpus or with word vectors."""
    from heedful.tensor_files import load_tensors
    from heedful.text.cached import open_corpus

    try:
        open_corpus(path) if path.is_dir() else load_tensors(path, StoreError, "Remove it: it is made again.")
    except StoreError as error:
        return [str(error)]
    return []


def _told(run: Path) -> dict[str, Any]:
    """What a manifest says to people: the checksums of files are for `heedful runs verify`."""
    return {name: value for name, value in read_manifest(run).items() if name != PARTS}
