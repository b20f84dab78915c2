"""The one function that runs any study. A study directory holds

tables/     every table as CSV, Parquet and LaTeX, what is shown also as Markdown, the verdicts among them
figures/    each figure as SVG, PDF and PNG
figures.md  the figures with what to see in them
study.html  all of it on one page
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.claims import CLAIMS, judge
from heedful.config import RunSettings
from heedful.errors import ConfigError, HeedfulError
from heedful.figures.picture import Picture
from heedful.files import write_text
from heedful.notebook import counted
from heedful.pipeline import Run, environment
from heedful.report.exports import as_markdown, save_tables
from heedful.report.html import write_html
from heedful.report.page import Judged, Page, PageTable, Section, payload
from heedful.report.timeline import timeline
from heedful.store import Store
from heedful.studies.measures import called
from heedful.studies.study import Frames, Material, Measure, Selection, Study, StudyFigure, Wanted, Watch, want
from heedful.sweep.loop import Failure, finished_runs, sweep
from heedful.sweep.plan import Plan

MOST_NOTICES = 10


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
            if one.without_runs or (finished and (len(finished) == len(one.trials) or not one.needs_all)):
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
    settings = _needed(study, wanted)
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


def report_study(study: Study, store: Store, page: Path, *, watch: Watch | None = None) -> Reproduced:
    """The page of a study from the runs that a store holds, written to that file alone; nothing is trained.

    The whole study or the quick one, whichever is nearer to being complete.
    """
    chosen, found, total = max(
        (_found(study, quick, store) for quick in (False, True)), key=lambda one: len(one[1]) / one[2]
    )
    if not found:
        raise ConfigError(
            f"The store '{store.root}' holds no run of the study {study.name}; `heedful reproduce {study.name}` "
            "computes them."
        )
    runs = {one: Run(path) for one, path in found.items()}
    done, _ = _gather(study, chosen, runs, page.parent, page, missing=total - len(found), watch=watch)
    write_html(done.page, page)
    return done


def _found(study: Study, quick: bool, store: Store) -> tuple[Wanted, dict[RunSettings, Path], int]:
    """All of a study, the runs of it that are there, and how many it needs."""
    wanted = want(study, quick=quick)
    settings = _needed(study, wanted)
    return wanted, finished_runs(Plan(name=study.name, runs=tuple(settings)), store), len(settings)


def _needed(study: Study, wanted: Wanted) -> dict[RunSettings, None]:
    """The runs that what is wanted is made of, each once."""
    measures = study.measures(wanted.selection)
    return dict.fromkeys(trial.settings for name in wanted.measures(study) for trial in measures[name].trials)


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
    done, shown = _gather(study, wanted, runs, out, out / "study.html", failures=failures, watch=watch)
    _write(study, done, shown)
    return done


def _gather(
    study: Study,
    wanted: Wanted,
    runs: Mapping[RunSettings, Run],
    out: Path,
    place: Path,
    *,
    failures: Sequence[Failure] = (),
    missing: int = 0,
    watch: Watch | None = None,
) -> tuple[Reproduced, list[PageTable]]:
    """What finished runs show, and what the page shows of the tables; so many runs are missing."""
    measured = Measured(study.measures(wanted.selection), wanted.selection, runs, watch)
    files, shown = _tables(wanted, measured)
    judged = _judged(study, wanted.selection, measured) if wanted.claims else []
    drawn = {one.name: _picture(one, measured, wanted.selection) for one in wanted.figures}
    pictures = [picture for picture in drawn.values() if picture]
    undrawn = tuple(name for name, picture in drawn.items() if picture is None)
    said = [str(one) for table in files.values() for one in table.attrs.get("notices", [])]
    few = f"Of {missing + len(runs):,} runs {missing:,} are not in the store, and not in what is shown."
    page = Page(
        title=study.title,
        headline=_headline(judged, shown, pictures),
        sections=list(_sections(study, wanted, measured, judged, shown, pictures)),
        notices=[*_notices(study, wanted, failures, undrawn), *([few] if missing else []), *said],
        facts={
            "Models": {name: _choices(changes) for name, changes in study.models.items()},
            "Versions": environment(),
        },
        places={"page": place},
    )
    return Reproduced(page=page, out=out, tables=files, missing=undrawn, failures=tuple(failures)), shown


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
    return [*quick, *failed, *(f"Figure {name} is not drawn: it needs runs that are not there." for name in missing)]


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
