"""Commands whose output nobody reads to its end stop without a word; those that break, with one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import commands

ENDED_BY_A_CLOSED_PIPE, DEFECT = 141, 70


def call_unread(*arguments: object, errors: bool = False) -> tuple[int, str]:
    """Exit code and stderr of a command whose standard output (and errors, too) is a pipe without a reader."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*commands.COMMAND, *map(str, arguments)],
        stdout=writing,
        stderr=writing if errors else subprocess.PIPE,
        text=True,
        timeout=300,
        env=commands.environment(),
    )
    os.close(writing)
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["data", "list"],
        ["data", "list", "--json"],
        ["data", "stats", "synthetic-1"],
        ["doctor"],
        ["runs", "list", "--store", "nowhere"],
    ],
    ids=" ".join,
)
def test_a_command_that_nobody_reads_ends_quietly(arguments: list[str]) -> None:
    assert call_unread(*arguments) == (ENDED_BY_A_CLOSED_PIPE, "")


def test_a_long_output_is_cut_where_the_reader_goes_away(tmp_path: Path) -> None:
    """Far more than a pipe holds, of which one line is read."""
    path = tmp_path / "many.csv"
    path.write_text("text,label\n" + "".join(f"word{row},class {row % 3000}\n" for row in range(9_000)), "utf-8")
    command = [*commands.COMMAND, "data", "stats", str(path), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=commands.environment()
    ) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        assert started.stdout.readline() == "{\n"
        started.stdout.close()
        assert started.stderr.read() == ""
        assert started.wait(timeout=300) == ENDED_BY_A_CLOSED_PIPE


def test_an_error_that_nobody_reads_ends_quietly_too() -> None:
    assert call_unread("train", "nowhere.csv", errors=True) == (ENDED_BY_A_CLOSED_PIPE, "")


def test_an_error_is_said_although_nobody_reads_the_output() -> None:
    code, said = call_unread("train", "nowhere.csv")
    assert code == 1
    assert said.startswith("heedful: There is no file 'nowhere.csv'.")


def test_a_defect_is_one_sentence_with_the_details_in_a_private_file(tmp_path: Path) -> None:
    broken = "import heedful.cli as cli; cli.app = lambda **_: 1 / 0; cli.main()"
    told = {**commands.environment(), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", broken], capture_output=True, text=True, env=told)
    assert done.returncode == DEFECT
    assert done.stderr.startswith("heedful: this is a defect of heedful, not of what you gave: ZeroDivisionError, ")
    assert "Traceback" not in done.stderr
    details = Path(done.stderr.split("'")[1])
    assert details.parent.stat().st_mode & 0o077 == 0
    assert "ZeroDivisionError: division by zero" in details.read_text()
