"""Attention as an explanation: the weights of a trace, or what that which the head of a transformer reads attends to.

    A_l [from, to]    attention of layer l, the mean over its heads;   r    the share of each position in what the head
                      reads: one position ([CLS], or the last of a decoder), or the mean of all

What a unit gets is the sum over its pieces; what special tokens get is left out (`special_share` tells how much).
"""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.faithfulness.removal import Asked
from heedful.analysis.flips import TraceReading
from heedful.errors import InputError, UnknownName
from heedful.explainers.explainer import Explainer, Request, Scored
from heedful.explainers.listening import (
    Heard,
    folded,
    listening,
    no_transformer,
    pieces_of,
    special_share_of,
    transformer_of,
)
from heedful.explainers.rankings import of_trace
from heedful.subjects import Reading

Flow = Callable[[Heard], Float[Tensor, "rows pieces"]]
"""A number for every piece of the texts that were heard."""


def of_pieces(request: Request, flow: Flow, *, gradients: bool = False) -> Float[Tensor, " pieces"]:
    """The number of every piece of all texts."""
    pieces = pieces_of(request.reading)
    assert pieces is not None
    found = torch.empty(len(pieces.pieces.numbers), dtype=torch.float64)
    for heard in listening(request.reading, request.targets, gradients=gradients):
        found[heard.where] = flow(heard).detach().cpu().double()
    return found


def summed(request: Request, flow: Flow, *, gradients: bool = False, signed: bool = False) -> Scored:
    """The sums over the pieces of units; the model reads every text once more.

    signed: whether they may be below zero; else it is said what special tokens hold.
    """
    values = of_pieces(request, flow, gradients=gradients)
    remark = "" if signed else special_words(request.reading, values)
    return Scored(scores=folded(request.reading, values), passes=len(request.units), remark=remark)


def special_words(reading: Reading, values: Float[Tensor, " pieces"]) -> str:
    """How much special tokens hold, in a sentence; nothing where there are none."""
    share = float(special_share_of(reading, values).nanmean())
    return f"Special tokens hold {share:.0%} of it in the mean, which is left out." if share > 0 else ""


def read_from(
    shares: Float[Tensor, "rows pieces"], matrix: Float[Tensor, "rows pieces pieces"]
) -> Float[Tensor, "rows pieces"]:
    """Σ_q r_q M_qj"""
    return torch.einsum("rq,rqj->rj", shares.to(matrix), matrix)


def no_attention(reading: Reading) -> str:
    """Why there is none."""
    if isinstance(reading, TraceReading):
        return ""
    if transformer_of(reading) is None:
        return "it needs a trace, or a classifier of the transformers library."
    return no_transformer(reading)


def attention(request: Request, *, layer: int | None = None, head: int | None = None) -> Scored:
    """α_i of a trace; Σ_q r_q A_lqi of the last layer or another, the mean over heads or one of them."""
    if not isinstance(request.reading, TraceReading):
        return summed(request, weights_of(layer, head))
    if layer is not None or head is not None:
        raise InputError("A trace has one attention: ask for 'attention' alone.")
    return of_trace(request, "attention")


def weights_of(layer: int | None, head: int | None) -> Flow:
    """What the head of the model attends to in one layer."""

    def flow(heard: Heard) -> Float[Tensor, "rows pieces"]:
        weights = heard.attention[numbered(layer, len(heard.attention), "layer")]
        heads = weights.mean(1) if head is None else weights[:, numbered(head, weights.shape[1], "head")]
        return read_from(heard.reads, heads.double())

    return flow


def numbered(wanted: int | None, count: int, what: str) -> int:
    """A number from 0 on; None: the last."""
    if wanted is not None and not 0 <= wanted < count:
        raise InputError(f"There are {count} {what}s, counted from 0 to {count - 1}; there is no {what} {wanted}.")
    return count - 1 if wanted is None else wanted


def attention_layers(request: Request) -> Scored:
    """The mean over all layers of Σ_q r_q A_lqi."""
    return summed(request, layers_mean)


def layers_mean(heard: Heard) -> Float[Tensor, "rows pieces"]:
    return torch.stack([read_from(heard.reads, weights.double().mean(1)) for weights in heard.attention]).mean(0)


def rollout(request: Request) -> Scored:
    """r Â_L ⋯ Â_1 with Â_l = ½ (A_l + I), rows divided by their sums."""
    return summed(request, rolled)


