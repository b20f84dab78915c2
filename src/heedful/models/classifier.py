"""The classifier with attention, to be read beside section 3 of Sun & Lu 2020.

    e_j embedding  →  h_j = encoder(e)_j  →  a_j = score(h_j) / λ  →  α = softmax(a)  →  h = Σ α_j h_j  →  logits = W h

Other normalisers may take the place of the softmax (`heedful.attention.normalisers`).

Two classes have one output s and the logits (0, s), so that cross-entropy is the paper's log(1 + exp(−y s)).
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attention.normalisers import NORMALISERS
from heedful.config import ModelSettings
from heedful.errors import InputError
from heedful.models.frozen import FrozenTransformer, find_reader
from heedful.models.interface import Interface as Interface
from heedful.models.kernels import distinct_tokens, drop, gather_rows, pool_attention, pool_weighted
from heedful.models.layers import (
    ATTENTIONS,
    AdditiveAttention,
    AffineEncoder,
    Attention,
    Encoder,
    make_encoder,
    uniform,
)
from heedful.notebook import Grid, View, Viewed, counted, listed
from heedful.text.corpus import Split
from heedful.text.ragged import Batch, in_order, lengths_of, positions_of, segments_of
from heedful.text.vectors import Vectors
from heedful.traces import Trace

UNITS_AT_ONCE = 50_000
"""Of a trace, with a contextual encoder."""


@dataclass(frozen=True, kw_only=True)
class AttendedUnits:
    """What an attention weighs: unit j has row `index[j]` of the hidden vectors and scores, which equal tokens share.

    Weights are differentiable, and computed when they are asked for: the pooled vectors do not need them.
    """

    hidden: Float[Tensor, "rows hidden"]
    scores: Float[Tensor, " rows"]
    index: Int[Tensor, " units"]
    offsets: Int[Tensor, " bounds"]
    imposed: Float[Tensor, " units"] | None = None
    """Scores from elsewhere, which take the place of the attention's own and do not learn; weights are their softmax,
    whatever the normaliser."""
    normaliser: str = "softmax"

    @property
    def attention_scores(self) -> Float[Tensor, " units"]:
        """a_j of every unit."""
        return self.scores[self.index] if self.imposed is None else self.imposed

    @cached_property
    def attention_weights(self) -> Float[Tensor, " units"]:
        """α = softmax(a) within each document, or what another normaliser makes of a."""
        normalise = NORMALISERS["softmax" if self.imposed is not None else self.normaliser]
        return normalise(self.attention_scores, self.offsets)

    @property
    def softmax_scores(self) -> Float[Tensor, " units"]:
        """Scores whose softmax are the weights: a, or for another normaliser log α, −∞ where α is zero, so raised in
        each document that the unit with the largest score keeps it."""
        scores = self.attention_scores
        if self.imposed is not None or self.normaliser == "softmax":
            return scores
        logs = self.attention_weights.log()
        tops = (torch.segment_reduce(values, "max", offsets=self.offsets) for values in (scores, logs))
        return logs + torch.sub(*tops)[segments_of(self.offsets)]

    def pooled(self) -> Float[Tensor, "documents hidden"]:
        """h = Σ α_j h_j of each document."""
        if self.imposed is not None:
            each = torch.arange(len(self.index), device=self.index.device)
            return pool_attention(self.hidden[self.index], self.imposed, each, self.offsets)
        if self.normaliser == "softmax":
            return pool_attention(self.hidden, self.scores, self.index, self.offsets)
        return pool_weighted(self.hidden, self.attention_weights, self.index, self.offsets)


@dataclass(frozen=True, kw_only=True)
class Output:
    """What a classifier makes of a batch: its logits, and the units with the attention that led to them."""

    logits: Float[Tensor, "documents classes"]
    units: AttendedUnits


class Classifier(Viewed, nn.Module, ABC):
    """Embeddings, one or more levels of encoder and attention, and an affine readout of the last document vector."""

    hierarchical: bool
    """Whether the units of the final attention are sentences."""
    encoder: Encoder
    """The encoder below the final attention."""
    attention: Attention
    """The final attention: the one that traces show and erasure changes."""
    initial: "Classifier | None"
    """With frozen attention weights the model as it began, which goes on scoring; otherwise none."""
    history: pd.DataFrame
    """One row per epoch of its training; empty until it is trained."""
    reader: FrozenTransformer | None
    """What reads the texts before the encoder, in place of embeddings; none of most models."""

    def __init__(
        self,
        interface: Interface,
        settings: ModelSettings,
        generator: torch.Generator,
        reader: FrozenTransformer | None = None,
    ) -> None:
        super().__init__()
        self.interface = interface
        self.settings = settings
        self.reader = reader
        self.initial = None
        self.history = pd.DataFrame()
        shape = (len(interface.vocabulary), settings.embedding_size if reader is None else 0)
        self.embedding = nn.Parameter(uniform(shape, settings.embedding_range, generator))
        self._build_levels(generator)
        outputs = 1 if self.classes == 2 else self.classes
        bound = settings.readout_range or self.encoder.size**-0.5
        self.readout_weight = nn.Parameter(uniform((outputs, self.encoder.size), bound, generator))
        self.readout_bias = nn.Parameter(torch.zeros(outputs)) if settings.readout_bias else None

    @abstractmethod
    def _build_levels(self, generator: torch.Generator) -> None:
        """Make the encoders and attentions."""

    @abstractmethod
    def own_units(self, batch: Batch, generator: torch.Generator | None = None) -> AttendedUnits:
        """The units of the final attention, with the scores that it gives them. A generator draws dropout masks."""

    @property
    def contextual(self) -> bool:
        """Whether a unit's hidden vector depends on its neighbours."""
        return self.hierarchical or self.encoder.contextual

    @property
    def classes(self) -> int:
        return len(self.interface.class_names)

    @property
    def input_size(self) -> int:
        """Of the vectors of words, before any encoder."""
        return self.embedding.shape[1] if self.reader is None else self.reader.size

    def batch(self, split: Split, rows: Int[Tensor, " rows"]) -> Batch:
        """These documents of a split as this model reads them, where it computes."""
        found = split.batch(rows, sentences=self.hierarchical)
        vectors = None if self.reader is None else self.reader.vectors(split, rows)
        return replace(found, vectors=vectors).to(self.embedding.device)

    def word_vectors(self, batch: Batch) -> Float[Tensor, "units features"]:
        """What stands for each word before the encoder: its embedding, or what a transformer made of it."""
        return self.embedding[batch.tokens] if batch.vectors is None else batch.vectors.to(self.embedding)

    def forward(
        self, batch: Batch, generator: torch.Generator | None = None, *, weights: Trace | None = None
    ) -> Output:
        """Logits and attention of each document; with `weights`, the attention of another trace of these documents.

        A generator draws dropout masks, of words, sentences, documents and logits in this order; without one nothing is
        dropped.
        """
        settings = self.settings
        units = self.units(batch, generator, weights=weights)
        rate = settings.dropout if settings.document_dropout is None else settings.document_dropout
        logits = self.class_scores(drop(units.pooled(), rate, generator))
        if self.readout_bias is not None:
            logits = logits + self.bias()
        return Output(logits=drop(logits, settings.logit_dropout, generator), units=units)

    def units(
        self, batch: Batch, generator: torch.Generator | None = None, *, weights: Trace | None = None
    ) -> AttendedUnits:
        """The units of the final attention, with its own scores or those that are imposed."""
        units = self.own_units(batch, generator)
        imposed = self._imposed_scores(batch, units.offsets, weights)
        return units if imposed is None else replace(units, imposed=imposed.to(units.scores))

    def _imposed_scores(
        self, batch: Batch, offsets: Int[Tensor, " bounds"], weights: Trace | None
    ) -> Float[Tensor, " units"] | None:
        """a of another trace or of the frozen initial model, log α of uniform weights, none where they are learned."""
        kind = self.settings.attention_weights
        if weights is not None:
            return weights.attention_scores[positions_in(weights, batch.instances, offsets)].to(offsets.device)
        if kind == "given":
            raise InputError("This model was trained with attention weights from elsewhere: give those of these texts.")
        if kind == "uniform":
            return -lengths_of(offsets).double().log()[segments_of(offsets)]
        return None if self.initial is None else self.initial.own_units(batch).softmax_scores

    def unit_scores(
        self, batch: Batch, *, weights: Trace | None = None
    ) -> tuple[Float[Tensor, " units"], Float[Tensor, "units classes"]]:
        """Attention score a_j and polarity scores z_j of every unit of the final attention, without dropout.

        The softmax of the scores are the weights, whatever the normaliser. Equal tokens have equal scores, to the last
        bit, where no encoder sees their neighbours.
        """
        units = self.units(batch, weights=weights)
        return units.softmax_scores, self.class_scores(units.hidden)[units.index]

    def class_scores(self, vectors: Float[Tensor, "units hidden"]) -> Float[Tensor, "units classes"]:
        """Wᵀh per class: the logits of a document vector but for the bias, the polarity scores of a hidden vector."""
        outputs = vectors @ self.readout_weight.T
        return torch.cat([torch.zeros_like(outputs), outputs], 1) if self.classes == 2 else outputs

    def bias(self) -> Float[Tensor, " classes"]:
        """b of the affine readout; zero where it has none, as in Sun & Lu 2020."""
        if self.readout_bias is None:
            return self.readout_weight.new_zeros(self.classes)
        return F.pad(self.readout_bias, (1, 0)) if self.classes == 2 else self.readout_bias

    def alignment(self) -> Float[Tensor, " outputs"]:
        """VᵀW for each output; for the affine encoder V'ᵀW' with V' = MᵀV and W' = MᵀW (supplement D).

        For additive attention of a size of its own NᵀV takes the place of V, with N its tanh layer: the direction in
        which the score grows at h = 0.
        """
        context: Tensor = self.attention.context_vector
        readout = self.readout_weight
        if self.settings.context_size is not None and isinstance(self.attention, AdditiveAttention):
            context = self.attention.projection.T @ context
        if isinstance(self.encoder, AffineEncoder):
            projection = self.encoder.projection
            return (readout @ projection) @ (projection.T @ context)
        return readout @ context

    def _level(self, size: int, generator: torch.Generator) -> tuple[Encoder, Attention]:
        encoder = make_encoder(size, self.settings, generator)
        return encoder, ATTENTIONS[self.settings.attention](encoder.size, self.settings, generator)

    def _embed(
        self, batch: Batch, generator: torch.Generator | None, *, apart: bool
    ) -> tuple[Float[Tensor, "rows features"], Int[Tensor, " units"]]:
        """Embeddings with dropout, and which of them each unit has: one per distinct token, or one for each `apart`."""
        if batch.vectors is not None:
            each = torch.arange(len(batch.tokens), device=batch.tokens.device)
            return drop(self.word_vectors(batch), self.settings.dropout, generator), each
        distinct, index = distinct_tokens(batch.tokens, len(self.embedding))
        embedded = gather_rows(self.embedding, distinct)
        if apart or (generator is not None and self.settings.dropout_mask == "occurrence"):
            embedded, index = embedded[index], torch.arange(len(index), device=index.device)
        return drop(embedded, self.settings.dropout, generator), index

    def _attended(
        self,
        encoder: Encoder,
        attention: Attention,
        vectors: Float[Tensor, "rows features"],
        index: Int[Tensor, " units"],
        offsets: Int[Tensor, " bounds"],
    ) -> AttendedUnits:
        """One level: the vectors encoded, and how much attention each asks for."""
        hidden = encoder(vectors, offsets)
        normaliser = self.settings.normaliser
        return AttendedUnits(
            hidden=hidden, scores=attention(hidden), index=index, offsets=offsets, normaliser=normaliser
        )

    def predict(self, texts: Split | Iterable[str], *, weights: Trace | None = None) -> list[str]:
        """The name of the most probable class of each text, in their order; of equal classes the first.

        texts: a list of strings, one string (as a list of one), or a split of the corpus.
        weights: another trace of these texts, whose attention weights take the place of the model's own.
        """
        numbers = self.exact_trace(self.interface.read(texts), weights=weights).predictions.tolist()
        return [self.interface.class_names[number] for number in numbers]

    def predict_proba(
        self, texts: Split | Iterable[str], *, weights: Trace | None = None
    ) -> Float[np.ndarray, "texts classes"]:
        """The probability of each class for each text, [texts, classes], columns as in `interface.class_names`.

        The numbers are those of the trace of these texts, in float64. Arguments as of `predict`.
        """
        return self.exact_trace(self.interface.read(texts), weights=weights).probabilities.numpy()

    def exact(self) -> "Classifier":
        """The model for traces: a float64 copy of it that drops nothing; itself where it is such a copy already."""
        ready = self.embedding.dtype == torch.float64 and not self.training
        return self if ready else copy.deepcopy(self).double().eval()

    def exact_trace(
        self,
        split: Split,
        *,
        labels: Int[Tensor, " instances"] | None = None,
        units: Sequence[str] | None = None,
        weights: Trace | None = None,
    ) -> Trace:
        """What the model does on every document of a split, from a float64 copy of its parameters.

        Batch by batch with a contextual encoder; otherwise all at once, so that equal tokens tie to the last bit.
        """
        exact = self.exact()
        rows = in_order(split.lengths, UNITS_AT_ONCE if self.contextual else int(split.offsets[-1]))
        with torch.no_grad():
            batches = (exact.batch(split, some) for some in rows)
            scores = [exact.unit_scores(batch, weights=weights) for batch in batches]
        attention, polarity = (torch.cat(parts).cpu() for parts in zip(*scores, strict=True))
        return Trace.from_arrays(
            offsets=split.sentences.offsets if self.hierarchical else split.offsets,
            attention_scores=attention,
            polarity_scores=polarity,
            bias=exact.bias(),
            labels=labels,
            units=units,
            class_names=self.interface.class_names,
        )

    def __repr__(self) -> str:
        facts, settings = self._facts(), self.settings
        kind = f"attention={settings.attention}, encoder={settings.encoder}, λ={settings.score_scale:g}"
        known = f"{facts['vocabulary']}, classes {facts['classes']}"
        return f"{type(self).__name__}({kind}{self._imposed()}, {known}; {facts['training']})"

    @property
    def view(self) -> View:
        return View(title=type(self).__name__, parts=[Grid.pairs(self._facts())], drawing="training", data=self.history)

    def _facts(self) -> dict[str, str]:
        settings, scores = self.settings, list(self.history.get("dev_accuracy", ()))
        trained = f"{counted(len(scores), 'epoch')}, best dev accuracy {max(scores, default=0):.3f}"
        return {
            "attention": f"{settings.attention}, λ = {settings.score_scale:g}{self._imposed()}",
            "encoder": settings.encoder,
            "sizes": f"embedding {self.input_size}, hidden {self.encoder.size}",
            "dropout": f"{settings.dropout:g}",
            "vocabulary": counted(len(self.interface.vocabulary), "token"),
            "classes": listed(self.interface.class_names),
            "parameters": f"{sum(p.numel() for p in self.parameters() if p.requires_grad):,}",
            "training": trained if len(scores) else "no history of training",
        }

    def _imposed(self) -> str:
        kind, normaliser = self.settings.attention_weights, self.settings.normaliser
        own = "" if normaliser == "softmax" else f", {normaliser}"
        return own if kind == "learned" else f"{own}, {kind} weights"


