"""The suite: every set asked about once, traces and readings alike, properties of metrics, and refusals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from heedful.analysis.decisions import decisions, wide
from heedful.analysis.faithfulness import METRICS, Faithfulness, Planted, faithfulness, plant
from heedful.analysis.faithfulness.drawing import retained
from heedful.analysis.faithfulness.metric import Case
from heedful.analysis.faithfulness.planted import hand_game
from heedful.analysis.faithfulness.removal import Asked, Prefixes, ReadingError, Sets, checked, drawn
from heedful.analysis.flips import TraceReading
from heedful.analysis.rankings import importance
from heedful.analysis.statistics import Numbers
from heedful.errors import InputError, UnknownName
from heedful.explanations import Explanation
from heedful.subjects import Reading, Units
from heedful.traces import Trace
from tests.oracles.random_traces import dyadic_trace, random_trace
from tests.strategies import ragged_scores, seeds

pytestmark = pytest.mark.usefixtures("one_thread")


def explained(trace: Trace, *rankings: str) -> list[Explanation]:
    units, chosen = TraceReading(trace=trace).units, decisions(trace)
    return [
        Explanation.on(units, importance(trace, by), chosen, trace.class_names, method=by, signed=by != "attention")
        for by in rankings
    ]


@dataclass(frozen=True, eq=False)
class Plain(Reading):
    """Another reading without what is special about it; remembers what it was asked."""

    inner: Reading
    asked: list[tuple[int, bytes]] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    @property
    def ways(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.inner.ways

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.inner.class_names

    @property
    def units(self) -> Units:
        return self.inner.units

    @property
    def probabilities(self) -> Tensor:
        return self.inner.probabilities

    def without(self, rows: Tensor, gone: Tensor, how: str) -> Tensor:
        parts = gone.split(self.units.lengths[rows].tolist())
        self.asked.extend((row, part.numpy().tobytes()) for row, part in zip(rows.tolist(), parts, strict=True))
        self.calls.append(len(rows))
        return self.inner.without(rows, gone, how)


def values_of(found: Faithfulness, method: str, metric: str) -> Numbers:
    table = found.instances
    return table.loc[(table["method"] == method) & (table["metric"] == metric), "value"].to_numpy(dtype=np.float64)


SEEING = [name for name, metric in METRICS.items() if metric.sees_model]


@pytest.mark.parametrize("seed", range(3))
def test_a_trace_and_a_reading_of_the_same_say_the_same(seed: int) -> None:
    trace = random_trace(seed, instances=40, longest=7)
    explanations = explained(trace, "attention", "product")
    exact = faithfulness(trace, explanations, SEEING, resamples=2)
    asked = faithfulness(Plain(TraceReading(trace=trace)), explanations, SEEING, resamples=2)
    for one in explanations:
        for name in SEEING:
            said, heard = (values_of(found, one.method, name) for found in (exact, asked))
            np.testing.assert_allclose(said, heard, atol=1e-9, err_msg=name)


def test_every_set_is_asked_about_once_and_all_at_once() -> None:
    trace = random_trace(1, instances=30, longest=9)
    reading = Plain(TraceReading(trace=trace))
    names = [name for name in SEEING if name != "naopc"]
    found = faithfulness(reading, explained(trace, "attention", "product", "gradient"), names, resamples=2)
    assert len(set(reading.asked)) == len(reading.asked) == found.passes
    assert reading.calls == [found.passes]
    assert found.table["passes"].sum() > 3 * found.passes
    again = faithfulness(Plain(TraceReading(trace=trace)), explained(trace, "attention"), ["naopc"], resamples=2)
    assert again.bounds is not None
    assert again.bounds["gap"].isna().tolist() == (trace.lengths > 10).tolist()


def test_a_table_row_per_method_and_metric_with_intervals() -> None:
    trace = random_trace(5, instances=60, longest=8)
    found = faithfulness(trace, explained(trace, "attention", "product"))
    columns = ["method", "metric", "value", "low", "high", "count", "direction", "seconds", "passes", "remark"]
    assert list(found.table) == columns
    wanted = [name for name, one in METRICS.items() if not one.needs or one.needs == ("others",)]
    assert found.table["metric"].tolist() == wanted * 2
    known = found.table.dropna(subset="value")
    assert (known["low"] <= known["value"]).all()
    assert (known["value"] <= known["high"]).all()
    assert (known["low"] < known["high"]).all()
    assert len(found.instances) == 2 * len(wanted) * 60
    assert found.bounds is not None
    assert (found.bounds["low"] <= found.bounds["high"]).all()
    assert "Faithfulness(attention, product: 21 metrics, 60 texts, units go by attention)" in found._repr_html_()
    assert "aopc ↑" in found._repr_html_()
    assert list(found.wide()) == ["attention", "product"]


def test_what_is_missing_is_said_and_not_measured() -> None:
    game = hand_game()
    one = Explanation.on(game.units, game.weights, torch.tensor([1]), game.class_names, method="w", signed=True)
    table = faithfulness(game, one, ["auprc", "sensitivity", "agreement_tau", "seconds", "passes", "aopc"]).table
    assert table["value"].isna().tolist() == [True] * 5 + [False]
    assert table["count"].tolist() == [0] * 5 + [1]
    assert table["remark"].tolist()[:3] == [
        "not measured: give rationales=, the units that people marked",
        "not measured: give again=, a function that explains under noise (heedful.explainers.noise)",
        "not measured: give two explanations or more",
    ]
    assert "auprc" not in faithfulness(game, one).table["metric"].tolist()
    unmarked = faithfulness(game, one, ["auprc", "token_f1"], rationales=[[False] * 4]).table
    assert unmarked["value"].isna().all()
    assert set(unmarked["remark"]) == {"no unit is marked"}


def test_the_same_seed_gives_the_same_numbers() -> None:
    world = plant("and", texts=20, seed=3)
    tables = [faithfulness(world.reading, world.truth, seed=seed).table for seed in (4, 4, 5)]
    columns = ["metric", "value", "low", "high"]
    assert tables[0][columns].equals(tables[1][columns])
    assert not tables[0][columns].equals(tables[2][columns])


def texts_of(scores: Sequence[Sequence[float]]) -> Planted:
    lengths = torch.tensor([len(one) for one in scores])
    weights = torch.tensor([number for one in scores for number in one], dtype=torch.float64)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    return Planted(on=Units(offsets=offsets), weights=weights, bias=torch.zeros(len(lengths), dtype=torch.float64))


@settings(max_examples=25)
@given(scores=ragged_scores(3.0), seed=seeds)
def test_properties_of_metrics_on_any_additive_game(scores: list[list[float]], seed: int) -> None:
    """No order beats the weights; values lie in their range; only the order counts where the card says so."""
    game = texts_of(scores)
    weights = game.weights * (2 * game.decisions - 1)[game.units.segments]
    drawn_scores = torch.from_numpy(np.random.default_rng(seed).normal(size=len(weights)))
    best = Explanation.on(game.units, weights, game.decisions, game.class_names, method="best", signed=True)
    explanations = [best, best.with_scores(drawn_scores, "drawn"), best.with_scores(drawn_scores.exp(), "raised")]
    found = faithfulness(game, explanations, SEEING, resamples=2)
    assert (values_of(found, "best", "aopc") >= values_of(found, "drawn", "aopc") - 1e-12).all()
    assert not (values_of(found, "best", "naopc") < 1 - 1e-6).any()
    for name in SEEING:
        metric = METRICS[name]
        own, other, raised = (values_of(found, method, name) for method in ("best", "drawn", "raised"))
        low, high = (-np.inf if metric.low is None else metric.low), (np.inf if metric.high is None else metric.high)
        assert not (np.stack([own, other, raised]) < low - 1e-9).any()
        assert not (np.stack([own, other, raised]) > high + 1e-9).any()
        if metric.signs.startswith("Only the order"):
            np.testing.assert_array_equal(other, raised, err_msg=name)


@given(scores=ragged_scores(5.0))
def test_chances_keep_the_same_mass_whatever_the_scores(scores: list[list[float]]) -> None:
    game = texts_of(scores)
    said = Explanation.on(game.units, game.weights, game.decisions, game.class_names, method="w", signed=True)
    chances = retained(Case(asked=Asked(game), explanation=said))
    assert ((chances >= 0) & (chances <= 1)).all()
    sums = torch.zeros(len(game.units), dtype=torch.float64).index_add_(0, game.units.segments, chances)
    torch.testing.assert_close(sums, game.units.lengths.double() / 4)
    falls = torch.diff(chances[said.order]) <= 1e-12
    assert falls[torch.diff(game.units.segments) == 0].all()


def test_drawn_sets_have_their_chances_and_all_sets_their_probabilities() -> None:
    units = Units(offsets=torch.tensor([0, 2, 14]))
    chances = torch.linspace(0, 1, 14, dtype=torch.float64)
    sets = drawn(units, chances, draws=4000, seed=1)
    own = sets.rows == 1
    lengths = units.lengths[sets.rows]
    marks = sets.gone[torch.repeat_interleave(own, lengths)].reshape(-1, 12).double()
    assert len(marks) == 4000
    share = (marks * sets.weights[own][:, None]).sum(0)
    torch.testing.assert_close(share, chances[2:], atol=0.04, rtol=0)
    assert int((~own).sum()) == 2  # the first unit of the first text has chance 0
    torch.testing.assert_close(sets.weights[~own].sum(), torch.tensor(1.0).double())


@pytest.mark.parametrize("kept", [False, True])
def test_prefixes_of_a_trace_are_what_erasing_says(kept: bool) -> None:
    for seed in range(4):
        trace = (random_trace if seed % 2 else dyadic_trace)(seed, instances=30, longest=8)
        reading = TraceReading(trace=trace)
        places = explained(trace, "product")[0].places
        rows = trace.segments
        sizes = torch.arange(len(rows)) - trace.offsets[rows] + (0 if kept else 1)
        question = Prefixes(places=places, rows=rows, sizes=sizes, kept=kept)
        exact = Asked(reading)
        asked = Asked(Plain(reading))
        torch.testing.assert_close(exact.hear(exact.note(question)), asked.hear(asked.note(question)))
        assert exact.passes == 0
    assert wide(random_trace(7, instances=20, longest=9)).any()


@dataclass(frozen=True, eq=False)
class Hostile(Plain):
    """Answers with something else."""

    answer: object = None
    whole: object = None

    @property
    def probabilities(self) -> Tensor:
        return self.inner.probabilities if self.whole is None else self.whole  # type: ignore[return-value]

    def without(self, rows: Tensor, *_: object) -> Tensor:
        return self.answer(rows) if callable(self.answer) else self.answer  # type: ignore[return-value]


ANSWERS: dict[str, Callable[[Tensor], Any]] = {
    "nan": lambda rows: torch.full((len(rows), 2), torch.nan).double(),
    "infinite": lambda rows: torch.full((len(rows), 2), torch.inf),
    "too few rows": lambda rows: torch.full((len(rows) - 1, 2), 0.5),
    "one class": lambda rows: torch.ones(len(rows), 1),
    "flat": lambda rows: torch.ones(len(rows)),
    "logits": lambda rows: torch.tensor([[-3.0, 4.0]]).expand(len(rows), 2),
    "negative": lambda rows: torch.tensor([[-0.5, 1.5]]).expand(len(rows), 2),
    "whole numbers": lambda rows: torch.ones(len(rows), 2, dtype=torch.int64),
    "a list": lambda rows: [[0.5, 0.5]] * len(rows),
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_no_probability_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(ReadingError, match=r"must answer with probabilities \[texts, classes\], here \[3, 2\]"):
        checked(ANSWERS[name](torch.arange(3)), 3, 2)


@pytest.mark.parametrize("name", ["nan", "too few rows", "one class", "logits", "negative"])
def test_hostile_readings_are_refused(name: str) -> None:
    game = hand_game()
    one = Explanation.on(game.units, game.weights, torch.tensor([1]), game.class_names, method="w", signed=True)
    with pytest.raises(ReadingError):
        faithfulness(Hostile(inner=game, answer=ANSWERS[name]), one)
    with pytest.raises(ReadingError):
        faithfulness(Hostile(inner=game, whole=ANSWERS[name](torch.arange(1))), one)


def test_explanations_of_other_units_are_refused() -> None:
    game = hand_game()
    said = {"targets": [1], "class_names": ["no", "yes"], "method": "me"}
    with pytest.raises(InputError, match="text 0 has 3 scores and 4 units"):
        faithfulness(game, Explanation.of_lists([[1.0, 2.0, 3.0]], **said))  # type: ignore[arg-type]
    own = Explanation.of_lists([[1.0, 2.0, 3.0, 0.0]], **said)  # type: ignore[arg-type]
    for wrong, sentence in (
        ([], "nothing to measure"),
        ([own, own], "two have the same"),
        (replace(own, class_names=("a", "b", "c")), "knows 3 classes, the reading 2"),
        (replace(own, class_names=("yes", "no")), "'me' has the classes yes, no, the reading no, yes: give one"),
        (replace(own, texts=["a good fine film"]), "text 0 is 'a good fine film', not 'a good dull film'"),
        (replace(own, targets=torch.tensor([2])), "a class from 0 to 1"),
        (replace(own, offsets=torch.tensor([0, 2, 4])), "explains 2 texts, the reading has 1"),
    ):
        with pytest.raises(InputError, match=sentence):
            faithfulness(game, wrong)
    with pytest.raises(InputError, match="a mark for each unit of each text"):
        faithfulness(game, own, rationales=[[True, False]])
    for about in ({"seed": -1}, {"resamples": 0}, {"level": 1.5}):
        with pytest.raises(InputError, match="seed must be 0 or more, resamples 1 or more, level between 0 and 1; got"):
            faithfulness(game, own, **about)
    with pytest.raises(InputError, match=r"expected 4, got \[3\]"):
        faithfulness(game, own, rationales=torch.tensor([True, False, True]))
    with pytest.raises(UnknownName, match="way to take units away 'mask'"):
        faithfulness(game, own, how="mask")
    with pytest.raises(InputError, match="again= gives for 'me' must explain the same units"):
        faithfulness(game, own, again={"me": lambda _: replace(own, offsets=torch.tensor([0, 3, 4]))})


@dataclass
class Reader:
    """A subject that reads nothing but the hand game."""

    name: str = "hand"
    class_names: tuple[str, ...] = ("no", "yes")

    def read(self, texts: Sequence[str]) -> Reading:
        assert list(texts) == ["a good dull film"]
        return hand_game()


def test_a_subject_reads_the_texts_of_the_explanations() -> None:
    game = hand_game()
    own = Explanation.on(game.units, game.weights, torch.tensor([1]), game.class_names, method="w", signed=True)
    assert faithfulness(Reader(), own, "aopc").table["value"].tolist() == pytest.approx([7 / 16])
    with pytest.raises(InputError, match="the explanation has none: give it its texts"):
        faithfulness(Reader(), replace(own, texts=None))


def test_sets_that_were_asked_are_not_asked_again() -> None:
    reading = Plain(hand_game())
    asked = Asked(reading)
    some = Sets(rows=torch.tensor([0, 0]), gone=torch.tensor([True, False, False, False] * 2))
    first = asked.hear(asked.note(some))
    assert asked.passes == 1
    assert torch.equal(asked.hear(asked.note(some)), first)
    assert reading.calls == [1]
