"""Analyses of a trace in shards: the numbers of the whole trace, to the last bit, whatever the size of a shard."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import torch

import heedful
from heedful.analysis.adversary import adversarial_attention
from heedful.analysis.erasure import first_flips, minimum_flips, single_erasure, verify_flip
from heedful.analysis.flips import measure
from heedful.analysis.in_shards import in_shards, joined, measured
from heedful.analysis.permutation import permutation_test
from heedful.analysis.rankings import RANKINGS
from heedful.errors import StoreError, TraceError
from heedful.trace_folders import MANIFEST, SHARD, TraceFolder, even_bounds, save_shards
from heedful.traces import Trace
from tests.oracles.random_traces import dyadic_trace, random_trace, whole_number_trace

TRACES: Mapping[str, Callable[[], Trace]] = {
    "plain": lambda: random_trace(2, instances=15, longest=9),
    "wide": lambda: random_trace(7, instances=15, longest=9),
    "ties": lambda: dyadic_trace(4, instances=15, longest=7),
    "underflow": lambda: whole_number_trace(5, instances=15, longest=7),
}

ANALYSES: Mapping[str, Callable[[Trace], pd.DataFrame]] = {
    **{f"flips by {name}": partial(first_flips, by=name, seed=5) for name in RANKINGS},
    "flips by chance, three orders": partial(first_flips, by="random", seed=5, orders=3),
    "flips, least first": partial(first_flips, reverse=True),
    "minimum": minimum_flips,
    "verified": lambda trace: verify_flip(trace, minimum_flips(trace)),
    "single": partial(single_erasure, seed=5),
    "single by chance": partial(single_erasure, by="random", seed=5),
    "shuffled": partial(permutation_test, shuffles=7, seed=5),
    "adversary": adversarial_attention,
    "adversary, nearly the same": partial(adversarial_attention, epsilon=0.05, without_top=1),
}


@pytest.fixture(scope="module", params=TRACES)
def trace(request: pytest.FixtureRequest) -> Trace:
    """As a file has it: weights are the softmax of the scores."""
    made = TRACES[request.param]()
    names = ("offsets", "attention_scores", "polarity_scores", "bias")
    return Trace.from_arrays(**{name: getattr(made, name) for name in names})


@pytest.fixture(scope="module", params=[1, 7, 15])
def folder(request: pytest.FixtureRequest, trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> TraceFolder:
    return save_shards(trace, tmp_path_factory.mktemp("shards") / "trace", request.param)


@pytest.mark.parametrize("name", ANALYSES)
def test_an_analysis_in_shards_is_that_of_the_whole(trace: Trace, folder: TraceFolder, name: str) -> None:
    if name.startswith("adversary") and len(trace.bias) > 2:
        trace = trace.take(torch.arange(9))
        folder = save_shards(trace, folder.path.with_name(f"{name} few"), 7)
    whole = pd.DataFrame(ANALYSES[name](trace))
    pd.testing.assert_frame_equal(pd.DataFrame(in_shards(folder, ANALYSES[name])), whole, check_exact=True)


def test_the_tables_of_the_claims_are_those_of_the_whole(trace: Trace, folder: TraceFolder) -> None:
    parts = [measured(shard, seed=3) for shard in folder.shards()]
    for name, whole in measure(trace, seed=3).items():
        pd.testing.assert_frame_equal(joined([part[name] for part in parts]), whole, check_exact=True)


def test_what_is_put_together_again_is_the_trace(trace: Trace, folder: TraceFolder) -> None:
    rows = torch.tensor([12, 3, 3, 9])
    for found, known in ((folder.load(), trace), (folder.take(rows), trace.take(rows))):
        for name in ("offsets", "attention_scores", "attention_weights", "polarity_scores", "bias"):
            assert torch.equal(getattr(found, name), getattr(known, name))
        assert found.part is None
    assert torch.equal(folder.distinct, trace.distinct)
    assert len(folder) == 15
    assert torch.equal(folder.lengths, trace.lengths)


@pytest.fixture
def small() -> Trace:
    return Trace.from_arrays(
        offsets=[0, 2, 3, 5],
        attention_weights=[0.5, 0.5, 1.0, 0.25, 0.75],
        polarity_scores=[2, -1, 1, 0, 3],
        bias=[0],
        labels=[0, 1, 1],
        units=["a", "b", "c", "d", "e"],
    )


def test_labels_and_units_are_kept_and_units_read_only_when_asked_for(small: Trace, tmp_path: Path) -> None:
    folder = save_shards(small, tmp_path / "t", 2)
    assert [shard.units for shard in folder.shards()] == [None, None]
    assert [list(shard.units or ()) for shard in folder.shards(units=True)] == [["a", "b", "c"], ["d", "e"]]
    assert folder.load().labels is not None
    assert repr(folder) == "TraceFolder(3 instances, 5 units, classes 0, 1; 2 shards)"


def test_a_killed_writer_leaves_no_manifest_and_is_gone_on_with(
    small: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, written = tmp_path / "t", list[str]()
    save = Trace.save

    def dying(self: Trace, path: Path) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(path.name)
        save(self, path)

    monkeypatch.setattr(Trace, "save", dying)
    with pytest.raises(KeyboardInterrupt):
        save_shards(small, place, 1)
    assert not (place / MANIFEST).exists()
    with pytest.raises(TraceError, match="is not a trace in shards: it was begun and not finished"):
        TraceFolder(place)
    before = (place / SHARD.format(0)).stat().st_mtime_ns
    written.clear()
    folder = save_shards(small, place, 1)
    assert written == [SHARD.format(2)]
    assert (place / SHARD.format(0)).stat().st_mtime_ns == before
    assert torch.equal(folder.load().polarity_scores, small.polarity_scores)


def test_a_damaged_shard_is_named(small: Trace, tmp_path: Path) -> None:
    folder = save_shards(small, tmp_path / "t", 1)
    second = tmp_path / "t" / SHARD.format(1)
    content = bytearray(second.read_bytes())
    content[-1] ^= 1
    second.write_bytes(content)
    with pytest.raises(TraceError, match=r"shard-00001\.safetensors' is damaged: it does not hold what was written"):
        in_shards(folder, minimum_flips)
    second.write_bytes((tmp_path / "t" / SHARD.format(0)).read_bytes())
    with pytest.raises(StoreError, match=r"shard-00001\.safetensors' is not what was written: the file is another\."):
        in_shards(folder, minimum_flips)
    second.unlink()
    with pytest.raises(StoreError, match=r"shard-00001\.safetensors' is not what was written: the file is gone\."):
        in_shards(folder, minimum_flips)


def test_another_trace_does_not_go_into_the_same_folder(small: Trace, tmp_path: Path) -> None:
    save_shards(small, tmp_path / "t", 1)
    with pytest.raises(TraceError, match="holds another trace, of another model, other texts or in other shards"):
        save_shards(small, tmp_path / "t", 2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(TraceError, match="A trace goes into a folder of its own"):
        save_shards(small, tmp_path / "other", 2)
    with pytest.raises(TraceError, match="A shard has one instance or more"):
        save_shards(small, tmp_path / "third", 0)
    with pytest.raises(TraceError, match="is not a trace in shards"):
        heedful.TraceFolder(tmp_path / "other")
    (tmp_path / "t" / MANIFEST).write_text('{"format": 1}')
    with pytest.raises(TraceError, match=r"trace\.json' cannot be read: .* Trace the texts again"):
        heedful.TraceFolder(tmp_path / "t")
    assert even_bounds(5, 2) == (0, 2, 4, 5)
