"""The study of Wiegreffe & Pinter 2019: its runs, its tables by hand, and all of it by its command on a small file."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.analysis.adversary import adversarial_attention
from heedful.config import RunSettings
from heedful.pipeline import Run
from heedful.studies import jain2019
from heedful.studies.jain2019 import runs as jain_runs
from heedful.studies.study import Selection, find_study, want
from heedful.studies.wiegreffe2019 import STUDY, runs, tables
from heedful.studies.wiegreffe2019.divergence import EPSILONS, apart, farthest_within
from heedful.studies.wiegreffe2019.runs import ADVERSARY, GUIDE, GUIDES, LSTM, LSTMS, MODELS, settings_of, trials
from heedful.traces import Trace
from tests.covering import covers
from tests.studies.test_serrano_study import call, reproduced

pytestmark = pytest.mark.xdist_group("wiegreffe study")  # one worker makes what these tests share

KINDS = ("adversary", "per text", "corpus", "seeds", "uniform")


def test_the_base_and_the_own_diagnostic_model_are_those_of_jain_and_wallace() -> None:
    """So that a store that has them is not asked to train them again."""
    for seed in (0, 2):
        assert settings_of("sst", LSTM, seed) == jain_runs.settings_of("sst", "lstm+tanh", seed)
        assert settings_of("sst", "mlp+own", seed) == jain_runs.settings_of("sst", "average+tanh", seed)


def test_models_differ_from_the_base_in_what_their_names_say() -> None:
    base = settings_of("sst", LSTM, 1)
    for model, weights in LSTMS.items():
        assert settings_of("sst", model, 1).model == base.model.model_copy(update={"attention_weights": weights})
        assert settings_of("sst", model, 1).training == base.training
    adversary = settings_of("sst", ADVERSARY, 1, 0.003)
    assert adversary.model == base.model
    assert (adversary.training.objective, adversary.training.objective_weight) == ("adversary", 0.003)
    assert adversary.base == base
    token_wise = settings_of("sst", "mlp+own", 1).model
    given = {"uniform": "uniform", "own": "learned", "base": "given", "adversary": "given"}
    for model, weights in GUIDES.items():
        made = settings_of("sst", model, 1, 0.003).model
        assert made == token_wise.model_copy(update={"attention_weights": given[weights]})
        assert not made.contextual
    assert settings_of("sst", "mlp+base", 1).base == base
    assert settings_of("sst", "mlp+adversary", 1, 0.003).base == adversary
    assert settings_of("sst", "mlp+uniform", 1).base is None


def test_every_run_is_one_of_its_own_and_its_bases_are_among_them() -> None:
    """Per seed 3 + 4 models and one for each λ of the adversary and of the diagnostic model on it."""
    chosen = Selection(datasets=("sst", "20news-1"), models=tuple(MODELS), seeds=2, synthetic=False)
    wanted = [trial.settings for trial in trials(chosen)]
    assert len(wanted) == 2 * (6 + 2 * 5) + 2 * (6 + 2 * 2)
    assert len({settings.digest("the data") for settings in wanted}) == len(wanted)
    assert {settings.base for settings in wanted if settings.base} <= set(wanted)


def test_bases_are_planned_before_what_rests_on_them() -> None:
    order = sorted((settings_of("sst", model) for model in MODELS), key=runs.cost, reverse=True)
    assert all(order.index(one.base) < order.index(one) for one in order if one.base)
    assert order[0].model.encoder == "lstm"


@pytest.mark.parametrize(
    ("settings", "strength"),
    [
        (settings_of("sst", LSTM), None),
        (settings_of("sst", "mlp+base"), None),
        (settings_of("sst", ADVERSARY, 0, 0.1), 0.1),
        (settings_of("sst", "mlp+adversary", 0, 0.1), 0.1),
    ],
)
def test_an_adversary_is_told_by_its_strength(settings: RunSettings, strength: float | None) -> None:
    assert runs.strength_of(settings) == strength


def test_quick_has_two_seeds_and_two_adversaries_on_sst() -> None:
    selection = want(STUDY, quick=True).selection
    assert (selection.datasets, selection.seeds) == (("sst",), 2)
    assert "lstm+frozen" not in selection.models
    assert [trial.settings.training.objective_weight for trial in trials(selection, ADVERSARY)] == [
        0.001, 0.001, GUIDE, GUIDE,
    ]  # fmt: skip


def numbers(table: pd.DataFrame, row: str, *columns: str) -> list[float]:
    return [float(table[column][row]) for column in columns]


def accuracies(**by_weights: list[float]) -> pd.DataFrame:
    rows = [
        {"dataset": "sst", "model": "lstm", "weights": weights, "seed": seed, "instances": 100, "strength": np.nan,
         "test_accuracy": value, "test_accuracy_low": value - 0.05, "test_accuracy_high": value + 0.04}
        for weights, values in by_weights.items() for seed, value in enumerate(values)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_accuracy_is_shown_by_weights_with_students_interval_over_seeds() -> None:
    """.80, .81, .82: deviation .01, 4.3027 / √3 of it to either side; a single seed has the interval of its texts."""
    table = tables.weights_table(accuracies(learned=[0.80, 0.81, 0.82], uniform=[0.5])).set_index("weights")
    half = 100 * 4.302653 * 0.01 / math.sqrt(3)
    assert numbers(table, "learned", "accuracy", "low", "high") == pytest.approx([81, 81 - half, 81 + half])
    assert numbers(table, "uniform", "accuracy", "low", "high") == pytest.approx([50, 45, 54])
    assert table["seeds"].tolist() == [3, 1]
    (printed,) = tables.weights_as_printed(table.reset_index()).to_dict("records")
    assert printed == {"dataset": "sst", "learned": "81.0 [78.5, 83.5]", "uniform": "50.0 [45.0, 54.0]"}


def test_adversaries_of_the_diagnostic_table_are_told_apart_by_their_strength() -> None:
    rows = accuracies(base=[0.8], adversary=[0.6], another=[0.7]).assign(strength=[np.nan, 0.01, 0.001])
    table = tables.diagnostic_table(rows)
    assert dict(zip(table["weights"], table["accuracy"].round(6), strict=True)) == {
        "base": 80.0, "adversary, λ = 0.01": 60.0, "adversary, λ = 0.001": 70.0,
    }  # fmt: skip


def test_seeds_are_summed_up_by_quarters_of_the_largest_weight_without_texts_of_one_unit() -> None:
    rows = pd.DataFrame(
        {
            "dataset": "sst", "model": LSTM, "seed": 1, "units": [4, 4, 5, 6, 1],
            "largest_weight": [0.24, 0.2, 0.75, 1.0, 1.0], "jsd": [0.1, 0.3, 0.2, 0.6, 0.0],
            "tvd": [0.01, 0.03, 0.2, 0.0, 0.9],
        }
    )  # fmt: skip
    table = tables.seeds_summary(rows).set_index("largest_weight")
    assert numbers(table, "0–.25", "texts", "median_jsd", "median_tvd") == pytest.approx([2, 0.2, 0.02])
    assert numbers(table, ".75–1", "texts", "median_jsd", "median_tvd") == pytest.approx([2, 0.4, 0.1])
    (printed,) = tables.seeds_as_printed(table.reset_index()).to_dict("records")
    assert printed == {"dataset": "sst", "0–.25": "0.200, 0.020 (2)", ".75–1": "0.400, 0.100 (2)"}


def points() -> pd.DataFrame:
    """Two seeds of an adversary, one point of each other kind."""
    rows = [
        ("adversary", 0, 0.01, 0.06, 0.5, 0.6), ("adversary", 1, 0.01, 0.08, 0.6, 0.64),
        ("per text", 0, 0.0, 0.0, 0.55, np.nan), ("per text", 0, 0.05, 0.03, 0.62, np.nan),
        ("corpus", 0, 0.05, 0.05, 0.3, np.nan), ("uniform", 0, np.nan, 0.1, 0.2, np.nan),
        ("seeds", 1, np.nan, 0.09, 0.15, np.nan),
    ]  # fmt: skip
    columns = ["kind", "seed", "strength", "tvd", "jsd", "jsd_per_text"]
    return pd.DataFrame(rows, columns=columns).assign(dataset="sst", model=LSTM)


def test_points_of_the_curve_are_means_over_seeds() -> None:
    table = tables.curve_summary(points()).set_index("kind")
    assert numbers(table, "adversary", "strength", "tvd", "jsd", "jsd_per_text", "seeds") == pytest.approx(
        [0.01, 0.07, 0.55, 0.62, 2]
    )
    assert len(table) == 6
    shown = tables.curve_in_words(table.reset_index()).iloc[[0, -1]].to_dict("records")
    assert shown == [
        {"dataset": "sst", "model": LSTM, "kind": "adversary", "λ or ε": "0.01", "TVD": "0.070", "JSD": "0.550",
         "JSD, single texts": "0.620", "seeds": 2},
        {"dataset": "sst", "model": LSTM, "kind": "seeds", "λ or ε": "–", "TVD": "0.090", "JSD": "0.150",
         "JSD, single texts": "–", "seeds": 1},
    ]  # fmt: skip


def test_two_models_are_apart_by_what_their_traces_say() -> None:
    """Weights (1, 0) and (0, 1) have JSD log 2, (½, ½) beside (1, 0) ½ log 4/3 + ½ (½ log 2/3 + ½ log 2)."""

    def traced(weights: list[float], bias: float) -> Trace:
        polarity = [0.0, 0.0, math.log(3), math.log(3)]
        return Trace.from_arrays(offsets=[0, 2, 4], attention_weights=weights, polarity_scores=polarity, bias=[bias])

    one, other = traced([1.0, 0.0, 0.5, 0.5], 0.0), traced([0.0, 1.0, 1.0, 0.0], math.log(3))
    found = apart(one, other)
    expected = 0.5 * math.log(4 / 3) + 0.25 * (math.log(2 / 3) + math.log(2))
    assert found["jsd"].tolist() == pytest.approx([math.log(2), expected])
    assert found["largest_weight"].tolist() == [1.0, 0.5]
    assert found["tvd"].tolist() == pytest.approx([0.75 - 0.5, 0.9 - 0.75])
    assert found["units"].tolist() == [2, 2]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The study, two seeds."""
    folder = tmp_path_factory.mktemp("wiegreffe")
    return folder, reproduced(folder, "wiegreffe2019", "--seeds", 2)


