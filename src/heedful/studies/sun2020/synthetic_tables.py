"""Tables made of recordings: what the paper published beside ours, and the tables that claims are judged on."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from heedful.analysis.statistics import mean_over_seeds
from heedful.claims.dynamics import EXPECTED
from heedful.store import Store
from heedful.studies.sun2020.synthetic import RATIOS, Recording, Recordings, ratio_name, recordings

PUBLISHED_LOSS: Mapping[int, float] = {0: 0.694, 100: 0.505, 200: 0.206, 300: 0.073, 400: 0.036, 490: 0.020}
"""Training loss of the paper's run on Data I, by epoch."""

PUBLISHED_SCORES: Mapping[tuple[str, str], tuple[float, float | None]] = {
    ("polarity", "positive"): (15.0, None),
    ("polarity", "negative"): (-14.5, None),
    ("polarity", "neutral"): (0.0, None),
    ("attention", "positive"): (0.71, 0.65),
    ("attention", "negative"): (0.66, 0.60),
    ("attention", "neutral"): (-0.07, None),
    ("dot product", "pos-pos"): (1.7, None),
    ("dot product", "neg-neg"): (1.85, None),
    ("dot product", "pos-neg"): (-1.05, None),
}
"""Means at the end of the paper's run on Data I and, where five runs of its recipe are known, their mean: attention
scores depend on the initialisation, so that means over seeds compare with means over seeds."""

POLARITY_TERMS, ATTENTION_TERMS = ("A", "B", "C"), ("D", "E", "F")
TERM_GROUPS = ("positive", "negative", "neutral")


def tables(store: Store, *, quick: bool = False, workers: int | None = None) -> dict[str, pd.DataFrame]:
    """All tables of the synthetic part by name, from recordings that are made where they are missing."""
    found = recordings(store, quick=quick, sets=TABLE_SETS, workers=workers)
    return {**published_tables(found), **claim_tables(found)}


def claim_tables(found: Recordings) -> dict[str, pd.DataFrame]:
    """The tables of claims C5, C6, C7, C10, C13 and C14, as far as their recordings are given."""
    return {
        name: make([run for part in needs for run in found[part]])
        for name, (needs, make) in CLAIM_TABLES.items()
        if set(needs) <= set(found)
    }


RATIO_SETS = tuple(ratio_name(share) for share in RATIOS)
TABLE_SETS = ("data-1", "penalised", "data-2", "wide", "large-scale", *RATIO_SETS)
"""The sets of recordings that all tables together need."""


def published_tables(found: Recordings) -> dict[str, pd.DataFrame]:
    """The published trajectory on Data I beside ours: loss by epoch, and means at the end."""
    return {"synthetic_loss": loss_table(found["data-1"]), "synthetic_scores": score_table(found["data-1"])}


def loss_table(found: Sequence[Recording]) -> pd.DataFrame:
    """Training loss at the epochs of the published trajectory: mean over seeds with its interval."""
    courses = [recording.table("model") for recording in found]
    rows = []
    for epoch, published in PUBLISHED_LOSS.items():
        losses = np.array([course["loss"].iloc[_nearest(course, float(epoch))] for course in courses])
        ours = mean_over_seeds(losses)
        rows.append({"epoch": epoch, "published": published, "ours": ours.value, "low": ours.low, "high": ours.high})
    return pd.DataFrame(rows).assign(seeds=len(found))


def score_table(found: Sequence[Recording]) -> pd.DataFrame:
    """Mean scores and dot products at the end: published, ours over seeds, and the difference as a share.

    A published 0 has no share; there the difference itself says it.
    """
    ends = pd.DataFrame([_end_means(recording) for recording in found])
    rows = []
    for (quantity, group), (published, reruns) in PUBLISHED_SCORES.items():
        ours = mean_over_seeds(ends[(quantity, group)].to_numpy(dtype=np.float64))
        target = published if reruns is None else reruns
        rows.append(
            {
                "quantity": quantity,
                "group": group,
                "published": published,
                "reruns": reruns,
                "ours": ours.value,
                "low": ours.low,
                "high": ours.high,
                "difference": ours.value - target,
                "relative": abs(ours.value / target - 1) if target else None,
                "seeds": len(found),
            }
        )
    return pd.DataFrame(rows)


def _end_means(recording: Recording) -> dict[tuple[str, str], float]:
    scores = recording.table("scores").groupby("group")[["polarity", "attention"]].mean()
    omegas = last_moment(recording.table("pairs")).groupby("kind")["omega"].mean()
    means = {(str(column), str(group)): float(mean) for column in scores for group, mean in scores[column].items()}
    return means | {("dot product", str(kind)): float(omega) for kind, omega in omegas.items()}


def _nearest(table: pd.DataFrame, time: float) -> int:
    """The place of the row whose time is nearest."""
    return int((table["time"] - time).abs().argmin())


def last_moment(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["step"] == int(table["step"].max())]


