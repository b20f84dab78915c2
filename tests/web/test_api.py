"""What the API answers: the numbers of `heedful.studies`, and numbers by hand."""

from typing import Any

import pytest
import torch

import heedful
from heedful.analysis.erasure import erase
from heedful.studies.attack import KINDS, Kind, attack_text
from heedful.studies.explain import RANKINGS, erase_text, explain
from heedful.web import forms
from heedful.web.asking import MOST_ALONE, ServedSubject
from heedful.web.served import LOOKS, ServedRun
from tests.web.conftest import WORDS, Answer, Site


def said(answer: Answer) -> Any:
    assert answer.status == 200, answer.body
    return answer.json


def rounded(value: Any) -> Any:
    """Nested plain data with numbers that may differ where a matrix product rounds differently at another place."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return pytest.approx(value, abs=1e-12) if isinstance(value, float) else value


def test_explain_says_what_the_command_says(site: Site, models: list[ServedRun], text: str) -> None:
    for one in models:
        told = said(site.post("explain", text=text, model=one.name))
        assert told == rounded({"model": one.name, "unit": "word", **explain(one.run.model(), text).summary()})
        forms.Explained.model_validate(told)


def test_without_a_name_the_first_model_is_asked(site: Site, models: list[ServedRun], text: str) -> None:
    assert said(site.post("explain", text=text))["model"] == models[0].name


def test_a_long_text_is_explained_in_a_thread_with_the_same_numbers(
    site: Site, models: list[ServedRun], text: str
) -> None:
    long = " ".join([text] * 50)
    assert len(long) > 2_000
    assert said(site.post("explain", text=long))["tokens"] == rounded(
        explain(models[0].model, long).summary()["tokens"]
    )


def test_marked_positions_are_erased_exactly(site: Site, models: list[ServedRun], text: str) -> None:
    trace = heedful.trace(models[0].run.model(), text)
    for positions in ([0], [1, 4, 2], list(range(len(trace.attention_weights)))):
        told = said(site.post("erase", text=text, positions=positions, rankings=[]))
        after = erase(trace, 0, positions).softmax(0)
        assert list(told["after"]["probabilities"].values()) == pytest.approx(after.tolist(), abs=1e-12)
        assert told["after"]["positions"] == sorted(positions)
        assert told["after"]["flipped"] == (told["after"]["predicted"] != told["predicted"])
        assert told["rankings"] == []


def test_two_units_by_hand() -> None:
    """α = (¼, ¾), z = (8, −4) for the second class: 2 − 3 = −1 before, 8 and −4 alone, a tie without both."""
    from heedful.web.served import _after

    trace = heedful.Trace.from_arrays(
        offsets=[0, 2], attention_weights=[0.25, 0.75], polarity_scores=[8, -4], bias=[0], class_names=["no", "yes"]
    )
    assert trace.logits.tolist() == [[0, -1]]
    for positions, logit, predicted in (([], -1, "no"), ([1], 8, "yes"), ([0], -4, "no"), ([0, 1], 0, "no")):
        after = _after(trace, positions)
        assert after["probabilities"]["yes"] == pytest.approx(
            float(torch.tensor(logit, dtype=torch.float64).sigmoid()), abs=1e-15
        )
        assert (after["predicted"], after["flipped"]) == (predicted, predicted == "yes")


def test_the_courses_are_those_of_the_command_and_curves_are_plain_erasure(
    site: Site, models: list[ServedRun], text: str
) -> None:
    told, wanted = (
        said(site.post("erase", text=text, seed=3)),
        erase_text(models[0].run.model(), text, seed=3).summary(),
    )
    forms.Erased.model_validate(told)
    assert [course["ranking"] for course in told["rankings"]] == list(RANKINGS)
    for course, own in zip(told["rankings"], wanted["rankings"], strict=True):
        assert {name: course[name] for name in own} == rounded(own)
    assert told["minimum"] == wanted["minimum"]
    trace, course = heedful.trace(models[0].run.model(), text), told["rankings"][1]
    assert course["curve"]["erased"] == list(range(len(course["order"]) + 1))
    decision = int(trace.predictions[0])
    logits = [erase(trace, 0, course["order"][:size]) for size in course["curve"]["erased"]]
    shares = [float(one.softmax(0)[decision]) for one in logits]
    assert course["curve"]["probability"] == pytest.approx(shares, abs=1e-12)
    assert course["curve"]["flipped"] == [int(one.argmax()) != decision for one in logits]


def test_of_a_long_text_a_curve_has_a_few_places(site: Site, text: str) -> None:
    told = said(site.post("erase", text=" ".join([text] * 20), rankings=["margin"]))
    (course,) = told["rankings"]
    assert LOOKS + 1 <= len(course["curve"]["erased"]) == len(course["curve"]["probability"]) <= LOOKS + 2
    assert course["erased"] == next(
        size for size, other in zip(course["curve"]["erased"], course["curve"]["flipped"], strict=True) if other
    )
    assert course["curve"]["erased"][-1] == len(course["order"])


def test_the_smallest_set_flips_and_is_that_of_the_trace(site: Site, models: list[ServedRun], text: str) -> None:
    told = said(site.post("minimum", text=text))
    forms.Minimum.model_validate(told)
    row = heedful.minimum_flips(heedful.trace(models[0].run.model(), text)).iloc[0]
    assert told["positions"] == row["positions"]
    assert told["verified"] is True
    assert told["after"]["flipped"] is True
    erased = said(site.post("erase", text=text, positions=told["positions"], rankings=[]))
    assert erased["after"] == rounded(told["after"])


@pytest.mark.parametrize("without_top", [0, 1])
def test_another_attention_is_that_of_the_command(
    site: Site, models: list[ServedRun], text: str, without_top: int
) -> None:
    asked = Kind.asked(0.0, 0.0, without_top)
    told = said(site.post("adversary", text=text, without_top=without_top, seed=5, shuffles=20))
    wanted = attack_text(models[0].run.model(), text, asked=asked, seed=5, shuffles=20).summary()
    assert told == rounded({"model": models[0].name, **wanted})
    forms.Adversary.model_validate(told)
    assert without_top or told["asked"]["words"] == KINDS["same"].words


def test_other_weights_give_the_same_probabilities(site: Site, text: str) -> None:
    told = said(site.post("adversary", text=text))
    assert sum(unit["other_weight"] for unit in told["units"]) == pytest.approx(1)
    assert told["other_probabilities"] == pytest.approx(told["probabilities"], abs=1e-12)
    assert 0 < told["jsd"] <= 0.6932


def test_runs_say_what_is_served_and_give_real_texts(site: Site, models: list[ServedRun]) -> None:
    told = said(site.get("/api/v1/runs"))
    forms.Runs.model_validate(told)
    assert [one["name"] for one in told["runs"]] == [one.name for one in models]
    assert told["limits"] == {"words": WORDS, "body_bytes": 262144}
    texts = heedful.load_corpus(models[0].run.settings.data.source).test.texts
    assert len(told["runs"][0]["examples"]) == 3
    assert all(example["text"] in texts for example in told["runs"][0]["examples"])


def test_tokens_are_found_sorted_and_cut(site: Site, models: list[ServedRun]) -> None:
    table = models[0].run.table("tokens")
    told = said(site.get("/api/v1/tokens?by=attention&limit=3&offset=1"))
    forms.TokenTable.model_validate(told)
    order = table.sort_values(["attention", "token"], ascending=False)
    assert told["total"] == len(table)
    assert [row["token"] for row in told["rows"]] == order["token"].iloc[1:4].tolist()
    assert [row["attention"] for row in told["rows"]] == order["attention"].iloc[1:4].tolist()
    some = str(order["token"].iloc[0])
    found = said(site.get(f"/api/v1/tokens?find={some.upper()}&by=token&descending=false"))
    assert some in [row["token"] for row in found["rows"]]
    assert all(some in row["token"] for row in found["rows"])
    assert "Known: " in site.get("/api/v1/tokens?by=nothing").error


def test_what_cannot_be_used_is_said(site: Site) -> None:
    refused = {
        "A text needs at least one word; this one has none.": site.post("explain", text=" \n "),
        "There is no model 'x'": site.post("explain", text="good", model="x"),
        "The text has the positions 0 to 1; 2 is none of them.": site.post("erase", text="one two", positions=[2]),
        "rankings.0: Input should be": site.post("erase", text="one", rankings=["magic"]),
        "There is no ranking 'alone'": site.post("erase", text="one", rankings=["alone"]),
        "epsilon: Input should be less than 1": site.post("adversary", text="one two", epsilon=1),
        "text: Field required.": site.post("minimum"),
        "nothing: Extra inputs": site.post("minimum", text="one", nothing=1),
        "The body is no JSON.": site.send("POST", "/api/v1/explain", b"{", content_type="application/json"),
        "Not Found.": site.get("/api/v1/nothing"),
        "Method Not Allowed.": site.get("/api/v1/explain"),
    }
    for sentence, answer in refused.items():
        assert answer.error.startswith(sentence)
    assert [answer.status for answer in refused.values()] == [422, 404, *[422] * 7, 404, 405]


def test_a_half_character_is_refused_and_not_a_fault(site: Site) -> None:
    told = site.send("POST", "/api/v1/explain", b'{"text": "good \\ud800 film"}', content_type="application/json")
    assert (told.status, told.error[:36]) == (422, "text: Input should be a valid string")


def test_the_description_knows_every_path(site: Site) -> None:
    described = said(site.get("/api/v1/openapi.json"))
    assert sorted(described["paths"]) == [
        f"/api/v1/{name}" for name in ("adversary", "erase", "explain", "minimum", "runs", "tokens")
    ]


def finds_good(texts: list[str]) -> list[float]:
    return [0.75 if "good" in text else 0.25 for text in texts]


def asked_about() -> ServedSubject:
    own = heedful.subject(finds_good, class_names=["no", "yes"])
    return ServedSubject(name="finds good", title="finds good", words=MOST_ALONE + 50, subject=own)


def test_another_classifier_is_asked_and_says_what_it_does_not_have() -> None:
    one = asked_about()
    told = one.explain("a good film", lambda: None)
    assert told["probabilities"] == {"no": 0.25, "yes": 0.75}
    assert [token["alone"] for token in told["tokens"]] == [0.0, 0.5, 0.0]
    forms.Explained.model_validate(told)
    erased = one.erase("a good film", [1, 2], ["alone", "random"], 0, lambda: None)
    forms.Erased.model_validate(erased)
    assert erased["after"] == {
        "positions": [1, 2],
        "erased": 2,
        "predicted": "no",
        "flipped": True,
        "probabilities": {"no": 0.75, "yes": 0.25},
    }
    course = erased["rankings"][0]
    assert (course["order"], course["erased"], course["flipped_to"]) == ([1, 0, 2], 1, "no")
    assert course["curve"] == {
        "erased": [0, 1, 2, 3],
        "probability": [0.75, 0.25, 0.25, 0.25],
        "flipped": [False, True, True, True],
    }
    with pytest.raises(heedful.HeedfulError, match="smallest set is known only where"):
        one.minimum("a good film")
    assert set(one.summary()["missing"]) == {"attention", "minimum", "adversary", "tokens"}


def test_of_very_many_units_none_is_asked_about_alone() -> None:
    told = asked_about().explain(" ".join(["good"] * (MOST_ALONE + 1)), lambda: None)
    assert {token["alone"] for token in told["tokens"]} == {None}
