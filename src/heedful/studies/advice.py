"""Advice on λ and on penalising VᵀW for a user's data: a small sweep, judged by dev accuracy and by attention.

All runs of the sweep are compared on equal terms. Nothing is recommended whose attention does not separate polar from
neutral words clearly better than chance, and what cannot be told apart is said to be so.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from heedful.analysis.separation import matched_separation, polar
from heedful.analysis.statistics import FEWEST, area
from heedful.claims import Verdict, judge
from heedful.claims.scores import has_learned
from heedful.config import ModelSettings, RunSettings
from heedful.errors import ConfigError, HeedfulError, StoreError
from heedful.pipeline import Run, read_corpus, run
from heedful.report.page import PageTable, Section
from heedful.store import PREFIX, Store
from heedful.studies.measures import bounds, measure_runs, two_digits
from heedful.sweep.loop import Measuring, SweepEvent, cores, sweep
from heedful.sweep.plan import Plan
from heedful.text.corpus import Corpus
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

LITTLE_WORK = 5e9
"""Of all trainings together: this process does it in the time in which others start."""

PLAIN, RECURRENT = "DP", "DP-L"
MODELS = {("dot", "none"): PLAIN, ("dot", "lstm"): RECURRENT, ("dot", "affine"): "DP-A", ("additive", "none"): "AD"}
"""What Sun & Lu 2020 call a model of this attention and encoder."""

NOTE = (
    "λ divides the attention scores. Separation is the AUC of the attention scores of polar against other words of "
    "about the same frequency (C2b; chance is .5); preference is how far the AUC of one class's words against "
    "another's is from a half. Dev accuracies within one standard error of the best count as equal."
)


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A recommended λ and penalty on VᵀW, or none, and the runs that say so; or why nothing was tried."""

    words: str
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    """One row per run: scale, penalty, dev_accuracy, learned (M1), separation (C2b) with its interval, the polar and
    the evenly used words it rests on, parting, accurate, chosen. Empty where nothing was tried."""
    scale: float | None = None
    penalty: float | None = None
    runs: Sequence[Run] = ()
    """The runs with the penalty that was given, by λ."""
    measured: pd.DataFrame = field(default_factory=pd.DataFrame)
    """One row of measures for each of them (`heedful.studies.measures`); of flat models."""
    verdicts: Sequence[Verdict] = ()
    """The claims about λ that they can be judged by."""

    @property
    def tried(self) -> bool:
        return len(self.table) > 0

    def tables(self) -> dict[str, pd.DataFrame]:
        tables = {"advice": self.table, "scaling": self.measured}
        return {name: table for name, table in tables.items() if len(table)}

    def section(self) -> Section:
        """It as a part of a page."""
        tables = [PageTable(name="advice", cells=in_words(self.table), data=self.table)] if self.tried else []
        note = NOTE if self.tried else ""
        return Section(
            name="advice", title="Which λ?", lead=self.words, tables=tables, verdicts=self.verdicts, note=note
        )


def in_words(table: pd.DataFrame) -> pd.DataFrame:
    """The runs of the sweep, a line each."""
    bounds = zip(table["separation"], table["separation_low"], table["separation_high"], strict=True)
    return pd.DataFrame(
        {
            "λ": table["scale"].map("{:g}".format),
            "penalty on VᵀW": table["penalty"].map("{:g}".format),
            "dev accuracy": table["dev_accuracy"].map("{:.1%}".format),
            "separation": ["–" if pd.isna(auc) else f"{auc:.2f} [{low:.2f}, {high:.2f}]" for auc, low, high in bounds],
            "preference": [two_digits(value) for value in table["parting"]],
            "": table["chosen"].map({True: "recommended", False: ""}),
        }
    )


def advise(
    audited: Run,
    corpus: Corpus,
    store: Store,
    *,
    wanted: bool | None = None,
    workers: int | None = 1,
    observers: Sequence[Observer] = (),
    watch: Callable[[SweepEvent], None] | None = None,
) -> Advice:
    """Advice on λ for an audited run, or why there is none. Where the runs for it are in the store it is given.

    wanted: True always, False never, None unless the training is a large one.
    """
    settings = audited.settings
    scales = sorted({*SCALES, settings.model.score_scale})
    sought = sweep_settings(settings, scales)
    stored = len(sought) - len(missing_runs([one for one in sought if one != settings], store, corpus))
    silence, work = "", training_work(settings, corpus)
    if wanted is False:
        silence = "Other λ were not tried: --no-advice was given."
    elif wanted is None and work > MOST_WORK:
        silence = too_much(work, len(sought))
    kept = audited.path / "tables" / "advice.parquet"
    earlier = len(pd.read_parquet(kept)) if kept.is_file() else 0  # runs that the advice of an earlier audit rests on
    if silence and stored < (earlier or len(sought)):
        return Advice(words=silence + (_gone(kept.with_suffix(".csv"), earlier - stored) if earlier else ""))
    advice = recommend_scale(
        settings,
        store,
        corpus=corpus,
        scales=scales,
        workers=workers,
        observers=observers,
        watch=watch,
        only_stored=bool(silence),
    )
    return _judged(advice, settings.model, corpus)


