"""From a model and text to a trace. Scores are computed in float64, from float64 copies of the parameters."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import InputError
from heedful.models.classifier import Classifier, HierarchicalClassifier
from heedful.text.corpus import Split
from heedful.text.ragged import in_order, lengths_of, segments_of
from heedful.text.tokenize import Tokens
from heedful.traces import Trace

UNITS_AT_ONCE = 50_000


def trace(model: Classifier, split: Split) -> Trace:
    """What the model attends to and what it uses, for every unit of every document of a split, in its order.

    Units are words; those of a hierarchical model are sentences.
    """
    return _trace(model, split, split.labels)


def trace_texts(model: Classifier, texts: Sequence[str]) -> tuple[Trace, Split]:
    """The trace of texts that have no label, and the texts as the model reads them (with labels that mean nothing)."""
    tokens = model.interface.tokenizer.encode(texts, model.interface.vocabulary)
    if not bool((lengths_of(tokens.offsets) > 0).all()):
        raise InputError("A text needs at least one word; this one has none.")
    split = _unlabelled(texts, tokens)
    return _trace(model, split, None), split


def unit_spans(model: Classifier, split: Split, instance: int) -> Int[Tensor, "units 2"]:
    """Where the units of one document stand in its text: its words, or its sentences for a hierarchical model."""
    return split.sentence_spans(instance) if model.hierarchical else split.spans(instance)


@dataclass(frozen=True, kw_only=True)
class WordWeights:
    """What a hierarchical model attends to inside the sentences of one document.

    The weights of a sentence sum to one. The logits are not affine in them: no polarity, no exact flips.
    """

    spans: Int[Tensor, "words 2"]
    weights: Float[Tensor, " words"]
    sentences: Int[Tensor, " words"]
    """The number of each word's sentence."""

    @property
    def relative(self) -> Float[Tensor, " words"]:
        """Each weight by the largest of its sentence."""
        most = torch.segment_reduce(self.weights, "max", lengths=torch.bincount(self.sentences))
        return self.weights / most[self.sentences]


@torch.no_grad()
def word_weights(model: Classifier, split: Split, instance: int) -> WordWeights:
    """The word attention of a hierarchical model in one document."""
    if not isinstance(model, HierarchicalClassifier):
        raise InputError("Only a hierarchical model attends to words within sentences; this one is flat.")
    exact = copy.deepcopy(model).double().eval()
    batch = split.batch(torch.tensor([instance]), sentences=True)
    assert batch.sentences is not None
    return WordWeights(
        spans=split.spans(instance),
        weights=exact.word_weights(batch.to(model.embedding.device)).cpu(),
        sentences=segments_of(batch.sentences.bounds),
    )


def trace_vocabulary(model: Classifier) -> Trace:
    """Every token of the vocabulary as a document of one unit: its scores are the paper's global scores."""
    return trace_tokens(model, torch.arange(len(model.interface.vocabulary)))


def trace_tokens(model: Classifier, numbers: Int[Tensor, " tokens"]) -> Trace:
    """Some tokens of the vocabulary, each as a document of one unit."""
    words = [model.interface.vocabulary.tokens[number] for number in numbers.tolist()]
    tokens = Tokens(
        numbers=numbers,
        offsets=torch.arange(len(words) + 1),
        spans=torch.tensor([[0, len(word)] for word in words], dtype=torch.int32),
    )
    return _trace(model, _unlabelled(words, tokens), None)


def _unlabelled(texts: Sequence[str], tokens: Tokens) -> Split:
    return Split(texts=texts, labels=torch.zeros(len(texts), dtype=torch.int64), tokens=tokens)


def _trace(model: Classifier, split: Split, labels: Int[Tensor, " instances"] | None) -> Trace:
    exact = copy.deepcopy(model).double().eval()
    attention, polarity = _score(exact, split)
    return Trace.from_arrays(
        offsets=split.sentences.offsets if model.hierarchical else split.offsets,
        attention_scores=attention,
        polarity_scores=polarity,
        bias=exact.bias(),
        labels=labels,
        units=split.sentence_texts() if model.hierarchical else split.words(),
        class_names=model.interface.class_names,
    )


@torch.no_grad()
def _score(model: Classifier, split: Split) -> tuple[Float[Tensor, " units"], Float[Tensor, "units classes"]]:
    """Batch by batch with a contextual encoder; otherwise all at once, so that equal tokens tie to the last bit."""
    most = UNITS_AT_ONCE if model.contextual else int(split.offsets[-1])
    parts = []
    for rows in in_order(split.lengths, most):
        batch = split.batch(rows, sentences=model.hierarchical).to(model.embedding.device)
        attention, polarity = model.unit_scores(batch)
        parts.append((attention.cpu(), polarity.cpu()))
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
