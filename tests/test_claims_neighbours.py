"""The claims of the neighbours of the debate, on tables of runs made by hand: what holds, what not, what is said."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import pytest

from heedful.claims import CLAIMS, Decision, Verdict, judge
from heedful.claims.neighbours import GONE, NOTICEABLE, RISE
from tests.covering import covers

Tables = dict[str, pd.DataFrame]
USUAL = {"objective": "cross_entropy", "strength": math.nan, "normaliser": "softmax", "contextual": True}
DECEPTIVE, DIVERSE = ({**USUAL, "objective": name, "strength": 1.0} for name in ("deceptive", "diverse"))
SPARSE, ENTMAX = ({**USUAL, "normaliser": name} for name in ("sparsemax", "entmax15"))
STUDENT = 4.302653 / math.sqrt(3)
"""Of three seeds: half of the interval in deviations."""


def runs(*kinds: tuple[dict[str, object], Mapping[str, Sequence[float]]]) -> Tables:
    """What runs are, and their numbers seed by seed; an accuracy has an interval of three points to either side."""
    rows = [
        {"dataset": "sst", "seed": seed, **said, **dict(zip(numbers, values, strict=True))}
        for said, numbers in kinds
        for seed, values in enumerate(zip(*numbers.values(), strict=True))
    ]
    table = pd.DataFrame(rows)
    for name in ("test_accuracy", "used", "violated"):
        if name in table:
            table = table.assign(**{f"{name}_low": table[name] - 0.03, f"{name}_high": table[name] + 0.03})
    return {"models": table}


def beside(kind: dict[str, object], column: str, own: Sequence[float], usual: Sequence[float]) -> Tables:
    """A kind of runs beside usual ones; deceptive ones of a smaller λ and those without context do not count."""
    weaker = {**kind, "strength": 0.1}
    blind = [({**said, "contextual": False}, {column: [0.9, 0.1, 0.5]}) for said in (kind, USUAL)]
    others = [(weaker, {column: [0.5] * len(own)})] if kind["objective"] == "deceptive" else []
    return runs((USUAL, {column: usual}), (kind, {column: own}), *others, *blind)


def agreement(sparse: Sequence[float], entmax: Sequence[float]) -> Tables:
    """τ of sparsemax with leave-one-out and of 1.5-entmax with the gradient; all else is .3."""
    return runs(
        (USUAL, {"tau_gradient": [0.3] * 3, "tau_leave_one_out": [0.3] * 3}),
        (SPARSE, {"tau_gradient": [0.3] * 3, "tau_leave_one_out": sparse}),
        (ENTMAX, {"tau_gradient": entmax, "tau_leave_one_out": [0.3] * 3}),
    )


CASES: dict[str, tuple[Tables, ...]] = {
    "N1": (
        beside(DECEPTIVE, "mass", [0.01, 0.012, 0.008], [0.4, 0.4, 0.4]),
        beside(DECEPTIVE, "mass", [0.2, 0.21, 0.19], [0.4, 0.4, 0.4]),
        beside(DECEPTIVE, "mass", [0.02, 0.06, 0.04], [0.4, 0.4, 0.4]),
    ),
    "N1b": (
        beside(DECEPTIVE, "test_accuracy", [0.815, 0.814, 0.816], [0.82, 0.82, 0.82]),
        beside(DECEPTIVE, "test_accuracy", [0.715, 0.714, 0.716], [0.82, 0.82, 0.82]),
        beside(DECEPTIVE, "test_accuracy", [0.80, 0.78, 0.83], [0.82, 0.82, 0.82]),
    ),
    "N1c": (
        beside(DECEPTIVE, "used", [0.2, 0.21, 0.19], [0.0, 0.0, 0.0]),
        beside(DECEPTIVE, "used", [-0.05, -0.05, -0.05], [0.2, 0.2, 0.2]),
        beside(DECEPTIVE, "used", [0.03, 0.02, 0.03], [0.2, 0.2, 0.2]),
    ),
    "N2": (
        beside(DIVERSE, "conicity", [0.2, 0.21, 0.19], [0.6, 0.6, 0.6]),
        beside(DIVERSE, "conicity", [0.7, 0.71, 0.69], [0.6, 0.6, 0.6]),
        beside(DIVERSE, "conicity", [0.7, 0.6, 0.5], [0.6, 0.6, 0.6]),
    ),
    "N2b": (
        beside(DIVERSE, "tvd", [0.2, 0.21, 0.19], [0.05, 0.05, 0.05]),
        beside(DIVERSE, "tvd", [0.02, 0.021, 0.019], [0.05, 0.05, 0.05]),
        beside(DIVERSE, "tvd", [0.05, 0.01, 0.08], [0.05, 0.05, 0.05]),
    ),
    "N2c": (
        beside(DIVERSE, "erased", [0.2, 0.21, 0.19], [0.5, 0.5, 0.5]),
        beside(DIVERSE, "erased", [0.7, 0.71, 0.69], [0.5, 0.5, 0.5]),
        beside(DIVERSE, "erased", [0.5, 0.4, 0.6], [0.5, 0.5, 0.5]),
    ),
    "N3": (
        agreement([0.30, 0.31, 0.29], [0.2, 0.21, 0.19]),
        agreement([0.5, 0.51, 0.49], [0.2, 0.21, 0.19]),
        agreement([0.30, 0.31, 0.29], [0.34, 0.28, 0.44]),
    ),
    "N4": tuple(
        runs(
            (USUAL, {"violated": shares}),
            ({**USUAL, "contextual": False}, {"violated": shares}),
            (SPARSE, {"violated": [0.5] * 3}),
        )
        for shares in ([0.3, 0.31, 0.29], [0.02, 0.03, 0.01], [0.1, 0.12, 0.09])
    ),
}
DECISIONS: tuple[Decision, ...] = ("yes", "no", "not shown")


def of(claim: str, tables: Tables) -> Verdict:
    return judge((claim,), tables)[0]


def bounds(claim: str, tables: Tables) -> tuple[float, float, float]:
    found = of(claim, tables).estimate
    assert found is not None
    return found.value, found.low, found.high


def test_every_claim_has_its_cases() -> None:
    assert set(CASES) == {name for name in CLAIMS if name[0] == "N"}


@covers(claim=CASES)
@pytest.mark.parametrize("claim", CASES)
@pytest.mark.parametrize("case", range(3))
def test_the_papers_pattern_makes_a_claim_hold_its_opposite_refutes_it_and_a_close_one_is_not_called(
    claim: str, case: int
) -> None:
    found = of(claim, CASES[claim][case])
    assert found.decision == DECISIONS[case]
    assert found.words[0].isupper()
    assert "{" not in found.words


def test_what_is_left_of_the_mass_is_compared_seed_by_seed() -> None:
    """.01, .012 and .008 of .4: 97.5, 97 and 98 % are gone, with Student's interval over seeds."""
    half = STUDENT * 0.005
    assert bounds("N1", CASES["N1"][0]) == pytest.approx((0.975, 0.975 - half, 0.975 + half), abs=1e-7)
    assert of("N1", CASES["N1"][0]).threshold == GONE


