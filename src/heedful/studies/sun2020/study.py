"""Sun & Lu 2020 as one command: run what is missing, then tables, figures, verdicts and one page.

Its tables: table2 (one row per cell), table2-as-printed, table2.md, measures, verdicts, tables on synthetic data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.claims import Verdict, dynamics, judge, scaling
from heedful.config import RunSettings
from heedful.errors import ConfigError, UnknownName
from heedful.files import write_text
from heedful.pipeline import environment
from heedful.report.study import Judged, PageTable, StudyPage, write_study
from heedful.report.timeline import timeline
from heedful.store import Store
from heedful.studies.measures import measure_runs
from heedful.studies.runs import Runs
from heedful.studies.study import Outcome, make_runs, place_of, plain, write_parts
from heedful.studies.sun2020.catalogue import CATALOGUE, draw, index
from heedful.studies.sun2020.runs import MODELS, Cell, Selection, called, plan_of
from heedful.studies.sun2020.synthetic import Recording, Recordings, recordings
from heedful.studies.sun2020.synthetic_tables import TABLE_SETS, claim_tables, published_tables
from heedful.studies.sun2020.table2 import as_markdown, as_printed, summary_words, table_2
from heedful.sweep.jobs import SweepEvent
from heedful.sweep.loop import Failure

TITLE = "Sun & Lu 2020, Understanding Attention for Text Classification"
ON_TOKENS = ("C1", "C2", "C8", "C8b")
"""Claims on the tables of one run: the first seed of DP at λ = 10."""
ON_RUNS = tuple(claim.name for claim in scaling.CLAIMS)
ON_RECORDINGS = dynamics.CLAIMS
USUAL_SCALE = 10.0

Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which parts of the study are wanted, and on which data, models, λ and seeds."""

    selection: Selection = field(default_factory=Selection)
    table: bool = False
    figures: tuple[str, ...] = ()
    claims: bool = False
    synthetic: bool = False
    """Whether the claims are also judged on synthetic data."""
    quick: bool = False
    """Whether trainings on synthetic data take a 25th of the epochs at 25 times the rate (`synthetic.HASTE`)."""

    def __post_init__(self) -> None:
        for name in self.figures:
            if name not in CATALOGUE:
                raise UnknownName("figure", name, CATALOGUE)
        if not self.table and not self.figures and not self.claims:
            raise ConfigError("Nothing of the study is asked for: a table, figures or claims.")

    def settings(self) -> list[RunSettings]:
        """All runs that the parts need."""
        wanted = self.selection.settings() if self.table else []
        if self.claims:
            wanted += claim_selection(self.selection).settings()
        return wanted + [cell.settings() for name in self.figures for cell in CATALOGUE[name].cells]

    def recording_sets(self) -> tuple[str, ...]:
        """All sets of recordings that the parts need."""
        wanted = [needed for name in self.figures for needed in CATALOGUE[name].recordings]
        return tuple(dict.fromkeys([*wanted, *(TABLE_SETS if self.claims and self.synthetic else ())]))


def claim_selection(selection: Selection) -> Selection:
    """What the claims compare: DP at every λ, the other models at λ = 10."""
    return replace(selection, slow_models_at=(USUAL_SCALE,))


@dataclass(frozen=True, kw_only=True)
class Study(Outcome):
    """A finished study with its tables, and its trainings on synthetic data to be moved through."""

    table: pd.DataFrame
    measures: pd.DataFrame
    synthetic: Tables
    timelines: tuple[str, ...] = ()

    def summary(self) -> dict[str, object]:
        return {**super().summary(), "table": plain(self.table)}

    def words(self) -> list[str]:
        if self.table.empty:
            return []
        rows = as_printed(self.table).to_dict("records")
        return [*(f"{row.pop('data'):10} λ={row.pop('λ'):6}  {_cells(row)}" for row in rows), summary_words(self.table)]

    def lead(self) -> str:
        return super().lead() if self.judged or self.table.empty else summary_words(self.table)


def _cells(row: Mapping[Any, Any]) -> str:
    return "   ".join(f"{name} {value}" for name, value in row.items())


