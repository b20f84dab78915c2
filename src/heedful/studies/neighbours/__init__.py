"""Four neighbours of the debate on attention, one test each, declared, with claims N1–N4: deceptive attention (Pruthi
et al. 2020), diverse hidden vectors (Mohankumar et al. 2020), sparse attention (Meister et al. 2021), the violation
test (Liu et al. 2022)."""

from heedful.claims import neighbours
from heedful.papers.jain2019 import NAMES
from heedful.studies.jain2019.runs import cost
from heedful.studies.measures import as_it_is
from heedful.studies.neighbours import tables
from heedful.studies.neighbours.figures import FIGURES
from heedful.studies.neighbours.measured import model_rows
from heedful.studies.neighbours.runs import MODELS, QUICK, WHOLE, trials
from heedful.studies.study import Measure, Selection, Study, Table, each_and_all


def measures(selection: Selection) -> dict[str, Measure]:
    """One row per run (`models`)."""
    return {"models": Measure(make=model_rows, trials=trials(selection))}


TABLES = (
    Table(
        name="models",
        files={"models": ("models", tables.models_table), "runs": ("models", as_it_is)},
        cells=tables.models_in_words,
        title="Every model by every test",
        note="Means over seeds; accuracy in per cent with its 95 % interval. Conicity of hidden vectors; attention on "
        "words of a class; share of units with a weight of zero; Kendall τ of attention with gradient and "
        "leave-one-out; how far shuffled attention moves the output; fraction of the units that flips a decision when "
        "they are erased along attention, and the least that can; share of texts whose decision is more probable "
        "without the most attended unit; JSD of the farthest attention with the very same output (at most log 2 = "
        ".69). Conicity, TVD, fractions and JSD are medians over texts.",
    ),
    Table(
        name="deception",
        files={"deception": ("models", tables.deception_table)},
        cells=tables.deception_in_words,
        title="What is not attended to and used all the same",
        note="Attention on words that belong to a class in the training split; and, of the test texts that have such "
        "words and as many others, how many are rightly decided: as they are, without the words of a class, and "
        "without as many others, drawn by chance. The texts are read again, and no model is trained again.",
    ),
    Table(
        name="violation",
        files={"violation": ("models", tables.violation_table)},
        cells=tables.violation_in_words,
        title="The violation test",
        note="Share of texts in which the top unit of a ranking has the wrong sign: without its weight the decision "
        "becomes more probable though the ranking says that it speaks for it, or less though it says against. "
        "Attention and a random ranking always say for.",
    ),
)

STUDY = Study(
    name="neighbours",
    title="Neighbours of the debate, four further tests of attention as explanation",
    models=MODELS,
    names=NAMES,
    whole=WHOLE,
    quick=QUICK,
    cost=cost,
    measures=measures,
    tables=TABLES,
    figures=FIGURES,
    claims=tuple(claim.name for claim in neighbours.CLAIMS),
    scopes=each_and_all("models"),
    about_figures="Drawn by `heedful reproduce neighbours --figure all`; SVG, PDF and PNG lie in the study's folder "
    "`figures`.",
    about_quick="A quick look: one seed of five models. Claims that compare trainings need two.",
)
