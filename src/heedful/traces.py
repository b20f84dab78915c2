"""The trace: what a classifier with attention and an affine readout did on each instance. Knows no model.

Everything that is measured after training needs only the attention scores a, the polarity scores z and the bias b.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import InputError, TraceError
from heedful.notebook import MOST_TEXTS, PICTURES, Strip, View, Viewed, counted, listed, short
from heedful.text.ragged import lengths_of, offsets_of, positions_of, segment_softmax, segments_of
from heedful.trace_files import read_fields, write_fields

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = Sequence[Any] | NDArray[Any] | Tensor

LARGEST = 1e300
"""Polarity scores beyond it, which no model has, would overflow in sums."""

SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Ragged:
    """Units end to end: instance t owns the units offsets[t] … offsets[t + 1]."""

    offsets: Int[Tensor, " bounds"]

    @cached_property
    def lengths(self) -> Int[Tensor, " instances"]:
        return lengths_of(self.offsets)

    @cached_property
    def segments(self) -> Int[Tensor, " units"]:
        """For every unit the number of its instance."""
        return segments_of(self.offsets)


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """Where a trace lies in a larger one that it is a shard of: what chance and rounding there depend on."""

    first: int
    """The number of its first instance."""
    lengths: Int[Tensor, " whole"]
    """How many units each instance of the whole has."""
    largest: float
    """The largest |z| of the whole."""

    @cached_property
    def first_unit(self) -> int:
        return int(self.lengths[: self.first].sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace(Viewed, Ragged):
    """What a classifier with attention and an affine readout did on each instance, unit by unit.

        logits = b + Σ_i α_i z_i        α = softmax(a) within the instance

    Ragged: instance t owns the units offsets[t] … offsets[t + 1]. All numbers are float64. Made by `heedful.trace`, or
    by `Trace.from_arrays` for a model that is not heedful's; `save` and `load` keep it in a file, `to_frame` makes a
    table of it.

    offsets: where the units of each instance begin, [instances + 1].
    attention_scores: a, before the softmax, [units].
    attention_weights: α, which sum to one in each instance, [units].
    polarity_scores: z, what each unit says for each class, [units, classes]; (0, s) of a model with one output s.
    bias: b of the readout, [classes].
    labels: the class number of each instance, or None.
    units: the word or sentence of each unit, or None.
    class_names: the classes in the order of their numbers.
    part: of a shard of a larger trace (`heedful.TraceFolder`) its place there; otherwise None.

    >>> import heedful
    >>> trace = heedful.Trace.from_arrays(
    ...     offsets=[0, 2, 3],
    ...     attention_weights=[0.25, 0.75, 1.0],
    ...     polarity_scores=[[0, 4], [0, -8], [0, 1]],
    ...     bias=[0.5, 0],
    ...     units=["good", "dull", "fine"],
    ...     class_names=["no", "yes"],
    ... )
    >>> trace
    Trace(2 instances, 3 units, classes no, yes; no labels)
    >>> trace.logits.tolist()
    [[0.5, -5.0], [0.5, 1.0]]
    >>> trace.predictions.tolist()
    [0, 1]
    """

    attention_scores: Float[Tensor, " units"]
    attention_weights: Float[Tensor, " units"]
    polarity_scores: Float[Tensor, "units classes"]
    bias: Float[Tensor, " classes"]
    labels: Int[Tensor, " instances"] | None
    units: Sequence[str] | None
    class_names: tuple[str, ...]
    part: Part | None = None

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
        """A checked trace from lists, arrays or tensors: the way in for a model that is not heedful's.

        What there is of each instance:
            offsets: where its units begin, one number more than there are instances, from 0 to the number of units.
            labels: its class number; None (the default) where it is not known.
            logits, probabilities: the model's own outputs, [instances, classes], of two classes the second is enough.
                They prove that the readout is affine, since b + Σ α_i z_i must give them, and are not kept. None skips
                the proof.
        What there is of each unit:
            attention_scores: a, before the softmax; −inf for a unit without weight. Weights follow from them.
            attention_weights: α, where the scores are not known: not negative, and they sum to one in each instance
                (those in half precision nearly, and they are divided by their sum). The scores are their logarithms.
                One of the two must be given.
            polarity_scores: z = W h, [units, classes]. One column (a model with one output s) becomes the two (0, s).
            units: what to show for it; None shows its position.
        What there is of each class:
            bias: b of the readout; zeros where it has none.
            class_names: None calls them 0, 1, ….

        >>> import heedful
        >>> scores = {"attention_scores": [1, 1], "polarity_scores": [6, -2]}
        >>> trace = heedful.Trace.from_arrays(offsets=[0, 2], bias=[0], **scores)
        >>> trace.attention_weights.tolist(), trace.logits.tolist()
        ([0.5, 0.5], [[0.0, 2.0]])
        """
        starts = _checked_offsets(offsets)
        polarity, shift = _checked_readout(starts, polarity_scores, bias)
        scores, weights = _checked_attention(starts, attention_scores, attention_weights)
        names = range(len(shift)) if class_names is None else class_names
        classes = tuple(map(str, names)) if isinstance(names, range) else names
        if units is not None:
            units = _texts("units", units, "unit", int(starts[-1]))
        trace = cls(
            offsets=starts,
            attention_scores=scores,
            attention_weights=weights,
            polarity_scores=polarity,
            bias=shift,
            labels=_checked_labels(labels, len(starts) - 1, len(shift)),
            units=units,
            class_names=tuple(_texts("class_names", classes, "class", len(shift))),
        )
        _check_outputs(trace, logits, probabilities, attention_scores, attention_weights, polarity_scores, bias)
        return trace

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"Trace({self._sizes()}; {'no labels' if self.labels is None else 'labelled'})"

    @property
    def view(self) -> View:
        return self._view(range(len(self))[:MOST_TEXTS])

    def plot(self, ax: "Axes | None" = None, instance: int = 0) -> "Axes":
        """Draw what the units of one instance get and give, on these axes or new ones, and return them."""
        return self._view(range(len(self))[instance : instance + 1]).plot(ax)

    def _view(self, shown: range) -> View:
        """Of these instances; the first is drawn."""
        accuracy = "no labels" if self.labels is None else f"accuracy {self.accuracy():.3f}"
        first = self.take(torch.tensor(list(shown[:1]), dtype=torch.int64))
        return View(
            title=f"Trace: {self._sizes()}; {accuracy}",
            sentences=["Amber: attention weight. Green gave to the decision, purple took from it (α·z)."],
            parts=[strip for row in shown for strip in self._strips(row)],
            drawing="units",
            data=first.to_frame(),
        )

    def _sizes(self) -> str:
        sizes = f"{counted(len(self), 'instance')}, {counted(len(self.attention_scores), 'unit')}"
        return f"{sizes}, classes {listed(self.class_names)}"

    def _strips(self, number: int) -> list[Strip]:
        place, decision = self.instance(number), int(self.predictions[number])
        shown = range(place.stop - place.start) if self.units is None else self.units[place]
        units = [str(unit) for unit in shown]
        label = "" if self.labels is None else f", label {short(self.class_names[int(self.labels[number])])}"
        probability = float(self.probabilities[number, decision])
        heading = f"instance {number}: predicted {short(self.class_names[decision])} ({probability:.1%}){label}"
        return [
            Strip(heading=heading, units=units, values=self.attention_weights[place].tolist()),
            Strip(heading="used here", units=units, values=self.contributions[place].tolist(), signed=True),
        ]

    @cached_property
    def logits(self) -> Float[Tensor, "instances classes"]:
        return self.bias + self._attended(self.polarity_scores)

    def _attended(self, values: Float[Tensor, "units classes"]) -> Float[Tensor, "instances classes"]:
        """Σ α_i v_i over the units of each instance."""
        weighted = self.attention_weights[:, None] * values
        return weighted.new_zeros(len(self), len(self.bias)).index_add_(0, self.segments, weighted)

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

    @cached_property
    def distinct(self) -> Bool[Tensor, " instances"]:
        """Whether no instance before this one has the same units: copies of a text are no evidence of their own."""
        return torch.from_numpy(~pd.Series(digests_of(self)).duplicated().to_numpy()).to(self.offsets.device)

    def instance(self, number: int) -> slice:
        """Where the units of one instance lie."""
        return slice(int(self.offsets[number]), int(self.offsets[number + 1]))

    def take(self, rows: Int[Tensor, " rows"]) -> "Trace":
        """The trace of these instances, in this order."""
        where = positions_of(self.offsets, rows)
        return replace(
            self,
            offsets=offsets_of(self.lengths[rows]),
            **{
                name: getattr(self, name)[where]
                for name in ("attention_scores", "attention_weights", "polarity_scores")
            },
            labels=None if self.labels is None else self.labels[rows],
            units=None if self.units is None else [self.units[place] for place in where.tolist()],
            part=None,
        )

    @cached_property
    def contributions(self) -> Float[Tensor, " units"]:
        """α_i (z_iy − mean over k ≠ y of z_ik): what each unit adds to its instance's decision y."""
        own = self.polarity_scores.gather(1, self.predictions[self.segments][:, None]).squeeze(1)
        others = (self.polarity_scores.sum(1) - own) / (len(self.bias) - 1)
        return self.attention_weights * (own - others)

    def to_frame(self) -> pd.DataFrame:
        """The trace as a table, one row per unit.

        instance, position: which instance, and where in it, both from 0.
        unit: its word or sentence; null where the trace has no units.
        attention_score, attention_weight: a_i and α_i.
        polarity: towards the second of two classes, z_i1 − z_i0; of more classes `polarity_<class>` each, z_ik.
        contribution: α_i (z_iy − mean over k ≠ y of z_ik), what the unit adds to the decision y of its instance.
        predicted: the name of that class.
        label: the name of the true class, where the trace has labels.

        >>> import heedful
        >>> scores = {"attention_weights": [0.25, 0.75], "polarity_scores": [4, -8]}
        >>> trace = heedful.Trace.from_arrays(offsets=[0, 2], bias=[0], units=["good", "dull"], **scores)
        >>> trace.to_frame()[["unit", "attention_weight", "polarity", "contribution", "predicted"]]
           unit  attention_weight  polarity  contribution predicted
        0  good              0.25       4.0          -1.0         0
        1  dull              0.75      -8.0           6.0         0
        """
        polarity = polarity_columns(self.polarity_scores, self.class_names)
        return pd.DataFrame(
            {
                "instance": self.segments.numpy(force=True),
                "position": np.arange(len(self.segments)) - self.offsets[self.segments].numpy(force=True),
                "unit": [None] * len(self.segments) if self.units is None else list(self.units),
                "attention_score": self.attention_scores.numpy(force=True),
                "attention_weight": self.attention_weights.numpy(force=True),
                **{name: scores.numpy(force=True) for name, scores in polarity.items()},
                "contribution": self.contributions.numpy(force=True),
                "predicted": self._names(self.predictions),
                **({} if self.labels is None else {"label": self._names(self.labels)}),
            }
        )

    def _names(self, classes: Int[Tensor, " instances"]) -> NDArray[Any]:
        """The name of its instance's class for every unit."""
        names: NDArray[Any] = np.array(self.class_names, dtype=object)
        return names.take(classes[self.segments].numpy(force=True))

    def save(self, path: Path | str) -> None:
        """Write to .safetensors, or to .parquet with one row per instance, both to be loaded again; or its table (.csv,
        .tex), picture (.svg, .pdf, .png) or page (.html)."""
        if Path(path).suffix in {".csv", ".tex", ".html", *PICTURES}:
            super().save(path)
        else:
            names = ("offsets", "attention_scores", "polarity_scores", "bias", "labels", "units", "class_names")
            write_fields(Path(path), {name: getattr(self, name) for name in names})

    @classmethod
    def load(cls, path: Path | str) -> "Trace":
        """Read what `save` wrote, or a foreign file (docs/traces.md); checked like `from_arrays`."""
        return cls.from_arrays(**read_fields(Path(path)))


