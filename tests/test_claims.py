"""Claims on tables made by hand: what holds, what does not, what cannot be told."""

import numpy as np
import pandas as pd
import pytest

from heedful.claims import CLAIMS, judge, verdict_table
from heedful.claims.model import outcomes
from heedful.claims.scores import right_signs
from heedful.errors import UnknownName
from heedful.traces import Trace


def tokens(polar_attention: float, *, flip: int = 0, count: int = 100) -> pd.DataFrame:
    """Positive, negative and neutral tokens; attention of polar ones is shifted, some signs are wrong."""
    rng = np.random.default_rng(0)
    groups = ["positive"] * count + ["negative"] * count + ["neutral"] * count
    polarity = np.concatenate([np.full(count, 2.0), np.full(count, -2.0), rng.normal(size=count)])
    polarity[:flip] *= -1
    attention = rng.normal(size=3 * count) + np.repeat([polar_attention, polar_attention, 0.0], count)
    return pd.DataFrame(
        {"group": groups, "polarity": polarity, "attention": attention, "weight": attention, "lift": attention}
    )


def decisions(table: pd.DataFrame) -> dict[str, str]:
    return {v.claim: v.decision for v in judge(("C1", "C2", "C8", "C8b"), {"tokens": table, "weights": table})}


def test_clear_data_decide_every_claim() -> None:
    assert decisions(tokens(3.0)) == {"C1": "yes", "C2": "yes", "C8": "yes", "C8b": "yes"}
    assert decisions(tokens(0.0, flip=80)) == {"C1": "no", "C2": "no", "C8": "no", "C8b": "no"}


def test_numbers_near_the_line_are_undecided() -> None:
    assert set(decisions(tokens(0.74, flip=20)).values()) == {"not shown"}


def test_no_polar_tokens_is_undecided_and_says_so() -> None:
    table = tokens(3.0)
    (verdict,) = judge(("C1",), {"tokens": table[table["group"] == "neutral"]})
    assert verdict.decision == "not shown"
    assert verdict.words == (
        "There are too few words to tell: 10 are needed that clearly belong to a class and 10 that clearly belong to "
        "none. More texts would help, or fewer classes."
    )


def test_one_neutral_word_shows_nothing_however_clear_it_is() -> None:
    table = tokens(9.0)
    few = pd.concat([table[table["group"] != "neutral"].head(116), table[table["group"] == "neutral"].head(1)])
    (verdict,) = judge(("C2",), {"tokens": few})
    assert verdict.decision == "not shown"
    assert verdict.evidence == "116 polar tokens, 1 neutral token"
    assert verdict.words.endswith("There are 116 polar tokens and 1 neutral token.")
    assert verdict.row()["evidence"] == verdict.evidence


def test_a_side_without_words_has_no_number_and_says_how_many_there_are() -> None:
    table = tokens(3.0)
    (verdict,) = judge(("C2",), {"tokens": table[table["group"] != "neutral"]})
    assert (verdict.decision, verdict.row()["value"], verdict.known) == ("not shown", None, False)
    assert verdict.words.endswith("There are 200 polar tokens and 0 neutral tokens.")


def test_the_statistics_by_hand() -> None:
    table = pd.DataFrame(
        {
            "group": ["positive", "negative", "neutral", "none"],
            "polarity": [1.0, 2.0, 0.0, 9.0],
            "attention": [1.0, 0.5, 0.5, 9.0],
        }
    )
    assert right_signs(table).tolist() == [1.0, 0.0]
    (c1, c2) = judge(("C1", "C2"), {"tokens": table})
    assert c1.estimate is not None
    assert c2.estimate is not None
    assert c1.estimate.value == 0.5
    assert c2.estimate.value == 0.75  # 1 > .5 counts one, .5 = .5 counts half
    assert (c1.decision, c2.decision) == ("not shown", "not shown")  # of so few words


def test_with_more_classes_the_own_class_must_have_the_largest_polarity() -> None:
    table = pd.DataFrame(
        {
            "group": ["a", "b", "b"],
            "polarity_a": [3.0, 1.0, 2.0],
            "polarity_b": [1.0, 2.0, 1.0],
            "polarity_c": [0.0] * 3,
        }
    )
    assert right_signs(table).tolist() == [1.0, 1.0, 0.0]


def test_a_verdict_is_a_row_of_a_table() -> None:
    table = verdict_table(judge(("C1", "C2"), {"tokens": tokens(3.0)}))
    assert table["claim"].tolist() == ["C1", "C2"]
    assert table["low"][1] <= table["value"][1] <= table["high"][1]


def test_every_claim_has_words_for_every_decision() -> None:
    for claim in CLAIMS.values():
        assert set(claim.words) == {"yes", "no", "not shown"}


def test_an_unknown_claim_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"There is no claim 'C99'"):
        judge(("C99",), {})


def outcome_table(right: str, guessed: str) -> pd.DataFrame:
    return pd.DataFrame({"right": [mark == "1" for mark in right], "guessed": [mark == "1" for mark in guessed]})


def test_a_model_is_compared_with_guessing_on_the_same_texts() -> None:
    """90 of 100 right against 60 guessed: 30 points more. As many as guessed: nothing shown. Nine texts: too few."""
    better = outcome_table("1" * 90 + "0" * 10, "1" * 60 + "0" * 40)
    same = outcome_table("1" * 50 + "0" * 50, "0" * 50 + "1" * 50)
    worse = outcome_table("1" * 40 + "0" * 60, "1" * 90 + "0" * 10)
    for table, decision, value in ((better, "yes", 0.3), (same, "not shown", 0.0), (worse, "no", -0.5)):
        (found,) = judge(("M1",), {"outcomes": table})
        assert found.estimate is not None
        assert found.decision == decision
        assert found.estimate.value == pytest.approx(value)
    (few,) = judge(("M1",), {"outcomes": outcome_table("1" * 9, "0" * 9)})
    assert few.decision == "not shown"
    assert few.words.endswith("There are 9 texts.")


def test_outcomes_by_hand() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 1, 2], attention_scores=[0.0, 0.0], polarity_scores=[2.0, -2.0], bias=[0.0], labels=[1, 1]
    )
    assert trace.labels is not None
    assert outcomes(trace, trace.labels, 1).to_dict("list") == {"right": [True, False], "guessed": [True, True]}
