"""Gradient flow of attention classifiers whose tokens do not see their neighbours, in closed form.

Sun & Lu 2020, section 4, and supplement A, B, D–F. One model carries all their variants:

    h_e = M e      a_e = φ(h_e)ᵀV / λ      s_e = W h_e      α = softmax(a)      s = Σ α_j s_j      ℓ = mean −log p_label

with M = I without an encoder (DP) and φ(h) = h for dot scores, tanh(Mᵃ h) for additive ones. Let g = −∂ℓ/∂s of one
document: y β for one output s (β = σ(−y s)), −p̂ = one-hot − p for K outputs. A token feels the loss through two sums
over its occurrences (t, j) only,

    π(e) = Σ α_j g_t  (Eq. 16)      ρ(e) = Σ α_j g_tᵀ(s_e − s_t)  (Eq. 20)      −m ∂ℓ/∂e = Mᵀ(Wᵀπ(e) + ρ(e) ∂a_e/∂h_e)

so everything below is computed for the whole vocabulary at once, and no [units × features] array exists.
Rates are those of plain gradient flow, dθ/dτ = −∂ℓ/∂θ: no dropout, penalty, weight decay or optimiser.

Differs from the paper: for K outputs π is a vector and both sums carry −p̂, so that Eqs. 78–83 have the form of 13–27.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.text.ragged import Batch, segment_softmax, segments_of


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What gradient flow moves, and λ. One row of W for two classes, a row per class for more."""

    embedding: Float[Tensor, "vocab features"]
    context_vector: Float[Tensor, " context"]
    """V"""
    readout_weight: Float[Tensor, "outputs hidden"]
    """W"""
    score_scale: float
    """λ"""
    encoder: Float[Tensor, "hidden features"] | None = None
    """M of the affine encoder (Eq. 56)"""
    projection: Float[Tensor, "context hidden"] | None = None
    """Mᵃ of additive attention (Eq. 65)"""

    def to_embedding(self, rows: Float[Tensor, "rows hidden"]) -> Float[Tensor, "rows features"]:
        """Mᵀx for every row x."""
        return rows if self.encoder is None else rows @ self.encoder


