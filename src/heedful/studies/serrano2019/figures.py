"""Figures 3–13 of Serrano & Smith 2019 and one of ours, by name: which models they show and how they are drawn.

The pictures themselves are not in the text we have; panels follow the captions. Beside the paper's four rankings stand
`margin` and the exact `minimum`, and numbers of the paper where it prints them and the data correspond.
"""

from collections.abc import Callable
from functools import partial

import pandas as pd
from matplotlib.figure import Figure as Canvas

from heedful.figures import erasure
from heedful.papers.serrano2019 import MODELS, NAMES, over_half
from heedful.studies.measures import called
from heedful.studies.serrano2019.tables import table_2
from heedful.studies.study import Frames, StudyFigure

TAIL = "FLANnoenc"
"""The model whose long tail the caption of Figure 6 describes."""

Draw = Callable[[pd.DataFrame, erasure.Grid], Canvas]


def _figure(
    name: str, table: str, draw: Draw, caption: str, see: str, models: tuple[str, ...] = MODELS, title: str = ""
) -> StudyFigure:
    """A panel for each model and data set that the table has, in the order of the paper and of the table."""

    def on_tables(tables: Frames) -> Canvas:
        rows = tables[table]
        present = set(rows["model"])
        datasets = {dataset: called(dataset, NAMES) for dataset in rows["dataset"].unique()}
        return draw(rows, erasure.Grid(models=[model for model in MODELS if model in present], datasets=datasets))

    title = title or f"Figure {name}"
    return StudyFigure(name=name, title=title, caption=caption, see=see, needs=(table,), draw=on_tables, models=models)


def _fractions_and_tail(flips: pd.DataFrame, grid: erasure.Grid) -> Canvas:
    """With the paper's shares of instances that lose more than half, by ranking."""
    shares = {
        dataset: {
            name: share / 100
            for name in ("random", "attention", "gradient", "product")
            if (share := over_half(dataset, TAIL, name)) is not None
        }
        for dataset in grid.datasets
    }
    known = {dataset: shown for dataset, shown in shares.items() if shown}
    return erasure.erased_boxes(flips, grid, tail=TAIL, known=known)


def _matrices(ranking: str) -> Draw:
    """The flip tables of one ranking's top unit."""
    return lambda single, grid: erasure.flip_matrices(table_2(single[single["ranking"] == ranking]), grid, top=ranking)


_CLOUD = (
    "ΔJS, how much further the output moves when the unit of largest attention is erased than when another one is, "
    "against Δα, how much more attention it has."
)
_COUNT = "Instances with a negative ΔJS, for which erasing the other unit moved the output further, by Δα, before all."
_BOX = (
    "Fraction of the units erased at the first flip, from the top of each ranking. Boxes hold the middle half, "
    "whiskers end within 1.5 times its length; at the right the median, the share above one half, and how many flips a "
    "box stands on. Each ranking is drawn without the instances that it never flips, as in the paper; diamonds are "
    "medians on those that all flip. Margin and minimum, below the dashes, are ours: no ranking erases fewer units "
    "than the minimum."
)
_MATRIX = (
    "Per cent of instances by whether erasing the unit on top of the {} ranking, and whether erasing another one, "
    "flips the decision. Instances of one unit are left out."
)
_CLOUD_SEE = "Whether the cloud lies above zero, and from which Δα on the median leaves it."
_COUNT_SEE = "Whether the narrow bars stand at the left, where the two units have nearly the same attention."
_BOX_SEE = (
    "Whether attention lies left of random, how far gradient and product lie left of attention, and how much room is "
    "left between each of them and the minimum."
)
_MATRIX_SEE = (
    "Whether the blue quarter is much larger than the orange one, which should be near zero, and how many decisions "
    "neither erasure flips."
)
_ENCODED, _BARE = ("HANrnn", "FLANrnn", "FLANconv"), ("HANnoenc", TAIL)

FIGURES = (
    _figure("3", "single", erasure.divergence_clouds, f"{_CLOUD} HANrnn.", _CLOUD_SEE, ("HANrnn",)),
    _figure("4", "single", erasure.negative_counts, f"{_COUNT} HANrnn.", _COUNT_SEE, ("HANrnn",)),
    _figure("5", "flips", erasure.erased_boxes, f"{_BOX} HANrnn, FLANrnn and FLANconv.", _BOX_SEE, _ENCODED),
    _figure(
        "6",
        "flips",
        _fractions_and_tail,
        f"{_BOX} Models without encoder. Below, the tail of {TAIL}: the share of instances that lose more than each "
        "fraction; squares are what the paper says of Amazon above one half.",
        "How far the boxes lie left of those of Figure 5, and which rankings have a tail beyond one half.",
        _BARE,
    ),
    _figure(
        "7",
        "single",
        erasure.divergence_clouds,
        f"{_CLOUD} All models.",
        f"{_CLOUD_SEE[:-1]}: sooner or later with less of an encoder.",
    ),
    _figure("8", "single", erasure.negative_counts, f"{_COUNT} All models.", _COUNT_SEE),
    _figure(
        "9",
        "single",
        _matrices("attention"),
        f"{_MATRIX.format('attention')} All models; the paper's numbers are its Table 2's, for HANrnn.",
        _MATRIX_SEE,
    ),
    _figure("10", "flips", erasure.erased_boxes, f"{_BOX} All models.", _BOX_SEE),
    _figure(
        "11",
        "flips",
        partial(erasure.erased_boxes, column="mass"),
        "Attention weight of the units erased at the first flip, as it was before any were erased. Boxes as in Figure "
        "10; at the right the median and how many flips a box stands on.",
        "Whether attention has to erase most of the weight, and how much less gradient and product erase.",
    ),
    _figure(
        "12",
        "single",
        _matrices("gradient"),
        _MATRIX.format("gradient"),
        "Whether the upper row adds up to more than in Figure 9: how often the first unit alone flips.",
    ),
    _figure(
        "13",
        "single",
        _matrices("product"),
        _MATRIX.format("product"),
        "Whether the upper row adds up to more than in Figures 9 and 12, and how near the paper's numbers are.",
    ),
    _figure(
        "minimum",
        "flips",
        erasure.excess_curves,
        "Share of the instances that a ranking flips with at most so many times the fewest erasures that flip them at "
        "all. Ours: the paper calls the minimum computationally prohibitive.",
        "Where a curve begins is how often its ranking attains the minimum; where it ends, how often it flips; the "
        "higher, the better.",
        title="How far each ranking is from the minimum",
    ),
)
