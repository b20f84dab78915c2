"""Tensors in safetensors files that know what they hold: a flipped bit is an error, or a reason to compute again."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from heedful.errors import HeedfulError, border

CHECKSUM = "checksum"
"""Of the tensors and the other notes, beside these in the header; files of other programs need none."""

Tensors = dict[str, Tensor]
Notes = dict[str, str]


def save_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, str] = {}) -> None:
    """Write tensors from wherever they are, and texts as notes, with their checksum."""
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(kept, path, {**notes, CHECKSUM: _checksum(kept, notes)})


def load_tensors(path: Path, kind: type[HeedfulError], remedy: str = "") -> tuple[Tensors, Notes]:
    """The tensors, mapped into memory where the system can, and the notes; what is damaged is an error of this kind."""
    with border(f"The safetensors file '{path}'", kind, remedy):
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            notes = dict(file.metadata() or {})
        known = notes.pop(CHECKSUM, None)
        if known is not None and known != _checksum(tensors, notes):
            raise kind(f"'{path}' is damaged: it does not hold what was written to it.{remedy and ' '}{remedy}")
    return tensors, notes


def _checksum(tensors: Mapping[str, Tensor], notes: Mapping[str, str]) -> str:
    found = hashlib.sha256(json.dumps(sorted(notes.items())).encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        found.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
