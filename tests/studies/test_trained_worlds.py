"""Worlds in which a model is trained: it learns what there is to learn, and is examined as an audit examines a run."""

from functools import cache

import numpy as np
import pytest

import heedful
from heedful.studies.calibration.case import Case
from heedful.studies.calibration.evidence import population
from heedful.studies.calibration.trained import found_share, grow, spoken
from heedful.studies.calibration.world import World
from heedful.text.corpus import build_corpus
from heedful.text.tokenize import Tokenizer
from heedful.training.loop import fit


@cache
def grown(kind: str) -> Case:
    return grow(World(kind=kind, classes="50:50", length="short", texts=500, seed=0))


def test_from_noise_nothing_is_learned() -> None:
    whole = population(grown("noise").whole)
    assert whole.numbers["M1"].value == pytest.approx(0, abs=0.03)
    assert grown("noise").planted == {"corpus": "not shown", "decision": "not shown"}


def test_from_words_the_model_learns_their_classes() -> None:
    whole = population(grown("words").whole)
    assert whole.numbers["M1"].value > 0.45
    assert whole.numbers["C1"].value > 0.95


def test_of_one_word_of_each_class_there_are_too_few_for_the_corpus() -> None:
    case = grown("one word")
    whole = population(case.whole)
    assert whole.numbers["C1"].count == 2
    assert not whole.enough("C1")
    assert spoken(World(kind="one word", classes="50:50", length="short", texts=500, seed=0)).class_words == 1


def test_the_test_texts_of_a_world_are_a_tenth() -> None:
    case = grown("words")
    assert (len(case.seen.trace), len(case.whole.trace)) == (50, 5000)


def test_the_tables_are_those_that_an_audit_reads(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = set(grown("words").seen.tables["tokens"]), set(grown("words").seen.tables["weights"])
    texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    corpus = heedful.load_corpus((texts, ["class0"] * 5 + ["class1"] * 5))
    settings = heedful.RunSettings().change({"model.embedding_size": 2, "training.epochs": 1})
    run = heedful.audit(settings, heedful.Store(tmp_path_factory.mktemp("store")), corpus=corpus, advice=False).run
    assert made == (set(run.table("tokens")), set(run.table("weights")))


def test_attention_finds_the_word_without_which_most_of_the_lead_is_gone() -> None:
    kinds = ["class0-0", "class1-1"] * 40
    texts = [f"{word} neutral-{2 + place % 3} neutral-{5 + place % 7}" for place, word in enumerate(kinds)]
    splits = {name: (texts, [0, 1] * 40) for name in ("train", "dev", "test")}
    corpus = build_corpus(
        name="one word", splits=splits, class_names=["class0", "class1"], tokenizer=Tokenizer("whitespace")
    )
    model = fit(corpus, embedding_size=8, epochs=20, learning_rate=0.5, batch_size=10)
    trace = heedful.trace(model, corpus.test)
    expected = []
    for row, text in enumerate(texts):
        words = text.split()
        weights = trace.attention_weights[trace.instance(row)].tolist()
        class_word_first = words[int(np.argmax(weights))].startswith("class")
        own, other = row % 2, 1 - row % 2
        again = heedful.trace(model, " ".join(words[1:])).logits[0]
        before = trace.logits[row]
        expected.append(class_word_first and float(again[own] - again[other]) < float(before[own] - before[other]) / 2)
    assert found_share(model, corpus.test, trace) == pytest.approx(np.mean(expected))
