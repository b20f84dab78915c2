"""Shards of a trace, written and erased by this process, by several and by a cluster that loses a node."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from heedful.config import RunSettings
from heedful.errors import InputError, StoreError, TraceError
from heedful.pipeline import Run
from heedful.pipeline import run as compute
from heedful.store import Store
from heedful.studies.erase import erase_trace
from heedful.studies.explain import RANKINGS
from heedful.sweep import engines, shards
from heedful.sweep.engines import Job, Outcome
from heedful.sweep.shards import erase_shards, trace_run
from heedful.trace_folders import TraceFolder
from tests.commands import Call, write_corpus
from tests.sweep.test_ray import RAY_WARNINGS, Nodes, nodes

__all__ = ["nodes"]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    source = write_corpus(folder / "small.csv", texts=240)
    changes = {"data.source": str(source), "training.epochs": 2, "model.embedding_size": 8}
    return compute(RunSettings().change(changes), Store(folder / "runs"))


@pytest.fixture(scope="module")
def folder(done: Run) -> TraceFolder:
    return trace_run(done, "test", done.path.parent.parent / "trace", shard_size=7)


def test_a_run_in_shards_is_its_trace(done: Run, folder: TraceFolder) -> None:
    whole, found = done.trace(), folder.load()
    for name in ("offsets", "attention_scores", "attention_weights", "polarity_scores", "labels"):
        assert getattr(found, name).equal(getattr(whole, name))
    assert list(found.units or ()) == list(whole.units or ())


def test_a_page_of_shards_is_that_of_the_whole(done: Run, folder: TraceFolder) -> None:
    whole, found = erase_trace(done.trace(), seed=3), erase_trace(folder, seed=3)
    assert found.sections[0].lead == whole.sections[0].lead
    for name, table in whole.tables().items():
        pd.testing.assert_frame_equal(pd.DataFrame(found.tables()[name]), pd.DataFrame(table), check_exact=True)


def test_processes_give_the_same_and_one_that_dies_loses_nothing(
    done: Run, folder: TraceFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dying:
        """Takes two jobs at a time; the worker of the second job dies once."""

        died = False

        def __enter__(self) -> "Dying":
            return self

        def __exit__(self, *_error: object) -> None:
            pass

        def run(self, jobs: list[Job]) -> Iterator[engines.Event]:
            for job in jobs:
                if job.asked["shard"] == 1 and not Dying.died:
                    Dying.died = True
                    outcome = Outcome(status="failed", kind="WorkerDied", message="killed")
                else:
                    outcome = Outcome.model_validate_json(engines.perform(job.model_dump_json()))
                yield engines.Ended(job=job, outcome=outcome)

    monkeypatch.setattr(shards, "make_engine", lambda _on, _workers: Dying())
    again = trace_run(done, "test", tmp_path / "trace", shard_size=7, workers=2)
    assert Dying.died
    assert again.manifest == folder.manifest


def test_what_a_job_cannot_do_ends_all_with_its_sentence(folder: TraceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(_job: Job) -> None:
        raise TraceError("No room.")

    monkeypatch.setattr(shards, "write_erased_shard", refusing)
    with pytest.raises(TraceError, match=r"^No room\.$"):
        erase_shards(folder, seed=9, rankings=RANKINGS)


def test_finished_shards_are_not_written_again(done: Run, folder: TraceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    erase_shards(folder, seed=1, rankings=RANKINGS)
    monkeypatch.setattr(shards, "share_out", lambda jobs, *_: None if not jobs else pytest.fail("made again"))
    erase_shards(folder, seed=1, rankings=RANKINGS)
    trace_run(done, "test", folder.path, shard_size=7)


def test_a_trace_is_of_a_split_and_of_the_data_of_the_run(done: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="A split is train, dev, test, not 'all'"):
        trace_run(done, "all", tmp_path / "t")
    source = Path(done.settings.data.source)
    content = source.read_text()
    try:
        source.write_text(content + "one more,positive,test\n")
        with pytest.raises(StoreError, match=r"The data are not those that .* was trained on"):
            trace_run(done, "test", tmp_path / "t")
    finally:
        source.write_text(content)


@pytest.mark.filterwarnings(*RAY_WARNINGS)
def test_a_cluster_that_loses_a_node_gives_the_same_shards_and_tables(
    done: Run, folder: TraceFolder, tmp_path: Path, nodes: Nodes
) -> None:
    def kill_a_node_half_way(finished: int, count: int) -> None:
        if finished == count // 3 and nodes.second is not None:
            nodes.kill_second()

    far = trace_run(done, "test", tmp_path / "far", shard_size=7, on="ray", watch=kill_a_node_half_way)
    assert nodes.second is None
    assert far.manifest == folder.manifest
    tables = erase_shards(far, seed=3, rankings=RANKINGS, on="ray")
    for name, table in erase_shards(folder, seed=3, rankings=RANKINGS).items():
        pd.testing.assert_frame_equal(tables[name], table, check_exact=True)


def test_commands_take_a_folder_where_they_take_a_file(
    done: Run, folder: TraceFolder, tmp_path: Path, call: Call
) -> None:
    file = tmp_path / "trace.safetensors"
    done.trace().save(file)
    for command in (["attack", "--trace"], ["faithfulness", "--texts", "5", "--metrics", "sufficiency", "--model"]):
        whole, found = call(*command, file, "--json"), call(*command, folder.path, "--json")
        assert found.json["sections"] == whole.json["sections"], command
    made = call("trace", done.path, "--out", tmp_path / "made", "--shard-size", 20, "--json")
    assert made.json == {"trace": str(tmp_path / "made"), "instances": 60, "units": 840, "shards": 3}
    assert call("erase", "--trace", file, "--workers", 2).code == 2


def test_a_trace_that_was_begun_is_no_trace(tmp_path: Path, call: Call) -> None:
    (tmp_path / "plan.json").write_text("{}")
    refused = call("erase", "--trace", tmp_path)
    assert refused.code == 1
    assert "it was begun and not finished. Trace the same texts into it again" in refused.err
