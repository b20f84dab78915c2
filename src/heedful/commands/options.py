"""Options that several commands share, and printing."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
StoreRoot = Annotated[Path, typer.Option("--store", envvar="HEEDFUL_STORE", help="The folder of runs.")]
AllUnits = Annotated[bool, typer.Option("--all", help="Show every unit of a long text; --json has all of them.")]
RunName = Annotated[str, typer.Argument(help="A run: the name of its directory, or the beginning of it.")]


def print_json(value: object) -> None:
    """Strict JSON: what is not a number is null."""
    print(json.dumps(_without_nan(value), indent=2, ensure_ascii=False, default=str, allow_nan=False))


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
