"""Which trainings run as compiled steps, and how a training's state goes into them and comes back."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from heedful.config import TrainingSettings
from heedful.models.classifier import FlatClassifier
from heedful.models.kernels import COMPILED_TYPES
from heedful.models.layers import AdditiveAttention, AffineEncoder
from heedful.text.corpus import Split
from heedful.text.ragged import Batch
from heedful.traces import Trace
from heedful.training.closed_form import Rules, Texts, Values, make_desk, run_steps
from heedful.training.masks import Dropout, fresh_state
from heedful.training.objectives import Objective, cross_entropy
from heedful.training.optimizers import RowAdagrad, needs_dense
from heedful.training.state import TrainingState

STRETCH = 1000
"""So many steps at once at most: a training that is to stop, stops within seconds."""


Step = tuple[Int[Tensor, " rows"], float, Batch | None]
"""A step that was made: the rows of its batch, its mean loss, and the batch where it was read."""


def in_closed_form(
    state: TrainingState, training: TrainingSettings, objective: Objective, weights: Trace | None
) -> bool:
    """Whether every step of a training is one that `heedful.training.closed_form` knows.

    These are flat models on the CPU with their own softmax attention, dot-product or additive, behind no encoder or the
    affine one, whose words are dropped by token; learned from cross-entropy by Adagrad, whose gradients are not
    clipped. All others are differentiated.
    """
    own = state.model.settings
    return (
        isinstance(state.model, FlatClassifier)
        and own.encoder in {"none", "affine"}
        and (own.attention_weights, own.normaliser) == ("learned", "softmax")
        and (own.dropout_mask == "token" or own.dropout == 0)
        and own.logit_dropout == 0
        and isinstance(state.optimizer, RowAdagrad)
        and training.clip is None
        and not needs_dense(training)
        and objective is cross_entropy
        and weights is None
        and state.model.embedding.device.type == "cpu"
        and state.model.embedding.dtype in COMPILED_TYPES
    )


def by_compiled_steps(
    state: TrainingState, training: TrainingSettings, objective: Objective, weights: Trace | None
) -> bool:
    """Whether a training is made of them: where they are known, and faster.

    Additive attention is known too, but its layer is a matrix product for all words of a batch, which libraries do in
    two thirds of the time.
    """
    return in_closed_form(state, training, objective, weights) and state.model.settings.attention == "dot"


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The parameters of a model as `Values`, and where they came from."""

    own: tuple[Tensor | None, ...]
    values: Values

    @classmethod
    def of(cls, tensors: tuple[Tensor | None, ...], like: Tensor) -> "Parameters":
        """Vectors and W are the tensors' own memory, the matrices of encoder and layer are copies that lie transposed.

        What is missing is empty: a matrix has no rows, a vector no numbers.
        """
        found = []
        for place, tensor in zip(Values._fields, tensors, strict=True):
            matrix = place in {"encoder", "layer"}
            one = like.new_empty((0, 0) if matrix else 0) if tensor is None else tensor.detach()
            found.append((one.T.contiguous().clone() if matrix else one).numpy())
        return cls(own=tensors, values=Values(*found))

    @torch.no_grad()
    def give_back(self) -> None:
        """Write the transposed matrices to where they came from."""
        for tensor, values in zip(self.own[:2], self.values[:2], strict=True):
            if tensor is not None:
                tensor.copy_(torch.from_numpy(values).T)


def closed_form_epoch(
    state: TrainingState, split: Split, training: TrainingSettings, *, singly: bool
) -> Iterator[Step]:
    """One pass over a split.

    `singly` gives each back before the next begins; otherwise many steps are made before their losses are told. The
    numbers are the same.
    """
    model, size, optimizer = state.model, training.batch_size, state.optimizer
    assert isinstance(optimizer, RowAdagrad)
    tensors = _tensors(model)
    now = Parameters.of(tensors, model.embedding)
    sums = Parameters.of(tuple(None if one is None else optimizer.sums(one) for one in tensors), model.embedding)
    gradients = Values(*(np.zeros_like(value) for value in now.values))
    order = torch.randperm(len(split), generator=state.order)
    tokens, offsets = split.tokens.numbers.numpy(), split.offsets.numpy()
    texts = Texts(tokens=tokens, offsets=offsets, labels=split.labels.numpy(), order=order.numpy())
    table, squares = model.embedding.detach().numpy(), optimizer.sums(model.embedding).numpy()
    desk = make_desk(now.values, gradients, texts, size, table)
    rules, random = rules_of(state, training), fresh_state(state.dropout)
    count = math.ceil(len(split) / size)
    stretch = 1 if singly else STRETCH
    for begin in range(0, count, stretch):
        losses = np.empty(min(stretch, count - begin))
        run_steps(
            texts, table, squares, now.values, sums.values, gradients, desk, rules, random, state.step, begin, losses
        )
        now.give_back()
        sums.give_back()
        for place, loss in enumerate(losses.tolist(), begin):
            state.step += 1
            yield order[place * size : (place + 1) * size], loss, None


def _tensors(model: Any) -> tuple[nn.Parameter | None, ...]:
    """The parameters as `Values` has them."""
    encoder, attention = model.encoder, model.attention
    additive = isinstance(attention, AdditiveAttention)
    return (
        encoder.projection if isinstance(encoder, AffineEncoder) else None,
        attention.projection if additive else None,
        attention.bias if additive else None,
        attention.context_vector,
        model.readout_weight,
        model.readout_bias,
    )


def rules_of(state: TrainingState, training: TrainingSettings) -> Rules:
    """What holds for every step of the epoch that comes."""
    own = state.model.settings
    return Rules(
        batch_size=training.batch_size,
        score_scale=own.score_scale,
        word_dropout=Dropout.of(own.dropout),
        document_dropout=Dropout.of(own.dropout if own.document_dropout is None else own.document_dropout),
        rate=training.learning_rate / 2 ** state.halvings(training.plateau),
        rate_decay=training.learning_rate_decay,
        epsilon=state.optimizer.param_groups[0]["eps"],
        weight_decay=training.weight_decay,
        penalty=training.alignment_penalty,
        penalty_on_layer=own.attention == "additive" and own.context_size is not None,
    )
