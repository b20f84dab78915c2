"""Tables from files, CSV, TSV, JSON, JSON lines (plain or gzip) and Parquet; and tables written whole or not at all."""

import codecs
import csv
import gzip
import io
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet

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

BATCH = 10_000  # rows that are written at once
Row = Mapping[str, Any]
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def writable(value: object) -> object:
    """A text with U+FFFD for each half of a character (lone surrogate), which no file can hold; else the value."""
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


def read_table(path: Path, *, encoding: str = "utf-8") -> pd.DataFrame:
    """The file's rows and columns, as they are."""
    if not is_file(path):
        folder = ", but a folder of that name" if is_folder(path) else ""
        raise DataError(
            f"There is no file '{path}'{folder}. Give a path to one of {', '.join(FORMATS)}, or a corpus name."
        )
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if f".{kind}" not in FORMATS:
        raise DataError(f"'{path.name}' is none of the formats that can be read: {', '.join(FORMATS)}.")
    table = _read_parquet(path) if kind == "parquet" else _parse(_decode(path, encoding), path, kind)
    if table.empty:
        raise DataError(f"'{path.name}' has no rows. A header line and at least a few labelled texts are needed.")
    return table


def _read_parquet(path: Path) -> pd.DataFrame:
    with border(f"The Parquet file '{path.name}'", DataError, "Is it complete?"):
        return pd.read_parquet(path)


def _decode(path: Path, encoding: str) -> str:
    with border(f"'{path.name}'", DataError, "Is the file complete?"):
        data = _unpacked(path) if path.suffix.lower() == ".gz" else path.read_bytes()
    if what := next((what for start, what in NOT_TEXT.items() if data.startswith(start)), None):
        raise DataError(f"'{path.name}' {what}")
    try:
        plain = codecs.lookup(encoding).name == "utf-8"
    except (LookupError, ValueError) as error:
        raise _no_encoding(encoding) from error
    try:
        if plain and (data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:2]):
            raise DataError(f"'{path.name}' is UTF-16. {_give('utf-16')}, or save it as UTF-8.")
        return data.decode("utf-8-sig" if plain else encoding)
    except UnicodeError as error:
        where = f": byte {error.start} is {data[error.start]:#04x}" if isinstance(error, UnicodeDecodeError) else ""
        raise DataError(
            f"'{path.name}' is not {encoding} text{where}. {_give('cp1252')}, if it comes from Windows (other common "
            "encodings: latin-1, utf-16), or save it as UTF-8."
        ) from error
    except LookupError as error:  # such as hex, which is no encoding of text
        raise _no_encoding(encoding) from error


def _unpacked(path: Path) -> bytes:
    """What a gzip file holds, read piece by piece; one that grows as no texts do is refused before it fills memory."""
    most, pieces, size = max(LEAST_LIMIT, GROWTH.most * path.stat().st_size), [], 0
    with gzip.open(path) as file:
        while piece := file.read(1 << 24):
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise DataError(
                    f"'{path.name}' unpacks to more than {GROWTH.most} times its size, as texts never do. "
                    f"{GROWTH.remedy}"
                )
    return b"".join(pieces)


def _no_encoding(name: str) -> DataError:
    return DataError(f"There is no text encoding '{name}'. Common ones: {', '.join(ENCODINGS)}.")


def _give(encoding: str) -> str:
    return f"Give its encoding: --encoding {encoding}, in Python encoding='{encoding}'"


def _parse(text: str, path: Path, kind: str) -> pd.DataFrame:
    if not text.strip():
        return pd.DataFrame()
    if kind in {"csv", "tsv"}:
        return _parse_csv(text, path, kind)
    rows = _json_rows(text, path) if kind == "json" else _json_lines(text, path, "Each line must be one object.")
    return pd.DataFrame([{writable(name): writable(value) for name, value in row.items()} for row in rows])


def _parse_csv(text: str, path: Path, kind: str) -> pd.DataFrame:
    announced = re.match(r"sep=(.)\r?\n", text, re.IGNORECASE)  # by which spreadsheets tell each other the delimiter
    text = text[announced.end() :] if announced else text
    delimiter = announced[1] if announced else "\t" if kind == "tsv" else find_delimiter(text)
    try:
        # Labels keep their spelling; only the empty string is missing, so that a review 'NA' stays a text.
        table = pd.read_csv(io.StringIO(text), sep=delimiter, dtype=str, keep_default_na=False, na_values=[""])
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        why = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        raise _broken_csv(path, why, delimiter) from error
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes a surplus first field for a row name
        raise _broken_csv(path, "the rows have more fields than the header line", delimiter)
    return table


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
                return _json_lines(text, path, JSON_FORMS)
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


def _json_lines(text: str, path: Path, remedy: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
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
        opened: list[pyarrow.parquet.ParquetWriter] = []

        def write(rows: list[Row]) -> None:
            table = pyarrow.Table.from_pylist(rows)
            if not opened:
                opened.append(stack.enter_context(pyarrow.parquet.ParquetWriter(temporary, table.schema)))
            opened[0].write_table(table)

        yield write
