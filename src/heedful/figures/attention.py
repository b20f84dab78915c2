"""Where a network looks, as a grid: a row for each step, a column for each place, the known source framed.

A look of a single step is a list instead, downwards, beside whatever has the same words at its rows: the facts of a
story with a column for each hop, sentences before the words in them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from heedful.figures import style

CELL = 0.27
"""Inches of a cell that holds no words."""
LETTER = 0.072
"""Inches of a letter of a label."""
HEAD, GAP, EDGE = 0.32, 0.12, 0.12
"""Inches above all, between what belongs together, and around."""
MOST_LETTERS = 24
"""Of the words in a cell; longer ones are cut."""
TURN = 55
FRAME: dict[str, Any] = {"fill": False, "edgecolor": style.BLACK, "linewidth": 1.1}


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A look as it is drawn."""

    rows: list[str]
    columns: list[str]
    cells: list[tuple[int, int, float, bool, str]]
    """Column, row, weight, whether it is a source, and what stands in it."""
    title: str = ""

    @property
    def cell(self) -> float:
        """How wide one is: as its words need, or the one label of a list."""
        longest = max((len(word) for *_, word in self.cells), default=0)
        inside = LETTER * 0.9 * longest + 0.12 if longest else CELL
        return max(CELL, inside, LETTER * len(self.columns[0]) if _is_list(self) else 0.0)

    @property
    def width(self) -> float:
        return self.cell * len(self.columns)

    @property
    def left(self) -> float:
        return 0.12 + LETTER * max(map(len, self.rows))

    @property
    def above(self) -> float:
        """Of the labels of its columns, which are turned where one is long, and of its title."""
        longest = max(map(len, self.columns))
        return (0.15 + 0.85 * LETTER * longest if self._turned else 0.25) + (0.22 if self.title else 0)

    @property
    def right(self) -> float:
        """How far the last label reaches beyond the cells."""
        return max(0.0, 0.62 * LETTER * len(self.columns[-1]) - 0.6 * self.cell) if self._turned else 0.0

    @property
    def _turned(self) -> bool:
        return max(map(len, self.columns)) * LETTER > self.cell

    def draw(self, axis: Axes, labelled: bool) -> None:
        for column, row, weight, source, word in self.cells:
            colour = tuple(share / 255 for share in style.mixed(style.ATTENDED, min(1.0, weight)))
            axis.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, linewidth=0))
            if word:
                axis.text(column + 0.5, row + 0.5, word, ha="center", va="center", fontsize=7)
            if source:
                inset = 0.06 * CELL / self.cell
                frame = Rectangle((column + inset, row + 0.06), 1 - 2 * inset, 0.88, zorder=3, **FRAME)
                axis.add_patch(frame)
        axis.set(xlim=(0, len(self.columns)), ylim=(len(self.rows), 0))
        turned: dict[str, Any] = {"rotation": TURN, "ha": "left", "rotation_mode": "anchor"} if self._turned else {}
        axis.set_xticks([place + 0.5 for place in range(len(self.columns))], self.columns, fontsize=8, **turned)
        rows = self.rows if labelled else []
        axis.set_yticks([place + 0.5 for place in range(len(rows))], rows, fontsize=8)
        axis.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        axis.grid(False)
        axis.spines[:].set(visible=True, color="#CFCFCF")


@style.house_style()
def attention_grid(table: pd.DataFrame) -> Canvas:
    """Columns look, row, column, weight, source, row_word, column_word, word (what stands in the cell, or nothing)."""
    lines = list(_lines([_panel(part, str(look)) for look, part in table.groupby("look", sort=False)]))
    heights = [max(one.above for one in line) + CELL * max(len(one.rows) for one in line) for line in lines]
    width = 2 * EDGE + max(sum(_left(line, place) + one.width for place, one in enumerate(line)) + line[-1].right
                           for line in lines)  # fmt: skip
    height = HEAD + sum(heights) + GAP * (len(lines) - 1) + EDGE
    canvas = Canvas(figsize=(width, height))
    top = HEAD
    for line, tall in zip(lines, heights, strict=True):
        above, left = max(one.above for one in line), EDGE
        for place, one in enumerate(line):
            left += _left(line, place)
            tall_of_it = CELL * len(one.rows)
            bottom = height - top - above - tall_of_it
            axis = canvas.add_axes((left / width, bottom / height, one.width / width, tall_of_it / height))
            one.draw(axis, labelled=not _shared(line, place))
            if one.title:
                up = (one.above - 0.1) / tall_of_it
                axis.text(0, 1 + up, one.title, transform=axis.transAxes, fontsize=9, color=style.SOFT, va="top")
            left += one.width
        top += tall + GAP
    return canvas


def _panel(part: pd.DataFrame, look: str) -> Panel:
    rows, columns = _words(part, "row"), _words(part, "column")
    parts = part[["column", "row", "weight", "source", "word"]].to_numpy().tolist()
    cells = [
        (int(column), int(row), float(weight), bool(source), _cut(str(word)))
        for column, row, weight, source, word in parts
    ]
    if len(rows) > 1 or len(columns) == 1:
        return Panel(rows=rows, columns=columns, cells=cells, title=look)
    turned = [(row, column, weight, source, word) for column, row, weight, source, word in cells]
    return Panel(rows=columns, columns=rows, cells=turned)


def _lines(panels: Sequence[Panel]) -> Iterator[list[Panel]]:
    """Panels that stand beside each other: those with the same words at their rows, and lists."""
    line: list[Panel] = []
    for one in panels:
        if line and one.rows != line[-1].rows and not (_is_list(one) and _is_list(line[-1])):
            yield line
            line = []
        line.append(one)
    yield line


def _is_list(panel: Panel) -> bool:
    return len(panel.columns) == 1


def _shared(line: Sequence[Panel], place: int) -> bool:
    """Whether the words at the rows stand before the panel to the left already."""
    return place > 0 and line[place].rows == line[place - 1].rows


def _left(line: Sequence[Panel], place: int) -> float:
    """What lies before the cells of a panel: its words, or a gap and what the labels before it need."""
    before = line[place - 1].right if place else 0.0
    return before + (GAP if _shared(line, place) else line[place].left + (2 * GAP if place else 0.0))


def _words(part: pd.DataFrame, axis: str) -> list[str]:
    """What stands at the rows or columns, in their order."""
    return [str(word) for word in part.drop_duplicates(axis).sort_values(axis)[f"{axis}_word"]]


def _cut(word: str) -> str:
    return word if len(word) <= MOST_LETTERS else word[: MOST_LETTERS - 1] + "…"
