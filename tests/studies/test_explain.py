"""What is printed of one explained text, above all of a long one."""

import io
from itertools import pairwise

import pytest
import torch
from rich.console import Console

from heedful.cli.text_views import in_stretches, print_explanation, telling
from heedful.models.classifier import Classifier
from heedful.studies.explain import Explanation, explain
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.training.loop import fit


def printed(explanation: Explanation, *, everything: bool = False) -> list[str]:
    screen = Console(record=True, width=10**7, file=io.StringIO())
    print_explanation(explanation, screen, everything=everything)
    return screen.export_text().splitlines()


@pytest.fixture(scope="module")
def known(small_corpus: Corpus) -> list[str]:
    """Words that the model knows."""
    return list(small_corpus.vocabulary.tokens[1:301])


def test_the_telling_units_are_the_largest_by_each_score_in_turn() -> None:
    first, second = torch.tensor([0.1, 0.5, 0.2, 0.9, 0.0]), torch.tensor([-9.0, 0.0, 1.0, 0.0, 2.0])
    assert telling(2, first, second) == [0, 3]
    assert telling(3, first, second) == [0, 1, 3]
    assert telling(4, first, second) == [0, 1, 3, 4]
    assert telling(9, first, second) == [0, 1, 2, 3, 4]


def test_gaps_stand_where_units_are_left_out() -> None:
    assert list(in_stretches([1, 2, 4], 6)) == [(1, True), (2, False), (4, True), (6, True)]
    assert list(in_stretches([0, 1], 2)) == [(0, False), (1, False)]
    assert list(in_stretches([], 0)) == []


def test_a_short_text_is_shown_as_a_whole(small_model: Classifier, known: list[str]) -> None:
    shown = printed(explain(small_model, " ".join(known[:20])))
    assert shown[1] == f"attention   {' '.join(known[:20])}"
    assert shown[2].startswith("used here   ")
    assert shown[3].startswith("would push  ")
    assert shown[-1] == "and 8 more that gave less (--all shows them)"


def test_of_a_long_text_the_units_that_matter_are_shown_in_its_order(small_model: Classifier, known: list[str]) -> None:
    found = explain(small_model, " ".join(known * 334))
    shown = printed(found)
    assert len("\n".join(shown)) < 10_000
    words = [word for word in shown[1].removeprefix("attention").split() if word != "…"]
    assert len(words) == 200
    weights, used = found.trace.attention_weights, found.trace.contributions
    places = telling(200, weights, used)
    assert words == [(known * 334)[place] for place in places]
    assert shown[1].count("…") == sum(b > a + 1 for a, b in pairwise([-1, *places, 100_200]))
    assert {int(weights.argmax()), int(used.abs().argmax())} <= set(places)
    assert shown[4] == (
        "shown are 200 of 100,200 words: those attended to most and those that gave most; --all shows all"
    )
    assert shown[-1] == "and 100,188 more that gave less (--all shows them)"


def test_everything_is_shown_when_it_is_asked_for(small_model: Classifier, known: list[str]) -> None:
    text = " ".join(known * 2)
    shown = printed(explain(small_model, text), everything=True)
    assert shown[1] == f"attention   {text}"
    assert len(shown) == 4 + 2 + 600  # the decision, three strips, a heading after an empty line, a row for each token
    assert "…" not in "".join(shown)


def test_a_word_without_an_end_is_cut(small_model: Classifier) -> None:
    shown = printed(explain(small_model, "a" * 100_000))
    assert shown[1] == f"attention   {'a' * 400}…"
    assert max(map(len, shown)) < 500
    assert len(explain(small_model, "a" * 100_000).summary()["text"]) == 100_000  # type: ignore[arg-type]


def test_a_long_text_of_a_hierarchical_model_is_shown_by_its_sentences() -> None:
    texts = [f"{'Superb' if row % 2 else 'Awful'} food here. It was day {row}." for row in range(40)]
    corpus = load_corpus((texts, [row % 2 for row in range(40)]))
    model = fit(corpus, structure="hierarchical", attention="additive", embedding_size=4, hidden_size=4, epochs=1)
    found = explain(model, " ".join(texts[:40] * 20))
    assert len(found.spans) == 1600
    shown = printed(found)
    assert len("\n".join(shown)) < 12_000
    assert shown[5].startswith("shown are 40 of 1,600 sentences: those attended to most")
    inside = [word for word in shown[2].removeprefix("in sentences").split() if word != "…"]
    assert 100 < len(inside) <= 200
    assert len(printed(found, everything=True)) == 5 + 2 + 1600
