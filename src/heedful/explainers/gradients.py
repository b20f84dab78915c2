"""Gradients at what a model reads of a unit: a word's vector, or the vectors of its pieces.

Of heedful's own models they are taken as `heedful.probes.saliency` takes them, of a transformer and of a torch module
through Captum, on what the table of its tokens puts out. Probabilities are made of logits in double precision, so that
a gradient does not vanish where a decision is nearly certain.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.adapters.asking import SubjectError, in_a_sentence, probable
from heedful.adapters.modules import ModuleSubject, device_of
from heedful.adapters.pieces import PieceReading, PieceSubject, resting
from heedful.adapters.pretrained import PretrainedSubject
from heedful.analysis.faithfulness.cost import Lengths
from heedful.errors import InputError, UnknownName, load_extra
from heedful.explainers.explainer import Explainer, Request, Scored, at_least_one, missing
from heedful.explainers.listening import folded, pieces_of, tried
from heedful.notebook import counted
from heedful.probes.reading import ModelReading
from heedful.probes.saliency import TOLERANCE as TOLERANCE_OF_OWN
from heedful.probes.saliency import Saliency
from heedful.subjects import Reading
from heedful.text.ragged import equal_lengths, positions_of

STEPS = 20
BASELINES = ("mask", "pad", "zero")

PIECES_AT_ONCE = 2_048
"""Of a gradient: what is kept for it is many times its input."""

MOST_STEPS, TOLERANCE = 320, 5e-3
"""Up to so many steps where integrated gradients miss their sum by more than that, as a probability."""

RULES = 1e-3
"""By how much, as a share, the scores of DeepLIFT may miss what they must sum to."""

Vectors = Float[Tensor, "rows pieces features"]
Piecewise = Callable[["Input"], Float[Tensor, "rows pieces"]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Input:
    """Some texts of equal length as a model reads them: the vectors of their pieces, and the classes to explain."""

    subject: PieceSubject
    table: nn.Module
    rows: Int[Tensor, " rows"]
    numbers: Int[Tensor, "rows pieces"]
    where: Int[Tensor, "rows pieces"]
    special: Bool[Tensor, "rows pieces"]
    targets: Int[Tensor, " rows"]

    @property
    def vectors(self) -> Vectors:
        """A leaf with a gradient."""
        with torch.no_grad():
            found = self.table(self.numbers.to(device_of(self.subject.model)))
        return found.detach().clone().requires_grad_()  # type: ignore[no-any-return]

    @property
    def module(self) -> "Vectored":
        """The model as a module from vectors to probabilities."""
        return Vectored(self.subject, self.table, probable)

    @property
    def leading(self) -> "Vectored":
        """The model as a module from vectors to how far the logit of each class is before the mean of the others."""
        return Vectored(self.subject, self.table, leads)

    @property
    def given(self) -> dict[str, Any]:
        """How Captum is to call it."""
        return {"target": self.targets.to(device_of(self.subject.model)), "additional_forward_args": (self.numbers,)}

    def without_words(self, baseline: str | None) -> Vectors:
        """The same texts with nothing in the place of each piece; special tokens stay."""
        number = _number_of(self.subject, baseline)
        with torch.no_grad():
            if number is None:
                found = self.vectors.detach()
                return torch.where(self.special[:, :, None].to(found.device), found, torch.zeros_like(found))
            numbers = self.numbers.masked_fill(~self.special, number)
            return self.table(numbers.to(device_of(self.subject.model))).detach()  # type: ignore[no-any-return]


def _number_of(subject: PieceSubject, baseline: str | None) -> int | None:
    """The token that stands for nothing: by default that of a mask, else of padding; None: a vector of zeros."""
    if baseline not in (None, *BASELINES):
        raise UnknownName("baseline", baseline, BASELINES)
    pad = subject.tokenizer.pad_token_id if isinstance(subject, PretrainedSubject) else None
    known = {"mask": subject.mask, "pad": pad}
    if baseline in known and known[baseline] is None:
        raise InputError(f"{subject.name} has no token '{baseline}'; take baseline='zero'.")
    wanted = [baseline] if baseline else ["mask", "pad"]
    return next((known[name] for name in wanted if known.get(name) is not None), None)


class Vectored(nn.Module):
    """A model that reads vectors in the places of its tokens, and what is made of its logits."""

    def __init__(self, subject: PieceSubject, table: nn.Module, then: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.model, self._told = subject.model, (subject, table, then)

    def forward(self, vectors: Vectors, numbers: Int[Tensor, "rows pieces"]) -> Float[Tensor, "rows classes"]:
        subject, table, then = self._told
        with instead(table, vectors), torch.backends.cudnn.flags(enabled=False):
            logits: Any = subject.logits(numbers, torch.ones_like(numbers, dtype=torch.bool))
        return then(logits.double())


def leads(logits: Float[Tensor, "rows outputs"]) -> Float[Tensor, "rows classes"]:
    """logit_y − mean over k ≠ y of logit_k; of one output ∓ that."""
    if logits.shape[1] == 1:
        return torch.cat([-logits, logits], 1)
    others = (logits.sum(1, keepdim=True) - logits) / (logits.shape[1] - 1)
    return logits - others


@contextmanager
def instead(table: nn.Module, vectors: Vectors) -> Iterator[None]:
    """The table puts out these vectors."""
    handle = table.register_forward_hook(lambda _, __, ___: vectors)
    try:
        yield
    finally:
        handle.remove()


def table_of(reading: PieceReading) -> nn.Module:
    """Where a model looks its tokens up."""
    subject = reading.subject
    if isinstance(subject, PretrainedSubject):
        return subject.model.get_input_embeddings()  # type: ignore[no-any-return]
    tables = [part for part in subject.model.modules() if isinstance(part, nn.Embedding)]
    if len(tables) != 1:
        raise SubjectError(f"{subject.name} must have one nn.Embedding, that of its tokens; it has {len(tables)}.")
    return tables[0]


def no_gradient(reading: Reading) -> str:
    """Why there is none: there must be a model that can be read, and it must use the vectors of its tokens."""
    if isinstance(reading, ModelReading):
        return ""
    pieces = pieces_of(reading)
    if pieces is None:
        return "it needs a model whose gradients can be taken: heedful's own, a transformer or a torch module."
    return missing("captum") or tried(lambda: _moves(pieces))


def _moves(reading: PieceReading) -> None:
    """Fail if vectors in the place of those of the table change nothing, as where the table is looked up otherwise."""
    one = _first(reading)
    with resting(one.subject.model), torch.no_grad(), in_a_sentence(reading.subject.name, "on vectors of tokens"):
        usual, other = (one.module(change * one.vectors, one.numbers) for change in (1, -7))
    if not torch.allclose(usual, reading.probabilities[:1].to(usual), atol=1e-4) or torch.equal(usual, other):
        raise SubjectError(f"{reading.subject.name} does not read its tokens from the table that was found.")


def _first(reading: PieceReading) -> Input:
    """The first text, and its first class."""
    return next(_inputs(reading, torch.zeros(len(reading.units), dtype=torch.int64), torch.zeros(1, dtype=torch.int64)))


def _inputs(
    reading: PieceReading,
    targets: Int[Tensor, " instances"],
    rows: Int[Tensor, " rows"] | None = None,
) -> Iterator[Input]:
    """The texts, a few of equal length at a time."""
    every = torch.arange(len(reading.units)) if rows is None else rows
    table, pieces = table_of(reading), reading.pieces
    for part in equal_lengths(pieces.lengths[every], min(reading.subject.at_once, PIECES_AT_ONCE)):
        where = positions_of(pieces.offsets, every[part]).view(len(part), -1)
        yield Input(
            rows=every[part],
            subject=reading.subject,
            table=table,
            numbers=pieces.numbers[where],
            where=where,
            special=pieces.owners[where] < 0,
            targets=targets[every[part]],
        )


def by_captum(request: Request, method: Piecewise, *, passes: int) -> Scored:
    """A number for every piece from Captum, folded into units."""
    pieces = pieces_of(request.reading)
    assert pieces is not None
    found = torch.empty(len(pieces.pieces.numbers), dtype=torch.float64)
    for one in _inputs(pieces, request.targets):
        with resting(one.subject.model), in_a_sentence(one.subject.name, "to give gradients"):
            found[one.where] = method(one).detach().cpu().double()
    return Scored(scores=folded(request.reading, found), passes=passes * len(request.units))


def _captum() -> Any:
    return load_extra("captum.attr", "captum", "Explanations by gradients of this model")


def of_own_model(request: Request, measure: str) -> Scored | None:
    """A number of `heedful.probes.saliency`, where the model is one of heedful's."""
    if not isinstance(request.reading, ModelReading):
        return None
    scores = Saliency(reading=request.reading, targets=request.targets).numbers(measure)
    return Scored(scores=scores, passes=len(request.units))


