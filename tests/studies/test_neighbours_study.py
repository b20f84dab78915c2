"""The study of four neighbours of the debate: its runs, its numbers by hand, and all of it by its command."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.analysis.permutation import quarters
from heedful.analysis.tokens import words_of_a_class
from heedful.config import DataSettings, RunSettings
from heedful.pipeline import Run, read_corpus
from heedful.studies.jain2019 import runs as jain_runs
from heedful.studies.neighbours import STUDY, tables
from heedful.studies.neighbours.measured import as_many_others, of_texts, of_trace, read_again
from heedful.studies.neighbours.runs import FEW, MODELS, settings_of, trials
from heedful.studies.study import each_and_all, find_study, want
from heedful.traces import Trace
from tests.covering import covers
from tests.studies.test_serrano_study import SIGNS, reproduced

pytestmark = pytest.mark.xdist_group("neighbours study")  # one worker makes what these tests share

TRAINED = ("lstm+tanh", "lstm+deceptive-1", "lstm+diverse-1", "lstm+sparsemax")


def test_the_base_and_the_token_wise_model_are_those_of_jain_and_wallace() -> None:
    """So that a store that has them is not asked to train them again."""
    for model in ("lstm+tanh", "average+tanh"):
        assert settings_of("sst", model, 2) == jain_runs.settings_of("sst", model, 2)


def test_models_differ_from_the_base_in_what_their_names_say() -> None:
    base = settings_of("sst", "lstm+tanh", 1)
    for name, strength in (("deceptive", 0.1), ("deceptive", 1), ("diverse", 0.1), ("diverse", 1)):
        made = settings_of("sst", f"lstm+{name}-{strength}", 1)
        assert made.model == base.model
        assert (made.training.objective, made.training.objective_weight) == (name, strength)
    for name in ("sparsemax", "entmax15"):
        made = settings_of("sst", f"lstm+{name}", 1)
        assert made.model == base.model.model_copy(update={"normaliser": name})
        assert made.training == base.training
    assert not settings_of("sst", "average+deceptive-1").model.contextual
    wanted = want(STUDY, datasets=["sst", "imdb"], seeds=2).selection
    assert len({trial.settings for trial in trials(wanted)}) == 2 * 2 * len(MODELS)
    quick = want(STUDY, quick=True).selection
    assert (quick.models, quick.seeds, quick.datasets) == (FEW, 1, ("sst",))


def test_claims_are_judged_on_each_data_set_and_on_all_where_there_are_several() -> None:
    scopes = each_and_all("models", "more")
    (alone,) = scopes(want(STUDY, datasets=["sst"]).selection)
    assert (alone.dataset, alone.tables) == ("sst", {"models": "models", "more": "more"})
    three = scopes(want(STUDY, datasets=["sst", "imdb"]).selection)
    assert [(scope.dataset, scope.title) for scope in three] == [("sst", ""), ("imdb", ""), (None, "all data sets")]


def test_quarters_hold_their_lower_ends() -> None:
    found = quarters(pd.Series([0.1, 0.25, 0.49, 0.5, 0.75, 1.0, 1.0 + 1e-12]))
    assert list(map(str, found)) == ["0–.25", ".25–.5", ".25–.5", ".5–.75", ".75–1", ".75–1", ".75–1"]


def test_as_many_others_are_drawn_as_are_marked_and_none_of_these() -> None:
    """Two of four, none, all, and two of three, beside which one is left."""
    marked = torch.tensor([1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1], dtype=torch.bool)
    offsets = torch.tensor([0, 5, 7, 9, 12])
    drawn = [as_many_others(marked, offsets, seed) for seed in range(30)]
    for chosen in drawn:
        assert not (chosen & marked).any()
        assert [int(part.sum()) for part in chosen.split([5, 2, 2, 3])] == [2, 0, 0, 1]
    assert torch.stack(drawn)[:, 2:5].any(0).all()  # not always the same
    assert torch.equal(drawn[3], as_many_others(marked, offsets, 3))


def test_a_text_whose_most_attended_unit_speaks_against_the_decision_by_hand() -> None:
    """Weights (¾, ¼) and scores (−1, 4): .25 decides, the second unit alone flips it, along attention both must go.

    Two units with the same output have no other weights than their own.
    """
    count = 12
    trace = Trace.from_arrays(
        offsets=np.arange(count + 1) * 2,
        attention_weights=[0.75, 0.25] * count,
        polarity_scores=[-1, 4] * count,
        bias=[0],
    )
    found = of_trace(trace, 0)
    exact = {"erased": 1.0, "fewest": 0.5, "jsd": 0.0, "violated": 1.0, "violated_product": 0.0}
    assert {name: found[name] for name in exact} == pytest.approx(exact, abs=1e-6)
    assert float(str(found["violated_low"])) < 1 <= float(str(found["violated_high"])) + 1e-9
    most = 1 / (1 + math.exp(-2.75)) - 1 / (1 + math.exp(-0.25))
    assert 0 <= float(str(found["tvd"])) <= most + 1e-12


def test_texts_are_compared_that_have_words_of_a_class_and_as_many_others() -> None:
    """Of twelve texts one has no such word, one has three of four, and ten have two: eight, two and six are right."""
    texts = pd.DataFrame(
        {
            "units": 4, "class_words": [0, 3] + [2] * 10, "mass": [0.0, 0.9] + [0.3] * 10,
            "zeros": [0.5] * 6 + [0.0] * 6,
            "conicity": pd.array([None, *np.arange(11) / 10], dtype="Float64"), "right": [True] * 10 + [False] * 2,
            "right_without": [True] * 4 + [False] * 8, "right_without_others": [True] * 8 + [False] * 4,
        }
    )  # fmt: skip
    row = of_texts(texts, ("sst", "lstm", 0))
    assert (row["dataset"], row["model"], row["seed"], row["compared"]) == ("sst", "lstm", 0, 10)
    expected = {
        "conicity": 0.5, "mass": 3.9 / 11, "zeros": 0.25, "whole": 0.8, "without": 0.2, "without_others": 0.6,
        "used": 0.4,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == pytest.approx(expected)
    assert of_texts(texts.iloc[:1], ("sst", "lstm", 0))["used"] is None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The study of four models, two seeds, on texts of two classes with words of their own."""
    folder = tmp_path_factory.mktemp("neighbours")
    return folder, reproduced(folder, "neighbours", "--models", ",".join(TRAINED), "--seeds", 2, mixed=False)


