"""Claims about models that can only be asked, on tables made by hand, and the answer that rests on them."""

import numpy as np
import pandas as pd
import pytest

from heedful.claims import CLAIMS, Decision, judge
from heedful.claims.answer import answer
from heedful.claims.removal import attended_where_it_matters
from tests.covering import covers
from tests.verdicts import verdict


def words(right: int, wrong: int) -> pd.DataFrame:
    """Words of the positive class, so many of which take probability from it when they go."""
    signs = [0.1] * right + [-0.1] * wrong
    return pd.DataFrame({"group": "positive", "beyond_chance": True, "polarity": signs, "removed": 3})


def attended(strong: float, weak: float) -> pd.DataFrame:
    """Twenty words with large effects and sixty with small ones, as frequent, and what attention they get."""
    spread = np.linspace(0.9, 1.1, 20)
    return pd.DataFrame(
        {
            "effect_apart": [0.5] * 20 + [0.01] * 60,
            "lift_apart": [*(strong * spread), *(weak * np.tile(spread, 3))],
            "occurrences": 8,
        }
    )


def flips(attention: list[float], taken: list[float]) -> pd.DataFrame:
    """Texts of ten units that two can flip, leaving out one at a time three."""
    rows = [
        {"ranking": name, "order": 0, "instance": row, "units": 10, "erased": erased, "lead_taken": lead}
        for row, own in enumerate(attention)
        for name, erased, lead in (("attention", own, taken[row]), ("leave_one_out", 3, 0.9), ("minimum", 2, 1.0))
    ]
    return pd.DataFrame(rows).astype({"erased": "Int64"})


def chosen(values: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"instance": range(len(values)), "difference": values})


CASES: dict[str, tuple[str, pd.DataFrame, pd.DataFrame, pd.DataFrame]] = {
    "D1": ("words", words(60, 1), words(10, 50), words(30, 7)),
    "D2": ("words", attended(3, 1), attended(1, 3), attended(1.06, 1)),
    "D3": ("flips", flips([5] * 80, [0.95] * 80), flips([5] * 80, [0.3] * 80), flips([5] * 80, [0.5, 1.0] * 40)),
    "D4": ("flips", flips([7] * 80, [0.5] * 80), flips([2] * 80, [0.5] * 80), flips([7, 2] * 40, [0.5] * 80)),
    "D5": ("chosen", chosen([0.3] * 100), chosen([-0.3] * 100), chosen([0.3, -0.3] * 50)),
}


@covers(claim=tuple(CASES))
@pytest.mark.parametrize("claim", CASES)
def test_claims_hold_fail_and_stay_open(claim: str) -> None:
    table, *cases = CASES[claim]
    wanted: tuple[Decision, ...] = ("yes", "no", "not shown")
    assert tuple(judge((claim,), {table: case})[0].decision for case in cases) == wanted


@pytest.mark.parametrize("claim", CASES)
def test_too_little_is_said_to_be_too_little(claim: str) -> None:
    table, case, *_ = CASES[claim]
    found = judge((claim,), {table: case.iloc[:3]})[0]
    assert found.decision == "not shown"
    assert found.words.startswith("There are too few")


def test_attention_where_it_matters_is_an_area() -> None:
    assert attended_where_it_matters(attended(3, 1)).value == 1.0
    assert attended_where_it_matters(attended(1, 3)).value == 0.0


def test_words_with_the_same_effect_are_on_one_side_whatever_their_order() -> None:
    lifts = [3.0] * 20 + [1.0] * 180
    table = pd.DataFrame({"effect_apart": [0.4] * 20 + [0.0] * 180, "lift_apart": lifts, "occurrences": 8})
    assert attended_where_it_matters(table).value == 1.0
    assert attended_where_it_matters(table.iloc[::-1]).value == 1.0


def test_an_answer_stands_on_claims_of_asked_models_as_on_those_of_traces() -> None:
    names: dict[str, Decision] = {"M1": "yes", "D1": "yes", "C8c": "yes", "D2": "yes", "S6b": "yes", "D3": "no"}
    said = [verdict(name, decision) for name, decision in names.items()]
    found = answer(said, unasked="Not asked: why.", instead=("Use this.",))
    assert found.question("corpus").decision == "yes"
    assert found.question("corpus").rests_on == ("D1", "C8c", "D2")
    assert found.question("decision").decision == "no"
    assert found.question("decision").rests_on == ("S6b", "D3")
    assert found.question("story").words == "Not asked: why."
    assert found.instead == ("Use this.",)
    assert found.headline.startswith("In part: across the corpus")
    assert "words with the largest attention shows" in found.uses[0].words


def test_what_is_not_sound_is_in_doubt_for_asked_models_too() -> None:
    found = answer([verdict("M1", "yes"), verdict("D1", "no"), verdict("D3", "no"), verdict("S6b", "yes")])
    assert found.headline.startswith("The model itself is in doubt")


def test_no_more_than_two_things_are_joined_by_but() -> None:
    said = [verdict(name, "no") for name in ("C2b", "C8c")] + [verdict("C1", "yes"), verdict("D2", "not shown")]
    words_ = answer(said).question("corpus").words
    assert words_.count("; ") == 2
    assert ", but " not in words_


@pytest.mark.parametrize("claim", CASES)
def test_what_is_said_of_a_number_reads_as_a_sentence(claim: str) -> None:
    table, *cases = CASES[claim]
    for case in cases:
        said = judge((claim,), {table: case})[0].words
        assert said[0].isupper()
        assert said.endswith((".", ")."))
        assert "{" not in said
    assert CLAIMS[claim].statement.endswith(".")


def test_a_word_whose_removal_helps_its_class_moves_nothing_that_attention_should_be_at() -> None:
    """The quarter with the largest effects must have some: where all are below zero nothing is to be compared."""
    table = attended(3, 1)
    none = attended_where_it_matters(table.assign(effect_apart=table["effect_apart"] - 0.6))
    assert (none.known, none.sides) == (False, (0, 0))
    some = attended_where_it_matters(table.assign(effect_apart=table["effect_apart"] - 0.4))
    assert (some.value, some.sides) == (1.0, (20, 60))
