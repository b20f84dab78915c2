"""The claims on pretrained and contextual vectors, on tables made by hand: what holds, what not, what is said."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from heedful.claims import CLAIMS, Decision, Verdict, judge
from heedful.claims.contextual import GLOVE, LSTM_GLOVE, RANDOM, TRANSFORMER, rare_gain
from tests.covering import covers

Tables = dict[str, pd.DataFrame]
STUDENT = 4.302653 / math.sqrt(3)


def runs(column: str, numbers: Mapping[str, Sequence[float]], **fixed: float) -> Tables:
    """A column of models by seed, with an interval of .03 to either side."""
    rows = [
        {"dataset": "sst", "model": model, "seed": seed, column: value, **fixed}
        for model, values in numbers.items()
        for seed, value in enumerate(values)
    ]
    table = pd.DataFrame(rows)
    return {"models": table.assign(**{f"{column}_low": table[column] - 0.03, f"{column}_high": table[column] + 0.03})}


def of_one(model: str, column: str, *levels: float) -> tuple[Tables, ...]:
    other = {RANDOM: [0.5] * 3}
    return tuple(runs(column, {model: [level - 0.01, level, level + 0.01], **other}) for level in levels)


def apart(column: str, first: str, *others: str, **fixed: float) -> tuple[Tables, ...]:
    """The first larger than the others, smaller, and now this, now that."""
    cases = ([0.6, 0.61, 0.59], [0.2, 0.21, 0.19], [0.3, 0.5, 0.41])
    return tuple(runs(column, {first: own, **dict.fromkeys(others, [0.4] * 3)}, **fixed) for own in cases)


def rare(first: str, gap: float, *, count: int = 60) -> Tables:
    """Words of both classes; those of the first model lie farther apart by the gap than those of random vectors."""
    rng = np.random.default_rng(0)
    noise = {model: rng.normal(size=(3, 2 * count)) for model in (first, RANDOM)}
    side = np.repeat([0.0, 1.0], count)
    parts = [
        pd.DataFrame(
            {
                "dataset": "sst", "model": model, "seed": seed, "heard": side,
                "token": [f"w{place}" for place in range(2 * count)],
                "polarity": noise[model][seed] + side * (1 + (gap if model == first else 0)),
            }
        )
        for model in noise
        for seed in range(3)
    ]  # fmt: skip
    return {"rare": pd.concat(parts, ignore_index=True)}


CASES: dict[str, tuple[Tables, ...]] = {
    "X1": of_one(GLOVE, "signs", 0.95, 0.5, 0.8),
    "X1b": of_one(TRANSFORMER, "signs", 0.95, 0.5, 0.8),
    "X2": of_one(GLOVE, "separation", 0.9, 0.5, 0.7),
    "X2b": of_one(TRANSFORMER, "separation", 0.9, 0.5, 0.7),
    "X3": of_one(TRANSFORMER, "unseen", 0.9, 0.5, 0.7),
    "X4": tuple(rare(GLOVE, gap) for gap in (2.0, -2.0, 0.0)),
    "X4b": tuple(rare(TRANSFORMER, gap) for gap in (2.0, -2.0, 0.0)),
    "X5": apart("fraction_attention", TRANSFORMER, RANDOM, GLOVE),
    "X5b": apart("fraction_attention", TRANSFORMER, LSTM_GLOVE),
    "X6": apart("fraction_minimum", TRANSFORMER, RANDOM, GLOVE),
    "X7": apart("fraction_attention", TRANSFORMER, GLOVE, fraction_minimum=0.1),
    "X8": apart("test_accuracy", TRANSFORMER, LSTM_GLOVE),
}
DECISIONS: tuple[Decision, ...] = ("yes", "no", "not shown")


def of(claim: str, tables: Tables) -> Verdict:
    return judge((claim,), tables)[0]


def test_every_claim_has_its_cases() -> None:
    assert set(CASES) == {name for name in CLAIMS if name[0] == "X"}


@covers(claim=CASES)
@pytest.mark.parametrize("claim", CASES)
@pytest.mark.parametrize("case", range(3))
def test_the_pattern_makes_a_claim_hold_its_opposite_refutes_it_and_a_close_one_is_not_called(
    claim: str, case: int
) -> None:
    found = of(claim, CASES[claim][case])
    assert found.decision == DECISIONS[case]
    assert found.words[0].isupper()
    assert "{" not in found.words


def test_a_difference_has_students_interval_over_seeds() -> None:
    found = of("X5b", CASES["X5b"][0]).estimate
    assert found is not None
    half = STUDENT * 0.01
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.2 - half, 0.2 + half), abs=1e-7)


def test_of_two_models_without_an_encoder_the_nearer_one_counts() -> None:
    (table,) = CASES["X5"][0].values()
    nearer = table["fraction_attention"].where(table["model"] != GLOVE, 0.55)
    found = of("X5", {"models": table.assign(fraction_attention=nearer)}).estimate
    assert found is not None
    assert found.value == pytest.approx(0.05)


def test_rare_words_are_compared_one_by_one_by_hand() -> None:
    """Two words of each class: one model orders three pairs of four, the other one of four; .5 between them."""
    words = pd.DataFrame(
        {
            "dataset": "sst", "seed": 0, "token": list("abcde") * 2, "model": [GLOVE] * 5 + [RANDOM] * 5,
            "heard": [0, 0, 1, 1, math.nan] * 2, "polarity": [0, 2, 1, 3, 9, 2, 3, 1, 2.5, 9],
        }
    )  # fmt: skip
    found = rare_gain(GLOVE, RANDOM, words)
    assert found is not None
    assert (found.value, found.groups) == (0.5, (2, 2))
    twice = rare_gain(GLOVE, RANDOM, pd.concat([words, words.assign(seed=1)]))
    assert twice is not None
    assert (twice.value, twice.groups, twice.count) == (0.5, (2, 2), 4)


def test_models_that_are_not_there_are_said() -> None:
    for claim, cases in CASES.items():
        (table,) = cases[0].values()
        found = of(claim, {CLAIMS[claim].table: table[table["model"] == RANDOM]})
        assert (found.decision, found.estimate) == ("not shown", None)
        assert found.words.startswith("This compares models of the study")
