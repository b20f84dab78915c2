"""All that is kept of the zoo, side by side: what was reached, where attention points, what erasing does, what it cost;
and docs/zoo.md, written of the same objects."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.attention.scores import FUNCTIONS
from heedful.figures.picture import Picture
from heedful.files import write_table, write_text
from heedful.store import Store
from heedful.studies.zoo.cards import bar_words
from heedful.studies.zoo.examining import examine
from heedful.studies.zoo.pictures import picture
from heedful.studies.zoo.trying import Watch, costs, reached, results
from heedful.zoo.member import Member
from heedful.zoo.members import MEMBERS
from heedful.zoo.task import Task
from heedful.zoo.tasks import TASKS, tasks_of

ROUGH = ["pointed", "top", "random", "source"]
OF_TRACES = ["attention", "at_random", "minimum", "flip_top", "flip_random", "adversary"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Tables by name, and a picture for each entrant with attention."""

    reached: pd.DataFrame
    costs: pd.DataFrame
    looks: pd.DataFrame
    traces: pd.DataFrame
    pictures: Mapping[tuple[str, str], Picture] = field(default_factory=dict)

    def tables(self) -> dict[str, pd.DataFrame]:
        return {"reached": self.reached, "costs": self.costs, "looks": self.looks, "traces": self.traces}

    def save(self, folder: Path) -> None:
        """Tables as CSV, pictures as PNG and SVG, and the page."""
        for name, table in self.tables().items():
            write_table(folder / f"{name}.csv", table)
        for one in self.pictures.values():
            one.save(folder)
        write_text(folder / "zoo.md", page(self, ""))


def compare(
    store: Store, *, seeds: int | None = None, quick: bool = False, draw: bool = False, watch: Watch | None = None
) -> Comparison:
    """Of what is kept; nothing is trained."""
    found = results([task for task in TASKS.values() if not task.missing()], store, seeds=seeds, quick=quick)
    looks, traces = examine(found, watch)
    drawn = [one for one in found if one.record["seed"] == 0 and one.record["member"]] if draw else []
    return Comparison(
        reached=reached(found),
        costs=costs(found),
        looks=over_seeds(looks, ["task", "entrant", "look"], ROUGH),
        traces=over_seeds(traces, ["task", "entrant", "units"], OF_TRACES),
        pictures={(one.record["task"], one.record["entrant"]): picture(one) for one in drawn},
    )


def over_seeds(table: pd.DataFrame, by: list[str], columns: list[str]) -> pd.DataFrame:
    """Means over seeds."""
    if table.empty:
        return pd.DataFrame(columns=[*by, *columns])
    return table.groupby(by, sort=False)[columns].mean().reset_index()


HEAD = """# The zoo of attention

Every mechanism of the survey is a small layer, made of one call (`heedful.attention.reading.attend`) and a few parts:
scores, what makes weights of them, and what may be read. The layers are held against equations in plain Python, digit
by digit. Here each of them is tried on a task on which the right place to look is known, beside controls that differ
in one thing and baselines that learn as many numbers in as many steps and have no attention.

`heedful zoo list` names members and tasks, `heedful zoo show NAME` prints a card, `heedful zoo train TASK` (or `all`)
trains what is not in the store yet, `heedful zoo compare --out FOLDER` writes this page of what is there.

*right* is the share of what is asked that is answered rightly, *exact* the share of examples with nothing wrong,
*pointed* how often the largest weight lies on the known source. Figures are means over {seeds}, with Student's 95 %
interval where there are several; ✓ and ✗ say whether the mean is what was asked of it, which was settled with these
figures in sight: it guards them, and predicts nothing. The network is that of the
step with the best dev figure; test examples are the same for all. A step's time is that of one processor, without the
drawing of its examples. All trainings together take an hour of a processor (66 minutes, `heedful zoo train all`), with
`--quick` seven minutes, six and a quarter on the clock with two processes.
"""


def page(found: Comparison, folder: str) -> str:
    """The page as Markdown; pictures lie in that folder, seen from the page."""
    count = int(found.reached["seeds"].max()) if len(found.reached) else 0
    seeds = f"{count} seeds" if count > 1 else "one seed"
    lines = [HEAD.format(seeds=seeds), "## In short", "", *short_section(found.reached), ""]
    for title, real in (("Planted tasks", False), ("Real data", True)):
        lines += [f"## {title}", ""]
        for task in TASKS.values():
            if task.real is real:
                lines += [*task_section(task, found, folder), ""]
    lines += [
        "## Where attention points, and what erasing does",
        "",
        *erasing_section(found),
        "",
        "## Members",
        "",
        *score_section(),
        "",
    ]
    for member in MEMBERS.values():
        lines += [*member_section(member), ""]
    return "\n".join(lines).rstrip() + "\n"


