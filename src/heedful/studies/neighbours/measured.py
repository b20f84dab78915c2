"""What a run comes to by the tests of the neighbours, in one row: what is read again, and what its trace says."""

import pandas as pd
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.analysis.agreement import ALL, agreement_summary
from heedful.analysis.flips import flips_of_rankings
from heedful.analysis.permutation import permutation_test
from heedful.analysis.quality import by_ranking, flip_summary
from heedful.analysis.rankings import sorted_units
from heedful.analysis.statistics import paired_difference
from heedful.analysis.tokens import words_of_a_class
from heedful.analysis.violation import violation_shares
from heedful.config import RunSettings
from heedful.pipeline import Run
from heedful.probes.agreement import PAPER
from heedful.probes.hidden import conicity
from heedful.probes.reading import ModelReading
from heedful.studies.attack import KINDS, SAME, adversaries
from heedful.studies.jain2019 import agreement
from heedful.studies.measures import MINIMUM, RUN, bounds, run_row
from heedful.studies.study import Material, Trial
from heedful.text.corpus import Corpus
from heedful.text.ragged import lengths_of, segment_sum, segments_of
from heedful.traces import Trace
from heedful.training.loop import limited_threads

RANKED = ("attention", "gradient", "product", "random")
"""The rankings whose top unit is put to the violation test."""


def model_rows(material: Material) -> pd.DataFrame:
    """One row per run: what it is, its accuracy, and every test.

    objective, strength (λ; none of cross-entropy), normaliser. `conicity`: median over texts. `mass`: mean attention
    weight on words of a class, over texts that have such and others. `zeros`: mean share of units with a weight of
    zero. tau_gradient, tau_leave_one_out: mean Kendall τ with attention. `tvd`: median over texts of the median total
    variation of shuffles. erased, fewest: median fraction of the units that flips a decision, along attention and at
    least, where a part of them is enough. violated, and violated_… of other rankings: share of texts whose
    decision is more probable without the top unit, or less where its weight is negative. `jsd`: median over texts of
    the farthest attention with the same output. whole, without, without_others: accuracy on the texts that have words
    of a class and as many others: as they are, without the words of a class, and without as many others; `used` is the
    last minus the one before.
    """
    rows = material.below_each_other(_row)
    read = material.kept("reading texts again", read_again, ["words of a class", 1])
    texts = pd.DataFrame([of_texts(some, key) for key, some in read.groupby(RUN, sort=False)])
    return rows.merge(texts, on=RUN).merge(_taus(agreement(material, PAPER)), on=RUN)


def _row(trial: Trial, run: Run) -> pd.DataFrame:
    found = {**_learned(trial.settings), **of_trace(run.trace(), trial.settings.training.seed)}
    return pd.concat([run_row(run), pd.DataFrame([found])], axis=1)


def _learned(settings: RunSettings) -> dict[str, object]:
    """What it minimised and how scores become weights."""
    plain = settings.training.objective == "cross_entropy"
    return {
        "objective": settings.training.objective,
        "strength": float("nan") if plain else settings.training.objective_weight,
        "normaliser": settings.model.normaliser,
    }


def of_trace(trace: Trace, seed: int) -> dict[str, object]:
    """What erasing, shuffling, replacing attention and the violation test come to."""
    flips = by_ranking(flips_of_rankings(trace, seed=seed, rankings=("attention",)))
    fractions = flip_summary(flips, ("resting",)).set_index("ranking")["median_fraction"]
    shuffled = permutation_test(trace, seed=seed)
    others = adversaries(trace, seed=seed, kinds={SAME: KINDS[SAME]})
    against = violation_shares(trace, RANKED, seed=seed).set_index("ranking")
    ends = {"": "violated", "_low": "low", "_high": "high"}
    return {
        "tvd": float(shuffled.loc[shuffled["units"] > 1, "tvd_median"].median()),
        "erased": float(fractions["attention"]),
        "fewest": float(fractions[MINIMUM]),
        "jsd": float(others.loc[others["units"] > 1, "jsd"].median()),
        **{f"violated{end}": against.loc["attention", name] for end, name in ends.items()},
        **{f"violated_{name}": against.loc[name, "violated"] for name in RANKED[1:]},
    }


def read_again(run: Run, corpus: Corpus) -> pd.DataFrame:
    """One row per test text.

    Columns: units, class_words (how many belong to a class), mass (their attention), zeros (share of units without
    weight), conicity; right, right_without (the words of a class are deleted), right_without_others (as many others
    are, drawn by the run's seed).
    """
    with limited_threads(run.settings.training.threads):
        model, split = run.model(), corpus.test
        reader = ModelReading.of(model, split)
        marked = words_of_a_class(corpus)[split.tokens.numbers]
        others = as_many_others(marked, split.offsets, run.settings.training.seed)
        kinds = {"right": torch.zeros_like(marked), "right_without": marked, "right_without_others": others}
        rows, weights = torch.arange(len(split)), reader.trace.attention_weights
        right = {name: reader.decide(rows, gone) == split.labels for name, gone in kinds.items()}
        sums = {
            "class_words": segment_sum(marked.double(), split.offsets).long(),
            "mass": segment_sum(weights * marked, split.offsets),
            "zeros": segment_sum((weights == 0).double(), split.offsets) / lengths_of(split.offsets),
        }
        columns = {name: values.numpy() for name, values in (sums | right).items()}
        return conicity(model, split).assign(**columns)


def as_many_others(
    marked: Bool[Tensor, " units"], offsets: Int[Tensor, " bounds"], seed: int
) -> Bool[Tensor, " units"]:
    """As many units of each instance as are marked, drawn from those that are not; all of these if they are fewer."""
    chance = torch.rand(len(marked), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    order = sorted_units(chance.masked_fill(marked, -1), offsets)
    owners, places = segments_of(offsets), torch.arange(len(marked))
    wanted = places - offsets[owners] < segment_sum(marked.double(), offsets)[owners]
    chosen = torch.zeros_like(marked)
    chosen[order[wanted]] = True
    return chosen & ~marked


def of_texts(texts: pd.DataFrame, key: tuple[object, ...]) -> dict[str, object]:
    """The row of one run."""
    some, units = texts["class_words"], texts["units"]
    compared = texts[(some > 0) & (2 * some <= units)]
    gained = compared["right_without_others"] & ~compared["right_without"]
    lost = compared["right_without"] & ~compared["right_without_others"]
    used = (
        paired_difference(gained=int(gained.sum()), lost=int(lost.sum()), pairs=len(compared))
        if len(compared)
        else None
    )
    names = {"right": "whole", "right_without": "without", "right_without_others": "without_others"}
    return {
        **dict(zip(RUN, key, strict=True)),
        "conicity": texts["conicity"].median(),
        "mass": texts.loc[(some > 0) & (some < units), "mass"].mean(),
        "zeros": texts["zeros"].mean(),
        **{name: compared[column].mean() for column, name in names.items()},
        "compared": len(compared),
        **bounds("used", used),
    }


def _taus(table: pd.DataFrame) -> pd.DataFrame:
    """The mean τ of each run, a column for each measure."""
    summary = agreement_summary(table, by=(*RUN, "measure"))
    whole = summary[summary["predicted"] == ALL]
    wide = whole.pivot(index=RUN, columns="measure", values="mean")
    return wide.rename(columns=lambda name: f"tau_{name}").rename_axis(columns=None).reset_index()
