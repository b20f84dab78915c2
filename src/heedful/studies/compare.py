"""Explanations beside each other: which can be had of a reading, every metric of each, and which one to use.

Which is best is chosen on one half of the texts, by AOPC, which knows the truth where it is planted
(docs/faithfulness.md); whether it is better than attention, or than chance where there is none, is asked of the same
number on the other half.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool
from torch import Tensor

from heedful.analysis.faithfulness.cost import MOST_UNITS, Cost, cost_of_metrics, total
from heedful.analysis.faithfulness.looking import NOISES, SENSITIVITY
from heedful.analysis.faithfulness.metrics import ARROWS, METRICS, find_metric
from heedful.analysis.faithfulness.suite import Faithfulness, faithfulness
from heedful.analysis.faithfulness.watching import TRUSTED_METRICS
from heedful.analysis.flips import TraceReading
from heedful.analysis.statistics import FEWEST
from heedful.claims import Verdict, judge
from heedful.claims.removal import better_by
from heedful.errors import InputError, UnknownName
from heedful.explainers import EXPLAINERS, explain_all, find_explainer, possible
from heedful.explainers.noise import no_noise, under_noise
from heedful.explanation_files import ERASER, write_explanations
from heedful.explanations import Explanation
from heedful.figures.faithfulness import metric_grid
from heedful.figures.picture import Figure, Picture
from heedful.notebook import counted
from heedful.report.page import PageTable, Section
from heedful.studies.models import Stages
from heedful.subjects import ATTENTION as GONE_BY_ATTENTION
from heedful.subjects import WAYS, Reading

ATTENTION, CHANCE, AREA = "attention", "random", "aopc"

USUAL = (
    *("attention", "attention_layers", "rollout", "attention_gradient", "attention_gradient_rollout"),
    *("norms", "value_zeroing", "input_gradient", "integrated_gradients"),
    *("gradient", "product", "polarity", "margin"),
    *("leave_one_out", "occlusion", "kernel_shap", "random"),
)
"""What is compared where nothing else is asked for, as far as it can be had; the others cost most or say least."""

BESIDE = tuple(name for name in TRUSTED_METRICS if name not in {"tau_loo", "naopc", "deletion"})
"""The metrics that are shown beside each other. τ with leave-one-out prefers leave-one-out by definition, NAOPC is of
traces, and deletion differs from AOPC by the same number for all explanations of a text."""

FEW = 6
"""So many metrics stand beside each other, whichever they are."""

GRID = Figure(
    name="explanations-by-metrics",
    title="Explanations by metrics",
    caption="The mean of each metric over the texts. In each row the best explanation is dark and the worst is white; "
    "a dot marks those whose interval overlaps that of the best. Metrics without a better end are grey.",
    needs=("faithfulness",),
    draw=lambda tables: metric_grid(tables["faithfulness"]),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """The explanation with the largest AOPC on one half of the texts, and whether it is better than its rival there."""

    best: str
    rival: str
    """Attention; where there is none, chance."""
    areas: pd.DataFrame
    """One row per explanation: its mean AOPC on the texts that choose, best first."""
    differences: pd.DataFrame
    """One row per text that did not choose: instance, difference of the AOPC of the best and that of its rival."""
    verdict: Verdict | None
    """D5, where the rival is attention."""

    @property
    def words(self) -> str:
        """What to use, in a sentence."""
        best, ahead = self.best.replace("_", " "), better_by(self.differences)
        if ahead.count < FEWEST:
            return f"There are too few texts to say which explanation to use: {2 * FEWEST} are needed."
        if self.rival != ATTENTION:
            told = f"{ahead.value:+.3f} [{ahead.low:+.3f}, {ahead.high:+.3f}] against chance"
            if ahead.low > 0:
                return f"Of the explanations at hand use {best}: it has the largest AOPC ({told})."
            return f"No explanation at hand is shown to be better than chance: the best is {best} (AOPC {told})."
        if ahead.low > 0:
            return f"Use {best} rather than attention: its AOPC is larger."
        if ahead.high < 0:
            return f"By AOPC attention is truer to the model than {best}, the best of the others."
        return f"By AOPC attention and {best}, the best of the others, cannot be told apart."


@dataclass(frozen=True, kw_only=True, eq=False)
class Compared:
    """Explanations of some texts before their model."""

    explanations: Sequence[Explanation]
    measured: Faithfulness
    left_out: Mapping[str, str]
    """Explainers that cannot be had here, and why; and those that were not asked for."""
    choice: Choice | None
    """None where nothing can be chosen."""
    why_none: str = "Nothing is chosen: that takes AOPC, and two explanations of which one is attention or chance."

    def save_texts(self, folder: Path) -> None:
        """Every explanation of every text: to be read again (`--explanations`), with a row for each unit, and each in
        ERASER's form."""
        for ending in (".parquet", ".jsonl", ".csv"):
            write_explanations(folder / f"explained-texts{ending}", self.explanations)
        for number, one in enumerate(self.explanations):
            name = re.sub(r"[^\w.-]+", "-", one.method)[:100]  # it may come from a file
            write_explanations(folder / f"explained-texts-{number}-{name}{ERASER}", [one])

    def explanation(self, method: str) -> Explanation | None:
        return next((one for one in self.explanations if one.method == method), None)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """As they are saved: the means with intervals, and every text."""
        found = {"faithfulness": self.measured.table, "faithfulness-texts": self.measured.instances}
        return found if self.measured.bounds is None else {**found, "naopc-bounds": self.measured.bounds}

    def picture(self) -> Picture:
        return GRID.picture(self.tables)

    def section(self) -> Section:
        """It as a part of a page; all metrics stand in a section of their own."""
        choice = self.choice
        reasons = {why: [name for name, own in self.left_out.items() if own == why] for why in self.left_out.values()}
        left = [f"{', '.join(names)}: {why}" for why, names in reasons.items()]
        count = self.measured.instances["instance"].nunique()
        verdicts = [choice.verdict] if choice and choice.verdict else []
        best = PageTable(name="explanations", cells=self._brief(), data=self._brief())
        told = f"{choice.words if choice else self.why_none} On {counted(count, 'test text')}; units go by"
        known = [KNOWN] if set(self._shown()) <= set(TRUSTED_METRICS) else []
        return Section(
            name="explanations",
            title="Which explanation to use",
            lead=" ".join([f"{told} “{self.measured.how}”.", *self._unmeasured()]),
            verdicts=verdicts,
            tables=[best],
            note=" ".join([NOTE, *known, *self._remarks(), *([f"Not here: {' '.join(left)}"] if left else [])]),
            pictures=[self.picture()],
        )

    def whole_section(self) -> Section:
        """Every explanation by every metric, with intervals."""
        cells = in_intervals(self.measured.table)
        table = PageTable(name="faithfulness", cells=cells, data=self.measured.table)
        lead = (
            f"Means over the texts with their 95 % intervals: {len(cells)} metrics, {cells.shape[1] - 1} explanations."
        )
        note = "What each metric computes, and what inflates it, says its card."
        return Section(
            name="faithfulness",
            title="Explanations by metrics",
            lead=lead,
            tables=[table],
            note=note,
            on_terminal=False,
        )

    def _shown(self) -> list[str]:
        """The metrics beside each other: all of a few, of many those that may be trusted."""
        every = [str(name) for name in self.measured.table["metric"].unique()]
        return every if len(every) <= FEW else [name for name in BESIDE if name in every] or every[:FEW]

    def _brief(self) -> pd.DataFrame:
        """One row per explanation, best first: some metrics, and the cost of a text."""
        table, shown = self.measured.table, self._shown()
        wide = table.pivot(index="method", columns="metric", values="value")
        order = self.choice.areas["explanation"].tolist() if self.choice else table["method"].unique().tolist()
        names = {str(name): _headed(str(name), table) for name in shown}
        cells = wide.loc[order, shown].map(_number).rename(columns=names)
        cost = {one.method: one.seconds for one in self.explanations}
        count = len(self.explanations[0])
        spent = [_number((cost[name] or np.nan) / count) for name in order]
        return cells.assign(**{"seconds ↓": spent}).rename_axis("explanation").reset_index()

    def _remarks(self) -> Iterator[str]:
        """What must be said of explanations, each sentence once."""
        said = self.measured.remarks
        for remark in dict.fromkeys(said.values()):
            yield f"Of {', '.join(name for name, own in said.items() if own == remark)}: {remark}"

    def _unmeasured(self) -> Iterator[str]:
        """Which metrics have no value, and why."""
        empty = self.measured.table[self.measured.table["value"].isna()]
        for remark in empty["remark"].unique().tolist():
            names = ", ".join(empty.loc[empty["remark"] == remark, "metric"].unique())
            yield f"No value of {names}: {remark.removeprefix('not measured: ') or 'no text has one'}."


