"""How every picture looks, and how it is saved. Colours are Okabe and Ito's, safe for colour-blind readers."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.files import replacing

BLUE, ORANGE, GREY, GREEN, PURPLE, SKY, YELLOW, VERMILION = (
    "#0072B2",
    "#E69F00",
    "#8C8C8C",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#B8A900",
    "#D55E00",
)
CLASS_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW)
FORMATS = ("svg", "pdf", "png")

_RULES: dict[Any, Any] = {
    "figure.dpi": 110,
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
    "svg.fonttype": "path",
    "svg.hashsalt": "heedful",
}


@contextmanager
def house_style() -> Iterator[None]:
    with mpl.rc_context(_RULES):
        yield


def panels(count: int, *, width: float = 4.6, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels side by side."""
    figure = Figure(figsize=(width * count, height), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)
    return figure, list(axes[0])


def group_colours(groups: Sequence[str]) -> dict[str, str]:
    """Positive blue, negative vermilion, neutral grey; other groups in the order of the palette."""
    fixed = {"positive": BLUE, "negative": VERMILION, "neutral": GREY, "none": "#D0D0D0"}
    others = [group for group in groups if group not in fixed]
    return {**fixed, **{group: CLASS_COLOURS[k % len(CLASS_COLOURS)] for k, group in enumerate(others)}}


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """The figure as SVG, PDF and PNG beside each other."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in FORMATS]
    for path, kind in zip(paths, FORMATS, strict=True):
        with replacing(path) as temporary, house_style():
            figure.savefig(
                temporary, format=kind, metadata={"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
            )
    return paths


def as_svg(figure: Figure) -> str:
    """The figure as an <svg> element that can stand in a page."""
    buffer = io.StringIO()
    with house_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
