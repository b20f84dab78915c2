"""The answer in worlds whose truth is known, and tables that count where it is wrong."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heedful.analysis.adversary import adversarial_attention
from heedful.analysis.separation import matched_separation
from heedful.analysis.statistics import Estimate
from heedful.claims import CLAIMS
from heedful.studies.calibration import judging
from heedful.studies.calibration.judging import (
    BEHIND,
    NEAR,
    Calibration,
    Population,
    RightAnswer,
    calibrate,
    calibration_tables,
    claim_truth,
    confusion,
    population,
    question_truth,
    shown_confusion,
    wrong,
)
from heedful.studies.calibration.planted import plant
from heedful.studies.calibration.worlds import World
from tests.commands import Call

pytestmark = pytest.mark.xdist_group("calibration")  # one worker makes what these tests share

FEW = [
    World(kind=kind, classes=classes, length="short", texts=2000, seed=7, bursts=classes == "3 even")
    for kind, classes in (
        ("informative", "50:50"),
        ("blind", "3 even"),
        ("corpus only", "50:50"),
        ("decision only", "3 even"),
        ("found in part", "50:50"),
        ("only one", "3 even"),
        ("redundant", "50:50"),
    )
]


@pytest.fixture(scope="module")
def found() -> Calibration:
    return calibrate(FEW, workers=1)


def test_the_answer_is_never_wrong_on_a_few_clear_worlds(found: Calibration) -> None:
    assert len(found.answers) == 3 * len(FEW)
    assert wrong(found.answers).to_dict("records") == []
    assert (found.answers["answer"] == "not shown").mean() <= 0.1


def test_the_third_question_is_no_where_one_unit_decides_and_yes_where_several_do(found: Calibration) -> None:
    story = found.answers[found.answers["question"] == "story"].set_index("kind")
    assert story.loc[["only one", "redundant"], "truth"].tolist() == ["no", "yes"]
    assert story.loc[["only one", "redundant"], "answer"].tolist() == ["no", "yes"]
    needed, spare = story["number"][["only one", "redundant"]].tolist()
    assert needed < 0.02 < 0.98 < spare


def test_every_claim_behind_the_answer_is_judged_in_every_world(found: Calibration) -> None:
    assert found.claims["claim"].tolist() == list(BEHIND) * len(FEW)
    assert wrong(found.claims).to_dict("records") == []
    lines = found.claims.groupby("claim")["line"].first()
    assert {name: lines[name] for name in BEHIND} == {name: CLAIMS[name].threshold for name in BEHIND}


def test_what_is_measured_on_test_texts_is_near_the_population(found: Calibration) -> None:
    known = found.claims[found.claims["claim"].isin(["M1", "S6", "S13"])]
    assert (known["value"] - known["number"]).abs().max() < 0.12
    assert (known["value"] - known["number"]).abs().mean() < 0.03


def test_cases_do_not_depend_on_the_number_of_processes(found: Calibration) -> None:
    trained = World(kind="one word", classes="90:10", length="short", texts=200, seed=1)
    again, alone = calibrate([FEW[0], trained], workers=2), calibrate([trained], workers=1)
    pd.testing.assert_frame_equal(again.answers.iloc[:3], found.answers.iloc[:3])
    pd.testing.assert_frame_equal(again.claims.iloc[: len(BEHIND)], found.claims.iloc[: len(BEHIND)])
    pd.testing.assert_frame_equal(again.claims.iloc[len(BEHIND) :].reset_index(drop=True), alone.claims)


def test_an_answer_that_always_says_yes_has_every_wrong_yes_counted(found: Calibration) -> None:
    some = found.answers[found.answers["kind"].isin(["blind", "corpus only"]) & (found.answers["question"] != "story")]
    table = confusion(some.assign(answer="yes"), "question")
    assert table[["question", "not_yes", "wrong_yes", "wrong_no"]].to_numpy().tolist() == [
        ["corpus", 1, 1, 0],
        ["decision", 2, 2, 0],
    ]


def test_the_population_has_the_planted_words_and_fresh_texts() -> None:
    case = plant(FEW[0])
    whole = population(case.whole)
    tokens = case.whole.tables["tokens"]
    polar, neutral = tokens[tokens["group"].isin(["positive", "negative"])], tokens[tokens["group"] == "neutral"]
    assert polar["token"].str.startswith("class").all()
    assert neutral["token"].str.startswith("neutral").all()
    assert set(tokens.loc[tokens["even"], "token"]) == set(neutral.loc[neutral["count"] > 5, "token"])
    assert whole.numbers["C2b"] == matched_separation(tokens)
    assert whole.numbers["C2b"].sides[0] <= len(polar)
    assert whole.numbers["M1"].value == pytest.approx(case.whole.trace.accuracy() - 0.5, abs=0.01)
    assert whole.resting > 0.95
    trace = case.whole.trace
    assert whole.numbers["J3b"].value == adversarial_attention(trace, without_top=1)["jsd"].notna().mean()
    assert whole.numbers["J3b"].count == len(trace) == 5000


def numbers(**values: float) -> Population:
    """A population that is clear of all lines but where it is told otherwise."""
    usual = dict.fromkeys(BEHIND, 1.0) | values
    found = {name: Estimate(value=value, low=value, high=value, count=5000) for name, value in usual.items()}
    return Population(numbers=found, resting=1.0)


def test_a_claim_is_true_above_its_line_and_near_within_a_twentieth() -> None:
    line = CLAIMS["S13"].threshold
    assert claim_truth("S13", numbers(S13=line + 0.1)) == RightAnswer(truth="yes", number=line + 0.1)
    assert claim_truth("S13", numbers(S13=line - 0.01)) == RightAnswer(truth="no", number=line - 0.01, near=True)
    assert claim_truth("S13", replace(numbers(), numbers={})) is None
    assert NEAR == 0.05


def test_the_truth_of_a_question_is_planted_or_that_of_its_weakest_claim() -> None:
    assert question_truth("corpus", "yes", numbers(C2b=0.1)) == RightAnswer(truth="yes")
    assert question_truth("corpus", None, numbers(C8c=0.6)) == RightAnswer(truth="no", number=0.6)
    assert question_truth("decision", 0.9, numbers(S13=0.1)) == RightAnswer(truth="yes", number=0.9)
    assert question_truth("decision", 0.72, numbers()) == RightAnswer(truth="no", number=0.72, near=True)


def test_the_third_question_has_the_truth_of_its_claim_and_is_moot_only_where_nothing_was_learned() -> None:
    assert question_truth("story", None, numbers(J3b=0.8)) == RightAnswer(truth="yes", number=0.8)
    assert question_truth("story", None, numbers(J3b=0.47)) == RightAnswer(truth="no", number=0.47, near=True)
    assert not question_truth("story", None, replace(numbers(J3b=0.8), resting=0.1)).moot
    assert question_truth("story", None, numbers(M1=0.0)).moot
    assert question_truth("story", "not shown", numbers()).moot


def test_where_words_push_at_random_a_yes_is_wrong_and_silence_right() -> None:
    right = question_truth("corpus", None, numbers(C1=0.7))
    assert (right.truth, right.moot) == ("no", True)


def test_nothing_is_asked_of_a_model_that_learned_nothing_or_of_too_few_decisions() -> None:
    assert question_truth("decision", "yes", numbers(M1=0.01)).moot
    assert question_truth("decision", "yes", replace(numbers(), resting=0.3)).moot
    assert question_truth("corpus", "not shown", numbers()).moot
    few = {**numbers().numbers, "C1": Estimate(value=1.0, low=1.0, high=1.0, count=2)}
    assert question_truth("corpus", None, replace(numbers(), numbers=few)).moot


def test_confusion_by_hand() -> None:
    columns = ["question", "texts", "truth", "near", "moot", "answer"]
    rows = [
        ("corpus", 200, "no", False, False, "yes"),
        ("corpus", 200, "no", False, False, "no"),
        ("corpus", 200, "yes", True, False, "no"),
        ("corpus", 200, "yes", False, False, "not shown"),
        ("corpus", 200, "yes", True, False, "not shown"),
        ("corpus", 200, "not shown", False, True, "no"),
    ]
    table = confusion(pd.DataFrame(rows, columns=columns), "question", "texts")
    expected = {
        "worlds": 6, "yes": 1, "no": 3, "not_yes": 3, "wrong_yes": 1, "not_no": 4, "wrong_no": 2, "wrong_near": 1,
        "clear": 3, "not_shown": 1, "near": 2, "moot": 1,
    }  # fmt: skip
    assert table.drop(columns=["question", "texts"]).iloc[0].to_dict() == expected
    assert shown_confusion(table).iloc[0].tolist() == [
        "corpus", 200, 6, 1, 3, "1/3 (33.3%)", "2/4 (50.0%)", 1, "1/3 (33.3%)", 2, 1,
    ]  # fmt: skip


def test_all_tables_of_a_calibration(found: Calibration) -> None:
    tables = calibration_tables(found, found)
    assert int(tables["confusion"]["worlds"].sum()) == len(found.answers)
    assert tables["confusion-of-claims"]["worlds"].tolist() == [len(FEW)] * len(BEHIND)
    assert set(tables["trained-confusion"]["kind"]) == {world.kind for world in FEW}
    assert "trained-cases" not in calibration_tables(found)
    assert np.isfinite(tables["claims"]["number"]).all()


def test_the_command_prints_saves_and_leaves_the_trained_worlds_out(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Calibration
) -> None:
    def judged(wanted: Sequence[World], *, workers: int | None, watch: Callable[[int, int], None]) -> Calibration:
        assert ({world.texts for world in wanted}, {world.seed for world in wanted}, workers) == ({200}, {3}, 1)
        watch(len(wanted), len(wanted))
        return Calibration(answers=found.answers[3:6], claims=found.claims[len(BEHIND) : 2 * len(BEHIND)])

    monkeypatch.setattr(judging, "calibrate", judged)
    chosen = ("--no-trained", "--workers", 1, "--texts", 200, "--seeds", 1, "--first-seed", 3)
    outcome = call("calibrate", *chosen, "--out", tmp_path)
    assert outcome.code == 0
    assert "The answer where attention is planted" in outcome.out
    assert "where a model is trained" not in outcome.out
    saved = pd.read_parquet(tmp_path / "confusion-of-claims.parquet")
    assert saved["claim"].tolist() == list(BEHIND)
    shown = call("calibrate", *chosen, "--json").json
    assert [(row["question"], row["answer"]) for row in shown["cases"][:2]] == [("corpus", "no"), ("decision", "no")]
