"""The store: finished or absent, locked by the operating system, and a sentence when it cannot be written."""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from heedful import files
from heedful.config import RunSettings
from heedful.errors import StoreBusy, StoreError
from heedful.files import is_locked, locked, replacing
from heedful.store import CORPUS, INPUTS, MANIFEST, RUN, VECTORS, Kind, Store, read_manifest, verify, write_manifest
from heedful.sweep.tables import table_of
from tests.commands import COMMAND, call, environment, write_corpus, write_plan

HOLD = """
import sys, time
from pathlib import Path
from heedful.files import locked
with locked(Path(sys.argv[1]), "The run"):
    print("held", flush=True)
    time.sleep(60)
"""


def publish(store: Store, digest: str = "a" * 64, **changes: object) -> Path:
    """A tiny finished run."""
    settings = RunSettings().change(changes)
    metrics = {"test_accuracy": 0.5, "epochs": 2, "alignment": [0.25], "groups": {"positive": 3}}
    manifest = {"digest": digest, "corpus": "made", "settings": settings.model_dump(mode="json"), "metrics": metrics}

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "model").write_text("parameters")
        write_manifest(folder, {**manifest, "seconds": 1.5, "version": "0"})

    return store.keep(RUN, digest, make, name="run")[0]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def test_a_published_run_is_found_and_a_partial_one_is_not(store: Store) -> None:
    path = publish(store)
    (store.root / ("b" * 12 + "_partial")).mkdir()
    shutil.copytree(path, store.root / f".{path.name}.12345678.part")
    assert store.finished() == [path] == [found for found, _ in store.manifests()]
    assert store.find("a" * 64) == path
    assert store.find("b" * 64) is None
    assert Store(store.root / "nowhere").finished() == []


def test_a_replaced_directory_is_never_seen_in_halves(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    for content in ("old", "new"):
        with replacing(target) as temporary:
            temporary.mkdir()
            (temporary / "file").write_text(content)
            assert not target.exists() or (target / "file").read_text() == "old"
    assert (target / "file").read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(UnicodeEncodeError), replacing(tmp_path / "file") as temporary:
        temporary.write_text("new\udcff", encoding="utf-8")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "old")]


def write(text: str) -> Callable[[Path], None]:
    """Make a folder with one file, and a manifest, as a run has one."""

    def make(path: Path) -> None:
        path.mkdir()
        (path / "content").write_text(text)
        write_manifest(path, {})

    return make


def refuse(_path: Path) -> None:
    pytest.fail("It was made again.")


every_kind = pytest.mark.parametrize("kind", [RUN, CORPUS, VECTORS, INPUTS], ids=lambda kind: kind.what)


@every_kind
def test_what_is_kept_is_made_once_and_found_without_a_lock(store: Store, kind: Kind) -> None:
    path, new = store.keep(kind, "a" * 12, write("first"))
    assert new
    assert (path / "content").read_text() == "first"
    assert [*(store.root / ".work").iterdir()] == []
    with store.lock("a" * 12, kind):
        assert store.keep(kind, "a" * 12, refuse, wait=False) == (path, False)
    assert store.find("a" * 12, kind) == path
    assert store.find("b" * 12, kind) is None


@every_kind
def test_what_is_made_afresh_replaces_what_was_there_when_it_is_whole(store: Store, kind: Kind) -> None:
    path, _ = store.keep(kind, "a" * 12, write("old"))

    def make(place: Path) -> None:
        assert (path / "content").read_text() == "old"
        write("new")(place)

    assert store.keep(kind, "a" * 12, make, fresh=True) == (path, True)
    assert (path / "content").read_text() == "new"
    assert [place.name for place in path.parent.iterdir() if place.suffix == ".old"] == []


@every_kind
def test_what_could_not_be_made_leaves_nothing_but_its_checkpoint(store: Store, kind: Kind) -> None:
    def fail(place: Path) -> None:
        write("half")(place)
        raise ValueError

    def begin(place: Path) -> None:
        (place.parent / "checkpoint").write_text("so far")
        fail(place)

    def go_on(place: Path) -> None:
        write((place.parent / "checkpoint").read_text())(place)

    for attempt, left in ((fail, []), (begin, ["checkpoint"])):
        with pytest.raises(ValueError):  # noqa: PT011
            store.keep(kind, "a" * 12, attempt)
        assert store.find("a" * 12, kind) is None
        assert [path.name for path in (store.root / ".work").rglob("*") if path.is_file()] == left
    path, _ = store.keep(kind, "a" * 12, go_on)
    assert (path / "content").read_text() == "so far"
    assert [*(store.root / ".work").iterdir()] == []


