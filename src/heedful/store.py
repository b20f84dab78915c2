"""The store: what is computed once and kept. Everything in it is whole or absent.

    <store>/store.json                  the format of the store
    <store>/<digest>_<name>/            a run, with its manifest.json
    <store>/.corpora/<key>/             a tokenised corpus, memory-mapped by workers (`heedful.text.datasets`)
    <store>/.vectors/<key>.safetensors  word vectors that runs began with (`heedful.text.vectors`)
    <store>/.contextual/<key>.npy       what a frozen transformer makes of a split (`heedful.models.frozen`)
    <store>/.inputs/<digest>-….parquet  texts of a run read again with words left out (`heedful.studies.serrano2019`)
    <store>/.zoo/<key>/                 a training of the zoo (`heedful.zoo.results`)
    <store>/.work/<key>/                what is being made, and the checkpoint of an unfinished run
    <store>/.work/<key>.lock            held while a process makes it
    <store>/.failed/<digest>.json       why a run failed, until it succeeds

`Store.keep` makes each of them. Names that begin with a dot are never runs. Reading takes no lock and writes nothing.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful import files
from heedful.errors import StoreBusy, StoreError, reason

FORMAT = 1  # raised when the layout of a run directory changes; a store of a newer format is refused
MANIFEST, MARK = "manifest.json", "store.json"
PARTS, CHECKSUM = "files", "checksum"
"""Of a manifest: the checksums of the files beside it, and its own, taken with a blank in its place."""

_BLANK = "0" * 64

MADE = ("made", "run")
"""What a workplace calls the thing that is being made; the second was its name until results version 5."""

_ANEW = "Compute the run again (--fresh)."

PREFIX = 12  # so many letters of the digest begin the name of a run directory

ROOT, ROOT_VARIABLE = "runs", "HEEDFUL_STORE"
"""The folder of runs where none is named, and the variable of the environment that names another."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of thing that a store keeps, and what to call it in a sentence."""

    what: str
    folder: str = ""  # in the store; runs lie in the store itself
    ending: str = ""  # of the name of a file; folders have none
    of_run: bool = False  # whether its key begins with the digest of a run, without which it is rubbish


RUN = Kind(what="Run")
CORPUS = Kind(what="Corpus", folder=".corpora")
VECTORS = Kind(what="Word vectors", folder=".vectors", ending=".safetensors")
CONTEXTUAL = Kind(what="Vectors of words in context", folder=".contextual", ending=".npy")
INPUTS = Kind(what="Erased inputs", folder=".inputs", ending=".parquet", of_run=True)
RECORDING = Kind(what="Recording", folder=".recordings", of_run=True)
"""Not made since results version 6: what is recorded is part of a run."""

ZOO = Kind(what="Training", folder=".zoo")
FAILURE = Kind(what="Failure", folder=".failed", ending=".json")
BESIDE_RUNS = (CORPUS, VECTORS, CONTEXTUAL, INPUTS, RECORDING)
Make = Callable[[Path], None]


