"""Pictures of a training as it goes: dot products of embeddings, scores of groups and tokens, VᵀW.

Tables are those of a recording (`studies.sun2020.synthetic`). `time` counts epochs; a thick line is a mean, the band
around it holds the middle 80 % of the tokens or pairs.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from heedful.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Line,
    brief,
    group_looks,
    house_style,
)
from heedful.figures.tokens import score_label, shown_groups

TIME = "training time (epochs)"
OMEGA = "embedding dot product Ω"
BAND = (0.1, 0.9)
THIN = 12
"""So many single pairs of a kind are drawn where the bands of the kinds would cover each other."""

TOGETHER = 6
"""So many groups may share a panel with bands and a legend in it."""

NAME_HEIGHT = 0.22
"""Of a named token beside a panel, in inches."""

JITTER_SEED = 0

KINDS: Mapping[str, tuple[str, str]] = {
    "pos-pos": (BLUE, "-"),
    "neg-neg": (VERMILION, "-"),
    "pos-neg": (PURPLE, "--"),
    "pos-neu": (SKY, "-."),
    "neg-neu": (ORANGE, "-."),
    "neu-neu": (GREY, ":"),
}
"""Colour and line of each kind of pair of two classes, in the order of the paper's figures."""

RATIO_COLOURS = (VERMILION, ORANGE, GREY, SKY, BLUE)


def dot_product_trends(
    tables: Mapping[str, pd.DataFrame],
    *,
    kinds: Sequence[str],
    columns: int = 1,
    label: str = OMEGA,
    single: bool = False,
) -> Figure:
    """Ω of pairs by kind over training, a panel for each table (columns: time, kind, first, second, omega).

    With `single`, a few pairs of each kind are drawn instead of the band.
    """
    with house_style():
        figure, axes = grid(len(tables), columns, width=7.0 / columns + 1.2, height=3.0)
        for axis, (title, table) in zip(axes, tables.items(), strict=True):
            for kind in kinds:
                rows = table[table["kind"] == kind]
                if single:
                    _single_lines(axis, rows, *_kind_style(kind))
                _trend(axis, rows, "omega", kind, *_kind_style(kind), band=not single)
            _finish(axis, title, label)
        _legend(figure, axes)
    return figure


def dot_product_boxes(table: pd.DataFrame, *, kinds: Sequence[str], title: str, label: str = OMEGA) -> Figure:
    """Ω of pairs at one moment, a box for each kind (columns: kind, omega)."""
    with house_style():
        figure, (axis,) = grid(1, 1, width=max(6.0, 0.95 * len(kinds) + 1), height=3.8)
        _draw_boxes(axis, [table.loc[table["kind"] == kind, "omega"].to_numpy() for kind in kinds], kinds)
        axis.set(title=title, ylabel=label)
    return figure


def pairs_of_classes(table: pd.DataFrame, *, classes: Sequence[str]) -> Figure:
    """Ω by whether two tokens belong to the same class, to different ones, or one is neutral: over time and at the end.

    Columns: time, kind (`<class>-<class>`, with `neu` for neutral), omega.
    """
    kinds = _class_kinds(classes)
    relations = table.assign(kind=table["kind"].map(lambda kind: relation(str(kind), classes)))
    with house_style():
        figure, (trends, boxes) = grid(2, 2, width=6.0, height=4.0)
        for name, (colour, line) in RELATIONS.items():
            _trend(trends, relations[relations["kind"] == name], "omega", name, colour, line)
        _finish(trends, "Over training", OMEGA)
        trends.legend()
        last = table[table["time"] == table["time"].max()]
        data = [last.loc[last["kind"] == kind, "omega"].to_numpy() for kind in kinds]
        _draw_boxes(boxes, data, kinds, [RELATIONS[relation(kind, classes)][0] for kind in kinds])
        boxes.tick_params(axis="x", labelrotation=40)
        for tick in boxes.get_xticklabels():
            tick.set(ha="right", rotation_mode="anchor")
        boxes.set(title="At the end, by classes of the two tokens", ylabel=OMEGA)
    return figure


RELATIONS: Mapping[str, tuple[str, str]] = {
    "same class": (GREEN, "-"),
    "different classes": (PURPLE, "--"),
    "with a neutral token": (GREY, ":"),
}


