"""Stars of real reviews from their sentences (hierarchical attention)."""

import re
from functools import cache, partial

import torch
from torch import Tensor

from heedful.zoo.data import frequent, rows_for, rows_of, split_of, words_of
from heedful.zoo.networks.documents import Documents
from heedful.zoo.task import Entrant, Examples, Outcome, Task, Words

FILE = "yelp10k_stars.jsonl.gz"
SENTENCES, LENGTH, VOCABULARY, STARS = 12, 24, 4000, 5
SIZE = 50
END = re.compile(r"(?<=[.!?])\s+")


@cache
def reviews() -> tuple[list[str], dict[str, Tensor], dict[str, Tensor]]:
    """Words, and by split the reviews and their stars, from 0 on; of long reviews and sentences the beginning. Word 0
    fills up, word 1 is any that is not frequent."""
    read = [
        (split_of(row["text"]), [words_of(one)[:LENGTH] for one in END.split(row["text"])][:SENTENCES], row["label"])
        for row in rows_of(FILE)
    ]
    words = ["", "?", *frequent((s for split, text, _ in read if split == "train" for s in text), VOCABULARY - 2)]
    numbers = {word: number for number, word in enumerate(words)}
    texts: dict[str, list[Tensor]] = {"train": [], "dev": [], "test": []}
    stars: dict[str, list[int]] = {"train": [], "dev": [], "test": []}
    for split, text, label in read:
        sentences = [one for one in text if one]
        if sentences:
            page = torch.zeros(SENTENCES, LENGTH, dtype=torch.long)
            for place, one in enumerate(sentences):
                page[place, : len(one)] = torch.tensor([numbers.get(word, 1) for word in one])
            texts[split].append(page)
            stars[split].append(int(label) - 1)
    return (
        words,
        {split: torch.stack(pages) for split, pages in texts.items()},
        {split: torch.tensor(some) for split, some in stars.items()},
    )


def draw(split: str, count: int, generator: torch.Generator) -> Examples:
    _, texts, stars = reviews()
    rows = rows_for(split, len(stars[split]), count, generator)
    return Examples(inputs={"words": texts[split][rows]}, targets=stars[split][rows].unsqueeze(1))


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    words = reviews()[0]
    rows = [[words[word] for word in one if word] for one in examples.inputs["words"][number].tolist() if any(one)]
    names = [f"sentence {place + 1}" for place in range(len(rows))]
    longest = max(map(len, rows))
    said, truly = int(outcome.answers[number, 0]) + 1, int(examples.targets[number, 0]) + 1
    return Words(
        rows={"sentence": ["review"], "word": names},
        columns={"sentence": names, "word": [str(place + 1) for place in range(longest)]},
        cells={"word": rows},
        title=f"{said} stars, truly {truly}",
    )


BUILD = partial(Documents, VOCABULARY, classes=STARS)

REVIEWS = Task(
    name="reviews",
    title="Stars of reviews",
    words="Ten thousand reviews of Yelp, one to five stars. Words are their own vectors: pooling is what is compared.",
    draw=draw,
    entrants=(
        Entrant(name="hierarchical", make=partial(BUILD, SIZE, pool="hierarchical"), member="hierarchical"),
        Entrant(
            name="one level",
            make=partial(BUILD, SIZE, pool="flat"),
            role="control",
            words="attention over all words at once",
        ),
        Entrant(
            name="no attention", make=partial(BUILD, SIZE, pool="mean"), role="baseline", words="the mean of all words"
        ),
    ),
    show=show,
    steps=1000,
    quick_steps=300,
    rate=2e-3,
    size=460,
    seeds=1,
    real=True,
    files=(FILE,),
)