def short_section(figures: pd.DataFrame) -> Iterator[str]:
    """Of planted tasks each member beside the best of those without attention, on the first test split."""
    rows = []
    for task in TASKS.values():
        own = figures[(figures["task"] == task.name) & (figures["split"] == task.tests[0])]
        best = {str(row["entrant"]): row for _, row in own[own["figure"] == task.best].iterrows()}
        without = [one.name for one in task.entrants if one.role == "baseline" and one.name in best]
        if task.real or not without:
            continue
        for one in task.entrants:
            if one.role == "member" and one.name in best:
                places = own[(own["entrant"] == one.name) & own["figure"].str.match("pointed|found")]
                rows.append(
                    {
                        "task": f"`{task.name}`",
                        "member": one.name,
                        task.best: plain(best[one.name]),
                        "without attention": plain(best[without[0]]),
                        "points at the source": ", ".join(
                            f"{str(row['figure']).partition(' ')[2]} {plain(row)}".strip()
                            for _, row in places.iterrows()
                        ),
                    }
                )
    yield from markdown(pd.DataFrame(rows)) if rows else iter(["Nothing is trained yet."])


def plain(row: "pd.Series[Any]") -> str:
    """A mean with its interval."""
    value = f"{row['value']:.3f}".removeprefix("0")
    return value + (
        f" [{row['low']:.2f}, {row['high']:.2f}]" if row["seeds"] > 1 and row["high"] - row["low"] >= 0.005 else ""
    )


def task_section(task: Task, found: Comparison, folder: str) -> Iterator[str]:
    yield f"### {task.title} (`{task.name}`)"
    yield ""
    yield task.words
    yield ""
    said = [f"{one.name} ({one.role}): {one.words}" for one in task.entrants if one.words]
    yield from (f"- {line}" for line in said)
    rows = found.reached[found.reached["task"] == task.name]
    if rows.empty:
        yield ""
        yield "Not trained yet."
        return
    cost = found.costs[found.costs["task"] == task.name].set_index("entrant")
    yield ""
    yield f"`heedful zoo train {task.name}`: {task.batch} examples a step."
    yield ""
    yield from markdown(figures_of(rows, task, cost))
    shown = [one for (name, _), one in found.pictures.items() if name == task.name]
    for one in shown[:2]:
        yield ""
        yield f"![{one.caption}]({folder}{one.stem}.png)"


def figures_of(rows: pd.DataFrame, task: Task, cost: pd.DataFrame) -> pd.DataFrame:
    """A row for each entrant and test split."""
    lines = []
    for (entrant, split), some in rows.groupby(["entrant", "split"], sort=False):
        first = split == task.tests[0]
        cells = {row["figure"]: cell(row) for _, row in some.iterrows()}
        own: Any = cost.loc[str(entrant)]
        costs_of = {"parameters": f"{int(own['parameters']):,}", "steps": f"{int(own['steps']):,}"}
        costs_of["ms a step"] = f"{own['milliseconds']:.0f}"
        lines.append(
            {"": entrant, **({"test": split} if len(task.tests) > 1 else {}), **cells,
             **(costs_of if first else dict.fromkeys(costs_of, ""))}
        )  # fmt: skip
    return pd.DataFrame(lines).fillna("")


def cell(row: "pd.Series[Any]") -> str:
    return plain(row) if row["reached"] is None else f"{plain(row)} {'✓' if row['reached'] else '✗'} {bar_words(row)}"


ERASING = """A place is taken away from what a look may read, at every step, and the network runs again, told the
right answers of the steps before: how often does an answer change without the place with the
largest weight, without another one drawn at random, without the known source? (Of ratings: by how
much they move.) Of a memory it is taken from all hops, of several heads from all of them. *pointed* is here of networks
that are told the right answers, and of two heads how often either place is found. A pointer's weights are its answers:
without the largest one it must answer something else."""
POOLING = """Where the last look pools into an affine readout there is a trace: the share of units that is erased
until the decision flips, along attention, at random and at least; how often the top unit and a
random one flip it alone; and how far (Jensen-Shannon divergence, at most 0.69) another attention
with the same output lies."""


def erasing_section(found: Comparison) -> Iterator[str]:
    yield from (ERASING, "", *markdown(found.looks.map(rounded)))
    if len(found.traces):
        yield from ("", POOLING, "", *markdown(found.traces.map(rounded)))


def rounded(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.3f}"
    return str(value)


def score_section() -> Iterator[str]:
    rows = [
        {"score": name, "formula": f"`{formula}`", "source": source} for name, (formula, source) in FUNCTIONS.items()
    ]
    yield "The scores that members are made of; weights are made of them by softmax, sparsemax, 1.5-entmax, a gate, or"
    yield "a window (`heedful.attention.weighting`)."
    yield ""
    yield from markdown(pd.DataFrame(rows))


def member_section(member: Member) -> Iterator[str]:
    yield f"### {member.title} (`{member.name}`)"
    yield ""
    yield "```"
    yield from member.formula.split("\n")
    yield "```"
    yield ""
    yield "; ".join(f"{symbol}: {meaning}" for symbol, meaning in member.symbols.items()) + "."
    yield ""
    facts: Mapping[str, str] = {
        "source": member.source, "first used for": member.original, "known": member.known, "helps": member.helps,
        "differs": member.differs, "tasks": ", ".join(task.name for task in tasks_of(member.name)),
    }  # fmt: skip
    yield from (f"- **{name}**: {words}" for name, words in facts.items() if words)


def markdown(table: pd.DataFrame) -> Iterator[str]:
    words: Callable[[object], str] = lambda value: str(value).replace("|", "\\|")  # noqa: E731
    yield "| " + " | ".join(map(words, table.columns)) + " |"
    yield "|" + "---|" * len(table.columns)
    for row in table.itertuples(index=False):
        yield "| " + " | ".join(map(words, row)) + " |"
