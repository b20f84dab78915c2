"""Pictures of a training as it goes: dot products of embeddings, scores of groups and tokens, VᵀW.

Tables are those of a recording of a synthetic corpus. `time` counts epochs; a thick line is a mean, the band around it
holds the middle 80 % of the tokens or pairs.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from heedful.figures import style
from heedful.figures.tokens import looks_of, score_label, shown_groups

OMEGA = "embedding dot product Ω"
BAND = (0.1, 0.9)
THIN = 12  # single pairs of a kind that are drawn where the bands of the kinds would cover each other
TOGETHER = 6  # groups that may share a panel with bands and a legend in it
NAME_HEIGHT = 0.22  # of a named token beside a panel, in inches

KINDS: Mapping[str, style.Look] = {
    "pos-pos": style.Look(colour=style.BLUE),
    "neg-neg": style.Look(colour=style.VERMILION),
    "pos-neg": style.Look(colour=style.PURPLE, line="--"),
    "pos-neu": style.Look(colour=style.SKY, line="-."),
    "neg-neu": style.Look(colour=style.ORANGE, line="-."),
    "neu-neu": style.Look(colour=style.GREY, line=":"),
}
"""The look of each kind of pair of two classes, in the order of the paper's figures."""
OTHER_KIND = style.Look(colour=style.GREEN)

RELATIONS: Mapping[str, style.Look] = {
    "same class": style.Look(colour=style.GREEN),
    "different classes": style.Look(colour=style.PURPLE, line="--"),
    "with a neutral token": style.Look(colour=style.GREY, line=":"),
}
"""What two tokens of several classes are to each other."""

RATIO_COLOURS = (style.VERMILION, style.ORANGE, style.GREY, style.SKY, style.BLUE)


@style.house_style()
def dot_product_trends(
    tables: Mapping[str, pd.DataFrame],
    *,
    kinds: Sequence[str],
    columns: int = 1,
    label: str = OMEGA,
    single: bool = False,
) -> Canvas:
    """Ω of pairs by kind over training, a panel for each table (columns: time, kind, first, second, omega).

    With `single`, a few pairs of each kind are drawn instead of the band.
    """
    canvas, axes = style.panels(len(tables), columns=columns, width=7.0 / columns + 1.2, height=3.0)
    for axis, (title, table) in zip(axes, tables.items(), strict=True):
        for kind in kinds:
            rows, look = table[table["kind"] == kind], KINDS.get(kind, OTHER_KIND)
            pairs = list(rows.groupby(["first", "second"], sort=False))[:THIN] if single else []
            for _, pair in pairs:
                _plot(axis, pair["time"], pair["omega"], look, linewidth=0.6, alpha=0.55)
            _trend(axis, rows, "omega", look, kind, band=not single)
        _finish(axis, title, label)
    return style.legend_below(canvas, axes[0].get_legend_handles_labels()[0])


@style.house_style()
def dot_product_boxes(table: pd.DataFrame, *, kinds: Sequence[str], title: str) -> Canvas:
    """Ω of pairs at one moment, a box for each kind (columns: kind, omega)."""
    canvas, (axis,) = style.panels(1, width=max(6.0, 0.95 * len(kinds) + 1), height=3.8)
    _boxes_of_kinds(axis, table, {kind: KINDS.get(kind, OTHER_KIND) for kind in kinds})
    axis.set(title=title, ylabel=OMEGA)
    return canvas


