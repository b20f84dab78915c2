"""Files that are whole or absent: everything heedful writes goes to a temporary name first and is moved into place."""

import json
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heedful.errors import StoreError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` to write a file or a folder to; moved into place when the block ends well."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"'{path.parent}' cannot be created: {error.strerror}.") from error
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.part"
    try:
        yield temporary
        if path.is_dir() and temporary.is_dir():
            shutil.rmtree(path)
        temporary.replace(path)
    except OSError as error:
        raise StoreError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StoreError(f"There is no file '{path}'.") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"'{path}' is not readable JSON: {error}.") from error
