"""Serrano & Smith 2019, declared: six models, flip tables beside the paper's, figures, and claims S1–S14."""

from collections.abc import Callable

import pandas as pd

from heedful.analysis.flips import flips_of_rankings, single_erasures
from heedful.claims import erasure
from heedful.config import RunSettings
from heedful.errors import HeedfulError
from heedful.pipeline import read_corpus
from heedful.report.page import PageTable
from heedful.studies.corpora import table_1, table_1_as_printed
from heedful.studies.measures import run_row
from heedful.studies.serrano2019 import tables
from heedful.studies.serrano2019.figures import FIGURES
from heedful.studies.serrano2019.inputs import input_flips_of
from heedful.studies.serrano2019.runs import MODELS, QUICK, QUICK_EPOCHS, WHOLE, called, cost, data_settings, trials
from heedful.studies.study import Frames, Material, Measure, Scope, Selection, Study, Table
from heedful.sweep.loop import Measuring

_NOTES = {
    "table1": "Words and sentences per text with their deviation, and how many texts; beside the paper's corpus.",
    "table2": "Per cent of test texts whose decision flips without the most attended unit, without a random other one, "
    "both or neither, with 95 % intervals. Those of gradient and product tops are Figures 12 and 13.",
    "table3": "Test accuracy in per cent with its 95 % interval, beside the paper's on the corpus it stands for.",
    "flips": "Median fraction of the units erased at the first flip, and, after the stroke, the per cent of texts that "
    "lose more than half. Own leaves out, ranking by ranking, what it never flips, as the paper does; common takes the "
    "texts that all rankings flip.",
    "quality": "Per cent of texts on which a ranking flips the decision with the fewest erasures possible, and, after "
    "the stroke, how many times the fewest it erases on average.",
    "inputs": "Units deleted from the text, or masked by the unknown word, and the text read again: median fraction at "
    "the flip, after the stroke that of erased weights on the same texts, and the rank correlation of the two counts. "
    "A random draw of test texts; at most 20 looks at each. Without an encoder deleting is erasing.",
}
_ALONG = ("figures", "claims")


def _corpora(material: Material) -> pd.DataFrame:
    """Table 1 of the data sets that can be read; what is to be said of the others is in `attrs`."""
    corpora, unread = {}, []
    for dataset in material.selection.datasets:
        try:
            corpora[dataset] = read_corpus(RunSettings(data=data_settings(dataset)))
        except HeedfulError as error:
            unread.append(f"{called(dataset)} cannot be read: {error}")
    if not corpora:
        raise HeedfulError(unread[0])
    table = table_1(corpora)
    table.attrs["notices"] = unread
    return table


def _of_traces(measure: Callable[..., pd.DataFrame]) -> Callable[[Material], pd.DataFrame]:
    """A table of the trace of every run, below each other; the run's seed draws what is drawn."""

    def make(material: Material) -> pd.DataFrame:
        return material.below_each_other(lambda trial, run: measure(run.trace(), seed=trial.settings.training.seed))

    return make


def _inputs(material: Material) -> pd.DataFrame:
    """Both notions of erasure on some test texts of every run."""

    def tell(done: int, total: int) -> None:
        if material.watch is not None:
            material.watch(Measuring(what="reading changed texts", done=done, total=total))

    return input_flips_of([(trial.columns, run) for trial, run in material.runs], watch=tell)


def measures(selection: Selection) -> dict[str, Measure]:
    """Of the data sets, of the runs (`runs`), of one unit erased (`single`) and of units erased until the decision
    flips (`flips`), and of words taken out of the text (`inputs`)."""
    wanted = trials(selection)
    return {
        "corpora": Measure(make=_corpora),
        "runs": Measure(make=lambda material: material.below_each_other(lambda _, run: run_row(run)), trials=wanted),
        "single": Measure(make=_of_traces(single_erasures), trials=wanted),
        "flips": Measure(make=_of_traces(flips_of_rankings), trials=wanted),
        "inputs": Measure(make=_inputs, trials=wanted),
    }


