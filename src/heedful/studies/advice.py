"""Advice on λ for a user's data: a short sweep, judged by dev accuracy and by how well attention separates words."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from heedful.analysis.statistics import area
from heedful.claims.scores import neutral, polar
from heedful.config import RunSettings
from heedful.errors import ConfigError
from heedful.pipeline import Run, read_corpus, run
from heedful.store import Store
from heedful.text.corpus import Corpus
from heedful.training.events import Observer

SCALES = (1.0, 10.0, 100.0)
EPOCHS = 10
PENALTY = 1e-3
"""c of c·|VᵀW| that is tried; the paper takes 1e-4 on SST and 1e-3 on synthetic data."""

PARTED = 0.2
"""Attention parts the classes when the AUC of one class's words against another's is so far from a half."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A recommended λ, whether to penalise VᵀW, and the short runs that say so."""

    table: pd.DataFrame
    """One row per run: scale, penalty, dev_accuracy, separation, parting, chosen."""
    scale: float
    penalise: bool
    words: str


def recommend_scale(
    settings: RunSettings,
    store: Store,
    *,
    corpus: Corpus | None = None,
    scales: Sequence[float] = SCALES,
    epochs: int = EPOCHS,
    observers: Sequence[Observer] = (),
) -> Advice:
    """Train briefly with each λ; among those whose dev accuracy is within one standard error of the best, take the one
    whose attention scores separate polar from neutral words best (the largest AUC).

    Where attention also parts the classes from each other, which is what VᵀW does, one more run tries to penalise it:
    that is recommended when the parting at least halves and dev accuracy stays within the standard error.
    """
    if not scales or min(scales) <= 0:
        raise ConfigError(f"λ divides the attention scores and must be above 0; got {list(scales)}.")
    data = corpus or read_corpus(settings)
    short = settings.change({"training.epochs": min(epochs, settings.training.epochs)})

    def tried(scale: float, penalty: float) -> dict[str, float | None]:
        changes = {"model.score_scale": scale, "training.alignment_penalty": penalty}
        finished = run(short.change(changes), store, corpus=data, observers=observers)
        return {"scale": scale, "penalty": penalty, **look(finished)}

    given = settings.training.alignment_penalty
    table = pd.DataFrame([tried(scale, given) for scale in dict.fromkeys(scales)]).astype(float)
    error = standard_error(float(table["dev_accuracy"].max()), len(data.dev))
    best = table.iloc[choose(table, error)]
    penalise = False
    if not given and best["parting"] > PARTED:  # false for NaN
        penalised = tried(float(best["scale"]), PENALTY)
        penalise = _helps(best, penalised, error)
        table = pd.concat([table, pd.DataFrame([penalised]).astype(float)], ignore_index=True)
    chosen = (table["scale"] == best["scale"]) & (table["penalty"] == (PENALTY if penalise else given))
    words = advice_words(table, best, error, penalise=penalise, penalised=not given)
    return Advice(table=table.assign(chosen=chosen), scale=float(best["scale"]), penalise=penalise, words=words)


def look(finished: Run) -> dict[str, float | None]:
    """Dev accuracy, separation of polar from neutral words, and parting of the classes in one run."""
    tokens = finished.table("tokens")
    high, low = (rows["attention"].to_numpy(float) for rows in (polar(tokens), neutral(tokens)))
    return {
        "dev_accuracy": float(finished.metrics["dev_accuracy"]),
        "separation": area(high, low) if len(high) and len(low) else None,
        "parting": class_parting(tokens),
    }


def class_parting(tokens: pd.DataFrame) -> float | None:
    """How far attention prefers the words of one class to those of another: the largest |AUC − ½| of any two."""
    groups = [rows["attention"].to_numpy(float) for _, rows in polar(tokens).groupby("group")]
    return max((abs(area(one, other) - 0.5) for one, other in itertools.combinations(groups, 2)), default=None)


def choose(table: pd.DataFrame, error: float) -> int:
    """The place of the run to recommend: of the accurate the best separated; if nothing tells, the most accurate."""
    enough = table[table["dev_accuracy"] >= table["dev_accuracy"].max() - error]
    separation = enough["separation"]
    column = separation if separation.notna().any() else enough["dev_accuracy"]
    return int(table.index.get_loc(column.idxmax()))  # type: ignore[arg-type]


def standard_error(accuracy: float, texts: int) -> float:
    return math.sqrt(accuracy * (1 - accuracy) / texts)


def _helps(before: "pd.Series[float]", after: dict[str, float | None], error: float) -> bool:
    parting, accuracy = after["parting"], after["dev_accuracy"]
    assert accuracy is not None
    return parting is not None and parting <= before["parting"] / 2 and accuracy >= before["dev_accuracy"] - error


def advice_words(
    table: pd.DataFrame, best: "pd.Series[float]", error: float, *, penalise: bool, penalised: bool
) -> str:
    """The recommendation in plain words."""
    tried = ", ".join(f"{scale:g}" for scale in dict.fromkeys(table["scale"]))
    first = best["dev_accuracy"] == table["dev_accuracy"].max()
    standing = "the best" if first else f"within {error:.1%} of the best"
    accuracy = f"dev accuracy {best['dev_accuracy']:.1%}, {standing}"
    if math.isnan(best["separation"]):
        return (
            f"Of λ = {tried}, take λ = {best['scale']:g} ({accuracy}); too few words are clearly polar or neutral to "
            "compare attention by."
        )
    separation = f"attention separates polar from neutral words best (AUC {best['separation']:.2f})"
    words = f"Of λ = {tried}, take λ = {best['scale']:g}: {accuracy}, and {separation}."
    if penalise:
        return f"{words} Penalise VᵀW (training.alignment_penalty={PENALTY:g}): attention prefers one class without it."
    if len(table) > table["scale"].nunique():
        return f"{words} Attention prefers one class, but penalising VᵀW did not mend it at no cost."
    return f"{words} There is no need to penalise VᵀW." if penalised else words
