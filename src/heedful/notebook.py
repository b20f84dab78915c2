"""How values introduce themselves: in one line of text, and as a little HTML in a notebook.

Takes plain values. Text is data: every string is escaped. Styles are inline and there is no script, so that a saved
notebook shows the same.
"""

import html
from collections.abc import Mapping, Sequence

AMBER = "230,159,0"
MOST_NAMES, LONGEST_NAME = 6, 30
MOST_UNITS, LONGEST_UNIT = 40, 160  # of one text


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


def panel(title: str, *parts: str) -> str:
    """A title over parts that are HTML already."""
    return f'<div style="line-height:1.6"><strong>{_escaped(title)}</strong>{"".join(parts)}</div>'


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of numbers whose first column names its rows."""
    sides = ["left", *["right"] * (len(header) - 1)]
    return _table([_row("th", header, sides), *(_row("td", row, sides) for row in rows)])


def pairs(values: Mapping[str, str]) -> str:
    """A table of names and what they stand for."""
    return _table([_row("td", pair, ["left", "left"]) for pair in values.items()])


def sentences(lines: Sequence[str]) -> str:
    """Each line as an item of a list; nothing where there is none."""
    items = "".join(f"<li>{_escaped(line)}</li>" for line in lines)
    return items and f'<ul style="margin:.4em 0">{items}</ul>'


def strip(heading: str, units: Sequence[str], weights: Sequence[float]) -> str:
    """The first units of a text, each on amber as strong as its weight beside the text's largest."""
    largest = max(weights, default=0.0) or 1.0
    cut = [unit if len(unit) <= LONGEST_UNIT else unit[: LONGEST_UNIT - 1] + "…" for unit in units[:MOST_UNITS]]
    shown = [
        f'<span style="background:rgba({AMBER},{weight / largest:.2f})" title="{weight:.4f}">{_escaped(text)}</span>'
        for text, weight in zip(cut, weights, strict=False)
    ]
    more = [f"… {counted(len(units) - MOST_UNITS, 'unit')} more"] if len(units) > MOST_UNITS else []
    return (
        f'<div style="margin:.4em 0"><small>{_escaped(heading)}</small><br>'
        f'<span style="background:#fff;color:#000;padding:.1em .3em">{" ".join([*shown, *more])}</span></div>'
    )


def _table(rows: Sequence[str]) -> str:
    return f'<table style="margin:.4em 0">{"".join(rows)}</table>'


def _row(tag: str, values: Sequence[str], sides: Sequence[str]) -> str:
    cells = [
        f'<{tag} style="text-align:{side}">{_escaped(value)}</{tag}>' for value, side in zip(values, sides, strict=True)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _escaped(text: str) -> str:
    """As HTML; halves of characters (lone surrogates), which no notebook can hold, become question marks."""
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))
