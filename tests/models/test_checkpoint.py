"""Models as files: what was saved is what is loaded, and what is not a model is refused with a sentence."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from heedful.errors import CheckpointError
from heedful.models.checkpoint import load_model, save_model
from tests.models.test_classifier import KINDS, make_model


@pytest.mark.parametrize(("attention", "encoder"), KINDS)
def test_a_loaded_model_has_the_same_bits(attention: str, encoder: str, tmp_path: Path) -> None:
    model = make_model(3, attention=attention, encoder=encoder).float()
    save_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.interface == model.interface
    assert loaded.settings == model.settings
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name])


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_what_is_not_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"holds no heedful model: there is no model\.json"):
        load_model(tmp_path)
    (tmp_path / "model.json").write_text("{broken")
    with pytest.raises(CheckpointError, match="not readable JSON"):
        load_model(tmp_path)
    (tmp_path / "model.json").write_text('{"weights": [1]}')
    with pytest.raises(CheckpointError, match="does not describe a heedful model"):
        load_model(tmp_path)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    save_model(make_model().float(), tmp_path)
    edit(tmp_path / "model.json", format=99)
    with pytest.raises(CheckpointError, match=r"has model format 99, this version of heedful reads format 1"):
        load_model(tmp_path)


def test_corrupt_parameters_are_refused(tmp_path: Path) -> None:
    save_model(make_model().float(), tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_model(tmp_path)


def test_parameters_of_another_shape_are_refused(tmp_path: Path) -> None:
    save_model(make_model().float(), tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    save_file({**tensors, "embedding": tensors["embedding"][:3].clone()}, path)
    with pytest.raises(CheckpointError, match=r"embedding: expected \[10, 4\], got \[3, 4\]"):
        load_model(tmp_path)


def test_numbers_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    save_model(make_model().float(), tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    tensors["embedding"][0, 0] = torch.nan
    save_file(tensors, path)
    with pytest.raises(CheckpointError, match="not finite"):
        load_model(tmp_path)


def test_unknown_settings_are_refused(tmp_path: Path) -> None:
    save_model(make_model().float(), tmp_path)
    edit(tmp_path / "model.json", settings={"attention": "magic"})
    with pytest.raises(CheckpointError, match="Setting 'attention' is 'magic'"):
        load_model(tmp_path)