class Store:
    """A folder of finished runs, one directory each, found by the digest that begins its name.

    What runs share is kept beside them. Runs come from `heedful train`, `sweep`, `audit` and `reproduce`.

    root: the folder. It need not exist; the first run makes it.

    >>> import heedful
    >>> store = heedful.Store("my-runs")
    >>> [path.name for path, manifest in store.manifests()]
    []
    >>> store.resolve("4f")
    Traceback (most recent call last):
    heedful.errors.StoreError: No run in the store 'my-runs' has a name that begins with '4f'. It is empty.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def keep(
        self, kind: Kind, key: str, make: Make, *, name: str = "", fresh: bool = False, wait: bool = True
    ) -> tuple[Path, bool]:
        """Where the thing with this key is, and whether this call made it; a run's key is its digest.

        What is there is found without a lock, unless it is to be made afresh. Otherwise `make` writes a file or folder
        to the path it is given, while no other process makes the same, and that is moved into place as a whole. Beside
        that path it may leave what lets it go on when it is called again; that stays until the thing is there. What
        another process makes is waited for, or, without `wait`, a StoreBusy.
        """
        found = None if fresh else self.find(key, kind)
        if found:
            return found, False
        with self.lock(key, kind, wait=wait):
            found = None if fresh else self.find(key, kind)  # whoever held the lock may have made it
            return (found, False) if found else (self._make(kind, key, make, name, fresh), True)

    def _make(self, kind: Kind, key: str, make: Make, name: str, fresh: bool) -> Path:
        work, target = self.workplace(key, kind), self.place(kind, f"{key[:PREFIX]}_{name}" if kind is RUN else key)
        made = work / f"{MADE[0]}{kind.ending}"
        files.discard(work if fresh else made)
        files.make_folder(work)
        try:
            make(made)
            files.sync(made)
            files.make_folder(target.parent)
            with files.explained(target):
                files.move_into_place(made, target)
            self.forget_failure(key)
            files.discard(work)
        finally:
            files.discard(made)
            with suppress(OSError):
                work.rmdir()  # unless a checkpoint is in it
        return target

    def place(self, kind: Kind, key: str) -> Path:
        """Where the thing with this key is, or would be."""
        return self.root / kind.folder / f"{key}{kind.ending}"

    def workplace(self, key: str, kind: Kind = RUN) -> Path:
        """Where a thing is being made, and an unfinished run keeps its checkpoint."""
        return self.root / ".work" / (f"{kind.folder[1:]}-{key}" if kind.folder else key[:PREFIX])

    def check(self) -> None:
        """Refuse a store that a newer version wrote, before anything in it is read or changed."""
        mark = self.root / MARK
        if files.is_file(mark):
            _checked(self.root, mark, files.read_json(mark))

    def find(self, key: str, kind: Kind = RUN) -> Path | None:
        """A finished run by its digest, or another thing by its key."""
        self.check()
        if kind is RUN:
            return next((path for path in self._folders(key[:PREFIX]) if (path / MANIFEST).is_file()), None)
        path = self.place(kind, key)
        return path if path.exists() else None

    def finished(self) -> list[Path]:
        """The directories of all finished runs, by name."""
        self.check()
        return [path for path in self._folders() if (path / MANIFEST).is_file()]

    def index(self) -> dict[str, Path]:
        """The finished runs by the beginning of their digest."""
        return {path.name[:PREFIX]: path for path in self.finished()}

    def manifests(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """All finished runs by name, with what their manifests say of them; what has none is not finished."""
        self.check()
        for path in self._folders():
            file = f"{path}/{MANIFEST}"  # a string, not a path: half of the time at 10,000 runs
            with suppress(FileNotFoundError, NotADirectoryError):
                manifest = _read(path, file)
                manifest.pop(PARTS, None)
                yield path, manifest

    def resolve(self, name: str) -> Path:
        """A finished run by its directory's name, or by as much of the beginning as sets it apart."""
        runs = self.finished()
        beginning = Path(name).name
        meant = [path for path in runs if beginning and path.name.startswith(beginning)]
        if len(meant) == 1:
            return meant[0]
        if meant:
            listed = ", ".join(path.name for path in meant[:5])
            raise StoreError(f"'{name}' begins the names of {len(meant)} runs: {listed}. Give more letters.")
        near = [path.name for path in runs if path.name[:2] == name[:2]][:5] or [path.name for path in runs[:5]]
        there = f"Some that are there: {', '.join(near)}." if near else "It is empty."
        raise StoreError(f"No run in the store '{self.root}' has a name that begins with '{name}'. {there}")

    @contextmanager
    def lock(self, key: str, kind: Kind = RUN, *, wait: bool = True) -> Iterator[None]:
        """Nobody else makes, replaces or removes this run, or other thing, inside the block. What a process had moved
        aside to replace it, and did not live to, is there again."""
        self.check()
        files.make_folder(self.root, private=True)  # it holds texts of other people
        if not (self.root / MARK).is_file():
            files.write_json(self.root / MARK, {"format": FORMAT})
        short = key[:PREFIX] if kind is RUN else key
        with files.locked(_lock_of(self.workplace(key, kind)), f"{kind.what} {short} of '{self.root}'", wait=wait):
            files.restore_moved_aside(self.root / kind.folder, f"{short}*")
            yield

    def is_busy(self, digest: str) -> bool:
        return files.is_locked(_lock_of(self.workplace(digest)))

    def remove(self, name: str) -> Path:
        """Remove a finished run; one that is being computed anew is refused."""
        path = self.resolve(name)
        with self.lock(path.name, wait=False):
            files.remove_folder(path)
        return path

    def record_failure(self, digest: str, record: Mapping[str, Any]) -> None:
        files.write_json(self.place(FAILURE, digest[:PREFIX]), {"format": FORMAT, "digest": digest, **record})

    def forget_failure(self, digest: str) -> None:
        self.place(FAILURE, digest[:PREFIX]).unlink(missing_ok=True)

    def failures(self) -> list[dict[str, Any]]:
        """The runs that failed when they were last tried."""
        return [files.read_json(path) for path in sorted((self.root / ".failed").glob("*.json"))]

    def rubbish(self, *, everything: bool = False) -> list[Path]:
        """What killed processes left and nobody will read; with `everything`, also what only saves work to keep:
        checkpoints of unfinished runs, cached corpora, vectors of words and records of failures. What a process uses is
        never listed.
        """
        runs, work = self.index(), self.root / ".work"
        busy = {path.stem for path in work.glob("*.lock") if files.is_locked(path)}
        idle = [path for path in sorted(work.glob("*")) if path.stem not in busy]
        folders = [self.root, *(self.root / kind.folder for kind in (*BESIDE_RUNS, ZOO))]
        halves = [path for folder in folders for path in folder.glob(".*.????????.*") if not files.is_last_copy(path)]
        halves += [path for run in runs.values() for path in run.rglob(".*.????????.part")]
        return [
            *filter(files.is_stale, halves),
            *(left for path in idle for left in _left_in(path, everything or path.stem in runs)),
            *(path for kind in BESIDE_RUNS for path in self._unused(kind, runs, everything and not busy)),
            *(path for path in (self.root / ".failed").glob("*.json") if everything or path.stem in runs),
        ]

    def _unused(self, kind: Kind, runs: Mapping[str, Path], everything: bool) -> Iterator[Path]:
        """What belongs to a run that is gone, and locks of former versions; with `everything`, what costs little."""
        for path in sorted((self.root / kind.folder).glob("[!.]*")):
            useless = path.name.split("-")[0] not in runs if kind.of_run else everything
            if (useless or path.suffix == ".lock") and not files.is_locked(path):
                yield path

    def collect(self, rubbish: Iterable[Path]) -> int:
        """Remove what `rubbish` listed; returns the bytes that became free. A run that was just begun is left alone."""
        freed = 0
        for path in rubbish:
            size = sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())
            area, *rest = path.relative_to(self.root).parts
            lock = _lock_of(self.root / area / rest[0]) if area == ".work" else None
            try:
                alone = files.locked(lock, f"'{path}'", wait=False) if lock else nullcontext()
                with alone, files.explained(path, "removed"):
                    files.remove_folder(path) if path.is_dir() else path.unlink(missing_ok=True)
                freed += size
            except StoreBusy:
                continue
        return freed

    def _folders(self, beginning: str = "") -> list[Path]:
        """What may be a run directory, in order."""
        try:
            paths = [path for path in self.root.iterdir() if path.name.startswith(beginning)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"The store '{self.root}' cannot be read: {error.strerror}.") from error
        return sorted((path for path in paths if path.name[0] != "." and path.name != MARK), key=lambda path: path.name)


