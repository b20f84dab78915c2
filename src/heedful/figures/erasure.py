"""Pictures of erasure until the decision flips, Serrano & Smith 2019: rows of panels for models, columns for data sets.

`flips` has one row per instance, ranking and order: units, erased (null where nothing flips), fraction, mass. Seeds and
random orders are pooled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cbook import boxplot_stats
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from heedful.analysis.quality import with_everything_erased
from heedful.analysis.statistics import Numbers
from heedful.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, brief, house_style

RANKINGS: Mapping[str, str] = {
    "random": GREY,
    "attention": ORANGE,
    "gradient": SKY,
    "product": BLUE,
    "margin": GREEN,
    "minimum": PURPLE,
}
"""Colours, in the order of the paper's legend; the last two are ours."""

OURS = ("margin", "minimum")
LINES: Mapping[str, Literal[":", "--", "-."]] = {"random": ":", "gradient": "--", "margin": "-."}
"""Curves differ in their strokes, too; the others are solid."""

CHANCE = "random"
COMMON = "median on the instances that every ranking flips"
PAPER = "the paper's share"
HALF = 0.5
LEAST = 1e-3
"""The smallest share that a tail shows."""

SOFT = "#5b6675"
_INSTANCE = ["dataset", "model", "seed", "instance"]

Draw = Callable[[Axes, pd.DataFrame], None]
Known = Mapping[str, Mapping[str, float]]
"""Shares by data set and ranking."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Which panels there are: models from top to bottom, data sets from left to right, with what they are called."""

    models: Sequence[str]
    datasets: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Row:
    """The panels of one model, one for each data set."""

    model: str
    draw: Draw
    x: str
    y: str
    height: float


def erased_boxes(
    flips: pd.DataFrame, grid: Grid, *, column: str = "fraction", tail: str | None = None, known: Known | None = None
) -> Figure:
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

    height = 0.85 + 0.27 * len(rankings)
    rows = [Row(model=model, draw=draw, x=label, y="", height=height) for model in grid.models]
    handles = [Line2D([], [], color="black", marker="D", markersize=4, linestyle="", label=COMMON)]
    if tail is not None and tail in grid.models:
        rows.append(Row(model=tail, draw=_tails(rankings, known or {}), x=label, y="instances above (log)", height=2.9))
        handles += [curve_handle(name) for name in rankings]
        handles += [Line2D([], [], color="black", marker="s", mfc="white", linestyle="", label=PAPER)] if known else []
    with house_style():
        figure = draw_rows(kept, grid, rows, width=4.3)
        columns = min(len(handles), round(figure.get_figwidth() / 2.4))
        figure.legend(handles=handles, loc="outside lower center", ncols=columns)
    return figure


def excess_curves(flips: pd.DataFrame, grid: Grid) -> Figure:
    """The share of instances that a ranking flips with at most so many times the fewest possible erasures."""
    ratios = excess(in_grid(flips, grid))
    rankings = [name for name in shown_rankings(ratios) if name != "minimum"]
    furthest = max(2.0, float(ratios["ratio"].max())) if len(ratios) else 2.0

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        for name in rankings:
            some = rows[rows["ranking"] == name]
            found, counts = np.unique(numbers(some["ratio"].dropna()), return_counts=True)
            heights = counts.cumsum() / max(1, len(some))
            draw_steps(axis, [*found, furthest], [*heights, *heights[-1:]][: len(found) + 1], name)
        axis.set(xscale="log", xlim=(0.97, furthest), ylim=(0, 1.03))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        remark(axis, f"{len(rows[rows['ranking'] == 'minimum']):,} instances that can be flipped")

    x, y = "units erased / fewest possible (log)", "instances flipped"
    rows = [Row(model=model, draw=draw, x=x, y=y, height=2.9) for model in grid.models]
    with house_style():
        figure = draw_rows(ratios, grid, rows, width=3.5)
        handles = [curve_handle(name) for name in rankings]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 3 * len(grid.datasets)))
    return figure


def in_grid(table: pd.DataFrame, grid: Grid) -> pd.DataFrame:
    """The rows that belong to a panel."""
    return table[table["model"].isin(list(grid.models)) & table["dataset"].isin(list(grid.datasets))]


def shown_rankings(flips: pd.DataFrame) -> list[str]:
    """The rankings of a table, in the order of the legend."""
    present = set(flips["ranking"])
    return [name for name in RANKINGS if name in present]


def with_common(flips: pd.DataFrame) -> pd.DataFrame:
    """The rows of more than one unit that flip, or that are `common`: of instances that every ranking flips.

    Serrano & Smith leave out what a ranking never flips, ranking by ranking (section 5.3). Chance does not choose what
    is common; there a random order that does not flip counts as everything erased.
    """
    several = flips[flips["units"] > 1]
    flipped = several["erased"].notna()
    always = (flipped | (several["ranking"] == CHANCE)).groupby([several[key] for key in _INSTANCE]).transform("all")
    return with_everything_erased(several).assign(common=always, flipped=flipped)[flipped | always]


def excess(flips: pd.DataFrame) -> pd.DataFrame:
    """Rows of more than one unit that have a minimum, with `ratio` = erased / minimum, missing where nothing flips."""
    several = flips[flips["units"] > 1]
    fewest = several.loc[several["ranking"] == "minimum", [*_INSTANCE, "erased"]].dropna()
    joined = several.merge(fewest.rename(columns={"erased": "fewest"}), on=_INSTANCE)
    return joined.assign(ratio=numbers(joined["erased"]) / numbers(joined["fewest"]))


