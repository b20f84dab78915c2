"""Files that are whole or absent, and locks that die with their holder.

Everything heedful writes goes to a temporary name first and is moved into place. Names that begin with a dot are
never results: a process that was killed may have left them.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from glob import escape
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from heedful.errors import InputError, StoreBusy, StoreError, reason
from heedful.latex import as_latex
from heedful.spreadsheets import as_csv

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".parquet", ".tex")
"""How names of tables end."""

_REMEDIES = {
    errno.ENOSPC: "Free some space and call again: what is finished stays, what is not goes on where it was",
    errno.EDQUOT: "Free some of your quota and call again: what is finished stays, what is not goes on where it was",
    errno.EFBIG: "Raise the limit on the size of files (`ulimit -f`) and call again: what is finished stays",
    errno.EROFS: "Choose a folder that can be written",
    errno.EACCES: "Choose a folder that you may write to, or change its permissions",
    errno.EPERM: "Choose a folder that you may write to, or change its permissions",
}

STALE_SECONDS = 600  # a temporary file that is older is not being written any more

exists, is_file, is_folder = os.path.exists, os.path.isfile, os.path.isdir
"""They say no of a name that no file system takes, where the methods of a path raise."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` to write a file or a folder to; moved into place when the block ends well. What
    killed processes left that wrote the same is removed."""
    make_folder(path.parent)
    for left in path.parent.glob(f".{escape(path.name)}.????????.part"):
        if is_stale(left):
            discard(left)
    temporary = _beside(path, "part")
    try:
        with explained(path):
            yield temporary
            move_into_place(temporary, path)
    finally:
        discard(temporary)


@contextmanager
def explained(path: Path, done: str = "written") -> Iterator[None]:
    """What goes wrong while `path` is written is a sentence: the reason of the operating system, and what helps."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise unwritable(path, error, done) from error


def unwritable(path: Path, error: OSError | SafetensorError, done: str = "written") -> StoreError:
    text = str(error)
    told = (number for number in _REMEDIES if f"os error {number})" in text or f"errno {number}]" in text)
    number = getattr(error, "errno", None) or next(told, 0)  # safetensors and pyarrow put it into their text only
    reason = os.strerror(number) if number else text.rstrip(".")
    remedy = f" {_REMEDIES[number]}." if number in _REMEDIES else ""
    return StoreError(f"'{path}' cannot be {done}: {reason}.{remedy}")


def move_into_place(source: Path, target: Path) -> None:
    """Rename; a folder that stands in the way is first renamed itself, so that no half of it is ever read."""
    if target.is_dir() and source.is_dir():
        old = _beside(target, "old")
        target.replace(old)
        source.replace(target)
        discard(old)
    else:
        source.replace(target)


def is_last_copy(path: Path) -> bool:
    """Whether a folder was moved aside to be replaced, and nothing is in its place: its process was killed."""
    return path.suffix == ".old" and path.is_dir() and not _former(path).exists()


def restore_moved_aside(folder: Path, names: str) -> None:
    """Move such folders back, those whose names match; nobody else may be replacing them."""
    for path in folder.glob(f".{names}.????????.old"):
        if is_last_copy(path):
            path.replace(_former(path))


def _former(aside: Path) -> Path:
    return aside.parent / aside.name.removeprefix(".").rsplit(".", 2)[0]


def is_stale(path: Path) -> bool:
    """Whether nobody writes to a temporary file any more; one from the future, before the clock was set back, may be
    written to now."""
    with suppress(OSError):
        return time.time() - path.stat().st_mtime > STALE_SECONDS
    return False


def remove_folder(path: Path) -> None:
    """Remove a folder that others may be reading: it disappears at once, then its content is deleted."""
    hidden = _beside(path, "gone")  # never taken back, unlike what is moved aside to be replaced
    with explained(path, "removed"):
        path.replace(hidden)
    discard(hidden)


def make_folder(path: Path, *, private: bool = False) -> None:
    """With those above it. A private one that is new can be entered by its owner alone; one that is there stays as it
    is, which is how several people share it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700 if private else 0o777, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreError(f"A folder is needed at '{path}', and there is a file in its place. Give another.") from error
    except OSError as error:
        raise unwritable(path, error, "created") from error


def sync(path: Path) -> None:
    """Make a file, or a folder with all it holds, survive a power cut."""
    places = [path, *path.rglob("*")] if path.is_dir() else [path]
    with explained(path):
        for place in reversed(places):
            handle = os.open(place, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_table(path: Path, table: "pd.DataFrame") -> None:
    """A table as CSV for people, Parquet for programs or LaTeX for papers, by the ending of the name."""
    if path.suffix not in TABLES:
        raise InputError(f"For papers as .tex, else tables are written as .csv or .parquet, not as '{path.name}'.")
    with replacing(path) as temporary:
        if path.suffix == ".csv":
            temporary.write_text(as_csv(table), encoding="utf-8", newline="", errors="replace")
        elif path.suffix == ".tex":
            temporary.write_text(as_latex(table), encoding="utf-8")
        else:
            table.to_parquet(temporary, index=False, compression="zstd")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StoreError(f"There is no file '{path}'.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"'{path}' is not readable JSON: {reason(error)}.") from error


def digest_of(content: object) -> str:
    """The identity of what JSON can write."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def digest_of_files(folder: Path, patterns: Iterable[str]) -> str:
    """The identity of the files of a folder whose names match: names and content, not where the folder is.

    A file that has not changed since it was read is not read again.
    """
    paths = sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
    return digest_of([[path.name, hash_once(path)] for path in paths])


def below(folder: Path) -> list[Path]:
    """All files in a folder and in those within, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def hash_once(path: Path) -> str:
    """SHA-256 of a file, which is read again only where it has changed."""
    found = path.stat()
    return _hash_once(path, found.st_size, found.st_mtime_ns, found.st_ino)


@lru_cache(maxsize=256)
def _hash_once(path: Path, _size: int, _changed: int, _number: int) -> str:
    return file_hash(path, "sha256")


def file_hash(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


@contextmanager
def locked(path: Path, what: str, *, wait: bool = True) -> Iterator[None]:
    """Hold the operating system's lock on a file; it ends with the block, or with the process, however that dies.
    Without `wait`, a lock that another process holds is a StoreBusy that says who holds it."""
    make_folder(path.parent)
    held = False
    while not held:
        with explained(path):
            file = path.open("a+b", buffering=0)
        with file:
            _acquire(file, what, wait)
            held = _is_at(path, file)
            if held:
                with suppress(OSError):  # for people; on a full disk the lock is as good without
                    file.truncate(0)
                    file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
                try:
                    yield
                finally:
                    with suppress(OSError):
                        path.unlink()  # while it is held: whoever waits for it sees that, and makes a new one


def _acquire(file: FileIO, what: str, wait: bool) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        file.seek(0)
        holder = file.read(200).decode(errors="replace") or "another process"
        raise StoreBusy(f"{what} is being computed by {holder}. Wait for it, or stop it.") from None


def _is_at(path: Path, file: FileIO) -> bool:
    """Whether the open file is still the one under its name: its last holder removed it when it was done."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock now."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def _beside(path: Path, ending: str) -> Path:
    return path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.{ending}"


def discard(path: Path) -> None:
    """Remove a file or a folder of which nobody must hear; what cannot be removed stays."""
    with suppress(OSError):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
