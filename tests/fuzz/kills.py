"""`make kills`: commands are killed at random moments, and what was finished must be there.

Half of the kills come after a random time, half at a random change to the file system, where damage would be done.
After one to three of them the command is called again and must end well. Then

- all that was finished before is there, and verifies;
- tables, models, traces, figures and pages are bitwise those of an undisturbed call;
- after `heedful runs gc` nothing else is left.
"""

import argparse
import gzip
import hashlib
import http.server
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from heedful import files
from heedful.store import MANIFEST, Store, verify
from tests.fuzz import forked
from tests.fuzz.forked import Kill

DATA, OTHER = "synthetic:size=120", "synthetic:size=120,seed=1"
AUDIT = ("audit", DATA, "--epochs", "3", "--no-advice", "--store", "runs")
PLAN = """
name = "plan"
seeds = 2
[base]
data.source = "synthetic:size=120"
training.epochs = 2
model.embedding_size = 4
[grid]
model.score_scale = [1, 10]
"""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A command that is killed, and what is there before it begins."""

    words: Sequence[str]
    before: Sequence[Sequence[str]] = ()
    prepare: Callable[[], None] = lambda: None
    share: int = 2
    """How many of a hundred kills."""


SCENES: Mapping[str, Scene] = {
    "run": Scene(words=("train", DATA, "--epochs", "6", "--store", "runs"), share=18),
    "run --fresh": Scene(
        words=("train", DATA, "--epochs", "3", "--store", "runs", "--fresh"),
        before=[("train", DATA, "--epochs", "3", "--store", "runs")],
        share=8,
    ),
    "audit": Scene(words=AUDIT, share=18),
    "audit again": Scene(words=AUDIT, before=[AUDIT], share=8),
    "audit --fresh": Scene(words=(*AUDIT, "--fresh"), before=[AUDIT], share=10),
    "sweep": Scene(words=("sweep", "plan.toml", "-j", "1", "--store", "runs", "--out", "out"), share=10),
    "sweep, two workers": Scene(words=("sweep", "plan.toml", "-j", "2", "--store", "runs", "--out", "out"), share=4),
    "data fetch": Scene(words=("data", "fetch", "sst"), share=14),
    "report": Scene(words=("report", "", "--store", "runs", "-o", "page/report.html"), before=[AUDIT], share=5),
    "explain --out": Scene(
        words=("explain", "a good film", "--store", "runs", "--run", "", "--out", "out/text.html"), share=5
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", nargs="*", help=f"which: {', '.join(SCENES)}; default: all")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args(arguments)
    chosen = {name: SCENES[name] for name in wanted.scenes} or SCENES
    forked.warm()
    table = Table("scene", "kills", "ended before", "lost", "not as undisturbed", "left after gc", "seconds")
    total, failed = Counter[str](), 0
    whole = sum(scene.share for scene in chosen.values())
    with tempfile.TemporaryDirectory() as folder:
        for name, scene in chosen.items():
            begun, count = time.monotonic(), Counter[str]()
            stage = Stage.set(Path(folder) / name.replace(" ", "-"), scene)
            chance = random.Random(f"{name}/{wanted.seed}")
            while count["kills"] < max(1, round(wanted.kills * scene.share / whole)):
                for said in stage.play(chance, count):
                    print(f"{name}: {said}", file=sys.stderr, flush=True)
            stage.close()
            numbers = [count[key] for key in ("kills", "ended", "lost", "differ", "left")]
            table.add_row(name, *map(str, numbers), f"{time.monotonic() - begun:.0f}")
            total.update(count)
            failed += sum(numbers[2:])
    Console().print(table)
    print(f"{total['kills']} kills, {failed} failures")
    return int(failed > 0)


@dataclass
class Stage:
    """A scene with what an undisturbed call of it leaves."""

    scene: Scene
    folder: Path
    start: Path
    seconds: float = 0.0
    changes: int = 0
    expected: dict[str, str] = field(default_factory=dict)
    """What an undisturbed call leaves: digests by names, of what two such calls leave alike."""
    names: set[str] = field(default_factory=set)
    server: int = 0

    @classmethod
    def set(cls, folder: Path, scene: Scene) -> "Stage":
        folder.mkdir()
        start = folder / "start"
        start.mkdir()
        (start / "plan.toml").write_text(PLAN)
        stage = cls(scene, folder, start)
        if scene.words[:2] == ("data", "fetch"):
            stage._serve()
        calls = [("train", OTHER, "--epochs", "1", "--store", "runs"), *scene.before]
        for words in calls:
            done = forked.run(words, start)
            assert done.code == 0, done.err
        stage.scene = replace(scene, words=stage._named(scene.words))
        found = []
        for number in range(2):
            place = stage._begin(f"undisturbed-{number}")
            done = forked.run(stage.scene.words, place, prepare=stage._prepare)
            assert done.code == 0, done.err
            _collect(place)
            found.append(_content(place))
            stage.seconds = done.seconds
        stage.changes = forked.changes(stage.scene.words, stage._begin("counted"), prepare=stage._prepare)
        assert found[0].keys() == found[1].keys(), found[0].keys() ^ found[1].keys()
        stage.names = {*found[0]}
        stage.expected = {name: digest for name, digest in found[0].items() if digest == found[1][name]}
        tables = {name for name in stage.names if name.endswith((".csv", ".parquet", ".tex", ".safetensors", ".gz"))}
        assert tables <= {*stage.expected}, f"not the same twice: {tables - {*stage.expected}}"
        return stage

    def play(self, chance: random.Random, count: Counter[str]) -> list[str]:
        """Kill it a few times, then let it end; a sentence for each thing that is not as it should be."""
        place, said = self._begin("played"), []
        for _ in range(chance.choice((1, 1, 2, 3))):
            kill = (
                Kill(seconds=chance.uniform(0, 1.05 * self.seconds)) if chance.random() < 0.5
                else Kill(chance.choice((0.0, 0.0, 0.002)) * chance.random(), chance.randint(1, self.changes))
            )  # fmt: skip
            done = forked.run(self.scene.words, place, prepare=self._prepare, kill=kill)
            count["kills" if done.code == -signal.SIGKILL else "ended"] += 1
            if done.code not in (0, -signal.SIGKILL):
                said.append(f"{kill}: exit code {done.code}: {done.err[-500:]}")
                count["lost"] += 1
            lost = self._lost(place)
            said += [f"{kill}: lost {one}" for one in lost]
            count["lost"] += len(lost)
        done = forked.run(self.scene.words, place, prepare=self._prepare_later)
        if done.code:
            said.append(f"{kill}: exit code {done.code} when it was called again: {done.err[-2000:]}")
            count["differ"] += 1
            return said
        _collect(place)
        found = _content(place)
        differ = [name for name, digest in self.expected.items() if found.get(name) != digest]
        left = sorted({*found} - self.names)
        said += [f"{kill}: {name} is not as undisturbed" for name in differ] + [
            f"{kill}: {name} is left" for name in left
        ]
        count["differ"] += len(differ)
        count["left"] += len(left)
        return said

    def _lost(self, place: Path) -> list[str]:
        """What was finished and is not there now, or is damaged; what is there and not whole."""
        now, sound = {path.name: path for path in Store(place / "runs").finished()}, []
        aside = {
            path.name.removeprefix(".").rsplit(".", 2)[0]
            for path in (place / "runs").glob(".*")
            if files.is_last_copy(path)
        }
        for path in Store(self.start / "runs").finished():
            if path.name not in {*now, *aside}:
                sound.append(path.name)
        return [*sound, *(sentence for path in now.values() for sentence in verify(path))]

    def _begin(self, name: str) -> Path:
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.start, place)
        return place

    def _named(self, words: Sequence[str]) -> list[str]:
        """An empty word is the run that is there: the audited one, or the only one."""
        finished = Store(self.start / "runs").finished()
        run = next((path for path in finished if (path / "report.html").is_file()), finished[0])
        return [word or run.name for word in words]

    def _prepare(self) -> None:
        if "2" not in self.scene.words[:4]:
            forked.workers_here()
        forked.checkpoints_always()
        if self.server:
            _publish(self.folder / "port")

    def _prepare_later(self) -> None:
        """On a later day: what was half written is old."""
        self._prepare()
        files.STALE_SECONDS = -1

    def _serve(self) -> None:
        """The treebank's archive, made small, from a process of its own that takes its time."""
        self.server = os.fork()
        if not self.server:
            _serve_archive(self.folder / "port")
        while not (self.folder / "port").is_file():
            time.sleep(0.01)

    def close(self) -> None:
        if self.server:
            os.kill(self.server, signal.SIGKILL)
            os.waitpid(self.server, 0)


