"""What several reports say in the same words: accuracy, classes, copies among texts, and the strongest words."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from heedful.analysis.tokens import NEUTRAL, NONE, class_groups, compared_classes, training_counts
from heedful.figures import tokens as drawings
from heedful.figures.style import brief
from heedful.notebook import counted
from heedful.text.corpus import Corpus
from heedful.traces import Trace

STRONGEST = 12


def left_out_classes(corpus: Corpus) -> list[str]:
    """What must be said of classes that are too small for their words to be told from others."""
    kept = compared_classes(training_counts(corpus)).tolist()
    names = [name for name, compared in zip(corpus.class_names, kept, strict=True) if not compared]
    said = f"Too small to compare its words with those of other classes: {', '.join(names)}. It has no group of words."
    return [said] if names else []


def copies_said(trace: Trace) -> list[str]:
    """What must be said of test texts that are copies of others."""
    copies = int((~trace.distinct).sum())
    are = "is a copy" if copies == 1 else "are copies"
    said = f"{counted(copies, 'test text')} {are} of others. In verdicts each text counts once; the accuracy is of all."
    return [said] if copies else []


def accuracy_words(metrics: Mapping[str, Any]) -> str:
    """Test accuracy in per cent with its interval."""
    value, low, high = (100 * metrics[f"test_accuracy{end}"] for end in ("", "_low", "_high"))
    return f"{value:.1f} % [{low:.1f}, {high:.1f}]"


def class_naming(class_names: Sequence[str]) -> str:
    """Which class is called positive where two classes have other names; nothing to say otherwise."""
    if len(class_names) != 2 or [name.casefold() for name in class_names] == ["negative", "positive"]:
        return ""
    negative, positive = (brief(name, 40) for name in class_names)
    return f"positive: towards {positive}, negative: towards {negative}"


def with_all_groups(table: pd.DataFrame, class_names: Sequence[str]) -> pd.DataFrame:
    """A table of tokens whose groups are of all classes, also of those that have no token in it."""
    if "group" not in table:
        return table
    groups = [*class_groups(class_names), NEUTRAL, NONE]
    return table.assign(group=pd.Categorical(table["group"], categories=list(dict.fromkeys(groups))))


def strongest_tokens(tokens: pd.DataFrame, class_names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """For each class the tokens that push towards it most, among those seen more than five times."""
    counts = tokens[[f"count_{name}" for name in class_names]].sum(axis=1)
    frequent = tokens.assign(count=counts)[counts > 5]
    if len(class_names) == 2:
        ordered = [frequent.nsmallest(STRONGEST, "polarity"), frequent.nlargest(STRONGEST, "polarity")]
        kept = [ordered[0][ordered[0]["polarity"] < 0], ordered[1][ordered[1]["polarity"] > 0]]
        return {name: _columns(rows, "polarity") for name, rows in zip(class_names, kept, strict=True)}
    columns = zip(class_names, drawings.polarity_names(tokens), strict=True)
    return {
        name: _columns(frequent[frequent[column] > 0].nlargest(STRONGEST, column), column) for name, column in columns
    }


def _columns(rows: pd.DataFrame, polarity: str) -> pd.DataFrame:
    return rows[["token", polarity, "attention", "count"]].rename(columns={polarity: "polarity"})


def strongest_in_words(strongest: pd.DataFrame) -> pd.DataFrame:
    """The table with short tokens and two digits."""
    numbers = {name: strongest[name].map("{:+.2f}".format) for name in ("polarity", "attention")}
    return strongest.assign(token=[brief(token) for token in strongest["token"]], **numbers)
