"""An audit on the terminal: the answer, what it rests on, what to do, and where the report is."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from heedful.claims import Verdict
from heedful.claims.answer import Answer
from heedful.studies.audit import Audit
from heedful.studies.audit_erasure import shown_decisions, shown_table
from heedful.studies.examine import ON_WORDS
from heedful.studies.verdict_lines import mark, print_below, print_below_each_other, print_verdict
from heedful.studies.words import accuracy_words, printable


def print_audit(done: Audit, console: Console | None = None) -> None:
    """Everything in plain words; what comes from the data is shown as it is."""
    screen = console or Console(highlight=False)
    _print_answer(screen, done.answer)
    guessing = f"always guessing the commonest class: {100 * done.majority:.1f} %"
    screen.print(Text(f"\ntest accuracy {accuracy_words(done.run.metrics)}; {guessing}"))
    _print_verdicts(screen, "", done.worth)
    for notice in done.notices:
        print_below(screen, Text("note:", "dim"), Text(printable(notice)))
    erasure = {verdict.claim for verdict in done.erasure.verdicts}
    own = [verdict for verdict in done.verdicts if verdict.claim in ON_WORDS]
    _print_verdicts(screen, "Attended and used", own)
    screen.print(Text("\nErase attention", "bold"))
    screen.print(Text(done.erasure.words))
    print_below_each_other(screen, shown_table(done.erasure.summary), shown_decisions(done.erasure.decisions))
    _print_verdicts(screen, "", [verdict for verdict in done.verdicts if verdict.claim in erasure])
    screen.print(Text("\nWhich λ?", "bold"))
    screen.print(Text(done.advice.words if done.advice else done.no_advice))
    named = {verdict.claim for verdict in (*own, *done.worth)} | erasure
    _print_verdicts(screen, "", [verdict for verdict in done.verdicts if verdict.claim not in named])
    screen.print()
    screen.print(f"report {done.report}", soft_wrap=True, markup=False, emoji=False)


def _print_answer(screen: Console, answer: Answer) -> None:
    screen.print(Text(answer.headline, "bold"))
    for question in answer.questions:
        rests = Text(f" ({', '.join(question.rests_on)})" if question.rests_on else "", "dim")
        screen.print(Text(f"\n{question.question} ") + mark(question.decision))
        print_below(screen, Text(""), Text(question.words) + rests)
    screen.print(Text("\nMay you use attention to"))
    for use in answer.uses:
        print_below(screen, Text(f"{use.purpose:22}") + mark(use.decision, 10), Text(use.words))
    for words in answer.instead:
        print_below(screen, Text("instead:", "dim"), Text(words))
    if answer.scope:
        screen.print(Text(f"\n{answer.scope}"))


def _print_verdicts(screen: Console, title: str, verdicts: Sequence[Verdict]) -> None:
    if title:
        screen.print(Text(f"\n{title}", "bold"))
    for verdict in verdicts:
        print_verdict(screen, verdict)
