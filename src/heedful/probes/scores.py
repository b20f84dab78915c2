"""Token scores of a live model, and where gradient flow would move them.

Scores are global (the token alone) or local (the mean over its occurrences in context). The terms of the flow and their
equations are in `heedful.analysis.dynamics`; they are computed on whole splits and in float64, from float64 copies of
the parameters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.dynamics import Moment, Parameters, flow_of, observe
from heedful.analysis.tokens import GroupRule, token_table, training_counts, training_effective_counts
from heedful.errors import InputError, UnknownName
from heedful.models.classifier import Classifier
from heedful.models.layers import AdditiveAttention, AffineEncoder
from heedful.notebook import Grid, View, counted
from heedful.shown_tables import ShownTable
from heedful.text.corpus import Corpus, Split
from heedful.text.ragged import Batch
from heedful.traces import Trace
from heedful.tracing import trace, trace_vocabulary

Columns = dict[str, Float[Tensor, " vocab"]]

SCOPES = ("global", "local")

MOST_SHOWN, MOST_POLARITIES = 12, 5
"""Tokens, and classes, that are shown at first sight."""


def token_scores(
    model: Classifier,
    corpus: Corpus,
    scope: Literal["global", "local"] = "global",
    *,
    rule: GroupRule | None = None,
    min_count: int = 1,
) -> ShownTable:
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
    return ShownTable.of(table, scores_view)


def scores_view(table: pd.DataFrame) -> View:
    """Token scores at first sight: how many tokens of each group, and the most attended ones."""
    sizes = table["group"].value_counts()
    polarities = [str(name) for name in table if str(name).startswith("polarity")]
    numbers = ["count", *polarities[:MOST_POLARITIES], "attention"]
    attended = table.nlargest(MOST_SHOWN, "attention")
    rows = [
        [token, group, f"{count:,}", *map("{:+.2f}".format, scores)]
        for token, group, count, *scores in attended[["token", "group", *numbers]].itertuples(index=False)
    ]
    return View(
        title=f"Token scores: {counted(len(table), 'token')}",
        sentences=[", ".join(f"{group} {size:,}" for group, size in sizes.items()), "Most attended:"],
        parts=[Grid(header=["token", "group", *numbers], rows=rows)],
        drawing="token_scores",
        data=table,
    )


def _local_trace(model: Classifier, corpus: Corpus) -> Trace:
    """A vocabulary trace whose scores are means over occurrences."""
    found, numbers, size = trace(model, corpus.train), corpus.train.tokens.numbers, len(corpus.vocabulary)
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


def flow_terms(model: Classifier, split: Split) -> pd.DataFrame:
    """How gradient flow on the mean loss over a split moves the polarity and attention score of every vocabulary token.

        polarity_rate = A + B + C        attention_rate = D + E + F        (Sun & Lu 2020, Eqs. 16–27)

    Rates are those of plain gradient flow for the model as it is, without dropout, penalty or weight decay, whatever it
    was trained by.

    model: a flat classifier with the encoder none or affine and without biases; others have no such terms and raise.
    split: the texts whose loss flows, usually `corpus.train` of the corpus that the model was trained on.

    One row per token of the vocabulary. Columns: token, A … F, pi, rho, polarity_rate, attention_rate. An affine
    encoder adds A_encoder, B_encoder, D_encoder, E_encoder to the sums (Eqs. 63, 64), additive attention E_projection
    and, with the suffix _approximate, the attention terms for tanh(x) ≈ x (Eq. 71). With more than two classes, what
    has a value per class (A, B, C, pi, polarity_rate) has the suffix _<class>.

    >>> import heedful
    >>> texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    >>> corpus = heedful.load_corpus((texts, ["positive"] * 5 + ["negative"] * 5))
    >>> model = heedful.fit(corpus, embedding_size=8, epochs=1)
    >>> terms = heedful.flow_terms(model, corpus.train)
    >>> list(terms)
    ['token', 'A', 'B', 'C', 'D', 'E', 'F', 'pi', 'rho', 'polarity_rate', 'attention_rate']
    >>> bool((terms[["A", "B", "C"]].sum(axis=1) - terms["polarity_rate"]).abs().max() < 1e-12)
    True
    """
    moment = observe(parameters_of(model), documents_of(split, model))
    columns = {name: values.cpu().numpy() for name, values in term_columns(moment, output_names(model)).items()}
    return pd.DataFrame({"token": list(model.interface.vocabulary.tokens), **columns})


@torch.no_grad()
def parameters_of(model: Classifier) -> Parameters:
    """The model's parameters in float64."""
    if model.contextual:
        raise InputError(
            "Flow terms need a token's hidden vector to be the same wherever the token stands; the encoder "
            f"'{model.settings.encoder}' mixes it with its neighbours, so that no token has sums π and ρ of its own. "
            "Use the encoder 'none' or 'affine'."
        )
    if model.settings.attention_bias or model.settings.readout_bias:
        raise InputError("Flow terms are those of Sun & Lu 2020, whose models have no biases; this one has.")
    if model.settings.encoder == "tanh" or model.settings.context_size or model.settings.normaliser != "softmax":
        raise InputError(
            "Flow terms are those of Sun & Lu 2020: encoder 'none' or 'affine', attention of the hidden size, softmax; "
            f"this model has the encoder '{model.settings.encoder}', the context size "
            f"{model.settings.context_size or model.encoder.size} and {model.settings.normaliser}."
        )
    if model.settings.attention_weights != "learned":
        raise InputError(
            f"Flow terms are those of learned attention; this model's is {model.settings.attention_weights}."
        )
    encoder, attention = model.encoder, model.attention
    return Parameters(
        embedding=model.embedding.detach().double(),
        context_vector=attention.context_vector.detach().double(),
        readout_weight=model.readout_weight.detach().double(),
        score_scale=float(attention.score_scale),
        encoder=encoder.projection.detach().double() if isinstance(encoder, AffineEncoder) else None,
        projection=attention.projection.detach().double() if isinstance(attention, AdditiveAttention) else None,
    )


