"""Tensors come back as they were written, or not at all."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from heedful.errors import TraceError
from heedful.tensor_files import load_tensors, save_tensors

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([True, False]), "empty": torch.zeros(0, 4)}


def test_tensors_and_notes_come_back(tmp_path: Path) -> None:
    save_tensors(tmp_path / "x", TENSORS, {"said": "much"})
    tensors, notes = load_tensors(tmp_path / "x", TraceError)
    assert notes == {"said": "much"}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_every_flipped_bit_is_an_error_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save_tensors(path, TENSORS, {"said": "much"})
    good, refused = path.read_bytes(), 0
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :])
        try:
            tensors, notes = load_tensors(path, TraceError)
        except TraceError:
            refused += 1
            continue
        assert notes["said"] == "much"
        assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
    assert refused >= len(good) - 12  # the name of the checksum, and white space, may change


def test_files_of_others_have_no_checksum(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "x", {"format": "pt"})
    assert load_tensors(tmp_path / "x", TraceError)[1] == {"format": "pt"}


def test_what_is_damaged_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save_tensors(path, TENSORS)
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    with pytest.raises(TraceError, match=r"is damaged: it does not hold what was written to it\. Write it again\.$"):
        load_tensors(path, TraceError, "Write it again.")