@covers(study=("neighbours",))
def test_the_command_gives_verdicts_tables_figures_and_a_page(made: tuple[Path, dict[str, Any]]) -> None:
    folder, said = made
    assert [row["claim"] for row in said["verdicts"]] == ["N1", "N1b", "N1c", "N2", "N2b", "N2c", "N3", "N4"]
    unknown = {row["claim"] for row in said["verdicts"] if row["value"] is None}
    assert unknown <= {"N2c"}  # a model of so few texts may say the same of all, and nothing flips
    assert said["failed"] == said["missing_figures"] == []
    assert set(said["figures"]) == {"deception", "conicity"}
    for name in ("models", "runs", "deception", "violation", "verdicts"):
        assert all((folder / "study" / "tables" / f"{name}.{kind}").is_file() for kind in ("csv", "parquet", "tex"))
    assert (folder / "study" / "study.html").read_text(encoding="utf-8").count("<svg") == 2


def test_texts_without_their_words_are_read_as_if_they_had_never_had_them(made: tuple[Path, dict[str, Any]]) -> None:
    """The model's own prediction of the shortened text, and sums over a text's words one by one."""
    folder, _ = made
    data = DataSettings(source=str(folder / "rooms.jsonl"))
    corpus = read_corpus(RunSettings(data=data))
    signs = {word for words in SIGNS.values() for word in words}
    assert {corpus.vocabulary.tokens[place] for place in words_of_a_class(corpus).nonzero().flatten()} == signs
    runs = [Run(path.parent) for path in sorted((folder / "store").glob("*sparsemax*/manifest.json"))]
    assert len(runs) == 2
    run, split = runs[0], corpus.test
    table, trace, model = read_again(run, corpus), run.trace(), run.model()
    numbers = split.tokens.numbers.tensor_split(split.offsets[1:-1])
    texts = [[corpus.vocabulary.tokens[number] for number in some.tolist()] for some in numbers]
    labels = [corpus.class_names[number] for number in split.labels.tolist()]
    whole = model.predict([" ".join(words) for words in texts])
    short = model.predict([" ".join(word for word in words if word not in signs) for words in texts])
    assert table["right"].tolist() == [said == label for said, label in zip(whole, labels, strict=True)]
    assert table["right_without"].tolist() == [said == label for said, label in zip(short, labels, strict=True)]
    for row, words in enumerate(texts):
        found, weights = table.loc[row], trace.attention_weights[trace.offsets[row] : trace.offsets[row + 1]].tolist()
        assert found["class_words"] == sum(word in signs for word in words) == 3
        assert found["mass"] == pytest.approx(sum(w for w, word in zip(weights, words, strict=True) if word in signs))
        assert found["zeros"] == pytest.approx(weights.count(0.0) / len(weights))


