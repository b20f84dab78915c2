"""The figures of the paper (2–5) and of its supplement (S13–S28) on real data, by name.

The pictures themselves are not in the text we have; they are arranged by their captions. Where captions are shared,
the first of two shows polarity, the second attention of the same model (S14 and S15, S17 and S18, S19 and S20); S25,
S26 and S27 show the polarity towards each of the three classes, S28 the attention.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from heedful.analysis.tokens import as_printed
from heedful.figures.tokens import ScorePanel, polarity_names, score_grid, weights_by_group
from heedful.studies.sun2020.runs import Cell, Runs, called


@dataclass(frozen=True, kw_only=True)
class StudyFigure:
    """A figure by its name in the paper: its caption, what to see in it, the cells whose first run it shows."""

    name: str
    caption: str
    see: str
    needs: tuple[Cell, ...]
    draw: Callable[[Runs], Figure]

    @property
    def title(self) -> str:
        number = self.name.removeprefix("S")
        return f"Supplement, Figure {number}" if self.name.startswith("S") else f"Figure {number}"


def _panel(runs: Runs, cell: Cell, column: str, *, table: str = "tokens", title: str | None = None) -> ScorePanel:
    return ScorePanel(title=title or cell.title, table=runs[cell.settings()].table(table), column=column)


def _both(cell: Cell) -> Callable[[Runs], Figure]:
    """Polarity and attention of one model beside each other."""
    return lambda runs: score_grid([_panel(runs, cell, column) for column in ("polarity", "attention")], columns=2)


def _one(cell: Cell, column: str) -> Callable[[Runs], Figure]:
    return lambda runs: score_grid([_panel(runs, cell, column)], columns=1)


def _class_polarity(cell: Cell, number: int) -> Callable[[Runs], Figure]:
    """Polarity towards one of several classes."""

    def draw(runs: Runs) -> Figure:
        table = as_printed(runs[cell.settings()].table("tokens"))
        return score_grid([ScorePanel(title=cell.title, table=table, column=polarity_names(table)[number])], columns=1)

    return draw


def _figure_2(runs: Runs) -> Figure:
    return score_grid(
        [
            _panel(runs, cell, column, title=called(cell.dataset))
            for column in ("polarity", "attention")
            for cell in _PLAIN
        ],
        columns=3,
    )


def _figure_3(runs: Runs) -> Figure:
    return score_grid(
        [
            _panel(runs, _LARGE, "polarity"),
            _panel(runs, _LARGE, "attention"),
            _panel(runs, _THREE_CLASSES, "attention"),
        ],
        columns=3,
    )


def _figure_5(runs: Runs) -> Figure:
    return weights_by_group(as_printed(runs[_PLAIN[0].settings()].table("weights")))


def _figure_s13(runs: Runs) -> Figure:
    local = _panel(runs, _LSTM, "attention", table="tokens_local", title="SST (DP-L, λ=10), local: mean in context")
    return score_grid([local, _panel(runs, _LSTM, "attention", title="global: the token alone")], columns=1)


_PLAIN = tuple(Cell(dataset=dataset, model="DP", scale=10.0) for dataset in ("sst", "imdb", "20news-1"))
_LARGE = Cell(dataset="sst", model="DP", scale=100.0)
_THREE_CLASSES = Cell(dataset="20news-2", model="DP", scale=10.0)
_ADDITIVE = Cell(dataset="sst", model="AD", scale=10.0)
_LSTM = Cell(dataset="sst", model="DP-L", scale=10.0)


def _pair(names: tuple[str, str], cell: Cell, sees: tuple[str, str]) -> Iterator[StudyFigure]:
    """Two figures with one caption: polarity, then attention."""
    for name, column, see in zip(names, ("polarity", "attention"), sees, strict=True):
        caption = f"{cell.title}, {column}"
        yield StudyFigure(name=name, caption=caption, see=see, needs=(cell,), draw=_one(cell, column))


def _single(name: str, cell: Cell, see: str) -> StudyFigure:
    return StudyFigure(name=name, caption=cell.title, see=see, needs=(cell,), draw=_both(cell))


def _newsgroups(name: str, scale: float, see: str) -> StudyFigure:
    return _single(name, Cell(dataset="20news-1", model="DP-A", scale=scale), see)


def _three_classes() -> tuple[StudyFigure, ...]:
    """S25–S28: polarity towards motorcycles, med and guns, then attention."""
    cell = Cell(dataset="20news-2", model="DP-A", scale=10.0)
    classes = ("motorcycles", "med", "guns")
    towards = tuple(
        StudyFigure(
            name=f"S{25 + number}",
            caption=f"{cell.title}, polarity towards {name}",
            see=f"The tokens of {name} lie above zero, those of the other two classes below.",
            needs=(cell,),
            draw=_class_polarity(cell, number),
        )
        for number, name in enumerate(classes)
    )
    caption = f"{cell.title}, attention"
    return (
        *towards,
        StudyFigure(
            name="S28",
            caption=caption,
            see="The tokens of all three classes lie above the neutral ones, the frequent neutral ones lowest.",
            needs=(cell,),
            draw=_one(cell, "attention"),
        ),
    )


_RIGHT_SIGNS = "Polarity scores have the sign of their group and neutral tokens lie at zero."

FIGURES: Mapping[str, StudyFigure] = {
    figure.name: figure
    for figure in (
        StudyFigure(
            name="2",
            caption="Polarity (top) and attention scores (bottom). Scaled dot-product attention with λ = 10.",
            see="Polarity has the sign of the group; attention lifts both classes above the neutral tokens, on IMDB "
            "the negative words most.",
            needs=_PLAIN,
            draw=_figure_2,
        ),
        StudyFigure(
            name="3",
            caption="Polarity (left) and attention scores (middle) for SST with λ = 100; attention scores (right) for "
            "20News II with λ = 10. Scaled dot-product attention.",
            see="A large λ doubles the polarity scores and parts the two classes from each other instead of both from "
            "the neutral tokens; with three classes and λ = 10 all of them lie above the neutral.",
            needs=(_LARGE, _THREE_CLASSES),
            draw=_figure_3,
        ),
        StudyFigure(
            name="4",
            caption="Polarity and attention scores with additive attention (SST, λ = 10).",
            see="The pattern of the dot product: right signs, and attention lifts polar words, the negative ones most.",
            needs=(_ADDITIVE,),
            draw=_both(_ADDITIVE),
        ),
        StudyFigure(
            name="5",
            caption="Average attention weights on the test texts of SST for positive, negative and neutral tokens.",
            see="The median polar token gets about twice the weight of the median neutral one; circles are outliers, "
            "such as tokens of very short texts.",
            needs=_PLAIN[:1],
            draw=_figure_5,
        ),
        StudyFigure(
            name="S13",
            caption="Attention scores with an LSTM: mean in context (top), of the token alone (bottom). SST, λ = 10.",
            see="In context only the negative words stand out; for the token alone the positive ones lie above the "
            "neutral too.",
            needs=(_LSTM,),
            draw=_figure_s13,
        ),
        *_pair(
            ("S14", "S15"),
            Cell(dataset="sst", model="DP-A", scale=20.0),
            (
                _RIGHT_SIGNS,
                "The classes begin to part: negative words lie high, positive ones reach down to neutral.",
            ),
        ),
        _single("S16", _LSTM, f"{_RIGHT_SIGNS} Attention lifts the negative words most, the positive ones a little."),
        *_pair(
            ("S17", "S18"),
            Cell(dataset="imdb", model="DP-A", scale=10.0),
            (_RIGHT_SIGNS, "Both classes lie together above the neutral tokens, frequent words highest."),
        ),
        *_pair(
            ("S19", "S20"),
            Cell(dataset="imdb", model="AD", scale=10.0),
            (_RIGHT_SIGNS, "Negative words are lifted; most positive ones are not told from the neutral."),
        ),
        _newsgroups("S21", 1.0, "With a small λ a few words take all attention; polarity is learned for these alone."),
        _newsgroups("S22", 10.0, "With a moderate λ both classes rise above the neutral tokens alike."),
        _newsgroups("S23", 20.0, "The pattern stays when λ grows; attention scores shrink, polarity scores grow."),
        _newsgroups("S24", 50.0, "The classes have parted: hockey above the neutral tokens, baseball below."),
        *_three_classes(),
    )
}
