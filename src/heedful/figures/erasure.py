"""Pictures of erasure, Serrano & Smith 2019: rows of panels for models, columns for data sets.

`flips` (until the decision flips) has one row per instance, ranking and order: units, erased (null where nothing
flips), fraction, mass. `single` (the top unit of a ranking beside another one, section 4) has one row per instance and
ranking: `delta_weight` Δα in attention of the two units, `delta_js` ΔJS in what their erasure does to the
output; instances of one unit have no other and are left out. Seeds and random orders are pooled.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cbook import boxplot_stats
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator, PercentFormatter

from heedful.analysis.quality import excess, with_common
from heedful.analysis.statistics import Numbers
from heedful.figures import style

RANKINGS: Mapping[str, str] = {
    "random": style.GREY,
    "attention": style.ORANGE,
    "gradient": style.SKY,
    "product": style.BLUE,
    "margin": style.GREEN,
    "minimum": style.PURPLE,
}
"""Colours, in the order of the paper's legend; the last two are ours."""

OURS = ("margin", "minimum")
COMMON = "median on the instances that every ranking flips"
HALF = 0.5
LEAST = 1e-3  # the smallest share that a tail shows
BINS, CELLS = 10, (32, 20)  # of the axis of Δα; of a cloud, across and up
FEWEST = 5  # a median is drawn where so many instances lie
LIGHT, DARK = "#D5D9DE", "#333333"
STROKES: Mapping[str, Literal[":", "--", "-."]] = {"random": ":", "gradient": "--", "margin": "-."}
"""Curves differ in their strokes, too; the others are solid."""

QUARTERS: Mapping[str, tuple[int, int, str]] = {
    "both": (0, 0, style.GREY),
    "only top": (1, 0, style.BLUE),
    "only other": (0, 1, style.ORANGE),
    "neither": (1, 1, style.GREY),
}
"""Column, row and colour; blue speaks for the ranking, orange against it, as in the paper."""

Draw = Callable[[Axes, pd.DataFrame], None]
Known = Mapping[str, Mapping[str, float]]
"""Shares by data set and ranking."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Which panels there are: models from top to bottom, data sets from left to right, with what they are called."""

    models: Sequence[str]
    datasets: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """How the panels of a model are drawn, one for each data set."""

    draw: Draw
    x: str
    y: str
    height: float


@style.house_style()
def erased_boxes(
    flips: pd.DataFrame, grid: Grid, *, column: str = "fraction", tail: str | None = None, known: Known | None = None
) -> Canvas:
    """What was erased at the first flip, by ranking: `fraction` of the units (5, 6, 10) or `mass` of attention (11).

    A box holds the middle half, its line is the median, whiskers end at the last point within 1.5 times its length.
    Each ranking stands on the instances that it flips; a diamond is the median on those that all rankings flip. `tail`
    is a model whose further row shows how many instances lose more than each fraction; `known` are the paper's shares
    above one half.
    """
    kept = with_common(in_grid(flips, grid))
    rankings = shown_rankings(kept)
    label = {"fraction": "fraction of units erased", "mass": "attention mass erased"}[column]

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        for place, name in enumerate(rankings):
            some = rows[(rows["ranking"] == name) & rows[column].notna()]
            if some["flipped"].any():
                _draw_box(axis, some, column, place, name)
        _name_rankings(axis, rankings)

    panel, tails = Panel(draw=draw, x=label, y="", height=0.85 + 0.27 * len(rankings)), []
    handles = [Line2D([], [], color="black", marker="D", markersize=4, linestyle="", label=COMMON)]
    if tail is not None and tail in grid.models:
        curves = _tails(rankings, known or {})
        tails = [(tail, Panel(draw=curves, x=label, y="instances above (log)", height=2.9))]
        handles += [Line2D([], [], **_stroke(name)) for name in rankings]
    if tail in grid.models and known:
        handles.append(Line2D([], [], color="black", marker="s", mfc="white", linestyle="", label="the paper's share"))
    canvas = draw_rows(kept, grid, panel, *tails, width=4.3)
    return style.legend_below(canvas, handles, most=round(canvas.get_figwidth() / 2.4))


@style.house_style()
def flip_curves(curves: pd.DataFrame) -> Canvas:
    """The share of decisions that flip by the share of their text that is erased (`erasure_curves`), by ranking."""
    canvas, (axis,) = style.panels(1, width=6.4, height=3.6)
    for name in shown_rankings(curves):
        rows = curves[curves["ranking"] == name]
        axis.plot(rows["fraction"], rows["flipped"], **_stroke(name))
    axis.set(xlabel="share of the text that is erased", ylabel="decisions flipped", xlim=(0, 1), ylim=(0, 1.03))
    for scale in (axis.xaxis, axis.yaxis):
        scale.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.legend(loc="lower right")
    return canvas


