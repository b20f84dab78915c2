"""Pictures of attention that is shuffled, replaced and attacked: Jain & Wallace 2019, Wiegreffe & Pinter 2019.

Rows of panels are models, columns data sets. Tables have one row per instance and run: `agreement` (measure, tau,
predicted), `permutation` (largest_weight, tvd_median), `adversary` (kind, jsd), `seeds` (largest_weight, jsd); `curve`
has one row per point (kind, tvd, jsd), `determined` one per token (polarity, attention, low, high,
group). Seeds are pooled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from heedful.analysis.permutation import QUARTERS, quarters
from heedful.analysis.statistics import Numbers
from heedful.figures import style
from heedful.figures.erasure import Grid, Panel, draw_rows, in_grid, numbers
from heedful.figures.tokens import name_ends, shown_groups

LARGEST = float(np.log(2))
BINS = 24
FEWEST = 5
"""So many instances make a violin; fewer are points."""

FEW_LINES = 60
"""So many lines beside each other are told apart, and their words can be read below them."""

UNBOUNDED = {"low": "v", "high": "^"}
"""Triangles at the edge of words without a bound."""

MEASURES: Mapping[str, str] = {"gradient": style.SKY, "leave_one_out": style.VERMILION}
NAMES: Mapping[str, str] = {"gradient": "gradient", "leave_one_out": "leave one out"}
POINTS: Mapping[str, tuple[str, str, str]] = {
    "per text": (style.VERMILION, "s", "another attention for every text, by itself"),
    "corpus": (style.GREEN, "^", "one attention score per word, for the whole corpus"),
    "adversary": (style.BLUE, "o", "a model trained to attend elsewhere"),
    "seeds": (style.BLACK, "D", "the same model from another seed"),
    "uniform": (style.GREY, "v", "even weights"),
}
"""Colour, marker and meaning of the kinds of points in a curve."""
COLOURS = (*style.CLASS_COLOURS, style.GREEN, style.PURPLE, style.ORANGE, style.GREY)
"""Of models beside each other."""


@style.house_style()
def agreement_histograms(agreement: pd.DataFrame, grid: Grid) -> Canvas:
    """Kendall τ of attention with the gradient and with leaving one word out, over the test texts."""
    shown = in_grid(agreement, grid)
    shown = shown[shown["measure"].isin(list(MEASURES))]
    edges = np.linspace(-1, 1, BINS + 1).tolist()

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        said = []
        for measure, some in rows.groupby("measure", sort=False):
            taus, colour = numbers(some["tau"].dropna()), MEASURES[str(measure)]
            if len(taus):
                axis.hist(taus, edges, weights=np.full(len(taus), 1 / len(taus)), color=colour, alpha=0.45)
                axis.hist(taus, edges, weights=np.full(len(taus), 1 / len(taus)), color=colour, histtype="step")
                axis.axvline(float(taus.mean()), color=colour, linestyle="--", linewidth=1.2)
                said.append(f"{NAMES[str(measure)]} {taus.mean():.2f}")
        axis.set(xlim=(-1, 1))
        style.remark(axis, f"mean τ: {', '.join(said)}")

    panel = Panel(draw=draw, x="Kendall τ with attention", y="share of texts", height=2.4)
    canvas = draw_rows(shown, grid, panel, width=3.6)
    return style.legend_below(canvas, [Patch(color=MEASURES[name], alpha=0.6, label=NAMES[name]) for name in MEASURES])


@style.house_style()
def permutation_violins(permutation: pd.DataFrame, grid: Grid) -> Canvas:
    """How far the output moves when attention is shuffled, by the largest weight of the text."""

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        draw_violins(axis, rows, "tvd_median", style.SKY)
        axis.set(ylim=(-0.03, 1.03))

    panel = Panel(draw=draw, x="largest attention weight of the text", y="median TVD, shuffled", height=2.6)
    return draw_rows(in_grid(permutation, grid), grid, panel, width=3.6)


@style.house_style()
def seed_violins(seeds: pd.DataFrame, grid: Grid) -> Canvas:
    """How far the attention of another training lies from the first one's, by the largest weight of the text."""

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        draw_violins(axis, rows, "jsd", style.ORANGE)
        _most(axis)

    panel = Panel(draw=draw, x="largest attention weight of the text", y="JSD between seeds", height=2.6)
    return draw_rows(in_grid(seeds, grid), grid, panel, width=3.6)


