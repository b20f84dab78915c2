"""A small part of `make fuzz`, with the same seeds every time.

In a process of its own: the checks of shapes, which are on in tests, would answer in place of the doors.
"""

import re
import subprocess
import sys

from tests.commands import environment
from tests.fuzz.doors import DOORS

EACH = 50


def test_whatever_comes_through_a_door_ends_in_a_result_or_a_sentence() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--first", "0", "--each", str(EACH)]
    done = subprocess.run(command, capture_output=True, text=True, env={**environment(), "COLUMNS": "200"})
    assert done.returncode == 0, done.stderr
    rows = [re.split(r"\s*[│|]\s*", line) for line in done.stdout.splitlines() if re.search(r"\d", line)]
    tried = {row[1]: (int(row[3]), int(row[4])) for row in rows}
    assert list(tried) == list(DOORS)
    assert all(taken + refused == EACH and refused for taken, refused in tried.values())
    assert all(taken for door, (taken, _) in tried.items() if door != "checkpoints")
