"""Advice on λ and on penalising VᵀW for a user's data: a small sweep, judged by dev accuracy and by attention.

All runs of the sweep are compared on equal terms. Nothing is recommended whose attention does not separate polar from
neutral words clearly better than chance, and what cannot be told apart is said to be so.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from heedful.analysis.separation import matched_separation, polar
from heedful.analysis.statistics import FEWEST, area
from heedful.claims.scores import has_learned
from heedful.config import RunSettings
from heedful.errors import ConfigError, HeedfulError, StoreError
from heedful.pipeline import Run, read_corpus, run
from heedful.store import Store
from heedful.sweep.jobs import SweepEvent
from heedful.sweep.loop import sweep
from heedful.sweep.memory import cores
from heedful.sweep.plan import Plan
from heedful.text.corpus import Corpus, Split
from heedful.training.events import Observer

SCALES = (1.0, 10.0, 100.0)
PENALTY = 1e-3
"""c of c·|VᵀW| that is tried; the paper takes 1e-4 on SST and 1e-3 on synthetic data."""

CHANCE = 0.5
"""The separation of attention that knows nothing of the words."""

CONTEXTUAL_WORK = 12
"""How many times as long a token takes in a training with a contextual encoder (on SST: conv 10, gru 12, lstm 12)."""

MOST_WORK = 5e10
"""Of a training; IMDB with 40 epochs is 1.3e10. Beyond, other settings are tried only when that is asked for."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A recommended λ and penalty on VᵀW, or none, and the runs that say so."""

    table: pd.DataFrame
    """One row per run: scale, penalty, dev_accuracy, learned (M1), separation (C2b) with its interval, the polar and
    the evenly used words it rests on, parting, accurate, chosen."""
    scale: float | None
    penalty: float | None
    words: str
    runs: Sequence[Run] = ()
    """The runs with the penalty that was given, by λ."""

    def summary(self) -> dict[str, object]:
        """The advice as plain data."""
        rows = self.table.to_dict("records")
        return {"scale": self.scale, "penalty": self.penalty, "words": self.words, "runs": rows}


def training_work(settings: RunSettings, corpus: Corpus) -> float:
    """Tokens × epochs × numbers per token: how much a training has to do, whatever machine does it."""
    contextual = settings.model.encoder not in {"none", "affine"} or settings.model.structure == "hierarchical"
    size = settings.model.embedding_size * (CONTEXTUAL_WORK if contextual else 1)
    return float(corpus.train.offsets[-1]) * settings.training.epochs * size


@dataclass(frozen=True, kw_only=True)
class _Trials:
    """How the runs of the sweep are had: from the store, from worker processes, or computed here."""

    store: Store
    corpus: Corpus
    workers: int | None
    observers: Sequence[Observer]
    watch: Callable[[SweepEvent], None] | None
    only_stored: bool

    def results(self, wanted: Sequence[RunSettings]) -> Iterator[Run | str]:
        """Each run, or why it could not be computed."""
        missing = missing_runs(wanted, self.store, self.corpus)
        failed: dict[RunSettings, str] = {}
        if self.only_stored:
            failed = dict.fromkeys(missing, "it is not in the store, and nothing was to be trained")
        elif len(missing) > 1 and (self.workers or cores()) > 1:
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
    only_stored: bool = False,
) -> Advice:
    """Train with each λ, with and without a penalty on VᵀW, and choose among all of them (`choose`).

    Runs that the store holds are not computed again. With several `workers` (None: as many as there are cores) the
    others are computed in processes that read the corpus of the settings themselves; `epochs` bounds them.
    With `only_stored` nothing is computed, and runs that are missing are not compared.
    """
    if not scales or min(scales) <= 0:
        raise ConfigError(f"λ divides the attention scores and must be above 0; got {list(scales)}.")
    trials = _Trials(
        store=store,
        corpus=corpus or read_corpus(settings),
        workers=workers,
        observers=observers,
        watch=watch,
        only_stored=only_stored,
    )
    wanted = sweep_settings(settings, scales, epochs)
    found = dict(zip(wanted, trials.results(wanted), strict=True))
    runs = [one for one in found.values() if isinstance(one, Run)]
    if not runs:
        raise ConfigError(f"No λ could be tried. {next(str(why) for why in found.values())}")
    table = pd.DataFrame([_row(one) for one in runs]).astype(float)
    said = [
        f"{_named(one)} could not be tried: {why.rstrip('.')}." for one, why in found.items() if isinstance(why, str)
    ]
    given = (settings.model.score_scale, settings.training.alignment_penalty)
    table = choose(table, texts=len(trials.corpus.dev), given=given)
    best = table[table["chosen"]]
    return Advice(
        table=table,
        scale=None if best.empty else float(best["scale"].iloc[0]),
        penalty=None if best.empty else float(best["penalty"].iloc[0]),
        words=" ".join([advice_words(table, given), *said]),
        runs=tuple(one for one in runs if one.settings.training.alignment_penalty == given[1]),
    )


def sweep_settings(
    settings: RunSettings, scales: Sequence[float] = SCALES, epochs: int | None = None
) -> list[RunSettings]:
    """The settings with each of these λ, without and with a penalty on VᵀW."""
    most = settings.training.epochs if epochs is None else min(epochs, settings.training.epochs)
    penalties = (0.0, settings.training.alignment_penalty or PENALTY)
    return [
        settings.change({"training.epochs": most, "training.alignment_penalty": penalty, "model.score_scale": scale})
        for penalty in penalties
        for scale in sorted(set(scales))
    ]


def _named(settings: RunSettings) -> str:
    return combination(settings.model.score_scale, settings.training.alignment_penalty)


