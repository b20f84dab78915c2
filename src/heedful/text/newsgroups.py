"""Messages of 20 Newsgroups, and what is left of them when headers, signatures, quotes and numbers are taken away.

The rules are those that scikit-learn documents for `remove=("headers", "footers", "quotes")`, which the papers of
this field use: what identifies the writer rather than the topic should not help a classifier.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from heedful.text.archives import members

GROUPS = ("rec.motorcycles", "rec.sport.baseball", "rec.sport.hockey", "sci.med", "talk.politics.guns")
"""The groups that the corpora use."""

NUMBER = "qqq"
"""Stands for every token with a digit, as in the preprocessing of Jain & Wallace 2019 that Sun & Lu follow."""

_MEMBER = re.compile(r"(?:^|/)20news-bydate-(train|test)/([^/]+)/(\d+)$")
_QUOTE = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>")
_WITH_DIGIT = re.compile(r"\w*\d\w*(?:[.,]\d+)*")


def clean_message(message: str) -> str:
    """The writer's own words: no header, no signature, no quoted lines, `qqq` for numbers."""
    return mask_numbers(without_quotes(without_footer(without_header(message)))).strip()


def without_header(message: str) -> str:
    """What follows the first empty line."""
    return message.partition("\n\n")[2]


def without_footer(message: str) -> str:
    """What stands before the last line that is empty or made of hyphens; all of it where there is no such line.

    A message of several paragraphs without a signature loses its last paragraph: the known price of this rule.
    """
    lines = message.strip().split("\n")
    bounds = [number for number, line in enumerate(lines) if not line.strip().strip("-")]
    return "\n".join(lines[: bounds[-1]]) if bounds and bounds[-1] > 0 else message


def without_quotes(message: str) -> str:
    """Without the lines that quote another message or announce a quotation."""
    return "\n".join(line for line in message.split("\n") if not _QUOTE.search(line))


def mask_numbers(message: str) -> str:
    """`qqq` for every word with a digit: 4 goals in 1992-93 → qqq goals in qqq-qqq."""
    return _WITH_DIGIT.sub(NUMBER, message)


def newsgroup_rows(paths: Sequence[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The raw messages of the five groups in 20news-bydate.tar.gz, with their part of the split by date."""
    for name, content in members(paths[0]):
        found = _MEMBER.search(name)
        if found and found[2] in GROUPS:
            text = content.read().decode("latin-1").replace("\r\n", "\n")
            row = {"text": text, "label": found[2], "id": int(found[3]), "split": found[1]}
            yield "20news_bydate_5cat.jsonl.gz", row
