"""`python -m benchmarks [NAME …]`: run the named families of measurements, or all, and print one table each."""

import importlib
import sys

from rich.console import Console
from rich.table import Table

FAMILIES = ("training", "recurrent", "recording", "memory", "tokenizing", "erasure", "manipulation", "sweep", "serving")


def show(name: str, rows: list[dict[str, str]]) -> None:
    table = Table(title=name, title_justify="left")
    for column in rows[0]:
        table.add_column(column, justify="left" if column == "what" else "right")
    for row in rows:
        table.add_row(*row.values())
    Console(width=110).print(table)


def main(names: list[str]) -> None:
    for name in names or FAMILIES:
        show(name, importlib.import_module(f"benchmarks.{name}").rows())


if __name__ == "__main__":
    main(sys.argv[1:])
