"""Ratings that follow from a few words of a user's and an item's document (dual local and global attention)."""

from functools import partial

import torch
from torch import Tensor

from heedful.zoo.networks.rating import Rating, squared
from heedful.zoo.networks.recurrent import mask_of
from heedful.zoo.task import Entrant, Examples, Figures, Outcome, Task, Words

ASPECTS, SAME, NEUTRAL = 6, 2, 100
WANTED, PRAISED = 2, 4
"""Aspects of a user, and of an item."""
FIRST_WISH = 1 + NEUTRAL
FIRST_GOOD = FIRST_WISH + ASPECTS * SAME
FIRST_BAD = FIRST_GOOD + ASPECTS * SAME
WORDS = FIRST_BAD + ASPECTS * SAME
SHORTEST, LONGEST = 16, 24
NAMES = ("food", "room", "view", "price", "staff", "noise")


def draw(_split: str, count: int, generator: torch.Generator) -> Examples:
    """A user's document names two aspects; an item's praises or blames four. The rating is the sum of what is said of
    the two, −2 to 2."""

    def document(planted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        words = torch.randint(1, 1 + NEUTRAL, (count, LONGEST), generator=generator)
        lengths = torch.randint(SHORTEST, LONGEST + 1, (count,), generator=generator)
        there = mask_of(lengths, LONGEST)
        order = torch.rand(count, LONGEST, generator=generator).masked_fill(~there, 2.0).argsort(1)
        places = order[:, : planted.shape[1]]
        words = torch.where(there, words.scatter(1, places, planted), 0)
        return words, torch.zeros_like(there).scatter(1, places, True)

    def spelt(first: int, aspects: torch.Tensor) -> torch.Tensor:
        return first + aspects * SAME + torch.randint(SAME, aspects.shape, generator=generator)

    wanted = torch.rand(count, ASPECTS, generator=generator).argsort(1)[:, :WANTED]
    told = torch.rand(count, ASPECTS, generator=generator).argsort(1)[:, :PRAISED]
    good = torch.randint(2, told.shape, generator=generator)
    user, user_marks = document(spelt(FIRST_WISH, wanted))
    item, item_marks = document(torch.where(good == 1, spelt(FIRST_GOOD, told), spelt(FIRST_BAD, told)))
    opinion = torch.zeros(count, ASPECTS).scatter(1, told, 2.0 * good - 1)
    return Examples(
        inputs={"user": user, "item": item},
        targets=opinion.gather(1, wanted).sum(1, keepdim=True),
        sources={"user": user_marks.unsqueeze(1), "item": item_marks.unsqueeze(1)},
    )


PENALTY = 0.1
"""Of the mean openness of the gates: filters can learn by themselves which words to leave aside."""


def squared_and_open(outcome: Outcome, examples: Examples) -> Tensor:
    """The squared error, and how far open the gates are on average, where there are gates."""
    error = squared(outcome, examples)
    if not outcome.weights:
        return error
    means = [weights.sum() / (examples.inputs[look] > 0).sum() for look, weights in outcome.weights.items()]
    return error + PENALTY * torch.stack(means).mean()


def judge(outcome: Outcome, examples: Examples) -> Figures:
    """right: the nearest whole number is the rating; found: of the planted words, how many are among as many words with
    the largest gates."""
    error = outcome.logits.squeeze(-1) - examples.targets
    figures = {"right": float((error.abs() < 0.5).float().mean()), "rmse": float(error.square().mean().sqrt())}
    for look, marks in examples.sources.items():
        if look in outcome.weights:
            top = outcome.weights[look].topk(int(marks[0].sum())).indices
            figures[f"found {look}"] = float(marks.gather(-1, top).float().mean())
    return figures


def word_of(number: int) -> str:
    for first, sign in ((FIRST_BAD, "−"), (FIRST_GOOD, "+"), (FIRST_WISH, "?")):
        if number >= first:
            return f"{NAMES[(number - first) // SAME]}{sign}"
    return f"w{number}"


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    columns = {
        look: [word_of(word) for word in examples.inputs[look][number].tolist() if word] for look in ("user", "item")
    }
    rating = float(outcome.logits[number, 0, 0])
    return Words(
        rows={look: [look] for look in columns},
        columns=columns,
        title=f"rated {rating:+.1f}, truly {float(examples.targets[number, 0]):+.0f}",
    )


ASPECTS_TASK = Task(
    name="aspects",
    title="A rating from what is wanted and what is praised",
    words="A user's document names two of six aspects among neutral words, an item's praises or blames four. The "
    "rating is the sum of what is said of the two. The right words are those that were planted. Gates pay for being "
    "open; without that filters leave neutral words aside by themselves, and gates stay half open.",
    draw=draw,
    entrants=(
        Entrant(
            name="d-attn",
            make=partial(Rating, WORDS, 24, 24, reach=LONGEST),
            member="d-attn",
            bars={"right": (0.9, 1.0), "found user": (0.9, 1.0), "found item": (0.9, 1.0)},
        ),
        Entrant(
            name="open gates",
            make=partial(Rating, WORDS, 24, 40, reach=LONGEST, open_gates=True),
            role="baseline",
            words="the same convolutions of the words themselves, which can do without gates here",
        ),
    ),
    show=show,
    loss=squared_and_open,
    judge=judge,
    steps=2000,
    quick_steps=800,
    rate=3e-3,
)
