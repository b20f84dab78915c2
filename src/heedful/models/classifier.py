"""The classifier with attention, to be read beside section 3 of Sun & Lu 2020.

    e_j embedding  →  h_j = encoder(e)_j  →  a_j = score(h_j) / λ  →  α = softmax(a)  →  h = Σ α_j h_j  →  logits = W h

Two classes have one output s and the logits (0, s), so that cross-entropy is the paper's log(1 + exp(−y s)).
"""

from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config import ModelSettings
from heedful.models.attention import ATTENTIONS, uniform
from heedful.models.encoders import ENCODERS, AffineEncoder
from heedful.models.kernels import distinct_tokens, gather_rows, keep_mask, pool_attention
from heedful.text.ragged import Batch
from heedful.text.tokenize import Tokenizer
from heedful.text.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class Interface:
    """What the numbers of a classifier mean: how text becomes numbers, and what its outputs are called."""

    vocabulary: Vocabulary
    tokenizer: Tokenizer
    class_names: tuple[str, ...]


class FlatClassifier(nn.Module):
    """Words with attention, directly to a document vector and a linear readout without bias."""

    history: pd.DataFrame
    """One row per epoch of its training; empty until it is trained."""

    def __init__(self, interface: Interface, settings: ModelSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.interface = interface
        self.settings = settings
        self.history = pd.DataFrame()
        size = settings.embedding_size
        self.embedding = nn.Parameter(uniform((len(interface.vocabulary), size), settings.embedding_range, generator))
        self.encoder = ENCODERS[settings.encoder](size, settings.hidden_size, generator)
        self.attention = ATTENTIONS[settings.attention](
            self.encoder.size,
            score_scale=settings.score_scale,
            context_deviation=settings.context_deviation,
            generator=generator,
        )
        outputs = 1 if self.classes == 2 else self.classes
        bound = settings.readout_range or self.encoder.size**-0.5
        self.readout_weight = nn.Parameter(uniform((outputs, self.encoder.size), bound, generator))

    @property
    def classes(self) -> int:
        return len(self.interface.class_names)

    @property
    def contextual(self) -> bool:
        """Whether a token's hidden vector depends on its neighbours."""
        return self.encoder.contextual

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Float[Tensor, "documents classes"]:
        """Logits of each document. A generator draws dropout masks; without one nothing is dropped."""
        distinct, index = distinct_tokens(batch.tokens, len(self.embedding))
        embedded = gather_rows(self.embedding, distinct)
        if self.contextual or (generator is not None and self.settings.dropout_mask == "occurrence"):
            embedded, index = embedded[index], torch.arange(len(index), device=index.device)
        hidden = self.encoder(self._drop(embedded, generator), batch.offsets)
        document = pool_attention(hidden, self.attention(hidden), index, batch.offsets)
        return self.class_scores(self._drop(document, generator))

    def class_scores(self, vectors: Float[Tensor, "units hidden"]) -> Float[Tensor, "units classes"]:
        """Wᵀh per class: the logits of a document vector, the polarity scores of a token's hidden vector."""
        outputs = vectors @ self.readout_weight.T
        return torch.cat([torch.zeros_like(outputs), outputs], 1) if self.classes == 2 else outputs

    def unit_scores(
        self, tokens: Int[Tensor, " units"], offsets: Int[Tensor, " documents+1"]
    ) -> tuple[Float[Tensor, " units"], Float[Tensor, "units classes"]]:
        """Attention score a_j and polarity scores z_j of every unit of some documents, without dropout."""
        hidden = self.encoder(self.embedding[tokens], offsets)
        return self.attention(hidden), self.class_scores(hidden)

    def bias(self) -> Float[Tensor, " classes"]:
        """b of the affine readout; the paper's has none."""
        return self.readout_weight.new_zeros(self.classes)

    def alignment(self) -> Float[Tensor, " outputs"]:
        """VᵀW for each output; for the affine encoder V'ᵀW' with V' = MᵀV and W' = MᵀW (supplement D)."""
        context, readout = self.attention.context_vector, self.readout_weight
        if isinstance(self.encoder, AffineEncoder):
            projection = self.encoder.projection
            return (readout @ projection) @ (projection.T @ context)
        return readout @ context

    def _drop(self, values: Float[Tensor, "..."], generator: torch.Generator | None) -> Float[Tensor, "..."]:
        if generator is None or self.settings.dropout == 0:
            return values
        return values * keep_mask(values.shape, self.settings.dropout, generator).to(values.dtype)
