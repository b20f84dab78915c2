"""Loops compiled for the CPU."""

import os
import subprocess
import sys
from pathlib import Path
from typing import no_type_check

from heedful.compiled import compiled


def test_a_compiled_function_gives_the_numbers_of_the_plain_one() -> None:
    @compiled
    @no_type_check
    def total(n):
        found = 0.0
        for i in range(n):
            found += i * 0.5
        return found

    assert total(5) == 5.0


def test_without_a_folder_to_keep_them_in_loops_are_compiled_all_the_same(tmp_path: Path) -> None:
    """A file stands where numba would make its folder."""
    (tmp_path / "file").touch()
    program = (
        "import numpy; from heedful.models.kernels import find_distinct as find; print(find(numpy.array([2, 1, 2]), 4))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file" / "below")}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "(array([1, 2]), array([1, 0, 1]))"
