"""Sun & Lu 2020, declared: Table 2 on real data, trainings on made data, figures, and claims C1–C14."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from heedful.claims import trainings
from heedful.config import RunSettings
from heedful.studies.measures import as_it_is, measure_runs
from heedful.studies.study import SYNTHETIC, Material, Measure, Scope, Selection, Study, Table, Trial
from heedful.studies.sun2020 import runs, tables
from heedful.studies.sun2020.figures import CELLS, FIGURES, of_cell, of_recording

Make = Callable[[Sequence[runs.Recording]], pd.DataFrame]
Made = tuple[tuple[str, ...], Make]
"""A measure on made data: the sets of recordings it is made of, and how."""

RATIO_SETS = tuple(runs.ratio_name(share) for share in runs.RATIOS)
PUBLISHED: Mapping[str, Made] = {
    "synthetic_loss": (("data-1",), tables.loss_table),
    "synthetic_scores": (("data-1",), tables.score_table),
}
CLAIMED: Mapping[str, Made] = {
    "penalty": (("data-1", "penalised"), tables.penalty_table),
    "ratios": (RATIO_SETS, tables.ratio_table),
    "dot_products": (("data-1",), tables.final_pairs),
    "terms": (("data-1", "large-scale"), tables.term_table),
    "settling": (("data-1", "wide"), tables.settling_table),
    "noise": (("data-1", "data-2"), tables.noise_table),
}
DRAWN: Mapping[str, Made] = {
    "widest gap": (("data-1", "penalised"), tables.widest_gap),
    "gap courses": (("data-1", "penalised"), tables.gap_courses),
    "alignment courses": (RATIO_SETS, tables.alignment_courses),
}

TABLES, RECORDED = ("tokens", "weights", "tokens_local"), ("pairs", "scores", "tokens")
"""Tables of single runs and of recordings that figures and claims look at."""

ON_TOKENS = ("C1", "C2", "C8", "C8b")
"""Claims on the tables of one run: the first seed of DP at λ = 10."""


def _scaling(material: Material) -> pd.DataFrame:
    """The measures of every run that the claims compare."""
    rows = [measure_runs(trial.dataset, trial.model, [run]) for trial, run in material.runs]
    return pd.concat(rows, ignore_index=True)


def _of_cell(cell: runs.Cell, table: str) -> Measure:
    return Measure(make=lambda material: material.runs[0][1].table(table), trials=[cell.trial()])


def _of_recordings(settings: Sequence[RunSettings], make: Make) -> Measure:
    trials = [Trial(dataset=SYNTHETIC, model=one.model.attention, settings=one) for one in dict.fromkeys(settings)]

    def of_runs(material: Material) -> pd.DataFrame:
        return make([runs.Recording(run) for _, run in material.runs])

    return Measure(make=of_runs, trials=trials, needs_all=True)


def _first(table: str) -> Make:
    return lambda recordings: recordings[0].table(table)


def measures(selection: Selection) -> dict[str, Measure]:
    """By name: Table 2's accuracies, what claims compare, tables of single runs, and what is made of recordings."""
    planned = runs.plan(quick=selection.quick)
    cells = dict.fromkeys([*CELLS, *(runs.Cell(dataset=dataset) for dataset in selection.datasets)])
    first = {
        of_recording(name, table): _of_recordings(some[:1], _first(table))
        for name, some in planned.items()
        for table in RECORDED
    }
    several = {
        name: _of_recordings([one for part in sets for one in planned[part]], make)
        for name, (sets, make) in {**PUBLISHED, **CLAIMED, **DRAWN}.items()
    }
    return {  # quickly, Table 2 has models other than DP at λ = 10 only
        "accuracies": Measure(make=tables.accuracies, trials=runs.trials_of(selection, everywhere=not selection.quick)),
        "scaling": Measure(make=_scaling, trials=runs.trials_of(selection)),
        **{of_cell(cell, table): _of_cell(cell, table) for cell in cells for table in TABLES},
        **first,
        **several,
    }


def _scopes(selection: Selection) -> list[Scope]:
    """Made data, and each data set: the tokens of the first run of DP at λ = 10, and the runs that differ in λ."""
    made = [Scope(title=SYNTHETIC, tables={name: name for name in CLAIMED})] if selection.synthetic else []
    trained = runs.PLAIN in selection.models and runs.USUAL_SCALE in selection.scales
    seen = ("tokens", "weights") if trained else ()
    return made + [
        Scope(
            tables={"scaling": "scaling"} | {name: of_cell(runs.Cell(dataset=one), name) for name in seen}, dataset=one
        )
        for one in selection.datasets
    ]


def _number(claim: str) -> tuple[int, str]:
    """C4b after C4 and before C8."""
    return int("".join(letter for letter in claim if letter.isdigit())), claim


STUDY = Study(
    name="sun2020",
    title="Sun & Lu 2020, Understanding Attention for Text Classification",
    models=runs.MODELS,
    names=runs.NAMES,
    whole=runs.WHOLE,
    quick=runs.QUICK,
    cost=runs.cost,
    measures=measures,
    tables=(
        Table(
            name="2",
            files={"table2": ("accuracies", tables.table_2)},
            printed=tables.as_printed,
            title="Table 2",
            note=tables.interval_words,
            lead=tables.summary_words,
        ),
        Table(name="measures", files={"measures": ("scaling", as_it_is)}, comes_with=("claims",)),
        Table(
            name="synthetic",
            files={name: (name, as_it_is) for name in (*PUBLISHED, *CLAIMED)},
            comes_with=("claims",),
        ),
    ),
    figures=FIGURES,
    claims=tuple(sorted([*ON_TOKENS, *(claim.name for claim in trainings.CLAIMS)], key=_number)),
    scopes=_scopes,
    about_figures="Drawn by `heedful reproduce sun2020 --figure all`; SVG, PDF and PNG lie in the study's folder "
    "`figures`. On real data each point is a token, placed by how frequent it is; the curves beside a panel are the "
    "densities of the groups, dashes their medians. Groups are those of the paper: one-sided tokens are positive or "
    "negative (or belong to a class), evenly spread ones are neutral, all others are left out.",
    timeline=(
        of_recording("data-1", "tokens"),
        "Tokens of Data I by planted group: polarity and attention scores from the first step to the last.",
    ),
)
