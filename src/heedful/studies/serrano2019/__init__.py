"""Serrano & Smith 2019, declared: six models, flip tables beside the paper's, figures, and claims S1–S14."""

from collections.abc import Callable

import pandas as pd

from heedful.analysis.flips import flips_of_rankings, single_erasures
from heedful.claims import erasure
from heedful.config import RunSettings
from heedful.errors import HeedfulError
from heedful.papers.serrano2019 import NAMES
from heedful.pipeline import read_corpus
from heedful.studies import measures as common
from heedful.studies.corpora import table_1, table_1_as_printed
from heedful.studies.erase import changed_texts
from heedful.studies.serrano2019 import tables
from heedful.studies.serrano2019.figures import FIGURES
from heedful.studies.serrano2019.runs import MODELS, QUICK, QUICK_EPOCHS, WHOLE, cost, data_settings, trials
from heedful.studies.study import Material, Measure, Selection, Study, Table, each_and_all

_ALONG = ("figures", "claims")


def _corpora(material: Material) -> pd.DataFrame:
    """Table 1 of the data sets that can be read; what is to be said of the others is in `attrs`."""
    corpora, unread = {}, []
    for dataset in material.selection.datasets:
        try:
            corpora[dataset] = read_corpus(RunSettings(data=data_settings(dataset)))
        except HeedfulError as error:
            unread.append(f"{common.called(dataset, NAMES)} cannot be read: {error}")
    if not corpora:
        raise HeedfulError(unread[0])
    table = table_1(corpora)
    table.attrs["notices"] = unread
    return table


def measures(selection: Selection) -> dict[str, Measure]:
    """Of the data sets, of the runs (`runs`), of one unit erased (`single`) and of units erased until the decision
    flips (`flips`), and of words taken out of the text (`inputs`)."""
    made: dict[str, Callable[[Material], pd.DataFrame]] = {
        "runs": lambda material: material.below_each_other(lambda _, run: common.run_row(run)),
        "single": lambda material: material.of_traces(single_erasures),
        "flips": lambda material: material.of_traces(flips_of_rankings),
        "inputs": changed_texts,
    }
    wanted = trials(selection)
    return {"corpora": Measure(make=_corpora, without_runs=True)} | {
        name: Measure(make=one, trials=wanted) for name, one in made.items()
    }


TABLES = (
    Table(
        name="1",
        files={"table1": ("corpora", common.as_it_is)},
        printed=table_1_as_printed,
        title="Table 1",
        note="Words and sentences per text with their deviation, and how many texts; beside the paper's corpus.",
    ),
    Table(
        name="2",
        files={"table2": ("single", tables.table_2)},
        printed=tables.table_2_as_printed,
        cells=tables.attention_tops,
        title="Table 2",
        note="Per cent of test texts whose decision flips without the most attended unit, without a random other one, "
        "both or neither, with 95 % intervals. Those of gradient and product tops are Figures 12 and 13.",
    ),
    Table(
        name="3",
        files={"table3": ("runs", tables.table_3)},
        printed=tables.table_3_as_printed,
        cells=tables.named,
        title="Table 3",
        note="Test accuracy in per cent with its 95 % interval, beside the paper's on the corpus it stands for.",
    ),
    Table(
        name="flips",
        files={
            "flips": ("flips", common.summary_table),
            "fractions": ("flips", common.fractions_table),
            "wins": ("flips", common.wins_table),
            "tail": ("flips", tables.tail_table),
        },
        cells=tables.fractions_in_words,
        title="Fraction erased at the flip",
        note="Median fraction of the units erased at the first flip, and, after the stroke, the per cent of texts that "
        "lose more than half. Own leaves out, ranking by ranking, what it never flips, as the paper does; common takes "
        "the texts that all rankings flip.",
        comes_with=_ALONG,
    ),
    Table(
        name="quality",
        files={"quality": ("flips", common.quality_table)},
        cells=tables.attained_in_words,
        title="The minimum attained",
        note="Per cent of texts on which a ranking flips the decision with the fewest erasures possible, and, after "
        "the stroke, how many times the fewest it erases on average.",
        comes_with=_ALONG,
    ),
    Table(
        name="inputs",
        files={"inputs": ("inputs", common.inputs_table), "input-flips": ("inputs", common.input_summary_table)},
        cells=tables.inputs_in_words,
        title="Erasure at the input",
        note="Units deleted from the text, or masked by the unknown word, and the text read again: median fraction at "
        "the flip, after the stroke that of erased weights on the same texts, and the rank correlation of the two "
        "counts. A random draw of test texts; at most 20 looks at each. Without an encoder deleting is erasing.",
    ),
)

STUDY = Study(
    name="serrano2019",
    title="Serrano & Smith 2019, Is Attention Interpretable?",
    models=MODELS,
    names=NAMES,
    whole=WHOLE,
    quick=QUICK,
    cost=cost,
    measures=measures,
    tables=TABLES,
    figures=FIGURES,
    claims=tuple(claim.name for claim in erasure.CLAIMS),
    scopes=each_and_all("single", "flips"),
    about_figures="Drawn by `heedful reproduce serrano2019 --figure all`; SVG, PDF and PNG lie in the study's folder "
    "`figures`. A unit is a word in a FLAN and a sentence in a HAN; to erase one is to set its attention weight to "
    "zero and renormalise the others. Seeds and random orders are pooled.",
    about_quick=f"A quick look: models are trained for at most {QUICK_EPOCHS} epochs.",
)
