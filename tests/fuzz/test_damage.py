"""A small part of `make kills` and `make shortages`, in processes of their own: they fork, unchecked by the tests."""

import re
import subprocess
import sys

from tests.commands import environment


def rows(*words: str) -> list[list[str]]:
    """What is printed, row by row."""
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**environment(), "COLUMNS": "200"})
    assert done.returncode == 0, done.stderr + done.stdout
    return [re.split(r"\s*[│|]\s*", line)[1:-1] for line in done.stdout.splitlines() if re.search(r"[│|]", line)]


def test_kills_lose_nothing_and_leave_nothing() -> None:
    for scene, kills, _, *failures, _ in rows("tests.fuzz.kills", "run --fresh", "data fetch", "--kills", "10"):
        assert int(kills) >= 3, scene
        assert failures == ["0", "0", "0"], scene


def test_what_is_short_is_said_in_a_sentence() -> None:
    short = ("--short", "disk", "--short", "files", "--short", "permission", "--short", "user")
    found = {what: counts for what, *counts in rows("tests.fuzz.shortages", "run --fresh", "--sizes", "5", *short)}
    assert all(other == "0" for _, _, _, other, _ in found.values())
    assert int(found["size of files"][2]) > 0
    assert found["permission to write"][:3] == ["2", "0", "2"]
