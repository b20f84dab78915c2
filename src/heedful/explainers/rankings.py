"""What a trace says of its units in closed form (`heedful.analysis.rankings`), and numbers that are drawn."""

import numpy as np
import torch

from heedful.analysis.flips import TraceReading
from heedful.analysis.rankings import importance
from heedful.errors import InputError
from heedful.explainers.explainer import Explainer, Request, Scored
from heedful.subjects import Reading

NO_TRACE = (
    "it needs a trace, which heedful's own models have, and torch modules whose parts are named: "
    "heedful.subject(…, parts=Parts(…))."
)


def no_trace(reading: Reading) -> str:
    """Why a trace's ranking cannot be had."""
    return "" if isinstance(reading, TraceReading) else NO_TRACE


def of_trace(request: Request, name: str) -> Scored:
    """The importances of a ranking; all but attention are about the decision."""
    assert isinstance(request.reading, TraceReading)
    if name != "attention" and not bool((request.targets == request.reading.decisions.cpu()).all()):
        raise InputError(f"'{name}' explains the decision of each text, no other class: leave targets out.")
    return Scored(scores=importance(request.reading.trace, name), passes=0)


def gradient(request: Request) -> Scored:
    return of_trace(request, "gradient")


def product(request: Request) -> Scored:
    return of_trace(request, "product")


def polarity(request: Request) -> Scored:
    return of_trace(request, "polarity")


def margin(request: Request) -> Scored:
    return of_trace(request, "margin")


def random(request: Request) -> Scored:
    """As the ranking of that name draws them."""
    drawn = np.random.default_rng([request.seed, 0]).random(len(request.units.segments))
    return Scored(scores=torch.from_numpy(drawn), passes=0)


RANKINGS = (
    Explainer(
        name="gradient",
        words="By how much the probability of the decision grows with the attention weight of a unit.",
        formula="∂p_y/∂α_i",
        source="Serrano & Smith 2019",
        signed=True,
        family="trace",
        needs="a trace",
        scores=gradient,
        hinders=no_trace,
    ),
    Explainer(
        name="product",
        words="The attention weight times its gradient.",
        formula="α_i ∂p_y/∂α_i",
        source="Serrano & Smith 2019",
        signed=True,
        family="trace",
        needs="a trace",
        scores=product,
        hinders=no_trace,
    ),
    Explainer(
        name="polarity",
        words="What a unit says for the decision, whatever attention it gets.",
        formula="z_iy − mean over k ≠ y of z_ik",
        source="Sun & Lu 2020",
        signed=True,
        family="trace",
        needs="a trace",
        scores=polarity,
        hinders=no_trace,
    ),
    Explainer(
        name="margin",
        words="What a unit contributes to the decision against the runner-up class.",
        formula="α_i (z_iy − z_ik + b_y − b_k), k the runner-up",
        source="heedful",
        signed=True,
        family="trace",
        needs="a trace",
        scores=margin,
        hinders=no_trace,
    ),
    Explainer(
        name="random",
        words="A number drawn for every unit, beside which the others can be seen.",
        formula="uniform on 0 … 1",
        source="–",
        signed=False,
        family="chance",
        needs="any model",
        scores=random,
    ),
)
