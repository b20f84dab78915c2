"""`heedful.faithfulness`: explanations of any origin before a model, by every metric, with intervals over texts."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.analysis.erasure_loops import one_thread
from heedful.analysis.faithfulness.bounds import naopc_bounds
from heedful.analysis.faithfulness.cost import MOST_UNITS, cost_of_metrics
from heedful.analysis.faithfulness.curves import area
from heedful.analysis.faithfulness.looking import base_rate
from heedful.analysis.faithfulness.metric import Bounds, Case, Metric
from heedful.analysis.faithfulness.metrics import ARROWS, METRICS, find_metric
from heedful.analysis.faithfulness.removal import Asked, Noted
from heedful.analysis.flips import TraceReading
from heedful.analysis.statistics import LEVEL, RESAMPLES, means_over_instances
from heedful.errors import InputError
from heedful.explanations import Explanation
from heedful.notebook import Grid, View, Viewed, counted, listed, short
from heedful.subjects import Reading, Subject
from heedful.traces import Trace

Again = Callable[[int], Explanation]


@dataclass(frozen=True, kw_only=True, eq=False)
class Faithfulness(Viewed):
    """Explanations by metrics.

    table: one row per method and metric: value (the mean over texts), low, high (its interval over texts), count
        (texts that have a value), direction (which values are better), seconds and passes (what the measuring cost:
        changed texts that the metric is about, those that it shares with others too), remark.
    instances: one row per method, metric and text: value, null where there is none.
    bounds: of NAOPC, one row per text: the smallest and largest area of any order that is attained, what no order can
        pass, whether both ends are proven, and the gap as a share of the range; None where it was not asked for.
    remarks: by method what must be said of its explanation, where there is something.
    how: how units were taken away.
    passes, seconds: what all of it cost; changed texts that were asked about, each once.
    """

    table: pd.DataFrame
    instances: pd.DataFrame
    bounds: pd.DataFrame | None
    how: str
    passes: int
    seconds: float
    remarks: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        methods, metrics = self.table["method"].unique().tolist(), self.table["metric"].nunique()
        texts = counted(self.instances["instance"].nunique(), "text")
        return f"Faithfulness({listed(methods)}: {counted(metrics, 'metric')}, {texts}, units go by {self.how})"

    @property
    def view(self) -> View:
        wide = self.wide()
        rows = [[str(row[0]), *map(_shown, row[1:])] for row in wide.itertuples()]
        return View(
            title=repr(self),
            sentences=[f"{name}: {remark}" for name, remark in self.remarks.items()],
            parts=[Grid(header=["metric", *map(str, wide.columns)], rows=rows)],
            drawing="metrics",
            data=self.table,
        )

    def wide(self) -> pd.DataFrame:
        """The values alone, a row for each metric with an arrow to what is better, a column for each method."""
        arrows = self.table["direction"].map(ARROWS).fillna("")
        names = (self.table["metric"] + " " + arrows).str.strip().tolist()
        wide = self.table.assign(metric=names).pivot(index="metric", columns="method", values="value")
        return wide.loc[list(dict.fromkeys(names)), self.table["method"].unique().tolist()]


def _shown(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"


def faithfulness(
    subject: Subject | Reading | Trace,
    explanations: Explanation | Sequence[Explanation],
    metrics: Sequence[str | Metric] | None = None,
    *,
    how: str | None = None,
    seed: int = 0,
    rationales: Sequence[Sequence[bool]] | Bool[Tensor, " units"] | None = None,
    again: Mapping[str, Again] | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    most: int = MOST_UNITS,
) -> Faithfulness:
    """How true explanations are to a model: every metric of every explanation, with intervals over texts.

    subject: the model (it reads the texts of the explanations), a reading of these texts, or a trace of them.
    explanations: one or more, on the same units of the same texts; each is called by its method.
    metrics: names (docs/metrics.md), `comprehensiveness@0.5` for another share, or metrics themselves. None takes all
        that can be measured with what is given, `naopc` on traces only: elsewhere it asks a model thousands of times.
    how: how units go: attention, delete or mask; None takes the usual one of the reading.
    seed: draws random sets of units and resamples.
    rationales: the units that people marked, a list of marks for each text, or all marks in one row: for plausibility.
    again: by method, a function of a number that explains the same texts under small noise: for sensitivity.
    resamples, level: of the bootstrap intervals over texts.
    most: so many units of changed texts the model reads at most; what takes more is refused before it begins.

    >>> import heedful
    >>> from heedful.explanations import Explanation
    >>> scores = {"attention_weights": [0.25, 0.75], "polarity_scores": [4, -8]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 2], bias=[0], units=["good", "dull"], **scores)
    >>> attention = Explanation.of_lists([[0.25, 0.75]], targets=[0], class_names=["0", "1"], method="attention")
    >>> found = heedful.faithfulness(trace, attention, ["flip_fraction", "single_flip", "naopc"])
    >>> found.table[["method", "metric", "value", "direction"]]
          method         metric  value direction
    0  attention  flip_fraction    0.5     lower
    1  attention    single_flip    1.0    higher
    2  attention          naopc    1.0    higher
    """
    started = time.perf_counter()
    _check_numbers(seed, resamples, level)
    given = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    asked = Asked(_reading(subject, given), how)
    cases = _cases(asked, given, _marks(rationales, asked), again or {}, seed)
    chosen = _chosen(metrics, cases)
    if asked.trace is None:
        cost_of_metrics(chosen, len(cases), asked.units.lengths).check("measure this", asked.units.lengths, most)
    with one_thread():
        measured = measure(cases, chosen)
        intervals = _intervals(measured, resamples=resamples, level=level, seed=seed)
    return Faithfulness(
        table=pd.DataFrame([row.said | interval for row, interval in zip(measured, intervals, strict=True)])[COLUMNS],
        instances=pd.concat([row.instances() for row in measured], ignore_index=True),
        bounds=_bounds_table(measured),
        how=asked.how,
        passes=asked.passes,
        seconds=time.perf_counter() - started,
        remarks={one.method: one.remark for one in given if one.remark},
    )


def _check_numbers(seed: int, resamples: int, level: float) -> None:
    if seed < 0 or resamples < 1 or not 0 < level < 1:
        raise InputError(
            f"seed must be 0 or more, resamples 1 or more, level between 0 and 1; got {seed}, {resamples} and {level}."
        )


def _cases(
    asked: Asked,
    explanations: Sequence[Explanation],
    marks: Bool[Tensor, " units"] | None,
    again: Mapping[str, Again],
    seed: int,
) -> list[Case]:
    """Each explanation with the others beside it, all checked."""
    for one in explanations:
        _check(one, asked)
    if len({one.method for one in explanations}) < len(explanations):
        raise InputError("Explanations are told apart by their methods, and two have the same: give each its own name.")
    return [
        Case(
            asked=asked,
            explanation=one,
            others=tuple(other for other in explanations if other is not one),
            rationales=marks,
            again=again.get(one.method),
            seed=seed,
        )
        for one in explanations
    ]


COLUMNS = ["method", "metric", "value", "low", "high", "count", "direction", "seconds", "passes", "remark"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The values of one metric of one explanation, and what they cost."""

    case: Case
    metric: Metric
    values: Float[Tensor, " instances"]
    seconds: float
    passes: int
    remark: str

    @property
    def said(self) -> dict[str, Any]:
        found = {"method": self.case.explanation.method, "metric": self.metric.name, "direction": self.metric.direction}
        return found | {"seconds": self.seconds, "passes": self.passes, "remark": self.remark}

    def instances(self) -> pd.DataFrame:
        named = {"method": self.case.explanation.method, "metric": self.metric.name}
        return pd.DataFrame(named | {"instance": np.arange(len(self.values)), "value": self.values.numpy()})


