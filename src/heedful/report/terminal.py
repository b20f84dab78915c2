"""The page on the terminal: the answer, what it rests on, and where the report is. What comes from data is data."""

import unicodedata

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.claims import SOURCES, Decision, Verdict
from heedful.claims.answer import Answer, Question
from heedful.notebook import counted
from heedful.report.page import Page, Section

COLOURS = {"yes": "green", "no": "red", "not shown": "yellow"}
INDENT = 2
WIDTH = 120  # columns where nobody looks at a terminal
ROOMY = 110  # columns from which an answer in brief has room for empty lines within 25


def printable(text: str) -> str:
    """The text with a space for each character that steers a terminal: escapes, controls, changes of direction."""
    return "".join(
        " " if unicodedata.category(letter) in {"Cc", "Cf"} and letter != "\u200d" else letter for letter in text
    )


def wide_console() -> Console:
    """The terminal; into a file or another program lines are as long as tables need."""
    usual = Console(highlight=False)
    return usual if usual.is_terminal else Console(highlight=False, width=max(usual.width, WIDTH))


def print_page(page: Page, console: Console | None = None, *, everything: bool = True) -> None:
    """Everything in plain words; or the answer alone, or what a page without one has beside verdicts."""
    screen = console or wide_console()
    if page.answer is None:
        screen.print(Text(printable(page.headline), "bold"))
    else:
        _print_answer(screen, page.answer, page.worth, everything=everything)
    if everything or page.answer is None:
        for notice in page.notices:
            print_below(screen, Text("note:", "dim"), Text(printable(notice)))
        for section in page.sections:
            if section.on_terminal and (everything or not section.judged):
                _print_section(screen, section)
        left = 0 if everything else sum(len(one.verdicts) for section in page.sections for one in section.judged)
        if words := f"{counted(left, 'verdict')}: in the report, or here with --all." if left else _codes(page):
            screen.print(Text(f"\n{words}", "dim"))
        screen.print()
    else:
        screen.print(Text(_rest(page), "dim"))
    for name, path in page.places.items():
        if everything or page.answer is None or name != "run":
            screen.print(Text(f"{name} {path}"), soft_wrap=True)


def _print_answer(screen: Console, answer: Answer, worth: str, *, everything: bool) -> None:
    """The headline, the questions, and what attention may be used for; in full with all that there is to say."""
    gap = "\n" if everything or screen.width >= ROOMY else ""
    screen.print(Text(answer.headline, "bold"))
    if worth:
        screen.print(Text(printable(worth)))
    for question in answer.questions:
        screen.print(Text(f"{gap}{question.question} ") + _mark(question.decision, favours=question.for_attention))
        print_below(screen, Text(""), _why(question, everything=everything))
    if everything:
        screen.print(Text("\nMay you use attention to"))
        for use in answer.uses:
            print_below(screen, Text(f"{use.purpose:22}") + _mark(use.decision, 10), Text(use.words))
    else:
        uses = [Text(f"{use.purpose}? ") + _mark(use.decision) for use in answer.uses]
        screen.print(Text(f"{gap}May you use it to ") + Text(" · ").join(uses))
    for words in answer.instead:
        print_below(screen, Text("instead:", "dim"), Text(words))
    if answer.scope and everything:
        screen.print(Text(f"\n{answer.scope}"))


def _why(question: Question, *, everything: bool) -> Text:
    """Why a question is answered as it is, in one sentence, or in all of them with the claims it rests on."""
    if not everything:
        return Text(question.words)
    rests = f" ({', '.join(question.rests_on)})" if question.rests_on else ""
    return Text(f"{question.words} {question.more}".rstrip()) + Text(rests, "dim")


def _rest(page: Page) -> str:
    """What is not printed."""
    verdicts, notices = len(list(page.verdicts())), len(page.notices)
    noted = f" and {counted(notices, 'note')}" if notices else ""
    return f"{counted(verdicts, 'verdict')}{noted} with tables and texts: in the report, or here with --all."


def _codes(page: Page) -> str:
    """What the short names of claims and the word unit mean."""
    names = [verdict.claim for _, verdict in page.verdicts()]
    known = [f"{begin} {said}" for begin, said in SOURCES.items() if any(name.startswith(begin) for name in names)]
    unit = f" A unit is what has the weights: here one of the {page.unit}." if page.unit else ""
    return f"Claims: {', '.join(known)}.{unit}" if known else ""


def _print_section(screen: Console, section: Section) -> None:
    screen.print(Text(f"\n{printable(section.title)}", "bold"))
    if section.lead:
        screen.print(Text(printable(section.lead)))
    for place, table in enumerate(section.tables):
        title = [Text(printable(table.title))] if table.title else []
        lead = [Text(printable(table.lead))] if table.lead else []
        screen.print(*([""] if place else []), *title, grid(table.cells), *lead, sep="\n")
    for verdict in section.verdicts:
        print_verdict(screen, verdict)
    for one in section.judged:
        screen.print(Text(printable(one.dataset), "bold"))
        for verdict in one.verdicts:
            print_verdict(screen, verdict)


def print_verdict(screen: Console, verdict: Verdict) -> None:
    """The claim as the paper states it, whether it is shown, and what these data say."""
    print_below(screen, Text(f"{verdict.claim:5}"), Text(f"{verdict.statement} ", "italic") + _mark(verdict.decision))
    print_below(screen, Text(" " * 5), Text(verdict.words) + Text(f" {interval_words(verdict)}".rstrip(), "dim"))


def interval_words(verdict: Verdict) -> str:
    """The number behind a verdict, its interval, from where on it says yes, and what it rests on."""
    number = verdict.interval
    return f"({number}; {line_words(verdict)}; {verdict.evidence})" if number else ""


def line_words(verdict: Verdict) -> str:
    """Which numbers say yes: those above the line."""
    return f"yes above {verdict.threshold:.3g}"


def print_below(screen: Console, mark: Text, words: Text) -> None:
    """A mark, and words that stay to the right of it in every line."""
    row = Table.grid(padding=(0, 1))
    row.add_column(no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(Text(" " * INDENT) + mark, words)
    screen.print(row)


def grid(table: pd.DataFrame) -> Table:
    """A table of words: those that begin with a letter on the left, numbers on the right."""
    shown = Table(box=None, padding=(0, 0, 0, INDENT), header_style="dim")
    for place, column in enumerate(table.columns):
        words = place == 0 or any(str(cell)[:1].isalpha() for cell in table[column])
        shown.add_column(str(column), justify="left" if words else "right")
    for row in table.itertuples(index=False):
        shown.add_row(*(Text(printable(f"{cell:,}" if isinstance(cell, int) else str(cell))) for cell in row))
    return shown


def _mark(decision: Decision, width: int = 0, favours: Decision | None = None) -> Text:
    """Yes, no or not shown, in its colour, or in that of what it favours."""
    return Text(f"{decision:{width}}", COLOURS[favours or decision])
