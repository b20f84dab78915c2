"""Questions about stories whose answer takes one, two or three facts (memory with several hops)."""

from functools import partial
from typing import Any

import torch

from heedful.zoo.networks.recurrent import marks
from heedful.zoo.networks.remembering import Remembering
from heedful.zoo.task import Bars, Draw, Entrant, Examples, Outcome, Task, Words

PEOPLE = ("Ada", "Ben", "Cleo", "Dan", "Eve")
PLACES = ("attic", "barn", "cellar", "garden", "hall")
BOXES = ("bag", "basket", "crate", "jar", "sack")
THINGS = ("apple", "book", "coin", "doll", "egg")
WORDS = ("went to", "took the", "is in the", "where is", "who took the", "what holds the",
         *PEOPLE, *PLACES, *BOXES, *THINGS)  # fmt: skip
WENT, TOOK, IN, WHERE, WHO, WHAT = range(6)
KIND = len(PEOPLE)
PERSON, PLACE, BOX, THING = (6 + KIND * kind for kind in range(4))
MOVES = 8
"""Facts about who went where; each person goes somewhere, some more than once."""
SIZE, WITHOUT = 40, 30


def drawn(most: int) -> Draw:
    """Stories whose hardest questions take so many facts; in training all easier ones are asked too, tests ask only the
    hardest. Of one fact “where is Ada” and “who took the bag”, of two “where is the bag”, of three “where is the
    book”."""

    def draw(split: str, count: int, generator: torch.Generator) -> Examples:
        rows = torch.arange(count)

        def one_of(some: int) -> torch.Tensor:
            return torch.randint(some, (count,), generator=generator)

        def permuted(some: int) -> torch.Tensor:
            return torch.rand(count, some, generator=generator).argsort(1)

        went = torch.cat([permuted(KIND), torch.randint(KIND, (count, MOVES - KIND), generator=generator)], 1)
        went = went.gather(1, permuted(MOVES))
        reached = torch.randint(KIND, (count, MOVES), generator=generator)
        facts = [torch.stack([PERSON + went, torch.full_like(went, WENT), PLACE + reached], -1)]
        # with repetitions: were all different, the answer could be found by looking at all facts but the right one
        taker, holder = (torch.randint(KIND, (count, KIND), generator=generator) for _ in range(2))
        boxes = things = torch.arange(KIND).expand(count, -1)
        facts.append(torch.stack([PERSON + taker, torch.full_like(boxes, TOOK), BOX + boxes], -1))
        if most == 3:
            facts.append(torch.stack([THING + things, torch.full_like(things, IN), BOX + holder], -1))
        told = torch.cat(facts, 1)
        # facts of all kinds mixed, those about moves in their order
        order = torch.rand(count, told.shape[1], generator=generator)
        order[:, :MOVES] = order[:, :MOVES].sort(1).values
        order = order.argsort(1)
        where = order.argsort(1)
        told = told.gather(1, order.unsqueeze(-1).expand(-1, -1, 3))

        thing = one_of(KIND)
        box = holder[rows, thing] if most == 3 else one_of(KIND)
        person = taker[rows, box]
        moves = (went == person.unsqueeze(1)) * torch.arange(1, MOVES + 1)
        last = moves.argmax(1)
        chain = [where[rows, last], where[rows, MOVES + box]]
        if most == 3:
            chain.append(where[rows, MOVES + KIND + thing])
        place = PLACE + reached[rows, last]
        asked: list[
            tuple[Any, Any, Any, Any]
        ] = [  # kind of question, of what, answer, facts from the first that is needed to the last
            (WHERE, PERSON + person, place, chain[:1]),
            (WHO, BOX + box, PERSON + person, chain[1:2]),
            (WHERE, BOX + box, place, chain[1::-1]),
        ]
        if most == 3:
            asked += [(WHAT, THING + thing, BOX + box, chain[2:]), (WHERE, THING + thing, place, chain[::-1])]
        asked = asked[:2] if most == 1 else asked
        hardest = [number for number, (*_, needed) in enumerate(asked) if len(needed) == most]
        kinds = one_of(len(asked)) if split == "train" else torch.tensor(hardest)[one_of(len(hardest))]
        question, answer, needed = (torch.stack([one[part] if isinstance(one[part], torch.Tensor) else
                                                 torch.full((count,), one[part]) for one in asked])[kinds, rows]
                                    for part in range(3))  # fmt: skip
        hops = torch.stack([torch.stack([one[3][hop] if hop < len(one[3]) else -torch.ones_like(last)
                                         for hop in range(most)]) for one in asked])[kinds, :, rows]  # fmt: skip
        count_of = told.shape[1]
        return Examples(
            inputs={"facts": told, "question": torch.stack([question, answer], -1)},
            targets=needed.unsqueeze(1),
            sources={f"hop {hop + 1}": marks(hops[:, hop : hop + 1], count_of) for hop in range(most)},
        )

    return draw


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    facts = [" ".join(WORDS[word] for word in fact) for fact in examples.inputs["facts"][number].tolist()]
    question = " ".join(WORDS[word] for word in examples.inputs["question"][number].tolist()) + "?"
    said = WORDS[int(outcome.answers[number, 0])]
    looks = [*outcome.weights]
    return Words(rows={look: [look] for look in looks}, columns=dict.fromkeys(looks, facts), title=f"{question} {said}")


