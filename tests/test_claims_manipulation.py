"""Claims about attention that is shuffled and replaced, on tables made by hand: what holds, what not, what is said."""

import math
from collections.abc import Sequence

import pandas as pd
import pytest

from heedful.analysis.statistics import FEWEST
from heedful.claims import CLAIMS, Decision, Verdict, judge
from heedful.claims.manipulation import BARELY, FAR, PEAKED, WEAK
from tests.covering import covers

Tables = dict[str, pd.DataFrame]


def agreement(*, gradient: int, leave_one_out: int, of: int = 100, contextual: bool = True) -> Tables:
    """So many texts on which attention agrees weakly with each measure; on the others it agrees."""
    parts = [
        pd.DataFrame({"instance": range(of), "measure": measure, "tau": [WEAK - 0.1] * weak + [WEAK] * (of - weak)})
        for measure, weak in (("gradient", gradient), ("leave_one_out", leave_one_out))
    ]
    return {"agreement": pd.concat(parts, ignore_index=True).assign(contextual=contextual)}


def permutation(*, still: int, of: int = 100, others: int = 50) -> Tables:
    """So many texts with peaked attention that stay where they are, and others whose attention is not peaked."""
    peaked = pd.DataFrame({"largest_weight": PEAKED, "tvd_median": [BARELY] * still + [BARELY + 0.01] * (of - still)})
    flat = pd.DataFrame({"largest_weight": [PEAKED - 0.01] * others, "tvd_median": 0.0})
    alone = pd.DataFrame({"largest_weight": [1.0] * 9, "tvd_median": 0.0, "units": 1})
    table = pd.concat([peaked.assign(units=7), flat.assign(units=7), alone], ignore_index=True)
    return {"permutation": table.assign(instance=range(len(table)))}


def adversary(kind: str, values: Sequence[float]) -> Tables:
    """A divergence for each text, or none where there is no such attention; texts of one unit do not count."""
    some = pd.DataFrame({"instance": range(len(values)), "units": 7, "jsd": values})
    some = some.assign(kind=kind)
    alone = pd.DataFrame({"instance": range(900, 930), "units": 1, "kind": kind, "jsd": 0.0})
    other = some.assign(kind="same", jsd=0.1)
    return {"adversary": pd.concat([some, alone, other], ignore_index=True)}


def orders(*, reversed_ones: int, held: int, of: int = 100) -> Tables:
    """So many pairs of words that one attention reverses, and so many of the others that none does."""
    marks = [number < reversed_ones for number in range(of)], [number >= of - held for number in range(of)]
    return {"orders": pd.DataFrame({"instance": range(of), "reversed": marks[0], "held": marks[1]})}


def runs(first: str, second: str, accuracies: Sequence[tuple[float, float]], table: str = "runs") -> Tables:
    """Test accuracies of runs with two kinds of weights, a pair for each seed."""
    rows = [
        {"weights": weights, "seed": seed, "test_accuracy": accuracy}
        for seed, pair in enumerate(accuracies)
        for weights, accuracy in zip((first, second), pair, strict=True)
    ]
    made = pd.DataFrame(rows, columns=["weights", "seed", "test_accuracy"])
    ends = {"test_accuracy_low": made["test_accuracy"] - 0.03, "test_accuracy_high": made["test_accuracy"] + 0.03}
    return {table: made.assign(**ends)}


def curve(*differences: float) -> Tables:
    """By seed, how much more JSD single texts allow than a trained adversary has: two points of each, and a seed's."""
    rows = [
        {"kind": "adversary", "seed": seed, "tvd": 0.1 * point, "jsd": 0.3, "jsd_per_text": 0.3 + less + 0.1 * sign}
        for seed, less in enumerate(differences)
        for point, sign in ((1, -1), (2, 1))
    ]
    seeds = [{"kind": "seeds", "seed": seed, "tvd": 0.1, "jsd": 0.1} for seed in range(len(differences))]
    return {"curve": pd.DataFrame([*rows, *seeds], columns=["kind", "seed", "tvd", "jsd", "jsd_per_text"])}