def relation(kind: str, classes: Sequence[str]) -> str:
    """What two tokens are to each other."""
    if kind in {f"{name}-{name}" for name in classes}:
        return "same class"
    return "with a neutral token" if kind.endswith("-neu") else "different classes"


def single_pairs(table: pd.DataFrame, *, title: str) -> Figure:
    """Ω of one named pair of each kind over training (columns: time, kind, first, second, omega)."""
    with house_style():
        figure, (axis,) = grid(1, 1, width=7.6, height=4.0)
        for kind, (colour, line) in KINDS.items():
            rows = table[table["kind"] == kind]
            if len(rows):
                pair = f"{brief(rows['first'].iloc[0], 14)} · {brief(rows['second'].iloc[0], 14)}"
                axis.plot(rows["time"], rows["omega"], color=colour, linestyle=line, label=f"{kind}: {pair}")
        _finish(axis, title, OMEGA)
        figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    return figure


def score_distributions(tables: Mapping[str, pd.DataFrame], column: str) -> Figure:
    """A score of every token by group, a panel for each table (columns: group, the score); means are written below."""
    with house_style():
        figure, axes = grid(len(tables), len(tables), width=4.6, height=3.8, share_y=True)
        for axis, (title, table) in zip(axes, tables.items(), strict=True):
            groups = _groups(table)
            _draw_points(axis, table, column, groups)
            axis.set_xticks(range(len(groups)), [_summary(table, column, group) for group in groups])
            axis.set(title=title, ylabel=score_label(column))
            axis.grid(visible=False, axis="x")
            axis.axhline(0, color="#9A9A9A", linewidth=0.8, zorder=0)
    return figure


def score_trends(tables: Mapping[str, tuple[pd.DataFrame, str]], *, columns: int = 1) -> Figure:
    """A score by group over training; for each panel its title, table (time, group, the score) and column."""
    with house_style():
        figure, axes = grid(len(tables), columns, width=7.0 / columns + 1.2, height=3.0 if len(tables) > 1 else 3.8)
        for axis, (title, (table, column)) in zip(axes, tables.items(), strict=True):
            _group_trends(axis, table, column)
            _finish(axis, title, score_label(column))
        _legend(figure, axes)
    return figure


