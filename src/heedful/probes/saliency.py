"""What the output of a live model says of each unit: gradients at its input, and the text read again without it.

Units are those of the trace: words, or the sentences of a hierarchical model, whose input x_i is the sentence's vector
(what its words' attention made of them). The output is ŷ = p_y, the probability of the decision y: of two classes that
of J&W (Jain & Wallace 2019) but for the sign. All numbers are float64.

    gradient              |x_iᵀ ∂ŷ/∂x_i|, attention weights held where they are: J&W's
    gradient_norm         ‖∂ŷ/∂x_i‖, attention held
    signed_gradient       x_iᵀ ∂ŷ/∂x_i, attention held
    full_gradient         |x_iᵀ ∂ŷ/∂x_i|, attention following the input: the size of input × gradient
    full_gradient_norm    ‖∂ŷ/∂x_i‖, attention following
    input_gradient        x_iᵀ ∂ŷ/∂x_i, attention following: input × gradient
    integrated_gradient   x_iᵀ ∫ ∂ŷ/∂x_i (t x) dt over t = 0 … 1 (Sundararajan et al. 2017): Σ_i is ŷ(x) − ŷ(0)
    integrated_size       its absolute value
    leave_one_out         how far the probabilities move when the text is read without the unit: ½ Σ_k |p_k − p_k'|
    leave_one_out_signed  ŷ − ŷ' of the same reading
    erasure               as leave_one_out, but only the attention weight is erased: from the trace
    random                a number drawn for each unit, beside which the others can be seen

Where no encoder sees a unit's neighbours equal tokens have equal numbers, to the last bit, and leaving a unit out is
erasing it, which needs no reading: but for sparse attention, where the others then share otherwise. Gradients of p_y
are taken as p_y Σ_{k≠y} p_k ∂(s_y − s_k), which does not vanish in the rounding of a probability near one.

Differs from Jain & Wallace's code: no division by the sum, which no ranking sees.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.erasure_loops import one_thread
from heedful.analysis.rankings import importance
from heedful.analysis.violation import Effects, erasure_effects
from heedful.attention.normalisers import NORMALISERS
from heedful.errors import InputError, UnknownName
from heedful.models.classifier import Classifier, HierarchicalClassifier
from heedful.probes.reading import ModelReading
from heedful.subjects import DELETE
from heedful.text.corpus import Split
from heedful.text.ragged import in_order, positions_of, segment_softmax, segment_sum, segments_of
from heedful.traces import Trace

Watch = Callable[[str, int, int], None]
"""Told what is being measured, and how many of how many texts (or units to leave out) are done."""

UNITS_AT_ONCE = 10_000
"""Of a gradient: what an encoder keeps for it is many times its input."""

STEPS, MOST_STEPS = 16, 1024
TOLERANCE = 1e-3
"""By how much, as a probability, integrated gradients may miss their sum; kinks of an encoder cost steps."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Watches nothing."""


@dataclass(frozen=True, kw_only=True)
class Gradients:
    """x_iᵀ ∂ŷ/∂x_i and ‖∂ŷ/∂x_i‖ of every unit."""

    product: Float[Tensor, " units"]
    norm: Float[Tensor, " units"]


