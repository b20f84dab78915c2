"""What holds for every member of the zoo: gradients, masks, one item, many items, both precisions, files."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.func import functional_call

from heedful.errors import UnknownName
from heedful.zoo.members import MEMBERS, find_member
from tests.zoo.members import CASES, Inputs, values

pytestmark = pytest.mark.usefixtures("one_thread")

EVERY = pytest.mark.parametrize("name", MEMBERS)
MASKED = pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.behind])
PLACED = pytest.mark.parametrize("name", [name for name in CASES if name != "gram"])


def test_every_member_is_tried() -> None:
    assert list(CASES) == list(MEMBERS)


@EVERY
def test_a_card_says_everything(name: str) -> None:
    card = MEMBERS[name].card()
    assert card.pop("differs") is not None
    assert all(card.values()), card
    assert all(any(part.strip() in str(card["formula"]) for part in key.split(",")) for key in MEMBERS[name].symbols)


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'luong-dot'"):
        find_member("luong-dott")


@EVERY
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    layer, inputs = CASES[name].layer(name), CASES[name].inputs(3)
    floats = {key: value for key, value in inputs.items() if value.is_floating_point()}
    weights = dict(layer.named_parameters())

    def read(*numbers: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip([*floats, *weights], numbers, strict=True))
        parameters = {key: given[key] for key in weights}
        return tuple(values(functional_call(layer, parameters, (), {**inputs, **{key: given[key] for key in floats}})))

    numbers = [part.detach().clone().requires_grad_() for part in (*floats.values(), *weights.values())]
    assert torch.autograd.gradcheck(read, numbers)


@MASKED
def test_garbage_behind_the_mask_changes_nothing(name: str) -> None:
    """Neither what is read nor any gradient, be it not a number at all."""
    case = CASES[name]
    layer, inputs = case.layer(name), case.inputs(4)
    asking = {key: value.requires_grad_() for key, value in inputs.items() if key in {"query", "user", "letter_query"}}
    spoilt = {**inputs, **{key: spoil(inputs[key], inputs[mask]) for key, mask in case.behind.items()}}
    watched = [*layer.parameters(), *asking.values()]
    clean, dirty = values(layer(**inputs)), values(layer(**spoilt))
    for found, expected in zip(dirty, clean, strict=True):
        torch.testing.assert_close(found, expected, atol=0, rtol=0)
    for found, expected in zip(slopes(dirty, watched), slopes(clean, watched), strict=True):
        torch.testing.assert_close(found, expected, atol=0, rtol=0)


def slopes(parts: list[Tensor], watched: list[Tensor]) -> tuple[Tensor, ...]:
    """Of the sum of all squares; of what it does not depend on zeros."""
    total = torch.stack([part.square().sum() for part in parts]).sum()
    return torch.autograd.grad(total, watched, allow_unused=True, materialize_grads=True)


def spoil(value: Tensor, mask: Tensor) -> Tensor:
    readable = mask if mask.dim() < value.dim() and mask.shape == value.shape[: mask.dim()] else mask.squeeze(-2)
    return value.masked_fill(~readable.reshape(*readable.shape, *[1] * (value.dim() - readable.dim())), torch.nan)


@MASKED
def test_what_may_not_be_read_has_no_weight(name: str) -> None:
    case = CASES[name]
    read = case.layer(name)(**case.inputs(4))
    inner = (read.within[0].weights if name == "hierarchical" else read.weights).detach()
    assert float(inner[1, ..., -1].abs().max()) == 0.0
    assert float(inner[0, ..., -1].abs().max()) > 0.0 or name.startswith("luong-local")


@PLACED
@pytest.mark.parametrize("places", [1, 200])
def test_one_item_and_many_are_read(name: str, places: int) -> None:
    case = CASES[name]
    read = case.layer(name)(**case.inputs(places))
    assert all(bool(part.isfinite().all()) for part in values(read))
    if places == 1 and name not in {"hierarchical", "d-attn", "luong-local-p"}:
        assert float((read.weights.detach() - 1).abs().max()) < 1e-12


@PLACED
def test_examples_do_not_touch_each_other(name: str) -> None:
    """Of a batch of two the first is what it is alone."""
    case = CASES[name]
    layer, inputs = case.layer(name), case.inputs(4)
    alone = values(layer(**{key: value[:1] for key, value in inputs.items()}))
    for found, both in zip(alone, values(layer(**inputs)), strict=True):
        torch.testing.assert_close(found, both[:1], atol=1e-12, rtol=0)


@EVERY
def test_single_precision_is_near_double(name: str) -> None:
    case = CASES[name]
    layer, inputs = case.layer(name), case.inputs(5)
    expected = values(layer(**inputs))
    for found, exact in zip(values(layer.float()(**single(inputs))), expected, strict=True):
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), exact, atol=2e-5, rtol=1e-5)


def single(inputs: Inputs) -> Inputs:
    return {key: value.float() if value.is_floating_point() else value for key, value in inputs.items()}


@EVERY
def test_a_layer_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    layer, inputs = case.layer(name), case.inputs(4)
    save_file(layer.state_dict(), tmp_path / "layer.safetensors")
    other = MEMBERS[name].make(**case.sizes).double()
    other.load_state_dict(load_file(tmp_path / "layer.safetensors"))
    for found, expected in zip(values(other(**inputs)), values(layer(**inputs)), strict=True):
        torch.testing.assert_close(found, expected, atol=0, rtol=0)
