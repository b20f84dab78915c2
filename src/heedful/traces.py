"""The trace: what a classifier with attention and an affine readout did on each instance. Knows no model.

    logits = b + Σ_i α_i z_i        α = softmax(a) within the instance

Everything that is measured after training needs only the attention scores a, the polarity scores z and the bias b.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import TraceError
from heedful.text.ragged import lengths_of, segment_softmax, segments_of
from heedful.trace_files import read_fields, write_fields

Array = Sequence[Any] | NDArray[Any] | Tensor

LARGEST = 1e300
"""Polarity scores beyond it, which no model has, would overflow in sums."""

SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Ragged: instance t owns the units offsets[t] … offsets[t + 1]. All numbers are float64."""

    offsets: Int[Tensor, " bounds"]
    attention_scores: Float[Tensor, " units"]
    attention_weights: Float[Tensor, " units"]
    polarity_scores: Float[Tensor, "units classes"]
    bias: Float[Tensor, " classes"]
    labels: Int[Tensor, " instances"] | None
    units: Sequence[str] | None
    class_names: tuple[str, ...]

    @classmethod
    def from_arrays(
        cls,
        *,
        offsets: Array,
        polarity_scores: Array,
        bias: Array,
        attention_scores: Array | None = None,
        attention_weights: Array | None = None,
        labels: Array | None = None,
        units: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        logits: Array | None = None,
        probabilities: Array | None = None,
    ) -> "Trace":
        """A checked trace from lists, arrays or tensors.

        Weights follow from the scores by softmax. Given alone they must be non-negative and sum to one in each
        instance (those in half precision nearly, and they are divided by their sum), and the scores are their
        logarithms. A column of polarity scores alone (a binary model with one output s) becomes the two columns
        (0, s). The model's own logits or probabilities, where given, prove that its readout is affine: b + Σ α_i z_i
        must give them. They are not kept.
        """
        starts = _offsets(offsets)
        polarity, shift = _two_columns(_floats("polarity_scores", polarity_scores), _floats("bias", bias))
        _check_shapes(starts, polarity, shift)
        scores, weights = _attention(starts, attention_scores, attention_weights)
        names = tuple(class_names) if class_names is not None else tuple(str(k) for k in range(len(shift)))
        _check_length("class_names", len(names), "class", len(shift))
        if units is not None:
            _check_length("units", len(units), "unit", int(starts[-1]))
        trace = cls(
            offsets=starts,
            attention_scores=scores,
            attention_weights=weights,
            polarity_scores=polarity,
            bias=shift,
            labels=_labels(labels, len(starts) - 1, len(shift)),
            units=units,
            class_names=names,
        )
        given = (attention_scores, attention_weights, polarity_scores, bias, logits, probabilities)
        _check_outputs(trace, logits, probabilities, _tolerance(*given))
        return trace

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> Int[Tensor, " instances"]:
        return lengths_of(self.offsets)

    @cached_property
    def segments(self) -> Int[Tensor, " units"]:
        """For every unit the number of its instance."""
        return segments_of(self.offsets)

    @cached_property
    def logits(self) -> Float[Tensor, "instances classes"]:
        weighted = self.attention_weights[:, None] * self.polarity_scores
        sums = weighted.new_zeros(len(self), len(self.bias)).index_add_(0, self.segments, weighted)
        return self.bias + sums

    @cached_property
    def probabilities(self) -> Float[Tensor, "instances classes"]:
        return self.logits.softmax(1)

    @cached_property
    def predictions(self) -> Int[Tensor, " instances"]:
        """The class with the largest logit; of equal ones the lowest."""
        return self.logits.argmax(1)

    def accuracy(self) -> float:
        """The share of instances whose prediction is the label."""
        if self.labels is None:
            raise TraceError("This trace has no labels, so it has no accuracy. Give labels to Trace.from_arrays.")
        return float((self.predictions == self.labels).double().mean())

    def instance(self, number: int) -> slice:
        """Where the units of one instance lie."""
        return slice(int(self.offsets[number]), int(self.offsets[number + 1]))

    def save(self, path: Path | str) -> None:
        """Write to .safetensors, or to .parquet with one row per instance."""
        names = ("offsets", "attention_scores", "polarity_scores", "bias", "labels", "units", "class_names")
        write_fields(Path(path), {name: getattr(self, name) for name in names})

    @classmethod
    def load(cls, path: Path | str) -> "Trace":
        """Read what `save` wrote, or a foreign file (docs/traces.md); checked like `from_arrays`."""
        return cls.from_arrays(**read_fields(Path(path)))


def _plain(values: Array) -> NDArray[Any]:
    if isinstance(values, Tensor):  # numpy has no bfloat16
        return (values.double() if values.is_floating_point() else values).numpy(force=True)
    return np.asarray(values)


