"""The study of Sun & Lu 2020: what is run for what is asked, Table 2 beside the paper's, figures, page, advice."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from heedful.claims import CLAIMS
from heedful.config import RunSettings
from heedful.errors import ConfigError, UnknownName
from heedful.papers.sun2020 import SCALES
from heedful.pipeline import run
from heedful.report.exports import as_markdown
from heedful.store import Store
from heedful.studies.advice import PENALTY, class_parting, recommend_scale
from heedful.studies.reproduce import Reproduced, reproduce
from heedful.studies.study import STUDIES, Material, Selection, Study, find_study, want
from heedful.studies.sun2020 import STUDY
from heedful.studies.sun2020 import runs as study_runs
from heedful.studies.sun2020.runs import MODELS, NAMES, Cell, cost, trials_of
from heedful.studies.sun2020.tables import accuracies, as_printed, summary_words, table_2
from heedful.text.corpus import Corpus
from tests.covering import covers

TINY = {"model.embedding_size": 8, "model.hidden_size": 8, "training.epochs": 2}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Mapping[str, object]]:
    """Every model small and trained for two epochs, so that a study takes a second."""
    models = {name: {**changes, **TINY} for name, changes in MODELS.items()}
    monkeypatch.setattr(study_runs, "MODELS", models)
    return models


@pytest.fixture
def file(small_corpus: Corpus, tmp_path: Path) -> str:
    """The small corpus as a file, which a worker in another process can read."""
    rows = [
        {"text": text, "label": small_corpus.class_names[label], "split": name}
        for name, split in small_corpus.splits().items()
        for text, label in zip(split.texts, split.labels.tolist(), strict=True)
    ]
    path = tmp_path / "small.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows[:900]), encoding="utf-8")
    return str(path)


def planned(study: Study, **asked: Any) -> list[RunSettings]:
    """The runs that are needed for what is asked."""
    wanted = want(study, **asked)
    measures = study.measures(wanted.selection)
    return [trial.settings for name in wanted.measures(study) for trial in measures[name].trials]


def test_the_full_table_has_the_papers_cells() -> None:
    assert len(planned(STUDY, tables=["2"])) == len(NAMES) * len(MODELS) * len(SCALES) == 112
    assert len(set(planned(STUDY, tables=["2"], seeds=2))) == 224


def test_a_cell_becomes_the_papers_settings() -> None:
    settings = Cell(dataset="sst", model="DP-L", scale=20.0).trial(3).settings
    assert (settings.model.encoder, settings.model.hidden_size, settings.training.patience) == ("lstm", 100, 5)
    assert (settings.model.score_scale, settings.training.seed) == (20.0, 3)
    assert settings.training.weight_decay > 0
    assert Cell(dataset="sst", model="DP", scale=20.0).trial().settings.training.weight_decay == 0


def test_long_runs_come_first() -> None:
    wanted = sorted(planned(STUDY, tables=["2"], scales=[10.0]), key=cost, reverse=True)
    assert wanted[0].data.source == "imdb"
    assert wanted[0].model.encoder == "lstm"
    assert len(wanted) == 16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datasets": ("sts",)}, "There is no data set 'sts'. Did you mean 'sst'?"),
        ({"models": ("DP-B",)}, "There is no model 'DP-B'. Did you mean 'DP-"),
        ({"scales": (0.0,)}, "must be a number above 0, not 0"),
        ({"scales": (-3.0,)}, "must be a number above 0, not -3"),
        ({"seeds": 0}, "at least one seed"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises((UnknownName, ConfigError)) as caught:
        want(STUDY, **changes)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_an_unknown_figure_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"There is no figure 'S29'\. Did you mean"):
        want(STUDY, figures=["S29"])


def test_every_study_is_listed_and_declares_its_parts() -> None:
    """What a study declares fits together: names are there once, and every part's measures exist."""
    for name in STUDIES:
        study = find_study(name)
        assert study.name == name
        everything = want(study)
        assert set(everything.measures(study)) <= set(study.measures(study.whole))
        assert {one.name for one in everything.tables} == {one.name for one in study.tables}
        assert [one.name for one in everything.figures] == [one.name for one in study.figures]
        assert len({one.name for one in study.figures}) == len(study.figures)
        judged = {table for scope in study.scopes(study.whole) for table in scope.tables}
        for claim in study.claims:
            assert CLAIMS[claim].table in judged


def test_every_figure_of_paper_and_supplement_is_there_with_its_words() -> None:
    wanted = [*map(str, range(2, 6)), *(f"S{number}" for number in range(1, 29)), "time"]
    assert [figure.name for figure in STUDY.figures] == wanted
    for figure in STUDY.figures:
        assert figure.caption
        assert figure.see.endswith(".")


def test_figures_run_only_what_they_show() -> None:
    cell = Cell(dataset="sst", model="DP-L", scale=10.0).trial().settings
    assert set(planned(STUDY, figures=["S13", "s16"])) == {cell}
    on_sst = want(STUDY, figures=["all"], datasets=["sst"]).figures
    assert {figure.name for figure in on_sst} == {"4", "5", "S13", "S14", "S15", "S16"}


def test_the_quick_study_is_small() -> None:
    runs = {one for one in planned(STUDY, quick=True, tables=["2"], claims=True) if one.record.flow is None}
    assert {settings.data.source for settings in runs} == {"sst"}
    assert len(runs) == 3 * (5 + 3)