@style.house_style()
def excess_curves(flips: pd.DataFrame, grid: Grid) -> Canvas:
    """The share of instances that a ranking flips with at most so many times the fewest possible erasures."""
    ratios = excess(in_grid(flips, grid))
    rankings = [name for name in shown_rankings(ratios) if name != "minimum"]
    furthest = max(2.0, float(ratios["ratio"].max())) if len(ratios) else 2.0

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        for name in rankings:
            some = rows[rows["ranking"] == name]
            steps, counts = np.unique(numbers(some["ratio"].dropna()), return_counts=True)
            if len(steps):
                heights = counts.cumsum() / len(some)
                axis.step([*steps, furthest], [*heights, heights[-1]], where="post", **_stroke(name))
        axis.set(xscale="log", xlim=(0.97, furthest), ylim=(0, 1.03))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        style.remark(axis, f"{len(rows[rows['ranking'] == 'minimum']):,} instances that can be flipped")

    panel = Panel(draw=draw, x="units erased / fewest possible (log)", y="instances flipped", height=2.9)
    canvas = draw_rows(ratios, grid, panel, width=3.5)
    return style.legend_below(
        canvas, [Line2D([], [], **_stroke(name)) for name in rankings], most=3 * len(grid.datasets)
    )


@style.house_style()
def divergence_clouds(single: pd.DataFrame, grid: Grid) -> Canvas:
    """ΔJS against Δα: how much more erasing the top unit does, by how much more attention it has (Figures 3 and 7)."""
    shown = _of_attention(single, grid)
    values, edges = numbers(shown["delta_js"]), _edges(shown)
    low, high = float(values.min(initial=0.0)), float(values.max(initial=1e-4))
    room = 0.05 * (high - low)
    low, high = low - room, high + room  # the same for all panels, zero within

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        x, y = numbers(rows["delta_weight"]), numbers(rows["delta_js"])
        axis.hexbin(x, y, gridsize=CELLS, extent=(0, edges[-1], low, high), mincnt=1, linewidths=0)
        axis.axhline(0, color="#555555", linewidth=0.9)
        _draw_medians(axis, x, y, edges)
        style.remark(axis, f"{len(rows):,} instances, ΔJS < 0 in {share_words(float((y < 0).mean()))}")
        axis.set(xlim=(0, edges[-1]), ylim=(low, high))

    canvas = draw_rows(shown, grid, Panel(draw=draw, x="Δα", y="ΔJS (nats)", height=2.9), width=3.4)
    _scale_counts(canvas)
    median = "median and middle half in each tenth of the axis"
    return style.legend_below(canvas, [Line2D([], [], color=style.VERMILION, marker="o", markersize=4, label=median)])


@style.house_style()
def negative_counts(single: pd.DataFrame, grid: Grid) -> Canvas:
    """How many instances have a negative ΔJS in each tenth of the axis, before all that lie there (Figures 4 and 8)."""
    shown = _of_attention(single, grid)
    edges = _edges(shown)
    centres, width = (edges[:-1] + edges[1:]) / 2, float(edges[1])

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        negative = rows["delta_js"] < 0
        every, below = (np.histogram(numbers(some["delta_weight"]), edges)[0] for some in (rows, rows[negative]))
        axis.bar(centres, every, width=0.94 * width, color=LIGHT)
        axis.bar(centres, below, width=0.5 * width, color=style.VERMILION)
        for centre, count, some in zip(centres.tolist(), every.tolist(), below.tolist(), strict=True):
            if some:
                axis.annotate(f"{100 * some / count:.0f}", (centre, count), xytext=(0, 2),
                              textcoords="offset points", ha="center", fontsize=7)  # fmt: skip
        style.remark(axis, f"{int(negative.sum()):,} of {len(rows):,} instances, {share_words(float(negative.mean()))}")
        axis.set(xlim=(0, edges[-1]), yscale="log", ylim=(0.7, 3 * max(10, int(every.max()))))
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.yaxis.set_minor_formatter(NullFormatter())

    canvas = draw_rows(shown, grid, Panel(draw=draw, x="Δα", y="instances (log)", height=2.7), width=3.4)
    bars = {"all instances": LIGHT, "ΔJS < 0; above: per cent of the bar": style.VERMILION}
    return style.legend_below(canvas, [Patch(color=colour, label=label) for label, colour in bars.items()])