def _floats(name: str, values: Array) -> Float[Tensor, "..."]:
    try:
        raw = _plain(values)
        others = [value for value in raw.flat if not isinstance(value, Real)] if raw.dtype.kind not in "biuf" else []
        if others:
            raise TypeError(f"it holds '{others[0]}'")
        array = torch.from_numpy(raw.astype(np.float64))
    except (TypeError, ValueError) as error:
        raise TraceError(f"{name} must be numbers in a regular array: {error}.") from error
    strange = (array.isnan() | (array == torch.inf)).nonzero()
    if len(strange):
        place = ", ".join(map(str, strange[0].tolist()))
        raise TraceError(f"{name} must be finite; it holds NaN or infinity. The first is at [{place}].")
    return array


def _whole_numbers(values: Array, sentence: str) -> Int[Tensor, " numbers"]:
    try:
        raw = _plain(values)
    except ValueError as error:
        raise TraceError(sentence) from error
    if raw.ndim != 1 or not np.issubdtype(raw.dtype, np.integer):
        raise TraceError(sentence)
    return torch.from_numpy(raw.astype(np.int64))


def _offsets(values: Array) -> Int[Tensor, " bounds"]:
    sentence = "offsets must be whole numbers, one more than there are instances, starting with 0."
    starts = _whole_numbers(values, sentence)
    if len(starts) < 2:
        raise TraceError(sentence)
    if int(starts[0]) != 0:
        raise TraceError(f"offsets must start with 0, not {int(starts[0])}.")
    if not bool((starts[1:] > starts[:-1]).all()):
        place = int((starts[1:] <= starts[:-1]).nonzero()[0])
        raise TraceError(f"offsets must increase (an instance has at least one unit); instance {place} does not.")
    return starts


def _two_columns(polarity: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    if polarity.ndim == 1:
        polarity = polarity[:, None]
    if polarity.ndim == 2 and polarity.shape[1] == 1 and bias.numel() == 1:
        bias = bias.reshape(1)
        return torch.cat([torch.zeros_like(polarity), polarity], 1), torch.cat([torch.zeros_like(bias), bias])
    return polarity, bias


def _check_shapes(starts: Tensor, polarity: Tensor, bias: Tensor) -> None:
    if polarity.ndim != 2 or bias.ndim != 1:
        raise TraceError(
            f"polarity_scores must be [units, classes] and bias [classes]; got {list(polarity.shape)} and "
            f"{list(bias.shape)}. The readout must be affine in the attention: logits = bias + Σ α_i z_i."
        )
    if len(bias) < 2 or polarity.shape[1] != len(bias):
        raise TraceError(
            f"There must be two classes or more, the same number in polarity_scores and bias; "
            f"got {polarity.shape[1]} and {len(bias)}."
        )
    if torch.isinf(polarity).any() or torch.isinf(bias).any():
        raise TraceError("polarity_scores and bias must be finite.")
    if max(float(polarity.abs().max()), float(bias.abs().max())) > LARGEST:
        raise TraceError(f"polarity_scores and bias must stay below {LARGEST:.0e}: their sums overflow.")
    _check_length("polarity_scores", len(polarity), "unit", int(starts[-1]))


def _check_length(name: str, got: int, of: str, expected: int) -> None:
    if got != expected:
        raise TraceError(f"{name} must have one entry per {of}: expected {expected}, got {got}.")


def _attention(starts: Tensor, scores: Array | None, weights: Array | None) -> tuple[Tensor, Tensor]:
    if scores is None and weights is None:
        raise TraceError("Give attention_scores, or attention_weights where the scores are not known.")
    if scores is None:
        assert weights is not None
        alpha = _own_weights(starts, weights)
        return alpha.log(), alpha
    a = _floats("attention_scores", scores)
    _check_vector("attention_scores", a, starts)
    if torch.isinf(torch.segment_reduce(a, "max", offsets=starts)).any():
        raise TraceError("Every instance needs a unit with a finite attention score.")
    alpha = segment_softmax(a, starts)
    if weights is not None:
        given = _floats("attention_weights", weights)
        _check_vector("attention_weights", given, starts)
        largest = float(a[a.isfinite()].abs().max())  # a rounding of the scores by δ moves a weight by δ/2 at most
        slack = SUM_TOLERANCE + _epsilon(weights) + _epsilon(scores) * largest / 2
        if not torch.allclose(given, alpha, rtol=0, atol=slack):
            raise TraceError("attention_weights are not the softmax of attention_scores; give one of the two.")
    return a, alpha


def _own_weights(starts: Tensor, weights: Array) -> Tensor:
    """Weights without scores. Rounded to half precision they need not sum to one, and are divided by their sum."""
    alpha = _floats("attention_weights", weights)
    _check_vector("attention_weights", alpha, starts)
    if (alpha < 0).any():
        raise TraceError("attention_weights must not be negative.")
    sums = torch.segment_reduce(alpha, "sum", offsets=starts)
    rounding = _epsilon(weights)
    wrong = ((sums - 1).abs() > max(SUM_TOLERANCE, rounding)).nonzero().squeeze(1)
    if len(wrong):
        first = int(wrong[0])
        raise TraceError(
            f"attention_weights must sum to one; those of instance {first} sum to {float(sums[first])!r}. Give "
            "attention_scores instead, or divide the weights by their sum."
        )
    return alpha / sums[segments_of(starts)] if rounding > SUM_TOLERANCE else alpha


def _check_vector(name: str, values: Tensor, starts: Tensor) -> None:
    if values.ndim != 1:
        raise TraceError(f"{name} must be a flat array with one number per unit, not of shape {list(values.shape)}.")
    _check_length(name, len(values), "unit", int(starts[-1]))


def _labels(labels: Array | None, instances: int, classes: int) -> Int[Tensor, " instances"] | None:
    if labels is None:
        return None
    numbers = _whole_numbers(labels, "labels must be whole numbers, the class number of each instance.")
    _check_length("labels", len(numbers), "instance", instances)
    if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) < classes):
        raise TraceError(
            f"labels must lie between 0 and {classes - 1}; they go from {numbers.min()} to {numbers.max()}."
        )
    return numbers


