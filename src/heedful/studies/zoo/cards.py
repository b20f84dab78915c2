"""The cards of members and tasks, as plain values, as lines for the terminal and as a part of docs/zoo.md."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from heedful.errors import UnknownName
from heedful.store import Store
from heedful.studies.zoo.looking import looked_at
from heedful.studies.zoo.trying import reached, results, wanting
from heedful.zoo.member import Member
from heedful.zoo.members import MEMBERS
from heedful.zoo.results import Result
from heedful.zoo.task import Task
from heedful.zoo.tasks import TASKS, tasks_of


@dataclass(frozen=True, kw_only=True)
class Card:
    content: dict[str, Any]
    lines: list[str]


def card(name: str, store: Store, *, seeds: int | None = None, quick: bool = False) -> Card:
    """Of a member or a task, with what is kept of its trainings."""
    if name in MEMBERS:
        member = MEMBERS[name]
        tasks = tasks_of(name)
        found = results(tasks, store, seeds=seeds, quick=quick)
        figures = of_member(name, reached(found))
        shown = next((one for one in found if one.record["member"] == name and one.record["role"] == "member"), None)
        return Card(
            content={**member.card(), "tasks": [task.name for task in tasks], "figures": figures.to_dict("records")},
            lines=[*member_lines(member), *figure_lines(figures), *_wanting(tasks), *_picture(shown)],
        )
    if name not in TASKS:
        raise UnknownName("member or task of the zoo", name, [*MEMBERS, *TASKS])
    task = TASKS[name]
    figures = reached(results([task], store, seeds=seeds, quick=quick))
    return Card(
        content={**task_content(task), "figures": figures.to_dict("records")},
        lines=[*task_lines(task), *figure_lines(figures), *_wanting([task])],
    )


def _wanting(tasks: Sequence[Task]) -> Iterator[str]:
    """What is not shown because its data are not at hand."""
    for task in tasks:
        if task.missing():
            yield wanting(task)


def _picture(shown: Result | None) -> Iterator[str]:
    if shown is not None:
        table, said = looked_at(shown)
        yield ""
        yield f"An example of {shown.record['task']}{f': {said}' if said else ''}"
        yield from letters_of(table)


def of_member(name: str, figures: pd.DataFrame) -> pd.DataFrame:
    """The rows of entrants that are this member, controls too."""
    own = [(task.name, one.name) for task in TASKS.values() for one in task.entrants if one.member == name]
    return figures[[pair in own for pair in zip(figures["task"], figures["entrant"], strict=True)]]


def member_lines(member: Member) -> list[str]:
    lines = [f"{member.title} ({member.name})", "", *(f"  {line}" for line in member.formula.split("\n")), ""]
    lines += [f"  {symbol:12} {meaning}" for symbol, meaning in member.symbols.items()]
    lines += ["", f"source    {member.source}", f"was for   {member.original}", f"known     {member.known}"]
    lines += [f"helps     {member.helps}", *([f"differs   {member.differs}"] if member.differs else [])]
    return [*lines, f"tasks     {', '.join(task.name for task in tasks_of(member.name))}"]


def task_content(task: Task) -> dict[str, Any]:
    return {
        "name": task.name,
        "title": task.title,
        "words": task.words,
        "steps": task.steps,
        "quick_steps": task.quick_steps,
        "batch": task.batch,
        "tests": list(task.tests),
        "entrants": [
            {"name": one.name, "role": one.role, "member": one.member, "words": one.words, "bars": dict(one.bars)}
            for one in task.entrants
        ],
    }


def task_lines(task: Task) -> list[str]:
    lines = [f"{task.title} ({task.name})", "", task.words, "", f"steps     {task.steps} of {task.batch} examples"]
    entrants = [f"{one.role:9} {one.name}{f': {one.words}' if one.words else ''}" for one in task.entrants]
    return [*lines, *entrants]


SHADES = " ░▒▓█"
MOST_ROWS = 12


def letters_of(table: pd.DataFrame) -> Iterator[str]:
    """The picture of one example in letters: darker where more attention lies, the known source between dots."""
    for look, part in table.groupby("look", sort=False):
        columns = [str(word) for word in part.drop_duplicates("column").sort_values("column")["column_word"]]
        width = max(3, *(len(word) for word in columns)) if len(columns) <= 14 else 3
        heads = " ".join(f"{word[:width]:^{width}}" for word in columns)
        yield f"{look:>16} {heads}"
        for row, cells in list(part.groupby("row", sort=True))[:MOST_ROWS]:
            del row
            marks = (
                f"{'·' if source else ' '}{SHADES[round(4 * min(1.0, weight))] * (width - 2)}{'·' if source else ' '}"
                for weight, source in zip(cells["weight"], cells["source"], strict=True)
            )
            yield f"{str(cells['row_word'].iloc[0])[:16]:>16} {' '.join(marks)}"


NOTHING = "Nothing of it has been trained in this store: `heedful zoo train`; --quick shows what was trained quickly."


def figure_lines(figures: pd.DataFrame) -> Iterator[str]:
    yield ""
    if figures.empty:
        yield NOTHING
    for _, row in figures.iterrows():
        yield f"{row['task']:14} {row['entrant']:20} {row['split']:6} {row['figure']:14} {between(row)}"


def between(row: "pd.Series[Any]") -> str:
    """A mean with its interval, and whether it is what was asked."""
    value = f"{row['value']:.3f}" + (f" [{row['low']:.3f}, {row['high']:.3f}]" if row["seeds"] > 1 else "")
    return value if row["reached"] is None else f"{value} {'✓' if row['reached'] else '✗'} ({bar_words(row)})"


def bar_words(row: "pd.Series[Any]") -> str:
    return f"at least {row['least']:g}" if row["least"] > 0 else f"at most {row['most']:g}"


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """A table as words; of what was reached figures stand beside each other, a row for each entrant and test split."""
    if "figure" not in table:
        return table.map(lambda value: f"{value:.3f}" if isinstance(value, float) else value)
    cells = table.assign(cell=[between(row) for _, row in table.iterrows()])
    names = list(dict.fromkeys(table["figure"]))
    wide = cells.pivot_table(
        index=["task", "entrant", "role", "split"], columns="figure", values="cell", aggfunc="first", sort=False
    )
    return wide.reindex(columns=names).fillna("").reset_index()
