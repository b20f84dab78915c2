"""Advice on λ for a user's data: a small sweep, judged by dev accuracy and by how well attention separates words."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from heedful.analysis.statistics import area
from heedful.claims.scores import neutral, polar
from heedful.config import RunSettings
from heedful.errors import ConfigError, HeedfulError, StoreError
from heedful.pipeline import Run, read_corpus, run
from heedful.store import Store
from heedful.sweep.jobs import SweepEvent
from heedful.sweep.loop import sweep
from heedful.sweep.memory import cores
from heedful.sweep.plan import Plan
from heedful.text.corpus import Corpus
from heedful.training.events import Observer

SCALES = (1.0, 10.0, 100.0)
PENALTY = 1e-3
"""c of c·|VᵀW| that is tried; the paper takes 1e-4 on SST and 1e-3 on synthetic data."""

PARTED = 0.2
"""Attention parts the classes when the AUC of one class's words against another's is so far from a half."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A recommended λ, whether to penalise VᵀW, and the runs that say so."""

    table: pd.DataFrame
    """One row per run: scale, penalty, dev_accuracy, separation, parting, chosen."""
    scale: float
    penalise: bool
    words: str
    runs: Sequence[Run] = ()
    """The runs of the sweep over λ, by λ; the one that tries a penalty is not among them."""

    def summary(self) -> dict[str, object]:
        """The advice as plain data."""
        rows = self.table.to_dict("records")
        return {"scale": self.scale, "penalise": self.penalise, "words": self.words, "runs": rows}


@dataclass(frozen=True, kw_only=True)
class _Trials:
    """How the runs of the sweep are had: from the store, from worker processes, or computed here."""

    store: Store
    corpus: Corpus
    workers: int | None
    observers: Sequence[Observer]
    watch: Callable[[SweepEvent], None] | None

    def results(self, wanted: Sequence[RunSettings]) -> Iterator[Run | str]:
        """Each run, or why it could not be computed."""
        missing = missing_runs(wanted, self.store, self.corpus)
        failed: dict[RunSettings, str] = {}
        if len(missing) > 1 and (self.workers or cores()) > 1:
            swept = sweep(Plan(name="λ", runs=tuple(missing)), self.store, workers=self.workers, watch=self.watch)
            failed = {failure.settings: failure.message for failure in swept.failures}
        for settings in wanted:
            yield failed[settings] if settings in failed else self._result(settings)

    def _result(self, settings: RunSettings) -> Run | str:
        try:
            return run(settings, self.store, corpus=self.corpus, observers=self.observers)
        except StoreError:
            raise
        except HeedfulError as error:  # a training that diverges says something of its λ only
            return str(error)


def missing_runs(wanted: Sequence[RunSettings], store: Store, corpus: Corpus) -> list[RunSettings]:
    """Those of some settings that the store has no run of."""
    return [one for one in wanted if store.find(one.digest(corpus.fingerprint)) is None]


def recommend_scale(
    settings: RunSettings,
    store: Store,
    *,
    corpus: Corpus | None = None,
    scales: Sequence[float] = SCALES,
    epochs: int | None = None,
    workers: int | None = 1,
    observers: Sequence[Observer] = (),
    watch: Callable[[SweepEvent], None] | None = None,
) -> Advice:
    """Train with each λ; among those whose dev accuracy is within one standard error of the best, take the one whose
    attention scores separate polar from neutral words best (the largest AUC).

    Where attention also parts the classes from each other, which is what VᵀW does, one more run tries to penalise it:
    that is recommended when the parting at least halves and dev accuracy stays within the standard error.

    Runs that the store holds are not computed again. With several `workers` (None: as many as there are cores) the
    others are computed in processes that read the corpus of the settings themselves; `epochs` bounds them.
    """
    if not scales or min(scales) <= 0:
        raise ConfigError(f"λ divides the attention scores and must be above 0; got {list(scales)}.")
    trials = _Trials(
        store=store, corpus=corpus or read_corpus(settings), workers=workers, observers=observers, watch=watch
    )
    wanted = sweep_settings(settings, scales, epochs)
    found = dict(zip(wanted, trials.results(wanted), strict=True))
    runs = [one for one in found.values() if isinstance(one, Run)]
    failures = [(one.model.score_scale, why) for one, why in found.items() if isinstance(why, str)]
    if not runs:
        raise ConfigError(f"No λ could be tried. {failures[0][1]}")
    return _advise(settings, runs, failures, trials)