@style.house_style()
def adversary_histograms(adversary: pd.DataFrame, grid: Grid, kinds: Mapping[str, str]) -> Canvas:
    """How far from its own attention another one may lie; `kinds` are what it must keep to, and their names.

    Dotted: log 2, the most there is.
    """
    edges = np.linspace(0, LARGEST, BINS + 1).tolist()
    colours = dict(zip(kinds, (style.VERMILION, style.BLUE, style.GREEN, style.PURPLE), strict=False))
    strokes, columns = dict(zip(kinds, style.LINES, strict=False)), min(len(grid.datasets), 2)

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        for kind in kinds:
            found = numbers(rows.loc[rows["kind"] == kind, "jsd"].dropna())
            every = int((rows["kind"] == kind).sum())
            if len(found):
                axis.hist(
                    found, edges, weights=np.full(len(found), 1 / every), color=colours[kind], histtype="step",
                    linewidth=1.6, linestyle=strokes[kind],
                )  # fmt: skip
        axis.axvline(LARGEST, color=style.SHADE, linestyle=":", linewidth=1)
        axis.set(xlim=(0, LARGEST * 1.02))

    panel = Panel(draw=draw, x="JSD from its own attention", y="share of texts", height=2.4 if columns > 1 else 3.2)
    canvas = draw_rows(in_grid(adversary, grid), grid, panel, width=3.6)
    handles = [Line2D([], [], color=colours[kind], linestyle=strokes[kind], label=name) for kind, name in kinds.items()]
    return style.legend_below(canvas, handles, most=columns)


