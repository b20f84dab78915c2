"""First looks: reprs of a line, never the data; HTML in which text is only text."""

import pickle
import re
from dataclasses import replace
from html import escape
from io import StringIO
from typing import Any, cast

import pandas as pd
import pytest
import torch
from matplotlib import pyplot
from rich.console import Console

import heedful
from heedful.claims import Verdicts, judge
from heedful.models.classifier import Classifier
from heedful.notebook import AMBER, GREEN, PURPLE, Grid, Strip, View, counted, listed, short
from heedful.studies.audit import Audit
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
    assert "<div>a &lt;u&gt;notice</div>" in page
    assert tags_of(page) == {"div", "strong", "table", "tr", "th", "td"}


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
    assert 'style="background:rgba(230,159,0,0.33)" title="0.25">good<' in page
    assert (
        'style="background:rgba(230,159,0,1.00)" title="0.75">&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;<'
        in page
    )
    assert tags_of(page) == {"div", "strong", "small", "br", "span"}


def test_a_trace_without_units_shows_positions_and_a_long_one_its_beginning() -> None:
    assert ">0</span>" in hand(units=None)._repr_html_()
    page = Trace.from_arrays(
        offsets=range(0, 1001, 100), attention_scores=[0.0] * 1000, polarity_scores=[1.0] * 1000, bias=[0]
    )._repr_html_()
    assert page.count("instance ") == 3
    assert page.count("title=") == 2 * 3 * 40
    assert page.count("… 60 units more") == 2 * 3
    assert len(page) < 30_000


def of_strip(**changes: Any) -> View:
    values: dict[str, Any] = {"heading": "heading", "units": ["a", "b"], "values": [1.0, -0.5], **changes}
    return View(title="title", parts=[Strip(**values)])


def test_a_units_shade_is_relative_to_the_largest_size_even_of_one_not_shown() -> None:
    page = of_strip(units=["a"] * 50, values=[0.01] * 49 + [0.51]).html()
    assert page.count("rgba(230,159,0,0.02)") == 40


def test_what_speaks_against_is_purple_where_signs_mean_something_and_white_elsewhere() -> None:
    signed, unsigned = (of_strip(signed=signs) for signs in (True, False))
    assert "rgba(0,158,115,1.00)" in signed.html()
    assert "rgba(204,121,167,0.50)" in signed.html()
    assert "rgba(230,159,0,1.00)" in unsigned.html()
    assert "rgba(230,159,0,0.00)" in unsigned.html()


def test_the_colours_are_those_of_the_figures() -> None:
    from heedful.figures.style import ATTENDED, AWAY, TOWARDS, mixed

    assert [mixed(colour, 1.0) for colour in (ATTENDED, TOWARDS, AWAY)] == [AMBER, GREEN, PURPLE]


def test_numbers_stand_on_the_right() -> None:
    grid = Grid(header=["name", "number", "words"], rows=[["a", "1.5", "–"], ["b", "–", "yes"]])
    assert grid.sides == ["left", "right", "left"]


def test_everything_given_is_escaped() -> None:
    parts: list[Grid | Strip] = [
        Grid(header=[EVIL], rows=[[EVIL]]),
        Grid.pairs({EVIL: EVIL}),
        Strip(heading=EVIL, units=[EVIL], values=[1.0]),
    ]
    view = View(title=EVIL, sentences=[EVIL], parts=parts)
    for page in (view.html(), view.page()):
        assert "<script" not in page
        assert page.count("&lt;script&gt;") == 8 + (page == view.page())


def test_a_page_loads_and_runs_nothing() -> None:
    page = of_strip().page()
    assert page.startswith('<!doctype html>\n<html lang="en"><head><meta charset="utf-8">')
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page
    assert not re.search(r"<script|<link|<img|https?:|url\(| on\w+=", page)


def test_what_a_notebook_cannot_hold_is_replaced() -> None:
    made = of_strip(heading="half \ud83d", units=["half \ud83d"], values=[1.0])
    assert made.html().count("half ?") == 2
    assert made.html().encode().decode() == made.html()
    assert shown(made).encode().decode().count("half ") == 2


def shown(view: Any, *, colours: bool = False) -> str:
    """What a terminal of 100 columns shows."""
    console = Console(width=100, force_terminal=colours, color_system="truecolor" if colours else None, file=StringIO())
    console.print(view)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_a_view_on_a_terminal() -> None:
    grid = Grid(header=["name", "number"], rows=[[f"row {place}", str(place)] for place in range(32)])
    strip = Strip(heading="used", units=["good", "film"], values=[1.0, -0.5], signed=True)
    view = View(title="A title", sentences=["Said."], parts=[grid, strip])
    lines = shown(view.rich()).splitlines()
    assert [line.rstrip() for line in lines[:4]] == [
        "A title",
        "Said.",
        "name           number",
        "row 0               0",
    ]
    assert [line.rstrip() for line in lines[-3:]] == ["… 2 rows more", "used", "good film"]
    assert "\x1b[30;48;2;0;158;115mgood" in shown(view.rich(), colours=True)


def test_texts_cannot_steer_a_terminal() -> None:
    evil = "a\x1b[2Jb\u202ec [bold]d"
    made = View(title=evil, sentences=[evil], parts=[Grid.pairs({evil: evil}), of_strip(units=[evil]).parts[0]])
    assert not {"\x1b", "\u202e"} & set(shown(made.rich()))
    assert shown(made.rich()).count("[bold]d") == 5


