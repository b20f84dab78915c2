"""Sizes, lengths and classes of a corpus, printed."""

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.studies.words import printable


def print_statistics(found: dict[str, Any], console: Console | None = None) -> None:
    """One column per split, one line per class."""
    screen = console or Console()
    splits = list(found["splits"].values())
    title = f"{found['corpus']}: vocabulary {found['vocabulary']:,} (training split)"
    screen.print(Text(printable(title), "italic"), soft_wrap=True)  # may be wider than the table
    table = Table()
    table.add_column("")
    for name in found["splits"]:
        table.add_column(name, justify="right")
    table.add_row("texts", *(f"{split['texts']:,}" for split in splits))
    for number, name in enumerate(found["classes"]):
        table.add_row(Text(f"  {printable(name)}"), *(f"{split['per_class'][number]:,}" for split in splits))
    table.add_row("mean length", *(f"{split['mean_length']:,.1f}" for split in splits))
    table.add_row("longest", *(f"{split['longest']:,}" for split in splits))
    table.add_row("unknown tokens", *(f"{split['unknown_tokens']:.1%}" for split in splits))
    screen.print(table)
    for notice in found["notices"]:
        screen.print(Text(f"note: {printable(notice)}"))
    if found["paper"]:
        _print_beside(found["paper"], screen)


def _print_beside(paper: dict[str, Any], screen: Console) -> None:
    """Ours and the paper's, column by column, and the reasons below."""
    table = Table(title=Text(f"beside {paper['table']}"), title_justify="left")
    for name in ("", "ours", "paper"):
        table.add_column(name, justify="right" if name else "left")
    for line in paper["columns"]:
        table.add_row(Text(line["column"]), line["ours"], line["paper"], style="" if line["same"] else "yellow")
    screen.print(table)
    for line in paper["columns"]:
        if line["why"] and not line["same"]:
            screen.print(Text(f"{line['column']} differs: {line['why']}"))
    if paper["remark"]:
        screen.print(Text(paper["remark"]))
