"""The extreme attention scores of tokens: by hand, by bisection, by properties."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import example, given, settings

from heedful.analysis.determined import determined_attention, extreme_trace
from heedful.analysis.programs import LeastRatio
from heedful.analysis.same_outputs import allowed_rises
from heedful.errors import InputError
from heedful.models.classifier import Classifier
from heedful.text.corpus import Corpus
from heedful.traces import Trace
from heedful.tracing import trace as trace_of
from tests.oracles import attention_bounds as oracle
from tests.strategies import seeds

Numbers = Sequence[float] | Sequence[Sequence[float]] | np.ndarray

pytestmark = pytest.mark.usefixtures("one_thread")


def _trace(
    documents: Sequence[Sequence[int]], attention: Numbers, polarity: Numbers, bias: Numbers = (0,)
) -> tuple[Trace, torch.Tensor]:
    """The trace of documents of token numbers, with the scores of each token."""
    tokens = torch.tensor([token for document in documents for token in document])
    made = Trace.from_arrays(
        offsets=np.cumsum([0, *map(len, documents)]),
        attention_scores=np.asarray(attention, dtype=np.float64)[tokens],
        polarity_scores=np.asarray(polarity, dtype=np.float64)[tokens],
        bias=list(bias),
        units=[f"t{token}" for token in tokens.tolist()],
    )
    return made, tokens


def _random(
    seed: int, classes: int = 2, size: int = 7, texts: int = 8
) -> tuple[list[list[int]], np.ndarray, np.ndarray]:
    """Short texts and one that has every token; the last token is in that one alone, so it keeps its score."""
    rng = np.random.default_rng(seed)
    documents = [rng.integers(0, size - 1, rng.integers(1, 6)).tolist() for _ in range(texts)]
    documents.append(list(range(size)))
    return documents, rng.normal(size=size), 3 * rng.normal(size=(size, classes))


def _bounds(table: pd.DataFrame) -> list[tuple[float, float]]:
    return list(zip(table["low"], table["high"], strict=True))


def test_one_text_of_two_tokens_by_hand() -> None:
    """s = 2 (2α − 1) and p = 1/2: within .1 is |s| ≤ log 1.5, and a = logit α = log (2 + s)/(2 − s)."""
    table = determined_attention(*_trace([[0, 1]], [0, 0], [2, -2]), epsilon=0.1, only=[0])
    bound = math.log((2 + math.log(1.5)) / (2 - math.log(1.5)))
    assert table.columns.tolist() == ["number", "token", "count", "attention", "low", "high", "width", "status"]
    assert table.iloc[0, :4].tolist() == [0, "t0", 1, 0.0]
    assert table.iloc[0, 4:7].tolist() == pytest.approx([-bound, bound, 2 * bound])
    assert table["status"].tolist() == ["proved"]


def test_bias_is_part_of_what_is_said_and_counts_of_what_is_weighed() -> None:
    """Token 0 twice with w, token 1 with 1: s = (2 w·3 − 1)/(2 w + 1) + 1 with p within .05 of σ(s)."""
    table = determined_attention(*_trace([[0, 1, 0]], [0.5, 0], [3, -1], [1]), epsilon=0.05, only=[0])

    def score(probability: float) -> float:
        s = math.log(probability / (1 - probability)) - 1
        return math.log((1 + s) / (2 * (3 - s)))

    w = math.exp(0.5)
    p = 1 / (1 + math.exp(-((6 * w - 1) / (2 * w + 1) + 1)))
    assert _bounds(table)[0] == pytest.approx((score(p - 0.05), math.inf if p > 0.95 else score(p + 0.05)))


def test_where_every_unit_says_the_same_a_token_can_be_anything() -> None:
    documents = [[0, 1], [1, 2, 2]]
    for epsilon in (0.0, 0.01):
        table = determined_attention(*_trace(documents, [0.3, 1, -2], [0.7, 0.7, -2]), epsilon=epsilon, only=[0])
        assert _bounds(table) == [(-math.inf, math.inf)]
        assert table["status"].tolist() == ["proved"]


def test_without_tolerance_a_token_is_pinned_to_its_score() -> None:
    table = determined_attention(
        *_trace([[0, 1], [1, 2, 0]], [0.3, 1, -2], [1.7, 0.7, -2]), epsilon=0.0, only=[0, 1, 2]
    )
    assert table["low"].tolist() == pytest.approx(table["attention"].tolist(), abs=1e-6)
    assert table["high"].tolist() == pytest.approx(table["attention"].tolist(), abs=1e-6)


def test_without_tolerance_two_free_tokens_may_move_together() -> None:
    """(4 w₀ − 4 w₁ + 1/2) / (2 w₀ + 2 w₁ + 1) stays 9/14: w₁ = 0 needs w₀ = 1/19, and w₀ may grow with w₁."""
    made = _trace([[0, 0, 1, 1, 2]], [math.log(2), 0, 0], [2, -2, 0.5])
    table = determined_attention(*made, epsilon=0.0, minimum_count=2)
    assert table["number"].tolist() == [0, 1]
    assert _bounds(table)[0] == pytest.approx((math.log(1 / 19), math.inf))
    assert _bounds(table)[1] == (-math.inf, math.inf)


def test_three_classes_by_hand() -> None:
    """Logits (x, −x, 0) around 0, p = 1/3 each: 2x may be h(1/3) = log 1.3 − log .85, smaller than h(2/3)."""
    made = _trace([[0, 1]], [0, 0], [[1, -1, 0], [-1, 1, 0]], [0, 0, 0])
    table = determined_attention(*made, epsilon=0.1, only=[0])
    bound = 2 * math.atanh(math.log(1.3 / 0.85) / 2)
    assert _bounds(table)[0] == pytest.approx((-bound, bound))


def test_a_scale_where_all_tokens_are_free_is_the_weight_of_the_others() -> None:
    """One text of three tokens, 0 and 1 say the same: token 2's share decides, whatever 0 and 1 are, but not 0's."""
    made = _trace([[0, 1, 2]], [0, 0, 0], [2, 2, -2])
    table = determined_attention(*made, epsilon=0.1, minimum_count=1)
    s = 2 / 3
    p = 1 / (1 + math.exp(-s))
    low, high = ((math.log(q / (1 - q))) for q in (p - 0.1, p + 0.1))
    shares = [(2 - value) / 4 for value in (high, low)]
    expected = [math.log(2 * share / (1 - share)) for share in shares]
    found = dict(zip(table["number"], _bounds(table), strict=True))
    assert found[2] == pytest.approx(expected)
    assert found[0][0] == -math.inf
    # all of 1 − w₂ on token 0: w₀ by the others is (1 − share)/share, and both others weigh 2
    assert found[0][1] == pytest.approx(math.log(2 * (1 - shares[0]) / shares[0]))


@settings(max_examples=15)
@given(seed=seeds)
@example(seed=41)  # three classes, and a word whose leaving keeps TVD ≤ ε but not the condition
def test_bounds_are_those_of_bisection_over_the_weight(seed: int) -> None:
    classes = 2 + seed % 2
    documents, attention, polarity = _random(seed, classes)
    epsilon = (0.02, 0.1)[seed % 3 > 0]
    made = _trace(documents, attention, polarity, [0] * classes)
    free = np.flatnonzero(np.bincount(made[1]) >= 4).tolist()
    table = determined_attention(*made, epsilon=epsilon, minimum_count=4, only=[0, 1, 2])
    rows = oracle.half_spaces(documents, attention, polarity, epsilon)
    for number, found in zip(table["number"], _bounds(table), strict=True):

        def possible(weight: float, token: int = number) -> bool:
            return oracle.exists(rows, attention, free, token, weight)

        assert found == pytest.approx(oracle.extremes(possible, attention[number]), abs=1e-4)


@settings(max_examples=40)
@given(seed=seeds)
def test_with_one_other_free_token_bounds_need_no_linear_program(seed: int) -> None:
    documents, attention, polarity = _random(seed, size=4)
    documents += [[0], [0]] * 10 + [[1]] * 20
    made = _trace(documents, attention, polarity, [0, 0])
    table = determined_attention(*made, epsilon=0.05, minimum_count=20, only=[0])
    free = np.flatnonzero(np.bincount(made[1]) >= 20).tolist()
    assert free == [0, 1]
    rows = oracle.half_spaces(documents, attention, polarity, 0.05)

    def possible(weight: float) -> bool:
        return oracle.exists_with_one_other(rows, attention, 1, 0, weight)

    assert _bounds(table)[0] == pytest.approx(oracle.extremes(possible, attention[0]), abs=1e-4)


@settings(max_examples=8)
@given(seed=seeds)
def test_intervals_hold_the_score_and_grow_with_the_tolerance(seed: int) -> None:
    documents, attention, polarity = _random(seed, 2 + seed % 3)
    made = _trace(documents, attention, polarity, np.linspace(0, 1, polarity.shape[1]))
    last = [(score, score) for score in attention]
    for epsilon in (0.0, 0.01, 0.05, 0.2):
        table = determined_attention(*made, epsilon=epsilon, minimum_count=4, only=range(len(attention)))
        assert table["status"].eq("proved").all()
        bounds = _bounds(table)
        assert all(now[0] <= was[0] + 1e-5 and now[1] >= was[1] - 1e-5 for now, was in zip(bounds, last, strict=True))
        last = bounds


@settings(max_examples=60)
@given(seed=seeds)
def test_log_odds_within_what_is_allowed_keep_probabilities_within_epsilon(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes, epsilon = int(rng.choice([2, 3, 5, 12])), float(rng.choice([0.01, 0.1, 0.3]))
    p = torch.from_numpy(rng.dirichlet(np.full(classes, rng.choice([0.2, 1.0, 5.0])), 20)).clamp(min=1e-9)
    p = p / p.sum(1, keepdim=True)
    rises = allowed_rises(p, epsilon)
    direction = torch.from_numpy(rng.normal(size=(20, classes)))
    if seed % 2:
        direction = direction.sign()
    farthest = torch.stack(
        [rise / (direction[:, k] - direction[:, m]).clamp(min=1e-9) for (k, m), rise in rises.items()]
    )
    moves = direction * farthest.amin(0).clamp(max=50)[:, None]
    distance = ((p.log() + moves).softmax(1) - p).abs().sum(1) / 2
    assert (distance <= epsilon + 1e-9).all()
    if classes == 2:
        reached = farthest.amin(0) < 50
        assert distance[reached].tolist() == pytest.approx([epsilon] * int(reached.sum()))


def _again(changed: Trace | None) -> Trace:
    """Its outputs once more from its scores alone."""
    assert changed is not None
    return Trace.from_arrays(
        offsets=changed.offsets,
        polarity_scores=changed.polarity_scores,
        bias=changed.bias,
        attention_scores=changed.attention_scores,
    )


@pytest.mark.parametrize("highest", [False, True])
def test_the_bounds_of_a_trained_model_are_attained(
    small_model: Classifier, small_corpus: Corpus, highest: bool
) -> None:
    """Put into the model, the scores behind a bound keep every output; rare tokens have the scores they had."""
    traced, tokens = trace_of(small_model, small_corpus.test), small_corpus.test.tokens.numbers
    counts = torch.bincount(tokens)
    often = int(counts.median()) + 1
    for token in (int(counts.argmax()), int(counts.argmin())):
        table = determined_attention(traced, tokens, epsilon=0.02, minimum_count=often, only=[token])
        changed = _again(extreme_trace(traced, tokens, token, highest=highest, epsilon=0.02, minimum_count=often))
        assert torch.equal(changed.polarity_scores, traced.polarity_scores)
        assert float((changed.probabilities - traced.probabilities).abs().sum(1).max() / 2) <= 0.02 + 1e-7
        rare = (counts[tokens] < often) & (tokens != token)
        assert torch.allclose(changed.attention_scores[rare], traced.attention_scores[rare])
        reached = float(changed.attention_scores[tokens == token][0])
        bound = table["high" if highest else "low"][0]
        assert reached == pytest.approx(bound) if math.isfinite(bound) else abs(reached) > 13


def test_the_most_frequent_tokens_come_first_and_each_is_told(small_model: Classifier, small_corpus: Corpus) -> None:
    traced, tokens = trace_of(small_model, small_corpus.test), small_corpus.test.tokens.numbers
    done: list[tuple[int, int]] = []
    table = determined_attention(traced, tokens, epsilon=0.02, limit=4, watch=lambda *both: done.append(both))
    assert done == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert table["status"].eq("proved").all()
    assert table["count"].tolist() == torch.bincount(tokens).sort(descending=True).values[:4].tolist()
    assert (table["low"] <= table["attention"]).all()
    assert (table["high"] >= table["attention"]).all()


def test_scores_of_any_size_are_no_obstacle() -> None:
    """Tokens whose weights underflow beside others, and one that would need e^900 to be heard."""
    documents = [[0, 1], [1, 2], [2, 3, 0], [3, 4], [4]]
    attention, polarity = [0, -1, -900, 2, -450.0], [2, -2, 1, -1, 0.5]
    table = determined_attention(*_trace(documents, attention, polarity), epsilon=0.05, minimum_count=2, only=range(5))
    assert table["status"].eq("proved").all()
    assert table["low"].le(table["attention"] + 1e-9).all()
    assert table["high"].ge(table["attention"] - 1e-9).all()
    assert table["low"][2] == -math.inf
    # beside token 1 (kept: −1 it is) token 2 may be heard until s has risen from −2 by what .05 allows
    p = 1 / (1 + math.exp(2))
    rise = math.log((p + 0.05) / (0.95 - p)) + 2
    alone = determined_attention(*_trace([[1, 2], [0]], attention, polarity), epsilon=0.05, only=[2])
    assert alone["high"].tolist() == pytest.approx([-1 + math.log(rise / (3 - rise))])


def test_copies_of_a_text_change_nothing() -> None:
    documents, attention, polarity = _random(3)
    once, thrice = (
        determined_attention(*_trace(documents * times, attention, polarity, [0, 0]), minimum_count=4 * times, only=[1])
        for times in (1, 3)
    )
    assert _bounds(once)[0] == pytest.approx(_bounds(thrice)[0])
    assert thrice["count"].tolist() == [3 * once["count"][0]]


def test_what_is_not_proved_is_null_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeastRatio, "proved", lambda self, found: 0.0 if self.goal > self.other else found.fun)
    table = determined_attention(*_trace([[0, 1]], [0, 0], [2, -2]), epsilon=0.1, only=[0])
    assert table["status"].tolist() == ["high open"]
    assert math.isnan(table["high"][0])
    assert math.isnan(table["width"][0])
    assert not math.isnan(table["low"][0])


def test_a_point_outside_the_tolerance_is_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that calls a wrong point optimal is found out by putting its weights into the model."""
    solve = LeastRatio.solve

    def wrong(self: LeastRatio, method: str, seconds: float) -> object:
        found = solve(self, method, seconds)
        found.x[self.goal] /= 2
        return found

    monkeypatch.setattr(LeastRatio, "solve", wrong)
    table = determined_attention(*_trace([[0, 1]], [0, 0], [2, -2]), epsilon=0.1, only=[0])
    assert table["status"].tolist() == ["low and high open"]


def test_refusals_are_sentences() -> None:
    made, tokens = _trace([[0, 1]], [0, 0], [2, -2])
    with pytest.raises(InputError, match="from 0 to below 1, not 1"):
        determined_attention(made, tokens, epsilon=1.0)
    with pytest.raises(InputError, match="minimum count of a token is 1 or more, not 0"):
        determined_attention(made, tokens, minimum_count=0)
    with pytest.raises(InputError, match="Token 7 has no unit with attention in this trace"):
        determined_attention(made, tokens, only=[7])
    with pytest.raises(InputError, match="expected 2, got 1"):
        determined_attention(made, tokens[:1])
    with pytest.raises(InputError, match="'t1' has different ones in instances 0 and 0"):
        determined_attention(made, torch.tensor([0, 0]))


def test_no_token_is_frequent_enough_gives_an_empty_table() -> None:
    table = determined_attention(*_trace([[0, 1]], [0, 0], [2, -2]))
    assert len(table) == 0
    assert "status" in table
