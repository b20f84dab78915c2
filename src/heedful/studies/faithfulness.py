"""`heedful faithfulness`: explanations of a model by every metric, and which metrics to trust on planted worlds."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.agreement import agree
from heedful.analysis.faithfulness import World, diagnosticity, faithfulness, plant
from heedful.analysis.faithfulness.cost import MOST_UNITS
from heedful.analysis.faithfulness.metric import LOWER
from heedful.analysis.faithfulness.metrics import find_metric
from heedful.analysis.faithfulness.planted import MAKERS
from heedful.analysis.faithfulness.watching import DISTRUST, PERMUTED, TRUST
from heedful.analysis.flips import TraceReading
from heedful.errors import DataError
from heedful.explainers import explain_all, possible
from heedful.explanation_files import ERASER, read_explanations, write_explanations
from heedful.explanations import Explanation
from heedful.folding import fold
from heedful.notebook import counted
from heedful.report.page import Page, PageTable, Section
from heedful.studies.compare import Compared, check_names, compare
from heedful.studies.given import flat_said, of_file, of_one_class, of_trace, texts_of
from heedful.studies.models import Stages, cut_said, drawn_rows, drawn_texts, match_classes
from heedful.studies.rationales import Marked, marks_of
from heedful.subjects import Reading, Subject
from heedful.sweep.loop import SweepEvent
from heedful.text.corpus import Corpus
from heedful.traces import Trace

Watch = Callable[[SweepEvent], None]

TITLE = "Explanations by metrics of faithfulness"


@dataclass(frozen=True, kw_only=True, eq=False)
class Suite:
    """Explanations of one model by every metric, as a page, and as tables that are saved."""

    compared: Compared
    page: Page

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        return self.compared.tables

    def save_explanations(self, folder: Path) -> None:
        """Write what was measured: all explanations as Parquet and JSON lines, and each in ERASER's form."""
        explanations = self.compared.explanations
        for ending in (".parquet", ".jsonl"):
            write_explanations(folder / f"explanations{ending}", explanations)
        for number, one in enumerate(explanations):
            name = re.sub(r"[^\w.-]+", "-", one.method)[:100]  # it may come from a file
            write_explanations(folder / f"{number}-{name}{ERASER}", [one])


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is to be compared, and how; names that nothing has are refused."""

    by: Sequence[str] | None = None
    metrics: Sequence[str] | None = None
    how: str | None = None
    files: Sequence[Path] = ()
    texts: int = 200
    seed: int = 0
    most: int = MOST_UNITS

    def __post_init__(self) -> None:
        check_names(self.by, self.metrics, self.how)


def measure_subject(
    corpus: Corpus,
    model: Subject,
    wanted: Wanted,
    *,
    marked: Marked | None = None,
    named: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> Suite:
    """Test texts of a corpus, drawn by the seed, or the texts that the files of explanations are of.

    marked: what people marked in the texts, for the metrics of plausibility.
    named: texts by what they are called, for files that hold none.
    """
    stages = Stages(watch)
    model = stages.watched(model)
    drawn, said = drawn_texts(corpus, wanted.texts, wanted.seed)
    said = [*corpus.notices, *match_classes(corpus.class_names, model.class_names, model.name).notices, *said]
    found = [one for file in wanted.files for one in of_file(file, model, named)]
    stages.begin("reading the texts")
    reading = model.read(texts_of(found) if found else drawn.texts)
    if found:
        reading, more = of_one_class(reading, found, model)
        said = [*corpus.notices, *more]
    given = [
        one
        for file in wanted.files
        for one in read_explanations(file, reading.units, class_names=reading.class_names, texts=named)
    ]
    said = [*said, *cut_said(reading.units), *flat_said(given)]
    return _suite(reading, wanted, given, said, stages, marked=marked, name=f"{model.name} on {corpus.name}")


def measure_trace(trace: Trace, wanted: Wanted, *, watch: Watch | None = None, name: str = "trace") -> Suite:
    """Instances of a trace, drawn by the seed."""
    each = trace.take(trace.distinct.nonzero().squeeze(1))
    rows = drawn_rows(len(each), wanted.texts, wanted.seed)
    copies = f" that are no copies of others ({len(trace) - len(each):,} are)" if len(each) < len(trace) else ""
    said = f"Of {len(each):,} instances{copies} {len(rows):,} were explained, drawn by seed {wanted.seed}."
    reading = TraceReading(trace=each.take(rows))
    kept = trace.distinct.nonzero().squeeze(1)[rows]
    given = [fold(one.take(kept), reading.units) for file in wanted.files for one in of_trace(file, trace)]
    notices = [*([said] if len(rows) < len(trace) else []), *flat_said(given)]
    return _suite(reading, wanted, given, notices, Stages(watch), marked=None, name=name)


def _suite(
    reading: Reading,
    wanted: Wanted,
    given: Sequence[Explanation],
    said: Sequence[str],
    stages: Stages,
    *,
    marked: Marked | None,
    name: str,
) -> Suite:
    compared = compare(
        reading,
        by=wanted.by,
        metrics=wanted.metrics,
        given=given,
        how=wanted.how,
        rationales=None if marked is None else marks_of(marked, reading.units),
        seed=wanted.seed,
        most=wanted.most,
        stages=stages,
    )
    sections = [compared.section(), compared.whole_section()]
    choice = compared.choice
    headline = f"{name}: {choice.words}" if choice else f"{name}: nothing can be chosen from."
    facts = {
        "Measured": {"texts": f"{len(reading.units):,}", "units go by": compared.measured.how, "seed": wanted.seed}
    }
    return Suite(
        compared=compared,
        page=Page(title=TITLE, headline=headline, sections=sections, notices=said, facts={**facts}),
    )


def watch_metrics(
    worlds: Mapping[str, World] | None = None,
    *,
    metrics: Sequence[str] | None = None,
    by: Sequence[str] | None = None,
    how: str | None = None,
    texts: int = 200,
    seed: int = 0,
    watch: Watch | None = None,
) -> Page:
    """Which metrics know the truth where it is planted, and which explainers do best by those that do.

    worlds: one's own planted corpora by name (`marked_world`); None plants four. by: names of explainers; None takes
    all that every world can have. how: how units go; None as each world usually does it.
    """
    stages = Stages(watch)
    stages.begin("watching the metrics")
    planted = worlds or {name: plant(name, texts=texts, seed=seed) for name in MAKERS}
    found = diagnosticity(planted, metrics, how=how, seed=seed)
    passed = [name for name, rows in _permuted(found).groupby("metric", sort=False) if (rows["verdict"] == TRUST).all()]
    stages.begin("watching the explainers")
    explained = explainers_on(planted, [str(name) for name in passed], by=by, how=how, seed=seed)
    none = "No metric may be trusted here."
    headline = (
        f"{counted(len(passed), 'metric')} may be trusted here: {', '.join(map(str, passed))}." if passed else none
    )
    return Page(
        title="Who watches the metrics",
        headline=headline,
        sections=[
            Section(
                name="metrics",
                title="Does a metric prefer the truth over the same numbers in other places?",
                lead="The share of texts on which it does, equal values counting half, with its 95 % interval; it is "
                "trusted where the interval lies above .9 in every world.",
                tables=[PageTable(name="diagnosticity", cells=_in_words(found), data=found)],
            ),
            Section(
                name="explainers",
                title="Explainers by the metrics that may be trusted",
                lead="Best first by the mean of their ranks; τ with the truth is Kendall's, the mean over texts.",
                tables=[PageTable(name="explainers", cells=_rounded(explained), data=explained)],
            ),
        ],
        facts={"Measured": {"worlds": ", ".join(planted), "texts": f"{texts:,}", "seed": seed}},
    )


def _permuted(found: pd.DataFrame) -> pd.DataFrame:
    return found[(found["control"] == PERMUTED) & (found["world"] != "all")]


def _in_words(found: pd.DataFrame) -> pd.DataFrame:
    """A row for each metric: its diagnosticity in each world, and the verdict of all."""
    own = _permuted(found)
    shown = [f"{value:.2f} [{low:.2f}, {high:.2f}]" for value, low, high in _ends(own)]
    wide = own.assign(shown=shown).pivot(index="metric", columns="world", values="shown")
    verdicts = own.groupby("metric")["verdict"].agg(lambda said: TRUST if (said == TRUST).all() else DISTRUST)
    order = own.groupby("metric")["diagnosticity"].min().sort_values(ascending=False, kind="stable").index
    cells = wide.loc[order, list(dict.fromkeys(own["world"]))].assign(verdict=verdicts)
    return cells.rename_axis("metric").reset_index()


def _ends(rows: pd.DataFrame) -> list[tuple[float, float, float]]:
    return list(zip(rows["diagnosticity"], rows["low"], rows["high"], strict=True))


def _rounded(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: table[name] if name == "explainer" else ["–" if pd.isna(one) else f"{one:.3f}" for one in table[name]]
            for name in table
        }
    )


def explainers_on(
    worlds: Mapping[str, World],
    metrics: Sequence[str],
    *,
    by: Sequence[str] | None = None,
    how: str | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """One row per explainer that every world has: mean rank, means by these metrics, and τ with the truth."""
    at_hand = [possible(world.reading) for world in worlds.values()]
    shared = by or [name for name in at_hand[0] if all(name in names for names in at_hand)]
    parts = [_of_world(world, shared, metrics, how, seed) for world in worlds.values()]
    means = pd.concat(parts).groupby(level=0, sort=False).mean()
    signed = {name: means[name] * (1 if find_metric(name).direction == LOWER else -1) for name in metrics}
    rank = (pd.DataFrame(signed) if signed else -means[["truth"]]).rank().mean(axis=1)
    table = means.rename(columns={"truth": "τ with the truth"}).assign(**{"mean rank": rank})
    ordered = table.sort_values("mean rank", kind="stable")[["mean rank", *metrics, "τ with the truth"]]
    return ordered.rename_axis("explainer").reset_index()


def _of_world(world: World, names: Sequence[str], metrics: Sequence[str], how: str | None, seed: int) -> pd.DataFrame:
    """One row per explainer: the means of the metrics, and of τ with the truth."""
    found = explain_all(world.reading, names, targets=world.truth.targets, how=how, seed=seed)
    truth = {one.method: _with_truth(one, world.truth) for one in found}
    table = pd.DataFrame({"truth": truth})
    if not metrics:
        return table
    measured = faithfulness(world.reading, found, list(metrics), how=how, seed=seed).table
    return table.join(measured.pivot(index="method", columns="metric", values="value"))


def _with_truth(one: Explanation, truth: Explanation) -> float:
    return float(agree(one.scores, truth.scores, truth.offsets).tau.nanmean())


def marked_world(model: Subject, marked: Marked, texts: Sequence[str]) -> World:
    """A planted corpus of one's own: the words that truly matter have importance one, all others none."""
    reading = model.read(list(texts))
    marks = marks_of(marked, reading.units)
    if not bool(marks.any()):
        raise DataError("No word is marked in the texts that were read: nothing is known to be important.")
    scores: Float[Tensor, " units"] = marks.double()
    truth = Explanation.on(
        reading.units, scores, reading.decisions.cpu(), reading.class_names, method="truth", signed=False
    )
    return World(reading=reading, truth=truth)
