"""Adversarial attention beside the published gradient search and beside a loop over all pairs, on the same arrays.

The loop over pairs is compiled as ours is; both find the same.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import no_type_check

import numpy as np
import pandas as pd

from benchmarks.erasure import timed
from heedful.analysis.adversary import adversarial_attention
from heedful.analysis.permutation import permutation_test, searched_attention
from heedful.compiled import compiled
from heedful.traces import Trace

EPSILON = 0.01


def drawn(instances: int, units: int, classes: int = 2) -> Trace:
    rng = np.random.default_rng(0)
    return Trace.from_arrays(
        offsets=np.arange(instances + 1) * units,
        attention_scores=rng.normal(size=instances * units),
        polarity_scores=2 * rng.normal(size=(instances * units, classes)),
        bias=np.zeros(classes),
    )


@compiled
@no_type_check
def all_pairs(offsets, weights, scores, found):
    """The least overlap of any two units on either side of the score, with the same output."""
    for t in range(len(found)):
        begin, end, target, least = offsets[t], offsets[t + 1], 0.0, np.inf
        for i in range(begin, end):
            target += weights[i] * scores[i]
        for i in range(begin, end):
            if scores[i] >= target:
                continue
            for j in range(begin, end):
                if scores[j] > target:
                    share = (scores[j] - target) / (scores[j] - scores[i])
                    a, b = weights[i], weights[j]
                    cost = a * np.log1p(share / a) + share * np.log1p(a / share)
                    rest = 1 - share
                    least = min(least, cost + b * np.log1p(rest / b) + rest * np.log1p(b / rest))
        found[t] = np.log(2) - least / 2


def by_all_pairs(trace: Trace) -> np.ndarray:
    found = np.empty(len(trace))
    scores = (trace.polarity_scores[:, 1] - trace.polarity_scores[:, 0]).numpy()
    all_pairs(trace.offsets.numpy(), trace.attention_weights.numpy(), scores, found)
    return found


def rows() -> list[dict[str, str]]:
    short, long = drawn(1000, 20), drawn(50, 1000)
    for warm in (short, long):
        adversarial_attention(warm)
    by_all_pairs(short)
    searched: dict[str, pd.DataFrame] = {}
    search = timed(lambda: searched.update(table=searched_attention(short, EPSILON)), 1)
    exact = adversarial_attention(short, EPSILON)
    below = int((exact["jsd"] < searched["table"]["jsd"] - 1e-9).sum())
    pairs = timed(lambda: by_all_pairs(long), 3)
    same = np.abs(by_all_pairs(long) - adversarial_attention(long)["jsd"]).max() < 1e-9
    return [
        _row("1,000 × 20, two classes, within .01", _ours(short, EPSILON)),
        _row(f"the published search, 500 steps ({below} of 1,000 above ours)", search, _ours(short, EPSILON), "≥ 300"),
        _row("50 × 1,000, two classes, same output", _ours(long, 0.0)),
        _row(f"all pairs, compiled ({'same' if same else 'DIFFERENT'} JSD)", pairs, _ours(long, 0.0), "≥ 5"),
        *(row for classes in (3, 5, 10) for row in _of_more(classes)),
        _row("100 shuffles, 1,000 × 20", timed(lambda: permutation_test(short), 3)),
    ]


def _of_more(classes: int) -> list[dict[str, str]]:
    """Few units and many, with the median gap between what is attained and what is proved."""
    made = {units: drawn(100, units, classes) for units in (20, 200)}
    gaps = {units: _gap(adversarial_attention(trace)) for units, trace in made.items()}
    return [
        _row(f"100 × {units}, {classes} classes, median gap {gaps[units]:.3f}", _ours(trace, 0.0, 1))
        for units, trace in made.items()
    ]


def _gap(table: pd.DataFrame) -> float:
    return float((table["jsd_upper"] - table["jsd"]).median())


def _ours(trace: Trace, epsilon: float, rounds: int = 5) -> float:
    action: Callable[[], object] = lambda: adversarial_attention(replace(trace), epsilon)  # noqa: E731
    return timed(action, rounds)


def _row(what: str, seconds: float, ours: float | None = None, needed: str = "") -> dict[str, str]:
    ratio = "" if ours is None else f"{seconds / ours:.0f}"
    return {"what": what, "seconds": f"{seconds:.4f}", "× ours": ratio, "needed": needed}