@pytest.mark.usefixtures("tiny")
def test_the_table_of_two_runs_beside_the_paper(small_corpus: Corpus, tmp_path: Path) -> None:
    selection = Selection(datasets=("sst",), models=("DP", "AD"), scales=(10.0,), seeds=2)
    trials = [trial for trial in trials_of(selection, everywhere=True) if trial.model == "DP"]
    runs = [(trial, run(trial.settings, Store(tmp_path), corpus=small_corpus)) for trial in trials]
    (row,) = table_2(accuracies(Material(selection=selection, runs=runs))).to_dict("records")
    values = [100 * one.metrics["test_accuracy"] for _, one in runs]
    assert row["accuracy"] == pytest.approx(sum(values) / 2)
    assert (row["dataset"], row["model"], row["seeds"], row["paper"]) == ("SST", "DP", 2, 82.2)
    assert row["difference"] == pytest.approx(row["accuracy"] - 82.2)
    assert row["outside"] == (not row["low"] <= 82.2 <= row["high"])


def hand_made() -> pd.DataFrame:
    """Two cells: the paper inside, the paper outside; and one that it does not have."""
    columns = ["dataset", "model", "scale", "accuracy", "low", "high", "seeds", "paper", "difference", "outside"]
    rows = [
        ["SST", "DP", 10.0, 82.0, 80.0, 84.0, 1, 82.2, -0.2, False],
        ["SST", "AD", 10.0, 70.0, 69.0, 71.0, 1, 80.3, -10.3, True],
        ["my|file", "DP", 10.0, 50.0, 40.0, 60.0, 1, None, None, None],
    ]
    return pd.DataFrame(rows, columns=columns)


def test_the_table_is_printed_as_in_the_paper_with_marks() -> None:
    printed = as_printed(hand_made())
    assert printed.columns.tolist() == ["data", "λ", "DP", "AD"]
    assert printed["DP"].tolist() == ["82.0 [80.0, 84.0], paper 82.2", "50.0 [40.0, 60.0]"]
    assert printed["AD"].tolist() == ["70.0 [69.0, 71.0], paper 80.3†", "–"]


def test_markdown_escapes_pipes_and_explains_the_interval() -> None:
    table = hand_made()
    shown = STUDY.table("2").show({"table2": table, "table2-as-printed": as_printed(table)})
    text = as_markdown(shown.cells, shown.note)
    assert r"| my\|file | 10 | 50.0 [40.0, 60.0] | – |" in text
    assert "over the test texts (Wilson)" in text


def test_the_summary_counts_cells_inside_the_interval() -> None:
    assert summary_words(hand_made()) == (
        "2 cells of the paper's Table 2: mean difference -5.2 points, median absolute difference 5.2; the paper's "
        "number lies within our interval in 1."
    )


@pytest.fixture
def small_study(tiny: Mapping[str, Mapping[str, object]], file: str, tmp_path: Path) -> Reproduced:
    """A study of a user's own file, in the paper's manner."""
    chosen = {"datasets": [file], "models": tuple(tiny)[:2], "scales": [1.0, 10.0, 100.0, 10000.0], "seeds": 1}
    wanted = want(STUDY, tables=["2"], claims=True, quick=True, **chosen)  # type: ignore[arg-type]
    return reproduce(STUDY, wanted, Store(tmp_path / "store"), tmp_path / "study", workers=1)


@covers(study=("sun2020",))
def test_other_data_get_the_same_analysis(small_study: Reproduced) -> None:
    study = small_study
    assert study.failures == ()
    assert len(study.tables["table2"]) == 5
    assert study.tables["table2"]["paper"].isna().all()
    assert [verdict.claim for _, verdict in study.page.verdicts()] == [
        "C1", "C2", "C3", "C4", "C4b", "C4c", "C8", "C8b", "C9", "C9b", "C11", "C11b", "C12",
    ]  # fmt: skip
    page = study.page.places["page"].read_text(encoding="utf-8")
    assert "small.jsonl" in page
    assert "http://" not in page
    assert "https://" not in page
    for name in ("table2.csv", "table2.tex", "table2.md", "table2-as-printed.csv", "measures.parquet", "verdicts.csv"):
        assert (study.out / "tables" / name).is_file()
    assert json.loads(json.dumps(study.summary()))["tables"]["table2"][0]["paper"] is None


def test_parting_is_the_largest_between_two_classes() -> None:
    groups = ["a"] * 10 + ["b"] * 10 + ["c"] * 9 + ["neutral"]
    table = pd.DataFrame({"group": groups, "attention": [2.0, 3.0] * 5 + [0.0, 2.0] * 5 + [9.0] * 10})
    assert class_parting(table) == pytest.approx(0.875 - 0.5)  # of a and b; c has too few words
    assert class_parting(table[table["group"] == "a"]) is None


def test_advice_on_a_small_corpus(small_corpus: Corpus, tmp_path: Path) -> None:
    settings = RunSettings().change({"model.embedding_size": 16, "training.batch_size": 20})
    advice = recommend_scale(settings, Store(tmp_path), corpus=small_corpus, scales=(1.0, 10.0), epochs=3)
    assert advice.scale in {1.0, 10.0}
    assert advice.table["chosen"].sum() == 1
    assert f"λ = {advice.scale:g}" in advice.words
    assert advice.table["penalty"].tolist() == [0.0, 0.0, PENALTY, PENALTY]
    again = recommend_scale(settings, Store(tmp_path), corpus=small_corpus, scales=(1.0, 10.0), epochs=3)
    assert again.words == advice.words


def test_advice_refuses_a_scale_of_zero(small_corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be above 0"):
        recommend_scale(RunSettings(), Store(tmp_path), corpus=small_corpus, scales=(0.0,))


def test_importing_the_command_loads_nothing_heavy() -> None:
    heavy = "('torch', 'pandas', 'matplotlib')"
    code = f"import sys, heedful.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
