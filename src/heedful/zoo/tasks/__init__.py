"""The tasks of the zoo by name."""

from collections.abc import Mapping

from heedful.errors import UnknownName
from heedful.zoo.task import Task
from heedful.zoo.tasks.aspects import ASPECTS_TASK
from heedful.zoo.tasks.copy import COPY
from heedful.zoo.tasks.correction import CORRECTION
from heedful.zoo.tasks.dates import DATES
from heedful.zoo.tasks.film_documents import FILM_DOCUMENTS
from heedful.zoo.tasks.hull import HULL
from heedful.zoo.tasks.learners import LEARNERS
from heedful.zoo.tasks.matching import MATCHING, TWO_MATCHES
from heedful.zoo.tasks.movies import MOVIES
from heedful.zoo.tasks.order import REVERSE, SHIFT
from heedful.zoo.tasks.planted import PLANTED_SENTENCE
from heedful.zoo.tasks.preferences import PREFERENCES
from heedful.zoo.tasks.reviews import REVIEWS
from heedful.zoo.tasks.sort import SORT
from heedful.zoo.tasks.stories import ONE_FACT, THREE_FACTS, TWO_FACTS
from heedful.zoo.tasks.translation import TRANSLATION
from heedful.zoo.tasks.visits import VISITS_TASK

TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        SORT,
        HULL,
        REVERSE,
        SHIFT,
        DATES,
        COPY,
        MATCHING,
        TWO_MATCHES,
        ONE_FACT,
        TWO_FACTS,
        THREE_FACTS,
        PLANTED_SENTENCE,
        ASPECTS_TASK,
        PREFERENCES,
        VISITS_TASK,
        CORRECTION,
        TRANSLATION,
        LEARNERS,
        MOVIES,
        REVIEWS,
        FILM_DOCUMENTS,
    )
}


def find_task(name: str) -> Task:
    """A task by its name."""
    if name not in TASKS:
        raise UnknownName("task of the zoo", name, TASKS)
    return TASKS[name]


def tasks_of(member: str) -> list[Task]:
    """The tasks that a member tries, itself or as a control."""
    return [task for task in TASKS.values() if any(one.member == member for one in task.entrants)]
