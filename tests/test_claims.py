"""Claims on tables made by hand: what holds, what does not, what cannot be told."""

import numpy as np
import pandas as pd
import pytest

from heedful.claims import CLAIMS, judge, verdict_table
from heedful.claims.scores import right_signs
from heedful.errors import UnknownName


def tokens(polar_attention: float, *, flip: int = 0, count: int = 100) -> pd.DataFrame:
    """Positive, negative and neutral tokens; attention of polar ones is shifted, some signs are wrong."""
    rng = np.random.default_rng(0)
    groups = ["positive"] * count + ["negative"] * count + ["neutral"] * count
    polarity = np.concatenate([np.full(count, 2.0), np.full(count, -2.0), rng.normal(size=count)])
    polarity[:flip] *= -1
    attention = rng.normal(size=3 * count) + np.repeat([polar_attention, polar_attention, 0.0], count)
    return pd.DataFrame({"group": groups, "polarity": polarity, "attention": attention, "weight": attention})


def decisions(table: pd.DataFrame) -> dict[str, str]:
    return {v.claim: v.decision for v in judge(("C1", "C2", "C8"), {"tokens": table, "weights": table})}


def test_clear_data_decide_every_claim() -> None:
    assert decisions(tokens(3.0)) == {"C1": "holds", "C2": "holds", "C8": "holds"}
    assert decisions(tokens(0.0, flip=80)) == {"C1": "does not hold", "C2": "does not hold", "C8": "does not hold"}


def test_numbers_near_the_line_are_undecided() -> None:
    assert decisions(tokens(0.74, flip=20)) == {"C1": "undecided", "C2": "undecided", "C8": "undecided"}


def test_no_polar_tokens_is_undecided_and_says_so() -> None:
    table = tokens(3.0)
    (verdict,) = judge(("C1",), {"tokens": table[table["group"] == "neutral"]})
    assert verdict.decision == "undecided"
    assert verdict.words == "There are too few clearly polar or neutral words to tell."


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
        assert set(claim.words) == {"holds", "does not hold", "undecided"}


def test_an_unknown_claim_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"There is no claim 'C99'"):
        judge(("C99",), {})