class FlatClassifier(Classifier):
    """Attention over the words of a document: DP, DP-A, DP-L, AD of Sun & Lu 2020, FLAN of Serrano & Smith 2019."""

    hierarchical = False

    def _build_levels(self, generator: torch.Generator) -> None:
        self.encoder, self.attention = self._level(self.input_size, generator)

    def own_units(self, batch: Batch, generator: torch.Generator | None = None) -> AttendedUnits:
        embedded, index = self._embed(batch, generator, apart=self.contextual)
        return self._attended(self.encoder, self.attention, embedded, index, batch.offsets)


class HierarchicalClassifier(Classifier):
    """Attention over the words of each sentence, then over the sentences (HAN: Yang et al. 2016)."""

    hierarchical = True

    def _build_levels(self, generator: torch.Generator) -> None:
        self.word_encoder, self.word_attention = self._level(self.settings.embedding_size, generator)
        self.encoder, self.attention = self._level(self.word_encoder.size, generator)

    def own_units(self, batch: Batch, generator: torch.Generator | None = None) -> AttendedUnits:
        sentences = drop(self.word_units(batch, generator).pooled(), self.settings.sentence_dropout, generator)
        assert batch.sentences is not None
        index = torch.arange(len(sentences), device=sentences.device)
        return self._attended(self.encoder, self.attention, sentences, index, batch.sentences.offsets)

    def word_units(self, batch: Batch, generator: torch.Generator | None = None) -> AttendedUnits:
        """The words of every sentence: the units of the first attention."""
        assert batch.sentences is not None, "a hierarchical model needs batches with sentences"
        embedded, index = self._embed(batch, generator, apart=self.word_encoder.contextual)
        return self._attended(self.word_encoder, self.word_attention, embedded, index, batch.sentences.bounds)


