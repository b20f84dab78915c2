"""Options that several commands share, and printing."""

import json
from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
StoreRoot = Annotated[Path, typer.Option("--store", envvar="HEEDFUL_STORE", help="The folder of runs.")]
RunName = Annotated[str, typer.Argument(help="A run: the name of its directory, or the beginning of it.")]


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))
