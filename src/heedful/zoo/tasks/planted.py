"""Documents in which one sentence decides, and in it one word (hierarchical attention)."""

from functools import partial

import torch

from heedful.zoo.networks.documents import Documents
from heedful.zoo.networks.recurrent import mask_of
from heedful.zoo.task import Entrant, Examples, Outcome, Task, Words

NEUTRAL, CUES, SIDES = 60, 3, 5
FIRST_CUE, FIRST_GOOD, FIRST_BAD = 1 + NEUTRAL, 1 + NEUTRAL + CUES, 1 + NEUTRAL + CUES + SIDES
WORDS = FIRST_BAD + SIDES
MOST_SENTENCES, MOST_WORDS, FEWEST = 7, 8, 4
SIZE = 24


def draw(_split: str, count: int, generator: torch.Generator) -> Examples:
    """Every sentence has a good or a bad word; one sentence has a cue beside it, and its word is the class."""

    def one_of(some: int, *shape: int) -> torch.Tensor:
        return torch.randint(some, (count, *shape), generator=generator)

    words = 1 + one_of(NEUTRAL, MOST_SENTENCES, MOST_WORDS)
    lengths = FEWEST + one_of(MOST_WORDS - FEWEST + 1, MOST_SENTENCES)
    sentences = FEWEST + one_of(MOST_SENTENCES - FEWEST + 1)
    good = one_of(2, MOST_SENTENCES)
    places = torch.rand(count, MOST_SENTENCES, MOST_WORDS, generator=generator)
    places = places.masked_fill(torch.arange(MOST_WORDS) >= lengths.unsqueeze(-1), -1.0).topk(2).indices
    side = torch.where(good == 1, FIRST_GOOD, FIRST_BAD) + one_of(SIDES, MOST_SENTENCES)
    words.scatter_(2, places[..., :1], side.unsqueeze(-1))
    cued = (torch.rand(count, generator=generator) * sentences).long()
    marked = torch.arange(MOST_SENTENCES) == cued.unsqueeze(1)
    cue = torch.where(marked, FIRST_CUE + one_of(CUES, MOST_SENTENCES), words.gather(2, places[..., 1:]).squeeze(-1))
    words.scatter_(2, places[..., 1:], cue.unsqueeze(-1))
    there = mask_of(sentences, MOST_SENTENCES).unsqueeze(-1) & (torch.arange(MOST_WORDS) < lengths.unsqueeze(-1))
    told = torch.zeros_like(there).scatter(2, places, True) & marked.unsqueeze(-1)
    return Examples(
        inputs={"words": torch.where(there, words, 0)},
        targets=good.gather(1, cued.unsqueeze(1)),
        sources={"sentence": marked.unsqueeze(1), "word": told},
    )


def word_of(number: int) -> str:
    if number >= FIRST_BAD:
        return f"BAD{number - FIRST_BAD + 1}"
    if number >= FIRST_GOOD:
        return f"GOOD{number - FIRST_GOOD + 1}"
    return f"CUE{number - FIRST_CUE + 1}" if number >= FIRST_CUE else f"w{number}"


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    rows = [[word_of(word) for word in one if word] for one in examples.inputs["words"][number].tolist()]
    said = ("bad", "good")[int(outcome.answers[number, 0])]
    names = [f"sentence {place + 1}" for place, one in enumerate(rows) if one]
    return Words(
        rows={"sentence": ["document"], "word": names},
        columns={"sentence": names, "word": [str(place + 1) for place in range(MOST_WORDS)]},
        cells={"word": rows},
        title=f"the answer: {said}",
    )


BUILD = partial(Documents, WORDS, classes=2)

PLANTED_SENTENCE = Task(
    name="planted-sentence",
    title="One sentence decides, and one word in it",
    words="Documents of four to seven sentences, each with a good or a bad word. One sentence has a cue beside it: its "
    "word is the class. The right sentence is that one, the right words in it are the cue and the good or bad word. A "
    "look at a sentence without a cue costs nothing where its words say nothing, so sentences are found less surely.",
    draw=draw,
    entrants=(
        Entrant(
            name="hierarchical",
            make=partial(BUILD, SIZE, pool="hierarchical"),
            member="hierarchical",
            bars={"right": (0.95, 1.0), "pointed sentence": (0.8, 1.0), "pointed word": (0.9, 1.0)},
        ),
        Entrant(
            name="one level",
            make=partial(BUILD, SIZE, pool="flat", context=48),
            role="control",
            words="attention over all words at once: that cue and word stand in one sentence is lost",
            bars={"right": (0.0, 0.8)},
        ),
        Entrant(
            name="no attention",
            make=partial(BUILD, 41, pool="mean"),
            role="baseline",
            words="the mean of all words",
            bars={"right": (0.0, 0.8)},
        ),
    ),
    show=show,
    steps=600,
    quick_steps=300,
    rate=5e-3,
    size=1000,
)
