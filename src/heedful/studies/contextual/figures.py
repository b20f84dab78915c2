"""Figures of the study: what flips decisions, the pattern of words beside the accuracy, and rare words."""

import pandas as pd
from matplotlib.figure import Figure as Canvas

from heedful.figures.erasure import Grid, erased_boxes
from heedful.figures.manipulation import Axis, run_points
from heedful.papers.jain2019 import NAMES
from heedful.studies.contextual.runs import MODELS
from heedful.studies.contextual.tables import rare_runs
from heedful.studies.measures import called
from heedful.studies.study import Frames, StudyFigure


def _grid(rows: pd.DataFrame) -> Grid:
    models = [model for model in MODELS if model in set(rows["model"])]
    return Grid(models=models, datasets={one: called(one, NAMES) for one in rows["dataset"].unique()})


def _erased(tables: Frames) -> Canvas:
    return erased_boxes(tables["flips"], _grid(tables["flips"]))


def _pattern(tables: Frames) -> Canvas:
    models = tables["models"]
    unseen = Axis(column="unseen", label="AUC of attention weights on new texts (C8c)")
    return run_points(models, _grid(models), unseen, Axis(column="test_accuracy", label="test accuracy"))


def _rare(tables: Frames) -> Canvas:
    runs = rare_runs(tables["rare"])
    heard = Axis(column="rare_heard", label="AUC of polarity, side in new texts")
    return run_points(runs, _grid(runs), heard, Axis(column="rare_told", label="AUC, side of similar words"))


FIGURES = (
    StudyFigure(
        name="erased",
        title="How much must be erased",
        caption="Fractions of the units erased when the decision flips, along each ranking and by the exact minimum, "
        "each on the test texts that it flips; a diamond is the median on those that all flip. Seeds pooled.",
        see="Whether boxes rise from the models without an encoder to the LSTMs and the frozen transformer, and how "
        "far attention lies above the minimum in each.",
        needs=("flips",),
        draw=_erased,
    ),
    StudyFigure(
        name="pattern",
        title="Words of a class, and accuracy",
        caption="How often a word of a class gets more of an even share of attention in new texts than a word of about "
        "the same frequency that all classes use alike, against test accuracy; a point for each run.",
        see="Whether better vectors bring more attention to words of a class, or less.",
        needs=("models",),
        draw=_pattern,
    ),
    StudyFigure(
        name="rare",
        title="Rare words",
        caption="Of words that occur one to four times in the training texts: how well the polarity score of the word "
        "alone tells the class that uses it more in the dev and test texts, against how well it tells the side to "
        "which its nearest frequent words in GloVe lean; a point for each run.",
        see="Whether points move to the right, where rare words are right about new texts, when they move up, where "
        "they say what similar words say.",
        needs=("rare",),
        draw=_rare,
    ),
)
