"""First looks: reprs of a line, never the data; HTML in which text is only text."""

import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from heedful.models.classifier import Classifier
from heedful.notebook import counted, listed, pairs, panel, sentences, short, strip, table
from heedful.text.corpus import Corpus, build_corpus
from heedful.text.tokenize import Tokenizer
from heedful.traces import Trace
from heedful.training.loop import fit

EVIL = "<script>alert('1')</script>"


@pytest.fixture(scope="module")
def tiny() -> Corpus:
    """Six, two and one texts of two classes, with names and notices that would be markup."""
    rows = (["good film", "bad film", "good", "bad", "fine plot", EVIL], [1, 0, 1, 0, 1, 0])
    return build_corpus(
        name="<b>tiny",
        splits={"train": rows, "dev": (["good", "bad bad"], [1, 0]), "test": (["bad"], [0])},
        class_names=["<i>no", "yes"],
        tokenizer=Tokenizer("whitespace"),
        notices=["a <u>notice"],
    )


@pytest.fixture(scope="module")
def model(tiny: Corpus) -> Classifier:
    return fit(tiny, embedding_size=4, epochs=3)


def hand(**changes: Any) -> Trace:
    values: dict[str, Any] = {
        "offsets": [0, 2, 3],
        "attention_weights": [0.25, 0.75, 1.0],
        "polarity_scores": [4, -8, 1],
        "bias": [0],
        "units": ["good", EVIL, "fine"],
        "class_names": ["no", "yes"],
        "labels": [1, 1],
    }
    return Trace.from_arrays(**(values | changes))


def tags_of(page: str) -> set[str]:
    return set(re.findall(r"</?([a-zA-Z]+)", page))


def test_a_corpus_is_one_line(tiny: Corpus) -> None:
    assert repr(tiny) == "Corpus(<b>tiny: 6 train, 2 dev, 1 test texts; classes <i>no, yes; 7 tokens; 1 notice)"
    assert repr(tiny.dev) == "Split(2 texts, 3 tokens)"
    assert repr(tiny.test) == "Split(1 text, 1 token)"


def test_a_large_corpus_is_one_line_too(small_corpus: Corpus) -> None:
    assert len(repr(small_corpus)) < 150


def test_a_model_is_one_line(model: Classifier) -> None:
    best = model.history["dev_accuracy"].max()
    assert repr(model) == (
        "FlatClassifier(attention=dot, encoder=none, λ=10, 7 tokens, classes <i>no, yes; "
        f"3 epochs, best dev accuracy {best:.3f})"
    )
    assert repr(model.interface) == "Interface(7 tokens, classes <i>no, yes)"
    untrained = type(model)(model.interface, model.settings, torch.Generator())
    assert repr(untrained).endswith("; no history of training)")


def test_a_trace_is_one_line() -> None:
    assert repr(hand()) == "Trace(2 instances, 3 units, classes no, yes; labelled)"
    assert repr(hand(labels=None)) == "Trace(2 instances, 3 units, classes no, yes; no labels)"


def test_a_corpus_in_a_notebook(tiny: Corpus) -> None:
    page = tiny._repr_html_()
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", page)
    assert cells[:5] == ["split", "texts", "&lt;i&gt;no", "yes", "mean length"]
    assert cells[5:] == ["train", "6", "3", "3", "1.5", "dev", "2", "1", "1", "1.5", "test", "1", "1", "0", "1.0"]
    assert "<li>a &lt;u&gt;notice</li>" in page
    assert tags_of(page) == {"div", "strong", "table", "tr", "th", "td", "ul", "li"}


def test_many_classes_are_counted_together() -> None:
    names = [f"c{number}" for number in range(20)]
    rows = ([f"word {number}" for number in range(40)], [number % 20 for number in range(40)])
    many = build_corpus(
        name="many", splits=dict.fromkeys(("train", "dev", "test"), rows), class_names=names, tokenizer=Tokenizer()
    )
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", many._repr_html_())
    assert cells[:11] == ["split", "texts", *names[:7], "13 other classes", "mean length"]
    assert cells[11:22] == ["train", "40", *["2"] * 7, "26", "2.0"]
    assert "classes c0, c1, c2, c3, c4, c5 and 14 more;" in repr(many)


def test_a_model_in_a_notebook(model: Classifier) -> None:
    page = model._repr_html_()
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page)
    facts = dict(zip(cells[::2], cells[1::2], strict=True))
    assert facts["attention"] == "dot, λ = 10"
    assert facts["classes"] == "&lt;i&gt;no, yes"
    assert facts["parameters"] == "36"  # 7 tokens of 4 numbers, V and W
    assert facts["training"].startswith("3 epochs, best dev accuracy ")
    assert tags_of(page) == {"div", "strong", "table", "tr", "td"}


def test_a_trace_in_a_notebook() -> None:
    page = hand()._repr_html_()
    assert "Trace: 2 instances, 3 units, classes no, yes; accuracy 0.500" in page
    assert "instance 0: predicted no (99.3%), label yes" in page  # 1 / (1 + exp(-5))
    assert 'style="background:rgba(230,159,0,0.33)" title="0.2500">good<' in page
    assert (
        'style="background:rgba(230,159,0,1.00)" title="0.7500">&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;<'
        in page
    )
    assert tags_of(page) == {"div", "strong", "small", "br", "span"}


def test_a_trace_without_units_shows_positions_and_a_long_one_its_beginning() -> None:
    assert ">0</span>" in hand(units=None)._repr_html_()
    page = Trace.from_arrays(
        offsets=range(0, 1001, 100), attention_scores=[0.0] * 1000, polarity_scores=[1.0] * 1000, bias=[0]
    )._repr_html_()
    assert page.count("instance ") == 3
    assert page.count("title=") == 3 * 40
    assert page.count("… 60 units more") == 3
    assert len(page) < 20_000


def test_a_units_shade_is_relative_to_the_largest_weight_even_of_one_not_shown() -> None:
    page = strip("heading", ["a"] * 50, [0.01] * 49 + [0.51])
    assert page.count("rgba(230,159,0,0.02)") == 40


def test_everything_given_is_escaped() -> None:
    pages = [
        panel(EVIL),
        table([EVIL], [[EVIL]]),
        pairs({EVIL: EVIL}),
        sentences([EVIL]),
        strip(EVIL, [EVIL], [1.0]),
    ]
    for page in pages:
        assert "<script" not in page
        assert "&lt;script&gt;" in page


def test_what_a_notebook_cannot_hold_is_replaced() -> None:
    made = strip("half \ud83d", ["half \ud83d"], [1.0])
    assert made.count("half ?") == 2
    assert made.encode().decode() == made


def test_names_are_short_and_in_one_line() -> None:
    assert short("two\nlines\x1b[31m") == "two lines [31m"
    assert short("x" * 100) == "x" * 29 + "…"
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"
    assert (counted(1, "text"), counted(2000, "text")) == ("1 text", "2,000 texts")


def test_no_notice_is_no_list(tiny: Corpus) -> None:
    assert "<ul" not in replace(tiny, notices=())._repr_html_()
    assert "notice" not in repr(replace(tiny, notices=()))