@style.house_style()
def flip_matrices(cells: pd.DataFrame, grid: Grid, *, top: str) -> Canvas:
    """Per cent of instances whose decision flips without the top unit and without another (Figures 9, 12 and 13).

    `cells` has four rows per model and data set: `cell` is both, only top, only other or neither, `share` ours in per
    cent, `paper` the paper's where it prints one, `instances` how many there are.
    """

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        for name, share, paper in zip(rows["cell"], numbers(rows["share"]), numbers(rows["paper"]), strict=True):
            _draw_quarter(axis, name, float(share), float(paper))
        style.remark(axis, f"{rows['instances'].iloc[0]:,} instances")
        axis.set(xlim=(0, 2), ylim=(2, 0), xticks=(0.5, 1.5), yticks=(0.5, 1.5))
        axis.set_xticklabels(["flips", "stays"])
        axis.set_yticklabels(["flips", "stays"], rotation=90, va="center")
        axis.tick_params(length=0)
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)

    panel = Panel(draw=draw, x="without another unit", y=f"without the top\nof {top}", height=2.2)
    canvas = draw_rows(cells, grid, panel, width=2.7)
    cases = {"the top unit flips the decision": style.BLUE, "another unit flips it": style.ORANGE}
    handles = [Patch(color=_tint(colour, 1.0), label=f"only erasing {case}") for case, colour in cases.items()]
    return style.legend_below(canvas, handles, most=2 if len(grid.datasets) > 2 else 1)


def in_grid(table: pd.DataFrame, grid: Grid) -> pd.DataFrame:
    """The rows that belong to a panel."""
    return table[table["model"].isin(list(grid.models)) & table["dataset"].isin(list(grid.datasets))]


def shown_rankings(flips: pd.DataFrame) -> list[str]:
    """The rankings of a table, in the order of the legend."""
    present = set(flips["ranking"])
    return [name for name in RANKINGS if name in present]


def draw_rows(table: pd.DataFrame, grid: Grid, panel: Panel, *more: tuple[str, Panel], width: float) -> Canvas:
    """A panel for every model and data set, each drawn from its own part of the table, and further rows of models."""
    rows = [*((model, panel) for model in grid.models), *more]
    columns, heights = list(grid.datasets), [shown.height for _, shown in rows]
    layout = ConstrainedLayoutEngine(h_pad=0.07, w_pad=0.06, hspace=0.03, wspace=0.02)
    canvas = Canvas(figsize=(max(5.2, width * len(columns)), sum(heights) + 0.4), layout=layout)
    axes = canvas.subplots(len(rows), len(columns), squeeze=False, height_ratios=heights)
    cells = dict(tuple(table.groupby(["model", "dataset"], observed=True)))
    for place, (model, shown) in enumerate(rows):
        last = place + 1 == len(rows) or rows[place + 1][1] is not shown
        for axis, dataset in zip(axes[place], columns, strict=True):
            axis.set_title(f"{style.brief(grid.datasets[dataset])}, {model}", pad=15)
            axis.set(xlabel=shown.x if last else "", ylabel=shown.y if dataset == columns[0] else "")
            if (model, dataset) in cells:
                shown.draw(axis, cells[model, dataset])
            else:
                axis.set(xticks=(), yticks=())
                axis.text(0.5, 0.5, "no run", transform=axis.transAxes, ha="center", va="center", color=style.SOFT)
    return canvas


def numbers(column: "pd.Series[float]") -> Numbers:
    """A column as float64, null as NaN."""
    return np.asarray(column.to_numpy(np.float64, na_value=np.nan), np.float64)


def share_words(share: float) -> str:
    """A share in per cent, with a digit more where it is small."""
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.1f} %"


def _stroke(ranking: str) -> dict[str, Any]:
    """How the curve of a ranking is drawn, in a panel and in a legend."""
    return {"color": RANKINGS[ranking], "linestyle": STROKES.get(ranking, "-"), "linewidth": 1.7, "label": ranking}