def closing_gap(without: pd.DataFrame, penalised: pd.DataFrame, gaps: pd.DataFrame) -> Figure:
    """Attention by group without and with a penalty on VᵀW, and the gap between the groups in every run.

    `gaps` has the columns time, seed, penalised (yes or no) and gap.
    """
    with house_style():
        figure, axes = grid(3, 3, width=4.6, height=3.7)
        for axis, table, title in zip(
            axes, (without, penalised), ("(a) without regulariser", "(b) with regulariser on VᵀW"), strict=False
        ):
            _group_trends(axis, table, "attention")
            _finish(axis, title, score_label("attention"))
        axes[1].set_ylim(axes[0].get_ylim())
        for flag, colour, line, label in ((False, PURPLE, "-", "without"), (True, GREEN, "--", "with regulariser")):
            rows = gaps[gaps["penalised"] == flag]
            for _, run in rows.groupby("seed"):
                axes[2].plot(run["time"], run["gap"], color=colour, linestyle=line, linewidth=0.8, alpha=0.45)
            mean = rows.groupby("time")["gap"].mean()
            axes[2].plot(mean.index, mean, color=colour, linestyle=line, linewidth=2.4, label=f"{label} (mean)")
        _finish(axes[2], f"Gap in {gaps['seed'].nunique()} runs each", "|positive − negative|, attention")
        axes[2].legend()
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def alignment_by_ratio(table: pd.DataFrame) -> Figure:
    """VᵀW by the share of positive texts: means over training, and |VᵀW| of every run at the end.

    Columns: positive_share, seed, time, alignment.
    """
    shares = sorted(table["positive_share"].unique())
    colours = dict(zip(shares, RATIO_COLOURS * (1 + len(shares) // len(RATIO_COLOURS)), strict=False))
    with house_style():
        figure, (trend, ends) = grid(2, 2, width=5.4, height=3.8)
        for share in shares:
            mean = table[table["positive_share"] == share].groupby("time")["alignment"].mean()
            line = "-" if share == 0.5 else "--" if share < 0.5 else "-."
            trend.plot(mean.index, mean, color=colours[share], linestyle=line, label=ratio_label(share))
        _finish(trend, f"Mean of {table['seed'].nunique()} initialisations", "VᵀW")
        trend.legend(title="positive : negative", fontsize=9)
        last = table[table["time"] == table["time"].max()]
        for place, share in enumerate(shares):
            sizes = last.loc[last["positive_share"] == share, "alignment"].abs()
            ends.scatter([place] * len(sizes), sizes, s=28, color=colours[share], alpha=0.75, linewidths=0)
            ends.hlines(sizes.mean(), place - 0.25, place + 0.25, color="black", linewidth=1.6)
        ends.set_xticks(range(len(shares)), [ratio_label(share) for share in shares])
        ends.set(title="At the end: each run, and the mean", xlabel="positive : negative texts", ylabel="|VᵀW|")
        ends.set_ylim(bottom=0)
        ends.grid(visible=False, axis="x")
    return figure


def ratio_label(positive_share: float) -> str:
    """0.1 is 1 : 9."""
    return f"{10 * positive_share:g} : {10 * (1 - positive_share):g}"


def attention_over_time(table: pd.DataFrame, *, named: int = 2) -> Figure:
    """Attention scores of groups, and of a few named tokens of each, by time (columns: time, token, group, attention).

    The named ones are those that end lowest and highest in their group. Many groups have no bands, and a legend below.
    """
    names = _groups(table)
    with house_style():
        height = max(4.0, NAME_HEIGHT * named * len(names))
        figure, (groups, tokens) = grid(2, 2, width=5.8, height=height)
        _group_trends(groups, table, "attention", band=len(names) <= TOGETHER)
        _finish(groups, "Groups of tokens", score_label("attention"))
        ends = _token_courses(tokens, table, named)
        _finish(tokens, "Tokens that end highest and lowest in their group", score_label("attention"))
        _name_ends(tokens, ends, height)
        if len(names) <= TOGETHER:
            groups.legend()
        else:
            _legend(figure, [groups])
    return figure


def _token_courses(axis: Axes, table: pd.DataFrame, named: int) -> list[tuple[float, str, str]]:
    """The lines of tokens that end lowest and highest in their group; the end, name and colour of each."""
    last = table[table["time"] == table["time"].max()]
    ends: list[tuple[float, str, str]] = []
    looks = group_looks(_groups(table))
    for group in _groups(table):
        look = looks[group]
        rows = last[last["group"] == group].sort_values("attention")
        for token in [*rows["token"].head(named // 2), *rows["token"].tail(named - named // 2)]:
            course = table[(table["token"] == token) & (table["group"] == group)]
            axis.plot(course["time"], course["attention"], color=look.colour, linestyle=look.line)
            ends.append((float(course["attention"].iloc[-1]), str(token), look.colour))
    return ends


def grid(count: int, columns: int, *, width: float, height: float, share_y: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels in so many columns, each of this size in inches."""
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout=ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.06))
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=share_y).flat)
    return figure, axes[:count]


def _single_lines(axis: Axes, rows: pd.DataFrame, colour: str, line: str) -> None:
    for _, pair in list(rows.groupby(["first", "second"], sort=False))[:THIN]:
        axis.plot(pair["time"], pair["omega"], color=colour, linestyle=line, linewidth=0.6, alpha=0.55)


def _trend(
    axis: Axes, rows: pd.DataFrame, column: str, label: str, colour: str, line: Line | str, *, band: bool = True
) -> None:
    """The mean at each moment, and the band of the middle 80 %."""
    values = rows.groupby("time")[column]
    mean = values.mean()
    if band and values.size().max() > 1:
        axis.fill_between(
            mean.index, values.quantile(BAND[0]), values.quantile(BAND[1]), color=colour, alpha=0.15, linewidth=0
        )
    axis.plot(mean.index, mean, color=colour, linestyle=line, linewidth=2.2, label=label)


def _group_trends(axis: Axes, table: pd.DataFrame, column: str, *, band: bool = True) -> None:
    groups = _groups(table)
    looks = group_looks(groups)
    for group in groups:
        rows = table[table["group"] == group]
        label = f"{brief(group)} ({rows['token'].nunique()})"
        label = f" {label}" if label.startswith("_") else label  # matplotlib hides labels that begin with _
        _trend(axis, rows, column, label, looks[group].colour, looks[group].line, band=band)


def _groups(table: pd.DataFrame) -> list[str]:
    """Positive, negative and neutral, or the classes by name and neutral last."""
    found = shown_groups(table)
    rank = {"positive": 0, "negative": 1, "neutral": 3}
    return sorted(found, key=lambda group: (rank.get(group, 2), group))


def _finish(axis: Axes, title: str, label: str) -> None:
    axis.axhline(0, color="#9A9A9A", linewidth=0.8, zorder=0)
    axis.set(title=title, xlabel=TIME, ylabel=label)
    axis.margins(x=0.01)


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, max(1, len(labels))))


def _kind_style(kind: str) -> tuple[str, str]:
    return KINDS.get(kind, (GREEN, "-"))


def _class_kinds(classes: Sequence[str]) -> list[str]:
    """Same class first, then different ones, then pairs with neutral tokens."""
    names = sorted(classes)
    same = [f"{name}-{name}" for name in names]
    different = [f"{a}-{b}" for number, a in enumerate(names) for b in names[number + 1 :]]
    return [*same, *different, *(f"{name}-neu" for name in names), "neu-neu"]


def _draw_boxes(
    axis: Axes, data: Sequence[np.typing.NDArray[np.floating]], kinds: Sequence[str], colours: Sequence[str] = ()
) -> None:
    boxes = axis.boxplot(
        list(data),
        tick_labels=list(kinds),
        patch_artist=True,
        widths=0.6,
        flierprops={"markersize": 2.5, "alpha": 0.5},
        medianprops={"color": "black"},
    )
    for patch, colour in zip(boxes["boxes"], colours or [_kind_style(kind)[0] for kind in kinds], strict=True):
        patch.set(facecolor=colour, alpha=0.75)
    axis.axhline(0, color="#9A9A9A", linewidth=0.8, zorder=0)
    axis.grid(visible=False, axis="x")


def _draw_points(axis: Axes, table: pd.DataFrame, column: str, groups: Sequence[str]) -> None:
    """Every token as a point, spread sideways where they would cover each other; the mean as a line."""
    rng = np.random.default_rng(JITTER_SEED)
    looks = group_looks(groups)
    for place, group in enumerate(groups):
        values = table.loc[table["group"] == group, column].to_numpy()
        spread = place + rng.uniform(-0.3, 0.3, len(values))
        alpha = 0.75 if len(values) < 200 else 0.25
        look = looks[group]
        axis.scatter(
            spread, values, s=9 * look.size, color=look.colour, marker=look.marker, alpha=alpha, linewidths=0,
            rasterized=True,
        )  # fmt: skip
        axis.hlines(values.mean(), place - 0.36, place + 0.36, color="black", linewidth=1.6)
    axis.set_xlim(-0.5, len(groups) - 0.5)


def _summary(table: pd.DataFrame, column: str, group: str) -> str:
    """What stands below a group: its name, size and mean."""
    values = table.loc[table["group"] == group, column]
    return f"{brief(group)} ({len(values)})\nmean {values.mean():+.2f}".replace("-", "−")


def _name_ends(axis: Axes, ends: Sequence[tuple[float, str, str]], height: float) -> None:
    """Names at the right end of lines, moved apart where they would cover each other; the height is in inches."""
    low, high = axis.get_ylim()
    apart = NAME_HEIGHT * (high - low) / height
    ordered = sorted(ends)
    for place, (_, token, colour) in zip(_apart([end[0] for end in ordered], apart, high), ordered, strict=True):
        axis.annotate(
            f" {brief(token, 16)}",
            (1.0, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8.5,
            color=colour,
            annotation_clip=False,
        )


def _apart(places: Sequence[float], least: float, highest: float) -> list[float]:
    """Ascending places moved up until they are so far apart, and then down where they would pass the highest."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + least) if moved else place)
    for number in reversed(range(len(moved))):
        above = moved[number + 1] - least if number + 1 < len(moved) else highest
        moved[number] = min(moved[number], above)
    return moved
