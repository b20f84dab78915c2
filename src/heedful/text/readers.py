"""Tables of labelled text from files: CSV, TSV, JSON lines (plain or gzip) and Parquet."""

import gzip
import io
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from heedful.errors import DataError

TEXT_COLUMNS = ("text", "review", "sentence", "content", "body", "document", "comment", "tweet", "message", "question")
LABEL_COLUMNS = ("label", "labels", "class", "category", "sentiment", "stars", "rating", "target", "polarity", "topic")
SPLIT_COLUMNS = ("split", "fold", "partition", "subset", "set")

FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz", ".ndjson.gz")


def read_table(path: Path, *, encoding: str = "utf-8") -> pd.DataFrame:
    """The file's rows and columns, as they are."""
    if not path.is_file():
        raise DataError(f"There is no file '{path}'. Give a path to one of {', '.join(FORMATS)}, or a corpus name.")
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        return _read_parquet(path)
    if kind not in {"csv", "tsv", "jsonl", "ndjson", "json"}:
        raise DataError(f"'{path.name}' is none of the formats that can be read: {', '.join(FORMATS)}.")
    text = _decode(path, encoding)
    table = _parse_json_lines(text, path) if "json" in kind else _parse_csv(text, path, "\t" if kind == "tsv" else ",")
    if table.empty:
        raise DataError(f"'{path.name}' has no rows. A header line and at least a few labelled texts are needed.")
    return table


def _decode(path: Path, encoding: str) -> str:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"'{path.name}' cannot be read: {error}. Is the file complete?") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) and encoding == "utf-8":
        raise DataError(f"'{path.name}' is UTF-16. Give encoding 'utf-16', or save it as UTF-8.")
    try:
        return data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except LookupError as error:
        raise DataError(f"There is no text encoding '{encoding}'. Common ones: utf-8, latin-1, cp1252.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"'{path.name}' is not {encoding} text: byte {error.start} is {data[error.start]:#04x}. "
            "Give its encoding (often latin-1 or cp1252), or save it as UTF-8."
        ) from error


def _parse_csv(text: str, path: Path, separator: str) -> pd.DataFrame:
    try:
        # Labels keep their spelling; only the empty string is missing, so that a review 'NA' stays a text.
        return pd.read_csv(io.StringIO(text), sep=separator, dtype=str, keep_default_na=False, na_values=[""])
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise DataError(
            f"'{path.name}' cannot be read as a table: {str(error).strip()}. "
            "Texts with commas, quotes or line breaks must stand in double quotes, with inner quotes doubled."
        ) from error


def _parse_json_lines(text: str, path: Path) -> pd.DataFrame:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"Line {number} of '{path.name}' is not JSON: {error}.") from error
        if not isinstance(row, Mapping):
            raise DataError(f"Line {number} of '{path.name}' is not a JSON object but {type(row).__name__}.")
        rows.append(row)
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
    if given is not None:
        if given in columns:
            return given
        raise DataError(f"There is no column '{given}'. Columns: {', '.join(columns)}.")
    by_name = {column.strip().lower(): column for column in columns}
    for name in known:
        if name in by_name:
            return by_name[name]
    raise DataError(
        f"No column looks like the {what}. Name it, or call it one of {', '.join(known)}. "
        f"Columns: {', '.join(columns)}."
    )
