"""Figures of Wiegreffe & Pinter 2019: the TVD–JSD curve of adversaries, and attention from one seed to the next."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure as Canvas

from heedful.figures import manipulation
from heedful.figures.erasure import Grid
from heedful.papers.jain2019 import NAMES
from heedful.studies.measures import called
from heedful.studies.study import Frames, StudyFigure
from heedful.studies.wiegreffe2019.runs import LSTM
from heedful.studies.wiegreffe2019.tables import curve_summary

SCATTERED = ("seeds", "uniform")
"""Kinds of points that are no line: each run is one."""


def _names(rows: pd.DataFrame) -> Mapping[str, str]:
    return {dataset: called(dataset, NAMES) for dataset in rows["dataset"].unique()}


def _curves(tables: Frames) -> Canvas:
    """Lines are means over seeds."""
    curve = tables["curve"]
    single = curve["kind"].isin(SCATTERED)
    points = pd.concat([part for part in (curve_summary(curve[~single]), curve[single]) if len(part)])
    return manipulation.divergence_curves(points, _names(curve))


def _seeds(tables: Frames) -> Canvas:
    seeds = tables["seeds"]
    seeds = seeds[seeds["units"] > 1]
    return manipulation.seed_violins(seeds, Grid(models=[LSTM], datasets=_names(seeds)))


FIGURES = (
    StudyFigure(
        name="curve",
        title="How far attention may move, and what it costs",
        caption="Mean JSD between the base's attention and another one against the mean TVD between their outputs. "
        "Lines are means over seeds, by λ of the adversaries or by how far outputs may move; the attention "
        "for the whole corpus is of a model without context, since only there a word has one score. Dotted: log 2, the "
        "most there is.",
        see="How far the trained adversaries stay below what single texts allow at no larger TVD, and how far from the "
        "base another seed lies anyway.",
        needs=("curve",),
        draw=_curves,
    ),
    StudyFigure(
        name="seeds",
        title="Attention from one seed to the next",
        caption="JSD between the attention of the LSTM from the first seed and from each other one, by the largest "
        "weight that the first gives in the text. Lines are medians, below the axis are the numbers of texts, seeds "
        "pooled.",
        see="Whether attention that is peaked (at the right) is found again from another seed.",
        needs=("seeds",),
        draw=_seeds,
    ),
)
