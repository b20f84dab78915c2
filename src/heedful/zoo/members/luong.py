"""Global and local attention (Luong, Pham & Manning 2015): the state of the same step asks."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.reading import Attention, Read, attend
from heedful.attention.scores import Additive, Bare, General, Location, Score, dot, drawn
from heedful.attention.weighting import gaussian_window, window
from heedful.zoo.member import Member


def make_dot(query_size: int, key_size: int, _size: int = 0) -> Attention:
    """e_j = hᵀh̄_j: query and keys are of one size."""
    assert query_size == key_size, "a dot product needs query and keys of one size"
    return Attention(Bare(dot))


def make_general(query_size: int, key_size: int, _size: int = 0) -> Attention:
    """e_j = hᵀW h̄_j."""
    return Attention(General(query_size, key_size))


def make_concat(query_size: int, key_size: int, size: int) -> Attention:
    """e_j = vᵀ tanh(W[h; h̄_j])."""
    return Attention(Additive(key_size, size, query_size=query_size, bias=False))


def make_location(query_size: int, _key_size: int, places: int) -> Attention:
    """α = softmax(W h): a score for each of so many places, whatever stands there."""
    return Attention(Location(query_size, places))


class LocalMonotonic(nn.Module):
    """local-m: softmax over the keys at most `reach` places from p_t = t, the number of the step."""

    def __init__(self, score: Score, reach: int) -> None:
        super().__init__()
        self.score, self.reach = score, reach

    def forward(
        self,
        query: Float[Tensor, "... query_features"],
        keys: Float[Tensor, "... keys features"],
        values: Float[Tensor, "... keys value_features"] | None = None,
        *,
        mask: Bool[Tensor, "... keys"] | None = None,
        step: int = 0,
    ) -> Read:
        near = window(keys.new_tensor(float(step)), self.reach)
        return attend(self.score, query, keys, values, mask=mask, normalise=near)


class LocalPredictive(nn.Module):
    """local-p: the centre p_t = S · sigmoid(vᵀ tanh(W h_t)) is predicted, and weights fall off around it.

    Places count from 0; S is one more than the last place that may be read.
    """

    def __init__(self, score: Score, query_size: int, size: int, reach: int) -> None:
        super().__init__()
        self.score, self.reach = score, reach
        self.place_weight, self.place_vector = drawn(size, query_size), drawn(size)

    def forward(
        self,
        query: Float[Tensor, "... query_features"],
        keys: Float[Tensor, "... keys features"],
        values: Float[Tensor, "... keys value_features"] | None = None,
        *,
        mask: Bool[Tensor, "... keys"] | None = None,
    ) -> Read:
        readable = torch.ones(keys.shape[:-1], dtype=torch.bool, device=keys.device) if mask is None else mask
        near = gaussian_window(self.centre(query, readable), self.reach)
        return attend(self.score, query, keys, values, mask=readable, normalise=near)

    def centre(
        self, query: Float[Tensor, "... query_features"], mask: Bool[Tensor, "... keys"]
    ) -> Float[Tensor, "..."]:
        """p_t."""
        length = (mask * torch.arange(1, mask.shape[-1] + 1, device=mask.device)).amax(-1)
        return length * (torch.tanh(query @ self.place_weight.T) @ self.place_vector).sigmoid()


def make_local_m(query_size: int, key_size: int, reach: int = 2) -> LocalMonotonic:
    return LocalMonotonic(General(query_size, key_size), reach)


def make_local_p(query_size: int, key_size: int, size: int, reach: int = 2) -> LocalPredictive:
    return LocalPredictive(General(query_size, key_size), query_size, size, reach)


SOURCE = "Luong, Pham & Manning 2015, Effective Approaches to Attention-based Neural Machine Translation"
SYMBOLS = {"h_t": "state of the decoder at step t", "h̄_s": "state of the encoder at place s"}
WEIGHED = "α_t(s) = exp(e_ts) / Σ_s′ exp(e_ts′)\nc_t = Σ_s α_t(s) h̄_s"
ORIGINAL = "Translation from English to German"

LUONG_DOT = Member(
    name="luong-dot",
    title="Global attention, dot",
    formula=f"e_ts = h_tᵀ h̄_s\n{WEIGHED}",
    symbols=SYMBOLS,
    source=f"{SOURCE}, Eq. 7 and the scores below it",
    original=ORIGINAL,
    known="No parameters at all: encoder and decoder must learn a common space. Of the global scores it did best in "
    "the paper's table 4.",
    helps="States of one size and short inputs. The larger the states, the sharper the softmax: see scaled dot.",
    make=make_dot,
    differs="The survey prints a comma in h_tᵀ, h̄_s.",
)
LUONG_GENERAL = Member(
    name="luong-general",
    title="Global attention, general",
    formula=f"e_ts = h_tᵀ W h̄_s\n{WEIGHED}",
    symbols={**SYMBOLS, "W": "learned"},
    source=f"{SOURCE}, Eq. 7 and the scores below it",
    original=ORIGINAL,
    known="One matrix between the two spaces; the best score with local attention in the paper's table 4.",
    helps="Query and keys of different sizes, or of different kinds. One matrix product more than a dot product.",
    make=make_general,
)
LUONG_CONCAT = Member(
    name="luong-concat",
    title="Global attention, concat",
    formula=f"e_ts = vᵀ tanh(W [h_t; h̄_s])\n{WEIGHED}",
    symbols={**SYMBOLS, "W, v": "learned"},
    source=f"{SOURCE}, Eq. 7 and the scores below it",
    original=ORIGINAL,
    known="The additive score asked by the state of the same step. The paper's own runs of it did not do well.",
    helps="Where a dot product cannot say what belongs together; see additive attention.",
    make=make_concat,
)
LUONG_LOCATION = Member(
    name="luong-location",
    title="Global attention, location",
    formula="α_t = softmax(W h_t)\nc_t = Σ_s α_t(s) h̄_s",
    symbols={**SYMBOLS, "W": "learned, a row for each place"},
    source=f"{SOURCE}, Eq. 8",
    original=ORIGINAL,
    known="Asks where, never what: the source does not enter the scores, only which places exist. Places beyond those "
    "seen in training have rows that were never learned.",
    helps="A fixed arrangement, such as a shift by one. Not where the right place depends on the content.",
    make=make_location,
)
LUONG_LOCAL_M = Member(
    name="luong-local-m",
    title="Local attention, monotonic",
    formula="p_t = t\nα_t(s) = softmax of e_ts over the s with |s − p_t| ≤ D, zero elsewhere\ne_ts = h_tᵀ W h̄_s",
    symbols={**SYMBOLS, "p_t": "centre of the window", "D": "reach of the window", "W": "learned"},
    source=f"{SOURCE}, section 3.2",
    original=ORIGINAL,
    known="A window that moves on by one place a step. The cost of a step does not grow with the source.",
    helps="Source and target in nearly one order. Where they are not (a reversal), the right place is outside of the "
    "window and no training helps.",
    make=make_local_m,
)
LUONG_LOCAL_P = Member(
    name="luong-local-p",
    title="Local attention, predictive",
    formula="p_t = S · sigmoid(v_pᵀ tanh(W_p h_t))\n"
    "α_t(s) = align(h_t, h̄_s) · exp(−(s − p_t)² / 2σ²),  σ = D / 2\n"
    "align = softmax of h_tᵀ W h̄_s over the s with |s − p_t| ≤ D",
    symbols={**SYMBOLS, "S": "length of the source", "D": "reach of the window", "W, W_p, v_p": "learned"},
    source=f"{SOURCE}, Eqs. 9–10",
    original=ORIGINAL,
    known="The centre is learned through the Gaussian only; the weights need not sum to one. The window's edge moves "
    "by whole places, and gives no gradient.",
    helps="Reordering that the state can foresee. Long sources, where looking everywhere costs too much.",
    make=make_local_p,
    differs="Places count from 0. As printed the product with the Gaussian is not normalised again.",
)
