"""Jain & Wallace 2019, declared: six models, agreement, permutation and exact adversaries, claims J1–J3."""

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd

from heedful.analysis.flips import in_front
from heedful.analysis.permutation import permutation_test
from heedful.papers.jain2019 import NAMES
from heedful.pipeline import Run
from heedful.probes.agreement import agreement_table
from heedful.studies import measures as common
from heedful.studies.attack import adversaries
from heedful.studies.jain2019 import tables
from heedful.studies.jain2019.figures import FIGURES
from heedful.studies.jain2019.runs import MODELS, QUICK, WHOLE, cost, token_wise, trials
from heedful.studies.one_attention import MOST_NUMBERS, determined_words
from heedful.studies.study import Material, Measure, Selection, Study, Table, each_and_all
from heedful.text.corpus import Corpus
from heedful.training.loop import limited_threads

MEASURED = ("gradient", "leave_one_out", "full_gradient", "input_gradient", "integrated_size")
TEXTS = 500
WORDS = 3_000_000
"""So many test texts are drawn for agreement, fewer if they are long: each is read again without each of its words, and
that many words at most are read."""

LONG, INTEGRATED = 25.0, "integrated_size"
"""Integrated gradients of an LSTM take up to a thousand steps a text: where texts have more words than this in the mean
they are left out."""

DRAWN, TOLERANCES = 30, (0.01, 0.05)
"""Words whose extreme scores are looked for, and how far outputs may move: two linear programs each, of seconds."""


def agreement(material: Material, measured: Sequence[str] = MEASURED) -> pd.DataFrame:
    """Attention beside these measures, one row per run, measure and text that was drawn."""
    compare = partial(_agreement, measured)
    return material.kept("comparing attention", compare, ["agreement", *measured, TEXTS, WORDS, LONG])


def _agreement(measured: Sequence[str], run: Run, corpus: Corpus) -> pd.DataFrame:
    squares = float((corpus.test.lengths.double() ** 2).mean())
    drawn = max(1, min(TEXTS, len(corpus.test), int(WORDS / squares)))
    if float(corpus.test.lengths.double().mean()) > LONG:
        measured = [name for name in measured if name != INTEGRATED]
    with limited_threads(run.settings.training.threads):
        return agreement_table(
            run.model(), corpus.test, measures=measured, sample=drawn, seed=run.settings.training.seed
        )


def _determined(run: Run, corpus: Corpus) -> pd.DataFrame:
    model, tokens = run.model(), run.table("tokens")
    with limited_threads(run.settings.training.threads):
        parts = {
            epsilon: determined_words(model, corpus, tokens, words=DRAWN, epsilon=epsilon) for epsilon in TOLERANCES
        }
    below = pd.concat([in_front({"within": epsilon}, part) for epsilon, part in parts.items()], ignore_index=True)
    return below.rename(columns={"attention": "score"})  # of a study's table `attention` is the kind of the model's


def measures(selection: Selection) -> dict[str, Measure]:
    """Of the runs (`runs`), of attention beside other measures (`agreement`), of shuffles and of adversaries; and, not
    quickly, of how far outputs determine the scores of words (`determined`)."""
    made: dict[str, Callable[[Material], pd.DataFrame]] = {
        "runs": lambda material: material.below_each_other(lambda _, run: common.run_row(run)),
        "agreement": agreement,
        "permutation": lambda material: material.of_traces(permutation_test),
        "adversary": lambda material: material.of_traces(adversaries),
        "determined": lambda material: material.kept(
            "asking what determines attention", _determined, ["determined", DRAWN, MOST_NUMBERS, *TOLERANCES]
        ),
    }
    wanted, slow = trials(selection), [] if selection.quick else token_wise(trials(selection))
    return {name: Measure(make=make, trials=slow if name == "determined" else wanted) for name, make in made.items()}


TABLES = (
    Table(
        name="accuracy",
        files={"accuracy": ("runs", tables.accuracy_table)},
        printed=tables.accuracy_as_printed,
        title="Accuracy",
        note="Test accuracy in per cent with its 95 % interval; the epoch is chosen on dev.",
    ),
    Table(
        name="agreement",
        files={"agreement": ("agreement", tables.agreement_table)},
        printed=tables.agreement_as_printed,
        title="Agreement of attention with other measures",
        note="Kendall τ, the mean over texts and then over seeds, with its 95 % interval, and the share of texts on "
        "which it is significant at .05; beside it what the paper prints. Agreement is no quality: neither side is the "
        "truth.",
    ),
    Table(
        name="permutation",
        files={"permutation": ("permutation", tables.permutation_table)},
        printed=tables.permutation_as_printed,
        title="Shuffled attention",
        note="Median over texts of the median total variation of a hundred shuffles, by the largest weight of the "
        "text, and how many texts there are.",
    ),
    Table(
        name="adversary",
        files={"adversary": ("adversary", tables.adversary_table)},
        printed=tables.adversary_as_printed,
        title="Attention far away, the same output",
        note="Median JSD (at most log 2 = .69) of the attention farthest from the model's own, and for what share of "
        "the texts there is any.",
    ),
    Table(
        name="determined",
        files={"determined": ("determined", tables.determined_table), "words": ("determined", common.as_it_is)},
        printed=tables.determined_as_printed,
        title="How far outputs determine attention scores",
        note=f"Of {DRAWN} words drawn among those that occur ten times or more in the training texts, models without "
        "context, first seed: how many have a largest possible score less than 1 above the smallest while no output "
        "of a training text moves by more than ε, and how many could do without attention.",
    ),
)

STUDY = Study(
    name="jain2019",
    title="Jain & Wallace 2019, Attention is not Explanation",
    models=MODELS,
    names=NAMES,
    whole=WHOLE,
    quick=QUICK,
    cost=cost,
    measures=measures,
    tables=TABLES,
    figures=FIGURES,
    claims=("J1", "J2", "J3", "J3b"),
    scopes=each_and_all("agreement", "permutation", "adversary"),
    about_figures="Drawn by `heedful reproduce jain2019 --figure all`; SVG, PDF and PNG lie in the study's folder "
    "`figures`. Seeds are pooled.",
    about_quick="A quick look: one seed, and no convolutions.",
)
