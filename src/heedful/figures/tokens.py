"""Pictures of a model and its token scores: against frequency rank, against each other, as weights, over the epochs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox
from scipy.stats import gaussian_kde

from heedful.figures import style

MOST_CLASSES = 6  # that have a panel of their own
EXTREMES = 6  # tokens at either end of the polarity scores that are named
NAMED, CANDIDATES = 4, 15  # tokens of a group that are named in a grid, the most extreme of those with room for a label
LONGEST, LETTER = 16, 0.022  # letters of a label, and the width of one as a fraction of the panel
RIGHT_EDGE = 0.75  # from where labels stand left of their point
FEWEST = 5  # different scores that a density needs


def shown_groups(table: pd.DataFrame) -> list[str]:
    """Neutral first, so that it is drawn beneath; tokens of no group are left out."""
    present = [str(group) for group in table["group"].unique()]
    return [group for group in ("neutral", *sorted(set(present) - {"neutral", "none"})) if group in present]


def looks_of(table: pd.DataFrame) -> dict[str, style.Look]:
    """The look of each group: of a categorical column also of groups that have no token here, so that a class looks
    alike in all pictures."""
    column = table["group"]
    every = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column.unique()
    return style.group_looks(sorted(set(map(str, every)) - {"neutral", "none"}))


def polarity_names(table: pd.DataFrame) -> list[str]:
    """The polarity columns: one for two classes, one per class for more."""
    return [str(column) for column in table.columns if str(column).startswith("polarity")]


def drawn_columns(table: pd.DataFrame) -> list[str]:
    """The polarity columns that have a panel: of many classes those with the most tokens, in the order of the table."""
    columns = polarity_names(table)
    sizes = {name: _tokens_of(table, name) for name in columns}
    most = sorted(columns, key=lambda name: -sizes[name])[:MOST_CLASSES]
    return [name for name in columns if name in most]


def _tokens_of(table: pd.DataFrame, column: str) -> float:
    """How many tokens the training texts of a class have."""
    counts = column.replace("polarity", "count", 1)
    return float(table[counts].sum()) if counts in table else 0.0


def score_label(column: str) -> str:
    return _worded(column, "polarity score s", "polarity score towards {}", "attention score a")


def _worded(column: str, push: str, towards: str, attention: str = "") -> str:
    """Words for a score; two classes share one polarity column, which names none."""
    name = column.removeprefix("polarity").removeprefix("_")
    return attention if column == "attention" else towards.format(style.brief(name)) if name else push


def with_rank(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the frequency rank of each token."""
    counts = table[[column for column in table.columns if str(column).startswith("count_")]].sum(axis=1)
    return table.assign(rank=counts.rank(method="first", ascending=False))


@style.house_style()
def scores_by_rank(table: pd.DataFrame) -> Canvas:
    """Polarity (one panel per class where there are more than two) and attention against frequency rank."""
    columns, ranked = [*drawn_columns(table), "attention"], with_rank(table)
    canvas, axes = style.panels(len(columns))
    for axis, column in zip(axes, columns, strict=True):
        _draw_groups(axis, ranked, "rank", column)
        _label_by_rank(axis, column)
        axis.set_title(_worded(column, "What a word pushes", "What a word pushes for {}", "What the model attends to"))
    return _with_legend(canvas, axes)


@style.house_style()
def polarity_against_attention(table: pd.DataFrame) -> Canvas:
    """What a word would push against the attention it gets, a point per token; the extremes are named."""
    columns = drawn_columns(table)
    canvas, axes = style.panels(len(columns), width=6.0 if len(columns) == 1 else 4.6, height=4.4)
    for axis, column in zip(axes, columns, strict=True):
        draw_push(axis, table, column)
    return _with_legend(canvas, axes)


def draw_push(axis: Axes, table: pd.DataFrame, column: str) -> None:
    """One panel of it: a class, by its column."""
    _draw_groups(axis, table, column, "attention")
    axis.margins(0.12)
    name_ends(axis, table, column)
    title = _worded(column, "Push and attention", "Push towards {} and attention")
    axis.set(xlabel=score_label(column), ylabel=score_label("attention"), title=title)


@style.house_style()
def weights_by_group(weights: pd.DataFrame) -> Canvas:
    """Mean attention weight of each test token, as boxes by group (Sun & Lu 2020, Figure 5)."""
    groups = shown_groups(weights)
    data = [weights.loc[weights["group"] == group, "weight"].to_numpy() for group in groups]
    canvas, (axis,) = style.panels(1, width=max(5.2, 1.15 * len(groups)))
    axis.set(ylabel="mean attention weight", title="Attention weight on test text, by group (tokens)")
    axis.grid(visible=False, axis="x")
    if groups:  # matplotlib draws no empty list
        names = [f"{style.brief(group, 12)}\n({len(values)})" for group, values in zip(groups, data, strict=True)]
        style.boxes(axis, data, names, [looks_of(weights)[group] for group in groups], width=0.55)
    return canvas