@style.house_style()
def pairs_of_classes(table: pd.DataFrame, *, classes: Sequence[str]) -> Canvas:
    """Ω by whether two tokens belong to the same class, to different ones, or one is neutral: over time and at the end.

    Columns: time, kind (`<class>-<class>`, with `neu` for neutral), omega.
    """
    relations = table["kind"].map(lambda kind: relation(str(kind), classes))
    canvas, (trends, ends) = style.panels(2, width=6.0, height=4.0)
    for name, look in RELATIONS.items():
        _trend(trends, table[relations == name], "omega", look, name)
    _finish(trends, "Over training", OMEGA)
    trends.legend()
    looks = {kind: style.Look(colour=RELATIONS[relation(kind, classes)].colour) for kind in _class_kinds(classes)}
    _boxes_of_kinds(ends, _last(table), looks)
    ends.tick_params(axis="x", labelrotation=40)
    for tick in ends.get_xticklabels():
        tick.set(ha="right", rotation_mode="anchor")
    ends.set(title="At the end, by classes of the two tokens", ylabel=OMEGA)
    return canvas


def relation(kind: str, classes: Sequence[str]) -> str:
    """What two tokens are to each other."""
    if kind in {f"{name}-{name}" for name in classes}:
        return "same class"
    return "with a neutral token" if kind.endswith("-neu") else "different classes"


@style.house_style()
def single_pairs(table: pd.DataFrame, *, title: str) -> Canvas:
    """Ω of one named pair of each kind over training (columns: time, kind, first, second, omega)."""
    canvas, (axis,) = style.panels(1, width=7.6, height=4.0)
    for kind, look in KINDS.items():
        rows = table[table["kind"] == kind]
        if len(rows):
            pair = f"{style.brief(rows['first'].iloc[0], 14)} · {style.brief(rows['second'].iloc[0], 14)}"
            _plot(axis, rows["time"], rows["omega"], look, label=f"{kind}: {pair}")
    _finish(axis, title, OMEGA)
    return style.legend_below(canvas, axis.get_legend_handles_labels()[0], most=3, fontsize=9)


@style.house_style()
def score_distributions(tables: Mapping[str, pd.DataFrame], column: str) -> Canvas:
    """A score of every token by group, a panel for each table (columns: group, the score); means are written below."""
    canvas, axes = style.panels(len(tables), columns=len(tables), height=3.8, share_y=True)
    for axis, (title, table) in zip(axes, tables.items(), strict=True):
        samples = {group: table.loc[table["group"] == group, column].to_numpy() for group in _groups(table)}
        _draw_points(axis, samples)
        names = [f"{style.brief(group)} ({len(some)})\nmean {some.mean():+.2f}" for group, some in samples.items()]
        axis.set_xticks(range(len(names)), [name.replace("-", "−") for name in names])
        axis.set(title=title, ylabel=score_label(column))
        axis.grid(visible=False, axis="x")
        style.zero_line(axis)
    return canvas


@style.house_style()
def score_trends(tables: Mapping[str, tuple[pd.DataFrame, str]]) -> Canvas:
    """A score by group over training; for each panel its title, table (time, group, the score) and column."""
    canvas, axes = style.panels(len(tables), columns=1, width=8.2, height=3.0 if len(tables) > 1 else 3.8)
    for axis, (title, (table, column)) in zip(axes, tables.items(), strict=True):
        _group_trends(axis, table, column, title)
    return style.legend_below(canvas, axes[0].get_legend_handles_labels()[0])


@style.house_style()
def closing_gap(without: pd.DataFrame, penalised: pd.DataFrame, gaps: pd.DataFrame) -> Canvas:
    """Attention by group without and with a penalty on VᵀW, and the gap between the groups in every run.

    `gaps` has the columns time, seed, penalised (yes or no) and gap.
    """
    canvas, (left, middle, right) = style.panels(3, height=3.7)
    _group_trends(left, without, "attention", "(a) without regulariser")
    _group_trends(middle, penalised, "attention", "(b) with regulariser on VᵀW")
    middle.set_ylim(left.get_ylim())
    looks = {"without": style.Look(colour=style.PURPLE), "with regulariser": style.Look(colour=style.GREEN, line="--")}
    for flag, (label, look) in enumerate(looks.items()):
        rows = gaps[gaps["penalised"] == bool(flag)]
        for _, run in rows.groupby("seed"):
            _plot(right, run["time"], run["gap"], look, linewidth=0.8, alpha=0.45)
        mean = rows.groupby("time")["gap"].mean()
        _plot(right, mean.index, mean, look, linewidth=2.4, label=f"{label} (mean)")
    _finish(right, f"Gap in {gaps['seed'].nunique()} runs each", "|positive − negative|, attention")
    right.legend()
    return style.legend_below(canvas, left.get_legend_handles_labels()[0], most=3)


