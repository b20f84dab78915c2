"""Figures of Jain & Wallace 2019, by what they show: agreement, shuffled attention, adversaries."""

from collections.abc import Callable

import pandas as pd
from matplotlib.figure import Figure as Canvas

from heedful.figures import manipulation
from heedful.figures.erasure import Grid
from heedful.papers.jain2019 import NAMES
from heedful.studies.attack import KINDS
from heedful.studies.jain2019.runs import MODELS
from heedful.studies.measures import called
from heedful.studies.study import Frames, StudyFigure

Draw = Callable[[pd.DataFrame, Grid], Canvas]


def _figure(name: str, title: str, table: str, draw: Draw, caption: str, see: str) -> StudyFigure:
    """A panel for each model and data set that the table has."""

    def on_tables(tables: Frames) -> Canvas:
        rows = tables[table]
        present = set(rows["model"])
        datasets = {dataset: called(dataset, NAMES) for dataset in rows["dataset"].unique()}
        return draw(rows, Grid(models=[model for model in MODELS if model in present], datasets=datasets))

    return StudyFigure(
        name=name, title=title, caption=caption, see=see, needs=(table,), draw=on_tables, models=tuple(MODELS)
    )


FIGURES = (
    _figure(
        "agreement",
        "Agreement with other measures",
        "agreement",
        manipulation.agreement_histograms,
        "Kendall τ of attention with the gradient (attention held fixed) and with leaving one word out, over the test "
        "texts; dashes are means. Texts in which a measure is the same for all words have no τ.",
        "Whether τ lies near 1, as it would if attention and the measure ordered words alike, and how much lower it is "
        "where an LSTM has read the neighbours.",
    ),
    _figure(
        "permutation",
        "Shuffled attention",
        "permutation",
        manipulation.permutation_violins,
        "Median total variation between outputs when the weights of a text are dealt out anew a hundred times, by the "
        "largest weight of the text. Lines are medians, below the axis are the numbers of texts.",
        "Whether texts with one large weight (at the right) move when it is put elsewhere.",
    ),
    _figure(
        "adversary",
        "Attention far away, the same output",
        "adversary",
        lambda rows, grid: manipulation.adversary_histograms(
            rows, grid, {name: one.words for name, one in KINDS.items()}
        ),
        "The largest JSD between a text's attention and another one with the same output, found exactly for two "
        "classes and as the best of several vertices for more. Shares of all texts: where no such attention exists, "
        "none is drawn.",
        "How much is left when every word must keep some weight, and when the most attended word must be left out.",
    ),
    _figure(
        "determined",
        "How far outputs determine attention scores",
        "determined",
        lambda rows, grid: manipulation.determined_scores(
            rows[rows["within"] == rows["within"].max()].assign(attention=rows["score"]), grid
        ),
        "For words drawn among those that occur ten times or more: between which values the attention score may lie "
        "while no output of a training text moves by more than .05. Words stand by group and then by the model's own "
        "score, the dot; a triangle at an edge is a word without a bound there.",
        "Whether words of a class are held in place, and those of none may have any score.",
    ),
)