def _integrated_of_own_model(request: Request, steps: int) -> Scored:
    """Twice the steps again where their sum is not what it must be; each time both ends are read, too."""
    assert isinstance(request.reading, ModelReading)
    said = Saliency(reading=request.reading, targets=request.targets, steps=steps)
    scores, taken = said.numbers("integrated_gradient"), said.integrated.steps
    rounds = (taken / steps).log2().round().long() + 1
    passes = int((2 * taken - steps + 2 * rounds).sum())
    return Scored(scores=scores, passes=passes, remark=missed_sums(said.integrated.gap, TOLERANCE_OF_OWN))


def input_gradient(request: Request) -> Scored:
    """Σ over the features and pieces of i of x ∂p/∂x"""

    def method(one: Input) -> Tensor:
        return _captum().InputXGradient(one.module).attribute(one.vectors, **one.given).sum(2)  # type: ignore[no-any-return]

    return of_own_model(request, "input_gradient") or by_captum(request, method, passes=1)


def gradient_norm(request: Request) -> Scored:
    """The sum over the pieces of i of ‖∂p/∂x‖"""

    def method(one: Input) -> Tensor:
        found = _captum().Saliency(one.module).attribute(one.vectors, abs=False, **one.given)
        return found.norm(dim=2)  # type: ignore[no-any-return]

    return of_own_model(request, "full_gradient_norm") or by_captum(request, method, passes=1)


