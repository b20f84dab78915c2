"""What goes on inside a transformer while it reads: its attention, and the positions its head reads a text from.

The model is called as its subject calls it. Attention comes from the library's own eager path, to which a model that
computes otherwise is switched for the time of the call; that it says the same there is checked. The position that a
head reads is not taken from a list of families: it is where the logits have a gradient at the last hidden vectors.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.adapters.asking import SubjectError, in_a_sentence, probable
from heedful.adapters.modules import TracedReading, device_of
from heedful.adapters.pieces import NO_UNIT, PieceReading, equal_lengths, resting
from heedful.adapters.pretrained import PretrainedSubject
from heedful.subjects import Reading
from heedful.text.ragged import positions_of, segment_sum

FLOATS_AT_ONCE = 8_000_000
"""Attention weights that are kept at once."""

AS_CALLED = 1e-4
"""By how much probabilities may differ between the usual call and the one that is listened to."""

EVEN = 1e-3
"""By how much, as a share, the gradients of two positions may differ in a head that reads the mean of all."""


INSTALLED = "_output_capturing_hooks_installed"
"""What the library calls its mark."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Heard:
    """Some texts of equal length, and what was heard while they were read.

    where: the numbers of their pieces in the reading.
    attention: of each layer, from the piece that attends to the piece that is attended to.
    reads: the share that each position has in what the head reads, of sum one.
    chosen: the probability of the class that is explained; attention has a gradient towards it where that was asked.
    """

    rows: Int[Tensor, " rows"]
    where: Int[Tensor, "rows pieces"]
    attention: tuple[Float[Tensor, "rows heads pieces pieces"], ...]
    reads: Float[Tensor, "rows pieces"]
    chosen: Float[Tensor, " rows"]


def pieces_of(reading: Reading) -> PieceReading | None:
    """The reading of a model that reads numbers, where this is one."""
    found = reading.asked if isinstance(reading, TracedReading) else reading
    return found if isinstance(found, PieceReading) else None


def transformer_of(reading: Reading) -> PretrainedSubject | None:
    """The transformer that reads, where one does."""
    pieces = pieces_of(reading)
    return pieces.subject if pieces is not None and isinstance(pieces.subject, PretrainedSubject) else None


def no_transformer(reading: Reading) -> str:
    """Why attention cannot be listened to: there is none, or it is not given, or its head is not understood."""
    if transformer_of(reading) is None:
        return "it needs a classifier of the transformers library."
    return tried(lambda: first_heard(reading))


def tried(attempt: Callable[[], object]) -> str:
    """Why an attempt fails, or nothing."""
    try:
        attempt()
    except SubjectError as error:
        return str(error)
    return ""


def first_heard(reading: Reading) -> Heard:
    """What is heard while the first text is read."""
    targets = torch.zeros(len(reading.units), dtype=torch.int64)
    return next(listening(reading, targets, torch.zeros(1, dtype=torch.int64)))


def listening(
    reading: Reading,
    targets: Int[Tensor, " instances"],
    rows: Int[Tensor, " rows"] | None = None,
    *,
    gradients: bool = False,
) -> Iterator[Heard]:
    """What is heard while texts are read, a few of equal length at a time."""
    pieces, subject = pieces_of(reading), transformer_of(reading)
    assert pieces is not None
    assert subject is not None
    every = torch.arange(len(reading.units)) if rows is None else rows
    size = subject.model.config.num_hidden_layers * subject.model.config.num_attention_heads
    for some in _batches(pieces, every, size):
        where = positions_of(pieces.pieces.offsets, some).view(len(some), -1)
        yield _heard(reading, subject, some, where, pieces.pieces.numbers[where], targets[some], gradients)


