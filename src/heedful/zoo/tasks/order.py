"""Symbols written again in another order: reversed, or shifted by one (the attention of translation)."""

from functools import partial
from typing import Any

import torch

from heedful.zoo.members import MEMBERS
from heedful.zoo.networks.recurrent import marks, mask_of
from heedful.zoo.networks.translating import PAD, Translating, When
from heedful.zoo.task import Bars, Draw, Entrant, Examples, Outcome, Role, Task, Words

SYMBOLS = "∎abcdefghijklmnopqrstuvwxyz"
END = 0
"""What is written at the end; in a source the symbols begin at 1, and 0 stands where it has ended."""
SHORTEST, LONGEST = 6, 10
EMBEDDING, HIDDEN, WITHOUT = 24, 48, 68
KNOWN = LONGEST + 1


def drawn(order: str) -> Draw:
    """Sources of so many symbols; the target is the source from its end on, or from its second symbol on."""

    def draw(_split: str, count: int, generator: torch.Generator) -> Examples:
        lengths = torch.randint(SHORTEST, LONGEST + 1, (count,), generator=generator)
        source = torch.randint(1, len(SYMBOLS), (count, KNOWN), generator=generator)
        there, steps = mask_of(lengths, KNOWN), torch.arange(KNOWN)
        places = (lengths.unsqueeze(1) - 1 - steps) if order == "reverse" else (steps + 1).expand(count, -1)
        inside = there & (places >= 0) & (places < lengths.unsqueeze(1))
        symbols = source.gather(1, places.clamp(0, KNOWN - 1))
        targets = torch.where(inside, symbols, torch.where(inside.roll(1, 1) & (steps > 0) & ~inside, END, -1))
        return Examples(
            inputs={"source": torch.where(there, source, PAD)},
            targets=targets,
            sources={"": marks(torch.where(inside, places, -1), KNOWN)},
        )

    return draw


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    asked = examples.targets[number] >= 0
    said = [SYMBOLS[symbol] for symbol in outcome.answers[number][asked].tolist()]
    return Words(rows={"": said}, columns={"": [SYMBOLS[x] for x in examples.inputs["source"][number].tolist() if x]})


def entrant(
    name: str, bars: Bars, *, when: When = "after", role: Role = "member", words: str = "", **sizes: Any
) -> Entrant:
    def look(query: int, key: int) -> Any:
        return MEMBERS[name].make(query, key, **sizes)

    make = partial(Translating, len(SYMBOLS), EMBEDDING, HIDDEN, look=look, when=when)
    return Entrant(name=name, make=make, role=role, member=name, words=words, bars=bars)


BASELINE = Entrant(
    name="no attention",
    make=partial(Translating, len(SYMBOLS), EMBEDDING, WITHOUT, look=None),
    role="baseline",
    words="the decoder has its first state and nothing else",
    bars={"exact": (0.0, 0.5)},
)
REACHED: Bars = {"exact": (0.9, 1.0), "pointed": (0.9, 1.0)}
MISSED: Bars = {"exact": (0.0, 0.6), "pointed": (0.0, 0.3)}

REVERSE = Task(
    name="reverse",
    title="Reversing symbols",
    words=f"{SHORTEST} to {LONGEST} letters, to be written from the last to the first. The right place of a step is "
    "the letter that is written.",
    draw=drawn("reverse"),
    entrants=(
        entrant("bahdanau", REACHED, when="before", size=HIDDEN),
        entrant("luong-dot", REACHED),
        entrant("luong-general", REACHED),
        entrant("luong-concat", REACHED, size=HIDDEN),
        entrant("luong-local-p", REACHED, size=HIDDEN, words="the window goes where the state says"),
        entrant("luong-local-m", MISSED, role="control", words="the window moves on from the left: here it is wrong"),
        BASELINE,
    ),
    show=show,
    steps=600,
    quick_steps=300,
    rate=3e-3,
)
SHIFT = Task(
    name="shift",
    title="Shifting symbols by one",
    words=f"{SHORTEST} to {LONGEST} letters, to be written from the second on. The right place of a step is one "
    "further than the step.",
    draw=drawn("shift"),
    entrants=(
        entrant("bahdanau", REACHED, when="before", size=HIDDEN),
        entrant("luong-dot", REACHED),
        entrant("luong-general", REACHED),
        entrant("luong-concat", REACHED, size=HIDDEN),
        entrant("luong-location", REACHED, places=KNOWN, words="asks where, not what: here that is enough"),
        entrant("luong-local-m", REACHED, words="the window moves on from the left: here it is right"),
        entrant("luong-local-p", REACHED, size=HIDDEN, words="the window goes where the state says"),
        BASELINE,
    ),
    show=show,
    steps=600,
    quick_steps=300,
    rate=3e-3,
)
