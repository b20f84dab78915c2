"""Sentences with misspelt words, dropped articles and names that no vocabulary holds (nested attention)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from zlib import crc32

import torch

from heedful.zoo.networks.correcting import UNKNOWN, Correcting
from heedful.zoo.task import Entrant, Examples, Figures, Outcome, Task, Words, pointed, share

NOUNS = (
    "garden", "house", "river", "window", "teacher", "doctor", "farmer", "market", "bridge", "forest", "kitchen",
    "letter", "picture", "village", "station", "basket", "candle", "ladder", "pocket", "blanket",
)  # fmt: skip
VERBS = (
    "found", "painted", "carried", "followed", "watched", "cleaned", "visited", "remembered", "ordered", "repaired",
)  # fmt: skip
ADJECTIVES = (
    "yellow", "broken", "narrow", "silent", "heavy", "golden", "ancient", "gentle", "wooden", "bright",
)  # fmt: skip
PLACES = (
    "near", "behind", "under", "beside",
)  # fmt: skip
KNOWN = ("?", "∎", "the", *NOUNS, *VERBS, *ADJECTIVES, *PLACES)
"""The first stands for unknown words (`UNKNOWN`), the second ends a sentence."""
END = 1
NUMBER = {word: number for number, word in enumerate(KNOWN)}
LETTERS = "\0∎^⊢abcdefghijklmnopqrstuvwxyz"
"""What fills up, ends a word, begins a word, and stands for the begin and the end of a sentence."""
LETTER_END = 1
STEPS, WRITTEN = 12, 8
"""Words of a sentence with its end, letters of a name with its end."""
SOURCE_LETTERS = 14
HELD_OUT = 4
"""One misspelling of so many is never seen in training."""
PLAIN, MISSPELT, DROPPED, NAME = range(4)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A word of the target, the word of the source that it comes from, and what was done to it."""

    word: str
    source: str | None
    kind: int


def sentence(by: random.Random, held_out: bool) -> list[Written]:
    """Subject, verb, object and sometimes a place; an article may be dropped, a word misspelt, a noun a name."""
    parts = [*_noun(by, held_out), _word(by, VERBS, held_out), *_noun(by, held_out)]
    if by.random() < 0.5:
        parts += [_word(by, PLACES, held_out), *_noun(by, held_out)]
    return parts


def _noun(by: random.Random, held_out: bool) -> list[Written]:
    if by.random() < 0.25:
        name = "".join(by.choice("bdfgklmnprstvz") + by.choice("aeiou") for _ in range(3)) + by.choice("nrs\0")
        name = name.rstrip("\0")
        return [Written(word=name, source=name, kind=NAME)]
    dropped = by.random() < 0.3
    article = Written(word="the", source=None if dropped else "the", kind=DROPPED if dropped else PLAIN)
    adjective = [_word(by, ADJECTIVES, held_out)] if by.random() < 0.3 else []
    return [article, *adjective, _word(by, NOUNS, held_out)]


def _word(by: random.Random, of: Sequence[str], held_out: bool) -> Written:
    word = by.choice(of)
    if by.random() < 0.75:
        return Written(word=word, source=word, kind=PLAIN)
    wrong = word
    while wrong == word or wrong in NUMBER or (crc32(wrong.encode()) % HELD_OUT == 0) != held_out:
        wrong = misspelt(word, by)
    return Written(word=word, source=wrong, kind=MISSPELT)


def misspelt(word: str, by: random.Random) -> str:
    """Two letters exchanged, one left out, one doubled, or one changed."""
    at = by.randrange(len(word) - 1)
    way = by.randrange(4)
    if way == 0:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if way == 1:
        return word[:at] + word[at + 1 :]
    return word[: at + 1] + (word[at] if way == 2 else by.choice(LETTERS[4:])) + word[at + 1 + (way == 3) :]


