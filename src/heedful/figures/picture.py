"""The two words for pictures: a `Figure` is declared, a `Picture` is drawn and can be saved.

A figure says what it is called, what to see in it and which tables it is drawn from; its `draw` computes nothing. A
picture is that figure on given tables: plain bytes, which go into files and pages without matplotlib.
"""

import io
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure as Canvas

from heedful.figures.style import SOFT, house_style
from heedful.files import replacing

Tables = Mapping[str, pd.DataFrame]

METADATA: Mapping[str, Mapping[str, None] | None] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": None}
"""The formats of a picture, and what is left out so that equal pictures are equal files."""

WIDE = 7.0  # inches from which a picture is too wide to be shrunk to a narrow screen


@dataclass(frozen=True, kw_only=True)
class Captioned:
    """What is said of a figure, drawn or not."""

    name: str
    title: str
    caption: str
    see: str = ""
    """One sentence: what to see in it."""


@dataclass(frozen=True, kw_only=True)
class Picture(Captioned):
    """A figure that was drawn."""

    stem: str
    """What its files are called, before the dot."""
    files: Mapping[str, bytes]
    """It as SVG, PDF and PNG, by these endings."""
    wide: bool = False
    """Too wide to be read when it is shrunk to a narrow screen: it scrolls there."""

    @property
    def legend(self) -> str:
        """All that is said beneath it."""
        return f"{self.title}. {self.caption} What to see: {self.see}" if self.see else self.caption

    @property
    def svg(self) -> str:
        """It as an element that can stand in a page beside others: without addresses, its names its own."""
        text = self.files["svg"].decode()
        element = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
        element = re.sub(r' xmlns(:\w+)?="[^"]*"', "", element)
        return re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{self.stem}-", element)

    def save(self, folder: Path) -> list[Path]:
        """Write its files, each whole or not at all."""
        paths = [folder / f"{self.stem}.{ending}" for ending in self.files]
        for path, content in zip(paths, self.files.values(), strict=True):
            with replacing(path) as temporary:
                temporary.write_bytes(content)
        return paths


@dataclass(frozen=True, kw_only=True)
class Figure(Captioned):
    """A figure before it is drawn."""

    needs: tuple[str, ...]
    """The names of the tables that it is drawn from."""
    draw: Callable[[Tables], Canvas]

    def possible(self, names: Container[str]) -> bool:
        """Whether every table that it needs is among these."""
        return all(need in names for need in self.needs)

    def headed(self, words: str) -> "Figure":
        """The same with words in small letters above all panels, where there are words."""
        return replace(self, draw=lambda tables: _headed(self.draw(tables), words)) if words else self

    def picture(self, tables: Tables, *, stem: str | None = None) -> Picture:
        """Draw it; its files are called by its name, unless a stem is given."""
        canvas = self.draw(tables)
        said = {field.name: getattr(self, field.name) for field in fields(Captioned)}
        wide = bool(canvas.get_figwidth() > WIDE)
        return Picture(**said, stem=stem or self.name, files=render(canvas), wide=wide)


def render(canvas: Canvas) -> dict[str, bytes]:
    """A drawn figure as the content of its files, by their endings.

    The places of all parts are found once, not again for each format: that takes as long as drawing them. Without any
    engine there is nothing that matplotlib would draw a second time for, to find out where it goes.
    """
    engine = canvas.get_layout_engine()
    with house_style():
        canvas.draw_without_rendering()
        canvas.set_layout_engine(None)
        buffers = {ending: io.BytesIO() for ending in METADATA}
        try:
            for ending, buffer in buffers.items():
                canvas.savefig(buffer, format=ending, metadata=METADATA[ending])
        finally:
            canvas.set_layout_engine(engine)
    return {ending: buffer.getvalue() for ending, buffer in buffers.items()}


def _headed(canvas: Canvas, words: str) -> Canvas:
    with house_style():
        canvas.suptitle(words, fontsize=9, color=SOFT)  # above: a legend may stand below
    return canvas
