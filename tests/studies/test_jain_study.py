"""The study of Jain & Wallace 2019: its runs, its tables by hand, and all of it by its command on a small file."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.pipeline import Run
from heedful.studies.jain2019 import STUDY, tables
from heedful.studies.jain2019.runs import MODELS, settings_of, trials
from heedful.studies.study import Selection, want
from tests.covering import covers
from tests.studies.test_serrano_study import call, reproduced, write_texts

pytestmark = pytest.mark.xdist_group("jain study")  # one worker makes what these tests share

TRAINED = ("average+tanh", "lstm+dot")


def test_the_six_models_are_those_of_the_paper() -> None:
    assert list(MODELS) == ["average+tanh", "average+dot", "conv+tanh", "conv+dot", "lstm+tanh", "lstm+dot"]
    lstm, conv, average = (settings_of("sst", name).model for name in ("lstm+tanh", "conv+dot", "average+dot"))
    assert (lstm.encoder, lstm.hidden_size, lstm.attention, lstm.context_size) == ("lstm", 256, "additive", 128)
    assert lstm.attention_bias
    assert lstm.score_scale == 1
    assert (conv.encoder, conv.hidden_size, conv.widths) == ("conv", 128, (1, 3, 5, 7))
    assert conv.score_scale == pytest.approx(math.sqrt(128))
    assert (average.encoder, average.contextual, lstm.contextual, conv.contextual) == ("tanh", False, True, True)
    training = settings_of("sst", "lstm+dot", 2).training
    assert (training.optimizer, training.amsgrad, training.learning_rate) == ("adam", True, 0.001)
    assert (training.weight_decay, training.decayed) == (1e-5, "all but attention")
    assert (training.batch_size, training.epochs, training.seed) == (32, 8, 2)


def test_every_model_seed_and_data_set_is_a_run_of_its_own() -> None:
    chosen = Selection(datasets=("sst", "20news-1"), models=tuple(MODELS), seeds=2, synthetic=False)
    wanted = trials(chosen)
    assert len({trial.settings for trial in wanted}) == len(wanted) == 2 * 6 * 2


def agreements(*taus: float | None) -> pd.DataFrame:
    """Of one run on texts that are decided for a, b, a, b, …; a text without τ has constant attention."""
    missing = [None if tau is not None else "constant attention" for tau in taus]
    return pd.DataFrame(
        {
            "dataset": "sst", "model": "lstm+dot", "seed": 0, "measure": "gradient", "instance": range(len(taus)),
            "predicted": ["a", "b"] * (len(taus) // 2), "tau": pd.array(taus, dtype="Float64"),
            "p_value": pd.array([None if tau is None else 0.01 if tau > 0.5 else 0.5 for tau in taus], dtype="Float64"),
            "top_k": pd.array([0.5] * len(taus), dtype="Float64"), "missing": pd.array(missing, dtype="string"),
        }
    )  # fmt: skip


def test_agreement_is_the_mean_over_texts_then_seeds_beside_the_papers() -> None:
    """Seeds with means .4 and .6: .5, Student's interval ± 12.706 · .1414 / √2."""
    first, second = agreements(0.6, 0.2, 0.6, 0.2), agreements(0.8, 0.4, 0.8, None).assign(seed=1)
    table = tables.agreement_table(pd.concat([first, second], ignore_index=True))
    row = table[table["predicted"] == "all"].iloc[0]
    assert row["tau"] == pytest.approx((0.4 + 2 / 3) / 2)
    assert (row["seeds"], row["constant"], row["paper"]) == (2, 1, 0.07)
    assert row["significant"] == pytest.approx((2 / 4 + 2 / 3) / 2)
    assert (row["low"], row["high"]) == (-1.0, 1.0)
    of_class = table[table["predicted"] == "a"].iloc[0]
    assert of_class["tau"] == pytest.approx(0.7)
    assert of_class["paper"] is None or pd.isna(of_class["paper"])
    (printed,) = tables.agreement_as_printed(table).to_dict("records")
    assert printed == {"dataset": "sst", "model": "lstm+dot", "gradient": "0.53 [-1.00, 1.00], 58%, paper 0.07"}


def test_shuffles_are_summed_up_by_quarters_of_the_largest_weight() -> None:
    rows = pd.DataFrame(
        {
            "dataset": "sst", "model": "lstm+dot", "largest_weight": [0.2, 0.24, 0.75, 1.0],
            "tvd_median": [0.1, 0.3, 0.0, 0.5], "flips": [0.0, 0.5, 0.0, 1.0],
        }
    )  # fmt: skip
    table = tables.permutation_table(rows).set_index("largest_weight")
    numbers = table[["texts", "median", "flips"]].T.to_dict("list")
    assert {name: [float(number) for number in found] for name, found in numbers.items()} == {
        "0–.25": pytest.approx([2, 0.2, 0.25]),
        ".75–1": pytest.approx([2, 0.25, 0.5]),
    }
    (printed,) = tables.permutation_as_printed(table.reset_index()).to_dict("records")
    assert printed == {"dataset": "sst", "model": "lstm+dot", "0–.25": "0.200 (2)", ".75–1": "0.250 (2)"}


