"""Tables from files, CSV, TSV, JSON, JSON lines (plain or gzip) and Parquet; and tables written whole or not at all."""

import codecs
import csv
import gzip
import io
import json
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet as pq

from heedful.errors import DataError, border
from heedful.files import is_file, is_folder, replacing
from heedful.limits import GROWTH

KINDS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
FORMATS = (*KINDS, ".parquet", *(f"{kind}.gz" for kind in KINDS))

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""What may stand between the fields of a CSV file, the most usual first."""

ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16")
SAMPLE_CHARACTERS, SAMPLE_ROWS = 2**18, 200  # how much of a CSV file is looked at to find its delimiter

JSON_FORMS = (
    'A .json file holds one list of objects, [{"text": "…", "label": "…"}, …], alone or as one value of an object, or '
    "one such object per line. pandas writes the list with to_json(orient='records')."
)

NOT_TEXT = {
    b"PK\x03\x04": "is a spreadsheet or a zip archive, not text. Save the table as CSV, or unpack it.",
    b"\x1f\x8b": "is packed with gzip. Unpack it, or let its name end with .gz once.",
    b"\0\0": "begins with NUL bytes, so that it is not text. Is the file damaged?",
}
"""How files begin that are something else than their name says, whatever the encoding, and what to do."""

LEAST_LIMIT = 2**26
"""A gzip file may unpack to so many bytes, or to more if its own are many (`limits.GROWTH`)."""

LINES = "Each line must be one object."
BATCH = 10_000  # rows that are written at once
ROWS = 1_000  # rows that are read at once
PIECE = 2**20  # bytes that are read at once
Row = Mapping[str, Any]
Batch = Mapping[str, Sequence[Any]]
"""Some rows: by the name of each column that is wanted its values."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of a file or a frame, to be read batch by batch, as often as they are needed."""

    columns: tuple[str, ...]
    batches: Callable[[Collection[str]], Iterator[Batch]]
    """Of these columns, each named once."""


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def writable(value: object) -> object:
    """A text with U+FFFD for each half of a character (lone surrogate), which no file can hold; else the value."""
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


def read_table(path: Path, *, encoding: str = "utf-8") -> pd.DataFrame:
    """The file's rows and columns, as they are."""
    kind = _kind_of(path)
    if kind == "parquet":
        with _parquet(path):
            table = pd.read_parquet(path)
    else:
        with open_text(path, encoding) as text:
            table = _parse(text, path, kind)
    if table.empty:
        raise _no_rows(path)
    return table


def open_table(path: Path, *, encoding: str = "utf-8") -> Table:
    """The file's rows, batch by batch: in memory is one of them at a time. A list of objects in a .json file is read as
    a whole."""
    kind = _kind_of(path)
    if kind == "json":
        return table_of(read_table(path, encoding=encoding))
    if kind == "parquet":
        with _parquet(path):
            columns = tuple(map(str, pq.read_schema(path).empty_table().to_pandas().columns))
            empty = not pq.read_metadata(path).num_rows
        batches = partial(_parquet_batches, path)
    elif kind in {"csv", "tsv"}:
        columns, empty = _csv_columns(path, kind, encoding)
        batches = partial(_csv_batches, path, kind, encoding)
    else:
        columns, empty = _line_columns(path, encoding)
        batches = partial(_line_batches, path, encoding)
    if empty or not columns:
        raise _no_rows(path)
    return Table(columns=columns, batches=batches)


def table_of(frame: pd.DataFrame) -> Table:
    """A data frame as one batch; its columns are called by what their names are as text."""
    columns = tuple(map(str, frame.columns))

    def batches(wanted: Collection[str]) -> Iterator[Batch]:
        yield {name: list(frame.iloc[:, columns.index(name)]) for name in wanted}

    return Table(columns=columns, batches=batches)


def _kind_of(path: Path) -> str:
    """The ending of the name without the dot, and without .gz."""
    if not is_file(path):
        folder = ", but a folder of that name" if is_folder(path) else ""
        raise DataError(
            f"There is no file '{path}'{folder}. Give a path to one of {', '.join(FORMATS)}, or a corpus name."
        )
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if f".{kind}" not in FORMATS:
        raise DataError(f"'{path.name}' is none of the formats that can be read: {', '.join(FORMATS)}.")
    return kind


