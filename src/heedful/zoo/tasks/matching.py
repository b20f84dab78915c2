"""Tokens that belong together find each other (self-attention, multi-head attention)."""

from functools import partial
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.zoo.members.content import make_content
from heedful.zoo.members.luong import make_location
from heedful.zoo.members.self_attention import MultiHead, make_self_attention
from heedful.zoo.networks.matching import Matching
from heedful.zoo.networks.recurrent import marks
from heedful.zoo.task import Entrant, Examples, Figures, Outcome, Task, Words, judge, pointed

PLACES, SIGNS, PAYLOADS = 12, 16, 10
SIZE = 32
CAPITALS, SMALL = "ABCDEFGHIJKLMNOP", "abcdefghijklmnop"


def pairs(count: int, generator: torch.Generator) -> tuple[Int[Tensor, "count places"], Int[Tensor, "count places"]]:
    """Signs of which each stands at two places, and for each place the other place with its sign."""
    signs = torch.rand(count, SIGNS, generator=generator).argsort(1)[:, : PLACES // 2].repeat(1, 2)
    order = torch.rand(count, PLACES, generator=generator).argsort(1)
    signs = signs.gather(1, order)
    same = (signs.unsqueeze(1) == signs.unsqueeze(2)) & ~torch.eye(PLACES, dtype=torch.bool)
    return signs, same.int().argmax(-1)


def draw(_split: str, count: int, generator: torch.Generator) -> Examples:
    signs, other = pairs(count, generator)
    payload = torch.randint(PAYLOADS, (count, PLACES), generator=generator)
    symbols = torch.stack([signs, payload], -1)
    return Examples(inputs={"symbols": symbols}, targets=payload.gather(1, other), sources={"": marks(other, PLACES)})


def draw_two(_split: str, count: int, generator: torch.Generator) -> Examples:
    (first, other), (second, another) = pairs(count, generator), pairs(count, generator)
    payload = torch.randint(PAYLOADS, (count, PLACES), generator=generator)
    either = marks(other, PLACES) | marks(another, PLACES)
    return Examples(
        inputs={"symbols": torch.stack([first, second, payload], -1), "others": torch.stack([other, another], 1)},
        targets=torch.cat([payload.gather(1, other), payload.gather(1, another)], 1),
        sources={"head 1": either, "head 2": either},
    )


def judge_two(outcome: Outcome, examples: Examples) -> Figures:
    """Heads may share the two questions either way: the better of the two counts."""
    figures = {name: value for name, value in judge(outcome, examples).items() if not name.startswith("pointed")}
    first, second = (marks(places, PLACES) for places in examples.inputs["others"].unbind(1))
    if "head 2" not in outcome.weights:
        return figures
    ways = [pointed(outcome.weights, {"head 1": a, "head 2": b}) for a, b in ((first, second), (second, first))]
    return figures | {"pointed": max(sum(way.values()) / 2 for way in ways)}


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    *signs, payload = examples.inputs["symbols"][number].T.tolist()
    letters = (CAPITALS, SMALL)
    tokens = [
        "".join(letters[kind][sign] for kind, sign in enumerate(place)) + str(digit)
        for *place, digit in zip(*signs, payload, strict=True)
    ]
    return Words(rows=dict.fromkeys(outcome.weights, tokens), columns=dict.fromkeys(outcome.weights, tokens))


def look_content(size: int) -> Any:
    return make_content(size, size, sharpness=10.0)


def look_location(size: int) -> Any:
    return make_location(size, size, PLACES)


ONE = partial(Matching, [SIGNS, PAYLOADS], places=PLACES)
TWO = partial(Matching, [SIGNS, SIGNS, PAYLOADS], SIZE, places=PLACES, questions=2)

MATCHING = Task(
    name="matching",
    title="Tokens that belong together",
    words=f"{PLACES} tokens of a letter and a digit; every letter stands twice. Each token is to say the digit of the "
    "other one with its letter. The right place is that token.",
    draw=draw,
    entrants=(
        Entrant(
            name="self-attention",
            make=partial(ONE, SIZE, look=make_self_attention),
            member="self-attention",
            bars={"right": (0.95, 1.0), "pointed": (0.95, 1.0)},
        ),
        Entrant(
            name="content",
            make=partial(ONE, SIZE, look=look_content),
            member="content",
            words="likeness of the tokens themselves, with a sharpness of 10",
        ),
        Entrant(
            name="luong-location",
            make=partial(ONE, 48, look=look_location),
            member="luong-location",
            role="control",
            words="asks where, not what: the place of the other token cannot be known",
            bars={"right": (0.0, 0.4), "pointed": (0.0, 0.4)},
        ),
        Entrant(
            name="no attention",
            make=partial(ONE, SIZE, look=None),
            role="baseline",
            words="a GRU in both directions",
            bars={"right": (0.0, 0.4)},
        ),
    ),
    show=show,
    steps=600,
    quick_steps=400,
    rate=3e-3,
)
TWO_MATCHES = Task(
    name="two-matches",
    title="Two others at once",
    words=f"{PLACES} tokens of a capital, a small letter and a digit; both letters stand twice, at other places. Each "
    "token is to say two digits: that of the other one with its capital, and that of the other one with its small "
    "letter. Both are right places of both heads, which may share them either way; *pointed* is by the better way.",
    draw=draw_two,
    entrants=(
        Entrant(
            name="multi-head",
            make=partial(TWO, look=partial(MultiHead, heads=2)),
            member="multi-head",
            words="two heads",
            bars={"exact": (0.95, 1.0), "pointed": (0.9, 1.0)},
        ),
        Entrant(
            name="one head",
            make=partial(TWO, look=partial(MultiHead, heads=1)),
            member="multi-head",
            role="control",
            words="the same parameters in one head: what it reads of two tokens is one sum",
            bars={"exact": (0.0, 0.6)},
        ),
        Entrant(
            name="no attention",
            make=partial(TWO, look=None),
            role="baseline",
            words="a GRU in both directions",
            bars={"right": (0.0, 0.4)},
        ),
    ),
    show=show,
    judge=judge_two,
    steps=600,
    quick_steps=400,
    rate=3e-3,
)
