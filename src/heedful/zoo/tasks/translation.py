"""Short sentences of Tatoeba from English to French, with no known alignment (real data)."""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.errors import load_extra
from heedful.zoo.data import frequent, rows_for, rows_of, short, split_of
from heedful.zoo.members import MEMBERS
from heedful.zoo.networks.translating import PAD, Translating, When
from heedful.zoo.task import Entrant, Examples, Figures, Outcome, Task, Words, judge

FILE = "tatoeba_en_fr.jsonl.gz"
LONGEST, VOCABULARY = 8, 2000
END = 0
EMBEDDING, HIDDEN, WITHOUT = 64, 128, 150


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Sentences in both languages as numbers, by split; word 0 fills up in English, and ends in French."""

    english: list[str]
    french: list[str]
    source: dict[str, Int[Tensor, "pairs places"]]
    target: dict[str, Int[Tensor, "pairs steps"]]
    references: dict[tuple[int, ...], list[list[str]]]
    """By the English sentence, all its translations."""


@cache
def pairs() -> Pairs:
    """Pairs of short sentences whose words are all among the most frequent; a split has no English sentence of
    another."""
    read = ((short(row["en"], LONGEST), short(row["fr"], LONGEST)) for row in rows_of(FILE))
    both = [(en, fr) for en, fr in read if en and fr]
    learned = [pair for pair in both if split_of(" ".join(pair[0])) == "train"]
    english, french = (["∎", *frequent((pair[side] for pair in learned), VOCABULARY - 1)] for side in (0, 1))
    numbers = [{word: number for number, word in enumerate(words)} for words in (english, french)]
    known = [(en, fr) for en, fr in both if all(map(numbers[0].get, en)) and all(map(numbers[1].get, fr))]
    source: dict[str, list[list[int]]] = {"train": [], "dev": [], "test": []}
    target: dict[str, list[list[int]]] = {"train": [], "dev": [], "test": []}
    references: dict[tuple[int, ...], list[list[str]]] = {}
    for en, fr in known:
        split, said = split_of(" ".join(en)), [numbers[0][word] for word in en]
        references.setdefault(tuple(said), []).append(fr)
        if split == "train" or len(references[tuple(said)]) == 1:  # a test asks for each sentence once
            source[split].append(said + [PAD] * (LONGEST - len(en)))
            target[split].append([numbers[1][word] for word in fr] + [END] + [-1] * (LONGEST - len(fr)))
    return Pairs(
        english=english,
        french=french,
        source={split: torch.tensor(rows) for split, rows in source.items()},
        target={split: torch.tensor(rows) for split, rows in target.items()},
        references=references,
    )


def draw(split: str, count: int, generator: torch.Generator) -> Examples:
    source, target = pairs().source[split], pairs().target[split]
    rows = rows_for(split, len(source), count, generator)
    return Examples(inputs={"source": source[rows]}, targets=target[rows])


def written(answers: list[int]) -> list[str]:
    """The words before the end."""
    words = [pairs().french[number] for number in answers]
    return words[: words.index("∎")] if "∎" in words else words


def judge_translation(outcome: Outcome, examples: Examples) -> Figures:
    """Beside the usual BLEU with all translations that there are of a sentence (sacrebleu, words as they are here)."""
    bleu = load_extra("sacrebleu", "zoo", "BLEU scores")
    said = [" ".join(written(row)) for row in outcome.answers.tolist()]
    source = [tuple(word for word in row if word) for row in examples.inputs["source"].tolist()]
    known = [[" ".join(fr) for fr in pairs().references[sentence]] for sentence in source]
    most = max(map(len, known))
    references = [[one[place] if place < len(one) else None for one in known] for place in range(most)]
    score = bleu.corpus_bleu(said, references, tokenize="none", force=True).score
    return judge(outcome, examples) | {"bleu": score / 100}


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    """Without full stops: at the end attention may rest anywhere."""
    source = [pairs().english[word] for word in examples.inputs["source"][number].tolist() if word]
    said = written(outcome.answers[number].tolist())
    return Words(
        rows={"": [*said[:-1], said[-1]] if said and said[-1] != "." else said[:-1] or ["∎"]},
        columns={"": source[:-1] if source[-1] == "." else source},
    )


def entrant(name: str, *, when: When = "after", **sizes: Any) -> Entrant:
    def look(query: int, key: int) -> Any:
        return MEMBERS[name].make(query, key, **sizes)

    make = partial(Translating, VOCABULARY, EMBEDDING, HIDDEN, written=VOCABULARY, look=look, when=when)
    return Entrant(name=name, make=make, member=name)


TRANSLATION = Task(
    name="translation",
    title="Short sentences from English to French",
    words="Real sentences of Tatoeba, eight words at most, of the 2,000 most frequent of each language; BLEU "
    "counts all translations that the file has of a sentence. Nobody knows "
    "the right place; what is learned is shown.",
    draw=draw,
    entrants=(
        entrant("bahdanau", when="before", size=HIDDEN),
        entrant("luong-general"),
        Entrant(
            name="no attention",
            make=partial(Translating, VOCABULARY, EMBEDDING, WITHOUT, written=VOCABULARY, look=None),
            role="baseline",
            words="the decoder has its first state and nothing else",
        ),
    ),
    show=show,
    judge=judge_translation,
    best="bleu",
    steps=3000,
    quick_steps=300,
    rate=1e-3,
    seeds=1,
    real=True,
    files=(FILE,),
)
