"""Claims on tables made by hand: what holds, what does not, what cannot be told."""

import numpy as np
import pandas as pd
import pytest

from heedful.analysis.separation import right_signs
from heedful.analysis.statistics import Estimate
from heedful.claims import CLAIMS, judge, verdict_table
from heedful.claims.claim import decide
from heedful.claims.scores import outcomes
from heedful.errors import UnknownName
from heedful.studies.examine import ON_WORDS
from heedful.traces import Trace
from tests.covering import covers


def tokens(polar_attention: float, *, flip: int = 0, count: int = 100) -> pd.DataFrame:
    """Positive, negative and neutral tokens; attention of polar ones is shifted, some signs are wrong."""
    rng = np.random.default_rng(0)
    groups = ["positive"] * count + ["negative"] * count + ["neutral"] * count
    polarity = np.concatenate([np.full(count, 2.0), np.full(count, -2.0), rng.normal(size=count)])
    polarity[:flip] *= -1
    attention = rng.normal(size=3 * count) + np.repeat([polar_attention, polar_attention, 0.0], count)
    table = {
        "group": groups,
        "polarity": polarity,
        "attention": attention,
        "weight": attention,
        "lift": np.exp(attention),
    }
    return pd.DataFrame(table).assign(count=20, even=lambda rows: rows["group"] == "neutral", beyond_chance=True)


def decisions(table: pd.DataFrame) -> dict[str, str]:
    return {v.claim: v.decision for v in judge(ON_WORDS, {"tokens": table, "weights": table})}


@covers(claim=("C1", "C2", "C2b", "C8", "C8b", "C8c"))
def test_clear_data_decide_every_claim() -> None:
    assert decisions(tokens(3.0)) == dict.fromkeys(ON_WORDS, "yes")
    assert decisions(tokens(0.0, flip=80)) == dict.fromkeys(ON_WORDS, "no")


def test_numbers_near_the_line_are_undecided() -> None:
    assert set(decisions(tokens(0.74, flip=40)).values()) == {"not shown"}


def test_an_interval_that_ends_on_the_line_decides_nothing() -> None:
    def between(low: float, high: float) -> str:
        return decide(Estimate(value=(low + high) / 2, low=low, high=high, count=20), 0.5)

    assert [between(0.5, 0.75), between(0.25, 0.5), between(0.5, 0.5)] == ["not shown"] * 3
    assert [between(np.nextafter(0.5, 1), 0.75), between(0.25, np.nextafter(0.5, 0))] == ["yes", "no"]


def test_as_many_words_as_are_needed_are_enough_and_one_less_is_not() -> None:
    table = tokens(9.0)
    sides = [table[table["group"] != "neutral"], table[table["group"] == "neutral"]]
    for polar, neutral, shown in ((10, 10, "yes"), (9, 10, "not shown"), (10, 9, "not shown")):
        (verdict,) = judge(("C2",), {"tokens": pd.concat([sides[0].head(polar), sides[1].head(neutral)])})
        assert verdict.decision == shown


def test_no_polar_tokens_is_undecided_and_says_so() -> None:
    table = tokens(3.0)
    (verdict,) = judge(("C1",), {"tokens": table[table["group"] == "neutral"]})
    assert verdict.decision == "not shown"
    assert verdict.words == (
        "There are too few words to tell: 10 are needed that clearly belong to a class and 10 that clearly belong to "
        "none. More texts may help, or fewer classes. There are 0 polar tokens."
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


def outcome_table(**classes: tuple[int, int]) -> pd.DataFrame:
    """Of each class so many texts right, of so many."""
    names = list(classes)
    rows = [
        (name, name if place < right else names[names.index(name) - 1])
        for name, (right, texts) in classes.items()
        for place in range(texts)
    ]
    return pd.DataFrame(rows, columns=["label", "decision"])


@covers(claim=("M1",))
@pytest.mark.parametrize(
    ("table", "decision", "value"),
    [
        (outcome_table(a=(45, 50), b=(45, 50)), "yes", 0.4),
        (outcome_table(a=(900, 900), b=(0, 100)), "not shown", 0.0),  # always the commonest class
        (outcome_table(a=(890, 900), b=(30, 100)), "yes", 0.5 * (890 / 900 + 0.3) - 0.5),  # less accurate than guessing
        (outcome_table(a=(20, 50), b=(25, 50), c=(30, 50)), "yes", 0.5 - 1 / 3),
        (outcome_table(a=(10, 50), b=(10, 50)), "no", -0.3),
    ],
)
def test_a_model_is_compared_with_guessing_class_by_class(table: pd.DataFrame, decision: str, value: float) -> None:
    (found,) = judge(("M1",), {"outcomes": table})
    assert found.estimate is not None
    assert found.decision == decision
    assert found.estimate.value == pytest.approx(value)


def test_nine_texts_do_not_show_that_a_model_has_learned() -> None:
    (few,) = judge(("M1",), {"outcomes": outcome_table(a=(5, 5), b=(4, 4))})
    assert few.decision == "not shown"
    assert few.words.endswith("There are 9 texts.")
    assert few.evidence == "9 texts, interval over them at the 99% level"


def test_outcomes_by_hand() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 1, 2], attention_scores=[0.0, 0.0], polarity_scores=[2.0, -2.0], bias=[0.0], labels=[1, 1]
    )
    assert outcomes(trace).to_dict("list") == {"label": [1, 1], "decision": [1, 0]}


def test_copies_of_a_text_are_one_outcome() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 1, 2, 3], attention_scores=[0.0] * 3, polarity_scores=[2.0, 2.0, -2.0], bias=[0.0], labels=[1, 1, 0]
    )
    assert trace.distinct.tolist() == [True, False, True]
    assert outcomes(trace).to_dict("list") == {"label": [1, 0], "decision": [1, 0]}


@pytest.mark.parametrize("sizes", [[20] * 10, [2] * 20, [100, 1, 1], [190, 10]])
def test_guessing_is_hardly_ever_taken_for_learning(sizes: list[int]) -> None:
    """Decisions that know nothing of the texts, of many classes and of rare ones: half a per cent is nominal."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    guesses = (rng.integers(0, len(sizes), len(labels)) for _ in range(60))
    tables = (pd.DataFrame({"label": labels, "decision": guess}) for guess in guesses)
    assert sum(judge(("M1",), {"outcomes": table})[0].decision == "yes" for table in tables) <= 2
