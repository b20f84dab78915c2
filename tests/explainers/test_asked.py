"""Explainers that ask: the hand game, loops, linear models whose weights are known, and what chance may not do."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

import heedful
from heedful.analysis.faithfulness.cost import TooMuch
from heedful.analysis.rankings import importance
from heedful.errors import InputError
from heedful.explainers import explain_all, find_explainer
from heedful.subjects import Reading
from tests.covering import covers
from tests.oracles import explaining as oracle
from tests.oracles.random_traces import random_trace

pytest.importorskip("captum")
pytestmark = pytest.mark.usefixtures("one_thread")

WEIGHTS = {"good": math.log(9), "dull": -math.log(3), "not": -1.0, "odd": 0.4}
GAME = "a good dull film"
TEXTS = [GAME, "good", "not good not good dull 😀", "film", "good dull odd a film and a dull odd end of it not good"]
ALL = ["random", "leave_one_out", "occlusion", "lime", "shapley", "kernel_shap"]


def say(words: Sequence[str]) -> float:
    """A decision that is no sum: log-odds, and two words that change each other."""
    odds = sum(WEIGHTS.get(word, 0.0) for word in words)
    return 1 / (1 + math.exp(-odds * (-0.5 if "not" in words and "good" in words else 1)))


def linear(words: Sequence[str]) -> float:
    """A probability that is a sum over words, whatever the others are."""
    return 0.4 + sum(WEIGHTS.get(word, 0.01) for word in words) / 50


def reading_of(function: object = say, texts: Sequence[str] = TEXTS) -> Reading:
    return heedful.subject(lambda asked: [function(text.split()) for text in asked]).read(texts)  # type: ignore[operator]


def rows(found: heedful.Explanation) -> list[list[float]]:
    return [part.tolist() for part in found.scores.split(found.lengths.tolist())]


def test_the_hand_game() -> None:
    """p = 3/4; 1/4 without good, 9/10 without dull, 1/2 without both."""
    leave, shapley = (heedful.explain(reading_of(), by=name) for name in ("leave_one_out", "shapley"))
    assert rows(leave)[0] == pytest.approx([0, 1 / 2, -3 / 20, 0])
    assert rows(shapley)[0] == pytest.approx([0, 9 / 20, -1 / 5, 0])
    assert leave.signed
    assert leave.passes == sum(len(text.split()) for text in TEXTS)


@covers(explainer=("leave_one_out", "occlusion"))
@pytest.mark.parametrize("width", [1, 2, 3, 20])
def test_windows_are_taken_away_as_by_loops(width: int) -> None:
    leave, occluded = explain_all(reading_of(), ["leave_one_out", f"occlusion@{width}"], targets="1")
    for text, left_out, hidden in zip(TEXTS, rows(leave), rows(occluded), strict=True):
        words = text.split()
        assert left_out == pytest.approx(oracle.leave_one_out(say, words), abs=1e-12)
        assert hidden == pytest.approx(oracle.occlusion(say, words, width), abs=1e-6)


def test_other_classes_have_their_own_scores() -> None:
    first, second = (heedful.explain(reading_of(), by="leave_one_out", targets=name) for name in ("0", "1"))
    torch.testing.assert_close(first.scores, -second.scores)
    own = heedful.explain(reading_of(), by="leave_one_out")
    assert own.targets.tolist() == reading_of().decisions.tolist()


@covers(explainer=("shapley",))
def test_shapley_values_of_short_texts_are_exact_and_of_others_close() -> None:
    found = heedful.explain(reading_of(), by="shapley", targets=1, orders=25)
    many = heedful.explain(reading_of(texts=[TEXTS[2]]), by="shapley@600", targets=1)
    assert rows(found)[0] == pytest.approx(oracle.shapley(say, GAME.split()), abs=1e-6)
    assert rows(many)[0] == pytest.approx(oracle.shapley(say, TEXTS[2].split()), abs=0.03)
    gained = [say(text.split()) - say([]) for text in TEXTS]
    assert [sum(row) for row in rows(found)] == pytest.approx(gained, abs=1e-5)


@covers(explainer=("lime", "kernel_shap"))
@pytest.mark.parametrize(("name", "digits"), [("lime", 1e-12), ("kernel_shap", 1e-9), ("shapley", 1e-6)])
def test_of_a_linear_model_they_are_its_weights(name: str, digits: float) -> None:
    """Captum keeps Shapley values in single precision."""
    found = heedful.explain(reading_of(linear), by=name, targets=1)
    expected = [[WEIGHTS.get(word, 0.01) / 50 for word in text.split()] for text in TEXTS]
    for own, weights in zip(rows(found), expected, strict=True):
        assert own == pytest.approx(weights, abs=digits)


@pytest.mark.parametrize("name", ALL[1:])
def test_sure_decisions_are_explained_to_the_last_digits(name: str) -> None:
    """p = 1 − 1e-9 times what is not there: far below what single precision knows beside one."""
    usual, sure = (
        heedful.explain(reading_of(function), by=name, targets=1).scores
        for function in (linear, lambda words: 1 - 1e-9 * (1 - linear(words)))
    )
    torch.testing.assert_close(1e9 * sure, usual, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ALL[1:])
def test_units_that_do_nothing_get_nothing(name: str) -> None:
    assert not heedful.explain(reading_of(lambda _: 0.3), by=name).scores.any()
    if name != "occlusion":
        found = heedful.explain(reading_of(lambda words: 0.9 if "good" in words else 0.2), by=name)
        assert rows(found)[0] == pytest.approx([0, 0.7, 0, 0])
        assert [score for score in rows(found)[0] if score] == pytest.approx([0.7])


def test_kernel_shap_approaches_shapley_values() -> None:
    found = heedful.explain(reading_of(texts=[TEXTS[2]]), by="kernel_shap@4000", targets=1)
    assert rows(found)[0] == pytest.approx(oracle.shapley(say, TEXTS[2].split()), abs=0.02)
    assert sum(rows(found)[0]) == pytest.approx(say(TEXTS[2].split()) - say([]), abs=1e-4)


def test_lime_weighs_near_texts_more() -> None:
    """Its weights are those of least squares over all halves, each counting by √exp(−d²/0.25²)."""
    words = GAME.split()
    marks = [[(number >> place) & 1 for place in range(4)] for number in range(16)]
    told = [say([word for word, there in zip(words, row, strict=True) if there]) for row in marks]
    near = [math.sqrt(math.exp(-(((1 - math.sqrt(sum(row) / 4)) / 0.25) ** 2))) for row in marks]
    root = np.sqrt(near)[:, None]
    solved = np.linalg.lstsq(root * np.array([[*row, 1] for row in marks]), root[:, 0] * told, rcond=None)[0]
    found = heedful.explain(reading_of(texts=[GAME]), by="lime", samples=6_000)
    assert rows(found)[0] == pytest.approx(solved[:4].tolist(), abs=0.01)


@covers(explainer=("random",))
def test_random_numbers_are_those_of_the_ranking() -> None:
    trace = random_trace(0, instances=5, longest=9)
    assert torch.equal(heedful.explain(trace, by="random", seed=3).scores, importance(trace, "random", seed=3))


@pytest.mark.parametrize("name", ALL)
def test_chance_comes_from_the_seed_alone_and_is_left_alone(name: str) -> None:
    torch.manual_seed(1)
    first = heedful.explain(reading_of(), by=name, seed=5)
    torch.manual_seed(2)
    states = torch.get_rng_state(), np.random.get_state()[1].tolist()  # type: ignore[index]
    again = heedful.explain(reading_of(), by=name, seed=5)
    assert torch.equal(first.scores, again.scores)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.random.get_state()[1].tolist() == states[1]  # type: ignore[index]
    other = heedful.explain(reading_of(), by=name, seed=6)
    assert torch.equal(first.scores, other.scores) == (name in ("leave_one_out", "occlusion"))


@pytest.mark.parametrize("name", ALL)
def test_a_seed_below_zero_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="seed must be 0 or more; got -1"):
        heedful.explain(reading_of(), by=name, seed=-1)


@pytest.mark.parametrize("name", ALL[1:])
def test_texts_are_explained_as_they_come(name: str) -> None:
    """Another order of the texts is another order of the same numbers; a text alone has those it has beside others."""
    found, turned = (heedful.explain(reading_of(texts=texts), by=name) for texts in (TEXTS, TEXTS[::-1]))
    assert rows(turned)[::-1] == rows(found)
    assert rows(heedful.explain(reading_of(texts=TEXTS[2:3]), by=name))[0] == rows(found)[2]


@pytest.mark.parametrize("name", ALL[1:])
def test_a_single_unit_gets_what_it_changes(name: str) -> None:
    found = heedful.explain(reading_of(texts=["good"]), by=name, targets=1)
    assert found.scores.tolist() == pytest.approx([say(["good"]) - say([])], abs=1e-6)


def test_models_are_asked_in_few_large_batches() -> None:
    calls = []

    def counting(texts: list[str]) -> list[float]:
        calls.append(len(texts))
        return [say(text.split()) for text in texts]

    reading = heedful.subject(counting).read(TEXTS)
    calls.clear()
    explain_all(reading, ALL)
    assert len(calls) <= len(ALL)


def test_units_may_be_masked_instead() -> None:
    subject = heedful.subject(lambda texts: [say(text.split()) for text in texts], mask="not")
    masked = heedful.explain(subject, [GAME], by="leave_one_out", how="mask", targets=1)
    words = GAME.split()
    expected = [say(words) - say([*words[:i], "not", *words[i + 1 :]]) for i in range(4)]
    assert masked.scores.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("by", ["lime@0", "occlusion@0", "shapley@0", "kernel_shap@0"])
def test_none_at_all_is_refused(by: str) -> None:
    with pytest.raises(InputError, match=r"must be 1 or more; got 0"):
        heedful.explain(reading_of(), by=by)


@pytest.mark.parametrize("name", [*ALL[1:], "lime@40", "kernel_shap@40", "shapley@3"])
def test_what_it_costs_is_known_beforehand(name: str) -> None:
    """No more changed texts than were said, and not many fewer where texts are long: of few units sets come twice."""
    asked: list[str] = []

    def counting(texts: Sequence[str]) -> list[float]:
        asked.extend(texts)
        return [0.5] * len(texts)

    texts = [" ".join(f"w{place}" for place in range(length)) for length in (3, 9, 30)]
    reading = heedful.subject(counting).read(texts)
    reading.probabilities  # noqa: B018
    asked.clear()
    found = heedful.explain(reading, by=name)
    cost = find_explainer(name).cost(reading.units)
    assert len(asked) <= cost.texts
    assert cost.texts <= 1.7 * (found.passes or 0)


def test_too_many_questions_are_refused_before_the_first_with_what_would_fit() -> None:
    asked: list[str] = []

    def counting(texts: Sequence[str]) -> list[float]:
        asked.extend(texts)
        return [0.5] * len(texts)

    subject, long = heedful.subject(counting), "word " * 3_000
    asked.clear()
    with pytest.raises(
        TooMuch,
        match=r"To explain by shapley the model would have to read up to 75,000 changed texts of 225,000,000 units in "
        r"all; 100,000,000 units are the most\. 1 text of up to 3,000 units cost that: only shorter ones would fit\. .*"
        r"most=225000000 \(on the command line --most 225000000\)\.",
    ):
        heedful.explain(subject, [long], by="shapley")
    assert asked == [long], "the whole text alone was read"
    with pytest.raises(TooMuch, match=r"4 texts of up to 5 units cost that: about 2 such texts would fit"):
        heedful.explain(subject, ["a b c d e"] * 4, by="leave_one_out", most=60)
    assert heedful.explain(subject, ["a b c d e"] * 4, by="leave_one_out", most=100).passes == 20
    with pytest.raises(InputError, match="most must be 1 or more"):
        heedful.explain(subject, ["a"], by="leave_one_out", most=0)


def test_a_text_of_a_thousand_words_is_explained_as_one_of_ten() -> None:
    """What a method asks is kept in bits of memory, not in numbers."""
    text = " ".join([*(f"w{place}" for place in range(999)), "good"])
    reading = heedful.subject(lambda texts: [0.75 if "good" in text else 0.25 for text in texts]).read([text])
    for name in ("leave_one_out", "kernel_shap", "occlusion"):
        found = heedful.explain(reading, by=name)
        assert int(found.order[0]) in (997, 998, 999)
        assert float(found.scores.max()) == pytest.approx(0.5, abs=0.35)