@style.house_style()
def learning_curves(history: pd.DataFrame) -> Canvas:
    """Loss on train (with dropout) and dev, and dev accuracy with the chosen epoch."""
    canvas, (losses, accuracy) = style.panels(2, width=4.2, height=3.0)
    dot = "o" if len(history) == 1 else ""  # a line through one point cannot be seen
    losses.plot(history["epoch"], history["train_loss"], color=style.BLACK, marker=dot, label="train, with dropout")
    losses.plot(history["epoch"], history["dev_loss"], color=style.BLACK, marker=dot, linestyle="--", label="dev")
    _finish_curve(losses, "loss")
    draw_accuracy(accuracy, history)
    return canvas


def draw_accuracy(axis: Axes, history: pd.DataFrame) -> None:
    """Dev accuracy with the chosen epoch."""
    best = history[history["kept"]].iloc[0]
    axis.plot(history["epoch"], history["dev_accuracy"], color=style.BLACK)
    chosen = f"chosen: epoch {best['epoch']:.0f}"
    axis.plot(best["epoch"], best["dev_accuracy"], "o", color=style.BLACK, label=chosen)
    _finish_curve(axis, "dev accuracy")


def _finish_curve(axis: Axes, name: str) -> None:
    axis.set(xlabel="epoch", ylabel=name, title=name.capitalize())
    axis.legend()
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


@dataclass(frozen=True, kw_only=True)
class ScorePanel:
    """One panel: a column of a table of token scores, and what it is about."""

    title: str
    table: pd.DataFrame
    column: str

    @property
    def seen(self) -> pd.DataFrame:
        """The rows of shown groups with their frequency rank."""
        return with_rank(self.table)[self.table["group"] != "none"].dropna(subset=[self.column])


@style.house_style()
def score_grid(wanted: Sequence[ScorePanel], *, columns: int) -> Canvas:
    """Each score against frequency rank with the density of its groups beside it, in rows, with one legend for all.

    Points of thousands of tokens cover each other; the curves at the right of a panel say how many there are.
    """
    rows = -(-len(wanted) // columns)
    layout = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.03, wspace=0.01, hspace=0.04)
    canvas = Canvas(figsize=((6.6 if columns == 1 else 4.7) * columns, 3.7 * rows), layout=layout)
    grid = canvas.add_gridspec(rows, 2 * columns, width_ratios=[5.0, 1.0] * columns)
    groups = dict.fromkeys(group for panel in wanted for group in shown_groups(panel.seen))
    every = style.group_looks(list(groups))  # one look for each group of all panels, fixed ones first
    looks = {group: every[group] for group in sorted(groups, key=lambda group: group not in style.FIXED)}
    for number, panel in enumerate(wanted):
        row, column = divmod(number, columns)
        points = canvas.add_subplot(grid[row, 2 * column])
        _draw_points(points, panel, looks)
        _draw_densities(canvas.add_subplot(grid[row, 2 * column + 1], sharey=points), panel, looks)
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, linestyle="", label=f" {style.brief(group)}")
        for group, look in looks.items()
    ]
    median = Line2D([], [], color="#555555", linestyle=(0, (3, 2)), label=" median of the group")
    return style.legend_below(canvas, [*handles, median], most=3 * columns, columnspacing=1.2)


def _draw_groups(axis: Axes, table: pd.DataFrame, x: str, y: str) -> None:
    groups, looks = shown_groups(table), looks_of(table)
    for group in groups:
        rows = table[table["group"] == group]
        alpha = 0.6 if len(rows) < 3000 else 0.3
        style.scatter(axis, rows[x], rows[y], looks[group], alpha=alpha, label=style.sized(group, len(rows)))
    style.zero_line(axis)


def _label_by_rank(axis: Axes, column: str) -> None:
    axis.set(xscale="log", xlabel="frequency rank (log)", ylabel=score_label(column))
    axis.xaxis.set_major_formatter("{x:,.0f}")


def _with_legend(canvas: Canvas, axes: Sequence[Axes]) -> Canvas:
    """One legend for all panels: inside a single one, below several; none where nothing is drawn."""
    handles, _ = axes[-1].get_legend_handles_labels()
    if handles and len(axes) == 1:
        axes[0].legend(loc="best", markerscale=2.5)
    elif handles:
        style.legend_below(canvas, handles, markerscale=2.5)
    return canvas


