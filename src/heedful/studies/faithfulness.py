"""`heedful faithfulness`: explanations of a model by every metric."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from heedful.analysis.faithfulness.cost import MOST_UNITS
from heedful.analysis.flips import TraceReading
from heedful.explanation_files import read_explanations
from heedful.explanations import Explanation
from heedful.folding import fold
from heedful.report.page import Page
from heedful.studies.compare import Compared, check_names, compare
from heedful.studies.given import flat_said, of_file, of_one_class, of_trace, texts_of
from heedful.studies.models import Stages, cut_said, drawn_rows, drawn_texts, match_classes
from heedful.studies.rationales import Marked, marks_of
from heedful.subjects import Reading, Subject
from heedful.sweep.loop import SweepEvent
from heedful.text.corpus import Corpus
from heedful.trace_folders import TraceFolder
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
        by, metrics = check_names(self.by, self.metrics, self.how)
        object.__setattr__(self, "by", by)
        object.__setattr__(self, "metrics", metrics)


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


def measure_trace(
    trace: Trace | TraceFolder, wanted: Wanted, *, watch: Watch | None = None, name: str = "trace"
) -> Suite:
    """Instances of a trace, drawn by the seed; of one in shards only these are in memory."""
    each = trace.distinct.nonzero().squeeze(1)
    rows = drawn_rows(len(each), wanted.texts, wanted.seed)
    copies = f" that are no copies of others ({len(trace) - len(each):,} are)" if len(each) < len(trace) else ""
    said = f"Of {len(each):,} instances{copies} {len(rows):,} were explained, drawn by seed {wanted.seed}."
    kept = each[rows]
    reading = TraceReading(trace=trace.take(kept))
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
