"""Explainers that only ask: what the model says without some units, taken away in the usual way of the reading.

Which sets of units are asked about never depends on the answers. So Captum's methods run twice on a vector of marks,
one for each unit: first on texts of each length to learn what they will ask, without a model; then, when all sets of
all texts were asked in few large batches, once for every text with the answers.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.analysis.faithfulness.cost import Lengths
from heedful.analysis.faithfulness.removal import Noted, Sets, singles
from heedful.errors import load_extra
from heedful.explainers.explainer import Explainer, Request, Scored, at_least_one, lengths_of_texts

Method = Callable[[Any, "Script", Float[Tensor, "1 units"]], Float[Tensor, "..."]]
"""One of Captum's methods: of captum.attr, what it asks, and the marks of a whole text, the scores of its units."""

SAMPLES_AT_LEAST = 100
WINDOW, ORDERS = 3, 25
ROUNDING = 1e-9
KERNEL_WIDTH = 0.25
"""Of LIME's kernel over the cosine distance, as in its authors' code (25 over a hundred times the distance)."""


def leave_one_out(request: Request) -> Scored:
    """p(x) − p(x without i)"""
    noted = request.asked.note(singles(request.units))
    rows = request.units.segments
    after = request.asked.hear(noted).gather(1, request.targets[rows][:, None]).squeeze(1)
    return Scored(scores=request.whole[rows] - after, passes=noted.passes)


def occlusion(request: Request, *, width: int = WINDOW) -> Scored:
    """The mean over all windows with i of p(x) − p(x without the window); a shorter text is one window."""
    most = at_least_one(width, "width")

    def method(captum: Any, forward: Script, whole: Float[Tensor, "1 units"]) -> Tensor:
        window = (min(most, whole.shape[1]),)
        how = {"sliding_window_shapes": window, "perturbations_per_eval": whole.shape[1]}
        return captum.Occlusion(forward).attribute(whole, **how)  # type: ignore[no-any-return]

    return by_captum(request, method)


def shapley(request: Request, *, orders: int = ORDERS) -> Scored:
    """The mean over orders of what i adds to the units before it; all orders of a short text, else so many drawn."""
    most = at_least_one(orders, "orders")

    def method(captum: Any, forward: Script, whole: Float[Tensor, "1 units"]) -> Tensor:
        how = {"perturbations_per_eval": whole.shape[1]}
        if math.factorial(min(whole.shape[1], 20)) <= most:
            return captum.ShapleyValues(forward).attribute(whole, **how)  # type: ignore[no-any-return]
        found = captum.ShapleyValueSampling(forward)
        return found.attribute(whole, n_samples=most, **how)  # type: ignore[no-any-return]

    return by_captum(request, method)


def lime(request: Request, *, samples: int | None = None) -> Scored:
    """The weights of a linear model of the answers about random halves of a text, those near it counting more."""

    def method(captum: Any, forward: Script, whole: Float[Tensor, "1 units"]) -> Tensor:
        found = captum.Lime(forward, interpretable_model=LeastSquares(forward), similarity_func=nearness)
        return _sampled(found, whole, samples)

    return by_captum(request, method)


def nearness(_: Tensor, marks: Float[Tensor, "1 units"], __: Tensor, **___: object) -> float:
    """√exp(−d²/0.25²), d the cosine distance between the marks of a set and those of the whole text."""
    distance = 1 - math.sqrt(float(marks.mean()))
    return math.exp(-((distance / KERNEL_WIDTH) ** 2) / 2)


def kernel_shap(request: Request, *, samples: int | None = None) -> Scored:
    """The weights of a linear model of the answers, with the kernel under which they estimate Shapley values."""

    def method(captum: Any, forward: Script, whole: Float[Tensor, "1 units"]) -> Tensor:
        found = captum.KernelShap(forward)
        found.interpretable_model = LeastSquares(forward)
        return _sampled(found, whole, samples)

    return by_captum(request, method)


def each_unit(lengths: Lengths, **_: object) -> Lengths:
    """As many sets as a text has units, nearly."""
    return lengths


def of_samples(lengths: Lengths, *, samples: int | None = None) -> Lengths:
    return SAMPLES_AT_LEAST + 2 * lengths if samples is None else torch.full_like(lengths, samples)


def of_orders(lengths: Lengths, *, orders: int = ORDERS) -> Lengths:
    return orders * lengths


def _sampled(found: Any, whole: Float[Tensor, "1 units"], samples: int | None) -> Tensor:
    """By default more sets for longer texts; of a single unit there is nothing to sample."""
    units = whole.shape[1]
    if units == 1:
        told: Tensor = found.forward_func(torch.tensor([[1.0], [0.0]]))
        return (told[:1] - told[1:])[None]
    count = SAMPLES_AT_LEAST + 2 * units if samples is None else at_least_one(samples, "samples")
    found.attribute(whole, n_samples=count, perturbations_per_eval=count)
    return found.interpretable_model.weights  # type: ignore[no-any-return]


def by_captum(request: Request, method: Method) -> Scored:
    """The scores of one of Captum's methods; the same chance for every text."""
    captum = load_extra("captum.attr", "captum", "These explanations")
    scores = torch.empty(len(request.units.segments), dtype=torch.float64)
    texts = []
    for length, rows in lengths_of_texts(request.units).items():
        script = Script()
        _run(method, captum, script, length, request.seed)
        texts += [(row, length, script, _noted(request, row, script.gone)) for row in rows.tolist()]
    for row, length, script, noted in texts:
        told = request.asked.hear(noted)[:, int(request.targets[row])]
        place = int(request.units.offsets[row])
        scores[place : place + length] = _run(method, captum, script.with_answers(told), length, request.seed)
    return Scored(scores=scores, passes=sum(noted.passes for *_, noted in texts))


