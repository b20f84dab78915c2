"""One look by hand, whatever the score and the weighing; masks; several queries at once."""

import math
import re
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from heedful.attention import reading
from heedful.attention.reading import Attention, attend
from heedful.attention.scores import (
    Additive,
    Bare,
    General,
    Location,
    TanhDot,
    cosine,
    dot,
    located,
    place_vectors,
    scaled_dot,
)
from heedful.attention.weighting import WEIGHINGS, entmax15, gate, gaussian_window, softmax, sparsemax, window
from heedful.errors import ConfigError
from tests.covering import covers
from tests.oracles.normalisers import by_bisection

pytestmark = pytest.mark.usefixtures("one_thread")

LN2, LN3 = math.log(2), math.log(3)


def row(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def test_a_look_by_hand() -> None:
    """Scores ln 2 and 0: weights ⅔ and ⅓; values 3 and 6 give 4. With the first hidden the second is all."""
    keys, values = row(LN2, 0.0).unsqueeze(-1), row(3.0, 6.0).unsqueeze(-1)
    read = attend(Bare(dot), row(1.0), keys, values)
    assert read.weights.tolist() == pytest.approx([2 / 3, 1 / 3], abs=1e-15)
    assert read.context.tolist() == pytest.approx([4.0], abs=1e-15)
    assert read.scores.tolist() == [LN2, 0.0]
    hidden = attend(Bare(dot), row(1.0), keys, values, mask=torch.tensor([False, True]))
    assert hidden.weights.tolist() == [0.0, 1.0]
    assert hidden.context.tolist() == [6.0]
    assert hidden.scores.tolist() == [-math.inf, 0.0]
    own = attend(Bare(dot), row(1.0), keys)
    assert own.context.tolist() == pytest.approx([2 / 3 * LN2], abs=1e-15)


def test_where_nothing_may_be_read_nothing_is() -> None:
    for name, normalise in WEIGHINGS.items():
        keys = normal(2, 3, 4).requires_grad_()
        mask = torch.tensor([[True, True, True], [False, False, False]])
        read = attend(Bare(dot), normal(2, 4), keys, mask=mask, normalise=normalise)
        assert read.weights[1].tolist() == [0.0, 0.0, 0.0], name
        assert read.context[1].tolist() == [0.0] * 4, name
        (slope,) = torch.autograd.grad(read.context.sum(), [keys])
        assert bool(slope.isfinite().all()), name


def test_scores_of_any_size_make_weights() -> None:
    read = attend(Bare(dot), row(1.0), row(1e4, -1e4, 1e4).unsqueeze(-1))
    assert read.weights.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("score", [dot, scaled_dot, cosine])
def test_several_queries_at_once_are_one_after_the_other(score: "object") -> None:
    """Queries [batch queries features] of keys [batch 1 keys features], with a mask for each."""
    assert callable(score)
    queries, keys = normal(3, 5, 4), normal(3, 6, 4)
    mask = normal(3, 5, 6) > -0.5
    together = attend(Bare(score), queries, keys.unsqueeze(1), mask=mask)
    for i in range(3):
        for q in range(5):
            alone = attend(Bare(score), queries[i, q], keys[i], mask=mask[i, q])
            torch.testing.assert_close(together.weights[i, q], alone.weights, atol=1e-14, rtol=0)
            torch.testing.assert_close(together.context[i, q], alone.context, atol=1e-14, rtol=0)


def test_several_queries_of_scores_with_parameters() -> None:
    torch.manual_seed(1)
    queries, keys, previous = normal(3, 5, 4), normal(3, 6, 2), normal(3, 5, 6).softmax(-1)
    for score in (
        General(4, 2),
        Location(4, 9),
        TanhDot(4, 2, 3),
        Additive(2, 5, query_size=4, filters=2, width=5),
    ):
        together = attend(score.double(), queries, keys.unsqueeze(1), previous=previous)
        alone = attend(score, queries[1, 2], keys[1], previous=previous[1, 2])
        torch.testing.assert_close(together.weights[1, 2], alone.weights, atol=1e-14, rtol=0)


def test_what_stood_around_by_hand() -> None:
    """A filter (1, 2, 3) over weights (0, 1, 0, 0): at place 0 its right arm, 3, at 1 its middle, at 2 its left arm."""
    f = located(row(0.0, 1.0, 0.0, 0.0), row(1.0, 2.0, 3.0).unsqueeze(0))
    assert f.squeeze(-1).tolist() == [3.0, 2.0, 1.0, 0.0]


def test_places_by_hand() -> None:
    """Four numbers: waves of 4 and of 64 places. Place 1 is a quarter of the first turn, place 16 of the second."""
    found = place_vectors(row(0.0, 1.0, 16.0), 4)
    small = 2 * math.pi / 64
    expected = [[0, 0, 1, 1], [1, math.sin(small), 0, math.cos(small)], [0, 1, 1, 0]]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), atol=1e-12, rtol=0)


