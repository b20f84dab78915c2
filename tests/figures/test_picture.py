"""A declared figure, and the picture that it becomes."""

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from matplotlib.figure import Figure as Canvas

from heedful.errors import InputError, StoreError
from heedful.figures.picture import Figure, Picture, Rendered, Tables, check_formats
from heedful.figures.style import panels

TABLES = {"lines": pd.DataFrame({"x": [0, 1], "y": [1.0, 3.0]})}


def draw(tables: Tables) -> Canvas:
    canvas, (axis,) = panels(1)
    axis.plot(tables["lines"]["x"], tables["lines"]["y"], label="price in $")
    axis.set_xlabel("👍")
    return canvas


FIGURE = Figure(name="2", title="Figure 2", caption="Two points.", see="A line.", needs=("lines",), draw=draw)


def test_a_figure_is_possible_where_all_its_tables_are() -> None:
    assert FIGURE.possible(TABLES)
    assert FIGURE.possible({"lines", "more"})
    assert not FIGURE.possible({"more"})


def test_a_picture_is_saved_in_all_formats_and_leaves_nothing_else(tmp_path: Path) -> None:
    paths = FIGURE.picture(TABLES, stem="figure-2").save(tmp_path / "figures")
    assert [path.name for path in paths] == ["figure-2.svg", "figure-2.pdf", "figure-2.png"]
    svg, pdf, png = (path.read_bytes() for path in paths)
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert pdf.startswith(b"%PDF")
    assert png.startswith(b"\x89PNG")
    assert sorted((tmp_path / "figures").iterdir()) == sorted(paths)


def test_a_picture_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    (tmp_path / "figures").write_text("a file")
    with pytest.raises(StoreError, match="A folder is needed at"):
        FIGURE.picture(TABLES).save(tmp_path / "figures")


def test_a_picture_is_called_by_the_name_of_its_figure_unless_a_stem_is_given() -> None:
    assert (FIGURE.picture(TABLES).stem, FIGURE.picture(TABLES, stem="s").stem) == ("2", "s")


def test_equal_tables_give_equal_files() -> None:
    assert FIGURE.picture(TABLES).files == FIGURE.picture(TABLES).files


def test_pictures_on_a_page_name_no_address_and_share_no_name() -> None:
    first, second = (FIGURE.picture(TABLES, stem=stem).svg for stem in ("first", "second"))
    assert first.startswith("<svg")
    assert "http" not in first
    assert 'id="first-figure_1"' in first
    assert not set(ids(first)) & set(ids(second))


def ids(svg: str) -> list[str]:
    return [part.split('"')[0] for part in svg.split(' id="')[1:]]


def test_what_is_said_beneath_a_picture() -> None:
    assert FIGURE.picture(TABLES).legend == "Figure 2. Two points. What to see: A line."
    assert Picture(name="n", title="t", caption="All.", stem="n", files={}).legend == "All."


def test_a_picture_wider_than_ten_inches_scrolls() -> None:
    narrow = FIGURE.picture(TABLES)
    wide = Figure(name="w", title="", caption="", needs=(), draw=lambda _: panels(3)[0]).picture({})
    assert (narrow.wide, wide.wide) == (False, True)


def test_words_above_the_panels_are_added_where_there_are_some() -> None:
    assert FIGURE.headed("") is FIGURE
    canvas = FIGURE.headed("positive: $5").draw(TABLES)
    assert canvas.get_suptitle() == "positive: $5"
    assert FIGURE.draw(TABLES).get_suptitle() == ""


def test_rendering_leaves_the_layout_of_the_figure_as_it_was() -> None:
    canvas = draw(TABLES)
    engine = canvas.get_layout_engine()
    assert list(Rendered(canvas)) == ["svg", "pdf", "png"]
    assert canvas.get_layout_engine() is engine


def test_only_the_formats_that_are_asked_for_are_made_and_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    original = Canvas.savefig

    def counted(canvas: Canvas, *given: Any, **named: Any) -> None:
        made.append(named["format"])
        original(canvas, *given, **named)

    monkeypatch.setattr(Canvas, "savefig", counted)
    picture = FIGURE.picture(TABLES)
    assert set(made) <= {"svg"}  # which the checks of types look at while tests run
    assert [path.name for path in picture.save(tmp_path, ["svg"])] == ["2.svg"]
    assert picture.svg.startswith("<svg")
    assert made == ["svg"]
    picture.save(tmp_path)
    assert made == ["svg", "pdf", "png"]
    assert picture.wide is False


def test_formats_are_checked_by_name() -> None:
    assert check_formats(["svg", "png", "svg"]) == ("svg", "png")
    with pytest.raises(InputError, match=r"^There is no format of pictures 'jpg'\. .*Known: pdf, png, svg\.$"):
        check_formats(["svg", "jpg"])


def test_figures_and_pictures_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        FIGURE.name = "3"  # type: ignore[misc]