def finished(folder: Path) -> dict[RunSettings, Run]:
    return {one.settings: one for one in (Run(path.parent) for path in (folder / "store").glob("*/manifest.json"))}


@covers(study=("wiegreffe2019",))
def test_the_command_gives_verdicts_tables_figures_and_a_page(made: tuple[Path, dict[str, Any]]) -> None:
    folder, said = made
    assert [row["claim"] for row in said["verdicts"]] == ["W1", "W2", "W3"]
    assert all(row["value"] is not None for row in said["verdicts"])
    assert said["failed"] == said["missing_figures"] == []
    assert set(said["figures"]) == {"curve", "seeds"}
    for name in ("uniform", "diagnostic", "curve", "points", "seeds", "diagnostic-as-printed", "verdicts"):
        assert all((folder / "study" / "tables" / f"{name}.{kind}").is_file() for kind in ("csv", "parquet", "tex"))
    assert (folder / "study" / "study.html").read_text(encoding="utf-8").count("<svg") == 2


def test_the_tables_are_those_of_the_runs(made: tuple[Path, dict[str, Any]]) -> None:
    """No base is trained that was not planned, and accuracies are means of the two seeds'."""
    folder, _ = made
    file, done = str(folder / "rooms.jsonl"), finished(folder)
    assert len(done) == 2 * (6 + 2 * 2)

    def accuracy(model: str, strength: float = GUIDE) -> float:
        found = [done[settings_of(file, model, seed, strength)].metrics["test_accuracy"] for seed in (0, 1)]
        return 100 * float(np.mean(found))

    uniform, diagnostic = (
        pd.read_parquet(folder / "study" / "tables" / f"{name}.parquet").set_index("weights")["accuracy"].to_dict()
        for name in ("uniform", "diagnostic")
    )
    assert uniform == pytest.approx({weights: accuracy(model) for model, weights in LSTMS.items()})
    assert diagnostic == pytest.approx(
        {weights: accuracy(model) for model, weights in GUIDES.items() if weights != "adversary"}
        | {f"adversary, λ = {one:g}": accuracy("mlp+adversary", one) for one in runs.STRENGTHS}
    )