def _archive() -> bytes:
    chance, buffer = random.Random(0), io.BytesIO()
    words = ["good", "bad", "film", "plot", "fine", "dull"]
    with zipfile.ZipFile(buffer, "w") as archive:
        for part in ("train", "dev", "test"):
            trees = "".join(
                f"({chance.randrange(5)} (2 {chance.choice(words)}{n}) (2 {chance.choice(words)}))\n"
                for n in range(4000)
            )
            archive.writestr(zipfile.ZipInfo(f"trees/{part}.txt"), trees)
    return buffer.getvalue()


def _serve_archive(told: Path) -> None:
    """Never returns."""
    content = _archive()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            first = min(int(wanted[6:-1]), len(content)) if wanted else 0
            if wanted and first >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if first else 200)
            self.send_header("Content-Type", "application/zip")
            self.send_header("Content-Length", str(len(content) - first))
            self.send_header("ETag", '"one"')
            if first:
                self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            for place in range(first, len(content), 1 << 15):
                self.wfile.write(content[place : place + (1 << 15)])
                time.sleep(0.02)

        def log_message(self, *_: object) -> None:
            """Quiet: clients die here."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that was killed."""

    server = Server(("127.0.0.1", 0), Handler)
    files.write_text(told, str(server.server_address[1]))
    server.serve_forever()


