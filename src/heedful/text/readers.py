"""Tables of labelled text from files: CSV, TSV, JSON lines (plain or gzip) and Parquet."""

import codecs
import gzip
import io
import json
import re
import textwrap
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from heedful.errors import DataError

TEXT_COLUMNS = ("text", "review", "sentence", "content", "body", "document", "comment", "tweet", "message", "question")
LABEL_COLUMNS = ("label", "labels", "class", "category", "sentiment", "stars", "rating", "target", "polarity", "topic")
SPLIT_COLUMNS = ("split", "fold", "partition", "subset", "set")

FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz", ".ndjson.gz")

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def writable(value: object) -> object:
    """A text with U+FFFD for each half of a character (lone surrogate), which no file can hold; else the value."""
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


def read_table(path: Path, *, encoding: str = "utf-8") -> pd.DataFrame:
    """The file's rows and columns, as they are."""
    if not path.is_file():
        raise DataError(f"There is no file '{path}'. Give a path to one of {', '.join(FORMATS)}, or a corpus name.")
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind not in {"csv", "tsv", "jsonl", "ndjson", "json", "parquet"}:
        raise DataError(f"'{path.name}' is none of the formats that can be read: {', '.join(FORMATS)}.")
    table = _read_parquet(path) if kind == "parquet" else _parse(_decode(path, encoding), path, kind)
    if table.empty:
        raise DataError(f"'{path.name}' has no rows. A header line and at least a few labelled texts are needed.")
    return table


def _decode(path: Path, encoding: str) -> str:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"'{path.name}' cannot be read: {error}. Is the file complete?") from error
    try:
        plain = codecs.lookup(encoding).name == "utf-8"
        if plain and (data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:2]):
            raise DataError(f"'{path.name}' is UTF-16. Give encoding 'utf-16', or save it as UTF-8.")
        return data.decode("utf-8-sig" if plain else encoding)
    except LookupError as error:
        raise DataError(f"There is no text encoding '{encoding}'. Common ones: utf-8, latin-1, cp1252.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"'{path.name}' is not {encoding} text: byte {error.start} is {data[error.start]:#04x}. "
            "Give its encoding (often latin-1 or cp1252), or save it as UTF-8."
        ) from error


def _parse(text: str, path: Path, kind: str) -> pd.DataFrame:
    if not text.strip():
        return pd.DataFrame()
    return _parse_json_lines(text, path) if "json" in kind else _parse_csv(text, path, "\t" if kind == "tsv" else ",")


def _parse_csv(text: str, path: Path, separator: str) -> pd.DataFrame:
    try:
        # Labels keep their spelling; only the empty string is missing, so that a review 'NA' stays a text.
        table = pd.read_csv(io.StringIO(text), sep=separator, dtype=str, keep_default_na=False, na_values=[""])
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise _broken_csv(path, str(error).strip()) from error
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes a surplus first field for a row name
        raise _broken_csv(path, "the rows have more fields than the header line")
    return table


def _broken_csv(path: Path, why: str) -> DataError:
    return DataError(
        f"'{path.name}' cannot be read as a table: {why}. "
        "Texts with commas, quotes or line breaks must stand in double quotes, with inner quotes doubled."
    )


def _parse_json_lines(text: str, path: Path) -> pd.DataFrame:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"Line {number} of '{path.name}' is not JSON: {error}. Each line must be one object."
            ) from error
        if not isinstance(row, Mapping):
            kind = type(row).__name__
            raise DataError(f"Line {number} of '{path.name}' is a JSON {kind}. Each line must be one object.")
        rows.append({writable(name): writable(value) for name, value in row.items()})
    return pd.DataFrame(rows)


def _read_parquet(path: Path) -> pd.DataFrame:
    import pyarrow

    try:
        return pd.read_parquet(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"'{path.name}' is not a readable Parquet file: {error}") from error


def find_column(table: pd.DataFrame, given: str | None, known: Sequence[str], what: str) -> str:
    """The column asked for, or the one whose name is a usual name for what is needed."""
    columns = [str(column) for column in table.columns]
    by_name = {column.strip().lower(): column for column in columns}
    found = given if given is not None else next((by_name[name] for name in known if name in by_name), None)
    if found is None:
        raise DataError(
            f"No column looks like the {what}. Name it, or call it one of {', '.join(known)}. "
            f"Columns: {_shorten(columns)}."
        )
    if found not in columns:
        raise DataError(f"There is no column '{found}'. Columns: {_shorten(columns)}.")
    if columns.count(found) > 1:
        raise DataError(f"There are {columns.count(found)} columns '{found}'. Rename all but the one that is meant.")
    return found


def _shorten(columns: Sequence[str]) -> str:
    """The names in one line: a file without a header line has whole texts for names."""
    return textwrap.shorten(", ".join(columns), 200, placeholder=" …")
