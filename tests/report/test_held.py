"""What a page holds for its script to draw: tokens and texts as numbers, and how many of how many."""

import io
import json

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.errors import InputError
from heedful.report import instances as instances_module
from heedful.report import vocabulary as vocabulary_module
from heedful.report.html import render_html
from heedful.report.instances import Instances
from heedful.report.strips import shadings_of
from heedful.report.vocabulary import Vocabulary, towards
from heedful.traces import Trace
from heedful.tracing import WordWeights
from tests.report.made import CLASSES, INSTANCES, SCRIPT, TEXTS, TOKENS, made_page


def test_texts_are_whole_thousandths_and_gaps() -> None:
    data = INSTANCES.data()
    assert (data["of"], data["digits"], data["classes"]) == (4, 3, list(CLASSES))
    assert [strip["name"] for strip in data["strips"]] == ["attention", "used here", "would push"]
    assert [trait["of"] for trait in data["traits"]] == [1, 2]
    first, second, _, last = data["texts"]
    assert first["text"] == TEXTS[0]
    assert first["gaps"] == [0, 1, 1, 4, 1, 1, 1, 4]  # characters before each unit, and within
    assert first["numbers"][0] == [125, 500, 250, 125]
    assert first["numbers"][1] == [0, 2000, -250, 125]  # α·z towards the decision
    assert (first["marks"], first["predicted"], first["label"], first["cut"]) == ([1], 1, 1, 0)
    assert (second["traits"], second["needed"]) == ([1], [1, 1])
    assert (last["traits"], last["needed"], last["marks"]) == ([], [None, None], [])
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def many(texts: int, units: int) -> Instances:
    trace = Trace.from_arrays(
        offsets=[units * row for row in range(texts + 1)],
        attention_weights=np.full(texts * units, 1 / units),
        polarity_scores=np.ones(texts * units),
        bias=[0],
    )
    spans = (2 * torch.arange(units)[:, None] + torch.tensor([0, 1])).repeat(texts, 1)
    return Instances(
        texts=["x " * units] * texts,
        offsets=trace.offsets,
        spans=spans,
        shadings=shadings_of(trace),
        marks=torch.zeros(texts * units, dtype=torch.bool),
        predicted=trace.predictions,
        probability=trace.probabilities.amax(1),
        labels=None,
        class_names=trace.class_names,
    )


def test_of_many_texts_some_are_held_evenly_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances_module, "MOST_TEXTS", 10)
    monkeypatch.setattr(instances_module, "MOST_BYTES", 1000)
    few = many(100, 2).rows
    assert (few[0], few[-1], len(few)) == (0, 99, 10)
    each = 16 * 9 + 2 * 9  # nine units of a letter and a space
    assert len(many(100, 9).rows) * each <= 1000 < (len(many(100, 9).rows) + 1) * each
    assert many(3, 9).rows == [0, 1, 2]
    data = many(100, 2).data()
    assert (len(data["texts"]), data["of"]) == (10, 100)


def test_of_a_long_text_the_beginning_is_held_and_the_rest_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances_module, "LONGEST", 3)
    (text,) = many(1, 5).data()["texts"]
    assert (text["text"], text["cut"], text["gaps"], len(text["numbers"][0])) == ("x x x", 2, [0, 1, 1, 1, 1, 1], 3)


def test_words_within_sentences_are_held_too() -> None:
    words = WordWeights(
        spans=torch.tensor([[0, 1], [2, 3]]),
        weights=torch.tensor([0.25, 0.75]).double(),
        sentences=torch.tensor([0, 0]),
    )
    held = Instances(**{**vars(many(1, 2)), "within": {0: words}}).data()["texts"][0]["within"]
    assert held == {"gaps": [0, 1, 1, 1], "numbers": [250, 750], "shades": [333, 1000]}


def test_a_vocabulary_is_held_as_columns_the_most_frequent_first() -> None:
    data = Vocabulary(table=TOKENS, classes=["glad"]).data()
    assert (data["of"], data["classes"]) == (5, ["glad"])
    assert data["tokens"][:3] == ["the", "good", "bad"]
    assert data["count"] == [99, 10, 9, 1, 1]
    assert data["attention"] == [-1000, 1500, 1250, 0, 250]
    assert data["polarity"] == [[125, 2000, -3000, 500, -500]]
    names = [group["name"] for group in data["groups"]]
    assert [names[group] for group in data["group"]] == ["neutral", "positive", "negative", "none", "none"]
    assert names[-1] == "none"


def test_of_a_large_vocabulary_the_most_frequent_tokens_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Vocabulary(table=TOKENS, classes=["glad"], most=2).data()["tokens"] == ["the", "good"]
    monkeypatch.setattr(vocabulary_module, "MOST_NUMBERS", 6)
    several = TOKENS.rename(columns={"polarity": "polarity_a"}).assign(polarity_b=0.0, polarity_c=1.0)
    data = Vocabulary(table=several, classes=list("abc")).data()
    assert (data["tokens"], data["of"], len(data["polarity"])) == (["the", "good"], 5, 3)


def test_what_is_no_table_of_tokens_is_refused() -> None:
    with pytest.raises(InputError, match="needs token scores; there is no polarity"):
        Vocabulary(table=TOKENS.drop(columns="polarity"), classes=[])
    with pytest.raises(InputError, match=r"there is no \['attention'\]"):
        Vocabulary(table=TOKENS.drop(columns="attention"), classes=[])


def test_of_two_classes_tokens_push_towards_the_second() -> None:
    assert towards(["a", "b"]) == ["b"]
    assert towards(list("abc")) == list("abc")


def test_no_markup_begins_in_what_is_held() -> None:
    page = render_html(made_page())
    assert SCRIPT not in page
    assert page.count("\\u003cscript\\u003ealert(1)\\u003c/script\\u003e") >= 3


def test_a_table_holds_the_numbers_behind_it() -> None:
    page = render_html(made_page())
    begin = page.index('<script type="application/json" class="csv">') + len(
        '<script type="application/json" class="csv">'
    )
    content = json.loads(page[begin : page.index("</script>", begin)])
    assert pd.read_csv(io.StringIO(content))["share"].tolist()[:2] == [0.095, 0.1]