@style.house_style()
def divergence_curves(curve: pd.DataFrame, datasets: Mapping[str, str]) -> Canvas:
    """What moving attention so far costs in output: a panel per data set, a line or points per kind of adversary."""
    canvas, axes = style.panels(len(datasets), columns=3, width=5.0, height=4.2)
    for axis, (dataset, name) in zip(axes, datasets.items(), strict=True):
        rows = curve[curve["dataset"] == dataset]
        for kind, (colour, marker, _) in POINTS.items():
            some = rows[rows["kind"] == kind].sort_values(["strength", "tvd"] if "strength" in rows else "tvd")
            if len(some):
                line = "-" if len(some) > 1 and kind not in {"seeds", "uniform"} else ""
                axis.plot(some["tvd"], some["jsd"], color=colour, marker=marker, markersize=5, linestyle=line)
        _most(axis)
        axis.set(title=style.brief(name), xlabel="TVD of the outputs, mean over texts", ylabel="JSD of attention, mean")
        axis.set_xlim(left=-0.01)
    handles = [
        Line2D(
            [], [], color=colour, marker=marker, linestyle="-" if kind not in {"seeds", "uniform"} else "", label=said
        )
        for kind, (colour, marker, said) in POINTS.items()
        if kind in set(curve["kind"])
    ]
    return style.legend_below(canvas, handles, most=min(len(datasets), 2))


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A column of a table, and what it is called."""

    column: str
    label: str


@style.house_style()
def run_points(runs: pd.DataFrame, grid: Grid, x: Axis, y: Axis, *, hollow: Axis | None = None) -> Canvas:
    """One number of each run against another: a panel per data set, a look per model; `hollow` is a second height."""
    datasets = grid.datasets
    canvas, axes = style.panels(len(datasets), columns=3, width=6.0 if len(datasets) == 1 else 5.0, height=4.2)
    styles = zip(grid.models, cycle(COLOURS), cycle(style.MARKERS), strict=False)
    looks: dict[str, dict[str, Any]] = {
        model: {"color": colour, "marker": marker, "linestyle": ""}
        for model, colour, marker in styles
        if model in set(runs["model"])
    }
    for axis, (dataset, name) in zip(axes, datasets.items(), strict=True):
        for model, some in runs[runs["dataset"] == dataset].groupby("model", sort=False):
            axis.plot(some[x.column], some[y.column], **looks[str(model)], markersize=7)
            if hollow is not None:
                axis.plot(some[x.column], some[hollow.column], **looks[str(model)], mfc="none", markersize=7)
        axis.set(title=style.brief(name), xlabel=x.label, ylabel=y.label)
    handles = [Line2D([], [], **look, label=model) for model, look in looks.items()]
    if hollow is not None:
        handles.append(Line2D([], [], color=style.SOFT, marker="o", mfc="none", linestyle="", label=hollow.label))
    return style.legend_below(canvas, handles, most=2 * min(len(datasets), 2))


@style.house_style()
def determined_scores(determined: pd.DataFrame, grid: Grid) -> Canvas:
    """Between which values the attention score of each word may lie with the outputs as they are; dots are its own.

    Words stand side by side, by group and then by their own score, with their names where they are few. A triangle at
    an edge is a word without a bound; where words are few its line runs there too, of many only the ends that there are
    are joined.
    """
    shown = in_grid(determined, grid).dropna(subset=["attention"])
    groups = [*shown_groups(shown), *(["none"] if (shown["group"] == "none").any() else [])]
    looks = style.group_looks(groups)

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        few, (bottom, top) = len(rows) <= FEW_LINES, _edges(rows)
        placed = _side_by_side(rows, groups, few=few)
        for group, part in placed.groupby("group", sort=False):
            _draw_ranges(axis, part, looks[str(group)].colour, {"low": bottom, "high": top}, few=few)
        axis.set(ylim=(bottom, top), xlim=(-1, placed["place"].max() + 1))
        axis.grid(visible=False, axis="x")
        _name_places(axis, placed, groups, few=few)
        below, above = (int(np.isinf(numbers(rows[end])).sum()) for end in ("low", "high"))
        style.remark(axis, f"{len(rows):,} words; without a lower bound {below:,}, without an upper one {above:,}")

    crowded = len(grid.datasets) == 1 and len(shown) > FEW_LINES * len(grid.models)
    panel = Panel(draw=draw, x="words, by group and by their own score", y="attention score", height=4.0)
    canvas = draw_rows(shown, grid, panel, width=9.0 if crowded else 6.0)
    marks = {"o": "the model's own score", "v": "no lower bound", "^": "no upper bound"}
    handles = [
        Line2D([], [], color=style.BLACK, marker=mark, markersize=5, linestyle="", label=said)
        for mark, said in marks.items()
    ]
    if not crowded:  # else their names stand below them
        handles += [
            Line2D([], [], color=looks[group].colour, linewidth=3, label=style.brief(group)) for group in groups
        ]
    return style.legend_below(canvas, handles, most=3)


def _draw_ranges(axis: Axes, rows: pd.DataFrame, colour: str, edges: Mapping[str, float], *, few: bool) -> None:
    """From the lowest to the highest score of each word of a group; what is not proved ends at its own."""
    place, own = rows["place"], rows["attention"]
    ends: dict[str, pd.Series[float]] = {}
    for end, edge in edges.items():
        unbounded = np.isinf(numbers(rows[end]))
        ends[end] = rows[end].fillna(own).mask(unbounded, edge if few else own)
        marker = UNBOUNDED[end]
        axis.plot(
            place[unbounded], np.full(unbounded.sum(), edge), marker, color=colour, markersize=6 if few else 2.5,
            markeredgewidth=0, clip_on=False,
        )  # fmt: skip
    low, high = ends.values()
    axis.vlines(place, low, high, color=colour, alpha=0.6 if few else 0.8, linewidth=2.0 if few else 0.7, zorder=1)
    axis.scatter(place, own, s=16 if few else 2.5, color=style.BLACK, linewidths=0, zorder=3, rasterized=True)


def _side_by_side(rows: pd.DataFrame, groups: Sequence[str], *, few: bool) -> pd.DataFrame:
    """The words in order, each with its place; between groups there is room."""
    ranks = rows["group"].map({group: rank for rank, group in enumerate(groups)})
    order = rows.assign(rank=ranks).sort_values(["rank", "attention"], kind="stable").reset_index(drop=True)
    turns = (order["rank"] != order["rank"].shift()).cumsum() - 1
    return order.assign(place=order.index + turns * (1 if few else len(rows) // 25))


def _name_places(axis: Axes, placed: pd.DataFrame, groups: Sequence[str], *, few: bool) -> None:
    """Few words by their names; of many each group that has room, with how many there are, and its word on top."""
    if few:
        axis.set_xticks(placed["place"], [style.brief(str(name), 14) for name in placed["token"]], rotation=90)
        axis.tick_params(axis="x", labelsize=8 if len(placed) <= FEW_LINES / 2 else 6)
        return
    parts = [placed[placed["group"] == group] for group in groups]
    axis.set_xticks(
        [part["place"].mean() for part in parts],
        [_sized(group, part) for group, part in zip(groups, parts, strict=True)],
    )
    for part in parts:
        last = part.iloc[-1]
        axis.annotate(
            style.brief(str(last["token"]), 14), (last["place"], last["attention"]), xytext=(4, 0),
            textcoords="offset points", fontsize=8, va="center", color=style.BLACK, zorder=4,
        )  # fmt: skip


def _sized(group: str, rows: pd.DataFrame) -> str:
    return f"{style.brief(group, 12)}\n{len(rows):,}\n{np.isinf(numbers(rows['low'])).mean():.0%} ▼"


def _edges(rows: pd.DataFrame) -> tuple[float, float]:
    """What is between: all scores and bounds that there are, and a little more."""
    ends = rows[["attention", "low", "high"]].replace([np.inf, -np.inf], np.nan)
    return float(np.nanmin(ends.to_numpy())) - 1, float(np.nanmax(ends.to_numpy())) + 1


@style.house_style()
def both_attentions(words: pd.DataFrame) -> Canvas:
    """What words push against the model's attention score, and against that of another attention."""
    groups = shown_groups(words)
    looks = style.group_looks(groups)
    canvas, axes = style.panels(2, width=4.8, height=4.0, share_y=True)
    bottom, top = float(words["attention"].min()) - 2, float(words[["attention", "other"]].to_numpy().max()) + 1
    for axis, column, title in zip(
        axes, ("attention", "other"), ("The model's own", "Another, the same outputs"), strict=True
    ):
        rows = words.assign(attention=words[column].clip(bottom, top))
        for group in groups:
            some = rows[rows["group"] == group]
            style.scatter(axis, some["polarity"], some["attention"], looks[group], alpha=0.9, size=14.0)
        axis.margins(x=0.12)
        axis.set(xlabel="polarity score", title=title, ylim=(bottom - 0.3, top))
        name_ends(axis, rows, "polarity")
    axes[0].set_ylabel("attention score")
    return style.legend_below(canvas, _handles(groups, looks))