def entrants(most: int, bars: Bars, short: Bars) -> tuple[Entrant, ...]:
    facts = MOVES + KIND * min(2, most) if most == 3 else MOVES + KIND
    build: Any = partial(Remembering, len(WORDS), facts)
    control = (
        Entrant(
            name="no ages",
            make=partial(build, SIZE, hops=1, aged=False),
            role="control",
            member="memory",
            words="facts do not say how long ago they were: of two moves of a person the last cannot be told",
            bars=short,
        )
        if most == 1
        else Entrant(
            name="one hop less",
            make=partial(build, SIZE, hops=most - 1),
            role="control",
            member="memory",
            words=f"{most - 1} of the {most} looks that are needed",
            bars=short,
        )
    )
    return (
        Entrant(name="memory", make=partial(build, SIZE, hops=most), member="memory", bars=bars),
        control,
        Entrant(
            name="no attention",
            make=partial(build, WITHOUT, hops=0),
            role="baseline",
            words="a GRU over the facts, and the question to its last state",
        ),
    )


def task(most: int, title: str, words: str, *, bars: Bars, short: Bars, steps: int, quick: int) -> Task:
    return Task(
        name=f"{('one', 'two', 'three')[most - 1]}-fact{'s' if most > 1 else ''}",
        title=title,
        words=words,
        draw=drawn(most),
        entrants=entrants(most, bars, short),
        show=show,
        steps=steps,
        quick_steps=quick,
        batch=128,
        rate=5e-3,
        size=1000,
    )


ONE_FACT = task(
    1,
    "Questions that one fact answers",
    "“Where is Ada?” after a story of thirteen facts in which people go about and take boxes. The right place is the "
    "last fact about Ada's going, or the one about the taking.",
    bars={"right": (0.95, 1.0), "pointed hop 1": (0.9, 1.0)},
    short={"right": (0.0, 0.9)},
    steps=2000,
    quick=1000,
)
TWO_FACTS = task(
    2,
    "Questions that two facts answer",
    "“Where is the bag?”: first who took it, then where that person went last. Easier questions are asked too in "
    "training, alone this one is hardly learned; tests ask this one.",
    bars={"right": (0.9, 1.0), "pointed hop 1": (0.9, 1.0), "pointed hop 2": (0.9, 1.0)},
    short={"right": (0.0, 0.7)},
    steps=4000,
    quick=2000,
)
THREE_FACTS = task(
    3,
    "Questions that three facts answer",
    "“Where is the coin?”: first what holds it, then who took that, then where that person went last.",
    bars={},
    short={},
    steps=6000,
    quick=2000,
)
