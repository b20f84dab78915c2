"""Sun & Lu 2020 as one command: run what is missing, then tables, figures, verdicts and one page.

A study directory holds

    tables/     table2 (one row per cell), table2-as-printed, table2.md, measures, verdicts, tables on synthetic data
    figures/    each figure as SVG, PDF and PNG
    figures.md  the figures with what to see in them
    study.html  all of it on one page
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from heedful.claims import Verdict, dynamics, judge, scaling, verdict_table
from heedful.config import RunSettings
from heedful.errors import ConfigError, HeedfulError, UnknownName
from heedful.files import write_text
from heedful.pipeline import environment
from heedful.report.page import Picture
from heedful.report.study import Judged, PageTable, StudyPage, write_study
from heedful.store import Store
from heedful.studies.sun2020.catalogue import CATALOGUE, Drawn, draw, figure_index
from heedful.studies.sun2020.measures import measure_runs
from heedful.studies.sun2020.runs import MODELS, Cell, Runs, Selection, called, plan_of
from heedful.studies.sun2020.synthetic import Recording, Recordings, recordings
from heedful.studies.sun2020.synthetic_tables import TABLE_SETS, claim_tables, published_tables
from heedful.studies.sun2020.table2 import as_markdown, as_printed, summary_words, table_2
from heedful.studies.tables import save_table
from heedful.sweep.jobs import SweepEvent
from heedful.sweep.loop import Failure, sweep

TITLE = "Sun & Lu 2020, Understanding Attention for Text Classification"
ON_TOKENS = ("C1", "C2", "C8")
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
    """Whether trainings on synthetic data take a tenth of the epochs at ten times the rate."""

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
class Study:
    """A finished study: its tables, figures and verdicts, what failed, and where the page lies."""

    out: Path
    table: pd.DataFrame
    measures: pd.DataFrame
    synthetic: Tables
    judged: tuple[Judged, ...]
    drawn: tuple[Drawn, ...]
    missing: tuple[str, ...]
    """Figures that could not be drawn because runs failed."""
    failures: tuple[Failure, ...]

    @property
    def page(self) -> Path:
        return self.out / "study.html"

    def verdicts(self) -> pd.DataFrame:
        """One row per data set and claim."""
        tables = [verdict_table(list(one.verdicts)).assign(dataset=one.dataset) for one in self.judged]
        if not tables:
            return pd.DataFrame()
        table = pd.concat(tables, ignore_index=True)
        return table[["dataset", *(column for column in table if column != "dataset")]]

    def summary(self) -> dict[str, object]:
        """The study as plain data."""
        return {
            "page": str(self.page),
            "table": _plain(self.table),
            "verdicts": _plain(self.verdicts()),
            "figures": {one.figure.name: f"{one.stem}.svg" for one in self.drawn},
            "missing_figures": list(self.missing),
            "failed": [failure.payload() for failure in self.failures],
        }


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
    runs, failures = Runs([]), tuple[Failure, ...]()
    if request.settings():
        done = sweep(plan_of("sun2020", request.settings()), store, on=on, workers=workers, watch=watch)
        if done.runs.empty:
            raise HeedfulError(f"No run of the study could be computed: {done.failures[0].message}")
        runs, failures = Runs.of(store, done.runs["run"]), done.failures
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
    )


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
        names = tuple(claim.name for claim in ON_RECORDINGS if set(claim.needs) <= set(synthetic))
        yield Judged(dataset="synthetic", verdicts=judge(names, synthetic))
    for dataset in request.selection.datasets:
        rows = measures[measures["dataset"] == dataset] if len(measures) else measures
        if len(rows):
            verdicts = [*_judge_tokens(runs, dataset), *judge(ON_RUNS, {"scaling": rows})]
            verdicts.sort(key=lambda verdict: _place(verdict.claim))
            yield Judged(dataset=called(dataset), verdicts=verdicts)


def _judge_tokens(runs: Runs, dataset: str) -> list[Verdict]:
    settings = Cell(dataset=dataset, model="DP", scale=USUAL_SCALE).settings()
    if settings not in runs:
        return []
    return judge(ON_TOKENS, {name: runs[settings].table(name) for name in ("tokens", "weights")})


def _place(claim: str) -> tuple[int, str]:
    """C4b comes after C4 and before C8."""
    return int("".join(letter for letter in claim if letter.isdigit())), claim


def write(study: Study) -> None:
    """Tables, the index of figures, and the page."""
    folder = study.out / "tables"
    if len(study.table):
        save_table(study.table, folder / "table2")
        save_table(as_printed(study.table), folder / "table2-as-printed")
        write_text(folder / "table2.md", as_markdown(study.table))
    for name, table in {"measures": study.measures, "verdicts": study.verdicts(), **study.synthetic}.items():
        if len(table):
            save_table(table, folder / name)
    if study.drawn:
        write_text(study.out / "figures.md", figure_index(study.drawn))
    write_study(_compose(study), study.page)


def _compose(study: Study) -> StudyPage:
    failed = [f"A run failed: {failure.message}" for failure in study.failures[:10]]
    absent = [f"Figure {name} is not drawn: it needs runs that failed." for name in study.missing]
    return StudyPage(
        title=TITLE,
        lead=_lead(study),
        judged=study.judged,
        tables=[_page_table(study.table)] if len(study.table) else [],
        pictures=[
            Picture(
                title=one.figure.title,
                caption=f"{one.figure.title}. {one.figure.caption} What to see: {one.figure.see}",
                svg=one.svg,
                wide=one.wide,
            )
            for one in study.drawn
        ],
        notices=[*failed, *absent],
        facts={"Models": {name: _choices(name) for name in MODELS}, "Versions": environment()},
    )


def _page_table(table: pd.DataFrame) -> PageTable:
    note = f"{summary_words(table)} {as_markdown(table).strip().splitlines()[-1]}"
    return PageTable(title="Table 2", note=note, table=as_printed(table))


def _lead(study: Study) -> str:
    verdicts = [verdict.decision for one in study.judged for verdict in one.verdicts]
    if verdicts:
        held, failed = verdicts.count("holds"), verdicts.count("does not hold")
        return f"Of {len(verdicts)} verdicts {held} hold, {failed} do not, {len(verdicts) - held - failed} are open."
    return summary_words(study.table) if len(study.table) else f"{len(study.drawn)} figures."


def _choices(model: str) -> str:
    return ", ".join(f"{name} = {value}" for name, value in MODELS[model].items()) or "the defaults"


def _plain(table: pd.DataFrame) -> list[dict[str, object]]:
    """Rows as plain data, with None for what is not there."""
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in record.items()} for record in records]
