"""From a model and text to a trace. Scores are computed in float64, from float64 copies of the parameters."""

import copy
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import InputError
from heedful.models.classifier import FlatClassifier
from heedful.models.kernels import distinct_tokens
from heedful.text.corpus import Split
from heedful.text.ragged import in_order, lengths_of, offsets_of, positions_of
from heedful.text.tokenize import Tokens
from heedful.traces import Trace

UNITS_AT_ONCE = 50_000


def trace(model: FlatClassifier, split: Split) -> Trace:
    """What the model attends to and what it uses, for every token of every document of a split, in its order."""
    units = [word for row in range(len(split)) for word in split.surface(row)]
    return _trace(model, split.tokens, units, split.labels)


def trace_texts(model: FlatClassifier, texts: Sequence[str]) -> tuple[Trace, Tokens]:
    """The trace of texts that have no label, and where their tokens stand in them."""
    interface = model.interface
    tokens = interface.tokenizer.encode(texts, interface.vocabulary)
    if not bool((lengths_of(tokens.offsets) > 0).all()):
        raise InputError("A text needs at least one word; this one has none.")
    owner = torch.repeat_interleave(torch.arange(len(texts)), lengths_of(tokens.offsets)).tolist()
    units = [texts[text][start:end] for text, (start, end) in zip(owner, tokens.spans.tolist(), strict=True)]
    return _trace(model, tokens, units, None), tokens


def trace_vocabulary(model: FlatClassifier) -> Trace:
    """Every token of the vocabulary as a document of one unit: its scores are the paper's global scores."""
    size = len(model.interface.vocabulary)
    tokens = Tokens(
        numbers=torch.arange(size), offsets=torch.arange(size + 1), spans=torch.zeros(size, 2, dtype=torch.int32)
    )
    return _trace(model, tokens, model.interface.vocabulary.tokens, None)


@torch.no_grad()
def _trace(
    model: FlatClassifier, tokens: Tokens, units: Sequence[str], labels: Int[Tensor, " instances"] | None
) -> Trace:
    exact = copy.deepcopy(model).double().eval()
    score = _score_in_context if model.contextual else _score_once_per_token
    attention, polarity = score(exact, tokens)
    return Trace.from_arrays(
        offsets=tokens.offsets,
        attention_scores=attention,
        polarity_scores=polarity,
        bias=exact.bias().cpu(),
        labels=labels,
        units=units,
        class_names=model.interface.class_names,
    )


def _score_once_per_token(
    model: FlatClassifier, tokens: Tokens
) -> tuple[Float[Tensor, " units"], Float[Tensor, "units classes"]]:
    """Equal tokens have equal scores, to the last bit."""
    distinct, index = distinct_tokens(tokens.numbers, len(model.embedding))
    offsets = torch.arange(len(distinct) + 1)
    attention, polarity = model.unit_scores(distinct.to(model.embedding.device), offsets)
    return attention.cpu()[index], polarity.cpu()[index]


def _score_in_context(
    model: FlatClassifier, tokens: Tokens
) -> tuple[Float[Tensor, " units"], Float[Tensor, "units classes"]]:
    lengths = lengths_of(tokens.offsets)
    parts = []
    for rows in in_order(lengths, UNITS_AT_ONCE):
        numbers = tokens.numbers[positions_of(tokens.offsets, rows)].to(model.embedding.device)
        attention, polarity = model.unit_scores(numbers, offsets_of(lengths[rows]).to(numbers.device))
        parts.append((attention.cpu(), polarity.cpu()))
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