def measure(cases: Sequence[Case], metrics: Sequence[Metric]) -> list[Measured]:
    """Every metric of every case; all questions are noted first, so that each set of units is asked about once."""
    wanted = [(case, metric) for case in cases for metric in metrics]
    noted = [
        [] if metric.remark(case) else [case.asked.note(one) for one in metric.asks(case)] for case, metric in wanted
    ]
    cases_with_ends = _with_bounds(cases) if any(metric.bounded for metric in metrics) else cases
    ends = dict(zip(map(id, cases), cases_with_ends, strict=True))
    reading = _read_all(cases, noted)
    everything = max(1, sum(_passes(some) for some in noted))
    return [
        _measured(ends[id(case)], metric, some, reading * _passes(some) / everything)
        for (case, metric), some in zip(wanted, noted, strict=True)
    ]


def _read_all(cases: Sequence[Case], noted: Sequence[Sequence[Noted]]) -> float:
    """Ask everything that waits; the seconds it took."""
    started = time.perf_counter()
    questions = [one for some in noted for one in some if isinstance(one.asked, Tensor)]
    if questions:
        cases[0].asked.hear(questions[0])
    return time.perf_counter() - started


def _passes(noted: Sequence[Noted]) -> int:
    return sum(one.passes for one in noted)


def _measured(case: Case, metric: Metric, noted: Sequence[Noted], reading: float) -> Measured:
    started, remark = time.perf_counter(), metric.remark(case)
    if remark:
        values = torch.full((len(case.units),), torch.nan, dtype=torch.float64)
    else:
        values = metric.value(case, [case.asked.hear(one) for one in noted])
        remark = _remark(case, metric)
    seconds = reading + time.perf_counter() - started
    return Measured(case=case, metric=metric, values=values, seconds=seconds, passes=_passes(noted), remark=remark)