def _no_rows(path: Path) -> DataError:
    return DataError(f"'{path.name}' has no rows. A header line and at least a few labelled texts are needed.")


def _parquet(path: Path) -> AbstractContextManager[None]:
    return border(f"The Parquet file '{path.name}'", DataError, "Is it complete?")


def _parquet_batches(path: Path, wanted: Collection[str]) -> Iterator[Batch]:
    with _parquet(path), pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ROWS, columns=list(wanted)):
            yield {name: list(batch.column(name).to_pandas()) for name in wanted}


def _csv_columns(path: Path, kind: str, encoding: str) -> tuple[tuple[str, ...], bool]:
    """The columns, and whether there are no rows."""
    with open_text(path, encoding) as text, _csv_parts(text, path, kind) as parts:
        first = next(iter(parts), pd.DataFrame())
        return tuple(map(str, first.columns)), first.empty


def _csv_batches(path: Path, kind: str, encoding: str, wanted: Collection[str]) -> Iterator[Batch]:
    with open_text(path, encoding) as text, _csv_parts(text, path, kind) as parts:
        for part in parts:
            yield {name: part[name].tolist() for name in wanted}


def _line_columns(path: Path, encoding: str) -> tuple[tuple[str, ...], bool]:
    columns: dict[str, None] = {}
    empty = True
    with open_text(path, encoding) as text:
        for row in _json_lines(text, path, LINES):
            empty = False
            if not row.keys() <= columns.keys():
                columns |= dict.fromkeys(str(writable(name)) for name in row)
    return tuple(columns), empty


def _line_batches(path: Path, encoding: str, wanted: Collection[str]) -> Iterator[Batch]:
    with open_text(path, encoding) as text:
        rows = _json_lines(text, path, LINES)
        while some := list(islice(rows, ROWS)):
            clean = [{writable(name): value for name, value in row.items()} for row in some]
            yield {name: [writable(row.get(name)) for row in clean] for name in wanted}


class Text(io.TextIOBase):
    """A file as text, piece by piece. What is no text of this encoding is a sentence that says where."""

    def __init__(self, file: io.BufferedIOBase, path: Path, encoding: str) -> None:
        self._file, self._path, self._encoding = file, path, encoding
        self._most = max(LEAST_LIMIT, GROWTH.most * path.stat().st_size)
        self._passed, self._waiting, self._ended = 0, "", False
        start = self._bytes()
        if what := next((what for begin, what in NOT_TEXT.items() if start.startswith(begin)), None):
            raise DataError(f"'{path.name}' {what}")
        try:
            found = codecs.lookup(encoding)
            plain = found.name == "utf-8"
            if not found._is_text_encoding:  # such as hex
                raise LookupError
            self._decoder = codecs.getincrementaldecoder(encoding)()
        except (LookupError, ValueError) as error:
            raise _no_encoding(encoding) from error
        if plain and (start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in start[:2]):
            raise DataError(f"'{path.name}' is UTF-16. {_give('utf-16')}, or save it as UTF-8.")
        if plain and start.startswith(codecs.BOM_UTF8):
            start = start[len(codecs.BOM_UTF8) :]
            self._passed = len(codecs.BOM_UTF8)
        self._decode(start)

    def readable(self) -> bool:
        return True

    def peek(self, size: int) -> str:
        """So many characters, or all that there are, which `read` gives again."""
        while len(self._waiting) < size and not self._ended:
            self._decode(self._bytes())
        return self._waiting[:size]

    def read(self, size: int | None = -1) -> str:
        if size is None or size < 0:
            pieces = [self._waiting]
            while not self._ended:
                self._waiting = ""
                self._decode(self._bytes())
                pieces.append(self._waiting)
            self._waiting = ""
            return "".join(pieces)
        piece = self.peek(size)
        self._waiting = self._waiting[size:]
        return piece

    def lines(self) -> Iterator[str]:
        """What stands between line feeds, and no other ends of lines."""
        rest = ""
        while piece := self.read(PIECE):
            *whole, rest = (rest + piece).split("\n")
            yield from whole
        yield rest

    def _bytes(self) -> bytes:
        with border(f"'{self._path.name}'", DataError, "Is the file complete?"):
            return self._file.read(PIECE)

    def _decode(self, data: bytes) -> None:
        pending = self._decoder.getstate()[0]  # of a character that began in the piece before
        self._ended = not data
        try:
            self._waiting += self._decoder.decode(data, final=self._ended)
        except UnicodeError as error:
            where = ""
            if isinstance(error, UnicodeDecodeError):
                place = self._passed - len(pending) + error.start
                where = f": byte {place} is {error.object[error.start]:#04x}"
            raise DataError(
                f"'{self._path.name}' is not {self._encoding} text{where}. {_give('cp1252')}, if it comes from Windows "
                "(other common encodings: latin-1, utf-16), or save it as UTF-8."
            ) from error
        self._passed += len(data)
        if self._packed and self._passed > self._most:
            raise DataError(
                f"'{self._path.name}' unpacks to more than {GROWTH.most} times its size, as texts never do. "
                f"{GROWTH.remedy}"
            )

    @property
    def _packed(self) -> bool:
        return self._path.suffix.lower() == ".gz"


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[Text]:
    """A file as text, unpacked where its name ends with .gz; one that grows as no texts do is refused before it fills
    memory."""
    with border(f"'{path.name}'", DataError, "Is the file complete?"):
        file: Any = gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")  # noqa: SIM115
    with file:
        yield Text(file, path, encoding)


