"""Real misspellings in real sentences, and sentences of learners (nested attention)."""

import random
from dataclasses import dataclass
from functools import cache, partial
from zlib import crc32

import torch

from heedful.errors import load_extra
from heedful.zoo.data import frequent, rows_of, short, split_of, words_of
from heedful.zoo.networks.correcting import UNKNOWN, Correcting
from heedful.zoo.task import Entrant, Examples, Figures, Outcome, Task, Words, pointed, share

SENTENCES, MISSPELLINGS, JFLEG = "tatoeba_en_fr.jsonl.gz", "misspellings.jsonl.gz", "jfleg.jsonl.gz"
VOCABULARY, LONGEST = 1000, 10
STEPS, WRITTEN, SOURCE_LETTERS = LONGEST + 1, 10, 16
LETTERS = "\0∎^⊢abcdefghijklmnopqrstuvwxyz'-0123456789.,!?;:\"$%&()"
"""What fills up, ends a word, begins a word, stands for begin and end of a sentence; and the letters."""
WORD_END, LETTER_END = 1, 1
ARTICLES = ("a", "an", "the")


@dataclass(frozen=True, kw_only=True)
class Language:
    words: list[str]
    numbers: dict[str, int]
    sentences: dict[str, list[list[str]]]
    wrong: dict[str, dict[str, list[str]]]
    """By split and right word; a misspelling of the test is never learned."""


@cache
def language() -> Language:
    texts: dict[str, list[list[str]]] = {"train": [], "dev": [], "test": []}
    for text in dict.fromkeys(row["en"] for row in rows_of(SENTENCES)):
        words = short(text, LONGEST)
        if len(words) >= 3 and all(map(spelt, words)):
            texts[split_of(text)].append(words)
    words = ["?", "∎", *frequent(texts["train"], VOCABULARY - 2)]
    wrong: dict[str, dict[str, list[str]]] = {"train": {}, "test": {}}
    for row in rows_of(MISSPELLINGS):
        form = row["wrong"].lower()
        if spelt(form):
            for right in map(str.lower, row["right"]):
                wrong["test" if crc32(form.encode()) % 5 == 0 else "train"].setdefault(right, []).append(form)
    return Language(
        words=words, numbers={word: place for place, word in enumerate(words)}, sentences=texts, wrong=wrong
    )


def spelt(word: str) -> bool:
    """Whether a word has room and no strange letters."""
    return len(word) <= SOURCE_LETTERS - 2 and all(letter in LETTERS[4:] for letter in word)


def draw(split: str, count: int, generator: torch.Generator) -> Examples:
    """Sentences with a quarter of the words misspelt that can be, and three tenths of the articles dropped; in a test
    with misspellings that were never learned."""
    known, by = language(), random.Random(int(torch.randint(2**62, (), generator=generator)))
    wrong = known.wrong["test" if split == "test" else "train"]
    texts = by.choices(known.sentences[split], k=count)
    given: list[list[str | None]] = []
    for text in texts:
        given.append([_spoilt(word, wrong, by) for word in text])
    return examples_of_pairs(given, texts)


def _spoilt(word: str, wrong: dict[str, list[str]], by: random.Random) -> str | None:
    if word in ARTICLES and by.random() < 0.3:
        return None
    return by.choice(wrong[word]) if word in wrong and by.random() < 0.25 else word


def examples_of_pairs(given: list[list[str | None]], texts: list[list[str]]) -> Examples:
    """Sentences as they are given, None where a word is missing, and as they should be."""
    known, count = language(), len(texts)
    source = torch.zeros(count, STEPS + 1, SOURCE_LETTERS, dtype=torch.long)
    numbers = torch.zeros(count, STEPS + 1, dtype=torch.long)
    targets = torch.full((count, STEPS * (1 + WRITTEN)), -1)
    marks = torch.zeros(count, STEPS, STEPS + 1, dtype=torch.bool)
    changed = torch.zeros(count, STEPS, dtype=torch.bool)
    for number, (words, text) in enumerate(zip(given, texts, strict=True)):
        for place, word in enumerate(["⊢", *(word for word in words if word), "⊢"]):
            numbers[number, place] = WORD_END if word == "⊢" else known.numbers.get(word, UNKNOWN)
            source[number, place, : len(word) + 2] = torch.tensor([LETTERS.index(letter) for letter in f"^{word}∎"])
        place = 1
        for step, (wrote, right) in enumerate(zip(words, text, strict=True)):
            targets[number, step] = known.numbers.get(right, UNKNOWN)
            marks[number, step, place] = True
            changed[number, step] = wrote is not None and wrote != right
            place += wrote is not None
            if right not in known.numbers:
                spelling = [*(LETTERS.index(letter) for letter in right), LETTER_END][:WRITTEN]
                begin = STEPS + step * WRITTEN
                targets[number, begin : begin + len(spelling)] = torch.tensor(spelling)
        targets[number, len(text)] = WORD_END
    return Examples(
        inputs={"letters": source, "known": numbers, "changed": changed}, targets=targets, sources={"word": marks}
    )


