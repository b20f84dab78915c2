"""Words of a model that can only be asked: the attention they get against what goes without them."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from heedful.figures import style
from heedful.figures.tokens import shown_groups

NAMED = 10
"""Words with the largest effects, and so many with the most attention, that are named."""

NONE = "none"


@style.house_style()
def attention_against_effect(table: pd.DataFrame) -> Canvas:
    """A point per word that was taken away: attention over an even share (log) against how far the output moves."""
    rows = table.dropna(subset=["effect", "lift"])
    rows = rows[rows["lift"] > 0]
    canvas, (axis,) = style.panels(1, width=6.4, height=4.4)
    groups = [NONE, *shown_groups(rows)]
    looks = style.group_looks(groups)
    for group in groups:
        some = rows[rows["group"] == group]
        if len(some):
            label = style.sized(group, len(some))
            style.scatter(axis, some["effect"], some["lift"], looks[group], alpha=0.7, size=14.0, label=label)
    axis.axhline(1, color=style.SHADE, linewidth=0.8, zorder=0)
    axis.set(yscale="log", xlabel="how far the output moves without the word", ylabel="attention over an even share")
    axis.yaxis.set_major_formatter("{x:g}")
    axis.margins(0.1)
    axis.legend(loc="best", markerscale=2)
    _name(axis, rows)
    return canvas


def _name(axis: Axes, rows: pd.DataFrame) -> None:
    """Name the outermost words where their labels do not cover each other."""
    ends = pd.concat([rows.nlargest(NAMED, "effect"), rows.nlargest(NAMED // 2, "lift")]).drop_duplicates("token")
    taken: list[tuple[float, float]] = []
    width, height = np.ptp(axis.get_xlim()), np.ptp(np.log(axis.get_ylim()))
    for token, x, y in zip(ends["token"], ends["effect"], ends["lift"], strict=True):
        if not any(abs(x - a) < 0.15 * width and abs(np.log(y / b)) < 0.05 * height for a, b in taken):
            taken.append((x, y))
            axis.annotate(style.brief(token), (x, y), xytext=(3, 3), textcoords="offset points", fontsize=8)
