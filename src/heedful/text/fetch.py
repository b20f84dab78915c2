"""Corpora from their public homes into the data folder: resumed, checked, whole or not at all.

A download grows in `NAME.part` and goes on from there when it broke off. It becomes `NAME` when its checksum is right,
then a table of the data folder, which is what corpora are read from, and is removed. A file of that name that somebody
put there by hand is used in the same way, needs no network, and stays: beside a download lies `.NAME.fetched`.
"""

import http.client
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import DataError, StoreError, UnknownName
from heedful.files import explained, file_hash, locked, make_folder, unwritable, write_text
from heedful.text.published import PublicFile, Source
from heedful.text.recipes import DATA_VARIABLE, DATASETS, data_folder
from heedful.text.tables import write_tables
from heedful.version import __version__

TIMEOUT = 30.0
ATTEMPTS = 5  # how often a download that breaks off is taken up again within one call, as long as it gains ground
_CHUNK = 1 << 16
_PAGE = (b"<!doctype html", b"<html", b"<head", b"<?xml")


@dataclass(frozen=True, kw_only=True)
class Step:
    """How far a download is; `total` is None where the server does not say."""

    file: str
    done: int
    total: int | None


Observer = Callable[[Step], None]


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What a fetch left in the data folder: files and their rows; none where everything was there already."""

    name: str
    folder: Path
    source: str | None
    rows: Mapping[str, int]


class Unreachable(DataError):
    """A server that does not answer, or not with the file."""


class BrokenOff(Unreachable):
    """A download that ended early; what came is kept."""


def fetch(name: str, *, base: str | None = None, observer: Observer = lambda _: None) -> Fetched:
    """Make a named corpus available: download its public files and turn them into tables of the data folder. Files that
    the data folder holds are left as they are. `base` is another address under which the same files lie."""
    if name not in DATASETS:
        raise UnknownName("corpus", name, DATASETS)
    dataset, folder = DATASETS[name], data_folder()
    if dataset.available:
        for source in dataset.sources:
            _tidy(source, folder)
        return Fetched(name=name, folder=folder, source=None, rows={})
    if not dataset.sources:
        raise DataError(
            f"'{name}' is a sample without a public address. Put {', '.join(dataset.files)} into '{folder}', "
            f"or set {DATA_VARIABLE} to the folder that holds it."
        )
    if base and not _is_address(base):
        raise DataError(f"An address begins with http:// or https:// and a host, as '{base}' does not.")
    sources = [source.at(base) for source in dataset.sources] if base else dataset.sources
    return _first_that_answers(name, sources, folder, observer)


def _is_address(text: str) -> bool:
    with suppress(ValueError):  # of brackets that do not close, or ports that are no numbers
        parts = urllib.parse.urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    return False


def _first_that_answers(name: str, sources: Sequence[Source], folder: Path, observer: Observer) -> Fetched:
    """The first source whose files can be had; where none can, the reasons and what to do by hand."""
    failures = []
    for source in sources:
        try:
            return Fetched(name=name, folder=folder, source=source.title, rows=_take(source, folder, observer))
        except Unreachable as error:
            failures.append(str(error))
    wanted = "; ".join(f"{file.address} as '{file.name}'" for file in sources[0].files)
    raise Unreachable(
        f"{' '.join(failures)} Call again to go on. Or download by hand, in a browser or on another machine: {wanted}. "
        f"Put it into '{folder}' and call `heedful data fetch {name}` again: that needs no network. "
        f"About the data: {sources[0].home}"
    )


def _take(source: Source, folder: Path, observer: Observer) -> dict[str, int]:
    """Downloaded or found files as tables; only tables that are missing are written."""
    make_folder(folder)
    with locked(_lock_of(source, folder), f"'{source.title}'"):
        paths = [folder / file.name for file in source.files]
        for file, path in zip(source.files, paths, strict=True):
            if not path.is_file():
                download(file, path, observer=observer)
            elif not _is_right(path, file.checksum):
                wrong = f"its checksum is not {file.checksum}"
                raise DataError(f"'{path}' is not the published file: {wrong}. Remove it and call again.")
        missing = [name for name in source.makes if not (folder / name).is_file()]
        rows = write_tables(source.rows(paths), folder, missing)
        for path in paths:
            _remove_download(path)
    return rows


def download(file: PublicFile, path: Path, *, observer: Observer = lambda _: None) -> Path:
    """The public file under this path, once it is complete and its checksum right. A checksum that is wrong after a
    download was taken up again may be the old part's fault: it is then tried anew."""
    part = path.with_name(f"{path.name}.part")
    resumed = _size(part) > 0
    _complete(file, part, observer)
    if resumed and not _is_right(part, file.checksum):
        _forget(part)
        _complete(file, part, observer)
    if not _is_right(part, file.checksum):
        size = _size(part)
        _forget(part)
        raise DataError(
            f"What {file.address} sent ({size:,} bytes) is not the published file: its checksum is not "
            f"{file.checksum}. It was not kept. Try again later, or from another place."
        )
    with explained(path):
        _mark(path).touch()
        part.replace(path)
    _forget(part)
    return path