def test_differences_have_students_interval_over_seeds() -> None:
    for claim, value, deviation in (("N2", 0.4, 0.01), ("N2b", 0.15, 0.01), ("N2c", 0.3, 0.01), ("N1b", -0.005, 0.001)):
        half = STUDENT * deviation
        assert bounds(claim, CASES[claim][0]) == pytest.approx((value, value - half, value + half), abs=1e-7)


def test_of_diverse_models_the_strength_that_moves_least_counts() -> None:
    """Conicity falls by .4 with λ = 1 and by .1 with λ = .1, at 97.5 % above, since one of two may fall by chance."""
    (table,) = CASES["N2"][0].values()
    weak = table[(table["objective"] == "diverse") & table["contextual"]]
    both = pd.concat([table, weak.assign(strength=0.1, conicity=[0.5, 0.51, 0.49])])
    value, low, high = bounds("N2", {"models": both})
    assert (value, low) == pytest.approx((0.1, 0.1 - STUDENT * 0.01))
    assert high == pytest.approx(0.1 + 6.205347 / math.sqrt(3) * 0.01, abs=1e-6)


def test_of_sparse_attentions_and_measures_the_one_that_agrees_most_counts() -> None:
    """Sparsemax and leave-one-out: .3 against .5, at 98.75 % above, since one of four may fall below by chance."""
    value, low, high = bounds("N3", CASES["N3"][1])
    assert (value, low) == pytest.approx((-0.2, -0.2 - STUDENT * 0.01))
    assert high > -0.2 + STUDENT * 0.01
    assert high < -RISE


