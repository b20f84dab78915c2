"""Tables as files: CSV for people, Parquet for programs, LaTeX for papers, Markdown for documentation."""

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from heedful.files import replacing, write_text

LATEX_ROWS = 200  # a longer table is for programs; its LaTeX form holds the first rows only


def save_tables(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Every table under its name."""
    for name, table in tables.items():
        save_table(table, folder / name)


def save_table(table: pd.DataFrame, stem: Path) -> None:
    """The table as CSV, Parquet and LaTeX beside each other."""
    with replacing(stem.with_name(f"{stem.name}.csv")) as temporary:
        table.to_csv(temporary, index=False)
    with replacing(stem.with_name(f"{stem.name}.parquet")) as temporary:
        table.to_parquet(temporary, index=False)
    write_text(stem.with_name(f"{stem.name}.tex"), as_latex(table))


def as_latex(table: pd.DataFrame) -> str:
    """A booktabs table with escaped cells."""
    columns = [_escape(str(column)) for column in table.columns]
    lines = [r"\begin{tabular}{" + "l" * len(columns) + "}", r"\toprule", " & ".join(columns) + r" \\", r"\midrule"]
    for row in table.head(LATEX_ROWS).itertuples(index=False):
        lines.append(" & ".join(_cell(value) for value in row) + r" \\")
    if len(table) > LATEX_ROWS:
        lines.append(f"% the first {LATEX_ROWS} of {len(table)} rows; the CSV and Parquet files have all")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def as_markdown(table: pd.DataFrame, note: str = "") -> str:
    """A table of words with a note below; pipes are escaped."""
    rows = [list(table.columns), ["---"] * len(table.columns), *table.to_numpy().tolist()]
    lines = ["| " + " | ".join(str(cell).replace("|", r"\|") for cell in row) + " |" for row in rows]
    return "\n".join([*lines, *(["", note] if note else []), ""])


def _cell(value: object) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "--"
    return f"{value:.4g}" if isinstance(value, float) else _escape(str(value))


_MATHS = {"α": "alpha", "β": "beta", "λ": "lambda", "ρ": "rho", "Δ": "Delta", "Ω": "Omega", "≥": "geq", "≤": "leq"}
_SPECIAL = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "–": "--"}
    | {"→": r"$\to$", "×": r"$\times$"}
    | {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {sign: f"$\\{name}$" for sign, name in _MATHS.items()}
)


def _escape(text: str) -> str:
    return text.translate(_SPECIAL)
