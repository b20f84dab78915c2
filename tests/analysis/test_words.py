"""What words get and do: numbers that follow by hand from a function of words, and from weights that are given."""

import math

import pytest
import torch

import heedful
from heedful.analysis.words import EACH, measure_words, shares, word_numbers
from heedful.subjects import DELETE, Units
from heedful.text.corpus import Corpus

EFFECTS = {"superb": 2.0, "lovely": 1.0, "awful": -2.0, "dreary": -1.0}
PLAIN = ["one", "two", "three", "four", "five", "six", "seven", "eight"]


def log_odds(text: str) -> float:
    return sum(EFFECTS.get(word, 0.0) for word in text.lower().split())


def finds(texts: list[str]) -> list[float]:
    return [1 / (1 + math.exp(-log_odds(text))) for text in texts]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rows = [
        (f"{plain} {word} {PLAIN[(place + 3) % 8]}", "good" if EFFECTS[word] > 0 else "bad")
        for place, plain in enumerate(PLAIN)
        for word in EFFECTS
        for _ in range(5)
    ]
    texts, labels = zip(*[(f"{text} nr{number}", label) for number, (text, label) in enumerate(rows)], strict=True)
    return heedful.load_corpus((texts, labels))


def test_units_are_numbered_as_the_corpus_numbers_them_and_others_are_unknown(corpus: Corpus) -> None:
    texts = ["Superb unheard superb-two"]
    reading = heedful.subject(finds).read(texts)
    found = word_numbers(reading.units, corpus)
    names = [corpus.vocabulary.tokens[number] for number in found.tolist()]
    assert names == ["superb", "<unk>", "superb", "<unk>", "two"]


def test_shares_sum_to_one_and_are_even_where_there_is_nothing() -> None:
    units = Units(offsets=torch.tensor([0, 2, 5]))
    found = shares(torch.tensor([1.0, 3.0, 0.0, 0.0, -1.0]).double(), units)
    assert found.tolist() == pytest.approx([0.25, 0.75, 1 / 3, 1 / 3, 1 / 3])


def test_effects_are_what_goes_from_the_output_without_the_word(corpus: Corpus) -> None:
    texts = [text for text in corpus.train.texts if "superb" in text or "awful" in text][:40]
    reading = heedful.subject(finds).read(texts)
    attention = torch.tensor([3.0 if name in EFFECTS else 1.0 for name in reading.units.shown]).double()
    found = measure_words(
        reading, corpus, attention, classes=torch.tensor([0, 1]), how=DELETE, most=1_000, seed=0
    ).table.set_index("token")
    gone = 1 / (1 + math.exp(-2)) - 0.5
    assert found.loc["superb", "polarity"] == pytest.approx(gone)
    assert found.loc["awful", "polarity"] == pytest.approx(-gone)
    assert found.loc["superb", "effect"] == pytest.approx(gone)
    assert found.loc["superb", "effect_apart"] == pytest.approx(gone)
    assert found.loc["one", "effect"] == pytest.approx(0)
    assert found.loc["superb", "weight"] == pytest.approx(0.5)
    assert found.loc["superb", "lift"] == pytest.approx(2.0)
    assert found.loc["superb", "lift_apart"] == pytest.approx(2.0)
    assert int(found["removed"].max()) <= 2 * EACH


def test_the_classes_of_the_model_may_stand_in_another_order(corpus: Corpus) -> None:
    texts = [text for text in corpus.train.texts if "superb" in text][:10]
    turned = heedful.subject(lambda texts: [[p, 1 - p] for p in finds(texts)]).read(texts)
    found = measure_words(turned, corpus, classes=torch.tensor([1, 0]), how=DELETE, most=100).table
    assert found.loc[found["token"] == "superb", "polarity"].min() > 0.3
    assert "lift" not in found


def test_no_more_words_are_taken_away_than_asked_for(corpus: Corpus) -> None:
    reading = heedful.subject(finds).read(list(corpus.train.texts[:50]))
    found = measure_words(reading, corpus, classes=torch.tensor([0, 1]), how=DELETE, most=17)
    assert (found.passes, int(found.table["removed"].sum())) == (17, 17)