def positions_in(
    trace: Trace, instances: Int[Tensor, " documents"], offsets: Int[Tensor, " bounds"]
) -> Int[Tensor, " units"]:
    """Where in a trace the units of some of its instances lie; refused unless they begin at these offsets."""
    rows = instances.cpu()
    if int(rows.max()) >= len(trace) or not torch.equal(trace.lengths[rows], lengths_of(offsets).cpu()):
        raise InputError(
            f"Weights are taken from a trace of the same units of the same texts; this one is {trace!r}. Trace the "
            "texts that are read here with the model whose weights are wanted."
        )
    return positions_of(trace.offsets, rows)


def make_classifier(
    interface: Interface,
    settings: ModelSettings,
    generator: torch.Generator,
    vectors: Vectors | None = None,
    reader: FrozenTransformer | None = None,
) -> Classifier:
    """The classifier that the settings describe, its parameters drawn from the generator, some embeddings given; and
    the frozen transformer that they name, where it is at hand already."""
    kind = HierarchicalClassifier if settings.structure == "hierarchical" else FlatClassifier
    model = kind(interface, settings, generator, reader or find_reader(settings))
    if vectors is not None:
        with torch.no_grad():
            model.embedding[vectors.rows] = vectors.values
    if settings.attention_weights == "frozen":
        model.initial = copy.deepcopy(model).requires_grad_(False)
    return model