def draw_rows(table: pd.DataFrame, grid: Grid, rows: Sequence[Row], *, width: float) -> Figure:
    """A panel for every row and data set, each drawn from its own part of the table."""
    columns = list(grid.datasets)
    layout = ConstrainedLayoutEngine(h_pad=0.07, w_pad=0.06, hspace=0.03, wspace=0.02)
    size = (max(5.2, width * len(columns)), sum(row.height for row in rows) + 0.4)
    figure = Figure(figsize=size, layout=layout)
    ratios = [row.height for row in rows]
    axes = figure.subplots(len(rows), len(columns), squeeze=False, height_ratios=ratios)
    cells = dict(tuple(table.groupby(["model", "dataset"], observed=True)))
    for place, row in enumerate(rows):
        last = place + 1 == len(rows) or rows[place + 1].draw is not row.draw
        for axis, dataset in zip(axes[place], columns, strict=True):
            axis.set_title(f"{brief(grid.datasets[dataset])}, {row.model}", pad=15)
            axis.set(xlabel=row.x if last else "", ylabel=row.y if dataset == columns[0] else "")
            if (row.model, dataset) in cells:
                row.draw(axis, cells[row.model, dataset])
            else:
                _leave_empty(axis)
    return figure


def remark(axis: Axes, words: str) -> None:
    """Small print between title and panel."""
    axis.annotate(words, (0, 1), xytext=(0, 4), xycoords="axes fraction", textcoords="offset points",
                  fontsize=7.5, color=SOFT)  # fmt: skip


def numbers(column: "pd.Series[float]") -> Numbers:
    """A column as float64, null as NaN."""
    return np.asarray(column.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)


def draw_steps(axis: Axes, x: Sequence[float], y: Sequence[float], ranking: str) -> None:
    style = LINES.get(ranking, "-")
    axis.step(x, y, where="post", color=RANKINGS[ranking], linestyle=style, linewidth=1.7, label=ranking)


def curve_handle(ranking: str) -> Line2D:
    return Line2D([], [], color=RANKINGS[ranking], linestyle=LINES.get(ranking, "-"), linewidth=1.7, label=ranking)


def _leave_empty(axis: Axes) -> None:
    axis.set(xticks=(), yticks=())
    axis.text(0.5, 0.5, "no run", transform=axis.transAxes, ha="center", va="center", color=SOFT)


def _draw_box(axis: Axes, rows: pd.DataFrame, column: str, place: int, ranking: str) -> None:
    values = numbers(rows.loc[rows["flipped"], column])
    axis.bxp(
        boxplot_stats(values),
        positions=[place],
        orientation="horizontal",
        widths=0.66,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": RANKINGS[ranking], "edgecolor": "#333333", "linewidth": 0.8},
        medianprops={"color": "black", "linewidth": 2.2},
        whiskerprops={"color": "#333333", "linewidth": 0.8},
        capprops={"color": "#333333", "linewidth": 0.8},
    )
    common = numbers(rows.loc[rows["common"], column])
    if len(common):
        axis.plot([float(np.median(common))], [place], "D", color="black", ms=4.5, mec="white", mew=0.8, zorder=5)
    over = f" · {share_words(float((values > HALF).mean()))} > ½" if column == "fraction" else ""
    words = f"{np.median(values):.2f}{over} · n {len(values):,}"
    axis.annotate(words, (1, place), xytext=(5, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                  va="center", fontsize=7, color=SOFT)  # fmt: skip


def share_words(share: float) -> str:
    """A share in per cent, with a digit more where it is small."""
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.1f} %"


def _name_rankings(axis: Axes, rankings: Sequence[str]) -> None:
    theirs = sum(name not in OURS for name in rankings)
    if 0 < theirs < len(rankings):
        axis.axhline(theirs - 0.5, color="#9A9A9A", linewidth=0.8, linestyle=(0, (4, 3)))
    axis.set(xlim=(-0.02, 1.02), ylim=(len(rankings) - 0.45, -0.55), yticks=range(len(rankings)))
    axis.set_yticklabels(rankings)
    axis.grid(visible=False, axis="y")


def _tails(rankings: Sequence[str], known: Known) -> Draw:
    """The share of instances that lose more than every fraction of their units, on a logarithmic scale."""

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        for name in rankings:
            values = np.sort(numbers(rows.loc[(rows["ranking"] == name) & rows["flipped"], "fraction"]))
            if len(values):
                found, counts = np.unique(values, return_counts=True)
                above = np.maximum(1 - counts.cumsum() / len(values), LEAST / 10)
                draw_steps(axis, [0.0, *found], [1.0, *above], name)
        for name, share in known.get(str(rows["dataset"].iloc[0]), {}).items():
            axis.plot([HALF], [share], "s", color=RANKINGS[name], mfc="white", mew=1.6, ms=6, zorder=5, clip_on=False)
        axis.axvline(HALF, color="#9A9A9A", linewidth=0.9, zorder=0)
        axis.set(xlim=(-0.02, 1.02), yscale="log", ylim=(LEAST, 1.2))
        axis.yaxis.set_major_locator(FixedLocator([0.001, 0.01, 0.1, 1.0]))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))

    return draw