def combination(scale: float, penalty: float) -> str:
    """One of the combinations, in words."""
    return f"λ = {scale:g} with a penalty on VᵀW of {penalty:g}" if penalty else f"λ = {scale:g}"


def _row(finished: Run) -> dict[str, float | None]:
    settings = finished.settings
    penalty = settings.training.alignment_penalty
    return {"scale": settings.model.score_scale, "penalty": penalty, **look(finished)}


def look(finished: Run) -> dict[str, float | None]:
    """Dev accuracy, separation of polar from neutral words, and parting of the classes in one run."""
    tokens = finished.table("tokens")
    found = matched_separation(tokens)
    enough = min(found.sides) >= FEWEST
    return {
        "dev_accuracy": float(finished.metrics["dev_accuracy"]),
        "learned": float(has_learned(finished.trace())),
        "separation": found.value if enough else None,
        "separation_low": found.low if enough else None,
        "separation_high": found.high if enough else None,
        "polar": float(found.sides[0]),
        "even": float(found.sides[1]),
        "parting": class_parting(tokens),
    }


def class_parting(tokens: pd.DataFrame) -> float | None:
    """How far attention prefers the words of one class to those of another: the largest |AUC − ½| of any two."""
    groups = [rows["attention"].to_numpy(float) for _, rows in polar(tokens).groupby("group") if len(rows) >= FEWEST]
    return max((abs(area(one, other) - 0.5) for one, other in itertools.combinations(groups, 2)), default=None)


def commonest_class(corpus: Corpus) -> int:
    """The class that most training texts have."""
    return int(corpus.train.labels.mode().values)


def majority_rate(split: Split, commonest: int) -> float:
    """The accuracy of always guessing one class."""
    return float((split.labels == commonest).double().mean())


def choose(table: pd.DataFrame, *, texts: int, given: tuple[float, float]) -> pd.DataFrame:
    """The table with the columns `accurate`, `clear`, `tied` and `chosen`.

    `accurate`: dev accuracy within one standard error of the best, and shown to have learned something (M1). `clear`:
    accurate, and the whole interval of the separation above chance. `tied`: clear, and the separation not below the
    interval of the best one. Of those tied the given combination is chosen, or one without a penalty, or the most
    accurate: what makes no difference is left alone.
    """
    most = float(table["dev_accuracy"].max())
    error = standard_error(most, texts)
    accurate = (table["dev_accuracy"] >= most - error) & (table["learned"] > 0)
    clear = accurate & (table["separation_low"] > CHANCE)
    chosen = pd.Series(False, index=table.index)
    tied = chosen.copy()
    if clear.any():
        best = _largest(table, clear)
        tied = clear & (table["separation"] >= best["separation_low"])
        order = table[tied].assign(
            other=~((table["scale"] == given[0]) & (table["penalty"] == given[1])), worse=-table["dev_accuracy"]
        )
        chosen[order.sort_values(["other", "penalty", "worse"], kind="stable").index[0]] = True
    return table.assign(accurate=accurate, clear=clear, tied=tied, chosen=chosen)


def _largest(table: pd.DataFrame, among: "pd.Series[bool]") -> "pd.Series[float]":
    """The row with the largest separation among some; where none has one, the first."""
    return table.iloc[int(table["separation"].where(among).fillna(-1.0).to_numpy().argmax())]


def standard_error(accuracy: float, texts: int) -> float:
    return math.sqrt(accuracy * (1 - accuracy) / texts)


def advice_words(table: pd.DataFrame, given: tuple[float, float]) -> str:
    """The recommendation in plain words."""
    scales = ", ".join(f"{scale:g}" for scale in dict.fromkeys(table["scale"]))
    penalties = "" if table["penalty"].nunique() < 2 else ", each without and with a penalty on VᵀW"
    tried = f"λ = {scales}{penalties}"
    if table["separation"].isna().all():
        return (
            f"Of {tried}, none is recommended: too few words clearly belong to a class or to none ({_fewest(table)}) "
            "to compare attention by."
        )
    if not table["accurate"].any():
        most = table["dev_accuracy"].max()
        return (
            f"Of {tried}, none is recommended: of the most accurate ({most:.1%} of the dev texts) none is shown to "
            "tell the classes apart better than guessing (M1)."
        )
    if not table["chosen"].any():
        best = _largest(table, table["accurate"])
        return (
            f"Of {tried}, none is recommended: of the accurate ones none has attention that separates polar from "
            f"other words clearly better than chance (at best {_separation(best)}, chance is 0.50)."
        )
    best = table[table["chosen"]].iloc[0]
    take = "keep" if (best["scale"], best["penalty"]) == given else "take"
    accuracy = f"dev accuracy {best['dev_accuracy']:.1%}" + (
        "" if best["dev_accuracy"] == table["dev_accuracy"].max() else f" (the best: {table['dev_accuracy'].max():.1%})"
    )
    words = (
        f"Of {tried}, {take} {combination(best['scale'], best['penalty'])}: {accuracy}, and attention separates polar "
        f"from other words with {_separation(best)}."
    )
    others = table[table["tied"] & ~table["chosen"]]
    if others.empty:
        return f"{words} No other does as well."
    names = "; ".join(combination(*pair) for pair in zip(others["scale"], others["penalty"], strict=True))
    return f"{words} It cannot be told from {names}."


def _separation(row: "pd.Series[float]") -> str:
    if math.isnan(row["separation"]):
        return "too few words to tell"
    return f"AUC {row['separation']:.2f} [{row['separation_low']:.2f}, {row['separation_high']:.2f}]"


def _fewest(table: pd.DataFrame) -> str:
    return f"{table['polar'].max():.0f} polar, {table['even'].max():.0f} that all classes use alike"