def _epsilon(values: Array | None) -> float:
    """The relative rounding of the type these numbers come in; lists and whole numbers count as exact."""
    if isinstance(values, Tensor):
        return torch.finfo(values.dtype).eps if values.is_floating_point() else 0.0
    kind = getattr(values, "dtype", None)
    return float(np.finfo(kind).eps) if isinstance(kind, np.dtype) and kind.kind == "f" else 0.0


def _tolerance(*given: Array | None) -> float:
    """How far outputs may lie from those of the trace, relative to |b| + Σ α_i |z_i|: half the digits of the type.

    The coarsest type counts, float32 at best: the numbers of a float32 model often arrive as Python floats. Its sums
    over hundreds of features partly cancel, which costs digits; a readout that is not affine is off by far more.
    """
    return math.sqrt(max(torch.finfo(torch.float32).eps, *map(_epsilon, given)))


def _check_outputs(trace: Trace, logits: Array | None, probabilities: Array | None, tolerance: float) -> None:
    """The model's outputs must be those of the trace: otherwise its readout is not affine in the pooled vector."""
    if logits is None and probabilities is None:
        return
    size = trace.attention_weights[:, None] * trace.polarity_scores.abs()
    scale = trace.bias.abs() + size.new_zeros(len(trace), len(trace.bias)).index_add_(0, trace.segments, size)
    slack = tolerance * scale.amax(1, keepdim=True)
    if logits is not None:
        given = _outputs(trace, "logits", logits)
        both = torch.cat([torch.zeros_like(given), given], 1) if given.shape[1] == 1 else given
        _check_same("logits", "bias + Σ α_i z_i gives", trace, both, trace.logits, slack)
    if probabilities is not None:  # a change of the logits by δ moves a probability by δ/2 at most
        given = _outputs(trace, "probabilities", probabilities)
        both = torch.cat([1 - given, given], 1) if given.shape[1] == 1 else given
        slack = slack.clamp(min=tolerance) / 2
        _check_same("probabilities", "softmax(bias + Σ α_i z_i) gives", trace, both, trace.probabilities, slack)


def _outputs(trace: Trace, name: str, values: Array) -> Tensor:
    """One row per instance; of two classes the second alone is enough, as one column or flat."""
    given = _floats(name, values)
    if given.ndim == 1 and len(trace.bias) == 2:
        given = given[:, None]
    widths = (1, 2) if len(trace.bias) == 2 else (len(trace.bias),)
    if given.ndim != 2 or len(given) != len(trace) or given.shape[1] not in widths:
        raise TraceError(
            f"{name} must be [instances, classes], here {[len(trace), len(trace.bias)]}; got {list(given.shape)}."
        )
    return given


def _check_same(name: str, what: str, trace: Trace, given: Tensor, made: Tensor, slack: Tensor) -> None:
    excess = (given - made).abs() - slack
    wrong = (excess > 0).any(1).nonzero().squeeze(1)
    if not len(wrong):
        return
    first = int(wrong[0])
    k = int(excess[first].argmax())
    raise TraceError(
        f"{name} are not those of the trace: for instance {first}, class '{trace.class_names[k]}', "
        f"{what} {float(made[first, k]):.6g}, the model {float(given[first, k]):.6g}. Erasure needs a readout that is "
        "affine in the pooled vector: logits = W Σ α_i h_i + b, with z_i = W h_i. Check that dropout is off, that the "
        "scores are those that the softmax sees, and that half precision is not too coarse. If a nonlinear layer or a "
        "normalisation follows the pooling, there are no such z_i: train the model with a linear readout on the "
        "pooled vector."
    )
