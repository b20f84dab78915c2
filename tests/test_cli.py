"""The command line: what is printed, what is written, and how it ends."""

import csv
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import heedful
from heedful import __version__
from tests import commands
from tests.commands import Call, Outcome, environment

pytestmark = pytest.mark.xdist_group("cli")  # one worker makes the audited run

SIGNS = {
    "1": "awful terrible broken",
    "2": "poor bland weak",
    "3": "okay average decent",
    "4": "good solid tasty",
    "5": "superb perfect wonderful",
}
PLAIN = (
    "the",
    "food",
    "place",
    "service",
    "we",
    "went",
    "table",
    "waiter",
    "room",
    "staff",
    "came",
    "with",
    "it",
    "was",
)


def start(*arguments: object) -> "subprocess.Popen[str]":
    """Run a command in a process of its own, as a user does."""
    return commands.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def finish(process: "subprocess.Popen[str]") -> Outcome:
    out, err = process.communicate(timeout=120)
    return Outcome(process.returncode, out, err)


def write_reviews(path: Path, count: int = 250) -> Path:
    """Stars and reviews as they are found: quotes, emoji, line breaks, empty rows, one text of 100,000 words."""
    chance = random.Random(0)
    rows = []
    for number in range(count):
        stars = str(number % 5 + 1)
        words = chance.choices(PLAIN, k=8) + chance.choices(SIGNS[stars].split(), k=2)
        chance.shuffle(words)
        rows.append([" ".join(words), stars])
    rows[0][0] = f'He said "{rows[0][0]}", really! 👍🏽'
    rows[1][0] += "\nsecond line, <b>bold</b> [red] 😀"
    rows[2][0] = " ".join(chance.choices(PLAIN, k=100_000))
    rows[7][0] = rows[8][0] = ""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["review", "stars"], *rows])
    return path


