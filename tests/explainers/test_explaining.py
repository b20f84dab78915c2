"""`heedful.explain`: what it takes, what it answers, what it refuses, and its command line."""

import importlib.util
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.analysis.rankings import RANKINGS, importance, ranked
from heedful.errors import InputError, MissingExtra, UnknownName
from heedful.explainers import EXPLAINERS, Explainer, explain_all, find_explainer, possible, reading_of
from heedful.explainers.registry import explainer_cards
from heedful.models.classifier import Classifier
from heedful.subjects import Reading
from heedful.text.corpus import Corpus
from tests.adapters.test_modules import TEXTS as WORDS
from tests.adapters.test_modules import a_subject
from tests.commands import Call
from tests.covering import covers
from tests.oracles.random_traces import random_trace

TEXTS = ["a good film", "dull", "good good dull"]
PAGE = (Path(__file__).parents[2] / "docs" / "explainers.md").read_text(encoding="utf-8")
ASKING = ["random", "leave_one_out", "occlusion", "lime", "shapley", "kernel_shap"]


def say(texts: Sequence[str]) -> list[float]:
    return [0.5 + 0.1 * text.count("good") - 0.2 * text.count("dull") for text in texts]


def a_reading() -> Reading:
    return heedful.subject(say).read(TEXTS)


@covers(explainer=("gradient", "product", "polarity", "margin"))
@pytest.mark.parametrize("by", RANKINGS)
def test_every_ranking_of_a_trace_is_an_explanation(by: str) -> None:
    trace = random_trace(1, instances=20, longest=9)
    found = heedful.explain(trace, by=by, seed=4)
    assert torch.equal(found.scores, importance(trace, by, seed=4))
    assert torch.equal(found.order, ranked(trace, by, seed=4))
    assert torch.equal(found.targets, trace.predictions)
    assert (found.method, found.passes) == (by, 0)
    assert found.signed == (by not in ("attention", "random"))


def test_rankings_explain_the_decision_and_no_other_class() -> None:
    trace = random_trace(1, instances=5, longest=9)
    others = (trace.predictions + 1) % len(trace.class_names)
    assert torch.equal(heedful.explain(trace, targets=others).scores, trace.attention_weights)
    with pytest.raises(InputError, match=r"'margin' explains the decision of each text, no other class: leave targets"):
        heedful.explain(trace, by="margin", targets=others)
    with pytest.raises(InputError, match=r"A trace has one attention: ask for 'attention' alone"):
        heedful.explain(trace, by="attention@0")


def test_what_can_be_had_depends_on_what_is_read(small_model: Classifier, small_corpus: Corpus) -> None:
    trace = random_trace(1, instances=3, longest=5)
    own = heedful.subject(small_model).read(list(small_corpus.test.texts[:3]))
    rankings = ["attention", "gradient", "product", "polarity", "margin"]
    gradients = ["input_gradient", "gradient_norm", "integrated_gradients"]
    known = list(EXPLAINERS)
    assert possible(a_reading()) == ASKING
    asked = heedful.explain(trace, by="leave_one_out")
    assert asked.passes == len(asked.scores)
    assert possible(own) == sorted([*rankings, *gradients, *ASKING], key=known.index)
    assert possible(a_subject().read(WORDS)) == possible(own)
    assert possible(a_subject(parts=None).read(WORDS)) == sorted([*gradients, *ASKING], key=known.index)


def test_all_that_can_be_had_at_once_with_progress() -> None:
    calls: list[int] = []

    def counting(texts: Sequence[str]) -> list[float]:
        calls.append(len(texts))
        return say(texts)

    reading, told = heedful.subject(counting).read(TEXTS), []
    found = explain_all(reading, watch=lambda *seen: told.append(seen))
    assert [one.method for one in found] == ASKING
    assert told == [(done + 1, 6, name) for done, name in enumerate(ASKING)]
    sets = sum(2**count for count in (3, 1, 3))
    assert sum(calls[2:]) <= sets + len(calls)  # each set once, whoever asks
    for one in found[1:]:
        alone = heedful.explain(a_reading(), by=one.method)
        assert torch.equal(alone.scores, one.scores)
        assert alone.passes == one.passes
        assert one.seconds is not None
        assert one.seconds > 0


def test_what_cannot_be_had_is_said_before_anything_is_paid_for() -> None:
    asked: list[int] = []

    def counting(texts: Sequence[str]) -> list[float]:
        asked.append(len(texts))
        return say(texts)

    reading = heedful.subject(counting).read(["a good film"])
    reading.probabilities  # noqa: B018
    asked.clear()
    with pytest.raises(InputError, match="'deep_lift' cannot be had here: it needs a torch module"):
        explain_all(reading, ["leave_one_out", "deep_lift"])
    assert asked == []


def test_classes_are_named_or_numbered_for_all_texts_or_each() -> None:
    reading = a_reading()
    given: list[Any] = ["1", 1, ["1", "1", 1], torch.tensor([1, 1, 1]), np.int64(1), np.array([1, 1, 1])]
    given.append([np.int64(1), "1", 1])
    assert all(heedful.explain(reading, by="random", targets=one).targets.tolist() == [1, 1, 1] for one in given)
    usual = heedful.explain(heedful.subject(say), TEXTS, by="random")
    assert torch.equal(usual.targets, reading.decisions)
    with pytest.raises(UnknownName, match=r"There is no class '2'\. .*Known: 0, 1\."):
        heedful.explain(reading, targets=2, by="random")
    with pytest.raises(InputError, match=r"one class for all texts, or one for each of 3; got 2\."):
        heedful.explain(reading, targets=[0, 1], by="random")


