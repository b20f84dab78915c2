"""`heedful zoo`: every mechanism of attention, exact, on a task with a known answer."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Fresh, Json, StoreRoot, Workers, print_json, print_lines
from heedful.store import Store

if TYPE_CHECKING:
    import pandas as pd

zoo_app = typer.Typer(
    help="Every mechanism of attention, exact, on a task with a known answer.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Quick = Annotated[bool, typer.Option("--quick", help="One seed and fewer steps: all within a quarter of an hour.")]
Seeds = Annotated[
    int | None, typer.Option("--seeds", min=1, help="Seeds of each training; default: 3; of real data or if quick, 1.")
]


@zoo_app.command("list")
def list_zoo(as_json: Json = False) -> None:
    """All members, and the tasks on which they are tried."""
    from heedful.zoo.members import MEMBERS
    from heedful.zoo.tasks import TASKS, tasks_of

    members = [
        {"name": name, "title": one.title, "tasks": [task.name for task in tasks_of(name)]}
        for name, one in MEMBERS.items()
    ]
    tasks = [
        {"name": one.name, "title": one.title, "entrants": [entrant.name for entrant in one.entrants]}
        for one in TASKS.values()
    ]
    lines = ["members", *(f"  {one['name']:19} {one['title']:44} {', '.join(one['tasks'])}" for one in members)]
    lines += ["tasks", *(f"  {one['name']:19} {one['title']:44} {', '.join(one['entrants'])}" for one in tasks)]
    print_lines({"members": members, "tasks": tasks}, lines, as_json)


@zoo_app.command("show")
def show_zoo(
    name: Annotated[str, typer.Argument(help="A member or a task (see `heedful zoo list`).")],
    store: StoreRoot = Path("runs"),
    quick: Quick = False,
    seeds: Seeds = None,
    as_json: Json = False,
) -> None:
    """The card of a member: equation, symbols, source, tasks and what was reached on them; or what a task asks."""
    from heedful.studies.zoo.cards import card

    found = card(name, Store(store), seeds=seeds, quick=quick)
    print_lines(found.content, found.lines, as_json)


@zoo_app.command("train")
def train_zoo(
    name: Annotated[str, typer.Argument(help="A task, a member (all its tasks), or all.")],
    store: StoreRoot = Path("runs"),
    quick: Quick = False,
    seeds: Seeds = None,
    workers: Workers = None,
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Train every entrant of a task, once; what is in the store is not computed again."""
    from heedful.cli.progress import counting
    from heedful.studies.zoo.trying import chosen, costs, reached, try_tasks

    tasks = chosen(name)
    with counting(f"trainings of {name}") as watch:
        found = try_tasks(tasks, Store(store), seeds=seeds, quick=quick, workers=workers, fresh=fresh, watch=watch)
    order = {(task.name, entrant.name): place for place, (task, entrant) in
             enumerate((task, entrant) for task in tasks for entrant in task.entrants)}  # fmt: skip
    found.sort(key=lambda one: (order[one.record["task"], one.record["entrant"]], one.record["seed"]))
    _print({"reached": reached(found), "costs": costs(found)}, as_json)


@zoo_app.command("compare")
def compare_zoo(
    store: StoreRoot = Path("runs"),
    quick: Quick = False,
    seeds: Seeds = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where tables, pictures and a page of them go.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What is in the store, side by side: where attention points, what erasing does, parameters, steps and time."""
    from heedful.cli.progress import counting
    from heedful.studies.zoo.cards import NOTHING
    from heedful.studies.zoo.comparing import compare

    with counting("trained networks") as watch:
        found = compare(Store(store), seeds=seeds, quick=quick, draw=out is not None, watch=watch)
    if found.reached.empty and not as_json:
        print_lines({}, [NOTHING], as_json)
        return
    if out is not None:
        found.save(out)
    _print(found.tables(), as_json)


def _print(tables: "dict[str, pd.DataFrame]", as_json: bool) -> None:
    if as_json:
        print_json({name: table.to_dict("records") for name, table in tables.items()})
        return
    from heedful.report.terminal import grid, wide_console
    from heedful.studies.zoo.cards import shown

    console = wide_console()
    for table in tables.values():
        console.print(grid(shown(table)))
