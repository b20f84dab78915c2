"""`heedful report`: runs again, side by side, of a sweep and of a study; nothing is trained for it."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from heedful.config import RunSettings
from heedful.errors import InputError, StoreError
from heedful.pipeline import Run, run
from heedful.store import Store
from heedful.studies import audit as audit_module
from heedful.studies import side_by_side as module
from heedful.studies.audit import Audit, audit, report_run
from heedful.studies.side_by_side import name_runs, side_by_side
from tests.commands import Call, write_corpus, write_plan

pytestmark = pytest.mark.xdist_group("side by side")

SMALL = RunSettings().change({"model.embedding_size": 8, "training.batch_size": 50, "training.epochs": 3})


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("data") / "small.csv")


@pytest.fixture(scope="module")
def runs(source: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """λ of 1 and of 10 with two seeds each."""
    store = Store(tmp_path_factory.mktemp("store"))
    settings = SMALL.change({"data.source": str(source)})
    changes = [{"model.score_scale": scale, "training.seed": seed} for scale in (1.0, 10.0) for seed in (0, 1)]
    return [run(settings.change(one), store) for one in changes]


@pytest.fixture(scope="module")
def alone(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """The report of the first of them."""
    return report_run(runs[0], tmp_path_factory.mktemp("alone") / "report.html")


@pytest.fixture(autouse=True)
def nothing_is_trained(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(audit_module, "run", lambda *_given, **_more: pytest.fail("a training ran"))
    yield
    assert len(Store(runs[0].path.parent).finished()) == len(runs)


def test_runs_are_named_by_what_differs(runs: list[Run]) -> None:
    assert name_runs(runs[::2]) == ["score scale 1", "score scale 10"]
    assert name_runs(runs) == [f"score scale {scale}, seed {seed}" for scale in (1, 10) for seed in (0, 1)]
    (alone,) = name_runs(runs[:1])
    assert alone == f"({runs[0].path.name[:12]})"


def test_answers_settings_and_verdicts_stand_beside_each_other(runs: list[Run], alone: Audit, tmp_path: Path) -> None:
    page = side_by_side(runs, tmp_path / "report.html", notices=["One is missing."])
    names = name_runs(runs)
    answers = page.tables()["answers"]
    assert answers["run"].tolist() == names
    row = answers.to_dict("records")[0]
    assert [row[name] for name in module.ASKED] == [question.decision for question in alone.answer.questions]
    assert [row[f"{use.purpose}?"] for use in alone.answer.uses] == [use.decision for use in alone.answer.uses]
    judged = page.section("verdicts").judged
    assert [one.dataset for one in judged] == names
    assert [v.row() for v in judged[0].verdicts] == [v.row() for v in alone.examined.verdicts if v.claim != "J4"]
    table = page.tables()["runs"]
    assert table["model.score_scale"].tolist() == [1.0, 1.0, 10.0, 10.0]
    shown = page.section("runs").tables[0].cells
    assert list(shown) == ["run", "corpus", "score scale", "seed", "test accuracy", "in the store"]
    assert shown["run"].tolist() == names
    assert shown["in the store"].tolist() == [run.path.name for run in runs]
    means = page.tables()["means"].query("metric == 'test_accuracy'")
    assert means["seeds"].tolist() == [2, 2]
    assert means["mean"].tolist() == pytest.approx(
        [table["test_accuracy"][:2].mean(), table["test_accuracy"][2:].mean()]
    )
    assert page.notices == ["One is missing."]
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(part in html for part in ("4 runs side by side", "The whole vocabulary: score scale 1, seed 0"))


def test_the_same_texts_are_shown_under_every_attention(runs: list[Run], tmp_path: Path) -> None:
    page = side_by_side(runs[::2], tmp_path / "report.html")
    for example in page.section("texts").texts:
        assert [strip.name for strip in example.strips] == ["score scale 1", "score scale 10"]
        said = ["".join(piece.text for piece in strip.pieces) for strip in example.strips]
        assert len(set(said)) == 1
        assert example.strips[0].pieces[0].note != example.strips[1].pieces[0].note
    assert len(page.section("texts").texts) in {1, 2}


def test_the_erasures_are_those_of_each_run(runs: list[Run], alone: Audit, tmp_path: Path) -> None:
    page = side_by_side([runs[2], runs[0]], tmp_path / "report.html")
    row = page.tables()["erasure"].iloc[1]
    own = alone.erasure.resting.set_index("ranking")
    assert row["median erased"] == own.loc["attention", "median_fraction"]
    assert row["minimum"] == own.loc["minimum", "median_fraction"]


def test_of_many_runs_the_first_are_examined(runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RUNS", 2)
    page = side_by_side(runs, tmp_path / "report.html")
    assert len(page.tables()["answers"]) == 2
    assert len(page.tables()["runs"]) == 4
    assert page.notices == ["The first 2 of 4 runs were examined; the table of runs has all."]


def test_of_some_runs_the_vocabulary_is_shown(runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_MAPS", 1)
    page = side_by_side(runs[:2], tmp_path / "report.html")
    assert len([one for one in page.sections if one.vocabulary]) == 1
    assert page.notices == ["Of 2 runs the vocabulary of the first 1 is shown."]


def test_what_cannot_stand_side_by_side_is_refused(runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"The run '{runs[0].path.name}' is named twice"):
        side_by_side([runs[0], runs[1], Run(runs[0].path)], tmp_path / "report.html")
    with pytest.raises(InputError, match="two runs or more, not 1"):
        side_by_side(runs[:1], tmp_path / "report.html")


def test_the_report_of_a_run_is_that_of_its_audit(runs: list[Run], alone: Audit, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_module, "run", run)
        usual = audit(runs[0].settings, Store(runs[0].path.parent), advice=False, out=tmp_path / "audit")
    assert alone.report.read_text(encoding="utf-8") == usual.report.read_text(encoding="utf-8")
    assert [one.name for one in alone.report.parent.iterdir()] == ["report.html"]


def test_a_run_whose_data_have_changed_is_refused(tmp_path: Path) -> None:
    source = write_corpus(tmp_path / "small.csv")
    done = run(SMALL.change({"data.source": str(source)}), Store(tmp_path / "store"))
    write_corpus(source, seed=1)
    with pytest.raises(InputError, match="are not those of its training any more"):
        report_run(done, tmp_path / "report.html")


def test_the_command_takes_runs_plans_and_one_run(runs: list[Run], source: Path, tmp_path: Path, call: Call) -> None:
    out, store = tmp_path / "report.html", ["--store", runs[0].path.parent]
    two = call("report", runs[0].path.name[:10], runs[2].path, "-o", out, *store)
    assert (two.code, two.out.splitlines()[-1]) == (0, f"report {out}")
    assert "verdicts: in the report, or here with --all." in two.out
    assert "Claims:" not in two.out
    assert "2 runs side by side" in out.read_text(encoding="utf-8")
    one = call("report", runs[0].path.name, "-o", out, *store, "--json").json
    assert (one["report"], one["run"]) == (str(out), str(runs[0].path))
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"seeds = 3\n[base]\ndata.source = '{source}'\nmodel.embedding_size = 8\ntraining.batch_size = 50\n"
        "training.epochs = 3\n[grid]\nmodel.score_scale = [1, 10]\n",
        encoding="utf-8",
    )
    swept = call("report", plan, "-o", out, *store, "--json").json
    assert [row["run"] for row in swept["tables"]["runs"]] == [one.path.name for one in runs]
    assert swept["notices"] == ["2 of 6 runs of the sweep plan are not finished."]


def test_what_is_no_run_is_said_in_a_sentence(runs: list[Run], tmp_path: Path, call: Call) -> None:
    out, store = tmp_path / "report.html", ["--store", runs[0].path.parent]

    def refused(*names: object, out: Path = out) -> str:
        said = call("report", *names, "-o", out, *store)
        assert said.code != 0
        assert "Traceback" not in said.err
        assert not out.exists()
        return " ".join(said.err.replace("│", " ").split())

    assert "No run in the store" in refused("nothing")
    assert "names of 0 runs" not in refused("zzz")
    assert "has a report of its own: name it alone" in refused("sun2020", runs[0].path)
    assert "holds no run of the study jain2019; `heedful reproduce jain2019` computes them" in refused("jain2019")
    assert "such as report.html, not" in refused(runs[0].path, out=tmp_path / "report.pdf")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    assert "is the folder of a model and not a run. `heedful audit DATA --model" in refused(tmp_path / "model")
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.html").write_text("")
    assert "is the folder of a study, whose report is" in refused(tmp_path / "study")
    plan = write_plan(tmp_path / "plan.toml", Path(runs[0].settings.data.source), epochs=1)
    assert "holds no finished run of the plan" in refused(plan)
    assert "is named twice" in refused(runs[0].path, runs[0].path.name)


def test_of_runs_on_other_data_no_texts_are_compared(runs: list[Run], tmp_path: Path) -> None:
    other = write_corpus(tmp_path / "other.csv", seed=3)
    elsewhere = run(SMALL.change({"data.source": str(other)}), Store(tmp_path / "store"))
    page = side_by_side([runs[0], elsewhere], tmp_path / "report.html")
    assert "texts" not in [section.name for section in page.sections]
    assert [name.split(",")[0] for name in name_runs([runs[0], elsewhere])] == ["small.csv", "other.csv"]
    assert isinstance(page.tables()["runs"], pd.DataFrame)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="There is no run"):
        Run(tmp_path / "nowhere")
