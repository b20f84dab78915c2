"""`heedful trace`: what a run does on a split, as a folder of shards."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Json, On, RunName, ShardWorkers, StoreRoot, find_run, print_lines
from heedful.notebook import counted


def trace(
    run: RunName,
    split: Annotated[str, typer.Option("--split", help="Which texts: train, dev or test.")] = "test",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder; default: traces/ with the names of run and split.")
    ] = None,
    shard_size: Annotated[
        int | None, typer.Option("--shard-size", min=1, help="So many texts in each shard; default: 10,000.")
    ] = None,
    on: On = "local",
    workers: ShardWorkers = 1,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Write the trace of a run on a split, in shards.

    For more texts than memory holds. What was begun and stopped goes on where it was. `heedful erase --trace FOLDER`
    reads it shard by shard. On Ray the store and the folder must lie where every node sees them.
    """
    from heedful.cli.progress import counting
    from heedful.sweep.shards import trace_run
    from heedful.trace_folders import SHARD_SIZE

    found = find_run(run, store)
    place = out or Path("traces") / f"{found.path.name}-{split}"
    with counting("tracing") as watch:
        made = trace_run(found, split, place, shard_size=shard_size or SHARD_SIZE, on=on, workers=workers, watch=watch)
    units = int(made.lengths.sum())
    facts = {"trace": str(made.path), "instances": len(made), "units": units, "shards": made.count}
    said = f"{counted(len(made), 'instance')}, {counted(units, 'unit')} in {counted(made.count, 'shard')}"
    print_lines(facts, [said, f"trace {made.path}"], as_json)