def digests_of(trace: Trace) -> list[bytes]:
    """What tells the units of each instance from those of others."""
    starts = trace.offsets.tolist()
    scores, polarity = trace.attention_scores.numpy(force=True), trace.polarity_scores.numpy(force=True)
    return [
        hashlib.sha256(scores[start:end].tobytes() + polarity[start:end].tobytes()).digest()
        for start, end in pairwise(starts)
    ]


def polarity_columns(
    scores: Float[Tensor, "units classes"], class_names: Sequence[str]
) -> dict[str, Float[Tensor, " units"]]:
    """`polarity` towards the second of two classes, or `polarity_<class>` for each of more."""
    if len(class_names) == 2:
        return {"polarity": scores[:, 1] - scores[:, 0]}
    return {f"polarity_{name}": scores[:, number] for number, name in enumerate(class_names)}


def _plain(values: object) -> NDArray[Any]:
    """As an array of numpy; a TypeError or ValueError where that cannot be."""
    if not isinstance(values, Tensor):
        return np.asarray(values)
    if values.is_meta or values.is_quantized or values.layout is not torch.strided:
        raise TypeError(f"this tensor holds no plain numbers (device {values.device.type}, {values.layout})")
    return (values.double() if values.is_floating_point() else values).numpy(force=True)  # numpy has no bfloat16