def integrated_gradients(request: Request, *, steps: int | None = None, baseline: str | None = None) -> Scored:
    """Σ over the features and pieces of i of (x − x') ∫ ∂p/∂x (x' + t (x − x')) dt, x' a text of nothing.

    With so many steps; without a number 20, and twice as many again for texts whose scores do not sum to p(x) − p(x').
    """
    first = at_least_one(STEPS if steps is None else steps, "steps")
    if not isinstance(request.reading, ModelReading):
        return _integrated(request, first, baseline, most=MOST_STEPS if steps is None else first)
    if baseline not in (None, "zero"):
        raise InputError("Of heedful's own models the baseline is 'zero': no vector at all.")
    return _integrated_of_own_model(request, first)


def of_steps(lengths: Lengths, *, steps: int | None = None, **_: object) -> Lengths:
    """A text is read once for each step and at both ends; without a number of steps some texts again, with more."""
    return torch.full_like(lengths, steps + 2 if steps is not None else STEPS + 2 + 2 * STEPS + 2)


def _integrated(request: Request, steps: int, baseline: str | None, most: int) -> Scored:
    pieces = pieces_of(request.reading)
    assert pieces is not None
    found = torch.empty(len(pieces.pieces.numbers), dtype=torch.float64)
    gaps = torch.full((len(request.units),), torch.inf, dtype=torch.float64)
    missed, passes = torch.arange(len(request.units)), 0
    while len(missed) and steps <= most:
        for one in _inputs(pieces, request.targets, missed):
            gaps[one.rows] = _integral(one, steps, baseline, found)
        passes += len(missed) * (steps + 2)
        missed, steps = (gaps > TOLERANCE).nonzero().squeeze(1), 2 * steps
    return Scored(scores=folded(request.reading, found), passes=passes, remark=missed_sums(gaps, TOLERANCE))


def missed_sums(gaps: Float[Tensor, " instances"], tolerance: float) -> str:
    """What must be said where integrated gradients do not sum to p(x) − p(x'), and by how much they miss it."""
    missed = gaps[gaps > tolerance]
    if not len(missed):
        return ""
    return (
        f"The scores of {len(missed):,} of {counted(len(gaps), 'text')} do not sum to what separates the text from "
        f"nothing: they miss it by up to {missed.max():.3f}, as a probability. More steps help, as in "
        "integrated_gradients@1000."
    )