@every_kind
def test_what_another_process_makes_is_busy_or_waited_for(store: Store, kind: Kind) -> None:
    key, made = "a" * 12, write("theirs")
    with store.lock(key, kind), pytest.raises(StoreBusy, match=f"{kind.what} {key} of .* is being computed by process"):
        store.keep(kind, key, refuse, wait=False)
    lock = store.lock(key, kind)
    lock.__enter__()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store.keep, kind, key, refuse)
        target = store.place(kind, f"{key}_" if kind is RUN else key)
        target.parent.mkdir(exist_ok=True)
        made(target)
        lock.__exit__(None, None, None)
        assert waiting.result(30) == (target, False)


@every_kind
def test_what_a_killed_process_was_making_is_rubbish(store: Store, kind: Kind) -> None:
    half, folder = store.workplace("a" * 12, kind) / f"made{kind.ending}", store.root / kind.folder
    half.parent.mkdir(parents=True)
    half.write_text("half")
    with store.lock("a" * 12, kind):
        assert store.rubbish(everything=True) == []
    assert store.rubbish() == [half.parent]
    publish(store, "b" * 64)
    folder.mkdir(exist_ok=True)
    aside, part = folder / ".cccc.12345678.old", folder / ".dddd.12345678.part"
    for path in (aside, part):
        path.mkdir()
        os.utime(path, (0, 0))
    assert set(store.rubbish()) == {half.parent, part}  # what was moved aside may be the last copy
    with store.lock("cccc", kind):
        assert (folder / "cccc").is_dir()


def test_what_belongs_to_a_run_goes_with_it_and_caches_go_when_all_is_to_go(store: Store) -> None:
    publish(store, "a" * 64)
    theirs, _ = store.keep(INPUTS, f"{'a' * 12}-1", write(""))
    gone, _ = store.keep(INPUTS, f"{'b' * 12}-1", write(""))
    former = store.root / ".recordings" / ("c" * 12)
    former.mkdir(parents=True)
    caches = [store.keep(kind, "key", write(""))[0] for kind in (CORPUS, VECTORS)]
    assert store.rubbish() == [gone, former]
    assert set(store.rubbish(everything=True)) == {gone, former, *caches}
    store.collect(store.rubbish(everything=True))
    assert theirs.exists()
    store.remove("aaa")
    assert store.rubbish() == [theirs]


@pytest.fixture
def holder(tmp_path: Path) -> "Iterator[subprocess.Popen[str]]":
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_lock_is_exclusive_and_dies_with_its_holder(tmp_path: Path, holder: "subprocess.Popen[str]") -> None:
    lock = tmp_path / "lock"
    assert is_locked(lock)
    with pytest.raises(StoreBusy, match=f"The run is being computed by process {holder.pid} on "):  # noqa: SIM117
        with locked(lock, "The run", wait=False):
            pass
    holder.send_signal(signal.SIGKILL)
    with locked(lock, "The run"):  # waits until it is free
        assert lock.read_text().startswith(f"process {os.getpid()} on ")
    assert not lock.exists()
    assert not is_locked(lock)


def test_a_newer_store_is_refused_and_left_as_it_is(store: Store) -> None:
    publish(store)
    (store.root / "store.json").write_text('{"format": 99}')
    before = sorted((path, path.stat().st_mtime_ns) for path in store.root.rglob("*"))
    for attempt in (
        store.finished,
        lambda: store.find("a"),
        lambda: store.lock("b").__enter__(),
        store.rubbish,
        store.index,
    ):
        with pytest.raises(StoreError, match=r"newer version .format 99, this one reads 1.. Update heedful"):
            attempt()
    for command in (("list",), ("gc",), ("rm", "aaaa")):
        answer = call("runs", *command, "--store", store.root)
        assert (answer.returncode, answer.stdout) == (1, "")
        assert "was written by a newer version" in answer.stderr
        assert answer.stderr.count("\n") == 1
    assert sorted((path, path.stat().st_mtime_ns) for path in store.root.rglob("*")) == before


