"""Texts as bags of tokens: what a model without context makes of them is a function of how often each token occurs.

    logits_d = Σ_e n_de w_e (z_e + b) / Σ_e n_de w_e        w_e = exp(a_e)

n_de is how often token e occurs in text d. Texts with the same counts are one bag. Everything is written in the
logarithms of the weights, so that scores may be of any size.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.errors import InputError
from heedful.text.ragged import offsets_of, segment_softmax, segments_of
from heedful.traces import Trace

ALIKE = 1e-6
"""Scores of one token that differ by less of the largest of all are one score: it is the rounding of float32."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bags:
    """Different bags of tokens, and the scores of the tokens in them. A pair is a token in a bag where it occurs.

    Tokens without weight (score −inf) are in no bag.

    numbers, names, occurrences: of each token its number, what is shown for it, how often it occurs in all texts.
    attention, polarity: a_e, and z_e + b.
    offsets: where the pairs of each bag begin.
    members, counts: of each pair the place of its token in `numbers`, and n_de.
    copies: how many texts have this bag.
    owners: the bag of each text.
    """

    numbers: Int[Tensor, " tokens"]
    names: tuple[str, ...]
    occurrences: Int[Tensor, " tokens"]
    attention: Float[Tensor, " tokens"]
    polarity: Float[Tensor, "tokens classes"]
    offsets: Int[Tensor, " bounds"]
    members: Int[Tensor, " pairs"]
    counts: Float[Tensor, " pairs"]
    copies: Int[Tensor, " bags"]
    owners: Int[Tensor, " instances"]

    def __len__(self) -> int:
        return len(self.copies)

    @cached_property
    def segments(self) -> Int[Tensor, " pairs"]:
        """The bag of each pair."""
        return segments_of(self.offsets)

    @cached_property
    def own_log_weights(self) -> Float[Tensor, " pairs"]:
        """log α_de of the model itself."""
        return self.log_weights(self.attention)

    @cached_property
    def own_probabilities(self) -> Float[Tensor, "bags classes"]:
        """What the model itself says."""
        return self.logits(self.own_log_weights).softmax(1)

    def log_weights(self, scores: Float[Tensor, " tokens"]) -> Float[Tensor, " pairs"]:
        """log α_de = a_e − log Σ_e' n_de' exp(a_e'): the weight of one unit of the token in the bag."""
        own = scores[self.members]
        largest = torch.segment_reduce(own.detach(), "max", offsets=self.offsets)
        shifted = own - largest[self.segments]
        sums = shifted.new_zeros(len(self)).index_add(0, self.segments, self.counts * shifted.exp())
        return shifted - sums.log()[self.segments]

    def logits(self, log_weights: Float[Tensor, " pairs"]) -> Float[Tensor, "bags classes"]:
        """Σ_e n_de α_de (z_e + b)."""
        terms = (self.counts * log_weights.exp())[:, None] * self.polarity[self.members]
        return terms.new_zeros(len(self), terms.shape[1]).index_add(0, self.segments, terms)

    def probabilities(self, scores: Float[Tensor, " tokens"]) -> Float[Tensor, "bags classes"]:
        """What the model would say if the tokens had these attention scores."""
        return self.logits(self.log_weights(scores)).softmax(1)

    def mean(self, values: Float[Tensor, " bags"]) -> Float[Tensor, ""]:
        """The mean over texts."""
        return (values * self.copies).sum() / self.copies.sum()


