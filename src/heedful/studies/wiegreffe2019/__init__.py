"""Wiegreffe & Pinter 2019, declared: even attention, seeds, a diagnostic model, trained adversaries, claims W1–W3."""

from collections.abc import Callable, Mapping

import pandas as pd

from heedful.papers.jain2019 import NAMES
from heedful.studies import measures as common
from heedful.studies.study import Material, Measure, Selection, Study, Table, each_and_all
from heedful.studies.wiegreffe2019 import tables
from heedful.studies.wiegreffe2019.divergence import OWN, curve_table, seeds_table
from heedful.studies.wiegreffe2019.figures import FIGURES
from heedful.studies.wiegreffe2019.runs import (
    ADVERSARY,
    GUIDE,
    GUIDES,
    LSTM,
    LSTMS,
    MODELS,
    QUICK,
    WHOLE,
    cost,
    strength_of,
    trials,
)

UNIFORM = "lstm+uniform"
OTHER = "another adversary"
"""Weights of an adversary with another λ than the one that a claim is about."""


def _accuracies(kinds: Mapping[str, str]) -> Callable[[Material], pd.DataFrame]:
    """A row per run: its accuracy, whose weights it has, and λ of the adversary among them."""

    def make(material: Material) -> pd.DataFrame:
        if not material.runs:
            return pd.DataFrame(columns=[*common.RUN, "weights", "strength", "instances", *common.METRICS])
        rows = material.below_each_other(lambda _, run: common.run_row(run))
        strengths = [strength_of(trial.settings) for trial, _ in material.runs]
        names = [
            OTHER if strength not in {None, GUIDE} else kinds[model]
            for model, strength in zip(rows["model"], strengths, strict=True)
        ]
        return rows.assign(weights=names, strength=pd.Series(strengths, dtype="float64"))

    return make


def measures(selection: Selection) -> dict[str, Measure]:
    """Of the LSTMs (`runs`) and of the diagnostic models (`diagnostic`); `seeds` by text; points of the `curve`."""
    return {
        "runs": Measure(make=_accuracies(LSTMS), trials=trials(selection, *LSTMS)),
        "diagnostic": Measure(make=_accuracies(GUIDES), trials=trials(selection, *GUIDES)),
        "seeds": Measure(make=seeds_table, trials=trials(selection, LSTM)),
        "curve": Measure(make=curve_table, trials=trials(selection, LSTM, UNIFORM, ADVERSARY, OWN)),
    }


TABLES = (
    Table(
        name="uniform",
        files={"uniform": ("runs", tables.weights_table)},
        printed=tables.weights_as_printed,
        title="Accuracy by attention",
        note="Test accuracy in per cent of the LSTM whose attention is learned, even, or frozen at its first values, "
        "with its 95 % interval; the epoch is chosen on dev.",
    ),
    Table(
        name="diagnostic",
        files={"diagnostic": ("diagnostic", tables.diagnostic_table)},
        printed=tables.weights_as_printed,
        title="The diagnostic model",
        note="Test accuracy in per cent of a token-wise model whose attention is even, its own, that of the LSTM "
        "(base), or that of an adversary of the LSTM, with its 95 % interval.",
    ),
    Table(
        name="curve",
        files={"curve": ("curve", tables.curve_summary), "points": ("curve", common.as_it_is)},
        cells=tables.curve_in_words,
        title="How far attention may move, and what it costs",
        note="Mean TVD of outputs and mean JSD of attention (at most log 2 = .69) from the base, over test texts and "
        "then seeds; beside a trained adversary, the mean JSD that adversaries for single texts reach within its TVD: "
        "exact for two classes; of more classes the best that was found, of a draw of the texts.",
    ),
    Table(
        name="seeds",
        files={"seeds": ("seeds", tables.seeds_summary)},
        printed=tables.seeds_as_printed,
        title="From one seed to the next",
        note="Median JSD of attention and median TVD of outputs between the LSTM from the first seed and from each "
        "other one, by the largest weight that the first gives, and how many texts there are.",
    ),
)

STUDY = Study(
    name="wiegreffe2019",
    title="Wiegreffe & Pinter 2019, Attention is not not Explanation",
    models=MODELS,
    names=NAMES,
    whole=WHOLE,
    quick=QUICK,
    cost=cost,
    measures=measures,
    tables=TABLES,
    figures=FIGURES,
    claims=("W1", "W2", "W3"),
    scopes=each_and_all("runs", "diagnostic", "curve"),
    about_figures="Drawn by `heedful reproduce wiegreffe2019 --figure all`; SVG, PDF and PNG lie in the study's folder "
    "`figures`.",
    about_quick="A quick look: two seeds, two adversaries each, and none that is consistent over the corpus.",
)
