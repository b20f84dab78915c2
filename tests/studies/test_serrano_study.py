"""The study of Serrano & Smith 2019 by its command, on a small file of two classes and three sentences a text."""

import contextlib
import io
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from heedful import cli
from heedful.claims.erasure import CLAIMS
from heedful.errors import UnknownName
from heedful.papers.serrano2019 import MODELS
from heedful.pipeline import Run
from heedful.studies.reproduce import tabulate
from heedful.studies.serrano2019 import STUDY
from heedful.studies.serrano2019.tables import attained_in_words, fractions_in_words
from heedful.studies.study import want
from tests.covering import covers

pytestmark = pytest.mark.xdist_group("serrano study")  # one worker makes what these tests share

TRAINED = ("HANnoenc", "FLANnoenc")
SIGNS = {"bad": ("awful", "dull", "poor"), "good": ("fine", "great", "lovely")}
PLAIN = ("chair", "door", "house", "lamp", "river", "road", "stone", "table", "tree", "window")


def write_texts(path: Path, count: int = 200, *, mixed: bool = True) -> Path:
    """Three sentences of four words, two of which say the class; there is a sign of the other class in each text,
    unless they are not mixed: then each says the class."""
    chance = random.Random(0)
    rows = []
    for number in range(count):
        label, other = ("bad", "good") if number % 2 else ("good", "bad")
        signs = [*chance.choices(SIGNS[label], k=2), chance.choice(SIGNS[other if mixed else label])]
        sentences = [" ".join([*chance.choices(PLAIN, k=3), sign]).capitalize() + "." for sign in signs]
        chance.shuffle(sentences)
        split = ("train", "train", "dev", "test")[number // 2 % 4]
        rows.append({"text": " ".join(sentences), "label": label, "split": split})
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


@dataclass(frozen=True, kw_only=True)
class Said:
    code: int
    out: str
    err: str


def call(*arguments: object) -> Said:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["heedful", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return Said(code=code, out=out.getvalue(), err=err.getvalue())


def reproduced(folder: Path, study: str, *chosen: object, mixed: bool = True) -> dict[str, Any]:
    """What the command says of a study on a file of a hundred and sixty texts, with vectors of a data folder."""
    file, vector = write_texts(folder / "rooms.jsonl", 160, mixed=mixed), " ".join(["0.1"] * 50)
    (folder / "glove.6B.50d.txt").write_text(f"awful {vector}\nlovely {vector}\n", encoding="utf-8")
    where = ("--store", folder / "store", "--out", folder / "study", "-j", 1, "--json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEEDFUL_DATA", str(folder))
        done = call("reproduce", study, "--datasets", file, *chosen, *where)
    assert done.code == 0, done.err
    said: dict[str, Any] = json.loads(done.out)
    return said


@dataclass(frozen=True, kw_only=True)
class Place:
    """A study that was made once: what the command printed, and where all of it lies."""

    folder: Path
    file: Path
    said: dict[str, Any]

    @property
    def study(self) -> Path:
        return self.folder / "study"

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_parquet(self.study / "tables" / f"{name}.parquet")

    def runs(self) -> list[Path]:
        return sorted(path.parent for path in (self.folder / "store").glob("*/manifest.json"))

    def call(self, *arguments: object) -> Said:
        where = ("--store", self.folder / "store", "--out", self.folder / "again", "-j", 1)
        return call("reproduce", "serrano2019", "--datasets", self.file, *arguments, *where)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("serrano")
    file = write_texts(folder / "rooms.jsonl")
    chosen = ("--datasets", file, "--models", ",".join(TRAINED))
    where = ("--store", folder / "store", "--out", folder / "study", "-j", 1, "--json")
    done = call("reproduce", "serrano2019", *chosen, *where)
    assert done.code == 0, done.err
    return Place(folder=folder, file=file, said=json.loads(done.out))


@covers(study=("serrano2019",))
def test_the_command_says_where_everything_is(place: Place) -> None:
    assert place.said["page"] == str(place.study / "study.html")
    assert set(place.said["figures"]) == {*map(str, range(6, 14)), "minimum"}
    assert all(Path(path).is_file() for path in place.said["figures"].values())
    assert [row["claim"] for row in place.said["verdicts"]] == [claim.name for claim in CLAIMS]
    assert place.said["failed"] == place.said["missing_figures"] == []
    assert len(place.said["tables"]["table3"]) == 2


def test_the_directory_holds_tables_figures_and_one_page(place: Place) -> None:
    for name in (
        "table1",
        "table2",
        "table3",
        "table2-as-printed",
        "flips",
        "quality",
        "wins",
        "tail",
        "inputs",
        "input-flips",
        "verdicts",
    ):
        assert all((place.study / "tables" / f"{name}.{kind}").is_file() for kind in ("csv", "parquet", "tex"))
    assert all((place.study / "figures" / f"figure-13.{kind}").is_file() for kind in ("svg", "pdf", "png"))
    page = (place.study / "study.html").read_text(encoding="utf-8")
    assert page.count("<svg") == len(place.said["figures"])
    assert "rooms.jsonl" in page
    assert "http://" not in page
    assert "https://" not in page
    assert page.count("<script>") == page.count("script-src") == 1  # its own, and no slider
    assert "*What to see:*" in (place.study / "figures.md").read_text(encoding="utf-8")


def test_table_1_counts_words_and_sentences(place: Place) -> None:
    (row,) = place.table("table1").to_dict("records")
    assert (row["words"], row["words_deviation"], row["sentences"]) == (12, 0, 3)
    assert (row["training"], row["test"], row["classes"]) == (150, 50, 2)
    assert row["stands_for"] is None
    (printed,) = place.table("table1-as-printed").to_dict("records")
    assert printed == {
        "dataset": "rooms.jsonl", "words": "12 (0)", "sentences": "3.0 (0.0)", "training": "150", "test": "50",
        "classes": "2",
    }  # fmt: skip


def test_table_3_has_the_accuracies_of_the_runs(place: Place) -> None:
    found = sorted(100 * Run(path).metrics["test_accuracy"] for path in place.runs())
    assert sorted(place.table("table3")["accuracy"]) == pytest.approx(found)
    assert place.table("table3")["largest"].tolist() == [50.0, 50.0]


def test_without_an_encoder_deleting_words_flips_as_erasing_their_weights_does(place: Place) -> None:
    table = place.table("inputs").set_index(["model", "mode", "ranking"])
    assert len(table) == 2 * 2 * 4
    deleted = table.xs("delete", level="mode")
    assert (deleted["equal"] == 1).all()
    assert (deleted["median_fraction_input"] == deleted["median_fraction_attention"]).all()
    assert (table["instances"] == 50).all()
    summary = place.table("input-flips").set_index(["level", "model", "ranking", "convention"])["mean_fraction"]
    pd.testing.assert_series_equal(summary["delete"], summary["attention"])
    assert not summary["mask"].equals(summary["attention"])


def test_changed_texts_are_read_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.studies.erase.read_changed_texts", lambda *_, **__: pytest.fail("read again"))
    again = place.call("--models", ",".join(TRAINED), "--table", "inputs")
    assert again.code == 0, again.err
    assert "reading changed texts: 2 of 2 runs" in again.err
    assert "Erasure at the input" in again.out


def test_the_margin_attains_the_minimum_of_two_classes_and_no_ranking_beats_it(place: Place) -> None:
    quality = place.table("quality").set_index(["model", "ranking"])
    assert quality.xs("margin", level="ranking")["attained"].tolist() == [1.0, 1.0]
    assert (quality["mean_ratio"] >= 1).all()
    flips = place.table("flips")
    for _, part in flips[flips["convention"] == "common"].groupby("model"):
        common = part.set_index("ranking")["mean_fraction"]
        assert common["minimum"] == pytest.approx(common["margin"])
        assert common["minimum"] <= common.min()


def test_what_is_there_is_not_computed_again(place: Place) -> None:
    before = {path: (path / "manifest.json").stat().st_mtime_ns for path in place.runs()}
    again = place.call("--models", "FLANnoenc", "--figure", "13", "--table", "3")
    assert again.code == 0, again.err
    assert {path: (path / "manifest.json").stat().st_mtime_ns for path in place.runs()} == before
    assert len(before) == 2
    assert sorted(path.name for path in (place.folder / "again" / "figures").iterdir()) == [
        "figure-13.pdf", "figure-13.png", "figure-13.svg",
    ]  # fmt: skip
    assert not (place.folder / "again" / "tables" / "verdicts.csv").exists()
    assert "1 figure, each as SVG, PDF and PNG." in again.out
    assert "Table 3" in again.out


def test_runs_that_are_missing_leave_their_panels_and_figures_out(place: Place) -> None:
    wanted = want(STUDY, figures=["9", "4"], datasets=[str(place.file)], models=["HANrnn", "HANnoenc"])
    runs = {one.settings: one for one in map(Run, place.runs())}
    study = tabulate(STUDY, wanted, runs, place.folder / "part")
    assert [one.name for one in study.page.pictures()] == ["9"]
    assert study.missing == ("4",)
    assert study.page.notices == ["Figure 4 is not drawn: it needs runs that are not there."]
    assert set(study.tables["quality"]["model"]) == {"HANnoenc"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--figure", "14"], "There is no figure '14'. Did you mean '4'?"),
        (["--table", "4"], "There is no table '4'. Known: 1, 2, 3, inputs."),
        (["--models", "HANrn"], "There is no model 'HANrn'. Did you mean 'HANrnn'?"),
        (["--seeds", "0"], "at least one seed"),
        (["--scales", "10"], "--scales is of sun2020"),
        (["--figure", "3", "--models", "FLANnoenc"], "Figure 3 shows HANrnn"),
    ],
)
def test_what_is_not_there_is_answered_in_a_sentence(place: Place, arguments: list[str], message: str) -> None:
    done = place.call(*arguments)
    assert done.code != 0
    assert message in " ".join(done.err.split())
    assert "Traceback" not in done.err


def test_an_unknown_data_set_and_paper_are_answered_with_the_nearest(tmp_path: Path) -> None:
    done = call("reproduce", "serrano2019", "--datasets", "yelp10", "--store", tmp_path)
    assert (done.code != 0, "Did you mean 'yelp10k'?" in done.err) == (True, True)
    done = call("reproduce", "serano2019", "--store", tmp_path)
    assert (done.code != 0, "Did you mean 'serrano2019'?" in done.err) == (True, True)


def test_every_figure_of_the_paper_is_there_with_its_words() -> None:
    figures = {figure.name: figure for figure in STUDY.figures}
    assert list(figures) == [*map(str, range(3, 14)), "minimum"]
    for figure in figures.values():
        assert figure.caption.endswith(".")
        assert figure.see.endswith(".")
        assert set(figure.models) <= set(MODELS)
    assert figures["5"].models == ("HANrnn", "FLANrnn", "FLANconv")


def models_of(**asked: Any) -> set[str]:
    """The models that must be run for what is asked."""
    wanted = want(STUDY, **asked)
    measures = STUDY.measures(wanted.selection)
    return {trial.model for name in wanted.measures(STUDY) for trial in measures[name].trials}


def test_figures_run_only_what_they_show() -> None:
    assert models_of(figures=["3"]) == {"HANrnn"}
    assert models_of(figures=["3", "6"]) == {"HANrnn", "HANnoenc", "FLANnoenc"}
    assert models_of(tables=["1"]) == set()
    assert models_of(tables=["3"], figures=["3"]) == set(MODELS)


def test_the_unknown_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"There is no figure '2'\."):
        want(STUDY, figures=["2"])


def test_cells_of_the_page_are_words() -> None:
    keys = {"dataset": "yelp10k", "model": "HANrnn"}
    rows = [
        {**keys, "ranking": name, "convention": convention, "median_fraction": median, "over_half": 0.124}
        for name, median in (("minimum", 0.1), ("random", float("nan")))
        for convention in ("own", "common")
    ]
    assert fractions_in_words(pd.DataFrame(rows)).to_dict("records") == [
        {"dataset": "yelp10k", "model": "HANrnn", "convention": kind, "random": "–", "minimum": "0.10 / 12 %"}
        for kind in ("own", "common")
    ]
    quality = pd.DataFrame([{**keys, "ranking": "attention", "attained": 0.257, "mean_ratio": 3.456}])
    assert attained_in_words(quality)["attention"].tolist() == ["26 % / 3.46"]
