"""Users who like one genre, which one part of one item of their history shows (attentive collaborative filtering)."""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.zoo.networks.recommending import Recommending
from heedful.zoo.task import Entrant, Examples, Outcome, Task, Words

USERS, ITEMS, GENRES, STYLES = 60, 240, 8, 6
PARTS, HISTORY, FEATURES = 3, 5, 10
NAMES = ("crime", "love", "war", "music", "space", "horse", "ghost", "sport")


def world() -> tuple[
    Int[Tensor, " users"], Int[Tensor, "items parts"], Int[Tensor, " items"], Float[Tensor, "genres n"]
]:
    """The genre of each user, the genres of the parts of each item, its style, and what a genre looks like."""
    by = torch.Generator().manual_seed(11)
    likes = torch.arange(USERS) % GENRES
    parts = torch.rand(ITEMS, GENRES, generator=by).argsort(1)[:, :PARTS]
    styles = torch.arange(ITEMS) % STYLES
    return likes, parts, styles, torch.randn(GENRES, FEATURES, generator=by)


LIKES, ITEM_PARTS, ITEM_STYLES, LOOKS = world()
NOISE = 0.3


def draw(_split: str, count: int, generator: torch.Generator) -> Examples:
    """Five items, of which one has a part of the user's genre. What the user takes next has its style."""
    users = torch.randint(USERS, (count,), generator=generator)
    has = (LIKES[users][:, None, None] == ITEM_PARTS).any(-1)  # [examples items]
    styles = torch.randint(STYLES, (count, HISTORY), generator=generator)
    place = torch.randint(HISTORY, (count,), generator=generator)
    shows = torch.arange(HISTORY) == place.unsqueeze(1)
    fits = (styles.unsqueeze(-1) == ITEM_STYLES) & (has.unsqueeze(1) == shows.unsqueeze(-1))
    history = (fits * torch.rand(count, HISTORY, ITEMS, generator=generator)).argmax(-1)
    parts = ITEM_PARTS[history]
    components = LOOKS[parts] + NOISE * torch.randn(count, HISTORY, PARTS, FEATURES, generator=generator)
    offered = (torch.arange(STYLES)[:, None] == ITEM_STYLES).expand(count, -1, -1)
    candidates = (offered * torch.rand(count, STYLES, ITEMS, generator=generator)).argmax(-1)
    marked = (parts == LIKES[users][:, None, None]) & shows.unsqueeze(-1)
    return Examples(
        inputs={"user": users, "history": history, "components": components, "candidates": candidates},
        targets=styles.gather(1, place.unsqueeze(1)),
        sources={"item": shows.unsqueeze(1), "component": marked},
    )


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    right = bool(outcome.answers[number, 0] == examples.targets[number, 0])
    inputs = examples.inputs
    parts = [[NAMES[genre] for genre in one] for one in ITEM_PARTS[inputs["history"][number]].tolist()]
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
    words="Sixty users like one of eight genres each, which nobody says. Of five items of a history one has a part of "
    "that genre; what is taken next has that item's style. The right item is that one, the right part the one of that "
    "genre.",
    draw=draw,
    entrants=(
        Entrant(
            name="acf",
            make=partial(BUILD, 16, history="acf"),
            member="acf",
            bars={"right": (0.9, 1.0), "pointed item": (0.9, 1.0), "pointed component": (0.9, 1.0)},
        ),
        Entrant(
            name="mean history",
            make=partial(BUILD, 21, history="mean"),
            role="control",
            words="all items of the history alike",
            bars={"right": (0.0, 0.5)},
        ),
        Entrant(
            name="no history",
            make=partial(BUILD, 21, history="none"),
            role="baseline",
            words="matrix factorisation: the user and the candidates alone",
            bars={"right": (0.0, 0.5)},
        ),
    ),
    show=show,
    steps=4000,
    quick_steps=1500,
    batch=128,
    rate=5e-3,
)