def test_options_stand_in_the_name_or_beside_it() -> None:
    reading = a_reading()
    first, second = heedful.explain(reading, by="lime@60"), heedful.explain(reading, by="lime", samples=60)
    assert torch.equal(first.scores, second.scores)
    assert first.method == second.method == "lime@60"
    assert find_explainer("attention@2.5").options == {"layer": 2, "head": 5}
    assert find_explainer("attention@2.5").name == "attention@2.5"
    assert find_explainer(EXPLAINERS["lime"]) is EXPLAINERS["lime"]


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        ("lima", r"There is no explainer 'lima'\. Did you mean 'lime'\? Known: attention, .*value_zeroing\."),
        ("lima@3", r"There is no explainer 'lima'\. Did you mean 'lime'\?"),
        ("lime@many", r"'lime@many' must have whole numbers after @: lime@<samples>\."),
        ("attention@1.2.3", r"'attention@1\.2\.3' must have whole numbers after @: attention@<layer>\.<head>\."),
        ("attention@", r"must have whole numbers after @"),
        ("rollout@2", r"'rollout' takes nothing after @; got 'rollout@2'\."),
        ("rollout", r"'rollout' cannot be had here: it needs a classifier of the transformers library\."),
        (
            "margin",
            r"'margin' cannot be had here: it needs a trace, which heedful's own models have, and torch modules",
        ),
        ("attention", r"'attention' cannot be had here: it needs a trace, or a classifier of the transformers library"),
    ],
)
def test_what_cannot_be_had_is_said(by: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        heedful.explain(a_reading(), by=by)


def test_unknown_options_and_ways_are_refused() -> None:
    with pytest.raises(UnknownName, match=r"There is no option of 'lime' 'sample'\. Did you mean 'samples'\?"):
        heedful.explain(a_reading(), by="lime", sample=3)
    with pytest.raises(UnknownName, match=r"There is no way to take units away 'attention'"):
        heedful.explain(a_reading(), by="leave_one_out", how="attention")


def test_what_is_no_subject_and_texts_at_the_wrong_place_are_refused() -> None:
    with pytest.raises(InputError, match=r"a subject, a reading or a trace; got a function\. `heedful.subject` makes"):
        reading_of(say, TEXTS)
    with pytest.raises(InputError, match=r"say reads texts: heedful\.explain\(subject, texts\)\."):
        heedful.explain(heedful.subject(say))
    with pytest.raises(InputError, match=r"were read already: leave texts out\."):
        heedful.explain(a_reading(), TEXTS)
    assert len(heedful.explain(heedful.subject(say), "a good film", by="random")) == 1


def test_without_captum_the_user_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "captum", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"Explanations by lime need captum, .*pip install 'heedful\[captum\]'"):
        heedful.explain(a_reading(), by="lime")
    assert possible(a_reading()) == ["random", "leave_one_out"]
    assert EXPLAINERS["lime"].why_not(a_reading()) == (
        "it needs captum, which is not installed: pip install 'heedful[captum]'."
    )


def test_an_explainer_of_ones_own_is_taken() -> None:
    kept = EXPLAINERS["random"]
    own = Explainer(
        name="flat",
        words="Nothing at all.",
        formula="0",
        source="–",
        signed=False,
        family="chance",
        needs="any model",
        scores=kept.scores,
    )
    assert heedful.explain(a_reading(), by=own).method == "flat"


def test_explanations_go_into_the_faithfulness_suite() -> None:
    reading = a_reading()
    found = heedful.faithfulness(reading, explain_all(reading), ["comprehensiveness", "passes"])
    assert found.table["method"].unique().tolist() == ASKING


def test_the_command_line_lists_explainers(call: Call) -> None:
    listed = json.loads(call("explainers", "list", "--json").out)
    assert [one["name"] for one in listed] == list(EXPLAINERS)
    lime = next(one for one in listed if one["name"] == "lime")
    assert (lime["signed"], lime["extra"], lime["options"], lime["also"]) == (
        True,
        "captum",
        ["samples"],
        "lime@<samples>",
    )
    lines = call("explainers", "list").out.splitlines()
    assert len(lines) == len(EXPLAINERS)
    assert all(one.words in line for one, line in zip(EXPLAINERS.values(), lines, strict=True))
    assert any(line.endswith("(any model, captum)") for line in lines)


def test_the_command_line_shows_one(call: Call) -> None:
    said = call("explainers", "show", "rollout").out
    assert "Abnar & Zuidema 2020" in said
    assert "signed    no" in said
    assert json.loads(call("explainers", "show", "rollout", "--json").out)["family"] == "attention"
    wrong = call("explainers", "show", "rolout")
    assert wrong.code == 1
    assert "Did you mean 'rollout'?" in wrong.err


def test_every_explainer_says_what_it_is() -> None:
    for name, one in EXPLAINERS.items():
        assert one.name == name
        assert one.words.endswith(".")
        assert one.words.count(". ") == 0
        assert one.formula
        assert one.source
        assert one.needs
        assert set(one.at) <= set(one.known_options)


def test_the_page_of_explainers_has_their_cards() -> None:
    """Its last part is what explainer_cards() says."""
    _, cards = PAGE.split("## Explainers one by one\n\n")
    assert cards == explainer_cards()


def test_the_code_of_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(code, "explainers.md", "exec"), found)
    assert found["one"].scores.tolist() == pytest.approx([0, 0.7, 0, 0, 0])
    values = found["found"].wide().loc["aopc ↑"]
    assert values["mine"] == values["leave_one_out"] == pytest.approx(0.35)
    assert torch.equal(found["again"].scores, found["one"].scores)
    assert found["theirs"].shown == ["A", "good", "film", "Du", "ll", "!"]