def _handles(groups: Sequence[str], looks: Mapping[str, style.Look]) -> list[Line2D]:
    return [
        Line2D([], [], color=looks[group].colour, marker=looks[group].marker, linestyle="", label=style.brief(group))
        for group in groups
    ]


def draw_violins(axis: Axes, rows: pd.DataFrame, column: str, colour: str) -> None:
    """The column by quarters of the largest weight: violins with medians, or points where instances are few."""
    known = rows.dropna(subset=[column])
    places = quarters(known["largest_weight"]).cat.codes.to_numpy()
    for place in range(4):
        values: Numbers = numbers(known[column])[places == place]
        if len(values) >= FEWEST and np.ptp(values) > 0:
            drawn = axis.violinplot([values], [place], widths=0.85, showextrema=False)
            for body in drawn["bodies"]:  # type: ignore[attr-defined]
                body.set(facecolor=colour, alpha=0.7)
        elif len(values):
            axis.plot(np.full(len(values), place), values, ".", color=colour, markersize=4)
        if len(values):
            axis.plot([place - 0.25, place + 0.25], [float(np.median(values))] * 2, color="black", linewidth=1.4)
    counts = np.bincount(places, minlength=4)
    names = [f"{quarter}\n{count:,}" for quarter, count in zip(QUARTERS, counts, strict=True)]
    axis.set(xlim=(-0.6, 3.6))
    axis.set_xticks(range(4), names)


def _most(axis: Axes) -> None:
    """The line that no divergence exceeds."""
    axis.axhline(LARGEST, color=style.SHADE, linestyle=":", linewidth=1)
    axis.set_ylim(-0.02, LARGEST * 1.06)
