"""One attention that reverses the order of pairs of words: by hand, by another program, and on planted truth."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from scipy.optimize import linprog

from heedful.analysis.orders import ReversedOrders, matched_pairs, reversed_orders
from heedful.claims import Decision, judge
from heedful.errors import InputError
from heedful.traces import Trace
from tests.oracles import attention_bounds as oracle
from tests.strategies import seeds

pytestmark = pytest.mark.usefixtures("one_thread")


def trace_of(
    documents: Sequence[Sequence[int]], attention: np.ndarray, polarity: np.ndarray
) -> tuple[Trace, torch.Tensor]:
    tokens = torch.tensor([token for document in documents for token in document])
    bias = [0.0] * (polarity.shape[1] if polarity.ndim > 1 else 1)
    made = Trace.from_arrays(
        offsets=np.cumsum([0, *map(len, documents)]),
        attention_scores=attention[tokens],
        polarity_scores=polarity[tokens],
        bias=bias,
        units=[f"t{token}" for token in tokens.tolist()],
    )
    return made, tokens


@settings(max_examples=12)
@given(seed=seeds)
def test_what_is_reversed_is_attained_and_what_is_held_no_weights_reverse(seed: int) -> None:
    """Beside it the plain question: are there weights that keep the outputs with the second word above the first?"""
    rng = np.random.default_rng(seed)
    size, classes, epsilon = 8, 2 + seed % 2, 0.05
    documents = [rng.integers(0, size - 1, rng.integers(1, 5)).tolist() for _ in range(14)] + [list(range(size))]
    attention, polarity = rng.normal(size=size), 2 * rng.normal(size=(size, classes))
    made, tokens = trace_of(documents, attention, polarity)
    free = np.flatnonzero(np.bincount(tokens) >= 3).tolist()
    order = sorted(free, key=lambda token: -attention[token])
    pairs = list(itertools.combinations(order, 2))[:6]
    found = reversed_orders(made, tokens, pairs, epsilon=epsilon, minimum_count=3)
    other = found.tokens.set_index("number")["other"]
    changed = Trace.from_arrays(
        offsets=made.offsets,
        polarity_scores=made.polarity_scores,
        bias=made.bias,
        attention_scores=other.loc[tokens.tolist()].to_numpy(),
    )
    assert float((changed.probabilities - made.probabilities).abs().sum(1).max() / 2) <= epsilon + 1e-6
    rows = oracle.half_spaces(documents, attention, polarity, epsilon)
    for (first, second), row in zip(pairs, found.pairs.to_dict("records"), strict=True):
        assert row["reversed"] == (other[first] < other[second])
        possible = _possible(rows, attention, free, first, second)
        assert not (row["held"] and possible)
        assert possible or not row["reversed"]


def _possible(rows: np.ndarray, attention: np.ndarray, free: Sequence[int], first: int, second: int) -> bool:
    """Whether some weights of the free tokens keep all outputs with the second word a little above the first."""
    kept = [token for token in range(len(attention)) if token not in free]
    constant = rows[:, kept] @ np.exp(attention[kept])
    above = np.zeros(len(free))
    above[list(free).index(first)], above[list(free).index(second)] = 1.0, -1.0
    answer = linprog(above, A_ub=-rows[:, free], b_ub=constant, bounds=(0, 1e6), method="highs-ds")
    return answer.status == 0 and answer.x is not None and bool(above @ answer.x < -1e-9)


@pytest.mark.parametrize(("epsilon", "held"), [(0.05, True), (0.11, False), (0.15, False)])
def test_of_three_classes_an_order_is_held_only_if_total_variation_holds_it(epsilon: float, held: bool) -> None:
    """One text of two words that push (2, 0, −2) and back, with scores .3 and 0, and outputs of a third each. With
    equal scores its outputs move by .103: the condition that implies TVD ≤ ε forbids that up to .14."""
    push = np.array([[2.0, 0.0, -2.0], [-2.0, 0.0, 2.0]])
    weights = np.exp([0.3, 0.0]) / np.exp([0.3, 0.0]).sum()
    made = Trace.from_arrays(
        offsets=[0, 2], attention_scores=[0.3, 0.0], polarity_scores=push, bias=-(weights @ push), units=["a", "b"]
    )
    even = np.exp(-(weights @ push))
    assert float(np.abs(even / even.sum() - 1 / 3).sum() / 2) == pytest.approx(0.103, abs=1e-3)
    found = reversed_orders(made, torch.arange(2), [(0, 1)], epsilon=epsilon, minimum_count=1).pairs
    assert found["held"].tolist() == [held]


@pytest.mark.parametrize("classes", [2, 3])
def test_where_no_output_can_move_by_so_much_nothing_is_held(classes: int) -> None:
    push = 9.0 * np.eye(classes)[:1].repeat(2, 0)
    made, tokens = trace_of([[0, 1]], np.array([1.0, 0.0]), push)
    found = reversed_orders(made, tokens, [(0, 1)], epsilon=0.5, minimum_count=1).pairs
    assert (found["reversed"].tolist(), found["held"].tolist()) == ([True], [False])


WORDS = 12


def planted(seed: int, *, alike: int) -> pd.DataFrame:
    """Twelve words of a class and twelve others in texts of two, all combinations; of the first so many pairs both
    words say the same, so that any weights give the same output, the others push 1.5 against 0, which two outputs tell.

    Texts hold words of one kind only.
    """
    rng = np.random.default_rng(seed)
    firsts, seconds = np.arange(WORDS), WORDS + np.arange(WORDS)
    attention = np.concatenate([rng.uniform(1.5, 2.0, WORDS), rng.uniform(-0.2, 0.2, WORDS)])
    push = np.concatenate([rng.choice([-1.5, 1.5], WORDS), np.zeros(WORDS)]) + rng.normal(0, 0.05, 2 * WORDS)
    push[[*range(alike), *range(WORDS, WORDS + alike)]] = 0.7
    kinds = ((firsts[:alike], seconds[:alike]), (firsts[alike:], seconds[alike:]))
    documents = [[int(one), int(other)] for kind in kinds for one in kind[0] for other in kind[1]] * 3
    made, tokens = trace_of(documents, attention, push)
    table = pd.DataFrame(
        {
            "group": ["positive"] * WORDS + ["neutral"] * WORDS, "beyond_chance": True, "count": 40,
            "even": [False] * WORDS + [True] * WORDS, "attention": attention,
        }
    )  # fmt: skip
    if 0 < alike < WORDS:
        pairs = list(zip(firsts.tolist(), seconds.tolist(), strict=True))
    else:
        pairs = matched_pairs(table, torch.bincount(tokens), least=10, most=100, seed=seed)
    return _pairs(reversed_orders(made, tokens, pairs))


def _pairs(found: ReversedOrders) -> pd.DataFrame:
    assert found.farthest <= 0.05 + 1e-6
    return found.pairs


@pytest.mark.parametrize("seed", range(40, 46))
@pytest.mark.parametrize(
    ("alike", "reversible", "decision"), [(WORDS, 12, "yes"), (0, 0, "no"), (WORDS // 2, 6, "not shown")]
)
def test_where_words_say_the_same_nothing_is_held_and_where_outputs_tell_them_apart_everything_is(
    seed: int, alike: int, reversible: int, decision: Decision
) -> None:
    pairs = planted(seed, alike=alike)
    assert len(pairs) == WORDS
    assert (int(pairs["reversed"].sum()), int((~pairs["held"]).sum())) == (reversible, reversible)
    (verdict,) = judge(("J4",), {"orders": pairs})
    assert verdict.decision == decision


def test_pairs_are_as_frequent_and_each_word_is_in_one() -> None:
    """Words of a class 0, 1, 2 (and 3 by chance, 4 rare here); alike are 5 to 8, of which 8 is too frequent."""
    table = pd.DataFrame(
        {
            "group": ["positive"] * 5 + ["neutral", "none", "neutral", "neutral"],
            "beyond_chance": [True, True, True, False, True, False, False, False, False],
            "even": [False] * 5 + [True] * 4,
            "count": [20, 21, 90, 20, 20, 20, 22, 100, 900],
            "attention": [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.5, 2.0, 0.0],
        }
    )
    counts = torch.tensor([15, 15, 15, 15, 3, 15, 15, 15, 15])
    for seed in range(4):
        pairs = matched_pairs(table, counts, least=10, most=9, seed=seed)
        assert sorted(first for first, _ in pairs) == [0, 1]  # 2 is beside 7, which has the larger score
        assert sorted(second for _, second in pairs) == [5, 6]
    assert len(matched_pairs(table, counts, least=10, most=1, seed=0)) == 1
    assert matched_pairs(table.assign(even=False), counts, least=10, most=9, seed=0) == []


def test_without_pairs_attention_stays() -> None:
    made, tokens = trace_of([[0, 1]], np.array([0.5, 0.0]), np.array([1.0, -1.0]))
    found = reversed_orders(made, tokens, [], minimum_count=1)
    assert (len(found.pairs), found.farthest) == (0, 0.0)
    assert found.tokens["other"].tolist() == found.tokens["attention"].tolist()


def test_refusals_are_sentences() -> None:
    made, tokens = trace_of([[0, 1]], np.array([0.5, 0.0]), np.array([1.0, -1.0]))
    with pytest.raises(InputError, match="above 0 and below 1, not 0"):
        reversed_orders(made, tokens, [(0, 1)], epsilon=0.0)
    with pytest.raises(InputError, match="Token 0 is too rare here: its score stays"):
        reversed_orders(made, tokens, [(0, 1)], minimum_count=2)
