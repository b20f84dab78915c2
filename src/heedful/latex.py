"""Tables as LaTeX, for papers: booktabs, every cell escaped."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

LATEX_ROWS = 200  # a longer table is for programs; its LaTeX form holds the first rows only


def as_latex(table: "pd.DataFrame") -> str:
    """A booktabs table with escaped cells."""
    columns = [_escape(str(column)) for column in table.columns]
    lines = [r"\begin{tabular}{" + "l" * len(columns) + "}", r"\toprule", " & ".join(columns) + r" \\", r"\midrule"]
    for row in table.head(LATEX_ROWS).itertuples(index=False):
        lines.append(" & ".join(_cell(value) for value in row) + r" \\")
    if len(table) > LATEX_ROWS:
        lines.append(f"% the first {LATEX_ROWS} of {len(table)} rows; the CSV and Parquet files have all")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _cell(value: object) -> str:
    if value is None or str(value) == "<NA>" or (isinstance(value, float) and math.isnan(value)):
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
