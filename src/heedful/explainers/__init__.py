"""`heedful.explain`: one number for every unit of texts, by any explainer that can be had of their reading."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.adapters.asking import THREADS
from heedful.analysis.faithfulness.cost import MOST_UNITS, total
from heedful.analysis.faithfulness.removal import Asked
from heedful.analysis.flips import TraceReading
from heedful.errors import InputError, load_extra
from heedful.explainers.explainer import Explainer, Request, Scored
from heedful.explainers.listening import pieces_of
from heedful.explainers.registry import EXPLAINERS, find_explainer
from heedful.explanations import Explanation, class_number
from heedful.models.kernels import limited_threads
from heedful.notebook import listed
from heedful.subjects import Reading, Subject
from heedful.traces import Trace

__all__ = ["EXPLAINERS", "Explainer", "Request", "Scored", "explain", "explain_all", "find_explainer", "possible"]

Watch = Callable[[int, int, str], None]
"""Is told how many of how many explanations are there, and which the last one is."""

Class = int | str | np.integer[Any]
Targets = Class | Sequence[Class] | NDArray[Any] | Int[Tensor, " instances"] | None


def explain(
    subject: Subject | Reading | Trace,
    texts: str | Sequence[str] | None = None,
    by: str | Explainer = "attention",
    *,
    targets: Targets = None,
    how: str | None = None,
    seed: int = 0,
    most: int = MOST_UNITS,
    **options: Any,
) -> Explanation:
    """One number for every unit of some texts: how much it speaks for a class, as an explainer sees it.

    subject: the model (`heedful.subject`), which reads the texts; a reading of texts; or a trace.
    texts: what a subject reads; of a reading or a trace they are there already.
    by: a name (`heedful explainers list`), also with numbers as in `attention@2` (a layer, from 0 on), `attention@2.5`
        (one of its heads), `lime@500` (so many samples) or `integrated_gradients@50` (steps); or an explainer.
    targets: the class that is explained, a name or a number: one for all texts, or one for each. None takes the
        decision of each text.
    how: how units are taken away by explainers that ask: attention, delete or mask; None takes the usual way.
    seed: draws what is drawn; chance elsewhere is neither used nor moved.
    most: so many units of changed texts the model reads at most; what takes more is refused before it begins.
    options: of the explainer (`heedful explainers show NAME`).

    The answer says what it cost: seconds, and passes, which are the texts that the model read for it, with gradients or
    without. That the whole texts were read once, for all explanations of a reading, is not counted.

    >>> import heedful
    >>> good = heedful.subject(lambda texts: [0.75 if "good" in text else 0.25 for text in texts])
    >>> found = heedful.explain(good, ["a good film"], by="leave_one_out")
    >>> found.shown, found.scores.tolist(), found.passes
    (['a', 'good', 'film'], [0.0, 0.5, 0.0], 3)
    """
    found = find_explainer(by)
    explainer = found.with_options(options) if options else found
    asked = Asked(reading_of(subject, texts), how)
    _refuse(explainer, asked.reading)
    _check_cost([explainer], asked, most)
    return _explained(Request(asked=asked, targets=_targets(targets, asked.reading), seed=seed), explainer)


def explain_all(
    subject: Reading | Trace,
    names: Sequence[str | Explainer] | None = None,
    *,
    targets: Targets = None,
    how: str | None = None,
    seed: int = 0,
    most: int = MOST_UNITS,
    watch: Watch | None = None,
) -> list[Explanation]:
    """Explanations of one reading, which is asked about every set of units once, whoever wants to know.

    names: by which explainers; None takes all that can be had (`possible`).
    most: so many units of changed texts the model reads at most for all of them; more are refused before they begin.
    watch: is told how many of how many are there, and the name of the last one.

    The seconds of an explanation leave out what one before it had asked already; its passes count it.
    """
    asked = Asked(reading_of(subject, None), how)
    request = Request(asked=asked, targets=_targets(targets, asked.reading), seed=seed)
    explainers = [find_explainer(one) for one in (possible(asked.reading) if names is None else names)]
    for explainer in explainers:
        _refuse(explainer, asked.reading)  # before any of them is paid for
    _check_cost(explainers, asked, most)
    found = []
    for explainer in explainers:
        found.append(_explained(request, explainer))
        if watch is not None:
            watch(len(found), len(explainers), explainer.name)
    return found


def possible(reading: Reading) -> list[str]:
    """The names of all explainers that can be had of a reading."""
    return [name for name, explainer in EXPLAINERS.items() if not explainer.why_not(reading)]


def reading_of(subject: object, texts: str | Sequence[str] | None) -> Reading:
    """What is explained: the reading of a subject, a reading that is there, or a trace as a reading."""
    if not isinstance(subject, Trace | Reading | Subject):
        raise InputError(
            f"What is explained is a subject, a reading or a trace; got a {type(subject).__name__}. "
            "`heedful.subject` makes a subject of a model."
        )
    if not isinstance(subject, Trace | Reading):
        if texts is None:
            raise InputError(f"{subject.name} reads texts: heedful.explain(subject, texts).")
        return subject.read([texts] if isinstance(texts, str) else texts)
    if texts is not None:
        raise InputError("A reading or a trace is of texts that were read already: leave texts out.")
    return TraceReading(trace=subject) if isinstance(subject, Trace) else subject


def _explained(request: Request, explainer: Explainer) -> Explanation:
    started, pieces = time.perf_counter(), pieces_of(request.reading)
    with limited_threads(THREADS if pieces is None else pieces.subject.threads):
        found = explainer.of(request)
    return Explanation.on(
        request.units,
        found.scores,
        request.targets,
        request.reading.class_names,
        method=explainer.name,
        signed=explainer.signed,
        seconds=time.perf_counter() - started,
        passes=found.passes,
        remark=found.remark,
    )


def _refuse(explainer: Explainer, reading: Reading) -> None:
    """Say why an explainer cannot be had."""
    if explainer.extra:
        load_extra(explainer.extra, explainer.extra, f"Explanations by {explainer.name}")
    against = explainer.why_not(reading)
    if against:
        raise InputError(f"'{explainer.name}' cannot be had here: {against}")


def _check_cost(explainers: Sequence[Explainer], asked: Asked, most: int) -> None:
    """Refuse what takes too long; a trace has its answers without reading."""
    if asked.trace is None:
        names, lengths = listed([one.name for one in explainers]), asked.units.lengths
        total(one.cost(asked.units) for one in explainers).check(f"explain by {names}", lengths, most)


def _targets(given: Targets, reading: Reading) -> Int[Tensor, " instances"]:
    """The number of the class of each text."""
    texts, classes = len(reading.units), tuple(reading.class_names)
    if given is None:
        return reading.decisions.cpu()
    plain = given.tolist() if isinstance(given, Tensor | np.ndarray | np.integer) else given
    every = [plain] * texts if isinstance(plain, int | str) else list(plain)
    if len(every) != texts:
        raise InputError(f"targets must be one class for all texts, or one for each of {texts:,}; got {len(every):,}.")
    return torch.tensor([class_number(one, classes) for one in every])
