"""Claims about training dynamics on tables made by hand: what holds, what does not, what cannot be told."""

import numpy as np
import pandas as pd
import pytest

from heedful.claims import CLAIMS, Verdict, judge
from tests.covering import covers


def verdict(name: str, **tables: pd.DataFrame) -> Verdict:
    (found,) = judge((name,), tables)
    return found


def value(found: Verdict) -> float:
    assert found.estimate is not None
    return found.estimate.value


def penalties(left: float, *, accuracy: float = 0.9) -> pd.DataFrame:
    """Four seeds with and without penalty; so much of each gap is left."""
    gaps = [0.1, 0.4, 0.2, 0.3]
    plain = [("corpus", seed, 0.0, gap, 0.9) for seed, gap in enumerate(gaps)]
    penalised = [("corpus", seed, 1e-3, left * gap, accuracy) for seed, gap in enumerate(gaps)]
    return pd.DataFrame([*plain, *penalised], columns=["corpus", "seed", "penalty", "gap", "accuracy"])


@covers(claim=("C5",))
def test_a_penalty_that_closes_the_gap_holds_and_its_share_is_that_of_all_gaps() -> None:
    found = verdict("C5", penalty=penalties(0.1))
    assert found.decision == "yes"
    assert value(found) == pytest.approx(0.9)
    assert found.words == (
        "Penalising VᵀW closes 90% of the attention gap between positive and negative words and costs no accuracy."
    )


def test_a_penalty_that_leaves_half_of_the_gap_or_costs_accuracy_does_not_hold() -> None:
    assert verdict("C5", penalty=penalties(0.5)).decision == "no"
    costly = verdict("C5", penalty=penalties(0.1, accuracy=0.88))
    assert costly.decision == "no"
    assert value(costly) == 0.0
    assert verdict("C5", penalty=penalties(0.1, accuracy=0.895)).decision == "yes"


def test_runs_are_paired_by_corpus_and_seed() -> None:
    table = penalties(0.1)
    assert verdict("C5", penalty=table[table["penalty"] == 0]).words == (
        "It takes at least two runs of each kind to tell."
    )
    assert verdict("C5", penalty=table.sample(frac=1, random_state=0)).estimate is not None


def ratios(skewed: list[float], balanced: list[float]) -> pd.DataFrame:
    rows = [(share, seed, -size) for seed, size in enumerate(skewed) for share in (0.1, 0.9)]
    rows += [(0.5, seed, size) for seed, size in enumerate(balanced)]
    return pd.DataFrame(rows, columns=["positive_share", "seed", "alignment"])


@covers(claim=("C6",))
def test_skew_is_judged_by_magnitudes_from_the_same_initialisation() -> None:
    found = verdict("C6", ratios=ratios([5.0, 7.0, 6.0], [1.0, 3.1, 1.9]))
    assert found.decision == "yes"
    assert value(found) == pytest.approx(4.0)
    assert verdict("C6", ratios=ratios([1.0, 3.1, 1.9], [5.0, 7.0, 6.0])).decision == "no"
    assert verdict("C6", ratios=ratios([1.0, 3.0, 2.0], [2.0, 2.0, 2.1])).decision == "not shown"


def products(**omegas: float) -> pd.DataFrame:
    """Two seeds, a hundred pairs of each kind around these dot products."""
    rng = np.random.default_rng(0)
    means = {"pos-pos": 1.7, "neg-neg": 1.8, "pos-neg": -1.0, "pos-neu": 0.0, "neg-neu": 0.0, "neu-neu": 0.0}
    given = {**means, **{kind.replace("_", "-"): omega for kind, omega in omegas.items()}}
    rows = [
        (seed, kind, mean + 0.1 * rng.normal()) for seed in range(2) for kind, mean in given.items() for _ in range(100)
    ]
    return pd.DataFrame(rows, columns=["seed", "kind", "omega"])


@covers(claim=("C7",))
def test_every_part_of_the_pattern_of_dot_products_must_hold() -> None:
    assert verdict("C7", dot_products=products()).decision == "yes"
    assert verdict("C7", dot_products=products(neg_neg=-1.8)).decision == "no"
    assert verdict("C7", dot_products=products(pos_neg=1.0)).decision == "no"
    assert verdict("C7", dot_products=products(pos_neg=-3.0)).decision == "no"
    assert verdict("C7", dot_products=products(neu_neu=2.5, pos_neu=2.5)).decision == "no"


def test_the_weakest_part_of_the_dot_products_by_hand() -> None:
    omegas = {"pos-pos": [1.0, 2.0, 3.0, -2.0], "neg-neg": [2.0] * 4, "pos-neg": [-0.5] * 4, "neu-neu": [0.0] * 4}
    rows = [(seed, kind, omega) for seed in range(2) for kind, values in omegas.items() for omega in values]
    found = verdict("C7", dot_products=pd.DataFrame(rows, columns=["seed", "kind", "omega"]))
    assert value(found) == 0.75


