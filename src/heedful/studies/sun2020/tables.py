"""The tables of the study: Table 2, the published trajectory on made data, and what the claims are judged on."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Estimate, mean_over_seeds
from heedful.claims.combine import own_or_over_seeds
from heedful.claims.trainings import EXPECTED
from heedful.papers.sun2020 import PUBLISHED_LOSS, PUBLISHED_SCORES, accuracy
from heedful.studies.measures import Cell, arranged, beside, beside_in_words, called
from heedful.studies.study import Material
from heedful.studies.sun2020.runs import NAMES, Recording

OUTSIDE = "†"
"""Marks a cell whose interval does not hold the paper's number."""

TERMS, TERM_GROUPS = ("A", "B", "C", "D", "E", "F"), ("positive", "negative", "neutral")


def accuracies(material: Material) -> pd.DataFrame:
    """A row per run of Table 2: its test accuracy with the interval over test texts, in per cent."""
    rows = []
    for trial, run in material.runs:
        value, low, high = (100 * run.metrics[f"test_accuracy{end}"] for end in ("", "_low", "_high"))
        scale = trial.settings.model.score_scale
        rows.append({**trial.columns, "scale": scale, "accuracy": value, "low": low, "high": high})
    return pd.DataFrame(rows)


def table_2(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per cell: our mean in per cent, its 95 % interval, the paper's number, the difference.

    With several seeds the interval is Student's over seeds, with one it is Wilson's for the share of test texts. The
    paper prints one run per cell, whose own spread over seeds no interval of ours holds.
    """
    rows = []
    for key, cell in runs.groupby(["dataset", "model", "scale"], sort=False):
        dataset, model, scale = str(key[0]), str(key[1]), float(cell["scale"].iloc[0])
        ends = zip(cell["accuracy"], cell["low"], cell["high"], strict=True)
        seeds = [Estimate(value=value, low=low, high=high, count=1) for value, low, high in ends]
        estimate = own_or_over_seeds(seeds, (0.0, 100.0))
        paper = accuracy(dataset, model, scale)
        said = {"dataset": called(dataset, NAMES), "model": model, "scale": scale}
        outside = None if paper is None else not estimate.low <= paper <= estimate.high
        rows.append({**said, **beside("accuracy", estimate, len(cell), paper, unit=1.0), "outside": outside})
    return pd.DataFrame(rows).drop(columns="instances")


def as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """The arrangement of the paper: a row per data set and λ, a column per model, cells in words."""
    rows = arranged(table, ["dataset", "scale"], "model", _cell_words)
    return rows.assign(scale=rows["scale"].map("{:g}".format)).rename(columns={"dataset": "data", "scale": "λ"})


def _cell_words(cell: Cell) -> str:
    """Such as `82.8 [81.0, 84.4], paper 82.2`, with a mark where the paper lies outside."""
    return beside_in_words(cell, "accuracy") + (OUTSIDE if cell["outside"] is True else "")


def interval_words(table: pd.DataFrame) -> str:
    """What to know of Table 2."""
    seeds = int(table["seeds"].max())
    interval = "over the test texts (Wilson)" if seeds == 1 else f"over {seeds} seeds (Student)"
    return (
        f"Test accuracy in per cent with its 95 % interval {interval}. {OUTSIDE} marks cells whose interval does not "
        "hold the paper's number, which is one run."
    )


def summary_words(table: pd.DataFrame) -> str:
    """How near the paper the table is, in one sentence."""
    known = table.dropna(subset=["paper"])
    if known.empty:
        return f"{len(table)} cells, none of them in the paper."
    differences = known["difference"].astype(float)
    inside = int((~known["outside"].astype(bool)).sum())
    return (
        f"{len(known)} cells of the paper's Table 2: mean difference {differences.mean():+.1f} points, median absolute "
        f"difference {differences.abs().median():.1f}; the paper's number lies within our interval in {inside}."
    )


def loss_table(recordings: Sequence[Recording]) -> pd.DataFrame:
    """Training loss on Data I at the epochs of the published trajectory: mean over seeds with its interval."""
    courses = [recording.table("model") for recording in recordings]
    rows = []
    for epoch, published in PUBLISHED_LOSS.items():
        nearest = [course["loss"].iloc[int((course["time"] - epoch).abs().argmin())] for course in courses]
        ours = mean_over_seeds(np.array(nearest))
        rows.append({"epoch": epoch, "published": published, "ours": ours.value, "low": ours.low, "high": ours.high})
    return pd.DataFrame(rows).assign(seeds=len(recordings))


def score_table(recordings: Sequence[Recording]) -> pd.DataFrame:
    """Mean scores and dot products at the end on Data I: published, ours over seeds, and the difference as a share.

    A published 0 has no share; there the difference itself says it.
    """
    ends = pd.DataFrame([_end_means(recording) for recording in recordings])
    rows = []
    for (quantity, group), (published, reruns) in PUBLISHED_SCORES.items():
        ours = mean_over_seeds(ends[(quantity, group)].to_numpy(dtype=np.float64))
        target = published if reruns is None else reruns
        said = {"quantity": quantity, "group": group, "published": published, "reruns": reruns}
        found = {"ours": ours.value, "low": ours.low, "high": ours.high, "difference": ours.value - target}
        rows.append({**said, **found, "relative": abs(ours.value / target - 1) if target else None})
    return pd.DataFrame(rows).assign(seeds=len(recordings))


def _end_means(recording: Recording) -> dict[tuple[str, str], float]:
    scores = recording.table("scores").groupby("group")[["polarity", "attention"]].mean()
    omegas = last_moment(recording.table("pairs")).groupby("kind")["omega"].mean()
    means = {(str(column), str(group)): float(mean) for column in scores for group, mean in scores[column].items()}
    return means | {("dot product", str(kind)): float(omega) for kind, omega in omegas.items()}


def last_moment(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["step"] == int(table["step"].max())]


def penalty_table(recordings: Sequence[Recording]) -> pd.DataFrame:
    """For C5, a row per run: corpus, seed, penalty, gap between the mean attention scores of positive and negative
    tokens, test accuracy after the last epoch (not after the best), VᵀW."""
    rows = [
        {
            "corpus": _corpus_name(one),
            "seed": one.seed,
            "penalty": one.settings.training.alignment_penalty,
            "gap": attention_gap(one.table("scores")),
            "accuracy": float(one.table("accuracy")["test_accuracy"].item()),
            "alignment": float(one.table("model")["alignment"].iloc[-1]),
        }
        for one in recordings
    ]
    return pd.DataFrame(rows)


def _corpus_name(recording: Recording) -> str:
    data = recording.data
    return "Data II" if data.noise else "Data I" if data.positive_share == 0.5 else f"{data.positive_share:g} positive"


def attention_gap(tokens: pd.DataFrame) -> float:
    """|mean attention score of positive tokens − that of negative tokens|."""
    means = tokens.groupby("group")["attention"].mean()
    return abs(float(means["positive"] - means["negative"]))


def gap_courses(recordings: Sequence[Recording]) -> pd.DataFrame:
    """The gap at every moment: time, seed, penalised, gap."""

    def gaps(recording: Recording) -> pd.DataFrame:
        means = recording.table("groups").pivot(index="time", columns="group", values="attention")
        return (means["positive"] - means["negative"]).abs().rename("gap").reset_index()

    return _together(recordings, gaps, _penalised)


def widest_gap(recordings: Sequence[Recording]) -> pd.DataFrame:
    """Tokens over time, penalised and not, from the initialisation whose gap is largest without the penalty; the
    paper, too, shows one where it is apparent."""
    plain = [one for one in recordings if not one.settings.training.alignment_penalty]
    widest = max(plain, key=lambda one: attention_gap(one.table("scores")))
    shown = [one for one in recordings if one.seed == widest.seed]
    return _together(shown, lambda one: one.table("tokens"), _penalised).drop(columns="seed")


def _penalised(recording: Recording) -> dict[str, bool]:
    return {"penalised": recording.settings.training.alignment_penalty > 0}


def alignment_courses(recordings: Sequence[Recording]) -> pd.DataFrame:
    """VᵀW at every moment: positive_share, seed, time, alignment."""
    return _together(
        recordings,
        lambda one: one.table("model")[["time", "alignment"]],
        lambda one: {"positive_share": one.data.positive_share},
    )


def ratio_table(recordings: Sequence[Recording]) -> pd.DataFrame:
    """For C6, a row per run: positive_share, seed, VᵀW at the start and at the end."""
    runs = alignment_courses(recordings).sort_values("time").groupby(["positive_share", "seed"])["alignment"]
    return runs.agg(alignment_start="first", alignment="last").reset_index()


def final_pairs(recordings: Sequence[Recording]) -> pd.DataFrame:
    """For C7, a row per run and pair: seed, kind, Ω at the end."""
    return _together(recordings, lambda one: last_moment(one.table("pairs"))[["kind", "first", "second", "omega"]])


def term_table(recordings: Sequence[Recording]) -> pd.DataFrame:
    """For C10, a row per run, moment, group and term: its mean, and the share of tokens for which it is positive.

    Columns: score_scale, seed, time, mean_beta, group, term, mean, positive.
    """
    return _together(recordings, _terms_of, lambda one: {"score_scale": one.settings.model.score_scale})


def _terms_of(recording: Recording) -> pd.DataFrame:
    keys = ["time", "group"]
    long = [
        recording.table(name)[[*keys, *TERMS]].melt(id_vars=keys, var_name="term", value_name=value)
        for name, value in (("groups", "mean"), ("signs", "positive"))
    ]
    table = long[0].merge(long[1], on=[*keys, "term"]).merge(recording.table("model")[["time", "mean_beta"]], on="time")
    return table[table["group"].isin(TERM_GROUPS)]


def settling_table(recordings: Sequence[Recording]) -> pd.DataFrame:
    """For C13, a row per run and pair of polarity tokens: from when on its dot product keeps the sign of its kind.

    Columns: embedding_range, seed, kind, settled (the end, for those that never do), ever.
    """
    return _together(
        recordings,
        lambda one: settling_times(one.table("pairs")),
        lambda one: {"embedding_range": one.settings.model.embedding_range},
    )


def settling_times(pairs: pd.DataFrame) -> pd.DataFrame:
    """kind, settled, ever of every pair of polarity tokens (columns of `pairs`: time, kind, first, second, omega)."""
    polar = pairs[pairs["kind"].isin(EXPECTED)].sort_values("time", kind="stable")
    moments = np.sort(polar["time"].unique()).astype(np.float64)
    signs = polar["omega"] * polar["kind"].map(dict(EXPECTED))
    right = signs.to_numpy().reshape(len(moments), -1) > 0  # every moment lists the same pairs in the same order
    wrong_later = np.logical_or.accumulate(~right[::-1], axis=0)
    first = wrong_later.sum(axis=0)
    kinds = polar["kind"].iloc[: right.shape[1]].tolist()
    settled = np.append(moments, moments[-1])[first]
    return pd.DataFrame({"kind": kinds, "settled": settled, "ever": first < len(moments)})


def noise_table(recordings: Sequence[Recording]) -> pd.DataFrame:
    """For C14, a row per run and token: noise, seed, group, polarity, attention at the end."""
    columns = ["token", "group", "polarity", "attention"]
    return _together(recordings, lambda one: one.table("scores")[columns], lambda one: {"noise": one.data.noise})


def _together(
    recordings: Sequence[Recording],
    table: Callable[[Recording], pd.DataFrame],
    said: Callable[[Recording], dict[str, Any]] = lambda _: {},
) -> pd.DataFrame:
    """A table of every recording below each other, with what is said of it and its seed behind."""
    return pd.concat([table(one).assign(**said(one), seed=one.seed) for one in recordings], ignore_index=True)
