"""Cells of tables that people open in a spreadsheet.

A program such as Excel runs a cell of a CSV file that begins with = + - @ (also in full width), a tab or a line break,
and texts, words and class names are somebody else's. Such a text gets an apostrophe in front, which spreadsheets know
as the mark of a text. Numbers, texts that are numbers, and a sign that stands alone are no formula and stay. So that it
can be undone, a text that already has apostrophes in front of such a sign gets one more: whoever wants the texts back
takes one apostrophe off each cell that `MARKED` matches. Parquet files hold everything as it is.
"""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_SIGNS = "=+\\-@\t\r\n＝＋－＠"
_BEGINS = re.compile(f"'*[{_SIGNS}]")
_HARMLESS = re.compile(r"[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[^']")

MARKED = re.compile(f"'+[{_SIGNS}]")
"""How a cell begins from which `inert` is undone by taking its first letter off."""


def inert(cell: Any) -> Any:
    """The cell, as a text where a spreadsheet would run it.

    >>> inert("=HYPERLINK(1)"), inert("-0.5"), inert("-"), inert("'=1"), inert(-0.5)
    ("'=HYPERLINK(1)", '-0.5', '-', "''=1", -0.5)
    """
    runs = isinstance(cell, str) and _BEGINS.match(cell) and not _HARMLESS.fullmatch(cell)
    return f"'{cell}" if runs else cell


def as_csv(table: "pd.DataFrame") -> str:
    """The table as a CSV file in which such cells and names of columns are texts.

    Lines end as Unix has it, or with CR LF where a text holds a carriage return: Python quotes one only then, and what
    follows one that is not quoted would begin a row.
    """
    import pandas as pd

    shown = table.set_axis([inert(name) for name in table.columns], axis="columns")
    returns = any("\r" in str(name) for name in table.columns)
    for place, kind in enumerate(table.dtypes):
        if kind.kind == "O":  # others hold no texts
            cells = [inert(cell) for cell in table.iloc[:, place]]
            shown.isetitem(place, pd.Series(cells, dtype=object).array)
            returns = returns or any("\r" in str(cell) for cell in cells)
    return shown.to_csv(index=False, lineterminator="\r\n" if returns else "\n")
