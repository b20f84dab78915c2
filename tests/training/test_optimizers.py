"""Row-wise Adagrad equals torch's, clipping bounds the norm, decay touches only the regularised parts."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from heedful.config import ModelSettings, RunSettings, TrainingSettings
from heedful.errors import ConfigError
from heedful.models.classifier import make_classifier
from heedful.training.loop import training_step
from heedful.training.optimizers import RowAdagrad, clip_gradients, make_dense, make_optimizer
from heedful.training.state import TrainingState
from tests.models.test_classifier import make_batch, make_model


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


@pytest.mark.parametrize("structure", ["flat", "hierarchical"])
def test_decay_on_all_but_attention(structure: str) -> None:
    expected = {"embedding", "encoder.projection", "encoder.bias", "readout_weight", "readout_bias"}
    if structure == "hierarchical":
        expected |= {"word_encoder.projection", "word_encoder.bias"}
    wanted = ModelSettings.of(
        {
            "structure": structure,
            "encoder": "tanh",
            "attention": "additive",
            "attention_bias": True,
            "readout_bias": True,
        }
    )
    model = make_classifier(make_model().interface, wanted, torch.Generator())
    settings = TrainingSettings.of({"weight_decay": 0.1, "decayed": "all but attention"})
    groups = make_optimizer(model, settings).param_groups
    decayed = {id(p) for group in groups if group["weight_decay"] for p in group["params"]}
    assert {name for name, p in model.named_parameters() if id(p) in decayed} == expected


@pytest.mark.parametrize("optimizer", ["adam", "adagrad", "sgd"])
@pytest.mark.parametrize("decayed", ["layers", "all but attention"])
@pytest.mark.parametrize("amsgrad", [False, True])
def test_ten_steps_are_those_of_torchs_optimiser_on_dense_gradients(
    optimizer: str, decayed: str, amsgrad: bool
) -> None:
    """On rows of the table that no batch uses, too: they decay, and Adam's moments go on moving them."""
    amsgrad = amsgrad and optimizer == "adam"
    settings = TrainingSettings.of(
        {"optimizer": optimizer, "amsgrad": amsgrad, "learning_rate": 0.05, "learning_rate_decay": 0.0,
         "weight_decay": 0.1, "decayed": decayed}
    )  # fmt: skip
    wanted = ModelSettings.of(
        {
            "embedding_size": 4,
            "hidden_size": 3,
            "encoder": "tanh",
            "attention": "additive",
            "context_size": 2,
            "dropout": 0,
        }
    )
    state = TrainingState.start(make_model().interface, wanted, settings)
    state.model.double()
    twin = copy.deepcopy(state.model)
    named = dict(twin.named_parameters())
    spared = {name for name in named if "attention" in name} if decayed != "layers" else {
        "embedding", "readout_weight", "attention.context_vector"}  # fmt: skip
    groups: list[dict[str, Any]] = [
        {"params": [p for name, p in named.items() if name in spared]},
        {"params": [p for name, p in named.items() if name not in spared], "weight_decay": 0.1},
    ]
    torchs: torch.optim.Optimizer
    if optimizer == "adam":
        torchs = torch.optim.Adam(groups, lr=0.05, amsgrad=amsgrad, foreach=False, fused=False)
    else:
        torchs = {"adagrad": torch.optim.Adagrad, "sgd": torch.optim.SGD}[optimizer](groups, lr=0.05)
    for step in range(10):
        batch = replace(make_batch([1, 2, 3], [4, 1 + step % 2]), labels=torch.tensor([step % 2, 1]))
        training_step(state, batch, settings)
        torchs.zero_grad()
        torch.nn.functional.cross_entropy(twin(batch).logits, batch.labels).backward()
        for parameter in named.values():
            if parameter.grad is not None:
                parameter.grad = parameter.grad.to_dense()
        torchs.step()
    for name, parameter in state.model.named_parameters():
        torch.testing.assert_close(parameter, named[name], atol=1e-12, rtol=0)
    unused = state.model.embedding[7] / TrainingState.start(make_model().interface, wanted, settings).model.embedding[7]
    assert bool((unused < 0.99).all()) == (decayed != "layers")


def test_amsgrad_is_a_form_of_adam() -> None:
    with pytest.raises(
        ConfigError, match=r"^AMSGrad is a form of Adam; the optimizer is sgd\. Set training\.optimizer"
    ):
        RunSettings().override(["training.amsgrad=true", "training.optimizer=sgd"])


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