NOTE = (
    "Best first, by AOPC on one half of the texts; whether the best is better than attention is asked on the other "
    "half."
)
KNOWN = "All these metrics know the truth where it is planted."


def _headed(name: str, table: pd.DataFrame) -> str:
    arrow = ARROWS.get(str(table.loc[table["metric"] == name, "direction"].iloc[0]), "")
    return f"{name} {arrow}".strip().replace("_", " ")


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"


def in_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each metric with an arrow to what is better, a column for each explanation: mean [low, high]."""
    shown = [
        "–" if np.isnan(value) else f"{value:.3f} [{low:.3f}, {high:.3f}]"
        for value, low, high in zip(table["value"], table["low"], table["high"], strict=True)
    ]
    names = [_headed(str(name), table) for name in dict.fromkeys(table["metric"])]
    wide = table.assign(shown=shown).pivot(index="metric", columns="method", values="shown")
    ordered = wide.loc[list(dict.fromkeys(table["metric"])), list(dict.fromkeys(table["method"]))]
    return ordered.set_axis(names).rename_axis("metric").reset_index()


def chosen_explainers(reading: Reading, names: Sequence[str] | None) -> tuple[list[str], dict[str, str]]:
    """By which explainers: those asked for, or the usual ones that can be had; and why the others cannot."""
    if names is not None:
        return list(names), {}
    at_hand = possible(reading)
    chosen = [name for name in USUAL if name in at_hand]
    left = {name: EXPLAINERS[name].why_not(reading) for name in USUAL if name in EXPLAINERS and name not in at_hand}
    return chosen, left


Names = Sequence[str] | None


def check_names(by: Names, metrics: Names, how: str | None) -> tuple[Names, Names]:
    """Explainers and metrics as lists, one of a single name; what is called like nothing that there is is refused."""
    given = [[names] if isinstance(names, str) else names for names in (by, metrics)]
    for what, names, find in zip(("explainer", "metric"), given, (find_explainer, find_metric), strict=True):
        if names is not None and not names:
            raise InputError(f"One {what} or more must be named; an empty list was given.")
        for name in names or ():
            find(name)
        if twice := [name for name, count in Counter(names or ()).items() if count > 1]:
            raise InputError(f"The {what} '{twice[0]}' is named twice; once is enough.")
    if how not in (None, *WAYS):
        raise UnknownName("way to take units away", how, WAYS)
    return given[0], given[1]


def compare(
    reading: Reading,
    *,
    by: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    given: Sequence[Explanation] = (),
    how: str | None = None,
    rationales: Bool[Tensor, " units"] | None = None,
    seed: int = 0,
    most: int = MOST_UNITS,
    beside: Cost | None = None,
    stages: Stages | None = None,
) -> Compared:
    """Explain the texts of a reading in several ways, and measure all that can be measured of each.

    by: names of explainers; None takes the usual ones. given: explanations that are there already, of the same units.
    most: so many units of changed texts the model reads at most, with what it reads `beside` for something else.
    """
    by, metrics = check_names(by, metrics, how)
    names, left = chosen_explainers(reading, by)
    told = stages or Stages(None)
    if both := {one.method for one in given} & set(names):
        raise InputError(
            f"'{min(both)}' is an explainer that is asked for and an explanation that is given: rename one."
        )
    noisy = SENSITIVITY.name in (metrics or ()) and not no_noise(reading)
    cost = cost_of(reading, names, metrics, len(given), how, again=NOISES if noisy else 0)
    total((cost, beside or Cost())).check("explain and to measure", reading.units.lengths, most)
    told.begin(f"explaining and measuring{f': {cost}' if cost.texts else ''}")
    explained = [*explain_all(reading, names, how=how, seed=seed, most=most, watch=told.told), *given]
    _refuse_other_classes(explained)
    told.begin("measuring")
    again = {find_explainer(name).name: under_noise(reading, name, how=how, seed=seed) for name in names if noisy}
    about = {"how": how, "seed": seed, "rationales": rationales, "most": most}
    measured = faithfulness(reading, explained, metrics, again=again, **about)  # type: ignore[arg-type]
    return Compared(explanations=explained, measured=measured, left_out=left, choice=choose(measured, seed=seed))


def cost_of(
    reading: Reading,
    names: Sequence[str],
    metrics: Sequence[str] | None,
    given: int,
    how: str | None,
    *,
    again: int = 0,
) -> Cost:
    """What the model reads at most for so many explanations and their metrics; a trace says it without reading.

    again: how often everything is explained once more, under noise.
    """
    if isinstance(reading, TraceReading) and how in (None, GONE_BY_ATTENTION):
        return Cost()
    chosen = (
        [find_metric(name) for name in metrics] if metrics else [one for one in METRICS.values() if not one.bounded]
    )
    explainers = total(find_explainer(name).cost(reading.units) for name in names)
    return explainers.times(1 + again) + cost_of_metrics(chosen, len(names) + given, reading.units.lengths)


def _refuse_other_classes(explained: Sequence[Explanation]) -> None:
    """What speaks for one class cannot be compared with what speaks for another."""
    for one in explained[1:]:
        other = (one.targets != explained[0].targets).nonzero()
        if len(other):
            row, names = int(other[0]), one.class_names
            raise InputError(
                f"'{one.method}' explains another class than '{explained[0].method}' in {counted(len(other), 'text')}, "
                f"such as text {row} ('{names[int(one.targets[row])]}', not "
                f"'{names[int(explained[0].targets[row])]}'). Explanations are compared of the same class: that which "
                "the model decides for."
            )


def choose(measured: Faithfulness, *, seed: int = 0) -> Choice | None:
    """The explanation with the largest AOPC, attention and chance aside; and whether it is better than one of these."""
    areas = measured.instances[measured.instances["metric"] == AREA].pivot(
        index="instance", columns="method", values="value"
    )
    rival = next((name for name in (ATTENTION, CHANCE) if name in areas), None)
    half = np.random.default_rng(seed).permutation(len(areas)) % 2 == 0
    means = areas[half].dropna().mean().sort_values(ascending=False, kind="stable")
    others = [name for name in means.index if name not in {ATTENTION, CHANCE}]
    if rival is None or not others:
        return None
    apart = areas.loc[~half, others[0]] - areas.loc[~half, rival]
    differences = apart.rename("difference").rename_axis("instance").reset_index()
    return Choice(
        best=others[0],
        rival=rival,
        areas=means.rename(AREA).rename_axis("explanation").reset_index(),
        differences=differences,
        verdict=judge(("D5",), {"chosen": differences})[0] if rival == ATTENTION else None,
    )
