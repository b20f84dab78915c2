"""`heedful faithfulness --watch`: which metrics to trust on planted worlds, and which explainers they prefer there."""

from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.agreement import agree
from heedful.analysis.faithfulness import World, diagnosticity, faithfulness, plant
from heedful.analysis.faithfulness.metric import LOWER
from heedful.analysis.faithfulness.metrics import METRICS, find_metric
from heedful.analysis.faithfulness.planted import MAKERS
from heedful.analysis.faithfulness.watching import DISTRUST, PERMUTED, TRUST
from heedful.errors import DataError
from heedful.explainers import explain_all, possible
from heedful.explanations import Explanation
from heedful.notebook import counted
from heedful.report.page import Page, PageTable, Section
from heedful.studies.compare import BESIDE
from heedful.studies.faithfulness import Wanted, Watch
from heedful.studies.models import Stages, drawn_rows
from heedful.studies.rationales import Marked, marks_of
from heedful.subjects import DELETE, Reading, Subject

_TRUTH, _RANK = "τ with the truth", "mean rank"


def watch_metrics(
    worlds: Mapping[str, World] | None = None,
    *,
    metrics: Sequence[str] | None = None,
    by: Sequence[str] | None = None,
    how: str | None = None,
    texts: int = 200,
    seed: int = 0,
    said: Sequence[str] = (),
    watch: Watch | None = None,
) -> Page:
    """Which metrics know the truth where it is planted, and which explainers do best by those that do.

    worlds: one's own planted corpora by name (`marked_world`); None plants four. by: names of explainers; None takes
    all that every world can have. how: how units go; None as each world usually does it. said: what must be said of
    the worlds.
    """
    stages = Stages(watch)
    stages.begin("watching the metrics")
    planted = worlds or {name: plant(name, texts=texts, seed=seed) for name in MAKERS}
    found = diagnosticity(planted, metrics, how=how, seed=seed)
    passed = [name for name, rows in _permuted(found).groupby("metric", sort=False) if (rows["verdict"] == TRUST).all()]
    stages.begin("watching the explainers")
    explained = explainers_on(planted, [str(name) for name in passed], by=by, how=how, seed=seed)
    none = "No metric may be trusted here."
    headline = (
        f"{counted(len(passed), 'metric')} may be trusted here: {', '.join(map(str, passed))}." if passed else none
    )
    return Page(
        title="Who watches the metrics",
        headline=headline,
        sections=[
            Section(
                name="metrics",
                title="Does a metric prefer the truth over the same numbers in other places?",
                lead="The share of texts on which it does, equal values counting half, with its 95 % interval; it is "
                "trusted where the interval lies above .9 in every world.",
                tables=[PageTable(name="diagnosticity", cells=_in_words(found), data=found)],
            ),
            Section(
                name="explainers",
                title="Explainers by the metrics that may be trusted",
                lead="Best first by the mean of their ranks by all these metrics; τ with the truth is Kendall's, the "
                "mean over texts.",
                tables=[PageTable(name="explainers", cells=_beside(explained), data=explained)],
            ),
        ],
        notices=said,
        facts={"Measured": {"worlds": ", ".join(planted), "texts": f"{texts:,}", "seed": seed}},
    )


def watch_on(model: Subject, marked: Marked, wanted: Wanted, *, name: str, watch: Watch | None = None) -> Page:
    """The same on a planted corpus of one's own: texts drawn by the seed, in which the words that matter are marked."""
    every = list(marked)
    texts = [every[row] for row in drawn_rows(len(every), wanted.texts, wanted.seed).tolist()]
    reading = model.read(texts)
    how = wanted.how or (DELETE if DELETE in reading.ways else reading.ways[0])
    world, said = marked_world(model, reading, marked, how=how)
    about = {"metrics": wanted.metrics, "by": wanted.by, "how": how, "texts": len(texts), "seed": wanted.seed}
    return watch_metrics({name: world}, **about, said=said, watch=watch)  # type: ignore[arg-type]


def _permuted(found: pd.DataFrame) -> pd.DataFrame:
    return found[(found["control"] == PERMUTED) & (found["world"] != "all")]


