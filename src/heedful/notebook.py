"""How values introduce themselves: in a line of text, and as a `View` in notebooks, on terminals and as a picture.

A view is plain: a title, sentences, tables of words, texts shaded by a number of each unit. Text is data: every string
is escaped. HTML has styles inline and no script, so that a saved notebook shows the same. Pictures are drawn by
`heedful.figures.views`, which is loaded when the first is asked for.
"""

import html
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from heedful.errors import InputError
from heedful.files import TABLES, write_table, write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from rich.console import Group, RenderableType
    from rich.text import Text

AMBER, GREEN, PURPLE = (230, 159, 0), (0, 158, 115), (204, 121, 167)
"""Attention; what speaks for a decision, and against it."""

MOST_NAMES, LONGEST_NAME = 6, 30
MOST_UNITS, LONGEST_UNIT = 40, 160  # of one text
MOST_ROWS, LONGEST_CELL = 30, 400  # of a table
MOST_TEXTS = 3

PICTURES = (".svg", ".pdf", ".png")
"""How names of pictures end."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem}"
)


def short(text: str, longest: int = LONGEST_NAME) -> str:
    """The text in one line, cut where it is too long."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def listed(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """The first names in one line, and how many more there are."""
    more = len(names) - most
    return ", ".join(map(short, names[:most])) + (f" and {more:,} more" if more > 0 else "")


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 text, 2,000 texts."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


@dataclass(frozen=True, kw_only=True)
class Strip:
    """The units of a text, each shaded by its number beside the largest of the text."""

    heading: str
    units: Sequence[str]
    values: Sequence[float]
    signed: bool = False
    """Whether what is below zero speaks against something."""

    def shades(self) -> Iterator[tuple[str, float, float]]:
        """The first units with their numbers and shades, −1 … 1; only of a signed strip any is below zero."""
        largest = max(map(abs, self.values), default=0.0) or 1.0
        for unit, value in list(zip(self.units, self.values, strict=False))[:MOST_UNITS]:
            share = value / largest
            yield unit, value, share if self.signed else max(0.0, share)

    @property
    def rest(self) -> str:
        """How many units are not shown."""
        more = len(self.units) - MOST_UNITS
        return f"… {counted(more, 'unit')} more" if more > 0 else ""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of words, whose first column names its rows; a row without a header is a pair of name and words."""

    rows: Sequence[Sequence[str]]
    header: Sequence[str] = ()

    @property
    def sides(self) -> list[str]:
        """Where the words of each column stand: numbers on the right."""
        width = len(self.header) or max(map(len, self.rows), default=0)
        words = [any(row[place][:1].isalpha() for row in self.rows) for place in range(width)]
        return ["left" if place == 0 or some else "right" for place, some in enumerate(words)]

    @property
    def rest(self) -> str:
        more = len(self.rows) - MOST_ROWS
        return f"… {counted(more, 'row')} more" if more > 0 else ""

    @classmethod
    def pairs(cls, values: Mapping[str, str]) -> "Grid":
        """Names and what they stand for."""
        return cls(rows=list(values.items()))


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """What there is to see of a value at first sight.

    drawing, data: which drawing of `heedful.figures.views` shows it, and the table that it draws; empty: none does.
    """

    title: str
    sentences: Sequence[str] = ()
    parts: Sequence[Strip | Grid] = ()
    drawing: str = ""
    data: "pd.DataFrame | None" = None

    def html(self) -> str:
        """As an element of a page."""
        said = "".join(f"<div>{_escaped(words)}</div>" for words in self.sentences)
        title = f'<div style="line-height:1.6"><strong>{_escaped(self.title)}</strong>'
        return f"{title}{said}{''.join(map(_html_of, self.parts))}</div>"

    def page(self) -> str:
        """As a page of its own, which loads nothing and runs nothing."""
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
            f'content="{POLICY}"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{_escaped(self.title)}</title><style>{STYLE}</style></head>\n<body>{self.html()}</body></html>\n"
        )

    def rich(self) -> "Group":
        """As what `rich` prints on a terminal."""
        from rich.console import Group
        from rich.text import Text

        lines = [Text(short(words, len(words))) for words in self.sentences]
        return Group(Text(short(self.title, len(self.title)), "bold"), *lines, *map(_rich_of, self.parts))

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """As a picture, on these axes or on new ones of matplotlib's."""
        axes: Axes = importlib.import_module("heedful.figures.views").draw(self, ax)
        return axes


