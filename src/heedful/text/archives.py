"""The members of zip and tar archives, read without writing any of them to the disk.

An archive from elsewhere is not trusted: a member that would land outside its folder, or that is no plain file, is
refused even though nothing here unpacks it, because such an archive is not what its publisher made.
"""

import csv
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, TypeVar

from heedful.errors import DataError

Member = tuple[str, IO[bytes]]

BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError),
    *(UnicodeDecodeError, csv.Error, KeyError),
)
"""What is raised on an archive that is cut off, damaged, locked with a password, or of other content."""

T = TypeVar("T")


def members(path: Path) -> Iterator[Member]:
    """Name and content of each file of an archive, in its order. A content is to be read before the next one."""
    return _zip_members(path) if zipfile.is_zipfile(path) else _tar_members(path)


def readable(rows: Iterable[T], name: str) -> Iterator[T]:
    """The same rows; what a damaged file raises, at whatever place, becomes one sentence that names it."""
    try:
        yield from rows
    except BROKEN as error:
        said = str(error) or type(error).__name__
        raise DataError(f"'{name}' cannot be read: {said}. Is it complete? Delete it and fetch it again.") from error


def _zip_members(path: Path) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            _check_name(path, info.filename)
            if stat.S_ISLNK(info.external_attr >> 16):
                raise _unsafe(path, info.filename, "is a link")
            if not info.is_dir():
                with archive.open(info) as content:
                    yield info.filename, content


def _tar_members(path: Path) -> Iterator[Member]:
    with tarfile.open(path) as archive:
        for info in archive:
            _check_name(path, info.name)
            if not (info.isfile() or info.isdir()):
                raise _unsafe(path, info.name, "is a link or a device")
            content = archive.extractfile(info)
            if content is not None:
                yield info.name, content


def _check_name(path: Path, name: str) -> None:
    """A relative path that stays inside, as this system or Windows would read it."""
    for pure in (PurePosixPath(name), PureWindowsPath(name)):
        if pure.is_absolute() or pure.drive or ".." in pure.parts:
            raise _unsafe(path, name, "would lie outside the folder")


def _unsafe(path: Path, name: str, why: str) -> DataError:
    return DataError(
        f"The archive '{path.name}' is refused: its member '{name}' {why}. "
        "This is not the published archive; delete it, and get it from another place."
    )