@given(st.lists(st.lists(st.floats(-5, 5), min_size=4, max_size=4), min_size=1, max_size=3), st.integers(1, 15))
def test_sparse_weights_of_what_may_be_read_are_those_of_the_bisection(rows: list[list[float]], bits: int) -> None:
    mask = torch.tensor([bool(bits >> place & 1) for place in range(4)])
    scores = torch.tensor(rows, dtype=torch.float64)
    for normalise, p in ((sparsemax, 2.0), (entmax15, 1.5)):
        found = normalise(scores, mask)
        for one, weights in zip(rows, found, strict=True):
            kept = [score for score, there in zip(one, mask.tolist(), strict=True) if there]
            assert weights[mask].tolist() == pytest.approx(by_bisection(kept, p), abs=1e-13)
            assert not weights[~mask].any()


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_sparse_weights_are_those_of_the_entmax_package(scale: float) -> None:
    entmax = pytest.importorskip("entmax")
    scores, mask = scale * normal(7, 3, 40), torch.ones(40, dtype=torch.bool)
    torch.testing.assert_close(sparsemax(scores, mask), entmax.sparsemax(scores, dim=-1), atol=1e-12, rtol=0)
    torch.testing.assert_close(entmax15(scores, mask), entmax.entmax15(scores, dim=-1), atol=1e-12, rtol=0)


def test_sparse_gradients_are_those_of_the_entmax_package() -> None:
    entmax = pytest.importorskip("entmax")
    scores, mask, wanted = normal(7, 20).requires_grad_(), torch.ones(20, dtype=torch.bool), normal(7, 20)
    for ours, theirs in ((sparsemax, entmax.sparsemax), (entmax15, entmax.entmax15)):
        (found,) = torch.autograd.grad((ours(scores, mask) * wanted).sum(), [scores])
        (expected,) = torch.autograd.grad((theirs(scores, dim=-1) * wanted).sum(), [scores])
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


@covers(weighing=("softmax", "sparsemax", "entmax15", "gate"))
def test_weights_by_hand() -> None:
    """Of scores ln 3, 0 and a hidden one; sparsemax of 1, ½: ¾ and ¼; 1.5-entmax of equal scores is even."""
    mask = torch.tensor([True, True, False])
    assert softmax(row(LN3, 0, 9), mask).tolist() == pytest.approx([0.75, 0.25, 0], abs=1e-15)
    assert gate(row(LN3, 0, 9), mask).tolist() == pytest.approx([0.75, 0.5, 0], abs=1e-15)
    assert sparsemax(row(1, 0.5, 9), mask).tolist() == [0.75, 0.25, 0]
    assert entmax15(row(2, 2, 9), mask).tolist() == pytest.approx([0.5, 0.5, 0], abs=1e-15)


def test_windows_by_hand() -> None:
    """Around 1.5 with a reach of 1 stand places 1 and 2; each is ½ away: ½ · exp(−2 · ¼) with the Gaussian."""
    scores, mask = torch.zeros(5, dtype=torch.float64), torch.ones(5, dtype=torch.bool)
    assert window(torch.tensor(1.5), 1)(scores, mask).tolist() == [0, 0.5, 0.5, 0, 0]
    near = 0.5 * math.exp(-0.5)
    assert gaussian_window(row(1.5).squeeze(), 1)(scores, mask).tolist() == pytest.approx([0, near, near, 0, 0])
    both = window(row(0.0, 4.0), 1)(scores.repeat(2, 1), mask)
    assert both.tolist() == [[0.5, 0.5, 0, 0, 0], [0, 0, 0, 0.5, 0.5]]


def test_the_centre_of_a_gaussian_window_is_learned() -> None:
    scores, mask = normal(2, 9), torch.ones(9, dtype=torch.bool)
    centre = row(3.3, 5.6).requires_grad_()
    assert torch.autograd.gradcheck(lambda p, e: gaussian_window(p, 2)(e, mask), (centre, scores.requires_grad_()))


def test_a_module_holds_score_and_weighing() -> None:
    look = Attention(Bare(dot), sparsemax)
    read = look(row(1.0), row(1.0, 0.5, -1.0).unsqueeze(-1))
    assert read.weights.tolist() == [0.75, 0.25, 0.0]


KEYS = torch.zeros(2, 3, 4)
CALL: dict[str, Any] = {"query": torch.zeros(2, 4), "keys": KEYS, "values": None, "mask": None, "previous": None}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"keys": torch.zeros(4)}, "Keys have an axis of places and one of features; these are of shape [4]."),
        ({"values": torch.zeros(2, 1, 4)}, "There must be a value for each of 3 keys; values are of shape [2, 1, 4]."),
        ({"mask": torch.ones(2, 1, dtype=torch.bool)}, "A mask says True or False of each of 3 keys"),
        ({"mask": torch.ones(2, 3)}, "this one is torch.float32 of shape [2, 3]."),
        ({"previous": torch.ones(2, 1)}, "There must be a weight of the step before for each of 3 keys"),
        ({"query": torch.zeros(2, 5, 4)}, "give the keys an axis more, keys.unsqueeze(-3)."),
    ],
)
def test_what_would_be_stretched_in_silence_is_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        reading._check(**{**CALL, **given})  # types of arguments are checked before, while tests run


def test_a_look_is_checked_before_anything_else() -> None:
    with pytest.raises(ConfigError, match="give the keys an axis more"):
        attend(Bare(dot), torch.zeros(2, 5, 4), KEYS)
