"""From a model and text to a trace. Scores are computed in float64, from float64 copies of the parameters."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import InputError
from heedful.models.classifier import Classifier, HierarchicalClassifier
from heedful.text.corpus import Split
from heedful.text.ragged import segments_of
from heedful.text.tokenize import Tokens, Vocabulary
from heedful.traces import Trace


def trace(model: Classifier, texts: Split | Iterable[str], *, weights: Trace | None = None) -> Trace:
    """What the model attends to and what it uses, for every unit of every text, in their order.

        logits = b + Σ_i α_i z_i        α = softmax(a) within the text

    Units are words; those of a hierarchical model are sentences. Numbers are float64, from float64 copies of the
    parameters.

    model: a classifier, from `heedful.fit` or `heedful.load_model`.
    texts: a split of the corpus that the model was trained on, whose labels the trace keeps; or a list of strings, or
        one string, cut as the model's texts were. Strings have no labels.
    weights: another trace of these texts, whose attention scores and weights take the place of the model's own.

    >>> import heedful
    >>> texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    >>> corpus = heedful.load_corpus((texts, ["positive"] * 5 + ["negative"] * 5))
    >>> model = heedful.fit(corpus, embedding_size=8, epochs=5, learning_rate=0.5, batch_size=1)
    >>> heedful.trace(model, corpus.test).labels.tolist() == corpus.test.labels.tolist()
    True
    >>> trace = heedful.trace(model, ["a good evening", "bad"])
    >>> trace
    Trace(2 instances, 4 units, classes negative, positive; no labels)
    >>> trace.to_frame()[["instance", "position", "unit", "predicted"]]
       instance  position     unit predicted
    0         0         0        a  positive
    1         0         1     good  positive
    2         0         2  evening  positive
    3         1         0      bad  negative
    """
    split = model.interface.read(texts)
    return _trace(model, split, split.labels if split is texts else None, weights)


def trace_texts(model: Classifier, texts: Iterable[str]) -> tuple[Trace, Split]:
    """The trace of texts that have no label, and the texts as the model reads them (with labels that mean nothing)."""
    split = model.interface.read(texts)
    return _trace(model, split), split


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


def word_weights(model: Classifier, split: Split, instance: int) -> WordWeights:
    """The word attention of a hierarchical model in one document."""
    return words_within(model, split, [instance])[instance]


@torch.no_grad()
def words_within(model: Classifier, split: Split, instances: Iterable[int]) -> dict[int, WordWeights]:
    """The word attention of a hierarchical model in some documents, by their numbers."""
    if not isinstance(model, HierarchicalClassifier):
        raise InputError("Only a hierarchical model attends to words within sentences; this one is flat.")
    exact = model.exact()
    assert isinstance(exact, HierarchicalClassifier)
    return {instance: _words_within(exact, split, instance) for instance in instances}


def _words_within(exact: HierarchicalClassifier, split: Split, instance: int) -> WordWeights:
    batch = exact.batch(split, torch.tensor([instance]))
    assert batch.sentences is not None
    return WordWeights(
        spans=split.spans(instance),
        weights=exact.word_units(batch).attention_weights.cpu(),
        sentences=segments_of(batch.sentences.bounds),
    )


def trace_vocabulary(model: Classifier) -> Trace:
    """Every token of the vocabulary as a document of one unit: its scores are the paper's global scores."""
    return trace_tokens(model, torch.arange(len(model.interface.vocabulary)))


def trace_tokens(model: Classifier, numbers: Int[Tensor, " tokens"]) -> Trace:
    """Some tokens of the vocabulary, each as a document of one unit."""
    split = tokens_alone(model.interface.vocabulary, numbers)
    return _trace(model, split, weights=_alone(len(split)) if model.settings.attention_weights == "given" else None)


def tokens_alone(vocabulary: Vocabulary, numbers: Int[Tensor, " tokens"] | None = None) -> Split:
    """Some tokens of a vocabulary, or all, each as a text of its own (with labels that mean nothing)."""
    chosen = torch.arange(len(vocabulary)) if numbers is None else numbers
    words = [vocabulary.tokens[number] for number in chosen.tolist()]
    spans = torch.tensor([[0, len(word)] for word in words], dtype=torch.int32)
    tokens = Tokens(numbers=chosen, offsets=torch.arange(len(words) + 1), spans=spans)
    return Split(texts=words, labels=torch.zeros(len(words), dtype=torch.int64), tokens=tokens)


def _alone(count: int) -> Trace:
    """So many documents of one unit each, which has all of the weight, whoever gives it."""
    offsets, weights = torch.arange(count + 1), torch.ones(count)
    return Trace.from_arrays(offsets=offsets, attention_weights=weights, polarity_scores=weights, bias=[0])


def _trace(
    model: Classifier, split: Split, labels: Int[Tensor, " instances"] | None = None, weights: Trace | None = None
) -> Trace:
    units = split.sentence_texts() if model.hierarchical else split.words()
    return model.exact_trace(split, labels=labels, units=units, weights=weights)