def name_ends(axis: Axes, table: pd.DataFrame, column: str) -> None:
    """Name the tokens with the largest scores at either end, where their labels do not cover each other."""
    polar = table[~table["group"].isin(["none", "neutral"])]
    ends = pd.concat([polar.nlargest(EXTREMES, column), polar.nsmallest(EXTREMES, column)]).drop_duplicates("token")
    taken: list[tuple[float, float]] = []
    width, height = np.ptp(axis.get_xlim()), np.ptp(axis.get_ylim())
    for token, x, y in zip(ends["token"], ends[column], ends["attention"], strict=True):
        if not any(abs(x - a) < 0.2 * width and abs(y - b) < 0.05 * height for a, b in taken):
            taken.append((x, y))
            words = style.brief(token)
            axis.annotate(words, (x, y), xytext=(3, 3), textcoords="offset points", fontsize=8, color=style.BLACK)


def _draw_points(axis: Axes, panel: ScorePanel, looks: Mapping[str, style.Look]) -> None:
    rows = panel.seen
    sizes, groups = rows["group"].value_counts(), shown_groups(rows)
    for group in groups:
        some = rows[rows["group"] == group]
        alpha = float(np.clip(400 / len(some), 0.25, 0.7))
        style.scatter(axis, some["rank"], some[panel.column], looks[group], alpha=alpha, size=8.0)
    style.zero_line(axis)
    _label_by_rank(axis, panel.column)
    axis.set_title(panel.title, pad=16)
    axis.margins(y=0.13)
    style.remark(axis, " · ".join(f"{style.brief(group, 14)} {sizes[group]:,}" for group in groups))
    _name_extremes(axis, rows, panel.column)


def _draw_densities(axis: Axes, panel: ScorePanel, looks: Mapping[str, style.Look]) -> None:
    """A curve per group, each with the same area, so that small groups are seen."""
    rows = panel.seen
    for group in shown_groups(rows):
        values, look = rows.loc[rows["group"] == group, panel.column].to_numpy(np.float64), looks[group]
        if len(np.unique(values)) >= FEWEST:
            heights = np.linspace(values.min(), values.max(), 200)
            density = gaussian_kde(values)(heights)
            axis.fill_betweenx(heights, density, color=look.colour, alpha=0.25, linewidth=0)
            axis.plot(density, heights, color=look.colour, linestyle=look.line if look.turn else "-", linewidth=1.2)
            axis.axhline(float(np.median(values)), color=look.colour, linewidth=1.2, linestyle=(0, (3, 2)))
    axis.margins(y=0.13)  # of the shared axis: room for the names of the outermost tokens
    axis.set_xlim(left=0)
    axis.axis("off")


def _name_extremes(axis: Axes, rows: pd.DataFrame, column: str) -> None:
    """Name the strongest tokens of each polar group where labels have room."""
    to_fractions = axis.transScale + axis.transLimits
    taken: list[Bbox] = []
    for group in shown_groups(rows):
        if group == "neutral":
            continue
        chosen, below = _extremes(rows, group, column)
        points = chosen[["rank", column]].to_numpy(np.float64)
        words = [style.brief(str(token), LONGEST) for token in chosen["token"]]
        named = 0
        for label, point, (x, y) in zip(words, points.tolist(), to_fractions.transform(points).tolist(), strict=True):
            width, left = LETTER * len(label), x > RIGHT_EDGE  # in lower groups a label hangs under its point
            bounds = Bbox.from_bounds(x - width if left else x, y - 0.07 if below else y, width, 0.05)
            if named < NAMED and not bounds.count_overlaps(taken):
                taken.append(bounds)
                named += 1
                _name(axis, label, point, left=left, below=below)


def _extremes(rows: pd.DataFrame, group: str, column: str) -> tuple[pd.DataFrame, bool]:
    """The outermost tokens of a group, on the side of the neutral tokens (or of zero) where it lies."""
    members = rows[rows["group"] == group]
    rest = rows.loc[rows["group"] == "neutral", column]
    below = bool(members[column].median() < (rest.median() if len(rest) else 0.0))
    return (members.nsmallest if below else members.nlargest)(CANDIDATES, column), below


def _name(axis: Axes, label: str, point: Sequence[float], *, left: bool, below: bool) -> None:
    away, halo = (-3 if left else 3, -9 if below else 3), [withStroke(linewidth=2, foreground="white")]
    axis.annotate(label, (point[0], point[1]), xytext=away, textcoords="offset points", ha="right" if left else "left",
                  fontsize=7.5, color=style.BLACK, path_effects=halo)  # fmt: skip
