"""Worlds in which a model is trained: it learns what there is to learn, and is examined as an audit examines a run."""

from functools import cache

import pytest

import heedful
from heedful.studies.calibration.judging import population
from heedful.studies.calibration.planted import found_share, grow
from heedful.studies.calibration.worlds import Case, World


@cache
def grown(kind: str) -> Case:
    return grow(World(kind=kind, classes="50:50", length="short", texts=500, seed=0))


def test_from_noise_nothing_is_learned() -> None:
    whole = population(grown("noise").whole)
    assert whole.numbers["M1"].value == pytest.approx(0, abs=0.03)
    assert grown("noise").planted == dict.fromkeys(("corpus", "decision", "story"), "not shown")


def test_copies_of_noise_are_five_of_each_text_and_nothing_is_learned() -> None:
    case = grown("copies")
    assert int(case.seen.trace.distinct.sum()) * 5 == len(case.seen.trace)
    assert case.planted == dict.fromkeys(("corpus", "decision", "story"), "not shown")


def test_from_words_the_model_learns_their_classes() -> None:
    whole = population(grown("words").whole)
    assert whole.numbers["M1"].value > 0.45
    assert whole.numbers["C1"].value > 0.95


def test_of_one_word_of_each_class_there_are_too_few_for_the_corpus() -> None:
    case = grown("one word")
    whole = population(case.whole)
    assert whole.numbers["C1"].count == 2
    assert not whole.enough("C1")
    assert World(kind="one word", classes="50:50", length="short", texts=500, seed=0).class_words == 1


def test_the_test_texts_of_a_world_are_a_tenth() -> None:
    case = grown("words")
    assert (len(case.seen.trace), len(case.whole.trace)) == (50, 5000)


@pytest.mark.usefixtures("undrawn")
def test_the_tables_are_those_that_an_audit_reads(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = set(grown("words").seen.tables["tokens"]), set(grown("words").seen.tables["weights"])
    texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    corpus = heedful.load_corpus((texts, ["class0"] * 5 + ["class1"] * 5))
    settings = heedful.RunSettings().change({"model.embedding_size": 2, "training.epochs": 1})
    run = heedful.audit(settings, heedful.Store(tmp_path_factory.mktemp("store")), corpus=corpus, advice=False).run
    assert made == (set(run.table("tokens")), set(run.table("weights")))


def test_the_word_is_found_where_it_is_attended_to_most_and_the_decision_goes_with_it() -> None:
    """Attended and decisive; not attended; attended, but the rest says the same; attended and decisive."""
    found = heedful.Trace.from_arrays(
        offsets=[0, 2, 4, 6, 8],
        attention_weights=[0.6, 0.4, 0.3, 0.7, 0.9, 0.1, 0.2, 0.8],
        polarity_scores=[-4, 1, 4, 1, 4, 3, 1, 4],
        bias=[0],
        units=["class0-0", "neutral-5", "class1-1", "neutral-2", "class1-1", "neutral-3", "neutral-4", "class1-1"],
    )
    assert found_share(found) == 0.5
