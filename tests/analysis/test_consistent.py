"""The corpus-consistent adversary: attained points, never beyond ln 2, gradients, the same again by the same seed."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from scipy.spatial.distance import jensenshannon

from heedful.analysis.bags import bags_of
from heedful.analysis.consistent import consistent_adversary, distances
from heedful.errors import InputError
from heedful.models.classifier import Classifier
from heedful.text.corpus import Corpus
from heedful.traces import Trace
from heedful.tracing import trace as trace_of
from tests.strategies import seeds

pytestmark = pytest.mark.usefixtures("one_thread")


def _trace(seed: int, classes: int = 2, spread: float = 1.0) -> tuple[Trace, torch.Tensor]:
    """Ten texts of six tokens, some of them copies."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, 8)
    texts = [rng.integers(0, 6, length) for length in lengths]
    texts += texts[:2]
    tokens = np.concatenate(texts)
    made = Trace.from_arrays(
        offsets=np.cumsum([0, *map(len, texts)]),
        attention_scores=spread * rng.normal(size=6)[tokens],
        polarity_scores=2 * rng.normal(size=(6, classes))[tokens],
        bias=rng.normal(size=classes),
    )
    return made, torch.from_numpy(tokens)


def _literal_distances(one: Trace, other: Trace) -> tuple[float, float]:
    """Mean TVD and JSD text by text, by scipy, from traces made anew from their scores."""
    again = [
        Trace.from_arrays(
            offsets=t.offsets, polarity_scores=t.polarity_scores, bias=t.bias, attention_scores=t.attention_scores
        )
        for t in (one, other)
    ]
    tvds, jsds = [], []
    for row in range(len(one)):
        p, q = (t.probabilities[row].numpy() for t in again)
        tvds.append(np.abs(p - q).sum() / 2)
        a, b = (t.attention_weights[t.instance(row)].numpy() for t in again)
        jsds.append(jensenshannon(a, b) ** 2)
    return float(np.mean(tvds)), float(np.nan_to_num(jsds).mean())


@settings(max_examples=6)
@given(seed=seeds)
def test_the_points_of_the_curve_are_attained(seed: int) -> None:
    made, tokens = _trace(seed, 2 + seed % 3)
    found = consistent_adversary(made, tokens, within=[0.01, 0.1], steps=40)
    assert found.curve.columns.tolist() == ["within", "tvd", "jsd", "changed", "start"]
    for row, other in enumerate(found.traces):
        within, tvd, jsd, changed = (float(found.curve[name][row]) for name in ("within", "tvd", "jsd", "changed"))
        assert _literal_distances(made, other) == pytest.approx((tvd, jsd), abs=1e-8)
        assert 0 <= jsd <= math.log(2)
        assert tvd <= within
        assert torch.equal(other.polarity_scores, made.polarity_scores)
        assert changed == float((other.predictions != made.predictions).double().mean())
        scores = found.tokens[found.tokens["within"] == within].set_index("number")
        assert scores["adversary"][tokens.tolist()].tolist() == other.attention_scores.tolist()
        assert scores["attention"][tokens.tolist()].tolist() == made.attention_scores.tolist()


def test_tokens_that_say_the_same_change_places_at_no_cost() -> None:
    """All weight of the first token goes to the second: JSD((w, v, v), (0, w + v, v)) with w = e²/(e² + 2)."""
    made = Trace.from_arrays(
        offsets=[0, 3], bias=[0], attention_scores=[2, 0, 0], polarity_scores=[1, 1, -1], units=["a", "b", "c"]
    )
    found = consistent_adversary(made, torch.tensor([4, 1, 7]), within=[1e-4])
    w, v = math.exp(2) / (math.exp(2) + 2), 1 / (math.exp(2) + 2)
    assert found.curve["jsd"][0] == pytest.approx(jensenshannon([w, v, v], [0, w + v, v]) ** 2, abs=1e-3)
    assert found.curve["tvd"][0] <= 1e-4
    assert found.curve["changed"][0] == 0
    assert found.tokens[["number", "token", "count"]].to_numpy().tolist() == [[1, "b", 1], [4, "a", 1], [7, "c", 1]]
    assert found.traces[0].attention_weights.tolist() == pytest.approx([0, w + v, v], abs=5e-3)