def rolled(heard: Heard) -> Float[Tensor, "rows pieces"]:
    through = heard.reads
    for weights in reversed(heard.attention):
        mean = weights.double().mean(1)
        mixed = (mean + torch.eye(mean.shape[1]).to(mean)) / 2
        through = read_from(through, mixed / mixed.sum(2, keepdim=True))
    return through


def attention_gradient(request: Request) -> Scored:
    """Σ_l Σ_h Σ_q A_lhqi ∂p/∂A_lhqi: what the class loses, to first order, when nothing attends to i."""
    return summed(request, effects, gradients=True, signed=True)


def effects(heard: Heard) -> Float[Tensor, "rows pieces"]:
    return torch.stack([product.sum((1, 2)) for product in products(heard)]).sum(0)


def attention_gradient_rollout(request: Request) -> Scored:
    """r (R − I), with R ← R + B_l R from the identity on, B_l the mean over heads of (A_l ∂p/∂A_l)⁺."""
    return summed(request, effects_rolled, gradients=True)


def effects_rolled(heard: Heard) -> Float[Tensor, "rows pieces"]:
    through = heard.reads
    for product in reversed(products(heard)):
        through = through.to(product) + read_from(through, product.clamp(min=0).mean(1))
    return through - heard.reads.to(through)


def products(heard: Heard) -> list[Float[Tensor, "rows heads pieces pieces"]]:
    """A ∂p/∂A of every layer."""
    found = torch.autograd.grad(heard.chosen.sum(), heard.attention)
    return [(weights * grown).detach().double() for weights, grown in zip(heard.attention, found, strict=True)]


UNSIGNED: Mapping[str, Flow] = {
    "attention": weights_of(None, None),
    "attention_layers": layers_mean,
    "rollout": rolled,
}


def special_share(reading: Reading, by: str = "attention") -> Float[Tensor, " instances"]:
    """The share of what flows to each text's pieces that special tokens hold, which explanations leave out.

    by: attention (of the last layer), attention_layers, or rollout.
    """
    if by not in UNSIGNED:
        raise UnknownName("attention of which special tokens have a share", by, UNSIGNED)
    against = no_transformer(reading)
    if against:
        raise InputError(f"Special tokens have no share here: {against}")
    request = Request(asked=Asked(reading), targets=torch.zeros(len(reading.units), dtype=torch.int64))
    return special_share_of(reading, of_pieces(request, UNSIGNED[by]))


ATTENTION = (
    Explainer(
        name="attention",
        words="The attention weight of a unit; of a transformer that of the last layer (or another, or of one head), "
        "from what the head of the model reads.",
        formula="α_i; Σ_q r_q A_qi, the mean over heads",
        source="Bahdanau et al. 2015",
        signed=False,
        family="attention",
        needs="a trace or a transformer",
        at=("layer", "head"),
        scores=attention,
        hinders=no_attention,
    ),
    Explainer(
        name="attention_layers",
        words="The attention weight of a unit, the mean over all layers and heads.",
        formula="mean over l of Σ_q r_q A_lqi",
        source="–",
        signed=False,
        family="attention",
        needs="a transformer",
        scores=attention_layers,
        hinders=no_transformer,
    ),
    Explainer(
        name="rollout",
        words="Attention followed through all layers, half of every position staying where it is.",
        formula="r Â_L ⋯ Â_1, Â_l = ½ (A_l + I) with rows of sum one",
        source="Abnar & Zuidema 2020",
        signed=False,
        family="attention",
        needs="a transformer",
        scores=rollout,
        hinders=no_transformer,
    ),
    Explainer(
        name="attention_gradient",
        words="What the class loses, to first order, when nothing in any layer attends to a unit.",
        formula="Σ over layers, heads and positions q of A_qi ∂p/∂A_qi",
        source="Barkan et al. 2021, with signs and over all positions",
        signed=True,
        family="attention",
        needs="a transformer",
        scores=attention_gradient,
        hinders=no_transformer,
    ),
    Explainer(
        name="attention_gradient_rollout",
        words="The positive part of attention times gradient, followed through all layers.",
        formula="r (R − I), R ← R + B_l R from I on, B_l the mean over heads of (A_l ∂p/∂A_l)⁺",
        source="Chefer et al. 2021 (generic attention)",
        signed=False,
        family="attention",
        needs="a transformer",
        scores=attention_gradient_rollout,
        hinders=no_transformer,
    ),
)