def _texts(name: str, values: object, of: str, count: int) -> Sequence[str]:
    """One text for each of so many; sequences of other kinds than lists are taken at their word."""
    if isinstance(values, (np.ndarray, pd.Series, pd.Index)):
        values = values.tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise TraceError(f"{name} must be a list with a text for each {of}, not {type(values).__name__}.")
    kinds = {type(value) for value in values} if isinstance(values, (list, tuple)) else set()
    if others := sorted(kind.__name__ for kind in kinds if not issubclass(kind, str)):
        raise TraceError(f"{name} must be texts; there are entries of type {others[0]}.")
    _check_length(name, len(values), of, count)
    return values


def floats(name: str, values: object, error: type[InputError] = TraceError) -> Float[Tensor, "..."]:
    """Numbers in a regular array; refused with a sentence where there are others, NaN or infinity (−∞ may be)."""
    try:
        raw = _plain(values)
        others = [value for value in raw.flat if not isinstance(value, Real)] if raw.dtype.kind not in "biuf" else []
        if others:
            raise TypeError(f"it holds '{others[0]}'")
        array = torch.from_numpy(raw.astype(np.float64))
    except (TypeError, ValueError, OverflowError, RuntimeError) as wrong:
        raise error(f"{name} must be numbers in a regular array: {wrong}.") from wrong
    strange = (array.isnan() | (array == torch.inf)).nonzero()
    if len(strange):
        place = ", ".join(map(str, strange[0].tolist()))
        raise error(f"{name} must be finite; it holds NaN or infinity. The first is at [{place}].")
    return array