def penalty_table(found: Sequence[Recording]) -> pd.DataFrame:
    """For C5, a row per run: corpus, seed, penalty, gap between the mean attention scores of positive and negative
    tokens, test accuracy, VᵀW."""
    return pd.DataFrame(
        [
            {
                "corpus": _corpus_name(recording),
                "seed": recording.seed,
                "penalty": recording.settings.training.alignment_penalty,
                "gap": attention_gap(recording.table("scores")),
                "accuracy": recording.test_accuracy,
                "alignment": float(recording.table("model")["alignment"].iloc[-1]),
            }
            for recording in found
        ]
    )


def attention_gap(tokens: pd.DataFrame) -> float:
    """|mean attention score of positive tokens − that of negative tokens|."""
    means = tokens.groupby("group")["attention"].mean()
    return abs(float(means["positive"] - means["negative"]))


def gap_courses(found: Sequence[Recording]) -> pd.DataFrame:
    """The gap at every moment: time, seed, penalised, gap."""
    parts = []
    for recording in found:
        means = recording.table("groups").pivot(index="time", columns="group", values="attention")
        gap = (means["positive"] - means["negative"]).abs().rename("gap").reset_index()
        penalised = recording.settings.training.alignment_penalty > 0
        parts.append(gap.assign(seed=recording.seed, penalised=penalised))
    return pd.concat(parts, ignore_index=True)


def alignment_courses(found: Sequence[Recording]) -> pd.DataFrame:
    """VᵀW at every moment: positive_share, seed, time, alignment."""
    return pd.concat(
        [
            recording.table("model")[["time", "alignment"]].assign(
                positive_share=recording.data.positive_share, seed=recording.seed
            )
            for recording in found
        ],
        ignore_index=True,
    )


def ratio_table(found: Sequence[Recording]) -> pd.DataFrame:
    """For C6, a row per run: positive_share, seed, VᵀW at the start and at the end."""
    runs = alignment_courses(found).sort_values("time").groupby(["positive_share", "seed"])["alignment"]
    return runs.agg(alignment_start="first", alignment="last").reset_index()


def final_pairs(found: Sequence[Recording]) -> pd.DataFrame:
    """For C7, a row per run and pair: seed, kind, Ω at the end."""
    return pd.concat(
        [
            last_moment(recording.table("pairs"))[["kind", "first", "second", "omega"]].assign(seed=recording.seed)
            for recording in found
        ],
        ignore_index=True,
    )


def term_table(found: Sequence[Recording]) -> pd.DataFrame:
    """For C10, a row per run, moment, group and term: its mean, and the share of tokens for which it is positive.

    Columns: score_scale, seed, time, mean_beta, group, term, mean, positive.
    """
    return pd.concat([_terms_of(recording) for recording in found], ignore_index=True)


def _terms_of(recording: Recording) -> pd.DataFrame:
    keys = ["time", "group"]
    terms = [*POLARITY_TERMS, *ATTENTION_TERMS]
    long = [
        recording.table(name)[[*keys, *terms]].melt(id_vars=keys, var_name="term", value_name=value)
        for name, value in (("groups", "mean"), ("signs", "positive"))
    ]
    table = long[0].merge(long[1], on=[*keys, "term"]).merge(recording.table("model")[["time", "mean_beta"]], on="time")
    table = table[table["group"].isin(TERM_GROUPS)]
    return table.assign(score_scale=recording.settings.model.score_scale, seed=recording.seed)


def settling_table(found: Sequence[Recording]) -> pd.DataFrame:
    """For C13, a row per run and pair of polarity tokens: from when on its dot product keeps the sign of its kind.

    Columns: embedding_range, seed, kind, settled (the end, for those that never do), ever.
    """
    return pd.concat(
        [
            settling_times(recording.table("pairs")).assign(
                embedding_range=recording.settings.model.embedding_range, seed=recording.seed
            )
            for recording in found
        ],
        ignore_index=True,
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


def noise_table(found: Sequence[Recording]) -> pd.DataFrame:
    """For C14, a row per run and token: noise, seed, group, polarity, attention at the end."""
    return pd.concat(
        [
            recording.table("scores")[["token", "group", "polarity", "attention"]].assign(
                noise=recording.data.noise, seed=recording.seed
            )
            for recording in found
        ],
        ignore_index=True,
    )


def _corpus_name(recording: Recording) -> str:
    data = recording.data
    return "Data II" if data.noise else "Data I" if data.positive_share == 0.5 else f"{data.positive_share:g} positive"


CLAIM_TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[Sequence[Recording]], pd.DataFrame]]] = {
    "penalty": (("data-1", "penalised"), penalty_table),
    "ratios": (RATIO_SETS, ratio_table),
    "dot_products": (("data-1",), final_pairs),
    "terms": (("data-1", "large-scale"), term_table),
    "settling": (("data-1", "wide"), settling_table),
    "noise": (("data-1", "data-2"), noise_table),
}
"""For each table of a claim the sets of recordings it is made of, and how."""
