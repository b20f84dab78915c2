"""Where trained members look on one test example, as a picture."""

from heedful.figures.attention import attention_grid
from heedful.figures.picture import Figure, Picture
from heedful.studies.zoo.looking import looked_at
from heedful.zoo.results import Result
from heedful.zoo.tasks import find_task


def picture(result: Result, number: int | None = None) -> Picture:
    """The picture of a training that has attention."""
    table, said = looked_at(result, number)
    task = find_task(result.record["task"])
    figure = Figure(
        name=f"{task.name} {result.record['entrant']}",
        title=task.title,
        caption=f"Weights of {result.record['entrant']} on an example of the test; the known source is framed.",
        see=said,
        needs=("looked",),
        draw=lambda tables: attention_grid(tables["looked"]),
    )
    stem = f"{task.name}-{result.record['entrant']}".replace(" ", "-")
    return figure.headed(said).picture({"looked": table}, stem=stem)
