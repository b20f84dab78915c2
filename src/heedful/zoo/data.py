"""Rows of files in the data folder, for tasks on real data."""

import csv
import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from jaxtyping import Int
from torch import Tensor

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def rows_of(name: str) -> Iterator[dict[str, Any]]:
    """The rows of a compressed file of JSON lines, or of a table."""
    with gzip.open(Path(os.environ["HEEDFUL_DATA"]) / name, "rt", encoding="utf-8", newline="") as file:
        if name.endswith(".csv.gz"):
            yield from csv.DictReader(file)
        else:
            yield from map(json.loads, file)


def words_of(text: str) -> list[str]:
    """Words and marks in small letters."""
    return WORD.findall(text.lower())


def short(text: str, most: int) -> list[str]:
    """The words of a text with so many at most; of a longer one none. Pieces between spaces, quickly counted, are never
    more than words."""
    words = words_of(text) if len(text.split()) <= most else []
    return words if len(words) <= most else []


def rows_for(split: str, total: int, count: int, generator: torch.Generator) -> Int[Tensor, " rows"]:
    """Numbers of so many rows: to learn from any, again and again; of a test each once, or all that there are."""
    if split == "test":
        return torch.randperm(total, generator=generator)[:count]
    return torch.randint(total, (count,), generator=generator)


def split_of(text: str) -> str:
    """By the text alone: one of twenty is a test, one is dev."""
    return {0: "test", 1: "dev"}.get(crc32(text.encode()) % 20, "train")


def frequent(texts: Iterable[Sequence[str]], most: int) -> list[str]:
    """The most frequent words, equal ones by the alphabet."""
    counts = Counter(word for text in texts for word in text)
    return [word for word, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:most]]
