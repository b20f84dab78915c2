"""Explanations by metrics as a picture: a row for each metric, a column for each explanation, darker what is better."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine

from heedful.figures import style

WIDTH, HEIGHT = 0.78, 0.3  # inches of a cell
MARGINS = 2.6, 1.9  # for the names of metrics, and for those of explanations and the key

ARROWS = {"higher": "↑", "lower": "↓"}
SCALE = LinearSegmentedColormap.from_list("better", ["#FFFFFF", style.BLUE])
"""One hue, light to dark: told apart whatever colours one sees, and in grey."""

NEUTRAL = "#F2F2F2"
DARK = 0.75  # from here on figures are white


@style.house_style()
def metric_grid(table: pd.DataFrame) -> Canvas:
    """The means of `Faithfulness.table`; in each row the best is dark and the worst is white.

    Metrics without a better end, and those that were not measured, are grey. A dot marks what cannot be told from the
    best of its row: the two intervals overlap.
    """
    canvas = Canvas(figsize=grid_size(table), layout=ConstrainedLayoutEngine())
    draw_grid(canvas.subplots(), table)
    return canvas


def grid_size(table: pd.DataFrame) -> tuple[float, float]:
    """In inches."""
    return WIDTH * table["method"].nunique() + MARGINS[0], HEIGHT * table["metric"].nunique() + MARGINS[1]


def draw_grid(axis: Axes, table: pd.DataFrame) -> None:
    methods, metrics = list(dict.fromkeys(table["method"])), list(dict.fromkeys(table["metric"]))
    rows = {str(name): part.set_index("method").loc[methods] for name, part in table.groupby("metric", sort=False)}
    for place, name in enumerate(metrics):
        _draw_row(axis, place, rows[name])
    _label(axis, methods, [f"{name} {ARROWS.get(rows[name]['direction'].iloc[0], '')}".strip() for name in metrics])


def _draw_row(axis: Axes, place: int, rows: pd.DataFrame) -> None:
    """The cells of one metric."""
    values, shades, near = rows["value"].to_numpy(np.float64), standing(rows), near_the_best(rows)
    for column, (value, shade, close) in enumerate(zip(values, shades, near, strict=True)):
        colour = NEUTRAL if np.isnan(shade) else SCALE(shade)
        axis.fill_between([column, column + 1], place, place + 1, facecolor=colour, edgecolor="white", linewidth=1)
        ink = "white" if shade > DARK else "black"
        axis.text(column + 0.5, place + 0.5, figure_of(value), ha="center", va="center", fontsize=7.5, color=ink)
        if close:
            axis.plot(column + 0.9, place + 0.25, marker="o", markersize=2.5, color=ink)


def standing(rows: pd.DataFrame) -> np.ndarray:
    """For each explanation where it stands between the worst, 0, and the best, 1; not a number without a direction."""
    values, direction = rows["value"].to_numpy(np.float64), rows["direction"].iloc[0]
    if direction not in ARROWS or np.isnan(values).all():
        return np.full(len(values), np.nan)
    signed = values if direction == "higher" else -values
    low, high = np.nanmin(signed), np.nanmax(signed)
    return np.asarray((signed - low) / (high - low) if high > low else np.where(np.isnan(signed), np.nan, 1.0))


def near_the_best(rows: pd.DataFrame) -> np.ndarray:
    """Whether the interval of an explanation overlaps that of the best; nowhere without a direction."""
    shades = standing(rows)
    if np.isnan(shades).all():
        return np.zeros(len(rows), dtype=bool)
    best = rows.iloc[int(np.nanargmax(shades))]
    return np.asarray((rows["low"] <= best["high"]) & (rows["high"] >= best["low"]))


def figure_of(value: float) -> str:
    """A number in three or four letters."""
    if np.isnan(value):
        return "–"
    return f"{value:.2f}" if abs(value) < 99.5 else f"{value:.0f}"


def _label(axis: Axes, methods: Sequence[str], metrics: Sequence[str]) -> None:
    axis.set(xlim=(0, len(methods)), ylim=(len(metrics), 0))
    names = [style.brief(name).replace("_", " ") for name in methods]
    axis.set_xticks(np.arange(len(methods)) + 0.5, names, rotation=40, ha="right")
    axis.set_yticks(np.arange(len(metrics)) + 0.5, [name.replace("_", " ") for name in metrics])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    style.remark(axis, "dark: best of the row; dot: not told from it")