def test_a_run_of_a_newer_version_is_refused(store: Store) -> None:
    path = publish(store)
    (path / "manifest.json").write_text('{"format": 2}')
    with pytest.raises(StoreError, match=f"{path.name}.*newer version"):
        read_manifest(path)
    with pytest.raises(StoreError, match="newer version"):
        list(store.manifests())


def test_a_manifest_that_is_none_is_a_sentence(store: Store) -> None:
    path = publish(store)
    for content in ("{", "[]", "{}"):
        (path / "manifest.json").write_text(content)
        with pytest.raises(StoreError, match=r"manifest\.json' is not"):
            list(store.manifests())


def test_runs_are_named_by_the_beginning_of_their_names(store: Store) -> None:
    first, second = publish(store, "abc" + "0" * 61), publish(store, "abd" + "0" * 61)
    assert store.resolve("abc") == first
    assert store.resolve(f"runs/{second.name}") == second
    with pytest.raises(StoreError, match=r"'ab' begins the names of 2 runs: abc.*Give more letters"):
        store.resolve("ab")
    for nothing in ("", ".", "/"):
        with pytest.raises(StoreError, match="has a name that begins with"):
            store.resolve(nothing)
    with pytest.raises(StoreError, match=r"begins with 'abe'\. Some that are there: abc"):
        store.resolve("abe")


def test_rm_removes_a_run_unless_it_is_being_computed(store: Store) -> None:
    path = publish(store)
    with store.lock("a" * 64), pytest.raises(StoreBusy):
        store.remove("aaa")
    assert store.remove("aaa") == path
    assert store.finished() == []
    assert [found.name for found in store.root.iterdir() if found.name != ".work"] == ["store.json"]


def test_gc_removes_what_was_left_and_nothing_else(store: Store) -> None:
    path = publish(store)
    left = [store.root / ".x.12345678.part", store.root / ".work" / ("b" * 12) / "run", store.root / ".work" / "a.lock"]
    kept = [store.root / ".work" / ("b" * 12) / "training.safetensors", store.root / ".corpora" / "key" / "corpus.json"]
    for file in [left[0], left[1] / "part", left[2], *kept]:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x" * 10)
    os.utime(left[0], (0, 0))
    with store.lock("c" * 64):
        (store.workplace("c" * 64) / "run").mkdir(parents=True)
        assert set(store.rubbish()) == set(left)
        assert store.collect(store.rubbish()) == 30
        assert not any(place.exists() for place in left)
        assert all(place.exists() for place in kept)
        store.collect(store.rubbish(everything=True))
        assert [place.exists() for place in kept] == [False, True]  # the run that is computed may read the corpus
        assert (store.workplace("c" * 64) / "run").is_dir()
    store.collect(store.rubbish(everything=True))
    assert not any(place.exists() for place in kept)
    assert store.finished() == [path]


