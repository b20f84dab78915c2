"""Sweeps that are killed, raced, interrupted and handed failing runs end with the table of an undisturbed one."""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from heedful.config import RunSettings
from heedful.errors import ConfigError, DataError, UnknownName
from heedful.pipeline import Run, run
from heedful.store import CORPUS, Store
from heedful.sweep import engines
from heedful.sweep.engines import Ended, Job, LocalEngine, Outcome, make_engine
from heedful.sweep.loop import Planned, SweepEvent, Waiting, preview, sweep
from heedful.sweep.plan import Plan
from heedful.text.datasets import load_corpus
from tests.commands import call, start, write_corpus, write_plan

pytestmark = pytest.mark.xdist_group("sweep")  # it takes minutes, and begins early

KILLS = 20


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("data") / "small.csv")


def tables(folder: Path, name: str = "plan") -> list[bytes]:
    return [(folder / f"{name}{part}").read_bytes() for part in (".csv", ".parquet", "_runs.csv", "_runs.parquet")]


def identities(store: Store) -> dict[str, tuple[int, int]]:
    """What changes when a run is written again."""
    found = {path.name: (path / "manifest.json").stat() for path in store.finished()}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found.items()}


def assert_whole(store: Store) -> None:
    """Everything that a reader can find is complete."""
    for path in store.finished():
        found = Run(path)
        found.model(), found.trace(), found.table("tokens"), found.table("weights")
        assert len(found.table("history")) == found.metrics["epochs"]


def kill_group(process: "subprocess.Popen[Any]") -> None:
    assert process.poll() is None, "The sweep ended before it was killed: give it more to do."
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(condition: Any, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def wait_for_a_moment(number: int, rng: random.Random, store: Store, duration: float) -> None:
    """In turn: at any time, mostly while workers start; while a run is being written; just after one has finished."""
    before, until = len(store.finished()), time.monotonic() + rng.uniform(0, 0.4) * duration
    if number % 3 == 0:  # and before the sweep could end
        wait_for(lambda: time.monotonic() > until or len(store.finished()) > before)
    elif number % 3 == 1:
        wait_for(lambda: len(store.finished()) > before or any((store.root / ".work").glob("*/made")))
    else:
        wait_for(lambda: len(store.finished()) > before)
        time.sleep(rng.uniform(0, 0.1))


def test_a_sweep_killed_twenty_times_ends_like_an_undisturbed_one(tmp_path: Path, source: Path) -> None:
    plan = write_plan(tmp_path / "plan.toml", source, scales=20, seeds=3, epochs=2)
    begun = time.monotonic()
    assert call("sweep", plan, "--store", tmp_path / "calm", "--out", tmp_path / "calm tables").returncode == 0
    duration = time.monotonic() - begun
    store, command = (
        Store(tmp_path / "runs"),
        ["sweep", plan, "--store", tmp_path / "runs", "--out", tmp_path / "tables"],
    )
    rng = random.Random(0)
    seen: dict[str, tuple[int, int]] = {}
    for number in range(KILLS):
        process = start(*command, "-j", 1 + number % 2)
        wait_for_a_moment(number, rng, store, duration)
        kill_group(process)
        now = identities(store)
        assert {name: now.get(name) for name in seen} == seen
        seen = now
    assert 0 < len(seen) < len(Plan.read(plan))
    assert_whole(store)
    assert call(*command).returncode == 0
    final = identities(store)
    assert {name: final[name] for name in seen} == seen
    assert len(final) == len(Plan.read(plan))
    assert tables(tmp_path / "tables") == tables(tmp_path / "calm tables")


def test_two_sweeps_at_once_share_the_work_and_do_nothing_twice(tmp_path: Path, source: Path) -> None:
    plan = write_plan(
        tmp_path / "plan.toml", source, scales=4, seeds=2, epochs=40
    )  # longer than a process takes to begin
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    both = [
        start("sweep", plan, "-j", 1, "--store", tmp_path / "runs", "--out", tmp_path / name, "--json", **pipes)
        for name in ("one", "two")
    ]
    answers = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    computed = [json.loads(out)["computed"] for out, _ in answers]
    assert sum(computed) == 8
    assert all(computed)
    assert tables(tmp_path / "one") == tables(tmp_path / "two")
    assert len(Store(tmp_path / "runs").finished()) == 8


def test_results_are_the_same_bits_in_one_process_and_in_two_and_in_none(tmp_path: Path, source: Path) -> None:
    plan = Plan.read(write_plan(tmp_path / "plan.toml", source, scales=1, seeds=2), ["model.encoder=lstm"])
    events: list[SweepEvent] = []
    stores = {count: Store(tmp_path / str(count)) for count in (0, 1, 2)}
    one = sweep(plan, stores[1], workers=1, watch=events.append)
    two = sweep(plan, stores[2], workers=2)
    assert (one.found, len(one.computed), len(set(one.computed.values()))) == (0, 2, 1)
    assert len(set(two.computed.values())) == 2
    assert isinstance(events[0], Planned)
    corpus = load_corpus(source)
    for settings in plan.runs:
        run(settings, stores[0], corpus=corpus)
    for name in ("model/model.safetensors", "tokens.parquet", "weights.parquet", "history.parquet"):
        found = [[(path / name).read_bytes() for path in store.finished()] for store in stores.values()]
        assert found[0] == found[1] == found[2]
    assert one.runs.equals(two.runs)
    assert one.summary.equals(two.summary)
    assert preview(plan, stores[1]).found == 2


def test_a_run_that_fails_is_recorded_and_tried_again_and_stops_nothing(tmp_path: Path, source: Path) -> None:
    wild = {"training.optimizer": "sgd", "training.learning_rate": 1e38}
    missing = {"data.source": str(tmp_path / "later.csv")}
    base = RunSettings().change({"data.source": str(source), "training.epochs": 1, "model.embedding_size": 4})
    plan, store = Plan.of(base, runs=[{}, wild, missing]), Store(tmp_path / "runs")
    first = sweep(plan, store, workers=1)
    assert (len(first.runs), len(first.failures)) == (1, 2)
    assert sorted(failure.kind for failure in first.failures) == ["ConfigError", "DataError"]
    assert {record["message"] for record in store.failures()} == {failure.message for failure in first.failures}
    write_corpus(tmp_path / "later.csv", seed=1)
    second = sweep(plan, store, workers=1)
    assert (second.found, len(second.runs), len(second.failures)) == (1, 2, 1)
    assert "Training diverged" in second.failures[0].message


def test_a_worker_that_dies_is_a_failed_job_and_is_replaced(tmp_path: Path, source: Path) -> None:
    settings = RunSettings().change({"data.source": str(source)})
    job = Job(action="corpus", settings=settings, store=str(tmp_path))
    with LocalEngine(1) as engine:
        os.kill(engine._pool[0]._process.pid, signal.SIGKILL)
        ended = [event for event in engine.run([job, job]) if isinstance(event, Ended)]
    assert [event.outcome.status for event in ended] == ["failed", "done"]
    assert ended[0].outcome.message == "The worker process died (signal 9). Memory may have run out."
    assert engine._pool == []


def test_an_error_that_quotes_half_a_character_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_job: Job) -> Outcome:
        raise DataError("There is no label '\ud83d'.")

    monkeypatch.setitem(engines.ACTIONS, "run", fail)
    outcome = Outcome.model_validate_json(
        engines.perform(Job(action="run", settings=RunSettings(), store="").model_dump_json())
    )
    assert (outcome.status, outcome.kind, outcome.message) == ("failed", "DataError", "There is no label '?'.")


