"""Optimisers that touch only the rows of the embedding table that a batch used."""

import math
from typing import Any, no_type_check

import torch
from torch import Tensor, nn

from heedful.compiled import compiled
from heedful.config import TrainingSettings
from heedful.models.classifier import Classifier
from heedful.models.kernels import COMPILED_TYPES


class RowAdagrad:
    """Adagrad: S ← S + g², θ ← θ − rate · g / (√S + ε), on the rows of a sparse gradient only.

    The same numbers as torch.optim.Adagrad, which takes twice as long for sparse gradients; and none of torch's own
    optimisers, the first of which loads torch's compiler, for a second.
    """

    def __init__(self, groups: list[dict[str, Any]], lr: float, eps: float = 1e-10) -> None:
        usual = {"lr": lr, "eps": eps, "weight_decay": 0.0}
        self.param_groups = [{**usual, **group} for group in groups]
        self._sums: dict[nn.Parameter, Tensor] = {}

    def sums(self, parameter: nn.Parameter) -> Tensor:
        """S of a parameter, zero before its first step."""
        if parameter not in self._sums:
            self._sums[parameter] = torch.zeros_like(parameter, requires_grad=False)
        return self._sums[parameter]

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    update = _update_rows if parameter.grad.is_sparse else _update_all
                    update(parameter, parameter.grad, self.sums(parameter), group)

    def state_dict(self) -> dict[str, Any]:
        """S by the number of its parameter, as torch's optimisers have it."""
        return {
            "state": {n: {"sum": self._sums[p]} for n, p in enumerate(self._parameters()) if p in self._sums},
            "param_groups": [{name: group[name] for name in group if name != "params"} for group in self.param_groups],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        parameters = self._parameters()
        given = {
            parameters[number]: state["sum"].to(parameters[number]) for number, state in state_dict["state"].items()
        }
        if any(sums.shape != parameter.shape for parameter, sums in given.items()):
            raise ValueError("The sums are of other parameters.")
        self._sums = {parameter: sums.detach().clone() for parameter, sums in given.items()}

    def _parameters(self) -> list[nn.Parameter]:
        return [parameter for group in self.param_groups for parameter in group["params"]]


Optimizer = RowAdagrad | torch.optim.Optimizer


def _update_rows(parameter: nn.Parameter, gradient: Tensor, sums: Tensor, group: dict[str, Any]) -> None:
    if group["weight_decay"]:
        raise ValueError("Weight decay needs a dense gradient: every row decays in every step.")
    gradient = gradient.coalesce()
    rows, values = gradient.indices().squeeze(0), gradient.values()
    if parameter.device.type == "cpu" and parameter.dtype in COMPILED_TYPES:
        number = values.numpy().dtype.type
        arrays = (parameter.detach().numpy(), sums.numpy(), values.contiguous().numpy(), rows.numpy())
        adagrad_rows(*arrays, number(group["lr"]), number(group["eps"]))
        return
    some, their_sums = parameter.index_select(0, rows), sums.index_select(0, rows)
    _update_all(some, values, their_sums, group)
    parameter.index_copy_(0, rows, some)
    sums.index_copy_(0, rows, their_sums)


@compiled
@no_type_check
def adagrad_rows(table, sums, gradient, rows, rate, epsilon):
    """Adagrad in the given rows of the table."""
    for i in range(len(rows)):
        adagrad(table[rows[i]], sums[rows[i]], gradient[i], rate, epsilon)


@compiled
@no_type_check
def adagrad(values, sums, gradient, rate, epsilon):
    """S ← S + g², θ ← θ − rate · g / (√S + ε)."""
    for k in range(len(values)):
        sums[k] += gradient[k] * gradient[k]
        values[k] -= rate * gradient[k] / (math.sqrt(sums[k]) + epsilon)


def _update_all(values: Tensor, gradient: Tensor, sums: Tensor, group: dict[str, Any]) -> None:
    """One update in place; on the CPU in one pass over the memory, by the function behind torch's fused Adagrad."""
    if values.device.type == "cpu":
        torch._fused_adagrad_(
            [values], [gradient], [sums], [torch.ones(())],
            lr=group["lr"], lr_decay=0.0, weight_decay=group["weight_decay"], eps=group["eps"], maximize=False,
        )  # fmt: skip
        return
    decayed = gradient.add(values, alpha=group["weight_decay"]) if group["weight_decay"] else gradient
    sums.addcmul_(decayed, decayed)
    values.addcdiv_(decayed, sums.sqrt().add_(group["eps"]), value=-group["lr"])


def make_optimizer(model: Classifier, settings: TrainingSettings) -> Optimizer:
    """The optimiser, with weight decay on the layers (encoder and additive weights, as Sun & Lu 2020), or on everything
    but attention, embeddings included (Jain & Wallace 2019)."""
    learned = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    layers = settings.decayed == "layers"
    decays = {
        name: "encoder" in name or name.endswith("projection") if layers else "attention" not in name
        for name, _ in learned
    }
    groups: list[dict[str, Any]] = [
        {"params": [p for name, p in learned if not decays[name]]},
        {"params": [p for name, p in learned if decays[name]], "weight_decay": settings.weight_decay},
    ]
    groups = [group for group in groups if group["params"]]
    if settings.optimizer == "adagrad":
        return RowAdagrad(groups, lr=settings.learning_rate)
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=settings.learning_rate)
    fused = settings.device == "cpu"
    return torch.optim.Adam(groups, lr=settings.learning_rate, amsgrad=settings.amsgrad, fused=fused)


def needs_dense(settings: TrainingSettings) -> bool:
    """Whether rows of the embedding table that a batch did not use change too: moments and weights decay every step."""
    return settings.optimizer == "adam" or (settings.weight_decay > 0 and settings.decayed == "all but attention")


def make_dense(model: nn.Module) -> None:
    """Turn sparse gradients into dense ones."""
    for parameter in model.parameters():
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.to_dense()


def clip_gradients(model: nn.Module, largest: float) -> None:
    """Scale all gradients so that their joint norm is at most `largest`."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    values = [g._values() if g.is_sparse else g for g in gradients]
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(v) for v in values]))
    if norm > largest:
        for value in values:
            value.mul_(largest / norm)