CASES: dict[str, tuple[Tables, ...]] = {
    "J1": (
        agreement(gradient=90, leave_one_out=80),
        agreement(gradient=90, leave_one_out=20),
        agreement(gradient=90, leave_one_out=52),
    ),
    "J2": (permutation(still=50), permutation(still=5), permutation(still=27)),
    "J3": tuple(adversary("within", [FAR] * far + [FAR - 0.01] * (100 - far)) for far in (80, 20, 52)),
    "J3b": tuple(adversary("without top", [0.1] * there + [math.nan] * (100 - there)) for there in (80, 20, 52)),
    "J4": tuple(orders(reversed_ones=some, held=held) for some, held in ((80, 0), (10, 75), (40, 10))),
    "W1": (
        runs("uniform", "learned", [(0.805, 0.81), (0.806, 0.81), (0.804, 0.81)]),
        runs("uniform", "learned", [(0.705, 0.81), (0.706, 0.81), (0.704, 0.81)]),
        runs("uniform", "learned", [(0.80, 0.81), (0.78, 0.81), (0.83, 0.81)]),
    ),
    "W2": (
        runs("base", "adversary", [(0.81, 0.74), (0.81, 0.75), (0.81, 0.76)], "diagnostic"),
        runs("base", "adversary", [(0.74, 0.81), (0.75, 0.81), (0.76, 0.81)], "diagnostic"),
        runs("base", "adversary", [(0.81, 0.80), (0.80, 0.81), (0.81, 0.80)], "diagnostic"),
    ),
    "W3": (curve(0.2, 0.21, 0.19), curve(-0.2, -0.21, -0.19), curve(0.3, -0.2, 0.1)),
}
DECISIONS: tuple[Decision, ...] = ("yes", "no", "not shown")


def of(claim: str, tables: Tables) -> Verdict:
    return judge((claim,), tables)[0]


def bounds(claim: str, tables: Tables) -> tuple[float, float, float]:
    found = of(claim, tables).estimate
    assert found is not None
    return found.value, found.low, found.high


def wilson(share: float, trials: int, z: float = 1.959964) -> tuple[float, float]:
    middle, half = share + z**2 / (2 * trials), z * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return (middle - half) / (1 + z**2 / trials), (middle + half) / (1 + z**2 / trials)


def test_every_claim_has_its_cases() -> None:
    assert set(CASES) == {name for name in CLAIMS if name[0] in "JW"}


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


@pytest.mark.parametrize(("claim", "share"), [("J2", 0.5), ("J3", 0.8), ("J3b", 0.8)])
def test_shares_of_texts_have_wilsons_interval(claim: str, share: float) -> None:
    """Texts of one unit, whose attention nothing can change, and texts that the claim is not about do not count."""
    assert bounds(claim, CASES[claim][0]) == pytest.approx((share, *wilson(share, 100)), abs=1e-6)
    assert of(claim, CASES[claim][0]).counts.startswith("100 texts")


def test_what_is_not_ruled_out_does_not_refute() -> None:
    """With three classes or more 20 of 100 texts are shown to have attention far away, and 70 may have."""
    (case,) = CASES["J3"][1].values()
    open_ones = {"adversary": case.assign(jsd_upper=[FAR] * 70 + [0.1] * (len(case) - 70))}
    assert bounds("J3", open_ones) == pytest.approx((0.2, wilson(0.2, 100)[0], wilson(0.7, 100)[1]), abs=1e-6)
    assert (of("J3", CASES["J3"][1]).decision, of("J3", open_ones).decision) == ("no", "not shown")


def test_another_attention_may_reverse_all_pairs_that_are_not_held() -> None:
    assert bounds("J4", CASES["J4"][2]) == pytest.approx((0.4, wilson(0.4, 100)[0], wilson(0.9, 100)[1]), abs=1e-6)
    assert of("J4", CASES["J4"][1]).words == (
        "The outputs of the whole corpus hold attention: with the outputs of all texts within .05, one attention "
        "reverses the order of only 10.0% of the pairs of a word of a class and one that all classes use alike, and "
        "none reverses most."
    )
    few = of("J4", orders(reversed_ones=9, held=0, of=FEWEST - 1))
    assert (few.decision, few.words.endswith("There are 9 pairs of words.")) == ("not shown", True)


