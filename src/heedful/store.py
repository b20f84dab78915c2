"""The store: run directories that are finished or absent.

    <store>/store.json                  the format of the store
    <store>/<digest>_<name>/            a finished run; its manifest.json was written last
    <store>/.work/<digest>/             an unfinished run: its checkpoint, and what is being written
    <store>/.work/<digest>.lock         held while a process computes the run
    <store>/.failed/<digest>.json       why a run failed, until it succeeds
    <store>/.corpora/<key>/             tokenised corpora, memory-mapped by workers (`heedful.text.cache`)

Names that begin with a dot are never results. Reading takes no lock and writes nothing.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from heedful.errors import StoreBusy, StoreError
from heedful.files import (
    is_last_copy,
    is_locked,
    locked,
    make_folder,
    move_into_place,
    read_json,
    remove_folder,
    restore_moved_aside,
    sync,
    unwritable,
    write_json,
)

FORMAT = 1
"""Raised when the layout of a run directory changes; a store of a newer format is refused."""

MANIFEST = "manifest.json"
MARK = "store.json"
STALE_SECONDS = 600
PREFIX = 12
"""So many letters of the digest begin the name of a run directory."""

ROOT, ROOT_VARIABLE = "runs", "HEEDFUL_STORE"
"""The folder of runs where none is named, and the variable of the environment that names another."""


class Store:
    """A folder of finished runs, one directory each, found by the digest that begins its name.

    A run is written under `.work/` and moved into place as a whole, its manifest last; so what has a manifest is
    finished, and what has none is not there. Runs come from `heedful train`, `sweep`, `audit` and `reproduce`.

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

    @property
    def corpora(self) -> Path:
        """Where tokenised corpora are kept for workers."""
        return self.root / ".corpora"

    def check(self) -> None:
        """Refuse a store that a newer version wrote, before anything in it is read or changed."""
        mark = self.root / MARK
        if mark.is_file():
            _refuse_newer(self.root, read_json(mark), mark)

    def find(self, digest: str) -> Path | None:
        """The directory of a finished run."""
        self.check()
        found = (self.root / name for name in self._names() if name.startswith(digest[:PREFIX]))
        return next((path for path in found if (path / MANIFEST).is_file()), None)

    def finished(self) -> list[Path]:
        """The directories of all finished runs, by name."""
        self.check()
        return [path for path in map(self.root.joinpath, self._names()) if (path / MANIFEST).is_file()]

    def index(self) -> dict[str, Path]:
        """The finished runs by the beginning of their digest."""
        return {path.name[:PREFIX]: path for path in self.finished()}

    def manifests(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """All finished runs by name, with their manifests; what has none is not finished."""
        self.check()
        for name in self._names():
            try:  # strings, not paths: half of the time at 10,000 runs
                with open(f"{self.root}/{name}/{MANIFEST}", "rb") as file:  # noqa: PTH123
                    text = file.read()
            except (FileNotFoundError, NotADirectoryError):
                continue
            path = self.root / name
            yield path, _checked(path, _parsed(path, text))

    def resolve(self, name: str) -> Path:
        """A finished run by its directory's name, or by as much of the beginning as sets it apart."""
        runs = self.finished()
        beginning = Path(name).name
        found = [path for path in runs if beginning and path.name.startswith(beginning)]
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(path.name for path in found[:5])
            raise StoreError(f"'{name}' begins the names of {len(found)} runs: {listed}. Give more letters.")
        near = [path.name for path in runs if path.name[:2] == name[:2]][:5] or [path.name for path in runs[:5]]
        there = f"Some that are there: {', '.join(near)}." if near else "It is empty."
        raise StoreError(f"No run in the store '{self.root}' has a name that begins with '{name}'. {there}")

    def workplace(self, digest: str) -> Path:
        """Where an unfinished run keeps its checkpoint."""
        return self.root / ".work" / digest[:PREFIX]

    def lock(self, digest: str, *, wait: bool = True) -> AbstractContextManager[None]:
        """Nobody else computes, replaces or removes this run inside the block.

        A run that a process had moved aside to replace it, and did not live to, is there again.
        """
        self.check()
        make_folder(self.root)
        if not (self.root / MARK).is_file():
            write_json(self.root / MARK, {"format": FORMAT})
        return self._locked(digest, wait)

    @contextmanager
    def _locked(self, digest: str, wait: bool) -> Iterator[None]:
        with locked(self._lock_file(digest), f"Run {digest[:PREFIX]} of '{self.root}'", wait=wait):
            restore_moved_aside(self.root, f"{digest[:PREFIX]}*")
            yield

    def is_busy(self, digest: str) -> bool:
        """Whether a process computes the run at this moment."""
        return is_locked(self._lock_file(digest))

    def publish(self, written: Path, name: str, manifest: Mapping[str, Any]) -> Path:
        """Move a written run directory into place, with its manifest; replaces a run of the same name."""
        write_json(written / MANIFEST, {"format": FORMAT, **manifest})
        sync(written)
        target = self.root / name
        try:
            move_into_place(written, target)
        except OSError as error:
            raise unwritable(target, error) from error
        return target

    def remove(self, name: str) -> Path:
        """Remove a finished run; one that is being computed anew is refused."""
        path = self.resolve(name)
        with self.lock(path.name, wait=False):
            remove_folder(path)
        return path

    def record_failure(self, digest: str, record: Mapping[str, Any]) -> None:
        """Keep why a run failed."""
        write_json(self._failure_file(digest), {"format": FORMAT, "digest": digest, **record})

    def forget_failure(self, digest: str) -> None:
        self._failure_file(digest).unlink(missing_ok=True)

    def failures(self) -> list[dict[str, Any]]:
        """The runs that failed when they were last tried."""
        return [read_json(path) for path in sorted((self.root / ".failed").glob("*.json"))]

    def rubbish(self, *, everything: bool = False) -> list[Path]:
        """What killed processes left and nobody will read; with `everything`, also what only saves work to keep:
        checkpoints of unfinished runs, cached corpora and records of failures. What a process uses is never listed.
        """
        self.check()
        index = self.index()
        found = [path for path in self.root.glob(".*.????????.*") if _is_stale(path) and not is_last_copy(path)]
        found += [path for run in index.values() for path in run.rglob(".*.????????.part") if _is_stale(path)]
        for path in sorted((self.root / ".work").glob("*")):
            digest = path.name.removesuffix(".lock")
            if not self.is_busy(digest):
                unused = everything or path.suffix == ".lock" or digest in index
                found += [path] if unused else [part for part in [path / "run"] if part.is_dir()]
        computing = any(is_locked(path) for path in (self.root / ".work").glob("*.lock"))
        for path in sorted(self.corpora.glob("*")) + sorted(self.corpora.glob(".*")):
            key = path.name.lstrip(".").split(".")[0]
            unused = path.name != key or (everything and not computing)
            if unused and not is_locked(self.corpora / f"{key}.lock"):
                found.append(path)
        return found + [p for p in (self.root / ".failed").glob("*.json") if everything or p.stem in index]

    def collect(self, rubbish: Iterable[Path]) -> int:
        """Remove what `rubbish` listed; returns the bytes that became free. A run that was just begun is left alone."""
        freed = 0
        for path in rubbish:
            size = _size(path)
            try:
                with self._undisturbed(path):
                    remove_folder(path) if path.is_dir() else path.unlink(missing_ok=True)
            except StoreBusy:
                continue
            except OSError as error:
                raise StoreError(f"'{path}' cannot be removed: {error.strerror}.") from error
            freed += size
        return freed

    def _undisturbed(self, path: Path) -> AbstractContextManager[None]:
        """Hold the lock of the unfinished run that a path belongs to, if it does."""
        area, *rest = path.relative_to(self.root).parts
        return self.lock(rest[0], wait=False) if area == ".work" else nullcontext()

    def _lock_file(self, digest: str) -> Path:
        return self.root / ".work" / f"{digest[:PREFIX]}.lock"

    def _failure_file(self, digest: str) -> Path:
        return self.root / ".failed" / f"{digest[:PREFIX]}.json"

    def _names(self) -> list[str]:
        """What may be a run directory, in order."""
        try:
            with os.scandir(self.root) as entries:
                return sorted(entry.name for entry in entries if entry.name[0] != "." and entry.name != MARK)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"The store '{self.root}' cannot be read: {error.strerror}.") from error


