"""Questions about stories whose answer takes one, two or three facts (memory with several hops)."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.zoo.networks.recurrent import marks
from heedful.zoo.networks.remembering import Remembering
from heedful.zoo.task import Bars, Draw, Entrant, Examples, Outcome, Task, Words

PEOPLE = ("Ada", "Ben", "Cleo", "Dan", "Eve")
PLACES = ("attic", "barn", "cellar", "garden", "hall")
BOXES = ("bag", "basket", "crate", "jar", "sack")
THINGS = ("apple", "book", "coin", "doll", "egg")
WORDS = ("went to the", "took the", "is in the", "where is", "who took the", "what holds the",
         *PEOPLE, *PLACES, *BOXES, *THINGS)  # fmt: skip
WENT, TOOK, IN, WHERE, WHO, WHAT = range(6)
KIND = len(PEOPLE)
DEEDS = WHAT + 1
PERSON, PLACE, BOX, THING = (DEEDS + KIND * kind for kind in range(4))
MOVES = 8
"""Facts about who went where; each person goes somewhere, some more than once."""
SIZE, WITHOUT = 40, 30


def drawn(most: int) -> Draw:
    """Stories whose hardest questions take so many facts; in training all easier ones are asked too, tests ask only the
    hardest. Of one fact “where is Ada” and “who took the bag”, of two “where is the bag”, of three “where is the
    book”."""

    def draw(split: str, count: int, generator: torch.Generator) -> Examples:
        story = tell(count, most, generator)
        asked = questions(story, most, generator)
        hardest = [number for number, one in enumerate(asked) if len(one.facts) == most]
        some = torch.tensor(range(len(asked)) if split == "train" else hardest)
        chosen = some[torch.randint(len(some), (count,), generator=generator)]
        rows = torch.arange(count)
        nowhere = torch.full((count,), -1)
        hops = [
            torch.stack([one.facts[hop] if hop < len(one.facts) else nowhere for one in asked])[chosen, rows]
            for hop in range(most)
        ]
        kind = torch.tensor([one.kind for one in asked])[chosen]
        what, answer = (torch.stack([getattr(one, part) for one in asked])[chosen, rows] for part in ("what", "answer"))
        return Examples(
            inputs={"facts": story.facts, "question": torch.stack([kind, what], -1)},
            targets=answer.unsqueeze(1),
            sources={
                f"hop {hop + 1}": marks(places.unsqueeze(1), story.facts.shape[1]) for hop, places in enumerate(hops)
            },
        )

    return draw


@dataclass(frozen=True, kw_only=True)
class Story:
    """What happened, and where each fact is told. Facts are told in the order of moves, others in between."""

    facts: Int[Tensor, "stories facts 3"]
    told: Int[Tensor, "stories facts"]
    """Where a fact stands: first of the moves, then of what was taken, then of what holds what."""
    went: Int[Tensor, "stories moves"]
    reached: Int[Tensor, "stories moves"]
    taker: Int[Tensor, "stories boxes"]
    holder: Int[Tensor, "stories things"]


def tell(count: int, most: int, generator: torch.Generator) -> Story:
    """People go to places, each at least once, boxes are taken, and in stories of three facts things are in boxes.

    One may take several boxes. Were all takers different, the answer could be found by looking at all facts but the
    right one.
    """

    def several(*shape: int) -> Int[Tensor, "..."]:
        return torch.randint(KIND, (count, *shape), generator=generator)

    def shuffled(some: int) -> Int[Tensor, "stories some"]:
        return torch.rand(count, some, generator=generator).argsort(1)

    went = torch.cat([shuffled(KIND), several(MOVES - KIND)], 1).gather(1, shuffled(MOVES))
    reached, taker, holder, each = several(MOVES), several(KIND), several(KIND), torch.arange(KIND).expand(count, -1)
    facts = torch.cat([_facts(PERSON + went, WENT, PLACE + reached), _facts(PERSON + taker, TOOK, BOX + each)], 1)
    if most == 3:
        facts = torch.cat([facts, _facts(THING + each, IN, BOX + holder)], 1)
    order = torch.rand(facts.shape[:2], generator=generator)
    order[:, :MOVES] = order[:, :MOVES].sort(1).values
    order = order.argsort(1)
    return Story(
        facts=facts.gather(1, order.unsqueeze(-1).expand(-1, -1, 3)),
        told=order.argsort(1),
        went=went,
        reached=reached,
        taker=taker,
        holder=holder,
    )


def _facts(
    who: Int[Tensor, "stories facts"], does: int, what: Int[Tensor, "stories facts"]
) -> Int[Tensor, "stories facts 3"]:
    return torch.stack([who, torch.full_like(who, does), what], -1)


@dataclass(frozen=True, kw_only=True)
class Question:
    """One of each story: what kind, of what, its answer, and where the facts stand that lead to it."""

    kind: int
    what: Int[Tensor, " stories"]
    answer: Int[Tensor, " stories"]
    facts: tuple[Int[Tensor, " stories"], ...]


def questions(story: Story, most: int, generator: torch.Generator) -> list[Question]:
    """All kinds of questions for so many facts; they are about one thing, its box, who took it, and where that is."""
    rows = torch.arange(len(story.facts))
    thing = torch.randint(KIND, (len(rows),), generator=generator)
    box = story.holder[rows, thing] if most == 3 else thing
    person = story.taker[rows, box]
    last = ((story.went == person.unsqueeze(1)) * torch.arange(1, MOVES + 1)).argmax(1)
    place = PLACE + story.reached[rows, last]
    moved, took = story.told[rows, last], story.told[rows, MOVES + box]
    asked = [
        Question(kind=WHERE, what=PERSON + person, answer=place, facts=(moved,)),
        Question(kind=WHO, what=BOX + box, answer=PERSON + person, facts=(took,)),
    ]
    if most > 1:
        asked.append(Question(kind=WHERE, what=BOX + box, answer=place, facts=(took, moved)))
    if most > 2:
        lies = story.told[rows, MOVES + KIND + thing]
        asked.append(Question(kind=WHAT, what=THING + thing, answer=BOX + box, facts=(lies,)))
        asked.append(Question(kind=WHERE, what=THING + thing, answer=place, facts=(lies, took, moved)))
    return asked


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    facts = [" ".join(WORDS[word] for word in fact) for fact in examples.inputs["facts"][number].tolist()]
    kind, what = examples.inputs["question"][number].tolist()
    asked = f"{WORDS[kind].capitalize()} {'the ' if kind == WHERE and what >= PLACE else ''}{WORDS[what]}?"
    said, true = (WORDS[int(word)] for word in (outcome.answers[number, 0], examples.targets[number, 0]))
    looks = [*outcome.weights]
    return Words(
        rows={look: [look] for look in looks},
        columns=dict.fromkeys(looks, facts),
        title=f"{asked} {said.capitalize()}{'' if said == true else f', truly {true}'}.",
    )


def entrants(most: int, bars: Bars, short: Bars) -> tuple[Entrant, ...]:
    facts = MOVES + KIND * min(2, most) if most == 3 else MOVES + KIND
    build: Any = partial(Remembering, len(WORDS), facts, deeds=DEEDS)
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


BEGIN = (
    "Names begin with one vector in questions and facts, so the first hop finds its fact before anything is learned; "
    "what is learned is where to look next."
)

ONE_FACT = task(
    1,
    "Questions that one fact answers",
    "“Where is Ada?” after a story of thirteen facts in which people go about and take boxes. The right place is the "
    "last fact about Ada's going, or the one about the taking. Half of the questions need no order.",
    bars={"right": (0.95, 1.0), "pointed hop 1": (0.9, 1.0)},
    short={"right": (0.0, 0.9)},
    steps=600,
    quick=400,
)
TWO_FACTS = task(
    2,
    "Questions that two facts answer",
    "“Where is the bag?”: first who took it, then where that person went last. Easier questions are asked too in "
    f"training; tests ask this one. {BEGIN}",
    bars={"right": (0.9, 1.0), "pointed hop 2": (0.9, 1.0)},
    short={"right": (0.0, 0.7)},
    steps=1500,
    quick=1000,
)
THREE_FACTS = task(
    3,
    "Questions that three facts answer",
    f"“Where is the coin?”: first what holds it, then who took that, then where that person went last. {BEGIN}",
    bars={"right": (0.9, 1.0), "pointed hop 2": (0.9, 1.0), "pointed hop 3": (0.9, 1.0)},
    short={"right": (0.0, 0.7)},
    steps=3000,
    quick=1500,
)
