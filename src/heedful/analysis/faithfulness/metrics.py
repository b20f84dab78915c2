"""All metrics by name, and their cards as a page."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from heedful.analysis.agreement import tops_of
from heedful.analysis.faithfulness.drawing import DRAWING
from heedful.analysis.faithfulness.looking import LOOKING
from heedful.analysis.faithfulness.metric import HIGHER, LOWER, Metric
from heedful.analysis.faithfulness.removing import REMOVING, comprehensiveness, log_odds, sufficiency
from heedful.errors import InputError, UnknownName

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (*REMOVING, *DRAWING, *LOOKING)}

AT_A_SHARE: Mapping[str, Any] = {
    "comprehensiveness": comprehensiveness,
    "sufficiency": sufficiency,
    "log_odds": log_odds,
}
"""Metrics of the first units of a text that can be had at another share: `comprehensiveness@0.5`."""

ARROWS = {HIGHER: "↑", LOWER: "↓"}


def find_metric(by: str | Metric) -> Metric:
    """The metric of that name; `name@share` takes another share (or number) of units where that is possible."""
    if isinstance(by, Metric):
        return by
    name, at, share = by.partition("@")
    if name not in METRICS:
        raise UnknownName("metric", name, METRICS)
    if not at:
        return METRICS[name]
    if name not in AT_A_SHARE:
        raise UnknownName("metric at a share of the units", name, AT_A_SHARE)
    try:
        wanted = float(share)
    except ValueError as error:
        raise InputError(f"'{by}' must have a number after @, such as {name}@0.5.") from error
    tops_of(torch.ones(1, dtype=torch.int64), wanted)  # refuses what is no share and no number of units
    found: Metric = AT_A_SHARE[name](wanted)
    return found


PREFACE = """# Measures of faithfulness

Each metric of `heedful.faithfulness` has a card: what it computes, who defined it, which values are better, what makes
it look good without being good, and where other libraries differ. p is the probability of the class that is explained,
usually the decision; L is how many units a text has; an explanation orders the units by its scores, the largest first,
equal ones by position.

The example of every card is the text *a good dull film* before a classifier that can be done on paper. Its log-odds are
the sum of the weights 0, ln 9, −ln 3, 0 of the words that are there, so p = 3/4 for the whole text, 1/4 without *good*,
9/10 without *dull* and 1/2 without both. The first number is the value of the weights themselves taken as an
explanation, the second that of a pretended attention .1, .3, .5, .1. (For plausibility people marked *good dull*; under
noise the weights become 0, ln 9, −ln 3, ln 3 and the attention .1, .3, .4, .2; the weights cost half a second and five
passes, the attention a quarter and one.)

Whether a metric can tell a true explanation from a false one is measured on planted worlds:
[faithfulness.md](faithfulness.md).
"""


def metric_page() -> str:
    """All cards as Markdown: docs/metrics.md."""
    return "\n".join([PREFACE, *map(_card, METRICS.values())])


def _card(metric: Metric) -> str:
    rows = {
        "formula": metric.formula,
        "source": metric.source,
        "better": metric.direction,
        "range": _range(metric.low, metric.high),
        "inflated by": metric.inflates,
        "elsewhere": metric.elsewhere.strip(),
        "signs": metric.signs,
        "needs": _needs(metric),
        "example": " | ".join(metric.example),
    }
    lines = [f"- **{name}**: {text}" for name, text in rows.items()]
    return "\n".join([f"## {metric.title} (`{metric.name}`)", "", *lines, ""])


def _range(low: int | float | None, high: int | float | None) -> str:
    ends = ("−∞" if low is None else f"{low:g}", "∞" if high is None else f"{high:g}")
    return " … ".join(ends).replace("-", "−")


def _needs(metric: Metric) -> str:
    needs = [*metric.needs, *(["chance (seed)"] if metric.chance else [])]
    return ", ".join([*(["the model"] if metric.sees_model else []), *needs]) or "the scores alone"


def cards(metrics: Sequence[str | Metric] = tuple(METRICS)) -> list[dict[str, Any]]:
    """The cards as plain values: name, title, formula, source, direction, low, high, inflates, elsewhere, signs, …"""
    names = ("name", "title", "formula", "source", "direction", "low", "high", "inflates", "elsewhere", "signs")
    more = ("needs", "chance", "sees_model", "example")
    return [{name: getattr(find_metric(one), name) for name in (*names, *more)} for one in metrics]