def _no_encoding(name: str) -> DataError:
    return DataError(f"There is no text encoding '{name}'. Common ones: {', '.join(ENCODINGS)}.")


def _give(encoding: str) -> str:
    return f"Give its encoding: --encoding {encoding}, in Python encoding='{encoding}'"


def _parse(text: Text, path: Path, kind: str) -> pd.DataFrame:
    if kind in {"csv", "tsv"}:
        with _csv_parts(text, path, kind) as parts:
            return pd.concat(some, ignore_index=True) if (some := list(parts)) else pd.DataFrame()
    if kind == "json":
        content = text.read()
        rows = _json_rows(content, path) if content.strip() else []
    else:
        rows = _json_lines(text, path, LINES)
    return pd.DataFrame([{writable(name): writable(value) for name, value in row.items()} for row in rows])


@contextmanager
def _csv_parts(text: Text, path: Path, kind: str) -> Iterator[Iterator[pd.DataFrame]]:
    """The rows of a CSV in parts of some thousands; none of a blank file."""
    announced = re.match(r"sep=(.)\r?\n", text.peek(SAMPLE_CHARACTERS), re.IGNORECASE)
    text.read(announced.end() if announced else 0)  # by which spreadsheets tell each other the delimiter
    head = text.peek(SAMPLE_CHARACTERS)
    if not head.strip():
        yield iter(())
        return
    delimiter = announced[1] if announced else "\t" if kind == "tsv" else find_delimiter(head)
    try:
        # Labels keep their spelling; only the empty string is missing, so that a review 'NA' stays a text.
        options: dict[str, Any] = {"dtype": str, "keep_default_na": False, "na_values": [""], "chunksize": ROWS}
        with pd.read_csv(text, sep=delimiter, **options) as parts:
            yield (_with_own_rows(part, path, delimiter) for part in parts)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        why = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        raise _broken_csv(path, why, delimiter) from error


def _with_own_rows(part: pd.DataFrame, path: Path, delimiter: str) -> pd.DataFrame:
    if not isinstance(part.index, pd.RangeIndex):  # pandas takes a surplus first field for a row name
        raise _broken_csv(path, "the rows have more fields than the header line", delimiter)
    return part


def _broken_csv(path: Path, why: str, delimiter: str) -> DataError:
    return DataError(
        f"'{path.name}' cannot be read as a table: {why}. Its fields are divided by "
        f"{DELIMITERS.get(delimiter, repr(delimiter))}; texts that hold those, quotes or line breaks must stand in "
        "double quotes, with inner quotes doubled."
    )


