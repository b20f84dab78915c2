"""Trace files, as plain arrays: Parquet with one row per instance, or safetensors. Knows no Trace.

The fields are the arguments of `Trace.from_arrays`; docs/traces.md shows how to write them without heedful. What a
foreign file may hold is checked as far as the arrays do not show it: rows, lists, nulls and types.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import TraceError, border, reason
from heedful.files import digest_of, is_file, replacing
from heedful.tensor_files import CHECKSUM, load_tensors, save_tensors
from heedful.text.tables import writable

Fields = dict[str, Any]
F = TypeVar("F")

_PER_UNIT = ("attention_scores", "attention_weights", "polarity_scores", "units")
_PER_INSTANCE = ("logits", "probabilities")
_FOR_ALL = ("bias", "class_names")
_LABELS = ("labels", "label")
_COLUMNS = (*_PER_UNIT, *_PER_INSTANCE, *_FOR_ALL, *_LABELS)
_TEXTS = ("units", "class_names")


def read_fields(path: Path, *, units: bool = True) -> Fields:
    """What a trace file holds, by the names of `Trace.from_arrays`; without `units` not what its units are called."""
    reader = _by_suffix(path, {".safetensors": _read_safetensors, ".parquet": _read_parquet})
    if not is_file(path):
        raise TraceError(f"There is no trace file '{path}'.")
    fields = reader(path, units)
    if all(name in fields for name in _LABELS):
        raise TraceError("The class numbers are given twice, as labels and as label; give one of the two.")
    if not units:
        fields.pop("units", None)
    return {"labels" if name == "label" else name: values for name, values in fields.items()}


def write_fields(path: Path, fields: Fields) -> None:
    """Write the fields of a trace; those that are None are left out."""
    writer = _by_suffix(path, {".safetensors": _write_safetensors, ".parquet": _write_parquet})
    given = {name: value for name, value in fields.items() if value is not None}
    writer(path, given | {name: [writable(text) for text in given[name]] for name in _TEXTS if name in given})


def _by_suffix(path: Path, functions: dict[str, F]) -> F:
    if path.suffix not in functions:
        raise TraceError(f"A trace file ends in {' or '.join(functions)}, not in '{path.suffix}'.")
    return functions[path.suffix]


def _write_safetensors(path: Path, fields: Fields) -> None:
    tensors = {name: value.contiguous() for name, value in fields.items() if isinstance(value, Tensor)}
    if "units" in fields:  # as bytes of JSON: the header, where text would go, is limited to 100 MB
        text = json.dumps(fields["units"]).encode()
        tensors["units"] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    with replacing(path) as temporary:
        save_tensors(temporary, tensors, {"class_names": json.dumps(fields["class_names"])})


def _read_safetensors(path: Path, units: bool) -> Fields:
    tensors, notes = load_tensors(path, TraceError)
    if not units:
        tensors.pop("units", None)  # to make texts of them takes longer than all else
    _refuse_missing(path, tensors, ("offsets", "polarity_scores", "bias"), "Tensors")
    fields: Fields = {name: tensor for name, tensor in tensors.items() if name in (*_COLUMNS, "offsets")}
    for name in fields.keys() & set(_TEXTS):
        if fields[name].dtype != torch.uint8:
            raise TraceError(f"{name} must be the bytes (uint8) of a JSON list, not {fields[name].dtype}.")
        fields[name] = _json_list(name, fields[name].numpy().tobytes())
    if "class_names" in notes:
        fields["class_names"] = _json_list("class_names", notes["class_names"])
    return fields


def _write_parquet(path: Path, fields: Fields) -> None:
    offsets = fields["offsets"]
    starts = pa.array(offsets.numpy(), pa.int32() if int(offsets[-1]) < 2**31 else pa.int64())
    list_of = pa.ListArray if starts.type == pa.int32() else pa.LargeListArray
    flat = pa.array(fields["polarity_scores"].reshape(-1).numpy())
    columns = {
        "attention_scores": list_of.from_arrays(starts, pa.array(fields["attention_scores"].numpy())),
        "polarity_scores": list_of.from_arrays(starts, pa.FixedSizeListArray.from_arrays(flat, len(fields["bias"]))),
    }
    if "labels" in fields:
        columns["label"] = pa.array(fields["labels"].numpy())
    if "units" in fields:
        columns["units"] = list_of.from_arrays(starts, pa.array(fields["units"], pa.string()))
    notes = {"bias": json.dumps(fields["bias"].tolist()), "class_names": json.dumps(fields["class_names"])}
    notes[CHECKSUM] = _checksum(fields)
    with replacing(path) as temporary:
        pq.write_table(pa.table(columns).replace_schema_metadata(notes), temporary)


def _checksum(fields: Fields) -> str:
    """Of what a Parquet file holds, whatever holds it in memory."""
    numbers = (name for name in (*_PER_UNIT, "offsets", "bias", "labels") if name in fields and name not in _TEXTS)
    content = {name: hashlib.sha256(np.asarray(fields[name], np.float64).tobytes()).hexdigest() for name in numbers}
    return digest_of(content | {name: list(fields[name]) for name in _TEXTS if name in fields})


def _read_parquet(path: Path, _units: bool) -> Fields:
    with border(f"The Parquet file '{path}'", TraceError):
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            twice = sorted({name for name in names if name in _COLUMNS and names.count(name) > 1})
            if twice:
                raise TraceError(f"'{path}' has the column {twice[0]} more than once; give it once.")
            table = file.read([name for name in names if name in _COLUMNS])
        fields = _parquet_fields(path, table, names)
        known = (table.schema.metadata or {}).get(CHECKSUM.encode())
        renamed = {"labels" if name == "label" else name: value for name, value in fields.items()}
        if known is not None and known != _checksum(renamed).encode():
            raise TraceError(f"'{path}' is damaged: it does not hold what was written to it.")
        return fields


def _parquet_fields(path: Path, table: Any, names: Sequence[str]) -> Fields:
    columns = {name: table.column(name) for name in table.column_names}
    notes = {name: text for name in _FOR_ALL if (text := (table.schema.metadata or {}).get(name.encode())) is not None}
    _refuse_missing(path, {**columns, **notes}, ("polarity_scores", "bias"), "Columns", names)
    if not table.num_rows:
        raise TraceError(f"'{path}' has no rows; a trace has one row per instance.")
    rows = np.arange(table.num_rows)
    fields = _per_unit({name: columns[name] for name in _PER_UNIT if name in columns})
    fields |= {name: _regular(name, columns[name], rows) for name in _PER_INSTANCE if name in columns}
    for name in (name for name in _LABELS if name in columns):
        _refuse_nulls(name, columns[name], rows)
        fields[name] = _decoded(columns[name]).to_numpy()
    for name in _FOR_ALL:
        if name in columns and name in notes:
            raise TraceError(f"{name} is given twice, as a column and in the schema metadata; give one of the two.")
        if name in columns:
            fields[name] = _same_in_each_row(name, columns[name])
        elif name in notes:
            fields[name] = _json_list(name, notes[name])
    return fields


def _per_unit(columns: dict[str, Any]) -> Fields:
    """The columns that hold a list for every instance, end to end, and the offsets that all of them share."""
    lengths: dict[str, NDArray[Any]] = {name: _lengths(name, column) for name, column in columns.items()}
    first, *others = lengths
    for other in others:
        uneven = np.flatnonzero(lengths[first] != lengths[other])
        if len(uneven):
            row = int(uneven[0])
            raise TraceError(
                f"{first} and {other} must have one entry per unit, so lists of one length in each row; "
                f"in row {row} (counted from 0) they have {lengths[first][row]} and {lengths[other][row]}."
            )
    rows = np.repeat(np.arange(len(lengths[first])), lengths[first])
    fields: Fields = {name: _regular(name, pc.list_flatten(column), rows) for name, column in columns.items()}
    if "units" in fields:
        fields["units"] = list(fields["units"])
    return {"offsets": np.concatenate([[0], np.cumsum(lengths[first], dtype=np.int64)]), **fields}


def _lengths(name: str, column: Any) -> NDArray[Any]:
    if not _is_list(column.type):
        raise TraceError(
            f"{name} must be a column of lists, one row per instance with one entry per unit; it is a column of "
            f"{column.type}. If the file has one row per unit, gather the rows of each instance into lists."
        )
    _refuse_nulls(name, column, np.arange(len(column)))
    return np.asarray(pc.list_value_length(column).to_numpy())


def _regular(name: str, values: Any, rows: NDArray[Any]) -> NDArray[Any]:
    """Nested lists as an array with an axis for each level. `rows` says where the outermost values lie in the file."""
    _refuse_nulls(name, values, rows)
    if not _is_list(values.type):
        return _leaves(name, values)
    widths = np.asarray(pc.list_value_length(values).to_numpy())
    width = int(widths[0]) if len(widths) else 0
    uneven = np.flatnonzero(widths != width)
    if len(uneven):
        raise TraceError(
            f"{name} must have the same number of classes everywhere; its first list has {width}, one in row "
            f"{_row(int(uneven[0]), values, rows)} (counted from 0) has {widths[uneven[0]]}."
        )
    inner = _regular(name, pc.list_flatten(values), rows)
    return inner.reshape(len(values), width, *inner.shape[1:])


def _leaves(name: str, values: Any) -> NDArray[Any]:
    values = _decoded(values)
    if name in _TEXTS:
        if str(values.type) not in ("string", "large_string", "string_view"):
            raise TraceError(f"{name} must hold text; the column holds {values.type}.")
        return np.array(values.to_pylist(), dtype=object)
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        raise TraceError(f"{name} must hold numbers; the column holds {values.type}.")
    return np.asarray(values.to_numpy())


def _decoded(values: Any) -> Any:
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def _same_in_each_row(name: str, column: Any) -> Any:
    """What holds for the whole trace, given as a column: the same value in each row."""
    array = _regular(name, column, np.arange(len(column)))
    different = (array != array[0]).reshape(len(array), -1).any(1)
    different[0] = False
    if different.any():
        row = int(different.argmax())
        raise TraceError(
            f"{name} must be the same in each row; row 0 has {array[0].tolist()}, row {row} {array[row].tolist()}."
        )
    return array[0].tolist() if name in _TEXTS else np.asarray(array[0])


def _refuse_nulls(name: str, values: Any, rows: NDArray[Any]) -> None:
    if values.null_count:
        place = int(np.flatnonzero(values.is_null().to_numpy())[0])
        raise TraceError(
            f"{name} must be complete; there is a null in row {_row(place, values, rows)} (counted from 0)."
        )


def _row(place: int, values: Any, rows: NDArray[Any]) -> int:
    """In which row of the file a value lies; every entry of `rows` has the same number of values."""
    return int(rows[place * len(rows) // len(values)])


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _json_list(name: str, text: str | bytes) -> list[Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{name} must be a JSON list: {reason(error)}.") from error
    if not isinstance(values, list):
        raise TraceError(f"{name} must be a JSON list; got {str(values)[:40]}.")
    if name in _TEXTS and not all(isinstance(entry, str) for entry in values):
        raise TraceError(f'{name} must be a JSON list of texts, such as ["no", "yes"].')
    return values


_WAYS = {
    "bias": " Give bias as a column (a list with one number per class, the same in each row), or as a JSON list under "
    "'bias' in the schema metadata.",
    "polarity_scores": " polarity_scores are z_i = W h_i; they exist where the logits are affine in the attention, "
    "logits = bias + Σ α_i z_i, and other models have no trace.",
}


def _refuse_missing(
    path: Path, fields: Fields, wanted: Sequence[str], what: str, names: Sequence[str] | None = None
) -> None:
    missing = [name for name in wanted if name not in fields]
    if missing:
        columns = what == "Columns"
        ways = "".join(_WAYS[name] for name in _WAYS if name in missing and (columns or name != "bias"))
        held = ", ".join(fields if names is None else names) or "none"
        raise TraceError(
            f"'{path}' lacks {', '.join(missing)}; a trace needs {'' if columns else 'offsets, '}scores or weights, "
            f"polarity_scores, bias.{ways} {what} in the file: {held}."
        )
