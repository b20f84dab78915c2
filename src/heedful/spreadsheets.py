"""Cells of tables that people open in a spreadsheet.

A program such as Excel runs a cell of a CSV file that begins with = + - @ (also in full width), a tab or a line break as
a formula, and texts, words and class names are somebody else's. Such a text gets an apostrophe in front, which
spreadsheets know as the mark of a text. Numbers, texts that are numbers, and a sign that stands alone are no formula and
stay. So that it can be undone, a text that already has apostrophes in front of such a sign gets one more: whoever wants
the texts back takes one apostrophe off each cell that `MARKED` matches. Parquet files hold everything as it is.
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


def inert_table(table: "pd.DataFrame") -> "pd.DataFrame":
    """The same table with such cells and names of columns as texts."""
    import pandas as pd

    shown = table.set_axis([inert(name) for name in table.columns], axis="columns")
    for place, kind in enumerate(table.dtypes):
        if kind == object or isinstance(kind, (pd.StringDtype, pd.CategoricalDtype)):  # others hold no texts
            cells = [inert(cell) for cell in table.iloc[:, place]]
            shown.isetitem(place, pd.Series(cells, index=table.index, dtype=object))
    return shown
