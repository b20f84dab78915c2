"""Tables written row by row, whole or not at all: JSON lines under gzip, and Parquet for what is large."""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow
import pyarrow.parquet

from heedful.errors import DataError
from heedful.files import replacing

_BATCH = 10_000


class Writer(Protocol):
    """Takes one row after the other."""

    def __call__(self, row: Mapping[str, Any], /) -> None: ...


def write_tables(rows: Iterable[tuple[str, Mapping[str, Any]]], folder: Path, names: Iterable[str]) -> dict[str, int]:
    """Sort rows into these files of the folder and move all files into place at the end; counts of their rows.

    Rows of other files are passed over. A file without a row is an error, and then no file is written.
    """
    counts = dict.fromkeys(names, 0)
    with ExitStack() as stack:
        writers = {name: stack.enter_context(_writer(folder / name)) for name in counts}
        for name, row in rows:
            if name in counts:
                writers[name](row)
                counts[name] += 1
        empty = [name for name, count in counts.items() if not count]
        if empty:
            raise DataError(f"What was fetched holds no rows for {', '.join(empty)}. Is it the published file?")
    return counts


def _writer(path: Path) -> AbstractContextManager[Writer]:
    return _parquet(path) if path.suffix == ".parquet" else _json_lines(path)


@contextmanager
def _json_lines(path: Path) -> Iterator[Writer]:
    with replacing(path) as temporary, gzip.open(temporary, "wt", encoding="utf-8", compresslevel=6) as file:

        def write(row: Mapping[str, Any]) -> None:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

        yield write


@contextmanager
def _parquet(path: Path) -> Iterator[Writer]:
    """Batches of rows; the columns are those of the first batch."""
    with replacing(path) as temporary, ExitStack() as stack:
        held: list[Mapping[str, Any]] = []
        opened: list[pyarrow.parquet.ParquetWriter] = []

        def flush() -> None:
            table = pyarrow.Table.from_pylist(held)
            if not opened:
                opened.append(stack.enter_context(pyarrow.parquet.ParquetWriter(temporary, table.schema)))
            opened[0].write_table(table)
            held.clear()

        def write(row: Mapping[str, Any]) -> None:
            held.append(row)
            if len(held) == _BATCH:
                flush()

        yield write
        if held:
            flush()
