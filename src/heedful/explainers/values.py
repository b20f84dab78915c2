"""What attention weighs, not its weights alone: the norms of the vectors that reach a position, and zeroed values.

Where a transformer keeps its value vectors is found by the names that the library gives them, and proved on the first
text: the weights times the values must be what enters the output projection, and a block that is called again must say
the same. A family for which that does not hold is refused.
"""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.adapters.asking import SubjectError, in_a_sentence
from heedful.adapters.pieces import Pieces
from heedful.adapters.pretrained import PretrainedSubject
from heedful.analysis.faithfulness.cost import Lengths
from heedful.explainers.attention import numbered, read_from, summed
from heedful.explainers.explainer import Explainer, Request, Scored
from heedful.explainers.listening import (
    Heard,
    attending,
    blocks_of,
    first_heard,
    no_transformer,
    pieces_of,
    transformer_of,
    tried,
)
from heedful.subjects import Reading

VALUES = re.compile(r"(^|\.)(value|v_lin|v|v_proj)$")
FUSED = re.compile(r"(^|\.)Wqkv$")
"""What the library calls the projections of values, alone or as the last third with queries and keys."""

SAME_SUMS = 1e-5
"""By how much, as a share of the largest, weighted values may differ from what is projected."""

AS_BEFORE = 1e-4
"""By how much a block that is called again may differ."""

