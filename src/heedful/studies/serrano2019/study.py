"""Serrano & Smith 2019 as one command: run what is missing, then tables, figures, verdicts and one page.

Its tables: table1 to table3, each also as printed; beside claims and figures flips (what is erased at the flip),
fractions (how that is distributed), quality (how near rankings come to the minimum), wins (ranking against ranking),
tail (Figure 6), and the verdicts; inputs and input-flips (words
taken out of the text beside weights set to zero).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from heedful.claims import erasure, judge
from heedful.config import RunSettings
from heedful.errors import ConfigError, HeedfulError, UnknownName
from heedful.pipeline import Run, read_corpus
from heedful.report.study import Judged, write_study
from heedful.store import Store
from heedful.studies.measures import measures_of
from heedful.studies.runs import Runs
from heedful.studies.serrano2019.catalogue import draw, index, models_of
from heedful.studies.serrano2019.inputs import input_flips_of
from heedful.studies.serrano2019.page import compose, lines
from heedful.studies.serrano2019.runs import Cell, Selection, called, plan_of
from heedful.studies.serrano2019.table1 import table_1, table_1_as_printed
from heedful.studies.serrano2019.tables import study_tables
from heedful.studies.study import Drawn, Outcome, make_runs, plain, write_parts
from heedful.sweep.jobs import Measuring, SweepEvent
from heedful.sweep.loop import Failure
from heedful.text.corpus import Corpus

TABLES = ("1", "2", "3", "inputs")
"""The paper's tables, and ours of erasure at the input."""
CLAIMS = tuple(claim.name for claim in erasure.CLAIMS)
TOGETHER = "all data sets"

Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which parts of the study are wanted, and on which data, models and seeds."""

    selection: Selection = field(default_factory=Selection)
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    claims: bool = False

    def __post_init__(self) -> None:
        for table in self.tables:
            if table not in TABLES:
                raise UnknownName("table", table, TABLES)
        for figure in self.figures:
            models_of(figure, self.selection.models)
        if not self.tables and not self.figures and not self.claims:
            raise ConfigError("Nothing of the study is asked for: tables, figures or claims.")

    def cells(self) -> list[Cell]:
        """The cells that the parts need: figures those of their models, claims and Tables 2 and 3 all of them."""
        if self.claims or set(self.tables) - {"1"}:
            return self.selection.cells()
        shown = {model for figure in self.figures for model in models_of(figure, self.selection.models)}
        return [cell for cell in self.selection.cells() if cell.model in shown]

    def settings(self) -> list[RunSettings]:
        """All runs that the parts need."""
        return [cell.settings(seed) for cell in self.cells() for seed in range(self.selection.seeds)]

    def table_names(self) -> set[str]:
        """The names of the wanted tables that are made of runs."""
        asked = {name for table in self.tables for name in (f"table{table}", f"table{table}-as-printed")}
        asked |= {"inputs", "input-flips"} if "inputs" in self.tables else set()
        return asked | ({"flips", "fractions", "quality", "wins", "tail"} if self.figures or self.claims else set())


@dataclass(frozen=True, kw_only=True)
class Study(Outcome):
    """A finished study with its tables by name, and the data sets that could not be read."""

    selection: Selection
    tables: Frames
    unread: tuple[str, ...] = ()

    def summary(self) -> dict[str, object]:
        shown = {name: plain(table) for name, table in self.tables.items() if not name.endswith("as-printed")}
        return {**super().summary(), "tables": shown}

    def words(self) -> list[str]:
        return lines(self.tables)

    def notices(self) -> list[str]:
        few = self.selection.epochs
        quick = [f"A quick look: models are trained for at most {few} epochs."] if few else []
        return [*quick, *super().notices(), *self.unread]


def reproduce(
    request: Request,
    store: Store,
    out: Path,
    *,
    on: str = "local",
    workers: int | None = None,
    watch: Callable[[SweepEvent], None] | None = None,
) -> Study:
    """Run what is missing and write the study directory. What is finished is never computed twice."""
    plan = plan_of("serrano2019", request.settings()) if request.settings() else None
    runs, failures = make_runs(plan, store, on=on, workers=workers, watch=watch)
    study = tabulate(request, runs, out, failures=failures, watch=watch)
    write_parts(study, study.tables, index(study.drawn))
    write_study(compose(study, study.tables), study.page)
    return study


def tabulate(
    request: Request,
    runs: Runs,
    out: Path,
    *,
    failures: Sequence[Failure] = (),
    watch: Callable[[SweepEvent], None] | None = None,
) -> Study:
    """Tables, figures and verdicts from finished runs."""
    frames = measures_of(_said(request, runs)) if len(runs) else {}
    if "inputs" in request.tables and len(runs):
        frames["inputs"] = input_flips_of(_said(request, runs), watch=_measuring(watch))
    corpora, unread = _read(request.selection) if "1" in request.tables else ({}, ())
    drawn, missing = _draw(request, frames, out / "figures")
    return Study(
        out=out,
        selection=request.selection,
        tables={**_table_1(corpora), **_tables(request, frames)},
        judged=tuple(judge_all(frames, request.selection.datasets)) if request.claims and frames else (),
        drawn=drawn,
        missing=missing,
        failures=tuple(failures),
        unread=unread,
    )


def _measuring(watch: Callable[[SweepEvent], None] | None) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        if watch is not None:
            watch(Measuring(what="reading changed texts", done=done, total=total))

    return tell


def _said(request: Request, runs: Runs) -> Iterator[tuple[Mapping[str, object], Run]]:
    """Every run that is there, with the columns that tell it apart."""
    for cell in request.cells():
        for seed in range(request.selection.seeds):
            if cell.settings(seed) in runs:
                yield {"dataset": cell.dataset, "model": cell.model, "seed": seed}, runs[cell.settings(seed)]


def _read(selection: Selection) -> tuple[dict[str, Corpus], tuple[str, ...]]:
    """The corpora by name, and a sentence for each that cannot be read."""
    found, unread = {}, []
    for dataset in selection.datasets:
        try:
            found[dataset] = read_corpus(Cell(dataset=dataset, model=selection.models[0]).settings())
        except HeedfulError as error:
            unread.append(f"{called(dataset)} cannot be read: {error}")
    if not found:
        raise HeedfulError(unread[0])
    return found, tuple(unread)


def _table_1(corpora: Mapping[str, Corpus]) -> dict[str, pd.DataFrame]:
    if not corpora:
        return {}
    table = table_1(corpora)
    return {"table1": table, "table1-as-printed": table_1_as_printed(table)}


def _tables(request: Request, frames: Frames) -> dict[str, pd.DataFrame]:
    names = request.table_names()
    return {name: table for name, table in study_tables(frames).items() if name in names} if frames and names else {}


def _draw(request: Request, frames: Frames, folder: Path) -> tuple[tuple[Drawn, ...], tuple[str, ...]]:
    """The figures, and the names of those none of whose runs is there."""
    models, datasets = request.selection.models, request.selection.datasets
    there = set(frames["runs"]["model"]) if frames else set()
    ready = [name for name in request.figures if there & set(models_of(name, models))]
    drawn = tuple(draw(name, frames, models=models, datasets=datasets, folder=folder) for name in ready)
    return drawn, tuple(name for name in request.figures if name not in ready)


def judge_all(frames: Frames, datasets: Sequence[str]) -> Iterator[Judged]:
    """The verdicts on each data set that has runs, and on all of them together."""
    there = [dataset for dataset in datasets if dataset in set(frames["runs"]["dataset"])]
    for dataset in there:
        rows = {name: frames[name][frames[name]["dataset"] == dataset] for name in ("single", "flips")}
        yield Judged(dataset=called(dataset), verdicts=judge(CLAIMS, rows))
    if len(there) > 1:
        yield Judged(dataset=TOGETHER, verdicts=judge(CLAIMS, frames))