def usual_store() -> Store:
    """The store that is meant where none is given, in Python as on the command line."""
    return Store(os.environ.get(ROOT_VARIABLE) or ROOT)


def read_manifest(run: Path) -> dict[str, Any]:
    """The manifest of a finished run, refused when it comes from a newer version."""
    try:
        return _read(run, str(run / MANIFEST))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError(f"There is no file '{run / MANIFEST}'.") from error


def write_manifest(run: Path, manifest: Mapping[str, Any]) -> None:
    """What makes a folder of results a run: written last, with the checksums of its files and one of its own."""
    parts = {str(path.relative_to(run)): files.file_hash(path, "sha256") for path in files.below(run)}
    content = {"format": FORMAT, **manifest, PARTS: parts, CHECKSUM: _BLANK}
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    files.write_text(run / MANIFEST, text.replace(_BLANK, _seal(text.encode())))


def check_part(run: Path, manifest: Mapping[str, Any], name: str) -> Path:
    """Where a file of a run is, refused if it is not what was written; runs of former versions cannot tell."""
    known = manifest.get(PARTS, {}).get(name)
    if known is not None and (not (run / name).is_file() or files.hash_once(run / name) != known):
        state = "damaged" if (run / name).is_file() else "gone"
        raise StoreError(f"'{run / name}' is not what was written: the file is {state}. {_ANEW}")
    return run / name


def verify(run: Path) -> list[str]:
    """What is wrong with the files of a finished run, a sentence each; nothing where all is as it was written."""
    try:
        manifest = read_manifest(run)
    except StoreError as error:
        return [str(error)]
    wrong = []
    for name in manifest.get(PARTS, {}):
        try:
            check_part(run, manifest, name)
        except StoreError as error:
            wrong.append(str(error))
    return wrong


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return flat


def _lock_of(workplace: Path) -> Path:
    return workplace.with_suffix(".lock")


def _left_in(workplace: Path, everything: bool) -> list[Path]:
    """What is half made; all of it, or the lock, where there is no checkpoint or it is not wanted."""
    content = [*workplace.glob("*")]
    halves = [path for path in content if path.stem in MADE]
    return [workplace] if everything or len(halves) == len(content) else halves


def _read(run: Path, file: str) -> dict[str, Any]:
    """A manifest, refused where a byte of it has changed since it was written."""
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            raw = opened.read()
        content = json.loads(raw)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"'{file}' is not readable JSON: {reason(error)}.") from error
    manifest = _checked(run, file, content)
    known = manifest.pop(CHECKSUM, None)
    if known is not None and known != _seal(raw.replace(str(known).encode(), _BLANK.encode())):
        raise StoreError(f"'{file}' is damaged: it does not hold what was written to it. {_ANEW}")
    return manifest


def _seal(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _checked(place: Path, file: Path | str, content: Any) -> dict[str, Any]:
    """The content of a manifest or mark, unless it is none or comes from a newer version."""
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise StoreError(f"'{file}' is not the manifest of a run or the mark of a store.")
    if content["format"] > FORMAT:
        raise StoreError(
            f"'{place}' was written by a newer version (format {content['format']}, this one reads {FORMAT}). "
            "Update heedful, or use another store."
        )
    return content
