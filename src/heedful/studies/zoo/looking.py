"""Where trained members look on one test example, as a table."""

import pandas as pd

from heedful.zoo.results import Result
from heedful.zoo.task import Examples, Outcome, Task, Words
from heedful.zoo.tasks import find_task
from heedful.zoo.training import answer, examples_of

SHOWN = {"translation": 9, "learners": 4, "movies": 4, "reviews": 3}
"""The number of the test example that is shown of a task; the first where nothing is said."""


def looked_at(result: Result, number: int | None = None) -> tuple[pd.DataFrame, str]:
    """A row for each cell: look, row, column, weight, whether it is a source, and the words; and what is said above."""
    task = find_task(result.record["task"])
    network = result.network(task.entrant(result.record["entrant"]))
    examples = examples_of(task, shown_split(task)).take(slice(0, 50))
    outcome = answer(network, examples)
    number = SHOWN.get(task.name, 0) if number is None else number
    words = task.show(examples, outcome, number)
    return cells_of(words, examples, outcome, number), words.title


def cells_of(words: Words, examples: Examples, outcome: Outcome, number: int) -> pd.DataFrame:
    """The weights and sources of one example behind the words of its picture."""
    cells = []
    for look, rows in words.rows.items():
        if look not in outcome.weights:  # a control that lacks a level
            continue
        weights, sources = outcome.weights[look][number], examples.sources.get(look)
        inside, first = words.cells.get(look), words.first.get(look, 0)
        for row, row_word in enumerate(rows):
            for column, column_word in enumerate(words.columns[look]):
                cells.append(
                    {
                        "look": look,
                        "row": row,
                        "column": column,
                        "weight": float(weights[first + row, column]),
                        "source": bool(sources[number, first + row, column]) if sources is not None else False,
                        "row_word": row_word,
                        "column_word": column_word,
                        "word": inside[row][column] if inside and column < len(inside[row]) else "",
                    }
                )
    return pd.DataFrame(cells)


def shown_split(task: Task) -> str:
    return task.tests[0]
