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


def random(request: Request) -> Scored:
    """As the ranking of that name draws them."""
    drawn = np.random.default_rng([request.seed, 0]).random(len(request.units.segments))
    return Scored(scores=torch.from_numpy(drawn), passes=0)


def _ranking(name: str, words: str, formula: str, source: str) -> Explainer:
    def scores(request: Request) -> Scored:
        return of_trace(request, name)

    return Explainer(
        name=name,
        words=words,
        formula=formula,
        source=source,
        signed=True,
        family="trace",
        needs="a trace",
        scores=scores,
        hinders=no_trace,
    )


RANKINGS = (
    _ranking(
        "gradient",
        "By how much the probability of the decision grows with the attention weight of a unit.",
        "∂p_y/∂α_i",
        "Serrano & Smith 2019",
    ),
    _ranking("product", "The attention weight times its gradient.", "α_i ∂p_y/∂α_i", "Serrano & Smith 2019"),
    _ranking(
        "polarity",
        "What a unit says for the decision, whatever attention it gets.",
        "z_iy − mean over k ≠ y of z_ik",
        "Sun & Lu 2020",
    ),
    _ranking(
        "margin",
        "What a unit contributes to the decision against the runner-up class.",
        "α_i (z_iy − z_ik + b_y − b_k), k the runner-up",
        "heedful",
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
