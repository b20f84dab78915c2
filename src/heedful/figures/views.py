"""What a view shows at first sight, as a picture on axes: a drawing for each kind of value, a table in.

Values name their drawing (`heedful.notebook.View`), and this module is loaded when the first is asked for.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from heedful.errors import InputError
from heedful.figures import style
from heedful.figures.faithfulness import draw_grid, grid_size
from heedful.figures.manipulation import LARGEST, draw_violins
from heedful.figures.picture import METADATA
from heedful.figures.tokens import draw_accuracy, draw_push, polarity_names
from heedful.files import replacing
from heedful.notebook import View

MOST_BARS = 40
SIZE = 6.4, 4.2
BAR = 0.28
"""Inches of a row of bars."""

COLOURS: Mapping[str, str] = {"yes": style.GREEN, "no": style.VERMILION, "not shown": style.GREY}

Draw = Callable[[Axes, pd.DataFrame], None]


def draw(view: View, ax: Axes | None = None) -> Axes:
    """The drawing of a view, on these axes or on new ones (of pyplot, so that notebooks show them)."""
    if not view.drawing or view.data is None or view.data.empty:
        raise InputError(f"There is nothing to draw of '{view.title}'.")
    with style.house_style():
        axes = ax or _new_axes(view)
        DRAWINGS[view.drawing](axes, view.data)
    return axes


def _new_axes(view: View) -> Axes:
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=_size(view), layout="constrained")
    return axes


def save(view: View, path: Path) -> None:
    """Write the drawing of a view as the ending of the name says."""
    with style.house_style():
        canvas = Canvas(figsize=_size(view), layout="constrained")
        draw(view, canvas.subplots())
        with replacing(path) as temporary:
            canvas.savefig(temporary, format=path.suffix[1:], metadata=METADATA[path.suffix[1:]])


def _size(view: View) -> tuple[float, float]:
    """In inches."""
    table = pd.DataFrame() if view.data is None else view.data
    if view.drawing == "metrics":
        return grid_size(table)
    high = max(2.2, min(len(table), MOST_BARS) * BAR + 1.4)
    return (TALL[view.drawing], high) if view.drawing in TALL else SIZE


def units(axes: Axes, table: pd.DataFrame) -> None:
    """What each unit of one instance gets, and its share of all that units gave to the decision or took from it."""
    used = table["contribution"] / max(table["contribution"].abs().sum(), 1e-300)
    names = _names(table)
    places = np.arange(len(names))
    _bars(axes, places - 0.2, table["attention_weight"].head(MOST_BARS), [style.ATTENDED] * len(names), 0.38)
    _bars(axes, places + 0.2, used.head(MOST_BARS), _signed(used), 0.38)
    decision = f"decision: {style.brief(str(table['predicted'].iloc[0]))}"
    _rows(axes, names, len(table), decision, "amber: attention weight; green, purple: share of what was given, taken")


def scores_of_units(axes: Axes, table: pd.DataFrame) -> None:
    """The scores of one text."""
    scores = table["score"]
    _bars(axes, np.arange(len(_names(table))), scores.head(MOST_BARS), _signed(scores), 0.7)
    _rows(axes, _names(table), len(table), f"for {style.brief(str(table['target'].iloc[0]))}", "score")


def verdicts(axes: Axes, table: pd.DataFrame) -> None:
    """Each number with its interval on the scale of its claim, and the line above which it says yes."""
    least, width = _numbers(table["least"]), _numbers(table["most"]) - _numbers(table["least"])
    line, value, low, high = (
        np.clip((_numbers(table[name]) - least) / width, 0, 1) for name in ("threshold", "value", "low", "high")
    )
    places, colours = np.arange(len(table)), [COLOURS[str(said)] for said in table["verdict"]]
    axes.hlines(places, 0, 1, color=style.SHADE, linewidth=0.6, zorder=0)
    axes.vlines(line, places - 0.3, places + 0.3, color=style.BLACK, linewidth=1.2)
    axes.hlines(places, low, high, color=colours, linewidth=3)
    axes.scatter(value, places, color=colours, zorder=3)
    axes.set(xlim=(-0.02, 1.02), ylim=(len(table) - 0.5, -0.5), xlabel="on the scale of its claim; upright: the line")
    axes.set_xticks([0, 1], ["least", "most"])
    named = zip(table["statement"], table["claim"], table["verdict"], strict=True)
    axes.set_yticks(range(len(table)), [f"{style.brief(words, 60)}  {claim}  {said}" for words, claim, said in named])
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(visible=False)


def token_scores(axes: Axes, table: pd.DataFrame) -> None:
    """Push and attention of every token; of more than two classes towards the first."""
    column, rest = polarity_names(table)[0], table[table["group"] == "none"]
    if len(rest):
        style.scatter(axes, rest[column], rest["attention"], style.FIXED["none"], alpha=0.6,
                      label=style.sized("no group", len(rest)))  # fmt: skip
    draw_push(axes, table, column)
    axes.legend(loc="best", markerscale=2.5)


def adversary(axes: Axes, table: pd.DataFrame) -> None:
    """How far the other weights lie."""
    found = table["jsd"].dropna().to_numpy(np.float64)
    axes.hist(found, np.linspace(0, LARGEST, 25).tolist(), weights=np.full(len(found), 1 / len(table)),
              color=style.ATTENDED)  # fmt: skip
    axes.axvline(LARGEST, color=style.SHADE, linestyle=":", linewidth=1)
    title = f"Another attention: {len(found):,} of {len(table):,} instances have one"
    axes.set(xlim=(0, LARGEST * 1.02), xlabel="JSD from its own attention", ylabel="share of instances", title=title)


def shuffles(axes: Axes, table: pd.DataFrame) -> None:
    """How far the output moves, by the largest weight."""
    draw_violins(axes, table, "tvd_median", style.ATTENDED)
    axes.set(xlabel="largest attention weight", ylabel="how far the output moves (TVD)", title="Shuffled attention")


def flips(axes: Axes, table: pd.DataFrame) -> None:
    """How many decisions have flipped by how much erasure."""
    share = (table["erased"] / table["units"]).to_numpy(np.float64, na_value=np.inf)
    axes.step([0, *np.sort(share[np.isfinite(share)]), 1], [*_steps(share), np.isfinite(share).mean()], where="post",
              color=style.BLACK)  # fmt: skip
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="share of units erased", ylabel="share of decisions flipped",
             title="Erasure until decisions flip")  # fmt: skip


def classes(axes: Axes, table: pd.DataFrame) -> None:
    """Texts of each class in each split."""
    shown = table.head(MOST_BARS)
    names, left = [style.brief(str(name)) for name in shown["class"]], np.zeros(len(shown))
    for split, colour in zip([str(name) for name in table.columns[1:]], style.CLASS_COLOURS, strict=False):
        axes.barh(np.arange(len(shown)), shown[split], left=left, color=colour, label=split)
        left = left + shown[split].to_numpy(np.float64)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0.2)
    _rows(axes, names, len(table), "Texts by class", "texts")


def _numbers(column: "pd.Series[float]") -> np.ndarray:
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _names(table: pd.DataFrame) -> list[str]:
    shown = table.head(MOST_BARS)
    return [
        style.brief(str(place if pd.isna(unit) else unit))
        for place, unit in zip(shown["position"], shown["unit"], strict=True)
    ]


def _signed(values: "pd.Series[float]") -> list[str]:
    return [style.TOWARDS if value >= 0 else style.AWAY for value in values.head(MOST_BARS)]


def _bars(axes: Axes, places: np.ndarray, values: "pd.Series[float]", colours: list[str], height: float) -> None:
    axes.barh(places, values.to_numpy(np.float64), height=height, color=colours)


def _rows(axes: Axes, names: list[str], count: int, title: str, label: str) -> None:
    more = f", the first {len(names)} of {count:,}" if count > len(names) else ""
    axes.set_yticks(range(len(names)), names)
    axes.set(ylim=(len(names) - 0.4, -0.6), xlabel=label, title=title + more)
    axes.grid(visible=False, axis="y")


def _steps(share: np.ndarray) -> list[float]:
    return [number / len(share) for number in range(int(np.isfinite(share).sum()) + 1)]


TALL = {"units": SIZE[0], "scores_of_units": SIZE[0], "classes": SIZE[0], "verdicts": 9.0}
"""Drawings with a row for each row of their table, and how wide they are."""

DRAWINGS: Mapping[str, Draw] = {
    "units": units,
    "scores_of_units": scores_of_units,
    "verdicts": verdicts,
    "token_scores": token_scores,
    "adversary": adversary,
    "shuffles": shuffles,
    "flips": flips,
    "classes": classes,
    "metrics": draw_grid,
    "training": draw_accuracy,
}
