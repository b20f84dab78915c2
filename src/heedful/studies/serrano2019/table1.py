"""Table 1: how long the texts of each data set are and how many there are, beside the paper's corpora."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from heedful.studies.serrano2019.facts import counterpart
from heedful.studies.serrano2019.runs import called
from heedful.studies.serrano2019_corpora import TABLE_1
from heedful.studies.table1 import sentence_counts, word_counts
from heedful.text.corpus import Corpus

COLUMNS = ("words", "words_deviation", "sentences", "sentences_deviation", "training", "test", "classes")


def table_1(corpora: Mapping[str, Corpus]) -> pd.DataFrame:
    """A row per data set: our numbers, and as paper_… those of the paper's corpus that it is or stands for.

    Words are tokens with a letter or a digit; sentences are counted in the first 2,000 training texts.
    """
    return pd.DataFrame([_row(name, corpus) for name, corpus in corpora.items()])


def _row(name: str, corpus: Corpus) -> dict[str, object]:
    words, sentences = word_counts(corpus), sentence_counts(corpus)
    meant = counterpart(name)
    paper = asdict(TABLE_1[meant]) if meant else dict.fromkeys(COLUMNS)
    return {
        "dataset": name,
        "words": float(words.mean()),
        "words_deviation": float(words.std()),
        "sentences": float(sentences.mean()),
        "sentences_deviation": float(sentences.std()),
        "training": len(corpus.train) + len(corpus.dev),
        "test": len(corpus.test),
        "classes": corpus.classes,
        "stands_for": meant,
        **{f"paper_{column}": paper[column] for column in COLUMNS},
    }


def table_1_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """The arrangement of the paper, each number before the paper's."""
    return pd.DataFrame(
        [_printed({str(name): value for name, value in row.items()}) for row in table.to_dict("records")]
    )


def _printed(row: Mapping[str, Any]) -> dict[str, str]:
    ours, paper = _cells(row), _cells(row, "paper_") if row["stands_for"] else {}
    beside = {name: f"{value}, paper {paper[name]}" if paper else value for name, value in ours.items()}
    return {"dataset": called(row["dataset"]), **beside}


def _cells(row: Mapping[str, Any], whose: str = "") -> dict[str, str]:
    """Such as words 104 (114), the deviation in brackets."""
    spreads = {
        name: f"{row[whose + name]:.{digits}f} ({row[f'{whose}{name}_deviation']:.{digits}f})"
        for name, digits in (("words", 0), ("sentences", 1))
    }
    counts = {name: f"{row[whose + name]:,.0f}" for name in ("training", "test", "classes")}
    return {**spreads, **counts}
