"""What the papers left open, declared: attention on random, pretrained and contextual vectors, claims X1–X8."""

from functools import partial

from heedful.claims import contextual
from heedful.papers.jain2019 import NAMES
from heedful.studies.contextual import tables
from heedful.studies.contextual.figures import FIGURES
from heedful.studies.contextual.measured import flip_rows, model_rows, rare_rows
from heedful.studies.contextual.runs import MODELS, QUICK, WHOLE, cost, trials
from heedful.studies.measures import as_it_is
from heedful.studies.study import Measure, Selection, Study, Table, each_and_all


def measures(selection: Selection) -> dict[str, Measure]:
    """One row per run (`models`), per run and rare word (`rare`), per run, ranking and text (`flips`)."""
    made = {"models": model_rows, "rare": rare_rows, "flips": flip_rows}
    measure = partial(Measure, trials=trials(selection))
    return {name: measure(make=make) for name, make in made.items()}


TABLES = (
    Table(
        name="words",
        files={"words": ("models", tables.words_table), "runs": ("models", as_it_is)},
        cells=tables.words_in_words,
        title="Words of a class, by kind of vectors",
        note="Test accuracy; share of words of a class whose polarity score has the right sign (C1); and how often a "
        "word of a class has more than one of about the same frequency that all classes use alike: of attention scores "
        "in texts (C2b), of the attention score of the word alone, and of an even share of attention in test texts "
        "(C8c). Means over seeds with 95 % intervals over seeds; of one seed those over words and texts.",
    ),
    Table(
        name="rare",
        files={"rare": ("rare", tables.rare_table), "rare-words": ("rare", as_it_is)},
        cells=tables.rare_in_words,
        title="Rare words, by kind of vectors",
        note="Of words that occur one to four times in the training texts. AUC of the polarity score of the word alone "
        "by the class that uses it more in the dev and test texts, where it occurs twice or more; by the side to which "
        "its ten nearest frequent words in GloVe lean, which favours models that know GloVe; and AUC of attention, "
        "words whose neighbours lean to a side against those whose neighbours do not. .5 is chance.",
    ),
    Table(
        name="flips",
        files={"flips": ("models", tables.flips_table)},
        cells=tables.flips_in_words,
        title="When decisions flip, by kind of vectors",
        note="Median per cent of the units erased when the decision flips, along each ranking and by the exact "
        "minimum, over the test texts whose decision rests on a part of their units; intervals over seeds.",
    ),
)

STUDY = Study(
    name="contextual",
    title="Vectors from elsewhere, what the papers left open on pretrained and contextual vectors",
    models=MODELS,
    names=NAMES,
    whole=WHOLE,
    quick=QUICK,
    cost=cost,
    measures=measures,
    tables=TABLES,
    figures=FIGURES,
    claims=tuple(claim.name for claim in contextual.CLAIMS),
    scopes=each_and_all("models", "rare"),
    about_figures="Drawn by `heedful reproduce contextual --figure all`; SVG, PDF and PNG lie in the study's folder "
    "`figures`.",
    about_quick="A quick look: one seed, and no LSTM. Claims that compare trainings need two seeds.",
)