class Viewed:
    """A value that has a view."""

    ENDINGS: ClassVar[Sequence[str]] = ()
    """Further endings of the names that it can be written by."""

    @property
    def view(self) -> View:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self.view.html()

    def __rich__(self) -> "Group":
        return self.view.rich()

    def to_html(self) -> str:
        """Its view as a page of HTML that needs nothing else; every string in it is escaped."""
        return self.view.page()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw its view on these axes, or on new ones of matplotlib's, and return them."""
        return self.view.plot(ax)

    def to_frame(self) -> "pd.DataFrame":
        """Its numbers as a table."""
        if self.view.data is None:
            raise InputError(f"There is no table of '{self.view.title}'.")
        return self.view.data

    def save(self, path: Path | str) -> None:
        """Write it by the ending of the name: a table (.csv, .parquet, .tex), a picture (.svg, .pdf, .png), a page
        (.html)."""
        place = Path(path)
        if place.suffix in TABLES:
            write_table(place, self.to_frame())
        elif place.suffix in PICTURES:
            importlib.import_module("heedful.figures.views").save(self.view, place)
        elif place.suffix == ".html":
            write_text(place, self.to_html())
        else:
            *known, last = *TABLES, *PICTURES, ".html", *self.ENDINGS
            raise InputError(f"A name ends in {', '.join(known)} or {last}, not as '{place.name}' does.")


def _html_of(part: Strip | Grid) -> str:
    return _strip(part) if isinstance(part, Strip) else _table(part)


def _strip(part: Strip) -> str:
    shown = [
        f'<span style="background:rgba({",".join(map(str, _colour(shade, part.signed)))},{abs(shade):.2f})" '
        f'title="{value:.4g}">{_escaped(_cut(unit))}</span>'
        for unit, value, shade in part.shades()
    ]
    return (
        f'<div style="margin:.4em 0"><small>{_escaped(part.heading)}</small><br>'
        f'<span style="background:#fff;color:#000;padding:.1em .3em">{" ".join([*shown, part.rest]).rstrip()}</span>'
        "</div>"
    )


def _table(part: Grid) -> str:
    rows = [_row("th", part.header, part.sides)] if part.header else []
    rows += [_row("td", row, part.sides) for row in part.rows[:MOST_ROWS]]
    rest = f"<small>{part.rest}</small>" if part.rest else ""
    return f'<table style="margin:.4em 0">{"".join(rows)}</table>{rest}'


def _row(tag: str, values: Sequence[str], sides: Sequence[str]) -> str:
    cells = [
        f'<{tag} style="text-align:{side};vertical-align:top;padding:.1em 1em .1em 0">{_escaped(value)}</{tag}>'
        for value, side in zip(values, sides, strict=True)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _cut(unit: str) -> str:
    return unit if len(unit) <= LONGEST_UNIT else unit[: LONGEST_UNIT - 1] + "…"


def _escaped(text: str) -> str:
    """As HTML; halves of characters (lone surrogates), which no notebook can hold, become question marks."""
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))


def _colour(shade: float, signed: bool) -> tuple[int, int, int]:
    return PURPLE if shade < 0 else GREEN if signed else AMBER


def _rich_of(part: Strip | Grid) -> "RenderableType":
    return _rich_strip(part) if isinstance(part, Strip) else _rich_table(part)


def _rich_strip(part: Strip) -> "Text":
    from rich.text import Text

    shown = Text().append(f"{short(part.heading, LONGEST_UNIT)}\n", "dim")
    for unit, _, shade in part.shades():
        shown.append(short(unit, LONGEST_UNIT), _on(shade, part.signed)).append(" ")
    return shown.append(part.rest)


def _rich_table(part: Grid) -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_header=bool(part.header))
    for place, side in enumerate(part.sides):
        name = part.header[place] if part.header else ""
        shown.add_column(Text(short(name)), justify="left" if side == "left" else "right")
    for row in part.rows[:MOST_ROWS]:
        shown.add_row(*(Text(short(words, LONGEST_CELL)) for words in row))
    if part.rest:
        shown.add_row(Text(part.rest, "dim"))
    return shown


def _on(shade: float, signed: bool) -> str:
    """Black on white turned into the colour by the shade."""
    mixed = (round(255 + (channel - 255) * abs(shade)) for channel in _colour(shade, signed))
    return "black on #" + "".join(f"{channel:02x}" for channel in mixed)