@dataclass(frozen=True)
class Audited:
    outcome: Outcome
    store: Path
    report: Path

    @property
    def run(self) -> Path:
        (found,) = self.store.glob("*_dot-none-10_*")  # others tried another λ
        return found


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """An audit of the reviews, run as a user does."""
    folder = tmp_path_factory.mktemp("reviews")
    reviews = write_reviews(folder / "reviews.csv")
    store, out = folder / "runs", folder / "[bold]out"
    ended = finish(start("audit", reviews, "--epochs", 6, "--store", store, "--out", out, "--all"))
    return Audited(ended, store, out / "report.html")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Twelve short texts of two classes."""
    lines = [f"word{row} the,{'no' if row % 2 else 'yes'}" for row in range(12)]
    path = tmp_path / "tiny.csv"
    path.write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    return path


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from heedful.cli import main; sys.argv = ['heedful', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'pandas', 'numpy', 'matplotlib', 'pydantic', 'scipy', 'captum', 'sklearn', 'transformers'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=start_env())
    assert "HEAVY []" in ended.stdout
    assert "audit" in ended.stdout


def start_env() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(heedful.__file__).parents[1])}


def test_help_names_every_command(call: Call) -> None:
    said = call("--help")
    assert said.code == 0
    assert all(name in said.out for name in ("audit", "train", "explain", "data", "doctor", "--version"))


def test_no_command_shows_the_help(call: Call) -> None:
    said = call()
    assert said.code == 2
    assert "Usage:" in said.out + said.err


def test_the_version_is_printed(call: Call) -> None:
    assert call("--version") == Outcome(0, f"heedful {__version__}\n", "")


def test_the_doctor_names_versions_and_the_data_folder(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "nowhere"))
    found = call("doctor", "--json").json
    assert found["heedful"] == __version__
    assert found["data folder"] == f"{tmp_path / 'nowhere'} (not there)"
    assert "sst" in found["not at hand"].split(", ")
    assert "torch" in call("doctor").out


def test_the_doctor_and_verify_check_a_whole_store(call: Call, tiny: Path, tmp_path: Path) -> None:
    from heedful.config import DataSettings
    from heedful.store import Store
    from heedful.text.cached import TEXTS
    from heedful.text.datasets import cache_corpus

    place = ("--store", tmp_path / "runs")
    store, corpora = Store(place[1]), tmp_path / "runs" / ".corpora"
    call("train", tiny, "--epochs", 1, *place)
    cache_corpus(DataSettings(source=str(tiny)), store)
    assert call("doctor", "--json", *place).json["store"] == f"{place[1]} (1 runs, 0 damaged)"
    for path in (next(store.root.glob("*/history.parquet")), next(corpora.glob(f"*/{TEXTS.format('train')}"))):
        good = path.read_bytes()
        path.write_bytes(bytes([good[0] ^ 1, *good[1:]]))
    said = call("doctor", "--json", *place)
    assert said.json["store"] == f"{place[1]} (1 runs, 2 damaged: see heedful runs verify)"
    told = call("runs", "verify", *place)
    assert (said.code, told.code) == (1, 1)
    assert "train.arrow' is damaged: it does not hold what was written to it. Remove the folder" in told.words
    assert "history.parquet' is not what was written: the file is damaged." in told.words


def test_the_corpora_are_listed(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    listed = {row["name"]: row["available"] for row in call("data", "list", "--json").json}
    assert listed["synthetic-1"] is True
    assert listed["sst"] is False
    assert "(needs sst2_tree.jsonl.gz in the data folder)" in call("data", "list").out


def test_statistics_of_a_file(call: Call, tmp_path: Path) -> None:
    path = write_reviews(tmp_path / "reviews.csv")
    found = call("data", "stats", path, "--json").json
    assert found["classes"] == ["1", "2", "3", "4", "5"]
    assert sum(split["texts"] for split in found["splits"].values()) == 248
    assert max(split["longest"] for split in found["splits"].values()) == 100_000
    assert found["notices"][0] == "2 rows left out: column 'review' holds no text."
    said = call("data", "stats", path)
    assert said.code == 0
    assert "100,000" in said.out
    assert "note: 2 rows left out" in said.out


def test_statistics_show_markup_as_it_is(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "[bold]x[red].csv"
    rows = "".join(f"w{row},[/red] {row % 2} :star:\n" for row in range(20))
    path.write_text(f"text,label\n{rows}", encoding="utf-8")
    said = call("data", "stats", path)
    assert said.code == 0
    assert "[bold]x[red].csv: vocabulary" in said.out
    assert "[/red] 0 :star:" in said.out


def test_an_audit_of_five_stars_ends_well(audited: Audited) -> None:
    assert audited.outcome.code == 0
    assert "Traceback" not in audited.outcome.err
    assert "Warning" not in audited.outcome.err
    assert f"report {audited.report}" in audited.outcome.out
    html = audited.report.read_text(encoding="utf-8")
    assert "2 rows left out" in html
    assert all(f"towards {stars}" in html for stars in SIGNS)


def test_an_audit_says_its_answer_its_verdicts_and_its_accuracy(audited: Audited) -> None:
    said = " ".join(audited.outcome.out.split())
    assert re.search(r"C1 The polarity score of a token has the sign of its group\. (yes|no|not shown) ", said)
    assert re.search(r"Across the corpus, does attention point at the words that decide\? (yes|no|not shown) ", said)
    assert re.search(r"For one decision, does attention find what decided it\? (yes|no|not shown) ", said)
    assert re.search(r"Test accuracy \d+\.\d % \[\d+\.\d, \d+\.\d\]", audited.outcome.out)


def test_an_audit_says_how_the_data_were_taken_in(audited: Audited) -> None:
    assert "note: 2 rows left out: column 'review' holds no text." in " ".join(audited.outcome.out.split())


def test_an_audit_tries_other_scales_and_recommends_one(audited: Audited) -> None:
    said = " ".join(audited.outcome.out.split())
    assert re.search(r"Of λ = 1, 10, 100, each without and with a penalty on VᵀW, (take|keep|none)", said)
    assert re.search(r"C4 A small λ hurts accuracy\. (yes|no|not shown)", said)
    assert re.search(r"S1 The most attended unit matters more than a random other unit\. (yes|no|not shown)", said)
    assert "Erased from the largest attention weight on" in said
    assert "trying other λ: trainings: 4 of 5 runs" in audited.outcome.err
    scales = {path.name.split("_")[1] for path in audited.store.iterdir() if path.is_dir() and path.name[0] != "."}
    kinds = {"dot-none-1", "dot-none-10", "dot-none-100"}
    assert scales == kinds | {f"{kind}-penalty-0.001" for kind in kinds}


def test_a_run_is_found_by_the_beginning_of_its_name(
    audited: Audited, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    short = audited.run.name[:8]
    for command in (["explain", "superb food"], ["erase", "superb food"], ["erase"]):
        by_name = call(*command, "--run", short, "--store", audited.store, "--json")
        assert by_name.code == 0
        assert by_name.json == call(*command, "--run", audited.run, "--json").json
    assert call("explain", "superb food", "--run", audited.store / short).code == 0


def test_an_audit_leaves_nothing_unfinished(audited: Audited) -> None:
    assert not list(audited.store.rglob("*.part"))
    assert not list(audited.store.glob(".work/*"))


TEXT = 'A [bold]superb[/bold] <script> "place", 👍🏽 [/red] İ don\'t'


def test_an_explanation_slices_the_text_exactly(audited: Audited, call: Call) -> None:
    found = call("explain", TEXT, "--run", audited.run, "--json").json
    assert found["text"] == TEXT
    tokens = found["tokens"]
    assert [token["token"] for token in tokens] == [TEXT[token["start"] : token["end"]] for token in tokens]
    assert "".join(token["token"] for token in tokens) == re.sub(r"\s", "", TEXT)
    assert sum(token["attention_weight"] for token in tokens) == pytest.approx(1)
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    assert found["predicted"] == max(found["probabilities"], key=found["probabilities"].__getitem__)
    known = {token["token"]: token["known"] for token in tokens}
    assert known["superb"]
    assert not known["İ"]


def test_an_explanation_adds_up_to_the_prediction(audited: Audited, call: Call) -> None:
    found = call("explain", "superb food, terrible service", "--run", audited.run, "--json").json
    logits = {
        name: sum(token["attention_weight"] * token["polarity"][name] for token in found["tokens"])
        for name in found["probabilities"]
    }
    assert max(logits, key=logits.__getitem__) == found["predicted"]


def test_an_explanation_shows_markup_as_it_is(audited: Audited, call: Call) -> None:
    said = call("explain", "[bold]superb[/bold] [/red] :smile:", "--run", audited.run)
    assert said.code == 0
    assert said.out.count("[bold]superb[/bold] [/red] :smile:") == 3
    assert re.search(r"^ +0\.\d{3}  [ +-]+\d\.\d\d  [ +-]+\d\.\d\d   superb$", said.out, re.MULTILINE)


def test_an_explanation_reads_standard_input(
    audited: Audited, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("superb place\n", encoding="utf-8")
    with path.open(encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert call("explain", "-", "--run", audited.run, "--json").json["text"] == "superb place\n"


def test_a_broken_character_is_explained_all_the_same(audited: Audited, call: Call) -> None:
    assert call("explain", "superb \udcff place", "--run", audited.run, "--json").json["text"] == "superb \ufffd place"


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_refused(audited: Audited, call: Call, text: str) -> None:
    said = call("explain", text, "--run", audited.run)
    assert (said.code, said.out) == (1, "")
    assert said.err == "heedful: A text needs at least one word; this one has none.\n"


WRONG = {
    "a scale of nothing": (["audit", "--score-scale", "0"], "Setting 'model.score_scale' is 0.0"),
    "a negative scale": (["train", "--score-scale", "-1"], "Setting 'model.score_scale' is -1.0"),
    "a scale that is no number": (["audit", "--score-scale", "nan"], "Setting 'model.score_scale' is nan"),
    "no epoch": (["train", "--epochs", "0"], "Setting 'training.epochs' is 0"),
    "an unknown corpus": (["audit", "syntetic-1"], "Did you mean 'synthetic-1'?"),
    "a missing file": (["audit", "none.csv"], "There is no file 'none.csv'."),
    "an unknown setting": (["audit", "--set", "model.score_scal=3"], "did you mean 'model.score_scale'?"),
    "an unknown group": (["audit", "--set", "modell.score_scale=3"], "There is no group of settings 'modell'"),
    "half a setting": (["audit", "--set", "model.score_scale"], "A setting is changed by name=value"),
    "an unknown attention": (["audit", "--attention", "dott"], "Setting 'model.attention' is 'dott'"),
    "a missing configuration": (["audit", "--config", "none.toml"], "'none.toml' cannot be read"),
    "columns of a named corpus": (["data", "stats", "synthetic-1", "--text-column", "x"], "text_column cannot be set"),
    "a run that is not there": (
        ["explain", "good", "--run", "nowhere"],
        "No run in the store 'runs' has a name that begins with 'nowhere'",
    ),
    "a path that is not there": (
        ["explain", "good", "--run", "no/where"],
        "No run in the store 'no' has a name that begins with 'where'",
    ),
    "an erasure in a run that is not there": (
        ["erase", "--run", "nowhere"],
        "No run in the store 'runs' has a name that begins with 'nowhere'",
    ),
    "a run that is none": (["explain", "good", "--run", "."], "'.' is not a run: there is no manifest.json in it"),
    "a folder that is none": (["erase", "--run", str(Path.home())], "is not a run: there is no manifest.json in it"),
    "a study of no model": (["reproduce", "serrano2019", "--models", ""], "at least one data set and one model"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_done_is_one_sentence(
    what: str, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, sentence = WRONG[what]
    monkeypatch.chdir(tmp_path)
    said = call(*arguments)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("heedful: ")
    assert said.err.count("\n") == 1
    assert sentence in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["audti"], ["explain", "good"], ["audit", "--epochs", "many"], ["--nope"]])
def test_wrong_usage_has_exit_code_two(call: Call, arguments: list[str]) -> None:
    said = call(*arguments)
    assert said.code == 2
    assert "Usage:" in said.err


def test_a_seed_below_zero_is_wrong_usage(call: Call) -> None:
    said = call("erase", "--trace", "x.parquet", "--seed", "-1")
    assert said.code == 2
    assert "greater than or equal to 0" in said.err


def test_the_module_is_the_command() -> None:
    said = subprocess.run([sys.executable, "-m", "heedful", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("heedful ")


def test_a_user_sees_no_traceback(tmp_path: Path) -> None:
    said = finish(start("audit", tmp_path / "none.csv", "--store", tmp_path / "runs"))
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("heedful: There is no file")
    assert list(tmp_path.iterdir()) == []


def test_a_training_that_diverges_leaves_no_run(call: Call, tiny: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    said = call(
        "train", tiny, "--store", store, "--set", "training.learning_rate=1e38", "--set", "training.optimizer=sgd"
    )
    assert said.code == 1
    assert "Training diverged" in said.err
    assert "Traceback" not in said.err
    assert not list(store.glob("*/manifest.json"))


def test_settings_come_from_the_file_then_the_options_then_the_changes(call: Call, tiny: Path, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        f'[data]\nsource = "{tiny}"\n[model]\nembedding_size = 4\ndropout = 0.25\n[training]\nepochs = 9\nseed = 5\n',
        encoding="utf-8",
    )
    changes = ["--epochs", 2, "--seed", 7, "--set", "training.seed=8", "--set", "model.readout_range=none"]
    settings = call("train", "--config", config, *changes, "--store", tmp_path / "runs", "--json").json["settings"]
    assert settings["data"]["source"] == str(tiny)
    assert (settings["model"]["embedding_size"], settings["model"]["dropout"]) == (4, 0.25)
    assert (settings["training"]["epochs"], settings["training"]["seed"], settings["data"]["seed"]) == (2, 8, 0)


def test_a_finished_run_is_found_again(call: Call, tiny: Path, tmp_path: Path) -> None:
    arguments = [
        "train",
        tiny,
        "--epochs",
        1,
        "--set",
        "model.embedding_size=4",
        "--store",
        tmp_path / "runs",
        "--json",
    ]
    first, again, fresh = call(*arguments).json, call(*arguments).json, call(*arguments, "--fresh").json
    assert first == again
    assert (fresh["run"], fresh["metrics"]) == (first["run"], first["metrics"])


@pytest.mark.usefixtures("undrawn")
def test_an_audit_with_nothing_to_judge_is_undecided(call: Call, tiny: Path, tmp_path: Path) -> None:
    said = call("audit", tiny, "--epochs", 1, "--store", tmp_path / "runs", "--workers", 1, "--json")
    assert said.code == 0
    assert said.json["answer"]["headline"].startswith("Not shown")
    verdicts = {verdict["claim"]: verdict for verdict in said.json["verdicts"]}
    assert {verdicts[claim]["verdict"] for claim in ("C1", "C2", "C8", "C3")} == {"not shown"}
    assert verdicts["C1"]["value"] is None
    leads = {section["name"]: section["lead"] for section in said.json["sections"]}
    assert "too few words clearly belong to a class or to none" in leads["advice"]
    assert "There are too few words to tell" in Path(said.json["report"]).read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_an_audit_without_advice_trains_once(call: Call, tiny: Path, tmp_path: Path) -> None:
    said = call("audit", tiny, "--epochs", 1, "--store", tmp_path / "runs", "--no-advice", "--json")
    leads = {section["name"]: section["lead"] for section in said.json["sections"]}
    assert leads["advice"] == "Other λ were not tried: --no-advice was given."
    assert len(list((tmp_path / "runs").glob("*/manifest.json"))) == 1


def test_a_place_that_cannot_be_written_is_one_sentence(call: Call, tiny: Path, tmp_path: Path) -> None:
    said = call("train", tiny, "--epochs", 1, "--store", tiny)
    assert said.code == 1
    assert re.search(r"heedful: .*cannot be (created|written|read)", said.err)
    assert tiny.read_text(encoding="utf-8").startswith("text,label")
    assert tmp_path.is_dir()


def test_an_interrupted_training_ends_quietly_and_leaves_no_run(tmp_path: Path) -> None:
    store = tmp_path / "runs"
    process = start("train", "synthetic-1", "--epochs", 100_000, "--store", store)
    deadline = time.monotonic() + 60
    while not (store / ".work").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    said = finish(process)
    assert said.code in {130, -signal.SIGINT}  # a shell says 130 to both; Python may end itself by the signal
    assert "Traceback" not in said.err
    assert not list(store.glob("*/manifest.json"))


@pytest.mark.parametrize("library", ["heedful.cli", "typer", "torch"])
def test_an_interrupt_while_libraries_are_imported_ends_without_a_word(library: str, tmp_path: Path) -> None:
    script = (
        "import builtins, os, signal, sys\n"
        "from heedful.__main__ import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "real = builtins.__import__\n"
        "def importing(name, *rest):\n"
        f"    if name == '{library}':\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = importing\n"
        f"sys.argv = ['heedful', 'train', 'synthetic:size=60', '--store', {str(tmp_path / 'runs')!r}]\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
