"""Pictures of token scores: against frequency rank, against each other, and as weights by group."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.figures.style import group_colours, house_style, panels

NAMED = 6
"""How many extreme tokens of a group are named in a picture."""


def shown_groups(table: pd.DataFrame) -> list[str]:
    """Neutral first, so that it is drawn beneath; tokens of no group are left out."""
    present = [str(group) for group in table["group"].unique()]
    return [group for group in ("neutral", *sorted(set(present) - {"neutral", "none"})) if group in present]


def polarity_names(table: pd.DataFrame) -> list[str]:
    return [str(column) for column in table.columns if str(column).startswith("polarity")]


def scores_by_rank(table: pd.DataFrame) -> Figure:
    """Polarity (one panel per class where there are more than two) and attention against frequency rank."""
    columns = [*polarity_names(table), "attention"]
    ranked = table.assign(rank=np.arange(1, len(table) + 1))
    with house_style():
        figure, axes = panels(len(columns))
        for axis, column in zip(axes, columns, strict=True):
            _scatter(axis, ranked, "rank", column)
            axis.set(xscale="log", xlabel="frequency rank (log)", ylabel=score_label(column), title=score_title(column))
        axes[-1].legend(loc="best", markerscale=2.5)
    return figure


def polarity_against_attention(table: pd.DataFrame) -> Figure:
    """What the model uses against what it attends to, a point per token; the extremes are named."""
    columns = polarity_names(table)
    with house_style():
        figure, axes = panels(len(columns), width=6.0 if len(columns) == 1 else 4.6, height=4.4)
        for axis, column in zip(axes, columns, strict=True):
            _scatter(axis, table, column, "attention")
            _name_extremes(axis, table, column)
            axis.set(xlabel=score_label(column), ylabel=score_label("attention"), title="Used against attended")
            axis.margins(0.12)
        axes[-1].legend(loc="best", markerscale=2.5)
    return figure


def weights_by_group(weights: pd.DataFrame) -> Figure:
    """Mean attention weight of each test token, as boxes by group (Sun & Lu 2020, Figure 5)."""
    groups = shown_groups(weights)
    colours = group_colours(groups)
    data = [weights.loc[weights["group"] == group, "weight"].to_numpy() for group in groups]
    with house_style():
        figure, (axis,) = panels(1, width=5.2)
        boxes = axis.boxplot(
            data,
            tick_labels=[f"{group}\n({len(values)})" for group, values in zip(groups, data, strict=True)],
            patch_artist=True,
            widths=0.55,
            flierprops={"markersize": 2.5, "alpha": 0.5},
            medianprops={"color": "black"},
        )
        for patch, group in zip(boxes["boxes"], groups, strict=True):
            patch.set(facecolor=colours[group], alpha=0.75)
        axis.set(ylabel="mean attention weight", title="Attention weight on test text, by group (tokens)")
        axis.grid(visible=False, axis="x")
    return figure


def score_label(column: str) -> str:
    if column == "attention":
        return "attention score a"
    towards = column.removeprefix("polarity").lstrip("_")
    return f"polarity score towards {towards}" if towards else "polarity score s"


def score_title(column: str) -> str:
    return "What the model attends to" if column == "attention" else "What the model uses"


def _scatter(axis: Axes, table: pd.DataFrame, x: str, y: str) -> None:
    groups = shown_groups(table)
    colours = group_colours(groups)
    for group in groups:
        rows = table[table["group"] == group]
        axis.scatter(
            rows[x],
            rows[y],
            s=9,
            color=colours[group],
            alpha=0.6 if len(rows) < 3000 else 0.3,
            linewidths=0,
            label=f"{group} ({len(rows)})",
            rasterized=True,
        )
    axis.axhline(0, color="#9A9A9A", linewidth=0.8, zorder=0)


def _name_extremes(axis: Axes, table: pd.DataFrame, column: str) -> None:
    """Name the tokens with the largest scores at either end, where their labels do not cover each other."""
    examined = table[~table["group"].isin(["none", "neutral"])]
    ends = [examined.nlargest(NAMED, column), examined.nsmallest(NAMED, column)]
    taken: list[tuple[float, float]] = []
    span_x, span_y = _spans(examined, [column, "attention"])
    for row in pd.concat(ends).drop_duplicates("token").itertuples():
        x, y = float(getattr(row, column)), float(row.attention)  # type: ignore[arg-type]
        if any(abs(x - a) < 0.12 * span_x and abs(y - b) < 0.045 * span_y for a, b in taken):
            continue
        taken.append((x, y))
        axis.annotate(
            str(row.token),
            (x, y),
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=8,
            color="#222222",
            parse_math=False,
        )


def _spans(table: pd.DataFrame, columns: Sequence[str]) -> tuple[float, ...]:
    return tuple(float(table[column].max() - table[column].min()) or 1.0 if len(table) else 1.0 for column in columns)