def find_delimiter(text: str) -> str:
    """What stands between the fields of a CSV: what divides the header line, and most rows into as many fields. A comma
    where nothing does, or several do equally well. Quoted fields may hold anything."""
    return max(DELIMITERS, key=partial(_likeness, text[:SAMPLE_CHARACTERS]))  # the first of equals


def _likeness(sample: str, delimiter: str) -> float:
    """The share of rows that have as many fields as the header; negative where that has one only."""
    sizes: list[int] = []
    with suppress(csv.Error):  # a field without an end: the rows before it must do
        for row in islice(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter), SAMPLE_ROWS):
            sizes += [len(row)] if row else []
    header, *rows = sizes or [0]
    return -1.0 if header < 2 else rows.count(header) / max(1, len(rows))


def _json_rows(text: str, path: Path) -> Iterable[Row]:
    """The rows of a .json file: one list of objects, alone or inside an object, or one object per line."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        with suppress(ValueError, RecursionError):
            if isinstance(json.loads(text.lstrip().partition("\n")[0]), Mapping):
                return _rows_of_lines(text.split("\n"), path, JSON_FORMS)
        raise DataError(f"'{path.name}' is not JSON: {error}. {JSON_FORMS}") from error
    tables = _tables_in(content)
    if len(tables) == 1:
        return tables[0]
    if isinstance(content, Mapping) and not any(isinstance(value, (list, Mapping)) for value in content.values()):
        return [content]
    held = "a list of other things than objects" if isinstance(content, list) else f"one {type(content).__name__}"
    if isinstance(content, Mapping):
        held = f"one object with the keys {textwrap.shorten(', '.join(content), 80, placeholder=' …')}"
    raise DataError(f"'{path.name}' holds {held}, not a table. {JSON_FORMS}")


def _tables_in(content: Any) -> list[list[Row]]:
    """The list itself, or the lists in an object, if their entries are objects; empty ones if there are no others."""
    parts = content.values() if isinstance(content, Mapping) else [content]
    lists = [part for part in parts if isinstance(part, list)]
    tables = [part for part in lists if all(isinstance(row, Mapping) for row in part)]
    return [table for table in tables if table] or tables


def _json_lines(text: Text, path: Path, remedy: str) -> Iterator[Row]:
    return _rows_of_lines(text.lines(), path, remedy)


def _rows_of_lines(lines: Iterable[str], path: Path, remedy: str) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"Line {number} of '{path.name}' is not JSON: {error}. {remedy}") from error
        if not isinstance(row, Mapping):
            raise DataError(f"Line {number} of '{path.name}' is a JSON {type(row).__name__}. {remedy}")
        yield row


def write_tables(rows: Iterable[tuple[str, Row]], folder: Path, names: Iterable[str]) -> dict[str, int]:
    """Sort rows into these files of the folder and move all files into place at the end; counts of their rows. Rows of
    other files are passed over. A file without a row is an error, and then no file is written."""
    counts = dict.fromkeys(names, 0)
    wanted = ((name, row) for name, row in rows if name in counts)
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context((_parquet_writer if name.endswith(".parquet") else _json_writer)(folder / name))
            for name in counts
        }
        while batch := list(islice(wanted, BATCH)):
            for name in {name for name, _ in batch}:
                own = [row for other, row in batch if other == name]
                writers[name](own)
                counts[name] += len(own)
        if empty := ", ".join(name for name, count in counts.items() if not count):
            raise DataError(f"What was fetched holds no rows for {empty}. Is it the published file?")
    return counts


@contextmanager
def _json_writer(path: Path) -> Iterator[Callable[[list[Row]], None]]:
    """JSON lines under gzip."""
    with replacing(path) as temporary, gzip.open(temporary, "wt", encoding="utf-8", compresslevel=6) as file:
        yield lambda rows: file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@contextmanager
def _parquet_writer(path: Path) -> Iterator[Callable[[list[Row]], None]]:
    """The columns are those of the first rows."""
    with replacing(path) as temporary, ExitStack() as stack:
        opened: list[pq.ParquetWriter] = []

        def write(rows: list[Row]) -> None:
            table = pyarrow.Table.from_pylist(rows)
            if not opened:
                opened.append(stack.enter_context(pq.ParquetWriter(temporary, table.schema)))
            opened[0].write_table(table)

        yield write