def bags_of(trace: Trace, tokens: Int[Tensor, " units"]) -> Bags:
    """The texts of a trace as bags; refused with a sentence where scores are not a function of the token.

    tokens: the number of each unit's token.
    """
    if len(tokens) != len(trace.attention_scores):
        expected = len(trace.attention_scores)
        raise InputError(f"tokens must have one number per unit: expected {expected}, got {len(tokens)}.")
    _check_context(trace, tokens)
    alive = trace.attention_scores.isfinite()
    numbers, kinds = torch.unique(tokens[alive], return_inverse=True)
    first = _first_of(kinds, len(numbers))
    units = alive.nonzero().squeeze(1)[first]
    pairs, counts = torch.unique(trace.segments[alive] * len(numbers) + kinds, return_counts=True)
    rows, members = pairs // len(numbers), pairs % len(numbers)
    owners, representatives = _same_bags(rows, members, counts, len(trace))
    kept = torch.isin(rows, representatives)
    return Bags(
        numbers=numbers,
        names=_names(trace, alive, kinds, numbers),
        occurrences=torch.bincount(kinds, minlength=len(numbers)),
        attention=trace.attention_scores[units],
        polarity=trace.polarity_scores[units] + trace.bias,
        offsets=offsets_of(torch.bincount(rows[kept], minlength=len(trace))[representatives]),
        members=members[kept],
        counts=counts[kept].double(),
        copies=torch.bincount(owners),
        owners=owners,
    )


def with_scores(trace: Trace, tokens: Int[Tensor, " units"], bags: Bags, scores: Float[Tensor, " tokens"]) -> Trace:
    """The trace if the tokens of its bags had these attention scores; polarity stays."""
    attention, alive = trace.attention_scores.clone(), trace.attention_scores.isfinite()
    attention[alive] = scores[torch.searchsorted(bags.numbers, tokens[alive])]
    weights = segment_softmax(attention, trace.offsets, trace.segments)
    return replace(trace, attention_scores=attention, attention_weights=weights)


def _names(
    trace: Trace, alive: Bool[Tensor, " units"], kinds: Int[Tensor, " alive"], numbers: Int[Tensor, " tokens"]
) -> tuple[str, ...]:
    """How each token is most often written in the texts; its number where the trace has no units."""
    if trace.units is None:
        return tuple(map(str, numbers.tolist()))
    written = pd.DataFrame(
        {"kind": kinds.numpy(force=True), "unit": pd.Series(trace.units)[alive.numpy(force=True)].array}
    )
    often = written.value_counts(["kind", "unit"]).reset_index().drop_duplicates("kind").sort_values("kind")
    return tuple(often["unit"])


def _check_context(trace: Trace, tokens: Int[Tensor, " units"]) -> None:
    """Equal tokens must have equal scores, up to rounding."""
    _, kinds = torch.unique(tokens, return_inverse=True)
    first = _first_of(kinds, int(kinds.max()) + 1)[kinds]
    scores = torch.cat([trace.attention_scores[:, None], trace.polarity_scores], 1)
    same = (scores == scores[first]) | ((scores - scores[first]).abs() <= ALIKE * _largest(scores))
    wrong = (~same.all(1)).nonzero().squeeze(1)
    if len(wrong):
        unit = int(wrong[0])
        name = int(tokens[unit]) if trace.units is None else trace.units[unit]
        raise InputError(
            f"Attention and polarity scores must be functions of the token, but '{name}' has different ones in "
            f"instances {int(trace.segments[first[unit]])} and {int(trace.segments[unit])}. Take a model without a "
            "contextual encoder, and the token number of each unit."
        )


def _largest(scores: Float[Tensor, "units columns"]) -> Float[Tensor, " columns"]:
    return scores.where(scores.isfinite(), 0.0).abs().amax(0)


def _first_of(kinds: Int[Tensor, " units"], size: int) -> Int[Tensor, " kinds"]:
    """Where each kind occurs first."""
    places = torch.arange(len(kinds), device=kinds.device)
    return places.new_full((size,), len(kinds)).scatter_reduce(0, kinds, places, "amin")


def _same_bags(
    rows: Int[Tensor, " pairs"], members: Int[Tensor, " pairs"], counts: Int[Tensor, " pairs"], texts: int
) -> tuple[Int[Tensor, " instances"], Int[Tensor, " bags"]]:
    """The number of each text's bag, and the first text that has it."""
    content = torch.stack([members, counts], 1).numpy(force=True)
    ends = np.cumsum(torch.bincount(rows, minlength=texts).numpy(force=True))
    keys = [part.tobytes() for part in np.split(content, ends[:-1])]
    owners, _ = pd.factorize(np.array(keys, dtype=object))
    found = torch.from_numpy(owners.astype(np.int64)).to(rows.device)
    return found, _first_of(found, int(found.max()) + 1)
