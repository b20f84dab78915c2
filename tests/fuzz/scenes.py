"""Commands as tests of damage call them: what is there before, and what an undisturbed call leaves."""

import gzip
import hashlib
import http.server
import io
import json
import os
import random
import shutil
import signal
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from heedful import files
from heedful.store import MANIFEST, Store, verify
from tests.fuzz import forked

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
    share: int = 2
    """How many of a hundred kills."""


def audits(names: Iterable[str]) -> bool:
    """Whether one of these scenes looks at audits, and more is to be imported."""
    return any("audit" in SCENES[name].words or AUDIT in SCENES[name].before for name in names)


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


@dataclass
class Stage:
    """A scene with what an undisturbed call of it leaves."""

    scene: Scene
    folder: Path
    start: Path
    seconds: float = 0.0
    changes: int = 0
    bytes: int = 0
    """How much more there is in the end."""
    expected: dict[str, str] = field(default_factory=dict)
    """What an undisturbed call leaves: digests by names, of what two such calls leave alike."""
    names: set[str] = field(default_factory=set)
    server: int = 0

    @property
    def words(self) -> Sequence[str]:
        return self.scene.words

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
            place = stage.begin(f"undisturbed-{number}")
            done = forked.run(stage.scene.words, place, prepare=stage.prepare)
            assert done.code == 0, done.err
            stage.bytes = _size(place) - _size(start)
            stage.seconds = done.seconds
            collect(place)
            found.append(content(place))
        stage.changes = forked.changes(stage.scene.words, stage.begin("counted"), prepare=stage.prepare)
        assert found[0].keys() == found[1].keys(), found[0].keys() ^ found[1].keys()
        stage.names = {*found[0]}
        stage.expected = {name: digest for name, digest in found[0].items() if digest == found[1][name]}
        tables = {name for name in stage.names if name.endswith((".csv", ".parquet", ".tex", ".safetensors", ".gz"))}
        assert tables <= {*stage.expected}, f"not the same twice: {tables - {*stage.expected}}"
        return stage

    def lost(self, place: Path) -> list[str]:
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

    def differences(self, place: Path) -> tuple[list[str], list[str]]:
        """What is not as an undisturbed call leaves it, and what it does not leave."""
        found = content(place)
        differ = [name for name, digest in self.expected.items() if found.get(name) != digest]
        return differ, sorted({*found} - self.names)

    def begin(self, name: str) -> Path:
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.start, place)
        return place

    def _named(self, words: Sequence[str]) -> list[str]:
        """An empty word is the run that is there: the audited one, or the only one."""
        finished = Store(self.start / "runs").finished()
        run = next((path for path in finished if (path / "report.html").is_file()), finished[0])
        return [word or run.name for word in words]

    def prepare(self) -> None:
        if "2" not in self.words[:4]:
            forked.workers_here()
        forked.checkpoints_always()
        if self.server:
            _publish(self.folder / "port")

    def prepare_later(self) -> None:
        """On a later day: what was half written is old."""
        self.prepare()
        files.STALE_SECONDS = -1

    def _serve(self) -> None:
        """The treebank's archive, made small, from a process of its own that takes its time."""
        self.server = os.fork()
        if not self.server:
            _serve_archive(self.folder / "port")
        while not (self.folder / "port").is_file():
            time.sleep(0.01)

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        if self.server:
            os.kill(self.server, signal.SIGKILL)
            os.waitpid(self.server, 0)


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


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
    from heedful.text.recipes import DATASETS

    address = f"http://127.0.0.1:{told.read_text()}"
    dataset = DATASETS["sst"]
    source = dataset.sources[0].at(address)
    checksum = f"sha256:{hashlib.sha256(_archive()).hexdigest()}"
    source = replace(source, files=tuple(replace(file, checksum=checksum) for file in source.files))
    vars(fetch).update(DATASETS={**DATASETS, "sst": replace(dataset, sources=(source,))})
    os.environ.update(HEEDFUL_DATA="data", no_proxy="127.0.0.1")


def collect(place: Path) -> None:
    """`heedful runs gc`, of a later day."""
    files.STALE_SECONDS = -1
    kept = Store(place / "runs")
    kept.collect(kept.rubbish())


def content(place: Path) -> dict[str, str]:
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