def _noted(request: Request, row: int, gone: Bool[Tensor, "sets units"]) -> Noted:
    return request.asked.note(Sets(rows=torch.full((len(gone),), row), gone=gone.flatten()))


def _run(method: Method, captum: Any, script: "Script", units: int, seed: int) -> Float[Tensor, " units"]:
    with drawing(seed):
        return method(captum, script, torch.ones(1, units, dtype=torch.float64)).detach().double().flatten()


@contextmanager
def drawing(seed: int) -> Iterator[None]:
    """Torch draws from this seed, and afterwards from where it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@dataclass(frozen=True, kw_only=True, eq=False)
class Script:
    """What a method asks, call after call; and once the answers are there, what it is told.

    From marks of the units that are there to the probability of the class that is explained.

    asked: the units that are away in each set.
    """

    asked: list[Bool[Tensor, "sets units"]] = field(default_factory=list)
    answers: Float[Tensor, " sets"] | None = None

    @property
    def gone(self) -> Bool[Tensor, "sets units"]:
        """The units that are away in each set."""
        return torch.cat(self.asked)

    def with_answers(self, answers: Float[Tensor, " sets"]) -> "Script":
        """The same questions in the same order, with answers."""
        return Script(asked=[], answers=answers)

    def __call__(self, marks: Float[Tensor, "sets units"]) -> Float[Tensor, " sets"]:
        self.asked.append(marks == 0)  # an eighth of the marks themselves
        return self.last(len(marks))

    def last(self, count: int) -> Float[Tensor, " sets"]:
        """The last so many answers, in double precision; zeros before they are there."""
        done = sum(map(len, self.asked))
        return torch.zeros(count, dtype=torch.float64) if self.answers is None else self.answers[done - count : done]


class LeastSquares:
    """A linear model with a constant by weighted least squares, of equally good ones the smallest, as Captum asks.

    Captum rounds the answers to single precision, in which sure decisions have no differences; here they are those that
    were given, and weights keep their digits. What is nothing but rounding beside how far the answers move is zero:
    units that do nothing are alike.
    """

    weights: Tensor

    def __init__(self, script: Script) -> None:
        self.script = script

    def fit(self, data: Any) -> None:
        marks, _, near = (part.double() for part in next(iter(data)))
        told = self.script.last(len(marks))
        root = near.flatten().sqrt()[:, None]
        columns = torch.cat([marks, torch.ones(len(marks), 1, dtype=torch.float64)], 1)
        moved = (told - told[0])[:, None]  # the constant takes what is the same everywhere
        found = torch.linalg.lstsq(root * columns, root * moved, driver="gelsd").solution[:-1].T
        self.weights = found.where(found.abs() > ROUNDING * moved.abs().max(), 0.0)

    def representation(self) -> Float[Tensor, "1 units"]:
        return self.weights


ASKED = (
    Explainer(
        name="leave_one_out",
        words="What the class loses when a unit alone is taken away.",
        formula="p(x) − p(x without i)",
        source="Li, Monroe & Jurafsky 2016",
        signed=True,
        family="asked",
        needs="any model",
        scores=leave_one_out,
        sets=each_unit,
    ),
    Explainer(
        name="occlusion",
        words="What the class loses when a window of neighbouring units is taken away, the mean over the windows.",
        formula="mean over windows w ∋ i of p(x) − p(x without w); w of 3 units",
        source="Zeiler & Fergus 2014; Captum's Occlusion",
        signed=True,
        family="asked",
        needs="any model",
        extra="captum",
        at=("width",),
        scores=occlusion,
        sets=each_unit,
    ),
    Explainer(
        name="lime",
        words="A unit's weight in a linear model of what the model says of random parts of the text.",
        formula="weighted least squares of p over sets that keep each unit with chance ½; exp(−d²/0.25²), d the cosine "
        "distance to the whole text; 100 + 2 n sets",
        source="Ribeiro et al. 2016; Captum's Lime",
        signed=True,
        family="asked",
        needs="any model",
        extra="captum",
        at=("samples",),
        scores=lime,
        sets=of_samples,
    ),
    Explainer(
        name="shapley",
        words="What a unit adds to those that come before it, the mean over random orders of the units.",
        formula="mean over 25 orders of p(before i, and i) − p(before i); exact where there are no more orders",
        source="Štrumbelj & Kononenko 2010; Captum's ShapleyValueSampling",
        signed=True,
        family="asked",
        needs="any model",
        extra="captum",
        at=("orders",),
        scores=shapley,
        sets=of_orders,
    ),
    Explainer(
        name="kernel_shap",
        words="Shapley values estimated by one linear model of what the model says of random parts of the text.",
        formula="least squares of p over sets of k units drawn as (n − 1)/(k (n − k)), exact for none and for all; "
        "100 + 2 n sets",
        source="Lundberg & Lee 2017; Captum's KernelShap",
        signed=True,
        family="asked",
        needs="any model",
        extra="captum",
        at=("samples",),
        scores=kernel_shap,
        sets=of_samples,
    ),
)