def _in_words(found: pd.DataFrame) -> pd.DataFrame:
    """A row for each metric: its diagnosticity in each world, and the verdict of all."""
    own = _permuted(found)
    shown = [f"{value:.2f} [{low:.2f}, {high:.2f}]" for value, low, high in _ends(own)]
    wide = own.assign(shown=shown).pivot(index="metric", columns="world", values="shown")
    verdicts = own.groupby("metric")["verdict"].agg(lambda said: TRUST if (said == TRUST).all() else DISTRUST)
    order = own.groupby("metric")["diagnosticity"].min().sort_values(ascending=False, kind="stable").index
    cells = wide.loc[order, list(dict.fromkeys(own["world"]))].assign(verdict=verdicts)
    return cells.rename_axis("metric").reset_index()


def _ends(rows: pd.DataFrame) -> list[tuple[float, float, float]]:
    return list(zip(rows["diagnosticity"], rows["low"], rows["high"], strict=True))


def _beside(table: pd.DataFrame) -> pd.DataFrame:
    """What is shown of explainers: the metrics that stand beside each other elsewhere, or the first few."""
    shown = [name for name in BESIDE if name in table] or [name for name in table if name in METRICS][: len(BESIDE)]
    numbers = [_TRUTH, _RANK, *shown]
    rounded = {name: ["–" if pd.isna(one) else f"{one:.3f}" for one in table[name]] for name in numbers}
    return pd.DataFrame({"explainer": table["explainer"], **rounded})


def explainers_on(
    worlds: Mapping[str, World],
    metrics: Sequence[str],
    *,
    by: Sequence[str] | None = None,
    how: str | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """One row per explainer that every world has: mean rank, means by these metrics, and τ with the truth."""
    at_hand = [possible(world.reading) for world in worlds.values()]
    shared = by or [name for name in at_hand[0] if all(name in names for names in at_hand)]
    parts = [_of_world(world, shared, metrics, how, seed) for world in worlds.values()]
    means = pd.concat(parts).groupby(level=0, sort=False).mean()
    signed = {name: means[name] * (1 if find_metric(name).direction == LOWER else -1) for name in metrics}
    rank = (pd.DataFrame(signed) if signed else -means[["truth"]]).rank().mean(axis=1)
    table = means.rename(columns={"truth": _TRUTH}).assign(**{_RANK: rank})
    ordered = table.sort_values(_RANK, kind="stable")[[_RANK, *metrics, _TRUTH]]
    return ordered.rename_axis("explainer").reset_index()


def _of_world(world: World, names: Sequence[str], metrics: Sequence[str], how: str | None, seed: int) -> pd.DataFrame:
    """One row per explainer: the means of the metrics, and of τ with the truth."""
    found = explain_all(world.reading, names, targets=world.truth.targets, how=how, seed=seed)
    truth = {one.method: _with_truth(one, world.truth) for one in found}
    table = pd.DataFrame({"truth": truth})
    if not metrics:
        return table
    measured = faithfulness(world.reading, found, list(metrics), how=how, seed=seed).table
    return table.join(measured.pivot(index="method", columns="metric", values="value"))


def _with_truth(one: Explanation, truth: Explanation) -> float:
    return float(agree(one.scores, truth.scores, truth.offsets).tau.nanmean())


def marked_world(model: Subject, reading: Reading, marked: Marked, *, how: str) -> tuple[World, list[str]]:
    """A planted corpus of one's own, and what must be said of it: marked words have importance one, all others none.

    Of the texts whose decision rests on the marked words: it is another without them. In the others the model goes by
    something else than what was planted (as for a class that it decides for unless words speak against it), and what
    matters to it is not known.
    """
    texts, marks = list(reading.units.texts or ()), marks_of(marked, reading.units)
    if not bool(marks.any()):
        raise DataError("No word is marked in the texts that were read: nothing is known to be important.")
    rests = reading.decide(torch.arange(len(texts)), marks, how) != reading.decisions
    kept, named = [texts[row] for row in rests.nonzero().squeeze(1).tolist()], counted(len(texts), "text")
    if not kept:
        raise DataError(
            f"In none of {named} the decision of {model.name} is another without the marked words (“{how}”): it goes "
            "by something else, and what matters to it is not known."
        )
    used = model.read(kept)
    scores: Float[Tensor, " units"] = marks_of(marked, used.units).double()
    about = (used.decisions.cpu(), used.class_names)
    truth = Explanation.on(used.units, scores, *about, method="truth", signed=False)
    said = f"{len(kept):,} of {named} count: in the others {model.name} decides the same without the marked words."
    return World(reading=used, truth=truth), [said] if len(kept) < len(texts) else []
