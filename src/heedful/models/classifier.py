"""The classifier with attention, to be read beside section 3 of Sun & Lu 2020.

    e_j embedding  →  h_j = encoder(e)_j  →  a_j = score(h_j) / λ  →  α = softmax(a)  →  h = Σ α_j h_j  →  logits = W h

Two classes have one output s and the logits (0, s), so that cross-entropy is the paper's log(1 + exp(−y s)).
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config import ModelSettings
from heedful.models.attention import ATTENTIONS, Attention, uniform
from heedful.models.encoders import ENCODERS, AffineEncoder, Encoder
from heedful.models.interface import Interface as Interface
from heedful.models.kernels import distinct_tokens, gather_rows, keep_mask, pool_attention
from heedful.notebook import counted, listed, pairs, panel
from heedful.text.corpus import Split
from heedful.text.ragged import Batch, in_order, segment_softmax
from heedful.traces import Trace

UNITS_AT_ONCE = 50_000
"""Of a trace, with a contextual encoder."""


class Classifier(nn.Module, ABC):
    """Embeddings, one or more levels of encoder and attention, and an affine readout of the last document vector."""

    encoder: Encoder
    """The encoder below the final attention."""
    attention: Attention
    """The final attention: the one that traces show and erasure changes."""
    history: pd.DataFrame
    """One row per epoch of its training; empty until it is trained."""

    def __init__(self, interface: Interface, settings: ModelSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.interface = interface
        self.settings = settings
        self.history = pd.DataFrame()
        shape = (len(interface.vocabulary), settings.embedding_size)
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
    def document_vectors(
        self, batch: Batch, generator: torch.Generator | None = None
    ) -> Float[Tensor, "documents hidden"]:
        """h = Σ α_j h_j of the final attention."""

    @abstractmethod
    def unit_scores(self, batch: Batch) -> tuple[Float[Tensor, " units"], Float[Tensor, "units classes"]]:
        """Attention score a_j and polarity scores z_j of every unit of the final attention, without dropout."""

    @property
    @abstractmethod
    def contextual(self) -> bool:
        """Whether a unit's hidden vector depends on its neighbours."""

    @property
    def hierarchical(self) -> bool:
        """Whether the units of the final attention are sentences."""
        return self.settings.structure == "hierarchical"

    @property
    def classes(self) -> int:
        return len(self.interface.class_names)

    def predict(self, texts: Split | Iterable[str]) -> list[str]:
        """The name of the most probable class of each text, in their order; of equal classes the first.

        texts: a list of strings, one string (as a list of one), or a split of the corpus.
        """
        names = self.interface.class_names
        return [names[number] for number in self.exact_trace(self.interface.read(texts)).predictions.tolist()]

    def predict_proba(self, texts: Split | Iterable[str]) -> Float[np.ndarray, "texts classes"]:
        """The probability of each class for each text, [texts, classes], columns as in `interface.class_names`.

        The numbers are those of the trace of these texts, in float64.

        texts: a list of strings, one string (as a list of one), or a split of the corpus.
        """
        return self.exact_trace(self.interface.read(texts)).probabilities.numpy()

    def exact_trace(
        self, split: Split, *, labels: Int[Tensor, " instances"] | None = None, units: Sequence[str] | None = None
    ) -> Trace:
        """What the model does on every document of a split, from a float64 copy of its parameters."""
        exact = copy.deepcopy(self).double().eval()
        attention, polarity = exact._split_scores(split)
        return Trace.from_arrays(
            offsets=split.sentences.offsets if self.hierarchical else split.offsets,
            attention_scores=attention,
            polarity_scores=polarity,
            bias=exact.bias(),
            labels=labels,
            units=units,
            class_names=self.interface.class_names,
        )

    @torch.no_grad()
    def _split_scores(self, split: Split) -> tuple[Float[Tensor, " units"], Float[Tensor, "units classes"]]:
        """Batch by batch with a contextual encoder; otherwise all at once, so that equal tokens tie to the last bit."""
        most = UNITS_AT_ONCE if self.contextual else int(split.offsets[-1])
        parts = []
        for rows in in_order(split.lengths, most):
            batch = split.batch(rows, sentences=self.hierarchical).to(self.embedding.device)
            attention, polarity = self.unit_scores(batch)
            parts.append((attention.cpu(), polarity.cpu()))
        return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])

    def __repr__(self) -> str:
        settings, interface = self.settings, self.interface
        kind = f"attention={settings.attention}, encoder={settings.encoder}, λ={settings.score_scale:g}"
        size = f"{counted(len(interface.vocabulary), 'token')}, classes {listed(interface.class_names)}"
        return f"{type(self).__name__}({kind}, {size}; {self._training()})"

    def _repr_html_(self) -> str:
        settings, interface = self.settings, self.interface
        facts = {
            "attention": f"{settings.attention}, λ = {settings.score_scale:g}",
            "encoder": settings.encoder,
            "sizes": f"embedding {settings.embedding_size}, hidden {self.encoder.size}",
            "dropout": f"{settings.dropout:g}",
            "vocabulary": counted(len(interface.vocabulary), "token"),
            "classes": listed(interface.class_names),
            "parameters": f"{sum(parameter.numel() for parameter in self.parameters()):,}",
            "training": self._training(),
        }
        return panel(type(self).__name__, pairs(facts))

    def _training(self) -> str:
        """How long it was trained, and how well it did at best."""
        if "dev_accuracy" not in self.history or self.history.empty:
            return "no history of training"
        return f"{counted(len(self.history), 'epoch')}, best dev accuracy {self.history['dev_accuracy'].max():.3f}"

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Float[Tensor, "documents classes"]:
        """Logits of each document. A generator draws dropout masks, of words, sentences, documents and logits in this
        order; without one nothing is dropped."""
        settings = self.settings
        rate = settings.dropout if settings.document_dropout is None else settings.document_dropout
        document = drop(self.document_vectors(batch, generator), rate, generator)
        logits = self.class_scores(document)
        if self.readout_bias is not None:
            logits = logits + self.bias()
        return drop(logits, settings.logit_dropout, generator)

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
        """VᵀW for each output; for the affine encoder V'ᵀW' with V' = MᵀV and W' = MᵀW (supplement D)."""
        context, readout = self.attention.context_vector, self.readout_weight
        if isinstance(self.encoder, AffineEncoder):
            projection = self.encoder.projection
            return (readout @ projection) @ (projection.T @ context)
        return readout @ context

    def _level(self, size: int, generator: torch.Generator) -> tuple[Encoder, Attention]:
        encoder = ENCODERS[self.settings.encoder](size, self.settings.hidden_size, generator)
        return encoder, ATTENTIONS[self.settings.attention](encoder.size, self.settings, generator)

    def _embed(
        self, batch: Batch, generator: torch.Generator | None, *, apart: bool
    ) -> tuple[Float[Tensor, "rows features"], Int[Tensor, " units"]]:
        """Embeddings with dropout, and which of them each unit has: one per distinct token, or one for each `apart`."""
        distinct, index = distinct_tokens(batch.tokens, len(self.embedding))
        embedded = gather_rows(self.embedding, distinct)
        if apart or (generator is not None and self.settings.dropout_mask == "occurrence"):
            embedded, index = embedded[index], torch.arange(len(index), device=index.device)
        return drop(embedded, self.settings.dropout, generator), index