def test_where_the_clock_was_set_back_nothing_that_may_be_written_to_goes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun before is from the future then."""
    half = publish(store) / ".report.html.12345678.part"
    half.write_text("half a report")
    monkeypatch.setattr("time.time", lambda: half.stat().st_mtime - 10 * 24 * 3600)
    assert store.rubbish() == []
    files.write_text(half.parent / "report.html", "a report")
    assert half.exists()
    monkeypatch.setattr("time.time", lambda: half.stat().st_mtime + 24 * 3600)
    assert store.rubbish() == [half]
    files.write_text(half.parent / "report.html", "another")
    assert not half.exists()


def test_who_writes_where_another_removed_the_half_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written: No such file"), files.replacing(tmp_path / "a"):
        """Its temporary file is not there any more."""


def test_a_run_moved_aside_by_a_process_that_was_killed_is_taken_back(store: Store) -> None:
    """Killed between the two renames of a replacement: the old run has another name, the new one is not in place."""
    path = publish(store)
    aside = store.root / f".{path.name}.12345678.old"
    path.rename(aside)
    os.utime(aside, (0, 0))
    assert store.find("a" * 64) is None
    assert aside not in store.rubbish()
    with store.lock("b" * 64):
        assert store.find("a" * 64) is None  # nobody else's business
    with store.lock("a" * 64):
        assert store.find("a" * 64) == path
    shutil.copytree(path, aside)
    os.utime(aside, (0, 0))
    with store.lock("a" * 64):
        assert aside.is_dir()  # replaced: only to be removed
    assert store.rubbish() == [aside]


def test_a_run_whose_removal_was_killed_does_not_come_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = publish(store)
    monkeypatch.setattr("heedful.files.discard", lambda _: None)  # the process dies before the content is deleted
    store.remove(path.name)
    (half,) = store.root.glob(f".{path.name}.*")
    os.utime(half, (0, 0))
    with store.lock("a" * 64):
        assert store.find("a" * 64) is None
    assert half in store.rubbish()


def test_gc_sees_what_a_killed_audit_left_in_a_run(store: Store) -> None:
    left = publish(store) / "figures" / ".scores.svg.12345678.part"
    left.parent.mkdir()
    left.write_text("half a figure")
    assert store.rubbish() == []  # it may be being written
    os.utime(left, (0, 0))
    assert store.rubbish() == [left]
    store.collect(store.rubbish())
    assert not left.exists()


def test_all_runs_are_one_table(store: Store) -> None:
    publish(store, "a" * 64)
    publish(store, "b" * 64, **{"model.score_scale": 3, "training.patience": 2})
    table = table_of((path.name, manifest) for path, manifest in store.manifests())
    assert table["model.score_scale"].tolist() == [10.0, 3.0]
    assert table["alignment"].tolist() == [0.25, 0.25]
    assert table["groups.positive"].tolist() == [3, 3]
    assert table["run"].tolist() == ["a" * 12 + "_run", "b" * 12 + "_run"]


def test_the_commands_list_show_compare_and_filter(store: Store, tmp_path: Path) -> None:
    publish(store, "a" * 64)
    publish(store, "b" * 64, **{"model.score_scale": 3})
    place = ("--store", store.root)
    assert [row["run"][0] for row in json.loads(call("runs", "list", "--json", *place).stdout)] == ["a", "b"]
    answer = call("runs", "list", "--json", "--where", "model.score_scale=3", *place)
    assert [row["settings"]["model"]["score_scale"] for row in json.loads(answer.stdout)] == [3.0]
    assert json.loads(call("runs", "show", "a", "--json", *place).stdout)["seconds"] == 1.5
    difference = json.loads(call("runs", "diff", "a", "b", "--json", *place).stdout)
    assert difference["settings.model.score_scale"] == {"first": 10.0, "second": 3.0}
    assert set(difference) == {"digest", "settings.model.score_scale"}
    call("runs", "list", "--out", tmp_path / "table.csv", *place)
    assert (tmp_path / "table.csv").read_text().count("\n") == 3
    assert "No run has 'modle.x'" in call("runs", "list", "--where", "modle.x=3", *place).stderr


def test_ten_thousand_runs_are_listed_in_two_seconds(store: Store) -> None:
    source = publish(store) / "manifest.json"
    for number in range(10_000 - 1):
        folder = store.root / f"{number:012x}_run"
        folder.mkdir()
        (folder / "manifest.json").write_bytes(source.read_bytes())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = call("runs", "list", "--json", "--store", store.root)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert len(json.loads(answer.stdout)) == 10_000
    # Time of the processor: on an idle machine that is the time on the wall, which `make bench` prints.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2


def without_privileges() -> None:
    """Root may write anywhere; without these capabilities it is refused like everybody else."""
    drop_from_bounding_set = 24
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


def test_a_store_that_cannot_be_written_is_a_sentence_and_can_still_be_read(store: Store, tmp_path: Path) -> None:
    path = publish(store)
    source = write_corpus(tmp_path / "small.csv")
    plan = write_plan(tmp_path / "plan.toml", source, scales=1, seeds=1)
    places = [store.root, *(folder for folder in store.root.rglob("*") if folder.is_dir())]
    for folder in places:
        folder.chmod(0o555)
    try:
        for command in (("train", source, "--epochs", 1), ("sweep", plan, "-j", 1), ("runs", "rm", "aaa")):
            answer = call(*command, "--store", store.root, preexec_fn=without_privileges)
            assert answer.returncode == 1
            assert "Permission denied. Choose a folder that you may write to" in answer.stderr
            assert "Traceback" not in answer.stderr
        listed = call("runs", "list", "--json", "--store", store.root, preexec_fn=without_privileges)
        assert [row["run"] for row in json.loads(listed.stdout)] == [path.name]
    finally:
        for folder in places:
            folder.chmod(0o755)
    assert store.finished() == [path]


def limited_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))


def test_a_full_disk_is_a_sentence_and_the_sweep_goes_on_when_there_is_space(tmp_path: Path) -> None:
    """The limit lets the corpus and small files through and stops the parameters of a model."""
    plan = write_plan(
        tmp_path / "plan.toml", write_corpus(tmp_path / "small.csv", texts=120), scales=2, seeds=1, size=200
    )

    def call_sweep(**options: Any) -> "subprocess.CompletedProcess[str]":
        return call("sweep", plan, "-j", 1, "--store", tmp_path / "runs", "--out", tmp_path, **options)

    answer = call_sweep(preexec_fn=limited_files)
    assert answer.returncode == 1
    assert "cannot be written: File too large. Raise the limit on the size of files" in answer.stderr
    assert "Traceback" not in answer.stderr
    store = Store(tmp_path / "runs")
    assert len(list((store.root / CORPUS.folder).iterdir())) == 1
    assert store.finished() == []
    assert call_sweep().returncode == 0
    assert len(store.finished()) == 2
    assert not any((store.root / ".work").iterdir())


def test_a_full_file_system_is_a_sentence(tmp_path: Path) -> None:
    """A real file system of 60 kB, in a mount namespace that ends with the command."""
    place, source = tmp_path / "small disk", write_corpus(tmp_path / "small.csv", texts=1200)
    place.mkdir()
    isolated = ["unshare", "--mount", "--map-root-user"]
    mount = f"mount -t tmpfs -o size=60k tmpfs '{place}' && "
    if (
        not shutil.which("unshare")
        or subprocess.run([*isolated, "sh", "-c", mount + "true"], capture_output=True).returncode
    ):
        pytest.skip("no file system can be mounted here")
    train = [*COMMAND, "train", str(source), "--epochs", "1", "--store", str(place / "runs")]
    command = [*isolated, "sh", "-c", mount + '"$@"; code=$?; ls -A "$0/runs"; exit $code', str(place), *train]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)
    assert answer.returncode == 1
    assert "cannot be written: No space left on device. Free some space and call again" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stdout.split() == [".work", "store.json"]


def test_damage_to_a_finished_run_is_seen_and_named(store: Store) -> None:
    sound, changed, gone = (publish(store, letter * 64) for letter in "abc")
    (changed / "model").write_text("parameterz")
    (gone / "model").unlink()
    assert verify(sound) == []
    for path, state in ((changed, "damaged"), (gone, "gone")):
        assert verify(path) == [
            f"'{path / 'model'}' is not what was written: the file is {state}. Compute the run again (--fresh)."
        ]
    answer = call("runs", "verify", "--json", "--store", store.root)
    assert answer.returncode == 1
    assert json.loads(answer.stdout) == {"runs": 3, "damaged": {path.name: verify(path) for path in (changed, gone)}}
    assert call("runs", "verify", "a", "--store", store.root).stdout == "1 runs, 0 damaged\n"


def test_a_number_that_changes_in_a_manifest_is_seen(store: Store) -> None:
    path = publish(store) / MANIFEST
    path.write_text(path.read_text().replace("0.5", "0.7"))
    with pytest.raises(StoreError, match="is damaged: it does not hold what was written to it"):
        read_manifest(path.parent)
    with pytest.raises(StoreError, match="is damaged"):
        list(store.manifests())


def test_manifests_without_checksums_are_read_as_they_are(store: Store) -> None:
    path = publish(store) / MANIFEST
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in manifest.items() if name not in {"files", "checksum"}}))
    (path.parent / "model").write_text("others")
    assert verify(path.parent) == []
    assert read_manifest(path.parent)["metrics"]["epochs"] == 2