@dataclass(frozen=True, kw_only=True)
class IntegratedGradients:
    """One number per unit, and per text by how much their sum misses ŷ(x) − ŷ(0), and how many steps it took."""

    scores: Float[Tensor, " units"]
    gap: Float[Tensor, " instances"]
    steps: Int[Tensor, " instances"]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Some texts as the final encoder reads them; `imposed` are attention scores that do not follow the input."""

    rows: Int[Tensor, " rows"]
    vectors: Float[Tensor, "units features"]
    offsets: Int[Tensor, " bounds"]
    chosen: Int[Tensor, " rows"]
    imposed: Float[Tensor, " units"] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Saliency:
    """A model and some texts, and what its output says of their units; each number is computed once, when asked for."""

    reading: ModelReading
    steps: int = STEPS
    seed: int = 0
    watch: Watch = silent
    targets: Int[Tensor, " instances"] | None = None
    """The class whose gradients are taken; None: the decision."""

    @classmethod
    def of(
        cls, model: Classifier, split: Split, *, steps: int = STEPS, seed: int = 0, watch: Watch = silent
    ) -> "Saliency":
        """steps: of the integral at first; texts whose sum misses by more than 0.001 get twice as many, and so on."""
        if steps < 1:
            raise InputError(f"Integrated gradients need 1 or more steps, not {steps}.")
        reading = ModelReading.of(model, split)
        reading.model.requires_grad_(False)
        return cls(reading=reading, steps=steps, seed=seed, watch=watch)

    @property
    def model(self) -> Classifier:
        return self.reading.model

    @property
    def trace(self) -> Trace:
        return self.reading.trace

    @property
    def chosen(self) -> Int[Tensor, " instances"]:
        """The class whose probability is ŷ."""
        return self.reading.decisions if self.targets is None else self.targets

    def numbers(self, measure: str) -> Float[Tensor, " units"]:
        """One number per unit of the trace, by name. One thread computes, so that sums are repeatable."""
        if measure not in MEASURES:
            raise UnknownName("measure of units", measure, MEASURES)
        with one_thread():
            return MEASURES[measure](self)

    @cached_property
    def held(self) -> Gradients:
        """Gradients with the attention weights held where they are."""
        return self._gradients("gradient", held=True)

    @cached_property
    def following(self) -> Gradients:
        """Gradients with attention that follows the input."""
        return self._gradients("full gradient", held=False)

    def _gradients(self, what: str, *, held: bool) -> Gradients:
        product, norm = (torch.empty_like(self.trace.attention_scores) for _ in range(2))
        for inputs, units in self._batches(torch.arange(len(self.trace)), what):
            _, gradient = output_gradient(self.model, inputs, inputs.vectors, held=held)
            product[units] = (gradient * inputs.vectors).sum(1).cpu()
            norm[units] = torch.linalg.vector_norm(gradient, dim=1).cpu()
        return Gradients(product=product[self.twins], norm=norm[self.twins])

    @cached_property
    def integrated(self) -> IntegratedGradients:
        """By Gauss's rule, with twice the steps again wherever the sum is not what it must be."""
        scores = torch.empty_like(self.trace.attention_scores)
        gap = torch.full((len(self.trace),), torch.inf, dtype=torch.float64)
        taken, steps = torch.zeros(len(self.trace), dtype=torch.int64), self.steps
        while len(missed := (gap > TOLERANCE).nonzero().squeeze(1)) and steps <= max(MOST_STEPS, self.steps):
            for inputs, units in self._batches(missed, f"integrated gradient, {steps} steps"):
                found, gap[inputs.rows] = integrate(self.model, inputs, steps)
                scores[units] = found.cpu()
            taken[missed] = steps
            steps *= 2
        return IntegratedGradients(scores=scores[self.twins], gap=gap, steps=taken)

    @cached_property
    def left_out(self) -> Effects:
        """What reading every text again without each of its units does."""
        if not self.model.encoder.contextual and self.model.settings.normaliser == "softmax":
            return self.erased
        trace, chosen = self.trace, self.reading.decisions[self.trace.segments][:, None]
        change = self._without_each() - trace.probabilities[trace.segments]
        others = change.scatter(1, chosen, 0)
        decision = others.sum(1)  # what the others gain the decision loses: more digits than 1 − p has
        variation = (others.abs().sum(1) + decision.abs()) / 2
        return Effects(decision=decision[self.twins], variation=variation[self.twins])

    @cached_property
    def erased(self) -> Effects:
        """What erasing the attention weight of each unit does."""
        found = erasure_effects(self.trace)
        return Effects(decision=found.decision[self.twins], variation=found.variation[self.twins])

    def _without_each(self) -> Float[Tensor, "units classes"]:
        """The probabilities of every text without each of its units: the first unit of all texts, then the second, …"""
        trace, done = self.trace, 0
        numbers, same = torch.arange(len(trace.segments)), self.same_without
        places, own = numbers - trace.offsets[trace.segments], same == numbers
        found = torch.empty_like(trace.polarity_scores)
        for place in range(int(trace.lengths.max())):
            gone = own & (places == place)
            rows = trace.segments[gone]
            found[gone] = self.reading.without(rows, gone[self.reading.units.of_rows(rows)], DELETE)
            done += int(gone.sum())
            self.watch("leaving units out", done, int(own.sum()))
        return found[same]

    @cached_property
    def twins(self) -> Int[Tensor, " units"]:
        """For each unit the first of its text that must have the same numbers: itself, or the first equal token."""
        if self.model.contextual:
            return torch.arange(len(self.trace.segments))
        tokens = self.reading.split.tokens.numbers
        return _firsts(self.trace.segments * len(self.model.embedding) + tokens)

    @cached_property
    def same_without(self) -> Int[Tensor, " units"]:
        """For each unit the first whose deletion leaves the same text: of equal words side by side the first."""
        if self.model.hierarchical:
            return torch.arange(len(self.trace.segments))
        tokens, owners = self.reading.split.tokens.numbers, self.trace.segments
        begins = torch.ones_like(tokens, dtype=torch.bool)
        begins[1:] = (tokens[1:] != tokens[:-1]) | (owners[1:] != owners[:-1])
        return _firsts(begins.cumsum(0))

    def _batches(self, rows: Int[Tensor, " rows"], what: str) -> Iterator[tuple[Inputs, Int[Tensor, " units"]]]:
        """These texts a few at a time, and where their units lie in the trace."""
        done = 0
        for part in in_order(self.reading.split.lengths[rows], UNITS_AT_ONCE):
            yield self._inputs(rows[part]), positions_of(self.trace.offsets, rows[part])
            done += len(part)
            self.watch(what, done, len(rows))

    @torch.no_grad()
    def _inputs(self, rows: Int[Tensor, " rows"]) -> Inputs:
        model = self.model
        batch = self.reading.split.batch(rows, sentences=model.hierarchical).to(model.embedding.device)
        vectors, offsets = model.embedding[batch.tokens], batch.offsets
        if isinstance(model, HierarchicalClassifier):
            assert batch.sentences is not None
            vectors, offsets = model.word_units(batch).pooled(), batch.sentences.offsets
        learned = model.settings.attention_weights == "learned"
        return Inputs(
            rows=rows,
            vectors=vectors,
            offsets=offsets,
            chosen=self.chosen[rows].to(offsets.device),
            imposed=None if learned else model.units(batch).attention_scores,
        )