def terms(*, f_positive: float = 1.0, a: float = 0.01) -> pd.DataFrame:
    """Two seeds, an early moment where all is wrong and a late one as derived."""
    up = {
        "positive": {"A": 1.0, "B": 1.0, "C": 1.0, "E": 1.0, "F": f_positive},
        "negative": {"A": 1.0, "B": 0.0, "C": 0.0, "E": 1.0, "F": f_positive},
    }
    rows = [
        (scale, seed, time, beta, group, term, a if term == "A" else 1.0, share if time else 1 - share)
        for scale in (10.0, 100.0)
        for seed in range(2)
        for time, beta in ((0.0, 0.5), (100.0, 0.1))
        for group, shares in up.items()
        for term, share in shares.items()
    ]
    columns = ["score_scale", "seed", "time", "mean_beta", "group", "term", "mean", "positive"]
    return pd.DataFrame(rows, columns=columns)


@covers(claim=("C10",))
def test_signs_of_terms_are_judged_near_the_minimum_only() -> None:
    assert verdict("C10", terms=terms()).decision == "yes"
    found = verdict("C10", terms=terms(f_positive=0.6))
    assert found.decision == "no"
    assert value(found) == pytest.approx(0.6)


def test_signs_of_terms_are_judged_at_the_moderate_scale_only() -> None:
    table = terms()
    table.loc[(table["score_scale"] == 100) & (table["term"] == "F"), "positive"] = 0.0
    assert verdict("C10", terms=table).decision == "yes"


def test_the_term_a_must_be_small_at_the_largest_scale_only() -> None:
    large = terms(a=2.0)
    assert value(verdict("C10", terms=large)) == pytest.approx(0.5)
    large.loc[large["score_scale"] == 100, "mean"] = 1.0
    large.loc[(large["score_scale"] == 100) & (large["term"] == "A"), "mean"] = 0.0
    assert verdict("C10", terms=large).decision == "yes"


def test_a_training_that_never_comes_near_a_minimum_tells_nothing() -> None:
    early = terms()
    found = verdict("C10", terms=early[early["time"] == 0])
    assert found.decision == "not shown"
    assert found.estimate is None


@covers(claim=("C13",))
def test_settling_compares_the_widest_with_the_narrowest_initialisation() -> None:
    rows = [(0.1, 0, 20.0), (0.1, 1, 30.0), (1.0, 0, 200.0), (1.0, 0, 240.0), (1.0, 1, 230.0)]
    found = verdict("C13", settling=pd.DataFrame(rows, columns=["embedding_range", "seed", "settled"]))
    assert value(found) == pytest.approx(200.0)
    assert found.decision == "yes"
    assert found.words == "From a smaller initialisation a pair of words settles on its sign 200 epochs earlier."


def test_one_initialisation_has_nothing_to_compare_with() -> None:
    rows = [(0.1, 0, 20.0), (0.1, 0, 30.0), (0.1, 1, 25.0)]
    found = verdict("C13", settling=pd.DataFrame(rows, columns=["embedding_range", "seed", "settled"]))
    assert (found.estimate, found.decision) == (None, "not shown")


def noise(shift: float) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    parts = []
    for seed in range(3):
        groups = ["positive"] * 50 + ["negative"] * 50 + ["neutral"] * 100
        polarity = np.repeat([5.0, -5.0, 0.0, 0.0], 50)
        attention = rng.normal(size=200) + np.repeat([shift, shift, 0.0, 0.0], 50)
        table = pd.DataFrame({"group": groups, "polarity": polarity, "attention": attention, "seed": seed})
        parts += [table.assign(noise=0.05), table.assign(noise=0.0, attention=0.0)]
    return pd.concat(parts)


@covers(claim=("C14",))
def test_noise_is_judged_on_the_noisy_data() -> None:
    assert verdict("C14", noise=noise(4.0)).decision == "yes"
    assert verdict("C14", noise=noise(0.5)).decision == "no"
    clean = noise(4.0)
    assert verdict("C14", noise=clean[clean["noise"] == 0]).estimate is None


def test_an_interval_of_shares_ends_at_one() -> None:
    found = verdict("C14", noise=noise(3.0))
    assert found.estimate is not None
    assert found.estimate.high <= 1.0


@pytest.mark.parametrize("name", ["C5", "C6", "C7", "C10", "C13", "C14"])
def test_every_claim_is_registered_with_words_for_every_decision(name: str) -> None:
    assert set(CLAIMS[name].words) == {"yes", "no", "not shown"}
    assert CLAIMS[name].sides == ("runs",)
