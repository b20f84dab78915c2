"""Token scores of a live model: global (the token alone) or local (the mean over its occurrences in context)."""

from typing import Literal

import pandas as pd
import torch

from heedful.analysis.tokens import GroupRule, token_table, training_counts
from heedful.errors import InputError, UnknownName
from heedful.models.classifier import Classifier
from heedful.text.corpus import Corpus
from heedful.traces import Trace
from heedful.tracing import trace, trace_vocabulary

SCOPES = ("global", "local")


def token_scores(
    model: Classifier,
    corpus: Corpus,
    scope: Literal["global", "local"] = "global",
    *,
    rule: GroupRule | None = None,
) -> pd.DataFrame:
    """One row per vocabulary token: counts per class, association, group, polarity, attention.

    Counts come from the training split. Global scores are those of the token alone, s_e = eᵀW and a_e = eᵀV/λ; local
    scores are means over the token's occurrences in the training split, and differ only with a contextual encoder.
    A corpus with planted groups adds the column `planted`.
    """
    if scope not in SCOPES:
        raise UnknownName("scope", scope, SCOPES)
    if scope == "local" and model.hierarchical:
        raise InputError("A hierarchical model has no local scores of words: its final attention is over sentences.")
    counts = training_counts(corpus)
    scored = trace_vocabulary(model) if scope == "global" else _local_trace(model, corpus)
    table = token_table(scored, counts, rule=rule)
    if corpus.planted is not None:
        table["planted"] = [corpus.planted.get(token, "none") for token in table["token"]]
    if scope == "local":  # the unknown token never occurs in training and has no mean
        seen = counts.sum(1).numpy() > 0
        scores = [column for column in table if column == "attention" or str(column).startswith("polarity")]
        table.loc[~seen, scores] = float("nan")
    return table


def _local_trace(model: Classifier, corpus: Corpus) -> Trace:
    """A vocabulary trace whose scores are means over occurrences."""
    found = trace(model, corpus.train)
    numbers = corpus.train.tokens.numbers
    size = len(corpus.vocabulary)
    counts = torch.bincount(numbers, minlength=size).clamp(min=1).double()
    attention = torch.zeros(size, dtype=torch.float64).index_add_(0, numbers, found.attention_scores) / counts
    polarity = torch.zeros(size, corpus.classes, dtype=torch.float64).index_add_(0, numbers, found.polarity_scores)
    return Trace.from_arrays(
        offsets=torch.arange(size + 1),
        attention_scores=attention,
        polarity_scores=polarity / counts[:, None],
        bias=found.bias,
        units=corpus.vocabulary.tokens,
        class_names=corpus.class_names,
    )