def test_adversaries_are_counted_where_there_are_none_too() -> None:
    rows = pd.DataFrame(
        {
            "dataset": "sst", "model": "lstm+dot", "kind": "without top", "units": [5, 5, 5, 5, 1],
            "jsd": [0.6, 0.2, np.nan, np.nan, 0.0], "exact": pd.array([True, False, None, None, True], dtype="boolean"),
        }
    )  # fmt: skip
    (row,) = tables.adversary_table(rows).to_dict("records")
    assert (row["texts"], row["exists"], row["median"], row["far"], row["exact"]) == (4, 0.5, 0.4, 0.25, 0.5)
    (printed,) = tables.adversary_as_printed(pd.DataFrame([row])).to_dict("records")
    assert printed["without top"] == "0.40, 50%"


def test_words_are_pinned_whose_score_moves_by_less_than_one() -> None:
    rows = pd.DataFrame(
        {
            "dataset": "sst", "model": "average+dot", "within": 0.05, "low": [0.0, -np.inf, -1.0, np.nan],
            "width": [0.9, np.inf, 2.0, np.nan], "status": ["proved", "proved", "proved", "low open"],
        }
    )  # fmt: skip
    (row,) = tables.determined_table(rows).to_dict("records")
    assert [row[name] for name in ("words", "pinned", "without", "median", "proved")] == [4, 0.25, 0.25, 2.0, 0.75]
    (printed,) = tables.determined_as_printed(pd.DataFrame([row])).to_dict("records")
    assert printed["ε = 0.05"] == "25% pinned, 25% without"


def test_quickly_it_is_not_asked_what_outputs_determine() -> None:
    wanted = want(STUDY, quick=True)
    assert "determined" not in [figure.name for figure in wanted.figures]
    assert STUDY.measures(wanted.selection)["determined"].trials == []
    whole = STUDY.measures(STUDY.whole)["determined"].trials
    assert {(trial.model, trial.settings.training.seed) for trial in whole} == {("average+tanh", 0), ("average+dot", 0)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The study of two models."""
    folder = tmp_path_factory.mktemp("jain")
    return folder, reproduced(folder, "jain2019", "--models", ",".join(TRAINED), "--seeds", 1)


@covers(study=("jain2019",))
def test_the_command_gives_verdicts_tables_figures_and_a_page(made: tuple[Path, dict[str, Any]]) -> None:
    folder, said = made
    assert [row["claim"] for row in said["verdicts"]] == ["J1", "J2", "J3", "J3b"]
    assert said["failed"] == said["missing_figures"] == []
    assert set(said["figures"]) == {"agreement", "permutation", "adversary", "determined"}
    for name in ("accuracy", "agreement", "permutation", "adversary", "determined", "words", "verdicts"):
        assert all((folder / "study" / "tables" / f"{name}.{kind}").is_file() for kind in ("csv", "parquet", "tex"))
    page = (folder / "study" / "study.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4
    assert "http://" not in page
    assert "https://" not in page


def test_the_tables_are_those_of_the_runs(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    runs = [Run(path.parent) for path in sorted((folder / "store").glob("*/manifest.json"))]
    accuracy = pd.read_parquet(folder / "study" / "tables" / "accuracy.parquet")
    assert sorted(accuracy["accuracy"]) == pytest.approx(sorted(100 * run.metrics["test_accuracy"] for run in runs))
    assert all(run.metrics["vectors"]["found"] == 2 for run in runs)
    adversary = pd.read_parquet(folder / "study" / "tables" / "adversary.parquet")
    assert set(adversary["kind"]) == {"same", "within", "floor", "without top"}
    assert (adversary["exact"] == 1).all()
    assert (adversary.set_index(["model", "kind"])["exists"].xs("same", level="kind") == 1).all()
    agreement = pd.read_parquet(folder / "study" / "tables" / "agreement.parquet")
    assert set(agreement["measure"]) == {
        "gradient", "leave_one_out", "full_gradient", "input_gradient", "integrated_size",
    }  # fmt: skip
    assert agreement["tau"].between(-1, 1).all()


@covers(figure=[f"jain2019 {name}" for name in ("agreement", "permutation", "adversary", "determined")])
def test_figures_have_a_panel_for_each_model() -> None:
    """Drawn from hand tables: what they show is tested in tests/figures/test_manipulation.py."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"model": [name for name in MODELS for _ in range(20)], "dataset": "sst", "units": 5, "seed": 0}
    )
    made_tables = {
        "agreement": rows.assign(measure="gradient", tau=rng.uniform(-1, 1, len(rows)), predicted="a"),
        "permutation": rows.assign(largest_weight=rng.random(len(rows)), tvd_median=rng.random(len(rows))),
        "adversary": rows.assign(kind="same", jsd=0.6 * rng.random(len(rows))),
        "determined": rows.assign(
            within=0.05, token="a", group="neutral", polarity=rng.normal(size=len(rows)), score=0.0, low=-1, high=1
        ),
    }
    for name in made_tables:
        canvas = STUDY.figure(name).draw(made_tables)
        titles = [axis.get_title(loc="left") for axis in canvas.axes if axis.get_title(loc="left")]
        assert titles == [f"SST, {model}" for model in MODELS]


def test_quick_is_one_seed_of_four_models() -> None:
    wanted = want(STUDY, quick=True)
    assert wanted.selection.seeds == 1
    assert "conv+dot" not in wanted.selection.models


def test_without_vectors_the_command_says_where_to_put_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    file = write_texts(tmp_path / "rooms.jsonl", 40)
    chosen = ("--datasets", file, "--models", "average+dot", "--seeds", 1)
    done = call("reproduce", "jain2019", *chosen, "--store", tmp_path / "s", "--out", tmp_path / "o", "-j", 1)
    assert done.code == 1
    assert "There are no GloVe vectors of 50 numbers in" in done.err