def usual_store() -> Store:
    """The store that is meant where none is given, in Python as on the command line."""
    return Store(os.environ.get(ROOT_VARIABLE) or ROOT)


def read_manifest(run: Path) -> dict[str, Any]:
    """The manifest of a finished run, refused when it comes from a newer version."""
    return _checked(run, read_json(run / MANIFEST))


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _is_stale(path: Path) -> bool:
    """Whether a temporary file is too old to be one that is being written."""
    try:
        return time.time() - path.stat().st_mtime > STALE_SECONDS
    except FileNotFoundError:
        return False


def _size(path: Path) -> int:
    places = path.rglob("*") if path.is_dir() else [path]
    return sum(place.stat().st_size for place in places if place.is_file())


def _parsed(run: Path, text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise StoreError(f"'{run / MANIFEST}' is not readable JSON: {error}.") from error


def _checked(run: Path, manifest: Any) -> dict[str, Any]:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        _refuse_newer(run, manifest, run / MANIFEST)
    checked: dict[str, Any] = manifest
    return checked


def _refuse_newer(place: Path, content: Any, file: Path) -> None:
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise StoreError(f"'{file}' is not the manifest of a run or the mark of a store.")
    if content["format"] > FORMAT:
        raise StoreError(
            f"'{place}' was written by a newer version (format {content['format']}, this one reads {FORMAT}). "
            "Update heedful, or use another store."
        )
