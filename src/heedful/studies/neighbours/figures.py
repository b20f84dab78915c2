"""Figures of the study, a point for each run: attention that was led away, and hidden vectors beside shuffles."""

import pandas as pd
from matplotlib.figure import Figure as Canvas

from heedful.figures.erasure import Grid
from heedful.figures.manipulation import Axis, run_points
from heedful.papers.jain2019 import NAMES
from heedful.studies.measures import called
from heedful.studies.neighbours.runs import MODELS
from heedful.studies.study import Frames, StudyFigure

OBJECTIVES = ("cross_entropy", "deceptive")


def _grid(rows: pd.DataFrame) -> Grid:
    return Grid(models=list(MODELS), datasets={one: called(one, NAMES) for one in rows["dataset"].unique()})


def _deception(tables: Frames) -> Canvas:
    models = tables["models"]
    rows = models[models["objective"].isin(OBJECTIVES) & (models["normaliser"] == "softmax")]
    mass, right = Axis(column="mass", label="attention on words of a class"), Axis(column="whole", label="accuracy")
    without = Axis(column="without", label="words of a class deleted")
    return run_points(rows, _grid(rows), mass, right, hollow=without)


def _conicity(tables: Frames) -> Canvas:
    models = tables["models"]
    conicity = Axis(column="conicity", label="conicity of hidden vectors, median over texts")
    return run_points(models, _grid(models), conicity, Axis(column="tvd", label="TVD, shuffled attention, median"))


FIGURES = (
    StudyFigure(
        name="deception",
        title="Attention that was led away",
        caption="Mean attention weight on words that belong to a class in the training split, against accuracy on the "
        "test texts that have such words and as many others; a point for each run. Hollow: accuracy on the same texts "
        "when the words of a class are deleted from them.",
        see="Whether points move to the left without falling, as if the words did not matter, and how far the hollow "
        "ones lie below them all the same.",
        needs=("models",),
        draw=_deception,
    ),
    StudyFigure(
        name="conicity",
        title="Hidden vectors that are alike, and shuffled attention",
        caption="How alike the hidden vectors of a text are (conicity, 1 where all point the same way), against how "
        "far the output moves when attention is shuffled (median over texts of the median total variation); a point "
        "for each run.",
        see="Whether the output moves more where hidden vectors are less alike, and what else moves it.",
        needs=("models",),
        draw=_conicity,
    ),
)
