"""Dates as people write them, to be written as numbers."""

import datetime
from functools import partial
from typing import Any

import torch

from heedful.zoo.members import MEMBERS
from heedful.zoo.networks.translating import PAD, Translating, When
from heedful.zoo.task import Bars, Entrant, Examples, Outcome, Task, Words

LETTERS = "\0 ,./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The first stands where a source has ended."""
WRITTEN = "0123456789-"
WAYS = (
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "{weekday}, {day} {month} {year}",
    "{short} {day}, {year}",
    "{day}. {short} {year}",
    "{day}/{number}/{year}",
    "{year}, {month} {day}",
)
FIRST, LAST = datetime.date(1000, 1, 1).toordinal(), datetime.date(2999, 12, 31).toordinal()
"""Of a year between 1900 and 2099 the second digit would tell the first."""
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
STEPS, LONGEST = len("2015-03-09"), len("Wednesday, 30 September 2015")
EMBEDDING, HIDDEN, WITHOUT = 32, 64, 88


def write(date: datetime.date, way: str) -> tuple[str, dict[str, range]]:
    """A date written that way, and where its parts stand."""
    parts = {
        "day": str(date.day),
        "month": MONTHS[date.month - 1],
        "short": MONTHS[date.month - 1][:3],
        "number": str(date.month),
        "year": str(date.year),
        "weekday": WEEKDAYS[date.weekday()],
    }
    text, places, rest = "", {}, way
    while "{" in rest:
        before, _, rest = rest.partition("{")
        name, _, rest = rest.partition("}")
        begin = len(text) + len(before)
        text += before + parts[name]
        places["month" if name in {"short", "number"} else name] = range(begin, len(text))
    return text + rest, places


def draw(_split: str, count: int, generator: torch.Generator) -> Examples:
    """Sources of letters; a digit of the year has one right place, those of month and day the whole word."""
    days = torch.randint(FIRST, LAST + 1, (count,), generator=generator).tolist()
    ways = torch.randint(len(WAYS), (count,), generator=generator).tolist()
    source, targets = torch.full((count, LONGEST), PAD), torch.zeros(count, STEPS, dtype=torch.long)
    marked = torch.zeros(count, STEPS, LONGEST, dtype=torch.bool)
    for number, (day, way) in enumerate(zip(days, ways, strict=True)):
        date = datetime.date.fromordinal(day)
        text, places = write(date, WAYS[way])
        source[number, : len(text)] = torch.tensor([LETTERS.index(letter) for letter in text])
        targets[number] = torch.tensor([WRITTEN.index(letter) for letter in date.isoformat()])
        for step in range(4):
            marked[number, step, places["year"][step]] = True
        for steps, part in ((slice(5, 7), "month"), (slice(8, 10), "day")):
            marked[number, steps, places[part].start : places[part].stop] = True
    return Examples(inputs={"source": source}, targets=targets, sources={"": marked})


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    said = [WRITTEN[letter] for letter in outcome.answers[number].tolist()]
    source = [LETTERS[letter] for letter in examples.inputs["source"][number].tolist() if letter]
    return Words(rows={"": said}, columns={"": ["␣" if letter == " " else letter for letter in source]})


def entrant(name: str, bars: Bars, *, when: When = "after", **sizes: Any) -> Entrant:
    def look(query: int, key: int) -> Any:
        return MEMBERS[name].make(query, key, **sizes)

    make = partial(Translating, len(LETTERS), EMBEDDING, HIDDEN, written=len(WRITTEN), look=look, when=when)
    return Entrant(name=name, make=make, member=name, bars=bars)


DATES = Task(
    name="dates",
    title="Dates as people write them",
    words="“March 9, 2015” is to be written as 2015-03-09, letter by letter, from seven ways of writing a date. The "
    "right place of a digit of the year is that digit, of the month any letter of its name, of the day any of its "
    "digits.",
    draw=draw,
    entrants=(
        entrant("bahdanau", {"exact": (0.95, 1.0), "pointed": (0.9, 1.0)}, when="before", size=HIDDEN),
        entrant("luong-dot", {"exact": (0.95, 1.0)}),
        entrant("luong-general", {"exact": (0.95, 1.0), "pointed": (0.9, 1.0)}),
        Entrant(
            name="no attention",
            make=partial(Translating, len(LETTERS), EMBEDDING, WITHOUT, written=len(WRITTEN), look=None),
            role="baseline",
            words="the decoder has its first state and nothing else",
        ),
    ),
    show=show,
    steps=800,
    quick_steps=300,
    rate=3e-3,
)
