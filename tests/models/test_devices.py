"""A walk through the models on a device that is not the CPU, without having one.

Tensors say that they are elsewhere and compute here. What brings tensors of two devices together, makes one in the
wrong place, or looks at numbers as an array of numpy, fails as it would there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from heedful.config import ModelSettings
from heedful.models.classifier import Classifier, make_classifier
from heedful.models.interface import Interface
from heedful.text.tokenize import Tokenizer, Vocabulary
from heedful.training.objectives import alignment_penalty, cross_entropy

ELSEWHERE = torch.device("meta")
"""What the tensors say. It is no CPU, and torch knows it everywhere."""


class Far(Tensor):
    """A tensor that says it is elsewhere."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> "Far":
        sizes: Any = here.size()
        made: Far = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, sizes, strides=here.stride(), dtype=here.dtype, device=ELSEWHERE, requires_grad=False
        )
        made.here = here
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


class Device(TorchDispatchMode):
    """What is made with this device named is made there."""

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


def compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, Tensor)]
    far = [one for one in tensors if isinstance(one, Far)]
    moves = func.overloadpacket is torch.ops.aten._to_copy
    near = [one for one in tensors if not isinstance(one, Far) and one.dim() > 0]
    assert moves or not (far and near), f"{func} of tensors of two devices"
    wanted = kwargs.get("device")
    there = wanted is not None and torch.device(wanted) == ELSEWHERE
    inner = {name: value for name, value in kwargs.items() if name != "device"}
    if there or moves:
        inner["device"] = "cpu"
    out = func(*tree_map(_unwrapped, args), **tree_map(_unwrapped, inner))
    if there or (far and wanted is None):
        return tree_map(lambda one: Far(one) if isinstance(one, Tensor) else one, out)
    return out


def _unwrapped(one: Any) -> Any:
    return one.here if isinstance(one, Far) else one


@contextmanager
def elsewhere(model: Classifier) -> Iterator[None]:
    """The model's parameters are there inside."""
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None:
                module._parameters[name] = nn.Parameter(Far(parameter.detach()))
    with Device():
        yield


VOCABULARY = Vocabulary.of(["good", "bad", "film", "plot", "."])
TEXTS = ["good film. good plot", "bad", "a plot . bad film bad"]
INTERFACE = Interface(vocabulary=VOCABULARY, tokenizer=Tokenizer(), class_names=("no", "yes"))

KINDS: dict[str, dict[str, Any]] = {
    "dot": {},
    "additive": {"attention": "additive", "context_size": 3, "readout_bias": True},
    "affine": {"encoder": "affine"},
    "tanh": {"encoder": "tanh"},
    "lstm": {"encoder": "lstm"},
    "gru": {"encoder": "gru"},
    "conv": {"encoder": "conv"},
    "uniform": {"attention_weights": "uniform"},
    "frozen": {"attention_weights": "frozen"},
    "hierarchical": {"structure": "hierarchical", "encoder": "gru"},
}


def made(kind: str) -> Classifier:
    settings = ModelSettings.of({"embedding_size": 4, "hidden_size": 4, "dropout": 0.0, **KINDS[kind]})
    return make_classifier(INTERFACE, settings, torch.Generator().manual_seed(0)).double()


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_stays_where_it_is(kind: str) -> None:
    """Logits, scores and gradients are those of the CPU, and all of them are made there."""
    split, rows = INTERFACE.read(TEXTS), torch.arange(3)
    near = made(kind)
    known = near(near.batch(split, rows))
    cross_entropy(near, near.batch(split, rows), known).backward()
    model = made(kind)
    with elsewhere(model):
        batch = model.batch(split, rows)
        output = model(batch)
        loss = cross_entropy(model, batch, output) + alignment_penalty(model, 0.0)
        loss.backward()
        scores, polarity = model.unit_scores(batch)
    for found in (output.logits, scores, polarity, output.units.attention_weights):
        assert isinstance(found.detach(), Far)
    assert torch.allclose(output.logits.detach().here, known.logits.detach(), atol=1e-12)
    assert model.embedding.grad is not None
    assert near.embedding.grad is not None
    assert torch.allclose(model.embedding.grad.here.to_dense(), near.embedding.grad.to_dense(), atol=1e-12)


def test_tensors_of_two_devices_are_told() -> None:
    with Device(), pytest.raises(AssertionError, match="two devices"):
        torch.ones(3, device=ELSEWHERE) + torch.ones(3)