def reproduce(
    request: Request,
    store: Store,
    out: Path,
    *,
    on: str = "local",
    workers: int | None = None,
    watch: Callable[[SweepEvent], None] | None = None,
    watch_recording: Callable[[Recording], None] | None = None,
) -> Study:
    """Run and record what is missing and write the study directory. What is finished is never computed twice."""
    plan = plan_of("sun2020", request.settings()) if request.settings() else None
    runs, failures = make_runs(plan, store, on=on, workers=workers, watch=watch)
    found: Recordings = {}
    if request.recording_sets():
        sets = request.recording_sets()
        found = recordings(store, quick=request.quick, sets=sets, workers=workers, watch=watch_recording)
    study = tabulate(request, runs, found, out, failures=failures)
    write(study)
    return study


def tabulate(request: Request, runs: Runs, found: Recordings, out: Path, *, failures: Sequence[Failure] = ()) -> Study:
    """Tables, figures and verdicts from finished runs and recordings."""
    wanted = [CATALOGUE[name] for name in request.figures]
    ready = [figure for figure in wanted if figure.ready(runs, found)]
    measures = measure_selection(runs, claim_selection(request.selection)) if request.claims else pd.DataFrame()
    synthetic = {**published_tables(found), **claim_tables(found)} if request.claims and request.synthetic else {}
    return Study(
        out=out,
        table=table_2(runs, request.selection) if request.table else pd.DataFrame(),
        measures=measures,
        synthetic=synthetic,
        judged=tuple(judge_all(request, runs, measures, synthetic)) if request.claims else (),
        drawn=tuple(draw(figure, runs, found, out / "figures") for figure in ready),
        missing=tuple(figure.name for figure in wanted if figure not in ready),
        failures=tuple(failures),
        timelines=tuple(_timelines(found)),
    )


def _timelines(found: Recordings) -> Iterator[str]:
    """The first training on Data I, where it was recorded."""
    if "data-1" in found:
        title = "Tokens of Data I by planted group: polarity and attention scores from the first step to the last."
        yield timeline(found["data-1"][0].table("tokens"), name="data-1", title=title)


def measure_selection(runs: Runs, selection: Selection) -> pd.DataFrame:
    """The measures of every run of a selection that is there."""
    tables = [
        measure_runs(cell.dataset, cell.model, found)
        for cell in selection.cells()
        if (found := runs.of_cell(cell, selection.seeds))
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def judge_all(request: Request, runs: Runs, measures: pd.DataFrame, synthetic: Tables) -> Iterator[Judged]:
    """The verdicts on synthetic data, and on each data set that has runs."""
    if synthetic:
        names = tuple(claim.name for claim in ON_RECORDINGS if claim.table in synthetic)
        yield Judged(dataset="synthetic", verdicts=judge(names, synthetic))
    for dataset in request.selection.datasets:
        rows = measures[measures["dataset"] == dataset] if len(measures) else measures
        if len(rows):
            verdicts = [*_judge_tokens(runs, dataset), *judge(ON_RUNS, {"scaling": rows})]
            verdicts.sort(key=lambda verdict: place_of(verdict.claim))
            yield Judged(dataset=called(dataset), verdicts=verdicts)


def _judge_tokens(runs: Runs, dataset: str) -> list[Verdict]:
    settings = Cell(dataset=dataset, model="DP", scale=USUAL_SCALE).settings()
    if settings not in runs:
        return []
    return judge(ON_TOKENS, {name: runs[settings].table(name) for name in ("tokens", "weights")})


def write(study: Study) -> None:
    """Tables, the index of figures, and the page."""
    tables = {"measures": study.measures, **study.synthetic}
    if len(study.table):
        tables |= {"table2": study.table, "table2-as-printed": as_printed(study.table)}
        write_text(study.out / "tables" / "table2.md", as_markdown(study.table))
    write_parts(study, tables, index(study.drawn))
    write_study(_compose(study), study.page)


def _compose(study: Study) -> StudyPage:
    return StudyPage(
        title=TITLE,
        lead=study.lead(),
        judged=study.judged,
        tables=[_page_table(study.table)] if len(study.table) else [],
        pictures=[one.picture() for one in study.drawn],
        notices=study.notices(),
        facts={"Models": {name: _choices(name) for name in MODELS}, "Versions": environment()},
        timelines=study.timelines,
    )


def _page_table(table: pd.DataFrame) -> PageTable:
    note = f"{summary_words(table)} {as_markdown(table).strip().splitlines()[-1]}"
    return PageTable(title="Table 2", note=note, table=as_printed(table))


def _choices(model: str) -> str:
    return ", ".join(f"{name} = {value}" for name, value in MODELS[model].items()) or "the defaults"
