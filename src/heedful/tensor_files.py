"""Tensors in safetensors files that know what they hold: a flipped bit is an error, or a reason to compute again."""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from heedful.errors import HeedfulError, border

CHECKSUM = "checksum"
"""Of the tensors and the other notes, beside these in the header; files of other programs need none."""

Tensors = dict[str, Tensor]
Notes = dict[str, str]


PIECE = 2**22
DTYPES = {torch.int64: "I64", torch.int32: "I32", torch.float64: "F64"}
"""What tensors in files of their own may hold, and what safetensors calls it, the widest first."""


@dataclass(frozen=True, kw_only=True)
class RawTensor:
    """Numbers in a file of their own, too many to be in memory; they become part of a file of tensors."""

    path: Path
    dtype: torch.dtype
    shape: tuple[int, ...]

    def pieces(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            yield from _pieces(file, self.path.stat().st_size)


def save_tensors(path: Path, tensors: Mapping[str, Tensor | RawTensor], notes: Mapping[str, str] = {}) -> None:
    """Write tensors from wherever they are, and texts as notes, with their checksum."""
    if any(isinstance(tensor, RawTensor) for tensor in tensors.values()):
        _join(path, tensors, notes)
        return
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items() if isinstance(tensor, Tensor)}
    save_file(kept, path, {**notes, CHECKSUM: _checksum(_described(kept), notes)})


def _join(path: Path, tensors: Mapping[str, Tensor | RawTensor], notes: Mapping[str, str]) -> None:
    """The same for tensors of which some are files: these are copied piece by piece. The form of safetensors is the
    size of the header as eight bytes, the header as JSON, and the numbers, the widest first."""
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    described = {name: (tensors[name].dtype, tensors[name].shape, _bytes_of(tensors[name])) for name in order}
    header: dict[str, object] = {"__metadata__": {**notes, CHECKSUM: _checksum(described, notes)}}
    end = 0
    for name in order:
        start, end = end, end + tensors[name].dtype.itemsize * math.prod(tensors[name].shape)
        kind, shape = DTYPES[tensors[name].dtype], list(tensors[name].shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.writelines(_bytes_of(tensors[name]))


def _bytes_of(tensor: Tensor | RawTensor) -> Iterator[bytes]:
    if isinstance(tensor, RawTensor):
        return tensor.pieces()
    return iter([bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)])


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """So many bytes from where the file stands."""
    while size > 0 and (piece := file.read(min(PIECE, size))):
        size -= len(piece)
        yield piece


def load_tensors(path: Path, kind: type[HeedfulError], remedy: str = "") -> tuple[Tensors, Notes]:
    """The tensors, mapped into memory where the system can, and the notes; what is damaged is an error of this kind."""
    with border(f"The safetensors file '{path}'", kind, remedy):
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            notes = dict(file.metadata() or {})
        known = notes.pop(CHECKSUM, None)
        if known is not None and known != _checksum_of_file(path, tensors, notes):
            raise kind(f"'{path}' is damaged: it does not hold what was written to it.{remedy and ' '}{remedy}")
    return tensors, notes


def read_checksum(path: Path, kind: type[HeedfulError]) -> str | None:
    """The checksum that a file bears: of what was written to it. None where another program wrote it."""
    with border(f"The safetensors file '{path}'", kind), safe_open(path, framework="pt") as file:
        return (file.metadata() or {}).get(CHECKSUM)


def _checksum_of_file(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, str]) -> str:
    """Read piece by piece: what is mapped stays out of this process's memory until it is used."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        places = {name: one["data_offsets"] for name, one in json.loads(file.read(size)).items() if name in tensors}

        def content(name: str) -> Iterator[bytes]:
            start, end = places[name]
            file.seek(8 + size + start)
            yield from _pieces(file, end - start)

        described = {name: (tensor.dtype, tensor.shape, content(name)) for name, tensor in tensors.items()}
        return _checksum(described, notes)


Described = Mapping[str, tuple[torch.dtype, Sequence[int], Iterable[bytes]]]
"""Tensors by their names: type, shape and bytes."""


def _described(tensors: Mapping[str, Tensor]) -> Described:
    return {name: (tensor.dtype, tensor.shape, _bytes_of(tensor)) for name, tensor in tensors.items()}


def _checksum(tensors: Described, notes: Mapping[str, str]) -> str:
    found = hashlib.sha256(json.dumps(sorted(notes.items())).encode())
    for name, (dtype, shape, content) in sorted(tensors.items()):
        found.update(f"{name} {dtype} {list(shape)}".encode())
        for piece in content:
            found.update(piece)
    return found.hexdigest()
