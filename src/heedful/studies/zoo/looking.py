"""Where trained members look on one test example, as a table."""

import pandas as pd

from heedful.zoo.results import Result
from heedful.zoo.task import Task
from heedful.zoo.tasks import find_task
from heedful.zoo.training import answer, examples_of

SHOWN: dict[str, int] = {}
"""The number of the test example that is shown of a task; the first where nothing is said."""


def looked_at(result: Result, number: int | None = None) -> tuple[pd.DataFrame, str]:
    """A row for each cell: look, row, column, weight, whether it is a source, and the words; and what is said above."""
    task = find_task(result.record["task"])
    network = result.network(task.entrant(result.record["entrant"]))
    examples = examples_of(task, shown_split(task)).take(slice(0, 50))
    outcome = answer(network, examples)
    number = SHOWN.get(task.name, 0) if number is None else number
    words, cells = task.show(examples, outcome, number), []
    for look, rows in words.rows.items():
        weights, sources = outcome.weights[look][number], examples.sources.get(look)
        inside = words.cells.get(look)
        for row, row_word in enumerate(rows):
            for column, column_word in enumerate(words.columns[look]):
                cells.append(
                    {
                        "look": look,
                        "row": row,
                        "column": column,
                        "weight": float(weights[row, column]),
                        "source": bool(sources[number, row, column]) if sources is not None else False,
                        "row_word": row_word,
                        "column_word": column_word,
                        "word": inside[row][column] if inside and column < len(inside[row]) else "",
                    }
                )
    return pd.DataFrame(cells), words.title


def shown_split(task: Task) -> str:
    return task.tests[0]
