"""How every picture looks: colours, lines and letters, and the parts that pictures share.

Colours are Okabe and Ito's and some dark and light ones. There are ten for classes, of which the first seven are safe
for colour-blind readers; from the eighth on marker, line and hatching are others, too, from the fifteenth on others
again, and so on, so that no two classes are alike.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import ArrayLike

Marker = Literal["o", "^", "s", "D", "v", "P", "X"]
Line = Literal["-", "--", "-.", ":"] | tuple[int, tuple[int, ...]]

BLUE, ORANGE, GREY, GREEN = "#0072B2", "#E69F00", "#8C8C8C", "#009E73"
PURPLE, SKY, YELLOW, VERMILION = "#CC79A7", "#56B4E9", "#B8A900", "#D55E00"
BROWN, INDIGO, BLACK = "#7A4A1E", "#4B3A8C", "#222222"
LIME, CRIMSON, ROSE = "#7CB342", "#9B1B30", "#F08FA8"
ATTENDED, TOWARDS, AWAY = ORANGE, GREEN, PURPLE
"""In texts: attention; what speaks for the decision, and against it. No class has one of these colours."""

SAFE_COLOURS = (BLUE, VERMILION, SKY, YELLOW, BROWN, INDIGO, BLACK)
CLASS_COLOURS = (*SAFE_COLOURS, LIME, CRIMSON, ROSE)
MARKERS: tuple[Marker, ...] = ("o", "^", "s", "D", "v", "P", "X")
LINES: tuple[Line, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (6, 1, 1, 1, 1, 1)), (0, (8, 4)), (0, (3, 1, 1, 3)))
HATCHES = ("", "////", "\\\\\\\\", "....", "xxxx", "++++", "oooo")
SOFT, SHADE = "#5b6675", "#9A9A9A"
"""Of small print, and of lines to compare with."""


_RULES: dict[Any, Any] = {
    "figure.dpi": 110,
    "figure.autolayout": False,  # a figure says how it is laid out, or is not
    "figure.constrained_layout.use": False,
    "savefig.dpi": 160,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "text.parse_math": False,  # a token or a class may hold a $
    "svg.fonttype": "path",
    "svg.hashsalt": "heedful",
}


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a group of tokens is drawn: as points, as a line, as a filled box."""

    colour: str
    turn: int = 0
    """Which of the markers, lines and hatchings it has."""
    line: Line = "-"
    marker: Marker = "o"
    hatch: str = ""

    @property
    def size(self) -> float:
        """By how much its points are larger than discs, so that their shape is seen."""
        return 1.0 if self.marker == "o" else 2.2


@contextmanager
def house_style() -> Iterator[None]:
    """Our rules and no others; also as a decorator of functions that draw."""
    with mpl.rc_context(_RULES), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from")  # an emoji in a token: a box stands for it
        yield


def mixed(colour: str, share: float) -> tuple[float, float, float]:
    """White turned into a colour by a share: red, green and blue, each of 255."""
    red, green, blue = (255 + (int(colour[place : place + 2], 16) - 255) * share for place in (1, 3, 5))
    return red, green, blue


def panels(
    count: int, *, columns: int = 3, width: float = 4.6, height: float = 3.6, share_y: bool = False
) -> tuple[Canvas, list[Axes]]:
    """A figure with so many panels, each of this size in inches, up to so many side by side."""
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    canvas = Canvas(figsize=(width * columns, height * rows), layout=ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.06))
    axes = list(canvas.subplots(rows, columns, squeeze=False, sharey=share_y).flat)
    for unused in axes[count:]:
        unused.remove()
    return canvas, axes[:count]


def legend_below(canvas: Canvas, handles: Sequence[Artist], *, most: int = 6, **looks: Any) -> Canvas:
    """The figure with one legend for all panels, in up to so many columns."""
    columns = max(1, min(most, len(handles)))
    canvas.legend(handles=handles, loc="outside lower center", ncols=columns, **looks)
    return canvas


def zero_line(axis: Axes) -> None:
    axis.axhline(0, color=SHADE, linewidth=0.8, zorder=0)


def remark(axis: Axes, words: str) -> None:
    """Small print between title and panel."""
    axis.annotate(words, (0, 1), xytext=(0, 4), xycoords="axes fraction", textcoords="offset points",
                  fontsize=7.5, color=SOFT)  # fmt: skip


def scatter(
    axis: Axes, x: ArrayLike, y: ArrayLike, look: Look, *, alpha: float, size: float = 9.0, label: str | None = None
) -> None:
    """Points of one group, as a picture within the drawing: there may be very many."""
    axis.scatter(
        x, y, s=size * look.size, color=look.colour, marker=look.marker, alpha=alpha, linewidths=0, label=label,
        rasterized=True,
    )  # fmt: skip


def boxes(axis: Axes, data: Sequence[ArrayLike], names: Sequence[str], looks: Sequence[Look], *, width: float) -> None:
    """A box for each of these samples, with its name below it."""
    marks: dict[str, Any] = {"flierprops": {"markersize": 2.5, "alpha": 0.5}, "medianprops": {"color": "black"}}
    drawn = axis.boxplot(list(data), tick_labels=list(names), patch_artist=True, widths=width, **marks)
    for patch, look in zip(drawn["boxes"], looks, strict=True):
        patch.set(facecolor=look.colour, hatch=look.hatch, alpha=0.75)


def sized(name: str, count: int) -> str:
    """A name and how many it stands for; matplotlib hides labels that begin with _."""
    label = f"{brief(name)} ({count})"
    return f" {label}" if label.startswith("_") else label


def brief(name: str, most: int = 24) -> str:
    """A name short enough for a picture or a table, without signs that cannot be drawn."""
    name = "".join(sign if sign.isprintable() else " " for sign in name).strip()
    return name if len(name) <= most else name[: most - 1] + "…"


FIXED = {
    "positive": Look(colour=BLUE),
    "negative": Look(colour=VERMILION, line="--"),
    "neutral": Look(colour=GREY, line=":"),
    "none": Look(colour="#D0D0D0"),
}


def group_looks(groups: Sequence[str]) -> dict[str, Look]:
    """Positive blue, negative vermilion, neutral grey; other groups in the order of the palette, no two alike."""
    taken = 2 if {"positive", "negative"} & set(groups) else 0  # the first two colours of the palette are theirs
    looks = dict(FIXED)
    for number, group in enumerate((group for group in groups if group not in FIXED), start=taken):
        turn, colour = number // len(SAFE_COLOURS), CLASS_COLOURS[number % len(CLASS_COLOURS)]
        line, marker, hatch = LINES[turn % len(LINES)], MARKERS[turn % len(MARKERS)], HATCHES[turn % len(HATCHES)]
        looks[group] = Look(colour=colour, turn=turn, line=line, marker=marker, hatch=hatch)
    return looks
