"""Tasks on real data: what is drawn is what the files say, read again by other means."""

import gzip
import json
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from heedful.zoo.task import Examples, Outcome
from heedful.zoo.tasks import TASKS, film_documents, learners, movies, reviews, translation
from tests.covering import covers

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif("HEEDFUL_DATA" not in os.environ, reason="HEEDFUL_DATA is not set: no real data at hand"),
    pytest.mark.xdist_group("real zoo"),
]
COUNT = 40


def path_of(name: str) -> Path:
    return Path(os.environ["HEEDFUL_DATA"]) / name


@cache
def lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(path_of(name), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def drawn(name: str, split: str, count: int = COUNT) -> Examples:
    return TASKS[name].draw(split, count, torch.Generator().manual_seed(3))


def without_spaces(text: object) -> str:
    return "".join(str(text).lower().split())


def exactly(examples: Examples, classes: int) -> Outcome:
    """Who says what is asked for, and the first class elsewhere."""
    said = torch.nn.functional.one_hot(examples.targets.clamp(min=0).long(), classes).float()
    return Outcome(logits=said)


@covers(task=("translation",))
def test_sentences_and_their_translations_stand_in_the_file() -> None:
    said: dict[str, set[str]] = {}
    for line in lines("tatoeba_en_fr.jsonl.gz"):
        said.setdefault(without_spaces(line["en"]), set()).add(without_spaces(line["fr"]))
    known = translation.pairs()
    sources: dict[str, set[str]] = {}
    for split in ("train", "dev", "test"):
        examples = drawn("translation", split)
        for row in range(COUNT):
            english = "".join(known.english[x] for x in examples.inputs["source"][row].tolist() if x)
            french = "".join(translation.written(examples.targets[row].tolist()))
            assert french in said[english]
            sources.setdefault(split, set()).add(english)
    whole = {split: {tuple(row) for row in rows.tolist()} for split, rows in known.source.items()}
    assert not whole["train"] & whole["test"]
    assert not whole["dev"] & (whole["train"] | whole["test"])
    assert len(known.source["test"]) == len(whole["test"]) > 1500
    assert max(len(known.english), len(known.french)) == translation.VOCABULARY


def test_the_score_of_a_perfect_translation_is_one_and_any_of_its_references_will_do() -> None:
    pytest.importorskip("sacrebleu")
    examples = drawn("translation", "test")
    perfect = exactly(examples, translation.VOCABULARY)
    found = translation.judge_translation(perfect, examples)
    assert [found["bleu"], found["right"], found["exact"]] == pytest.approx([1.0, 1.0, 1.0])
    several = {en: fr for en, fr in translation.pairs().references.items() if len(fr) > 1 and fr[0] != fr[1]}
    english, (first, second, *_) = next(iter(several.items()))
    numbers = {word: number for number, word in enumerate(translation.pairs().french)}
    source, targets = torch.zeros(1, translation.LONGEST, dtype=torch.long), torch.full((2, 9), -1)
    source[0, : len(english)] = torch.tensor(english)
    for row, words in enumerate((first, second)):
        targets[row, : len(words) + 1] = torch.tensor([*(numbers[word] for word in words), translation.END])
    asked = Examples(inputs={"source": source}, targets=targets[:1])
    other = exactly(replace(asked, targets=targets[1:]), translation.VOCABULARY)
    assert translation.judge_translation(other, asked)["exact"] == 0.0
    said = translation.written(other.answers[0].tolist())
    assert said == second
    assert translation.judge_translation(other, asked)["bleu"] == pytest.approx(1.0 if len(second) >= 4 else 0.0)


@covers(task=("learners",))
def test_misspellings_are_those_of_people() -> None:
    right_of: dict[str, set[str]] = {}
    for line in lines("misspellings.jsonl.gz"):
        right_of.setdefault(str(line["wrong"]).lower(), set()).update(str(word).lower() for word in line["right"])
    sentences = {without_spaces(row["en"]) for row in lines("tatoeba_en_fr.jsonl.gz")}
    known = learners.language()
    wrong: dict[str, set[str]] = {"train": set(), "test": set()}
    for split, forms in wrong.items():
        examples = drawn("learners", split, 150)
        for row in range(150):
            given = ["".join(learners.LETTERS[x] for x in word if x)[1:-1] for word in
                     examples.inputs["letters"][row].tolist() if any(word)]  # fmt: skip
            answers = learners.said(exactly(examples.take(slice(row, row + 1)), learners.VOCABULARY))[0]
            if all(len(word) < learners.WRITTEN for word in answers):  # longer ones are written in part
                assert "".join(answers) in sentences
            for step, changed in enumerate(examples.inputs["changed"][row].tolist()):
                if changed:
                    (place,) = examples.sources["word"][row, step].nonzero().flatten().tolist()
                    forms.add(given[place])
                    assert any(word.startswith(answers[step]) for word in right_of[given[place]])
    assert len(wrong["train"]) > 20
    assert not wrong["train"] & wrong["test"]
    assert not {*map(" ".join, known.sentences["train"])} & {*map(" ".join, known.sentences["test"])}


def test_sentences_of_learners_have_four_corrections() -> None:
    pytest.importorskip("sacrebleu")
    refs = {without_spaces(row["text"]): row["refs"] for row in lines("jfleg.jsonl.gz") if row["split"] == "test"}
    texts, corrections = learners.learned_sentences()
    assert len(texts) > 80
    for text, own in zip(texts, corrections, strict=True):
        expected = refs["".join(text)]
        assert ["".join(one.split("\t")) for one in own] == [without_spaces(one) for one in expected]
    examples = drawn("learners", "jfleg", 30)
    best = [learners.learned_sentences()[1][number][2].split("\t") for number in examples.inputs["references"].tolist()]
    assert learners.bleu(best, examples) == pytest.approx(1.0)


@covers(task=("movies",))
def test_the_film_that_is_asked_for_was_liked_next() -> None:
    ratings = pd.read_csv(path_of("ml100k_ratings.csv.gz"))
    rows = lines("ml100k_items.jsonl.gz")
    numbers = [int(str(row["item"])) for row in rows]  # some films stand in the file twice, under two numbers
    liked = ratings[ratings["rating"] >= 4]
    people = [user for user, some in liked.groupby("user") if len(some) >= movies.FEWEST]
    known = movies.films()
    for split, back in (("test", 1), ("dev", 2)):
        examples = drawn("movies", split)
        for row in range(COUNT):
            some = liked[liked["user"] == people[int(examples.inputs["user"][row])]].sort_values("timestamp")
            offered = [numbers[film] for film in examples.inputs["candidates"][row].tolist()]
            times = some["timestamp"].tolist()
            assert offered[0] in {*some[some["timestamp"] == times[-back]]["item"]}
            assert not {*some["item"]} & {*offered[1:]}
            before = [film for film in examples.inputs["history"][row].tolist() if film >= 0]
            assert len(before) == min(movies.HISTORY, len(some) - back)
            assert numbers[before[-1]] in {*some[some["timestamp"] == times[-back - 1]]["item"]}
            parts = examples.inputs["components"][row, len(before) - 1]
            names = [known.genres[int(part.argmax())] for part in parts if bool(part.any())]
            assert names == rows[before[-1]]["genres"][: movies.PARTS]


def test_places_of_the_right_film_by_hand() -> None:
    """Two films before it; none; and one that is as good, which counts by half."""
    logits = torch.tensor([[[1.0, 2.0, 3.0, 0.0]], [[5.0, 1.0, 2.0, 3.0]], [[2.0, 2.0, 1.0, 0.0]]])
    targets = torch.zeros(3, 1, dtype=torch.long)
    found = movies.judge(Outcome(logits=logits), Examples(inputs={}, targets=targets))
    assert found == pytest.approx({"right": 1 / 3, "in ten": 1.0, "reciprocal": (1 / 3 + 1 + 1 / 1.5) / 3})


@covers(task=("reviews",))
def test_reviews_have_their_stars() -> None:
    stars: dict[str, set[int]] = {}
    for line in lines("yelp10k_stars.jsonl.gz"):
        stars.setdefault(without_spaces(line["text"])[:30], set()).add(int(line["label"]))
    words = reviews.reviews()[0]
    seen = 0
    for split in ("train", "test"):
        examples = drawn("reviews", split)
        for row in range(COUNT):
            first = "".join(words[x] for sentence in examples.inputs["words"][row].tolist()[:3] for x in sentence if x)
            if "?" not in first and len(first) > 30:
                seen += 1
                assert int(examples.targets[row, 0]) + 1 in stars[first[:30]]
    assert seen > 10


@covers(task=("film-documents",))
def test_documents_are_made_of_ratings_to_learn_from() -> None:
    """Those of one person and of one film, written again with pandas; and stars of the test."""
    ratings = pd.read_csv(path_of("ml100k_ratings.csv.gz"))
    people = pd.read_csv(path_of("ml100k_users.csv.gz")).set_index("user")
    films = {int(str(row["item"])): row for row in lines("ml100k_items.jsonl.gz")}
    known = film_documents.documents()
    ratings["dev"] = ratings.index % 20 == 0
    learned = ratings[(ratings["u1split"] == "train") & ~ratings["dev"] & (ratings["rating"] != 3)]
    for place, user in list(enumerate(people.index))[:5]:
        text = [str(people.loc[user, "occupation"]), f"{str(people.loc[user, 'age'])[0]}0s"]
        for _, row in learned[learned["user"] == user].iterrows():
            sign = "+" if row["rating"] > 3 else "−"
            text += [f"{sign}{genre.lower()}" for genre in films[int(row["item"])]["genres"]]
        page = [known.words[x] for x in known.user[place].tolist() if x]
        assert page == [word if word in known.words else "?" for word in text[: film_documents.LENGTH]]
    test = ratings[ratings["u1split"] != "train"]
    assert [x + film_documents.MEAN for x in known.stars["test"].tolist()] == test["rating"].tolist()
    outcome = Outcome(logits=torch.tensor([[[1.0]], [[0.0]]]))
    asked = Examples(inputs={}, targets=torch.tensor([[0.0], [2.0]]))
    found = film_documents.judge(outcome, asked)
    assert found == pytest.approx({"rmse": 2.5**0.5, "constant": 2**0.5, "saved": 1 - 1.25**0.5})
