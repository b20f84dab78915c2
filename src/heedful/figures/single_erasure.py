"""Pictures of erasing one unit, Serrano & Smith 2019, section 4: the top unit of a ranking beside another one.

`single` has one row per instance and ranking: `delta_weight` Δα in attention of the two units, `delta_js`
ΔJS in what their erasure does to the output. Seeds are pooled; instances of one unit have no other and are left out.
"""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, NullFormatter

from heedful.analysis.statistics import Numbers
from heedful.figures.erasure import Grid, Row, draw_rows, in_grid, numbers, remark, share_words
from heedful.figures.style import BLUE, GREY, ORANGE, VERMILION, house_style

BINS = 10
CELLS = (32, 20)
"""Cells of a cloud, across and up."""

FEWEST = 5
"""A median is drawn where so many instances lie."""

_LIGHT = "#D5D9DE"
_CLOUD = LinearSegmentedColormap.from_list("cloud", ["#B9D6E9", BLUE, "#06243F"])
_QUARTERS: Mapping[str, tuple[int, int, str]] = {
    "both": (0, 0, GREY),
    "only top": (1, 0, BLUE),
    "only other": (0, 1, ORANGE),
    "neither": (1, 1, GREY),
}
"""Column, row and colour; blue speaks for the ranking, orange against it, as in the paper."""


def divergence_clouds(single: pd.DataFrame, grid: Grid) -> Figure:
    """ΔJS against Δα: how much more erasing the top unit does, by how much more attention it has (Figures 3 and 7)."""
    shown = _of_attention(in_grid(single, grid))
    low, high = _span(numbers(shown["delta_js"]))
    edges = _edges(shown)

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        x, y = numbers(rows["delta_weight"]), numbers(rows["delta_js"])
        axis.hexbin(x, y, gridsize=CELLS, extent=(0, edges[-1], low, high), mincnt=1, linewidths=0)
        axis.axhline(0, color="#555555", linewidth=0.9)
        _draw_medians(axis, x, y, edges)
        remark(axis, f"{len(rows):,} instances, ΔJS < 0 in {share_words(float((y < 0).mean()))}")
        axis.set(xlim=(0, edges[-1]), ylim=(low, high))

    rows = [Row(model=model, draw=draw, x="Δα", y="ΔJS (nats)", height=2.9) for model in grid.models]
    with house_style():
        figure = draw_rows(shown, grid, rows, width=3.4)
        _scale_counts(figure)
        median = "median and middle half in each tenth of the axis"
        handle = Line2D([], [], color=VERMILION, marker="o", markersize=4, label=median)
        figure.legend(handles=[handle], loc="outside lower center")
    return figure


