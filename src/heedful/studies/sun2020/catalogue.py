"""Every figure of the paper and its supplement by name, whether it is drawn from runs or from recordings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from heedful.studies.study import Captioned, Drawn, figure_index, save_drawn
from heedful.studies.sun2020 import real_figures, synthetic_figures
from heedful.studies.sun2020.runs import Cell, Runs
from heedful.studies.sun2020.synthetic import Recordings


@dataclass(frozen=True, kw_only=True)
class Illustration(Captioned):
    """A figure and what it is drawn from."""

    draw: Callable[[Runs, Recordings], Figure]
    cells: tuple[Cell, ...] = ()
    """Cells of Table 2 whose first run it shows."""
    recordings: tuple[str, ...] = ()
    """Sets of recordings on synthetic data."""

    def ready(self, runs: Runs, recordings: Recordings) -> bool:
        """Whether all it needs is there."""
        return runs.has(self.cells) and set(self.recordings) <= set(recordings)


def _of_runs(one: real_figures.StudyFigure) -> Illustration:
    return Illustration(
        name=one.name,
        title=one.title,
        caption=one.caption,
        see=one.see,
        draw=lambda runs, _recordings: one.draw(runs),
        cells=one.needs,
    )


def _of_recordings(one: synthetic_figures.SyntheticFigure) -> Illustration:
    number = one.name.removeprefix("S")
    return Illustration(
        name=one.name,
        title=f"Supplement, Figure {number}" if number.isdigit() else one.title,
        caption=f"{one.title}. {one.caption}" if number.isdigit() else one.caption,
        see=one.see,
        draw=lambda _runs, recordings: one.draw(recordings),
        recordings=one.needs,
    )


def _order(name: str) -> tuple[bool, bool, int]:
    """The paper's figures, the supplement's, then ours."""
    number = name.removeprefix("S")
    return not number.isdigit(), name.startswith("S"), int(number) if number.isdigit() else 0


_KNOWN = [
    *map(_of_runs, real_figures.FIGURES.values()),
    *map(_of_recordings, synthetic_figures.FIGURES.values()),
]
CATALOGUE: Mapping[str, Illustration] = {one.name: one for one in sorted(_KNOWN, key=lambda one: _order(one.name))}


def figures_on(datasets: Sequence[str], *, synthetic: bool) -> tuple[str, ...]:
    """The names of the figures that need no other data than these."""
    return tuple(
        name
        for name, one in CATALOGUE.items()
        if ({cell.dataset for cell in one.cells} <= set(datasets) if one.cells else synthetic)
    )


def draw(figure: Illustration, runs: Runs, recordings: Recordings, folder: Path) -> Drawn:
    """Draw a figure and save it as SVG, PDF and PNG."""
    return save_drawn(figure, figure.draw(runs, recordings), folder)


def index(drawn: Sequence[Drawn]) -> str:
    """A page of documentation that shows every figure with one sentence of what to see."""
    lead = (
        "Drawn by `heedful reproduce sun2020 --figure all`; SVG, PDF and PNG lie in the study's folder `figures`. On "
        "real data each point is a token, placed by how frequent it is; the curves beside a panel are the densities "
        "of the groups, dashes their medians. Groups are those of the paper: one-sided tokens are positive or negative "
        "(or belong to a class), evenly spread ones are neutral, all others are left out."
    )
    return figure_index("Figures of Sun & Lu 2020", lead, drawn)