def _remark(case: Case, metric: Metric) -> str:
    """What must be said beside a value."""
    if "rationales" in metric.needs:
        rate = base_rate(case)
        return "no unit is marked" if math.isnan(rate) else f"base rate {rate:.3f}"
    if not metric.bounded or case.bounds is None:
        return ""
    proven, gap = case.bounds.proven, case.bounds.gap
    if not bool(proven.any()) and bool(gap.isnan().all()):
        return "ends searched by a beam, not proven"
    largest = gap[gap.isfinite()].max() if bool(gap.isfinite().any()) else torch.tensor(torch.nan)
    return (
        f"both ends proven on {proven.double().mean():.1%} of the texts; largest known gap {largest:.2%} of the range"
    )


def _with_bounds(cases: Sequence[Case]) -> list[Case]:
    """The cases with the ends of all orders, which are the same for explanations of the same classes."""
    found: dict[bytes, Bounds] = {}
    for case in cases:
        targets = case.explanation.targets
        key = targets.numpy().tobytes()
        bounds = found.get(key) or naopc_bounds(case.asked, targets)
        attained = area(case, [case.asked.hear(case.asked.note(case.curve()))])
        found[key] = bounds.widened(attained)
    return [replace(case, bounds=found[case.explanation.targets.numpy().tobytes()]) for case in cases]


def _bounds_table(measured: Sequence[Measured]) -> pd.DataFrame | None:
    bounds = next((row.case.bounds for row in measured if row.metric.bounded), None)
    if bounds is None:
        return None
    names = ("low", "high", "outer_low", "outer_high", "proven", "gap")
    columns = {name: getattr(bounds, name).numpy() for name in names}
    return pd.DataFrame({"instance": np.arange(len(bounds.low)), **columns})


