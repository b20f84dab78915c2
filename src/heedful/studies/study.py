"""A paper's study as a value: measures (tables made of runs), tables (made of measures, beside the paper's), figures
(drawn from measures) and scopes (what claims are judged on), all declared. What is asked for decides which runs are
needed; what is finished is never computed twice (`heedful.studies.reproduce`).
"""

import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from heedful.analysis.flips import in_front
from heedful.config import RunSettings
from heedful.errors import ConfigError, UnknownName
from heedful.figures.picture import Figure
from heedful.files import is_file, write_table
from heedful.pipeline import Run, read_corpus
from heedful.report.page import PageTable
from heedful.store import INPUTS, PREFIX, Store
from heedful.studies.measures import what_it_is
from heedful.sweep.loop import Measuring, SweepEvent
from heedful.text.corpus import Corpus
from heedful.text.recipes import DATASETS, find_dataset

STUDIES = ("sun2020", "serrano2019", "jain2019", "wiegreffe2019", "neighbours", "contextual")
"""Every study: the package of that name has it as its STUDY."""

SYNTHETIC = "synthetic"
"""What tables call the data of trainings on made corpora."""

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
            if not find_dataset(dataset) and not is_file(Path(dataset)):
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

    def kept(
        self, what: str, measure: Callable[[Run, Corpus], pd.DataFrame], identity: Sequence[object]
    ) -> pd.DataFrame:
        """A table of the model of every run, below each other: it takes long, and so stays in the store.

        `identity` tells such tables of one run apart; `what` is being done while they are made.
        """
        corpus_of = lru_cache(maxsize=1)(lambda data: read_corpus(RunSettings(data=data)))  # of runs side by side
        parts = []
        for trial, run in self.runs:

            def make(path: Path, run: Run = run) -> None:
                write_table(path, measure(run, corpus_of(run.settings.data)))

            digest = run.manifest["digest"]
            key = hashlib.sha256(json.dumps([digest, *identity]).encode()).hexdigest()
            path, _ = Store(run.path.parent).keep(INPUTS, f"{digest[:PREFIX]}-{key[:PREFIX]}", make)
            parts.append(in_front(trial.columns, pd.read_parquet(path)))
            if self.watch is not None:
                self.watch(Measuring(what=what, done=len(parts), total=len(self.runs)))
        return pd.concat(parts, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A table that is made of runs: of which, and how."""

    make: Callable[[Material], pd.DataFrame]
    trials: Sequence[Trial] = ()
    needs_all: bool = False
    """Whether it is made only where all of its runs are there, and not of some."""
    without_runs: bool = False
    """Whether it is made of no run at all; others without trials are not in the selection."""


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


def each_and_all(*measures: str) -> Callable[[Selection], list[Scope]]:
    """Where claims are judged on these measures: on each data set, and on all of them together."""

    def scopes(selection: Selection) -> list[Scope]:
        judged = {name: name for name in measures}
        alone = [Scope(tables=judged, dataset=one) for one in selection.datasets]
        return [*alone, *([Scope(title="all data sets", tables=judged)] if len(alone) > 1 else [])]

    return scopes


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
        measures = self.measures(selection)
        needed = {
            name: {trial.dataset for trial in one.trials}
            for name, one in measures.items()
            if one.trials or one.without_runs
        }
        return [part for part in parts if all(need in needed and needed[need] <= at_hand for need in part.needs)]


def _named(kind: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        raise UnknownName(kind, name, known)
    return known[name]


def find_study(name: str) -> Study:
    """A study by its name."""
    if name not in STUDIES:
        raise UnknownName("study", name, STUDIES)
    study: Study = importlib.import_module(f"heedful.studies.{name}").STUDY
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
    drawn = ["all"] if everything else figures
    names = chain.from_iterable(study.drawable(selection) if one == "all" else [_written(one)] for one in drawn)
    chosen = tuple(study.figure(name) for name in dict.fromkeys(names))
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
