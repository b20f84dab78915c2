"""Sentiment trees: the bracketed sentences of the Stanford Sentiment Treebank (Socher et al. 2013)."""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import DataError
from heedful.text.archives import members

NEUTRAL = 2
"""The middle of the labels 0 … 4; the binary task leaves such sentences out."""

_PIECE = re.compile(r"[()]|[^\s()]+")
_SPLIT = re.compile(r"(?:^|/)trees/(train|dev|test)\.txt$")
_ESCAPES = (("-LRB-", "("), ("-RRB-", ")"), ("\\/", "/"), ("\\*", "*"))


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A sentence with a label on every phrase of its parse."""

    tokens: tuple[str, ...]
    phrases: tuple[tuple[int, int, int], ...]
    """(label, start, end) of each node over the tokens, a parent before its children; the first is the sentence."""

    @property
    def label(self) -> int:
        return self.phrases[0][0]


def parse_tree(line: str) -> Tree:
    """A tree from its brackets: `(3 (2 It) (4 (2 is) (4 great)))`."""
    tokens: list[str] = []
    phrases: list[tuple[int, int, int]] = []
    open_phrases: list[int] = []
    pieces = iter(_PIECE.findall(line))
    for piece in pieces:
        if piece == "(":
            open_phrases.append(len(phrases))
            phrases.append((_label(next(pieces, ""), line), len(tokens), -1))
        elif piece == ")" and open_phrases:
            place = open_phrases.pop()
            phrases[place] = (*phrases[place][:2], len(tokens))
        elif open_phrases and piece != ")":
            tokens.append(_unescape(piece))
        else:
            raise _broken(line)
    if open_phrases or not tokens or phrases[0][2] != len(tokens):
        raise _broken(line)
    return Tree(tokens=tuple(tokens), phrases=tuple(phrases))


def treebank_rows(paths: Sequence[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The sentences of trainDevTestTrees_PTB.zip: all of them with five labels, and the binary task's."""
    for name, content in members(paths[0]):
        found = _SPLIT.search(name)
        if found:
            for line in io.TextIOWrapper(content, encoding="utf-8"):
                if line.strip():
                    yield from _rows(parse_tree(line), found[1])


def _rows(tree: Tree, split: str) -> Iterator[tuple[str, dict[str, Any]]]:
    text = " ".join(tree.tokens)
    yield "sst5_tree.jsonl.gz", {"text": text, "label": tree.label, "split": split, "phrases": tree.phrases}
    if tree.label != NEUTRAL:
        positive = int(tree.label > NEUTRAL)
        yield "sst2_tree.jsonl.gz", {"text": text, "label": positive, "fine": tree.label, "split": split}


def _label(piece: str, line: str) -> int:
    if piece not in {"0", "1", "2", "3", "4"}:
        raise _broken(line)
    return int(piece)


def _unescape(token: str) -> str:
    for written, meant in _ESCAPES:
        token = token.replace(written, meant)
    return token


def _broken(line: str) -> DataError:
    return DataError(
        f"This is not a sentiment tree: '{line.strip()[:60]}'. Each phrase is a label 0–4 and what it holds, in "
        "brackets: (3 (2 It) (4 works))."
    )