PIECES_AT_ONCE = 4_096
"""Of copies of a text, each with one value at zero."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """Where a block makes its value vectors, and the projection that mixed ones enter."""

    block: nn.Module
    value: nn.Linear
    fused: bool
    out: nn.Linear

    def values(self, told: Float[Tensor, "rows pieces wide"]) -> Float[Tensor, "rows pieces features"]:
        """The value vectors among what the projection put out."""
        return told.chunk(3, dim=-1)[2] if self.fused else told


@dataclass(frozen=True, kw_only=True, eq=False)
class Call:
    """How a block was called, and what was put out on the way."""

    given: tuple[Any, ...]
    named: dict[str, Any]
    values: Float[Tensor, "rows pieces wide"]
    told: Float[Tensor, "rows pieces features"]


def by_head(
    values: Float[Tensor, "rows pieces features"], size: int, heads: int
) -> Float[Tensor, "rows heads pieces _"]:
    """The vectors of each head; several heads of queries may share those of one."""
    rows, pieces, _ = values.shape
    cut = values.view(rows, pieces, -1, size).transpose(1, 2)
    return cut.repeat_interleave(heads // cut.shape[1], dim=1)


def layers_of(reading: Reading) -> list[Layer]:
    """Every layer, proved on the first text: Σ_j α_ij v_j is what enters the output projection."""
    subject, numbers, heard = _subject(reading), _pieces(reading).of_row(0)[None], first_heard(reading)
    blocks = zip(blocks_of(subject), heard.attention, strict=True)
    return [_layer(subject, block, numbers, weights) for block, weights in blocks]


def _pieces(reading: Reading) -> Pieces:
    pieces = pieces_of(reading)
    assert pieces is not None
    return pieces.pieces


def _subject(reading: Reading) -> PretrainedSubject:
    subject = transformer_of(reading)
    assert subject is not None
    return subject


def _layer(
    subject: PretrainedSubject,
    block: nn.Module,
    numbers: Int[Tensor, "rows pieces"],
    weights: Float[Tensor, "rows heads pieces pieces"],
) -> Layer:
    linear = {name: part for name, part in block.named_modules() if isinstance(part, nn.Linear)}
    found = [
        (part, bool(FUSED.search(name))) for name, part in linear.items() if VALUES.search(name) or FUSED.search(name)
    ]
    if len(found) != 1:
        raise SubjectError(f"Where a block of {subject.name} makes its value vectors is not known.")
    value, fused = found[0]
    entered, made = _entered(subject, numbers, list(linear.values()), value)
    values = made.chunk(3, dim=-1)[2] if fused else made
    for out, enters in entered.items():
        if _mixes(weights, values, enters):
            return Layer(block=block, value=value, fused=fused, out=out)
    raise SubjectError(f"The attention of {subject.name} times its value vectors is not what it goes on with.")


def _mixes(
    weights: Float[Tensor, "rows heads pieces pieces"],
    values: Float[Tensor, "rows pieces features"],
    enters: Float[Tensor, "..."],
) -> bool:
    heads, width = weights.shape[1], enters.shape[-1]
    if enters.shape[:-1] != values.shape[:-1] or width % heads or values.shape[-1] % (width // heads):
        return False
    mixed = (weights @ by_head(values, width // heads, heads)).transpose(1, 2).reshape(enters.shape)
    return bool((mixed - enters).abs().max() <= SAME_SUMS * enters.abs().max().clamp(min=1))


def _entered(
    subject: PretrainedSubject, numbers: Int[Tensor, "rows pieces"], parts: list[nn.Linear], value: nn.Linear
) -> tuple[dict[nn.Linear, Tensor], Tensor]:
    """What entered each linear part while texts were read, and what the projection of values put out."""
    entered: dict[nn.Linear, Tensor] = {}
    made: list[Tensor] = []

    def keep(part: nn.Module, given: tuple[Tensor, ...], told: Tensor) -> None:
        assert isinstance(part, nn.Linear)
        entered[part] = given[0]
        if part is value:
            made.append(told)

    handles = [part.register_forward_hook(keep) for part in parts]
    try:
        _read(subject, numbers)
    finally:
        for handle in handles:
            handle.remove()
    return entered, made[0]


def _read(subject: PretrainedSubject, numbers: Int[Tensor, "rows pieces"]) -> None:
    with attending(subject.model), torch.no_grad(), in_a_sentence(subject.name, "to give its value vectors"):
        subject.logits(numbers, torch.ones_like(numbers, dtype=torch.bool))


def calls_of(subject: PretrainedSubject, layers: list[Layer], numbers: Int[Tensor, "rows pieces"]) -> list[Call]:
    """How every block was called while texts were read."""
    given: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    values: list[Tensor] = []
    told: list[Tensor] = []
    handles = []
    for layer in layers:
        handles += [
            layer.block.register_forward_pre_hook(
                lambda _, args, kwargs: given.append((args, kwargs)), with_kwargs=True
            ),
            layer.block.register_forward_hook(lambda _, __, out: told.append(first_of(out))),
            layer.value.register_forward_hook(lambda _, __, out, one=layer: values.append(one.values(out))),
        ]
    try:
        _read(subject, numbers)
    finally:
        for handle in handles:
            handle.remove()
    four = zip(given, values, told, strict=True)
    return [Call(given=args, named=_no_memory(kwargs), values=made, told=out) for (args, kwargs), made, out in four]


def _no_memory(named: dict[str, Any]) -> dict[str, Any]:
    """Without what a decoder keeps of earlier calls: a block that is called again would find its own."""
    return {
        name: None if "past_key_value" in name else False if name == "use_cache" else value
        for name, value in named.items()
    }


def first_of(told: Any) -> Tensor:
    """The hidden vectors among what a block puts out."""
    found: Tensor = told[0] if isinstance(told, tuple) else told
    return found


def norms(request: Request, *, layer: int | None = None) -> Scored:
    """Σ_q r_q ‖Σ_h α_hqi (v_hi W_h)‖ of the last layer or another."""
    subject, every = _subject(request.reading), layers_of(request.reading)
    number = numbered(layer, len(every), "layer")
    one = every[number]

    def flow(heard: Heard) -> Float[Tensor, "rows pieces"]:
        (call,) = calls_of(subject, [one], _pieces(request.reading).numbers[heard.where])
        return mixed_norms(heard.attention[number], call.values, one.out.weight.detach(), heard.reads)

    told = summed(request, flow)
    return replace(told, passes=2 * told.passes)


def mixed_norms(
    weights: Float[Tensor, "rows heads pieces pieces"],
    values: Float[Tensor, "rows pieces features"],
    out: Float[Tensor, "size width"],
    reads: Float[Tensor, "rows pieces"],
) -> Float[Tensor, "rows pieces"]:
    """The norm of what each piece sends to the positions that are read, of all heads together."""
    heads, size = weights.shape[1], out.shape[1] // weights.shape[1]
    sent = by_head(values, size, heads) @ out.view(len(out), heads, size).permute(1, 2, 0)
    found = torch.zeros_like(reads)
    for place in reads.any(0).nonzero().squeeze(1).tolist():
        arriving = torch.einsum("rhj,rhjd->rjd", weights[:, :, place], sent)
        found += reads[:, place, None] * arriving.norm(dim=2).double()
    return found


def copies_of(lengths: Lengths, **_: object) -> Lengths:
    """One copy of a text for each of its pieces, of which there are about as many as units, or more."""
    return lengths


def value_zeroing(request: Request, *, layer: int | None = None) -> Scored:
    """r C_L ⋯ C_1, or r C_l; C_qi is how far a block's output at q turns without the value of i, rows of sum one."""
    subject, every = _subject(request.reading), layers_of(request.reading)
    chosen = every if layer is None else [every[numbered(layer, len(every), "layer")]]
    pieces = _pieces(request.reading)

    def flow(heard: Heard) -> Float[Tensor, "rows pieces"]:
        numbers = pieces.numbers[heard.where]
        return torch.cat(
            [_zeroed(subject, chosen, one[None], reads) for one, reads in zip(numbers, heard.reads, strict=True)]
        )

    told = summed(request, flow)
    copies = math.ceil(len(pieces.numbers) * len(chosen) / len(every))
    return replace(told, passes=copies + 2 * told.passes)