@style.house_style()
def alignment_by_ratio(table: pd.DataFrame) -> Canvas:
    """VᵀW by the share of positive texts: means over training, and |VᵀW| of every run at the end.

    Columns: positive_share, seed, time, alignment.
    """
    shares, last = sorted(table["positive_share"].unique()), _last(table)
    canvas, (trend, ends) = style.panels(2, width=5.4, height=3.8)
    for place, share in enumerate(shares):
        look = style.Look(colour=RATIO_COLOURS[place % 5], line="-" if share == 0.5 else "--" if share < 0.5 else "-.")
        mean = table[table["positive_share"] == share].groupby("time")["alignment"].mean()
        _plot(trend, mean.index, mean, look, label=ratio_label(share))
        sizes = last.loc[last["positive_share"] == share, "alignment"].abs()
        ends.scatter([place] * len(sizes), sizes, s=28, color=look.colour, alpha=0.75, linewidths=0)
        ends.hlines(sizes.mean(), place - 0.25, place + 0.25, color="black", linewidth=1.6)
    _finish(trend, f"Mean of {table['seed'].nunique()} initialisations", "VᵀW")
    trend.legend(title="positive : negative", fontsize=9)
    ends.set_xticks(range(len(shares)), [ratio_label(share) for share in shares])
    ends.set(title="At the end: each run, and the mean", xlabel="positive : negative texts", ylabel="|VᵀW|")
    ends.set_ylim(bottom=0)
    ends.grid(visible=False, axis="x")
    return canvas


def ratio_label(positive_share: float) -> str:
    """0.1 is 1 : 9."""
    return f"{10 * positive_share:g} : {10 * (1 - positive_share):g}"


@style.house_style()
def attention_over_time(table: pd.DataFrame) -> Canvas:
    """Attention scores of groups, and of a few named tokens of each, by time (columns: time, token, group, attention).

    The named ones are those that end lowest and highest in their group. Many groups have no bands, and a legend below.
    """
    few, height = len(_groups(table)) <= TOGETHER, max(4.0, 2 * NAME_HEIGHT * len(_groups(table)))
    canvas, (groups, tokens) = style.panels(2, width=5.8, height=height)
    _group_trends(groups, table, "attention", "Groups of tokens", band=few)
    ends = _token_courses(tokens, table)
    _finish(tokens, "Tokens that end highest and lowest in their group", score_label("attention"))
    _name_ends(tokens, ends, height)
    if few:
        groups.legend()
    else:
        style.legend_below(canvas, groups.get_legend_handles_labels()[0])
    return canvas


def _token_courses(axis: Axes, table: pd.DataFrame) -> list[tuple[float, str, str]]:
    """The lines of tokens that end lowest and highest in their group; the end, name and colour of each."""
    ends: list[tuple[float, str, str]] = []
    groups, last = _groups(table), _last(table).sort_values("attention")
    for group in groups:
        look, tokens = looks_of(table)[group], last.loc[last["group"] == group, "token"]
        for token in [*tokens.head(1), *tokens.tail(1)]:
            course = table[(table["token"] == token) & (table["group"] == group)]
            _plot(axis, course["time"], course["attention"], look)
            ends.append((float(course["attention"].iloc[-1]), str(token), look.colour))
    return ends


def _last(table: pd.DataFrame) -> pd.DataFrame:
    return table.query("time == time.max()")


def _plot(axis: Axes, x: "pd.Series[float] | pd.Index", y: "pd.Series[float]", look: style.Look, **more: Any) -> None:
    axis.plot(x, y, color=look.colour, linestyle=look.line, **more)