def documents_of(split: Split, model: Classifier) -> Batch:
    """All documents of the split, on the model's device."""
    if int(split.tokens.numbers.max()) >= len(model.embedding) or int(split.labels.max()) >= model.classes:
        raise InputError(
            f"The split has tokens or classes that the model ({len(model.embedding)} tokens, {model.classes} classes) "
            "does not know. Give a split of the corpus that the model was trained on."
        )
    return split.batch(torch.arange(len(split))).to(model.embedding.device)


def output_names(model: Classifier) -> tuple[str, ...]:
    """One name per output of the readout: none for the single output of two classes."""
    return ("",) if model.classes == 2 else tuple(f"_{name}" for name in model.interface.class_names)


def term_columns(moment: Moment, suffixes: Sequence[str]) -> Columns:
    """The terms as named columns, the paper's letters first."""
    flow = flow_of(moment)
    terms: dict[str, Float[Tensor, ...]] = {**flow.polarity, **flow.attention}
    ordered = {name: terms[name] for name in sorted(terms, key=lambda name: (len(name) > 1, name))}
    sums = {"pi": moment.pi, "rho": moment.rho}
    rates = {"polarity_rate": flow.polarity_rate, "attention_rate": flow.attention_rate}
    columns = spread({**ordered, **sums, **rates}, suffixes)
    approximate = flow.approximate_attention_rate
    if approximate is not None:
        columns |= {f"{name}_approximate": values for name, values in flow.approximate.items()}
        columns["attention_rate_approximate"] = approximate
    return columns


def spread(values: Mapping[str, Float[Tensor, "..."]], suffixes: Sequence[str]) -> Columns:
    """A column for each array with a number per token, a column with suffix for each output of the others."""
    columns: Columns = {}
    for name, array in values.items():
        if array.ndim == 1:
            columns[name] = array
        else:
            columns |= {f"{name}{suffix}": array[:, number] for number, suffix in enumerate(suffixes)}
    return columns
