"""Every attention mechanism of the zoo, and every task, as a card."""

from collections.abc import Iterator

from heedful.studies.zoo.cards import task_content
from heedful.zoo.member import Member
from heedful.zoo.members import MEMBERS
from heedful.zoo.task import Task
from heedful.zoo.tasks import TASKS, tasks_of
from pages.plain import plain

PREFACE = """# Zoo cards

The attention mechanisms of a survey, each with its formula as it is computed here, where it is from, what it was for,
and the tasks on which it is tried: on these it is known where attention should look. `heedful zoo train` trains them,
`heedful zoo show NAME` prints a card with what came of it.
"""


def zoo_page() -> str:
    """All cards as Markdown: docs/zoo-cards.md."""
    cards = [line for member in MEMBERS.values() for line in _member(member)]
    tasks = [line for task in TASKS.values() for line in _task(task)]
    return "\n".join([PREFACE, "## Mechanisms\n", *cards, "## Tasks\n", *tasks])


def _member(member: Member) -> Iterator[str]:
    yield f"### {member.title} (`{member.name}`)\n"
    yield f"```text\n{member.formula}\n```\n"
    for symbol, meaning in member.symbols.items():
        yield f"- `{symbol}`: {plain(meaning)}"
    yield ""
    rows = {
        "source": member.source,
        "was for": member.original,
        "known": member.known,
        "helps": member.helps,
        "differs": member.differs,
        "tasks": ", ".join(task.title for task in tasks_of(member.name)),
    }
    yield from (f"- **{name}**: {plain(words)}" for name, words in rows.items() if words)
    yield ""


def _task(task: Task) -> Iterator[str]:
    told = task_content(task)
    yield f"### {task.title} (`{task.name}`)\n"
    yield f"{plain(task.words)}\n"
    yield f"{task.steps:,} steps of {task.batch} examples. Entrants:\n"
    for entrant in told["entrants"]:
        words = f": {plain(entrant['words'])}" if entrant["words"] else ""
        yield f"- {entrant['name']} ({entrant['role']}){words}"
    yield ""