def test_the_points_of_the_curve_are_those_of_the_traces(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    file, done = str(folder / "rooms.jsonl"), finished(folder)
    curve = pd.read_parquet(folder / "study" / "tables" / "curve.parquet")
    assert set(curve["kind"]) == set(KINDS)
    assert curve.groupby("kind").size().to_dict() == {
        "adversary": 2, "corpus": 4, "per text": len(EPSILONS), "seeds": 1, "uniform": 1,
    }  # fmt: skip
    assert curve[["tvd", "jsd"]].notna().all(axis=None)
    assert curve["tvd"].between(0, 1).all()
    assert curve["jsd"].between(0, math.log(2) + 1e-9).all()
    bases = [done[settings_of(file, LSTM, seed)].trace() for seed in (0, 1)]
    others = [done[settings_of(file, ADVERSARY, seed, GUIDE)].trace() for seed in (0, 1)]
    pairs = list(zip(bases, others, strict=True))
    moved = [float((one.probabilities - other.probabilities).abs().max(1).values.mean()) for one, other in pairs]
    free = [adversarial_attention(one, tvd)["jsd"].mean() for one, tvd in zip(bases, moved, strict=True)]
    row = curve[(curve["kind"] == "adversary") & (curve["strength"] == GUIDE)].iloc[0]
    assert row["tvd"] == pytest.approx(np.mean(moved))
    assert row["jsd_per_text"] == pytest.approx(np.mean(free))
    within = curve[curve["kind"] == "corpus"]
    assert (within["tvd"] <= within["strength"] + 1e-9).all()
    assert (within["model"] == "mlp+own").all()
    single = curve[curve["kind"] == "per text"]
    assert (single["tvd"] <= single["strength"] + 1e-9).all()
    assert single["jsd"].is_monotonic_increasing


def test_a_selection_without_diagnostic_models_has_no_table_of_them(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    where = ("--store", folder / "store", "--out", folder / "part", "-j", 1, "--json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEEDFUL_DATA", str(folder))
        chosen = ("--datasets", folder / "rooms.jsonl", "--models", "lstm+tanh,lstm+uniform", "--seeds", 1)
        done = call("reproduce", "wiegreffe2019", *chosen, *where)
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert [row["claim"] for row in said["verdicts"]] == ["W1", "W3"]
    assert said["missing_figures"] == ["seeds"]
    assert not (folder / "part" / "tables" / "diagnostic.csv").exists()


@covers(figure=["wiegreffe2019 curve", "wiegreffe2019 seeds"])
def test_figures_have_a_panel_for_each_data_set() -> None:
    """Lines are means over seeds, so the two adversaries of one λ are one point; others are points of their own."""
    rng = np.random.default_rng(0)
    curve = pd.concat([points(), points().assign(dataset="20news-1")], ignore_index=True)
    canvas = STUDY.figure("curve").draw({"curve": curve})
    drawn = [axis for axis in canvas.axes if axis.has_data()]
    assert len(drawn) == 2
    places = [np.asarray(line.get_xdata()).tolist() for line in drawn[0].get_lines()]
    assert [pytest.approx(0.07)] in places
    rows = pd.DataFrame({"largest_weight": rng.random(60), "jsd": 0.6 * rng.random(60), "units": [1, 9] * 30})
    seeds = rows.assign(dataset=["sst", "sst", "20news-1", "20news-1"] * 15, model=LSTM, seed=1)
    canvas = STUDY.figure("seeds").draw({"seeds": seeds})
    assert [axis.get_title(loc="left") for axis in canvas.axes if axis.has_data()] == [
        "SST, lstm+tanh", "20News, lstm+tanh",
    ]  # fmt: skip


def test_of_three_classes_a_draw_of_the_texts_is_attacked(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, made = np.random.default_rng(0), {}
    for classes in (2, 3):
        made[classes] = Trace.from_arrays(
            offsets=np.arange(11) * 4,
            attention_scores=rng.normal(size=40),
            polarity_scores=rng.normal(size=(40, classes)),
            bias=np.zeros(classes),
        )
    monkeypatch.setattr("heedful.studies.attack.MOST_TEXTS", 6)
    assert [len(farthest_within(trace, 0.05)) for trace in made.values()] == [10, 6]
    every = adversarial_attention(made[3], 0.05)["jsd"].round(9).tolist()
    assert set(farthest_within(made[3], 0.05)["jsd"].round(9)) <= set(every)


def test_the_study_is_found_by_its_name() -> None:
    assert find_study("wiegreffe2019") is STUDY
    assert STUDY.names == jain2019.STUDY.names