def _zeroed(
    subject: PretrainedSubject, layers: list[Layer], numbers: Int[Tensor, "1 pieces"], reads: Float[Tensor, " pieces"]
) -> Float[Tensor, "1 pieces"]:
    calls, through = calls_of(subject, layers, numbers), reads[None]
    with attending(subject.model), torch.no_grad():
        for layer, call in reversed(list(zip(layers, calls, strict=True))):
            through = read_from(through, turned(layer, call)[None])
    return through


def turned(layer: Layer, call: Call) -> Float[Tensor, "pieces pieces"]:
    """How far each position turns (1 − cosine) for each value at zero, rows of sum one."""
    places = torch.arange(call.told.shape[1])
    far = torch.cat([_distances(layer, call, some) for some in places.split(max(1, PIECES_AT_ONCE // len(places)))]).T
    return far / far.sum(1, keepdim=True).clamp(min=torch.finfo(far.dtype).tiny)


def _distances(layer: Layer, call: Call, places: Int[Tensor, " some"]) -> Float[Tensor, "some pieces"]:
    with _zeroing(layer, places):
        told = again(layer, call, len(places)).double()
    return (1 - torch.cosine_similarity(told, call.told.double(), dim=2)).clamp(min=0)


def again(layer: Layer, call: Call, copies: int) -> Float[Tensor, "copies pieces features"]:
    """What the block puts out for so many copies of its text."""
    name = "hidden_states"
    if call.given:
        return first_of(layer.block(call.given[0].expand(copies, -1, -1), *call.given[1:], **call.named))
    return first_of(layer.block(**call.named | {name: call.named[name].expand(copies, -1, -1)}))


@contextmanager
def _zeroing(layer: Layer, places: Int[Tensor, " some"]) -> Iterator[None]:
    """In copy k the value vector of places[k] is zero."""

    def zero(_: nn.Module, __: Any, told: Tensor) -> Tensor:
        changed = told.clone()
        layer.values(changed)[torch.arange(len(places)), places] = 0
        return changed

    handle = layer.value.register_forward_hook(zero)
    try:
        yield
    finally:
        handle.remove()


def no_values(reading: Reading) -> str:
    """Why value vectors cannot be had."""
    return no_transformer(reading) or tried(lambda: layers_of(reading))


def no_zeros(reading: Reading) -> str:
    """Why they cannot be zeroed: blocks must say the same when they are called again."""
    return no_values(reading) or tried(lambda: _same_again(reading))


def _same_again(reading: Reading) -> None:
    subject, layers = _subject(reading), layers_of(reading)
    calls = calls_of(subject, layers, _pieces(reading).of_row(0)[None])
    with attending(subject.model), torch.no_grad(), in_a_sentence(f"A block of {subject.name}", "when called again"):
        told = [again(layer, call, 2) for layer, call in zip(layers, calls, strict=True)]
    for one, call in zip(told, calls, strict=True):
        if not torch.allclose(one, call.told.expand_as(one), atol=AS_BEFORE, rtol=AS_BEFORE):
            raise SubjectError(f"A block of {subject.name} says something else when it is called again.")


VALUES_EXPLAINERS = (
    Explainer(
        name="norms",
        words="The length of the vector that a unit sends through attention to what the head of the model reads.",
        formula="Σ_q r_q ‖Σ_h α_hqi (v_hi W_h)‖, the last layer",
        source="Kobayashi et al. 2020",
        signed=False,
        family="attention",
        needs="a transformer",
        at=("layer",),
        scores=norms,
        hinders=no_values,
    ),
    Explainer(
        name="value_zeroing",
        words="How far what the head of the model reads turns when a unit's value vector is zero, followed through all "
        "layers.",
        formula="r C_L ⋯ C_1, C_qi = 1 − cos(x̃_q, x̃_q with v_i = 0) after a block, rows of sum one",
        source="Mohebbi et al. 2023; no identity is added, the blocks have their own residual path",
        signed=False,
        family="attention",
        needs="a transformer",
        at=("layer",),
        scores=value_zeroing,
        sets=copies_of,
        hinders=no_zeros,
    ),
)
