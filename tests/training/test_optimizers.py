"""Row-wise Adagrad equals torch's, clipping bounds the norm, decay touches only the regularised parts."""

from typing import Any

import pytest
import torch
from torch import nn

from heedful.config import TrainingSettings
from heedful.training.optimizers import RowAdagrad, clip_gradients, make_dense, make_optimizer
from tests.models.test_classifier import make_model


def test_row_adagrad_equals_torch_adagrad_on_sparse_and_dense_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(6, 3, dtype=torch.float64, generator=generator)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    mine = RowAdagrad([{"params": [ours]}], lr=0.1)
    torchs = torch.optim.Adagrad([theirs], lr=0.1)
    for step in range(20):
        values = torch.randn(2, 3, dtype=torch.float64, generator=generator)
        rows = torch.tensor([[step % 3, 5]])
        ours.grad = torch.sparse_coo_tensor(rows, values, start.shape, is_coalesced=True, check_invariants=True)
        theirs.grad = ours.grad.to_dense()
        if step % 4 == 0:
            ours.grad = theirs.grad.clone()
        mine.step()
        torchs.step()
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


def test_repeated_rows_of_an_uncoalesced_gradient_are_summed_before_they_are_squared() -> None:
    parameter = nn.Parameter(torch.zeros(2, 1, dtype=torch.float64))
    gradient = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    parameter.grad = torch.sparse_coo_tensor(torch.tensor([[1, 1]]), gradient, (2, 1), check_invariants=True)
    RowAdagrad([{"params": [parameter]}], lr=0.5).step()
    assert parameter.flatten().tolist() == pytest.approx([0.0, -0.5], abs=1e-9)


def test_weight_decay_is_added_to_dense_gradients() -> None:
    start = torch.randn(4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    mine = RowAdagrad([{"params": [ours], "weight_decay": 0.3}], lr=0.1)
    torchs = torch.optim.Adagrad([theirs], lr=0.1, weight_decay=0.3)
    for _ in range(3):
        ours.grad, theirs.grad = torch.ones(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
        mine.step()
        torchs.step()
    torch.testing.assert_close(ours, theirs, atol=1e-13, rtol=0)


def test_decay_is_on_affine_lstm_and_additive_weights_only() -> None:
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({}, set()),
        ({"encoder": "affine"}, {"encoder.projection"}),
        ({"attention": "additive"}, {"attention.projection"}),
    ]
    for settings, expected in cases:
        model = make_model(**settings)
        optimizer = make_optimizer(model, TrainingSettings.of({"weight_decay": 0.1}))
        decayed = {id(p) for group in optimizer.param_groups if group["weight_decay"] for p in group["params"]}
        assert {name for name, p in model.named_parameters() if id(p) in decayed} == expected


def test_clipping_scales_the_joint_norm_of_sparse_and_dense_gradients() -> None:
    module = nn.ParameterDict({"a": nn.Parameter(torch.zeros(3, 1)), "b": nn.Parameter(torch.zeros(1))})
    module["a"].grad = torch.sparse_coo_tensor(
        torch.tensor([[2]]), torch.tensor([[3.0]]), (3, 1), is_coalesced=True, check_invariants=True
    )
    module["b"].grad = torch.tensor([4.0])
    clip_gradients(module, 1.0)
    make_dense(module)
    assert module["a"].grad is not None
    torch.testing.assert_close(module["a"].grad, torch.tensor([[0.0], [0.0], [0.6]]))
    torch.testing.assert_close(module["b"].grad, torch.tensor([0.8]))
