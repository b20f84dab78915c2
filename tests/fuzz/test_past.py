"""Inputs that once ended in a traceback, in silence or in gigabytes: refused in a sentence, or read as they are."""

import asyncio
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import heedful
from heedful.errors import HeedfulError
from heedful.explanation_files import read_explanations
from heedful.files import write_json
from heedful.store import Store
from heedful.sweep.plan import Plan
from tests.commands import Call
from tests.fuzz.requests import send

LONG = "a" * 300
DEEP = b"[" * 100_000
LABELLED = [{"text": f"word {number}", "label": number % 2} for number in range(12)]

READ: Mapping[str, tuple[Callable[[Path], object], str, bytes]] = {
    "texts of other types": (
        heedful.load_corpus, "a.jsonl", b'{"text": [1], "label": {"a": 1}}\n{"text": null, "label": 1e999}',
    ),
    "deep JSON lines": (heedful.load_corpus, "a.jsonl", DEEP),
    "a list that is deep": (heedful.load_corpus, "a.json", b'[{"text": ' + DEEP),
    "keys that are no names": (heedful.load_corpus, "a.json", b'{"": [{"": 1}], "b": [1, [2]]}'),
    "a gzip file that grows without end": (
        heedful.load_corpus, "a.csv.gz", gzip.compress(b"text,label\n" + b"a,b\n" * 2**25, 9),
    ),
    "a gzip file that is cut": (heedful.load_corpus, "a.csv.gz", gzip.compress(b"text,label\na,b\n")[:-9]),
    "a trace of deep JSON": (heedful.Trace.load, "a.safetensors", (100_000).to_bytes(8, "little") + DEEP),
    "a trace of no UTF-8": (heedful.Trace.load, "a.safetensors", (4).to_bytes(8, "little") + b"\xff\xfe{}"),
    "settings that are deep": (heedful.RunSettings.read, "a.json", b'{"a":' * 3000),
    "settings of dotted names that are deep": (heedful.RunSettings.read, "a.toml", b"a." * 3000 + b"b = 1"),
    "a plan of a billion runs": (
        Plan.read, "a.json",
        json.dumps({"grid": {name: [*range(1000)] for name in ("data.seed", "model.width")}, "seeds": 999}).encode(),
    ),
    "a plan of a trillion seeds": (Plan.read, "a.json", b'{"seeds": 1000000000000}'),
    "explanations that are deep": (read_explanations, "a.jsonl", DEEP),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_file_that_once_broke_something_is_refused(name: str, tmp_path: Path) -> None:
    read, file, content = READ[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(HeedfulError) as refused:
        read(tmp_path / file)
    assert str(refused.value)[-1] in ".?)"


COMMANDS: Mapping[str, tuple[str, ...]] = {
    "a name that no file system takes": ("report", LONG, "x"),
    "a model of such a name": ("audit", "synthetic:size=", "--model", LONG),
    "a run of such a name": ("explain", "a", "--run", LONG),
    "data of such a name": ("data", "stats", f"{LONG}.csv"),
    "a file that is no file": ("data", "stats", "/proc/self/mem"),
    "an address that is not finished": ("data", "fetch", "sst", "--from", "http://[::1"),
    "half of a character": ("explain", "\ud800"),
    "a device that is not there": ("train", "synthetic:size=60", "--set", "training.device=cuda"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_words_that_once_broke_something_are_refused(
    name: str, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    said = call(*COMMANDS[name])
    assert said.code in {1, 2}
    assert "Traceback" not in said.err


def test_runs_whose_manifest_says_little_are_listed(call: Call, tmp_path: Path) -> None:
    (tmp_path / "runs" / "0123_run").mkdir(parents=True)
    write_json(tmp_path / "runs" / "0123_run" / "manifest.json", {"format": 1})
    assert call("runs", "list", "--store", tmp_path / "runs").out.endswith("1 runs\n")
    assert len(list(Store(tmp_path / "runs").manifests())) == 1


def test_class_names_of_invisible_letters_are_saved_and_drawn(tmp_path: Path) -> None:
    trace = heedful.Trace.from_arrays(
        offsets=[0, 2], attention_scores=[0.0, 1.0], polarity_scores=[[0.0, 1.0], [1.0, 0.0]], bias=[0.0, 0.0],
        class_names=["\ufeffno", "yes\u202e"], units=["a", "\ufeff"],
    )  # fmt: skip
    for ending in ("parquet", "safetensors"):
        trace.save(tmp_path / f"trace.{ending}")
        assert heedful.Trace.load(tmp_path / f"trace.{ending}").class_names == trace.class_names
    drawn: Any = trace.plot()
    drawn.figure.savefig(tmp_path / "trace.pdf")
    assert (tmp_path / "trace.pdf").stat().st_size > 1000


@pytest.mark.parametrize("query", [b"\xff=1", "é=1".encode()])
def test_an_address_of_other_bytes_is_refused(query: bytes) -> None:
    status, _, content = asyncio.run(send("GET", "/x/", query, [(b"host", b"localhost")]))
    assert status == 400
    assert json.loads(content)["error"].startswith("What follows the ? of an address is ASCII")


def test_a_frame_of_an_odd_index_is_read_by_its_columns() -> None:
    frame = pd.DataFrame(LABELLED, index=[0] * 12)
    assert heedful.load_corpus(frame).class_names == ("0", "1")