def test_one_text_is_nearly_as_free_as_the_adversary_of_a_single_text() -> None:
    """Of one text the largest JSD at the same output lies on two units; all pairs by hand."""
    made, tokens = _trace(3)
    row = int(made.lengths.argmax())
    where = made.instance(row)
    numbers, first = np.unique(tokens[where].numpy(), return_index=True)
    polarity, scores = made.polarity_scores[where][first], made.attention_scores[where][first]
    alone = Trace.from_arrays(
        offsets=[0, len(first)], polarity_scores=polarity, bias=made.bias, attention_scores=scores
    )
    found = consistent_adversary(alone, torch.from_numpy(numbers), within=[0.001], steps=150)
    said = (polarity[:, 1] - polarity[:, 0]).numpy()
    alpha = alone.attention_weights.numpy()
    target, best = float(alpha @ said), 0.0
    for i in range(len(said)):
        for j in range(len(said)):
            if said[i] < target < said[j]:
                other = np.zeros(len(said))
                other[i] = (said[j] - target) / (said[j] - said[i])
                other[j] = 1 - other[i]
                best = max(best, jensenshannon(alpha, other) ** 2)
    assert found.curve["jsd"].iloc[-1] == pytest.approx(best, abs=0.02)
    assert found.curve["tvd"].iloc[-1] <= 0.001


def test_more_room_never_loses_distance(small_model: Classifier, small_corpus: Corpus) -> None:
    traced, tokens = trace_of(small_model, small_corpus.test), small_corpus.test.tokens.numbers
    done: list[tuple[int, int]] = []
    found = consistent_adversary(
        traced, tokens, within=[0.1, 0.005, 0.02], steps=40, watch=lambda *both: done.append(both)
    )
    assert done == [(number, 27) for number in (*range(1, 22), 23, 25, 27)]
    assert found.curve["within"].tolist() == [0.005, 0.02, 0.1]
    assert (found.curve["tvd"] <= found.curve["within"]).all()
    assert found.curve["jsd"].is_monotonic_increasing
    assert found.curve["jsd"].iloc[-1] > 0.05


def test_rare_tokens_keep_their_scores_if_asked() -> None:
    made, tokens = _trace(5)
    often = int(torch.bincount(tokens).median()) + 1
    found = consistent_adversary(made, tokens, within=[0.1], minimum_count=often, steps=50)
    rare = found.tokens["count"] < often
    assert rare.any()
    assert found.tokens["adversary"][rare].tolist() == found.tokens["attention"][rare].tolist()
    assert not np.allclose(found.tokens["adversary"][~rare], found.tokens["attention"][~rare])


def test_the_same_seed_gives_the_same_curve_and_another_may_not() -> None:
    made, tokens = _trace(7)
    one, same, other = (consistent_adversary(made, tokens, within=[0.05], steps=30, seed=seed) for seed in (0, 0, 1))
    assert one.tokens.equals(same.tokens)
    assert one.curve.equals(same.curve)
    assert len(other.curve) == 1


def test_gradients_are_those_of_finite_differences() -> None:
    bags = bags_of(*_trace(11, 3))
    point = bags.attention + torch.linspace(-1, 1, len(bags.attention), dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda scores: distances(bags, scores), point.requires_grad_())


@pytest.mark.parametrize("spread", [0.0, 400.0, 2000.0])
def test_no_score_is_too_large_or_too_equal(spread: float) -> None:
    made, tokens = _trace(13, spread=spread)
    found = consistent_adversary(made, tokens, within=[0.05], steps=30)
    numbers = found.curve[["tvd", "jsd"]].to_numpy()
    assert np.isfinite(numbers).all()
    assert np.isfinite(found.tokens["adversary"]).all()
    assert (numbers[:, 1] <= math.log(2)).all()
    assert _literal_distances(made, found.traces[0]) == pytest.approx(numbers[0].tolist(), abs=1e-7)


def test_units_without_weight_stay_without() -> None:
    made = Trace.from_arrays(offsets=[0, 3], bias=[0], attention_weights=[0.0, 0.5, 0.5], polarity_scores=[3, 1, -1])
    found = consistent_adversary(made, torch.tensor([0, 1, 2]), within=[0.2], steps=50)
    assert found.traces[0].attention_weights[0] == 0
    assert found.tokens["number"].tolist() == [1, 2]
    assert np.isfinite(found.curve[["tvd", "jsd"]].to_numpy()).all()


def test_limits_must_be_above_zero() -> None:
    made, tokens = _trace(1)
    with pytest.raises(InputError, match=r"within must be mean TVDs above zero, at least one; got \[1.0, 0.0\]"):
        consistent_adversary(made, tokens, within=[1.0, 0.0])
    with pytest.raises(InputError, match=r"at least one; got \[\]"):
        consistent_adversary(made, tokens, within=[])