def _batches(pieces: PieceReading, rows: Int[Tensor, " rows"], size: int) -> Iterator[Int[Tensor, " some"]]:
    """Texts of equal length, so many that their attention is not too large."""
    for part in equal_lengths(pieces.pieces.lengths[rows], pieces.subject.at_once):
        length = int(pieces.pieces.lengths[rows[part[0]]])
        yield from rows[part].split(max(1, FLOATS_AT_ONCE // (size * length**2)))


def _heard(
    reading: Reading,
    subject: PretrainedSubject,
    rows: Int[Tensor, " rows"],
    where: Int[Tensor, "rows pieces"],
    numbers: Int[Tensor, "rows pieces"],
    targets: Int[Tensor, " rows"],
    gradients: bool,
) -> Heard:
    with attending(subject.model), torch.enable_grad(), in_a_sentence(subject.name, "to give its attention"):
        logits, attention, last = _called(subject, numbers, gradients)
        said = probable(logits.double())
        grown = _gradient((logits * torch.arange(2, 2 + logits.shape[1]).to(logits).sqrt()).sum(), last)
    if len(attention) != len(blocks_of(subject)):
        raise SubjectError(f"{subject.name} does not give the attention of its {len(blocks_of(subject))} layers.")
    if not torch.allclose(said, reading.probabilities[rows].to(said), atol=AS_CALLED):
        raise SubjectError(f"{subject.name} says something else when it also gives its attention (eager attention).")
    own = attention if gradients else tuple(layer.detach() for layer in attention)
    chosen = said.gather(1, targets.to(said.device)[:, None]).squeeze(1)
    return Heard(rows=rows, where=where, attention=own, reads=reads_of(grown, subject.name), chosen=chosen)


def _gradient(what: Tensor, of: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(what, of, retain_graph=True, allow_unused=True)
    return torch.zeros_like(of) if found is None else found


def _called(
    subject: PretrainedSubject, numbers: Int[Tensor, "rows pieces"], gradients: bool
) -> tuple[Float[Tensor, "rows outputs"], tuple[Tensor, ...], Float[Tensor, "rows pieces features"]]:
    """Logits, the attention of every layer, and the last hidden vectors; a graph from the last block on, or of all."""
    model, kept = subject.model, []

    def begin(_: nn.Module, __: Any) -> None:
        torch.set_grad_enabled(gradients)

    def end(_: nn.Module, __: Any, told: Any) -> Any:
        torch.set_grad_enabled(True)
        first = told[0] if isinstance(told, tuple) else told
        leaf = first if gradients else first.detach().requires_grad_()
        return (leaf, *told[1:]) if isinstance(told, tuple) else leaf

    def keep(_: nn.Module, __: Any, told: Any) -> None:
        kept.append(told[0])

    with ExitStack() as hooks:
        table = model.get_input_embeddings()
        for handle in (table.register_forward_hook(_leaf), table.register_forward_pre_hook(begin)):
            hooks.callback(handle.remove)
        hooks.callback(blocks_of(subject)[-1].register_forward_hook(end).remove)
        hooks.callback(model.base_model.register_forward_hook(keep).remove)
        device = device_of(model)
        seen = torch.ones_like(numbers).to(device)
        told = model(input_ids=numbers.to(device), attention_mask=seen, output_attentions=True)
    if len(kept) != 1:
        raise SubjectError(f"{subject.name} does not put a head on one base model; what its head reads is not known.")
    return told.logits, tuple(told.attentions or ()), kept[0]


def _leaf(_: nn.Module, __: Any, told: Tensor) -> Tensor:
    """What is looked up, as the beginning of the graph: so there is one where all parameters are frozen, too."""
    found: Tensor = told.detach().requires_grad_(torch.is_grad_enabled())
    return found


def blocks_of(subject: PretrainedSubject) -> nn.ModuleList:
    """The blocks of a transformer, each with its attention, one for each layer."""
    count = subject.model.config.num_hidden_layers
    for part in subject.model.modules():
        if isinstance(part, nn.ModuleList) and len(part) == count and len({type(one) for one in part}) == 1:
            return part
    raise SubjectError(f"{subject.name} has no list of {count} blocks of one kind, one for each layer.")


def reads_of(gradient: Float[Tensor, "rows pieces features"], who: str) -> Float[Tensor, "rows pieces"]:
    """One position, or the mean of all, by where the logits have a gradient."""
    sizes: Tensor = gradient.detach().norm(dim=2)
    there = sizes > 0
    if bool((there.sum(1) == 1).all()):
        return there.double()
    spread = (gradient - gradient[:, :1]).detach().norm(dim=2)
    if bool((sizes > 0).all() and (spread <= EVEN * sizes).all()):
        return torch.full_like(sizes, 1 / sizes.shape[1]).double()
    raise SubjectError(
        f"The head of {who} reads neither one position of a text nor the mean of all, so that attention to what it "
        "reads cannot be told."
    )


@contextmanager
def attending(model: Any) -> Iterator[None]:
    """The model at rest, computing attention so that its weights can be had; afterwards as it was."""
    before = model.config._attn_implementation
    with resting(model), _without_new_hooks(model):
        try:
            if before != "eager":
                model.set_attn_implementation("eager")
            yield
        finally:
            if model.config._attn_implementation != before:
                model.set_attn_implementation(before)


@contextmanager
def _without_new_hooks(model: nn.Module) -> Iterator[None]:
    """The library hooks attention to give it, and leaves the hooks in the model: here they go, and the mark of them."""
    before = [(part, set(part._forward_hooks), INSTALLED in vars(part)) for part in model.modules()]
    try:
        yield
    finally:
        for part, hooks, installed in before:
            for number in set(part._forward_hooks) - hooks:
                del part._forward_hooks[number]
            if not installed:
                vars(part).pop(INSTALLED, None)


def folded(reading: Reading, values: Float[Tensor, " pieces"]) -> Float[Tensor, " units"]:
    """The sum over the pieces of each unit; special tokens are left out."""
    pieces = pieces_of(reading)
    assert pieces is not None
    owners, offsets = pieces.pieces.owners, reading.units.offsets
    inside = owners != NO_UNIT
    units = offsets[pieces.pieces.segments] + owners
    found = torch.zeros(int(offsets[-1]), dtype=torch.float64)
    return found.index_add_(0, units[inside], values[inside].double())


def special_share_of(reading: Reading, values: Float[Tensor, " pieces"]) -> Float[Tensor, " instances"]:
    """The share of the sum of each text that special tokens have."""
    pieces = pieces_of(reading)
    assert pieces is not None
    own = values.double() * (pieces.pieces.owners == NO_UNIT)
    return segment_sum(own, pieces.pieces.offsets) / segment_sum(values.double(), pieces.pieces.offsets)