@dataclass(frozen=True, kw_only=True)
class TokenStates:
    """Every vocabulary token as the attention sees it. What is the same for all tokens has a single row."""

    hidden: Float[Tensor, "vocab hidden"]
    """h_e"""
    projected: Float[Tensor, "vocab context"]
    """x_e = Mᵃ h_e, or h_e for dot scores"""
    features: Float[Tensor, "vocab context"]
    """φ(h_e) = λ ∂a_e/∂V: h_e, or tanh(x_e) for additive scores"""
    slopes: Float[Tensor, "rows hidden"]
    """λ ∂a_e/∂h_e: V, or Mᵃᵀu_e for additive scores"""
    gates: Float[Tensor, "gates context"] | None
    """u_e = D_e V with D_e = diag(1 − tanh² x_e), for additive scores (Eq. 66)"""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A model at one moment of its training, and what the documents do to it."""

    parameters: Parameters
    tokens: TokenStates
    attention_scores: Float[Tensor, " vocab"]
    polarity_scores: Float[Tensor, "vocab outputs"]
    pi: Float[Tensor, "vocab outputs"]
    rho: Float[Tensor, " vocab"]
    losses: Float[Tensor, " documents"]

    def __len__(self) -> int:
        """m, the number of documents."""
        return len(self.losses)

    @cached_property
    def mean_beta(self) -> Float[Tensor, ""]:
        """Mean of β = 1 − p_label, which is σ(−y s) for one output."""
        return -torch.expm1(-self.losses).mean()

    @cached_property
    def embedding_slopes(self) -> Float[Tensor, "rows features"]:
        """q_e = λ ∂a_e/∂e = Mᵀ λ ∂a_e/∂h_e"""
        return self.parameters.to_embedding(self.tokens.slopes)

    @cached_property
    def alignment(self) -> Float[Tensor, "rows outputs"]:
        """W'q_e with W' = W M: VᵀW of a dot model, V'ᵀW' of an affine one, W Mᵃᵀu_e of an additive one."""
        return self.embedding_slopes @ self.parameters.to_embedding(self.parameters.readout_weight).T

    @cached_property
    def embedding_flow(self) -> Float[Tensor, "vocab features"]:
        """−∂ℓ/∂e = Mᵀ(Wᵀπ(e) + ρ(e) ∂a_e/∂h_e) / m (Eqs. 13, 59, 66, 78).

        Differs from the paper, here and below: 66–68 are printed for one position of one document (m = 1); here they
        are summed over occurrences. Affine and additive together, and both for K classes, follow the same way.
        """
        through_readout = self.pi @ self.parameters.to_embedding(self.parameters.readout_weight)
        through_scores = self.rho[:, None] * self.embedding_slopes / self.parameters.score_scale
        return (through_readout + through_scores) / len(self)

    @cached_property
    def readout_flow(self) -> Float[Tensor, "outputs hidden"]:
        """−∂ℓ/∂W = Σ_t g_t h_tᵀ / m = Σ_e π(e) h_eᵀ / m (Eqs. 14, 79)."""
        return self.pi.T @ self.tokens.hidden / len(self)

    @cached_property
    def context_flow(self) -> Float[Tensor, " context"]:
        """−∂ℓ/∂V = Σ_e ρ(e) φ(h_e) / (mλ) (Eqs. 23, 60, 67, 80)."""
        return (self.rho @ self.tokens.features) / (len(self) * self.parameters.score_scale)

    @cached_property
    def projection_flow(self) -> Float[Tensor, "context hidden"]:
        """−∂ℓ/∂Mᵃ = Σ_e ρ(e) u_e h_eᵀ / (mλ) (Eq. 68), for additive scores."""
        assert self.tokens.gates is not None
        summed = _outer_sum(self.tokens.gates, self.rho, self.tokens.hidden)
        return summed / (len(self) * self.parameters.score_scale)

    @cached_property
    def encoder_flows(self) -> tuple[Float[Tensor, "hidden features"], Float[Tensor, "outputs features"]]:
        """P = Σ_e ρ(e) ∂a_e/∂h_e eᵀ / m and R = Σ_e π(e) eᵀ / m: −∂ℓ/∂M = P + WᵀR (Eq. 61)."""
        embedding, share = self.parameters.embedding, 1 / len(self)
        through_scores = _outer_sum(self.tokens.slopes, self.rho, embedding) / self.parameters.score_scale
        return through_scores * share, self.pi.T @ embedding * share


@dataclass(frozen=True, kw_only=True)
class Flow:
    """The named summands of ds_e/dτ and da_e/dτ; their sums are the rates."""

    polarity: Mapping[str, Float[Tensor, "vocab outputs"]]
    attention: Mapping[str, Float[Tensor, " vocab"]]
    approximate: Mapping[str, Float[Tensor, " vocab"]]
    """The terms of `attention` with tanh(x) ≈ x (Eq. 71); empty for dot scores, which are linear."""

    @property
    def polarity_rate(self) -> Float[Tensor, "vocab outputs"]:
        return sum_of(self.polarity.values())

    @property
    def attention_rate(self) -> Float[Tensor, " vocab"]:
        return sum_of(self.attention.values())

    @property
    def approximate_attention_rate(self) -> Float[Tensor, " vocab"] | None:
        return sum_of(self.approximate.values()) if self.approximate else None


def observe(parameters: Parameters, documents: Batch) -> Moment:
    """One pass over the documents: the scores of all tokens, π and ρ. With one output, label 1 is y = +1, 0 is −1."""
    tokens = see_tokens(parameters)
    attention = tokens.features @ parameters.context_vector / parameters.score_scale
    polarity = tokens.hidden @ parameters.readout_weight.T
    pi, rho, losses = occurrence_sums(attention, polarity, documents)
    scores = {"attention_scores": attention, "polarity_scores": polarity}
    return Moment(parameters=parameters, tokens=tokens, **scores, pi=pi, rho=rho, losses=losses)


def see_tokens(parameters: Parameters) -> TokenStates:
    """Hidden vectors and the derivatives of the attention scores, once per token of the vocabulary."""
    encoder, projection, context = parameters.encoder, parameters.projection, parameters.context_vector
    hidden = parameters.embedding if encoder is None else parameters.embedding @ encoder.T
    if projection is None:
        return TokenStates(hidden=hidden, projected=hidden, features=hidden, slopes=context[None], gates=None)
    projected = hidden @ projection.T
    features = torch.tanh(projected)
    gates = features.square().mul_(-context).add_(context)
    return TokenStates(hidden=hidden, projected=projected, features=features, slopes=gates @ projection, gates=gates)


def occurrence_sums(
    attention_scores: Float[Tensor, " vocab"], polarity_scores: Float[Tensor, "vocab outputs"], documents: Batch
) -> tuple[Float[Tensor, "vocab outputs"], Float[Tensor, " vocab"], Float[Tensor, " documents"]]:
    """π(e) = Σ α_j g_t and ρ(e) = Σ α_j g_tᵀ(s_e − s_t) of every token (Eqs. 16, 20), and the loss of every document.

    A token that occurs n times in a document enters n times, with the same α_j.
    """
    tokens, offsets, segments = documents.tokens, documents.offsets, segments_of(documents.offsets)
    weights = segment_softmax(attention_scores.index_select(0, tokens), offsets, segments)
    # Output by output: flat arrays of all units are several times faster here than [units × outputs]
    polarity = [column.index_select(0, tokens) for column in polarity_scores.T.contiguous()]
    outputs = [torch.segment_reduce(weights * column, "sum", offsets=offsets) for column in polarity]
    pulls, losses = output_pulls(torch.stack(outputs, 1), documents.labels)
    pi, surplus, nothing = [], torch.zeros_like(weights), torch.zeros_like(attention_scores)
    for unit_polarity, output, pull in zip(polarity, outputs, pulls.T.contiguous(), strict=True):
        pulled = pull.index_select(0, segments).mul_(weights)
        pi.append(nothing.index_add(0, tokens, pulled))
        surplus.addcmul_(pulled, unit_polarity.sub_(output.index_select(0, segments)))
    return torch.stack(pi, 1), nothing.index_add(0, tokens, surplus), losses


def output_pulls(
    outputs: Float[Tensor, "documents outputs"], labels: Int[Tensor, " documents"]
) -> tuple[Float[Tensor, "documents outputs"], Float[Tensor, " documents"]]:
    """g = −∂ℓ/∂s of each document by itself, and ℓ: y β (Eq. 29) for one output, one-hot − p (Eq. 75) for more.

    Both in the form that does not cancel when the label is all but certain.
    """
    if outputs.shape[1] == 1:
        y = 2.0 * labels[:, None] - 1
        return y * torch.sigmoid(-y * outputs), F.softplus(-y * outputs).squeeze(1)
    others = outputs.softmax(1).scatter(1, labels[:, None], 0.0)
    pulls = (-others).scatter(1, labels[:, None], others.sum(1, keepdim=True))
    return pulls, F.cross_entropy(outputs, labels, reduction="none")


def flow_of(moment: Moment) -> Flow:
    """All terms of ds_e/dτ and da_e/dτ for every token of the vocabulary."""
    return Flow(
        polarity=polarity_terms(moment),
        attention=attention_terms(moment),
        approximate={} if moment.parameters.projection is None else attention_terms(linearised(moment)),
    )


def polarity_terms(moment: Moment) -> dict[str, Float[Tensor, "vocab outputs"]]:
    """ds_e/dτ = A + B + C (Eq. 19), with W' = W M and the slope q_e = λ ∂a_e/∂e:

        A = W'q_e ρ(e) / (mλ)      B = W'W'ᵀ π(e) / m      C = −(∂ℓ/∂W) h_e

    The affine encoder adds what comes through dM/dτ, the fifth and third term of Eq. 63, named by their likeness:

        A_encoder = W V Σ_j ρ(j) eᵀe_j / (mλ)      B_encoder = W Wᵀ Σ_j π(j) eᵀe_j / m

    Differs from the paper: Eq. 82 lacks the factor α_j in its first two terms (A and B of K classes).
    """
    parameters = moment.parameters
    readout = parameters.to_embedding(parameters.readout_weight)
    terms = {
        "A": moment.rho[:, None] * moment.alignment / (len(moment) * parameters.score_scale),
        "B": moment.pi @ (readout @ readout.T) / len(moment),
        "C": moment.tokens.hidden @ moment.readout_flow.T,
    }
    if parameters.encoder is not None:
        weight = parameters.readout_weight
        through_scores, through_readout = moment.encoder_flows
        terms["A_encoder"] = parameters.embedding @ (weight @ through_scores).T
        terms["B_encoder"] = parameters.embedding @ (weight @ weight.T @ through_readout).T
    return terms


def attention_terms(moment: Moment) -> dict[str, Float[Tensor, " vocab"]]:
    """da_e/dτ = D + E + F (Eq. 27), with q_e and W' as in `polarity_terms`:

        D = π(e)ᵀW'q_e / (mλ)      E = ‖q_e‖² ρ(e) / (mλ²)      F = −(1/λ) φ(h_e)ᵀ ∂ℓ/∂V

    The affine encoder adds what comes through dM/dτ, the third and fourth term of Eq. 64, additive scores what comes
    through dMᵃ/dτ:

        D_encoder = VᵀWᵀ Σ_j π(j) eᵀe_j / (mλ)      E_encoder = ‖V‖² Σ_j ρ(j) eᵀe_j / (mλ²)
        E_projection = Σ_j ρ(j) h_eᵀh_j u_eᵀu_j / (mλ²)

    Differs from the paper: Eq. 71 sets tanh(x) ≈ x (see `linearised`), this is exact. In Eq. 83 the first term (F of
    K classes) has the wrong sign and 1/λ for 1/λ². In the first term of Eq. 64, s is s^(t).
    """
    parameters, tokens, scale = moment.parameters, moment.tokens, moment.parameters.score_scale
    terms = {
        "D": (moment.pi * moment.alignment).sum(1) / (len(moment) * scale),
        "E": moment.rho * torch.linalg.vector_norm(moment.embedding_slopes, dim=1).square() / (len(moment) * scale**2),
        "F": tokens.features @ moment.context_flow / scale,
    }
    if parameters.encoder is not None:
        through_scores, through_readout = moment.encoder_flows
        reached = parameters.embedding @ through_readout.T
        terms["D_encoder"] = (reached * (tokens.slopes @ parameters.readout_weight.T)).sum(1) / scale
        terms["E_encoder"] = _bilinear(tokens.slopes, through_scores, parameters.embedding) / scale
    if tokens.gates is not None:
        terms["E_projection"] = _bilinear(tokens.gates, moment.projection_flow, tokens.hidden) / scale
    return terms


def dot_products(vectors: Float[Tensor, "vocab features"], pairs: Int[Tensor, "pairs 2"]) -> Float[Tensor, " pairs"]:
    """Ω_ik = e_iᵀe_k of chosen tokens (supplement B); of hidden vectors for the affine model's figure 8b."""
    return (vectors[pairs[:, 0]] * vectors[pairs[:, 1]]).sum(1)


