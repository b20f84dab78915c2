"""The tables of the study: every model by every test, words of a class that attention leaves, the violation test."""

from functools import partial

import pandas as pd

from heedful.claims.combine import mean_table
from heedful.papers.jain2019 import NAMES
from heedful.studies.jain2019.tables import accuracy_table
from heedful.studies.measures import CELL, Cell, InWords, beside_in_words, called, in_words, per_cent, two_digits

NAMED: InWords = {"data": ("dataset", partial(called, names=NAMES)), "model": ("model", str)}
ACCURACY: InWords = {"accuracy": ("words", str)}
MODELS: InWords = {
    **NAMED,
    **ACCURACY,
    "conicity": ("conicity", two_digits),
    "on class words": ("mass", per_cent),
    "zeros": ("zeros", per_cent),
    "τ gradient": ("tau_gradient", two_digits),
    "τ leave one out": ("tau_leave_one_out", two_digits),
    "TVD, shuffled": ("tvd", "{:.3f}".format),
    "erased": ("erased", per_cent),
    "at least": ("fewest", per_cent),
    "surer without": ("violated", per_cent),
    "JSD": ("jsd", two_digits),
}
DECEPTION: InWords = {
    **NAMED,
    **ACCURACY,
    "attention on class words": ("mass", per_cent),
    "texts": ("compared", "{:,.0f}".format),
    "right": ("whole", per_cent),
    "without class words": ("without", per_cent),
    "without as many others": ("without_others", per_cent),
}
VIOLATION: InWords = {
    **NAMED,
    "attention": ("violated", per_cent),
    "gradient": ("violated_gradient", per_cent),
    "gradient × attention": ("violated_product", per_cent),
    "random": ("violated_random", per_cent),
}


def models_table(models: pd.DataFrame) -> pd.DataFrame:
    """The runs of every model in one row, means over seeds; accuracy, low and high in per cent with its interval."""
    accuracy = accuracy_table(models)[[*CELL, "accuracy", "low", "high"]]
    return accuracy.merge(mean_table([models], CELL), on=CELL)


def deception_table(models: pd.DataFrame) -> pd.DataFrame:
    """Of these what words of a class are worth, to attention and to the model."""
    used = ["mass", "compared", "whole", "without", "without_others", "used", "used_low", "used_high"]
    return models_table(models)[[*CELL, "accuracy", "low", "high", *used, "seeds"]]


def violation_table(models: pd.DataFrame) -> pd.DataFrame:
    """Of these the share of texts whose top unit has the wrong sign, by ranking."""
    table = models_table(models)
    return table[[*CELL, *table.filter(like="violated"), "seeds"]]


def models_in_words(table: pd.DataFrame) -> pd.DataFrame:
    return in_words(_with_words(table), MODELS)


def deception_in_words(table: pd.DataFrame) -> pd.DataFrame:
    return in_words(_with_words(table), DECEPTION)


def violation_in_words(table: pd.DataFrame) -> pd.DataFrame:
    return in_words(table, VIOLATION)


def _with_words(table: pd.DataFrame) -> pd.DataFrame:
    """With the accuracy and its interval in words."""

    def words(cell: Cell) -> str:
        return beside_in_words({**cell, "paper": None}, "accuracy")

    return table.assign(words=[words(cell) for cell in table.to_dict("records")])