def _complete(file: PublicFile, part: Path, observer: Observer) -> None:
    """Receive until nothing is missing; a connection that breaks off is taken up again while that helps."""
    for attempt in range(1, ATTEMPTS + 1):
        before = _size(part)
        try:
            _receive(file, part, observer)
            break
        except BrokenOff:
            if attempt == ATTEMPTS or _size(part) <= before:
                raise


def _receive(file: PublicFile, part: Path, observer: Observer) -> None:
    """One request: the whole file, or what follows the part that is there."""
    held = _size(part)
    tag = _tag_file(part).read_text(encoding="utf-8") if _tag_file(part).is_file() else None
    request = urllib.request.Request(file.address, headers={"User-Agent": f"heedful/{__version__}"})
    if held and (tag or file.checksum):  # without either, nothing says that the file is still the same
        request.add_header("Range", f"bytes={held}-")
        if tag:
            request.add_header("If-Range", tag)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            _append(response, file, part, held, observer)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416 or not held:
            raise Unreachable(f"{file.address} answers {error.code} ({error.reason}).") from error
        _forget(part)  # it is as long as the file or longer
        _receive(file, part, observer)
    except urllib.error.URLError as error:
        raise Unreachable(f"{file.address} cannot be reached: {error.reason}.") from error
    except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
        raise _broken_off(file, part) from error
    except OSError as error:
        raise unwritable(part, error) from error


def _append(response: http.client.HTTPResponse, file: PublicFile, part: Path, held: int, observer: Observer) -> None:
    """Write what comes, behind what is held where the server goes on from there."""
    goes_on = response.status == 206
    chunk = response.read(_CHUNK)
    if goes_on and not response.headers.get("Content-Range", "").startswith(f"bytes {held}-"):
        raise Unreachable(f"{file.address} answers with another piece of the file than was asked for.")
    done = held if goes_on else 0
    page = chunk.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_PAGE)  # no corpus is published as one
    if not done and (page or response.headers.get_content_type() == "text/html"):  # before it overwrites an old part
        raise Unreachable(f"{file.address} sends a web page instead of the file; it may have moved.")
    rest = response.headers.get("Content-Length")
    total = done + int(rest) if rest and rest.isdigit() else None
    tag = response.headers.get("ETag") or response.headers.get("Last-Modified")
    if tag and not tag.startswith("W/"):  # tells this version of the file from others; a weak one does not
        write_text(_tag_file(part), tag)
    with part.open("ab" if done else "wb") as out:
        while chunk:
            done += out.write(chunk)
            observer(Step(file=file.name, done=done, total=total))
            chunk = response.read(_CHUNK)
    if total is not None and done < total:
        raise _broken_off(file, part, f" of {total:,}")


def _is_right(path: Path, checksum: str | None) -> bool:
    algorithm, _, digest = (checksum or "").partition(":")
    return not digest or file_hash(path, algorithm) == digest


def _broken_off(file: PublicFile, part: Path, of: str = "") -> BrokenOff:
    return BrokenOff(f"The download of {file.address} broke off after {_size(part):,}{of} bytes, which are kept.")


def _size(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0


def _tag_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.tag")


def _lock_of(source: Source, folder: Path) -> Path:
    return folder / f".{source.files[0].name}.lock"


def _tidy(source: Source, folder: Path) -> None:
    """Remove what a process left that was killed after its last table, unless another is at it, or nobody may write."""
    lock, paths = _lock_of(source, folder), [folder / file.name for file in source.files]
    if lock.is_file() or any(_mark(path).is_file() for path in paths):
        with suppress(StoreError, OSError), locked(lock, f"'{source.title}'", wait=False):
            for path in paths:
                _remove_download(path)


def _mark(path: Path) -> Path:
    """What says that a file was downloaded, and not put there by hand."""
    return path.with_name(f".{path.name}.fetched")


def _remove_download(path: Path) -> None:
    """The file before its mark: of a removal that was broken off, the mark is left and goes with the next call."""
    if _mark(path).is_file():
        path.unlink(missing_ok=True)
        _mark(path).unlink(missing_ok=True)


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag_file(part).unlink(missing_ok=True)