def sweep_settings(
    settings: RunSettings, scales: Sequence[float] = SCALES, epochs: int | None = None
) -> list[RunSettings]:
    """The settings with each of these λ, in their order."""
    most = settings.training.epochs if epochs is None else min(epochs, settings.training.epochs)
    short = settings.change({"training.epochs": most})
    return [short.change({"model.score_scale": scale}) for scale in sorted(set(scales))]


def _advise(
    settings: RunSettings, runs: Sequence[Run], failures: Sequence[tuple[float, str]], trials: _Trials
) -> Advice:
    """Choose among the runs of a sweep, and try the penalty where it may help."""
    given = settings.training.alignment_penalty
    table = pd.DataFrame([_row(one) for one in runs]).astype(float)
    error = standard_error(float(table["dev_accuracy"].max()), len(trials.corpus.dev))
    place = choose(table, error)
    best = table.iloc[place]
    said = [f"λ = {scale:g} could not be tried: {why.rstrip('.')}." for scale, why in failures]
    penalise, asked = False, not given and not math.isnan(best["parting"])
    if asked and best["parting"] > PARTED:
        changed = runs[place].settings.change({"training.alignment_penalty": PENALTY})
        (tried,) = trials.results([changed])
        if isinstance(tried, Run):
            penalise = _helps(best, look(tried), error)
            table = pd.concat([table, pd.DataFrame([_row(tried)]).astype(float)], ignore_index=True)
        else:
            asked = False
            said.append(f"A penalty on VᵀW could not be tried: {tried.rstrip('.')}.")
    chosen = (table["scale"] == best["scale"]) & (table["penalty"] == (PENALTY if penalise else given))
    words = advice_words(table, best, error, penalise=penalise, penalised=asked)
    return Advice(
        table=table.assign(chosen=chosen),
        scale=float(best["scale"]),
        penalise=penalise,
        words=" ".join([words, *said]),
        runs=tuple(runs),
    )


def _row(finished: Run) -> dict[str, float | None]:
    settings = finished.settings
    penalty = settings.training.alignment_penalty
    return {"scale": settings.model.score_scale, "penalty": penalty, **look(finished)}


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
    return bool(parting is not None and parting <= before["parting"] / 2 and accuracy >= before["dev_accuracy"] - error)


def advice_words(
    table: pd.DataFrame, best: "pd.Series[float]", error: float, *, penalise: bool, penalised: bool
) -> str:
    """The recommendation in plain words; `penalised` is whether it is known if a penalty is needed."""
    tried = ", ".join(f"{scale:g}" for scale in dict.fromkeys(table["scale"]))
    first = best["dev_accuracy"] == table.loc[table["penalty"] == best["penalty"], "dev_accuracy"].max()
    standing = "the best" if first else f"within {error:.1%} of the best"
    accuracy = f"dev accuracy {best['dev_accuracy']:.1%}, {standing}"
    if math.isnan(best["separation"]):
        return (
            f"Of λ = {tried}, take λ = {best['scale']:g} ({accuracy}); too few words are clearly polar or neutral to "
            "compare attention by."
        )
    separation = f"its attention separates polar from neutral words best (AUC {best['separation']:.2f})"
    words = f"Of λ = {tried}, take λ = {best['scale']:g}: {accuracy}, and of the accurate ones {separation}."
    if penalise:
        return f"{words} Penalise VᵀW (training.alignment_penalty={PENALTY:g}): attention prefers one class without it."
    if len(table) > table["scale"].nunique():
        return (
            f"{words} Attention prefers the words of one class, but penalising VᵀW (by {PENALTY:g}) does not halve "
            "that without a loss of accuracy: leave it."
        )
    return f"{words} There is no need to penalise VᵀW." if penalised else words