def _whole_numbers(values: Array, least: int, sentence: str) -> Int[Tensor, " numbers"]:
    try:
        raw = _plain(values)
    except (TypeError, ValueError) as error:
        raise TraceError(sentence) from error
    if raw.ndim != 1 or not np.issubdtype(raw.dtype, np.integer) or len(raw) < least:
        raise TraceError(sentence)
    return torch.from_numpy(raw.astype(np.int64))


def _checked_offsets(values: Array) -> Int[Tensor, " bounds"]:
    """Where the units of each instance begin; refused with a sentence unless they increase from 0 on."""
    sentence = "offsets must be whole numbers, one more than there are instances, starting with 0."
    starts = _whole_numbers(values, 2, sentence)
    if int(starts[0]) != 0:
        raise TraceError(f"offsets must start with 0, not {int(starts[0])}.")
    empty = (lengths_of(starts) <= 0).nonzero()
    if len(empty):
        raise TraceError(
            f"offsets must increase (an instance has at least one unit); instance {int(empty[0])} does not."
        )
    return starts


def _checked_readout(starts: Tensor, polarity_scores: Array, bias_values: Array) -> tuple[Tensor, Tensor]:
    """Polarity scores [units, classes] and bias [classes]; one output s becomes the two (0, s)."""
    polarity, bias = floats("polarity_scores", polarity_scores), floats("bias", bias_values)
    if polarity.ndim == 1:
        polarity = polarity[:, None]
    if polarity.ndim == 2 and polarity.shape[1] == 1 and bias.numel() == 1:
        polarity, bias = F.pad(polarity, (1, 0)), F.pad(bias.reshape(1), (1, 0))
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
    _check_length("polarity_scores", len(polarity), "unit", int(starts[-1]))
    if torch.isinf(polarity).any() or torch.isinf(bias).any():
        raise TraceError("polarity_scores and bias must be finite.")
    if max(float(polarity.abs().max()), float(bias.abs().max())) > LARGEST:
        raise TraceError(f"polarity_scores and bias must stay below {LARGEST:.0e}: their sums overflow.")
    return polarity, bias


