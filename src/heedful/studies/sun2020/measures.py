"""One row of numbers for each run of the study: what the claims about λ, models and scopes are judged on."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import torch

from heedful.analysis.statistics import Estimate, Numbers, area_estimate, area_of_places, bootstrap, share
from heedful.analysis.tokens import as_printed, group_of_class
from heedful.claims.kinds import FEWEST
from heedful.claims.scores import neutral, polar, right_signs, separation
from heedful.pipeline import Run
from heedful.text.ragged import segments_of
from heedful.traces import Trace

POOLED_FROM = 100.0
"""From this λ on it is asked whether the model is one of mean pooling."""


def measure_runs(dataset: str, model: str, runs: Iterable[Run], *, printed: bool = True) -> pd.DataFrame:
    """A row per run; columns ending in _low and _high are bounds of 95 % over resampled tokens or test texts.

    Tokens are in the groups that the paper's definition `printed`, or else in those that class sizes cannot move.
    """
    return pd.DataFrame([{"dataset": dataset, "model": model, **measure(run, printed=printed)} for run in runs])


def measure(run: Run, *, printed: bool = True) -> dict[str, object]:
    """Accuracy, VᵀW, and how the groups of tokens differ in one run.

    `separation` is the AUC of attention scores, polar against neutral tokens (`local_separation` for scores in
    context, `clarity` their difference); `signs` the share of polar tokens with the right sign of polarity; `parting`
    the AUC of attention scores of positive against negative tokens; `magnitude` the mean |polarity| of polar tokens;
    `asymmetry` how much stronger positive than negative tokens are, −1 … 1; `pooling` the share of test texts whose
    decision stays when attention is made even.
    """
    tokens = _grouped(run, "tokens", printed)
    metrics, settings = run.metrics, run.settings
    row: dict[str, object] = {
        "scale": settings.model.score_scale,
        "seed": settings.training.seed,
        "classes": max(2, len(metrics["alignment"])),
        "test_accuracy": metrics["test_accuracy"],
        "test_accuracy_low": metrics["test_accuracy_low"],
        "test_accuracy_high": metrics["test_accuracy_high"],
        "dev_accuracy": metrics["dev_accuracy"],
        "best_epoch": metrics["best_epoch"],
        "alignment": metrics["alignment"][0] if len(metrics["alignment"]) == 1 else None,
        **_bounds("separation", separation(tokens)),
        **_bounds("signs", _signs(tokens)),
        **_bounds("parting", _parting(tokens)),
        **_bounds("magnitude", _magnitude(tokens)),
        **_bounds("asymmetry", _asymmetry(tokens)),
    }
    if settings.model.encoder == "lstm":
        local = _grouped(run, "tokens_local", printed)
        row |= _bounds("local_separation", separation(local)) | _bounds("local_signs", _signs(local))
        row |= _bounds("clarity", clarity(tokens, local))
    if settings.model.score_scale >= POOLED_FROM:
        row |= _bounds("pooling", pooling_agreement(run.trace()))
    return row


def _grouped(run: Run, table: str, printed: bool) -> pd.DataFrame:
    return as_printed(run.table(table)) if printed else run.table(table)


def clarity(tokens: pd.DataFrame, local: pd.DataFrame) -> Estimate | None:
    """Separation by global scores minus separation by local ones, on the same resamples of the same tokens."""
    both = tokens.assign(local=local["attention"]).dropna(subset=["attention", "local"])
    high, low = polar(both), neutral(both)
    if high.empty or low.empty:
        return None
    size = len(both)
    ranks = both[["attention", "local"]].rank(method="dense").to_numpy(np.float64) - 1
    place = {label: number for number, label in enumerate(both.index)}

    def difference(one: Numbers, other: Numbers) -> float:
        above, below = one.astype(np.int64), other.astype(np.int64)
        whole, part = (area_of_places(ranks[above, column], ranks[below, column], size) for column in (0, 1))
        return whole - part

    members = [np.array([place[label] for label in rows.index], dtype=np.float64) for rows in (high, low)]
    return bootstrap(difference, *members)


def pooling_agreement(trace: Trace) -> Estimate:
    """The share of texts whose decision is that of their unweighted mean: logits = b + Σ z_i / n."""
    segments = segments_of(trace.offsets)
    sums = torch.zeros(len(trace), trace.polarity_scores.shape[1], dtype=torch.float64)
    sums.index_add_(0, segments, trace.polarity_scores)
    pooled = trace.bias + sums / trace.offsets.diff()[:, None]
    return share(int((pooled.argmax(1) == trace.predictions).sum()), len(trace))


def _signs(tokens: pd.DataFrame) -> Estimate | None:
    signs = right_signs(tokens.dropna(subset=["attention"]))
    return share(int(signs.sum()), len(signs)) if len(signs) else None


def _parting(tokens: pd.DataFrame) -> Estimate:
    return area_estimate(*_sides(tokens, "attention"))


def _asymmetry(tokens: pd.DataFrame) -> Estimate | None:
    """(mean s⁺ + mean s⁻) / (mean |s⁺| + mean |s⁻|) for two classes."""
    if "polarity" not in tokens:
        return None
    positive, negative = _sides(tokens, "polarity")
    if not len(positive) or not len(negative):
        return None
    return bootstrap(_relative_sum, positive, negative)


def _relative_sum(positive: Numbers, negative: Numbers) -> float:
    whole = np.abs(positive).mean() + np.abs(negative).mean()
    return float((positive.mean() + negative.mean()) / whole) if whole else 0.0


def _magnitude(tokens: pd.DataFrame) -> Estimate | None:
    """Mean |s| of polar tokens; with more classes the own score less the mean of the others."""
    rows = polar(tokens)
    if rows.empty:
        return None
    if "polarity" in rows:
        return bootstrap(_mean, np.abs(_numbers(rows["polarity"])))
    columns = [str(column) for column in rows if str(column).startswith("polarity_")]
    scores = rows[columns].to_numpy(np.float64)
    places = {group_of_class(name.removeprefix("polarity_")): place for place, name in enumerate(columns)}
    own = rows["group"].map(places)
    chosen = scores[np.arange(len(rows)), own.to_numpy(np.int64)]
    return bootstrap(_mean, chosen - (scores.sum(1) - chosen) / (len(columns) - 1))


def _mean(values: Numbers) -> float:
    return float(values.mean())


def _sides(tokens: pd.DataFrame, column: str) -> tuple[Numbers, Numbers]:
    """A column of the positive and of the negative tokens; both empty where classes have other names."""
    rows = polar(tokens)
    positive, negative = (_numbers(rows.loc[rows["group"] == name, column]) for name in ("positive", "negative"))
    return positive, negative


def _numbers(column: "pd.Series[float]") -> Numbers:
    return np.asarray(column.dropna().to_numpy(), dtype=np.float64)


def _bounds(name: str, found: Estimate | None) -> dict[str, object]:
    if found is None or min(found.sides) < FEWEST:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
