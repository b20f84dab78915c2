"""A paper's study as a value, and the one function that runs any study.

A study declares measures (tables made of runs), tables (made of measures, beside the paper's), figures (drawn from
measures) and scopes (what claims are judged on). What is asked for decides which runs are needed; what is finished is
never computed twice. A study directory holds

    tables/     every table as CSV, Parquet and LaTeX, what is shown also as Markdown, the verdicts among them
    figures/    each figure as SVG, PDF and PNG
    figures.md  the figures with what to see in them
    study.html  all of it on one page
"""

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from heedful.analysis.flips import in_front
from heedful.claims import CLAIMS, judge
from heedful.config import RunSettings
from heedful.errors import ConfigError, HeedfulError, UnknownName
from heedful.figures.picture import Figure, Picture
from heedful.files import write_text
from heedful.notebook import counted
from heedful.pipeline import Run, environment
from heedful.report.exports import as_markdown, save_tables
from heedful.report.html import write_html
from heedful.report.page import Judged, Page, PageTable, Section
from heedful.report.payload import payload
from heedful.report.timeline import timeline
from heedful.store import Store
from heedful.studies.measures import called, what_it_is
from heedful.sweep.loop import Failure, SweepEvent, sweep
from heedful.sweep.plan import Plan
from heedful.text.datasets import DATASETS, find_dataset

STUDIES: Mapping[str, str] = {
    "sun2020": "heedful.studies.sun2020.study",
    "serrano2019": "heedful.studies.serrano2019.study",
}
"""Every study, and the module whose STUDY it is."""

SYNTHETIC = "synthetic"
"""What tables call the data of trainings on made corpora."""

MOST_NOTICES = 10

T = TypeVar("T")
Part = TypeVar("Part", "Table", "StudyFigure")
Frames = Mapping[str, pd.DataFrame]
Make = Callable[[pd.DataFrame], pd.DataFrame]
Words = Callable[[pd.DataFrame], str]
Watch = Callable[[SweepEvent], None]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which data sets, models, λ and seeds are looked at."""

    datasets: tuple[str, ...]
    models: tuple[str, ...]
    scales: tuple[float, ...] = ()
    """Of studies that vary λ."""
    seeds: int = 1
    quick: bool = False
    synthetic: bool = True
    """Whether trainings on made corpora belong to it."""

    def __post_init__(self) -> None:
        for dataset in self.datasets:
            if not find_dataset(dataset) and not Path(dataset).is_file():
                raise UnknownName("data set", dataset, DATASETS)
        for scale in self.scales:
            if not 0 < scale < float("inf"):
                raise ConfigError(f"λ divides the attention scores and must be a number above 0, not {scale:g}.")
        if not self.datasets or not self.models:
            raise ConfigError(
                "A study needs at least one data set and one model; leave the option out for all of them."
            )
        if self.seeds < 1:
            raise ConfigError(f"A study needs at least one seed, not {self.seeds}.")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A run that a study asks for, and what tells it apart in tables."""

    dataset: str
    model: str
    settings: RunSettings

    @property
    def columns(self) -> dict[str, object]:
        own = {"dataset": self.dataset, "model": self.model, "seed": self.settings.training.seed}
        return {**own, **what_it_is(self.settings.model)}


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a measure is made of: the finished runs of its trials."""

    selection: Selection
    runs: Sequence[tuple[Trial, Run]]
    watch: Watch | None = None

    def below_each_other(self, table: Callable[[Trial, Run], pd.DataFrame]) -> pd.DataFrame:
        """A table of every run, with the columns that tell it apart in front."""
        return pd.concat([in_front(trial.columns, table(trial, run)) for trial, run in self.runs], ignore_index=True)

    def of_traces(self, measure: Callable[..., pd.DataFrame]) -> pd.DataFrame:
        """A table of the trace of every run, below each other; the run's seed draws what is drawn."""
        return self.below_each_other(lambda trial, run: measure(run.trace(), seed=trial.settings.training.seed))


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A table that is made of runs: of which, and how."""

    make: Callable[[Material], pd.DataFrame]
    trials: Sequence[Trial] = ()
    needs_all: bool = False
    """Whether it is made only where all of its runs are there, and not of some."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of a study: the files it becomes, and what a page shows of the first of them."""

    name: str
    """What asks for it."""
    files: Mapping[str, tuple[str, Make]]
    """By their names: the measure that each is made of, and how."""
    printed: Make | None = None
    """How the paper arranges the first, which is a further file."""
    cells: Make | None = None
    """How a page shows that arrangement or, where there is none, the first file; None: as it is."""
    title: str = ""
    """None of it is shown without a title."""
    note: str | Words = ""
    lead: Words | None = None
    comes_with: tuple[str, ...] = ()
    """The parts, figures or claims, that it comes along with; such a table is not asked for by itself."""

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(measure for measure, _ in self.files.values()))

    def make(self, measured: Frames) -> dict[str, pd.DataFrame]:
        """Its files."""
        files = {name: make(measured[measure]) for name, (measure, make) in self.files.items()}
        first = next(iter(files))
        return {**files, f"{first}-as-printed": self.printed(files[first])} if self.printed else files

    def show(self, files: Frames) -> PageTable:
        """What a page shows of its files."""
        name = next(iter(self.files))
        data = files[name]
        cells = files[f"{name}-as-printed"] if self.printed else data
        return PageTable(
            name=name,
            title=self.title,
            cells=self.cells(cells) if self.cells else cells,
            data=data,
            note=self.note if isinstance(self.note, str) else self.note(data),
            lead=self.lead(data) if self.lead else "",
        )


