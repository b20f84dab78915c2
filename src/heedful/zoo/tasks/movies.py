"""The next film that a person likes, from the films before (MovieLens-100K; attentive collaborative filtering)."""

from dataclasses import dataclass
from functools import cache, partial

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.zoo.data import rows_for, rows_of
from heedful.zoo.networks.recommending import Recommending
from heedful.zoo.task import Entrant, Examples, Figures, Outcome, Task, Words

RATINGS, ITEMS = "ml100k_ratings.csv.gz", "ml100k_items.jsonl.gz"
LIKED, FEWEST = 4, 10
"""Stars from which on a film counts as liked, and so many films a person must have liked."""
HISTORY, PARTS = 20, 4
OTHERS = {"train": 9, "dev": 99, "test": 99}
"""Films that are offered beside the right one."""
SIZE, WITHOUT = 32, 52
"""Of vectors with and without a history, so that as many numbers are learned."""


@dataclass(frozen=True, kw_only=True)
class Films:
    titles: list[str]
    genres: list[str]
    parts: Float[Tensor, "films parts genres"]
    """A row for each genre of a film, up to four; zeros where it has fewer."""
    liked: list[list[int]]
    """Of each person the films that were liked, in time."""


@cache
def films() -> Films:
    rows = list(rows_of(ITEMS))
    number = {int(row["item"]): place for place, row in enumerate(rows)}
    genres = sorted({genre for row in rows for genre in row["genres"]})
    parts = torch.zeros(len(rows), PARTS, len(genres))
    for place, row in enumerate(rows):
        for part, genre in enumerate(row["genres"][:PARTS]):
            parts[place, part, genres.index(genre)] = 1.0
    liked: dict[int, list[tuple[int, int]]] = {}
    for row in rows_of(RATINGS):
        if int(row["rating"]) >= LIKED:
            liked.setdefault(int(row["user"]), []).append((int(row["timestamp"]), number[int(row["item"])]))
    people = [[film for _, film in sorted(some)] for _, some in sorted(liked.items()) if len(some) >= FEWEST]
    return Films(titles=[row["title"] for row in rows], genres=genres, parts=parts, liked=people)


def draw(split: str, count: int, generator: torch.Generator) -> Examples:
    """The last film that a person liked is for the test, the one before for dev, and any earlier one is learned, with
    the twenty before it; the others that are offered are films that the person did not like or see."""
    known = films()
    people = rows_for(split, len(known.liked), count, generator).tolist()
    count = len(people)
    chance = torch.rand(count, generator=generator).tolist()
    history = torch.full((count, HISTORY), -1)
    offered = torch.randint(len(known.titles), (count, 1 + OTHERS[split]), generator=generator)
    for row, (person, share) in enumerate(zip(people, chance, strict=True)):
        liked = known.liked[person]
        at = {"test": len(liked) - 1, "dev": len(liked) - 2}.get(split, 1 + int(share * (len(liked) - 3)))
        before = liked[max(0, at - HISTORY) : at]
        history[row, : len(before)] = torch.tensor(before)
        seen = set(liked)
        while bad := [place for place, film in enumerate(offered[row].tolist()) if film in seen]:
            offered[row, bad] = torch.randint(len(known.titles), (len(bad),), generator=generator)
        offered[row, 0] = liked[at]
    return Examples(
        inputs={
            "user": torch.tensor(people),
            "history": history,
            "components": known.parts[history.clamp(min=0)],
            "candidates": offered,
        },
        targets=torch.zeros(count, 1, dtype=torch.long),
    )


def judge(outcome: Outcome, examples: Examples) -> Figures:
    """Of a hundred films, how often the right one is the first, and among the first ten; the mean of 1 / its place."""
    del examples
    scores = outcome.logits[:, 0]
    place = (scores > scores[:, :1]).sum(1) + (scores == scores[:, :1]).sum(1).float() / 2 + 0.5
    return {
        "right": float((place <= 1).float().mean()),
        "in ten": float((place <= 10).float().mean()),
        "reciprocal": float((1 / place).mean()),
    }


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    known = films()
    history = [film for film in examples.inputs["history"][number].tolist() if film >= 0]
    titles = [known.titles[film] for film in history]
    names = [[genre for genre, on in zip(known.genres, part, strict=True) if on] for film in history for part in
             known.parts[film].tolist()]  # fmt: skip
    cells = [[(names[PARTS * row + part] or [""])[0] for part in range(PARTS)] for row in range(len(history))]
    place = int((outcome.logits[number, 0] > outcome.logits[number, 0, 0]).sum()) + 1
    return Words(
        rows={"item": ["history"], "component": titles},
        columns={"item": titles, "component": [f"genre {part + 1}" for part in range(PARTS)]},
        cells={"component": cells},
        title=f"next: {known.titles[int(examples.inputs['candidates'][number, 0])]}, number {place} of 100",
    )


def build(size: int, history: str) -> Recommending:
    known = films()
    given: str = history
    return Recommending(len(known.liked), len(known.titles), len(known.genres), size, history=given)  # type: ignore[arg-type]


MOVIES = Task(
    name="movies",
    title="The next film",
    words="MovieLens-100K: of a hundred films the one that a person liked next, from the last twenty that were liked. "
    "The components of a film are its genres.",
    draw=draw,
    entrants=(
        Entrant(name="acf", make=partial(build, SIZE, "acf"), member="acf"),
        Entrant(
            name="mean history",
            make=partial(build, SIZE, "mean"),
            role="control",
            words="all films of the history alike",
        ),
        Entrant(
            name="no history",
            make=partial(build, WITHOUT, "none"),
            role="baseline",
            words="matrix factorisation: person and film alone",
        ),
    ),
    show=show,
    judge=judge,
    best="reciprocal",
    steps=3000,
    quick_steps=400,
    batch=128,
    rate=3e-3,
    size=943,
    seeds=1,
    real=True,
    files=(RATINGS, ITEMS),
)