def _scopes(selection: Selection) -> list[Scope]:
    """Each data set, and all of them together."""
    judged = {"single": "single", "flips": "flips"}
    alone = [Scope(title=called(one), tables=judged, dataset=one) for one in selection.datasets]
    return [*alone, *([Scope(title="all data sets", tables=judged)] if len(alone) > 1 else [])]


def _shown(name: str, title: str, cells: Callable[[Frames], pd.DataFrame]) -> Callable[[Frames], PageTable]:
    """The table of that name with cells in words."""

    def show(files: Frames) -> PageTable:
        return PageTable(name=name, title=title, cells=cells(files), data=files[name], note=_NOTES[name])

    return show


def _printed(name: str, printed: Callable[[pd.DataFrame], pd.DataFrame], table: pd.DataFrame) -> Frames:
    """A table and its arrangement in the paper."""
    return {name: table, f"{name}-as-printed": printed(table)}


def _attention_tops(files: Frames) -> pd.DataFrame:
    printed = files["table2-as-printed"]
    return tables.named(printed[printed["ranking"] == "attention"].drop(columns="ranking"))


STUDY = Study(
    name="serrano2019",
    title="Serrano & Smith 2019, Is Attention Interpretable?",
    models=MODELS,
    whole=WHOLE,
    quick=QUICK,
    cost=cost,
    measures=measures,
    tables=(
        Table(
            name="1",
            needs=("corpora",),
            make=lambda frames: _printed("table1", table_1_as_printed, frames["corpora"]),
            show=_shown("table1", "Table 1", lambda files: files["table1-as-printed"]),
        ),
        Table(
            name="2",
            needs=("single",),
            make=lambda frames: _printed("table2", tables.table_2_as_printed, tables.table_2(frames["single"])),
            show=_shown("table2", "Table 2", _attention_tops),
        ),
        Table(
            name="3",
            needs=("runs",),
            make=lambda frames: _printed("table3", tables.table_3_as_printed, tables.table_3(frames["runs"])),
            show=_shown("table3", "Table 3", lambda files: tables.named(files["table3-as-printed"])),
        ),
        Table(
            name="flips",
            needs=("flips",),
            make=lambda frames: {
                "flips": tables.summary_table(frames["flips"]),
                "fractions": tables.fractions_table(frames["flips"]),
                "wins": tables.wins_table(frames["flips"]),
                "tail": tables.tail_table(frames["flips"]),
            },
            show=_shown(
                "flips", "Fraction erased at the flip", lambda files: tables.fractions_in_words(files["flips"])
            ),
            comes_with=_ALONG,
        ),
        Table(
            name="quality",
            needs=("flips",),
            make=lambda frames: {"quality": tables.quality_table(frames["flips"])},
            show=_shown("quality", "The minimum attained", lambda files: tables.attained_in_words(files["quality"])),
            comes_with=_ALONG,
        ),
        Table(
            name="inputs",
            needs=("inputs",),
            make=lambda frames: {
                "inputs": tables.inputs_table(frames["inputs"]),
                "input-flips": tables.input_summary_table(frames["inputs"]),
            },
            show=_shown("inputs", "Erasure at the input", lambda files: tables.inputs_in_words(files["inputs"])),
        ),
    ),
    figures=FIGURES,
    claims=tuple(claim.name for claim in erasure.CLAIMS),
    scopes=_scopes,
    about_figures="Drawn by `heedful reproduce serrano2019 --figure all`; SVG, PDF and PNG lie in the study's folder "
    "`figures`. A unit is a word in a FLAN and a sentence in a HAN; to erase one is to set its attention weight to "
    "zero and renormalise the others. Seeds and random orders are pooled.",
    about_quick=f"A quick look: models are trained for at most {QUICK_EPOCHS} epochs.",
)