def _judged(advice: Advice, model: ModelSettings, corpus: Corpus) -> Advice:
    """With the verdicts that the sweep over λ allows. The claims are about flat models."""
    if model.structure == "hierarchical" or len(advice.runs) < 2:
        return advice
    name = MODELS.get((model.attention, model.encoder), f"{model.attention}-{model.encoder}")
    measured = measure_runs(corpus.name, name, advice.runs, printed=False)
    verdicts = judge(scaling_claims(model, corpus.classes), {"scaling": measured})
    return replace(advice, measured=measured, verdicts=verdicts)


def scaling_claims(model: ModelSettings, classes: int) -> tuple[str, ...]:
    """The claims about λ that this model can be judged by, and of an LSTM that about its scopes.

    C9 is of several models together; what it says of this one, C1 and C2 say.
    """
    name = MODELS.get((model.attention, model.encoder))
    if name == PLAIN:
        return ("C4", "C11") if classes > 2 else ("C3", "C4", "C11", "C11b")
    return ("C12",) if name == RECURRENT else ()


def too_much(work: float, trainings: int) -> str:
    """Why λ was not tried out, whatever the machine, and how to ask for it."""
    return (
        f"Other λ were not tried: tokens × epochs × numbers per token are {work:.1e} for each of {trainings} "
        f"trainings, and more than {MOST_WORK:.0e} is done only when --advice asks for it."
    )


def _gone(kept: Path, count: int) -> str:
    """What is said where an earlier page had advice that cannot be given again."""
    are = "of its runs is" if count == 1 else "of its runs are"
    return f" An earlier audit tried them, but {count} {are} no longer in the store; what it found is kept in {kept}."


def training_work(settings: RunSettings, corpus: Corpus) -> float:
    """Tokens × epochs × numbers per token: how much a training has to do, whatever machine does it."""
    size = settings.model.embedding_size * (CONTEXTUAL_WORK if settings.model.contextual else 1)
    return float(corpus.train.offsets[-1]) * settings.training.epochs * size


def _results(
    wanted: Sequence[RunSettings],
    store: Store,
    corpus: Corpus,
    workers: int | None,
    observers: Sequence[Observer],
    watch: Callable[[SweepEvent], None] | None,
    only_stored: bool,
) -> Iterator[Run | str]:
    """Each run, from the store, from worker processes or computed here; or why it could not be computed."""
    missing = missing_runs(wanted, store, corpus)
    failed: dict[RunSettings, str] = {}
    here = False
    if only_stored:
        failed = dict.fromkeys(missing, "it is not in the store, and nothing was to be trained")
    elif len(missing) > 1 and (workers or _worthwhile(missing, corpus)) > 1:
        swept = sweep(Plan(name="λ", runs=tuple(missing)), store, workers=workers, watch=watch)
        failed = {failure.settings: failure.message for failure in swept.failures}
    else:
        here = True
    for settings in wanted:
        if watch and here and settings in missing:
            watch(Measuring(what="trainings", done=missing.index(settings), total=len(missing)))
        try:
            known = settings in failed
            result = failed[settings] if known else run(settings, store, corpus=corpus, observers=observers)
        except StoreError:
            raise
        except HeedfulError as error:  # a training that diverges says something of its λ only
            result = str(error)
        yield result


def _worthwhile(missing: Sequence[RunSettings], corpus: Corpus) -> int:
    """How many processes shall train, where nobody said: as many as there are cores, or this one where it is little."""
    return 1 if sum(training_work(one, corpus) for one in missing) < LITTLE_WORK else cores()