def dot_product_terms(moment: Moment, pairs: Int[Tensor, "pairs 2"]) -> dict[str, Float[Tensor, " pairs"]]:
    """dΩ_ik/dτ = −(∂ℓ/∂e_i)ᵀe_k − (∂ℓ/∂e_k)ᵀe_i = A + B (Eq. 43), each the sum of both directions of Eq. 44,

        A_ik = ρ(e_i) a_k / m      B_ik = π(e_i)ᵀs_k / m

    with (∂a_i/∂h_i)ᵀh_k in the place of a_k for additive scores. B alone is Eq. 46, the rate for large λ.

    Differs from the paper: in Eq. 44 the A term is divided by λ once more although a_k already is; 45 and 46 lack 1/m.
    """
    first, second = pairs.unbind(1)
    directions = ((first, second), (second, first))
    slopes = moment.tokens.slopes.expand(len(moment.rho), -1)
    hidden, scale = moment.tokens.hidden, moment.parameters.score_scale
    a = sum_of([moment.rho[i] * (slopes[i] * hidden[k]).sum(1) for i, k in directions]) / scale
    b = sum_of([(moment.pi[i] * moment.polarity_scores[k]).sum(1) for i, k in directions])
    return {"A": a / len(moment), "B": b / len(moment)}


def linearised(moment: Moment) -> Moment:
    """The same moment with the derivatives of a linear score, tanh(x) ≈ x: u_e = V and φ(h) = Mᵃ h (Eq. 71)."""
    projection, context = moment.parameters.projection, moment.parameters.context_vector
    assert projection is not None
    tokens = moment.tokens
    linear = replace(tokens, features=tokens.projected, slopes=context[None] @ projection, gates=context[None])
    return replace(moment, tokens=linear)


