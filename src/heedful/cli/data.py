"""`heedful data` and `heedful doctor`: the corpora at hand, and what this installation has."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import DATA, FILES, Json, StoreRoot, print_json, print_lines, with_settings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from heedful.config import RunSettings
    from heedful.text.fetch import Step

data_app = typer.Typer(help="The corpora at hand.", no_args_is_help=True, rich_markup_mode=None)


@data_app.command("list")
def list_data(as_json: Json = False) -> None:
    """The corpora that can be named."""
    from heedful.text.recipes import DATASETS

    rows = [
        {"name": one.name, "about": one.about, "available": one.available, "file": next(iter(one.files), None)}
        for one in DATASETS.values()
    ]
    missing = ["" if row["available"] else f"  (needs {row['file']} in the data folder)" for row in rows]
    lines = [f"{row['name']:16} {row['about']}{said}" for row, said in zip(rows, missing, strict=True)]
    print_lines(rows, lines, as_json)


@data_app.command("stats")
@with_settings(**DATA, **FILES)
def data_stats(settings: "RunSettings", as_json: Json = False) -> None:
    """Sizes, lengths and classes of a corpus."""
    from heedful.pipeline import read_corpus
    from heedful.studies.corpora import corpus_statistics

    statistics = corpus_statistics(read_corpus(settings))
    if as_json:
        print_json(statistics)
    else:
        print_statistics(statistics)


def print_statistics(statistics: dict[str, Any], console: "Console | None" = None) -> None:
    """One column per split, one line per class; and beside the paper's row, with the reasons below."""
    import pandas as pd
    from rich.console import Console
    from rich.text import Text

    from heedful.report.terminal import grid, printable

    screen = console or Console()
    splits = statistics["splits"]
    lines: dict[str, list[str]] = {"texts": [f"{split['texts']:,}" for split in splits.values()]}
    for number, name in enumerate(statistics["classes"]):
        lines[f"  {name}"] = [f"{split['per_class'][number]:,}" for split in splits.values()]
    lines["mean length"] = [f"{split['mean_length']:,.1f}" for split in splits.values()]
    lines["longest"] = [f"{split['longest']:,}" for split in splits.values()]
    lines["unknown tokens"] = [f"{split['unknown_tokens']:.1%}" for split in splits.values()]
    title = f"{statistics['corpus']}: vocabulary {statistics['vocabulary']:,} (training split)"
    screen.print(Text(printable(title), "italic"), soft_wrap=True)
    screen.print(grid(pd.DataFrame([[name, *cells] for name, cells in lines.items()], columns=["", *splits])))
    for notice in statistics["notices"]:
        screen.print(Text(f"note: {printable(notice)}"))
    paper = statistics["paper"]
    if not paper:
        return
    rows = [{"": line["column"], "ours": line["ours"], "paper": line["paper"]} for line in paper["columns"]]
    screen.print(Text(f"\nbeside {paper['table']}", "italic"), grid(pd.DataFrame(rows)), sep="\n")
    for line in paper["columns"]:
        if line["why"] and not line["same"]:
            screen.print(Text(f"{line['column']} differs: {line['why']}"))
    if paper["remark"]:
        screen.print(Text(paper["remark"]))


@data_app.command("fetch")
def fetch_data(
    name: Annotated[str, typer.Argument(help="A corpus name; see `heedful data list`.")],
    base: Annotated[
        str | None, typer.Option("--from", metavar="URL", help="Another address under which the same files lie.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Download a corpus into the data folder; goes on where an earlier download broke off."""
    from heedful.text.fetch import fetch

    with _downloads() as watch:
        done = fetch(name, base=base, observer=watch)
    lines = [f"{done.folder / file}  {rows:,} rows" for file, rows in done.rows.items()]
    content = {"corpus": name, "folder": done.folder, "source": done.source, "rows": dict(done.rows)}
    print_lines(content, lines or [f"{name} is at hand, nothing was fetched"], as_json)


@contextmanager
def _downloads() -> "Iterator[Callable[[Step], None]]":
    """Bytes, speed and time left of each file on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.progress import TransferSpeedColumn as Speed

    tasks: dict[str, TaskID] = {}
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), Speed())
    with Progress(*columns, TimeRemainingColumn(), console=Console(file=sys.stderr)) as bar:

        def watch(step: "Step") -> None:
            if step.file not in tasks:
                tasks[step.file] = bar.add_task(step.file, total=step.total)
            bar.update(tasks[step.file], completed=step.done, total=step.total)

        yield watch


def doctor(store: StoreRoot = Path("runs"), as_json: Json = False) -> None:
    """Versions, device, data folder and store: what this installation has, and whether all runs are sound."""
    import importlib.metadata
    import os

    import torch

    from heedful.cli.runs import check_store
    from heedful.pipeline import environment
    from heedful.store import Store
    from heedful.text.recipes import DATASETS, data_folder

    folder = data_folder()
    runs, damaged = check_store(Store(store))
    missing = [name for name, dataset in DATASETS.items() if not dataset.available]
    libraries = ("numpy", "pandas", "scipy", "tokenizers", "safetensors")
    installation = {
        **environment(),
        **{name: importlib.metadata.version(name) for name in libraries},
        "device": f"cuda ({torch.cuda.get_device_name(0)})" if torch.cuda.is_available() else "cpu",
        "cores": str(os.cpu_count()),
        "data folder": f"{folder}{'' if folder.is_dir() else ' (not there)'}",
        "corpora": ", ".join(name for name in DATASETS if name not in missing),
        "not at hand": ", ".join(missing) or "none",
        "store": f"{store} ({runs:,} runs, {len(damaged):,} damaged{': see heedful runs verify' if damaged else ''})",
    }
    print_lines(installation, [f"{name:14} {value}" for name, value in installation.items()], as_json)
    if damaged:
        raise typer.Exit(1)
