"""Copying long rows of few symbols, longer than those of training (location-sensitive attention)."""

from functools import partial
from typing import Any

import torch

from heedful.zoo.members import MEMBERS
from heedful.zoo.networks.recurrent import marks
from heedful.zoo.networks.translating import Translating
from heedful.zoo.task import Bars, Entrant, Examples, Outcome, Role, Task, Words

SYMBOLS = "∎abcd⊢"
END, BEGIN = 0, 5
"""What is written at the end, and what every source begins with; its own end is the symbol 6."""
SOURCE_END = 6
SHORTEST, LONGEST = 5, 25
EMBEDDING, HIDDEN = 24, 48


def draw(split: str, count: int, generator: torch.Generator) -> Examples:
    """Rows of one length, drawn between 5 and 25; of a test split, of the length that it is called by."""
    length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator)) if split == "train" else LONGEST
    length = int(split) if split.isdigit() else length
    symbols = torch.randint(1, 5, (count, length), generator=generator)
    edge = torch.ones(count, 1, dtype=torch.long)
    places = torch.arange(1, length + 2).expand(count, -1)
    return Examples(
        inputs={"source": torch.cat([BEGIN * edge, symbols, SOURCE_END * edge], 1)},
        targets=torch.cat([symbols, END * edge], 1),
        sources={"": marks(places, length + 2)},
    )


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    said = [SYMBOLS[symbol] for symbol in outcome.answers[number].tolist()]
    source = [(*SYMBOLS, "⊣")[symbol] for symbol in examples.inputs["source"][number].tolist()]
    return Words(rows={"": said}, columns={"": source})


def entrant(name: str, member: str, bars: Bars, *, encoded: bool = False, role: Role = "member", words: str) -> Entrant:
    def look(query: int, key: int) -> Any:
        return MEMBERS[member].make(query, key, HIDDEN)

    make = partial(Translating, SOURCE_END + 1, EMBEDDING, HIDDEN, look=look, when="before", encoded=encoded)
    return Entrant(name=name, make=make, member=member, role=role, words=words, bars=bars)


COPY = Task(
    name="copy",
    title="Copying repeated symbols, at lengths never seen",
    words=f"Rows of four symbols, {SHORTEST} to {LONGEST} long in training, to be copied; tested at 25, 50, 100 and "
    "200. Every symbol stands at many places, so what it is does not say where it is. The right place is one further "
    "at each step.",
    draw=draw,
    entrants=(
        entrant(
            "location-sensitive",
            "location-sensitive",
            {"exact": (0.95, 1.0), "pointed": (0.95, 1.0), "exact@50": (0.8, 1.0)},
            words="knows where it looked; keys are the symbols themselves",
        ),
        entrant(
            "location-based",
            "location-based",
            {},
            words="knows where it looked, and is not asked by the state",
        ),
        entrant(
            "content only",
            "bahdanau",
            {"exact": (0.0, 0.1), "pointed": (0.0, 0.4)},
            role="control",
            words="the same without the last place: equal symbols are one key",
        ),
        entrant(
            "content and biGRU",
            "bahdanau",
            {"exact@100": (0.0, 0.1)},
            encoded=True,
            role="control",
            words="keys know what stands around them, so content can tell equal symbols apart, at lengths it has seen",
        ),
        Entrant(
            name="no attention",
            make=partial(Translating, SOURCE_END + 1, EMBEDDING, 64, look=None),
            role="baseline",
            words="the decoder has its first state, which a network in both directions made, and nothing else",
            bars={"exact": (0.0, 0.1)},
        ),
    ),
    show=show,
    steps=600,
    quick_steps=300,
    tests=("25", "50", "100", "200"),
    size=250,
    rate=3e-3,
)