def summary(moment: Moment) -> dict[str, Float[Tensor, "*outputs"]]:
    """Loss, mean β, VᵀW, ‖V‖ and ‖W‖ (per output).

    `alignment_mapped` is the factor of π in D where a matrix lies between V and W: V'ᵀW' with V' = MᵀV and W' = MᵀW for
    the affine encoder (supplement D), VᵀMᵃW for additive scores with tanh(x) ≈ x (second term of Eq. 71).
    """
    parameters = moment.parameters
    context, readout = parameters.context_vector, parameters.readout_weight
    values = {"loss": moment.losses.mean(), "mean_beta": moment.mean_beta}
    if context.shape[0] == readout.shape[1]:
        values["alignment"] = readout @ context
    if parameters.projection is not None or parameters.encoder is not None:
        linear = moment if parameters.projection is None else linearised(moment)
        values["alignment_mapped"] = linear.alignment.squeeze(0)
    return values | {"context_norm": context.norm(), "readout_norm": readout.norm(dim=1)}


def sum_of(parts: Iterable[Float[Tensor, "..."]]) -> Float[Tensor, "..."]:
    """Σ of arrays of one shape."""
    return torch.stack([*parts]).sum(0)


def _outer_sum(
    left: Float[Tensor, "rows left"], weights: Float[Tensor, " vocab"], right: Float[Tensor, "vocab right"]
) -> Float[Tensor, "left right"]:
    """Σ_e w_e l_e r_eᵀ, where l may be the same for all tokens."""
    if len(left) == 1:
        return torch.outer(left[0], weights @ right)
    return (left * weights[:, None]).T @ right


def _bilinear(
    left: Float[Tensor, "rows left"], matrix: Float[Tensor, "left right"], right: Float[Tensor, "vocab right"]
) -> Float[Tensor, " vocab"]:
    """l_eᵀ X r_e of every token, where l may be the same for all."""
    if len(left) == 1:
        return right @ (left[0] @ matrix)
    return (right @ matrix.T).mul_(left).sum(1)
