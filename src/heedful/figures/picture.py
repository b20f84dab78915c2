"""The two words for pictures: a `Figure` is declared, a `Picture` is drawn and can be saved.

A figure says what it is called, what to see in it and which tables it is drawn from; its `draw` computes nothing. A
picture is that figure on given tables; it is made into SVG, PDF or PNG when that is asked for, and only once.
"""

import io
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure as Canvas

from heedful.errors import UnknownName
from heedful.figures.style import SOFT, house_style
from heedful.files import replacing

Tables = Mapping[str, pd.DataFrame]

METADATA: Mapping[str, Mapping[str, None] | None] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": None}
"""The formats of a picture, and what is left out so that equal pictures are equal files."""

FORMATS = tuple(METADATA)

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

    def save(self, folder: Path, formats: Sequence[str] | None = None) -> list[Path]:
        """Write it in these formats, or in all; each file whole or not at all."""
        endings = tuple(self.files if formats is None else formats)
        paths = [folder / f"{self.stem}.{ending}" for ending in endings]
        for path, ending in zip(paths, endings, strict=True):
            with replacing(path) as temporary:
                temporary.write_bytes(self.files[ending])
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
        return Picture(**said, stem=stem or self.name, files=Rendered(canvas), wide=wide)


def check_formats(formats: Sequence[str]) -> tuple[str, ...]:
    """Formats of pictures, each once; an unknown one is refused."""
    for name in formats:
        if name not in FORMATS:
            raise UnknownName("format of pictures", name, FORMATS)
    return tuple(dict.fromkeys(formats))


class Rendered(Mapping[str, bytes]):
    """A drawn figure as the content of its files, by their endings: each is made when it is first asked for.

    The places of all parts are found once, not again for each format: that takes as long as drawing them. Without any
    engine there is nothing that matplotlib would draw a second time for, to find out where it goes.
    """

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas
        self._made: dict[str, bytes] = {}
        engine = canvas.get_layout_engine()
        if engine is not None:
            with house_style():
                engine.execute(canvas)

    def __getitem__(self, ending: str) -> bytes:
        if ending not in self._made:
            self._made[ending] = self._render(ending)
        return self._made[ending]

    def __iter__(self) -> Iterator[str]:
        return iter(FORMATS)

    def __len__(self) -> int:
        return len(FORMATS)

    def _render(self, ending: str) -> bytes:
        engine, buffer = self._canvas.get_layout_engine(), io.BytesIO()
        with house_style():
            self._canvas.set_layout_engine(None)
            try:
                self._canvas.savefig(buffer, format=ending, metadata=METADATA[ending])
            finally:
                self._canvas.set_layout_engine(engine)
        return buffer.getvalue()


def _headed(canvas: Canvas, words: str) -> Canvas:
    with house_style():
        canvas.suptitle(words, fontsize=9, color=SOFT)  # above: a legend may stand below
    return canvas
