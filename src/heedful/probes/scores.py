"""Token scores of a live model: global (the token alone) or local (the mean over its occurrences in context)."""

from dataclasses import replace
from typing import Literal

import pandas as pd
import torch

from heedful.analysis.tokens import GroupRule, token_table, training_counts, training_effective_counts
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
    min_count: int = 1,
) -> pd.DataFrame:
    """What the training split says of every token of the vocabulary, and what the model learned of it.

        s_e = eᵀW        a_e = eᵀV/λ        γ_e = (r⁺ − r⁻) / (r⁺ + r⁻)        (Sun & Lu 2020, sections 3 and 5)

    model: a classifier, from `heedful.fit` or `heedful.load_model`.
    corpus: the one that it was trained on.
    scope: "global" scores the token alone; "local" takes the mean over its occurrences in the training split, which
        differs only where the encoder sees neighbours.
    rule: when a token belongs to a group (`heedful.analysis.tokens.GroupRule`); None is the usual rule, by rates.
    min_count: neutral tokens need that many occurrences in all; 1 takes the rule as it is.

    One row per token. Columns:
        token, count_<class>: how often it occurs in the training texts of each class.
        association, group: γ (of more than two classes the largest share) and positive, negative, neutral or none (the
            name of a class), by rates: how often a class uses the token, which the sizes of classes cannot move.
        beyond_chance: whether the token belongs to its class by more than accident: tested on every token that occurs
            more than five times, with at most 5 % of false discoveries (`heedful.analysis.tokens`). What is claimed of
            words of a class rests on these.
        count, even: how often it occurs, and whether all classes use it about alike and it occurs more than five times.
        association_by_counts, group_by_counts: the same by raw counts, the paper's definition.
        polarity: s_e, towards the second of two classes; of more classes `polarity_<class>` each.
        attention: a_e.
        planted: the true group, where the corpus was made and not found.

    >>> import heedful
    >>> texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    >>> corpus = heedful.load_corpus((texts, ["positive"] * 5 + ["negative"] * 5))
    >>> model = heedful.fit(corpus, embedding_size=8, epochs=5, learning_rate=0.5, batch_size=1)
    >>> table = heedful.token_scores(model, corpus)
    >>> list(table)[:5]
    ['token', 'count_negative', 'count_positive', 'association', 'group']
    >>> list(table)[5:]
    ['beyond_chance', 'count', 'even', 'association_by_counts', 'group_by_counts', 'polarity', 'attention']
    >>> good, bad = (table.set_index("token").loc[token] for token in ("good", "bad"))
    >>> float(good["association"]), float(bad["association"]), bool(good["polarity"] > bad["polarity"])
    (1.0, -1.0, True)
    """
    if min_count < 1:
        raise InputError(f"The minimum count of a token is 1 or more, not {min_count}.")
    if scope not in SCOPES:
        raise UnknownName("scope", scope, SCOPES)
    if scope == "local" and model.hierarchical:
        raise InputError("A hierarchical model has no local scores of words: its final attention is over sentences.")
    counts = training_counts(corpus)
    scored = trace_vocabulary(model) if scope == "global" else _local_trace(model, corpus)
    chosen = rule if min_count == 1 else replace(rule or GroupRule(), min_count=min_count)
    table = token_table(scored, counts, effective=training_effective_counts(corpus), rule=chosen)
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
