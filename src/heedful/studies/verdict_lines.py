"""Verdicts and tables on the terminal, the same of audits, erasures and studies."""

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.claims import Decision, Verdict

COLOURS = {"yes": "green", "no": "red", "not shown": "yellow"}
INDENT = 2


def mark(decision: Decision, width: int = 0) -> Text:
    """Yes, no or not shown, in its colour."""
    return Text(f"{decision:{width}}", COLOURS[decision])


def print_verdict(screen: Console, verdict: Verdict) -> None:
    """The claim as the paper states it, whether it is shown, and what these data say."""
    print_below(screen, Text(f"{verdict.claim:5}"), Text(f"{verdict.statement} ", "italic") + mark(verdict.decision))
    print_below(screen, Text(" " * 5), Text(verdict.words) + Text(f" {interval_words(verdict)}".rstrip(), "dim"))


def interval_words(verdict: Verdict) -> str:
    """The number behind a verdict, its interval, the line it is judged by, and what it rests on."""
    found = verdict.estimate
    if found is None or not verdict.known:
        return ""
    number = f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
    return f"({number}, line at {verdict.threshold:.3g}; {verdict.evidence})"


def print_below(screen: Console, mark: Text, words: Text) -> None:
    """A mark, and words that stay to the right of it in every line."""
    row = Table.grid(padding=(0, 1))
    row.add_column(no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(Text(" " * INDENT) + mark, words)
    screen.print(row)


def print_below_each_other(screen: Console, *tables: pd.DataFrame) -> None:
    """Tables of words, one below the other."""
    for number, table in enumerate(tables):
        screen.print(*([""] if number else []), _grid(table), sep="\n")


def _grid(table: pd.DataFrame) -> Table:
    """The first column on the left, numbers on the right."""
    shown = Table(box=None, padding=(0, 0, 0, INDENT), header_style="dim")
    for place, column in enumerate(map(str, table)):
        shown.add_column(column, justify="right" if place else "left")
    for row in table.itertuples(index=False):
        shown.add_row(*(Text(str(cell)) for cell in row))
    return shown
