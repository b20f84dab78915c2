"""Does attention agree with what the output says of each unit? Gradients and removal beside it, in one long table."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from heedful.analysis.agreement import agreement
from heedful.errors import InputError, UnknownName
from heedful.models.classifier import Classifier
from heedful.probes.reading import some_documents
from heedful.probes.saliency import MEASURES, STEPS, Saliency, Watch, silent
from heedful.text.corpus import Split

PAPER = ("gradient", "leave_one_out")
"""The measures of Jain & Wallace 2019."""

COLUMNS = ["instance", "units", "measure", "predicted", "tau", "p_value", "k", "top_k", "missing"]


def agreement_table(
    model: Classifier,
    split: Split,
    *,
    measures: Sequence[str] = PAPER,
    k: int | float = 0.1,
    sample: int | None = None,
    steps: int = STEPS,
    seed: int = 0,
    watch: Watch = silent,
) -> pd.DataFrame:
    """Kendall's τ of attention with each measure, and how many of the top units are common: a row per measure and text.

    Agreement, not quality: it is what Jain & Wallace 2019 report in section 4.1, and two explanations may disagree and
    both be true to the model.

    model: a classifier, from `heedful.fit` or `heedful.load_model`.
    split: the texts, usually `corpus.test`.
    measures: what attention is compared with, by the names of `heedful.probes.saliency`.
    k: how many of the most attended units are looked up among the top of the measure; a number, or a share of the text.
    sample: so many texts, drawn by the seed; None takes all. With a contextual encoder leaving units out reads every
        text as often as it has units.
    steps: of integrated gradients, at first.
    seed: draws the sample and the measure `random`.
    watch: is told what is measured, and how many of how many are done.

    Columns: instance (its number in the split), units, measure, predicted (the name of the class), tau, p_value, k,
    top_k, missing (null, or why there is no τ); see `heedful.analysis.agreement`, whose `agreement_summary` makes a few
    numbers of it.
    """
    unknown = [measure for measure in measures if measure not in MEASURES]
    if unknown:
        raise UnknownName("measure of units", unknown[0], MEASURES)
    rows = _drawn(len(split), sample, seed)
    some = split if sample is None else some_documents(split, rows)
    saliency = Saliency.of(model, some, steps=steps, seed=seed, watch=watch)
    trace = saliency.trace
    predicted = [trace.class_names[number] for number in saliency.reading.decisions.tolist()]
    tables = [
        agreement(trace.attention_scores, saliency.numbers(measure), trace.offsets, k=k).assign(
            instance=rows, measure=measure, predicted=predicted
        )
        for measure in measures
    ]
    return pd.concat(tables, ignore_index=True)[COLUMNS]


def _drawn(count: int, sample: int | None, seed: int) -> list[int]:
    """The numbers of the texts, in their order."""
    if sample is None:
        return list(range(count))
    if not 1 <= sample <= count:
        raise InputError(f"A sample has from 1 to {count} texts, as many as there are; got {sample}.")
    return sorted(np.random.default_rng(seed).choice(count, sample, replace=False).tolist())
