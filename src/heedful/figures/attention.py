"""Where a network looks, as a grid: a row for each step, a column for each place, the known source framed."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle

from heedful.figures import style

CELL = 0.27
"""Inches of a cell that holds no words."""
LETTER = 0.085
"""Inches of a letter of a label."""
FRAME: dict[str, Any] = {"fill": False, "edgecolor": style.BLACK, "linewidth": 1.1}


@style.house_style()
def attention_grid(table: pd.DataFrame) -> Canvas:
    """Columns look, row, column, weight, source, row_word, column_word, word (what stands in the cell, or nothing)."""
    looks = list(dict.fromkeys(table["look"]))
    parts = [table[table["look"] == look] for look in looks]
    width = max(_width(part) for part in parts)
    heights = [_height(part) for part in parts]
    canvas = Canvas(figsize=(width, sum(heights)), layout=ConstrainedLayoutEngine(h_pad=0.06))
    axes = canvas.subplots(len(parts), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for axis, look, part in zip(axes, looks, parts, strict=True):
        _draw(axis, part)
        if look:
            axis.set_title(look, fontsize=9, color=style.SOFT, fontweight="normal")
    return canvas


def _draw(axis: Axes, part: pd.DataFrame) -> None:
    rows, columns = _words(part, "row"), _words(part, "column")
    cells = part[["column", "row", "weight", "source", "word"]].to_numpy().tolist()
    for column, row, weight, source, word in cells:
        colour = tuple(share / 255 for share in style.mixed(style.ATTENDED, min(1.0, weight)))
        axis.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, linewidth=0))
        if word:
            axis.text(column + 0.5, row + 0.5, word, ha="center", va="center", fontsize=7)
        if source:
            axis.add_patch(Rectangle((column + 0.06, row + 0.06), 0.88, 0.88, zorder=3, **FRAME))
    axis.set(xlim=(0, len(columns)), ylim=(len(rows), 0), aspect="auto" if part["word"].any() else "equal")
    axis.set_xticks([place + 0.5 for place in range(len(columns))], columns, rotation=_turned(columns), fontsize=8)
    axis.set_yticks([place + 0.5 for place in range(len(rows))], rows, fontsize=8)
    axis.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axis.grid(False)
    axis.spines[:].set(visible=True, color="#CFCFCF")


def _words(part: pd.DataFrame, axis: str) -> list[str]:
    """What stands at the rows or columns, in their order."""
    return [str(word) for word in part.drop_duplicates(axis).sort_values(axis)[f"{axis}_word"]]


def _turned(words: Sequence[str]) -> int:
    return 60 if max(map(len, words), default=0) > 2 else 0


def _cell(part: pd.DataFrame) -> float:
    longest = max((len(str(word)) for word in part["word"]), default=0)
    return max(CELL, LETTER * 0.85 * longest + 0.1) if longest else CELL


def _width(part: pd.DataFrame) -> float:
    left = LETTER * max(map(len, _words(part, "row")))
    return 0.5 + left + _cell(part) * len(_words(part, "column"))


def _height(part: pd.DataFrame) -> float:
    columns = _words(part, "column")
    above = LETTER * max(map(len, columns)) * 0.9 if _turned(columns) else 0.15
    return 0.45 + above + CELL * len(_words(part, "row"))
