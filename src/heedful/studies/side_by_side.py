"""Several runs side by side: what each answers, in what their settings differ, their verdicts, and the same texts."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.claims import Decision
from heedful.errors import InputError
from heedful.figures.style import brief
from heedful.notebook import counted
from heedful.pipeline import Run, environment
from heedful.report.html import write_html
from heedful.report.page import Judged, Page, PageTable, Section
from heedful.report.strips import ATTENTION, Example, Shading
from heedful.report.terminal import printable
from heedful.report.vocabulary import Vocabulary, towards
from heedful.store import PREFIX
from heedful.studies.audit import corpus_of
from heedful.studies.examine import Examination, examine
from heedful.studies.measures import MINIMUM, per_cent
from heedful.studies.telling import MISLEADS, RIGHT, instances_of
from heedful.studies.wording import accuracy_words
from heedful.sweep.plan import Plan
from heedful.sweep.tables import metric_names, summarize, table_of
from heedful.text.corpus import Corpus

MOST_RUNS = 12
"""Side by side; each is examined, which takes seconds or minutes."""

MOST_MAPS = 6
"""So many of them have their vocabulary on the page."""

MAP_TOKENS = 60_000
"""Of all these maps."""

ASKED = ("Across the corpus", "For one decision", "Another story")
"""The questions of an answer, in short."""

Watch = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Examined:
    """A run, its data, and what it shows."""

    name: str
    run: Run
    corpus: Corpus
    examined: Examination


def side_by_side(runs: Sequence[Run], report: Path, *, notices: Sequence[str] = (), watch: Watch | None = None) -> Page:
    """Examine runs, write the page that shows them beside each other into a file, and return it."""
    _check(runs)
    names = name_runs(runs)
    done = []
    for place, (name, run) in enumerate(zip(names, runs[:MOST_RUNS], strict=False)):
        if watch is not None:
            watch("examining runs", place, min(len(runs), MOST_RUNS))
        done.append(_examined(name, run))
    left = (
        [f"The first {MOST_RUNS} of {len(runs):,} runs were examined; the table of runs has all."]
        if len(runs) > MOST_RUNS
        else []
    )
    if len(done) > MOST_MAPS:
        left.append(f"Of {len(done)} runs the vocabulary of the first {MOST_MAPS} is shown.")
    page = Page(
        title=f"{counted(len(runs), 'run')} side by side: can you trust attention as an explanation here?",
        headline=headline([one.examined for one in done]),
        sections=list(_sections(done, runs)),
        notices=[*notices, *left],
        facts={"Versions": environment()},
        places={"report": report},
    )
    write_html(page, report)
    return page


def _check(runs: Sequence[Run]) -> None:
    twice = [path for path, count in Counter(run.path.resolve() for run in runs).items() if count > 1]
    if twice:
        raise InputError(f"The run '{twice[0].name}' is named twice. Name each run once.")
    if len(runs) < 2:
        raise InputError(f"Side by side there are two runs or more, not {len(runs)}.")


def _examined(name: str, run: Run) -> Examined:
    """Everything that an audit asks but what one attention for the whole corpus could do, which takes longest."""
    settings = run.settings
    tables = {table: run.table(table) for table in ("tokens", "weights") if run.has(table)}
    found = examine(tables, run.trace(), seed=settings.training.seed, unit=settings.model.unit)
    return Examined(name=name, run=run, corpus=corpus_of(run), examined=found)


def name_runs(runs: Sequence[Run]) -> list[str]:
    """By the corpus where there are several, and by the settings in which they differ; no two names are alike."""
    varied = Plan(name="runs", runs=tuple(dict.fromkeys(run.settings for run in runs))).varied
    several = len({run.manifest["corpus"] for run in runs}) > 1
    own = [name for name in varied if not name.startswith(("data.", "base", "record."))]
    names = [_name(run, own, several) for run in runs]
    count = Counter(names)
    return [
        name if name and count[name] == 1 else f"{name} ({run.path.name[:PREFIX]})".strip()
        for name, run in zip(names, runs, strict=True)
    ]


def _name(run: Run, varied: Sequence[str], several: bool) -> str:
    values = [_value(run, name) for name in varied]
    said = [f"{_spoken(name)} {value}" for name, value in zip(varied, values, strict=True)]
    return ", ".join([*([brief(str(run.manifest["corpus"]))] if several else []), *said])


def _spoken(name: str) -> str:
    """A setting or a metric in words."""
    return name.rpartition(".")[2].replace("_", " ")


def _value(run: Run, name: str) -> str:
    value: object = run.settings.model_dump(mode="json")
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return f"{value:g}" if isinstance(value, float) else str(value)


def headline(examined: Sequence[Examination]) -> str:
    """What all answer, or how many answer what."""
    headlines = {one.answer.headline for one in examined}
    if len(headlines) == 1:
        return f"All {len(examined)} runs answer alike. {headlines.pop()}"
    counts = [Counter(one.answer.questions[place].decision for one in examined) for place in range(len(ASKED))]
    order: tuple[Decision, ...] = ("yes", "no", "not shown")
    said = [
        f"{name.lower()} {', '.join(f'{found[decision]} {decision}' for decision in order if found[decision])}"
        for name, found in zip(ASKED, counts, strict=True)
    ]
    return f"The {len(examined)} runs do not answer alike: {'; '.join(said)}."


def _sections(done: Sequence[Examined], runs: Sequence[Run]) -> Iterator[Section]:
    yield Section(name="answers", title="What each answers", tables=[_answers(done)], note=ANSWERS_NOTE)
    yield _runs(runs)
    judged = [Judged(dataset=one.name, verdicts=one.examined.verdicts) for one in done]
    yield Section(name="verdicts", title="Verdicts", judged=judged)
    yield Section(name="erasure", title="Erase attention", tables=[_erasure(done)], note=ERASURE_NOTE)
    if texts := _texts(done):
        yield Section(name="texts", title="The same texts", texts=texts, key=TEXTS_KEY, on_terminal=False)
    maps = done[:MOST_MAPS]
    for place, one in enumerate(maps):
        vocabulary = Vocabulary(
            table=one.run.table("tokens"), classes=towards(one.corpus.class_names), most=MAP_TOKENS // len(maps)
        )
        title = f"The whole vocabulary: {one.name}"
        yield Section(name=f"vocabulary-{place}", title=title, vocabulary=vocabulary, on_terminal=False)


ANSWERS_NOTE = (
    "Across the corpus: does attention point at the words that decide? For one decision: does attention find what "
    "decided it? Another story: could another attention tell one with the same output? What one attention for the "
    "whole corpus could do is asked in the report of each run alone."
)
ERASURE_NOTE = (
    "Medians over the test texts whose decision rests on a part of them: how much of a text must be erased from the "
    "largest attention weight on until the decision flips, and how much provably is enough; how often attention finds "
    "a smallest set; and how much of the lead over the next class goes with as many of the most attended units."
)
TEXTS_KEY = (
    "The test texts that the first run's attention is right on, and that it misleads on, under the attention of every "
    "run. The stronger, the more weight a word gets; each strip is relative to its own strongest word."
)


def _answers(done: Sequence[Examined]) -> PageTable:
    rows = [
        {
            "run": printable(one.name),
            "test accuracy": accuracy_words(one.run.metrics),
            **{name: question.decision for name, question in zip(ASKED, one.examined.answer.questions, strict=True)},
            **{f"{use.purpose}?": use.decision for use in one.examined.answer.uses},
        }
        for one in done
    ]
    return PageTable(name="answers", cells=pd.DataFrame(rows))


def _runs(runs: Sequence[Run]) -> Section:
    """All runs, and means over seeds where there are several."""
    plan = Plan(name="runs", runs=tuple(dict.fromkeys(run.settings for run in runs)))
    manifests = [(run.path.name, run.manifest) for run in runs]
    table = table_of(manifests)
    shown = ["corpus", *(name for name in plan.varied if name in table), "test_accuracy"]
    cells = table[shown].assign(test_accuracy=table["test_accuracy"].map(per_cent)).fillna("–").astype(str)
    cells = cells.rename(columns=_spoken).assign(**{"in the store": table["run"]})
    cells.insert(0, "run", [printable(name) for name in name_runs(runs)])
    tables = [PageTable(name="runs", title="Runs", cells=cells, data=table)]
    means = summarize(table, plan.varied, metric_names(manifest for _, manifest in manifests))
    if (means["seeds"] > 1).any():
        tables.append(_means(means))
    same = "Settings that are not shown are the same in all of them."
    return Section(name="runs", title="In what they differ", tables=tables, note=same)


def _means(means: pd.DataFrame) -> PageTable:
    rows = means[means["metric"] == "test_accuracy"]
    settings = [name for name in rows if "." in str(name)]
    numbers = zip(*(rows[name].tolist() for name in ("mean", "low", "high", "seeds")), strict=True)
    accuracy = [
        per_cent(mean) + (f" [{per_cent(low)}, {per_cent(high)}]" if seeds > 1 else "")
        for mean, low, high, seeds in numbers
    ]
    cells = rows[settings].rename(columns=_spoken).fillna("–").astype(str).reset_index(drop=True)
    cells["test accuracy"], cells["seeds"] = accuracy, rows["seeds"].tolist()
    return PageTable(name="means", title="Means over seeds", cells=cells, data=means)


def _erasure(done: Sequence[Examined]) -> PageTable:
    rows = [{"run": printable(one.name), **_erased(one.examined)} for one in done]
    data = pd.DataFrame(rows)
    cells = data.assign(**{name: data[name].map(per_cent) for name in data.columns[1:]})
    return PageTable(name="erasure", cells=cells, data=data)


def _erased(examined: Examination) -> dict[str, Any]:
    rows = {row["ranking"]: row for row in examined.erased.resting.to_dict("records")}
    attended = rows["attention"]
    return {
        "median erased": attended["median_fraction"],
        "minimum": rows[MINIMUM]["median_fraction"],
        "is minimal": attended["attained"],
        "lead gone": attended["lead_taken"],
    }


def _texts(done: Sequence[Examined]) -> list[Example]:
    """Texts of the first run under the attention of all that have the same data and the same units."""
    first = done[0]
    alike = [one for one in done if one.corpus.fingerprint == first.corpus.fingerprint and _unit(one) == _unit(first)]
    if len(alike) < 2:
        return []
    trace = first.run.trace()
    texts = instances_of(first.run.model(), first.corpus.test, trace, first.examined, _unit(first))
    traces = [(one.name, one.run.trace()) for one in alike]
    shown = []
    for name, why in ((RIGHT, "Where the first is right"), (MISLEADS, "Where it misleads")):
        row = texts.typical(texts.trait(name).where)
        if row is not None:
            shadings = [
                Shading(
                    name=own, values=other.attention_weights[other.instance(row)], note=f"{ATTENTION} weight {{:.3f}}"
                )
                for own, other in traces
            ]
            shown.append(texts.shaded(row, shadings, why, marked=False))
    return shown


def _unit(one: Examined) -> str:
    return one.run.settings.model.unit
