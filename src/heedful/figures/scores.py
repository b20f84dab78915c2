"""Pictures of token scores side by side: each score against frequency rank, with the density of its groups beside it.

Points of thousands of tokens cover each other; the curves at the right of a panel say how many there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from scipy.stats import gaussian_kde

from heedful.figures.style import FIXED, Look, brief, group_looks, house_style
from heedful.figures.tokens import score_label, shown_groups

NAMED, CANDIDATES = 4, 15
"""So many tokens of a group are named in a panel, the most extreme of so many whose labels find room."""

LONGEST, LETTER, RIGHT_EDGE = 16, 0.022, 0.75
"""Letters of a label, the width of one as a fraction of the panel, and from where labels stand left of their point."""

FEWEST = 5
"""A density needs so many different scores."""

Bounds = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class ScorePanel:
    """One panel: a column of a table of token scores, and what it is about."""

    title: str
    table: pd.DataFrame
    column: str

    @property
    def seen(self) -> pd.DataFrame:
        """The rows of shown groups with their frequency rank."""
        counts = self.table[[column for column in self.table if str(column).startswith("count_")]].sum(axis=1)
        ranked = self.table.assign(rank=counts.rank(method="first", ascending=False))
        return ranked[ranked["group"] != "none"].dropna(subset=[self.column])


def score_grid(panels: Sequence[ScorePanel], *, columns: int) -> Figure:
    """The panels in rows, with one legend for all."""
    rows = -(-len(panels) // columns)
    width = 6.6 if columns == 1 else 4.7
    with house_style():
        layout = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.03, wspace=0.01, hspace=0.04)
        figure = Figure(figsize=(width * columns, 3.7 * rows), layout=layout)
        grid = figure.add_gridspec(rows, 2 * columns, width_ratios=[5.0, 1.0] * columns)
        looks = _looks(panels)
        for number, panel in enumerate(panels):
            row, column = divmod(number, columns)
            points = figure.add_subplot(grid[row, 2 * column])
            _draw_points(points, panel, looks)
            _draw_densities(figure.add_subplot(grid[row, 2 * column + 1], sharey=points), panel, looks)
        _add_legend(figure, looks, most=3 * columns)
    return figure


def _looks(panels: Sequence[ScorePanel]) -> dict[str, Look]:
    """One look for each group of all panels."""
    groups = list(dict.fromkeys(group for panel in panels for group in shown_groups(panel.seen)))
    known = group_looks(groups)
    ordered = sorted(groups, key=lambda group: group not in FIXED)
    return {group: known[group] for group in ordered}


def _draw_points(axis: Axes, panel: ScorePanel, looks: Mapping[str, Look]) -> None:
    rows = panel.seen
    groups = shown_groups(rows)
    for group in groups:
        some = rows[rows["group"] == group]
        axis.scatter(
            some["rank"],
            some[panel.column],
            s=8 * looks[group].size,
            color=looks[group].colour,
            marker=looks[group].marker,
            alpha=float(np.clip(400 / len(some), 0.25, 0.7)),
            linewidths=0,
            rasterized=True,
        )
    axis.axhline(0, color="#9A9A9A", linewidth=0.8, zorder=0)
    axis.set(xscale="log", xlabel="frequency rank (log)", ylabel=score_label(panel.column))
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.set_title(panel.title, pad=16)
    axis.margins(y=0.13)
    axis.annotate(_counts(rows, groups), (0, 1), xytext=(0, 4), xycoords="axes fraction", textcoords="offset points",
                  fontsize=7.5, color="#5b6675")  # fmt: skip
    _name_extremes(axis, rows, panel.column)


def _counts(rows: pd.DataFrame, groups: Sequence[str]) -> str:
    sizes = rows["group"].value_counts()
    return " · ".join(f"{brief(group, 14)} {sizes[group]:,}" for group in groups)


def _draw_densities(axis: Axes, panel: ScorePanel, looks: Mapping[str, Look]) -> None:
    """A curve per group, each with the same area, so that small groups are seen."""
    rows = panel.seen
    for group in shown_groups(rows):
        values = rows.loc[rows["group"] == group, panel.column].to_numpy(np.float64)
        if len(np.unique(values)) >= FEWEST:
            heights = np.linspace(values.min(), values.max(), 200)
            density = gaussian_kde(values)(heights)
            look = looks[group]
            axis.fill_betweenx(heights, density, color=look.colour, alpha=0.25, linewidth=0)
            axis.plot(density, heights, color=look.colour, linestyle=look.line if look.turn else "-", linewidth=1.2)
            axis.axhline(float(np.median(values)), color=look.colour, linewidth=1.2, linestyle=(0, (3, 2)))
    axis.margins(y=0.13)  # of the shared axis: room for the names of the outermost tokens
    axis.set_xlim(left=0)
    axis.axis("off")


def _add_legend(figure: Figure, looks: Mapping[str, Look], *, most: int) -> None:
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, linestyle="", label=f" {brief(group)}")
        for group, look in looks.items()
    ]
    handles.append(Line2D([], [], color="#555555", linestyle=(0, (3, 2)), label=" median of the group"))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(most, len(handles)), columnspacing=1.2)


def _name_extremes(axis: Axes, rows: pd.DataFrame, column: str) -> None:
    """Name the strongest tokens of each polar group where labels have room."""
    to_fractions = axis.transScale + axis.transLimits
    taken: list[Bounds] = []
    for group in shown_groups(rows):
        if group == "neutral":
            continue
        chosen, below = _extremes(rows, group, column)
        places = to_fractions.transform(chosen[["rank", column]].to_numpy(np.float64))
        named = 0
        for (_, token), (x, y) in zip(chosen.iterrows(), places.tolist(), strict=True):
            bounds = _bounds(str(token["token"]), x, y, below=below)
            if named < NAMED and not any(_overlap(bounds, other) for other in taken):
                taken.append(bounds)
                named += 1
                _name(axis, token, column, left=x > RIGHT_EDGE, below=below)


def _extremes(rows: pd.DataFrame, group: str, column: str) -> tuple[pd.DataFrame, bool]:
    """The outermost tokens of a group, on the side of the neutral tokens (or of zero) where it lies."""
    members = rows[rows["group"] == group]
    rest = rows.loc[rows["group"] == "neutral", column]
    below = bool(members[column].median() < (rest.median() if len(rest) else 0.0))
    return (members.nsmallest if below else members.nlargest)(CANDIDATES, column), below


def _bounds(token: str, x: float, y: float, *, below: bool) -> Bounds:
    """Left, right, bottom and top of a label, in fractions of the panel; in lower groups it hangs under its point."""
    width = LETTER * len(brief(token, LONGEST))
    left = x - width if x > RIGHT_EDGE else x
    bottom = y - 0.07 if below else y
    return left, left + width, bottom, bottom + 0.05


def _overlap(one: Bounds, other: Bounds) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def _name(axis: Axes, token: "pd.Series[Any]", column: str, *, left: bool, below: bool) -> None:
    axis.annotate(
        brief(str(token["token"]), LONGEST),
        (float(token["rank"]), float(token[column])),
        xytext=(-3 if left else 3, -9 if below else 3),
        textcoords="offset points",
        ha="right" if left else "left",
        fontsize=7.5,
        color="#222222",
        path_effects=[withStroke(linewidth=2, foreground="white")],
    )
