"""Numbers in the order of their size, as places (the pointer network)."""

from functools import partial

import torch

from heedful.zoo.members.pointer import make_pointer
from heedful.zoo.networks.pointing import Pointing
from heedful.zoo.networks.recurrent import marks
from heedful.zoo.task import Entrant, Examples, Outcome, Task, Words

LENGTHS = {"train": 10, "dev": 10, "10": 10, "15": 15}
HIDDEN, WITHOUT = 64, 70
"""Of the network with the pointer, and of the one without, so that both have as many parameters."""


def draw(split: str, count: int, generator: torch.Generator) -> Examples:
    numbers = torch.rand(count, LENGTHS[split], generator=generator)
    order = numbers.argsort(1)
    return Examples(
        inputs={"items": numbers.unsqueeze(-1), "mask": torch.ones_like(numbers, dtype=torch.bool)},
        targets=order,
        sources={"": marks(order, LENGTHS[split])},
    )


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    numbers = [f"{x:.2f}" for x in examples.inputs["items"][number, :, 0].tolist()]
    said = [numbers[place] for place in outcome.answers[number].tolist()]
    return Words(rows={"": said}, columns={"": numbers})


def entrant_pointer() -> Pointing:
    return Pointing(1, HIDDEN, pointer=make_pointer(HIDDEN, HIDDEN, HIDDEN), places=15)


SORT = Task(
    name="sort",
    title="Sorting ten numbers",
    words="Ten numbers between 0 and 1; the answer is their places from the smallest to the largest. At each step the "
    "right place is that of the next number. Places that were answered are not answered again, by anyone.",
    draw=draw,
    entrants=(
        Entrant(
            name="pointer",
            make=entrant_pointer,
            member="pointer",
            words="the weights are the answer",
            bars={"exact": (0.85, 1.0), "pointed": (0.95, 1.0)},
        ),
        Entrant(
            name="no attention",
            make=partial(Pointing, 1, WITHOUT, pointer=None, places=15),
            role="baseline",
            words="an output for each place",
            bars={"exact": (0.0, 0.6)},
        ),
    ),
    show=show,
    steps=1000,
    quick_steps=400,
    tests=("10", "15"),
    rate=3e-3,
    batch=128,
)