def _trend(axis: Axes, rows: pd.DataFrame, column: str, look: style.Look, label: str, *, band: bool = True) -> None:
    """The mean at each moment, and the band of the middle 80 %."""
    values = rows.groupby("time")[column]
    mean = values.mean()
    if band and values.size().max() > 1:
        low, high = (values.quantile(share) for share in BAND)
        axis.fill_between(mean.index, low, high, color=look.colour, alpha=0.15, linewidth=0)
    _plot(axis, mean.index, mean, look, linewidth=2.2, label=label)


def _group_trends(axis: Axes, table: pd.DataFrame, column: str, title: str, *, band: bool = True) -> None:
    groups = _groups(table)
    for group in groups:
        rows = table[table["group"] == group]
        label = style.sized(group, rows["token"].nunique())
        _trend(axis, rows, column, looks_of(table)[group], label, band=band)
    _finish(axis, title, score_label(column))


def _groups(table: pd.DataFrame) -> list[str]:
    """Positive, negative and neutral, or the classes by name and neutral last."""
    rank = {"positive": 0, "negative": 1, "neutral": 3}
    return sorted(shown_groups(table), key=lambda group: (rank.get(group, 2), group))


def _finish(axis: Axes, title: str, label: str) -> None:
    style.zero_line(axis)
    axis.set(title=title, xlabel="training time (epochs)", ylabel=label)
    axis.margins(x=0.01)


def _class_kinds(classes: Sequence[str]) -> list[str]:
    """Same class first, then different ones, then pairs with neutral tokens."""
    names = sorted(classes)
    pairs = [*zip(names, names, strict=True), *combinations(names, 2), *((name, "neu") for name in (*names, "neu"))]
    return [f"{first}-{second}" for first, second in pairs]


def _boxes_of_kinds(axis: Axes, table: pd.DataFrame, looks: Mapping[str, style.Look]) -> None:
    data = [table.loc[table["kind"] == kind, "omega"].to_numpy() for kind in looks]
    style.boxes(axis, data, list(looks), list(looks.values()), width=0.6)
    style.zero_line(axis)
    axis.grid(visible=False, axis="x")


def _draw_points(axis: Axes, samples: Mapping[str, np.typing.NDArray[np.floating]]) -> None:
    """Every token as a point, spread sideways where they would cover each other; the mean as a line."""
    rng, looks = np.random.default_rng(0), style.group_looks(list(samples))
    for place, (group, values) in enumerate(samples.items()):
        spread = place + rng.uniform(-0.3, 0.3, len(values))
        style.scatter(axis, spread, values, looks[group], alpha=0.75 if len(values) < 200 else 0.25)
        axis.hlines(values.mean(), place - 0.36, place + 0.36, color="black", linewidth=1.6)
    axis.set_xlim(-0.5, len(samples) - 0.5)


def _name_ends(axis: Axes, ends: Sequence[tuple[float, str, str]], height: float) -> None:
    """Names at the right end of lines, moved apart where they would cover each other; the height is in inches."""
    low, high = axis.get_ylim()
    places = _apart([end for end, _, _ in sorted(ends)], NAME_HEIGHT * (high - low) / height, high)
    for place, (_, token, colour) in zip(places, sorted(ends), strict=True):
        words, at = f" {style.brief(token, 16)}", ("axes fraction", "data")
        axis.annotate(words, (1.0, place), xycoords=at, va="center", fontsize=8.5, color=colour, annotation_clip=False)


def _apart(places: Sequence[float], least: float, highest: float) -> list[float]:
    """Ascending places moved up until they are so far apart, and then down where they would pass the highest."""
    steps = least * np.arange(len(places))
    raised = np.maximum.accumulate(np.asarray(places) - steps) + steps
    return [float(place) for place in np.minimum(raised, highest - steps[::-1])]
