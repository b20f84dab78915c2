"""Who watches the metrics: how often each prefers the truth, where the truth is known (Chan et al. 2022).

Diagnosticity is the share of texts on which a metric prefers the true importances over a control; equal values count
half. The control is the truth **permuted** among the units of the text: it has the same numbers in other places, so a
metric that never sees the model cannot tell the two apart and gets one half. (Beside random noise the entropy of an
explanation seems to know the truth, because noise is spread out.) The truth upside down is a second control.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.erasure_loops import one_thread
from heedful.analysis.faithfulness.metric import LOWER, Case, Metric
from heedful.analysis.faithfulness.metrics import METRICS, find_metric
from heedful.analysis.faithfulness.planted import MAKERS, World, plant
from heedful.analysis.faithfulness.removal import Asked
from heedful.analysis.faithfulness.suite import Measured, measure
from heedful.analysis.statistics import Estimate, means_over_instances
from heedful.errors import InputError
from heedful.explanations import Explanation

PERMUTED, INVERTED = "permuted truth", "inverted truth"
PERMUTATIONS = 5
SAME = 1e-9
"""Values that differ by less are equal: it is what rounding leaves."""

TRUSTED = 0.9
"""A metric is trusted where the interval of its diagnosticity lies above this."""

TRUST, DISTRUST = "trust", "do not trust here"

TRUSTED_METRICS = (
    "correlation", "infidelity", "aopc_comprehensiveness", "tau_loo", "soft_comprehensiveness", "aopc", "naopc",
    "deletion",
)  # fmt: skip
"""The metrics that `diagnosticity()` trusts in all four worlds (docs/faithfulness.md)."""


def diagnosticity(
    worlds: Mapping[str, World] | None = None,
    metrics: Sequence[str | Metric] | None = None,
    *,
    texts: int = 200,
    permutations: int = PERMUTATIONS,
    how: str | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """How often each metric prefers the truth over the same numbers in other places, world by world.

    worlds: readings with true importances, by name: one's own planted corpus. None plants four of `texts` texts each:
        additive, and with OR, AND and negation.
    metrics: names or metrics; None takes all that need nothing but an explanation and a reading.
    permutations: how often the truth of each text is permuted.
    how: how units go, None as each reading usually does it.
    seed: plants, permutes, and draws what metrics draw.

    Columns: metric, sees_model, world, control, diagnosticity (the share of texts, equal values half), low, high,
    texts (that have a value for both), ties (the share of comparisons of equal values), verdict (against permuted
    truth: trust where low is above .9). One more row per metric has the world `all`: the smallest of the worlds, and
    trust only where every world says so.
    """
    if texts < 1 or permutations < 1:
        raise InputError(f"texts and permutations must be 1 or more; got {texts} and {permutations}.")
    chosen = [find_metric(one) for one in metrics or [name for name, one in METRICS.items() if not one.needs]]
    planted = worlds or {name: plant(name, texts=texts, seed=seed) for name in MAKERS}
    rows = [
        row
        for name, world in planted.items()
        for row in _of_world(name, world, chosen, how=how, permutations=permutations, seed=seed)
    ]
    found = pd.DataFrame(rows)
    return pd.concat([found, _over_worlds(found)], ignore_index=True) if len(planted) > 1 else found


def _of_world(
    name: str, world: World, metrics: Sequence[Metric], *, how: str | None, permutations: int, seed: int
) -> list[dict[str, Any]]:
    asked = Asked(world.reading, how)
    truth = world.truth
    if not torch.equal(truth.offsets, asked.units.offsets):
        raise InputError(f"The true importances of '{name}' must be of the units of its reading.")
    controls = [permuted(truth, seed=seed, number=number) for number in range(permutations)]
    controls.append(truth.with_scores(-truth.scores, INVERTED))
    cases = [Case(asked=asked, explanation=one, seed=seed) for one in (truth, *controls)]
    with one_thread():
        by_metric = _grouped(measure(cases, metrics))
    said, shares = [], []
    for metric in metrics:
        own, *others = (row.values for row in by_metric[metric.name])
        for control, values in ((PERMUTED, others[:-1]), (INVERTED, others[-1:])):
            found = torch.stack([preferred(own, other, metric.direction) for other in values])
            ties = float((found == 0.5).sum() / found.isfinite().sum().clamp(min=1))
            named = {"metric": metric.name, "sees_model": metric.sees_model, "world": name, "control": control}
            said.append(named | {"ties": ties})
            shares.append(found.mean(0).numpy())
    estimates = means_over_instances(np.stack(shares), np.tile([0.0, 1.0], (len(shares), 1)), seed=seed)
    return [one | _judged(found) for one, found in zip(said, estimates, strict=True)]


def _grouped(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = {}
    for row in measured:
        found.setdefault(row.metric.name, []).append(row)
    return found


def preferred(
    truth: Float[Tensor, " instances"], control: Float[Tensor, " instances"], direction: str
) -> Float[Tensor, " instances"]:
    """1 where the truth has the better value, ½ where both have the same, else 0; without a direction higher is better.

    Not a number where one of them has no value.
    """
    ahead = (control - truth) if direction == LOWER else (truth - control)
    found = torch.where(ahead.abs() <= SAME, 0.5, (ahead > 0).double())
    return found.where(ahead.isfinite(), torch.nan)


def permuted(truth: Explanation, *, seed: int = 0, number: int = 0) -> Explanation:
    """The same numbers in other places of the same texts, drawn by chance."""
    keys = torch.from_numpy(np.random.default_rng([seed, number]).random(len(truth.scores)))
    drawn = keys.argsort()
    return truth.with_scores(truth.scores[drawn[truth.segments[drawn].argsort(stable=True)]], f"{PERMUTED} {number}")


def _judged(found: Estimate) -> dict[str, Any]:
    numbers = {"diagnosticity": found.value, "low": found.low, "high": found.high, "texts": found.count}
    return numbers | {"verdict": TRUST if found.low > TRUSTED else DISTRUST}


def _over_worlds(found: pd.DataFrame) -> pd.DataFrame:
    """For each metric the world on which it does worst against permuted truth."""
    own = found[found["control"] == PERMUTED].sort_values("diagnosticity", kind="stable", na_position="first")
    worst = own.groupby("metric", sort=False).head(1).assign(world="all")
    order = {name: place for place, name in enumerate(found["metric"].unique())}
    trusted = own.groupby("metric")["verdict"].agg(lambda said: TRUST if (said == TRUST).all() else DISTRUST)
    worst = worst.assign(verdict=worst["metric"].map(trusted))
    return worst.sort_values("metric", key=lambda names: names.map(order))