def _integral(one: Input, steps: int, baseline: str | None, found: Float[Tensor, " pieces"]) -> Float[Tensor, " rows"]:
    """Write the integral; by how much its sum misses p(x) − p(x')."""
    (rows, length), nothing = one.numbers.shape, one.without_words(baseline)
    most = rows * max(1, min(one.subject.at_once, PIECES_AT_ONCE) // (rows * length))
    how = {"n_steps": steps, "internal_batch_size": most, "baselines": nothing, "return_convergence_delta": True}
    with resting(one.subject.model), in_a_sentence(one.subject.name, "to give gradients"):
        told, gap = _captum().IntegratedGradients(one.module).attribute(one.vectors, **one.given, **how)
    found[one.where] = told.detach().sum(2).cpu().double()
    return gap.detach().abs().double().cpu()  # type: ignore[no-any-return]


def deep_lift(request: Request, *, baseline: str | None = None) -> Scored:
    """DeepLIFT's rescale rule, from a text of nothing to the text, for the logit's lead over the mean of the others."""

    def method(one: Input) -> Tensor:
        return _lifted(one, baseline)

    return by_captum(request, method, passes=2)


def _lifted(one: Input, baseline: str | None) -> Float[Tensor, "rows pieces"]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Setting forward, backward hooks")
        found = (
            _captum().DeepLift(one.leading).attribute(one.vectors, baselines=one.without_words(baseline), **one.given)
        )
    return found.sum(2)  # type: ignore[no-any-return]


def no_rules(reading: Reading) -> str:
    """Why DeepLIFT does not apply: its scores must sum to what separates the text from nothing, and do not."""
    pieces = pieces_of(reading)
    if pieces is None:
        return "it needs a torch module."
    if not isinstance(pieces.subject, ModuleSubject):
        return "DeepLIFT has no rule for attention, which multiplies what depends on the text with what does."
    return no_gradient(reading) or tried(lambda: _sums_up(pieces))


def _sums_up(reading: PieceReading) -> None:
    one = _first(reading)
    with resting(one.subject.model), in_a_sentence(one.subject.name, "to be explained by DeepLIFT"):
        total = float(_lifted(one, None).detach().sum())
        with torch.no_grad():
            whole, nothing = (one.leading(x, one.numbers)[0, 0] for x in (one.vectors, one.without_words(None)))
    difference = float(whole - nothing)
    if abs(total - difference) > RULES * max(1, abs(difference)):
        raise SubjectError(
            f"DeepLIFT has no rule for something in {one.subject.name} (products such as attention, recurrent layers): "
            f"its scores of the first text sum to {total:.3f}, and should to {difference:.3f}."
        )


GRADIENTS = (
    Explainer(
        name="input_gradient",
        words="What a unit's vector adds to the probability of the class, to first order.",
        formula="Σ x ∂p/∂x over the features and pieces of a unit",
        source="Shrikumar et al. 2016; Captum's InputXGradient",
        signed=True,
        family="gradients",
        needs="heedful's own model; a transformer or a torch module with captum",
        scores=input_gradient,
        hinders=no_gradient,
    ),
    Explainer(
        name="gradient_norm",
        words="How strongly the probability of the class answers to a unit's vector.",
        formula="Σ ‖∂p/∂x‖ over the pieces of a unit",
        source="Simonyan et al. 2014; Captum's Saliency",
        signed=False,
        family="gradients",
        needs="heedful's own model; a transformer or a torch module with captum",
        scores=gradient_norm,
        hinders=no_gradient,
    ),
    Explainer(
        name="integrated_gradients",
        words="The gradients on the way from a text of nothing (masks, padding or zeros) to the text, summed.",
        formula="Σ (x − x') ∫ ∂p/∂x (x' + t (x − x')) dt over the features and pieces of a unit; 20 steps, more "
        "where the sum is not p(x) − p(x')",
        source="Sundararajan et al. 2017; Captum's IntegratedGradients",
        signed=True,
        family="gradients",
        needs="heedful's own model; a transformer or a torch module with captum",
        at=("steps",),
        scores=integrated_gradients,
        sets=of_steps,
        hinders=no_gradient,
    ),
    Explainer(
        name="deep_lift",
        words="Differences to a text of nothing, carried through the layers of a module by DeepLIFT's rescale rule.",
        formula="Σ (x − x') m over the features and pieces of a unit, m the multiplier of the rescale rule for "
        "logit_y − mean over k ≠ y of logit_k",
        source="Shrikumar et al. 2017; Captum's DeepLift",
        signed=True,
        family="gradients",
        needs="a torch module without attention or recurrent layers",
        extra="captum",
        scores=deep_lift,
        hinders=no_rules,
    ),
)