def test_of_gradient_and_leaving_out_the_weaker_counts() -> None:
    """.8 of leave-one-out and .9 of the gradient; with two there are two chances to fall below the line (97.5 %)."""
    low, high = wilson(0.8, 100)[0], wilson(0.8, 100, 2.241403)[1]
    assert bounds("J1", CASES["J1"][0]) == pytest.approx((0.8, low, high), abs=1e-6)
    assert bounds("J1", agreement(gradient=70, leave_one_out=90))[0] == pytest.approx(0.7)


def test_a_model_without_context_is_not_what_the_first_claim_is_about() -> None:
    found = of("J1", agreement(gradient=90, leave_one_out=80, contextual=False))
    assert (found.decision, found.estimate) == ("not shown", None)
    assert found.words.endswith("The claim is about encoders that see a word's neighbours.")


def test_differences_of_accuracy_have_students_interval_over_seeds() -> None:
    """−.005, −.004, −.006: deviation .001, 4.3027 / √3 of it to either side."""
    half = 4.302653 * 0.001 / math.sqrt(3)
    assert bounds("W1", CASES["W1"][0]) == pytest.approx((-0.005, -0.005 - half, -0.005 + half), abs=1e-7)
    assert bounds("W2", CASES["W2"][0])[0] == pytest.approx(0.06)
    half = 4.302653 * 0.01 / math.sqrt(3)
    assert bounds("W3", CASES["W3"][0]) == pytest.approx((0.2, 0.2 - half, 0.2 + half), abs=1e-7)


@pytest.mark.parametrize("claim", ["J1", "J2", "J3", "J3b"])
@pytest.mark.parametrize("texts", [0, 1, FEWEST - 1])
def test_few_texts_are_undecided_and_the_words_say_so(claim: str, texts: int) -> None:
    for tables in CASES[claim]:
        few = {name: table[table["instance"] < texts] for name, table in tables.items()}
        found = of(claim, few)
        assert (found.decision, found.known) == ("not shown", False)
        assert "too few texts to tell" in found.words
        if found.estimate is not None and texts:
            assert f"There are {texts} text" in found.words


@pytest.mark.parametrize("claim", ["W1", "W2", "W3"])
def test_where_the_models_are_missing_that_a_claim_compares_it_says_so(claim: str) -> None:
    column = "kind" if claim == "W3" else "weights"
    for tables in CASES[claim]:
        for gone in {"W1": ("uniform", "learned"), "W2": ("base", "adversary"), "W3": ("adversary",)}[claim]:
            rest = {name: table[table[column] != gone] for name, table in tables.items()}
            found = of(claim, rest)
            assert (found.decision, found.estimate) == ("not shown", None)
            assert found.words.startswith("This compares trainings, and the tables do not hold those that it takes.")


def test_one_seed_is_no_regularity_of_trainings() -> None:
    found = of("W3", curve(0.2))
    assert (found.decision, found.words.endswith("Two seeds or more are needed.")) == ("not shown", True)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (
            "J2",
            (
                "Where attention points is often of no account: of the texts with peaked attention 50.0% keep their "
                "output, within .1, when it is shuffled.",
                "Where attention points matters: of the texts with peaked attention only 5.0% keep their output, "
                "within .1, when it is shuffled.",
                "Of the texts with peaked attention 27.0% keep their output, within .1, when it is shuffled; that is "
                "too close to a quarter, or rests on too few texts, to call.",
            ),
        ),
        (
            "J3b",
            (
                "Another story can be told: for 80.0% of the texts other weights give exactly the same output without "
                "the most attended unit.",
                "The most attended unit is needed: for only 20.0% of the texts other weights give exactly the same "
                "output without the most attended unit.",
                "For 52.0% of the texts other weights give exactly the same output without the most attended unit; "
                "that is too close to half, or rests on too few texts, to call.",
            ),
        ),
    ],
)
def test_what_is_said(claim: str, words: tuple[str, str, str]) -> None:
    assert tuple(of(claim, tables).words for tables in CASES[claim]) == words


def test_over_models_the_mean_counts() -> None:
    one, other = (CASES["J3b"][case]["adversary"].assign(model=name) for case, name in ((0, "lstm"), (1, "average")))
    found = bounds("J3b", {"adversary": pd.concat([one, other], ignore_index=True)})
    low, high = (sum(ends) / 2 for ends in zip(wilson(0.8, 100), wilson(0.2, 100), strict=True))
    assert found == pytest.approx((0.5, low, high), abs=1e-6)