def negative_counts(single: pd.DataFrame, grid: Grid) -> Figure:
    """How many instances have a negative ΔJS in each tenth of the axis, before all that lie there (Figures 4 and 8)."""
    shown = _of_attention(in_grid(single, grid))
    edges = _edges(shown)
    centres, width = (edges[:-1] + edges[1:]) / 2, float(edges[1])

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        negative = rows["delta_js"] < 0
        every, below = (np.histogram(numbers(some["delta_weight"]), edges)[0] for some in (rows, rows[negative]))
        axis.bar(centres, every, width=0.94 * width, color=_LIGHT)
        axis.bar(centres, below, width=0.5 * width, color=VERMILION)
        for centre, count, some in zip(centres.tolist(), every.tolist(), below.tolist(), strict=True):
            if some:
                words = f"{100 * some / count:.0f}"
                axis.annotate(
                    words, (centre, count), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=7
                )
        remark(axis, f"{int(negative.sum()):,} of {len(rows):,} instances, {share_words(float(negative.mean()))}")
        axis.set(xlim=(0, edges[-1]), yscale="log", ylim=(0.7, 3 * max(10, int(every.max()))))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axis.yaxis.set_minor_formatter(NullFormatter())

    rows = [Row(model=model, draw=draw, x="Δα", y="instances (log)", height=2.7) for model in grid.models]
    with house_style():
        figure = draw_rows(shown, grid, rows, width=3.4)
        handles = [
            Patch(color=_LIGHT, label="all instances"),
            Patch(color=VERMILION, label="ΔJS < 0; above: per cent of the bar"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def flip_matrices(cells: pd.DataFrame, grid: Grid, *, top: str) -> Figure:
    """Per cent of instances whose decision flips without the top unit and without another (Figures 9, 12 and 13).

    `cells` has four rows per model and data set: `cell` is both, only top, only other or neither, `share` ours in per
    cent, `paper` the paper's where it prints one, `instances` how many there are.
    """

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        for name, share, paper in zip(rows["cell"], numbers(rows["share"]), numbers(rows["paper"]), strict=True):
            _draw_quarter(axis, name, float(share), float(paper))
        remark(axis, f"{rows['instances'].iloc[0]:,} instances")
        axis.set(xlim=(0, 2), ylim=(2, 0), xticks=(0.5, 1.5), yticks=(0.5, 1.5))
        axis.set_xticklabels(["flips", "stays"])
        axis.set_yticklabels(["flips", "stays"], rotation=90, va="center")
        axis.tick_params(length=0)
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)

    x, y = "without another unit", f"without the top\nof {top}"
    rows = [Row(model=model, draw=draw, x=x, y=y, height=2.2) for model in grid.models]
    with house_style():
        figure = draw_rows(cells, grid, rows, width=2.7)
        handles = [
            Patch(color=_tint(BLUE, 1.0), label="only erasing the top unit flips the decision"),
            Patch(color=_tint(ORANGE, 1.0), label="only erasing another unit flips it"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2 if len(grid.datasets) > 2 else 1)
    return figure


def _of_attention(single: pd.DataFrame) -> pd.DataFrame:
    """Instances of more than one unit, where the top unit is that of attention."""
    return single[(single["ranking"] == "attention") & single["delta_js"].notna()]


def _span(values: Numbers) -> tuple[float, float]:
    """The same for all panels, with some room, and zero within."""
    low, high = float(values.min(initial=0.0)), float(values.max(initial=1e-4))
    room = 0.05 * (high - low)
    return low - room, high + room


def _edges(shown: pd.DataFrame) -> Numbers:
    """Bounds of the tenths of Δα from zero to the largest one, rounded up; the same for all panels."""
    largest = float(numbers(shown["delta_weight"]).max(initial=0.0))
    return np.linspace(0, max(1, math.ceil(10 * largest - 1e-9)) / 10, BINS + 1)


def _draw_medians(axis: Axes, x: Numbers, y: Numbers, edges: Numbers) -> None:
    """Median and quartiles of ΔJS in each tenth of the axis."""
    tenths = np.clip(np.digitize(x, edges) - 1, 0, BINS - 1)
    places = [tenth for tenth in range(BINS) if (tenths == tenth).sum() >= FEWEST]
    if not places:
        return
    quartiles = np.array([np.quantile(y[tenths == tenth], (0.25, 0.5, 0.75)) for tenth in places])
    reach = np.abs(quartiles[:, [0, 2]] - quartiles[:, [1]]).T
    axis.errorbar(
        edges[places] + edges[1] / 2, quartiles[:, 1], reach, color=VERMILION, marker="o", markersize=3.5, linewidth=1.3
    )


def _scale_counts(figure: Figure) -> None:
    """One scale of colours for all clouds."""
    axes = list(figure.axes)
    clouds = [part for axis in axes for part in axis.collections if isinstance(part, PolyCollection)]
    if not clouds:
        return
    most = max(float(np.asarray(cloud.get_array()).max(initial=1.0)) for cloud in clouds)
    norm = LogNorm(1, max(10.0, most))
    for cloud in clouds:
        cloud.set(norm=norm, cmap=_CLOUD)
    bar = figure.colorbar(clouds[0], ax=axes, shrink=0.8 if len(axes) < 5 else 0.4, aspect=22, pad=0.01)
    bar.set_label("instances in a cell (log)")
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _draw_quarter(axis: Axes, name: str, share: float, paper: float) -> None:
    column, row, colour = _QUARTERS[name]
    axis.add_patch(Rectangle((column + 0.02, row + 0.02), 0.96, 0.96, facecolor=_tint(colour, share / 100)))
    known = not np.isnan(paper)
    axis.text(column + 0.5, row + (0.42 if known else 0.5), f"{share:.1f}", ha="center", va="center", fontsize=12)
    if known:
        axis.text(column + 0.5, row + 0.76, f"paper {paper:.1f}", ha="center", va="center", fontsize=7, color="#333333")


def _tint(colour: str, strength: float) -> tuple[float, float, float]:
    """From a light to a strong hue that dark letters can still be read on."""
    part = 0.18 + 0.47 * strength
    red, green, blue = (1 - part * (1 - value) for value in to_rgb(colour))
    return red, green, blue
