"""The intake of data on the command line: what is read, what is said of it, and what is refused in a sentence."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from heedful.config import RunSettings
from heedful.pipeline import run_name
from heedful.text.datasets import load_corpus
from heedful.text.recipes import DATASETS
from tests import commands
from tests.commands import Call

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = ["--epochs", 1, "--set", "model.embedding_size=4"]


def write(path: Path, header: str, rows: Sequence[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def stats(call: Call, *arguments: object) -> Any:
    said = call("data", "stats", *arguments, "--json")
    assert (said.code, said.err) == (0, "")
    return json.loads(said.out)


def counts(found: Any) -> list[int]:
    return [split["texts"] for split in found["splits"].values()]


@pytest.mark.parametrize("name", ["imdb", "yelp", "sst", "20news-1", "yelp10k"])
def test_statistics_of_a_file_with_the_name_of_a_corpus(name: str, call: Call, tmp_path: Path) -> None:
    path = write(tmp_path / f"{name}.csv", "text,label", [f"word{row},{row % 2}" for row in range(20)])
    found = stats(call, path)
    assert (found["corpus"], found["classes"], found["paper"]) == (f"{name}.csv", ["0", "1"], None)
    said = call("data", "stats", path)
    assert said.code == 0
    assert f"{name}.csv: vocabulary 17 (training split)\n" in said.out
    assert "beside" not in said.out


def test_the_directory_of_a_run_bears_the_name_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "my imdb (1).csv", "text,label", [f"word{row},{row % 2}" for row in range(20)])
    assert run_name(RunSettings(), load_corpus(path)) == "dot-none-10_my-imdb--1-.csv_0"
    assert load_corpus(path).name not in DATASETS


def test_a_spreadsheet_with_semicolons_is_read(call: Call, tmp_path: Path) -> None:
    rows = [f'"word{row}; so, really";{("bad", "good")[row % 2]}' for row in range(20)]
    path = tmp_path / "sheet.csv"
    path.write_bytes(("\ufeff" + "\r\n".join(["text;label", *rows])).encode())
    found = stats(call, path)
    assert found["classes"] == ["bad", "good"]
    assert found["splits"]["train"]["mean_length"] == 5


def test_a_list_in_a_json_file_is_read(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    rows = [{"text": f"word{row}", "label": row % 2} for row in range(20)]
    path.write_text(json.dumps({"data": rows}, indent=2), encoding="utf-8")
    assert counts(stats(call, path)) == [16, 2, 2]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_another_encoding_is_answered_with_the_option_that_reads_it(encoding: str, call: Call, tmp_path: Path) -> None:
    rows = [f"“café” {row}\t{row % 2}" for row in range(20)]
    path = tmp_path / "windows.tsv"
    path.write_bytes("\r\n".join(["text\tlabel", *rows]).encode(encoding))
    option = ["--encoding", encoding]
    for command in (["data", "stats"], ["train", *QUICK, "--store", tmp_path / "runs"]):
        refused = call(*command, path)
        assert (refused.code, refused.out) == (1, "")
        assert f"Give its encoding: {' '.join(option)}, in Python encoding='{encoding}'" in refused.err
        assert call(*command, path, *option).code == 0
    assert "“café” 0" in load_corpus(path, encoding=encoding).train.texts


@pytest.fixture
def divided(tmp_path: Path) -> Path:
    """Twenty rows, of which the column `split` leaves four in the dark."""
    splits = ["train"] * 12 + ["test"] * 4 + ["none"] * 4
    return write(
        tmp_path / "divided.csv",
        "text,label,split",
        [f"word{row},{row % 2},{split}" for row, split in enumerate(splits)],
    )


def test_a_split_column_with_strange_values_is_answered_with_the_ways_out(call: Call, divided: Path) -> None:
    said = call("data", "stats", divided)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("heedful: Column 'split' holds 'none' in 4 rows, where the name of a split was expected")
    assert "--split-values skip=none (or train, dev or test in place of skip)" in said.err
    assert "--split-column none (in Python split_column='none') draws all splits anew.\n" in said.err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--split-column", "none"], [16, 2, 2]),
        (["--split-column", "None"], [16, 2, 2]),
        (["--set", "data.split_column=none"], [16, 2, 2]),
        (["--split-values", "skip=none"], [10, 2, 4]),
        (["--split-values", "dev=none"], [12, 4, 4]),
        (["--set", "data.split_values=dev=none"], [12, 4, 4]),
    ],
)
def test_the_ways_out_lead_out(options: list[str], expected: list[int], call: Call, divided: Path) -> None:
    assert counts(stats(call, divided, *options)) == expected


def test_rows_to_be_skipped_are_said(call: Call, divided: Path) -> None:
    assert stats(call, divided, "--split-values", "skip=none")["notices"][0] == (
        "4 rows left out: column 'split' holds 'none'."
    )


def test_an_empty_split_column_is_answered_with_what_can_be_given(call: Call, divided: Path) -> None:
    said = call("data", "stats", divided, "--split-column", "")
    assert (said.code, said.out) == (1, "")
    assert said.err == (
        "heedful: The name of the split column is empty. Name a column, give none to draw all splits anew, or leave "
        "the option away to have a column recognised.\n"
    )


def test_split_values_are_part_of_a_run(call: Call, divided: Path, tmp_path: Path) -> None:
    store = ["--store", tmp_path / "runs", "--json"]
    first, second = (
        json.loads(call("train", divided, "--split-values", values, *QUICK, *store).out)
        for values in ("dev=none", "skip=none")
    )
    assert first["settings"]["data"]["split_values"] == "dev=none"
    assert first["digest"] != second["digest"]


def test_every_command_says_which_label_was_taken(call: Call, tmp_path: Path) -> None:
    rows = [f"{row % 5 + 1},{('food', 'hotel')[row % 2]},word{row} the" for row in range(40)]
    path = write(tmp_path / "places.csv", "stars,category,text", rows)
    choice = (
        "note: The label is read from column 'category'; 'stars' could hold it too. "
        "Choose with --label-column, in Python label_column."
    )
    store = ["--store", tmp_path / "runs"]
    assert choice in call("data", "stats", path).words
    assert choice in call("train", path, *QUICK, *store).notes
    assert choice in call("audit", path, *QUICK, "--no-advice", *store).notes
    assert not any("column" in note for note in call("train", path, "--label-column", "stars", *QUICK, *store).notes)


@pytest.fixture
def unlabelled(tmp_path: Path) -> Path:
    """Eighty rows, the first forty without a label."""
    labels = ["" if row < 40 else ("bad", "good")[row % 2] for row in range(80)]
    return write(tmp_path / "some.csv", "text,label", [f"word{row} the,{label}" for row, label in enumerate(labels)])


DROPPED = "40 rows left out: column 'label' holds no label."
DRAWN = [f"The {split} split was drawn from the training rows (stratified, 10%, seed 0)." for split in ("test", "dev")]


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_training_says_what_was_done_to_the_data_also_of_a_finished_run(
    form: list[str], call: Call, unlabelled: Path, tmp_path: Path
) -> None:
    arguments = ["train", unlabelled, *QUICK, "--store", tmp_path / "runs", *form]
    first, found = call(*arguments), call(*arguments)
    for said in (first, found):
        assert said.code == 0
        assert said.notes == [f"note: {notice}" for notice in (DROPPED, *DRAWN)]
        assert "note" not in said.out.replace('"notices"', "")
        if form:
            assert json.loads(said.out)["notices"] == [DROPPED, *DRAWN]
    assert "training on some.csv" in first.err
    assert "dev accuracy" not in found.err


def test_notices_are_those_of_the_data_as_they_are_now(call: Call, unlabelled: Path, tmp_path: Path) -> None:
    """The same texts without the rows that were left out are the same run."""
    arguments = ["train", unlabelled, *QUICK, "--store", tmp_path / "runs", "--json"]
    first = json.loads(call(*arguments).out)
    lines = unlabelled.read_text(encoding="utf-8").splitlines()
    write(unlabelled, lines[0], [line for line in lines[1:] if not line.endswith(",")])
    again = call(*arguments)
    assert json.loads(again.out)["run"] == first["run"]
    assert json.loads(again.out)["notices"] == DRAWN
    assert again.notes == [f"note: {notice}" for notice in DRAWN]


def test_training_says_what_its_first_vectors_are(call: Call, unlabelled: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 0.1 0.2 0.3 0.4\n", encoding="utf-8")
    arguments = ["train", unlabelled, *QUICK, "--set", f"model.vectors={vectors}", "--store", tmp_path / "runs"]
    first, found = call(*arguments), call(*arguments)
    assert first.notes == found.notes
    assert first.notes[:3] == [f"note: {notice}" for notice in (DROPPED, *DRAWN)]
    assert len(first.notes) == 4


def test_the_audit_and_the_statistics_say_it_too(call: Call, unlabelled: Path, tmp_path: Path) -> None:
    assert f"note: {DROPPED}" in call("data", "stats", unlabelled).words
    said = call("audit", unlabelled, *QUICK, "--no-advice", "--store", tmp_path / "runs")
    assert f"note: {DROPPED}" in said.notes
    assert (
        f"note: {DROPPED}"
        in call("audit", unlabelled, *QUICK, "--no-advice", "--all", "--store", tmp_path / "runs").words
    )


def test_labels_that_are_words_for_none_are_left_out_or_kept(call: Call, tmp_path: Path) -> None:
    labels = ["NaN" if row < 5 else ("bad", "good")[row % 2] for row in range(45)]
    path = write(tmp_path / "some.csv", "text,label", [f"word{row} the,{label}" for row, label in enumerate(labels)])
    found = stats(call, path)
    assert found["classes"] == ["bad", "good"]
    assert found["notices"][0].startswith("5 rows left out: column 'label' holds 'NaN', which is taken for no label.")
    assert "--missing-labels keep" in found["notices"][0]
    assert stats(call, path, "--missing-labels", "keep")["classes"] == ["NaN", "bad", "good"]
    store = ["--store", tmp_path / "runs"]
    for command in ("train", "audit"):
        said = call(command, path, *QUICK, *store, *(["--no-advice"] if command == "audit" else []))
        assert "5 rows left out: column 'label' holds 'NaN'" in f"{said.words} {said.err}"
    kept = call("train", path, "--missing-labels", "keep", *QUICK, *store, "--json")
    assert json.loads(kept.out)["settings"]["data"]["missing_labels"] == "keep"
    wrong = call("train", path, "--missing-labels", "drop", *QUICK, *store)
    assert (wrong.code, wrong.out) == (1, "")
    assert "Setting 'data.missing_labels' is 'drop': input should be 'skip' or 'keep'." in wrong.err


def test_class_names_in_notices_do_not_steer_the_terminal(call: Call, tmp_path: Path) -> None:
    rows = [f"word{row} the,{('bad', 'good')[row % 2]}" for row in range(40)]
    path = write(tmp_path / "odd.csv", "text,label", [*rows, "one,\x1b[31mred", "two,\x1b[31mred"])
    arguments = [*QUICK, "--store", tmp_path / "runs"]
    for said in (call("data", "stats", path), call("audit", path, "--no-advice", *arguments)):
        assert said.code == 0
        assert "The test and dev splits lack the class ' [31mred'" in " ".join([said.words, *said.notes])
        assert "\x1b[31m" not in said.out + said.err


ROWS = "".join(f"word{row},{row % 2}\n" for row in range(20))

BAD: dict[str, tuple[str, bytes, str]] = {
    "an empty file": ("x.csv", b"", "'x.csv' has no rows."),
    "one class": ("x.csv", b"text,label\n" + b"".join(b"w%d,a\n" % row for row in range(20)), "has one: 'a'."),
    "missing columns": (
        "x.csv",
        f"words,mark\n{ROWS}".encode(),
        "No column looks like the text. Name it (--text-",
    ),
    "no labels": ("x.csv", b"text,label\n" + b"word,\n" * 20, "No row has both a text and a label. 20 rows left out"),
    "another encoding": (
        "x.csv",
        f"text,label\ncafé,1\n{ROWS}".encode("latin-1"),
        "not utf-8 text: byte 14 is 0xe9.",
    ),
    "NUL bytes": ("x.csv", b"text,label\n" + b"a\0b,1\n" * 20, "20 rows left out: column 'text' holds NUL bytes."),
    "broken rows": (
        "x.csv",
        b"text;label\na;1\nb; c;0\n",
        "Expected 2 fields in line 3, saw 3. Its fields are",
    ),
    "broken JSON": ("x.json", b'[{"text": ', "'x.json' is not JSON: "),
    "broken Parquet": ("x.parquet", b"PAR1", "The Parquet file 'x.parquet' cannot be read"),
    "several labels": ("x.jsonl", b'{"text": "a", "label": [1, 2]}\n' * 20, "holds several labels for a text"),
}


@pytest.mark.parametrize("command", [["data", "stats"], ["train", "--epochs", "1"]], ids=["stats", "train"])
@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_sentence(
    what: str, command: list[str], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, content, sentence = BAD[what]
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    said = call(*command, name)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("heedful: ")
    assert said.err.count("\n") == 1
    assert sentence in said.err
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_help_says_how_splits_are_told(call: Call) -> None:
    for command in (["audit"], ["train"], ["data", "stats"]):
        said = call(*command, "--help")
        assert "--split-values SPLIT=VALUE,…" in said.words
        assert "train=rest,dev=validate; skip=VALUE leaves rows out." in said.words


def test_other_things_than_data_are_refused() -> None:
    """In a process of its own: here the types are checked before."""
    code = (
        "import heedful\n"
        "for source in ([['a'], [1]], (['a'], [1], [2])):\n"
        "    try: heedful.load_corpus(source)\n"
        "    except heedful.HeedfulError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=commands.environment()
    )
    list_sentence, tuple_sentence = done.stdout.splitlines()
    assert "a pandas data frame or a tuple (texts, labels); got list." in list_sentence
    assert "A tuple of data is (texts, labels); got one of 3." in tuple_sentence


def test_a_run_from_before_there_were_split_values_is_found_by_a_sweep(
    call: Call, unlabelled: Path, tmp_path: Path
) -> None:
    store = ["--store", tmp_path / "runs", "--json"]
    path = Path(json.loads(call("train", unlabelled, *QUICK, *store).out)["run"]) / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    assert manifest["settings"]["data"].pop("split_values") is None
    del manifest["checksum"]  # of later versions
    path.write_text(json.dumps(manifest), encoding="utf-8")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"seeds = 2\n[base]\ndata.source = '{unlabelled}'\ntraining.epochs = 1\nmodel.embedding_size = 4\n",
        encoding="utf-8",
    )
    found = json.loads(call("sweep", plan, "--dry-run", *store).out)
    assert (found["total"], found["done"]) == (2, 1)
