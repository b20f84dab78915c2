"""Figures 3–13 of Serrano & Smith 2019 and one of ours, by name: which models they show and how they are drawn.

The pictures themselves are not in the text we have; panels follow the captions. Beside the paper's four rankings stand
`margin` and the exact `minimum`, and numbers of the paper where it prints them and the data correspond.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from heedful.figures.erasure import (
    Grid,
    divergence_clouds,
    erased_boxes,
    excess_curves,
    flip_matrices,
    in_grid,
    negative_counts,
)
from heedful.studies.serrano2019.facts import MODELS, over_half
from heedful.studies.serrano2019.tables import table_2
from heedful.studies.study import Captioned

Frames = Mapping[str, pd.DataFrame]
"""The tables of `measures_of`: single and flips."""

TAIL = "FLANnoenc"
"""The model whose long tail the caption of Figure 6 describes."""


@dataclass(frozen=True, kw_only=True)
class ErasureFigure(Captioned):
    """A figure with a panel for each of its models and each data set."""

    models: tuple[str, ...] = MODELS
    draw: Callable[[Frames, Grid], Figure]


def _clouds(frames: Frames, grid: Grid) -> Figure:
    return divergence_clouds(frames["single"], grid)


def _counts(frames: Frames, grid: Grid) -> Figure:
    return negative_counts(frames["single"], grid)


def _fractions(frames: Frames, grid: Grid) -> Figure:
    return erased_boxes(frames["flips"], grid)


def _fractions_and_tail(frames: Frames, grid: Grid) -> Figure:
    known = {dataset: shares for dataset in grid.datasets if (shares := _known_tail(dataset))}
    return erased_boxes(frames["flips"], grid, tail=TAIL, known=known)


def _known_tail(dataset: str) -> dict[str, float]:
    """The paper's shares of instances that lose more than half, by ranking."""
    found = {name: over_half(dataset, TAIL, name) for name in ("random", "attention", "gradient", "product")}
    return {name: share / 100 for name, share in found.items() if share is not None}


def _masses(frames: Frames, grid: Grid) -> Figure:
    return erased_boxes(frames["flips"], grid, column="mass")


def _matrices(ranking: str) -> Callable[[Frames, Grid], Figure]:
    """The flip tables of one ranking's top unit."""

    def draw(frames: Frames, grid: Grid) -> Figure:
        single = in_grid(frames["single"], grid)
        return flip_matrices(table_2(single[single["ranking"] == ranking]), grid, top=ranking)

    return draw


def _excess(frames: Frames, grid: Grid) -> Figure:
    return excess_curves(frames["flips"], grid)


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

FIGURES: Mapping[str, ErasureFigure] = {
    figure.name: figure
    for figure in (
        ErasureFigure(
            name="3",
            title="Figure 3",
            caption=f"{_CLOUD} HANrnn.",
            see=_CLOUD_SEE,
            models=("HANrnn",),
            draw=_clouds,
        ),
        ErasureFigure(
            name="4",
            title="Figure 4",
            caption=f"{_COUNT} HANrnn.",
            see=_COUNT_SEE,
            models=("HANrnn",),
            draw=_counts,
        ),
        ErasureFigure(
            name="5",
            title="Figure 5",
            caption=f"{_BOX} HANrnn, FLANrnn and FLANconv.",
            see=_BOX_SEE,
            models=("HANrnn", "FLANrnn", "FLANconv"),
            draw=_fractions,
        ),
        ErasureFigure(
            name="6",
            title="Figure 6",
            caption=f"{_BOX} Models without encoder. Below, the tail of {TAIL}: the share of instances that lose more "
            "than each fraction; squares are what the paper says of Amazon above one half.",
            see="How far the boxes lie left of those of Figure 5, and which rankings have a tail beyond one half.",
            models=("HANnoenc", TAIL),
            draw=_fractions_and_tail,
        ),
        ErasureFigure(
            name="7",
            title="Figure 7",
            caption=f"{_CLOUD} All models.",
            see=f"{_CLOUD_SEE[:-1]}: sooner or later with less of an encoder.",
            draw=_clouds,
        ),
        ErasureFigure(name="8", title="Figure 8", caption=f"{_COUNT} All models.", see=_COUNT_SEE, draw=_counts),
        ErasureFigure(
            name="9",
            title="Figure 9",
            caption=f"{_MATRIX.format('attention')} All models; the paper's numbers are its Table 2's, for HANrnn.",
            see=_MATRIX_SEE,
            draw=_matrices("attention"),
        ),
        ErasureFigure(name="10", title="Figure 10", caption=f"{_BOX} All models.", see=_BOX_SEE, draw=_fractions),
        ErasureFigure(
            name="11",
            title="Figure 11",
            caption="Attention weight of the units erased at the first flip, as it was before any were erased. Boxes "
            "as in Figure 10; at the right the median and how many flips a box stands on.",
            see="Whether attention has to erase most of the weight, and how much less gradient and product erase.",
            draw=_masses,
        ),
        ErasureFigure(
            name="12",
            title="Figure 12",
            caption=_MATRIX.format("gradient"),
            see="Whether the upper row adds up to more than in Figure 9: how often the first unit alone flips.",
            draw=_matrices("gradient"),
        ),
        ErasureFigure(
            name="13",
            title="Figure 13",
            caption=_MATRIX.format("product"),
            see="Whether the upper row adds up to more than in Figures 9 and 12, and how near the paper's numbers are.",
            draw=_matrices("product"),
        ),
        ErasureFigure(
            name="minimum",
            title="How far each ranking is from the minimum",
            caption="Share of the instances that a ranking flips with at most so many times the fewest erasures that "
            "flip them at all. Ours: the paper calls the minimum computationally prohibitive.",
            see="Where a curve begins is how often its ranking attains the minimum; where it ends, how often it flips; "
            "the higher, the better.",
            draw=_excess,
        ),
    )
}
