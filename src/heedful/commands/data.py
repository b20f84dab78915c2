"""`heedful data fetch`: named corpora from their public homes into the data folder."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.commands.options import Json, print_json

if TYPE_CHECKING:
    from rich.progress import TaskID

    from heedful.text.public.fetch import Step


def fetch_data(
    name: Annotated[str, typer.Argument(help="A corpus name; see `heedful data list`.")],
    base: Annotated[
        str | None, typer.Option("--from", metavar="URL", help="Another address under which the same files lie.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Download a corpus into the data folder; goes on where an earlier download broke off."""
    from heedful.text.public.fetch import fetch

    with DownloadBar() as bar:
        done = fetch(name, base=base, observer=bar)
    if as_json:
        print_json({"corpus": name, "folder": str(done.folder), "source": done.source, "rows": dict(done.rows)})
    elif not done.rows:
        print(f"{name} is at hand, nothing was fetched")
    else:
        for file, rows in done.rows.items():
            print(f"{done.folder / file}  {rows:,} rows")


class DownloadBar:
    """Bytes, speed and time left of each file on stderr; an observer of `fetch`, and a context."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.progress import TransferSpeedColumn as Speed

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), Speed())
        self._bar = Progress(*columns, TimeRemainingColumn(), console=Console(file=sys.stderr))
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, step: "Step") -> None:
        if step.file not in self._tasks:
            self._tasks[step.file] = self._bar.add_task(step.file, total=step.total)
        self._bar.update(self._tasks[step.file], completed=step.done, total=step.total)

    def __enter__(self) -> "DownloadBar":
        self._bar.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._bar.stop()