class FlatClassifier(Classifier):
    """Attention over the words of a document: DP, DP-A, DP-L, AD of Sun & Lu 2020, FLAN of Serrano & Smith 2019."""

    def _build_levels(self, generator: torch.Generator) -> None:
        self.encoder, self.attention = self._level(self.settings.embedding_size, generator)

    @property
    def contextual(self) -> bool:
        return self.encoder.contextual

    def document_vectors(
        self, batch: Batch, generator: torch.Generator | None = None
    ) -> Float[Tensor, "documents hidden"]:
        embedded, index = self._embed(batch, generator, apart=self.contextual)
        hidden = self.encoder(embedded, batch.offsets)
        return pool_attention(hidden, self.attention(hidden), index, batch.offsets)

    def unit_scores(self, batch: Batch) -> tuple[Float[Tensor, " units"], Float[Tensor, "units classes"]]:
        """Equal tokens have equal scores, to the last bit, where no encoder sees their neighbours."""
        embedded, index = self._embed(batch, None, apart=self.contextual)
        hidden = self.encoder(embedded, batch.offsets)
        return self.attention(hidden)[index], self.class_scores(hidden)[index]


class HierarchicalClassifier(Classifier):
    """Attention over the words of each sentence, then over the sentences (HAN: Yang et al. 2016)."""

    def _build_levels(self, generator: torch.Generator) -> None:
        self.word_encoder, self.word_attention = self._level(self.settings.embedding_size, generator)
        self.encoder, self.attention = self._level(self.word_encoder.size, generator)

    @property
    def contextual(self) -> bool:
        return True

    def document_vectors(
        self, batch: Batch, generator: torch.Generator | None = None
    ) -> Float[Tensor, "documents hidden"]:
        hidden, offsets = self._hidden_sentences(batch, generator)
        return pool_attention(hidden, self.attention(hidden), torch.arange(len(hidden), device=hidden.device), offsets)

    def unit_scores(self, batch: Batch) -> tuple[Float[Tensor, " units"], Float[Tensor, "units classes"]]:
        hidden, _ = self._hidden_sentences(batch, None)
        return self.attention(hidden), self.class_scores(hidden)

    def word_weights(self, batch: Batch) -> Float[Tensor, " words"]:
        """The attention weight of every word within its sentence: one in each sentence, without dropout."""
        assert batch.sentences is not None, "a hierarchical model needs batches with sentences"
        embedded, index = self._embed(batch, None, apart=self.word_encoder.contextual)
        words = self.word_encoder(embedded, batch.sentences.bounds)
        return segment_softmax(self.word_attention(words)[index], batch.sentences.bounds)

    def _hidden_sentences(
        self, batch: Batch, generator: torch.Generator | None
    ) -> tuple[Float[Tensor, "sentences hidden"], Int[Tensor, " bounds"]]:
        assert batch.sentences is not None, "a hierarchical model needs batches with sentences"
        bounds = batch.sentences.bounds
        embedded, index = self._embed(batch, generator, apart=self.word_encoder.contextual)
        words = self.word_encoder(embedded, bounds)
        sentences = pool_attention(words, self.word_attention(words), index, bounds)
        kept = drop(sentences, self.settings.sentence_dropout, generator)
        return self.encoder(kept, batch.sentences.offsets), batch.sentences.offsets


def drop(
    values: Float[Tensor, "rows columns"], dropout: float, generator: torch.Generator | None
) -> Float[Tensor, "rows columns"]:
    """Dropout, with masks drawn from the generator; nothing without one."""
    if generator is None or dropout == 0:
        return values
    return values * keep_mask(values.shape, dropout, generator).to(values.dtype)


def make_classifier(interface: Interface, settings: ModelSettings, generator: torch.Generator) -> Classifier:
    """The classifier that the settings describe, its parameters drawn from the generator."""
    kind = HierarchicalClassifier if settings.structure == "hierarchical" else FlatClassifier
    return kind(interface, settings, generator)
