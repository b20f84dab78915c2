"""Words in which nothing but `code` has a meaning in Markdown."""

import re

MARKS = re.compile(r"([*_<>\[\]])")


def plain(words: str) -> str:
    parts = words.split("`")
    return "`".join(part if number % 2 else MARKS.sub(r"\\\1", part) for number, part in enumerate(parts))
