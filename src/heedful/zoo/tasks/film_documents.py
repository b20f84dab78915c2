"""Stars of films from the documents of a person and of a film (MovieLens-100K; dual local and global attention)."""

from dataclasses import dataclass
from functools import cache, partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.zoo.data import frequent, rows_for, rows_of, words_of
from heedful.zoo.networks.rating import Rating, squared
from heedful.zoo.task import Entrant, Examples, Figures, Outcome, Task, Words

RATINGS, ITEMS, USERS = "ml100k_ratings.csv.gz", "ml100k_items.jsonl.gz", "ml100k_users.csv.gz"
LENGTH, VOCABULARY = 60, 1500
MEAN = 3.5
"""From which stars are counted."""


@dataclass(frozen=True, kw_only=True)
class Documents:
    words: list[str]
    user: Int[Tensor, "users places"]
    item: Int[Tensor, "items places"]
    pairs: dict[str, Int[Tensor, "ratings 2"]]
    stars: dict[str, Float[Tensor, " ratings"]]


@cache
def documents() -> Documents:
    """What is known of people and films from the ratings to learn from. A person's document is occupation and age, and
    the genres of films, with + where they were liked and − where not; a film's is its title, its genres, and the
    occupations of people who did and did not like it. What is beyond sixty words is left out. A rating to learn from
    is itself among the words of its person and its film, one of the test is not."""
    people = {int(row["user"]): row for row in rows_of(USERS)}
    films = {int(row["item"]): row for row in rows_of(ITEMS)}
    told: dict[str, dict[int, list[str]]] = {
        "user": {user: [row["occupation"], f"{row['age'][0]}0s"] for user, row in people.items()},
        "item": {item: [*words_of(row["title"]), *map(str.lower, row["genres"])] for item, row in films.items()},
    }
    pairs: dict[str, list[tuple[int, int]]] = {"train": [], "dev": [], "test": []}
    stars: dict[str, list[float]] = {"train": [], "dev": [], "test": []}
    places = {side: {number: place for place, number in enumerate(some)} for side, some in told.items()}
    for count, row in enumerate(rows_of(RATINGS)):
        user, item, rating = int(row["user"]), int(row["item"]), int(row["rating"])
        split = "test" if row["u1split"] != "train" else ("dev" if count % 20 == 0 else "train")
        pairs[split].append((places["user"][user], places["item"][item]))
        stars[split].append(rating - MEAN)
        if split == "train" and rating != 3:
            sign = "+" if rating > 3 else "−"
            told["user"][user] += [f"{sign}{genre.lower()}" for genre in films[item]["genres"]]
            told["item"][item].append(f"{sign}{people[user]['occupation']}")
    words = ["", "?", *frequent((*told["user"].values(), *told["item"].values()), VOCABULARY - 2)]
    numbers = {word: number for number, word in enumerate(words)}
    pages = {side: torch.zeros(len(some), LENGTH, dtype=torch.long) for side, some in told.items()}
    for side, some in told.items():
        for place, text in enumerate(some.values()):
            kept = torch.tensor([numbers.get(word, 1) for word in text[:LENGTH]])
            pages[side][place, : len(kept)] = kept
    return Documents(
        words=words,
        user=pages["user"],
        item=pages["item"],
        pairs={split: torch.tensor(some) for split, some in pairs.items()},
        stars={split: torch.tensor(some) for split, some in stars.items()},
    )


def draw(split: str, count: int, generator: torch.Generator) -> Examples:
    known = documents()
    rows = rows_for(split, len(known.stars[split]), count, generator)
    user, item = known.pairs[split][rows].unbind(1)
    return Examples(
        inputs={"user": known.user[user], "item": known.item[item]}, targets=known.stars[split][rows].unsqueeze(1)
    )


def judge(outcome: Outcome, examples: Examples) -> Figures:
    """The usual error, and that of saying the same to all; saved is one minus the share of it that is left."""
    error = float((outcome.logits.squeeze(-1) - examples.targets).square().mean().sqrt())
    constant = float(examples.targets.std())
    return {"saved": 1 - error / constant, "rmse": error, "constant": constant}


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    words = documents().words
    columns = {look: [words[x] for x in examples.inputs[look][number].tolist() if x][:24] for look in ("user", "item")}
    said, truly = (MEAN + float(part) for part in (outcome.logits[number, 0, 0], examples.targets[number, 0]))
    return Words(rows={look: [look] for look in columns}, columns=columns, title=f"{said:.1f} stars, truly {truly:.0f}")


BUILD = partial(Rating, VOCABULARY, 24, reach=LENGTH)

FILM_DOCUMENTS = Task(
    name="film-documents",
    title="Stars of films from documents",
    words="MovieLens-100K, the split u1: stars from a person's document (occupation, age, genres liked and not) and a "
    "film's (title, genres, who liked it and who not).",
    draw=draw,
    entrants=(
        Entrant(name="d-attn", make=partial(BUILD, 16), member="d-attn"),
        Entrant(
            name="open gates",
            make=partial(BUILD, 48, open_gates=True),
            role="baseline",
            words="the same convolutions of the words themselves",
        ),
    ),
    show=show,
    loss=squared,
    judge=judge,
    best="saved",
    steps=1200,
    quick_steps=200,
    rate=2e-3,
    size=2000,
    seeds=1,
    real=True,
    files=(RATINGS, ITEMS, USERS),
)
