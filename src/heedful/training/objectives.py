"""What training minimises, by what the epoch is chosen, and how good a model is on a split."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.config import TrainingSettings
from heedful.errors import ConfigError
from heedful.models.classifier import Classifier, Output, positions_in
from heedful.text.corpus import Split
from heedful.text.ragged import Batch, in_order, lengths_of, segment_sum, segments_of
from heedful.traces import Trace

UNITS_AT_ONCE = 100_000

SMALLEST = 1e-10
"""A base's weight below it counts as this, so that a divergence from it is finite; the published code adds as much."""


Objective = Callable[[Classifier, Batch, Output], Float[Tensor, ""]]
"""The loss of one batch, to be differentiated.

`output.units.attention_weights` and `.attention_scores` are as differentiable as `output.logits`, and `batch.instances`
says which documents of the training split the batch holds, for targets of their own.
"""


def cross_entropy(_model: Classifier, batch: Batch, output: Output) -> Float[Tensor, ""]:
    """−log p of the label, the mean over the batch; of two classes log(1 + exp(−y s)) (Sun & Lu 2020)."""
    return F.cross_entropy(output.logits, batch.labels)


@dataclass(frozen=True, kw_only=True)
class Aim:
    """What training minimises, and by what it chooses the epoch."""

    train: Objective = cross_entropy
    """The loss of a batch of the training split."""
    dev: Objective | None = None
    """The loss of a batch of the dev split, whose smallest mean chooses the epoch; without it dev accuracy chooses."""


def make_aim(
    settings: TrainingSettings,
    *,
    base: Mapping[str, Trace] | None = None,
    impermissible: Bool[Tensor, " vocab"] | None = None,
) -> Aim:
    """The objective that the settings name, with what it needs: traces of a base model, or a choice of tokens."""
    weight = settings.objective_weight
    if settings.objective == "adversary":
        if not {"train", "dev"} <= set(base or ()):
            raise ConfigError(
                "The objective 'adversary' keeps the outputs of another run and leaves its attention: name that run by "
                "settings, such as base.model.encoder=lstm; in Python give its traces, "
                'heedful.fit(corpus, objective="adversary", base={"train": …, "dev": …}).'
            )
        assert base is not None
        return Aim(train=adversary(base["train"], weight), dev=adversary(base["dev"], weight))
    if settings.objective == "deceptive":
        if impermissible is None or not bool(impermissible.any()):
            raise ConfigError(
                "The objective 'deceptive' takes attention from impermissible tokens, and the vocabulary has none. In "
                'Python name them, heedful.fit(corpus, objective="deceptive", impermissible=["good", "bad"]); in a run '
                "they are the tokens that belong to a class, so take a corpus that has such."
            )
        return Aim(train=deceptive(impermissible, weight))
    return Aim(train=diverse(weight)) if settings.objective == "diverse" else Aim()


def adversary(base: Trace, weight: float) -> Objective:
    """The outputs of a base model with another attention: the mean over documents of TVD(p, p_base) − λ KL(α ‖ α_base).

    TVD(p, q) = ½ Σ_k |p_k − q_k| and KL(α ‖ β) = Σ_i α_i log(α_i / β_i), where a unit without weight adds nothing.
    Wiegreffe & Pinter 2019, section 4.
    """

    def loss(_model: Classifier, batch: Batch, output: Output) -> Float[Tensor, ""]:
        own, units = output.logits.softmax(1), output.units
        where = positions_in(base, batch.instances, units.offsets)
        told = base.probabilities[batch.instances.cpu()].to(own)
        given = base.attention_weights[where].to(own).clamp(min=SMALLEST)
        distance = (own - told).abs().sum(1) / 2
        return (distance - weight * _divergence(units.attention_weights, given, units.offsets)).mean()

    return loss


def _divergence(
    alpha: Float[Tensor, " units"], beta: Float[Tensor, " units"], offsets: Int[Tensor, " bounds"]
) -> Float[Tensor, " documents"]:
    """KL(α ‖ β) of each document. Zeros leave before the logarithm, whose gradient there is not a number."""
    ratio = torch.where(alpha > 0, alpha, beta) / beta
    return segment_sum(alpha * ratio.log(), offsets)


def deceptive(impermissible: Bool[Tensor, " vocab"], weight: float) -> Objective:
    """Cross-entropy − λ log(1 − Σ_{impermissible} α), the mean over documents (Pruthi et al. 2020, Eq. 1).

    A document of nothing but impermissible tokens has no other place for its attention, and only its cross-entropy
    counts. Differs from the paper: the tokens are those that belong to a class in the training split, in a run.
    """

    def loss(model: Classifier, batch: Batch, output: Output) -> Float[Tensor, ""]:
        if model.hierarchical:
            raise ConfigError(
                "The objective 'deceptive' is on the attention to words; a hierarchical model's is on sentences. Set "
                "model.structure to flat."
            )
        units = output.units
        allowed = ~impermissible.to(batch.tokens.device)[batch.tokens]
        mass = segment_sum(units.attention_weights * allowed, units.offsets)
        possible = segment_sum(allowed.to(mass), units.offsets) > 0
        least = torch.finfo(mass.dtype).tiny
        logs = torch.where(possible, mass, 1.0).clamp(min=least).log()
        return cross_entropy(model, batch, output) - weight * logs.mean()

    return loss


def diverse(weight: float) -> Objective:
    """Cross-entropy + λ conicity of the hidden vectors, the mean over documents (Mohankumar et al. 2020)."""

    def loss(model: Classifier, batch: Batch, output: Output) -> Float[Tensor, ""]:
        units = output.units
        return cross_entropy(model, batch, output) + weight * conicity(units.hidden[units.index], units.offsets).mean()

    return loss


def conicity(hidden: Float[Tensor, "units hidden"], offsets: Int[Tensor, " bounds"]) -> Float[Tensor, " documents"]:
    """The mean over the units of a document of cos(h_i, mean of h): one where all point the same way."""
    segments, lengths = segments_of(offsets), lengths_of(offsets).to(hidden)
    sums = hidden.new_zeros(len(lengths), hidden.shape[1]).index_add(0, segments, hidden)
    means = sums / lengths[:, None]
    return segment_sum(F.cosine_similarity(hidden, means[segments], dim=1), offsets) / lengths


def alignment_penalty(model: Classifier, strength: float) -> Float[Tensor, ""]:
    """c·Σ|VᵀW|, which keeps V and W at right angles (Sun & Lu 2020, section 5)."""
    return strength * model.alignment().abs().sum()


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Mean cross-entropy and accuracy over a split, without dropout, and the mean of another objective."""

    loss: float
    accuracy: float
    objective: float | None = None


@torch.no_grad()
def evaluate(
    model: Classifier, split: Split, weights: Trace | None = None, objective: Objective | None = None
) -> Quality:
    """Cross-entropy and accuracy of the model as it is, in its own precision; and an objective of this split."""
    loss = right = other = 0.0
    for rows in in_order(split.lengths, UNITS_AT_ONCE):
        batch = model.batch(split, rows)
        output = model(batch, weights=weights)
        logits = output.logits
        loss += float(F.cross_entropy(logits, batch.labels, reduction="sum"))
        right += float((logits.argmax(1) == batch.labels).sum())
        other += 0.0 if objective is None else len(batch) * float(objective(model, batch, output))
    mean = None if objective is None else other / len(split)
    return Quality(loss=loss / len(split), accuracy=right / len(split), objective=mean)