def _publish(told: Path) -> None:
    """In the process that fetches: the treebank lies at that port, and data go into its folder."""
    from heedful.text import fetch

    address = f"http://127.0.0.1:{told.read_text()}"
    dataset = fetch.DATASETS["sst"]
    source = dataset.sources[0].at(address)
    checksum = f"sha256:{hashlib.sha256(_archive()).hexdigest()}"
    source = replace(source, files=tuple(replace(file, checksum=checksum) for file in source.files))
    fetch.DATASETS = {**fetch.DATASETS, "sst": replace(dataset, sources=(source,))}  # type: ignore[misc]
    os.environ.update(HEEDFUL_DATA="data", no_proxy="127.0.0.1")


def _collect(place: Path) -> None:
    """`heedful runs gc`, of a later day."""
    files.STALE_SECONDS = -1
    kept = Store(place / "runs")
    kept.collect(kept.rubbish())


def _content(place: Path) -> dict[str, str]:
    """A digest of each file and folder; of a manifest without how long the run took."""
    return {str(path.relative_to(place)): _digest(path) for path in sorted(place.rglob("*"))}


def _digest(path: Path) -> str:
    if path.is_dir():
        return "folder"
    content = path.read_bytes()
    if path.name == MANIFEST:  # with checksums of files, of which tensors have their notes in any order
        told = json.loads(content)
        content = json.dumps([told["digest"], told["metrics"], sorted(told["files"])]).encode()
    elif path.suffix == ".gz":  # with the time when it was written
        content = gzip.decompress(content)
    elif path.suffix == ".safetensors":
        size = 8 + int.from_bytes(content[:8], "little")
        content = json.dumps(json.loads(content[8:size]), sort_keys=True).encode() + content[size:]
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
