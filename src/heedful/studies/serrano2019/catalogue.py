"""Every figure of the study by name, which of them some models allow, and how they are drawn from the measures."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from heedful.errors import ConfigError, UnknownName
from heedful.figures.erasure import Grid
from heedful.studies.serrano2019.figures import FIGURES, ErasureFigure, Frames
from heedful.studies.serrano2019.runs import called
from heedful.studies.study import Drawn, figure_index, save_drawn

CATALOGUE: Mapping[str, ErasureFigure] = FIGURES


def figures_of(models: Sequence[str]) -> tuple[str, ...]:
    """The names of the figures that show at least one of these models."""
    return tuple(name for name, figure in CATALOGUE.items() if set(figure.models) & set(models))


def models_of(name: str, models: Sequence[str]) -> tuple[str, ...]:
    """Those of some models that a figure shows, in its order; one that shows none of them is refused."""
    if name not in CATALOGUE:
        raise UnknownName("figure", name, CATALOGUE)
    shown = tuple(model for model in CATALOGUE[name].models if model in models)
    if not shown:
        raise ConfigError(
            f"Figure {name} shows {', '.join(CATALOGUE[name].models)}, and of models there is only "
            f"{', '.join(models)}. Take one of them in, or ask for figures that show every model: 7 to 13."
        )
    return shown


def draw(name: str, frames: Frames, *, models: Sequence[str], datasets: Iterable[str], folder: Path) -> Drawn:
    """Draw a figure and save it as SVG, PDF and PNG."""
    grid = Grid(models=models_of(name, models), datasets={dataset: called(dataset) for dataset in datasets})
    return save_drawn(CATALOGUE[name], CATALOGUE[name].draw(frames, grid), folder)


def index(drawn: Sequence[Drawn]) -> str:
    """A page of documentation that shows every figure with one sentence of what to see."""
    lead = (
        "Drawn by `heedful reproduce serrano2019 --figure all`; SVG, PDF and PNG lie in the study's folder `figures`. "
        "A unit is a word in a FLAN and a sentence in a HAN; to erase one is to set its attention weight to zero and "
        "renormalise the others. Seeds and random orders are pooled."
    )
    return figure_index("Figures of Serrano & Smith 2019", lead, drawn)