def draw(split: str, count: int, generator: torch.Generator) -> Examples:
    """In a test split all misspellings are new. Names are drawn for every sentence and are new as well."""
    by = random.Random(int(torch.randint(2**62, (), generator=generator)))
    source = torch.zeros(count, STEPS + 1, SOURCE_LETTERS, dtype=torch.long)
    known = torch.zeros(count, STEPS + 1, dtype=torch.long)
    targets = torch.full((count, STEPS * (1 + WRITTEN)), -1)
    kinds = torch.full((count, STEPS), -1)
    words = torch.zeros(count, STEPS, STEPS + 1, dtype=torch.bool)
    letters = torch.zeros(count, STEPS * WRITTEN, SOURCE_LETTERS, dtype=torch.bool)
    for number in range(count):
        parts = sentence(by, split == "test")
        given = ["⊢", *(part.source for part in parts if part.source), "⊢"]
        for place, word in enumerate(given):
            spelt = f"^{word}∎"
            known[number, place] = END if word == "⊢" else NUMBER.get(word, UNKNOWN)
            source[number, place, : len(spelt)] = torch.tensor([LETTERS.index(letter) for letter in spelt])
        place = 1
        for step, part in enumerate(parts):
            targets[number, step] = NUMBER.get(part.word, UNKNOWN)
            kinds[number, step] = part.kind
            words[number, step, place] = True
            if part.kind == NAME:
                begin = step * WRITTEN
                spelling = [*(LETTERS.index(letter) for letter in part.word), LETTER_END]
                targets[number, STEPS + begin : STEPS + begin + len(spelling)] = torch.tensor(spelling)
                for letter in range(len(spelling)):
                    letters[number, begin + letter, letter + 1] = True
            place += part.source is not None
        targets[number, len(parts)] = END
    return Examples(
        inputs={"letters": source, "known": known, "kinds": kinds},
        targets=targets,
        sources={"word": words, "letter": letters},
    )


def judge(outcome: Outcome, examples: Examples) -> Figures:
    """Of words: all, those that were misspelt, articles that were dropped; copied: names without a wrong letter."""
    asked = examples.targets >= 0
    right = (outcome.answers == examples.targets) & asked
    words, kinds = right[:, :STEPS], examples.inputs["kinds"]
    whole = (right | ~asked)[:, STEPS:].unflatten(1, (STEPS, WRITTEN)).all(-1)
    return {
        "right": share(words, asked[:, :STEPS]),
        "exact": float((right | ~asked).all(1).float().mean()),
        "misspelt": share(words, kinds == MISSPELT),
        "dropped": share(words, kinds == DROPPED),
        "copied": share(words & whole, kinds == NAME),
        **pointed(outcome.weights, examples.sources),
    }


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    source = ["".join(LETTERS[letter] for letter in word if letter)[1:-1] for word in
              examples.inputs["letters"][number].tolist() if any(word)]  # fmt: skip
    asked = examples.targets[number, :STEPS] >= 0
    answers = outcome.answers[number]
    names = ["".join(LETTERS[letter] for letter in one).partition("∎")[0].strip("\0") for one in
             answers[STEPS:].unflatten(0, (STEPS, WRITTEN)).tolist()]  # fmt: skip
    said = [
        names[step] if word == UNKNOWN else KNOWN[word] for step, word in enumerate(answers[:STEPS][asked].tolist())
    ]
    looks = {"word": (0, said, source)}
    spelt = [step for step, word in enumerate(answers[:STEPS][asked].tolist()) if word == UNKNOWN]
    if spelt and "word" in outcome.weights:
        place = int(outcome.weights["word"][number, spelt[0]].argmax())
        looks["letter"] = (spelt[0] * WRITTEN, [*names[spelt[0]], "∎"][:WRITTEN], ["^", *source[place], "∎"])
    return Words(
        rows={look: rows for look, (_, rows, _) in looks.items()},
        columns={look: columns for look, (_, _, columns) in looks.items()},
        first={look: first for look, (first, _, _) in looks.items()},
    )


BUILD = partial(Correcting, len(KNOWN), len(LETTERS), 24, written=WRITTEN)

CORRECTION = Task(
    name="correction",
    title="Correcting sentences, letter by letter where need be",
    words="Short sentences in which words are misspelt, articles are dropped, and names stand that no vocabulary "
    "holds. The sentence is to be written as it should be, names letter by letter. Misspellings and names of the test "
    "are new. The right place of a word is the word it comes from, of a dropped article the word after it, of a "
    "letter that letter.",
    draw=draw,
    entrants=(
        Entrant(
            name="nested",
            make=partial(BUILD, 64),
            member="nested",
            words="both scores know step and place",
            bars={"copied": (0.85, 1.0), "pointed word": (0.9, 1.0), "pointed letter": (0.9, 1.0)},
        ),
        Entrant(
            name="no places",
            make=partial(BUILD, 64, places=0),
            role="control",
            member="nested",
            words="scores from content alone",
        ),
        Entrant(
            name="no attention",
            make=partial(BUILD, 84, places=0, nested=False),
            role="baseline",
            words="what the encoder left, and nothing else",
            bars={"copied": (0.0, 0.3)},
        ),
    ),
    show=show,
    judge=judge,
    steps=1500,
    quick_steps=500,
    rate=3e-3,
)
