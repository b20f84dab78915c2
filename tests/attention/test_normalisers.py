"""Weights from scores: by hand, beside a bisection, and their gradients beside finite differences and autograd."""

import math
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from heedful.attention.normalisers import NORMALISERS, entmax15, softmax, sparsemax
from heedful.config import ModelSettings
from heedful.text.ragged import offsets_of
from tests.covering import covers
from tests.oracles.normalisers import by_bisection

pytestmark = pytest.mark.usefixtures("one_thread")

SPARSE = {"sparsemax": 2.0, "entmax15": 1.5}
EVERY = pytest.mark.parametrize("name", SPARSE)

numbers = st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 0.5, 1.0, -1.0, 300.0, -300.0]))
documents = st.lists(st.lists(numbers, min_size=1, max_size=12), min_size=1, max_size=5)


def ragged(rows: list[list[float]]) -> tuple[Tensor, Tensor]:
    flat = [value for row in rows for value in row]
    return torch.tensor(flat, dtype=torch.float64), offsets_of(torch.tensor([len(row) for row in rows]))


def test_the_settings_know_every_normaliser() -> None:
    assert set(get_args(ModelSettings.model_fields["normaliser"].annotation)) == set(NORMALISERS)


def test_sparsemax_by_hand() -> None:
    """(1, ½, −1): τ = (1 + ½ − 1) / 2 = ¼. A lead of one takes all; equal scores share."""
    found = sparsemax(*ragged([[1.0, 0.5, -1.0], [3.0, 2.0], [0.0, 0.0, 0.0, 0.0], [-7.0]]))
    assert found.tolist() == [0.75, 0.25, 0.0, 1.0, 0.0, 0.25, 0.25, 0.25, 0.25, 1.0]


def test_entmax_by_hand() -> None:
    """Of two scores that differ by d < 2, (x + d/2)² + x² = 1 for the smaller: x = (−d/2 + √(2 − d²/4)) / 2."""
    d = 1.0
    x = (-d / 2 + math.sqrt(2 - d**2 / 4)) / 2
    found = entmax15(*ragged([[0.0, d], [5.0, 3.0], [2.0, 2.0, 2.0, 2.0], [1.0]]))
    expected = [x**2, (x + d / 2) ** 2, 1.0, 0.0, 0.25, 0.25, 0.25, 0.25, 1.0]
    assert found.tolist() == pytest.approx(expected, abs=1e-15)
    assert found[3].item() == 0.0


@covers(normaliser=("softmax",))
@given(documents)
def test_softmax_is_that_of_torch(rows: list[list[float]]) -> None:
    expected = torch.cat([torch.tensor(row, dtype=torch.float64).softmax(0) for row in rows])
    torch.testing.assert_close(softmax(*ragged(rows)), expected, atol=1e-15, rtol=1e-12)


@covers(normaliser=("sparsemax", "entmax15"))
@EVERY
@given(documents)
def test_weights_are_those_of_the_bisection(name: str, rows: list[list[float]]) -> None:
    found = NORMALISERS[name](*ragged(rows))
    expected = [weight for row in rows for weight in by_bisection(row, SPARSE[name])]
    assert found.tolist() == pytest.approx(expected, abs=1e-13)
    for part in found.split([len(row) for row in rows]):
        assert float(part.sum()) == pytest.approx(1.0, abs=1e-13)


@EVERY
@given(documents, st.floats(-100, 100))
def test_a_constant_changes_nothing_and_order_is_kept(name: str, rows: list[list[float]], constant: float) -> None:
    scores, offsets = ragged(rows)
    found = NORMALISERS[name](scores, offsets)
    torch.testing.assert_close(NORMALISERS[name](scores + constant, offsets), found, atol=1e-10, rtol=0)
    for row, weights in zip(rows, found.split([len(row) for row in rows]), strict=True):
        assert bool((weights[torch.tensor(row, dtype=torch.float64).argsort()].diff() >= 0).all())


@EVERY
def test_many_units_with_scores_far_apart_and_a_single_precision(name: str) -> None:
    scores = 3 * torch.randn(4000, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    offsets = torch.tensor([0, 3000, 3001, 4000])
    found = NORMALISERS[name](scores, offsets)
    expected = [w for part in scores.split([3000, 1, 999]) for w in by_bisection(part.tolist(), SPARSE[name])]
    assert found.tolist() == pytest.approx(expected, abs=1e-13)
    assert 0 < int((found > 0).sum()) < 60
    rough = NORMALISERS[name](scores.float(), offsets)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough.double(), found, atol=1e-6, rtol=0)


@EVERY
def test_a_unit_without_a_score_has_no_weight(name: str) -> None:
    scores = torch.tensor([-math.inf, 0.0, -math.inf, 0.0], dtype=torch.float64)
    found = NORMALISERS[name](scores, torch.tensor([0, 4])).tolist()
    assert found == pytest.approx([0.0, 0.5, 0.0, 0.5], abs=1e-15)
    assert found[0] == found[2] == 0.0


@EVERY
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    """Away from the borders of the support, where the weights have no derivative."""
    generator = torch.Generator().manual_seed(3)
    for _ in range(20):
        lengths = torch.randint(1, 8, (4,), generator=generator)
        scores = 2 * torch.randn(int(lengths.sum()), dtype=torch.float64, generator=generator)
        offsets = offsets_of(lengths)
        torch.autograd.gradcheck(lambda a, bounds=offsets: NORMALISERS[name](a, bounds), scores.requires_grad_())


def literal_weights(scores: Tensor, p: float) -> Tensor:
    """α with the threshold as a differentiable function of the scores of its support, which is found by bisection."""
    inside = torch.tensor([weight > 1e-9 for weight in by_bisection(scores.tolist(), p)])
    x = (p - 1) * scores[inside]
    if p == 2:
        kept = x - (x.sum() - 1) / len(x)
    else:
        kept = (x - (x.mean() - ((1 - ((x - x.mean()) ** 2).sum()) / len(x)).sqrt())) ** 2
    return torch.zeros_like(scores).masked_scatter(inside, kept)


@EVERY
def test_gradients_are_those_of_autograd_through_the_threshold(name: str) -> None:
    generator = torch.Generator().manual_seed(5)
    for _ in range(50):
        scores = 2 * torch.randn(9, dtype=torch.float64, generator=generator)
        direction = torch.randn(9, dtype=torch.float64, generator=generator)
        ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
        (NORMALISERS[name](ours, torch.tensor([0, 9])) @ direction).backward()
        (literal_weights(theirs, SPARSE[name]) @ direction).backward()
        assert ours.grad is not None
        assert theirs.grad is not None
        torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-10, rtol=0)
