"""The trace: what a classifier with attention and an affine readout did on each instance. Knows no model.

    logits = b + Σ_i α_i z_i        α = softmax(a) within the instance

Everything that is measured after training needs only the attention scores a, the polarity scores z and the bias b.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from heedful.errors import TraceError
from heedful.files import replacing
from heedful.text.ragged import lengths_of, segment_softmax, segments_of

Array = Sequence[Any] | NDArray[Any] | Tensor

SUM_TOLERANCE = 1e-6

F = TypeVar("F")


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
    ) -> "Trace":
        """A checked trace from lists, arrays or tensors.

        Weights follow from the scores by softmax. Given alone they must be non-negative and sum to one in each
        instance, and the scores are their logarithms. A column of polarity scores alone (a binary model with one
        output s) becomes the two columns (0, s).
        """
        starts = _offsets(offsets)
        polarity, shift = _two_columns(_floats("polarity_scores", polarity_scores), _floats("bias", bias))
        _check_shapes(starts, polarity, shift)
        scores, weights = _attention(starts, attention_scores, attention_weights)
        names = tuple(class_names) if class_names is not None else tuple(str(k) for k in range(len(shift)))
        _check_length("class_names", len(names), "class", len(shift))
        if units is not None:
            _check_length("units", len(units), "unit", int(starts[-1]))
        return cls(
            offsets=starts,
            attention_scores=scores,
            attention_weights=weights,
            polarity_scores=polarity,
            bias=shift,
            labels=_labels(labels, len(starts) - 1, len(shift)),
            units=units,
            class_names=names,
        )

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
        _writer(Path(path))(self, Path(path))

    @classmethod
    def load(cls, path: Path | str) -> "Trace":
        """Read what `save` wrote, or a foreign file of the same layout; checked like `from_arrays`."""
        return _reader(Path(path))(Path(path))


def _plain(values: Array) -> Sequence[Any] | NDArray[Any]:
    return values.numpy(force=True) if isinstance(values, Tensor) else values


def _floats(name: str, values: Array) -> Float[Tensor, "..."]:
    try:
        array = torch.from_numpy(np.asarray(_plain(values), dtype=np.float64).copy())
    except (TypeError, ValueError) as error:
        raise TraceError(f"{name} must be numbers in a regular array: {error}.") from error
    if array.isnan().any() or (array == torch.inf).any():
        raise TraceError(f"{name} must be finite; it holds NaN or infinity.")
    return array


def _offsets(values: Array) -> Int[Tensor, " bounds"]:
    raw = np.asarray(_plain(values))
    if raw.ndim != 1 or len(raw) < 2 or not np.issubdtype(raw.dtype, np.integer):
        raise TraceError("offsets must be whole numbers, one more than there are instances, starting with 0.")
    starts = torch.from_numpy(raw.astype(np.int64))
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
    _check_length("polarity_scores", len(polarity), "unit", int(starts[-1]))


def _check_length(name: str, got: int, of: str, expected: int) -> None:
    if got != expected:
        raise TraceError(f"{name} must have one entry per {of}: expected {expected}, got {got}.")


def _attention(starts: Tensor, scores: Array | None, weights: Array | None) -> tuple[Tensor, Tensor]:
    if scores is not None:
        a = _floats("attention_scores", scores)
        _check_vector("attention_scores", a, starts)
        largest = torch.segment_reduce(a, "max", offsets=starts)
        if torch.isinf(largest).any():
            raise TraceError("Every instance needs a unit with a finite attention score.")
        alpha = segment_softmax(a, starts)
        if weights is not None:
            given = _floats("attention_weights", weights)
            _check_vector("attention_weights", given, starts)
            if not torch.allclose(given, alpha, rtol=0, atol=SUM_TOLERANCE):
                raise TraceError("attention_weights are not the softmax of attention_scores; give one of the two.")
        return a, alpha
    if weights is None:
        raise TraceError("Give attention_scores, or attention_weights where the scores are not known.")
    alpha = _floats("attention_weights", weights)
    _check_vector("attention_weights", alpha, starts)
    if (alpha < 0).any():
        raise TraceError("attention_weights must not be negative.")
    sums = torch.segment_reduce(alpha, "sum", offsets=starts)
    wrong = ((sums - 1).abs() > SUM_TOLERANCE).nonzero().squeeze(1)
    if len(wrong):
        first = int(wrong[0])
        raise TraceError(f"attention_weights must sum to one; those of instance {first} sum to {float(sums[first])!r}.")
    return alpha.log(), alpha


def _check_vector(name: str, values: Tensor, starts: Tensor) -> None:
    if values.ndim != 1:
        raise TraceError(f"{name} must be a flat array with one number per unit, not of shape {list(values.shape)}.")
    _check_length(name, len(values), "unit", int(starts[-1]))


def _labels(labels: Array | None, instances: int, classes: int) -> Int[Tensor, " instances"] | None:
    if labels is None:
        return None
    raw = np.asarray(_plain(labels))
    if raw.ndim != 1 or not np.issubdtype(raw.dtype, np.integer):
        raise TraceError("labels must be whole numbers, the class number of each instance.")
    _check_length("labels", len(raw), "instance", instances)
    numbers = torch.from_numpy(raw.astype(np.int64))
    if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) < classes):
        raise TraceError(
            f"labels must lie between 0 and {classes - 1}; they go from {numbers.min()} to {numbers.max()}."
        )
    return numbers


def _writer(path: Path) -> Callable[[Trace, Path], None]:
    return _by_suffix(path, {".safetensors": _write_safetensors, ".parquet": _write_parquet})


def _reader(path: Path) -> Callable[[Path], Trace]:
    reader = _by_suffix(path, {".safetensors": _read_safetensors, ".parquet": _read_parquet})
    if not path.is_file():
        raise TraceError(f"There is no trace file '{path}'.")
    return reader


def _by_suffix(path: Path, functions: dict[str, F]) -> F:
    if path.suffix not in functions:
        raise TraceError(f"A trace file ends in {' or '.join(functions)}, not in '{path.suffix}'.")
    return functions[path.suffix]


def _write_safetensors(trace: Trace, path: Path) -> None:
    tensors = {
        "offsets": trace.offsets,
        "attention_scores": trace.attention_scores,
        "polarity_scores": trace.polarity_scores,
        "bias": trace.bias,
    }
    if trace.labels is not None:
        tensors["labels"] = trace.labels
    if trace.units is not None:  # as bytes of JSON: the header, where text would go, is limited to 100 MB
        tensors["units"] = torch.frombuffer(bytearray(json.dumps(list(trace.units)).encode()), dtype=torch.uint8)
    metadata = {"class_names": json.dumps(trace.class_names)}
    with replacing(path) as temporary:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, metadata)


def _read_safetensors(path: Path) -> Trace:
    try:
        with safe_open(path, framework="pt") as file:
            found: dict[str, Any] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if "units" in found:
                found["units"] = json.loads(found["units"].numpy().tobytes())
            if "class_names" in (file.metadata() or {}):
                found["class_names"] = json.loads(file.metadata()["class_names"])
    except (SafetensorError, ValueError, OSError) as error:
        raise TraceError(f"'{path}' is not a readable safetensors file: {error}.") from error
    return _from_columns(path, found)


def _write_parquet(trace: Trace, path: Path) -> None:
    starts = pa.array(trace.offsets.numpy(), pa.int32() if int(trace.offsets[-1]) < 2**31 else pa.int64())
    list_of = pa.ListArray if starts.type == pa.int32() else pa.LargeListArray
    rows = pa.FixedSizeListArray.from_arrays(pa.array(trace.polarity_scores.reshape(-1).numpy()), len(trace.bias))
    columns = {
        "attention_scores": list_of.from_arrays(starts, pa.array(trace.attention_scores.numpy())),
        "polarity_scores": list_of.from_arrays(starts, rows),
    }
    if trace.labels is not None:
        columns["label"] = pa.array(trace.labels.numpy())
    if trace.units is not None:
        columns["units"] = list_of.from_arrays(starts, pa.array(list(trace.units), pa.string()))
    metadata = {"bias": json.dumps(trace.bias.tolist()), "class_names": json.dumps(trace.class_names)}
    with replacing(path) as temporary:
        pq.write_table(pa.table(columns).replace_schema_metadata(metadata), temporary)


def _read_parquet(path: Path) -> Trace:
    try:
        table = pq.read_table(path)
        metadata = {
            name.decode(): json.loads(value)
            for name, value in (table.schema.metadata or {}).items()
            if name.decode() in _NAMES
        }
    except (pa.ArrowException, json.JSONDecodeError, OSError) as error:
        raise TraceError(f"'{path}' is not a readable Parquet file: {str(error).rstrip('.')}.") from error
    columns = {name: table.column(name).combine_chunks() for name in table.column_names if name in _LIST_COLUMNS}
    found: dict[str, Any] = dict(metadata)
    for name, column in columns.items():
        found.setdefault("offsets", np.concatenate([[0], np.cumsum(np.diff(column.offsets.to_numpy()))]))
        found[name] = _flat(column)
    if "label" in table.column_names:
        found["labels"] = table.column("label").to_numpy()
    return _from_columns(path, found)


def _flat(column: Any) -> Any:
    """All values of a list column; a list of lists becomes a two-dimensional array."""
    values = column.flatten()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return values.to_pylist()
    if pa.types.is_nested(values.type):
        return np.array(values.to_pylist(), dtype=np.float64)
    return values.to_numpy(zero_copy_only=False)


_NAMES = ("bias", "class_names", "units")
_LIST_COLUMNS = ("attention_scores", "attention_weights", "polarity_scores", "units")


def _from_columns(path: Path, found: dict[str, Any]) -> Trace:
    wanted = ("offsets", "polarity_scores", "bias")
    missing = [name for name in wanted if name not in found]
    if missing:
        raise TraceError(
            f"'{path}' lacks {', '.join(missing)}; a trace needs scores or weights, polarity_scores, bias."
        )
    optional = ("attention_scores", "attention_weights", "labels", "units", "class_names")
    return Trace.from_arrays(**{name: found[name] for name in (*wanted, *optional) if name in found})