def found_in(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_parquet(folder / "study" / "tables" / f"{name}.parquet")


def test_every_model_has_a_row_of_means_over_seeds(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    found, runs = (found_in(folder, name) for name in ("models", "runs"))
    assert found["model"].tolist() == list(TRAINED)
    assert len(runs) == 2 * len(TRAINED)
    diverse = runs[runs["model"] == "lstm+diverse-1"].iloc[0]
    assert (diverse["objective"], diverse["strength"], diverse["normaliser"]) == ("diverse", 1.0, "softmax")
    means = runs.groupby("model", sort=False).mean(numeric_only=True)
    for name in ("mass", "conicity", "tvd", "tau_gradient", "tau_leave_one_out", "violated", "jsd", "used", "erased"):
        assert found.set_index("model")[name].to_dict() == pytest.approx(means[name].to_dict(), nan_ok=True)
    assert found["accuracy"].tolist() == pytest.approx((100 * means["test_accuracy"]).tolist())
    assert (found["fewest"] <= found["erased"]).all()
    sparse = found.set_index("model")["zeros"]
    assert sparse["lstm+sparsemax"] > 0 == sparse["lstm+tanh"]
    deception, violation = (found_in(folder, name) for name in ("deception", "violation"))
    assert deception["used"].tolist() == found["used"].tolist()
    assert violation["violated_gradient"].tolist() == found["violated_gradient"].tolist()
    words = tables.models_in_words(found), tables.deception_in_words(deception), tables.violation_in_words(violation)
    for shown in words:
        assert shown["model"].tolist() == list(TRAINED)
        assert not shown.isna().any(axis=None)


@covers(figure=["neighbours deception", "neighbours conicity"])
def test_figures_have_a_panel_for_each_data_set_and_a_point_for_each_run() -> None:
    rng = np.random.default_rng(0)
    places = [(dataset, model, seed) for dataset in ("sst", "imdb") for model in MODELS for seed in range(2)]
    runs = pd.DataFrame(places, columns=["dataset", "model", "seed"])
    settings = [settings_of(dataset, model, seed) for dataset, model, seed in places]
    runs = runs.assign(
        objective=[one.training.objective for one in settings],
        normaliser=[one.model.normaliser for one in settings],
        **{name: rng.random(len(runs)) for name in ("mass", "whole", "without", "conicity", "tvd")},
    )
    shown = {"deception": (5, 2), "conicity": (len(MODELS), 1)}
    for name, (models, heights) in shown.items():
        canvas = STUDY.figure(name).draw({"models": runs})
        assert [axis.get_title(loc="left") for axis in canvas.axes] == ["SST", "IMDB"]
        for axis in canvas.axes:
            lines = [np.asarray(line.get_ydata()) for line in axis.get_lines()]
            assert [len(line) for line in lines] == [2] * models * heights
        legend = [text.get_text() for text in canvas.legends[0].get_texts()]
        assert len(legend) == models + heights - 1
    base = runs[(runs["dataset"] == "sst") & (runs["model"] == "lstm+tanh")]
    first = STUDY.figure("conicity").draw({"models": runs}).axes[0].get_lines()[0]
    assert np.asarray(first.get_xdata()).tolist() == base["conicity"].tolist()
    assert np.asarray(first.get_ydata()).tolist() == base["tvd"].tolist()


def test_it_is_a_study_like_others() -> None:
    assert find_study("neighbours") is STUDY