@dataclass(frozen=True, kw_only=True)
class StudyFigure(Figure):
    """A figure of a paper; one with models shows their rows only."""

    models: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What claims are judged on together: a data set, all of them, made data."""

    tables: Mapping[str, str]
    """What claims call a table, and the measure that it is."""
    dataset: str | None = None
    """Whose rows count; None: all."""
    title: str = ""
    """Of a data set what the paper calls it."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A paper: what it runs and shows, all declared."""

    name: str
    title: str
    models: Mapping[str, Mapping[str, Any]]
    """By the paper's names, as changes of settings."""
    names: Mapping[str, str]
    """What the paper calls its data sets."""
    whole: Selection
    quick: Selection
    cost: Callable[[RunSettings], Any]
    """Orders runs by how long they take: what takes longest comes first, so that workers end together."""
    measures: Callable[[Selection], Mapping[str, Measure]]
    """By name, for a selection."""
    tables: tuple[Table, ...]
    figures: tuple[StudyFigure, ...]
    claims: tuple[str, ...]
    scopes: Callable[[Selection], Sequence[Scope]]
    about_figures: str
    about_quick: str = ""
    timeline: tuple[str, str] | None = None
    """A measure of tokens over training time, and what is said of it."""

    def figure(self, name: str) -> StudyFigure:
        return _named("figure", name, {one.name: one for one in self.figures})

    def table(self, name: str) -> Table:
        return _named("table", name, {one.name: one for one in self.tables if not one.comes_with})

    def drawable(self, selection: Selection) -> list[str]:
        """The figures that show at least one of the models and need no other data than those selected."""
        shown = [one for one in self.figures if not one.models or set(one.models) & set(selection.models)]
        return [figure.name for figure in self.with_data(shown, selection)]

    def with_data(self, parts: Iterable[Part], selection: Selection) -> list[Part]:
        """Those figures, or tables, that need no other data than those selected."""
        at_hand = {*selection.datasets, *([SYNTHETIC] if selection.synthetic else [])}
        needed = {name: {trial.dataset for trial in one.trials} for name, one in self.measures(selection).items()}
        return [part for part in parts if all(needed[need] <= at_hand for need in part.needs)]