def missing_runs(wanted: Sequence[RunSettings], store: Store, corpus: Corpus) -> list[RunSettings]:
    """Those of some settings that the store has no run of."""
    stored = store.index()
    return [one for one in wanted if one.digest(corpus.fingerprint)[:PREFIX] not in stored]


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

    Runs that the store holds are not computed again. With several `workers` (None: by cores, where that is
    worth it) the others are computed in processes that read the corpus of the settings themselves; `epochs` bounds
    them.
    With `only_stored` nothing is computed, and runs that are missing are not compared.
    """
    if not scales or min(scales) <= 0:
        raise ConfigError(f"λ divides the attention scores and must be above 0; got {list(scales)}.")
    corpus = corpus or read_corpus(settings)
    wanted = sweep_settings(settings, scales, epochs)
    tried = _results(wanted, store, corpus, workers, observers, watch, only_stored)
    results = dict(zip(wanted, tried, strict=True))
    runs = [one for one in results.values() if isinstance(one, Run)]
    if not runs:
        raise ConfigError(f"No λ could be tried. {next(str(why) for why in results.values())}")
    said = [
        f"{combination(*_varied(one))} could not be tried: {why.rstrip('.')}."
        for one, why in results.items()
        if isinstance(why, str)
    ]
    given = _varied(settings)
    looks = pd.DataFrame([look(one) for one in runs]).astype(float)
    table = choose(looks, texts=len(corpus.dev), given=given)
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


def combination(scale: float, penalty: float) -> str:
    """One of the combinations, in words."""
    return f"λ = {scale:g} with a penalty on VᵀW of {penalty:g}" if penalty else f"λ = {scale:g}"


def _varied(settings: RunSettings) -> tuple[float, float]:
    return settings.model.score_scale, settings.training.alignment_penalty


def look(finished: Run) -> dict[str, float | None]:
    """Dev accuracy, separation of polar from neutral words, and parting of the classes in one run."""
    tokens = finished.table("tokens")
    found = matched_separation(tokens)
    scale, penalty = _varied(finished.settings)
    return {
        "scale": scale,
        "penalty": penalty,
        "dev_accuracy": float(finished.metrics["dev_accuracy"]),
        "learned": float(has_learned(finished.trace())),
        **bounds("separation", found),
        "polar": float(found.sides[0]),
        "even": float(found.sides[1]),
        "parting": class_parting(tokens),
    }


def class_parting(tokens: pd.DataFrame) -> float | None:
    """How far attention prefers the words of one class to those of another: the largest |AUC − ½| of any two."""
    groups = [rows["attention"].to_numpy(float) for _, rows in polar(tokens).groupby("group") if len(rows) >= FEWEST]
    return max((abs(area(one, other) - 0.5) for one, other in itertools.combinations(groups, 2)), default=None)


def choose(table: pd.DataFrame, *, texts: int, given: tuple[float, float]) -> pd.DataFrame:
    """The table with the columns `accurate`, `clear`, `tied` and `chosen`.

    `accurate`: dev accuracy within one standard error of the best, and shown to have learned something (M1). `clear`:
    accurate, and the whole interval of the separation above chance. `tied`: clear, and the separation not below the
    interval of the best one. Of those tied the given combination is chosen, or one without a penalty, or the most
    accurate: what makes no difference is left alone.
    """
    most = float(table["dev_accuracy"].max())
    error = math.sqrt(most * (1 - most) / texts)
    accurate = (table["dev_accuracy"] >= most - error) & (table["learned"] > 0)
    clear = accurate & (table["separation_low"] > CHANCE)
    chosen = pd.Series(False, index=table.index)
    tied = chosen.copy()
    if clear.any():
        best = _largest(table, clear)
        tied = clear & (table["separation"] >= best["separation_low"])
        other = ~((table["scale"] == given[0]) & (table["penalty"] == given[1]))
        order = table[tied].assign(other=other, worse=-table["dev_accuracy"])
        chosen[order.sort_values(["other", "penalty", "worse"], kind="stable").index[0]] = True
    return table.assign(accurate=accurate, clear=clear, tied=tied, chosen=chosen)


def _largest(table: pd.DataFrame, among: "pd.Series[bool]") -> "pd.Series[float]":
    """The row with the largest separation among some; where none has one, the first."""
    return table.iloc[int(table["separation"].where(among).fillna(-1.0).to_numpy().argmax())]


def advice_words(table: pd.DataFrame, given: tuple[float, float]) -> str:
    """The recommendation in plain words."""
    scales = ", ".join(f"{scale:g}" for scale in dict.fromkeys(table["scale"]))
    penalties = "" if table["penalty"].nunique() < 2 else ", each without and with a penalty on VᵀW"
    tried = f"λ = {scales}{penalties}"
    if table["separation"].isna().all():
        fewest = f"{table['polar'].max():.0f} polar, {table['even'].max():.0f} that all classes use alike"
        return (
            f"Of {tried}, none is recommended: too few words clearly belong to a class or to none ({fewest}) to "
            "compare attention by."
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