def output_gradient(
    model: Classifier, inputs: Inputs, vectors: Float[Tensor, "units features"], *, held: bool = False
) -> tuple[Float[Tensor, " rows"], Float[Tensor, "units features"]]:
    """ŷ of each text when the encoder reads these vectors, and ∂ŷ/∂x; attention weights `held` count as constants."""
    x = vectors.detach().requires_grad_()
    with torch.backends.cudnn.flags(enabled=False):  # its recurrent networks have gradients only while they train
        hidden = model.encoder(x, inputs.offsets)
        weights = _weights(model, inputs, hidden)
        weights = weights.detach() if held else weights
        weighted = weights[:, None] * model.class_scores(hidden)
        pooled = weighted.new_zeros(len(inputs.rows), weighted.shape[1])
        logits = model.bias() + pooled.index_add(0, segments_of(inputs.offsets), weighted)
        own, probabilities = inputs.chosen[:, None], logits.detach().softmax(1)
        chosen = probabilities.gather(1, own)
        shares = (chosen * probabilities).scatter(1, own, 0)  # of k ≠ y alone: nothing near one that would cancel
        (gradient,) = torch.autograd.grad((shares * (logits.gather(1, own) - logits)).sum(), x)
    return chosen.squeeze(1), gradient


def _weights(model: Classifier, inputs: Inputs, hidden: Float[Tensor, "units hidden"]) -> Float[Tensor, " units"]:
    """What the model's normaliser makes of its scores; imposed scores are those of a softmax."""
    if inputs.imposed is not None:
        return segment_softmax(inputs.imposed, inputs.offsets)
    return NORMALISERS[model.settings.normaliser](model.attention(hidden), inputs.offsets)


def integrate(model: Classifier, inputs: Inputs, steps: int) -> tuple[Float[Tensor, " units"], Float[Tensor, " rows"]]:
    """The integral by Gauss's rule with so many steps, and by how much its sum misses ŷ(x) − ŷ(0)."""
    places, shares = np.polynomial.legendre.leggauss(steps)
    total = torch.zeros_like(inputs.vectors)
    for place, share in zip((places + 1) / 2, shares / 2, strict=True):
        total += share * output_gradient(model, inputs, place * inputs.vectors)[1]
    scores = (total * inputs.vectors).sum(1)
    end, begin = (output_gradient(model, inputs, size * inputs.vectors)[0] for size in (1.0, 0.0))
    return scores, (segment_sum(scores, inputs.offsets) - (end - begin)).abs().cpu()


def _firsts(kinds: Int[Tensor, " units"]) -> Int[Tensor, " units"]:
    """For each unit the first of its kind."""
    _, first, kind = np.unique(kinds.numpy(), return_index=True, return_inverse=True)
    return torch.from_numpy(first[kind])


MEASURES: Mapping[str, Callable[[Saliency], Float[Tensor, " units"]]] = {
    "gradient": lambda saliency: saliency.held.product.abs(),
    "gradient_norm": lambda saliency: saliency.held.norm,
    "signed_gradient": lambda saliency: saliency.held.product,
    "full_gradient": lambda saliency: saliency.following.product.abs(),
    "full_gradient_norm": lambda saliency: saliency.following.norm,
    "input_gradient": lambda saliency: saliency.following.product,
    "integrated_gradient": lambda saliency: saliency.integrated.scores,
    "integrated_size": lambda saliency: saliency.integrated.scores.abs(),
    "leave_one_out": lambda saliency: saliency.left_out.variation,
    "leave_one_out_signed": lambda saliency: saliency.left_out.decision,
    "erasure": lambda saliency: saliency.erased.variation,
    "random": lambda saliency: importance(saliency.trace, "random", seed=saliency.seed),
}
"""By name what is said of every unit of the trace."""