def _named(kind: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        raise UnknownName(kind, name, known)
    return known[name]


def find_study(name: str) -> Study:
    """A study by its name."""
    study: Study = importlib.import_module(_named("paper", name, STUDIES)).STUDY
    return study


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which parts of a study are wanted, on which selection."""

    selection: Selection
    tables: tuple[Table, ...] = ()
    figures: tuple[StudyFigure, ...] = ()
    claims: bool = False

    def measures(self, study: Study) -> list[str]:
        """The measures that the parts are made of."""
        scopes = study.scopes(self.selection) if self.claims else ()
        parts = [*(table.needs for table in self.tables), *(figure.needs for figure in self.figures)]
        return list(dict.fromkeys(chain(*parts, *(scope.tables.values() for scope in scopes))))


def want(
    study: Study,
    *,
    tables: Sequence[str] = (),
    figures: Sequence[str] = (),
    claims: bool = False,
    quick: bool = False,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    scales: Sequence[float] | None = None,
    seeds: int | None = None,
) -> Wanted:
    """What is asked for; all tables, figures (`all` are those that the selection allows) and claims if nothing is."""
    given = {"datasets": datasets, "models": models, "scales": scales}
    selection = _select(study, quick, {name: tuple(value) for name, value in given.items() if value is not None}, seeds)
    everything = not tables and not figures and not claims
    names = [study.drawable(selection) if one == "all" else [_written(one)] for one in figures or ["all"] * everything]
    chosen = tuple(study.figure(name) for name in dict.fromkeys(chain.from_iterable(names)))
    for figure in chosen:
        _refuse_other_models(figure, selection)
    asked = [one for one in study.tables if not one.comes_with] if everything else [study.table(one) for one in tables]
    judged = claims or everything
    if chosen and not asked and not judged:  # only the models that these figures show
        shown = {model for figure in chosen for model in figure.models or selection.models}
        selection = replace(selection, models=tuple(model for model in selection.models if model in shown))
    parts = {*(["claims"] if judged else []), *(["figures"] if chosen else [])}
    along = study.with_data([one for one in study.tables if parts & set(one.comes_with)], selection)
    return Wanted(selection=selection, tables=(*asked, *along), figures=chosen, claims=judged)


def _select(study: Study, quick: bool, given: Mapping[str, tuple[Any, ...]], seeds: int | None) -> Selection:
    base = study.quick if quick else study.whole
    for model in given.get("models", ()):
        _named("model", model, study.models)
    if "scales" in given and not base.scales:
        varied = ", ".join(name for name in STUDIES if find_study(name).whole.scales)
        raise ConfigError(f"--scales is of {varied}: the models of {study.name} do not vary λ.")
    changes: dict[str, Any] = {**given, **({} if seeds is None else {"seeds": seeds})}
    return replace(base, **changes, synthetic=base.synthetic and "datasets" not in given)


def _written(figure: str) -> str:
    """S13 may be written s13."""
    return figure.upper() if figure[1:].isdigit() else figure


def _refuse_other_models(figure: StudyFigure, selection: Selection) -> None:
    if figure.models and not set(figure.models) & set(selection.models):
        raise ConfigError(
            f"Figure {figure.name} shows {', '.join(figure.models)}, and of models there is only "
            f"{', '.join(selection.models)}. Take one of them in, or ask for figures that show other models."
        )


class Measured(Mapping[str, pd.DataFrame]):
    """The measures of a study that there are runs for, each made when it is first asked for."""

    def __init__(
        self,
        measures: Mapping[str, Measure],
        selection: Selection,
        runs: Mapping[RunSettings, Run],
        watch: Watch | None = None,
    ) -> None:
        self._make: dict[str, Callable[[], pd.DataFrame]] = {}
        for name, one in measures.items():
            finished = [(trial, runs[trial.settings]) for trial in one.trials if trial.settings in runs]
            if len(finished) == len(one.trials) or (finished and not one.needs_all):
                self._make[name] = cache(partial(one.make, Material(selection=selection, runs=finished, watch=watch)))

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self._make[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._make)

    def __len__(self) -> int:
        return len(self._make)

    def __contains__(self, name: object) -> bool:
        return name in self._make


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """A finished study: its page, its tables by the names of their files, what is missing and what failed."""

    page: Page
    out: Path
    tables: Frames
    missing: tuple[str, ...] = ()
    """Figures that could not be drawn because runs failed."""
    failures: tuple[Failure, ...] = ()

    def summary(self) -> dict[str, Any]:
        """The study as plain data: that of the page, where the figures are, and what is not there."""
        return {
            **payload(self.page),
            "figures": {one.name: str(self.out / "figures" / f"{one.stem}.svg") for one in self.page.pictures()},
            "missing_figures": list(self.missing),
            "failed": [failure.payload() for failure in self.failures],
        }


def reproduce(
    study: Study,
    wanted: Wanted,
    store: Store,
    out: Path,
    *,
    on: str = "local",
    workers: int | None = None,
    watch: Watch | None = None,
) -> Reproduced:
    """Run what is missing and write the study directory. What is finished is never computed twice."""
    measures = study.measures(wanted.selection)
    settings = dict.fromkeys(trial.settings for name in wanted.measures(study) for trial in measures[name].trials)
    runs: dict[RunSettings, Run] = {}
    failures: tuple[Failure, ...] = ()
    if settings:
        plan = Plan(name=study.name, runs=tuple(sorted(settings, key=study.cost, reverse=True)))
        done = sweep(plan, store, on=on, workers=workers, watch=watch)
        if done.runs.empty:
            raise HeedfulError(f"No run of the study could be computed: {done.failures[0].message}")
        runs = {one.settings: one for one in (Run(store.root / name) for name in done.runs["run"])}
        failures = done.failures
    return tabulate(study, wanted, runs, out, failures=failures, watch=watch)


def tabulate(
    study: Study,
    wanted: Wanted,
    runs: Mapping[RunSettings, Run],
    out: Path,
    *,
    failures: Sequence[Failure] = (),
    watch: Watch | None = None,
) -> Reproduced:
    """Tables, figures, verdicts and page from finished runs."""
    measured = Measured(study.measures(wanted.selection), wanted.selection, runs, watch)
    files, shown = _tables(wanted, measured)
    judged = _judged(study, wanted.selection, measured) if wanted.claims else []
    drawn = {one.name: _picture(one, measured, wanted.selection) for one in wanted.figures}
    pictures = [picture for picture in drawn.values() if picture]
    missing = tuple(name for name, picture in drawn.items() if picture is None)
    said = [str(one) for table in files.values() for one in table.attrs.get("notices", [])]
    page = Page(
        title=study.title,
        headline=_headline(judged, shown, pictures),
        sections=list(_sections(study, wanted, measured, judged, shown, pictures)),
        notices=[*_notices(study, wanted, failures, missing), *said],
        facts={
            "Models": {name: _choices(changes) for name, changes in study.models.items()},
            "Versions": environment(),
        },
        places={"page": out / "study.html"},
    )
    done = Reproduced(page=page, out=out, tables=files, missing=missing, failures=tuple(failures))
    _write(study, done, shown)
    return done


def _tables(wanted: Wanted, measured: Measured) -> tuple[dict[str, pd.DataFrame], list[PageTable]]:
    """The files of the tables that can be made, and what the page shows of them."""
    files: dict[str, pd.DataFrame] = {}
    shown = []
    for table in wanted.tables:
        if all(need in measured for need in table.needs):
            made = table.make(measured)
            files |= made
            shown += [table.show(made)] if table.title else []
    return files, shown


def _judged(study: Study, selection: Selection, measured: Measured) -> list[Judged]:
    """The verdicts of every scope that has rows: all claims of the study that its tables allow."""
    judged = []
    for scope in study.scopes(selection):
        tables = {name: measured[measure] for name, measure in scope.tables.items() if measure in measured}
        if scope.dataset is not None:
            tables = {
                name: table[table["dataset"] == scope.dataset] if "dataset" in table else table
                for name, table in tables.items()
            }
        present = {name: table for name, table in tables.items() if len(table)}
        names = tuple(name for name in study.claims if CLAIMS[name].table in present)
        title = scope.title or called(scope.dataset or "", study.names)
        judged += [Judged(dataset=title, verdicts=judge(names, present))] if names else []
    return judged


def _picture(figure: StudyFigure, measured: Measured, selection: Selection) -> Picture | None:
    """The figure drawn from the rows of its models; None where there are none."""
    if not figure.possible(measured):
        return None
    models = [model for model in figure.models if model in selection.models]
    tables = {need: measured[need] for need in figure.needs}
    if figure.models:
        tables = {name: table[table["model"].isin(models)] for name, table in tables.items()}
    if any(table.empty for table in tables.values()):
        return None
    return figure.picture(tables, stem=f"figure-{figure.name}")


def _headline(judged: Sequence[Judged], shown: Sequence[PageTable], pictures: Sequence[Picture]) -> str:
    """How many verdicts hold, or else what a table comes to, or how many figures there are."""
    verdicts = [verdict.decision for one in judged for verdict in one.verdicts]
    if verdicts:
        yes, no, open_ones = (verdicts.count(decision) for decision in ("yes", "no", "not shown"))
        return f"Of {len(verdicts)} claims {yes} are shown (yes), {no} refuted (no), {open_ones} not shown."
    leads = [table.lead for table in shown if table.lead]
    return leads[0] if leads else f"{counted(len(shown), 'table')}, {counted(len(pictures), 'figure')}."


def _sections(
    study: Study,
    wanted: Wanted,
    measured: Measured,
    judged: Sequence[Judged],
    shown: Sequence[PageTable],
    pictures: Sequence[Picture],
) -> Iterator[Section]:
    if judged:
        yield Section(name="verdicts", title="Verdicts", judged=judged)
    if shown:
        yield Section(name="tables", title="Tables", tables=shown)
    name, title = study.timeline or ("", "")
    if name in wanted.measures(study) and name in measured:
        lead = "Move the slider, or let the training play."
        moving = timeline(measured[name], name="training-time", title=title)
        said = "Attention over training time"
        yield Section(name="training", title=said, lead=lead, timeline=moving, on_terminal=False)
    if pictures:
        lead = f"{counted(len(pictures), 'figure')}, each as SVG, PDF and PNG."
        yield Section(name="figures", title="Figures", lead=lead, pictures=pictures)


def _notices(study: Study, wanted: Wanted, failures: Sequence[Failure], missing: Sequence[str]) -> list[str]:
    """What is quick, what failed and what is not drawn."""
    quick = [study.about_quick] if wanted.selection.quick and study.about_quick else []
    failed = [f"A run failed: {failure.message}" for failure in failures[:MOST_NOTICES]]
    return [*quick, *failed, *(f"Figure {name} is not drawn: it needs runs that failed." for name in missing)]


def _choices(model: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in model.items()) or "the defaults"


def _write(study: Study, done: Reproduced, shown: Sequence[PageTable]) -> None:
    """Every table that has rows, the verdicts, the figures with their index, and the page."""
    rows = [{"dataset": dataset, **verdict.row()} for dataset, verdict in done.page.verdicts()]
    tables = {**done.tables, "verdicts": pd.DataFrame(rows)}
    save_tables({name: table for name, table in tables.items() if len(table)}, done.out / "tables")
    for table in shown:
        write_text(done.out / "tables" / f"{table.name}.md", as_markdown(table.cells, table.note))
    pictures = list(done.page.pictures())
    for picture in pictures:
        picture.save(done.out / "figures")
    if pictures:
        write_text(done.out / "figures.md", figure_index(study, pictures))
    write_html(done.page, done.page.places["page"])


def figure_index(study: Study, pictures: Iterable[Picture]) -> str:
    """A page of documentation that shows every figure with one sentence of what to see."""
    parts = [f"# Figures of {study.title.split(',')[0]}", study.about_figures]
    for one in pictures:
        image = f"![{one.title}](figures/{one.stem}.png)"
        parts.append(f"## {one.title}\n\n{one.caption}\n\n*What to see:* {one.see}\n\n{image}")
    return "\n\n".join(parts) + "\n"