def test_a_share_of_texts_has_the_interval_of_texts_and_of_seeds() -> None:
    """Of the usual models, with and without context, and of no others: .03 over texts and 2.48 · .01 over seeds."""
    half = math.hypot(0.03, STUDENT * 0.01)
    assert bounds("N4", CASES["N4"][0]) == pytest.approx((0.3, 0.3 - half, 0.3 + half), abs=1e-7)
    assert of("N4", CASES["N4"][0]).threshold == NOTICEABLE
    assert of("N4", CASES["N4"][0]).evidence == "6 runs, interval over seeds and their test texts"


@pytest.mark.parametrize("claim", CASES)
def test_without_the_runs_that_a_claim_takes_it_says_so(claim: str) -> None:
    (table,) = CASES[claim][0].values()
    for gone in ({"N4": SPARSE, "N3": USUAL}.get(claim, USUAL), DECEPTIVE):
        kept = (table["objective"] == gone["objective"]) & (table["normaliser"] == gone["normaliser"])
        found = of(claim, {"models": table[kept & table["contextual"]]})
        if claim == "N1c" and gone is DECEPTIVE:  # it is about such runs alone
            assert found.decision == "yes"
            continue
        assert (found.decision, found.estimate) == ("not shown", None)
        assert found.words.startswith(("This compares trainings", "There is no run with softmax attention"))


@pytest.mark.parametrize("claim", ["N1", "N2", "N2b", "N2c", "N3"])
def test_one_seed_is_no_regularity_of_trainings(claim: str) -> None:
    (table,) = CASES[claim][0].values()
    found = of(claim, {"models": table[table["seed"] == 0]})
    assert (found.decision, found.words.endswith("Two seeds or more are needed.")) == ("not shown", True)


def test_data_sets_count_alike_where_both_models_are_there() -> None:
    """On one data set conicity falls by .4, on another by .2; a third has no diverse model."""
    (one,) = CASES["N2"][0].values()
    other = one.assign(dataset="imdb", conicity=one["conicity"] / 2)
    third = one[one["objective"] == "cross_entropy"].assign(dataset="20news-1", conicity=0.9)
    assert bounds("N2", {"models": pd.concat([one, other, third])})[0] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (
            "N1b",
            (
                "It costs little: the deceptive model's accuracy differs by -0.5% from the usual one's.",
                "It costs accuracy: the deceptive model's accuracy differs by -10.5% from the usual one's.",
                "The deceptive model's accuracy differs by -1.7% from the usual one's; that is too close to a loss of "
                "two points to call.",
            ),
        ),
        (
            "N4",
            (
                "A large weight need not be a reason: for 30.0% of the texts the decision is more probable without the "
                "most attended unit.",
                "Where attention is largest there is a reason: for only 2.0% of the texts the decision is more "
                "probable without the most attended unit.",
                "For 10.3% of the texts the decision is more probable without the most attended unit; that is too "
                "close to a tenth, or rests on too few texts, to call.",
            ),
        ),
    ],
)
def test_what_is_said(claim: str, words: tuple[str, str, str]) -> None:
    assert tuple(of(claim, tables).words for tables in CASES[claim]) == words