def _draw_box(axis: Axes, rows: pd.DataFrame, column: str, place: int, ranking: str) -> None:
    values, thin = numbers(rows.loc[rows["flipped"], column]), {"color": DARK, "linewidth": 0.8}
    box = {"facecolor": RANKINGS[ranking], "edgecolor": DARK, "linewidth": 0.8}
    axis.bxp(boxplot_stats(values), positions=[place], orientation="horizontal", widths=0.66, showfliers=False,
             patch_artist=True, manage_ticks=False, boxprops=box, whiskerprops=thin, capprops=thin,
             medianprops={"color": "black", "linewidth": 2.2})  # fmt: skip
    common = numbers(rows.loc[rows["common"], column])
    if len(common):
        axis.plot([float(np.median(common))], [place], "D", color="black", ms=4.5, mec="white", mew=0.8, zorder=5)
    over = f" · {share_words(float((values > HALF).mean()))} > ½" if column == "fraction" else ""
    words = f"{np.median(values):.2f}{over} · n {len(values):,}"
    axis.annotate(words, (1, place), xytext=(5, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                  va="center", fontsize=7, color=style.SOFT)  # fmt: skip


def _name_rankings(axis: Axes, rankings: Sequence[str]) -> None:
    theirs = sum(name not in OURS for name in rankings)
    if 0 < theirs < len(rankings):
        axis.axhline(theirs - 0.5, color=style.SHADE, linewidth=0.8, linestyle=(0, (4, 3)))
    axis.set(xlim=(-0.02, 1.02), ylim=(len(rankings) - 0.45, -0.55), yticks=range(len(rankings)))
    axis.set_yticklabels(rankings)
    axis.grid(visible=False, axis="y")


def _tails(rankings: Sequence[str], known: Known) -> Draw:
    """The share of instances that lose more than every fraction of their units, on a logarithmic scale."""

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        for name in rankings:
            values = numbers(rows.loc[(rows["ranking"] == name) & rows["flipped"], "fraction"])
            if len(values):
                fractions, counts = np.unique(values, return_counts=True)
                above = np.maximum(1 - counts.cumsum() / len(values), LEAST / 10)
                axis.step([0.0, *fractions], [1.0, *above], where="post", **_stroke(name))
        for name, share in known.get(str(rows["dataset"].iloc[0]), {}).items():
            axis.plot([HALF], [share], "s", color=RANKINGS[name], mfc="white", mew=1.6, ms=6, zorder=5, clip_on=False)
        axis.axvline(HALF, color=style.SHADE, linewidth=0.9, zorder=0)
        axis.set(xlim=(-0.02, 1.02), yscale="log", ylim=(LEAST, 1.2))
        axis.yaxis.set_major_locator(FixedLocator([0.001, 0.01, 0.1, 1.0]))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")

    return draw


def _of_attention(single: pd.DataFrame, grid: Grid) -> pd.DataFrame:
    """Instances of more than one unit, where the top unit is that of attention."""
    return in_grid(single[(single["ranking"] == "attention") & single["delta_js"].notna()], grid)


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
    low, middle, high = np.array([np.quantile(y[tenths == tenth], (0.25, 0.5, 0.75)) for tenth in places]).T
    reach, centres = [middle - low, high - middle], edges[places] + edges[1] / 2
    axis.errorbar(centres, middle, reach, color=style.VERMILION, marker="o", markersize=3.5, linewidth=1.3)


def _scale_counts(canvas: Canvas) -> None:
    """One scale of colours for all clouds."""
    axes = list(canvas.axes)
    clouds = [part for axis in axes for part in axis.collections if isinstance(part, PolyCollection)]
    if not clouds:
        return
    most = max(float(np.asarray(cloud.get_array()).max(initial=1.0)) for cloud in clouds)
    norm, colours = LogNorm(1, max(10.0, most)), ["#B9D6E9", style.BLUE, "#06243F"]
    for cloud in clouds:
        cloud.set(norm=norm, cmap=LinearSegmentedColormap.from_list("cloud", colours))
    bar = canvas.colorbar(clouds[0], ax=axes, shrink=0.8 if len(axes) < 5 else 0.4, aspect=22, pad=0.01)
    bar.set_label("instances in a cell (log)")
    bar.ax.yaxis.set_major_formatter("{x:,.0f}")


def _draw_quarter(axis: Axes, name: str, share: float, paper: float) -> None:
    column, row, colour = QUARTERS[name]
    known = not np.isnan(paper)
    at: dict[str, Any] = {"ha": "center", "va": "center"}
    axis.add_patch(Rectangle((column + 0.02, row + 0.02), 0.96, 0.96, facecolor=_tint(colour, share / 100)))
    axis.text(column + 0.5, row + (0.42 if known else 0.5), f"{share:.1f}", fontsize=12, **at)
    if known:
        axis.text(column + 0.5, row + 0.76, f"paper {paper:.1f}", fontsize=7, color=DARK, **at)


def _tint(colour: str, strength: float) -> tuple[float, float, float]:
    """From a light to a strong hue that dark letters can still be read on."""
    red, green, blue = style.mixed(colour, 0.18 + 0.47 * strength)
    return red / 255, green / 255, blue / 255