def said(outcome: Outcome) -> list[list[str]]:
    """The sentences that are written, unknown words by their letters."""
    known, texts = language(), []
    for answers in outcome.answers.tolist():
        words = []
        for step, word in enumerate(answers[:STEPS]):
            if word == WORD_END:
                break
            letters = [LETTERS[x] for x in answers[STEPS + step * WRITTEN : STEPS + (step + 1) * WRITTEN]]
            words.append("".join(letters).partition("∎")[0] if word == UNKNOWN else known.words[word])
        texts.append(words)
    return texts


def judge(outcome: Outcome, examples: Examples) -> Figures:
    asked = examples.targets >= 0
    right = (outcome.answers == examples.targets) & asked
    words = examples.targets[:, :STEPS]
    whole = (right | ~asked)[:, STEPS:].unflatten(1, (STEPS, WRITTEN)).all(-1)
    return {
        "right": share(right[:, :STEPS] & whole, asked[:, :STEPS]),
        "exact": float((right | ~asked).all(1).float().mean()),
        "misspelt": share(right[:, :STEPS] & whole, examples.inputs["changed"]),
        "unknown": share(right[:, :STEPS] & whole, words == UNKNOWN),
        **pointed(outcome.weights, examples.sources),
        **(_of_learners(outcome, examples) if "references" in examples.inputs else {}),
    }


def _of_learners(outcome: Outcome, examples: Examples) -> Figures:
    """BLEU of what is written, and of the sentences left as they are."""
    texts = [learned_sentences()[0][number] for number in examples.inputs["references"].tolist()]
    return {"bleu": bleu(said(outcome), examples), "bleu untouched": bleu(texts, examples)}


@cache
def learned_sentences() -> tuple[list[list[str]], list[list[str]]]:
    """Short sentences of learners (JFLEG, test) and their corrections, joined by a tab."""
    rows = [row for row in rows_of(JFLEG) if row["split"] == "test"]
    read = [(words_of(row["text"]), ["\t".join(words_of(ref)) for ref in row["refs"]]) for row in rows]
    short = [(text, refs) for text, refs in read if 3 <= len(text) <= LONGEST and all(map(spelt, text))]
    return [text for text, _ in short], [refs for _, refs in short]


def bleu(texts: list[list[str]], examples: Examples) -> float:
    """Against the four corrections of each sentence."""
    scores = load_extra("sacrebleu", "zoo", "BLEU scores")
    references = [learned_sentences()[1][number] for number in examples.inputs["references"].tolist()]
    columns = [[one[place].replace("\t", " ") for one in references] for place in range(4)]
    return (
        float(scores.corpus_bleu([" ".join(text) for text in texts], columns, tokenize="none", force=True).score) / 100
    )


def draw_all(split: str, count: int, generator: torch.Generator) -> Examples:
    """Of the split `jfleg` sentences of learners, taken to be right as they are: only what is written counts."""
    if split != "jfleg":
        return draw(split, count, generator)
    texts, _ = learned_sentences()
    rows = torch.randperm(len(texts), generator=generator)[:count]
    some = [texts[number] for number in rows.tolist()]
    found = examples_of_pairs([[*text] for text in some], some)
    return Examples(inputs={**found.inputs, "references": rows}, targets=found.targets, sources=found.sources)


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    source = ["".join(LETTERS[letter] for letter in word if letter)[1:-1] for word in
              examples.inputs["letters"][number].tolist() if any(word)]  # fmt: skip
    return Words(rows={"word": said(outcome)[number] or ["∎"]}, columns={"word": source})


BUILD = partial(Correcting, VOCABULARY, len(LETTERS), 32, written=WRITTEN)

LEARNERS = Task(
    name="learners",
    title="Real misspellings, and sentences of learners",
    words="Sentences of Tatoeba of ten words at most with misspellings that people made and without some of their "
    "articles; the thousand most frequent words are known, others are written letter by letter. Misspellings of the "
    "test were never seen. And short sentences of learners (JFLEG): BLEU against four corrections; copying them as "
    "they are is 'right' there.",
    draw=draw_all,
    entrants=(
        Entrant(name="nested", make=partial(BUILD, 96), member="nested"),
        Entrant(
            name="no attention",
            make=partial(BUILD, 120, places=0, nested=False),
            role="baseline",
            words="what the encoder left, and nothing else",
        ),
    ),
    show=show,
    judge=judge,
    steps=1500,
    quick_steps=100,
    rate=3e-3,
    tests=("test", "jfleg"),
    size=250,
    seeds=1,
    real=True,
    files=(SENTENCES, MISSPELLINGS, JFLEG),
)
