"""Tables as files: CSV for people, Parquet for programs, LaTeX for papers, Markdown for documentation."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from heedful.files import TABLES, write_table
from heedful.latex import LATEX_ROWS as LATEX_ROWS
from heedful.latex import as_latex as as_latex


def save_tables(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Every table under its name."""
    for name, table in tables.items():
        save_table(table, folder / name)


def save_table(table: pd.DataFrame, stem: Path) -> None:
    """The table as CSV, Parquet and LaTeX beside each other."""
    for ending in TABLES:
        write_table(stem.with_name(f"{stem.name}{ending}"), table)


def as_markdown(table: pd.DataFrame, note: str = "") -> str:
    """A table of words with a note below; pipes are escaped."""
    rows = [list(table.columns), ["---"] * len(table.columns), *table.to_numpy().tolist()]
    lines = ["| " + " | ".join(str(cell).replace("|", r"\|") for cell in row) + " |" for row in rows]
    return "\n".join([*lines, *(["", note] if note else []), ""])