def _reading(subject: Subject | Reading | Trace, explanations: Sequence[Explanation]) -> Reading:
    """What is asked: a trace as a reading, a subject's reading of the explained texts, or what is a reading already."""
    if not explanations:
        raise InputError("There is nothing to measure: give one explanation or more.")
    other = next((one for one in explanations if not isinstance(one, Explanation)), None)
    if other is not None:
        raise InputError(f"What is measured is an `heedful.Explanation`, or several; got {short(repr(other))}.")
    if isinstance(subject, Trace):
        return TraceReading(trace=subject)
    if isinstance(subject, Subject):
        texts = explanations[0].texts
        if texts is None:
            raise InputError(
                "A subject reads the texts that are explained, and the explanation has none: give it its texts, or a "
                "reading of them instead of the subject."
            )
        return subject.read(texts)
    if isinstance(subject, Reading):
        return subject
    raise InputError(
        f"Faithfulness is measured before a subject, a reading or a trace; got a {type(subject).__name__}. "
        "`heedful.subject` makes a subject of a model."
    )


def _check(explanation: Explanation, asked: Asked) -> None:
    """Refuse an explanation that is not of the units and classes of the reading."""
    name, units = explanation.method, asked.units
    if len(explanation) != len(units):
        raise InputError(f"'{name}' explains {counted(len(explanation), 'text')}, the reading has {len(units):,}.")
    wrong = (explanation.lengths != units.lengths).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"'{name}' must explain the units of the reading: text {row} has {int(explanation.lengths[row])} scores "
            f"and {int(units.lengths[row])} units. Explain the same texts, cut into the same units."
        )
    for row, (own, read) in enumerate(zip(explanation.texts or (), units.texts or (), strict=False)):
        if own != read:
            raise InputError(
                f"'{name}' explains other texts than the reading has: text {row} is '{short(own)}', not "
                f"'{short(read)}'. Explain the same texts, in the same order."
            )
    _check_classes(explanation, asked)


def _check_classes(explanation: Explanation, asked: Asked) -> None:
    """Refuse other classes, and the same ones in another order: which is explained is a number."""
    name, own, known = explanation.method, explanation.class_names, tuple(asked.reading.class_names)
    if len(own) != len(known):
        raise InputError(f"'{name}' knows {len(own)} classes, the reading {len(known)}.")
    if own != known and set(own) == set(known):
        raise InputError(f"'{name}' has the classes {listed(own)}, the reading {listed(known)}: give one order.")
    targets = explanation.targets
    if len(targets) != len(asked.units) or not bool(((targets >= 0) & (targets < len(known))).all()):
        raise InputError(f"'{name}' must have a class from 0 to {len(known) - 1} as target of each of its texts.")


def _marks(rationales: Any, asked: Asked) -> Bool[Tensor, " units"] | None:
    if rationales is None or isinstance(rationales, Tensor):
        flat = rationales
    else:
        lengths = [len(one) for one in rationales]
        if lengths != asked.units.lengths.tolist():
            raise InputError(
                "rationales must have a mark for each unit of each text, in the order of the explanations."
            )
        flat = torch.tensor([bool(mark) for one in rationales for mark in one])
    if flat is not None and list(flat.shape) != [len(asked.units.segments)]:
        raise InputError(
            f"rationales must have a mark for each unit: expected {len(asked.units.segments)}, got {list(flat.shape)}."
        )
    return None if flat is None else flat.bool()


def _chosen(metrics: Sequence[str | Metric] | None, cases: Sequence[Case]) -> list[Metric]:
    if metrics is not None:
        found = [find_metric(one) for one in ([metrics] if isinstance(metrics, str | Metric) else metrics)]
        return list({one.name: one for one in found}.values())
    exact = cases[0].asked.trace is not None
    possible = [one for one in METRICS.values() if exact or not one.bounded]
    return [one for one in possible if any(not one.remark(case) for case in cases)]


def _intervals(measured: Sequence[Measured], *, resamples: int, level: float, seed: int) -> list[dict[str, Any]]:
    values = np.stack([row.values.numpy() for row in measured])
    ends = np.array([[row.metric.low, row.metric.high] for row in measured], dtype=np.float64)
    found = means_over_instances(values, ends, resamples=resamples, level=level, seed=seed)
    return [{"value": one.value, "low": one.low, "high": one.high, "count": one.count} for one in found]