def _check_length(name: str, got: int, of: str, expected: int) -> None:
    if got != expected:
        raise TraceError(f"{name} must have one entry per {of}: expected {expected}, got {got}.")


def _checked_attention(
    starts: Int[Tensor, " bounds"], scores: Array | None, weights: Array | None
) -> tuple[Float[Tensor, " units"], Float[Tensor, " units"]]:
    """Scores a and weights α, of which one may be missing; refused with a sentence unless α = softmax(a)."""
    if scores is None:
        if weights is None:
            raise TraceError("Give attention_scores, or attention_weights where the scores are not known.")
        alpha = _weights_alone(starts, weights)
        return alpha.log(), alpha
    a = _per_unit("attention_scores", scores, starts)
    if torch.isinf(torch.segment_reduce(a, "max", offsets=starts)).any():
        raise TraceError("Every instance needs a unit with a finite attention score.")
    alpha = segment_softmax(a, starts)
    if weights is not None:
        given = _per_unit("attention_weights", weights, starts)
        largest = float(a[a.isfinite()].abs().max())  # a rounding of the scores by δ moves a weight by δ/2 at most
        slack = SUM_TOLERANCE + _epsilon(weights) + _epsilon(scores) * largest / 2
        if not torch.allclose(given, alpha, rtol=0, atol=slack):
            raise TraceError("attention_weights are not the softmax of attention_scores; give one of the two.")
    return a, alpha


def _weights_alone(starts: Tensor, weights: Array) -> Tensor:
    """Weights without scores. Rounded to half precision they need not sum to one, and are divided by their sum."""
    alpha = _per_unit("attention_weights", weights, starts)
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


def _per_unit(name: str, values: Array, starts: Tensor) -> Tensor:
    array = floats(name, values)
    if array.ndim != 1:
        raise TraceError(f"{name} must be a flat array with one number per unit, not of shape {list(array.shape)}.")
    _check_length(name, len(array), "unit", int(starts[-1]))
    return array


def _checked_labels(labels: Array | None, instances: int, classes: int) -> Int[Tensor, " instances"] | None:
    if labels is None:
        return None
    numbers = _whole_numbers(labels, 0, "labels must be whole numbers, the class number of each instance.")
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


def _check_outputs(trace: Trace, logits: Array | None, probabilities: Array | None, *others: Array | None) -> None:
    """The model's outputs must be those of the trace: otherwise its readout is not affine in the pooled vector.

    They may be off by half the digits of the type, relative to |b| + Σ α_i |z_i|. The coarsest type of all arrays
    counts, float32 at best: the numbers of a float32 model often arrive as Python floats. Its sums over hundreds of
    features partly cancel, which costs digits; a readout that is not affine is off by far more.
    """
    if logits is None and probabilities is None:
        return
    rounding = map(_epsilon, (logits, probabilities, *others))
    tolerance = math.sqrt(max(torch.finfo(torch.float32).eps, *rounding))
    slack = tolerance * (trace.bias.abs() + trace._attended(trace.polarity_scores.abs())).amax(1, keepdim=True)
    if logits is not None:
        given = _outputs(trace, "logits", logits)
        _check_same("logits", "bias + Σ α_i z_i gives", trace, given, trace.logits, slack)
    if probabilities is not None:  # a change of the logits by δ moves a probability by δ/2 at most
        given, slack = _outputs(trace, "probabilities", probabilities), slack.clamp(min=tolerance) / 2
        _check_same("probabilities", "softmax(bias + Σ α_i z_i) gives", trace, given, trace.probabilities, slack)


def _outputs(trace: Trace, name: str, values: Array) -> Tensor:
    """One row per instance; of two classes the second alone is enough, as one column or flat."""
    given = floats(name, values)
    if given.ndim == 1 and len(trace.bias) == 2:
        given = given[:, None]
    widths = (1, 2) if len(trace.bias) == 2 else (len(trace.bias),)
    if given.ndim != 2 or len(given) != len(trace) or given.shape[1] not in widths:
        raise TraceError(
            f"{name} must be [instances, classes], here {[len(trace), len(trace.bias)]}; got {list(given.shape)}."
        )
    first = 1 - given if name == "probabilities" else torch.zeros_like(given)
    return torch.cat([first, given], 1) if given.shape[1] == 1 else given


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
