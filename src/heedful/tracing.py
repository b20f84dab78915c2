"""From a model and text to a trace. Scores are computed in float64, from float64 copies of the parameters."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import overload

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import InputError
from heedful.models.classifier import UNITS_AT_ONCE, Classifier, HierarchicalClassifier
from heedful.text.corpus import Split
from heedful.text.ragged import Batch, in_order, segments_of
from heedful.text.tokenize import Tokens, Vocabulary
from heedful.trace_folders import SHARD, SHARD_SIZE, Plan, TraceFolder, checked_size, even_bounds
from heedful.traces import Trace

Watch = Callable[[int, int], None]
"""Told how many of how many shards are done."""


@overload
def trace(model: Classifier, texts: Split | Iterable[str], *, weights: Trace | None = None) -> Trace: ...
@overload
def trace(
    model: Classifier,
    texts: Split | Iterable[str],
    *,
    out: Path | str,
    shard_size: int = SHARD_SIZE,
    watch: Watch | None = None,
) -> TraceFolder: ...
def trace(
    model: Classifier,
    texts: Split | Iterable[str],
    *,
    weights: Trace | None = None,
    out: Path | str | None = None,
    shard_size: int = SHARD_SIZE,
    watch: Watch | None = None,
) -> Trace | TraceFolder:
    """What the model attends to and what it uses, for every unit of every text, in their order.

        logits = b + Σ_i α_i z_i        α = softmax(a) within the text

    Units are words; those of a hierarchical model are sentences. Numbers are float64, from float64 copies of the
    parameters.

    model: a classifier, from `heedful.fit` or `heedful.load_model`.
    texts: a split of the corpus that the model was trained on, whose labels the trace keeps; or a list of strings, or
        one string, cut as the model's texts were. Strings have no labels.
    weights: another trace of these texts, whose attention scores and weights take the place of the model's own.
    out: a folder that the trace is written to in shards, for more texts than memory holds; returned is a
        `heedful.TraceFolder`. A folder that was begun is gone on with. Without it the trace is in memory.
    shard_size: so many texts in each shard; with an encoder that sees neighbours rather more, whole batches of them.
    watch: told after each shard how many are done, and of how many.

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
    labelled = split is texts
    if out is None:
        return _trace(model, split, split.labels if labelled else None, weights)
    if weights is not None:
        raise InputError("Weights of another trace are given to a trace in memory: leave `out` or `weights` away.")
    shards = Shards(model=model, split=split, folder=Path(out), shard_size=shard_size, labelled=labelled)
    missing = shards.begin()
    for done, number in enumerate(missing):
        shards.write(number)
        if watch is not None:
            watch(done + 1, len(missing))
    return shards.plan.finish(shards.folder)


@dataclass(frozen=True, kw_only=True)
class Shards:
    """The trace of a model on a split as shards in a folder. Each can be written by another process.

    The numbers are those of the trace in memory, to the last bit: scores of a model that sees no neighbours are
    computed once for all tokens of the split, and other models read the split in the same batches.
    """

    model: Classifier = field(repr=False)
    split: Split
    folder: Path
    shard_size: int = SHARD_SIZE
    labelled: bool = True

    @cached_property
    def plan(self) -> Plan:
        return Plan(identity=self.identity, bounds=self._bounds)

    @cached_property
    def _bounds(self) -> tuple[int, ...]:
        size = checked_size(self.shard_size)
        if not self.model.contextual:
            return even_bounds(len(self.split), size)
        bounds = [0]
        for rows in in_order(self.split.lengths, UNITS_AT_ONCE):
            if (end := int(rows[-1]) + 1) - bounds[-1] >= size or end == len(self.split):
                bounds.append(end)
        return tuple(bounds)

    @cached_property
    def identity(self) -> str:
        """Of what is traced: the parameters, the texts and where their tokens stand."""
        found = hashlib.sha256(f"{self.model.settings} {self.labelled}".encode())
        for name, values in sorted(self.model.state_dict().items()):
            found.update(name.encode() + values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return f"{found.hexdigest()[:24]}-{self.split.fingerprint[:24]}"

    def begin(self) -> list[int]:
        """The numbers of the shards that are to be written."""
        self.plan.begin(self.folder)
        return self.plan.missing(self.folder)

    def write(self, number: int) -> None:
        start, stop = self._bounds[number : number + 2]
        self._of(start, stop).save(self.folder / SHARD.format(number))

    def _of(self, start: int, stop: int) -> Trace:
        if self.model.settings.attention_weights == "given":
            raise InputError("This model was trained with attention weights from elsewhere: trace it in memory.")
        if self.model.contextual:
            part = self.split.part(start, stop)
            return _trace(self._exact, part, part.labels if self.labelled else None)
        if self._tokens is None:
            return self._whole.take(torch.arange(start, stop))
        part, (places, scores, polarity) = self.split.part(start, stop), self._tokens
        index = places[part.tokens.numbers]
        return Trace.from_arrays(
            offsets=part.offsets,
            attention_scores=scores[index],
            polarity_scores=polarity[index],
            bias=self._exact.bias().detach(),
            labels=part.labels if self.labelled else None,
            units=part.words(),
            class_names=self.model.interface.class_names,
        )

    @cached_property
    def _exact(self) -> Classifier:
        return self.model.exact()

    @cached_property
    def _whole(self) -> Trace:
        """Of models whose weights are not the softmax of scores of tokens."""
        return _trace(self._exact, self.split, self.split.labels if self.labelled else None)

    @cached_property
    def _tokens(
        self,
    ) -> tuple[Int[Tensor, " vocab"], Float[Tensor, " distinct"], Float[Tensor, "distinct classes"]] | None:
        """Where each token of the split is among its distinct ones, and what their scores are; none where scores do not
        say all."""
        settings = self.model.settings
        if settings.attention_weights != "learned" or settings.normaliser != "softmax":
            return None
        present = torch.zeros(len(self.model.interface.vocabulary), dtype=torch.bool)
        for numbers in self.split.tokens.numbers.split(2**22):
            present[numbers] = True
        distinct = present.nonzero().squeeze(1)
        one = torch.zeros(1, dtype=torch.int64)
        batch = Batch(tokens=distinct, offsets=torch.tensor([0, len(distinct)]), labels=one, instances=one)
        with torch.no_grad():
            scores, polarity = self._exact.unit_scores(batch.to(self._exact.embedding.device))
        return present.cumsum(0) - 1, scores.cpu(), polarity.cpu()


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