def children(process: "subprocess.Popen[Any]") -> list[int]:
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(number) for number in found]


def is_alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_sweep_however_it_ends(tmp_path: Path, source: Path, sent: signal.Signals) -> None:
    """An interrupt goes to the whole group, as from a terminal; a kill hits the parent alone."""
    plan = write_plan(tmp_path / "plan.toml", source, scales=2, seeds=1, epochs=100_000)
    process = start("sweep", plan, "-j", 1, "--store", tmp_path / "runs", stderr=subprocess.PIPE)
    wait_for(lambda: any((tmp_path / "runs" / ".work").glob("*.lock")))
    workers = children(process)
    assert workers
    os.killpg(process.pid, sent) if sent == signal.SIGINT else process.kill()
    said = process.communicate(timeout=30)[1]
    if sent == signal.SIGINT:
        assert process.returncode == 130
        assert "Traceback" not in said
    store = Store(tmp_path / "runs")
    wait_for(lambda: not any(map(is_alive, workers)), 10)
    wait_for(lambda: not any(store.is_busy(path.stem) for path in (store.root / ".work").glob("*")), 10)
    assert not store.finished()


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path, source: Path) -> None:
    plan = write_plan(tmp_path / "plan.toml", source)
    answer = call("sweep", plan, "--dry-run", "--store", tmp_path / "runs")
    assert answer.returncode == 0
    assert "plan: 6 runs, 0 done, 6 to do" in answer.stdout
    assert "estimated time: unknown" in answer.stdout
    assert not (tmp_path / "runs").exists()
    store = Store(tmp_path / "runs")
    run(Plan.read(plan).runs[0], store)
    found = json.loads(call("sweep", plan, "--dry-run", "--json", "--store", store.root).stdout)
    assert (found["total"], found["done"], found["varied"]) == (6, 1, ["model.score_scale", "training.seed"])
    assert found["seconds"] > 0
    assert not (store.root / CORPUS.folder).exists()


def test_a_sweep_of_failing_runs_says_so_and_exits_with_one(tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.toml", tmp_path / "nowhere.csv", scales=1, seeds=1)
    answer = call("sweep", plan, "-j", 1, "--store", tmp_path / "runs", "--json")
    assert answer.returncode == 1
    assert "There is no file" in json.loads(answer.stdout)["failed"][0]["message"]
    assert "0 of 1 runs done, 0 running, 1 failed" in answer.stderr
    assert json.loads(call("runs", "list", "--failed", "--json", "--store", tmp_path / "runs").stdout)[0]["kind"]


def test_an_unknown_engine_and_no_workers_are_sentences() -> None:
    with pytest.raises(UnknownName, match=r"There is no engine 'lokal'\. Did you mean 'local'\?"):
        make_engine("lokal", 1)
    with pytest.raises(ConfigError, match="at least one worker, not 0"):
        make_engine("local", 0)


def test_progress_says_how_many_runs_are_done_running_and_failed(capfd: pytest.CaptureFixture[str]) -> None:
    from heedful.cli.progress import SweepProgress

    job = Job(action="run", settings=RunSettings(), store="runs")
    with SweepProgress("scales") as progress:
        progress(Planned(total=4, found=1, workers=2, seconds=90.0))
        progress(Ended(job=job, outcome=Outcome(status="failed", kind="DataError", message="No data.")))
        progress(Ended(job=job, outcome=Outcome(status="busy")))
        progress(Waiting(runs=1))
    said = capfd.readouterr().err
    assert "scales: 1 of 4 runs done, 0 running, 0 failed, about 0:01:30 left" in said
    assert "scales: a run failed: No data." in said
    assert "scales: 1 runs are being computed by another process; waiting for them." in said
