"""Outputs given beside a trace prove that the readout is affine: real small models in each precision, by autograd's
own modules, with and without a nonlinear layer after the pooling."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from heedful.errors import TraceError
from heedful.traces import Trace

HAND: dict[str, Any] = {
    "offsets": [0, 2, 3],
    "attention_scores": [0.0, math.log(3.0), 5.0],
    "polarity_scores": [[0.0, 4.0], [0.0, -8.0], [0.0, 1.0]],
    "bias": [0.5, 0.0],
    "class_names": ["no", "yes"],
}
"""The logits are (0.5, −5) and (0.5, 1)."""

BOUNDS = [0, 7, 8, 40, 240]


def outputs(between: nn.Module, kind: torch.dtype) -> dict[str, Any]:
    """What a model of 300 features computes in one precision, and the fields of its trace."""
    torch.manual_seed(0)
    hidden = torch.randn(BOUNDS[-1], 300).to(kind)
    score, readout = nn.Linear(300, 1).to(kind), nn.Linear(300, 3).to(kind)
    scores = 5 * score(hidden).squeeze(1)
    pooled = [scores[i:j].softmax(0) @ hidden[i:j] for i, j in itertools.pairwise(BOUNDS)]
    return {
        "offsets": torch.tensor(BOUNDS),
        "attention_scores": scores,
        "polarity_scores": hidden @ readout.weight.T,
        "bias": readout.bias,
        "logits": readout(between.to(kind)(torch.stack(pooled))),
    }


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_the_outputs_of_an_affine_model_are_accepted_in_its_own_precision(kind: torch.dtype) -> None:
    fields = outputs(nn.Identity(), kind)
    logits = fields.pop("logits").detach()
    plain = Trace.from_arrays(**fields)
    for more in ({"logits": logits}, {"probabilities": logits.softmax(1)}):
        trace = Trace.from_arrays(**fields, **more)
        assert torch.equal(trace.logits, plain.logits)


def test_a_float32_model_whose_numbers_became_python_floats_is_accepted() -> None:
    fields = {name: tensor.tolist() for name, tensor in outputs(nn.Identity(), torch.float32).items()}
    assert len(Trace.from_arrays(**fields)) == 4


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("between", [nn.Tanh(), nn.ReLU(), nn.LayerNorm(300), nn.Dropout(0.5)], ids=str)
def test_a_layer_between_pooling_and_readout_is_found(between: nn.Module, kind: torch.dtype) -> None:
    fields = outputs(between, kind)
    logits = fields.pop("logits")
    for more in ({"logits": logits}, {"probabilities": logits.softmax(1)}):
        with pytest.raises(TraceError, match="Erasure needs a readout that is affine in the pooled vector"):
            Trace.from_arrays(**fields, **more)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            {"logits": [[0.5, -5.0], [0.5, 0.75]]},
            "logits are not those of the trace: for instance 1, class 'yes', bias + Σ α_i z_i gives 1, the model 0.75.",
        ),
        ({"logits": [[0.25, -5.5], [0.5, 0.75]]}, "for instance 0, class 'yes', bias + Σ α_i z_i gives -5, the model"),
        ({"logits": [[0.5, -5.0], [0.5, 0.75]]}, "train the model with a linear readout on the pooled vector."),
        (
            {"probabilities": [[0.9959, 0.0041], [0.375, 0.5]]},
            "for instance 1, class 'yes', softmax(bias + Σ α_i z_i) gives 0.622459, the model 0.5.",
        ),
        ({"probabilities": [0.0041, 0.5]}, "probabilities are not those of the trace: for instance 1, "),
        ({"logits": [-5.5, 0.5]}, "for instance 0, class 'no', bias + Σ α_i z_i gives 0.5, the model 0."),
        ({"logits": [[0.5, -5.0]]}, "logits must be [instances, classes], here [2, 2]; got [1, 2]."),
        ({"logits": np.zeros((2, 3))}, "logits must be [instances, classes], here [2, 2]; got [2, 3]."),
        ({"probabilities": [[0.5, math.nan]] * 2}, "probabilities must be finite"),
        ({"logits": [["a", "b"]] * 2}, "logits must be numbers in a regular array: it holds 'a'."),
        ({"polarity_scores": np.zeros((3, 2, 2))}, "The readout must be affine in the attention"),
        ({"offsets": [[0], [1, 2]]}, "offsets must be whole numbers"),
        ({"attention_scores": ["0", "1", "2"]}, "attention_scores must be numbers in a regular array: it holds '0'."),
    ],
)
def test_outputs_that_are_not_those_of_the_trace_are_refused(more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TraceError) as caught:
        Trace.from_arrays(**(HAND | more))
    assert sentence in str(caught.value)


def test_the_tolerance_is_half_of_the_digits_of_the_coarsest_type() -> None:
    """Instance 1 has |b| + Σ α|z| = 1 for its second class, and √ε is 3.45e-4, 0.03125 and 0.0884."""
    for kind, allowed in ((torch.float64, 3.45e-4), (torch.float16, 0.03125), (torch.bfloat16, 0.0884)):
        bias = torch.tensor(HAND["bias"], dtype=kind)
        near, far = ([[0.5, -5.0], [0.5, 1 + share * allowed]] for share in (0.95, 1.05))
        assert len(Trace.from_arrays(**(HAND | {"bias": bias, "logits": near}))) == 2
        with pytest.raises(TraceError, match="for instance 1, class 'yes'"):
            Trace.from_arrays(**(HAND | {"bias": bias, "logits": far}))