@pytest.fixture(scope="module")
def values(tiny: Corpus, model: Classifier) -> dict[str, Any]:
    """One of each kind that has a view."""
    trace = hand(labels=None)
    table = {"outcomes": pd.DataFrame({"label": [0, 1] * 20, "decision": [0, 1] * 20})}
    said = [heedful.explain(trace, by=name) for name in ("attention", "product")]
    verdicts = judge(("M1",), table)
    return {
        "corpus": tiny,
        "model": model,
        "trace": trace,
        "explanation": said[1],
        "faithfulness": heedful.faithfulness(trace, said, ["flip_fraction", "aopc"]),
        "verdict": verdicts[0],
        "verdicts": verdicts,
        "token scores": heedful.token_scores(model, tiny),
        "adversary": heedful.adversarial_attention(trace),
        "shuffles": heedful.permutation_test(trace, shuffles=5),
        "flips": heedful.first_flips(trace),
        "smallest sets": heedful.minimum_flips(trace),
    }


KINDS = ["corpus", "model", "trace", "explanation", "faithfulness", "verdict", "verdicts", "token scores"]
KINDS += ["adversary", "shuffles", "flips", "smallest sets"]


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_has_a_view_is_shown_in_every_way(values: dict[str, Any], kind: str) -> None:
    value = values[kind]
    title = value.view.title
    element, page = value._repr_html_(), value.to_html()
    assert escape(title) in element
    assert element in page
    assert not re.search(r"<(script|i|b|u)\b", page)
    assert title[:40] in shown(value.__rich__())
    canvas, given = pyplot.subplots()
    own = value.plot()
    assert value.plot(ax=given) is given
    for axes in (own, given):
        assert axes.has_data()
        axes.figure.canvas.draw()
    assert own.figure is not canvas
    pyplot.close("all")


def test_what_has_no_picture_says_so() -> None:
    with pytest.raises(heedful.HeedfulError, match="nothing to draw of 'title'"):
        of_strip().plot()


def test_what_is_drawn_of_a_trace() -> None:
    axes = hand().plot()
    widths = [bar.get_width() for bar in cast(Any, axes.patches)]
    assert widths == pytest.approx([0.25, 0.75, -1 / 7, 6 / 7])  # α, then α·z = ∓1, 6 against what there is of it
    other = hand().plot(instance=1)
    assert [label.get_text() for label in other.get_yticklabels()] == ["fine"]
    pyplot.close("all")


def test_what_is_drawn_of_explanations_and_verdicts(values: dict[str, Any]) -> None:
    drawn = values["explanation"].plot()
    explanation: heedful.Explanation = values["explanation"]
    assert [bar.get_width() for bar in drawn.patches] == explanation.scores[:2].tolist()
    verdicts: Verdicts = values["verdicts"]
    found = verdicts[0].estimate
    assert found is not None
    points: Any = verdicts.plot().collections[-1].get_offsets()
    low, high = verdicts[0].span
    assert points[0][0] == pytest.approx((found.value - low) / (high - low))
    pyplot.close("all")


def test_a_table_with_a_view_is_a_table_and_what_is_computed_from_it_is_a_plain_one(values: dict[str, Any]) -> None:
    table = values["token scores"]
    assert isinstance(table, pd.DataFrame)
    assert type(table[table["count"] > 1]) is type(table.copy()) is pd.DataFrame
    assert table.to_html(index=False).startswith("<table")
    assert table.plot(x="polarity", y="attention", kind="scatter").get_xlabel() == "polarity"
    assert table.plot.scatter("polarity", "attention").get_ylabel() == "attention"
    pd.testing.assert_frame_equal(table, pd.DataFrame(table))
    pd.testing.assert_frame_equal(pd.DataFrame(table), table)
    assert pickle.loads(pickle.dumps(table)).view.title == table.view.title
    pyplot.close("all")


def test_names_are_short_and_in_one_line() -> None:
    assert short("two\nlines\x1b[31m") == "two lines [31m"
    assert short("x" * 100) == "x" * 29 + "…"
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"
    assert (counted(1, "text"), counted(2000, "text")) == ("1 text", "2,000 texts")


def test_no_notice_is_no_list(tiny: Corpus) -> None:
    assert "notice" not in replace(tiny, notices=())._repr_html_()
    assert "notice" not in repr(replace(tiny, notices=()))


def test_an_audit_shows_its_answer_in_a_notebook_and_as_html_its_report(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("audit"))
    texts = [f"{word} {EVIL} {number}" for number in range(12) for word in ("good", "bad")]
    corpus = heedful.load_corpus((texts, ["<b>yes", "<i>no"] * 12))
    settings = heedful.RunSettings().change({"model.embedding_size": 4, "training.epochs": 1})
    audit = heedful.audit(corpus, settings=settings, advice=False)
    assert isinstance(audit, Audit)
    element = audit._repr_html_()
    assert escape(audit.answer.headline) in element
    assert escape(str(audit.report)) in element
    assert tags_of(element) <= {"div", "strong", "table", "tr", "th", "td", "small"}
    assert audit.to_html() == audit.report.read_text(encoding="utf-8")
    assert len(audit.to_frame()) == len(audit.verdicts)
    assert "Not shown" in shown(audit)
    assert audit.plot().has_data()
    pyplot.close("all")
