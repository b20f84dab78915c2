"""Users who like one genre, which one part of one item of their history shows (attentive collaborative filtering)."""

from functools import cache, partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.zoo.networks.recommending import Recommending
from heedful.zoo.task import Entrant, Examples, Outcome, Task, Words

USERS, ITEMS, GENRES, STYLES = 80, 240, 16, 6
PARTS, HISTORY, FEATURES = 5, 5, 5
NAMES = (
    "crime", "love", "war", "music", "space", "horse", "ghost", "sport", "sea", "school", "court", "magic", "road",
    "farm", "spy", "dance",
)  # fmt: skip
LIKES = torch.arange(USERS) % GENRES
"""The genre of each user, which nobody says."""
ITEM_STYLES = torch.arange(ITEMS) % STYLES
NOISE = 0.1


@cache
def looks() -> Float[Tensor, "genres features"]:
    """What a genre looks like: more genres than features, so that the mean of some may be that of others."""
    return torch.randn(GENRES, FEATURES, generator=torch.Generator().manual_seed(11))


def draw(_split: str, count: int, generator: torch.Generator) -> Examples:
    """Five items with five parts each, of which one has the user's genre. What the user takes next has the style of its
    item. Parts are drawn anew each time: what an item is does not say what it shows."""
    users = torch.randint(USERS, (count,), generator=generator)
    styles = torch.randint(STYLES, (count, HISTORY), generator=generator)
    place, part = (torch.randint(some, (count,), generator=generator) for some in (HISTORY, PARTS))
    others = torch.rand(count, HISTORY, GENRES - 1, generator=generator).argsort(-1)[..., :PARTS]
    likes = LIKES[users][:, None, None]
    shows = torch.arange(HISTORY) == place.unsqueeze(1)
    marked = shows.unsqueeze(-1) & (torch.arange(PARTS) == part[:, None, None])
    genres = torch.where(marked, likes, others + (others >= likes))
    components = looks()[genres] + NOISE * torch.randn(*genres.shape, FEATURES, generator=generator)
    return Examples(
        inputs={
            "user": users,
            "history": of_styles(styles, generator),
            "genres": genres,
            "components": components,
            "candidates": of_styles(torch.arange(STYLES).expand(count, -1), generator),
        },
        targets=styles.gather(1, place.unsqueeze(1)),
        sources={"item": shows.unsqueeze(1), "component": marked},
    )


def of_styles(styles: Int[Tensor, "examples places"], generator: torch.Generator) -> Int[Tensor, "examples places"]:
    """Items of these styles."""
    return styles + STYLES * torch.randint(ITEMS // STYLES, styles.shape, generator=generator)


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    right = bool(outcome.answers[number, 0] == examples.targets[number, 0])
    inputs = examples.inputs
    parts = [[NAMES[genre] for genre in one] for one in inputs["genres"][number].tolist()]
    items = [f"item {place + 1}" for place in range(HISTORY)]
    return Words(
        rows={"item": ["history"], "component": items},
        columns={"item": items, "component": [f"part {part + 1}" for part in range(PARTS)]},
        cells={"component": parts},
        title=f"a user who likes {NAMES[int(LIKES[inputs['user'][number]])]}: {'right' if right else 'wrong'}",
    )


BUILD = partial(Recommending, USERS, ITEMS, FEATURES)

PREFERENCES = Task(
    name="preferences",
    title="What a user likes, from one part of one item",
    words="Eighty users like one of sixteen genres each, which nobody says. Of five items of a history one has a part "
    "of that genre; what is taken next has that item's style. The right item is that one, the right part the one of "
    "that genre.",
    draw=draw,
    entrants=(
        Entrant(
            name="acf",
            make=partial(BUILD, 16, history="acf"),
            member="acf",
            bars={"right": (0.9, 1.0), "pointed item": (0.9, 1.0), "pointed component": (0.9, 1.0)},
        ),
        Entrant(
            name="items alone",
            make=partial(BUILD, 16, history="items"),
            role="control",
            member="acf",
            words="attention to items, each seen through the mean of its parts",
            bars={"right": (0.0, 0.8)},
        ),
        Entrant(
            name="mean history",
            make=partial(BUILD, 21, history="mean"),
            role="control",
            words="all items of the history alike, and their parts unseen",
            bars={"right": (0.0, 0.5)},
        ),
        Entrant(
            name="no history",
            make=partial(BUILD, 35, history="none"),
            role="baseline",
            words="matrix factorisation: the user and the candidates alone, which can but guess here",
            bars={"right": (0.0, 0.5)},
        ),
    ),
    show=show,
    steps=2500,
    quick_steps=1500,
    batch=128,
    rate=5e-3,
)
