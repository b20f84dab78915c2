"""Pictures of token scores: against frequency rank, against each other, and as weights by group."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.figures.style import add_legend, brief, group_looks, house_style, panels

NAMED = 6
"""How many extreme tokens of a group are named in a picture."""

MOST_CLASSES = 6
"""Pictures with a panel for each class show so many of them."""


def shown_groups(table: pd.DataFrame) -> list[str]:
    """Neutral first, so that it is drawn beneath; tokens of no group are left out."""
    present = [str(group) for group in table["group"].unique()]
    return [group for group in ("neutral", *sorted(set(present) - {"neutral", "none"})) if group in present]


def polarity_names(table: pd.DataFrame) -> list[str]:
    """The polarity columns: one for two classes, one per class for more."""
    return [str(column) for column in table.columns if str(column).startswith("polarity")]


def scores_by_rank(table: pd.DataFrame) -> Figure:
    """Polarity (one panel per class where there are more than two) and attention against frequency rank."""
    columns = [*polarity_names(table)[:MOST_CLASSES], "attention"]
    counts = table[[column for column in table.columns if str(column).startswith("count_")]].sum(axis=1)
    ranked = table.assign(rank=counts.rank(method="first", ascending=False))
    with house_style():
        figure, axes = panels(len(columns))
        for axis, column in zip(axes, columns, strict=True):
            _scatter(axis, ranked, "rank", column)
            axis.set(xscale="log", xlabel="frequency rank (log)", ylabel=score_label(column), title=score_title(column))
            axis.xaxis.set_major_formatter("{x:,.0f}")
        add_legend(figure, axes)
    return figure


def polarity_against_attention(table: pd.DataFrame) -> Figure:
    """What a word would push against the attention it gets, a point per token; the extremes are named."""
    columns = polarity_names(table)[:MOST_CLASSES]
    with house_style():
        figure, axes = panels(len(columns), width=6.0 if len(columns) == 1 else 4.6, height=4.4)
        for axis, column in zip(axes, columns, strict=True):
            _scatter(axis, table, column, "attention")
            axis.margins(0.12)
            _name_extremes(axis, table, column)
            towards = _towards(column)
            title = f"Push towards {brief(towards)} and attention" if towards else "Push and attention"
            axis.set(xlabel=score_label(column), ylabel=score_label("attention"), title=title)
        add_legend(figure, axes)
    return figure


def weights_by_group(weights: pd.DataFrame) -> Figure:
    """Mean attention weight of each test token, as boxes by group (Sun & Lu 2020, Figure 5)."""
    groups = shown_groups(weights)
    looks = group_looks(groups)
    data = [weights.loc[weights["group"] == group, "weight"].to_numpy() for group in groups]
    with house_style():
        figure, (axis,) = panels(1, width=max(5.2, 0.9 * len(groups)))
        axis.set(ylabel="mean attention weight", title="Attention weight on test text, by group (tokens)")
        axis.grid(visible=False, axis="x")
        if not groups:  # matplotlib draws no empty list
            return figure
        boxes = axis.boxplot(
            data,
            tick_labels=[f"{brief(group, 12)}\n({len(values)})" for group, values in zip(groups, data, strict=True)],
            patch_artist=True,
            widths=0.55,
            flierprops={"markersize": 2.5, "alpha": 0.5},
            medianprops={"color": "black"},
        )
        for patch, group in zip(boxes["boxes"], groups, strict=True):
            patch.set(facecolor=looks[group].colour, hatch=looks[group].hatch, alpha=0.75)
    return figure


def score_label(column: str) -> str:
    if column == "attention":
        return "attention score a"
    towards = _towards(column)
    return f"polarity score towards {brief(towards)}" if towards else "polarity score s"


def score_title(column: str) -> str:
    if column == "attention":
        return "What the model attends to"
    towards = _towards(column)
    return f"What a word pushes for {brief(towards)}" if towards else "What a word pushes"


def _towards(column: str) -> str:
    """The class of a polarity column; two classes share one column, which names none."""
    return column.removeprefix("polarity").removeprefix("_")


def _scatter(axis: Axes, table: pd.DataFrame, x: str, y: str) -> None:
    groups = shown_groups(table)
    looks = group_looks(groups)
    for group in groups:
        rows = table[table["group"] == group]
        label = f"{brief(group)} ({len(rows)})"
        axis.scatter(
            rows[x],
            rows[y],
            s=9 * looks[group].size,
            color=looks[group].colour,
            marker=looks[group].marker,
            alpha=0.6 if len(rows) < 3000 else 0.3,
            linewidths=0,
            label=f" {label}" if label.startswith("_") else label,  # matplotlib hides labels that begin with _
            rasterized=True,
        )
    axis.axhline(0, color="#9A9A9A", linewidth=0.8, zorder=0)


def _name_extremes(axis: Axes, table: pd.DataFrame, column: str) -> None:
    """Name the tokens with the largest scores at either end, where their labels do not cover each other."""
    examined = table[~table["group"].isin(["none", "neutral"])]
    ends = [examined.nlargest(NAMED, column), examined.nsmallest(NAMED, column)]
    taken: list[tuple[float, float]] = []
    width, height = np.ptp(axis.get_xlim()), np.ptp(axis.get_ylim())
    named = pd.concat(ends).drop_duplicates("token")
    for token, x, y in zip(named["token"], named[column], named["attention"], strict=True):
        if any(abs(x - a) < 0.2 * width and abs(y - b) < 0.05 * height for a, b in taken):
            continue
        taken.append((x, y))
        axis.annotate(
            brief(token),
            (x, y),
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=8,
            color="#222222",
        )
